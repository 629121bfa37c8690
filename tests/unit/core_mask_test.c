/* SPDX-License-Identifier: Apache-2.0 */
/* Masking: in one piece, in any pieces, and of texts whose ends were cut off. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/mask.h"
#include "base/guards.h"

#define SET(...)                                                                                   \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static struct mask *set(const char *const *secrets)
{
    struct mask *m = mask_new();

    assert_non_null(m);
    for (; *secrets; secrets++)
        assert_int_equal(mask_add(m, *secrets, strlen(*secrets)), 0);
    return m;
}

static void assert_cut(const char *const *secrets, const char *text, unsigned cut,
                       const char *expected)
{
    _cleanup_(mask_freep) struct mask *m = set(secrets);
    _cleanup_free_ char *masked = NULL;
    size_t len;

    assert_int_equal(mask_text(m, text, strlen(text), cut, &masked, &len), 0);
    assert_string_equal(masked, expected);
    assert_int_equal(len, strlen(expected));
}

/* In one piece, and byte by byte. */
static void assert_masked(const char *const *secrets, const char *text, const char *expected)
{
    _cleanup_(mask_freep) struct mask *m = set(secrets);
    struct mask_stream *s = mask_stream_new(m);
    char got[256];
    size_t n = 0, len = strlen(text);

    assert_cut(secrets, text, 0, expected);
    for (size_t i = 0; i <= len; i++) {
        const char *piece;
        size_t piece_len;

        assert_int_equal(
            mask_stream_feed(s, text + i, i < len ? 1 : 0, i == len, &piece, &piece_len), 0);
        memcpy(got + n, piece, piece_len);
        n += piece_len;
    }
    got[n] = '\0';
    assert_string_equal(got, expected);
    mask_stream_free(s);
}

static void a_secret_is_replaced_wherever_it_stands(void **state)
{
    (void)state;
    assert_masked(SET("secret"), "secret", "***");
    assert_masked(SET("secret"), "a secret, and secrets", "a ***, and ***s");
    assert_masked(SET("secret"), "secre ecret sesecret", "secre ecret se***");
    assert_masked(SET("secret"), "", "");
    assert_masked(SET("aaab", "aab!"), "aaaab!", "a***"); /* they share two bytes */
}

static void occurrences_that_overlap_or_touch_become_one(void **state)
{
    (void)state;
    assert_masked(SET("abcd", "cdef"), "xabcdefx", "x***x");
    assert_masked(SET("abcd", "efgh"), "xabcdefghx", "x***x");
    assert_masked(SET("abcd"), "abcdabcd abcd", "*** ***");
    assert_masked(SET("aaaa"), "aaaaaaaaab", "***b");
    assert_masked(SET("abcd", "xxabcdyy"), "xxabcdyy xxabcdy", "*** xx***y");
    assert_masked(SET("bcde", "abcdefgh"), "abcdefg", "a***fg");
    assert_masked(SET("abab"), "abababab", "***");
}

static void the_stars_themselves_can_be_a_secret(void **state)
{
    (void)state;
    assert_masked(SET("****"), "*****", "***");
}

static void line_ends_of_a_secret_stay_behind_its_stars(void **state)
{
    (void)state;
    assert_masked(SET("one\ntwo\n"), "a one\ntwo\nb", "a ***\n\nb");
    assert_masked(SET("one\ntwo"), "a\none\ntwo\nb", "a\n***\n\nb");
    assert_masked(SET("x\ny\n", "z\nz\n"), "x\ny\nz\nz\nend", "***\n\n\n\nend");
    assert_masked(SET("\n\n\n\n"), "a\n\n\n\n\nb", "a***\n\n\n\n\nb");
}

static void any_bytes_can_be_a_secret_and_all_others_stay(void **state)
{
    static const char secret[] = {'\0', '\xFF', '\n', '\x80'};
    static const char text[] = {'\xFE', '\0', '\0', '\xFF', '\n', '\x80', '\0', '\xC3'};
    static const char expected[] = {'\xFE', '\0', '*', '*', '*', '\n', '\0', '\xC3'};
    _cleanup_(mask_freep) struct mask *m = mask_new();
    _cleanup_free_ char *masked = NULL;
    size_t len;

    (void)state;
    assert_int_equal(mask_add(m, secret, sizeof secret), 0);
    assert_int_equal(mask_longest(m), 4);
    assert_int_equal(mask_text(m, text, sizeof text, 0, &masked, &len), 0);
    assert_int_equal(len, sizeof expected);
    assert_memory_equal(masked, expected, len);
    assert_int_equal(masked[len], '\0');
}

static void an_encoded_secret_is_not_known(void **state)
{
    (void)state;
    assert_masked(SET("secret"),
                  "c2VjcmV0 S\x65"
                  "CRET",
                  "c2VjcmV0 SeCRET");
}

