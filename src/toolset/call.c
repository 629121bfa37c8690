/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: the row in which they wait, and how they end. */
#include "toolset/toolset.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "toolset/refusals.h"
#include "toolset/texts.h"
#include "base/guards.h"

static const struct tool_action *const actions[] = {
    [TOOL_RUN_COMMAND] = &run_command_action,     [TOOL_READ_FILE] = &read_file_action,
    [TOOL_WRITE_FILE] = &write_file_action,       [TOOL_LIST_DIRECTORY] = &list_directory_action,
    [TOOL_EDIT_FILE] = &edit_file_action,         [TOOL_SEARCH_FILES] = &search_files_action,
    [TOOL_START_PROCESS] = &start_process_action, [TOOL_PROCESS_OUTPUT] = &process_output_action,
    [TOOL_STOP_PROCESS] = &stop_process_action,   [TOOL_PUBLISH_EXPORTS] = &publish_exports_action,
};
_Static_assert(ARRAY_SIZE(actions) == TOOL__MAX, "a tool does nothing");

static const char *name_of(const struct tool_call *c)
{
    return c->t->tools[c->tool].name;
}

/* --- leaving the row --- */

static void free_inner(struct tool_call *c)
{
    atoll_op_free(TAKE_PTR(c->inner));
    atoll_op_free(TAKE_PTR(c->kept));
}

static void leave_action(struct tool_call *c)
{
    if (actions[c->tool]->leave)
        actions[c->tool]->leave(c);
}

/* It is done, or about to be: nothing of it moves any more, and the toolset knows it no longer. */
static void leave(struct tool_call *c)
{
    struct atoll_toolset *t = c->t;

    for (struct tool_call **p = &t->calls; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            if (!*p)
                t->last = p;
            break;
        }
    loop_at(&c->op.a->loop, &c->step, CLOCK_NEVER);
    if (c->tool != TOOL__MAX)
        leave_action(c);
    c->t = NULL;
    c->next = NULL;
    free_inner(c);
    news_free(TAKE_PTR(c->news));
    tool_arguments_done(&c->arguments);
    free(TAKE_PTR(c->refused));
}

static void fail_plain(struct tool_call *c, const struct error *err)
{
    leave(c);
    op_fail(&c->op, err);
}

static void fail_memory(struct tool_call *c)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    fail_plain(c, &err);
}

void call_fail(struct tool_call *c, const struct error *err)
{
    struct error masked = *err;

    toolset_mask_error(c->t, &masked);
    fail_plain(c, &masked);
}

void calls_fail(struct atoll_toolset *t, const struct error *err)
{
    while (t->calls)
        call_fail(t->calls, err);
}

/* --- answers --- */

/* "\n[the sandbox has …]", or nothing. */
static void life_line(const struct atoll_toolset *t, char *buf, size_t size)
{
    uint64_t left = provision_left_us(t), minutes = left / 60000000;

    buf[0] = '\0';
    if (!provision_little_left(t))
        return;
    if (minutes < 1)
        (void)snprintf(buf, size, "\n%s", TEXT_LITTLE_LIFE_SHORT);
    else
        (void)snprintf(buf, size, "\n" TEXT_LITTLE_LIFE, minutes, TEXT_MINUTES(minutes));
}

/* Puts what the model has to know of its sandbox below an answer. */
static char *add_notes(struct tool_call *c, char *text, size_t *len)
{
    struct atoll_toolset *t = c->t;
    _cleanup_free_ char *policy = refusals_policy_line(t), *notes = NULL;
    char life[160];

    life_line(t, life, sizeof life);
    int n = asprintf(&notes, "%s%s%s%s", t->replaced ? "\n" : "",
                     t->replaced ? TEXT_NOTE_REPLACED : "", policy ? policy : "", life);
    if (n < 0) {
        notes = NULL;
        free(text);
        return NULL;
    }
    if (t->replaced)
        c->answer.replaced = true;
    t->replaced = false;
    if (n == 0)
        return text;
    char *more = realloc(text, *len + (size_t)n + 1);
    if (!more) {
        free(text);
        return NULL;
    }
    memcpy(more + *len, notes, (size_t)n + 1);
    *len += (size_t)n;
    return more;
}

void call_fact(struct tool_call *c, const char *key, json_t *value)
{
    if (!c->structured)
        c->structured = json_object();
    if (json_object_set_new(c->structured, key, value) < 0)
        c->facts_lost = true;
}

