/* SPDX-License-Identifier: Apache-2.0 */
/* The probes, on this host and on worse ones that a child of the test makes for itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "local/probe.h"
#include "base/guards.h"

/* Offset of a call's number, and of the low half of an argument where bytes go little end first. */
#define NUMBER      offsetof(struct seccomp_data, nr)
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i))

static const struct probe_result *find(const struct probe_report *report, const char *name)
{
    for (size_t i = 0; i < report->n; i++)
        if (strcmp(report->results[i].name, name) == 0)
            return &report->results[i];
    fail_msg("no probe is called %s", name);
    abort(); /* not reached */
}

static void assert_says(const struct probe_report *report, const char *name, const char *text)
{
    const char *message = find(report, name)->message;

    if (!strstr(message, text))
        fail_msg("%s: \"%s\" does not say \"%s\"", name, message, text);
}

/* Probes in a child whose host @spoil has made worse; false if it could not. */
static bool probe_spoilt(int (*spoil)(void), struct probe_report *ret)
{
    struct probe_report *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct error err = ERROR_INIT;
    int status;

    assert_true(shared != MAP_FAILED);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(spoil() < 0 ? 2 : probe_host(shared, &err) < 0 ? 1 : 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    *ret = *shared;
    (void)munmap(shared, sizeof *shared);
    return WEXITSTATUS(status) == 0;
}

/* Answers every call of @number whose argument 0 has @bits with @code. */
static int deny(uint32_t number, uint32_t bits, uint32_t code)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(0)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int deny_user_namespaces(void)
{
    return deny(SYS_clone, CLONE_NEWUSER, SECCOMP_RET_ERRNO | EPERM);
}

static int hide_network_namespaces(void)
{
    return deny(SYS_clone, CLONE_NEWNET, SECCOMP_RET_ERRNO | EINVAL);
}

/* Whose answer to a socket of another protocol is what a kernel without nfnetlink says. */
static int hide_netfilter(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(2)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_NETFILTER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int kill_at_close_range(void)
{
    return deny(SYS_close_range, ~0u, SECCOMP_RET_KILL_PROCESS);
}

static int forbid_more_user_namespaces(void)
{
    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    _cleanup_fd_ int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, "0", 1) < 0 ? -errno : 0;
}

static int ignore_ended_children(void)
{
    return signal(SIGCHLD, SIG_IGN) == SIG_ERR ? -errno : 0;
}

static void every_result_is_complete(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);
    struct error err = ERROR_INIT;
    size_t n_missing = 0;

    (void)state;
    assert_non_null(report);
    assert_int_equal(probe_host(report, &err), 0);
    assert_true(report->kernel.release[0] != '\0');
    for (size_t i = 0; i < report->n; i++) {
        const struct probe_result *r = &report->results[i];
        size_t n = strlen(r->message);

        assert_ptr_equal(find(report, r->name), r); /* no name twice */
        assert_int_equal(strspn(r->name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(r->name));
        assert_true(n > 0 && r->message[n - 1] != '.');
        assert_int_equal(r->remedy[0] != '\0', r->state == PROBE_MISSING);
        assert_true(i == 0 || !r->required || report->results[i - 1].required);
        n_missing += r->required && r->state == PROBE_MISSING;
    }
    assert_int_equal(report->n_missing, n_missing);
}

/* What a process can see of itself and the host. */
struct trace {
    size_t n_fds;
    mode_t mask;
    char name[64], root[64], mounts[16384];
};

static void take_trace(struct trace *t)
{
    DIR *fds = opendir("/proc/self/fd");
    _cleanup_fd_ int mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

    memset(t, 0, sizeof *t);
    assert_non_null(fds);
    while (readdir(fds))
        t->n_fds++;
    (void)closedir(fds);
    t->mask = umask(022);
    (void)umask(t->mask);
    assert_int_equal(gethostname(t->name, sizeof t->name), 0);
    assert_true(readlink("/proc/self/root", t->root, sizeof t->root - 1) > 0);
    for (size_t at = 0; at < sizeof t->mounts - 1;) {
        ssize_t n = read(mounts, t->mounts + at, sizeof t->mounts - 1 - at);

        if (n <= 0)
            break;
        at += (size_t)n;
    }
}

static void nothing_of_the_probes_is_left(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);
    struct error err = ERROR_INIT;
    struct trace before, after;

    (void)state;
    assert_non_null(report);
    take_trace(&before);
    assert_int_equal(probe_host(report, &err), 0);
    take_trace(&after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void a_lack_does_not_hide_what_stands_beside_it(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);
    static const char *const beside[] = {"seccomp", "no-new-privs", "memfd",
                                         "pidfd",   "close-range",  "openat2"};
    static const char *const above[] = {"net-namespace", "id-map", "mount-api", "proc", "sandbox"};

    (void)state;
    assert_non_null(report);
    if (!probe_spoilt(deny_user_namespaces, report)) {
        print_message("no system call filter can be installed here\n");
        skip();
    }
    const struct probe_result *user = find(report, "user-namespace");
    assert_int_equal(user->state, PROBE_MISSING);
    assert_int_equal(user->code, EPERM);
    assert_says(report, "user-namespace", "system call filter");
    assert_true(report->n_missing >= 1);
    for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
        assert_int_equal(find(report, beside[i])->state, PROBE_OK);
    for (size_t i = 0; i < ARRAY_SIZE(above); i++)
        assert_int_not_equal(find(report, above[i])->state, PROBE_OK);
    assert_string_equal(find(report, "net-namespace")->message,
                        "not tried, because user-namespace is missing");
    assert_string_equal(find(report, "pivot-root")->message,
                        "not tried, because user-namespace is missing");
    assert_says(report, "outer-filter", "in force already");
}

static void one_kind_of_namespace_that_is_missing_is_named(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);

    (void)state;
    assert_non_null(report);
    if (!probe_spoilt(hide_network_namespaces, report) ||
        find(report, "user-namespace")->state != PROBE_OK) {
        print_message("no user namespace can be made here\n");
        skip();
    }
    assert_int_equal(find(report, "pid-namespace")->state, PROBE_OK);
    assert_int_equal(find(report, "net-namespace")->state, PROBE_MISSING);
    assert_string_equal(find(report, "net-namespace")->message,
                        "this kernel has no network namespaces");
    assert_int_equal(find(report, "loopback")->state, PROBE_UNKNOWN);
}