static void a_secret_below_four_bytes_is_refused(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    _cleanup_free_ char *masked = NULL;
    size_t len;

    (void)state;
    assert_int_equal(mask_add(m, "abc", 3), -EINVAL);
    assert_int_equal(mask_add(m, "", 0), -EINVAL);
    assert_int_equal(mask_longest(m), 0);
    assert_int_equal(mask_text(m, "abc", 3, MASK_CUT_START | MASK_CUT_END, &masked, &len), 0);
    assert_string_equal(masked, "abc");
    assert_int_equal(mask_add(m, "abcd", 4), 0);
    assert_int_equal(mask_add(m, "abcd", 4), 0); /* twice is once */
    assert_int_equal(mask_longest(m), 4);
}

static void a_cut_beginning_may_be_the_end_of_a_secret(void **state)
{
    (void)state;
    assert_cut(SET("password"), "word and more", MASK_CUT_START, "*** and more");
    assert_cut(SET("password"), "word and more", 0, "word and more");
    assert_cut(SET("password"), "d", MASK_CUT_START, "***");
    assert_cut(SET("password"), "password", MASK_CUT_START, "***");
    assert_cut(SET("password"), "wordpassword", MASK_CUT_START, "***");
    assert_cut(SET("password"), "passwor", MASK_CUT_START, "passwor");
    assert_cut(SET("aXaXb", "zzzzaXa"), "aXab", MASK_CUT_START, "***b");
    assert_cut(SET("one\ntwo\n"), "o\nrest", MASK_CUT_START, "***\nrest");
    assert_cut(SET("aaaa"), "aab", MASK_CUT_START, "***b");
    assert_cut(SET("aaaa"), "aaaaaaab", MASK_CUT_START, "***b");
    assert_cut(SET("password"), "", MASK_CUT_START | MASK_CUT_END, "");
}

static void the_longest_end_of_a_secret_counts(void **state)
{
    (void)state;
    assert_cut(SET("xxxxa", "xxxxab", "xxxxabc"), "abcd", MASK_CUT_START, "***d");
    assert_cut(SET("abcabcab"), "abcabx", MASK_CUT_START, "***x");
}

static void a_cut_end_may_be_the_beginning_of_a_secret(void **state)
{
    (void)state;
    assert_cut(SET("password"), "my pass", MASK_CUT_END, "my ***");
    assert_cut(SET("password"), "my pass", 0, "my pass");
    assert_cut(SET("password"), "pappassp", MASK_CUT_END, "pappass***");
    assert_cut(SET("password", "asswipe!"), "my passw", MASK_CUT_END, "my ***");
    assert_cut(SET("password"), "passwordpass", MASK_CUT_END, "***");
    assert_cut(SET("one\ntwo\n"), "see one\nt", MASK_CUT_END, "see ***\n");
}

static void a_text_cut_at_both_ends_may_lie_inside_of_a_secret(void **state)
{
    (void)state;
    assert_cut(SET("password"), "sswo", MASK_CUT_START | MASK_CUT_END, "***");
    assert_cut(SET("password"), "sswo", MASK_CUT_START, "sswo");
    assert_cut(SET("password"), "sswx", MASK_CUT_START | MASK_CUT_END, "sswx");
    assert_cut(SET("password"), "word. pass", MASK_CUT_START | MASK_CUT_END, "***. ***");
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* What masking means, without any cleverness. */
static size_t mask_slowly(const char *const *secrets, const char *text, size_t len, char *ret)
{
    static bool covered[512];
    size_t n = 0, line_ends = 0;

    memset(covered, 0, sizeof covered);
    for (; *secrets; secrets++)
        for (size_t i = 0, k = strlen(*secrets); i + k <= len; i++)
            if (memcmp(text + i, *secrets, k) == 0)
                memset(covered + i, 1, k);
    for (size_t i = 0; i <= len; i++) {
        bool inside = i < len && covered[i], before = i > 0 && covered[i - 1];

        if (inside && !before) {
            memcpy(ret + n, "***", 3);
            n += 3;
        }
        if (!inside && before) {
            memset(ret + n, '\n', line_ends);
            n += line_ends;
            line_ends = 0;
        }
        if (inside)
            line_ends += text[i] == '\n';
        else if (i < len)
            ret[n++] = text[i];
    }
    return n;
}

/* Few letters and secrets that overlap themselves, so that everything that can happen does. */
static void any_pieces_give_what_the_whole_gives(void **state)
{
    static const char *const sets[][5] = {
        {"abab", "babb", "aaaa"},     {"abba\n", "\n\n\n\n", "b\nab"}, {"aaaaaaaab", "abaa"},
        {"bbbb", "abbbba", "ba\nab"}, {"aabaabaa", "baab", "aaba"},
    };
    uint64_t seed = 88172645463325252;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        const char *const *secrets = sets[next_random(&seed) % ARRAY_SIZE(sets)];
        _cleanup_(mask_freep) struct mask *m = set(secrets);
        struct mask_stream *s = mask_stream_new(m);
        _cleanup_free_ char *whole = NULL;
        char text[120], expected[1024], got[1024];
        size_t len = next_random(&seed) % sizeof text, whole_len, n = 0, at = 0, known;

        for (size_t i = 0; i < len; i++)
            text[i] = "aabb\nc"[next_random(&seed) % 6];
        known = mask_slowly(secrets, text, len, expected);
        assert_int_equal(mask_text(m, text, len, 0, &whole, &whole_len), 0);
        assert_int_equal(whole_len, known);
        assert_memory_equal(whole, expected, known);
        do {
            size_t piece = next_random(&seed) % 9, out_len;
            const char *out;

            piece = piece < len - at ? piece : len - at;
            at += piece;
            assert_int_equal(
                mask_stream_feed(s, text + at - piece, piece, at == len, &out, &out_len), 0);
            memcpy(got + n, out, out_len);
            n += out_len;
        } while (at < len);
        assert_int_equal(n, known);
        assert_memory_equal(got, expected, n);
        mask_stream_free(s);
    }
}

