/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/guards.h"

static void assert_encodes(const void *bytes, size_t len, const char *expected)
{
    size_t n = 99;
    _cleanup_free_ char *text = base64_encode(bytes, len, &n);

    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(n, strlen(expected));
}

static void the_examples_of_the_rfc_hold(void **state)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_encodes(rows[i][0], strlen(rows[i][0]), rows[i][1]);
}

static void every_digit_comes_in_its_place(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[48];

    /* The bytes whose sextets are 0, 1, … 63. */
    for (unsigned i = 0; i < 16; i++) {
        uint32_t bits = (4 * i) << 18 | (4 * i + 1) << 12 | (4 * i + 2) << 6 | (4 * i + 3);

        bytes[3 * i] = (uint8_t)(bits >> 16);
        bytes[3 * i + 1] = (uint8_t)(bits >> 8);
        bytes[3 * i + 2] = (uint8_t)bits;
    }
    (void)state;
    assert_encodes(bytes, sizeof bytes, digits);
}

static void nuls_and_high_bytes_are_bytes_like_others(void **state)
{
    (void)state;
    assert_encodes("\0", 1, "AA==");
    assert_encodes("\0\0\0", 3, "AAAA");
    assert_encodes("\xff\xfe", 2, "//4=");
    assert_encodes("\xff\xff\xff", 3, "////");
}

static void nothing_may_be_null(void **state)
{
    _cleanup_free_ char *text = base64_encode(NULL, 0, NULL);

    (void)state;
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_rfc_hold),
        cmocka_unit_test(every_digit_comes_in_its_place),
        cmocka_unit_test(nuls_and_high_bytes_are_bytes_like_others),
        cmocka_unit_test(nothing_may_be_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
