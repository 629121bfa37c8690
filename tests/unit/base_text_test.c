/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, safe printing of foreign bytes, and near names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

static void well_formed_text_is_utf8(void **state)
{
    static const char *const good[] = {
        "",
        "plain",
        "caf\xC3\xA9",
        "\xE2\x82\xAC",     /* U+20AC */
        "\xED\x9F\xBF",     /* U+D7FF, the last before the surrogates */
        "\xEE\x80\x80",     /* U+E000 */
        "\xF0\x90\x80\x80", /* U+10000 */
        "\xF4\x8F\xBF\xBF", /* U+10FFFF */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(text_is_utf8(good[i], strlen(good[i])));
    assert_true(text_is_utf8("a\0b", 3));
}

static void forms_that_unicode_forbids_are_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",             /* a tail alone */
        "\xC0\xAF",         /* overlong */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xED\xA0\x80",     /* a surrogate */
        "\xF4\x90\x80\x80", /* above U+10FFFF */
        "\xF5\x80\x80\x80",
        "\xFF",
        "a\xC3(", /* no tail */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(text_is_utf8(bad[i], strlen(bad[i])));
}

static void a_sequence_cut_at_any_length_is_refused_without_reading_further(void **state)
{
    static const char *const whole[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x90\x80\x80"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
        for (size_t len = 1; len < strlen(whole[i]); len++) {
            char *exact = malloc(len); /* a sanitizer sees one byte too far */

            memcpy(exact, whole[i], len);
            assert_false(text_is_utf8(exact, len));
            free(exact);
        }
}

static void printable_text_stays_as_it_is(void **state)
{
    char text[] = "a b~caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8F\x9D";
    char before[sizeof text];

    (void)state;
    memcpy(before, text, sizeof text);
    text_make_printable(text);
    assert_string_equal(text, before);
}

static void what_drives_a_terminal_becomes_question_marks(void **state)
{
    char controls[] = "a\tb\nc\033[0m\x7F";
    char c1[] = "x\xC2\x9By\xC2\xA0"; /* CSI as a C1 control; then a no-break space */
    char foreign[] = "\xFFq\xE2\x82";

    (void)state;
    text_make_printable(controls);
    assert_string_equal(controls, "a?b?c?[0m?");
    text_make_printable(c1);
    assert_string_equal(c1, "x??y\xC2\xA0");
    text_make_printable(foreign);
    assert_string_equal(foreign, "?q??");
}

static void any_two_bytes_come_out_as_printable_utf8(void **state)
{
    (void)state;
    for (unsigned a = 1; a < 256; a++)
        for (unsigned b = 1; b < 256; b++) {
            char s[3] = {(char)a, (char)b, '\0'};

            text_make_printable(s);
            assert_int_equal(strlen(s), 2);
            assert_true(text_is_utf8(s, 2));
            for (size_t i = 0; i < 2; i++)
                assert_true((unsigned char)s[i] >= 0x20 && s[i] != 0x7F);
        }
}

static void a_slip_of_the_finger_finds_the_name(void **state)
{
    static const char *const names[] = {"volume", "workdir", "user", "env", "pids"};

    (void)state;
    assert_string_equal(text_nearest("volumes", names, ARRAY_SIZE(names)), "volume");
    assert_string_equal(text_nearest("wrokdir", names, ARRAY_SIZE(names)), "workdir"); /* a swap */
    assert_string_equal(text_nearest("usr", names, ARRAY_SIZE(names)), "user");
    assert_string_equal(text_nearest("evn", names, ARRAY_SIZE(names)), "env");
}

static void what_resembles_nothing_finds_nothing(void **state)
{
    static const char *const names[] = {"volume", "env"};
    char long_word[200];

    (void)state;
    memset(long_word, 'v', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(text_nearest("hostname", names, ARRAY_SIZE(names)));
    assert_null(text_nearest("", names, ARRAY_SIZE(names)));
    assert_null(text_nearest(long_word, names, ARRAY_SIZE(names)));
    assert_null(text_nearest("env", names, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_text_is_utf8),
        cmocka_unit_test(forms_that_unicode_forbids_are_refused),
        cmocka_unit_test(a_sequence_cut_at_any_length_is_refused_without_reading_further),
        cmocka_unit_test(printable_text_stays_as_it_is),
        cmocka_unit_test(what_drives_a_terminal_becomes_question_marks),
        cmocka_unit_test(any_two_bytes_come_out_as_printable_utf8),
        cmocka_unit_test(a_slip_of_the_finger_finds_the_name),
        cmocka_unit_test(what_resembles_nothing_finds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
