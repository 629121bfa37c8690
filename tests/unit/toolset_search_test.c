/* SPDX-License-Identifier: Apache-2.0 */
/* Searching: patterns of names, lines and how they are shown, occurrences, and the walk. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "toolset/search.h"
#include "base/guards.h"

/* --- names --- */

static void assert_fits(const char *pattern, const char *const *names, bool fits)
{
    for (; *names; names++)
        if (search_name_fits(pattern, *names) != fits)
            fail_msg("'%s' and '%s'", pattern, *names);
}

#define FITS(pattern, ...)     assert_fits(pattern, (const char *const[]){__VA_ARGS__, NULL}, true)
#define FITS_NOT(pattern, ...) assert_fits(pattern, (const char *const[]){__VA_ARGS__, NULL}, false)

static void stars_stand_for_any_characters(void **state)
{
    (void)state;
    FITS("*", "a", ".hidden", "a b\nc");
    FITS("*.py", "a.py", ".py", "a.py.py", ".hidden.py");
    FITS_NOT("*.py", "a.pyc", "py", "a.PY");
    FITS("a*b*c", "abc", "aXbYc", "abbcbc", "abcc");
    FITS_NOT("a*b*c", "ab", "acb", "abcd");
    FITS("**", "a");
    FITS("a**", "a", "ab");
    FITS("abc", "abc");
    FITS_NOT("abc", "ab", "abcd", "");
    FITS("", "");
    FITS_NOT("", "a");
    FITS("*", "");
}

