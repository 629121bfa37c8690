/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC messages: requests, notifications, responses, and what is none of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "wire/rpc.h"
#include "base/guards.h"

#define TEN_40 "10000000000000000000000000000000000000000"

static int read_text(const char *text, struct rpc_message *ret, const char **problem)
{
    struct json_span v;

    if (json_scan(text, strlen(text), &v) != 0)
        fail_msg("no JSON: %s", text);
    return rpc_read(v, ret, problem);
}

static struct rpc_message message_of(const char *text)
{
    struct rpc_message m;
    const char *problem = NULL;

    if (read_text(text, &m, &problem) != 0)
        fail_msg("%s: refused: %s", text, problem);
    assert_null(problem);
    return m;
}

static void assert_raw(struct json_span span, const char *text)
{
    if (span.len != strlen(text) || (span.len > 0 && memcmp(span.at, text, span.len) != 0))
        fail_msg("expected '%s', got '%.*s'", text, (int)span.len, span.at);
    assert_int_equal(span.kind == JSON_SPAN_NONE, span.len == 0);
}

/* Refused with that code and these words, and the id is @id, or "" for none. */
static void assert_refused(const char *text, int code, const char *words, const char *id)
{
    struct rpc_message m;
    const char *problem = NULL;

    if (read_text(text, &m, &problem) != code)
        fail_msg("not refused with %d: %s", code, text);
    if (!problem || !strstr(problem, words))
        fail_msg("'%s' is not in: %s", words, problem ? problem : "nothing");
    assert_raw(m.id, id);
}

static void a_request_has_all_its_parts(void **state)
{
    struct rpc_message m = message_of("{\"params\": {\"a\":[1]}, \"method\":\"tools/call\" ,"
                                      "\"id\":7, \"jsonrpc\":\"2.0\",\"more\":null}");

    (void)state;
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_raw(m.id, "7");
    assert_string_equal(m.method, "tools/call");
    assert_raw(m.params, "{\"a\":[1]}");
}

static void an_id_is_kept_as_it_is_written(void **state)
{
    static const char *const ids[] = {
        "0", "-0", "-5", TEN_40, "\"\"", "\"a\"", "\"\\u0061\\n\"", "\"\\ud800\"", "\"\xC3\xA9\"",
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\": %s ,\"method\":\"x\"}",
                       ids[i]);
        assert_raw(message_of(text).id, ids[i]);
    }
}

static void an_id_of_another_kind_is_refused(void **state)
{
    static const char *const ids[] = {
        "null", "1.5", "1.0", "1e3", "1E3", "true", "false", "{}", "{\"a\":1}", "[]", "[1]",
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"x\"}",
                       ids[i]);
        assert_refused(text, RPC_INVALID_REQUEST, "id has to be", "");
    }
}

static void an_id_of_more_than_4096_bytes_is_refused(void **state)
{
    char id[RPC_ID_BYTES_MAX + 2], text[RPC_ID_BYTES_MAX + 100];

    (void)state;
    for (size_t len = RPC_ID_BYTES_MAX; len <= RPC_ID_BYTES_MAX + 1; len++) {
        memset(id, '9', len);
        id[len] = '\0';
        (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"x\"}", id);
        if (len == RPC_ID_BYTES_MAX)
            assert_raw(message_of(text).id, id);
        else
            assert_refused(text, RPC_INVALID_REQUEST, "longer than 4096 bytes", "");
    }
}

static void without_an_id_it_is_a_notification(void **state)
{
    struct rpc_message m = message_of("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");

    (void)state;
    assert_int_equal(m.kind, RPC_NOTIFICATION);
    assert_string_equal(m.method, "notifications/x");
    assert_raw(m.id, "");
    assert_raw(m.params, "");
}

static void a_response_is_one_whatever_else_is_wrong_with_it(void **state)
{
    static const char *const responses[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"m\"}}",
        "{\"id\":1,\"result\":null}",
        "{\"result\":1,\"result\":2,\"id\":1.5}",
        "{\"error\":false}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(responses); i++) {
        struct rpc_message m = message_of(responses[i]);

        assert_int_equal(m.kind, RPC_RESPONSE);
        assert_string_equal(m.method, "");
        assert_raw(m.id, ""); /* its sender has a request of its own by that name */
    }
}

static void with_a_method_it_is_a_request_also_beside_a_result(void **state)
{
    struct rpc_message m =
        message_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"method\":\"ping\"}");

    (void)state;
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_string_equal(m.method, "ping");
}

