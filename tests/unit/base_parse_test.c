/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers, sizes and durations: what is accepted, what is refused, and with which errno. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/guards.h"

struct row {
    const char *text;
    int result;
    uint64_t value;
};

typedef int parser(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

static void check(parser *parse, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 4711;
        int r = parse(rows[i].text, 0, UINT64_MAX, &v);

        if (r != rows[i].result || v != (r < 0 ? 4711 : rows[i].value))
            fail_msg("'%s': %d, %llu", rows[i].text, r, (unsigned long long)v);
    }
}

static void a_number_is_digits_alone(void **state)
{
    static const struct row rows[] = {
        {"0", 0, 0},
        {"007", 0, 7},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"99999999999999999999999", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"1x", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"1.0", -EINVAL, 0},
        {"\xD9\xA1", -EINVAL, 0}, /* a digit of another script */
    };

    (void)state;
    check(parse_u64, rows, ARRAY_SIZE(rows));
}

static void a_size_has_a_unit(void **state)
{
    static const struct row rows[] = {
        {"512B", 0, 512},
        {"1k", 0, 1024},
        {"1K", 0, 1024},
        {"1KB", 0, 1024},
        {"1KiB", 0, 1024},
        {"3m", 0, 3ull << 20},
        {"2G", 0, 2ull << 30},
        {"1TiB", 0, 1ull << 40},
        {"0M", 0, 0},
        {"512", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"M", -EINVAL, 0},
        {"1 M", -EINVAL, 0},
        {"1.5G", -EINVAL, 0},
        {"1Mi", -EINVAL, 0},
        {"1MM", -EINVAL, 0},
        {"1P", -EINVAL, 0},
        {"1b", -EINVAL, 0},
        {"16777215T", 0, 16777215ull << 40},
        {"16777216T", -ERANGE, 0},
        {"18446744073709551615K", -ERANGE, 0},
    };

    (void)state;
    check(parse_size, rows, ARRAY_SIZE(rows));
}

static void a_duration_is_seconds_unless_it_has_a_unit(void **state)
{
    static const struct row rows[] = {
        {"90", 0, 90000000},
        {"90s", 0, 90000000},
        {"1500ms", 0, 1500000},
        {"5m", 0, 300000000},
        {"1h", 0, 3600000000},
        {"1d", 0, 86400000000},
        {"0.5s", 0, 500000},
        {"0.5", 0, 500000},
        {"1.5m", 0, 90000000},
        {"0.000001", 0, 1},
        {"0.001ms", 0, 1},
        {"0", 0, 0},
        {"1.", -EINVAL, 0},
        {".5", -EINVAL, 0},
        {"1.5.5", -EINVAL, 0},
        {"0.0000001", -EINVAL, 0}, /* finer than it is kept */
        {"1 s", -EINVAL, 0},
        {"1S", -EINVAL, 0},
        {"1us", -EINVAL, 0},
        {"-1s", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"s", -EINVAL, 0},
        {"18446744073709551615", -ERANGE, 0},
        {"213503982334602d", -ERANGE, 0},
    };

    (void)state;
    check(parse_duration, rows, ARRAY_SIZE(rows));
}

static void the_callers_range_is_kept(void **state)
{
    uint64_t v;

    (void)state;
    assert_int_equal(parse_u64("4", 5, 7, &v), -ERANGE);
    assert_int_equal(parse_u64("5", 5, 7, &v), 0);
    assert_int_equal(parse_u64("7", 5, 7, &v), 0);
    assert_int_equal(parse_u64("8", 5, 7, &v), -ERANGE);
    assert_int_equal(parse_size("1023B", 1024, 4096, &v), -ERANGE);
    assert_int_equal(parse_size("4K", 1024, 4096, &v), 0);
    assert_int_equal(parse_size("5K", 1024, 4096, &v), -ERANGE);
    assert_int_equal(parse_duration("999ms", 1000000, 2000000, &v), -ERANGE);
    assert_int_equal(parse_duration("2s", 1000000, 2000000, &v), 0);
    assert_int_equal(parse_duration("2.000001s", 1000000, 2000000, &v), -ERANGE);
}

static void hexadecimal_digits_have_either_case(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(parse_hex_digit("0123456789abcdef"[i]), i);
        assert_int_equal(parse_hex_digit("0123456789ABCDEF"[i]), i);
    }
    for (const char *c = "/:@G`g \xFF"; *c; c++)
        assert_int_equal(parse_hex_digit(*c), -1);
    assert_int_equal(parse_hex_digit('\0'), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_digits_alone),
        cmocka_unit_test(a_size_has_a_unit),
        cmocka_unit_test(a_duration_is_seconds_unless_it_has_a_unit),
        cmocka_unit_test(the_callers_range_is_kept),
        cmocka_unit_test(hexadecimal_digits_have_either_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