static void bytes_that_begin_no_secret_are_not_held_back(void **state)
{
    _cleanup_(mask_freep) struct mask *m = set(SET("secret"));
    struct mask_stream *s = mask_stream_new(m);
    const char *piece;
    size_t len;

    (void)state;
    assert_int_equal(mask_stream_feed(s, "hello sec", 9, false, &piece, &len), 0);
    assert_int_equal(len, 6);
    assert_memory_equal(piece, "hello ", 6);
    assert_int_equal(mask_stream_feed(s, "ond", 3, false, &piece, &len), 0);
    assert_int_equal(len, 6);
    assert_memory_equal(piece, "second", 6);
    assert_int_equal(mask_stream_feed(s, NULL, 0, true, &piece, &len), 0);
    assert_int_equal(len, 0);
    mask_stream_free(s);
}

static void a_secret_that_is_added_on_the_way_holds_from_then_on(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct mask_stream *s = mask_stream_new(m);
    const char *piece;
    size_t len;

    (void)state;
    assert_int_equal(mask_stream_feed(s, "token to", 8, false, &piece, &len), 0);
    assert_int_equal(len, 8);
    assert_int_equal(mask_add(m, "token", 5), 0);
    assert_int_equal(mask_stream_feed(s, "ken token tok", 13, false, &piece, &len), 0);
    assert_int_equal(len, 8);
    assert_memory_equal(piece, "ken *** ", 8);
    assert_int_equal(mask_add(m, "tokens!", 7), 0);
    assert_int_equal(mask_stream_feed(s, "ens!", 4, true, &piece, &len), 0);
    assert_int_equal(len, 3);
    mask_stream_free(s);
}

/* Slow ways to do it would not end here before the time limit of the test. */
static void thousands_of_secrets_and_megabytes_are_no_trouble(void **state)
{
    enum { SECRETS = 5000, BYTES = 5 << 20 };
    _cleanup_(mask_freep) struct mask *m = mask_new();
    _cleanup_free_ char *text = malloc(BYTES), *masked = NULL, *long_one = malloc(1 << 16);
    size_t len, stars = 0;
    char secret[64];

    (void)state;
    for (int i = 0; i < SECRETS; i++) {
        int n = snprintf(secret, sizeof secret, "sk-live-%06d-%06d", i, i * 7);

        assert_int_equal(mask_add(m, secret, (size_t)n), 0);
    }
    memset(long_one, 's', 1 << 16); /* one whose beginning stands everywhere */
    long_one[(1 << 16) - 1] = '!';
    assert_int_equal(mask_add(m, long_one, 1 << 16), 0);
    for (size_t i = 0; i < BYTES; i++)
        text[i] = i < BYTES / 2 ? 's' : "sk-live-000"[i % 11];
    memcpy(text + BYTES - 100, "sk-live-004999-034993", 21);
    assert_int_equal(mask_text(m, text, BYTES, MASK_CUT_START | MASK_CUT_END, &masked, &len), 0);
    for (size_t i = 0; i < len; i++)
        stars += masked[i] == '*';
    assert_true(stars >= 3);
    assert_null(memmem(masked, len, "sk-live-004999-034993", 21));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_replaced_wherever_it_stands),
        cmocka_unit_test(occurrences_that_overlap_or_touch_become_one),
        cmocka_unit_test(the_stars_themselves_can_be_a_secret),
        cmocka_unit_test(line_ends_of_a_secret_stay_behind_its_stars),
        cmocka_unit_test(any_bytes_can_be_a_secret_and_all_others_stay),
        cmocka_unit_test(an_encoded_secret_is_not_known),
        cmocka_unit_test(a_secret_below_four_bytes_is_refused),
        cmocka_unit_test(a_cut_beginning_may_be_the_end_of_a_secret),
        cmocka_unit_test(the_longest_end_of_a_secret_counts),
        cmocka_unit_test(a_cut_end_may_be_the_beginning_of_a_secret),
        cmocka_unit_test(a_text_cut_at_both_ends_may_lie_inside_of_a_secret),
        cmocka_unit_test(any_pieces_give_what_the_whole_gives),
        cmocka_unit_test(bytes_that_begin_no_secret_are_not_held_back),
        cmocka_unit_test(a_secret_that_is_added_on_the_way_holds_from_then_on),
        cmocka_unit_test(thousands_of_secrets_and_megabytes_are_no_trouble),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
