/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masking: every occurrence of a set of secrets in a text is replaced by "***". Occurrences that
 * overlap or touch become one. The line ends (LF) of what is replaced stay, so that the lines
 * behind it keep their numbers. It works on bytes and comes before any decoding or cutting.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MASK_SECRET_MIN = 4 };

struct mask; /* a set of secrets */

/** mask_new() - an empty set, or NULL without memory; mask_free(): NULL is harmless */
struct mask *mask_new(void);
void mask_free(struct mask *m);
void mask_freep(struct mask **m);

/** mask_add() - one more; a copy is kept, and wiped when freed. 0; -EINVAL below 4 bytes; -ENOMEM
 */
int mask_add(struct mask *m, const void *secret, size_t len);

/** mask_longest() - bytes of the longest secret; 0 when there is none */
size_t mask_longest(const struct mask *m);

enum mask_cut {
    MASK_CUT_START = 1 << 0, /* bytes in front of the text were dropped: its beginning may be the
                                end of a secret, and such a beginning is masked too */
    MASK_CUT_END = 1 << 1,   /* the same at its end */
};

/**
 * mask_text() - a masked copy
 * @cut: of enum mask_cut
 *
 * Return: 0 with *@ret owned by the caller, NUL-terminated behind *@ret_len; or -ENOMEM.
 */
int mask_text(const struct mask *m, const void *text, size_t len, unsigned cut, char **ret,
              size_t *ret_len);

/**
 * mask_stream - the same over a text that comes in pieces
 *
 * Bytes that could be the beginning of a secret are held back until what follows is known.
 */
struct mask_stream;

/** mask_stream_new() - @m is borrowed until mask_stream_free(). NULL without memory */
struct mask_stream *mask_stream_new(const struct mask *m);

/**
 * mask_stream_feed() - the next piece, and what can be said of it
 * @end: the text ends with it
 * @ret: a view until the next call
 *
 * Return: 0 or -ENOMEM.
 */
int mask_stream_feed(struct mask_stream *s, const void *piece, size_t len, bool end,
                     const char **ret, size_t *ret_len);
void mask_stream_free(struct mask_stream *s);
