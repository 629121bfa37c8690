/* SPDX-License-Identifier: Apache-2.0 */
/* Reaping: every process that ends inside is a child of init sooner or later. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/init.h"
#include "base/guards.h"

static uint64_t timeval_us(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000u + (uint64_t)t->tv_usec;
}

/* Everything that runs inside descends from init, and orphans become its children. */
static bool nothing_is_left(void)
{
    return waitid(P_ALL, 0, &(siginfo_t){0}, WNOHANG | WEXITED | WNOWAIT) < 0 && errno == ECHILD;
}

static void report_exit(const struct command *c, int status, const struct rusage *use)
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

    if (WIFSIGNALED(status))
        x.signal = (uint32_t)WTERMSIG(status);
    else
        x.exit_code = (uint32_t)WEXITSTATUS(status);
    exit_report_encode(&w, &x);
    link_send(MSG_EXITED, c->id, &w, -1);
    if (x.left_empty)
        _exit(0);
}

void reap_all(struct init *i)
{
    struct rusage use;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0)
        for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
            if (i->commands[k].pid == pid) {
                struct command ended = i->commands[k];

                i->commands[k].pid = 0;
                report_exit(&ended, status, &use);
                break;
            }
}
