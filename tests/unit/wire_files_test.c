/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of file operations: round trips, defaults, damage, and names that no entry may have.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/control.h"
#include "wire/files.h"
#include "truncated.h"
#include "base/guards.h"

enum { UNKNOWN_TAG = 60000, REQUEST_EXTRA = 128 };

static struct reader message(const struct writer *w)
{
    return reader_over(w->start, writer_len(w));
}

static int decode_request(struct reader m)
{
    struct file_request x;

    return file_request_decode(m, &x);
}

static int decode_info(struct reader m)
{
    struct file_info x;

    return file_info_decode(m, &x);
}

/* 0 when all of it is entries, as decode_truncated() wants it. */
static int decode_entries(struct reader m)
{
    struct file_info x;
    int r;

    do
        r = file_entry_next(&m, &x);
    while (r > 0);
    return r;
}

static int decode_fault(struct reader m)
{
    struct file_fault x;

    return file_fault_decode(m, &x) ? 0 : -EPROTO;
}

static const struct file_request full_request = {
    .path = "a/../b\xff",
    .offset = INT64_MAX,
    .length = 5,
    .max_bytes = 6,
    .flags = FILE_INLINE | FILE_MODE_SET | FILE_NO_FOLLOW | FILE_IN_BAND,
    .mode = 07777,
    .data = (const uint8_t *)"x\0y",
    .len = 3,
};

static void a_request_comes_back_as_it_was_written(void **state)
{
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct file_request x;

    (void)state;
    file_request_encode(&w, &full_request);
    assert_int_equal(file_request_decode(message(&w), &x), 0);
    assert_string_equal(x.path, full_request.path);
    assert_true(x.offset == INT64_MAX);
    assert_int_equal(x.length, 5);
    assert_int_equal(x.max_bytes, 6);
    assert_int_equal(x.flags, full_request.flags);
    assert_int_equal(x.mode, 07777);
    assert_int_equal(x.len, 3);
    assert_memory_equal(x.data, "x\0y", 3);
    assert_true(x.data >= buf && x.data + x.len <= w.p);
    decode_truncated(&w, decode_request);
}

static void a_request_fits_the_room_it_is_promised(void **state)
{
    size_t room = strlen(full_request.path) + full_request.len + REQUEST_EXTRA;
    uint8_t *exact = malloc(room);
    struct writer w = writer_over(exact, room);

    (void)state;
    assert_non_null(exact);
    file_request_encode(&w, &full_request);
    assert_false(w.bad);
    free(exact);
}

static void a_request_has_defaults(void **state)
{
    const struct file_request small = {.path = "f", .length = UINT64_MAX, .max_bytes = UINT64_MAX};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct file_request x;

    (void)state;
    field_put_string(&w, TAG_PATH, "/f");
    assert_int_equal(file_request_decode(message(&w), &x), 0);
    assert_int_equal(x.offset, 0);
    assert_true(x.length == UINT64_MAX);
    assert_true(x.max_bytes == UINT64_MAX);
    assert_int_equal(x.flags, 0);
    assert_null(x.data);
    assert_int_equal(x.len, 0);
    w = writer_over(buf, sizeof buf); /* what is a default is not sent */
    file_request_encode(&w, &small);
    assert_int_equal(writer_len(&w), FIELD_HEADER_BYTES + 2 + FIELD_HEADER_BYTES + 4);
    assert_int_equal(file_request_decode(message(&w), &x), 0);
    assert_true(x.length == UINT64_MAX && x.max_bytes == UINT64_MAX);
}

static void an_empty_inline_content_is_a_content(void **state)
{
    const struct file_request empty = {
        .path = "f", .flags = FILE_INLINE, .data = (const uint8_t *)""};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct file_request x;

    (void)state;
    file_request_encode(&w, &empty);
    assert_int_equal(file_request_decode(message(&w), &x), 0);
    assert_non_null(x.data);
    assert_int_equal(x.len, 0);
}

static struct writer request_with(uint8_t *buf, size_t size)
{
    struct writer w = writer_over(buf, size);

    field_put_string(&w, TAG_PATH, "f");
    return w;
}

