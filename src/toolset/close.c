/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a run: what is under way ends, exports are published, the sandbox is removed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "toolset/release.h"
#include "toolset/toolset.h"
#include "base/guards.h"

struct close_op {
    struct atoll_op op;
    struct atoll_toolset *t; /* NULL: it is done */
    bool succeeded;
    bool unopened;          /* the run had not begun, so that it has left nothing */
    struct atoll_op *inner; /* what is awaited; owned */
    struct loop_timer step; /* set off when that is done … */
    void (*then)(struct close_op *c);
    struct exporting *export;
    struct error failure; /* of the exports; code 0: they went well */
    struct atoll_exported *exported;
    size_t n_exported;
    struct releasing releasing;
    struct string_list warnings, notes;
};

static void remove_sandbox(struct close_op *c);

/* --- the end of it --- */

static void free_exported(struct close_op *c)
{
    for (size_t i = 0; i < c->n_exported; i++) {
        free((char *)(uintptr_t)c->exported[i].path);
        free((char *)(uintptr_t)c->exported[i].url);
        free((char *)(uintptr_t)c->exported[i].sha256);
    }
    free(c->exported);
    c->exported = NULL;
    c->n_exported = 0;
}

/* The toolset is closed, whatever has come of it. */
static void leave(struct close_op *c)
{
    struct atoll_toolset *t = c->t;

    loop_at(&c->op.a->loop, &c->step, CLOCK_NEVER);
    atoll_op_free(TAKE_PTR(c->inner));
    export_free(TAKE_PTR(c->export));
    releasing_stop(&c->releasing);
    c->t = NULL;
    t->closing = NULL;
    t->state = TOOLSET_CLOSED;
    t->attached = false;
    provision_stop(t);
    provision_drop(t);
    if (t->attach_to) /* without memory the text that is there stays */
        (void)toolset_describe(t, false, NULL, -1, false);
}

static void finish(struct close_op *c)
{
    struct error failure = c->failure;

    toolset_mask_error(c->t, &failure);
    leave(c);
    if (failure.code != 0)
        op_fail(&c->op, &failure);
    else
        op_done(&c->op);
}

static void tell(const struct close_op *c, struct string_list *list, const char *text)
{
    _cleanup_free_ char *masked = toolset_masked(c->t, text, strlen(text), NULL);

    if (masked)
        (void)string_list_add(list, masked);
}

static void warn(struct close_op *c, const char *text)
{
    tell(c, &c->warnings, text);
}

/* --- waiting --- */

static int step(struct loop *l, struct loop_timer *timer)
{
    struct close_op *c = timer->owner;

    (void)l;
    c->then(c);
    return 0;
}

static void soon(struct close_op *c, void (*then)(struct close_op *c))
{
    c->then = then;
    loop_at(&c->op.a->loop, &c->step, clock_now_us());
}

/* --- removing --- */

static void removed(struct close_op *c)
{
    const struct atoll_error *e = atoll_op_error(c->inner);
    char text[1024];

    if (e) {
        (void)snprintf(text, sizeof text,
                       "sandbox '%.128s' on backend '%s' could not be removed: %.500s%s%.200s",
                       atoll_sandbox_id(c->t->sb), c->t->backend, e->message,
                       e->remedy[0] ? ". " : "", e->remedy);
        warn(c, text);
    }
    finish(c);
}

/* --- letting go --- */

static void released(struct releasing *r)
{
    struct close_op *c = r->owner;

    if (r->warning)
        (void)string_list_add(&c->warnings, r->warning);
    if (r->note)
        (void)string_list_add(&c->notes, r->note);
    finish(c);
}

/* A sandbox that ended, or whose lease another attempt has, needs no letting go. One whose backend
 * program is gone may stand, and bears the holder's name still. */
static void release_sandbox(struct close_op *c)
{
    struct atoll_toolset *t = c->t;
    char text[1024];

    if (release_due(t)) {
        c->releasing =
            (struct releasing){.t = t, .owner = c, .done = released, .pause_us = RELEASE_PAUSE_US};
        releasing_start(&c->releasing);
        return;
    }
    (void)snprintf(text, sizeof text, "%s; nothing was to be released", t->over.message);
    tell(c, &c->notes, text);
    finish(c);
}

