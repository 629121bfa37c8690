/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a run: a standing sandbox is reached, attached to, and asked what it is. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "toolset/release.h"
#include "toolset/toolset.h"
#include "base/guards.h"

/* How long an attach that was given up may take to tell what it has taken, and then a release. */
#define UNDO_US UINT64_C(5000000)

struct open_op {
    struct atoll_op op;
    struct atoll_toolset *t; /* NULL: it is done */
    struct atoll_op *inner;  /* what is awaited; owned */
    struct atoll_op *attach; /* that went well; owned; NULL: nothing was attached to */
    struct loop_timer step;  /* set off when the inner one is done */
    struct releasing releasing;
    struct error failure; /* why what was attached to is let go again */
    struct string_list warnings, notes;
};

/* --- what was taken --- */

/* An attach that could not take back what it had written has failed as if it held. */
static void keep_left(struct open_op *o)
{
    if (lease_opening_left(o->inner))
        o->t->attached = o->t->stays_held = true;
}

static void take_handle(struct open_op *o)
{
    struct atoll_toolset *t = o->t;
    const struct atoll_attached *a = atoll_op_attached(o->inner);

    t->sb = atoll_op_sandbox(o->inner);
    t->generation = a ? a->generation : t->lease;
    t->attached = a;
    if (a)
        o->attach = TAKE_PTR(o->inner);
}

/* Whatever the attach has come to: what it has taken is the toolset's now. */
static void take_what_there_is(struct open_op *o)
{
    op_give_up(o->inner, ECANCELED);
    if (atoll_op_error(o->inner))
        keep_left(o);
    else
        take_handle(o);
}

/* --- the end of it --- */

/* The operation's end; it is not touched any more. A close goes on with what was taken. */
static void leave(struct open_op *o, enum toolset_state state)
{
    struct atoll_toolset *t = o->t;

    if (t->closing && o->inner && !t->sb)
        take_what_there_is(o);
    loop_at(&o->op.a->loop, &o->step, CLOCK_NEVER); /* what was given up has set it off */
    atoll_op_free(TAKE_PTR(o->inner));
    atoll_op_free(TAKE_PTR(o->attach));
    releasing_stop(&o->releasing);
    o->t = NULL;
    t->opening = NULL;
    if (t->closing) {
        close_opened(t);
        return;
    }
    t->state = state;
    if (state != TOOLSET_CLOSED)
        return;
    t->attached = false;
    provision_drop(t);
}

static void finish_failed(struct open_op *o)
{
    struct error failure = o->failure;

    leave(o, TOOLSET_CLOSED);
    op_fail(&o->op, &failure);
}

static void released(struct releasing *r)
{
    struct open_op *o = r->owner;

    if (r->warning)
        (void)string_list_add(&o->warnings, r->warning);
    if (r->note)
        (void)string_list_add(&o->notes, r->note);
    finish_failed(o);
}

static void release(struct open_op *o)
{
    o->releasing =
        (struct releasing){.t = o->t, .owner = o, .done = released, .pause_us = RELEASE_PAUSE_US};
    releasing_start(&o->releasing);
}

/* Whatever the reason: a run that cannot have its sandbox cannot begin. */
static void fail(struct open_op *o, const struct error *err)
{
    o->failure = *err;
    o->failure.cls = ERROR_TERMINAL;
    toolset_mask_error(o->t, &o->failure);
    if (release_due(o->t))
        release(o);
    else
        finish_failed(o);
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

    keep_left(o);
    toolset_take_error(t, atoll_op_error(o->inner), ERROR_TERMINAL, &err);
    (void)error_context(&err, "cannot use sandbox '%.100s'", t->attach_to);
    fail(o, &err);
}

/* Who runs this is told: of what the model will not know, and of what was done. */
__attribute__((format(printf, 3, 4))) static void tell(const struct open_op *o,
                                                       struct string_list *list, const char *format,
                                                       ...)
{
    _cleanup_free_ char *text = NULL, *masked = NULL;
    va_list args;

    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        text = NULL;
    masked = text ? toolset_masked(o->t, text, strlen(text), NULL) : NULL;
    if (masked)
        (void)string_list_add(list, masked);
}

/* --- asking it what it is --- */

static bool is_set(const char *text)
{
    return text && text[0] != '\0';
}

