/* SPDX-License-Identifier: Apache-2.0 */
/* What a command has written since it was last asked: masked, decoded, bounded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "toolset/news.h"
#include "toolset/shown.h"
#include "base/guards.h"

enum { PLENTY = 4096 };

static struct mask *set(const char *const *secrets)
{
    struct mask *m = mask_new();

    assert_non_null(m);
    for (; *secrets; secrets++)
        assert_int_equal(mask_add(m, *secrets, strlen(*secrets)), 0);
    return m;
}

static struct mask *one(const char *secret)
{
    return set((const char *const[]){secret, NULL});
}

static struct news *news(const struct mask *m, size_t max)
{
    struct news *n = news_new(m, max);

    assert_non_null(n);
    return n;
}

static void feed(struct news *n, int stream, const char *text)
{
    assert_int_equal(news_feed(n, stream, text, strlen(text)), 0);
}

static void assert_taken(struct news *n, const char *expected, uint64_t expected_dropped)
{
    _cleanup_free_ char *text = NULL;
    size_t len, waiting = news_waiting(n);
    uint64_t dropped;

    assert_int_equal(news_take(n, &text, &len, &dropped), 0);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
    assert_int_equal(len, waiting);
    assert_int_equal(dropped, expected_dropped);
    assert_int_equal(news_waiting(n), 0);
}

static void what_was_taken_is_old(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct news *n = news(m, PLENTY);

    (void)state;
    assert_taken(n, "", 0);
    feed(n, 1, "one\n");
    feed(n, 1, "two\n");
    assert_int_equal(news_waiting(n), 8);
    assert_taken(n, "one\ntwo\n", 0);
    assert_taken(n, "", 0);
    feed(n, 1, "three");
    assert_taken(n, "three", 0);
    assert_int_equal(news_end(n), 0);
    assert_taken(n, "", 0);
    news_free(n);
}

static void both_streams_are_there_in_the_order_in_which_they_came(void **state)
{
    _cleanup_(mask_freep) struct mask *m = one("secret");
    struct news *n = news(m, PLENTY);

    (void)state;
    feed(n, 1, "out ");
    feed(n, 2, "err ");
    feed(n, 1, "more");
    assert_taken(n, "out err more", 0);
    news_free(n);
}

static void a_secret_is_masked_across_pieces_and_takes(void **state)
{
    _cleanup_(mask_freep) struct mask *m = one("password");
    struct news *n = news(m, PLENTY);

    (void)state;
    feed(n, 1, "my pass");
    assert_taken(n, "my ", 0);
    feed(n, 1, "wor");
    assert_taken(n, "", 0);
    feed(n, 1, "d is");
    assert_taken(n, "*** is", 0);
    feed(n, 1, " passw");
    assert_taken(n, " ", 0);
    feed(n, 1, "ay");
    assert_taken(n, "passway", 0);
    news_free(n);
}

static void the_other_stream_does_not_tear_a_secret(void **state)
{
    _cleanup_(mask_freep) struct mask *m = one("password");
    struct news *n = news(m, PLENTY);

    (void)state;
    feed(n, 1, "a pass");
    feed(n, 2, "warning\n");
    assert_taken(n, "a warning\n", 0);
    feed(n, 1, "word b");
    assert_taken(n, "*** b", 0);
    feed(n, 2, "pass"); /* begun by one and ended by the other: it is none */
    feed(n, 1, "word");
    assert_int_equal(news_end(n), 0);
    assert_taken(n, "wordpass", 0);
    news_free(n);
}

static void the_end_lets_out_what_was_held_back(void **state)
{
    _cleanup_(mask_freep) struct mask *m = one("password");
    struct news *n = news(m, PLENTY);

    (void)state;
    feed(n, 1, "pass");
    feed(n, 2, "\xE2\x82");
    assert_int_equal(news_waiting(n), 0);
    assert_int_equal(news_end(n), 0);
    assert_taken(n, "pass" SHOWN_REPLACEMENT, 0);
    assert_int_equal(news_end(n), 0);
    feed(n, 1, "nothing comes behind the end");
    assert_taken(n, "", 0);
    news_free(n);
}

