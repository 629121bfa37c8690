/* SPDX-License-Identifier: Apache-2.0 */
/* The tool edit_file: read the whole file, look whether it is still that one, write it anew. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "toolset/search.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum { ARGUMENT_PATH, ARGUMENT_OLD, ARGUMENT_NEW };

struct edit {
    struct atoll_op *read; /* holds the file; owned */
    struct search_found found;
};

static void leave(struct tool_call *c)
{
    struct edit *e = TAKE_PTR(c->state);

    if (e)
        atoll_op_free(e->read);
    free(e);
}

static void fail_memory(struct tool_call *c)
{
    call_answer(c, NULL, 0, false);
}

static char *path_shown(const struct tool_call *c)
{
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];

    return call_path(c, path->text, path->len);
}

/* --- refusals --- */

static void changed(struct tool_call *c)
{
    _cleanup_free_ char *shown = path_shown(c);

    if (shown)
        call_retry(c, TEXT_EDIT_CHANGED, shown);
    else
        fail_memory(c);
}

static void sized(struct tool_call *c)
{
    const struct atoll_file *file = atoll_op_file(c->inner, 0);
    uint64_t most = c->t->spec.spec.toolset.max_read_bytes;
    _cleanup_free_ char *shown = path_shown(c);
    char has[SHOWN_SIZE_BYTES], limit[SHOWN_SIZE_BYTES];

    if (!file) {
        call_inner_failed(c);
        return;
    }
    shown_size(file->size, has);
    shown_size(most, limit);
    if (file->size <= most)
        changed(c);
    else if (shown)
        call_retry(c, TEXT_EDIT_TOO_LARGE, shown, has, limit, c->t->tools[TOOL_RUN_COMMAND].name);
    else
        fail_memory(c);
}

/* What may explain that a text is not there. Return: 0 or -ENOMEM. */
static int add_hints(const struct tool_call *c, const char *text, size_t len, struct buffer *b)
{
    const struct tool_argument *old = &c->arguments.items[ARGUMENT_OLD];
    size_t before = b->len;
    uint64_t ends, spaces;
    char hint[256] = "";

    if (search_apart_from(SEARCH_APART_LINE_ENDS, text, len, old->text, old->len, &ends) < 0 ||
        search_apart_from(SEARCH_APART_SPACES, text, len, old->text, old->len, &spaces) < 0)
        return -ENOMEM;
    if (ends > 0 && memmem(old->text, old->len, "\r\n", 2))
        (void)snprintf(hint, sizeof hint, TEXT_EDIT_APART_LF, ends);
    else if (ends > 0)
        (void)snprintf(hint, sizeof hint, TEXT_EDIT_APART_CRLF, ends);
    else if (spaces > 0)
        (void)snprintf(hint, sizeof hint, TEXT_EDIT_APART_SPACES, spaces);
    buffer_add_text(b, hint);
    if (memmem(old->text, old->len, "***", 3))
        buffer_add_text(b, TEXT_EDIT_MASKED);
    if (memmem(old->text, old->len, SHOWN_REPLACEMENT, strlen(SHOWN_REPLACEMENT)))
        buffer_add_text(b, TEXT_EDIT_REPLACEMENT);
    if (b->len == before)
        buffer_add_text(b, TEXT_EDIT_LOOK);
    return b->bad ? -ENOMEM : 0;
}

static void absent(struct tool_call *c, const char *text, size_t len)
{
    _cleanup_free_ char *shown = path_shown(c), *hints = NULL;
    struct buffer b = {0};

    if (!shown || add_hints(c, text, len, &b) < 0 || buffer_take(&b, &hints, NULL) < 0) {
        buffer_done(&b);
        fail_memory(c);
        return;
    }
    call_retry(c, TEXT_EDIT_ABSENT "%s", shown, hints);
}

/* "3, 7, 9, ..." */
static void several(struct tool_call *c, const struct search_found *f)
{
    _cleanup_free_ char *shown = path_shown(c);
    char lines[SEARCH_LINES_TOLD * 24 + 8] = "";
    size_t n = 0;

    for (size_t i = 0; i < f->n_lines; i++)
        n += (size_t)snprintf(lines + n, sizeof lines - n, "%s%" PRIu64,
                              i > 0 ? TEXT_LIST_SEPARATOR : "", f->lines[i]);
    if (f->more_lines)
        (void)snprintf(lines + n, sizeof lines - n, TEXT_LIST_SEPARATOR "...");
    if (shown)
        call_retry(c, TEXT_EDIT_SEVERAL, f->n, shown, TEXT_LINES(f->n_lines), lines);
    else
        fail_memory(c);
}