/* A lease of another process says nothing of whom this run is for. */
static int check_owner(const struct atoll_toolset *t, const char *owner, struct error *err)
{
    const char *wanted = t->spec.spec.toolset.owner;

    if (t->attached || !is_set(wanted) || (owner && strcmp(owner, wanted) == 0))
        return 0;
    (void)error_set(err, ERROR_TERMINAL, EPERM,
                    "sandbox '%.100s' was made for %s%.100s%s, and this run says that it belongs "
                    "to '%.100s'",
                    t->attach_to, owner ? "'" : "", owner ? owner : "nobody", owner ? "'" : "",
                    wanted);
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

static int keep_workdir(struct atoll_toolset *t, const char *workdir)
{
    if (!workdir || t->sb->workdir)
        return 0;
    t->sb->workdir = strdup(workdir);
    return t->sb->workdir ? 0 : -ENOMEM;
}

static bool read_policy(struct open_op *o, const char *stamp, struct policy *ret)
{
    struct error err = ERROR_INIT;

    if (!stamp)
        return false;
    if (policy_stamp_decode(stamp, strlen(stamp), ret, &err) == 0)
        return true;
    tell(o, &o->warnings, "sandbox '%s' records a network policy that cannot be read: %.500s",
         o->t->attach_to, stamp);
    return false;
}

static void note_begin(struct open_op *o, uint64_t left_us, bool endless)
{
    const struct atoll_toolset *t = o->t;
    char left[80];

    if (left_us != UINT64_MAX)
        (void)snprintf(left, sizeof left, "%" PRIu64 " s of its lifetime remain",
                       left_us / 1000000);
    else
        (void)snprintf(left, sizeof left,
                       endless ? "its lifetime has no end"
                               : "how much of its lifetime remains is unknown");
    if (t->attached)
        tell(o, &o->notes, "Attached to sandbox '%s' on backend '%s' as '%s'; %s", t->attach_to,
             t->backend, toolset_holder(t), left);
    else if (t->lease > 0)
        tell(o, &o->notes, "Acting in sandbox '%s' on backend '%s' by its lease %u; %s",
             t->attach_to, t->backend, (unsigned)t->lease, left);
}

/* What the model is told, from what the lease and the sandbox itself have said. */
static void describe(struct open_op *o, const struct atoll_info *info)
{
    _cleanup_(policy_done) struct policy policy = {0};
    const struct atoll_attached *a = o->attach ? atoll_op_attached(o->attach) : NULL;
    struct atoll_toolset *t = o->t;
    const char *stamp = a && (a->network || a->warning) ? a->network : info ? info->network : NULL;
    uint64_t left_us = info ? provision_hear(t, info) : UINT64_MAX;
    /* Of other backends' sandboxes 0 may also mean that they do not tell. */
    bool endless = info && info->expires_at_us == 0 && strcmp(t->backend, "local") == 0, known;

    if (a && a->left_us != UINT64_MAX) {
        left_us = a->left_us;
        provision_life(t, left_us);
    }
    known = read_policy(o, stamp, &policy);
    note_begin(o, left_us, endless);
    if (toolset_describe(t, true, known ? &policy : NULL,
                         left_us == UINT64_MAX ? -1 : (int64_t)(left_us / 1000000), endless) < 0)
        fail_memory(o);
    else
        succeed(o);
}

/* A backend that describes no sandbox: nothing is known but that there is one, or what the attach
 * has told. */
static void not_described(struct open_op *o)
{
    const struct atoll_error *e = atoll_op_error(o->inner);

    if (e->code != ENOSYS && e->cls != ATOLL_USAGE) {
        fail_inner(o);
        return;
    }
    if (!o->attach)
        tell(o, &o->warnings,
             "sandbox '%s' does not say what it is, so the model is not told either",
             o->t->attach_to);
    describe(o, NULL);
}

static void asked(struct open_op *o)
{
    const struct atoll_info *info = atoll_op_info(o->inner, 0);
    struct error err = ERROR_INIT;

    if (!info)
        not_described(o);
    else if (keep_secrets(o) < 0 || keep_workdir(o->t, info->workdir) < 0)
        fail_memory(o);
    else if (check_owner(o->t, info->owner, &err) < 0)
        fail(o, &err);
    else
        describe(o, info);
}

/* --- reaching it --- */

static void await(struct open_op *o, struct atoll_op *op)
{
    atoll_op_free(o->inner);
    o->inner = op;
    if (op)
        op_await(op, &o->step);
    else
        fail_memory(o);
}

static void reached(struct open_op *o)
{
    struct atoll_toolset *t = o->t;
    const struct atoll_attached *a;

    take_handle(o);
    a = o->attach ? atoll_op_attached(o->attach) : NULL;
    if (a && a->warning)
        tell(o, &o->warnings, "sandbox '%s': %.800s", t->attach_to, a->warning);
    if (a && keep_workdir(t, a->workdir) < 0)
        fail_memory(o);
    else
        await(o, inspect_with_env(t->sb));
}

/* --- giving it up --- */

/* What was taken is given back before it is done; a close does that by itself. */
static void undo(struct open_op *o)
{
    if (o->t->closing || !release_due(o->t)) {
        finish_failed(o);
        return;
    }
    atoll_op_free(TAKE_PTR(o->inner)); /* it asked what the sandbox is */
    loop_at(&o->op.a->loop, &o->step, clock_after_us(UNDO_US));
    if (!o->releasing.t)
        release(o);
}

/* The attach is over, or the time in which it, or then the release, should have been. */
static void go_on_undoing(struct open_op *o)
{
    if (o->releasing.t) {
        tell(o, &o->warnings,
             "sandbox '%s' on backend '%s' could not be released in time, and '%.200s' may be left "
             "as its holder",
             o->t->attach_to, o->t->backend, toolset_holder(o->t));
        finish_failed(o);
        return;
    }
    take_what_there_is(o);
    undo(o);
}

static int step(struct loop *l, struct loop_timer *timer)
{
    struct open_op *o = timer->owner;

    (void)l;
    if (o->op.given_up)
        go_on_undoing(o);
    else if (o->t->sb)
        asked(o);
    else if (atoll_op_error(o->inner))
        fail_inner(o);
    else
        reached(o);
    return 0;
}

/* Nobody but the run knows whom the sandbox was made for: no guess leads into another's. */
static void fail_unowned(struct open_op *o)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, EINVAL,
                    "to attach to sandbox '%.100s' an owner is needed", o->t->attach_to);
    (void)error_remedy(&err, "Set toolset.owner to the owner that the sandbox was created with");
    fail(o, &err);
}

