/* SPDX-License-Identifier: Apache-2.0 */
/* Giving a lease back, as often as it takes. */
#include "toolset/release.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

/* Without memory nothing is told. */
__attribute__((format(printf, 3, 4))) static void tell(const struct releasing *r, char **ret,
                                                       const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list args;

    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        text = NULL;
    free(*ret);
    *ret = text ? toolset_masked(r->t, text, strlen(text), NULL) : NULL;
}

static void tell_gone(struct releasing *r)
{
    tell(r, &r->note, "sandbox '%.128s' on backend '%s' has ended, so nothing was to be released",
         r->t->attach_to, r->t->backend);
}

static void tell_failed(struct releasing *r, const struct atoll_error *e)
{
    tell(r, &r->warning,
         "sandbox '%.128s' on backend '%s' could not be released in %u %s, and '%.200s' is left as "
         "its holder: %.500s. Until its lifetime ends only that holder can use it",
         r->t->attach_to, r->t->backend, r->attempts, r->attempts == 1 ? "attempt" : "attempts",
         toolset_holder(r->t), e->message);
}

/* The one to ask by; NULL: there is none. */
static struct atoll_sandbox *handle(const struct releasing *r)
{
    return r->again ? r->again : r->t->sb;
}

/* A keeper that cannot be reached has taken its sandbox with it; a backend program has not. */
static bool is_gone(const struct releasing *r, const struct atoll_error *e)
{
    const struct atoll_sandbox *sb = handle(r);

    if (sb && (sb->session.ended || (sb->local && (sb->session.state == SESSION_OVER ||
                                                   e->code == EPIPE || e->code == ECONNRESET))))
        return true;
    return e->cls == ATOLL_TERMINAL && (e->code == ENOENT || e->code == ESHUTDOWN);
}

static void later(struct releasing *r)
{
    loop_at(&r->t->a->loop, &r->step, clock_after_us(r->pause_us));
}

static void await(struct releasing *r, struct atoll_op *op)
{
    atoll_op_free(r->inner);
    r->inner = op;
    if (op)
        op_await(op, &r->step);
    else
        later(r);
}

static void let_go_again(struct releasing *r)
{
    if (r->again)
        atoll_sandbox_free(TAKE_PTR(r->again));
}

static void attempt(struct releasing *r)
{
    const struct atoll_sandbox *sb = handle(r);
    bool lost = !sb || (!sb->local && !sb->session.ended && sb->session.state == SESSION_OVER);

    r->attempts++;
    if (lost)
        let_go_again(r);
    await(r, lost ? atoll_open(r->t->a, r->t->attach_to) : atoll_release(handle(r)));
}

/* It was opened and not attached: as whose it is to be released is said here. */
static void reached(struct releasing *r, struct atoll_sandbox *sb)
{
    r->again = sb;
    sb->holder = strdup(toolset_holder(r->t));
    await(r, sb->holder ? atoll_release(sb) : NULL);
}

/* What fails for good is not tried again; a backend program that is gone may be started again. */
static void failed(struct releasing *r)
{
    const struct atoll_error *e = atoll_op_error(r->inner);

    if (is_gone(r, e)) {
        tell_gone(r);
    } else if (r->attempts < RELEASE_ATTEMPTS && (e->cls != ATOLL_TERMINAL || e->code == EPIPE)) {
        atoll_op_free(TAKE_PTR(r->inner));
        later(r);
        return;
    } else {
        tell_failed(r, e);
    }
    r->done(r);
}

static int step(struct loop *l, struct loop_timer *timer)
{
    struct releasing *r = timer->owner;
    struct atoll_sandbox *sb = r->inner ? atoll_op_sandbox(r->inner) : NULL;

    (void)l;
    if (!r->inner && r->attempts < RELEASE_ATTEMPTS)
        attempt(r);
    else if (r->inner && atoll_op_error(r->inner))
        failed(r);
    else if (sb)
        reached(r, sb);
    else
        r->done(r);
    return 0;
}

void releasing_start(struct releasing *r)
{
    r->step = (struct loop_timer){.name = "release", .owner = r, .due = step};
    attempt(r);
}

void releasing_stop(struct releasing *r)
{
    if (r->t)
        loop_at(&r->t->a->loop, &r->step, CLOCK_NEVER);
    atoll_op_free(TAKE_PTR(r->inner));
    let_go_again(r);
    free(TAKE_PTR(r->warning));
    free(TAKE_PTR(r->note));
}
