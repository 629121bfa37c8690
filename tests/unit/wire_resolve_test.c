/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to `resolve` and its answers: there and back, cut short, and odd. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/resolve.h"
#include "base/guards.h"

#define LABEL_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NAME_253                                                                                   \
    LABEL_63 "." LABEL_63 "." LABEL_63 "."                                                         \
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void a_question_comes_as_it_was_asked(void **state)
{
    static const char *const names[] = {"example.org", "a", "_srv._tcp.x-y.example",
                                        "1.2.3.example", NAME_253};
    uint8_t buf[RESOLVE_PACKET_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char name[RESOLVE_NAME_MAX + 1];
        uint32_t id = 0;
        size_t n = resolve_question_encode(0xfeedbeef, names[i], buf, sizeof buf);

        assert_int_equal(n, 5 + strlen(names[i]));
        assert_int_equal(resolve_question_parse(buf, n, &id, name), 0);
        assert_int_equal(id, 0xfeedbeef);
        assert_string_equal(name, names[i]);
    }
}

static void a_question_is_laid_out_as_the_header_says(void **state)
{
    static const uint8_t expected[] = {4, 3, 2, 1, 1, 'a', '.', 'b'};
    uint8_t buf[RESOLVE_PACKET_MAX];

    (void)state;
    assert_int_equal(resolve_question_encode(0x01020304, "a.b", buf, sizeof buf), sizeof expected);
    assert_memory_equal(buf, expected, sizeof expected);
    assert_int_equal(resolve_question_encode(1, "a.b", buf, sizeof expected - 1), 0);
}

static void what_is_no_name_is_not_asked(void **state)
{
    static const char *const names[] = {
        "",    ".",   "a.",       ".a",           "a..b",         "A.b", "a b", "a%b",
        "a/b", "a\n", "\xc3\xa4", (LABEL_63 "a"), (NAME_253 "a"), "a:b", "*.a"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint8_t buf[512] = {1, 0, 0, 0, 1};
        char name[RESOLVE_NAME_MAX + 1];
        size_t len = strlen(names[i]);
        uint32_t id;

        assert_int_equal(resolve_question_encode(1, names[i], buf, sizeof buf), 0);
        memcpy(buf + 5, names[i], len);
        assert_int_equal(resolve_question_parse(buf, 5 + len, &id, name), -EPROTO);
    }
}

static void a_question_with_a_zero_byte_or_of_another_kind_is_refused(void **state)
{
    static const uint8_t zero[] = {1, 0, 0, 0, 1, 'a', 0, 'b'}, kind[] = {1, 0, 0, 0, 2, 'a'};
    char name[RESOLVE_NAME_MAX + 1] = "kept";
    uint32_t id = 7;

    (void)state;
    assert_int_equal(resolve_question_parse(zero, sizeof zero, &id, name), -EPROTO);
    assert_int_equal(resolve_question_parse(kind, sizeof kind, &id, name), -EPROTO);
    for (size_t n = 0; n <= 5; n++)
        assert_int_equal(resolve_question_parse(zero, n, &id, name), -EPROTO);
    assert_int_equal(id, 7);
    assert_string_equal(name, "kept");
}

static struct resolve_answer full_answer(void)
{
    struct resolve_answer x = {.id = 9, .status = RESOLVE_FOUND, .n = RESOLVE_ADDRESSES_MAX};

    for (size_t i = 0; i < x.n; i++) {
        x.addresses[i].family = i % 2 ? 4 : 6;
        memset(x.addresses[i].bytes, (int)i, i % 2 ? 4 : 16);
    }
    return x;
}

static void assert_same(const struct resolve_answer *a, const struct resolve_answer *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->addresses, b->addresses, a->n * sizeof a->addresses[0]);
}

static void an_answer_comes_as_it_was_given(void **state)
{
    const struct resolve_answer answers[] = {
        full_answer(), {.id = 1, .status = RESOLVE_NOT_FOUND}, {.id = 2, .status = RESOLVE_FAILED}};
    uint8_t buf[RESOLVE_PACKET_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct resolve_answer got;
        size_t n = resolve_answer_encode(&answers[i], buf, sizeof buf);

        assert_int_equal(n, 8 + 17 * answers[i].n);
        assert_int_equal(resolve_answer_encode(&answers[i], buf, n - 1), 0);
        assert_int_equal(resolve_answer_parse(buf, n, &got), 0);
        assert_same(&answers[i], &got);
    }
}

static void an_answer_that_is_cut_or_too_long_is_refused(void **state)
{
    const struct resolve_answer x = full_answer();
    uint8_t buf[RESOLVE_PACKET_MAX + 1];
    struct resolve_answer got;
    size_t n = resolve_answer_encode(&x, buf, sizeof buf);

    (void)state;
    for (size_t len = 0; len < n; len++)
        assert_int_equal(resolve_answer_parse(buf, len, &got), -EPROTO);
    assert_int_equal(resolve_answer_parse(buf, n + 1, &got), -EPROTO);
}

static void an_answer_that_contradicts_itself_is_refused(void **state)
{
    const struct {
        size_t at;
        uint8_t byte;
    } changes[] = {
        {4, RESOLVE_STATUS__MAX}, /* no status */
        {4, RESOLVE_NOT_FOUND},   /* not found, with addresses */
        {5, 0},                   /* found, with none */
        {5, 33},                  /* more than there may be */
        {6, 1},                   /* a reserved byte */
        {8, 5},                   /* no family */
        {25 + 1 + 4, 1},          /* an IPv4 address with more bytes */
    };
    const struct resolve_answer x = full_answer();
    struct resolve_answer got, bad;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        uint8_t buf[RESOLVE_PACKET_MAX];
        size_t n = resolve_answer_encode(&x, buf, sizeof buf);

        buf[changes[i].at] = changes[i].byte;
        assert_int_equal(resolve_answer_parse(buf, n, &got), -EPROTO);
    }
    bad = x;
    bad.status = RESOLVE_FAILED;
    assert_int_equal(
        resolve_answer_encode(&bad, (uint8_t[RESOLVE_PACKET_MAX]){0}, RESOLVE_PACKET_MAX), 0);
    bad = x;
    bad.addresses[0].family = 0;
    assert_int_equal(
        resolve_answer_encode(&bad, (uint8_t[RESOLVE_PACKET_MAX]){0}, RESOLVE_PACKET_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_comes_as_it_was_asked),
        cmocka_unit_test(a_question_is_laid_out_as_the_header_says),
        cmocka_unit_test(what_is_no_name_is_not_asked),
        cmocka_unit_test(a_question_with_a_zero_byte_or_of_another_kind_is_refused),
        cmocka_unit_test(an_answer_comes_as_it_was_given),
        cmocka_unit_test(an_answer_that_is_cut_or_too_long_is_refused),
        cmocka_unit_test(an_answer_that_contradicts_itself_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
