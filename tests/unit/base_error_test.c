/* SPDX-License-Identifier: Apache-2.0 */
/* The error object: recording, wrapping, and the text a person reads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/guards.h"

static void an_error_keeps_its_code_class_and_text(void **state)
{
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(error_set(&err, ERROR_USAGE, ENOENT, "no %s", "file"), -ENOENT);
    assert_int_equal(err.code, ENOENT);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_string_equal(err.message, "no file");
    assert_string_equal(err.context, "");
    assert_string_equal(err.remedy, "");
}

static void a_remedy_replaces_an_earlier_one(void **state)
{
    struct error err = ERROR_INIT;

    (void)state;
    error_set(&err, ERROR_TERMINAL, EIO, "broken");
    assert_int_equal(error_remedy(&err, "Wait"), -EIO);
    assert_int_equal(error_remedy(&err, "Go %s", "home"), -EIO);
    assert_string_equal(err.remedy, "Go home");
    assert_string_equal(err.message, "broken");
}

static void contexts_stand_outermost_first(void **state)
{
    struct error err = ERROR_INIT;
    char text[64];

    (void)state;
    error_set(&err, ERROR_TERMINAL, EIO, "broken");
    assert_int_equal(error_context(&err, "step %d", 3), -EIO);
    assert_int_equal(error_context(&err, "set-up"), -EIO);
    error_format(&err, text, sizeof text);
    assert_string_equal(text, "set-up: step 3: broken");
}

static void long_contexts_are_cut_and_stay_terminated(void **state)
{
    struct error err = ERROR_INIT;
    char part[400];

    (void)state;
    memset(part, 'x', sizeof part - 1);
    part[sizeof part - 1] = '\0';
    error_set(&err, ERROR_TERMINAL, EIO, "%s%s", part, part);
    for (int i = 0; i < 5; i++)
        error_context(&err, "%s", part);
    error_remedy(&err, "%s%s", part, part);
    assert_true(memchr(err.context, '\0', sizeof err.context) != NULL);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(strlen(err.remedy), sizeof err.remedy - 1);
}

static void the_text_has_the_parts_that_exist(void **state)
{
    struct error err = ERROR_INIT;
    char text[128];

    (void)state;
    error_set(&err, ERROR_USAGE, EINVAL, "not a number");
    error_format(&err, text, sizeof text);
    assert_string_equal(text, "not a number");
    error_remedy(&err, "Give one");
    error_format(&err, text, sizeof text);
    assert_string_equal(text, "not a number. Give one.");
    error_context(&err, "here");
    error_format(&err, text, sizeof text);
    assert_string_equal(text, "here: not a number. Give one.");
}

static void the_text_ends_within_any_buffer(void **state)
{
    struct error err = ERROR_INIT;
    char text[64];

    (void)state;
    error_set(&err, ERROR_USAGE, EINVAL, "caf\xC3\xA9 is closed");
    error_remedy(&err, "Go elsewhere");
    for (size_t size = 1; size < sizeof text; size++) {
        memset(text, 'Z', sizeof text);
        error_format(&err, text, size);
        assert_true(strlen(text) < size);
        assert_int_equal(text[size], 'Z');
    }
}

static void control_bytes_cannot_write_a_line_of_their_own(void **state)
{
    struct error err = ERROR_INIT;
    char text[64];

    (void)state;
    error_set(&err, ERROR_USAGE, EINVAL, "a\nb\033[31mc");
    error_format(&err, text, sizeof text);
    assert_string_equal(text, "a?b?[31mc");
}

static void every_class_has_its_word(void **state)
{
    (void)state;
    assert_string_equal(error_class_name(ERROR_RECOVERABLE), "recoverable");
    assert_string_equal(error_class_name(ERROR_TOO_LARGE), "too_large");
    assert_string_equal(error_class_name(ERROR_TERMINAL), "terminal");
    assert_string_equal(error_class_name(ERROR_USAGE), "usage");
    assert_string_equal(error_class_name(ERROR_CLASS__MAX), "terminal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_keeps_its_code_class_and_text),
        cmocka_unit_test(a_remedy_replaces_an_earlier_one),
        cmocka_unit_test(contexts_stand_outermost_first),
        cmocka_unit_test(long_contexts_are_cut_and_stay_terminated),
        cmocka_unit_test(the_text_has_the_parts_that_exist),
        cmocka_unit_test(the_text_ends_within_any_buffer),
        cmocka_unit_test(control_bytes_cannot_write_a_line_of_their_own),
        cmocka_unit_test(every_class_has_its_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
