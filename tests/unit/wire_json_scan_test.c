/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text in place: what is accepted, and what is found in it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/json_scan.h"
#include "base/guards.h"

/* In memory that ends with the text, so that a sanitizer sees one byte too far. */
static int scan_bytes(const char *text, size_t len)
{
    struct json_span v = {.kind = JSON_SPAN_NONE, .at = text, .len = SIZE_MAX};
    char *exact = malloc(len > 0 ? len : 1);
    int r;

    assert_non_null(exact);
    memcpy(exact, text, len);
    r = json_scan(exact, len, &v);
    if (r == 0)
        assert_true(v.at >= exact && v.len > 0 && v.at + v.len <= exact + len);
    else
        assert_true(v.at == text && v.len == SIZE_MAX); /* results are written on success only */
    free(exact);
    return r;
}

static struct json_span value_of(const char *text)
{
    struct json_span v;

    if (json_scan(text, strlen(text), &v) != 0)
        fail_msg("refused: %s", text);
    return v;
}

static void assert_span(struct json_span span, enum json_kind kind, const char *text)
{
    assert_int_equal(span.kind, kind);
    if (span.len != strlen(text) || memcmp(span.at, text, span.len) != 0)
        fail_msg("expected %s, got %.*s", text, (int)span.len, span.at);
}

static void assert_refused(const char *const texts[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (scan_bytes(texts[i], strlen(texts[i])) != -EINVAL)
            fail_msg("not refused: %s", texts[i]);
}

static void a_value_of_each_kind_is_found_without_its_blanks(void **state)
{
    static const struct {
        const char *text;
        enum json_kind kind;
    } values[] = {
        {"{}", JSON_SPAN_OBJECT},          {"{ \"a\" : { } , \"\" : [ ] }", JSON_SPAN_OBJECT},
        {"[]", JSON_SPAN_ARRAY},           {"[[],[ 1 , {} ] ,\"]\"]", JSON_SPAN_ARRAY},
        {"\"\"", JSON_SPAN_STRING},        {"\"\\\"\"", JSON_SPAN_STRING},
        {"\"\\\\\"", JSON_SPAN_STRING},    {"\"\x7F\"", JSON_SPAN_STRING},
        {"\"\\ud800\"", JSON_SPAN_STRING}, {"\"\\uDBFF\\u0000\\b\\/\"", JSON_SPAN_STRING},
        {"0", JSON_SPAN_NUMBER},           {"-0", JSON_SPAN_NUMBER},
        {"1e999", JSON_SPAN_NUMBER},       {"-12.50E-3", JSON_SPAN_NUMBER},
        {"1E+05", JSON_SPAN_NUMBER},       {"100000000000000000000000", JSON_SPAN_NUMBER},
        {"true", JSON_SPAN_TRUE},          {"false", JSON_SPAN_FALSE},
        {"null", JSON_SPAN_NULL},
    };
    char blanks[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        assert_span(value_of(values[i].text), values[i].kind, values[i].text);
        (void)snprintf(blanks, sizeof blanks, " \t\r\n%s\n\r\t ", values[i].text);
        assert_span(value_of(blanks), values[i].kind, values[i].text);
        assert_int_equal(scan_bytes(blanks, strlen(blanks)), 0);
    }
}

static void what_the_grammar_lacks_is_refused(void **state)
{
    static const char *const texts[] = {
        "",           " ",           "{",           "[",          "}",
        "]",          "[}",          "{]",          "[1",         "[1,",
        "[1,]",       "[,1]",        "[1 2]",       "[1}",        "{\"a\"}",
        "{\"a\":}",   "{\"a\":1,}",  "{,}",         "{1:2}",      "{a:1}",
        "{\"a\" 1}",  "{\"a\":1",    "{\"a\":",     "{\"a\"",     "{\"a",
        "{\"a\":1]",  "{\"a\",1}",   "1 2",         "{} {}",      "1,",
        "tru",        "truee",       "True",        "nul",        "NaN",
        "Infinity",   "-",           "+1",          "01",         "-01",
        "00",         "1.",          ".5",          "1e",         "1e+",
        "1.e5",       "0x1",         "1_000",       "'a'",        "\"",
        "\"\\\"",     "\"\\",        "\"\\q\"",     "\"\\u\"",    "\"\\u12\"",
        "\"\\u123\"", "\"\\u12g4\"", "\"\\U0041\"", "\"a\nb\"",   "\"a\tb\"",
        "\"\x1F\"",   "/**/1",       "[1]//",       "\"\\u",      "\"\\u1",
        "\"\\u00e9",  "\v1",         "\f1",         "\xC2\xA0[]", "\xEF\xBB\xBF{}",
        "[\"a\":1]",  "[1:2]",       ":",           ",",          "{:1}",
        "--1",        "1-",
    };

    (void)state;
    assert_refused(texts, ARRAY_SIZE(texts));
}

static void nul_bytes_are_refused_wherever_they_stand(void **state)
{
    static const char whole[] = "{\"a\": [1, true, \"x\"]}";
    char text[sizeof whole];

    (void)state;
    for (size_t at = 0; at < sizeof whole; at++) {
        memcpy(text, whole, at);
        text[at] = '\0';
        memcpy(text + at + 1, whole + at, sizeof whole - 1 - at);
        assert_int_equal(scan_bytes(text, sizeof whole), -EINVAL);
    }
}

static void every_shorter_text_is_refused(void **state)
{
    static const char whole[] = "{\"a\":[-1.5e+7,true,false,null,{}],\"\\u00e9\\n\":"
                                "\"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80 and more than eight\"}";

    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++)
        assert_int_equal(scan_bytes(whole, len), -EINVAL);
    assert_int_equal(scan_bytes(whole, sizeof whole - 1), 0);
}