static void a_question_mark_stands_for_one_character(void **state)
{
    (void)state;
    FITS("?", "a", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xFF");
    FITS_NOT("?", "", "ab", "\xC3\xA4\xC3\xA4", "\xFF\xFE");
    FITS("??", "\xFF\xFE", "\xC3(");
    FITS("a?c", "abc",
         "a\xC3\xA4"
         "c");
}

static void sets_stand_for_one_of_their_characters(void **state)
{
    (void)state;
    FITS("[abc]", "a", "b", "c");
    FITS_NOT("[abc]", "d", "", "ab", "[abc]");
    FITS("[a-c]x", "ax", "bx", "cx");
    FITS_NOT("[a-c]x", "dx", "-x");
    FITS("[!a-c]", "d", "\xC3\xA4", "\xFF");
    FITS("[^a-c]", "d");
    FITS_NOT("[!a-c]", "a", "");
    FITS("[]a]", "]", "a");
    FITS("[!]a]", "b");
    FITS_NOT("[!]a]", "]", "a");
    FITS("[a-]", "a", "-");
    FITS("[\xC3\xA0-\xC3\xAF]", "\xC3\xA4");
    FITS_NOT("[\xC3\xA0-\xC3\xAF]", "\xC3\xBF", "\xC3");
    FITS("*[0-9].log", "a1.log", "12.log");
    FITS_NOT("*[0-9].log", "a.log");
    FITS("[*]", "*");
    FITS_NOT("[*]", "a");
    FITS("[[]a]", "[a]");
}

static void a_bracket_that_nothing_closes_is_itself(void **state)
{
    (void)state;
    FITS("a[b", "a[b");
    FITS_NOT("a[b", "ab");
    FITS("[", "[");
    FITS("[!", "[!");
    FITS("[]", "[]");
    FITS("*[", "a[");
    FITS("a\\b", "a\\b"); /* nothing is escaped */
}

/* Going back to more than the last star would take years. */
static void many_stars_take_no_time(void **state)
{
    char name[256], pattern[256];

    (void)state;
    memset(name, 'a', 255);
    name[255] = '\0';
    for (int i = 0; i < 120; i++)
        memcpy(pattern + 2 * i, "*a", 2);
    memcpy(pattern + 240, "b", 2);
    assert_false(search_name_fits(pattern, name));
}

/* --- lines --- */

/* All lines of a text that hold another one, as "NUMBER:LINE|". */
static char *lines_of(const char *bytes, size_t len, const char *text, const char *secret)
{
    _cleanup_(mask_freep) struct mask *mask = mask_new();
    char *exact = malloc(len + (len == 0)); /* a sanitizer sees one byte too far */
    struct search_lines s = {.bytes = exact, .len = len, .text = text, .text_len = strlen(text)};
    struct search_line line;
    struct buffer b = {0};
    char *all = NULL;

    memcpy(exact, bytes, len);
    if (secret)
        assert_int_equal(mask_add(mask, secret, strlen(secret)), 0);
    while (search_next_line(&s, &line)) {
        char number[32], *shown;
        size_t shown_len;

        assert_int_equal(search_show_line(&s, &line, mask, &shown, &shown_len), 0);
        assert_true(text_is_utf8(shown, shown_len));
        (void)snprintf(number, sizeof number, "%u:", (unsigned)line.number);
        buffer_add_text(&b, number);
        buffer_add(&b, shown, shown_len);
        buffer_add(&b, "|", 1);
        free(shown);
    }
    free(exact);
    assert_int_equal(buffer_take(&b, &all, NULL), 0);
    return all;
}

static void assert_lines(const char *bytes, const char *text, const char *secret,
                         const char *expected)
{
    _cleanup_free_ char *all = lines_of(bytes, strlen(bytes), text, secret);

    assert_string_equal(all, expected);
}

static void lines_that_hold_the_text_are_numbered(void **state)
{
    (void)state;
    assert_lines("one\ntwo\n\nthree two two\n", "two", NULL, "2:two|4:three two two|");
    assert_lines("two", "two", NULL, "1:two|");
    assert_lines("\n\ntwo\n", "two", NULL, "3:two|");
    assert_lines("tw\no", "two", NULL, "");
    assert_lines("", "two", NULL, "");
    assert_lines("a\na\na\n", "a", NULL, "1:a|2:a|3:a|");
    assert_lines("  indented\tx \n", "x", NULL, "1:  indented\tx |");
}

static void a_carriage_return_at_the_end_is_not_shown(void **state)
{
    (void)state;
    assert_lines("one\r\ntwo\r\n", "o", NULL, "1:one|2:two|");
    assert_lines("one\r\ntwo\r\n", "o", "secret", "1:one|2:two|");
    assert_lines("a\rb\n", "b", NULL, "1:a\rb|");
    assert_lines("one\r\n", "one\r", NULL, "1:one|");
}

static void bytes_that_are_no_utf8_are_replaced(void **state)
{
    (void)state;
    assert_lines("a\xFF x\n", "x", NULL, "1:a\xEF\xBF\xBD x|");
}

static void a_nul_is_kept(void **state)
{
    _cleanup_free_ char *all = lines_of("a\0x\n", 4, "x", NULL);

    (void)state;
    assert_memory_equal(all, "1:a\0x|", 6);
}

static void secrets_in_lines_are_masked(void **state)
{
    (void)state;
    assert_lines("key=hunter22 x\n", "x", "hunter22", "1:key=*** x|");
    assert_lines("key=hunter22 x\n", "key", "hunter22", "1:key=*** x|");
    assert_lines("key=hunter22\n", "hunter", "hunter22", "1:key=***|");
    assert_lines("a\nhunter22\nb hunter22\n", "hunter22", "hunter22", "2:***|3:b ***|");
}

static void a_secret_of_several_lines_is_masked_in_each(void **state)
{
    static const char text[] = "a x\nBEGIN\nx1 AAAA\nx2 BBBB\nEND\nb x\n";

    (void)state;
    assert_lines(text, "x", "BEGIN\nx1 AAAA\nx2 BBBB\nEND", "1:a x|3:|4:|6:b x|");
    assert_lines(text, "b", "BBBB\nEND\nb", "6: x|"); /* behind its line ends nothing is left */
}

static void long_lines_are_cut_around_the_match(void **state)
{
    static char line[20001];
    _cleanup_free_ char *first = NULL, *middle = NULL, *last = NULL;

    (void)state;
    memset(line, '.', 20000);
    memcpy(line, "needle", 6);
    first = lines_of(line, 20000, "needle", NULL);
    assert_int_equal(strlen(first), strlen("1:") + SEARCH_LINE_BYTES + strlen("...|"));
    assert_memory_equal(first, "1:needle.", 9);
    memset(line, '-', 20000);
    memcpy(line + 10000, "needle", 6);
    middle = lines_of(line, 20000, "needle", "secret");
    assert_int_equal(strlen(middle), strlen("1:...") + SEARCH_LINE_BYTES + strlen("...|"));
    assert_memory_equal(middle, "1:...-", 6);
    assert_int_equal(strstr(middle, "needle") - middle, 5 + (SEARCH_LINE_BYTES - 6) / 2);
    memset(line, '-', 20000);
    memcpy(line + 20000 - 6, "needle", 6);
    last = lines_of(line, 20000, "needle", NULL);
    assert_int_equal(strlen(last), strlen("1:...") + SEARCH_LINE_BYTES + strlen("|"));
    assert_string_equal(last + strlen(last) - 8, "-needle|");
}

static void a_line_of_just_the_width_is_whole(void **state)
{
    static char line[SEARCH_LINE_BYTES + 2];
    _cleanup_free_ char *whole = NULL, *cut = NULL;

    (void)state;
    memset(line, 'x', SEARCH_LINE_BYTES + 1);
    whole = lines_of(line, SEARCH_LINE_BYTES, "x", NULL);
    assert_null(strstr(whole, "..."));
    cut = lines_of(line, SEARCH_LINE_BYTES + 1, "x", NULL);
    assert_non_null(strstr(cut, "x..."));
}

static void cuts_are_between_characters(void **state)
{
    static char line[4 * 1000];

    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        _cleanup_free_ char *all = NULL;

        memset(line, '.', sizeof line);
        for (size_t i = 0; i + 4 <= sizeof line - shift; i += 4)
            memcpy(line + shift + i, "\xF0\x9F\x98\x80", 4);
        memcpy(line + shift + 2000, "here", 4);
        all = lines_of(line, sizeof line, "here", NULL); /* which asserts UTF-8 */
        assert_non_null(strstr(all, "here"));
        assert_null(strstr(all, "\xEF\xBF\xBD"));
    }
}

