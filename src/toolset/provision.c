/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox of a toolset: its life and end, and making one when a call needs it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "toolset/toolset.h"
#include "base/guards.h"

/* The model is told when less than this is left, and than a tenth of the life. */
#define LITTLE_LIFE_US   UINT64_C(300000000)
#define LITTLE_LIFE_PART 10

/* --- life and end --- */

uint64_t provision_left_us(const struct atoll_toolset *t)
{
    uint64_t now = clock_now_us();

    if (!t->sb || t->ends_us == CLOCK_NEVER)
        return UINT64_MAX;
    return t->ends_us > now ? t->ends_us - now : 0;
}

bool provision_little_left(const struct atoll_toolset *t)
{
    uint64_t left = provision_left_us(t);

    return t->sb && left < LITTLE_LIFE_US && left < t->life_us / LITTLE_LIFE_PART;
}

void provision_life(struct atoll_toolset *t, uint64_t left_us)
{
    if (left_us == UINT64_MAX)
        return;
    t->ends_us = clock_after_us(left_us);
    if (t->life_us < left_us)
        t->life_us = left_us; /* it was prolonged, or nothing more is known */
}

uint64_t provision_hear(struct atoll_toolset *t, const struct atoll_info *info)
{
    uint64_t now = clock_epoch_us(), left;

    if (info->expires_at_us == 0)
        return UINT64_MAX;
    left = info->expires_at_us > now ? info->expires_at_us - now : 0;
    if (info->created_at_us > 0 && info->created_at_us < info->expires_at_us)
        t->life_us = info->expires_at_us - info->created_at_us;
    provision_life(t, left);
    return left;
}

bool provision_fenced(const struct atoll_toolset *t)
{
    return t->sb && t->generation > 0 && t->sb->session.state != SESSION_OVER &&
           atoll_lease(t->sb) == 0;
}

void provision_drop(struct atoll_toolset *t)
{
    struct atoll_sandbox *sb = TAKE_PTR(t->sb);

    if (!sb)
        return;
    t->generation = 0;
    processes_end(t);
    if (!t->attach_to) {
        if (sb->session.state != SESSION_OVER)
            (void)session_destroy(&sb->session);
        sb->owned = true; /* its end is waited for */
    }
    sandbox_free(sb);
    t->life_us = 0;
    t->ends_us = CLOCK_NEVER;
}

/* A keeper takes its sandbox along when it goes; without a backend's program that stands. */
static bool may_stand(const struct atoll_toolset *t)
{
    return !t->sb->local && !t->sb->session.ended;
}

static void end_out_of_reach(struct atoll_toolset *t)
{
    const struct session *s = &t->sb->session;
    bool why = s->state == SESSION_OVER;

    (void)error_set(&t->over, ERROR_TERMINAL, ESHUTDOWN,
                    "sandbox '%.128s' was lost%s%.400s%s, and a run that did not make it cannot "
                    "replace it",
                    atoll_sandbox_id(t->sb), why ? " (" : "", why ? s->error.message : "",
                    why ? ")" : "");
    (void)error_remedy(&t->over, "Run again if it still stands, or create another one, and attach "
                                 "to that");
}

/* Not one that another could replace: nobody would know that it is another. */
static void end_attached(struct atoll_toolset *t)
{
    const struct session *s = &t->sb->session;

    (void)error_set(&t->over, ERROR_TERMINAL, ESHUTDOWN,
                    "sandbox '%.128s' has ended (%s), and a run that did not make it cannot "
                    "replace it",
                    atoll_sandbox_id(t->sb), s->ended ? ended_by_name(s->ended_by) : "lost");
    (void)error_remedy(&t->over, "Create another one, and attach to that");
}

/* Its lease is another's: whatever is done now would disturb that one. */
static void end_fenced(struct atoll_toolset *t)
{
    if (t->lease > 0)
        (void)error_set(&t->over, ERROR_TERMINAL, EACCES,
                        "the lease %u of sandbox '%.128s' is over: its holder gave it back, or "
                        "another attempt of that holder took over",
                        (unsigned)t->lease, atoll_sandbox_id(t->sb));
    else
        (void)error_set(&t->over, ERROR_TERMINAL, EACCES,
                        "this run has lost sandbox '%.128s': another attempt of '%.200s' took over",
                        atoll_sandbox_id(t->sb), toolset_holder(t));
    (void)error_remedy(&t->over, "Let one attempt of a holder run at a time, and give others a "
                                 "holder's name of their own");
}

