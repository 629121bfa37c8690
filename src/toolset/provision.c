/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox of a toolset: reached when a run begins, or made when a call needs it; its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "toolset/toolset.h"
#include "base/guards.h"

struct open_op {
    struct atoll_op op;
    struct atoll_toolset *t; /* NULL: it is done */
    struct atoll_op *inner;  /* what is awaited; owned */
    struct loop_timer step;  /* set off when that is done */
    char *warning;           /* or NULL; owned */
};

/* --- life and end --- */

uint64_t provision_left_us(const struct atoll_toolset *t)
{
    uint64_t now = clock_now_us();

    if (!t->sb || t->ends_us == CLOCK_NEVER)
        return UINT64_MAX;
    return t->ends_us > now ? t->ends_us - now : 0;
}

void provision_drop(struct atoll_toolset *t)
{
    struct atoll_sandbox *sb = TAKE_PTR(t->sb);

    if (!sb)
        return;
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

    if (t->attach_to)
        end_attached(t);
    else if (s->ended && (s->ended_by == ENDED_LIFETIME || s->ended_by == ENDED_IDLE))
        end_of_life(t);
    else
        t->replaced = true;
    provision_drop(t);
}

bool provision_renew(struct atoll_toolset *t)
{
    if (t->over.code == 0 || t->attach_to)
        return false;
    t->over = (struct error)ERROR_INIT;
    return true;
}

void provision_look(struct atoll_toolset *t)
{
    if (t->sb && t->sb->session.state == SESSION_OVER)
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

/* --- opening --- */

/* Return: the operation's end; it is not touched any more. */
static void leave(struct open_op *o, enum toolset_state state)
{
    struct atoll_toolset *t = o->t;

    loop_at(&o->op.a->loop, &o->step, CLOCK_NEVER);
    atoll_op_free(TAKE_PTR(o->inner));
    o->t = NULL;
    t->opening = NULL;
    t->state = state;
    if (state == TOOLSET_CLOSED)
        provision_drop(t);
}

static void fail(struct open_op *o, struct error *err)
{
    toolset_mask_error(o->t, err);
    leave(o, TOOLSET_CLOSED);
    op_fail(&o->op, err);
}

static void succeed(struct open_op *o)
{
    leave(o, TOOLSET_OPEN);
    op_done(&o->op);
}

static void fail_memory(struct open_op *o)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    fail(o, &err);
}

static void fail_inner(struct open_op *o)
{
    const struct atoll_toolset *t = o->t;
    struct error err;

    toolset_take_error(t, atoll_op_error(o->inner), ERROR_TERMINAL, &err);
    (void)error_context(&err, "cannot use sandbox '%.100s'", t->attach_to);
    fail(o, &err);
}

static bool is_set(const char *text)
{
    return text && text[0] != '\0';
}

/* Whoever attaches says whom for, so that a wrong id does not lead into another's sandbox. */
static int check_owner(const struct atoll_toolset *t, const char *owner, struct error *err)
{
    const struct toolset_spec *s = &t->spec.spec.toolset;
    bool owned = is_set(owner), wanted = is_set(s->owner);

    if (!s->attach_to || (!owned && !wanted))
        return 0;
    if (owned && wanted && strcmp(owner, s->owner) == 0)
        return 0;
    (void)error_set(err, ERROR_TERMINAL, EPERM,
                    "sandbox '%.100s' was made for %s%.100s%s, and this run says that it belongs "
                    "to %s%.100s%s",
                    t->attach_to, owned ? "'" : "", owned ? owner : "nobody", owned ? "'" : "",
                    wanted ? "'" : "", wanted ? s->owner : "nobody", wanted ? "'" : "");
    return error_remedy(err, "Set toolset.owner to the owner that the sandbox was created with, or "
                             "attach to the right one");
}

static int keep_secrets(struct open_op *o)
{
    struct reader at = {0};
    const char *entry, *value;
    int r = 0;

    while (r == 0 && (entry = info_next_env(o->inner, &at)))
        if ((value = strchr(entry, '=')))
            r = toolset_add_secret(o->t, value + 1, strlen(value + 1));
    return r;
}

static int keep_life(struct atoll_toolset *t, const struct atoll_info *info, int64_t *ret_left_s)
{
    uint64_t now = clock_epoch_us(), left;

    *ret_left_s = -1;
    if (info->workdir && !t->sb->workdir && !(t->sb->workdir = strdup(info->workdir)))
        return -ENOMEM;
    if (info->expires_at_us == 0)
        return 0;
    left = info->expires_at_us > now ? info->expires_at_us - now : 0;
    t->ends_us = clock_after_us(left);
    if (info->created_at_us > 0 && info->created_at_us < info->expires_at_us)
        t->life_us = info->expires_at_us - info->created_at_us;
    *ret_left_s = (int64_t)(left / 1000000);
    return 0;
}

