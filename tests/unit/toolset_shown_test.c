/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, numbers, paths, names and UTF-8 as models are shown them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "toolset/shown.h"
#include "base/guards.h"

static void assert_size(uint64_t bytes, const char *expected)
{
    char text[SHOWN_SIZE_BYTES];

    shown_size(bytes, text);
    assert_string_equal(text, expected);
}

static void sizes_have_one_decimal_and_binary_units(void **state)
{
    (void)state;
    assert_size(0, "0B");
    assert_size(512, "512B");
    assert_size(1023, "1023B");
    assert_size(1024, "1.0KB");
    assert_size(1536, "1.5KB");
    assert_size(1280, "1.2KB"); /* a half, to the even side */
    assert_size(1075, "1.0KB");
    assert_size(1076, "1.1KB");
    assert_size(51200, "50.0KB");
    assert_size(1048575, "1024.0KB");
    assert_size(5 << 20, "5.0MB");
    assert_size(1 << 30, "1024.0MB");
    assert_size(UINT64_MAX, "17592186044416.0MB");
}

static void assert_number(double x, const char *expected)
{
    char text[SHOWN_NUMBER_BYTES];

    shown_number(x, text);
    assert_string_equal(text, expected);
}

static void numbers_have_their_shortest_general_form(void **state)
{
    (void)state;
    assert_number(60, "60");
    assert_number(2.5, "2.5");
    assert_number(1e6, "1e+06");
    assert_number(-0.25, "-0.25");
    assert_number(INFINITY, "inf");
    assert_number(NAN, "nan");
    assert_number(1.0 / 3, "0.333333");
    assert_number(-1.23456e-300, "-1.23456e-300");
}

static void assert_path(const char *path, const char *expected)
{
    _cleanup_free_ char *shown = NULL;

    assert_int_equal(shown_path(path, &shown), 0);
    assert_string_equal(shown, expected);
}

static void a_path_stands_in_single_quotes_or_double_ones(void **state)
{
    (void)state;
    assert_path("/w/a.txt", "'/w/a.txt'");
    assert_path("", "''");
    assert_path("it's", "\"it's\"");
    assert_path("say \"x\"", "'say \"x\"'");
    assert_path("it's \"x\"", "'it\\'s \"x\"'");
    assert_path("a b\u00e9", "'a b\u00e9'");
}

static void what_could_mislead_in_a_path_is_escaped(void **state)
{
    (void)state;
    assert_path("a\nb\tc\rd", "'a\\nb\\tc\\rd'");
    assert_path("\x1b[1m\x7f", "'\\x1b[1m\\x7f'");
    assert_path("a\\b", "'a\\\\b'");
    assert_path("a\xFF\xC3", "'a\\xff\\xc3'");
    assert_path("\xC2\x85", "'\\xc2\\x85'"); /* a line end of the C1 set */
}

static void assert_name(const char *name, const char *expected)
{
    _cleanup_free_ char *shown = NULL;

    assert_int_equal(shown_name(name, &shown), 0);
    assert_string_equal(shown, expected);
}

static void an_ordinary_name_is_shown_as_it_is(void **state)
{
    (void)state;
    assert_name("a.txt", "a.txt");
    assert_name("it's \"a\" \\ $HOME", "it's \"a\" \\ $HOME");
    assert_name("\u00e9\U0001F600", "\u00e9\U0001F600");
}

static void a_name_of_odd_bytes_is_shown_as_a_shell_would_take_it(void **state)
{
    (void)state;
    assert_name("a\nb", "$'a\\nb'");
    assert_name("it's\t\\", "$'it\\'s\\t\\\\'");
    assert_name("caf\xE9"
                "f",
                "$'caf\\xe9f'");
    assert_name("\x1b", "$'\\x1b'");
}

static void assert_utf8(const char *text, size_t len, const char *expected)
{
    _cleanup_free_ char *exact = malloc(len + 1), *shown = NULL;
    size_t shown_len;

    memcpy(exact, text, len);
    assert_int_equal(shown_utf8(exact, len, &shown, &shown_len), 0);
    assert_string_equal(shown, expected);
    assert_int_equal(shown_len, strlen(expected));
}

#define BAD SHOWN_REPLACEMENT

static void what_is_not_utf8_is_replaced(void **state)
{
    static const char long_one[] = "\xF0\x9F\x98\x80";

    (void)state;
    assert_utf8("", 0, "");
    assert_utf8("plain \u00e9\U0001F600", 12, "plain \u00e9\U0001F600");
    assert_utf8("a\xFF"
                "b",
                3, "a" BAD "b");
    assert_utf8("\x80\x80", 2, BAD BAD);
    assert_utf8("\xC3", 1, BAD);
    assert_utf8("\xC3(", 2, BAD "(");
    assert_utf8("\xF0\x9F\x98", 3, BAD); /* the maximal subpart is one */
    assert_utf8("\xF0\x9F\x98x", 4, BAD "x");
    assert_utf8("\xF0\x9F\xC3\xA9", 4, BAD "\u00e9");
    assert_utf8("\xED\xA0\x80", 3, BAD BAD BAD); /* a surrogate */
    assert_utf8("\xC0\xAF", 2, BAD BAD);
    assert_utf8("\xE0\x80\x80", 3, BAD BAD BAD);
    assert_utf8("\xF4\x90\x80\x80", 4, BAD BAD BAD BAD);
    for (size_t n = 1; n < 4; n++)
        assert_int_equal(shown_character(long_one, n, false), 0);
    assert_int_equal(shown_character(long_one, 4, false), 4);
    assert_int_equal(shown_character("\xF4\x90", 2, false), -1);
}

/* All texts of two and three bytes out of those at which something changes. */
static void what_counts_as_utf8_is_the_same_everywhere(void **state)
{
    static const unsigned char edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                          0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
                                          0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    const size_t all = ARRAY_SIZE(edges), n_texts = all * all * all * all;

    (void)state;
    for (size_t i = 0; i < n_texts; i++) {
        char text[4];
        size_t rest = i;
        int n;

        for (size_t k = 0; k < 4; k++, rest /= sizeof edges)
            text[k] = (char)edges[rest % sizeof edges];
        n = shown_character(text, 4, true);
        assert_true(n != 0 && n <= 4 && n >= -3);
        if (n > 0)
            assert_true(text_is_utf8(text, (size_t)n));
        for (size_t k = 1; n < 0 && k <= 4; k++)
            assert_false(text_is_utf8(text, k));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_one_decimal_and_binary_units),
        cmocka_unit_test(numbers_have_their_shortest_general_form),
        cmocka_unit_test(a_path_stands_in_single_quotes_or_double_ones),
        cmocka_unit_test(what_could_mislead_in_a_path_is_escaped),
        cmocka_unit_test(an_ordinary_name_is_shown_as_it_is),
        cmocka_unit_test(a_name_of_odd_bytes_is_shown_as_a_shell_would_take_it),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(what_counts_as_utf8_is_the_same_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
