/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounded reader and writer: the only pointer arithmetic on bytes from outside. Both are
 * sticky: the first failure marks them bad, later calls do nothing, and the caller tests once.
 * No allocation and no system call, so that init (PID 1 of a sandbox) shares them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

static inline struct reader reader_over(const void *data, size_t len)
{
    const uint8_t *p = data;

    return (struct reader){.p = p, .end = p + len, .bad = false};
}

static inline size_t reader_left(const struct reader *r)
{
    return r->bad ? 0 : (size_t)(r->end - r->p);
}

/** reader_take() - a view of the next @n bytes, or NULL when fewer are left (then @r is bad) */
static inline const uint8_t *reader_take(struct reader *r, size_t n)
{
    if (r->bad || n > (size_t)(r->end - r->p)) { /* compare lengths; never form p + n first */
        r->bad = true;
        return NULL;
    }
    const uint8_t *q = r->p;
    r->p += n;
    return q;
}

static inline uint16_t reader_u16(struct reader *r)
{
    const uint8_t *q = reader_take(r, 2);

    return q ? (uint16_t)(q[0] | q[1] << 8) : 0;
}

static inline uint32_t reader_u32(struct reader *r)
{
    const uint8_t *q = reader_take(r, 4);

    return q ? (uint32_t)q[0] | (uint32_t)q[1] << 8 | (uint32_t)q[2] << 16 | (uint32_t)q[3] << 24
             : 0;
}

static inline uint64_t reader_u64(struct reader *r)
{
    uint64_t low = reader_u32(r);

    return low | (uint64_t)reader_u32(r) << 32;
}

struct writer {
    uint8_t *start, *p, *end;
    bool bad; /* the buffer was too small: nothing of it may be sent */
};

static inline struct writer writer_over(void *buf, size_t size)
{
    uint8_t *p = buf;

    return (struct writer){.start = p, .p = p, .end = p + size, .bad = false};
}

static inline size_t writer_len(const struct writer *w)
{
    return (size_t)(w->p - w->start);
}

/** writer_reserve() - room for @n bytes to be filled in, or NULL (then @w is bad) */
static inline uint8_t *writer_reserve(struct writer *w, size_t n)
{
    if (w->bad || n > (size_t)(w->end - w->p)) {
        w->bad = true;
        return NULL;
    }
    uint8_t *q = w->p;
    w->p += n;
    return q;
}

static inline void writer_bytes(struct writer *w, const void *data, size_t n)
{
    uint8_t *q = writer_reserve(w, n);

    if (q && n > 0)
        memcpy(q, data, n);
}

static inline void writer_u16(struct writer *w, uint16_t v)
{
    uint8_t b[2] = {(uint8_t)v, (uint8_t)(v >> 8)};

    writer_bytes(w, b, sizeof b);
}

static inline void writer_u32(struct writer *w, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};

    writer_bytes(w, b, sizeof b);
}

static inline void writer_u64(struct writer *w, uint64_t v)
{
    writer_u32(w, (uint32_t)v);
    writer_u32(w, (uint32_t)(v >> 32));
}
