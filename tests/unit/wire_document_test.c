/* SPDX-License-Identifier: Apache-2.0 */
/* Documents: trees, types and places of both forms, every refusal with its place, cut texts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "wire/document.h"
#include "base/guards.h"

struct wrong {
    const char *text;
    const char *context; /* where */
    const char *words;   /* what the sentence contains */
};

static struct document *read_good(enum document_form form, const char *text)
{
    struct error err = ERROR_INIT;
    struct document *d = NULL;

    if (document_read(form, NULL, text, strlen(text), &d, &err) < 0)
        fail_msg("%s: %s: %s", text, err.context, err.message);
    return d;
}

static void check_wrong(enum document_form form, const struct wrong *x)
{
    struct error err = ERROR_INIT;
    struct document *d = NULL;
    int r = document_read(form, NULL, x->text, strlen(x->text), &d, &err);

    if (r == 0)
        fail_msg("taken: %s", x->text);
    if (r != -EINVAL || err.code != EINVAL || err.cls != ERROR_USAGE || d)
        fail_msg("%s: returned %d, code %d, class %d", x->text, r, err.code, (int)err.cls);
    if (strcmp(err.context, x->context) != 0 || !strstr(err.message, x->words))
        fail_msg("%s:\n  wanted %s: %s\n     got %s: %s", x->text, x->context, x->words,
                 err.context, err.message);
}

static const struct document_node *value(const struct document_node *node, const char *key)
{
    const struct document_entry *entry = document_find(node, key);

    if (!entry)
        fail_msg("no key %s", key);
    return &entry->value;
}

#define assert_place(place, l, c)                                                                  \
    do {                                                                                           \
        assert_int_equal((place).line, l);                                                         \
        assert_int_equal((place).column, c);                                                       \
    } while (0)

static const char spec_yaml[] = "# a spec\n"
                                "version: 1\n"
                                "spec:\n"
                                "  env: {PORT: \"8080\", caf\xC3\xA9: 'it''s', X: }\n"
                                "  allow:\n"
                                "  - example.com\n"
                                "  - '*.example.org:80'\n"
                                "  note: |\n"
                                "    two\n"
                                "    lines\n"
                                "empty: []\n";
static const char spec_json[] =
    "{\"version\": 1,\r\n"
    " \"spec\": {\"env\": {\"PORT\": \"8080\", \"caf\xC3\xA9\": \"it's\"},\n"
    "  \"allow\": [\"a\\u00e9\\ud83d\\ude00\\n\\/\", true, null, -1.5e3]},\r"
    " \"empty\": {}}\n";

static void yaml_becomes_a_tree_with_places(void **state)
{
    _cleanup_(document_freep) struct document *d = read_good(DOCUMENT_YAML, spec_yaml);
    const struct document_node *root = document_root(d), *spec = value(root, "spec");
    const struct document_node *env = value(spec, "env"), *allow = value(spec, "allow");

    (void)state;
    assert_int_equal(root->kind, DOCUMENT_MAP);
    assert_int_equal(root->n, 3);
    assert_place(root->at, 2, 1);
    assert_true(document_is(value(root, "version"), DOCUMENT_INTEGER));
    assert_true(value(root, "version")->plain);
    assert_place(value(root, "version")->at, 2, 10);
    assert_place(document_find(root, "spec")->key_at, 3, 1);
    assert_string_equal(document_entry(env, 0)->key, "PORT");
    assert_string_equal(value(env, "PORT")->text, "8080");
    assert_true(document_is(value(env, "PORT"), DOCUMENT_STRING));
    assert_false(value(env, "PORT")->plain);
    assert_string_equal(value(env, "caf\xC3\xA9")->text, "it's");
    assert_int_equal(document_entry(env, 1)->key_len, 5);
    assert_place(document_entry(env, 1)->key_at, 4, 23);
    assert_place(value(env, "caf\xC3\xA9")->at, 4, 29); /* characters, not bytes */
    assert_true(document_is(value(env, "X"), DOCUMENT_NULL));
    assert_string_equal(value(env, "X")->text, "");
    assert_int_equal(allow->kind, DOCUMENT_LIST);
    assert_string_equal(document_item(allow, 0)->text, "example.com");
    assert_place(document_item(allow, 1)->at, 7, 5);
    assert_null(document_item(allow, 2));
    assert_null(document_entry(allow, 0));
    assert_null(document_find(allow, "example.com"));
    assert_string_equal(value(spec, "note")->text, "two\nlines\n");
    assert_false(value(spec, "note")->plain);
    assert_int_equal(value(root, "empty")->n, 0);
    assert_null(document_item(value(root, "empty"), 0));
    assert_null(document_item(root, 0));
    assert_null(document_find(root, "other"));
}

