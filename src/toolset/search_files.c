/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool search_files: a walk over folders, each listed when it is reached, and over files, each
 * read when it is reached, one after another and in the order of their paths. What is found is kept
 * as it is shown, so memory is bounded by what may be shown.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "toolset/search.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum { ARGUMENT_TEXT, ARGUMENT_NAME, ARGUMENT_PATH };

enum {
    PATHS_TOLD = 3,
    PATH_BYTES_TOLD = 200, /* of each: a path may have 4095 */
};

/* Paths that were left out: how many, and the first of them. */
struct left_out {
    uint64_t n;
    struct buffer paths;
};

struct search {
    struct search_walk walk;
    const char *text, *name; /* views of the arguments; NULL: any */
    size_t text_len;
    char *folder; /* in front of the walk's paths; owned */
    uint64_t read_bytes;
    uint64_t searched; /* files whose text was, or without one, whose names were looked at */
    uint64_t deadline_us;

    struct truncate_caps caps;
    struct buffer lines; /* what is shown */
    uint64_t n_lines;
    json_t *matches; /* owned */
    bool more;       /* there is a match that is not shown */

    bool out_of_time, out_of_bytes;
    struct left_out large, unreadable;
};

static void leave(struct tool_call *c)
{
    struct search *s = TAKE_PTR(c->state);

    if (!s)
        return;
    search_walk_done(&s->walk);
    buffer_done(&s->lines);
    buffer_done(&s->large.paths);
    buffer_done(&s->unreadable.paths);
    json_decref(s->matches);
    free(s->folder);
    free(s);
}

static void fail_memory(struct tool_call *c)
{
    call_answer(c, NULL, 0, false);
}

/* --- the answer --- */

static void add_note(struct buffer *b, const char *note)
{
    if (b->len > 0 && b->bytes[b->len - 1] != '\n')
        buffer_add(b, " ", 1);
    buffer_add_text(b, note);
}

__attribute__((format(printf, 2, 3))) static void add_note_about(struct buffer *b, const char *fmt,
                                                                 ...)
{
    char *note = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&note, fmt, ap) < 0)
        b->bad = true;
    else
        add_note(b, note);
    va_end(ap);
    free(note);
}

static void note_stop(struct buffer *b, const char *after)
{
    add_note_about(b, TEXT_SEARCH_STOPPED, after);
}

/* Why the search ended before it was through. */
static void note_end(const struct tool_call *c, struct buffer *b)
{
    const struct search *s = c->state;
    char value[SHOWN_SIZE_BYTES + SHOWN_NUMBER_BYTES], after[64 + sizeof value];

    if (s->more)
        add_note(b, TEXT_SEARCH_MORE);
    if (s->walk.too_many && !s->more && !s->out_of_bytes && !s->out_of_time) {
        (void)snprintf(after, sizeof after, TEXT_SEARCH_LOOKED, (unsigned)SEARCH_LOOKED_MAX);
        note_stop(b, after);
    }
    if (s->out_of_bytes) {
        shown_size(SEARCH_READ_BYTES, value);
        (void)snprintf(after, sizeof after, TEXT_SEARCH_READ, value);
        note_stop(b, after);
    }
    if (s->out_of_time) {
        shown_number((double)c->t->spec.spec.toolset.default_command_timeout_us / 1e6, value);
        (void)snprintf(after, sizeof after, TEXT_SEARCH_SECONDS, value);
        note_stop(b, after);
    }
    if (s->walk.too_deep)
        add_note_about(b, TEXT_SEARCH_DEEP, (unsigned)SEARCH_DEPTH_MAX);
}

/* NULL: none, or no memory. */
static const char *paths_of(struct left_out *x)
{
    char more[64];

    if (x->n > PATHS_TOLD) {
        (void)snprintf(more, sizeof more, TEXT_SEARCH_AND_MORE, x->n - PATHS_TOLD);
        buffer_add_text(&x->paths, more);
    }
    buffer_add(&x->paths, "", 1);
    return x->n > 0 && !x->paths.bad ? x->paths.bytes : NULL;
}