/* Wherever a secret lies about the places where things are cut, nothing of it is shown. */
static void no_part_of_a_secret_is_left_by_a_cut(void **state)
{
    static const char secret[] = "0123456789ABCDEF";
    enum { LEN = 12000, MATCH = 6000 };
    static char line[LEN];

    (void)state;
    for (size_t at = MATCH - 4300; at < MATCH + 4300; at += at % 7 + 1) {
        _cleanup_free_ char *all = NULL;

        memset(line, '.', LEN);
        memcpy(line + at, secret, 16);
        memcpy(line + MATCH, "needle", 6);
        all = lines_of(line, LEN, "edle", secret);
        assert_non_null(strstr(all, "edle"));
        if (at + 16 <= MATCH || at >= MATCH + 6) /* it is whole */
            assert_null(strpbrk(all + 2, "0123456789ABCDEF"));
    }
}

static void a_match_within_a_secret_is_shown_where_it_is(void **state)
{
    static char line[9000];
    _cleanup_free_ char *all = NULL;

    (void)state;
    memset(line, '.', sizeof line);
    memcpy(line + 100, "swordfish", 9);
    memcpy(line + 5000, "hunter22", 8);
    all = lines_of(line, sizeof line, "unter", "hunter22");
    assert_non_null(strstr(all, ".***."));
    assert_null(strstr(all, "swordfish"));
}

static void a_text_has_no_nul_at_its_beginning(void **state)
{
    static char bytes[10000];

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    assert_true(search_is_text(bytes, sizeof bytes));
    bytes[8192] = '\0';
    assert_true(search_is_text(bytes, sizeof bytes));
    bytes[8191] = '\0';
    assert_false(search_is_text(bytes, sizeof bytes));
    assert_true(search_is_text(bytes, 8191));
    assert_true(search_is_text(bytes, 0));
}

/* --- occurrences --- */

static struct search_found occurrences(const char *text, const char *what)
{
    struct search_found f;