static void json_becomes_the_same_tree(void **state)
{
    _cleanup_(document_freep) struct document *d = read_good(DOCUMENT_JSON, spec_json);
    const struct document_node *root = document_root(d), *spec = value(root, "spec");
    const struct document_node *allow = value(spec, "allow");

    (void)state;
    assert_place(root->at, 1, 1);
    assert_place(document_find(root, "spec")->key_at, 2, 2);
    assert_true(document_is(value(root, "version"), DOCUMENT_INTEGER));
    assert_string_equal(value(value(spec, "env"), "caf\xC3\xA9")->text, "it's");
    assert_place(value(value(spec, "env"), "caf\xC3\xA9")->at, 2, 43);
    assert_string_equal(document_item(allow, 0)->text, "a\xC3\xA9\xF0\x9F\x98\x80\n/");
    assert_int_equal(document_item(allow, 0)->len, 9);
    assert_true(document_is_true(document_item(allow, 1)));
    assert_true(document_is(document_item(allow, 2), DOCUMENT_NULL));
    assert_string_equal(document_item(allow, 3)->text, "-1.5e3");
    assert_true(document_is(document_item(allow, 3), DOCUMENT_FLOAT));
    assert_place(document_find(root, "empty")->key_at, 4, 2); /* after CR LF, LF, and CR */
}

static void a_byte_order_mark_is_skipped(void **state)
{
    _cleanup_(document_freep) struct document *y = read_good(DOCUMENT_YAML, "\xEF\xBB\xBF"
                                                                            "a: 1");
    _cleanup_(document_freep) struct document *j = read_good(DOCUMENT_JSON, "\xEF\xBB\xBF"
                                                                            "[1]");

    (void)state;
    assert_place(document_entry(document_root(y), 0)->key_at, 1, 1);
    assert_place(document_item(document_root(j), 0)->at, 1, 2);
}

static void nothing_at_all_stands_where_the_text_ends(void **state)
{
    _cleanup_(document_freep) struct document *d =
        read_good(DOCUMENT_YAML, "a:\nb: {c: , d: }\n? e");
    const struct document_node *root = document_root(d);

    (void)state;
    assert_place(value(root, "a")->at, 1, 3);
    assert_place(value(value(root, "b"), "c")->at, 2, 8);
    assert_place(value(root, "e")->at, 3, 4);
    assert_true(document_is(value(root, "e"), DOCUMENT_NULL));
}

