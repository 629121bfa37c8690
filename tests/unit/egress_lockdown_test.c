/* SPDX-License-Identifier: Apache-2.0 */
/* Locked in for real, in children: what is refused, what goes on working, and what /proc says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/rest.h"
#include "egress/lockdown.h"
#include "base/guards.h"

enum { NOBODY = 65534, X32_BIT = 0x40000000, CODE_LOCKDOWN = 100 };

/* The exit status of a child that locks itself in and then runs @f; or minus its signal. */
static int run_locked(int (*f)(void))
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct error err = ERROR_INIT;

        _exit(lockdown_enter(UINT32_MAX, UINT32_MAX, &err) < 0 ? CODE_LOCKDOWN : f());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- refused ---- */

struct refused {
    const char *name;
    long number;
    long args[6];
};

static const char a_path[] = "/dev/null";
static const struct refused refused[] = {
#ifdef SYS_open
    {"open", SYS_open, {(long)a_path, O_RDONLY}},
    {"creat", SYS_creat, {(long)a_path, 0600}},
    {"fork", SYS_fork, {0}},
    {"vfork", SYS_vfork, {0}},
    {"stat", SYS_stat, {(long)a_path, 0}},
    {"x32 write", X32_BIT | SYS_write, {1, (long)a_path, 0}},
#endif
    {"openat", SYS_openat, {AT_FDCWD, (long)a_path, O_RDONLY}},
    {"openat2", SYS_openat2, {AT_FDCWD, (long)a_path, 0, 24}},
    {"open_by_handle_at", SYS_open_by_handle_at, {AT_FDCWD, 0, O_RDONLY}},
    {"memfd_create", SYS_memfd_create, {(long)a_path, MFD_CLOEXEC}},
    {"newfstatat", SYS_newfstatat, {AT_FDCWD, (long)a_path, 0, 0}},
    {"unlinkat", SYS_unlinkat, {AT_FDCWD, (long)a_path, 0}},
    {"execve", SYS_execve, {(long)a_path, 0, 0}},
    {"execveat", SYS_execveat, {AT_FDCWD, (long)a_path, 0, 0, 0}},
    {"clone", SYS_clone, {SIGCHLD}},
    {"clone3", SYS_clone3, {0, 0}},
    {"unshare", SYS_unshare, {CLONE_NEWUSER}},
    {"setns", SYS_setns, {0, 0}},
    {"mount", SYS_mount, {(long)a_path, (long)a_path, 0, 0, 0}},
    {"fsopen", SYS_fsopen, {(long)a_path, 0}},
    {"ptrace", SYS_ptrace, {0, 0, 0, 0}},
    {"process_vm_readv", SYS_process_vm_readv, {1, 0, 0, 0, 0, 0}},
    {"pidfd_open", SYS_pidfd_open, {1, 0}},
    {"pidfd_getfd", SYS_pidfd_getfd, {0, 0, 0}},
    {"kill", SYS_kill, {1, 0}},
    {"tkill", SYS_tkill, {1, 0}},
    {"tgkill of another", SYS_tgkill, {1, 1, 0}},
    {"io_uring_setup", SYS_io_uring_setup, {1, 0}},
    {"bpf", SYS_bpf, {0, 0, 0}},
    {"perf_event_open", SYS_perf_event_open, {0, 0, -1, -1, 0}},
    {"userfaultfd", SYS_userfaultfd, {0}},
    {"keyctl", SYS_keyctl, {0, 0}},
    {"ioctl", SYS_ioctl, {0, 0, 0}},
    {"prctl", SYS_prctl, {PR_SET_DUMPABLE, 1, 0, 0, 0}},
    {"seccomp", SYS_seccomp, {0, 0, 0}},
    {"capset", SYS_capset, {0, 0}},
    {"setresuid", SYS_setresuid, {-1, -1, -1}},
    {"prlimit64", SYS_prlimit64, {0, RLIMIT_NOFILE, 0, 0}},
    {"shmget", SYS_shmget, {0, 1, 0600}},
    {"listen", SYS_listen, {0, 1}},
    {"bind", SYS_bind, {0, 0, 0}},
    {"socketpair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, 0}},
    {"socket, local", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
    {"socket, packet", SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
    {"socket, vsock", SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}},
    {"socket, alg", SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}},
    {"socket, audit", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT}},
    {"socket, route", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}},
    {"socket, netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}},
    {"socket, raw", SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_RAW}},
    {"socket, raw IPv6", SYS_socket, {AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6}},
    {"socket, ping", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}},
    {"socket, SCTP", SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_SCTP}},
    {"socket, MPTCP", SYS_socket, {AF_INET6, SOCK_STREAM, IPPROTO_MPTCP}},
    {"socket, old packet", SYS_socket, {AF_INET, SOCK_PACKET, 0}},
    {"fcntl, owner", SYS_fcntl, {0, F_SETOWN, 1}},
    {"fcntl, signal", SYS_fcntl, {0, F_SETSIG, SIGKILL}},
    {"mmap, code", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
    {"mprotect, code", SYS_mprotect, {0, 4096, PROT_EXEC}},
    {"pkey_mprotect", SYS_pkey_mprotect, {0, 4096, PROT_READ, -1}},
    {"a call of tomorrow", 2000, {0}},
};