static void strings_are_utf8_and_nothing_else_is_beyond_ascii(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC3",
        "\xC3\x28",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xE4\xB8",
        "\xE4\xB8\x28",
        "\xE4\x28\xAD",
        "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF0\x9F\x98",
        "\xFE",
        "\xFF",
        "\xF0\x9F\x98\xC0",
        "\xC3\xA9\xC3",
    };
    static const char *const good[] = {
        "\xC2\x80",     "\xDF\xBF",     "\xE0\xA0\x80",     "\xED\x9F\xBF",
        "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
    };
    char text[64];

    (void)state;
    for (int before = 0; before < 20; before++) { /* at each place of the words of the fast path */
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
            (void)snprintf(text, sizeof text, "\"%.*s%s\"", before, "abcdefghijklmnopqrst",
                           good[i]);
            assert_int_equal(scan_bytes(text, strlen(text)), 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
            (void)snprintf(text, sizeof text, "\"%.*s%s\"", before, "abcdefghijklmnopqrst", bad[i]);
            assert_int_equal(scan_bytes(text, strlen(text)), -EINVAL);
        }
    }
    assert_refused((const char *const[]){"\xC3\xA9", "[\xC3\xA9]", "{\"a\":1}\xC3\xA9"}, 3);
}

static void each_byte_of_a_string_counts_wherever_it_stands(void **state)
{
    char text[34];

    (void)state;
    for (size_t at = 1; at < sizeof text - 1; at++) {
        for (int c = 1; c < 0x80; c++) {
            memset(text, 'x', sizeof text);
            text[0] = text[sizeof text - 1] = '"';
            text[at] = (char)c;
            /* "\x" is no escape, nor is the quote at the end then; a quote leaves x behind it */
            assert_int_equal(scan_bytes(text, sizeof text),
                             c >= 0x20 && c != '"' && c != '\\' ? 0 : -EINVAL);
        }
    }
}

