/* SPDX-License-Identifier: Apache-2.0 */
/* Reaping: every process that ends inside is a child of init sooner or later. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/init.h"
#include "base/guards.h"

enum { SWEEP_AFTER = 64 }; /* commands; so many pages are not touched where few run at once */

static uint64_t timeval_us(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000u + (uint64_t)t->tv_usec;
}

/* Everything that runs inside descends from init, and orphans become its children. */
static bool nothing_is_left(void)
{
    return waitid(P_ALL, 0, &(siginfo_t){0}, WNOHANG | WEXITED | WNOWAIT) < 0 && errno == ECHILD;
}

static void report_exit(const struct command *c, const siginfo_t *info, const struct rusage *use)
{
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct exit_report x = {
        .reason = REASON_EXITED,
        .wall_us = clock_now_us() - c->since_us,
        .user_us = timeval_us(&use->ru_utime),
        .system_us = timeval_us(&use->ru_stime),
        .peak_rss_bytes = (uint64_t)use->ru_maxrss * 1024u,
        .left_empty = c->last && nothing_is_left(),
    };

    if (info->si_code == CLD_EXITED)
        x.exit_code = (uint32_t)info->si_status;
    else
        x.signal = (uint32_t)info->si_status;
    exit_report_encode(&w, &x);
    link_send(MSG_EXITED, c->id, &w, -1);
    if (x.left_empty)
        _exit(0);
}

static struct command *command_of(struct init *i, pid_t pid)
{
    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
        if (i->commands[k].pid == pid)
            return &i->commands[k];
    return NULL;
}

/* waitid(2) as the kernel has it, with a fifth argument that libc leaves out. */
static pid_t look_for_ended(siginfo_t *ret, struct rusage *ret_use)
{
    ret->si_pid = 0;
    if (syscall(SYS_waitid, P_ALL, 0, ret, WEXITED | WNOHANG | WNOWAIT, ret_use) < 0)
        return 0;
    return ret->si_pid;
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Its first process has ended. What will not die ends with init, and the sandbox with it. */
static void end_rest(struct init *i, const struct command *c)
{
    if (kill_marked(i, &c->mark, 1) < 0)
        _exit(1);
}

/* Its first process has been reaped. What else has its mark can be killed as long as it is known;
 * now and then it is looked whether there is anything. */
static void keep_mark(struct init *i, struct command *row)
{
    row->pid = 0;
    if (row->files || row->ends_all)
        row->mark = 0;
    i->n_reaped++;
}

void reap_all(struct init *i)
{
    struct rusage use;
    siginfo_t info;
    pid_t pid;

    while ((pid = look_for_ended(&info, &use)) > 0) {
        struct command *row = command_of(i, pid);

        if (!row) { /* an orphan */
            reap(pid);
            continue;
        }
        struct command ended = *row;
        keep_mark(i, row);
        /* Whoever waits for it hears first, since freeing it takes a while. With the last one it
         * has to be seen whether it left any behind, and with one that takes all with it they have
         * to be gone. */
        bool first = ended.last || ended.ends_all;

        if (first)
            reap(pid);
        if (ended.ends_all)
            end_rest(i, &ended);
        report_exit(&ended, &info, &use);
        if (!first)
            reap(pid);
    }
    if (i->n_reaped >= SWEEP_AFTER)
        marks_sweep(i);
}
