/* SPDX-License-Identifier: Apache-2.0 */
/* The tool read_file: a window of lines, taken while the file streams by. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "base/buffer.h"
#include "toolset/media.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum { ARGUMENT_PATH, ARGUMENT_OFFSET, ARGUMENT_LIMIT };

enum {
    HEAD_BYTES = 64 * 1024, /* by which it is judged whether a file is text */
    PIECE_BYTES = 256 * 1024,
    BYTES_AT_ONCE = 4 * 1024 * 1024, /* then other sources of the loop get their turn */
};

/* How much behind a page is looked through to say how many lines remain. A local file is mapped
 * memory; of another backend every byte would travel. */
#define COUNT_LOCAL_BYTES (64 * LIMIT_MIB)

/*
 * What has come of a file whose bytes may be the answer. The same bytes are judged wherever it
 * lies, however they come in.
 */
struct head {
    struct buffer bytes;
    const char *type; /* NULL: it is not known yet that they are no text */
};

static const char *run_command_of(const struct tool_call *c)
{
    return c->t->tools[TOOL_RUN_COMMAND].name;
}

static uint64_t read_limit(const struct tool_call *c)
{
    return c->t->spec.spec.toolset.max_read_bytes;
}

static void drop_head(struct tool_call *c)
{
    struct head *h = c->state;

    if (h)
        buffer_done(&h->bytes);
    free(h);
    c->state = NULL;
}

static void leave(struct tool_call *c)
{
    drop_head(c);
    loop_forget(&c->op.a->loop, &c->source);
    fd_closep(&c->fd);
    window_free(TAKE_PTR(c->window));
    free(TAKE_PTR(c->piece));
}

/* --- what is too large --- */

static void refuse_size(struct tool_call *c, uint64_t size)
{
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];
    _cleanup_free_ char *shown = call_path(c, path->text, path->len);
    char has[SHOWN_SIZE_BYTES], limit[SHOWN_SIZE_BYTES];

    shown_size(size, has);
    shown_size(read_limit(c), limit);
    if (!shown)
        call_answer(c, NULL, 0, true);
    else if (size > read_limit(c))
        call_retry(c, TEXT_READ_TOO_LARGE, shown, has, limit, run_command_of(c));
    else
        call_retry(c, TEXT_READ_ENDLESS, shown, limit, run_command_of(c));
}

static void sized(struct tool_call *c)
{
    const struct atoll_file *file = atoll_op_file(c->inner, 0);
    const struct atoll_error *e = atoll_op_error(c->inner);

    if (e && e->cls == ATOLL_TERMINAL)
        call_inner_failed(c);
    else
        refuse_size(c, file && file->kind == ATOLL_FILE ? file->size : 0);
}

/* --- lines --- */

static void add_facts(struct tool_call *c, bool whole, const char *text)
{
    struct window_facts x;

    window_facts(c->window, whole, &x);
    call_fact(c, "text", json_stringn(text, x.text_len));
    call_fact(c, "first_line", json_integer((json_int_t)x.first_line));
    call_fact(c, "lines", json_integer((json_int_t)x.lines));
    if (x.more)
        call_fact(c, "next_offset", json_integer((json_int_t)x.first_line + (json_int_t)x.lines));
    if (x.wide)
        call_fact(c, "line_too_long", json_true());
    if (x.counted)
        call_fact(c, "remaining_lines", json_integer((json_int_t)x.remaining));
}

static void finish(struct tool_call *c, bool whole)
{
    char *text = NULL;
    size_t len = 0;

    if (window_text(c->window, whole, &text, &len) < 0)
        text = NULL;
    else
        add_facts(c, whole, text);
    call_answer(c, text, len, false);
}

/* Lines for the window. Return: whether it takes more; otherwise the call is done. */
static bool feed(struct tool_call *c, const void *bytes, size_t len)
{
    int r = window_feed(c->window, bytes, len);

    if (r < 0)
        call_answer(c, NULL, 0, false);
    else if (r > 0)
        finish(c, false);
    return r == 0;
}

/* --- bytes --- */

/* Whether a value lies in them that must not be shown. Of bytes nothing can be masked: what they
 * are for would break, and a reader could tell where. */
