/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and fields: round trips, damage, and every shorter form. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/frame.h"
#include "base/guards.h"

static size_t make_frame(uint8_t *buf, const struct frame *f)
{
    frame_header(f, buf);
    memset(buf + FRAME_HEADER_BYTES, 'p', f->length);
    return FRAME_HEADER_BYTES + f->length;
}

static void a_header_is_little_endian_in_a_fixed_order(void **state)
{
    static const uint8_t expected[FRAME_HEADER_BYTES] = {4, 3, 0, 0, 2, 0, 1, 0,
                                                         8, 7, 6, 5, 0, 0, 0, 0};
    const struct frame f = {.length = 0x304, .type = 2, .flags = FRAME_MORE, .id = 0x05060708};
    uint8_t buf[FRAME_HEADER_BYTES];

    (void)state;
    frame_header(&f, buf);
    assert_memory_equal(buf, expected, sizeof buf);
}

static void a_frame_comes_back_as_it_was_written(void **state)
{
    const struct frame f = {.length = 5, .type = 34, .id = UINT32_MAX};
    uint8_t buf[FRAME_HEADER_BYTES + 8];
    struct frame got;
    struct reader payload;
    size_t len = make_frame(buf, &f);

    (void)state;
    assert_int_equal(frame_parse(buf, len, &got, &payload), PARSE_DONE);
    assert_int_equal(got.length, f.length);
    assert_int_equal(got.type, f.type);
    assert_int_equal(got.flags, f.flags);
    assert_int_equal(got.id, f.id);
    assert_ptr_equal(payload.p, buf + FRAME_HEADER_BYTES);
    assert_int_equal(reader_left(&payload), f.length);
    /* what follows is the next frame's */
    assert_int_equal(frame_parse(buf, sizeof buf, &got, &payload), PARSE_DONE);
    assert_int_equal(reader_left(&payload), f.length);
}

static void only_a_full_frame_may_be_followed_by_another(void **state)
{
    static uint8_t buf[FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX];
    struct frame f = {.length = FRAME_PAYLOAD_MAX, .type = 1, .flags = FRAME_MORE}, got;
    struct reader payload;

    (void)state;
    frame_header(&f, buf);
    assert_int_equal(frame_parse(buf, sizeof buf, &got, &payload), PARSE_DONE);
    assert_int_equal(got.flags, FRAME_MORE);
    f.length--;
    frame_header(&f, buf);
    assert_int_equal(frame_parse(buf, sizeof buf, &got, &payload), PARSE_BAD);
}

static void every_shorter_frame_asks_for_more(void **state)
{
    static uint8_t buf[FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX];
    const uint32_t lengths[] = {0, 1, 33, FRAME_PAYLOAD_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        const struct frame f = {.length = lengths[i], .type = 1};
        size_t whole = make_frame(buf, &f);
        size_t step = whole > 1000 ? 61 : 1;

        for (size_t len = 0; len < whole; len += step) {
            uint8_t *exact = malloc(len > 0 ? len : 1);
            struct frame got = {.type = 4711};
            struct reader payload;

            memcpy(exact, buf, len);
            assert_int_equal(frame_parse(exact, len, &got, &payload), PARSE_MORE);
            assert_int_equal(got.type, 4711); /* results are written on success only */
            free(exact);
        }
    }
}

static void what_can_never_be_a_frame_is_refused_from_its_header(void **state)
{
    const struct frame good = {.length = 0, .type = 1};
    uint8_t buf[FRAME_HEADER_BYTES];
    struct frame got;
    struct reader payload;

    (void)state;
    for (size_t bit = 0; bit < 16; bit++) {
        frame_header(&good, buf);
        buf[6 + bit / 8] |= (uint8_t)(1u << bit % 8);
        /* also FRAME_MORE: only a full frame may ask for another */
        assert_int_equal(frame_parse(buf, sizeof buf, &got, &payload), PARSE_BAD);
    }
    for (size_t at = 12; at < 16; at++) {
        frame_header(&good, buf);
        buf[at] = 1;
        assert_int_equal(frame_parse(buf, sizeof buf, &got, &payload), PARSE_BAD);
    }
    frame_header(&(struct frame){.length = FRAME_PAYLOAD_MAX + 1, .type = 1}, buf);
    assert_int_equal(frame_parse(buf, sizeof buf, &got, &payload), PARSE_BAD);
    frame_header(&(struct frame){.length = UINT32_MAX, .type = 1}, buf);
    assert_int_equal(frame_parse(buf, sizeof buf, &got, &payload), PARSE_BAD);
}

