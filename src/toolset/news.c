/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each stream is masked and decoded on its own, so that neither a secret nor a character is torn by
 * what the other one writes in between. Only what has come through both is kept, in a ring; hence
 * what is dropped there can uncover nothing.
 */
#include "toolset/news.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/buffer.h"
#include "toolset/shown.h"
#include "base/guards.h"

enum { STREAMS = 2, FIRST_BYTES = 512, PART_BYTES = 3 };

struct news_stream {
    struct mask_stream *mask;
    char part[PART_BYTES]; /* the beginning of a character */
    size_t n_part;
};

struct news {
    struct news_stream streams[STREAMS];
    char *ring; /* UTF-8, from a whole character on */
    size_t room, start, len, max;
    uint64_t dropped;
    bool ended;
    bool bad; /* there was no memory for a piece, and what follows it cannot be judged any more */
};

struct news *news_new(const struct mask *m, size_t max)
{
    struct news *n = calloc(1, sizeof *n);

    if (!n)
        return NULL;
    n->max = max;
    for (size_t i = 0; i < STREAMS; i++)
        if (!(n->streams[i].mask = mask_stream_new(m))) {
            news_free(n);
            return NULL;
        }
    return n;
}

void news_free(struct news *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < STREAMS; i++)
        mask_stream_free(n->streams[i].mask);
    free(n->ring);
    free(n);
}

/* --- the ring --- */

/* Its bytes in a row. */
static void copy_out(const struct news *n, char *ret)
{
    size_t first = n->len < n->room - n->start ? n->len : n->room - n->start;

    if (n->len == 0)
        return;
    memcpy(ret, n->ring + n->start, first);
    memcpy(ret + first, n->ring, n->len - first);
}

/* As much room as @wanted bytes need, or as there may be. */
static int grow(struct news *n, size_t wanted)
{
    size_t room = n->room > 0 ? n->room : FIRST_BYTES;
    char *more;

    while (room < wanted && room < n->max)
        room *= 2;
    if (room > n->max)
        room = n->max;
    if (room <= n->room)
        return 0;
    more = malloc(room);
    if (!more)
        return -ENOMEM;
    copy_out(n, more);
    free(n->ring);
    n->ring = more;
    n->room = room;
    n->start = 0;
    return 0;
}

static void drop(struct news *n, size_t bytes)
{
    n->start = (n->start + bytes) % n->room;
    n->len -= bytes;
    n->dropped += bytes;
}

static bool begins_inside_a_character(const struct news *n)
{
    return n->len > 0 && ((unsigned char)n->ring[n->start] & 0xC0) == 0x80;
}

static int keep(struct news *n, const char *text, size_t len)
{
    size_t at, first, skipped = len > n->max ? len - n->max : 0;

    if (grow(n, n->len + len) < 0)
        return -ENOMEM;
    if (skipped > 0) { /* nothing that was there stays either */
        n->dropped += n->len + skipped;
        n->len = n->start = 0;
        text += skipped;
        len -= skipped;
    }
    if (len == 0)
        return 0;
    if (n->len + len > n->room)
        drop(n, n->len + len - n->room);
    at = (n->start + n->len) % n->room;
    first = len < n->room - at ? len : n->room - at;
    memcpy(n->ring + at, text, first);
    memcpy(n->ring, text + first, len - first);
    n->len += len;
    while (begins_inside_a_character(n))
        drop(n, 1);
    return 0;
}

/* --- the streams --- */

/* How many bytes at its end are the beginning of a character. */
static size_t unfinished(const char *text, size_t len)
{
    for (size_t n = 1; n <= PART_BYTES && n <= len; n++)
        if (shown_character(text + len - n, n, false) == 0)
            return n;
    return 0;
}

/* What came of a stream behind its mask. */
static int take_in(struct news *n, struct news_stream *s, const char *text, size_t len, bool end)
{
    struct buffer whole = {0};
    _cleanup_free_ char *shown = NULL;
    int r = -ENOMEM;

    buffer_add(&whole, s->part, s->n_part);
    buffer_add(&whole, text, len);
    if (buffer_reserve(&whole, 0)) {
        size_t left = end ? 0 : unfinished(whole.bytes, whole.len), shown_len;

        r = shown_utf8(whole.bytes, whole.len - left, &shown, &shown_len);
        if (r == 0)
            r = keep(n, shown, shown_len);
        memcpy(s->part, whole.bytes + whole.len - left, left);
        s->n_part = left;
    }
    buffer_done(&whole);
    return r;
}

static int feed(struct news *n, struct news_stream *s, const void *bytes, size_t len, bool end)
{
    const char *masked;
    size_t masked_len;

    if (n->bad)
        return -ENOMEM;
    if (mask_stream_feed(s->mask, bytes, len, end, &masked, &masked_len) < 0 ||
        take_in(n, s, masked, masked_len, end) < 0)
        n->bad = true;
    return n->bad ? -ENOMEM : 0;
}

int news_feed(struct news *n, int stream, const void *bytes, size_t len)
{
    if (stream < 1 || stream > STREAMS || n->ended || len == 0)
        return 0;
    return feed(n, &n->streams[stream - 1], bytes, len, false);
}

int news_end(struct news *n)
{
    int r = 0;

    for (size_t i = 0; i < STREAMS && !n->ended && r == 0; i++)
        r = feed(n, &n->streams[i], NULL, 0, true);
    n->ended = true;
    return n->bad ? -ENOMEM : r;
}

size_t news_waiting(const struct news *n)
{
    return n->len;
}

int news_take(struct news *n, char **ret, size_t *ret_len, uint64_t *ret_dropped)
{
    char *text = n->bad ? NULL : malloc(n->len + 1);

    if (!text)
        return -ENOMEM;
    copy_out(n, text);
    text[n->len] = '\0';
    *ret = text;
    *ret_len = n->len;
    *ret_dropped = n->dropped;
    free(TAKE_PTR(n->ring)); /* most are asked once and then not for long */
    n->room = n->start = n->len = 0;
    n->dropped = 0;
    return 0;
}