static void a_way_out_is_required_only_of_specs_with_one(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);
    char *const listed[] = {(char *)(uintptr_t) "example.org"};
    struct spec spec;

    (void)state;
    assert_non_null(report);
    assert_int_equal(spec_init(&spec), 0);
    if (!probe_spoilt(hide_netfilter, report) || find(report, "loopback")->state != PROBE_OK) {
        print_message("no network namespace can be made here\n");
        skip();
    }
    const struct probe_result *egress = find(report, "egress");
    size_t n = report->n_missing;
    assert_int_equal(egress->state, PROBE_MISSING);
    assert_int_equal(egress->code, EPROTONOSUPPORT);
    assert_says(report, "egress", "nfnetlink");
    assert_non_null(strstr(egress->remedy, "modprobe"));
    probe_require(report, &spec);
    assert_false(egress->required);
    assert_int_equal(report->n_missing, n);
    struct spec open = spec;
    open.allow_egress_to = (struct string_list){.items = (char **)(uintptr_t)listed, .n = 1};
    for (int i = 0; i < 2; i++) {
        probe_require(report, &open);
        assert_true(egress->required);
        assert_int_equal(report->n_missing, n + 1);
    }
    spec_done(&spec);
}

static void a_limit_on_user_namespaces_is_found(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);

    (void)state;
    assert_non_null(report);
    if (!probe_spoilt(forbid_more_user_namespaces, report)) {
        print_message("no user namespace can be made here\n");
        skip();
    }
    assert_int_equal(find(report, "user-namespace")->code, ENOSPC);
    assert_says(report, "user-namespace", "max_user_namespaces");
    assert_says(report, "container", "a user namespace of its own");
}

static void a_child_that_is_killed_counts_as_a_refusal(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);

    (void)state;
    assert_non_null(report);
    if (!probe_spoilt(kill_at_close_range, report)) {
        print_message("no system call filter can be installed here\n");
        skip();
    }
    assert_int_equal(find(report, "close-range")->state, PROBE_MISSING);
    assert_says(report, "close-range", "close_range(2)");
    assert_int_equal(find(report, "openat2")->state, PROBE_OK);
}

static void a_caller_that_ignores_its_children_learns_the_same(void **state)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);
    _cleanup_free_ struct probe_report *again = malloc(sizeof *again);
    struct error err = ERROR_INIT;

    (void)state;
    assert_true(report && again);
    assert_int_equal(probe_host(report, &err), 0);
    assert_true(probe_spoilt(ignore_ended_children, again));
    assert_int_equal(report->n, again->n);
    for (size_t i = 0; i < report->n; i++)
        assert_int_equal(report->results[i].state, again->results[i].state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_is_complete),
        cmocka_unit_test(nothing_of_the_probes_is_left),
        cmocka_unit_test(a_lack_does_not_hide_what_stands_beside_it),
        cmocka_unit_test(one_kind_of_namespace_that_is_missing_is_named),
        cmocka_unit_test(a_way_out_is_required_only_of_specs_with_one),
        cmocka_unit_test(a_limit_on_user_namespaces_is_found),
        cmocka_unit_test(a_child_that_is_killed_counts_as_a_refusal),
        cmocka_unit_test(a_caller_that_ignores_its_children_learns_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