static int try_refused(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        const struct refused *x = &refused[i];
        const long *a = x->args;

        errno = 0;
        if (syscall(x->number, a[0], a[1], a[2], a[3], a[4], a[5]) != -1 || errno != EPERM)
            return (int)i + 1;
    }
    return 0;
}

static void what_egress_does_not_need_is_refused(void **state)
{
    int r = run_locked(try_refused);

    (void)state;
    if (r > 0 && r <= (int)ARRAY_SIZE(refused))
        fail_msg("%s is not refused with EPERM", refused[r - 1].name);
    assert_int_equal(r, 0);
}

/* ---- allowed ---- */

static bool sockets_work(void)
{
    static const int families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};

    for (size_t i = 0; i < 4; i++) {
        int type = types[i / 2] | SOCK_CLOEXEC | SOCK_NONBLOCK, one = 1;
        int fd = socket(families[i % 2], type, 0);
        int named = socket(families[i % 2], type, i / 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP);

        if (fd < 0 || named < 0 || setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one) < 0)
            return false;
        (void)close(fd);
        (void)close(named);
    }
    return true;
}

static bool pipes_work(void)
{
    int ends[2], s[2] = {-EBADF, -EBADF};
    char buf[8] = "";

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(s, O_CLOEXEC) < 0)
        return false;
    return fcntl(ends[1], F_SETPIPE_SZ, 64 * 1024) > 0 && write(s[1], "spliced", 7) == 7 &&
           splice(s[0], NULL, ends[1], NULL, 7, SPLICE_F_NONBLOCK) == 7 &&
           read(ends[0], buf, sizeof buf) == 7 && strcmp(buf, "spliced") == 0;
}

static bool memory_works(void)
{
    enum { LARGE = 8 * 1024 * 1024 };
    char *p = malloc(LARGE), *q;

    if (!p)
        return false;
    memset(p, 1, LARGE);
    q = realloc(p, 2 * LARGE);
    if (!q)
        return false;
    memset(q, 2, 2 * LARGE);
    free(q);
    rest_memory(); /* the program's text is gone, and comes back when it is run */
    return clock_now_us() > 0 && clock_epoch_us() > 0;
}

static bool waits_work(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC), ends[2];
    struct epoll_event ev = {.events = EPOLLIN};

    if (fd < 0 || pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], "x", 1) != 1)
        return false;
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    return epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &ev) == 0 && epoll_wait(fd, &ev, 1, 1000) == 1 &&
           poll(&p, 1, 1000) == 1;
}

static int try_needed(void)
{
    uint8_t random[8];

    if (!sockets_work())
        return 1;
    if (!pipes_work())
        return 2;
    if (!memory_works())
        return 3;
    if (!waits_work())
        return 4;
    return syscall(SYS_getrandom, random, sizeof random, 0) == sizeof random ? 0 : 5;
}

static void what_egress_needs_works(void **state)
{
    (void)state;
    assert_int_equal(run_locked(try_needed), 0);
}

static int channel_fds[2];

static int send_packet(void)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return 1;
    return -io_send_packet(channel_fds[1], "head", 4, "body", 4, &ends[0], 1);
}

static void packets_with_descriptors_still_pass(void **state)
{
    int fds[IO_FDS_MAX];
    size_t n = 0;
    char buf[16];

    (void)state;
    assert_int_equal(io_pair(channel_fds), 0);
    assert_int_equal(run_locked(send_packet), 0);
    assert_int_equal(io_recv_packet(channel_fds[0], buf, sizeof buf, fds, &n), 8);
    assert_int_equal(n, 1);
    (void)close(fds[0]);
    (void)close(channel_fds[0]);
    (void)close(channel_fds[1]);
}

static int give_up(void)
{
    abort();
}