/* What it did not look into. */
static void note_left_out(struct tool_call *c, struct buffer *b)
{
    struct search *s = c->state;
    const char *large = paths_of(&s->large), *unreadable = paths_of(&s->unreadable);
    char size[SHOWN_SIZE_BYTES];

    if (large) {
        shown_size(c->t->spec.spec.toolset.max_read_bytes, size);
        add_note_about(b, TEXT_SEARCH_LARGE, size, large, c->t->tools[TOOL_RUN_COMMAND].name);
    }
    if (unreadable)
        add_note_about(b, TEXT_SEARCH_UNREADABLE, unreadable);
    b->bad = b->bad || s->large.paths.bad || s->unreadable.paths.bad;
}

static void finish(struct tool_call *c)
{
    struct search *s = c->state;
    struct buffer *b = &s->lines;
    char *text = NULL;
    size_t len = 0, matched;

    if (s->n_lines == 0 && !s->more)
        add_note_about(b, s->text ? TEXT_SEARCH_NO_TEXT : TEXT_SEARCH_NO_NAME, s->searched,
                       TEXT_SEARCHED(s->searched));
    if (b->len > 0)
        buffer_add(b, "\n", 1);
    matched = b->len;
    note_end(c, b);
    note_left_out(c, b);
    call_fact(c, "matches", TAKE_PTR(s->matches));
    call_fact(c, "complete", json_boolean(b->len == matched));
    if (b->len == matched && matched > 0)
        b->len--;
    if (buffer_take(b, &text, &len) < 0)
        text = NULL;
    call_answer(c, text, len, false);
}

/* --- what it finds --- */

/* The path of what the walk has come to, as the other tools take it; owned by the caller. */
static char *path_inside(const struct search *s)
{
    char *path = NULL;

    return asprintf(&path, "%s%s", s->folder, s->walk.path.bytes) < 0 ? NULL : path;
}

static void cut_path(char *shown)
{
    size_t n = PATH_BYTES_TOLD;

    if (strlen(shown) < n + sizeof "...")
        return;
    while (n > 0 && ((unsigned char)shown[n] & 0xC0) == 0x80)
        n--;
    memcpy(shown + n, "...", sizeof "...");
}

static void leave_out(struct tool_call *c, struct left_out *x)
{
    struct search *s = c->state;
    _cleanup_free_ char *path = path_inside(s), *shown = NULL;

    if (x->n++ >= PATHS_TOLD)
        return;
    shown = path ? call_path(c, path, strlen(path)) : NULL;
    if (x->n > 1)
        buffer_add_text(&x->paths, TEXT_LIST_SEPARATOR);
    if (shown) {
        cut_path(shown);
        buffer_add_text(&x->paths, shown);
    } else {
        x->paths.bad = true;
    }
}

static int add_fact(struct search *s, const char *path, const char *shown, uint64_t number,
                    const char *text, size_t len)
{
    json_t *fact = json_object(), *name = json_string(path);

    /* One that is not UTF-8 is told as it is shown, which is how a command can name it. */
    if (json_object_set_new(fact, "path", name ? name : json_string(shown)) < 0 ||
        (text && (json_object_set_new(fact, "line", json_integer((json_int_t)number)) < 0 ||
                  json_object_set_new(fact, "text", json_stringn(text, len)) < 0)) ||
        json_array_append(s->matches, fact) < 0) {
        json_decref(fact);
        return -ENOMEM;
    }
    json_decref(fact);
    return 0;
}

/*
 * @text: of a line, as it is shown; NULL: the name alone is the match. Return: 0, also when it does
 * not fit any more (s->more); or -ENOMEM.
 */
static int add_match(struct tool_call *c, uint64_t number, const char *text, size_t len)
{
    struct search *s = c->state;
    _cleanup_free_ char *path = path_inside(s), *masked = NULL, *shown = NULL, *front = NULL;
    size_t cost = s->n_lines > 0 ? 1 : 0;

    masked = path ? toolset_masked(c->t, path, strlen(path), NULL) : NULL;
    if (!masked || shown_name(masked, &shown) < 0)
        return -ENOMEM;
    if (text && asprintf(&front, TEXT_SEARCH_LINE, shown, number) < 0) {
        front = NULL;
        return -ENOMEM;
    }
    cost += strlen(front ? front : shown) + len;
    if (s->n_lines == s->caps.max_lines || cost > s->caps.max_bytes - s->lines.len) {
        s->more = true;
        return 0;
    }
    buffer_add(&s->lines, "\n", s->n_lines > 0 ? 1 : 0);
    buffer_add_text(&s->lines, front ? front : shown);
    buffer_add(&s->lines, text, len);
    s->n_lines++;
    return add_fact(s, masked, shown, number, text, len);
}