static void depth_is_bounded_for_any_mixture(void **state)
{
    enum { MUCH = 10000 };
    char *text = malloc(6 * MUCH + 2);
    size_t n;

    (void)state;
    assert_non_null(text);
    for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        n = 0;
        for (size_t i = 0; i < depth; i++) {
            const char *open = i % 3 == 0 ? "[" : "{\"k\":";

            memcpy(text + n, open, strlen(open));
            n += strlen(open);
        }
        text[n++] = '1';
        for (size_t i = depth; i-- > 0;)
            text[n++] = i % 3 == 0 ? ']' : '}';
        assert_int_equal(scan_bytes(text, n), depth > JSON_DEPTH_MAX ? -E2BIG : 0);
        text[n - 1] ^= ']' ^ '}'; /* the wrong bracket */
        assert_int_equal(scan_bytes(text, n), depth > JSON_DEPTH_MAX ? -E2BIG : -EINVAL);
    }
    memset(text, '[', MUCH);
    assert_int_equal(scan_bytes(text, MUCH), -E2BIG);
    text[0] = '[';
    for (size_t i = 0; i < MUCH; i++) /* side by side is not within */
        memcpy(text + 1 + 3 * i, "{},", 3);
    text[3 * MUCH] = ']';
    assert_int_equal(scan_bytes(text, 3 * MUCH + 1), 0);
    free(text);
}

static void a_member_is_found_by_name_at_its_own_level(void **state)
{
    struct json_span o = value_of("{\"in\":{\"id\":1},\"s\":\"\\\"id\\\":2\", \"e\\u0069d\":3,"
                                  "\"\\u0069d\":4,\"ids\":5 , \"id\" : 6.5 ,\"id\":7,\"\":[8] }");

    (void)state;
    assert_span(json_span_member(o, "id"), JSON_SPAN_NUMBER, "6.5");
    assert_span(json_span_member(o, "in"), JSON_SPAN_OBJECT, "{\"id\":1}");
    assert_span(json_span_member(json_span_member(o, "in"), "id"), JSON_SPAN_NUMBER, "1");
    assert_span(json_span_member(o, "s"), JSON_SPAN_STRING, "\"\\\"id\\\":2\"");
    assert_span(json_span_member(o, ""), JSON_SPAN_ARRAY, "[8]");
    assert_int_equal(json_span_member(o, "i").kind, JSON_SPAN_NONE);
    assert_int_equal(json_span_member(o, "eid").kind, JSON_SPAN_NONE);
    assert_int_equal(json_span_member(value_of("{}"), "id").kind, JSON_SPAN_NONE);
    assert_int_equal(json_span_member(value_of("[\"id\",1]"), "id").kind, JSON_SPAN_NONE);
    assert_int_equal(json_span_member(value_of("\"id\""), "id").kind, JSON_SPAN_NONE);
    assert_int_equal(json_span_member((struct json_span){0}, "id").kind, JSON_SPAN_NONE);
}

static void members_come_one_after_another(void **state)
{
    static const char *const names[] = {"\"a\"", "\"\\\\\"", "\"a\"", "\"}\""};
    static const char *const values[] = {"{\"x\":[\"}\"]}", "\"\\\\\"", "-1e5", "null"};
    struct json_span o =
        value_of("{\"a\":{\"x\":[\"}\"]},\"\\\\\" :\t\"\\\\\"\n,\"a\":-1e5,\"}\":null}");
    struct json_span name, value;
    const char *at = NULL;
    size_t n = 0;

    (void)state;
    for (; json_span_next_member(o, &at, &name, &value); n++) {
        assert_true(n < ARRAY_SIZE(names));
        assert_span(name, JSON_SPAN_STRING, names[n]);
        assert_int_equal(value.len, strlen(values[n]));
        assert_memory_equal(value.at, values[n], value.len);
    }
    assert_int_equal(n, ARRAY_SIZE(names));
    at = NULL;
    assert_false(json_span_next_member(value_of("[1]"), &at, &name, &value));
    assert_false(json_span_next_member(value_of("{ }"), &at, &name, &value));
    assert_false(json_span_next_member((struct json_span){0}, &at, &name, &value));
}

static void elements_come_one_after_another(void **state)
{
    static const char *const values[] = {
        "1", "\"a\\\\\"", "[[],[2]]", "{\"]\":\"[\"}", "true", "false", "null", "-0.5",
    };
    struct json_span list =
        value_of("[ 1,\"a\\\\\" , [[],[2]],{\"]\":\"[\"},true,false,null,-0.5 ]");
    struct json_span v;
    const char *at = NULL;
    size_t n = 0;

    (void)state;
    for (; json_span_next(list, &at, &v); n++) {
        assert_true(n < ARRAY_SIZE(values));
        assert_span(v, v.kind, values[n]);
        assert_span(value_of(values[n]), v.kind, values[n]);
    }
    assert_int_equal(n, ARRAY_SIZE(values));
    at = NULL;
    assert_false(json_span_next(value_of("[ ]"), &at, &v));
    assert_false(json_span_next(value_of("{\"a\":1}"), &at, &v));
    assert_false(json_span_next((struct json_span){0}, &at, &v));
}

