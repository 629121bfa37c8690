/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows. Running out of memory is remembered and told once, when it is taken. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char *bytes; /* NULL: nothing was ever added */
    size_t len, room;
    bool bad; /* no memory: it holds less than it was given */
};

/** buffer_done() - free it, whatever state it is in */
static inline void buffer_done(struct buffer *b)
{
    free(b->bytes);
    *b = (struct buffer){0};
}

/** buffer_reserve() - room for @n more bytes and a NUL; false: no memory */
static inline bool buffer_reserve(struct buffer *b, size_t n)
{
    size_t room = b->room > 0 ? b->room : 64;
    char *more;

    if (b->bad || n >= SIZE_MAX / 4 - b->len)
        b->bad = true;
    if (b->bad || b->len + n < b->room)
        return !b->bad;
    while (room <= b->len + n)
        room += room / 2;
    more = realloc(b->bytes, room);
    if (!more) {
        b->bad = true;
        return false;
    }
    b->bytes = more;
    b->room = room;
    return true;
}

/** buffer_add() - @n bytes behind what is there */
static inline void buffer_add(struct buffer *b, const void *bytes, size_t n)
{
    if (n == 0 || !buffer_reserve(b, n))
        return;
    memcpy(b->bytes + b->len, bytes, n);
    b->len += n;
}

static inline void buffer_add_text(struct buffer *b, const char *text)
{
    buffer_add(b, text, strlen(text));
}

/**
 * buffer_take() - the text, NUL-terminated behind @ret_len (or NULL); the buffer is empty then
 *
 * Return: 0 with *@ret owned by the caller, or -ENOMEM.
 */
static inline int buffer_take(struct buffer *b, char **ret, size_t *ret_len)
{
    if (!buffer_reserve(b, 0)) {
        buffer_done(b);
        return -ENOMEM;
    }
    b->bytes[b->len] = '\0';
    *ret = b->bytes;
    if (ret_len)
        *ret_len = b->len;
    *b = (struct buffer){0};
    return 0;
}