static void plain_scalars_have_the_types_of_the_core_schema(void **state)
{
    static const struct {
        const char *text;
        enum document_type type;
    } cases[] = {
        {"~", DOCUMENT_NULL},        {"null", DOCUMENT_NULL},     {"Null", DOCUMENT_NULL},
        {"NULL", DOCUMENT_NULL},     {"nULL", DOCUMENT_STRING},   {"true", DOCUMENT_BOOLEAN},
        {"True", DOCUMENT_BOOLEAN},  {"TRUE", DOCUMENT_BOOLEAN},  {"tRUE", DOCUMENT_STRING},
        {"false", DOCUMENT_BOOLEAN}, {"False", DOCUMENT_BOOLEAN}, {"FALSE", DOCUMENT_BOOLEAN},
        {"yes", DOCUMENT_STRING},    {"NO", DOCUMENT_STRING},     {"on", DOCUMENT_STRING},
        {"0", DOCUMENT_INTEGER},     {"-0", DOCUMENT_INTEGER},    {"+12", DOCUMENT_INTEGER},
        {"012", DOCUMENT_INTEGER},   {"0o17", DOCUMENT_INTEGER},  {"0o18", DOCUMENT_STRING},
        {"0o", DOCUMENT_STRING},     {"0x1F", DOCUMENT_INTEGER},  {"0xaF", DOCUMENT_INTEGER},
        {"0xG", DOCUMENT_STRING},    {"-0x1", DOCUMENT_STRING},   {"0b1", DOCUMENT_STRING},
        {"1_000", DOCUMENT_STRING},  {"12h", DOCUMENT_STRING},    {"1:30", DOCUMENT_STRING},
        {"1.", DOCUMENT_FLOAT},      {".5", DOCUMENT_FLOAT},      {"-.5", DOCUMENT_FLOAT},
        {".", DOCUMENT_STRING},      {"-.", DOCUMENT_STRING},     {"+", DOCUMENT_STRING},
        {"1.5", DOCUMENT_FLOAT},     {"1e3", DOCUMENT_FLOAT},     {"1.e+3", DOCUMENT_FLOAT},
        {".e3", DOCUMENT_STRING},    {"1e", DOCUMENT_STRING},     {"1e+", DOCUMENT_STRING},
        {"1e3x", DOCUMENT_STRING},   {".inf", DOCUMENT_FLOAT},    {"-.Inf", DOCUMENT_FLOAT},
        {"+.INF", DOCUMENT_FLOAT},   {".iNF", DOCUMENT_STRING},   {".nan", DOCUMENT_FLOAT},
        {".NaN", DOCUMENT_FLOAT},    {".NAN", DOCUMENT_FLOAT},    {"-.nan", DOCUMENT_STRING},
        {"1.2.3", DOCUMENT_STRING},  {"'1'", DOCUMENT_STRING},    {"\"true\"", DOCUMENT_STRING},
        {"''", DOCUMENT_STRING},     {"|\n 1", DOCUMENT_STRING},  {">\n ~", DOCUMENT_STRING},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(document_freep) struct document *d = read_good(DOCUMENT_YAML, cases[i].text);

        if (!document_is(document_root(d), cases[i].type))
            fail_msg("%s is %s", cases[i].text, document_what(document_root(d)));
        assert_int_equal(document_root(d)->plain, !strchr("'\"|>", cases[i].text[0]));
    }
}

