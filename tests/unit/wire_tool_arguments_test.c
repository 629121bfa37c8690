/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of tool calls: what models write, and what they may not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/tool_arguments.h"
#include "base/guards.h"

/* One property of each kind. */
enum { TEXT, TIME, COUNT, PLAIN };

static const struct tool_schema schema = {
    .properties = {{.name = "text", .type = TOOL_STRING, .required = true},
                   {.name = "time", .type = TOOL_NUMBER, .nullable = true},
                   {.name = "count", .type = TOOL_INTEGER, .nullable = true},
                   {.name = "plain", .type = TOOL_STRING}},
    .n = 4,
};
static const struct tool_schema optional = {
    .properties = {{.name = "plain", .type = TOOL_STRING}},
    .n = 1,
};

/* In memory that ends with the text, so that a sanitizer sees one byte too far. */
static int parse_bytes(const char *json, size_t len, const struct tool_schema *s,
                       struct tool_arguments *ret, struct error *err)
{
    char *exact = malloc(len > 0 ? len : 1);
    int r;

    assert_non_null(exact);
    memcpy(exact, json, len);
    r = tool_arguments_parse(exact, len, s, ret, err);
    free(exact);
    return r;
}

static struct tool_arguments taken(const char *json)
{
    struct tool_arguments a;
    struct error err = ERROR_INIT;

    if (parse_bytes(json, strlen(json), &schema, &a, &err) != 0)
        fail_msg("%s: refused: %s", json, err.message);
    assert_int_equal(err.code, 0);
    return a;
}

static void assert_refused_bytes(const char *json, size_t len, int code, const char *message)
{
    struct tool_arguments a, before;
    struct error err = ERROR_INIT;

    memset(&a, 0x5A, sizeof a);
    memcpy(&before, &a, sizeof a);
    assert_int_equal(parse_bytes(json, len, &schema, &a, &err), -code);
    assert_memory_equal(&a, &before, sizeof a);
    assert_int_equal(err.code, code);
    assert_int_equal(err.cls, code == EINVAL ? ERROR_RECOVERABLE : ERROR_TOO_LARGE);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in: %s", message, err.message);
}

static void assert_refused(const char *json, const char *message)
{
    assert_refused_bytes(json, strlen(json), EINVAL, message);
}

static void assert_number(const char *value, double expected)
{
    char json[600];
    struct tool_arguments a;

    (void)snprintf(json, sizeof json, "{\"text\":\"\",\"time\":%s}", value);
    a = taken(json);
    assert_true(a.items[TIME].given);
    if (isnan(expected))
        assert_true(isnan(a.items[TIME].number));
    else
        assert_true(a.items[TIME].number == expected);
    tool_arguments_done(&a);
}

static void assert_integer(const char *value, double expected)
{
    char json[600];
    struct tool_arguments a;

    (void)snprintf(json, sizeof json, "{\"text\":\"\",\"count\":%s}", value);
    a = taken(json);
    assert_true(a.items[COUNT].given && a.items[COUNT].number == expected);
    tool_arguments_done(&a);
}

static void all_types_are_read(void **state)
{
    struct tool_arguments a = taken(" {\"count\": 7, \"time\": 2.5, \"text\": \"a\\n\\u00e9\"}\n");

    (void)state;
    assert_true(a.items[TEXT].given && a.items[TIME].given && a.items[COUNT].given);
    assert_false(a.items[PLAIN].given);
    assert_string_equal(a.items[TEXT].text, "a\n\xC3\xA9");
    assert_int_equal(a.items[TEXT].len, 4);
    assert_true(a.items[TIME].number == 2.5 && a.items[COUNT].number == 7);
    tool_arguments_done(&a);
    assert_null(a.items[TEXT].text);
}

static void a_required_property_may_not_be_missing(void **state)
{
    (void)state;
    assert_refused("{}", "text is missing");
    assert_refused("", "text is missing");
    assert_refused("{\"plain\":\"x\"}", "text is missing");
}

static void nothing_at_all_means_no_arguments(void **state)
{
    static const char *const texts[] = {"", " \n", "{}"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tool_arguments a;
        struct error err = ERROR_INIT;

        assert_int_equal(parse_bytes(texts[i], strlen(texts[i]), &optional, &a, &err), 0);
        assert_false(a.items[0].given);
        tool_arguments_done(&a);
    }
}

static void a_string_may_not_be_a_number_or_null(void **state)
{
    (void)state;
    assert_refused("{\"text\":1}", "text has to be a string, and the number 1 is none");
    assert_refused("{\"text\":null}", "text has to be a string, and null is none");
    assert_refused("{\"text\":true}", "true is none");
    assert_refused("{\"text\":[]}", "a list is none");
    assert_refused("{\"text\":{}}", "an object is none");
}

