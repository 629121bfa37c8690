/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up steps that decide what the sandbox may do: ids, limits, capabilities,
 * and init itself. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/limits.h"
#include "local/network.h"
#include "local/setup.h"
#include "wire/control.h"
#include "base/guards.h"

enum { LINK_FD = 3, OOM_FD = 4 }; /* where init expects the keeper's socket, and its own score */

/* What init needs: marks (SYS_ADMIN), dropping (SETPCAP), other users (SETUID,
 * SETGID, KILL, SYS_PTRACE to read their marks) and terminals that belong to
 * them (CHOWN). Commands get none. */
static const int kept_capabilities[] = {CAP_SYS_ADMIN, CAP_SETPCAP,    CAP_SETUID, CAP_SETGID,
                                        CAP_KILL,      CAP_SYS_PTRACE, CAP_CHOWN};

static int write_proc(const char *path, const char *text)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* One id inside that is the caller outside: a map that a process may write for
 * itself, once it has given up setgroups(2) (user_namespaces(7)). */
static int map_own_id(const struct setup *s)
{
    const struct plan *p = s->plan;
    char uid[32], gid[32];
    int r = write_proc("/proc/self/setgroups", "deny");

    (void)snprintf(uid, sizeof uid, "%u %u 1", p->uid, p->caller_uid);
    (void)snprintf(gid, sizeof gid, "%u %u 1", p->gid, p->caller_gid);
    if (r == 0)
        r = write_proc("/proc/self/uid_map", uid);
    return r < 0 ? r : write_proc("/proc/self/gid_map", gid);
}

/* One MSG_GO. Return: 0 or a negative errno; -EPIPE when the keeper is gone or
 * has given up. */
static int receive_go(struct setup *s)
{
    uint8_t buf[FRAME_HEADER_BYTES + 64];
    int fds[IO_FDS_MAX];
    size_t n_fds;
    struct reader payload;
    struct frame f;
    int r = io_wait(s->link_fd, POLLIN, CLOCK_NEVER);

    if (r < 0)
        return r;
    ssize_t n = io_recv_packet(s->link_fd, buf, sizeof buf, fds, &n_fds);
    if (n <= 0)
        return n == 0 ? -EPIPE : (int)n;
    if (frame_parse(buf, (size_t)n, &f, &payload) != PARSE_DONE || f.type != MSG_GO || n_fds > 1)
        return -EPROTO;
    if (f.id == GO_PLAN)
        s->planned = true;
    else if (f.id <= LIMIT_VOLUMES && n_fds == 1)
        s->volume_fds[f.id] = fds[0];
    else
        return -EPROTO;
    return 0;
}

int setup_wait_for_plan(struct setup *s)
{
    int r = 0;

    while (r == 0 && !s->planned)
        r = receive_go(s);
    return r;
}

int setup_network(struct setup *s)
{
    int r = network_await(s->net_fd);
    _cleanup_fd_ int net = r;

    fd_closep(&s->net_fd);
    if (r < 0)
        return r;
    return setns(net, CLONE_NEWNET) < 0 ? -errno : 0;
}

int setup_ids(const struct setup *s)
{
    if (!s->plan->range)
        return map_own_id(s);
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return -errno;
    /* Cleared by the change of ids (prctl(2), PR_SET_PDEATHSIG). */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return 0;
}

int setup_limits(const struct step *step)
{
    static const struct rlimit no_core = {0, 0};
    struct rlimit processes, files;

    if (getrlimit(RLIMIT_NPROC, &processes) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
        return -errno;
    /* Never above what the caller itself may have: that needs a privilege, and less is less. */
    if (processes.rlim_max > step->value)
        processes.rlim_max = step->value;
    processes.rlim_cur = processes.rlim_max;
    if (files.rlim_max > LIMIT_OPEN_FILES)
        files.rlim_max = LIMIT_OPEN_FILES;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NPROC, &processes) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0 ||
        setrlimit(RLIMIT_CORE, &no_core) < 0)
        return -errno;
    return 0;
}

static bool is_kept(int cap)
{
    for (size_t i = 0; i < ARRAY_SIZE(kept_capabilities); i++)
        if (kept_capabilities[i] == cap)
            return true;
    return false;
}

int setup_privileges(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}, {0}};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    for (int cap = 0; cap < 64; cap++) {
        if (is_kept(cap)) {
            data[cap / 32].effective |= 1u << (cap % 32);
            continue;
        }
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL)
                break; /* above the kernel's last one */
            return -errno;
        }
    }
    for (int i = 0; i < 2; i++)
        data[i].permitted = data[i].inheritable = data[i].effective;
    if (syscall(SYS_capset, &head, data) < 0)
        return -errno;
    /* Ambient, since process 1 need not be uid 0 inside, and exec would take them
     * then. */
    for (size_t i = 0; i < ARRAY_SIZE(kept_capabilities); i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept_capabilities[i], 0, 0) < 0)
            return -errno;
    return 0;
}

/* Puts what init inherits where it expects it; all other descriptors will go. */
static int lay_out(struct setup *s, int link_fd, int oom_fd)
{
    int last = LINK_FD;

    s->link_fd = link_fd;
    if (dup2(link_fd, LINK_FD) < 0)
        return -errno;
    if (oom_fd >= 0 && dup2(oom_fd, last = OOM_FD) < 0)
        return -errno;
    return syscall(SYS_close_range, last + 1, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) < 0 ? -errno : 0;
}

int setup_init(struct setup *s)
{
    char own[16], commands[16];
    char *argv[] = {(char *)(uintptr_t) "atoll-init", NULL, NULL, NULL};
    char *const envp[] = {NULL};
    /* Lifted first: each may be the very number that another is to have. */
    int init_fd = fcntl(s->init_fd, F_DUPFD_CLOEXEC, OOM_FD + 1);
    int link_fd = fcntl(s->link_fd, F_DUPFD_CLOEXEC, OOM_FD + 1);
    int oom_fd =
        s->plan->commands_oom_score > 0 ? fcntl(s->oom_fd, F_DUPFD_CLOEXEC, OOM_FD + 1) : -EBADF;

    if (init_fd < 0 || link_fd < 0)
        return -errno;
    if (oom_fd >= 0) {
        (void)snprintf(own, sizeof own, "%u", s->plan->init_oom_score);
        (void)snprintf(commands, sizeof commands, "%u", s->plan->commands_oom_score);
        argv[1] = own;
        argv[2] = commands;
        if (write(oom_fd, own, strlen(own)) < 0) /* raised, if anything */
            return -errno;
    }
    int r = lay_out(s, link_fd, oom_fd);
    if (r < 0)
        return r;
    (void)syscall(SYS_execveat, init_fd, "", argv, envp, AT_EMPTY_PATH);
    return -errno;
}