static void a_request_out_of_range_is_refused(void **state)
{
    static const uint16_t numbers[] = {TAG_FILE_FLAGS, TAG_OFFSET, TAG_LENGTH, TAG_MAX_BYTES,
                                       TAG_MODE};
    uint8_t buf[256];
    struct writer w = request_with(buf, sizeof buf);

    (void)state;
    field_put_u64(&w, TAG_OFFSET, (uint64_t)INT64_MAX + 1);
    assert_int_equal(decode_request(message(&w)), -EPROTO);
    w = request_with(buf, sizeof buf);
    field_put_u32(&w, TAG_MODE, 010000);
    assert_int_equal(decode_request(message(&w)), -EPROTO);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) { /* of a size that no number has */
        w = request_with(buf, sizeof buf);
        field_put_bytes(&w, numbers[i], "123", 3);
        assert_int_equal(decode_request(message(&w)), -EPROTO);
    }
    w = request_with(buf, sizeof buf); /* the content is said to be inline, and is not there */
    field_put_u32(&w, TAG_FILE_FLAGS, FILE_INLINE);
    assert_int_equal(decode_request(message(&w)), -EPROTO);
    w = request_with(buf, sizeof buf); /* the mode likewise */
    field_put_u32(&w, TAG_FILE_FLAGS, FILE_MODE_SET);
    assert_int_equal(decode_request(message(&w)), -EPROTO);
    field_put_u32(&w, TAG_MODE, 0);
    assert_int_equal(decode_request(message(&w)), 0);
}

static void a_path_has_1_to_4095_bytes(void **state)
{
    static char path[FILE_PATH_BYTES_MAX + 2];
    static uint8_t buf[2 * FILE_PATH_BYTES_MAX];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    assert_int_equal(decode_request(reader_over(buf, 0)), -EPROTO);
    field_put_string(&w, TAG_PATH, "");
    assert_int_equal(decode_request(message(&w)), -EPROTO);
    w = writer_over(buf, sizeof buf);
    field_put_bytes(&w, TAG_PATH, "a\0b", 4);
    assert_int_equal(decode_request(message(&w)), -EPROTO);
    memset(path, 'p', FILE_PATH_BYTES_MAX);
    w = writer_over(buf, sizeof buf);
    field_put_string(&w, TAG_PATH, path);
    assert_int_equal(decode_request(message(&w)), 0);
    path[FILE_PATH_BYTES_MAX] = 'p';
    w = writer_over(buf, sizeof buf);
    field_put_string(&w, TAG_PATH, path);
    assert_int_equal(decode_request(message(&w)), -EPROTO);
}

static const struct file_info link_info = {
    .name = "a link",
    .kind = FILE_LINK,
    .mode = 0777,
    .size = 7,
    .mtime_ns = UINT64_MAX,
    .link_target = "../t/\xfe",
    .target_kind = FILE_FOLDER,
};

static void what_a_file_is_comes_back(void **state)
{
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct file_info x;

    (void)state;
    file_info_encode(&w, &link_info);
    assert_int_equal(file_info_decode(message(&w), &x), 0);
    assert_string_equal(x.name, link_info.name);
    assert_int_equal(x.kind, FILE_LINK);
    assert_int_equal(x.target_kind, FILE_FOLDER);
    assert_int_equal(x.mode, 0777);
    assert_int_equal(x.size, 7);
    assert_true(x.mtime_ns == UINT64_MAX);
    assert_string_equal(x.link_target, link_info.link_target);
    decode_truncated(&w, decode_info);
    w = writer_over(buf, sizeof buf);
    field_put_u32(&w, TAG_KIND, FILE_FIFO);
    assert_int_equal(file_info_decode(message(&w), &x), 0);
    assert_null(x.name);
    assert_null(x.link_target);
    assert_int_equal(x.size, 0);
}

static void what_no_file_is_is_refused(void **state)
{
    static const struct {
        uint16_t tag;
        uint64_t value;
        bool wide;
    } rows[] = {
        {TAG_KIND, FILE_KIND__MAX, false},
        {TAG_KIND, (uint32_t)FILE_KIND__MAX << 16 | FILE_LINK, false},
        {TAG_KIND, UINT32_MAX, false},
        {TAG_MODE, 010000, false},
        {TAG_SIZE, (uint64_t)INT64_MAX + 1, true},
        {TAG_SIZE, 1, false}, /* a number of the wrong size */
        {TAG_MTIME_NS, 1, false},
        {TAG_MODE, 1, true},
        {TAG_KIND, 0, true},
        {TAG_NAME, 0, false}, /* no text */
        {TAG_LINK_TARGET, 0, false},
    };
    uint8_t buf[128];

    (void)state;
    assert_int_equal(decode_info(reader_over(buf, 0)), -EPROTO); /* without a kind */
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct writer w = writer_over(buf, sizeof buf);

        field_put_u32(&w, TAG_KIND, FILE_REGULAR);
        assert_int_equal(decode_info(message(&w)), 0);
        if (rows[i].wide)
            field_put_u64(&w, rows[i].tag, rows[i].value);
        else
            field_put_u32(&w, rows[i].tag, (uint32_t)rows[i].value);
        assert_int_equal(decode_info(message(&w)), -EPROTO);
    }
}