static void an_unknown_argument_is_ignored(void **state)
{
    struct tool_arguments a =
        taken("{\"more\":[1,{\"text\":2}],\"text\":\"x\",\"Text\":3,\"\":null}");

    (void)state;
    assert_string_equal(a.items[TEXT].text, "x");
    tool_arguments_done(&a);
}

static void a_number_may_come_as_a_string(void **state)
{
    (void)state;
    assert_number("\"30\"", 30);
    assert_number("\" -2.5e1\\n\"", -25);
    assert_number("\"+.5\"", 0.5);
    assert_number("\"5.\"", 5);
    assert_number("true", 1);
    assert_number("false", 0);
    assert_number("\"inf\"", INFINITY);
    assert_number("\"-Infinity\"", -INFINITY);
    assert_number("\"NaN\"", NAN);
    assert_number("123456789012345678901234567890", 123456789012345678901234567890.0);
}

static void a_string_that_holds_no_number_is_no_number(void **state)
{
    (void)state;
    assert_refused("{\"text\":\"\",\"time\":\"soon\"}",
                   "time has to be a number, and the string \"soon\" is none");
    assert_refused("{\"text\":\"\",\"time\":\"\"}", "time has to be a number");
    assert_refused("{\"text\":\"\",\"time\":\"0x10\"}", "time has to be a number");
    assert_refused("{\"text\":\"\",\"time\":\"1 2\"}", "time has to be a number");
    assert_refused("{\"text\":\"\",\"time\":\"1e\"}", "time has to be a number");
    assert_refused("{\"text\":\"\",\"time\":\".\"}", "time has to be a number");
    assert_refused("{\"text\":\"\",\"time\":\"1\\u0000\"}", "time has to be a number");
    assert_refused("{\"text\":\"\",\"time\":[]}", "a list is none");
    assert_refused("{\"text\":\"\",\"time\":\"nanny\"}", "time has to be a number");
}

static void a_long_string_is_quoted_in_part_and_printable(void **state)
{
    (void)state;
    assert_refused("{\"text\":\"\",\"time\":\"0123456789012345678901234567890123456789abc\"}",
                   "the string \"0123456789012345678901234567890123456789...\" is none");
    assert_refused("{\"text\":\"\",\"time\":\"a\\u001b[1m\"}", "the string \"a?[1m\" is none");
}

static void an_integer_may_be_written_in_any_way_if_it_is_whole(void **state)
{
    (void)state;
    assert_integer("5", 5);
    assert_integer("2.0", 2);
    assert_integer("\"5\"", 5);
    assert_integer("\"5.0\"", 5);
    assert_integer("-3", -3);
    assert_integer("1e300", 1e300);
    assert_integer("true", 1);
    assert_refused("{\"text\":\"\",\"count\":2.5}",
                   "count has to be a whole number, and the number 2.5 is none");
    assert_refused("{\"text\":\"\",\"count\":\"2.5\"}", "count has to be a whole number");
    assert_refused("{\"text\":\"\",\"count\":\"nan\"}", "count has to be a whole number");
    assert_refused("{\"text\":\"\",\"count\":\"inf\"}", "count has to be a whole number");
}

static void null_is_the_same_as_absent_where_it_may_be(void **state)
{
    struct tool_arguments a = taken("{\"text\":\"\",\"time\":null,\"count\":null}");

    (void)state;
    assert_false(a.items[TIME].given || a.items[COUNT].given);
    tool_arguments_done(&a);
    assert_refused("{\"text\":\"\",\"plain\":null}", "plain has to be a string, and null is none");
}

static void a_string_may_be_empty_or_hold_nuls(void **state)
{
    struct tool_arguments a = taken("{\"text\":\"a\\u0000b\",\"plain\":\"\"}");

    (void)state;
    assert_int_equal(a.items[TEXT].len, 3);
    assert_memory_equal(a.items[TEXT].text, "a\0b", 4);
    assert_true(a.items[PLAIN].given);
    assert_int_equal(a.items[PLAIN].len, 0);
    assert_string_equal(a.items[PLAIN].text, "");
    tool_arguments_done(&a);
}

