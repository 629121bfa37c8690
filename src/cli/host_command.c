/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the host: process group, job control, end. */
#include "cli/host_command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "core/outcome.h"
#include "base/guards.h"

void host_command_prepare(struct host_command *c)
{
    *c = (struct host_command){0};
    (void)sigprocmask(SIG_SETMASK, NULL, &c->mask);
    (void)sigaction(SIGPIPE, NULL, &c->pipe_was);
}

/* The controlling terminal, owned; tty(4): it cannot be opened by a process without one. */
static int open_terminal(void)
{
    return open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
}

static bool has_terminal(void)
{
    _cleanup_fd_ int fd = open_terminal();

    return fd >= 0;
}

_Noreturn static void become(const struct host_command *c, char *const argv[], pid_t parent,
                             int report)
{
    int code;

    if (c->own_group)
        (void)setpgid(0, 0); /* by both sides, since either may be first */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(OUTCOME_FAILED);
    (void)sigaction(SIGPIPE, &c->pipe_was, NULL);
    (void)sigprocmask(SIG_SETMASK, &c->mask, NULL);
    (void)execvp(argv[0], argv);
    code = errno;
    (void)!write(report, &code, sizeof code);
    _exit(OUTCOME_FAILED);
}

static int say_not_begun(const char *name, int code, struct error *err)
{
    (void)error_set(err, ERROR_RECOVERABLE, code, "the command '%.200s' cannot be started: %s",
                    name, strerror(code));
    switch (code) {
    case ENOENT:
        return error_remedy(err, "Check its name and the PATH");
    case EACCES:
    case EPERM:
        return error_remedy(err, "Name a program, not a folder, that you may execute (chmod +x) "
                                 "and whose file system is not mounted noexec");
    case E2BIG:
        return error_remedy(err, "Pass less in its arguments and in the environment");
    default:
        return error_remedy(err, "Name a program that runs when it is started without atoll");
    }
}

int host_command_start(struct host_command *c, char *const argv[], struct error *err)
{
    _cleanup_fd_ int report = -EBADF, theirs = -EBADF;
    pid_t parent = getpid();
    int ends[2], code = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot open a pipe: %s", strerror(errno));
    report = ends[0];
    theirs = ends[1];
    c->own_group = !has_terminal();
    c->pid = fork();
    if (c->pid == 0)
        become(c, argv, parent, theirs);
    if (c->pid < 0) {
        c->pid = 0;
        return error_set(err, ERROR_TERMINAL, errno, "cannot start a process: %s", strerror(errno));
    }
    if (c->own_group)
        (void)setpgid(c->pid, c->pid);
    fd_closep(&theirs);
    /* The pipe closes with the execution; a short read says that it went well. */
    if (TEMP_FAILURE_RETRY(read(report, &code, sizeof code)) != sizeof code)
        return 0;
    (void)TEMP_FAILURE_RETRY(waitpid(c->pid, NULL, 0));
    c->pid = 0;
    c->not_begun = code;
    return say_not_begun(argv[0], code, err);
}

/*
 * What a key stops, stops us as well; this is for a command that was stopped alone, as by its own
 * "suspend". Only a shell with job control waits for stops, and it gives each job a group: if our
 * parent is of our group, it is a script, and nobody would see that we have stopped. The kernel
 * drops SIGTSTP where the whole group has nobody (setpgid(2), orphaned process groups).
 */
static void stop_with_it(const struct host_command *c)
{
    sigset_t stop, was, pending;

    if (c->own_group || getpgid(getppid()) == getpgrp())
        return;
    /* A key's SIGTSTP that comes meanwhile becomes one with ours. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    (void)sigprocmask(SIG_BLOCK, &stop, &was);
    /* With a SIGCONT that was not read yet we have been stopped by the same key, and go on. */
    if (sigpending(&pending) == 0 && !sigismember(&pending, SIGCONT))
        (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_SETMASK, &was, NULL);
}

bool host_command_look(struct host_command *c)
{
    int status;

    while (!c->ended && c->pid > 0) {
        if (TEMP_FAILURE_RETRY(waitpid(c->pid, &status, WNOHANG | WUNTRACED | WCONTINUED)) !=
            c->pid)
            break;
        c->stopped = WIFSTOPPED(status);
        if (c->stopped)
            stop_with_it(c);
        if (c->stopped || WIFCONTINUED(status))
            continue;
        c->ended = true;
        c->status =
            WIFSIGNALED(status) ? OUTCOME_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return c->ended;
}

static void send_signal(const struct host_command *c, int signal)
{
    if (c->pid > 0 && !c->ended)
        (void)kill(c->own_group ? -c->pid : c->pid, signal);
}

static bool tells_to_end(int signal)
{
    return signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
}

void host_command_signal(struct host_command *c, int signal)
{
    send_signal(c, signal);
    if (tells_to_end(signal))
        send_signal(c, SIGCONT);
}

/* A shell gave the terminal to our group; what has made a group for itself expects it there. */
static void go_on(const struct host_command *c)
{
    _cleanup_fd_ int terminal = open_terminal();
    pid_t group = c->pid > 0 && !c->ended ? getpgid(c->pid) : -1;

    if (group > 0 && group != getpgrp() && terminal >= 0 && tcgetpgrp(terminal) == getpgrp())
        (void)tcsetpgrp(terminal, group);
    send_signal(c, SIGCONT);
}

void host_command_pass(struct host_command *c, const struct signalfd_siginfo *info)
{
    int signal = (int)info->ssi_signo;
    /* The kernel signals whole groups: keys, and a terminal that hangs up. */
    bool has_it = info->ssi_code == SI_KERNEL && c->pid > 0 && getpgid(c->pid) == getpgrp();

    if (signal != SIGCONT && !has_it)
        host_command_signal(c, signal);
    else if (c->stopped)
        go_on(c);
}