json_t *call_string(const char *text, size_t len)
{
    _cleanup_free_ char *shown = NULL;

    return shown_utf8(text, len, &shown, &len) == 0 ? json_stringn(shown, len) : NULL;
}

/* The structured form, with what all of them may have. Return: 0 or -ENOMEM. */
static int write_facts(struct tool_call *c)
{
    uint64_t left = provision_left_us(c->t), left_ms = left / 1000;

    if (left != UINT64_MAX)
        call_fact(c, "remaining_seconds", json_real((double)left_ms / 1000));
    if (c->answer.replaced)
        call_fact(c, "replaced", json_true());
    if (c->facts_lost || !c->structured)
        return -ENOMEM;
    c->facts = json_dumps(c->structured, JSON_COMPACT | JSON_REAL_PRECISION(15));
    c->answer.structured = c->facts;
    return c->facts ? 0 : -ENOMEM;
}

void call_answer(struct tool_call *c, char *text, size_t len, bool retry)
{
    unsigned *failures = &c->t->failures[c->tool];

    if (text)
        text = add_notes(c, text, &len);
    c->text = text;
    if (!text || (!retry && write_facts(c) < 0)) {
        fail_memory(c);
        return;
    }
    *failures = retry ? *failures + 1 : 0;
    c->answer.text = text;
    c->answer.len = len;
    c->answer.retry = retry;
    c->answer.failures = *failures;
    leave(c);
    op_done(&c->op);
}

void call_retry(struct tool_call *c, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    call_answer(c, n < 0 ? NULL : text, n < 0 ? 0 : (size_t)n, true);
}

char *call_path(const struct tool_call *c, const char *path, size_t len)
{
    _cleanup_free_ char *masked = toolset_masked(c->t, path, len, NULL);
    char *shown = NULL;

    return masked && shown_path(masked, &shown) == 0 ? shown : NULL;
}

bool call_path_fits(struct tool_call *c)
{
    const struct tool_argument *path = &c->arguments.items[0];

    if (path->len == 0)
        call_retry(c, "%s", TEXT_PATH_EMPTY);
    else if (memchr(path->text, '\0', path->len))
        call_retry(c, "%s", TEXT_PATH_NUL);
    else
        return true;
    return false;
}

/* --- waiting --- */

static int step(struct loop *l, struct loop_timer *timer)
{
    struct tool_call *c = timer->owner;
    struct atoll_toolset *t = c->t;

    (void)l;
    if (c->op.given_up) { /* what it did has ended by now */
        struct error none = ERROR_INIT;

        fail_plain(c, &none);
    } else if (c->then) {
        c->then(c);
    }
    calls_advance(t);
    return 0;
}

void call_soon(struct tool_call *c, void (*then)(struct tool_call *c))
{
    c->then = then;
    loop_at(&c->op.a->loop, &c->step, clock_now_us());
}

void call_await(struct tool_call *c, struct atoll_op *op, void (*then)(struct tool_call *c))
{
    if (!op) {
        fail_memory(c);
        return;
    }
    atoll_op_free(c->inner);
    c->inner = op;
    c->then = then;
    op_await(op, &c->step);
}

/* The operation that is done stays, and another one may be awaited. */
static void keep_inner(struct tool_call *c)
{
    atoll_op_free(c->kept);
    c->kept = TAKE_PTR(c->inner);
}

/* The answer to whether the sandbox stands. */
static void heard(struct tool_call *c)
{
    const struct session *s = &c->t->sb->session;
    const struct atoll_error *e = atoll_op_error(c->inner);
    const struct atoll_info *info = atoll_op_info(c->inner, 0);
    bool lost = s->state == SESSION_OVER || provision_fenced(c->t) ||
                (e && e->cls == ATOLL_TERMINAL) ||
                (info && (strcmp(info->state, "ending") == 0 || strcmp(info->state, "gone") == 0));

    if (s->broken && s->state != SESSION_OVER) { /* the loop is about to say why */
        call_soon(c, heard);
        return;
    }
    if (info)
        (void)provision_hear(c->t, info);
    atoll_op_free(c->inner);
    c->inner = TAKE_PTR(c->kept);
    c->checked(c, lost);
}