static int hold_secret(const struct tool_call *c, const struct buffer *b)
{
    _cleanup_free_ char *masked = NULL;
    size_t len;

    if (mask_text(c->t->mask, b->bytes, b->len, 0, &masked, &len) < 0)
        return -ENOMEM;
    return len != b->len || memcmp(masked, b->bytes, len) != 0;
}

static void answer_bytes(struct tool_call *c)
{
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];
    struct head *h = c->state;
    _cleanup_free_ char *shown = call_path(c, path->text, path->len);
    char size[SHOWN_SIZE_BYTES], *bytes = NULL, *text = NULL;
    int secret = hold_secret(c, &h->bytes), n = -1;

    if (!shown || secret < 0) {
        call_answer(c, NULL, 0, false);
        return;
    }
    if (secret) {
        call_retry(c, TEXT_BYTES_SECRET, shown, run_command_of(c));
        return;
    }
    shown_size(h->bytes.len, size);
    c->answer.type = h->type;
    call_fact(c, "media_type", json_string(h->type));
    call_fact(c, "bytes", json_integer((json_int_t)h->bytes.len));
    if (buffer_take(&h->bytes, &bytes, &c->answer.n_bytes) == 0)
        n = asprintf(&text, TEXT_NO_TEXT, shown, h->type, size);
    c->answer.bytes = c->bytes = bytes;
    call_answer(c, n < 0 ? NULL : text, n < 0 ? 0 : (size_t)n, false);
}

/* It is text after all: the window gets what has come. Return: as feed(). */
static bool feed_head(struct tool_call *c)
{
    struct head *h = c->state;
    struct buffer bytes = h->bytes;
    bool goes_on;

    h->bytes = (struct buffer){0};
    drop_head(c);
    goes_on = bytes.len == 0 || feed(c, bytes.bytes, bytes.len);
    buffer_done(&bytes);
    return goes_on;
}

/* One more piece of a file that may be no text. Return: as feed(). */
static bool collect(struct tool_call *c, const void *bytes, size_t len)
{
    struct head *h = c->state;

    buffer_add(&h->bytes, bytes, len);
    if (h->bytes.bad) {
        call_answer(c, NULL, 0, false);
        return false;
    }
    if (!h->type && h->bytes.len >= HEAD_BYTES) {
        h->type = media_type(h->bytes.bytes, HEAD_BYTES, false);
        if (!h->type)
            return feed_head(c);
    }
    if (!h->type || h->bytes.len <= read_limit(c))
        return true;
    refuse_size(c, 0);
    return false;
}

/* Of a file that tells no size, as those of /proc, no more than the limit was read: is that all? */
static bool is_larger(struct tool_call *c)
{
    const struct head *h = c->state;
    char more;

    return h->bytes.len > read_limit(c) ||
           (h->bytes.len == read_limit(c) && c->left == 0 && read(c->fd, &more, 1) == 1);
}

/* Return: whether the file is text; otherwise the call is done. */
static bool judge_whole(struct tool_call *c)
{
    struct head *h = c->state;

    if (!h->type)
        h->type = media_type(h->bytes.bytes, h->bytes.len, true);
    if (!h->type)
        return feed_head(c);
    if (is_larger(c))
        refuse_size(c, 0);
    else
        answer_bytes(c);
    return false;
}

/* --- streaming --- */

static void end_of_file(struct tool_call *c)
{
    if (atoll_op_error(c->inner)) /* in-band: the connection was lost halfway */
        call_inner_failed(c);
    else if (!c->state || judge_whole(c))
        finish(c, true);
}

static void fail_read(struct tool_call *c, int code)
{
    call_retry(c, TEXT_FAILED "%s", c->t->tools[TOOL_READ_FILE].name, strerror(code), ".");
}

/* Return: whether there may be more to read; otherwise the call is done, or nothing is there now.
 */
static bool read_piece(struct tool_call *c, size_t *budget)
{
    size_t want = c->left < PIECE_BYTES ? (size_t)c->left : PIECE_BYTES;
    ssize_t n = want > 0 ? read(c->fd, c->piece, want) : 0;

    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n < 0) {
        fail_read(c, errno);
        return false;
    }
    if (n == 0) {
        end_of_file(c);
        return false;
    }
    c->left -= (uint64_t)n;
    *budget -= (size_t)n < *budget ? (size_t)n : *budget;
    return c->state ? collect(c, c->piece, (size_t)n) : feed(c, c->piece, (size_t)n);
}

