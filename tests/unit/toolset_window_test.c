/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of lines: what is shown, what is said of the rest, and that pieces make no difference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "toolset/window.h"
#include "base/guards.h"

#define BAD "\xEF\xBF\xBD"

enum { LINES = 2000, BYTES = 51200 };

static struct window_request request(uint64_t offset, uint64_t limit, uint64_t lines,
                                     uint64_t bytes, const struct mask *m)
{
    return (struct window_request){.offset = offset,
                                   .limit = limit,
                                   .caps = {.max_lines = lines, .max_bytes = bytes},
                                   .mask = m,
                                   .run_command = "run_command",
                                   .count_bytes = UINT64_MAX};
}

/* Return: the text, owned by the caller. */
static char *text_in_pieces(const struct window_request *x, const char *file, size_t len,
                            size_t piece)
{
    struct window *w = window_new(x);
    size_t at = 0, text_len;
    char *text;
    int r = 0;

    assert_non_null(w);
    while (r == 0 && at < len) {
        size_t n = piece < len - at ? piece : len - at;
        char *exact = malloc(n);

        memcpy(exact, file + at, n);
        r = window_feed(w, exact, n);
        assert_true(r == 0 || r == 1);
        free(exact);
        at += n;
    }
    assert_int_equal(window_text(w, at == len, &text, &text_len), 0);
    assert_int_equal(text_len, strlen(text));
    window_free(w);
    return text;
}

static void assert_masked_window(const struct window_request *x, const char *file,
                                 const char *expected)
{
    size_t len = strlen(file);

    for (size_t piece = 1; piece <= len + 1; piece++) {
        _cleanup_free_ char *text = text_in_pieces(x, file, len, piece);

        assert_string_equal(text, expected);
    }
}

static void assert_window(const char *file, uint64_t offset, uint64_t limit, uint64_t lines,
                          uint64_t bytes, const char *expected)
{
    _cleanup_(mask_freep) struct mask *none = mask_new();
    struct window_request x = request(offset, limit, lines, bytes, none);

    assert_masked_window(&x, file, expected);
}

static void a_short_file_is_shown_whole(void **state)
{
    (void)state;
    assert_window("a\nb\nc", 1, 0, LINES, BYTES, "a\nb\nc");
    assert_window("a\n\n\n", 1, 0, LINES, BYTES, "a\n\n");
    assert_window("\n", 1, 0, LINES, BYTES, "");
}

static void a_file_of_ten_lines_shows_the_first_three_and_the_offset_to_go_on(void **state)
{
    (void)state;
    assert_window("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", 1, 0, 3, BYTES,
                  "1\n2\n3\n[... 7 more lines; read on with offset=4]");
}

static void offset_and_limit_choose_the_lines(void **state)
{
    (void)state;
    assert_window("1\n2\n3\n4\n5\n6\n7\n8\n9\n10", 3, 2, LINES, BYTES,
                  "3\n4\n[... 6 more lines; read on with offset=5]");
    assert_window("1\n2\n3", 2, 9, LINES, BYTES, "2\n3");
    assert_window("1\n2\n3", 3, 1, LINES, BYTES, "3");
}

static void following_the_offsets_shows_every_line_once(void **state)
{
    static const char file[] = "one\n\nthree\nfour four four\nfive\n\n\neight\nnine\r\nten";
    _cleanup_(mask_freep) struct mask *none = mask_new();
    char all[256] = "";
    size_t n = 0;
    uint64_t offset = 1;

    (void)state;
    while (offset > 0) {
        struct window_request x = request(offset, 0, 3, 16, none);
        _cleanup_free_ char *text = text_in_pieces(&x, file, sizeof file - 1, 7);
        char *marker = strstr(text, "[... "), *next = strstr(text, "offset=");

        offset = next ? strtoumax(next + 7, NULL, 10) : 0;
        if (marker)
            *marker = '\0';
        memcpy(all + n, text, strlen(text));
        n += strlen(text);
    }
    all[n] = '\0';
    assert_string_equal(all, file);
}