void call_check(struct tool_call *c, void (*checked)(struct tool_call *c, bool lost))
{
    if (c->t->sb->session.state == SESSION_OVER || provision_fenced(c->t)) {
        checked(c, true);
        return;
    }
    c->checked = checked;
    keep_inner(c);
    call_await(c, atoll_inspect(c->t->sb), heard);
}

static void tell_failure(struct tool_call *c)
{
    const struct atoll_error *e = atoll_op_error(c->inner);
    struct error err;

    toolset_take_error(c->t, e, ERROR_TERMINAL, &err);
    if (e->cls == ATOLL_TERMINAL || e->cls == ATOLL_USAGE)
        fail_plain(c, &err);
    else
        call_retry(c, TEXT_FAILED "%s%s%s", name_of(c), err.message, err.remedy[0] ? ". " : "",
                   err.remedy, ".");
}

static void failure_checked(struct tool_call *c, bool lost)
{
    if (!lost) {
        tell_failure(c);
        return;
    }
    provision_lost(c->t);
    if (c->t->over.code != 0) {
        call_fail(c, &c->t->over);
    } else {
        c->t->replaced = false; /* this text says it */
        c->answer.replaced = true;
        call_retry(c, TEXT_FAILED, name_of(c), TEXT_LOST);
    }
}

void call_inner_failed(struct tool_call *c)
{
    const struct atoll_error *e = atoll_op_error(c->inner);

    if (e->cls == ATOLL_TERMINAL || e->code == EPIPE || e->code == ESHUTDOWN)
        call_check(c, failure_checked);
    else
        tell_failure(c);
}

/* --- the row --- */

/*
 * What was sent into a connection whose end has not been noticed yet never arrived: it may be done
 * again when the loop has noticed.
 */
static bool never_arrived(const struct tool_call *c)
{
    const struct atoll_error *e =
        c->inner && c->inner->done && !c->again ? atoll_op_error(c->inner) : NULL;

    return e && e->code == EPIPE;
}

static void begin(struct tool_call *c)
{
    c->begun = true;
    actions[c->tool]->begin(c);
    if (c->t && never_arrived(c)) {
        leave_action(c);
        free_inner(c);
        c->begun = false;
        c->again = true;
        call_soon(c, NULL);
    }
}

static bool examine(struct tool_call *c)
{
    if (!c->refused)
        return actions[c->tool]->examine(c);
    call_retry(c, "%s", c->refused);
    return false;
}

void calls_advance(struct atoll_toolset *t)
{
    struct tool_call *c;

    while (t->state == TOOLSET_OPEN && (c = t->calls) && !c->begun && !c->step.set) {
        if (!c->turned) { /* the end of the sandbox may wait to be heard */
            c->turned = true;
            call_soon(c, NULL);
            return;
        }
        provision_look(t);
        if (t->over.code != 0) {
            call_fail(c, &t->over);
        } else if (!examine(c)) {
            continue; /* it has answered */
        } else if (t->sb) {
            begin(c);
        } else {
            provision_make(t);
            if (t->making)
                return;
        }
    }
}

static bool call_cancel(struct atoll_op *op)
{
    struct tool_call *c = (struct tool_call *)op;
    struct atoll_toolset *t = c->t;

    if (c->inner)
        op_give_up(c->inner, op->given_up ? op->given_up : ECANCELED);
    if (op->given_up && c->inner && !c->inner->done)
        return false; /* a command: its end is told, when all of it is dead */
    leave(c);
    calls_advance(t);
    return true;
}

static void call_release(struct atoll_op *op)
{
    struct tool_call *c = (struct tool_call *)op;
    struct atoll_toolset *t = c->t;

    if (t) {
        leave(c);
        calls_advance(t);
    }
    json_decref(c->structured);
    atoll_op_free(c->exported);
    free(c->told);
    free(c->text);
    free(c->facts);
    free(c->bytes);
    free(c->problem);
}

static size_t count(const struct atoll_op *op)
{
    const struct tool_call *c = (const struct tool_call *)op;

    return c->exported ? atoll_op_count(c->exported) : 0;
}

static const struct atoll_exported *exported(const struct atoll_op *op, size_t i)
{
    const struct tool_call *c = (const struct tool_call *)op;

    return c->exported ? atoll_op_exported(c->exported, i) : NULL;
}

static const struct op_class call_class = {
    .cancel = call_cancel, .release = call_release, .count = count, .exported = exported};

/* --- a new one --- */

