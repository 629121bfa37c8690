/* SPDX-License-Identifier: Apache-2.0 */
/* Printing: wrapped text, JSON, units, colour, and writes that fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/print.h"
#include "base/guards.h"

struct buffer {
    char *text;
    size_t size;
    FILE *f;
};

static void buffer_open(struct buffer *b)
{
    *b = (struct buffer){0};
    b->f = open_memstream(&b->text, &b->size);
    assert_non_null(b->f);
}

static void assert_buffer(struct buffer *b, const char *want)
{
    assert_int_equal(fclose(b->f), 0);
    assert_string_equal(b->text, want);
    free(b->text);
}

static void long_text_is_wrapped_and_indented(void **state)
{
    static const char word70[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    char text[200], want[200];
    struct buffer b;

    (void)state;
    (void)snprintf(text, sizeof text, "x %s 345678 y\n\nnext  line", word70);
    (void)snprintf(want, sizeof want, "x %s\n  345678 y\n\n  next line\n", word70);
    buffer_open(&b);
    print_wrapped(b.f, 2, 2, text);
    assert_buffer(&b, want);
    buffer_open(&b);
    print_wrapped(b.f, 0, 4, word70); /* as wide as it gets */
    (void)snprintf(want, sizeof want, "    %s\n", word70);
    assert_buffer(&b, want);
    buffer_open(&b);
    print_wrapped(b.f, 0, 0, "");
    assert_buffer(&b, "\n");
}

static void json_is_one_line(void **state)
{
    struct error err = ERROR_INIT;
    struct buffer b;

    (void)state;
    buffer_open(&b);
    assert_int_equal(print_json(b.f, json_pack("{s:i, s:s}", "b", 1, "a", "x\ny"), &err), 0);
    assert_buffer(&b, "{\"b\": 1, \"a\": \"x\\ny\"}\n");
    buffer_open(&b);
    assert_int_equal(print_json(b.f, NULL, &err), -ENOMEM);
    assert_int_equal(err.cls, ERROR_TERMINAL);
    assert_buffer(&b, "");
}

static void a_write_that_failed_is_reported(void **state)
{
    struct error err = ERROR_INIT;
    FILE *f = fopen("/dev/full", "we");

    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 100000; i++) /* more than a buffer, so that it fails before the flush */
        putc('x', f);
    assert_int_equal(print_flush(f, "standard output", &err), -ENOSPC);
    assert_int_equal(err.cls, ERROR_TERMINAL);
    assert_string_equal(err.message, "cannot write to standard output: No space left on device");
    (void)fclose(f);

    struct error none = ERROR_INIT;
    f = fopen("/dev/null", "we");
    assert_non_null(f);
    assert_int_equal(print_flush(f, "standard output", &none), 0);
    (void)fclose(f);
}

static void units_are_those_that_are_read(void **state)
{
    static const struct {
        uint64_t value;
        const char *size, *duration;
    } rows[] = {
        {0, "0B", "0s"},
        {1, "1B", "0.000001s"},
        {1500, "1500B", "0.0015s"},
        {1536, "1536B", "0.001536s"},
        {2048, "2K", "0.002048s"},
        {512ull << 20, "512M", "536.870912s"},
        {3ull << 40, "3T", "3298534.883328s"},
        {5000ull << 40, "5000T", "5497558138880ms"},
        {90000000, "90000000B", "90s"},
        {1500000, "1500000B", "1500ms"},
        {300000000, "300000000B", "5m"},
        {86400000000, "84375000K", "1d"},
        {UINT64_MAX, "18446744073709551615B", "18446744073709.551615s"},
    };
    char text[PRINT_UNIT_MAX];
    uint64_t back;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        print_size_text(text, rows[i].value);
        assert_string_equal(text, rows[i].size);
        assert_int_equal(parse_size(text, 0, UINT64_MAX, &back), 0);
        assert_true(back == rows[i].value);
        print_duration_text(text, rows[i].value);
        assert_string_equal(text, rows[i].duration);
        assert_int_equal(parse_duration(text, 0, UINT64_MAX, &back), 0);
        assert_true(back == rows[i].value);
    }
}

static void a_file_gets_no_colour(void **state)
{
    FILE *f = fopen("/dev/null", "we");

    (void)state;
    assert_non_null(f);
    assert_false(print_colour_wanted(f));
    (void)fclose(f);
}

static void only_text_with_a_style_is_styled(void **state)
{
    struct buffer b;

    (void)state;
    buffer_open(&b);
    print_styled(b.f, true, PRINT_PLAIN, "a");
    print_styled(b.f, false, PRINT_BOLD, "b");
    print_styled(b.f, true, PRINT_BOLD, "");
    print_styled(b.f, true, PRINT_BOLD, "c");
    assert_buffer(&b, "ab\033[1mc\033[0m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_text_is_wrapped_and_indented),
        cmocka_unit_test(json_is_one_line),
        cmocka_unit_test(a_write_that_failed_is_reported),
        cmocka_unit_test(units_are_those_that_are_read),
        cmocka_unit_test(a_file_gets_no_colour),
        cmocka_unit_test(only_text_with_a_style_is_styled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
