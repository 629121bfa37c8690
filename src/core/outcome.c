/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses and the words for them. */
#include "core/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/guards.h"

int outcome_status(const struct exit_report *x)
{
    switch ((enum exit_reason)x->reason) {
    case REASON_TIMEOUT:
    case REASON_LIFETIME:
        return OUTCOME_TIMED_OUT;
    case REASON_ERROR:
        return OUTCOME_FAILED;
    case REASON_EXITED:
    case REASON_OOM:
    case REASON_KILLED:
    case REASON_COST:
    case REASON__MAX:
        break;
    }
    return x->signal > 0 ? OUTCOME_SIGNAL_BASE + (int)x->signal : (int)x->exit_code;
}

static void explain_exec(const struct exit_report *x, const char *program, const char *interpreter,
                         char *buf, size_t size)
{
    int code = (int)x->start_errno;

    if (code == ENOENT && interpreter)
        (void)snprintf(buf, size, "%s: cannot run, since %s does not exist in the sandbox", program,
                       interpreter);
    else if (code == ENOENT)
        (void)snprintf(buf, size, "%s: not found in the sandbox", program);
    else if (code == EACCES)
        (void)snprintf(buf, size, "%s: permission denied (is it executable?)", program);
    else if (code == E2BIG)
        (void)snprintf(buf, size, "%s: arguments and environment are larger than the kernel takes",
                       program);
    else
        (void)snprintf(buf, size, "%s: cannot run: %s", program, strerror(code));
}

static void explain_start(const struct exit_report *x, const char *program, const char *interpreter,
                          const char *workdir, char *buf, size_t size)
{
    const char *why = strerror((int)x->start_errno);

    switch ((enum start_stage)x->start_stage) {
    case START_EXEC:
        explain_exec(x, program, interpreter, buf, size);
        break;
    case START_WORKDIR:
        (void)snprintf(buf, size, "%s: cannot enter its working directory %s: %s", program, workdir,
                       why);
        break;
    case START_LIMIT:
        (void)snprintf(buf, size, "%s: the sandbox has no room for another process: %s", program,
                       why);
        break;
    case START_FDS:
        (void)snprintf(buf, size, "%s: its streams or terminal could not be opened: %s", program,
                       why);
        break;
    case START_IDENTITY:
        if (x->start_errno == EINVAL) { /* no id outside stands for it: user_namespaces(7) */
            (void)snprintf(buf, size,
                           "%s: the sandbox has no such user: where one account makes it, it has "
                           "only the one that it was created with",
                           program);
            break;
        }
        __attribute__((fallthrough));
    case START_MARK:
    case START_FILTER:
        (void)snprintf(buf, size, "%s: it could not be locked in, so it was not started: %s",
                       program, why);
        break;
    case START_OK:
    case START__MAX:
        break;
    }
}

static void explain_timeout(uint64_t us, const char *program, char *buf, size_t size)
{
    unsigned ms = (unsigned)(us / 1000 % 1000);
    int digits = ms % 10 ? 3 : ms % 100 ? 2 : 1;
    char fraction[8] = "";

    if (ms > 0)
        (void)snprintf(fraction, sizeof fraction, ".%.*s", digits,
                       (char[]){(char)('0' + ms / 100), (char)('0' + ms / 10 % 10),
                                (char)('0' + ms % 10), '\0'});
    (void)snprintf(buf, size, "%s: timed out after %llu%s s", program,
                   (unsigned long long)(us / 1000000), fraction);
}

void outcome_explain(const struct exit_report *x, const char *program, const char *interpreter,
                     const char *workdir, char *buf, size_t size)
{
    buf[0] = '\0';
    if (x->start_stage != START_OK)
        explain_start(x, program, interpreter, workdir, buf, size);
    else if (x->reason == REASON_TIMEOUT)
        explain_timeout(x->timeout_us, program, buf, size);
    else if (x->reason == REASON_LIFETIME)
        (void)snprintf(buf, size, "%s: the sandbox's lifetime ended", program);
    else if (x->reason == REASON_COST)
        (void)snprintf(buf, size, "%s: the sandbox has cost all that it may (backend.max_cost)",
                       program);
    else if (x->reason == REASON_KILLED)
        (void)snprintf(buf, size, "%s: ended from outside while it ran", program);
    else if (x->reason == REASON_ERROR)
        (void)snprintf(buf, size, "%s: the sandbox was lost while it ran", program);
}