static void an_offset_behind_the_end_is_told_with_the_number_of_lines(void **state)
{
    (void)state;
    assert_window("a\nb\n", 99, 0, LINES, BYTES, "(no lines at offset 99; file has 2 lines)");
    assert_window("a\nb", 3, 0, LINES, BYTES, "(no lines at offset 3; file has 2 lines)");
    assert_window("a", 5, 0, LINES, BYTES, "(no lines at offset 5; file has 1 line)");
    assert_window("a\n", 2, 0, LINES, BYTES, "(no lines at offset 2; file has 1 line)");
    assert_window("", 7, 0, LINES, BYTES, "(no lines at offset 7; file has 0 lines)");
}

static void an_empty_file_has_no_lines_at_offset_one(void **state)
{
    (void)state;
    assert_window("", 1, 0, LINES, BYTES, "(no lines at offset 1; file has 0 lines)");
    assert_window("", 0, 0, LINES, BYTES, "(no lines at offset 1; file has 0 lines)");
}

#define TOO_WIDE(line)                                                                             \
    "Line " line " is longer than the output limit of 10B. Use run_command with a command such "   \
    "as cut, head -c or sed to see a part of it."

static void a_first_line_wider_than_the_cap_points_at_a_command(void **state)
{
    (void)state;
    assert_window("01234567890\nb\n", 1, 0, LINES, 10, TOO_WIDE("1"));
    assert_window("a\n01234567890", 2, 0, LINES, 10, TOO_WIDE("2"));
    assert_window("0123456789\nb\n", 1, 1, LINES, 10,
                  "0123456789\n[... 1 more line; read on with offset=2]");
}

static void a_second_line_wider_than_the_cap_is_the_next_window(void **state)
{
    (void)state;
    assert_window("a\n01234567890\nc\n", 1, 0, LINES, 10,
                  "a\n[... 2 more lines; read on with offset=2]");
    assert_window("a\n01234567890\nc\n", 2, 0, LINES, 10, TOO_WIDE("2"));
}

static void the_byte_cap_counts_lines_as_shown_and_one_between_them(void **state)
{
    (void)state;
    assert_window("abc\ndef\nghi\n", 1, 0, LINES, 11, "abc\ndef\nghi");
    assert_window("abc\ndef\nghi", 1, 0, 3, 11, "abc\ndef\nghi");
    assert_window("abc\ndef\nghi\n", 1, 0, LINES, 10,
                  "abc\ndef\n[... 1 more line; read on with offset=3]");
    assert_window("abc\n\n", 1, 0, LINES, 3, "abc\n[... 1 more line; read on with offset=2]");
    assert_window("\xFF\xFF\n", 1, 0, LINES, 6, BAD BAD);
    assert_window("\xFF\xFF\xFF\xFF\n", 1, 0, LINES, 10, TOO_WIDE("1"));
}

static void invalid_utf8_is_replaced(void **state)
{
    (void)state;
    assert_window("a\xFF"
                  "b\n\xC3\n\xF0\x9F\x98\x80\n\xE2\x82",
                  1, 0, LINES, BYTES, "a" BAD "b\n" BAD "\n\xF0\x9F\x98\x80\n" BAD);
    assert_window("\xF0\x9F\xC3\xA9\xE2\x82(", 1, 0, LINES, BYTES, BAD "\xC3\xA9" BAD "(");
}

static void offset_zero_is_the_first_line_and_limit_zero_is_none(void **state)
{
    (void)state;
    assert_window("a\nb\nc", 0, 0, LINES, BYTES, "a\nb\nc");
    assert_window("a\nb\nc", 0, 1, LINES, BYTES, "a\n[... 2 more lines; read on with offset=2]");
}

static void a_last_line_end_adds_no_line(void **state)
{
    (void)state;
    assert_window("a\nb\n", 1, 0, LINES, BYTES, "a\nb");
    assert_window("a\nb", 1, 0, LINES, BYTES, "a\nb");
    assert_window("a\nb\n", 1, 0, 2, BYTES, "a\nb");
    assert_window("a\nb", 1, 0, 2, BYTES, "a\nb");
}

static void exactly_one_line_left_is_one_line(void **state)
{
    (void)state;
    assert_window("a\nb\n", 1, 1, LINES, BYTES, "a\n[... 1 more line; read on with offset=2]");
    assert_window("a\nb", 1, 1, LINES, BYTES, "a\n[... 1 more line; read on with offset=2]");
}