static int search_bytes(struct tool_call *c, const char *bytes, size_t len)
{
    struct search *s = c->state;
    struct search_lines lines = {
        .bytes = bytes, .len = len, .text = s->text, .text_len = s->text_len};
    struct search_line line;
    int r = 0;

    if (!search_is_text(bytes, len))
        return 0;
    s->searched++;
    while (r == 0 && !s->more && search_next_line(&lines, &line)) {
        _cleanup_free_ char *text = NULL;
        size_t text_len = 0;

        r = search_show_line(&lines, &line, c->t->mask, &text, &text_len);
        if (r == 0)
            r = add_match(c, line.number, text, text_len);
    }
    return r;
}

/* --- the walk --- */

static void go_on(struct tool_call *c);

/* Whether what failed says of the sandbox, or of the time, and not only of one file or folder. */
static bool gave_up(struct tool_call *c, const struct atoll_error *e)
{
    struct search *s = c->state;

    if (e->code == ETIMEDOUT && clock_now_us() >= s->deadline_us) {
        s->out_of_time = true;
        finish(c);
    } else if (e->cls == ATOLL_TERMINAL || e->cls == ATOLL_USAGE || e->code == EPIPE ||
               e->code == ESHUTDOWN) {
        call_inner_failed(c);
    } else {
        return false;
    }
    return true;
}

static void await(struct tool_call *c, struct atoll_op *op, void (*then)(struct tool_call *c))
{
    const struct search *s = c->state;
    uint64_t now = clock_now_us();

    if (op && s->deadline_us != CLOCK_NEVER)
        atoll_op_set_timeout(op, s->deadline_us > now ? s->deadline_us - now : 0);
    call_await(c, op, then);
}

static void was_read(struct tool_call *c)
{
    struct search *s = c->state;
    const struct atoll_error *e = atoll_op_error(c->inner);
    const char *bytes;
    size_t len = 0;

    if (e && gave_up(c, e))
        return;
    if (e && e->code == EFBIG) /* it has grown meanwhile */
        leave_out(c, &s->large);
    else if (e && e->code != ENOENT) /* removed meanwhile */
        leave_out(c, &s->unreadable);
    if (!e) {
        bytes = atoll_op_output(c->inner, 1, &len);
        s->read_bytes += len;
        if (search_bytes(c, bytes, len) < 0) {
            fail_memory(c);
            return;
        }
    }
    go_on(c);
}

static void was_listed(struct tool_call *c)
{
    struct search *s = c->state;
    const struct atoll_error *e = atoll_op_error(c->inner);
    size_t n = atoll_op_count(c->inner);
    _cleanup_free_ const struct atoll_file **files = NULL;

    if (e && gave_up(c, e))
        return;
    if (e && s->walk.depth == 0) { /* what was asked for */
        call_inner_failed(c);
        return;
    }
    if (e && e->code != ENOENT)
        leave_out(c, &s->unreadable);
    if (!e) {
        files = calloc(n + 1, sizeof(void *));
        for (size_t i = 0; files && i < n; i++)
            files[i] = atoll_op_file(c->inner, i);
        if (!files || search_walk_enter(&s->walk, files, n) < 0) {
            fail_memory(c);
            return;
        }
    }
    go_on(c);
}

