/* SPDX-License-Identifier: Apache-2.0 */
/* The ceilings of exports: sizes, numbers, and how long something may take. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "core/limits.h"
#include "export/source.h"
#include "base/guards.h"

static void what_is_large_may_take_a_second_for_each_mebibyte(void **state)
{
    (void)state;
    assert_int_equal(source_allowance_us(0), UINT64_C(120) * 1000000);
    assert_int_equal(source_allowance_us(10 * LIMIT_MIB), UINT64_C(120) * 1000000);
    assert_int_equal(source_allowance_us(1 * LIMIT_GIB), UINT64_C(1024) * 1000000);
    assert_true(source_allowance_us(UINT64_MAX) > source_allowance_us(1 * LIMIT_GIB));
}

static void an_error_names_the_allowance(void **state)
{
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(source_too_slow("f", UINT64_C(1024) * 1000000, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.message, "1024 s"));
    assert_int_equal(err.cls, ERROR_RECOVERABLE);
}

static void the_largest_file_is_as_large_as_the_ceiling(void **state)
{
    const struct source src = {.max_bytes = 100};
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(source_check_size(&src, "f", 100, &err), 0);
    assert_int_equal(source_check_size(&src, "f", 500, &err), -EFBIG);
    assert_int_equal(err.cls, ERROR_TOO_LARGE);
    assert_string_equal(err.message, "'f' has 500 bytes, and at most 100 may be exported");
}

static void one_file_too_many_ends_it(void **state)
{
    struct source src = {.entries = LIMIT_EXPORT_FILES - 1};
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(source_count(&src, &err), 0);
    assert_int_equal(source_count(&src, &err), -EFBIG);
    assert_int_equal(err.cls, ERROR_TOO_LARGE);
}

static void a_long_path_keeps_its_end_and_drives_no_terminal(void **state)
{
    char path[4096], shown[SOURCE_SHOWN_BYTES];

    (void)state;
    memset(path, 'x', sizeof path);
    memcpy(path + sizeof path - 6, "\033[2Jy", 6);
    source_show(path, shown);
    assert_int_equal(strlen(shown), SOURCE_SHOWN_BYTES - 1);
    assert_memory_equal(shown, "...x", 4);
    assert_string_equal(shown + strlen(shown) - 5, "?[2Jy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_large_may_take_a_second_for_each_mebibyte),
        cmocka_unit_test(an_error_names_the_allowance),
        cmocka_unit_test(the_largest_file_is_as_large_as_the_ceiling),
        cmocka_unit_test(one_file_too_many_ends_it),
        cmocka_unit_test(a_long_path_keeps_its_end_and_drives_no_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
