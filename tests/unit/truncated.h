/* SPDX-License-Identifier: Apache-2.0 */
/* The truncated twin of a decoder's test: every shorter message, each in memory of its own. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

/* Whether a message of @len bytes ends where one of its fields ends. */
static inline bool ends_between_fields(const void *data, size_t len)
{
    struct reader r = reader_over(data, len);
    struct field f;

    while (field_next(&r, &f))
        ;
    return !r.bad;
}

/**
 * decode_truncated() - give @decode every shorter form of a message
 * @decode: 0 or a negative errno
 *
 * A message that ends inside a field must be refused; one that only lacks fields may be taken.
 * The memory is exact, so that a sanitizer or valgrind sees one byte too far.
 */
static inline void decode_truncated(const struct writer *w, int (*decode)(struct reader message))
{
    assert_false(w->bad);
    for (size_t len = 0; len < writer_len(w); len++) {
        uint8_t *exact = malloc(len > 0 ? len : 1);

        memcpy(exact, w->start, len);
        if (decode(reader_over(exact, len)) == 0 && !ends_between_fields(exact, len))
            fail_msg("%zu of %zu bytes were taken", len, writer_len(w));
        free(exact);
    }
    assert_int_equal(decode(reader_over(w->start, writer_len(w))), 0);
}