static void a_character_stays_until_all_of_it_has_come(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct news *n = news(m, PLENTY);

    (void)state;
    feed(n, 1, "a\xF0\x9F");
    assert_taken(n, "a", 0);
    feed(n, 1, "\x98");
    assert_taken(n, "", 0);
    feed(n, 2, "between");
    feed(n, 1, "\x80z");
    assert_taken(n, "between\xF0\x9F\x98\x80z", 0);
    feed(n, 1, "\xC3");
    feed(n, 1, "(");
    assert_taken(n, SHOWN_REPLACEMENT "(", 0);
    feed(n, 1, "\xFF\x80");
    assert_taken(n, SHOWN_REPLACEMENT SHOWN_REPLACEMENT, 0);
    news_free(n);
}

static void only_the_last_bytes_are_kept_and_the_others_counted(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct news *n = news(m, 8);

    (void)state;
    feed(n, 1, "12345678");
    assert_taken(n, "12345678", 0);
    feed(n, 1, "12345678");
    feed(n, 2, "9");
    assert_taken(n, "23456789", 1);
    feed(n, 1, "abc");
    feed(n, 1, "0123456789ABCDEF");
    assert_int_equal(news_waiting(n), 8);
    assert_taken(n, "89ABCDEF", 11);
    assert_taken(n, "", 0);
    news_free(n);
}

static void nothing_may_be_kept_at_all(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct news *n = news(m, 0);

    (void)state;
    feed(n, 1, "12345678");
    assert_taken(n, "", 8);
    news_free(n);
}

static void dropping_cuts_between_characters(void **state)
{
    _cleanup_(mask_freep) struct mask *m = mask_new();
    struct news *n = news(m, 8);

    (void)state;
    feed(n, 1, "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"); /* three times three bytes */
    assert_taken(n, "\xE2\x82\xAC\xE2\x82\xAC", 3);
    feed(n, 1, "\xE2\x82\xAC\xE2\x82\xAC");
    feed(n, 1, "abc");
    assert_taken(n,
                 "\xE2\x82\xAC"
                 "abc",
                 3);
    news_free(n);
    n = news(m, 2);
    feed(n, 1, "\xE2\x82\xAC"); /* there is no room for one */
    assert_taken(n, "", 3);
    news_free(n);
}

