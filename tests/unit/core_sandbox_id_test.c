/* SPDX-License-Identifier: Apache-2.0 */
/* Ids: their form, what they tell of the place they were made at, and backends in front of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/sandbox_id.h"
#include "base/guards.h"

enum { PREFIX = 3, PART = 4, RANDOM_AT = PREFIX + 3 * PART, LENGTH = SANDBOX_ID_BYTES - 1 };

static const struct place here = {.host = "a host", .boot = "a boot", .uid = 1000};
static const uint64_t some[2] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};

static void an_id_has_its_form(void **state)
{
    char id[SANDBOX_ID_BYTES];

    (void)state;
    sandbox_id_make(&here, some, id);
    assert_int_equal(strlen(id), 29);
    assert_memory_equal(id, "sb-", PREFIX);
    assert_int_equal(strspn(id + PREFIX, "abcdefghijklmnopqrstuvwxyz234567"), LENGTH - PREFIX);
}

static void an_id_is_the_same_for_the_same_place_and_number(void **state)
{
    char one[SANDBOX_ID_BYTES], two[SANDBOX_ID_BYTES];

    (void)state;
    sandbox_id_make(&here, some, one);
    sandbox_id_make(&here, some, two);
    assert_string_equal(one, two);
    sandbox_id_make(&here, (const uint64_t[2]){0, 0}, two);
    assert_memory_equal(one, two, RANDOM_AT);
    assert_string_equal(two + RANDOM_AT, "aaaaaaaaaaaaaa");
    sandbox_id_make(&here, (const uint64_t[2]){UINT64_MAX, UINT64_MAX}, two);
    assert_string_equal(two + RANDOM_AT, "77777777777777");
}

static void seventy_random_bits_each_make_another_id(void **state)
{
    char ids[71][SANDBOX_ID_BYTES];
    uint64_t random[2] = {0, 0};

    (void)state;
    sandbox_id_make(&here, random, ids[70]);
    for (int bit = 0; bit < 70; bit++) {
        random[0] = bit < 35 ? UINT64_C(1) << bit : 0;
        random[1] = bit < 35 ? 0 : UINT64_C(1) << (bit - 35);
        sandbox_id_make(&here, random, ids[bit]);
    }
    for (int i = 0; i < 71; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(ids[i], ids[k]);
}

/* Judges an id that was made at @there, and gives the words of its refusal. */
static int check_from(const struct place *there, struct error *err)
{
    char id[SANDBOX_ID_BYTES];

    *err = (struct error)ERROR_INIT;
    sandbox_id_make(there, some, id);
    return sandbox_id_check(id, &here, err);
}

static void an_id_of_elsewhere_is_refused_for_the_right_reason(void **state)
{
    struct place there = here;
    struct error err;

    (void)state;
    assert_int_equal(check_from(&there, &err), 0);
    assert_int_equal(err.code, 0);

    there.uid = 1001;
    assert_int_equal(check_from(&there, &err), -EINVAL);
    assert_non_null(strstr(err.message, "another user"));
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_true(err.remedy[0] != '\0');

    (void)snprintf(there.boot, sizeof there.boot, "b boot"); /* the outer reason is told */
    assert_int_equal(check_from(&there, &err), -EINVAL);
    assert_non_null(strstr(err.message, "last started"));
    assert_int_equal(err.cls, ERROR_USAGE);

    (void)snprintf(there.host, sizeof there.host, "b host");
    assert_int_equal(check_from(&there, &err), -EINVAL);
    assert_non_null(strstr(err.message, "another host"));
    assert_int_equal(err.cls, ERROR_USAGE);
}

static void what_is_no_id_is_refused(void **state)
{
    static const struct {
        size_t at;
        char c;
    } rows[] = {{0, 'S'},  {2, '_'},  {3, 'A'},  {3, '1'},
                {10, '/'}, {10, '.'}, {28, '8'}, {28, '\0'}};
    char id[SANDBOX_ID_BYTES], longer[SANDBOX_ID_BYTES + 1];
    struct error err = ERROR_INIT;

    (void)state;
    sandbox_id_make(&here, some, id);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char bad[SANDBOX_ID_BYTES];

        memcpy(bad, id, sizeof bad);
        bad[rows[i].at] = rows[i].c;
        err = (struct error)ERROR_INIT;
        assert_int_equal(sandbox_id_check(bad, &here, &err), -EINVAL);
        assert_non_null(strstr(err.message, "not the id"));
        assert_int_equal(err.cls, ERROR_USAGE);
    }
    (void)snprintf(longer, sizeof longer, "%sa", id);
    err = (struct error)ERROR_INIT;
    assert_int_equal(sandbox_id_check(longer, &here, &err), -EINVAL);
    err = (struct error)ERROR_INIT;
    assert_int_equal(sandbox_id_check("", &here, &err), -EINVAL);
    err = (struct error)ERROR_INIT;
    assert_int_equal(sandbox_id_check("..", &here, &err), -EINVAL);
}