/* A regular file: epoll(7) knows no such source, so the timer drives it. */
static void read_on(struct tool_call *c)
{
    size_t budget = BYTES_AT_ONCE;

    while (budget > 0)
        if (!read_piece(c, &budget))
            return;
    call_soon(c, read_on);
}

static int pipe_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct tool_call *c = source->owner;
    struct atoll_toolset *t = c->t;
    size_t budget = BYTES_AT_ONCE;

    (void)l;
    (void)events;
    while (budget > 0 && read_piece(c, &budget))
        ;
    calls_advance(t);
    return 0;
}

static bool make_window(struct tool_call *c)
{
    const struct tool_argument *offset = &c->arguments.items[ARGUMENT_OFFSET];
    const struct tool_argument *limit = &c->arguments.items[ARGUMENT_LIMIT];
    bool local = !c->t->sb->session.in_band;
    struct window_request x = {
        .caps = call_caps(c),
        .mask = c->t->mask,
        .run_command = run_command_of(c),
        .count_bytes = c->whole ? UINT64_MAX
                       : local  ? COUNT_LOCAL_BYTES
                                : read_limit(c),
    };

    if (offset->given && offset->number >= 1)
        x.offset = offset->number < (double)INT64_MAX ? (uint64_t)offset->number : INT64_MAX;
    if (limit->given && limit->number >= 1)
        x.limit = limit->number < (double)INT64_MAX ? (uint64_t)limit->number : INT64_MAX;
    c->window = window_new(&x);
    c->piece = malloc(PIECE_BYTES);
    if (c->whole && c->t->answers_bytes && !(c->state = calloc(1, sizeof(struct head))))
        return false;
    return c->window && c->piece;
}

static void stream(struct tool_call *c)
{
    int r;

    if (!make_window(c)) {
        call_answer(c, NULL, 0, false);
        return;
    }
    if (!c->t->sb->session.in_band) {
        read_on(c);
        return;
    }
    c->source =
        (struct loop_source){.name = "read_file", .fd = -EBADF, .owner = c, .ready = pipe_ready};
    r = loop_watch(&c->op.a->loop, &c->source, c->fd, EPOLLIN);
    if (r < 0)
        fail_read(c, -r);
}

static void opened(struct tool_call *c)
{
    const struct tool_argument *path = &c->arguments.items[ARGUMENT_PATH];
    const struct atoll_error *e = atoll_op_error(c->inner);
    struct stat st;

    if (e && e->cls == ATOLL_TOO_LARGE) {
        call_await(c, atoll_stat(c->t->sb, path->text, true), sized);
        return;
    }
    if (e) {
        call_inner_failed(c);
        return;
    }
    c->fd = atoll_op_take_fd(c->inner, 0);
    if (c->fd < 0 || fstat(c->fd, &st) < 0) {
        fail_read(c, c->fd < 0 ? EBADF : errno);
        return;
    }
    /* As much as there is now: somebody may write to it faster than it can be read. */
    c->left = UINT64_MAX;
    if (S_ISREG(st.st_mode))
        c->left = st.st_size > 0 ? (uint64_t)st.st_size : read_limit(c);
    if (c->whole && S_ISREG(st.st_mode) && c->left > read_limit(c))
        refuse_size(c, c->left);
    else
        stream(c);
}

static bool examine(struct tool_call *c)
{
    return call_path_fits(c);
}

static void begin(struct tool_call *c)
{
    const char *path = c->arguments.items[ARGUMENT_PATH].text;

    c->whole =
        !c->arguments.items[ARGUMENT_OFFSET].given && !c->arguments.items[ARGUMENT_LIMIT].given;
    call_await(c, atoll_read(c->t->sb, path, 0, UINT64_MAX, c->whole ? read_limit(c) : UINT64_MAX),
               opened);
}

const struct tool_action read_file_action = {.examine = examine, .begin = begin, .leave = leave};
