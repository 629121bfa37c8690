/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and fields: the envelope of the sandbox protocol. */
#include "wire/frame.h"

#include <endian.h>

#include "base/guards.h"

enum parse_result frame_parse(const void *data, size_t len, struct frame *ret,
                              struct reader *ret_payload)
{
    struct reader r = reader_over(data, len);
    struct frame f = {0};
    uint32_t zero;

    if (len < FRAME_HEADER_BYTES)
        return PARSE_MORE;
    f.length = reader_u32(&r);
    f.type = reader_u16(&r);
    f.flags = reader_u16(&r);
    f.id = reader_u32(&r);
    zero = reader_u32(&r);
    if (f.length > FRAME_PAYLOAD_MAX || (f.flags & ~FRAME_MORE) != 0 || zero != 0)
        return PARSE_BAD;
    if (f.flags & FRAME_MORE && f.length != FRAME_PAYLOAD_MAX)
        return PARSE_BAD; /* or a message could go on for ever without growing */
    if (f.length > reader_left(&r))
        return PARSE_MORE;
    *ret_payload = reader_over(reader_take(&r, f.length), f.length);
    *ret = f;
    return PARSE_DONE;
}

void frame_header(const struct frame *f, uint8_t buf[static FRAME_HEADER_BYTES])
{
    const uint32_t words[] = {htole32(f->length), htole32((uint32_t)f->flags << 16 | f->type),
                              htole32(f->id), 0};
    _Static_assert(sizeof words == FRAME_HEADER_BYTES, "the header has four words");

    memcpy(buf, words, sizeof words);
}

bool field_next(struct reader *r, struct field *ret)
{
    if (reader_left(r) == 0)
        return false;
    uint16_t tag = reader_u16(r);
    uint16_t zero = reader_u16(r);
    uint32_t len = reader_u32(r);
    const uint8_t *value = reader_take(r, len);

    if (!value || zero != 0) {
        r->bad = true;
        return false;
    }
    *ret = (struct field){.tag = tag, .value = reader_over(value, len)};
    return true;
}

bool field_u32(const struct field *f, uint32_t *ret)
{
    struct reader r = f->value;

    if (reader_left(&r) != sizeof *ret)
        return false;
    *ret = reader_u32(&r);
    return true;
}

bool field_u64(const struct field *f, uint64_t *ret)
{
    struct reader r = f->value;

    if (reader_left(&r) != sizeof *ret)
        return false;
    *ret = reader_u64(&r);
    return true;
}

const char *field_string(const struct field *f)
{
    size_t len = reader_left(&f->value);

    if (len == 0 || memchr(f->value.p, '\0', len) != f->value.end - 1)
        return NULL;
    return (const char *)f->value.p;
}

static uint8_t *field_begin(struct writer *w, uint16_t tag, size_t len)
{
    if (len > MESSAGE_BYTES_MAX) {
        w->bad = true;
        return NULL;
    }
    writer_u16(w, tag);
    writer_u16(w, 0);
    writer_u32(w, (uint32_t)len);
    return writer_reserve(w, len);
}

void field_put_bytes(struct writer *w, uint16_t tag, const void *data, size_t len)
{
    uint8_t *q = field_begin(w, tag, len);

    if (q && len > 0)
        memcpy(q, data, len);
}

void field_put_string(struct writer *w, uint16_t tag, const char *s)
{
    field_put_bytes(w, tag, s, strlen(s) + 1);
}

void field_put_u32(struct writer *w, uint16_t tag, uint32_t v)
{
    uint8_t *q = field_begin(w, tag, sizeof v);

    if (q) {
        struct writer sub = writer_over(q, sizeof v);
        writer_u32(&sub, v);
    }
}

void field_put_u64(struct writer *w, uint16_t tag, uint64_t v)
{
    uint8_t *q = field_begin(w, tag, sizeof v);

    if (q) {
        struct writer sub = writer_over(q, sizeof v);
        writer_u64(&sub, v);
    }
}