static void a_failed_assertion_still_aborts(void **state)
{
    (void)state;
    assert_int_equal(run_locked(give_up), -SIGABRT);
}

/* ---- what the kernel says of the process ---- */

/* The value of a line of /proc/PID/status, without blanks around it. */
static void status_of(pid_t pid, const char *key, char *buf, size_t size)
{
    char path[64], line[512];
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/status", pid);
    f = fopen(path, "re");
    assert_non_null(f);
    buf[0] = '\0';
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') {
            char *v = line + strlen(key) + 1 + strspn(line + strlen(key) + 1, "\t ");

            v[strcspn(v, "\n")] = '\0';
            for (size_t n = strlen(v); n > 0 && v[n - 1] == ' '; n--)
                v[n - 1] = '\0';
            (void)snprintf(buf, size, "%s", v);
        }
    (void)fclose(f);
}

static void assert_status(pid_t pid, const char *key, const char *expected)
{
    char value[256];

    status_of(pid, key, value, sizeof value);
    if (strcmp(value, expected) != 0)
        fail_msg("%s is '%s', not '%s'", key, value, expected);
}

/* A locked child that says it is ready and waits for the end of the other pipe. */
static pid_t start_locked(uint32_t uid, uint32_t gid, int *ret_hold)
{
    int ready[2], hold[2];
    char c = 0;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct error err = ERROR_INIT;

        (void)close(hold[1]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || lockdown_enter(uid, gid, &err) < 0)
            _exit(CODE_LOCKDOWN);
        (void)!write(ready[1], "r", 1);
        (void)!read(hold[0], &c, 1);
        _exit(0);
    }
    (void)close(ready[1]);
    (void)close(hold[0]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    *ret_hold = hold[1];
    return pid;
}

static void it_has_no_capability_and_no_new_privileges(void **state)
{
    const bool root = geteuid() == 0;
    const uint32_t id = root ? NOBODY : UINT32_MAX;
    char path[64], ids[64];
    int hold, status;
    struct stat st;
    pid_t pid = start_locked(id, id, &hold);

    (void)state;
    assert_status(pid, "NoNewPrivs", "1");
    assert_status(pid, "Seccomp", "2");
    assert_status(pid, "CapInh", "0000000000000000");
    assert_status(pid, "CapPrm", "0000000000000000");
    assert_status(pid, "CapEff", "0000000000000000");
    assert_status(pid, "CapAmb", "0000000000000000");
    if (root) {
        (void)snprintf(ids, sizeof ids, "%d\t%d\t%d\t%d", NOBODY, NOBODY, NOBODY, NOBODY);
        assert_status(pid, "CapBnd", "0000000000000000");
        assert_status(pid, "Groups", "");
        assert_status(pid, "Uid", ids);
        assert_status(pid, "Gid", ids);
    }
    /* The files of a process that is not dumpable belong to root (proc(5)). */
    (void)snprintf(path, sizeof path, "/proc/%d/environ", pid);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 0);
    (void)snprintf(path, sizeof path, "/proc/%d/limits", pid);
    (void)close(hold);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* What the kernel sends when the parent ends: a change of ids would have taken it away. */
static void it_still_ends_with_its_parent(void **state)
{
    const uint32_t id = geteuid() == 0 ? NOBODY : UINT32_MAX;
    int ends[2];
    char c;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        int hold;

        (void)start_locked(id, id, &hold); /* it inherits our end of the pipe */
        pid_t self = getpid();
        (void)kill(self, SIGKILL);
    }
    (void)close(ends[1]);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&p, 1, 20000), 1); /* nobody holds the other end any more */
    assert_int_equal(read(ends[0], &c, 1), 0);
    (void)close(ends[0]);
}

static void without_the_authority_other_ids_are_an_error(void **state)
{
    int status;

    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct error err = ERROR_INIT;

        if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
            _exit(1);
        if (lockdown_enter(0, 0, &err) != -EPERM)
            _exit(2);
        _exit(err.code == EPERM && strstr(err.message, "user and groups") && err.remedy[0] ? 0 : 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_egress_does_not_need_is_refused),
        cmocka_unit_test(what_egress_needs_works),
        cmocka_unit_test(packets_with_descriptors_still_pass),
        cmocka_unit_test(a_failed_assertion_still_aborts),
        cmocka_unit_test(it_has_no_capability_and_no_new_privileges),
        cmocka_unit_test(it_still_ends_with_its_parent),
        cmocka_unit_test(without_the_authority_other_ids_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
