/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and fields: views stay inside the input, and more bytes never undo an answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_inside(const struct reader *r, const uint8_t *start, const uint8_t *end)
{
    check(r->p >= start && r->p <= r->end && r->end <= end);
}

static void walk_fields(struct reader r)
{
    const uint8_t *start = r.p, *end = r.end;
    struct field f;
    uint64_t large;
    uint32_t small;

    while (field_next(&r, &f)) {
        check_inside(&f.value, start, end);
        const char *s = field_string(&f);
        if (s)
            check(strlen(s) + 1 == reader_left(&f.value));
        check(!(field_u32(&f, &small) && field_u64(&f, &large)));
        start = f.value.end; /* fields do not overlap */
    }
    check(!field_next(&r, &f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum parse_result before = PARSE_MORE;
    struct frame f, first;
    struct reader payload;

    for (size_t len = 0; len <= size; len++) {
        enum parse_result r = frame_parse(data, len, &f, &payload);

        if (before != PARSE_MORE)
            check(r == before);
        if (r == PARSE_DONE) {
            check_inside(&payload, data, data + len);
            check(reader_left(&payload) == f.length && f.length <= FRAME_PAYLOAD_MAX);
            check(before == PARSE_MORE || memcmp(&f, &first, sizeof f) == 0);
            first = f;
        }
        before = r;
        if (len > FRAME_HEADER_BYTES + 64 && len + 64 < size)
            len += 31; /* the long middle in larger steps */
    }
    if (before == PARSE_DONE) {
        uint8_t head[FRAME_HEADER_BYTES];

        frame_header(&first, head);
        check(memcmp(head, data, sizeof head) == 0);
        walk_fields(payload);
    }
    if (size > 0)
        walk_fields(reader_over(data, size));
    return 0;
}