static void the_version_has_to_be_two(void **state)
{
    static const char *const versions[] = {"\"1.0\"", "2.0", "\"2.0 \"", "null", "\"2\\u002e0\""};
    char text[200];

    (void)state;
    assert_refused("{\"id\":5,\"method\":\"x\"}", RPC_INVALID_REQUEST, "jsonrpc has to be", "5");
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        (void)snprintf(text, sizeof text, "{\"jsonrpc\":%s,\"id\":\"5\",\"method\":\"x\"}",
                       versions[i]);
        assert_refused(text, RPC_INVALID_REQUEST, "jsonrpc has to be", "\"5\"");
    }
}

static void a_method_has_to_be_a_string(void **state)
{
    (void)state;
    assert_refused("{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST, "has no method", "1");
    assert_refused("{}", RPC_INVALID_REQUEST, "", "");
    assert_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", RPC_INVALID_REQUEST, "method",
                   "1");
    assert_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", RPC_INVALID_REQUEST, "method",
                   "1");
    assert_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", RPC_INVALID_REQUEST, "method",
                   "1");
    assert_refused("{\"jsonrpc\":\"2.0\",\"method\":[\"x\"],\"result\":1,\"id\":1}",
                   RPC_INVALID_REQUEST, "method", "1");
}

static void assert_method(const char *written, const char *expected)
{
    char text[2000];

    (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}", written);
    assert_string_equal(message_of(text).method, expected);
}

static void a_method_loses_its_escapes(void **state)
{
    (void)state;
    assert_method("tools\\/c\\u0061ll", "tools/call");
    assert_method("\\u00e9\\ud83d\\ude00", "\xC3\xA9\xF0\x9F\x98\x80");
}

static void a_method_that_nobody_knows_stays_unknown(void **state)
{
    char written[400], expected[400];

    (void)state;
    assert_method("ping\\u0000", "ping?");
    assert_method("pi\\u0000ng", "pi?ng");
    assert_method("ping\\ud800", "ping\\ud800");
    for (size_t len = RPC_METHOD_BYTES - 3; len < RPC_METHOD_BYTES + 3; len++) {
        memset(written, 'm', len);
        written[len] = '\0';
        (void)snprintf(expected, sizeof expected, "%.*s", RPC_METHOD_BYTES - 1, written);
        assert_method(written, expected);
        memcpy(written + len, "\xE4\xB8\xAD", 4); /* whole, or not at all */
        (void)snprintf(expected, sizeof expected, "%.*s",
                       len + 3 < RPC_METHOD_BYTES   ? (int)len + 3
                       : len < RPC_METHOD_BYTES - 1 ? (int)len
                                                    : RPC_METHOD_BYTES - 1,
                       written);
        assert_true(text_is_utf8(expected, strlen(expected)));
        assert_method(written, expected);
    }
}

static void parameters_are_an_object(void **state)
{
    static const char *const others[] = {"null", "[]", "[{}]", "\"{}\"", "1", "true"};
    char text[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        (void)snprintf(text, sizeof text,
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":%s}", others[i]);
        assert_refused(text, RPC_INVALID_PARAMS, "params has to be an object", "1");
        (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":%s}",
                       others[i]);
        struct rpc_message m = message_of(text);

        assert_int_equal(m.kind, RPC_NOTIFICATION);
        assert_raw(m.params, "");
    }
}

static void two_members_of_one_name_are_refused(void **state)
{
    static const char *const texts[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"method\":\"y\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{},\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"other\":{},\"other\":{}}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_refused(texts[i], RPC_INVALID_REQUEST, "two members of one name", "1");
    assert_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"x\"}", RPC_INVALID_REQUEST,
                   "more than one id", "");
    assert_string_equal(
        message_of("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"a\":1,\"a\":2}}").method,
        "x");
}

static void a_value_that_is_no_object_is_refused(void **state)
{
    static const char *const texts[] = {"[]", "[{}]", "\"x\"", "1", "true", "false", "null"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_refused(texts[i], RPC_INVALID_REQUEST, "has to be an object", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_all_its_parts),
        cmocka_unit_test(an_id_is_kept_as_it_is_written),
        cmocka_unit_test(an_id_of_another_kind_is_refused),
        cmocka_unit_test(an_id_of_more_than_4096_bytes_is_refused),
        cmocka_unit_test(without_an_id_it_is_a_notification),
        cmocka_unit_test(a_response_is_one_whatever_else_is_wrong_with_it),
        cmocka_unit_test(with_a_method_it_is_a_request_also_beside_a_result),
        cmocka_unit_test(the_version_has_to_be_two),
        cmocka_unit_test(a_method_has_to_be_a_string),
        cmocka_unit_test(a_method_loses_its_escapes),
        cmocka_unit_test(a_method_that_nobody_knows_stays_unknown),
        cmocka_unit_test(parameters_are_an_object),
        cmocka_unit_test(two_members_of_one_name_are_refused),
        cmocka_unit_test(a_value_that_is_no_object_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