static void end_of_means(struct atoll_toolset *t)
{
    (void)error_set(&t->over, ERROR_TERMINAL, ESHUTDOWN,
                    "sandbox '%.128s' on backend '%s' has ended: it has cost all that it may",
                    atoll_sandbox_id(t->sb), t->backend);
    (void)error_remedy(&t->over, "Raise backend.max_cost for runs that need more");
    t->spent = true;
}

static void end_of_life(struct atoll_toolset *t)
{
    bool idle = t->sb->session.ended_by == ENDED_IDLE;

    (void)error_set(&t->over, ERROR_TERMINAL, ESHUTDOWN,
                    "sandbox '%.128s' on backend '%s' has ended: its %s is over",
                    atoll_sandbox_id(t->sb), t->backend, idle ? "idle timeout" : "lifetime");
    (void)error_remedy(&t->over,
                       idle ? "Raise backend.idle_timeout, or leave it out; a model may think long"
                            : "Raise backend.sandbox_timeout for runs that take longer");
}

void provision_lost(struct atoll_toolset *t)
{
    const struct session *s = &t->sb->session;

    t->stays_held = t->attached && may_stand(t); /* the close takes its holder out */
    if (provision_fenced(t))
        end_fenced(t);
    else if (t->attach_to && may_stand(t))
        end_out_of_reach(t);
    else if (t->attach_to)
        end_attached(t);
    else if (s->ended && (s->ended_by == ENDED_LIFETIME || s->ended_by == ENDED_IDLE))
        end_of_life(t);
    else if (s->ended && s->ended_by == ENDED_COST)
        end_of_means(t);
    else
        t->replaced = true;
    provision_drop(t);
}

bool provision_renew(struct atoll_toolset *t)
{
    if (t->over.code == 0 || t->attach_to || t->spent)
        return false;
    t->over = (struct error)ERROR_INIT;
    return true;
}

void provision_look(struct atoll_toolset *t)
{
    if (t->sb && (t->sb->session.state == SESSION_OVER || provision_fenced(t)))
        provision_lost(t);
}

/* --- making --- */

static void making_failed(struct atoll_toolset *t, const struct atoll_error *e)
{
    struct error err;

    toolset_take_error(t, e, ERROR_TERMINAL, &err);
    (void)error_context(&err, "backend '%s' could not provide a sandbox", t->backend);
    calls_fail(t, &err); /* those that waited for it, too */
}

static int made_due(struct loop *l, struct loop_timer *timer)
{
    struct atoll_toolset *t = timer->owner;
    const struct atoll_error *e = atoll_op_error(t->making);

    (void)l;
    if (e) {
        making_failed(t, e);
    } else {
        t->sb = atoll_op_sandbox(t->making);
        t->life_us = t->spec.spec.lifetime_us;
        t->ends_us = t->life_us ? clock_after_us(t->life_us) : CLOCK_NEVER;
    }
    atoll_op_free(TAKE_PTR(t->making));
    if (t->state == TOOLSET_CLOSING)
        close_continue(t);
    else
        calls_advance(t);
    return 0;
}

void provision_make(struct atoll_toolset *t)
{
    struct error err = ERROR_INIT;

    if (t->making)
        return;
    t->making = atoll_create(t->a, &t->spec, ATOLL_OWNED);
    if (!t->making) {
        (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
        calls_fail(t, &err);
        return;
    }
    t->made = (struct loop_timer){.name = "made", .owner = t, .due = made_due};
    op_await(t->making, &t->made);
}

void provision_stop(struct atoll_toolset *t)
{
    opening_abandon(t);
    if (t->making) {
        loop_at(&t->a->loop, &t->made, CLOCK_NEVER);
        atoll_op_free(TAKE_PTR(t->making));
    }
}