static void nothing_but_lf_ends_a_line(void **state)
{
    (void)state;
    assert_window("a\rb\fc\vd\n\xE2\x80\xA8x\xC2\x85\r\nz", 2, 1, LINES, BYTES,
                  "\xE2\x80\xA8x\xC2\x85\r\n[... 1 more line; read on with offset=3]");
}

static void secrets_are_masked_before_lines_are_cut(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct window_request x;

    (void)state;
    assert_int_equal(mask_add(m, "secret", 6), 0);
    assert_int_equal(mask_add(m, "two\nlines", 9), 0);
    x = request(1, 0, LINES, BYTES, m);
    assert_masked_window(&x, "a secret\nin secretsecret\n", "a ***\nin ***");
    x = request(1, 0, LINES, 8, m);
    assert_masked_window(&x, "secretsecret\nabcd\n", "***\nabcd");
    x = request(1, 0, LINES, 7, m); /* stars of the next line do not fit */
    assert_masked_window(&x, "a\nb secret secret\n", "a\n[... 1 more line; read on with offset=2]");
}

static void a_secret_that_reaches_into_the_window_is_masked(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct window_request x;

    (void)state;
    assert_int_equal(mask_add(m, "two\nlines", 9), 0);
    assert_int_equal(mask_add(m, "and\nthree\nmore", 14), 0);
    assert_int_equal(mask_add(m, "ends\n", 5), 0);
    x = request(2, 1, LINES, BYTES, m);
    assert_masked_window(&x, "two\nlines here\nlast",
                         " here\n[... 1 more line; read on with offset=3]");
    x = request(3, 0, LINES, BYTES, m);
    assert_masked_window(&x, "x and\nthree\nmore and\nend", " and\nend");
    assert_masked_window(&x, "two\nlines two\nlines!\nx", "!\nx");
    x = request(2, 0, LINES, BYTES, m); /* two that touch are one, whose stars are on line 1 */
    assert_masked_window(&x, "ends\ntwo\nlines!\n", "\n!");
    x = request(2, 0, LINES, BYTES, m); /* the whole last line is in it, and still a line */
    assert_masked_window(&x, "two\nlines", "");
    x = request(1, 0, LINES, BYTES, m);
    assert_masked_window(&x, "two\nlines", "***\n");
    x = request(1, 1, LINES, BYTES, m);
    assert_masked_window(&x, "two\nlines", "***\n[... 1 more line; read on with offset=2]");
}

static void a_rest_that_is_too_long_to_count_is_not_counted(void **state)
{
    _cleanup_(mask_freep) struct mask *none = mask_new();
    struct window_request x = request(1, 2, LINES, BYTES, none);
    struct window *w;
    char *text;
    size_t len;

    (void)state;
    x.count_bytes = 6;
    w = window_new(&x);
    assert_int_equal(window_feed(w, "a\nb\n", 4), 0); /* it may be all there is */
    assert_int_equal(window_feed(w, "c\nd", 3), 0);
    assert_int_equal(window_feed(w, "\nee", 3), 1);
    assert_int_equal(window_text(w, false, &text, &len), 0);
    assert_string_equal(text, "a\nb\n[... more lines; read on with offset=3]");
    free(text);
    window_free(w);

    x.count_bytes = 0;
    w = window_new(&x);
    assert_int_equal(window_feed(w, "a\nb\n", 4), 0);
    assert_int_equal(window_feed(w, "c", 1), 1);
    window_free(w);
}

/* @fed: of the file; less than all of it: the rest is not known */
static void assert_facts(const char *file, size_t fed, struct window_request x,
                         struct window_facts expected)
{
    _cleanup_(mask_freep) struct mask *none = mask_new();
    _cleanup_free_ char *text = NULL;
    struct window_facts found;
    struct window *w;
    size_t len;