    assert_int_equal(search_occurrences(text, strlen(text), what, strlen(what), &f), 0);
    return f;
}

static void occurrences_are_counted_with_their_lines(void **state)
{
    struct search_found f = occurrences("a\nb a\nc\na", "a");

    (void)state;
    assert_int_equal(f.n, 3);
    assert_int_equal(f.first, 0);
    assert_int_equal(f.n_lines, 3);
    assert_int_equal(f.lines[0], 1);
    assert_int_equal(f.lines[1], 2);
    assert_int_equal(f.lines[2], 4);
    assert_false(f.more_lines);
    assert_int_equal(occurrences("abc", "abcd").n, 0);
    assert_int_equal(occurrences("", "a").n, 0);
    assert_int_equal(occurrences("xx\nabc", "abc").first, 3);
    assert_int_equal(occurrences("x\nab\nc", "b\nc").lines[0], 2); /* where it begins */
}

static void those_that_overlap_count(void **state)
{
    (void)state;
    assert_int_equal(occurrences("aaaa", "aa").n, 3);
    assert_int_equal(occurrences("abababa", "aba").n, 3);
    assert_int_equal(occurrences("aabaabaa", "aabaa").n, 2);
}

/* Against the plain way, on all short texts of two letters. */
static void counting_agrees_with_the_plain_way(void **state)
{
    (void)state;
    for (unsigned x = 0; x < 1u << 9; x++)
        for (unsigned y = 0; y < 1u << 4; y++)
            for (size_t n = 1; n <= 4; n++) {
                char text[10] = "", what[5] = "";
                size_t count = 0;

                for (int i = 0; i < 9; i++)
                    text[i] = x >> i & 1 ? 'a' : '\n';
                for (size_t i = 0; i < n; i++)
                    what[i] = y >> i & 1 ? 'a' : '\n';
                for (size_t i = 0; i + n <= 9; i++)
                    count += memcmp(text + i, what, n) == 0;
                assert_int_equal(occurrences(text, what).n, count);
            }
}

static void only_the_first_lines_are_told_each_once(void **state)
{
    struct search_found f = occurrences("aa\na\na\na\na\na\na", "a");

    (void)state;
    assert_int_equal(f.n, 8);
    assert_int_equal(f.n_lines, SEARCH_LINES_TOLD);
    assert_int_equal(f.lines[0], 1);
    assert_int_equal(f.lines[4], 5);
    assert_true(f.more_lines);
}

/* The plain way would take hours. */
static void a_text_of_one_character_is_counted_in_time(void **state)
{
    enum { LEN = 1 << 23 };
    char *text = malloc(LEN);
    struct search_found f;

    (void)state;
    memset(text, 'a', LEN);
    assert_int_equal(search_occurrences(text, LEN, text, LEN / 2, &f), 0);
    assert_int_equal(f.n, LEN / 2 + 1);
    free(text);
}

static uint64_t apart(enum search_apart apart_from, const char *text, const char *what)
{
    uint64_t line = UINT64_MAX;

    assert_int_equal(search_apart_from(apart_from, text, strlen(text), what, strlen(what), &line),
                     0);
    return line;
}

static void texts_are_found_but_for_line_ends(void **state)
{
    (void)state;
    assert_int_equal(apart(SEARCH_APART_LINE_ENDS, "x\r\na\r\nb\r\n", "a\nb\n"), 2);
    assert_int_equal(apart(SEARCH_APART_LINE_ENDS, "x\na\nb\n", "a\r\nb\r\n"), 2);
    assert_int_equal(apart(SEARCH_APART_LINE_ENDS, "x\na\nb\n", "b\n\nc"), 0);
    assert_int_equal(apart(SEARCH_APART_LINE_ENDS, "a\rb", "ab"), 0); /* that CR ends no line */
    assert_int_equal(apart(SEARCH_APART_LINE_ENDS, "", "a"), 0);
}