static void reach(struct open_op *o)
{
    struct atoll_toolset *t = o->t;
    const struct toolset_spec *s = &t->spec.spec.toolset;
    const struct atoll_attach x = {
        .owner = s->owner, .holder = toolset_holder(t), .keep_us = t->keep_us};

    if (t->lease > 0)
        await(o, atoll_open_lease(t->a, t->attach_to, t->lease));
    else if (!s->attach_to)
        await(o, atoll_open(t->a, t->attach_to));
    else if (!is_set(s->owner))
        fail_unowned(o);
    else
        await(o, atoll_attach(t->a, t->attach_to, &x));
}

/* --- the operation --- */

/* An attach that is under way may have taken the lease already. */
static bool attaches(const struct open_op *o)
{
    return !o->t->sb && !o->releasing.t && o->t->lease == 0 && o->t->spec.spec.toolset.attach_to;
}

static bool open_cancel(struct atoll_op *op)
{
    struct open_op *o = (struct open_op *)op;

    if (!attaches(o))
        undo(o);
    else if (!o->inner->done)
        loop_at(&op->a->loop, &o->step, clock_after_us(UNDO_US));
    return !o->t;
}

void opening_abandon(struct atoll_toolset *t)
{
    struct open_op *o = (struct open_op *)t->opening;

    if (!o)
        return;
    if (!o->op.given_up)
        o->op.given_up = ECANCELED;
    finish_failed(o);
}

static void open_release(struct atoll_op *op)
{
    struct open_op *o = (struct open_op *)op;

    if (o->t)
        leave(o, TOOLSET_CLOSED);
    string_list_done(&o->warnings);
    string_list_done(&o->notes);
}

static const char *open_warning(const struct atoll_op *op, size_t i)
{
    const struct open_op *o = (const struct open_op *)op;

    return i < o->warnings.n ? o->warnings.items[i] : NULL;
}

static const struct op_class open_class = {
    .cancel = open_cancel, .release = open_release, .warning = open_warning};

const char *opening_note(const struct atoll_op *op, size_t i)
{
    const struct open_op *o = (const struct open_op *)op;

    return op_is(op, &open_class) && op->done && i < o->notes.n ? o->notes.items[i] : NULL;
}

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
    t->output_bytes = 0;
    memset(t->failures, 0, sizeof t->failures);
    if (t->attach_to)
        reach(o);
    else if (toolset_describe(t, true, NULL, -1, false) < 0)
        fail_memory(o);
    else
        succeed(o);
    return &o->op;
}