static void entries_follow_each_other(void **state)
{
    const struct file_info file = {.name = "..a", .kind = FILE_REGULAR, .mode = 0644};
    size_t size = file_entry_size(&link_info) + file_entry_size(&file);
    uint8_t *exact = malloc(size);
    struct writer w = writer_over(exact, size);
    struct file_info x;

    (void)state;
    assert_non_null(exact);
    file_entry_encode(&w, &link_info);
    file_entry_encode(&w, &file);
    assert_false(w.bad);
    struct reader r = message(&w);
    assert_int_equal(file_entry_next(&r, &x), 1);
    assert_string_equal(x.name, link_info.name);
    assert_string_equal(x.link_target, link_info.link_target);
    assert_int_equal(x.target_kind, FILE_FOLDER);
    assert_int_equal(file_entry_next(&r, &x), 1);
    assert_string_equal(x.name, "..a");
    assert_null(x.link_target);
    assert_int_equal(file_entry_next(&r, &x), 0);
    assert_int_equal(file_entry_next(&r, &x), 0);
    decode_truncated(&w, decode_entries);
    free(exact);
}

static void a_full_buffer_never_holds_half_an_entry(void **state)
{
    uint8_t buf[256];

    (void)state;
    for (size_t size = 0; size < file_entry_size(&link_info); size++) {
        struct writer w = writer_over(buf, size);

        file_entry_encode(&w, &link_info);
        assert_true(w.bad);
    }
    struct writer w = writer_over(buf, file_entry_size(&link_info)); /* of a link it is exact */
    file_entry_encode(&w, &link_info);
    assert_false(w.bad);
    assert_int_equal(writer_len(&w), file_entry_size(&link_info));
}

static void an_entry_has_a_name_of_one_step(void **state)
{
    static const char *const names[] = {"", ".", "..", "/", "a/b", "../x", "a/", "/etc"};
    struct file_info x, before;
    uint8_t buf[128];

    (void)state;
    memset(&before, 0x5a, sizeof before);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct file_info bad = {.name = names[i], .kind = FILE_REGULAR};
        struct writer w = writer_over(buf, sizeof buf);

        file_entry_encode(&w, &bad);
        struct reader r = message(&w);
        memcpy(&x, &before, sizeof x);
        assert_int_equal(file_entry_next(&r, &x), -EPROTO);
        assert_memory_equal(&x, &before, sizeof x); /* results are written on success only */
    }
    const struct file_info nameless = {.kind = FILE_REGULAR};
    struct writer w = writer_over(buf, sizeof buf);
    uint8_t inner[64];
    struct writer n = writer_over(inner, sizeof inner);
    file_info_encode(&n, &nameless);
    field_put_bytes(&w, TAG_ENTRY, inner, writer_len(&n));
    struct reader r = message(&w);
    assert_int_equal(file_entry_next(&r, &x), -EPROTO);
}

static void what_is_damaged_inside_an_entry_is_refused(void **state)
{
    uint8_t buf[256], inner[128];
    struct writer n = writer_over(inner, sizeof inner), w;
    struct file_info x;

    (void)state;
    file_info_encode(&n, &link_info);
    for (size_t len = 0; len < writer_len(&n); len++) { /* a sound field with a cut message in it */
        if (ends_between_fields(inner, len))
            continue;
        w = writer_over(buf, sizeof buf);
        field_put_bytes(&w, TAG_ENTRY, inner, len);
        struct reader r = message(&w);
        assert_int_equal(file_entry_next(&r, &x), -EPROTO);
    }
    w = writer_over(buf,
                    sizeof buf); /* an entry within an entry is a tag that is not known there */
    field_put_bytes(&w, TAG_ENTRY, inner, writer_len(&n));
    n = writer_over(inner, sizeof inner);
    field_put_u32(&n, TAG_KIND, FILE_REGULAR);
    field_put_string(&n, TAG_NAME, "outer");
    field_put_bytes(&n, TAG_ENTRY, buf, 40);
    w = writer_over(buf + 128, sizeof buf - 128);
    field_put_bytes(&w, TAG_ENTRY, inner, writer_len(&n));
    struct reader r = message(&w);
    assert_int_equal(file_entry_next(&r, &x), 1);
    assert_string_equal(x.name, "outer");
    assert_int_equal(file_entry_next(&r, &x), 0);
}