static void texts_are_found_but_for_spaces(void **state)
{
    (void)state;
    assert_int_equal(apart(SEARCH_APART_SPACES, "x\n\tif (a) {\n\t\tb;\n", "    if (a) {\n  b;"),
                     2);
    assert_int_equal(apart(SEARCH_APART_SPACES, "x\n\n\n  foo", "foo\n"), 4);
    assert_int_equal(apart(SEARCH_APART_SPACES, "a  b", "a b"), 1);
    assert_int_equal(apart(SEARCH_APART_SPACES, "a b", "ac"), 0);
    assert_int_equal(apart(SEARCH_APART_SPACES, "a b", " \n"), 0); /* nothing is nowhere */
}

/* --- a walk --- */

static struct atoll_file file(const char *name, int kind)
{
    return (struct atoll_file){.name = name, .kind = kind, .size = 7};
}

static void enter(struct search_walk *w, const struct atoll_file *files, size_t n)
{
    const struct atoll_file *list[64];

    for (size_t i = 0; i < n; i++)
        list[i] = &files[i];
    assert_int_equal(search_walk_enter(w, list, n), 0);
}

static void assert_next(struct search_walk *w, const char *path)
{
    const struct search_entry *e;

    assert_int_equal(search_walk_next(w, &e), path ? 1 : 0);
    if (path)
        assert_string_equal(w->path.bytes, path);
}

static void paths_come_in_the_order_of_their_bytes(void **state)
{
    const struct atoll_file top[] = {
        file("b", ATOLL_FILE),   file("a", ATOLL_FOLDER), file("a.c", ATOLL_FILE),
        file("a-b", ATOLL_FILE), file("a0", ATOLL_FILE),  file(".x", ATOLL_LINK),
    };
    const struct atoll_file inner[] = {file("z", ATOLL_FILE), file("c", ATOLL_FOLDER)};
    struct search_walk w = {.left = 100};

    (void)state;
    enter(&w, top, 6);
    assert_next(&w, ".x");
    assert_next(&w, "a-b");
    assert_next(&w, "a.c");
    assert_next(&w, "a");
    enter(&w, inner, 2);
    assert_next(&w, "a/c");
    enter(&w, NULL, 0);
    assert_next(&w, "a/z");
    assert_next(&w, "a0");
    assert_next(&w, "b");
    assert_next(&w, NULL);
    assert_next(&w, NULL);
    assert_false(w.too_many || w.too_deep);
    search_walk_done(&w);
}

static void a_folder_that_is_not_entered_is_passed(void **state)
{
    const struct atoll_file top[] = {file("a", ATOLL_FOLDER), file("b", ATOLL_FILE)};
    struct search_walk w = {.left = 100};

    (void)state;
    enter(&w, top, 2);
    assert_next(&w, "a");
    assert_next(&w, "b");
    assert_next(&w, NULL);
    search_walk_done(&w);
}

static void no_more_is_kept_than_may_be_looked_at(void **state)
{
    const struct atoll_file top[] = {file("a", ATOLL_FOLDER), file("b", ATOLL_FILE),
                                     file("c", ATOLL_FILE), file("d", ATOLL_FILE)};
    const struct atoll_file inner[] = {file("3", ATOLL_FILE), file("1", ATOLL_FILE),
                                       file("2", ATOLL_FILE)};
    struct search_walk w = {.left = 5};

    (void)state;
    enter(&w, top, 4);
    assert_next(&w, "a");
    assert_false(w.too_many);
    enter(&w, inner, 3);
    assert_true(w.too_many);
    assert_int_equal(w.pending, 4);
    assert_next(&w, "a/1");
    assert_next(&w, "a/2");
    assert_next(&w, "a/3");
    assert_next(&w, "b");
    assert_next(&w, NULL);
    assert_int_equal(w.left, 0);
    search_walk_done(&w);
}

static void a_large_folder_leaves_nothing_of_those_above(void **state)
{
    const struct atoll_file top[] = {file("a", ATOLL_FOLDER), file("b", ATOLL_FILE)};
    const struct atoll_file inner[] = {file("1", ATOLL_FILE), file("2", ATOLL_FILE),
                                       file("3", ATOLL_FILE)};
    struct search_walk w = {.left = 3};

    (void)state;
    enter(&w, top, 2);
    assert_next(&w, "a");
    enter(&w, inner, 3);
    assert_int_equal(w.pending, 2);
    assert_next(&w, "a/1");
    assert_next(&w, "a/2");
    assert_next(&w, NULL);
    assert_true(w.too_many);
    search_walk_done(&w);
}

