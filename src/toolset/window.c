/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are counted in the file's own bytes, which is what makes their numbers those of grep, and
 * is as fast as memory. Only the window is masked: from as many bytes in front of it on as the
 * longest secret has, so that one that reaches into it is seen whole.
 */
#include "toolset/window.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/buffer.h"
#include "toolset/shown.h"
#include "toolset/texts.h"
#include "base/guards.h"

enum { CHARACTER_BYTES_MAX = 4 };

enum phase {
    WINDOW_BEFORE, /* in front of the first line */
    WINDOW_INSIDE,
    WINDOW_BEHIND, /* no further line fits */
};

struct window {
    struct window_request x;
    enum phase phase;

    /* The file as it is. */
    uint64_t line_ends;
    bool open_line;  /* bytes came behind the last line end */
    uint64_t behind; /* bytes that came when the window was complete */

    struct buffer context; /* WINDOW_BEFORE: the last bytes, as many as the longest secret has */
    struct mask_stream *masked;
    uint64_t skip; /* line ends of the context that are still to come out of the mask */

    char part[CHARACTER_BYTES_MAX]; /* a character whose rest has not come */
    size_t part_len;
    struct buffer text; /* the lines that fit, and the one that is coming in */
    size_t whole_len;   /* without that one */
    uint64_t lines;     /* whole ones in it */
    bool wide;          /* not even the first one fits */
};

struct window *window_new(const struct window_request *x)
{
    struct window *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->x = *x;
    w->x.offset = x->offset > 0 ? x->offset : 1;
    if (x->limit > 0 && x->limit < x->caps.max_lines)
        w->x.caps.max_lines = x->limit;
    w->masked = mask_stream_new(x->mask);
    if (w->masked)
        return w;
    window_free(w);
    return NULL;
}

void window_free(struct window *w)
{
    if (!w)
        return;
    mask_stream_free(w->masked);
    if (w->context.bytes)
        explicit_bzero(w->context.bytes, w->context.room);
    buffer_done(&w->context);
    buffer_done(&w->text);
    free(w);
}

/* What is shown of the line that is coming in. */
static void put(struct window *w, const char *bytes, size_t len)
{
    if (w->phase != WINDOW_INSIDE)
        return;
    if (len > w->x.caps.max_bytes - w->text.len) {
        w->phase = WINDOW_BEHIND;
        w->wide = w->lines == 0;
        w->text.len = w->whole_len;
        return;
    }
    buffer_add(&w->text, bytes, len);
}

static void put_bad_character(struct window *w)
{
    put(w, SHOWN_REPLACEMENT, sizeof SHOWN_REPLACEMENT - 1);
}

/* Bytes of one line, whose characters may come in pieces. @end: the line ends behind them. */
static void put_bytes(struct window *w, const char *bytes, size_t len, bool end)
{
    size_t at = 0, good;

    while (w->part_len > 0 && (at < len || end)) {
        int n;

        if (at < len)
            w->part[w->part_len++] = bytes[at++];
        n = shown_character(w->part, w->part_len, end && at == len);
        if (n == 0)
            continue;
        if (n > 0) {
            put(w, w->part, (size_t)n);
        } else {
            put_bad_character(w);
            if ((size_t)-n < w->part_len)
                at--; /* the last one is no part of it */
        }
        w->part_len = 0;
    }
    good = at;
    while (at < len && w->phase == WINDOW_INSIDE) {
        int n = shown_character(bytes + at, len - at, end);

        if (n > 0) {
            at += (size_t)n;
            continue;
        }
        put(w, bytes + good, at - good);
        if (n == 0) {
            w->part_len = len - at;
            memcpy(w->part, bytes + at, w->part_len);
            return;
        }
        put_bad_character(w);
        at += (size_t)-n;
        good = at;
    }
    put(w, bytes + good, at - good);
}

/* The line that was coming in is whole. */
static void end_line(struct window *w)
{
    if (w->phase != WINDOW_INSIDE)
        return;
    w->lines++;
    w->whole_len = w->text.len;
    if (w->lines == w->x.caps.max_lines)
        w->phase = WINDOW_BEHIND;
    put(w, "\n", 1); /* in front of the next one */
}

/* Masked bytes. A line end that takes one more byte than fits is no line of the window's. */
static void take(struct window *w, const char *bytes, size_t len)
{
    while (len > 0 && w->phase == WINDOW_INSIDE) {
        const char *lf = memchr(bytes, '\n', len);
        size_t n = lf ? (size_t)(lf - bytes) : len;

        if (w->skip == 0)
            put_bytes(w, bytes, n, lf);
        if (lf && w->skip > 0)
            w->skip--;
        else if (lf)
            end_line(w);
        n += lf ? 1 : 0;
        bytes += n;
        len -= n;
    }
}

static int feed_mask(struct window *w, const void *bytes, size_t len, bool end)
{
    const char *masked;
    size_t masked_len;
    int r = mask_stream_feed(w->masked, bytes, len, end, &masked, &masked_len);

    if (r == 0)
        take(w, masked, masked_len);
    return r < 0 || w->text.bad ? -ENOMEM : 0;
}