static void only_a_true_boolean_is_true(void **state)
{
    static const struct {
        const char *text;
        bool is_true;
    } cases[] = {{"true", true},    {"True", true},   {"TRUE", true},   {"false", false},
                 {"'true'", false}, {"truth", false}, {"[true]", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(document_freep) struct document *d = read_good(DOCUMENT_YAML, cases[i].text);
        assert_int_equal(document_is_true(document_root(d)), cases[i].is_true);
    }
}

static void wrong_yaml_is_refused_at_its_place(void **state)
{
    static const struct wrong cases[] = {
        {"", "line 1, column 1", "nothing in the text"},
        {"# only\n", "line 1, column 1", "comments alone"},
        {"a: &x 1", "line 1, column 4", "anchors are not accepted: '&x'"},
        {"a: &x [1]", "line 1, column 4", "anchors are not accepted"},
        {"a: &x {b: 1}", "line 1, column 4", "anchors are not accepted"},
        {"&k a: 1", "line 1, column 1", "anchors are not accepted"},
        {"a: *x", "line 1, column 4", "aliases are not accepted: '*x'"},
        {"*x : 1", "line 1, column 1", "aliases are not accepted"},
        {"- a\n- *.example.com", "line 2, column 3", "aliases are not accepted"},
        {"a: &.x", "line 1, column 4", "anchors are not accepted"},
        {"a: !!binary aGk=", "line 1, column 4", "tags are not accepted"},
        {"a: !!str 1", "line 1, column 4", "tags are not accepted"},
        {"a: !foo [1]", "line 1, column 4", "tags are not accepted: '!foo'"},
        {"a: !foo {}", "line 1, column 4", "tags are not accepted"},
        {"a: ! x", "line 1, column 4", "tags are not accepted"},
        {"!k a: 1", "line 1, column 1", "tags are not accepted"},
        {"a: !e!x 1", "line 1, column 4", "tags are not accepted"},
        {"a: !<x", "line 1, column 4", "tags are not accepted"},
        {"a: 1\nb: 2\n'a': 3", "line 3, column 1",
         "'a' is given twice: here and at line 1, column 1"},
        {"m: {x: 1,\n z: 2, z: 3, x: 4}", "line 2, column 8",
         "'z' is given twice: here and at line 2, column 2"},
        {"[a]: 1", "line 1, column 1", "a key cannot be a list"},
        {"? {a: 1}\n: 2", "line 1, column 3", "a key cannot be a map"},
        {"a: {{ b }}", "line 1, column 5", "a key cannot be a map"},
        {"b:\n  <<: {a: 1}", "line 2, column 3", "merge key '<<'"},
        {"--- a\n--- b", "line 2, column 1", "a second document"},
        {"a: 1\n---\n", "line 2, column 1", "a second document"},
        {"%TAG !e! x\n--- a", "line 1, column 1", "%TAG is not accepted"},
        {"%TAG\n--- a", "line 1, column 1", "%TAG is not accepted"},
        {"%YAML 1.3\n--- a", "line 1, column 1", "only the directives %YAML 1.1 and %YAML 1.2"},
        {"%YAML 1.1\n%YAML 1.1\n--- a", "line 2, column 1", "given twice"},
        {"%YAML x\n--- a", "line 1, column 1", "no version"},
        {"%FOO\n--- a", "line 1, column 1", "only %YAML is accepted"},
        {"a: x\xFFz", "line 1, column 5", "byte 0xFF is not UTF-8"},
        {"\xC3\xA9\n\xC3\xA9: \xED\xA0\x80", "line 2, column 4", "byte 0xED is not UTF-8"},
        {"\xFF\xFE"
         "a",
         "line 1, column 1", "not UTF-8"},
        {"a: \x01", "line 1, column 4", "U+0001 cannot stand in YAML"},
        {"a: x\x7F", "line 1, column 5", "U+007F"},
        {"a: x\xC2\x85"
         "b: 2",
         "line 1, column 5", "U+0085"},
        {"a: x\xE2\x80\xA8"
         "b: 2",
         "line 1, column 5", "U+2028"},
        {"a: x\xE2\x80\xA9"
         "b: 2",
         "line 1, column 5", "U+2029"},
        {"a: \xEF\xBB\xBF", "line 1, column 4", "U+FEFF"},
        {"a: \xEF\xBF\xBE", "line 1, column 4", "U+FFFE"},
        {"a: \"\\0\"", "line 1, column 4", "NUL character"},
        {"\"\\x00\": 1", "line 1, column 1", "NUL character"},
        {"a: \"\\uD800\"", "line 1, column 7", "stands for no character"},
        {"a: \"\\q\"", "line 1, column 5", "no such escape"},
        {"a: \"\\x0\"", "line 1, column 7", "hexadecimal"},
        {"\ta: 1", "line 1, column 1", "a tab cannot indent"},
        {"a:\n\tb: 1", "line 2, column 1", "a tab cannot indent"},
        {"a: |\n\tb", "line 2, column 1", "a tab cannot indent"},
        {"a: @b", "line 1, column 4", "'@' cannot begin a value"},
        {"a: `b`", "line 1, column 4", "'`' cannot begin a value"},
        {"a: b: c", "line 1, column 5", "a ':' that makes a key"},
        {"a: 1\n  b: 2", "line 2, column 4", "a ':' that makes a key"},
        {"a: 1\nfoo\nb: 2", "line 2, column 1", "neither a key"},
        {"a: - b", "line 1, column 4", "a list cannot begin here"},
        {"a: [1, 2\nb: 3", "line 2, column 2", "begins at line 1, column 4"},
        {"a: [1, 2", "line 1, column 9", "expected ',' or ']'"},
        {"a: {b: 1", "line 1, column 9", "expected ',' or '}'"},
        {"a: [fd00::]", "line 1, column 5", "text that ends with ':'"},
        {"a: ]", "line 1, column 4", "expected a value"},
        {"a: 'it's'", "line 1, column 8", "ended already"},
        {"- \"a\" b", "line 1, column 7", "ended already"},
        {"a: 'b\nc: 1\n", "line 1, column 4", "no closing quote"},
        {"a: \"b\n---\n", "line 1, column 4", "no closing quote"},
        {"a:\n  - 1\n - 2", "line 3, column 2", "expected a key"},
        {"- a\nb: 1", "line 2, column 1", "expected '- '"},
        {"a: |x\n  b", "line 1, column 5", "comment"},
        {"a: |0\n  b", "line 1, column 4", "1 to 9"},
        {"- a\n...\nb", "line 3, column 1", "neither part"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_wrong(DOCUMENT_YAML, &cases[i]);
}

static void wrong_json_is_refused_at_its_place(void **state)
{
    static const struct wrong cases[] = {
        {"", "line 1, column 1", "expected a value, but the text ends here"},
        {" \n ", "line 2, column 2", "expected a value, but the text ends here"},
        {"{", "line 1, column 2", "the map begins at line 1, column 1"},
        {"[1,\n\n", "line 3, column 1", "the list begins at line 1, column 1"},
        {"{\"a\"", "line 1, column 5", "expected ':'"},
        {"{\"a\":", "line 1, column 6", "expected a value"},
        {"[1 2]", "line 1, column 4", "expected ',' or ']', but found '2'"},
        {"{\"a\": 1 \"b\": 2}", "line 1, column 9", "expected ',' or '}', but found '\"'"},
        {"[1,\n 2,\n]", "line 2, column 3", "nothing follows this ','"},
        {"{\"a\": 1,}", "line 1, column 8", "nothing follows this ','"},
        {"[,1]", "line 1, column 2", "expected a value, but found ','"},
        {"[1}", "line 1, column 3", "expected ',' or ']', but found '}'"},
        {"{a: 1}", "line 1, column 2", "expected a key in double quotes, but found 'a'"},
        {"{1: 1}", "line 1, column 2", "expected a key in double quotes, but found '1'"},
        {"{'a': 1}", "line 1, column 2", "expected a key in double quotes"},
        {"['a']", "line 1, column 2", "expected a value, but found '''"},
        {"// no\n1", "line 1, column 1", "expected a value, but found '/'"},
        {"[1, # no\n2]", "line 1, column 5", "expected a value, but found '#'"},
        {"01", "line 1, column 1", "cannot begin with a 0"},
        {"-01", "line 1, column 1", "cannot begin with a 0"},
        {"[-]", "line 1, column 3", "expected a digit after '-', but found ']'"},
        {"1.", "line 1, column 3", "expected a digit after '.'"},
        {"1.e3", "line 1, column 3", "expected a digit after '.', but found 'e'"},
        {"1e+", "line 1, column 4", "expected a digit of the exponent"},
        {"+1", "line 1, column 1", "found '+'"},
        {".5", "line 1, column 1", "found '.'"},
        {"0x10", "line 1, column 2", "expected the end of the text, but found 'x'"},
        {"NaN", "line 1, column 1", "found 'NaN'"},
        {"[True]", "line 1, column 2", "expected a value, but found 'True'"},
        {"nul", "line 1, column 1", "found 'nul'"},
        {"nulls", "line 1, column 1", "found 'nulls'"},
        {"\"abc", "line 1, column 1", "no closing '\"'"},
        {"[\"abc\n\"]", "line 1, column 2", "no closing '\"'"},
        {"\"a\tb\"", "line 1, column 3", "U+0009 cannot stand in a string"},
        {"\"a\x1F\"", "line 1, column 3", "U+001F"},
        {"\"\\q\"", "line 1, column 3", "after '\\', but found 'q'"},
        {"\"\\", "line 1, column 3", "the text ends here"},
        {"\"\\u12\"", "line 1, column 6", "four hexadecimal digits"},
        {"\"\\u00g0\"", "line 1, column 6", "four hexadecimal digits"},
        {"\"a\\u0000\"", "line 1, column 3", "NUL character"},
        {"\"\\ud800\"", "line 1, column 2", "surrogate"},
        {"\"\\ud800x\"", "line 1, column 2", "surrogate"},
        {"\"\\ud800\\n\"", "line 1, column 2", "surrogate"},
        {"\"\\ud800\\u0041\"", "line 1, column 2", "surrogate"},
        {"\"\\ud800\\ud800\"", "line 1, column 2", "surrogate"},
        {"\"\\udc00\"", "line 1, column 2", "surrogate"},
        {"{\"a\": 1, \"b\": 2,\n \"\\u0061\": 3}", "line 2, column 2",
         "'a' is given twice: here and at line 1, column 2"},
        {"[] []", "line 1, column 4", "expected the end of the text, but found '['"},
        {"[]\xEF\xBB\xBF", "line 1, column 3", "expected the end of the text"},
        {"\xC3\xA9", "line 1, column 1", "found '\xC3\xA9'"},
        {"[\"\xC3\xA9\", \xC3\xA9]", "line 1, column 7", "found '\xC3\xA9'"},
        {"[\x01]", "line 1, column 2", "control character U+0001"},
        {"[\"\xC0\x80\"]", "line 1, column 3", "byte 0xC0 is not UTF-8"},
        {"[\"\xED\xA0\x80\"]", "line 1, column 3", "byte 0xED is not UTF-8"},
        {"\"\xE2\x82\"", "line 1, column 2", "byte 0xE2 is not UTF-8"},
        {"a: 1", "line 1, column 1", "expected a value, but found 'a'"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_wrong(DOCUMENT_JSON, &cases[i]);
}

static void a_nul_byte_is_refused_in_both_forms(void **state)
{
    static const enum document_form forms[] = {DOCUMENT_YAML, DOCUMENT_JSON};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct error err = ERROR_INIT;
        struct document *d = NULL;

        assert_int_equal(document_read(forms[i], "job.x", "[1]\n\0", 5, &d, &err), -EINVAL);
        assert_string_equal(err.context, "job.x:2:1");
        assert_non_null(strstr(err.message, "NUL byte"));
    }
}

/* @n times @part, between @before and @after. */
static char *repeated(const char *before, const char *part, size_t n, const char *after)
{
    char *text = malloc(strlen(before) + n * strlen(part) + strlen(after) + 1), *end = text;

    assert_non_null(text);
    end = stpcpy(end, before);
    for (size_t i = 0; i < n; i++)
        end = stpcpy(end, part);
    (void)stpcpy(end, after);
    return text;
}

static int read_repeated(enum document_form form, const char *before, const char *part, size_t n,
                         const char *after, struct error *ret_err)
{
    _cleanup_free_ char *text = repeated(before, part, n, after);
    _cleanup_(document_freep) struct document *d = NULL;

    memset(ret_err, 0, sizeof *ret_err);
    return document_read(form, "x", text, strlen(text), &d, ret_err);
}

static void the_ceilings_hold_exactly(void **state)
{
    static const enum document_form forms[] = {DOCUMENT_YAML, DOCUMENT_JSON};
    const size_t depth = DOCUMENT_DEPTH_MAX, nodes = DOCUMENT_NODES_MAX;
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        enum document_form form = forms[i];
        char close[DOCUMENT_DEPTH_MAX + 2] = "";

        memset(close, ']', depth);
        assert_int_equal(read_repeated(form, "", "[", depth, close, &err), 0);
        assert_int_equal(read_repeated(form, "", "[", depth + 1, close, &err), -E2BIG);
        assert_string_equal(err.context, "x:1:65");
        assert_int_equal(err.cls, ERROR_USAGE);
        /* The list itself, its last value, and the others. */
        assert_int_equal(read_repeated(form, "[", "1,", nodes - 2, "1]", &err), 0);
        assert_int_equal(read_repeated(form, "[", "1,", nodes - 1, "1]", &err), -E2BIG);
        assert_non_null(strstr(err.message, "100000"));
        assert_int_equal(read_repeated(form, "\"", "x", DOCUMENT_TEXT_MAX_BYTES - 2, "\"", &err),
                         0);
        assert_int_equal(read_repeated(form, "\"", "x", DOCUMENT_TEXT_MAX_BYTES - 1, "\"", &err),
                         -E2BIG);
        assert_string_equal(err.context, "x"); /* of the text as a whole */
        assert_int_equal(read_repeated(form, "", "[", DOCUMENT_TEXT_MAX_BYTES, "", &err), -E2BIG);
    }
    assert_int_equal(read_repeated(DOCUMENT_YAML, "", "- ", depth, "x", &err), 0);
    assert_int_equal(read_repeated(DOCUMENT_YAML, "", "- ", depth + 1, "x", &err), -E2BIG);
    assert_string_equal(err.context, "x:1:129");
}

static void an_error_names_its_text(void **state)
{
    struct error err = ERROR_INIT;
    struct document *d = NULL;
    char line[1024];

    (void)state;
    assert_int_equal(document_read(DOCUMENT_YAML, "job.yaml", "a: 1\nb: *.c\n", 12, &d, &err),
                     -EINVAL);
    error_format(&err, line, sizeof line);
    assert_string_equal(line, "job.yaml:2:4: '*' begins an alias in YAML, and aliases are not "
                              "accepted. Put text that begins with '*' or '&' in quotes.");
}

static void the_form_follows_the_file_name(void **state)
{
    (void)state;
    assert_int_equal(document_form_of("job.json"), DOCUMENT_JSON);
    assert_int_equal(document_form_of("a.b/JOB.Json"), DOCUMENT_JSON);
    assert_int_equal(document_form_of("job.yaml"), DOCUMENT_YAML);
    assert_int_equal(document_form_of("x.json/job"), DOCUMENT_YAML);
    assert_int_equal(document_form_of("json"), DOCUMENT_YAML);
    assert_int_equal(document_form_of(""), DOCUMENT_YAML);
}

static void every_kind_has_a_name(void **state)
{
    static const char *const cases[][2] = {
        {"[]", "a list"},
        {"{}", "a map"},
        {"x", "a string"},
        {"1", "an integer"},
        {"1.5", "a number with a fraction"},
        {"true", "true or false"},
        {"~", "nothing"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(document_freep) struct document *d = read_good(DOCUMENT_YAML, cases[i][0]);
        assert_string_equal(document_what(document_root(d)), cases[i][1]);
    }
}

/* Every shorter text in memory of its own, exact, so that a sanitizer sees one byte too far. */
static size_t read_truncated(enum document_form form, const char *text, size_t len)
{
    size_t taken = 0;

    for (size_t n = 0; n < len; n++) {
        _cleanup_free_ char *exact = malloc(n > 0 ? n : 1);
        _cleanup_(document_freep) struct document *d = NULL;
        struct error err = ERROR_INIT;

        assert_non_null(exact);
        memcpy(exact, text, n);
        if (document_read(form, NULL, exact, n, &d, &err) == 0) {
            assert_non_null(d);
            taken++;
            continue;
        }
        assert_null(d);
        if (err.code == 0 || strncmp(err.context, "line ", 5) != 0 || err.message[0] == '\0')
            fail_msg("%zu of %zu bytes: error without a place or words", n, len);
        if (strstr(err.message, "not YAML:"))
            fail_msg("%zu of %zu bytes: %s", n, len, err.message);
    }
    return taken;
}

static void a_cut_text_is_an_error_or_a_document(void **state)
{
    static const char more[] =
        "%YAML 1.2\n--- # x\n? a\n: >-\n  b\n\n  c\n'd': \"e\\u00e9\\\n  f\"\n"
        "g: [h, {i: j, k: }, l: m]\n...\n";
    static const char bad[] =
        "%TAG ! tag:x,2000:\n--- !<tag:x> &a [*a , !!str \"\\x41\\U0001F600\"]\n";

    (void)state;
    (void)read_truncated(DOCUMENT_YAML, spec_yaml, strlen(spec_yaml));
    (void)read_truncated(DOCUMENT_YAML, more, strlen(more));
    (void)read_truncated(DOCUMENT_YAML, bad, strlen(bad));
    (void)read_truncated(DOCUMENT_YAML, spec_json, strlen(spec_json));
    /* Of a map, only what lacks blanks at its end can be taken: here one LF. */
    assert_int_equal(read_truncated(DOCUMENT_JSON, spec_json, strlen(spec_json)), 1);
}

/* Accepted or refused as by another reader. */
static void json_is_taken_as_jansson_takes_it(void **state)
{
    static const char *const cases[] = {
        "1",
        "-1",
        "0",
        "-0",
        "00",
        "-",
        "1.0",
        "1.",
        ".1",
        "1e1",
        "1E+1",
        "1e",
        "1e-",
        "1.5e-3x",
        "0e0",
        "0.0e-0",
        "- 1",
        "1 ",
        " 1",
        "\f1",
        "\v1",
        "1\v",
        "\t\r\n1\t\r\n",
        "\"\"",
        "\"a\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
        "\"\\v\"",
        "\"\\u00\"",
        "\"\\U0041\"",
        "\"\\ud83d\\ude00\"",
        "\"\\uD83D\\uDE00\"",
        "\"\\ud83d\"",
        "\"\\ude00\"",
        "\"\\u0000\"",
        "\"\n\"",
        "\"\x7F\"",
        "\"\xC3\xA9\"",
        "\"\xC3\"",
        "\"\xF4\x90\x80\x80\"",
        "\"\xC0\xAF\"",
        "\"\xEF\xBF\xBF\"",
        "\"\xE2\x80\xA8\"",
        "true",
        "false",
        "null",
        "True",
        "nul",
        "truex",
        "true1",
        "[]",
        "[ ]",
        "[1]",
        "[1,]",
        "[,]",
        "[1,2]",
        "[1 2]",
        "[[]]",
        "[[]",
        "[]]",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\" : 1 , \"b\" : [ ] }",
        "{\"a\":1,}",
        "{\"a\"}",
        "{\"a\":}",
        "{:1}",
        "{a:1}",
        "{1:1}",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"a\":{\"a\":1}}",
        "{\"\":1}",
        "{\"\":1,\"\":2}",
        "{\"a\":1}}",
        "{\"a\":1}{",
        "1 2",
        "\"a\" \"b\"",
        "",
        " ",
        "//x\n1",
        "/*x*/1",
        "#x\n1",
        "'a'",
        "NaN",
        "Infinity",
        "-Infinity",
        "[\"a\",true,false,null,{\"b\":[0.5]}]",
        "\xFF",
        "\xC3\xA9",
        "[1]\xC2\xA0",
        "\x01",
        "+1",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_INIT;
        _cleanup_(document_freep) struct document *d = NULL;
        json_t *theirs = json_loads(cases[i], JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
        int r = document_read(DOCUMENT_JSON, NULL, cases[i], strlen(cases[i]), &d, &err);

        if ((r == 0) != (theirs != NULL))
            fail_msg("%s: %s by jansson", cases[i], theirs ? "taken" : "refused");
        json_decref(theirs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_becomes_a_tree_with_places),
        cmocka_unit_test(json_becomes_the_same_tree),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(nothing_at_all_stands_where_the_text_ends),
        cmocka_unit_test(plain_scalars_have_the_types_of_the_core_schema),
        cmocka_unit_test(only_a_true_boolean_is_true),
        cmocka_unit_test(wrong_yaml_is_refused_at_its_place),
        cmocka_unit_test(wrong_json_is_refused_at_its_place),
        cmocka_unit_test(a_nul_byte_is_refused_in_both_forms),
        cmocka_unit_test(the_ceilings_hold_exactly),
        cmocka_unit_test(an_error_names_its_text),
        cmocka_unit_test(the_form_follows_the_file_name),
        cmocka_unit_test(every_kind_has_a_name),
        cmocka_unit_test(a_cut_text_is_an_error_or_a_document),
        cmocka_unit_test(json_is_taken_as_jansson_takes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
