/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file behind a mask and a window: in any pieces it gives what it gives in one, which is UTF-8
 * within its caps.
 *
 * Input: offset, limit, lines, bytes, piece, a byte each; how many secrets, and each behind its
 * length; the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "toolset/shown.h"
#include "toolset/window.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 6, SENTENCE_BYTES_MAX = 256 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Pieces of sizes that change, none of them of more than @most bytes. */
static size_t next_piece(unsigned *seed, size_t most, size_t left)
{
    size_t n;

    *seed = *seed * 1103515245U + 12345U;
    n = (*seed >> 16) % (most + 1);
    return n < left ? n : left;
}

static void check_stream(const struct mask *m, const char *file, size_t len, size_t most)
{
    struct mask_stream *s = mask_stream_new(m);
    _cleanup_free_ char *whole = NULL;
    size_t whole_len, at = 0, n = 0, got_len;
    unsigned seed = (unsigned)len;
    const char *got;

    check(s);
    check(mask_text(m, file, len, 0, &whole, &whole_len) == 0);
    check(whole[whole_len] == '\0');
    do {
        size_t piece = next_piece(&seed, most, len - at);

        check(mask_stream_feed(s, file + at, piece, at + piece == len, &got, &got_len) == 0);
        at += piece;
        check(got_len <= whole_len - n && memcmp(got, whole + n, got_len) == 0);
        n += got_len;
    } while (at < len);
    check(n == whole_len);
    mask_stream_free(s);
}

/* @most: of a piece; 0: all in one */
static char *shown(const struct window_request *x, const char *file, size_t len, size_t most,
                   size_t *ret_len)
{
    struct window *w = window_new(x);
    unsigned seed = (unsigned)len;
    size_t at = 0;
    char *text;
    int r = 0;

    check(w);
    while (at < len && r == 0) {
        size_t piece = most > 0 ? next_piece(&seed, most, len - at) : len;

        r = window_feed(w, file + at, piece);
        check(r == 0 || r == 1);
        at += piece;
    }
    check(window_text(w, at == len, &text, ret_len) == 0);
    check(text[*ret_len] == '\0' && text_is_utf8(text, *ret_len));
    check(*ret_len <= x->caps.max_bytes + SENTENCE_BYTES_MAX);
    window_free(w);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    _cleanup_free_ char *one = NULL, *many = NULL, *utf8 = NULL;
    size_t at = HEAD, one_len, many_len;
    struct window_request x = {.mask = m, .run_command = "run_command", .count_bytes = UINT64_MAX};

    check(m);
    if (size < HEAD)
        return 0;
    x.offset = data[0];
    x.limit = data[1];
    x.caps = (struct truncate_caps){.max_lines = data[2] + 1U, .max_bytes = data[3] + 1U};
    for (unsigned i = 0; i < data[5] && at < size; i++) {
        size_t len = data[at] < size - at - 1 ? data[at] : size - at - 1;

        if (len >= MASK_SECRET_MIN)
            check(mask_add(m, data + at + 1, len) == 0);
        at += 1 + len;
    }
    check_stream(m, (const char *)data + at, size - at, data[4] + 1U);
    one = shown(&x, (const char *)data + at, size - at, 0, &one_len);
    many = shown(&x, (const char *)data + at, size - at, data[4] + 1U, &many_len);
    check(one_len == many_len && memcmp(one, many, one_len) == 0);
    check(shown_utf8((const char *)data + at, size - at, &utf8, &many_len) == 0);
    check(text_is_utf8(utf8, many_len));
    return 0;
}
