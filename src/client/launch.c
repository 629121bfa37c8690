/* SPDX-License-Identifier: Apache-2.0 */
/* Starting keepers and backend programs, and collecting them. */
#include "client/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/guards.h"

enum { KEEPER_FD = 3 };

/* Where the child's end of the socket goes, and what else it starts with. */
struct start {
    int fd;    /* the child's end */
    int to[2]; /* becomes these descriptors there */
    size_t n_to;
    short flags; /* POSIX_SPAWN_… */
    bool search; /* along the PATH */
};

/* Return: 0 or a negative errno. */
static int start(const struct start *x, const char *program, char *const argv[], struct child *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    int r = posix_spawn_file_actions_init(&actions);

    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attr);
    if (r != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    /* The caller may block or ignore what the child wants to hear. */
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGCHLD);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &defaults);
    (void)posix_spawnattr_setflags(
        &attr, (short)(x->flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    for (size_t i = 0; r == 0 && i < x->n_to; i++)
        r = posix_spawn_file_actions_adddup2(&actions, x->fd, x->to[i]);
    if (r == 0)
        r = (x->search ? posix_spawnp : posix_spawn)(&ret->pid, program, &actions, &attr, argv,
                                                     environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0) {
        ret->pid = 0;
        return -r;
    }
    ret->pid_fd = (int)syscall(SYS_pidfd_open, ret->pid, 0); /* close-on-exec by itself */
    if (ret->pid_fd < 0)
        ret->pid_fd = -EBADF;
    return 0;
}

static int start_keeper(const char *program, bool search, int fd, struct child *ret)
{
    char number[16];
    char *const argv[] = {(char[]){"atoll"}, (char[]){"keeper"}, number, NULL};
    const struct start x = {.fd = fd, .to = {KEEPER_FD}, .n_to = 1, .search = search};

    (void)snprintf(number, sizeof number, "%d", KEEPER_FD);
    return start(&x, program, argv, ret);
}

int launch_keeper(const char *program, int *ret_fd, struct child *ret, struct error *err)
{
    struct child child = CHILD_NONE;
    int pair[2];
    int r = io_pair(pair);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    _cleanup_fd_ int ours = pair[0];
    _cleanup_fd_ int theirs = pair[1];
    if (program) {
        r = start_keeper(program, false, theirs, &child);
    } else {
        program = ATOLL_PROGRAM_PATH;
        r = start_keeper(program, false, theirs, &child);
        if (r == -ENOENT)
            r = start_keeper("atoll", true, theirs, &child);
    }
    if (r < 0) {
        (void)error_set(err, ERROR_TERMINAL, -r, "cannot start '%s' as the sandbox's keeper: %s",
                        program, strerror(-r));
        return error_remedy(err, "Install atoll, or name its program in ATOLL_PROGRAM");
    }
    *ret_fd = TAKE_FD(ours);
    *ret = child;
    return 0;
}

int launch_backend(const char *program, int *ret_fd, struct child *ret, struct error *err)
{
    struct child child = CHILD_NONE;
    char *const argv[] = {(char *)(uintptr_t)program, NULL};
    int pair[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot make a socket pair: %s",
                         strerror(errno));
    _cleanup_fd_ int ours = pair[0];
    _cleanup_fd_ int theirs = pair[1];
    const struct start x = {.fd = theirs,
                            .to = {STDIN_FILENO, STDOUT_FILENO},
                            .n_to = 2,
                            .flags = POSIX_SPAWN_SETSID}; /* a terminal's ^C is for the command */
    r = start(&x, program, argv, &child);
    if (r < 0) {
        (void)error_set(err, ERROR_TERMINAL, -r, "cannot start the backend program '%s': %s",
                        program, strerror(-r));
        return error_remedy(err, "Look whether it can be run by itself");
    }
    *ret_fd = TAKE_FD(ours);
    *ret = child;
    return 0;
}

bool child_reap(struct child *c, uint64_t until_us)
{
    siginfo_t info = {.si_pid = 0};

    if (c->pid <= 0)
        return true;
    if (c->pid_fd < 0 || until_us == CLOCK_NEVER) {
        int flags = until_us == 0 ? WNOHANG : 0;
        pid_t pid;

        do
            pid = waitpid(c->pid, NULL, flags);
        while (pid < 0 && errno == EINTR);
        if (pid == 0)
            return false;
    } else {
        if (until_us > 0 && io_wait(c->pid_fd, POLLIN, until_us) < 0)
            return false;
        /* By descriptor: the caller may have collected it, and its number may be somebody else's.
         */
        if (waitid(P_PIDFD, (id_t)c->pid_fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
            return false;
    }
    fd_closep(&c->pid_fd);
    c->pid = 0;
    return true;
}

void child_kill(const struct child *c)
{
    if (c->pid_fd >= 0)
        (void)syscall(SYS_pidfd_send_signal, c->pid_fd, SIGKILL, NULL, 0);
    else if (c->pid > 0)
        (void)kill(c->pid, SIGKILL);
}