static void unknown_fields_are_skipped(void **state)
{
    const struct file_info file = {.name = "f", .kind = FILE_REGULAR};
    struct file_request request;
    struct file_fault fault;
    struct file_info x;
    uint8_t buf[256];
    struct writer w = request_with(buf, sizeof buf);

    (void)state;
    field_put_string(&w, UNKNOWN_TAG, "new");
    assert_int_equal(file_request_decode(message(&w), &request), 0);
    field_put_u32(&w, TAG_ERROR_CODE, ENOENT);
    assert_true(file_fault_decode(message(&w), &fault));
    w = writer_over(buf, sizeof buf);
    field_put_string(&w, UNKNOWN_TAG, "new");
    file_entry_encode(&w, &file);
    field_put_u32(&w, TAG_KIND, UINT32_MAX); /* none of an entry's */
    struct reader r = message(&w);
    assert_int_equal(file_entry_next(&r, &x), 1);
    assert_int_equal(file_entry_next(&r, &x), 0);
    field_put_u32(&w, UNKNOWN_TAG, 1);
    w.p--; /* cut within what is skipped */
    r = message(&w);
    assert_int_equal(file_entry_next(&r, &x), 1);
    assert_int_equal(file_entry_next(&r, &x), -EPROTO);
}

static void a_fault_comes_back_with_what_its_words_need(void **state)
{
    const struct file_fault large = {.code = EFBIG, .path = "/big", .size = 1u << 30, .max = 99};
    const struct file_fault fifo = {.code = EINVAL, .path = "p", .kind = FILE_FIFO, .size = 5};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct file_fault x;
    uint32_t class;

    (void)state;
    file_fault_encode(&w, 1, &large);
    assert_true(file_fault_decode(message(&w), &x));
    assert_int_equal(x.code, EFBIG);
    assert_string_equal(x.path, "/big");
    assert_int_equal(x.size, 1u << 30);
    assert_int_equal(x.max, 99);
    assert_int_equal(number_decode(message(&w), TAG_ERROR_CLASS, &class), 0);
    assert_int_equal(class, 1);
    decode_truncated(&w, decode_fault);
    w = writer_over(buf, sizeof buf);
    file_fault_encode(&w, 0, &fifo);
    assert_true(file_fault_decode(message(&w), &x));
    assert_int_equal(x.kind, FILE_FIFO);
    assert_int_equal(x.size, 0); /* sizes go with EFBIG alone */
}

static void an_error_of_another_sort_is_no_fault(void **state)
{
    static const uint32_t codes[] = {0, 4096, UINT32_MAX};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    field_put_u32(&w, TAG_ERROR_CODE, ENOENT);
    assert_int_equal(decode_fault(message(&w)), -EPROTO); /* no path */
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        w = request_with(buf, sizeof buf);
        field_put_u32(&w, TAG_ERROR_CODE, codes[i]);
        assert_int_equal(decode_fault(message(&w)), -EPROTO);
    }
    w = request_with(buf, sizeof buf);
    assert_int_equal(decode_fault(message(&w)), -EPROTO); /* no code */
    field_put_u32(&w, TAG_ERROR_CODE, EINVAL);
    field_put_u32(&w, TAG_KIND, FILE_KIND__MAX);
    assert_int_equal(decode_fault(message(&w)), -EPROTO);
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < FILE_KIND__MAX; k++) {
        assert_string_not_equal(file_kind_name(k), "?");
        for (uint32_t other = 0; other < k; other++)
            assert_string_not_equal(file_kind_name(k), file_kind_name(other));
    }
    assert_string_equal(file_kind_name(FILE_REGULAR), "file");
    assert_string_equal(file_kind_name(FILE_DEVICE), "device");
    assert_string_equal(file_kind_name(FILE_KIND__MAX), "?");
    assert_string_equal(file_kind_name(UINT32_MAX), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_comes_back_as_it_was_written),
        cmocka_unit_test(a_request_fits_the_room_it_is_promised),
        cmocka_unit_test(a_request_has_defaults),
        cmocka_unit_test(an_empty_inline_content_is_a_content),
        cmocka_unit_test(a_request_out_of_range_is_refused),
        cmocka_unit_test(a_path_has_1_to_4095_bytes),
        cmocka_unit_test(what_a_file_is_comes_back),
        cmocka_unit_test(what_no_file_is_is_refused),
        cmocka_unit_test(entries_follow_each_other),
        cmocka_unit_test(a_full_buffer_never_holds_half_an_entry),
        cmocka_unit_test(an_entry_has_a_name_of_one_step),
        cmocka_unit_test(what_is_damaged_inside_an_entry_is_refused),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(a_fault_comes_back_with_what_its_words_need),
        cmocka_unit_test(an_error_of_another_sort_is_no_fault),
        cmocka_unit_test(every_kind_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