static void a_number_that_just_fits_leaves_nothing_out(void **state)
{
    const struct atoll_file top[] = {file("a", ATOLL_FILE), file("b", ATOLL_FILE)};
    struct search_walk w = {.left = 2};

    (void)state;
    enter(&w, top, 2);
    assert_next(&w, "a");
    assert_next(&w, "b");
    assert_next(&w, NULL);
    assert_false(w.too_many);
    search_walk_done(&w);
}

static void folders_that_go_too_deep_are_passed_and_told(void **state)
{
    const struct atoll_file one[] = {file("d", ATOLL_FOLDER), file("f", ATOLL_FILE)};
    struct search_walk w = {.left = 1000};
    const struct search_entry *e;
    size_t files = 0;
    int r;

    (void)state;
    enter(&w, one, 2);
    while ((r = search_walk_next(&w, &e)) > 0) {
        files += e->kind == ATOLL_FILE;
        if (e->kind == ATOLL_FOLDER)
            enter(&w, one, 2);
    }
    assert_int_equal(r, 0);
    assert_int_equal(files, SEARCH_DEPTH_MAX);
    assert_true(w.too_deep);
    search_walk_done(&w);
}

static void a_walk_can_be_left_anywhere(void **state)
{
    const struct atoll_file one[] = {file("d", ATOLL_FOLDER), file("f", ATOLL_FILE)};
    struct search_walk w = {.left = 1000}, none = {0};

    (void)state;
    enter(&w, one, 2);
    assert_next(&w, "d");
    enter(&w, one, 2);
    assert_next(&w, "d/d");
    search_walk_done(&w); /* a sanitizer sees what is left */
    search_walk_done(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stars_stand_for_any_characters),
        cmocka_unit_test(a_question_mark_stands_for_one_character),
        cmocka_unit_test(sets_stand_for_one_of_their_characters),
        cmocka_unit_test(a_bracket_that_nothing_closes_is_itself),
        cmocka_unit_test(many_stars_take_no_time),
        cmocka_unit_test(lines_that_hold_the_text_are_numbered),
        cmocka_unit_test(a_carriage_return_at_the_end_is_not_shown),
        cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test(a_nul_is_kept),
        cmocka_unit_test(secrets_in_lines_are_masked),
        cmocka_unit_test(a_secret_of_several_lines_is_masked_in_each),
        cmocka_unit_test(long_lines_are_cut_around_the_match),
        cmocka_unit_test(a_line_of_just_the_width_is_whole),
        cmocka_unit_test(cuts_are_between_characters),
        cmocka_unit_test(no_part_of_a_secret_is_left_by_a_cut),
        cmocka_unit_test(a_match_within_a_secret_is_shown_where_it_is),
        cmocka_unit_test(a_text_has_no_nul_at_its_beginning),
        cmocka_unit_test(occurrences_are_counted_with_their_lines),
        cmocka_unit_test(those_that_overlap_count),
        cmocka_unit_test(counting_agrees_with_the_plain_way),
        cmocka_unit_test(only_the_first_lines_are_told_each_once),
        cmocka_unit_test(a_text_of_one_character_is_counted_in_time),
        cmocka_unit_test(texts_are_found_but_for_line_ends),
        cmocka_unit_test(texts_are_found_but_for_spaces),
        cmocka_unit_test(paths_come_in_the_order_of_their_bytes),
        cmocka_unit_test(a_folder_that_is_not_entered_is_passed),
        cmocka_unit_test(no_more_is_kept_than_may_be_looked_at),
        cmocka_unit_test(a_large_folder_leaves_nothing_of_those_above),
        cmocka_unit_test(a_number_that_just_fits_leaves_nothing_out),
        cmocka_unit_test(folders_that_go_too_deep_are_passed_and_told),
        cmocka_unit_test(a_walk_can_be_left_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