static void a_very_long_text_is_cut_in_the_refusal(void **state)
{
    static char text[100000];
    struct error err = ERROR_INIT;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(sandbox_id_check(text, &here, &err), -EINVAL);
    assert_true(strlen(err.message) < 200);
    assert_non_null(strstr(err.message, "not the id"));
}

static void this_place_can_be_read(void **state)
{
    struct place one, two;
    char id[SANDBOX_ID_BYTES];
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(place_read(&one), 0);
    assert_int_equal(place_read(&two), 0);
    assert_string_equal(one.host, two.host);
    assert_string_equal(one.boot, two.boot);
    assert_int_equal(one.uid, geteuid());
    assert_int_equal(strlen(one.boot), 36);
    assert_true(one.host[0] != '\0');
    assert_null(strchr(one.host, '\n'));
    sandbox_id_make(&one, some, id);
    assert_int_equal(sandbox_id_check(id, &two, &err), 0);
}

static void the_backend_stands_in_front_of_a_colon(void **state)
{
    char longest[BACKEND_NAME_BYTES_MAX + 8] = "", too_long[BACKEND_NAME_BYTES_MAX + 8] = "";
    char backend[BACKEND_NAME_BYTES_MAX + 1];

    (void)state;
    assert_string_equal(sandbox_id_split("sb-abc", backend), "sb-abc");
    assert_string_equal(backend, "local");
    assert_string_equal(sandbox_id_split("local:sb-abc", backend), "sb-abc");
    assert_string_equal(backend, "local");
    assert_string_equal(sandbox_id_split("e2-b:i:j/k", backend), "i:j/k");
    assert_string_equal(backend, "e2-b");
    assert_string_equal(sandbox_id_split("x:", backend), "");
    assert_string_equal(sandbox_id_split("", backend), "");
    assert_string_equal(backend, "local");
    assert_null(sandbox_id_split(":x", backend));
    assert_null(sandbox_id_split("A:x", backend));
    assert_null(sandbox_id_split("a-:x", backend));
    assert_null(sandbox_id_split("../a:x", backend));
    memset(longest, 'b', BACKEND_NAME_BYTES_MAX);
    memset(too_long, 'b', BACKEND_NAME_BYTES_MAX + 1);
    longest[BACKEND_NAME_BYTES_MAX] = too_long[BACKEND_NAME_BYTES_MAX + 1] = ':';
    assert_string_equal(sandbox_id_split(longest, backend), "");
    assert_int_equal(strlen(backend), BACKEND_NAME_BYTES_MAX);
    assert_null(sandbox_id_split(too_long, backend));
}

static void names_of_backends_have_a_grammar(void **state)
{
    static const char *const good[] = {"a", "local", "e2b", "a-b", "a--b", "z9"};
    static const char *const bad[] = {"",    "-",   "-a",  "a-",  "9a",       "A",  "aB",
                                      "a_b", "a.b", "a/b", "a b", "\xc3\xa4", "a\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(backend_is_name(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(backend_is_name(bad[i]));
    assert_true(backend_is_name("abcdefghijklmnopqrstuvwxyz012345"));
    assert_false(backend_is_name("abcdefghijklmnopqrstuvwxyz0123456"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_its_form),
        cmocka_unit_test(an_id_is_the_same_for_the_same_place_and_number),
        cmocka_unit_test(seventy_random_bits_each_make_another_id),
        cmocka_unit_test(an_id_of_elsewhere_is_refused_for_the_right_reason),
        cmocka_unit_test(what_is_no_id_is_refused),
        cmocka_unit_test(a_very_long_text_is_cut_in_the_refusal),
        cmocka_unit_test(this_place_can_be_read),
        cmocka_unit_test(the_backend_stands_in_front_of_a_colon),
        cmocka_unit_test(names_of_backends_have_a_grammar),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