    x.mask = none;
    w = window_new(&x);
    if (fed > 0)
        assert_true(window_feed(w, file, fed) >= 0);
    assert_int_equal(window_text(w, fed == strlen(file), &text, &len), 0);
    window_facts(w, fed == strlen(file), &found);
    window_free(w);
    assert_int_equal(found.text_len, expected.text_len);
    assert_true(found.text_len <= len);
    assert_int_equal(found.first_line, expected.first_line);
    assert_int_equal(found.lines, expected.lines);
    assert_int_equal(found.wide, expected.wide);
    assert_int_equal(found.more, expected.more);
    assert_int_equal(found.counted, expected.counted);
    assert_int_equal(found.remaining, expected.remaining);
}

static void the_facts_are_those_of_the_text(void **state)
{
    struct window_request x = request(0, 2, LINES, BYTES, NULL), y = request(3, 0, LINES, 4, NULL);

    (void)state;
    assert_facts("", 0, x, (struct window_facts){.first_line = 1, .counted = true});
    assert_facts(
        "ab\ncd\n", 6, x,
        (struct window_facts){.text_len = 5, .first_line = 1, .lines = 2, .counted = true});
    assert_facts("ab\nc\nd\ne", 8, x,
                 (struct window_facts){.text_len = 4,
                                       .first_line = 1,
                                       .lines = 2,
                                       .more = true,
                                       .counted = true,
                                       .remaining = 2});
    x.count_bytes = 1;
    assert_facts("ab\nc\nd\ne\nf\n", 8, x,
                 (struct window_facts){.text_len = 4, .first_line = 1, .lines = 2, .more = true});
    assert_facts("a\nb", 3, y, (struct window_facts){.first_line = 3, .counted = true});
    assert_facts("a\nb\nwider\nd", 11, y, (struct window_facts){.first_line = 3, .wide = true});
    assert_facts("a\nb\nc\nwider", 11, y,
                 (struct window_facts){.text_len = 1,
                                       .first_line = 3,
                                       .lines = 1,
                                       .more = true,
                                       .counted = true,
                                       .remaining = 1});
}

static void a_line_without_end_needs_no_memory(void **state)
{
    enum { PIECE = 1 << 16 };
    static char piece[PIECE];
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct window_request x = request(2, 0, LINES, 100, m);
    struct window *w;
    char *text;
    size_t len;

    (void)state;
    memset(piece, 'x', sizeof piece);
    assert_int_equal(mask_add(m, "xxxxy", 5), 0);
    w = window_new(&x);
    for (int i = 0; i < 5000; i++) /* in front of the window: all of it streams by */
        assert_int_equal(window_feed(w, piece, sizeof piece), 0);
    assert_int_equal(window_feed(w, "\n", 1), 0);
    assert_int_equal(window_feed(w, piece, sizeof piece), 1); /* in it: known to be too wide */
    assert_int_equal(window_text(w, false, &text, &len), 0);
    assert_int_equal(strncmp(text, "Line 2 is longer than the output limit of 100B.", 46), 0);
    free(text);
    window_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_file_is_shown_whole),
        cmocka_unit_test(a_file_of_ten_lines_shows_the_first_three_and_the_offset_to_go_on),
        cmocka_unit_test(offset_and_limit_choose_the_lines),
        cmocka_unit_test(following_the_offsets_shows_every_line_once),
        cmocka_unit_test(an_offset_behind_the_end_is_told_with_the_number_of_lines),
        cmocka_unit_test(an_empty_file_has_no_lines_at_offset_one),
        cmocka_unit_test(a_first_line_wider_than_the_cap_points_at_a_command),
        cmocka_unit_test(a_second_line_wider_than_the_cap_is_the_next_window),
        cmocka_unit_test(the_byte_cap_counts_lines_as_shown_and_one_between_them),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(offset_zero_is_the_first_line_and_limit_zero_is_none),
        cmocka_unit_test(a_last_line_end_adds_no_line),
        cmocka_unit_test(exactly_one_line_left_is_one_line),
        cmocka_unit_test(nothing_but_lf_ends_a_line),
        cmocka_unit_test(secrets_are_masked_before_lines_are_cut),
        cmocka_unit_test(a_secret_that_reaches_into_the_window_is_masked),
        cmocka_unit_test(a_rest_that_is_too_long_to_count_is_not_counted),
        cmocka_unit_test(the_facts_are_those_of_the_text),
        cmocka_unit_test(a_line_without_end_needs_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