/* The last bytes in front of the window, as far as a secret may reach into it. */
static int keep_context(struct window *w, const char *bytes, size_t len)
{
    struct buffer *c = &w->context;
    size_t most = mask_longest(w->x.mask), old;

    if (len > most) {
        bytes += len - most;
        len = most;
    }
    old = c->len < most - len ? c->len : most - len;
    if (old > 0 && old < c->len)
        memmove(c->bytes, c->bytes + c->len - old, old);
    c->len = old;
    buffer_add(c, bytes, len);
    return c->bad ? -ENOMEM : 0;
}

static uint64_t count_line_ends(const char *bytes, size_t len)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += bytes[i] == '\n';
    return n;
}

/* Counts the lines in front of the window. Return: how many bytes of @bytes belong to them. */
static size_t pass_lines(struct window *w, const char *bytes, size_t len)
{
    size_t at = 0;

    for (; w->line_ends < w->x.offset - 1; w->line_ends++) {
        const char *lf = at < len ? memchr(bytes + at, '\n', len - at) : NULL;

        if (!lf)
            return len;
        at = (size_t)(lf - bytes) + 1;
    }
    return at;
}

static int begin(struct window *w)
{
    w->phase = WINDOW_INSIDE;
    w->skip = w->context.len > 0 ? count_line_ends(w->context.bytes, w->context.len) : 0;
    return feed_mask(w, w->context.bytes, w->context.len, false);
}

/* Lines of the file as far as it is known. */
static uint64_t lines_known(const struct window *w)
{
    return w->line_ends + (w->open_line ? 1 : 0);
}

int window_feed(struct window *w, const void *bytes, size_t len)
{
    const char *p = bytes;
    size_t before = 0;
    int r = 0;

    if (w->phase == WINDOW_BEHIND)
        w->behind += len;
    if (w->phase == WINDOW_BEFORE && len > 0) {
        before = pass_lines(w, p, len);
        r = keep_context(w, p, before);
        w->open_line = p[before > 0 ? before - 1 : 0] != '\n';
        if (r == 0 && w->line_ends == w->x.offset - 1)
            r = begin(w);
    }
    if (r == 0 && before < len) {
        w->line_ends += count_line_ends(p + before, len - before);
        w->open_line = p[len - 1] != '\n';
        if (w->phase == WINDOW_INSIDE)
            r = feed_mask(w, p + before, len - before, false);
    }
    if (r < 0)
        return r;
    /* Done only when it is known that a line remains, so that the text need not promise one. */
    return w->wide || (w->phase == WINDOW_BEHIND && w->behind >= w->x.count_bytes &&
                       lines_known(w) >= w->x.offset + w->lines);
}

/* All of the file is known: what the mask held back, and a last line without a line end. */
static int finish(struct window *w)
{
    int r = 0;

    if (w->phase == WINDOW_BEFORE && w->x.offset == 1)
        r = begin(w); /* an empty file */
    if (r == 0 && w->phase == WINDOW_INSIDE)
        r = feed_mask(w, "", 0, true);
    /* By the file's own count, since a secret may have taken a last line's bytes. */
    if (r == 0 && w->phase == WINDOW_INSIDE && lines_known(w) >= w->x.offset + w->lines) {
        put_bytes(w, "", 0, true);
        end_line(w);
    }
    return r;
}

static int put_sentence(const struct window *w, struct buffer *b, bool whole)
{
    uint64_t next = w->x.offset + w->lines, known = lines_known(w);
    char size[SHOWN_SIZE_BYTES];
    char *line = NULL;
    int n = 0;

    if (w->wide) {
        shown_size(w->x.caps.max_bytes, size);
        n = asprintf(&line, TEXT_WIDE_LINE, next, size, w->x.run_command);
    } else if (whole && w->lines == 0) {
        n = asprintf(&line, TEXT_NO_LINES, next, known, TEXT_LINES(known));
    } else if (whole && known >= next) {
        known -= next - 1;
        n = asprintf(&line, TEXT_MORE_LINES, known, TEXT_LINES(known), next);
    } else if (!whole) {
        n = asprintf(&line, TEXT_MORE_LINES_UNCOUNTED, next);
    }
    if (n < 0)
        return -ENOMEM;
    if (n > 0 && w->lines > 0)
        buffer_add(b, "\n", 1);
    if (n > 0)
        buffer_add(b, line, (size_t)n);
    free(line);
    return 0;
}

void window_facts(const struct window *w, bool whole, struct window_facts *ret)
{
    uint64_t next = w->x.offset + w->lines, known = lines_known(w);

    *ret = (struct window_facts){
        .text_len = w->whole_len, .first_line = w->x.offset, .lines = w->lines, .wide = w->wide};
    if (w->wide)
        return;
    ret->more = !whole || known >= next;
    ret->counted = whole;
    ret->remaining = whole && known >= next ? known - next + 1 : 0;
}

int window_text(struct window *w, bool whole, char **ret, size_t *ret_len)
{
    int r = whole ? finish(w) : 0;

    if (r == 0) {
        w->text.len = w->whole_len;
        r = put_sentence(w, &w->text, whole);
    }
    return r < 0 ? r : buffer_take(&w->text, ret, ret_len);
}
