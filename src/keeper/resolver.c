/* SPDX-License-Identifier: Apache-2.0 */
/* Executing the embedded program `resolve`. */
#include "keeper/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/raw_syscall.h"
#include "core/spec.h"
#include "keeper/resolve_image.h"
#include "local/host.h"
#include "local/refusal.h"
#include "local/sealed_image.h"
#include "base/guards.h"

enum {
    NOBODY = 65534, /* the kernel's own overflow id (user_namespaces(7)) */
    SOCKET_FD = 3,  /* where the program has its socket, and the first that is closed */
    LOADER_FAILED = 127,
};

#define REMEDY                                                                                     \
    "Run atoll on a host with the C library that it was built for, or list addresses in "          \
    "allow_egress_to_cidrs instead of names"

/* What the child executes, and with what. */
struct start {
    int image_fd, socket_fd, report_fd;
    bool as_nobody;
    const char *server; /* NULL: the host's way */
};

/* The keeper's signal mask and whatever its caller ignores would survive the execution. */
static void reset_signals(void)
{
    static const uint64_t default_action[4] = {0}; /* struct sigaction of the kernel: SIG_DFL */
    sigset_t none;

    for (int signal = 1; signal < NSIG; signal++) /* the kernel's call: libc keeps two to itself */
        (void)raw_syscall(SYS_rt_sigaction, signal, (long)default_action, 0, sizeof(uint64_t), 0);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Root's groups and ids are given up in this order; and no privilege comes back by execution. */
static int become_nobody(void)
{
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return -errno;
    return 0;
}

/* In the child. Returns only when it failed. */
static int execute(const struct start *s)
{
    char name[] = "atoll-resolve", *server = s->server ? strdup(s->server) : NULL;
    char *const argv[] = {name, server, NULL}, *const environment[] = {NULL};
    int r = s->server && !server ? -ENOMEM : 0;
    /* Out of the way of the descriptors that are laid out. */
    int image = fcntl(s->image_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
    int report = fcntl(s->report_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
    int socket = fcntl(s->socket_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);

    reset_signals();
    if (r == 0 && (image < 0 || report < 0 || socket < 0 || dup2(socket, SOCKET_FD) < 0))
        r = -errno;
    if (r == 0 && syscall(SYS_close_range, SOCKET_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        r = -errno;
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0 && s->as_nobody)
        r = become_nobody();
    if (r == 0) {
        (void)syscall(SYS_execveat, image, "", argv, environment, AT_EMPTY_PATH);
        r = -errno;
    }
    (void)!write(report, &r, sizeof r);
    free(server);
    return 1;
}

/* What execute() reports; nothing, when its end of the pipe was closed by the execution. */
static int read_report(int fd, struct error *err)
{
    int error = 0;
    ssize_t n;

    do
        n = read(fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (n != sizeof error)
        error = -EIO;
    /* execve(2) says ENOENT for a program whose loader is absent. */
    (void)error_set(err, ERROR_TERMINAL, -error,
                    error == -ENOENT
                        ? "the process that looks names up cannot start: this host has no dynamic "
                          "loader of the C library that atoll was built for"
                        : "the process that looks names up cannot start: %s",
                    strerror(-error));
    return error_remedy(err, REMEDY);
}

static int fork_it(struct start *s, pid_t *ret_pid, int *ret_pid_fd, struct error *err)
{
    int pipe_fds[2], pid_fd = -EBADF, status;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot make a pipe: %s", strerror(errno));
    _cleanup_fd_ int report = pipe_fds[0], theirs = pipe_fds[1];
    s->report_fd = theirs;
    /* clone(2), not clone3: container filters answer ENOSYS to that one. */
    long pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pid_fd, NULL, NULL);
    if (pid < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot start a process: %s", strerror(errno));
    if (pid == 0)
        _exit(execute(s));
    fd_closep(&theirs);
    int r = read_report(report, err);
    if (r < 0) {
        (void)syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL,
                      0); /* it may run all the same */
        while (waitpid((pid_t)pid, &status, 0) < 0 && errno == EINTR)
            ;
        fd_closep(&pid_fd);
        return r;
    }
    *ret_pid = (pid_t)pid;
    *ret_pid_fd = pid_fd;
    return 0;
}

static int read_kernel_root(bool *ret, struct error *err)
{
    _cleanup_free_ struct host *host = malloc(sizeof *host);

    if (!host)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    int r = host_read(host, err);
    if (r == 0)
        *ret = host->kernel_root;
    return r;
}

int resolver_start(const struct spec *spec, pid_t *ret_pid, int *ret_pid_fd, int *ret_fd,
                   struct error *err)
{
    struct start s = {.server = spec->resolver};
    int pair[2];
    int r = read_kernel_root(&s.as_nobody, err);

    if (r < 0)
        return r;
    _cleanup_fd_ int image =
        sealed_image_open("atoll-resolve", resolve_image_start, resolve_image_end, err);
    if (image < 0)
        return image;
    r = io_pair(pair);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    _cleanup_fd_ int ours = pair[0], theirs = pair[1];
    s.image_fd = image;
    s.socket_fd = theirs;
    r = fork_it(&s, ret_pid, ret_pid_fd, err);
    if (r == 0)
        *ret_fd = TAKE_FD(ours);
    return r;
}

int resolver_explain(int status, struct error *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == LOADER_FAILED) {
        (void)error_set(err, ERROR_TERMINAL, ELIBBAD,
                        "the process that looks names up cannot start: this host's C library is "
                        "not one that atoll was built for");
        return error_remedy(err, REMEDY);
    }
    if (WIFSIGNALED(status))
        return error_set(err, ERROR_TERMINAL, EPIPE,
                         "the process that looks names up was ended by signal %d",
                         WTERMSIG(status));
    return error_set(err, ERROR_TERMINAL, EPIPE,
                     "the process that looks names up has ended with status %d",
                     WIFEXITED(status) ? WEXITSTATUS(status) : status);
}
