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
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum { ARGUMENT_PATH, ARGUMENT_OFFSET, ARGUMENT_LIMIT };

enum {
    PIECE_BYTES = 256 * 1024,
    BYTES_AT_ONCE = 4 * 1024 * 1024, /* then other sources of the loop get their turn */
};

/* How much behind a page is looked through to say how many lines remain. A local file is mapped
 * memory; of another backend every byte would travel. */
#define COUNT_LOCAL_BYTES (64 * LIMIT_MIB)

static const char *run_command_of(const struct tool_call *c)
{
    return c->t->tools[TOOL_RUN_COMMAND].name;
}

static uint64_t read_limit(const struct tool_call *c)
{
    return c->t->spec.spec.toolset.max_read_bytes;
}

void read_file_done(struct tool_call *c)
{
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

/* --- streaming --- */

static void finish(struct tool_call *c, bool whole)
{
    char *text = NULL;
    size_t len = 0;

    if (window_text(c->window, whole, &text, &len) < 0)
        text = NULL;
    call_answer(c, text, len, false);
}

static void end_of_file(struct tool_call *c)
{
    if (atoll_op_error(c->inner)) /* in-band: the connection was lost halfway */
        call_inner_failed(c);
    else
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
    int r;

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
    r = window_feed(c->window, c->piece, (size_t)n);
    if (r < 0)
        call_answer(c, NULL, 0, false);
    else if (r > 0)
        finish(c, false);
    return r == 0;
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

const struct tool_action read_file_action = {.examine = examine, .begin = begin};