static void remove_sandbox(struct close_op *c)
{
    struct atoll_toolset *t = c->t;

    provision_look(t); /* the exports took their time */
    if (t->attached) {
        release_sandbox(c);
        return;
    }
    if (!t->sb || t->attach_to) {
        finish(c);
        return;
    }
    c->inner = atoll_destroy(t->sb);
    c->then = removed;
    if (c->inner)
        op_await(c->inner, &c->step);
    else
        finish(c); /* its handle goes, and it with that */
}

/* --- exports --- */

static int keep_one(const struct export_result *x, struct atoll_exported *ret)
{
    ret->path = strdup(x->path);
    ret->url = strdup(x->url);
    ret->sha256 = x->folder ? NULL : strdup(x->sum);
    ret->files = x->files;
    ret->bytes = x->bytes;
    return ret->path && ret->url && (x->folder || ret->sha256) ? 0 : -ENOMEM;
}

/* They outlive the export, which has to go before the sandbox. */
static void keep_results(struct close_op *c)
{
    size_t n = 0;
    const struct export_result *results = export_results(c->export, &n);

    c->exported = calloc(n + 1, sizeof *c->exported);
    for (size_t i = 0; c->exported && i < n; i++) {
        c->n_exported = i + 1;
        if (keep_one(&results[i], &c->exported[i]) < 0) {
            free_exported(c);
            break;
        }
    }
    if (!c->exported)
        warn(c, "all was published, and there was no memory to list it");
}

static void published(struct close_op *c)
{
    const char *text;

    if (c->failure.code == 0)
        keep_results(c);
    for (size_t i = 0; (text = export_warning(c->export, i)); i++)
        warn(c, text);
    export_free(TAKE_PTR(c->export));
    remove_sandbox(c);
}

static void export_done(struct exporting *x)
{
    soon(export_owner(x), published); /* not from inside of the export's own call */
}

static void export_failed(struct exporting *x, const struct error *err)
{
    struct close_op *c = export_owner(x);

    c->failure = *err;
    c->failure.cls = ERROR_TERMINAL; /* nothing in the run can mend it any more */
    soon(c, published);
}

static const struct export_events events = {.done = export_done, .failed = export_failed};

/* "a, b and 3 more" */
static void list_paths(const struct string_list *entries, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < entries->n; i++) {
        const char *entry = entries->items[i];
        int n = (int)strcspn(entry, "=");

        if (at + (size_t)n + 24 > size) {
            (void)snprintf(buf + at, size - at, " and %zu more", entries->n - i);
            return;
        }
        at += (size_t)snprintf(buf + at, size - at, "%s%.*s", i > 0 ? ", " : "", n, entry);
    }
}

static void nothing_to_export(struct close_op *c, const struct string_list *entries)
{
    char paths[320];

    list_paths(entries, paths, sizeof paths);
    if (c->t->attach_to && c->t->over.code != 0) {
        c->failure = c->t->over;
        (void)error_context(&c->failure, "nothing was exported of %s", paths);
        return;
    }
    (void)error_set(&c->failure, ERROR_TERMINAL, ENOENT,
                    "nothing was exported: no sandbox stands, and these were promised: %s", paths);
    (void)error_remedy(&c->failure, "No tool was called in this run, or its sandbox was lost and "
                                    "no later call made another one");
}

static void publish(struct close_op *c)
{
    struct atoll_toolset *t = c->t;
    const struct toolset_spec *s = &t->spec.spec.toolset;
    struct export_options options = {
        .entries = &s->exports, .max_bytes = s->max_export_bytes, .backend = t->backend};

    provision_look(t);
    if (!c->succeeded || s->exports.n == 0) {
        remove_sandbox(c);
        return;
    }
    if (!t->sb || c->unopened) {
        nothing_to_export(c, &s->exports);
        remove_sandbox(c);
        return;
    }
    options.sandbox = atoll_sandbox_id(t->sb);
    if (export_new(&options, &events, c, &c->export, &c->failure) < 0)
        remove_sandbox(c);
    else
        export_start(c->export, &t->sb->session, &t->a->loop);
}

/* --- beginning --- */

void close_continue(struct atoll_toolset *t)
{
    publish((struct close_op *)t->closing);
}