/* Return: 1 when something is awaited that goes on by itself, 0 when this is done; or -ENOMEM. */
static int look_at(struct tool_call *c, const struct search_entry *e)
{
    struct search *s = c->state;
    uint64_t limit = c->t->spec.spec.toolset.max_read_bytes;
    bool fits = e->kind != ATOLL_FOLDER && (!s->name || search_name_fits(s->name, e->name));
    _cleanup_free_ char *path = NULL;

    if (!s->text && e->kind != ATOLL_FOLDER)
        s->searched++;
    if (fits && !s->text)
        return add_match(c, 0, NULL, 0);
    if (e->kind != ATOLL_FOLDER && (!fits || e->kind != ATOLL_FILE))
        return 0;
    if (fits && e->size == 0 && !c->t->sb->session.in_band) { /* others need not tell sizes */
        s->searched++;
        return 0;
    }
    if (fits && e->size > limit) {
        leave_out(c, &s->large);
        return 0;
    }
    if (fits && e->size + s->read_bytes > SEARCH_READ_BYTES) {
        s->out_of_bytes = true;
        return 0;
    }
    path = path_inside(s);
    if (!path)
        return -ENOMEM;
    if (fits)
        await(c, atoll_read_bytes(c->t->sb, path, 0, UINT64_MAX, limit), was_read);
    else
        await(c, atoll_list_folder(c->t->sb, path), was_listed);
    return 1;
}

static void go_on(struct tool_call *c)
{
    struct search *s = c->state;
    const struct search_entry *entry;
    int r;

    do {
        s->out_of_time = clock_now_us() >= s->deadline_us;
        r = s->more || s->out_of_time || s->out_of_bytes ? 0 : search_walk_next(&s->walk, &entry);
        if (r == 0) {
            finish(c);
            return;
        }
        if (r > 0)
            r = look_at(c, entry);
    } while (r == 0);
    if (r < 0)
        fail_memory(c);
}

/* --- the call --- */

/* Models like to say that a pattern holds at any depth, as this one always does. */
static const char *name_pattern(const struct tool_argument *name)
{
    const char *pattern = name->text;

    while (strncmp(pattern, "**/", 3) == 0)
        pattern += 3;
    return pattern;
}

static bool has(const struct tool_argument *a)
{
    return a->given && a->len > 0;
}

static bool examine(struct tool_call *c)
{
    const struct tool_argument *text = &c->arguments.items[ARGUMENT_TEXT];
    const struct tool_argument *name = &c->arguments.items[ARGUMENT_NAME];
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];

    if (has(text) && memchr(text->text, '\n', text->len))
        call_retry(c, "%s", TEXT_SEARCH_LINE_END);
    else if (has(name) && memchr(name->text, '\0', name->len))
        call_retry(c, "%s", TEXT_SEARCH_NAME_NUL);
    else if (has(name) && name->len > SEARCH_NAME_BYTES)
        call_retry(c, TEXT_SEARCH_LONG, (unsigned)SEARCH_NAME_BYTES);
    else if (has(name) && strchr(name_pattern(name), '/'))
        call_retry(c, "%s", TEXT_SEARCH_SLASH);
    else if (has(path) && memchr(path->text, '\0', path->len))
        call_retry(c, "%s", TEXT_PATH_NUL);
    else
        return true;
    return false;
}

/* "" for ".", "src/" for "./src", "/" for "/": paths are told as find(1) does, without "./". */
static char *folder_of(const char *path)
{
    size_t len;
    char *folder = NULL;

    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    len = strcmp(path, ".") == 0 ? 0 : strlen(path);
    while (len > 0 && path[len - 1] == '/')
        len--;
    return asprintf(&folder, "%.*s%s", (int)len, path, len > 0 || path[0] == '/' ? "/" : "") < 0
               ? NULL
               : folder;
}

static void begin(struct tool_call *c)
{
    const struct tool_argument *text = &c->arguments.items[ARGUMENT_TEXT];
    const struct tool_argument *name = &c->arguments.items[ARGUMENT_NAME];
    const struct tool_argument *argument = &c->arguments.items[ARGUMENT_PATH];
    const char *path = has(argument) ? argument->text : ".";
    struct search *s = calloc(1, sizeof *s);

    c->state = s;
    if (s) {
        s->folder = folder_of(path);
        s->matches = json_array();
    }
    if (!s || !s->folder || !s->matches) {
        fail_memory(c);
        return;
    }
    s->text = has(text) ? text->text : NULL;
    s->text_len = text->len;
    s->name = has(name) ? name_pattern(name) : NULL;
    s->caps = call_caps(c);
    s->walk.left = SEARCH_LOOKED_MAX;
    s->deadline_us = clock_after_us(c->t->spec.spec.toolset.default_command_timeout_us);
    await(c, atoll_list_folder(c->t->sb, path), was_listed);
}

const struct tool_action search_files_action = {.examine = examine, .begin = begin, .leave = leave};
