/* SPDX-License-Identifier: Apache-2.0 */
/* What remains of outputs and listings that are longer than a model is to be shown. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "toolset/truncate.h"
#include "base/guards.h"

/* @from: how many bytes in front of it were cut */
static void assert_output(const char *text, uint64_t lines, uint64_t bytes, size_t from,
                          const char *expected)
{
    struct truncate_caps caps = {.max_lines = lines, .max_bytes = bytes};
    size_t size = strlen(text), len, at;
    _cleanup_free_ char *exact = malloc(size + (size == 0)), *shown = NULL;

    memcpy(exact, text, size); /* without its NUL: a sanitizer sees one byte too far */
    assert_int_equal(truncate_output(exact, size, &caps, &shown, &len, &at), 0);
    assert_string_equal(shown, expected);
    assert_int_equal(len, strlen(expected));
    assert_int_equal(at, from);
}

static void a_short_output_is_untouched(void **state)
{
    (void)state;
    assert_output("a\n\n  b", 10, 100, 0, "a\n\n  b");
    assert_output("a\nb\n", 10, 100, 0, "a\nb"); /* line ends are between lines */
}

static void an_empty_output_stays_empty(void **state)
{
    (void)state;
    assert_output("", 10, 100, 0, "");
}

static void output_of_ten_lines_keeps_the_last_three(void **state)
{
    (void)state;
    assert_output("1\n2\n3\n4\n5\n6\n7\n8\n9\n10", 3, 1000, 14, "8\n9\n10");
    assert_output("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", 3, 1000, 14, "8\n9\n10");
}

static void bytes_are_counted_with_one_for_each_line_end_between(void **state)
{
    static char ten[10 * 21 + 1];

    (void)state;
    for (int i = 0; i < 10; i++) {
        memset(ten + i * 21, '0' + i, 20);
        ten[i * 21 + 20] = '\n';
    }
    assert_output(ten, 100, 45, 168, "88888888888888888888\n99999999999999999999");
    assert_output(ten, 100, 41, 168, "88888888888888888888\n99999999999999999999");
    assert_output(ten, 100, 40, 189, "99999999999999999999");
}

static void a_line_is_kept_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_output("short\n01234567890123456789012345678901234567890123456789", 100, 52, 6,
                  "01234567890123456789012345678901234567890123456789");
    assert_output("0123456789012345678901234567890123456789\nlast", 100, 20, 41, "last");
    assert_output("first\n0123456789012345678901234567890123456789\nlast", 100, 20, 47, "last");
}

static void of_one_line_that_is_too_wide_its_end_is_kept(void **state)
{
    (void)state;
    assert_output("01234567890123456789", 100, 10, 10, "0123456789");
    assert_output("more\nabcdefghij01234567890\n", 100, 10, 16, "1234567890");
}

static void a_character_is_kept_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_output("\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", 100, 7, 6, "\u00e9\u00e9\u00e9");
    assert_output("\U0001F600\U0001F600", 100, 5, 4, "\U0001F600");
    assert_output("\U0001F600", 100, 3, 4, "");
}

static void an_output_at_exactly_both_caps_is_untouched(void **state)
{
    (void)state;
    assert_output("abc\ndef\nghi", 3, 11, 0, "abc\ndef\nghi");
    assert_output("abc\ndef\nghi\n", 3, 11, 0, "abc\ndef\nghi");
    assert_output("abc\ndef\nghi\n", 3, 10, 4, "def\nghi");
    assert_output("abcdefghij", 1, 10, 0, "abcdefghij");
}

static void each_update_of_a_progress_bar_is_a_line(void **state)
{
    (void)state;
    assert_output("10%\r20%\r30%\rdone\n", 2, 100, 8, "30%\ndone");
    assert_output("10%\r20%\r", 10, 100, 0, "10%\n20%");
    assert_output("a\r\nb\r\n\r\nc\r\n", 10, 100, 0, "a\nb\n\nc");
    assert_output("a\r\r\nb\n\rc", 10, 100, 0, "a\n\nb\n\nc");
    assert_output("a\r\nb\r\nc", 2, 100, 3, "b\nc");
}

static void an_output_that_is_one_line_end_has_an_empty_body(void **state)
{
    (void)state;
    assert_output("\n", 10, 100, 0, "");
    assert_output("\r\n", 10, 100, 0, "");
    assert_output("\n\n", 10, 100, 0, "\n");
    assert_output("\nx", 10, 100, 0, "\nx");
    assert_output("\nx", 1, 100, 1, "x");
}

static void assert_list(const char *const *lines, uint64_t max_lines, uint64_t max_bytes,
                        const char *expected, size_t n)
{
    struct truncate_caps caps = {.max_lines = max_lines, .max_bytes = max_bytes};
    _cleanup_free_ char *shown = NULL;
    size_t len, count;

    assert_int_equal(truncate_list(lines, &caps, &shown, &len, &count), 0);
    assert_string_equal(shown, expected);
    assert_int_equal(len, strlen(expected));
    assert_int_equal(count, n);
}

static void a_listing_keeps_its_first_lines(void **state)
{
    const char *const lines[] = {"a", "bb", "ccc", NULL}, *const none[] = {NULL};

    (void)state;
    assert_list(lines, 10, 100, "a\nbb\nccc", 3);
    assert_list(lines, 3, 8, "a\nbb\nccc", 3);
    assert_list(lines, 3, 7, "a\nbb", 2);
    assert_list(lines, 2, 100, "a\nbb", 2);
    assert_list(lines + 2, 10, 2, "", 0);
    assert_list(none, 10, 100, "", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_output_is_untouched),
        cmocka_unit_test(an_empty_output_stays_empty),
        cmocka_unit_test(output_of_ten_lines_keeps_the_last_three),
        cmocka_unit_test(bytes_are_counted_with_one_for_each_line_end_between),
        cmocka_unit_test(a_line_is_kept_whole_or_not_at_all),
        cmocka_unit_test(of_one_line_that_is_too_wide_its_end_is_kept),
        cmocka_unit_test(a_character_is_kept_whole_or_not_at_all),
        cmocka_unit_test(an_output_at_exactly_both_caps_is_untouched),
        cmocka_unit_test(each_update_of_a_progress_bar_is_a_line),
        cmocka_unit_test(an_output_that_is_one_line_end_has_an_empty_body),
        cmocka_unit_test(a_listing_keeps_its_first_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