/* A sandbox that is being made is waited for: it has to be removed. So is the end of an open. */
static void settled(struct close_op *c)
{
    struct atoll_toolset *t = c->t;

    atoll_op_free(TAKE_PTR(c->inner));
    if (t->making || t->opening)
        return;
    /* What goes on in the background would change files while they are copied, or under the next
     * holder's hands. */
    if (t->attached || (c->succeeded && t->spec.spec.toolset.exports.n > 0))
        c->inner = processes_take(t);
    if (c->inner)
        op_await(c->inner, &c->step);
    else
        publish(c);
}

void close_opened(struct atoll_toolset *t)
{
    struct close_op *c = (struct close_op *)t->closing;

    if (c->then) /* otherwise it has only just given the open up */
        soon(c, settled);
}

/* What has begun is ended with all its processes, so that nothing changes files any more. */
static struct atoll_op *take_running(struct atoll_toolset *t)
{
    struct tool_call *c = t->calls;
    struct atoll_op *inner = c ? TAKE_PTR(c->inner) : NULL;

    if (inner) {
        exec_follow(inner, NULL, NULL); /* it outlives the call */
        op_give_up(inner, ECANCELED);
    }
    return inner;
}

static void end_calls(struct close_op *c)
{
    struct atoll_toolset *t = c->t;
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, ECANCELED, "the toolset was closed before %s",
                    t->sb ? "this call was done" : "its sandbox was there");
    c->inner = take_running(t);
    calls_fail(t, &err);
    c->then = settled;
    if (c->inner)
        op_await(c->inner, &c->step);
    else
        soon(c, settled); /* the end of the sandbox may wait to be heard */
}

static bool close_cancel(struct atoll_op *op)
{
    leave((struct close_op *)op);
    return true;
}

static void close_release(struct atoll_op *op)
{
    struct close_op *c = (struct close_op *)op;

    free_exported(c);
    string_list_done(&c->warnings);
    string_list_done(&c->notes);
}

static const struct op_class close_class;

static size_t count(const struct atoll_op *op)
{
    return ((const struct close_op *)op)->n_exported;
}

static const struct atoll_exported *exported(const struct atoll_op *op, size_t i)
{
    const struct close_op *c = (const struct close_op *)op;

    return i < c->n_exported ? &c->exported[i] : NULL;
}

static const char *warning(const struct atoll_op *op, size_t i)
{
    const struct close_op *c = (const struct close_op *)op;

    return i < c->warnings.n ? c->warnings.items[i] : NULL;
}

const char *close_note(const struct atoll_op *op, size_t i)
{
    const struct close_op *c = (const struct close_op *)op;

    return op_is(op, &close_class) && op->done && i < c->notes.n ? c->notes.items[i] : NULL;
}

static uint64_t progress(const struct atoll_op *op)
{
    const struct close_op *c = (const struct close_op *)op;
    uint64_t bytes = 0;

    if (c->export)
        return export_progress(c->export);
    for (size_t i = 0; i < c->n_exported; i++)
        bytes += c->exported[i].bytes;
    return bytes;
}

static const struct op_class close_class = {
    .cancel = close_cancel,
    .release = close_release,
    .count = count,
    .exported = exported,
    .warning = warning,
    .progress = progress,
};

struct atoll_op *atoll_toolset_close(struct atoll_toolset *t, bool succeeded)
{
    struct close_op *c = op_new(t->a, NULL, &close_class, sizeof *c);
    struct error err = ERROR_INIT;

    if (!c)
        return NULL;
    if (t->state == TOOLSET_CLOSED || t->state == TOOLSET_CLOSING) {
        (void)error_set(&err, ERROR_USAGE, EBADF, "the toolset is %s",
                        t->state == TOOLSET_CLOSED ? "not open" : "being closed already");
        op_fail(&c->op, &err);
        return &c->op;
    }
    c->t = t;
    c->succeeded = succeeded;
    c->step = (struct loop_timer){.name = "close", .owner = c, .due = step};
    t->closing = &c->op;
    c->unopened = t->state == TOOLSET_OPENING;
    if (c->unopened)
        op_give_up(t->opening, ECANCELED);
    t->state = TOOLSET_CLOSING;
    end_calls(c);
    return &c->op;
}

void close_abandon(struct atoll_toolset *t)
{
    if (t->closing)
        op_give_up(t->closing, ECANCELED);
}