static void surrogates_need_their_other_half(void **state)
{
    struct tool_arguments a = taken("{\"text\":\"\\ud83d\\uDE00\\\\ud800\"}");

    (void)state;
    assert_string_equal(a.items[TEXT].text, "\xF0\x9F\x98\x80\\ud800");
    tool_arguments_done(&a);
    assert_refused("{\"text\":\"a\\ud800b\"}", "text holds an unpaired surrogate");
    assert_refused("{\"text\":\"\\udc00\"}", "text holds an unpaired surrogate");
    assert_refused("{\"text\":\"\\ud800\\ud800\"}", "text holds an unpaired surrogate");
    assert_refused("{\"text\":\"\\ud800\\n\"}", "text holds an unpaired surrogate");
    assert_refused("{\"text\":\"\",\"plain\":\"\\ud800\"}", "plain holds an unpaired surrogate");
    assert_refused("{\"text\":\"\",\"other\":[\"\\ud800\"]}", "the text of the arguments holds");
    assert_refused("{\"text\":\"\xED\xA0\x80\"}", "text holds an unpaired surrogate");
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    assert_refused("{\"text\":\"\xFF\"}", "text is not well-formed UTF-8");
    assert_refused("{\"text\":\"\xC3\"}", "text is not well-formed UTF-8");
    assert_refused("{\"text\":\"\xC0\x80\"}", "text is not well-formed UTF-8");
    assert_refused("\xFE", "the text of the arguments is not well-formed UTF-8");
}

static void what_is_not_a_json_object_is_refused(void **state)
{
    (void)state;
    assert_refused("{\"text\":\"x\"", "the arguments are not JSON: line 1, column");
    assert_refused("{\"text\":\"x\"} {}", "the arguments are not JSON");
    assert_refused("{'text':'x'}", "the arguments are not JSON");
    assert_refused("{\"text\":\"x\",\"time\":NaN}", "the arguments are not JSON");
    assert_refused("{\"text\":\"x\\q\"}", "the arguments are not JSON");
    assert_refused("[]", "the arguments are not a JSON object");
    assert_refused("\"text\"", "the arguments are not a JSON object");
    assert_refused("null", "the arguments are not a JSON object");
    assert_refused_bytes("{}\0", 3, EINVAL, "the arguments are not JSON");
}

static void every_shorter_text_is_refused(void **state)
{
    static const char whole[] = "{\"text\":\"a\\ud83d\\ude00\xC3\xA9\",\"time\":2.5}";

    (void)state;
    for (size_t len = 1; len < sizeof whole - 1; len++)
        assert_refused_bytes(whole, len, EINVAL, "");
    struct tool_arguments a = taken(whole);
    tool_arguments_done(&a);
}

static void nesting_and_size_are_bounded(void **state)
{
    static char text[2 * TOOL_ARGUMENTS_DEPTH_MAX + 64], many[400100];
    size_t n = 0;

    (void)state;
    n = (size_t)snprintf(text, sizeof text, "{\"text\":\"[[[\",\"x\":");
    memset(text + n, '[', TOOL_ARGUMENTS_DEPTH_MAX - 1);
    memset(text + n + TOOL_ARGUMENTS_DEPTH_MAX - 1, ']', TOOL_ARGUMENTS_DEPTH_MAX - 1);
    n += 2 * (TOOL_ARGUMENTS_DEPTH_MAX - 1);
    text[n] = '}';
    struct tool_arguments a = taken(text);
    tool_arguments_done(&a);
    memset(many, '[', sizeof many);
    assert_refused_bytes(many, sizeof many, E2BIG, "too many lists and objects inside each other");
    memset(many, ',', sizeof many);
    memcpy(many, "{\"x\":[0", 7);
    assert_refused_bytes(many, sizeof many, E2BIG, "too many values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types_are_read),
        cmocka_unit_test(a_required_property_may_not_be_missing),
        cmocka_unit_test(nothing_at_all_means_no_arguments),
        cmocka_unit_test(a_string_may_not_be_a_number_or_null),
        cmocka_unit_test(an_unknown_argument_is_ignored),
        cmocka_unit_test(a_number_may_come_as_a_string),
        cmocka_unit_test(a_string_that_holds_no_number_is_no_number),
        cmocka_unit_test(a_long_string_is_quoted_in_part_and_printable),
        cmocka_unit_test(an_integer_may_be_written_in_any_way_if_it_is_whole),
        cmocka_unit_test(null_is_the_same_as_absent_where_it_may_be),
        cmocka_unit_test(a_string_may_be_empty_or_hold_nuls),
        cmocka_unit_test(surrogates_need_their_other_half),
        cmocka_unit_test(text_that_is_not_utf8_is_refused),
        cmocka_unit_test(what_is_not_a_json_object_is_refused),
        cmocka_unit_test(every_shorter_text_is_refused),
        cmocka_unit_test(nesting_and_size_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