/* An object of @n members, of which the last bears the name of the first if @twice. */
static bool unique_among(size_t n, size_t name_len, bool twice)
{
    char *text = malloc(n * (name_len + 30) + 3), *at = text;
    struct json_span o;
    bool unique;

    assert_non_null(text);
    *at++ = '{';
    for (size_t i = 0; i < n; i++) { /* alike up to their last digits */
        *at++ = '"';
        memset(at, 'n', name_len);
        at += name_len;
        at += snprintf(at, 29, "%06zu\":%zu,", twice && i == n - 1 ? 0 : i, i);
    }
    at[-1] = '}';
    assert_int_equal(json_scan(text, (size_t)(at - text), &o), 0);
    unique = json_span_unique(o);
    free(text);
    return unique;
}

static void two_members_of_one_name_are_seen(void **state)
{
    (void)state;
    assert_true(json_span_unique(value_of("{}")));
    assert_true(json_span_unique(value_of("{\"a\":{\"b\":1,\"b\":2},\"b\":\"a\"}")));
    assert_true(json_span_unique(value_of("{\"a\":1,\"A\":2,\"aa\":3,\"\":4,\"\\u0061\":5}")));
    assert_false(json_span_unique(value_of("{\"a\":1,\"b\":2,\"a\":1}")));
    assert_false(json_span_unique(value_of("{\"\":1,\"\":2}")));
    assert_true(json_span_unique(value_of("[1,1]")));
    assert_true(json_span_unique((struct json_span){0}));
}

static void an_object_of_very_many_members_is_not_looked_through(void **state)
{
    (void)state;
    assert_true(unique_among(JSON_MEMBERS_MAX, 0, false));
    assert_false(unique_among(JSON_MEMBERS_MAX, 0, true));
    assert_false(unique_among(JSON_MEMBERS_MAX + 1, 0, false));
    assert_false(unique_among(500000, 0, false));
    assert_true(unique_among(JSON_MEMBERS_MAX, 100000, false)); /* 25 MB that differ at the end */
}

static void assert_text(const char *json, const char *expected, size_t len)
{
    char *text = NULL;
    size_t got = SIZE_MAX;

    assert_int_equal(json_span_text(value_of(json), &text, &got), 0);
    assert_int_equal(got, len);
    assert_memory_equal(text, expected, len + 1);
    free(text);
}