static void fields_come_back_in_order_with_their_values(void **state)
{
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct field f;
    uint32_t small = 0;
    uint64_t large = 0;

    (void)state;
    field_put_u32(&w, 1, 0xFEDCBA98);
    field_put_u64(&w, 2, 0xFEDCBA9876543210);
    field_put_string(&w, 3, "text");
    field_put_bytes(&w, 4, "\0\1\2", 3);
    field_put_bytes(&w, 5, NULL, 0);
    assert_false(w.bad);
    struct reader r = reader_over(buf, writer_len(&w));
    assert_true(field_next(&r, &f) && f.tag == 1 && field_u32(&f, &small));
    assert_true(small == 0xFEDCBA98);
    assert_false(field_u64(&f, &large));
    assert_true(field_next(&r, &f) && f.tag == 2 && field_u64(&f, &large));
    assert_true(large == 0xFEDCBA9876543210);
    assert_false(field_u32(&f, &small));
    assert_true(field_next(&r, &f) && f.tag == 3);
    assert_string_equal(field_string(&f), "text");
    assert_true(field_next(&r, &f) && f.tag == 4);
    assert_int_equal(reader_left(&f.value), 3);
    assert_null(field_string(&f));
    assert_true(field_next(&r, &f) && f.tag == 5);
    assert_int_equal(reader_left(&f.value), 0);
    assert_null(field_string(&f));
    assert_false(field_next(&r, &f));
    assert_false(r.bad);
}

static void a_field_that_is_cut_anywhere_damages_the_message(void **state)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    struct field f;

    (void)state;
    field_put_string(&w, 7, "twelve bytes");
    for (size_t len = 1; len < writer_len(&w); len++) {
        uint8_t *exact = malloc(len);

        memcpy(exact, buf, len);
        struct reader r = reader_over(exact, len);
        assert_false(field_next(&r, &f));
        assert_true(r.bad);
        assert_false(field_next(&r, &f)); /* and stays so */
        free(exact);
    }
}

static void a_field_with_a_reserved_bit_or_a_huge_length_damages_the_message(void **state)
{
    static const uint8_t reserved[] = {1, 0, 0, 1, 0, 0, 0, 0};
    static const uint8_t huge[] = {1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 'x'};
    struct reader r = reader_over(reserved, sizeof reserved);
    struct field f;

    (void)state;
    assert_false(field_next(&r, &f));
    assert_true(r.bad);
    r = reader_over(huge, sizeof huge);
    assert_false(field_next(&r, &f));
    assert_true(r.bad);
}

static void a_string_ends_with_its_only_nul(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool good;
    } rows[] = {{"", 0, false},     {"\0", 1, true},     {"a", 1, false},    {"a\0", 2, true},
                {"a\0b", 3, false}, {"a\0\0", 3, false}, {"\0a\0", 3, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct field f = {.value = reader_over(rows[i].bytes, rows[i].len)};

        assert_int_equal(field_string(&f) != NULL, rows[i].good);
    }
}

static void a_writer_that_is_too_small_turns_bad_and_stays_within(void **state)
{
    (void)state;
    for (size_t size = 0; size < 2 * FIELD_HEADER_BYTES + 4 + 5; size++) {
        uint8_t *exact = malloc(size + 1);
        struct writer w = writer_over(exact, size);

        exact[size] = 'Z';
        field_put_u32(&w, 1, 1);
        field_put_string(&w, 2, "text");
        assert_true(w.bad);
        field_put_bytes(&w, 3, NULL, 0); /* would fit again, but nothing of it may be sent */
        assert_true(w.bad);
        assert_int_equal(exact[size], 'Z');
        free(exact);
    }
}

static void a_reader_never_goes_on_after_a_failure(void **state)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5};
    struct reader r = reader_over(bytes, sizeof bytes);

    (void)state;
    assert_int_equal(reader_u32(&r), 0x04030201);
    assert_int_equal(reader_left(&r), 1);
    assert_int_equal(reader_u16(&r), 0);
    assert_true(r.bad);
    assert_int_equal(reader_left(&r), 0);
    assert_null(reader_take(&r, 1));
    assert_int_equal(reader_u64(&r), 0);
    r = reader_over(bytes, sizeof bytes);
    assert_null(reader_take(&r, SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_little_endian_in_a_fixed_order),
        cmocka_unit_test(a_frame_comes_back_as_it_was_written),
        cmocka_unit_test(only_a_full_frame_may_be_followed_by_another),
        cmocka_unit_test(every_shorter_frame_asks_for_more),
        cmocka_unit_test(what_can_never_be_a_frame_is_refused_from_its_header),
        cmocka_unit_test(fields_come_back_in_order_with_their_values),
        cmocka_unit_test(a_field_that_is_cut_anywhere_damages_the_message),
        cmocka_unit_test(a_field_with_a_reserved_bit_or_a_huge_length_damages_the_message),
        cmocka_unit_test(a_string_ends_with_its_only_nul),
        cmocka_unit_test(a_writer_that_is_too_small_turns_bad_and_stays_within),
        cmocka_unit_test(a_reader_never_goes_on_after_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