/* --- the edit --- */

static void was_written(struct tool_call *c)
{
    const struct edit *e = c->state;
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];
    _cleanup_free_ char *shown = NULL, *masked = NULL;
    char *text = NULL;
    size_t len;
    int n = -1;

    if (atoll_op_error(c->inner)) {
        call_inner_failed(c);
        return;
    }
    shown = path_shown(c);
    masked = toolset_masked(c->t, path->text, path->len, &len);
    if (shown && masked)
        n = asprintf(&text, TEXT_EDITED, shown, e->found.lines[0]);
    call_fact(c, "path", masked ? call_string(masked, len) : NULL);
    call_fact(c, "line", json_integer((json_int_t)e->found.lines[0]));
    call_answer(c, n < 0 ? NULL : text, n < 0 ? 0 : (size_t)n, false);
}

static struct atoll_op *write_anew(struct tool_call *c)
{
    const struct edit *e = c->state;
    const struct tool_argument *old = &c->arguments.items[ARGUMENT_OLD];
    const struct tool_argument *new = &c->arguments.items[ARGUMENT_NEW];
    struct buffer b = {0};
    struct atoll_op *op = NULL;
    size_t len;
    const char *text = atoll_op_output(e->read, 1, &len);
    size_t behind = e->found.first + old->len;

    buffer_add(&b, text, e->found.first);
    buffer_add(&b, new->text, new->len);
    buffer_add(&b, text + behind, len - behind);
    if (!b.bad)
        op = atoll_write_bytes(c->t->sb, c->arguments.items[ARGUMENT_PATH].text, b.bytes, b.len,
                               ATOLL_KEEP_MODE);
    buffer_done(&b);
    return op;
}

static void was_looked_at(struct tool_call *c)
{
    const struct edit *e = c->state;
    const struct atoll_file *before = atoll_op_file(e->read, 0);
    const struct atoll_file *now = atoll_op_file(c->inner, 0);

    if (!now)
        call_inner_failed(c);
    else if (now->kind != before->kind || now->size != before->size ||
             now->mtime_ns != before->mtime_ns)
        changed(c);
    else
        call_await(c, write_anew(c), was_written);
}

static void was_read(struct tool_call *c)
{
    struct edit *e = c->state;
    const struct tool_argument *old = &c->arguments.items[ARGUMENT_OLD];
    const char *path = c->arguments.items[ARGUMENT_PATH].text;
    const struct atoll_error *failed = atoll_op_error(c->inner);
    const char *text;
    size_t len;

    if (failed && failed->code == EFBIG) {
        call_await(c, atoll_stat(c->t->sb, path, true), sized);
        return;
    }
    if (failed) {
        call_inner_failed(c);
        return;
    }
    text = atoll_op_output(c->inner, 1, &len);
    if (search_occurrences(text, len, old->text, old->len, &e->found) < 0) {
        fail_memory(c);
    } else if (e->found.n == 0) {
        absent(c, text, len);
    } else if (e->found.n > 1) {
        several(c, &e->found);
    } else {
        e->read = TAKE_PTR(c->inner);
        call_await(c, atoll_stat(c->t->sb, path, true), was_looked_at);
    }
}

static bool examine(struct tool_call *c)
{
    const struct tool_argument *old = &c->arguments.items[ARGUMENT_OLD];
    const struct tool_argument *new = &c->arguments.items[ARGUMENT_NEW];

    if (!call_path_fits(c))
        return false;
    if (old->len == 0)
        call_retry(c, TEXT_EDIT_EMPTY, c->t->tools[TOOL_WRITE_FILE].name);
    else if (old->len == new->len && memcmp(old->text, new->text, old->len) == 0)
        call_retry(c, "%s", TEXT_EDIT_SAME);
    else
        return true;
    return false;
}

static void begin(struct tool_call *c)
{
    c->state = calloc(1, sizeof(struct edit));
    if (!c->state) {
        fail_memory(c);
        return;
    }
    call_await(c,
               atoll_read_bytes(c->t->sb, c->arguments.items[ARGUMENT_PATH].text, 0, UINT64_MAX,
                                c->t->spec.spec.toolset.max_read_bytes),
               was_read);
}

const struct tool_action edit_file_action = {.examine = examine, .begin = begin, .leave = leave};