static void a_string_loses_its_escapes(void **state)
{
    (void)state;
    assert_text("\"\"", "", 0);
    assert_text("\"plain \xC3\xA9\"", "plain \xC3\xA9", 8);
    assert_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    assert_text("\"a\\u0000b\"", "a\0b", 3);
    assert_text("\"\\u007f\\u0080\\u07FF\\u0800\\uffff\"",
                "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF", 11);
    assert_text("\"\\ud800\\udc00\\uDBFF\\uDFFF\"", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", 8);
    assert_text("\"\\\\ud800\"", "\\ud800", 6);
    assert_text("\"\\uD7FF\\uE000\"", "\xED\x9F\xBF\xEE\x80\x80", 6);
}

static void half_a_surrogate_pair_has_no_text(void **state)
{
    static const char *const strings[] = {
        "\"\\ud800\"",        "\"\\udc00\"",        "\"\\ud800\\ud800\"",
        "\"\\ud800x\"",       "\"\\ud800\\n\"",     "\"\\udc00\\ud800\"",
        "\"\\ud800\\u0041\"", "\"\\udbff\\ue000\"", "\"ab\\ud83d\\\\udE00\"",
    };
    char *text = NULL;
    size_t len = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        assert_int_equal(json_span_text(value_of(strings[i]), &text, &len), -EINVAL);
    assert_int_equal(json_span_text(value_of("1"), &text, &len), -EINVAL);
    assert_int_equal(json_span_text((struct json_span){0}, &text, &len), -EINVAL);
    assert_true(!text && len == 7);
}

static void spans_are_compared_as_they_are_written(void **state)
{
    (void)state;
    assert_true(json_span_is(value_of("\"ping\""), "ping"));
    assert_true(json_span_is(value_of("\"\""), ""));
    assert_false(json_span_is(value_of("\"ping\""), "pin"));
    assert_false(json_span_is(value_of("\"pin\""), "ping"));
    assert_false(json_span_is(value_of("\"\\u0070ing\""), "ping"));
    assert_false(json_span_is(value_of("123456"), "2345"));
    assert_false(json_span_is((struct json_span){0}, ""));
    assert_true(json_span_equal(value_of("10"), value_of(" 10 ")));
    assert_false(json_span_equal(value_of("1"), value_of("\"1\"")));
    assert_false(json_span_equal(value_of("1"), value_of("1.0")));
    assert_false(json_span_equal(value_of("1"), (struct json_span){0}));
    assert_true(json_span_equal((struct json_span){0}, (struct json_span){0}));
}

static void an_integer_is_taken_if_it_fits(void **state)
{
    static const char *const others[] = {
        "1.0",
        "1e2",
        "1E2",
        "-0.0",
        "9223372036854775808",
        "-9223372036854775809",
        "\"1\"",
        "true",
        "10000000000000000000000000000000000000000",
    };
    long long v = 0;

    (void)state;
    assert_int_equal(json_span_integer(value_of("9223372036854775807"), &v), 0);
    assert_true(v == LLONG_MAX);
    assert_int_equal(json_span_integer(value_of("-9223372036854775808"), &v), 0);
    assert_true(v == LLONG_MIN);
    assert_int_equal(json_span_integer(value_of("-0"), &v), 0);
    assert_true(v == 0);
    assert_int_equal(json_span_integer(value_of("-1050"), &v), 0);
    assert_true(v == -1050);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_int_equal(json_span_integer(value_of(others[i]), &v), -EINVAL);
    assert_int_equal(json_span_integer((struct json_span){0}, &v), -EINVAL);
    assert_true(v == -1050);
}

static void an_integer_may_be_of_any_size(void **state)
{
    (void)state;
    assert_true(json_span_is_integer(value_of("10000000000000000000000000000000000000000")));
    assert_true(json_span_is_integer(value_of("-0")));
    assert_false(json_span_is_integer(value_of("0.0")));
    assert_false(json_span_is_integer(value_of("1e5")));
    assert_false(json_span_is_integer(value_of("1E5")));
    assert_false(json_span_is_integer(value_of("\"1\"")));
    assert_false(json_span_is_integer(value_of("null")));
    assert_false(json_span_is_integer((struct json_span){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_of_each_kind_is_found_without_its_blanks),
        cmocka_unit_test(what_the_grammar_lacks_is_refused),
        cmocka_unit_test(nul_bytes_are_refused_wherever_they_stand),
        cmocka_unit_test(every_shorter_text_is_refused),
        cmocka_unit_test(strings_are_utf8_and_nothing_else_is_beyond_ascii),
        cmocka_unit_test(each_byte_of_a_string_counts_wherever_it_stands),
        cmocka_unit_test(depth_is_bounded_for_any_mixture),
        cmocka_unit_test(a_member_is_found_by_name_at_its_own_level),
        cmocka_unit_test(members_come_one_after_another),
        cmocka_unit_test(elements_come_one_after_another),
        cmocka_unit_test(two_members_of_one_name_are_seen),
        cmocka_unit_test(an_object_of_very_many_members_is_not_looked_through),
        cmocka_unit_test(a_string_loses_its_escapes),
        cmocka_unit_test(half_a_surrogate_pair_has_no_text),
        cmocka_unit_test(spans_are_compared_as_they_are_written),
        cmocka_unit_test(an_integer_is_taken_if_it_fits),
        cmocka_unit_test(an_integer_may_be_of_any_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