static void no_part_of_a_secret_is_seen_where_bytes_were_dropped(void **state)
{
    _cleanup_(mask_freep) struct mask *m = one("password");

    (void)state;
    for (size_t max = 1; max < 24; max++) {
        struct news *n = news(m, max);
        _cleanup_free_ char *text = NULL;
        uint64_t dropped;
        size_t len;

        feed(n, 1, "see pass");
        feed(n, 1, "word and password");
        feed(n, 1, ".");
        assert_int_equal(news_take(n, &text, &len, &dropped), 0);
        assert_int_equal(len + dropped, strlen("see *** and ***."));
        assert_string_equal(text, &"see *** and ***."[dropped]);
        news_free(n);
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Letters that make secrets of themselves, and characters of two and three bytes, whole and torn.
 */
static size_t random_text(uint64_t *seed, char *ret, size_t room)
{
    static const char *const parts[] = {
        "a", "a", "b", "b", "\n", "\xC3\xA4", "\xE2\x82\xAC", "\xE2", "\x82", "\xFF"};
    size_t len = 0, wanted = next_random(seed) % (room - 4);

    while (len < wanted) {
        const char *part = parts[next_random(seed) % ARRAY_SIZE(parts)];

        memcpy(ret + len, part, strlen(part));
        len += strlen(part);
    }
    return len;
}

struct heard {
    char text[4096];
    size_t len;
    uint64_t dropped;
};

static void take_to(struct news *n, struct heard *h)
{
    _cleanup_free_ char *text = NULL;
    uint64_t dropped;
    size_t len;

    assert_int_equal(news_take(n, &text, &len, &dropped), 0);
    memcpy(h->text + h->len, text, len);
    h->len += len;
    h->dropped += dropped;
}

static void shown_whole(const struct mask *m, const char *text, size_t len, char **ret,
                        size_t *ret_len)
{
    _cleanup_free_ char *masked = NULL;

    assert_int_equal(mask_text(m, text, len, 0, &masked, &len), 0);
    assert_int_equal(shown_utf8(masked, len, ret, ret_len), 0);
}

static void one_byte_at_a_time_gives_what_the_whole_gives(void **state)
{
    static const char text[] = "a \xE2\x82\xAC password\npass \xFF\xC3 passwordpassword \xC3";
    _cleanup_(mask_freep) struct mask *m = one("password");
    struct news *n = news(m, PLENTY);
    _cleanup_free_ char *whole = NULL;
    struct heard heard = {.len = 0};
    size_t whole_len;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        assert_int_equal(news_feed(n, 1, text + i, 1), 0);
        take_to(n, &heard);
    }
    assert_int_equal(news_end(n), 0);
    take_to(n, &heard);
    shown_whole(m, text, sizeof text - 1, &whole, &whole_len);
    assert_non_null(strstr(whole, "*** " SHOWN_REPLACEMENT));
    assert_int_equal(heard.len, whole_len);
    assert_memory_equal(heard.text, whole, whole_len);
    news_free(n);
}

/* In random pieces, taken now and then; with room for all of it, and for its end alone. */
static void any_pieces_give_what_the_whole_gives(void **state)
{
    _cleanup_(mask_freep) struct mask *m =
        set((const char *const[]){"abab", "b\nab", "aaaa", "\303\244ab", "aa\xE2\x82", NULL});
    uint64_t seed = 88172645463325252;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct heard heard = {.len = 0};
        char text[160];
        size_t len = random_text(&seed, text, sizeof text), at = 0, whole_len, tail;
        size_t max = next_random(&seed) % 64;
        struct news *n = news(m, PLENTY), *last = news(m, max);
        _cleanup_free_ char *whole = NULL, *end = NULL;
        uint64_t dropped;

        while (at < len) {
            size_t piece = next_random(&seed) % 9;

            piece = piece < len - at ? piece : len - at;
            assert_int_equal(news_feed(n, 2, text + at, piece), 0);
            assert_int_equal(news_feed(last, 2, text + at, piece), 0);
            at += piece;
            if (next_random(&seed) % 4 == 0)
                take_to(n, &heard);
        }
        assert_int_equal(news_end(n), 0);
        assert_int_equal(news_end(last), 0);
        take_to(n, &heard);
        shown_whole(m, text, len, &whole, &whole_len);
        assert_int_equal(heard.dropped, 0);
        assert_int_equal(heard.len, whole_len);
        assert_memory_equal(heard.text, whole, whole_len);
        assert_int_equal(news_take(last, &end, &tail, &dropped), 0);
        assert_int_equal(tail + dropped, whole_len);
        assert_true(tail <= max && (whole_len <= max ? dropped == 0 : tail + 3 > max));
        assert_memory_equal(end, whole + dropped, tail);
        news_free(n);
        news_free(last);
    }
}

/* Slow ways to do it would not end here before the time limit of the test. */
static void much_output_in_small_pieces_is_no_trouble(void **state)
{
    enum { KEPT = 1 << 20, FED = 64 << 20 };
    _cleanup_(mask_freep) struct mask *m = one("password");
    struct news *n = news(m, KEPT);
    _cleanup_free_ char *text = NULL;
    uint64_t dropped;
    size_t len;

    (void)state;
    for (size_t i = 0; i < FED / 64; i++)
        assert_int_equal(news_feed(n, 1 + (int)(i % 2),
                                   "0123456789012345678901234567890123456789012345678901234567890"
                                   "12\n",
                                   64),
                         0);
    assert_int_equal(news_waiting(n), KEPT);
    assert_int_equal(news_take(n, &text, &len, &dropped), 0);
    assert_int_equal(len, KEPT);
    assert_int_equal(dropped, FED - KEPT);
    news_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_taken_is_old),
        cmocka_unit_test(both_streams_are_there_in_the_order_in_which_they_came),
        cmocka_unit_test(a_secret_is_masked_across_pieces_and_takes),
        cmocka_unit_test(the_other_stream_does_not_tear_a_secret),
        cmocka_unit_test(the_end_lets_out_what_was_held_back),
        cmocka_unit_test(a_character_stays_until_all_of_it_has_come),
        cmocka_unit_test(only_the_last_bytes_are_kept_and_the_others_counted),
        cmocka_unit_test(nothing_may_be_kept_at_all),
        cmocka_unit_test(dropping_cuts_between_characters),
        cmocka_unit_test(no_part_of_a_secret_is_seen_where_bytes_were_dropped),
        cmocka_unit_test(one_byte_at_a_time_gives_what_the_whole_gives),
        cmocka_unit_test(any_pieces_give_what_the_whole_gives),
        cmocka_unit_test(much_output_in_small_pieces_is_no_trouble),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