/* Who runs this is told of what the model will not know. */
static void warn(struct open_op *o, const char *what, const char *detail)
{
    _cleanup_free_ char *text = NULL;

    if (asprintf(&text, "sandbox '%s' %s%s%.500s", o->t->attach_to, what, detail ? ": " : "",
                 detail ? detail : "") < 0)
        text = NULL;
    o->warning = text ? toolset_masked(o->t, text, strlen(text), NULL) : NULL;
}

static bool read_policy(struct open_op *o, const char *stamp, struct policy *ret)
{
    struct error err = ERROR_INIT;

    if (!stamp)
        return false;
    if (policy_stamp_decode(stamp, strlen(stamp), ret, &err) == 0)
        return true;
    warn(o, "records a network policy that cannot be read", stamp);
    return false;
}

/* A backend that describes no sandbox: nothing is known but that there is one. */
static void not_described(struct open_op *o)
{
    const struct atoll_error *e = atoll_op_error(o->inner);

    if ((e->code != ENOSYS && e->cls != ATOLL_USAGE) || is_set(o->t->spec.spec.toolset.owner)) {
        fail_inner(o);
        return;
    }
    warn(o, "does not say what it is, so the model is not told", NULL);
    if (toolset_describe(o->t, true, NULL, -1, false) < 0)
        fail_memory(o);
    else
        succeed(o);
}

static void asked(struct open_op *o)
{
    _cleanup_(policy_done) struct policy policy = {0};
    const struct atoll_info *info = atoll_op_info(o->inner, 0);
    struct error err = ERROR_INIT;
    bool known, endless;
    int64_t left_s;

    if (!info) {
        not_described(o);
        return;
    }
    if (keep_secrets(o) < 0 || keep_life(o->t, info, &left_s) < 0) {
        fail_memory(o);
        return;
    }
    if (check_owner(o->t, info->owner, &err) < 0) {
        fail(o, &err);
        return;
    }
    known = read_policy(o, info->network, &policy);
    /* Of other backends' sandboxes 0 may also mean that they do not tell. */
    endless = info->expires_at_us == 0 && strcmp(o->t->backend, "local") == 0;
    if (toolset_describe(o->t, true, known ? &policy : NULL, left_s, endless) < 0)
        fail_memory(o);
    else
        succeed(o);
}

static void await(struct open_op *o, struct atoll_op *op)
{
    atoll_op_free(o->inner);
    o->inner = op;
    if (op)
        op_await(op, &o->step);
    else
        fail_memory(o);
}

static int step(struct loop *l, struct loop_timer *timer)
{
    struct open_op *o = timer->owner;
    struct atoll_toolset *t = o->t;

    (void)l;
    if (t->sb) {
        asked(o);
    } else if (atoll_op_error(o->inner)) {
        fail_inner(o);
    } else {
        t->sb = atoll_op_sandbox(o->inner);
        await(o, inspect_with_env(t->sb));
    }
    return 0;
}

static bool open_cancel(struct atoll_op *op)
{
    struct open_op *o = (struct open_op *)op;

    leave(o, TOOLSET_CLOSED);
    return true;
}

static void open_release(struct atoll_op *op)
{
    free(((struct open_op *)op)->warning);
}

static const char *open_warning(const struct atoll_op *op, size_t i)
{
    return i == 0 ? ((const struct open_op *)op)->warning : NULL;
}

static const struct op_class open_class = {
    .cancel = open_cancel, .release = open_release, .warning = open_warning};

static int check(const struct atoll_toolset *t, struct error *err)
{
    const struct string_list *exports = &t->spec.spec.toolset.exports;

    if (t->state == TOOLSET_CLOSED)
        return exports->n > 0 ? export_check(exports, err) : 0;
    (void)error_set(err, ERROR_USAGE, EBUSY, "the toolset is open already");
    return error_remedy(err, "Close it first, or make another one for another run");
}

struct atoll_op *atoll_toolset_open(struct atoll_toolset *t)
{
    struct open_op *o = op_new(t->a, NULL, &open_class, sizeof *o);
    struct error err = ERROR_INIT;

    if (!o)
        return NULL;
    if (check(t, &err) < 0) {
        toolset_mask_error(t, &err);
        op_fail(&o->op, &err);
        return &o->op;
    }
    o->t = t;
    o->step = (struct loop_timer){.name = "toolset", .owner = o, .due = step};
    t->opening = &o->op;
    t->state = TOOLSET_OPENING;
    t->over = (struct error)ERROR_INIT;
    t->replaced = false;
    memset(t->failures, 0, sizeof t->failures);
    if (t->attach_to)
        await(o, atoll_open(t->a, t->attach_to));
    else if (toolset_describe(t, true, NULL, -1, false) < 0)
        fail_memory(o);
    else
        succeed(o);
    return &o->op;
}

void provision_stop(struct atoll_toolset *t)
{
    if (t->opening)
        op_give_up(t->opening, ECANCELED);
    if (t->making) {
        loop_at(&t->a->loop, &t->made, CLOCK_NEVER);
        atoll_op_free(TAKE_PTR(t->making));
    }
}
