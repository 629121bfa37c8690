/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the host: process group, terminal, end. */
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
    sigset_t ttou;

    *c = (struct host_command){0};
    (void)sigprocmask(SIG_SETMASK, NULL, &c->mask);
    (void)sigaction(SIGPIPE, NULL, &c->pipe_was);
    /* A process that takes the terminal back is in the background at that moment: tcsetpgrp(3). */
    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &ttou, NULL);
}

static void give_terminal(const struct host_command *c, pid_t group)
{
    if (c->foreground)
        (void)tcsetpgrp(STDIN_FILENO, group);
}

_Noreturn static void become(const struct host_command *c, char *const argv[], pid_t parent,
                             int report)
{
    int code;

    (void)setpgid(0, 0); /* by both sides, since either may be first */
    give_terminal(c, getpid());
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

int host_command_start(struct host_command *c, char *const argv[], struct error *err)
{
    _cleanup_fd_ int report = -EBADF, theirs = -EBADF;
    pid_t parent = getpid();
    int ends[2], code = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot open a pipe: %s", strerror(errno));
    report = ends[0];
    theirs = ends[1];
    c->foreground = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    c->pid = fork();
    if (c->pid == 0)
        become(c, argv, parent, theirs);
    if (c->pid < 0) {
        c->pid = 0;
        return error_set(err, ERROR_TERMINAL, errno, "cannot start a process: %s", strerror(errno));
    }
    (void)setpgid(c->pid, c->pid);
    fd_closep(&theirs);
    /* The pipe closes with the execution; a short read says that it went well. */
    if (TEMP_FAILURE_RETRY(read(report, &code, sizeof code)) != sizeof code)
        return 0;
    (void)TEMP_FAILURE_RETRY(waitpid(c->pid, NULL, 0));
    c->pid = 0;
    give_terminal(c, getpgrp());
    (void)error_set(err, ERROR_RECOVERABLE, code, "the command '%.200s' cannot be started: %s",
                    argv[0], strerror(code));
    return code == ENOENT ? error_remedy(err, "Check its name and the PATH") : -code;
}

/* As a shell does it when a job is stopped by a key. */
static void stop_with_it(const struct host_command *c)
{
    if (!c->foreground)
        return;
    give_terminal(c, getpgrp());
    (void)raise(SIGSTOP);
    if (tcgetpgrp(STDIN_FILENO) == getpgrp())
        give_terminal(c, c->pid);
    host_command_signal(c, SIGCONT);
}

bool host_command_look(struct host_command *c)
{
    int status;

    while (!c->ended && c->pid > 0) {
        if (TEMP_FAILURE_RETRY(waitpid(c->pid, &status, WNOHANG | WUNTRACED)) != c->pid)
            break;
        if (WIFSTOPPED(status)) {
            stop_with_it(c);
            continue;
        }
        c->ended = true;
        c->status =
            WIFSIGNALED(status) ? OUTCOME_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
        give_terminal(c, getpgrp());
    }
    return c->ended;
}

void host_command_signal(const struct host_command *c, int signal)
{
    if (c->pid > 0 && !c->ended)
        (void)kill(-c->pid, signal);
}