static void no_tool(struct tool_call *c, const char *name)
{
    const struct atoll_tool *tool;
    char names[TOOL__MAX * (TOOL_NAME_BYTES + 2)] = "";
    struct error err = ERROR_INIT;

    for (size_t i = 0; (tool = atoll_toolset_tool(c->t, i)); i++) {
        size_t n = strlen(names);

        (void)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? ", " : "", tool->name);
    }
    (void)error_set(&err, ERROR_USAGE, ENOENT, "this toolset has no tool '%.100s'", name);
    (void)error_remedy(&err, "It has %s", names);
    call_fail(c, &err);
}

static void not_open(struct tool_call *c)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, EBADF, "the toolset is not open");
    (void)error_remedy(&err, "Call its tools between atoll_toolset_open(), when that is done, and "
                             "atoll_toolset_close()");
    call_fail(c, &err);
}

/* Return: 0, also when they are refused; or -ENOMEM. */
static int parse(struct tool_call *c, const char *arguments, size_t len)
{
    struct error err = ERROR_INIT;
    int r = tool_arguments_parse(arguments, len, &tools[c->tool].schema, &c->arguments, &err);

    if (r == 0 || r == -ENOMEM)
        return r;
    toolset_mask_error(c->t, &err);
    if (asprintf(&c->refused, TEXT_ARGUMENTS_REFUSED "%s%s%s", name_of(c), err.message,
                 err.remedy[0] ? ". " : "", err.remedy, ".") >= 0)
        return 0;
    c->refused = NULL;
    return -ENOMEM;
}

struct atoll_op *atoll_tool_call(struct atoll_toolset *t, const char *name, const char *arguments,
                                 size_t len)
{
    struct tool_call *c = op_new(t->a, NULL, &call_class, sizeof *c);

    if (!c)
        return NULL;
    c->t = t;
    c->fd = -EBADF;
    c->source.fd = -EBADF;
    c->step = (struct loop_timer){.name = "tool", .owner = c, .due = step};
    c->tool = tool_find(name, toolset_prefix(t));
    if (c->tool != TOOL__MAX && !t->tools[c->tool].given)
        c->tool = TOOL__MAX;
    if (c->tool == TOOL__MAX) {
        no_tool(c, name);
    } else if (t->state != TOOLSET_OPEN) {
        not_open(c);
    } else if (parse(c, arguments, len) < 0) {
        fail_memory(c);
    } else {
        *t->last = c;
        t->last = &c->next;
        calls_advance(t);
    }
    return &c->op;
}

const struct atoll_tool_answer *atoll_op_answer(const struct atoll_op *op)
{
    const struct tool_call *c = (const struct tool_call *)op;

    return op_is(op, &call_class) && op->done && !op->failed ? &c->answer : NULL;
}

/* --- following one --- */

enum { NEWS_BYTES = 4096 };

static void heard_output(void *arg, int stream, const void *bytes, size_t len)
{
    struct tool_call *c = arg;

    (void)news_feed(c->news, stream, bytes, len); /* that it failed is told by the next question */
}

void call_follow(struct tool_call *c)
{
    if (c->news && c->inner)
        exec_follow(c->inner, heard_output, c);
}

/* One that is under way; NULL: @op is none. */
static struct tool_call *under_way(struct atoll_op *op)
{
    struct tool_call *c = (struct tool_call *)op;

    return op_is(op, &call_class) && c->t ? c : NULL;
}

int atoll_tool_follow(struct atoll_op *op)
{
    struct tool_call *c = under_way(op);

    if (!c || c->tool != TOOL_RUN_COMMAND || c->news)
        return 0;
    c->news = news_new(c->t->mask, NEWS_BYTES);
    if (!c->news)
        return -ENOMEM;
    if (c->began_us > 0)
        call_follow(c);
    return 0;
}

int atoll_tool_progress(struct atoll_op *op, struct atoll_tool_progress *ret)
{
    struct tool_call *c = under_way(op);
    struct atoll_tool_progress x = {.news = ""};

    if (!c)
        return -EINVAL;
    if (c->began_us > 0) {
        x.running = true;
        x.elapsed_us = clock_now_us() - c->began_us;
        x.timeout_us = c->timeout_us;
    }
    if (c->news) {
        char *told;
        int r = news_take(c->news, &told, &x.len, &x.dropped);

        if (r < 0)
            return r;
        free(c->told);
        x.news = c->told = told;
    }
    *ret = x;
    return 0;
}
