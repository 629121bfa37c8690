/* SPDX-License-Identifier: Apache-2.0 */
/* The server without a transport and without a sandbox: its toolset is closed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "mcp/server.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum { MESSAGES_MAX = 2000 };

#define META(version)                                                                              \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version "\","                      \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define MODERN META("2026-07-28")

static struct atoll *context;
static struct atoll_toolset *toolset;
static struct mcp_peer peer;
static char *sent[MESSAGES_MAX];
static size_t n_sent, n_idle;

static void on_send(void *owner, char *text, size_t len)
{
    (void)owner;
    assert_true(n_sent < MESSAGES_MAX);
    sent[n_sent] = strndup(text, len);
    assert_non_null(sent[n_sent]);
    n_sent++;
    free(text);
}

static void on_idle(void *owner)
{
    (void)owner;
    n_idle++;
}

static void forget(void)
{
    for (size_t i = 0; i < n_sent; i++)
        free(sent[i]);
    n_sent = 0;
}

static int start(void **state)
{
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_error err;

    (void)state;
    assert_non_null(spec);
    assert_int_equal(atoll_new(&context, &err), 0);
    assert_int_equal(atoll_toolset_new(context, spec, NULL, &toolset, &err), 0);
    atoll_spec_free(spec);
    n_idle = 0;
    return mcp_peer_init(&peer, context, &toolset, 1, on_send, on_idle, NULL);
}

static int stop(void **state)
{
    (void)state;
    mcp_peer_done(&peer);
    atoll_toolset_free(toolset);
    atoll_free(context);
    forget();
    return 0;
}

/* Gives a message; what is sent for it at once is all there is, but for calls. */
static void give(const char *text)
{
    forget();
    mcp_receive(&peer, text, strlen(text));
}

static void assert_sent(const char *piece)
{
    assert_int_equal(n_sent, 1);
    if (!strstr(sent[0], piece))
        fail_msg("'%s' is not in %s", piece, sent[0]);
}

static void assert_error(const char *text, const char *id, int code)
{
    char piece[64];

    give(text);
    (void)snprintf(piece, sizeof piece, "\"error\":{\"code\":%d,", code);
    assert_sent(piece);
    if (id) {
        (void)snprintf(piece, sizeof piece, "{\"jsonrpc\":\"2.0\",\"id\":%s,", id);
        assert_sent(piece);
    } else {
        assert_null(strstr(sent[0], "\"id\""));
    }
}

static void shake_hands(const char *revision)
{
    char text[200];

    (void)snprintf(text, sizeof text,
                   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
                   "{\"protocolVersion\":\"%s\"}}",
                   revision);
    give(text);
    assert_int_equal(n_sent, 1);
}

/* Until all calls are answered. */
static void turn(void)
{
    for (int i = 0; i < 5000 && peer.calls; i++)
        assert_int_equal(loop_turn(&context->loop, clock_after_us(1000)), 0);
    assert_null(peer.calls);
}

#define CALL(id)                                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":"                     \
    "{\"name\":\"run_command\",\"arguments\":{\"command\":\"true\"}}}"

/* --- the eras --- */

static void a_known_revision_is_agreed_on_and_another_gets_the_newest(void **state)
{
    (void)state;
    shake_hands("2024-11-05");
    assert_sent("\"protocolVersion\":\"2024-11-05\"");
    shake_hands("2025-11-25");
    assert_sent("\"protocolVersion\":\"2025-11-25\"");
    shake_hands("1999-01-01");
    assert_sent("\"protocolVersion\":\"2025-11-25\"");
    shake_hands("2026-07-28");
    assert_sent("\"protocolVersion\":\"2025-11-25\"");
    assert_sent("\"serverInfo\":{\"name\":\"atoll\"");
    assert_sent("\"instructions\":\"");
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}", "1",
                 RPC_INVALID_PARAMS);
}

static void before_the_handshake_little_is_answered(void **state)
{
    (void)state;
    give("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    assert_sent("\"result\":{}");
    give("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\","
         "\"params\":{\"level\":\"info\"}}");
    assert_sent("\"result\":{}");
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "1",
                 RPC_INVALID_PARAMS);
    assert_non_null(strstr(sent[0], "initialize"));
    assert_error(CALL("\"x\""), "\"x\"", RPC_INVALID_PARAMS);
    assert_null(peer.calls);
}

static void a_request_that_says_what_it_is_needs_no_handshake(void **state)
{
    (void)state;
    give("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{" MODERN "}}");
    assert_sent("\"id\":7");
    assert_sent("\"resultType\":\"complete\"");
    assert_sent("\"io.modelcontextprotocol/serverInfo\":{\"name\":\"atoll\"");
    assert_sent("\"ttlMs\":");
    assert_sent("\"cacheScope\":\"private\"");
    give("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"server/discover\",\"params\":{" MODERN "}}");
    assert_sent("\"supportedVersions\":[\"2026-07-28\"]");
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"server/discover\"}", "7",
                 RPC_INVALID_PARAMS);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{" MODERN "}}", "7",
                 RPC_METHOD_NOT_FOUND);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{" MODERN "}}",
                 "7", RPC_METHOD_NOT_FOUND);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tasks/list\",\"params\":{" MODERN "}}",
                 "7", RPC_METHOD_NOT_FOUND);
}

static void what_the_newest_revision_demands_is_demanded(void **state)
{
    (void)state;
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{" META(
                     "1900-01-01") "}}",
                 "7", RPC_UNSUPPORTED_VERSION);
    assert_sent("\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"1900-01-01\"}");
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
                 "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
                 "7", RPC_INVALID_PARAMS);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
                 "\"io.modelcontextprotocol/protocolVersion\":5}}}",
                 "7", RPC_INVALID_PARAMS);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
                 "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                 "\"io.modelcontextprotocol/clientCapabilities\":{},"
                 "\"io.modelcontextprotocol/logLevel\":\"loud\"}}}",
                 "7", RPC_INVALID_PARAMS);
}

static void both_eras_share_one_conversation(void **state)
{
    (void)state;
    shake_hands("2025-06-18");
    give("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    assert_null(strstr(sent[0], "resultType"));
    give("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{" MODERN "}}");
    assert_sent("resultType");
    give("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}");
    assert_sent("{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
}

/* --- messages --- */

static void what_is_no_request_is_told_and_the_next_is_answered(void **state)
{
    (void)state;
    assert_error("{", NULL, RPC_PARSE_ERROR);
    assert_error("\xff", NULL, RPC_PARSE_ERROR);
    assert_error("[]", NULL, RPC_INVALID_REQUEST);
    assert_error("17", NULL, RPC_INVALID_REQUEST);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", NULL,
                 RPC_INVALID_REQUEST);
    mcp_receive_overlong(&peer);
    give("{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0000b\",\"method\":\"ping\"}");
    assert_sent("{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0000b\",\"result\":{}}");
    shake_hands("2025-11-25");
    give("{");
    assert_sent("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\"");
    mcp_receive_overlong(&peer);
    assert_int_equal(n_sent, 2);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nonsense\"}", "1",
                 RPC_METHOD_NOT_FOUND);
    give("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nonsense\"}");
    assert_int_equal(n_sent, 0);
    give("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_int_equal(n_sent, 0);
}

static void lists_take_no_cursor(void **state)
{
    (void)state;
    shake_hands("2025-11-25");
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
                 "\"params\":{\"cursor\":\"\"}}",
                 "1", RPC_INVALID_PARAMS);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", "1",
                 RPC_METHOD_NOT_FOUND); /* nothing can be published, so it is not offered */
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\","
                 "\"params\":{\"level\":\"loud\"}}",
                 "1", RPC_INVALID_PARAMS);
}

static void a_batch_is_answered_by_one_array(void **state)
{
    (void)state;
    shake_hands("2025-03-26");
    give("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}," CALL("2") ",17]");
    assert_int_equal(n_sent, 0);
    turn();
    assert_sent("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},");
    assert_sent("\"id\":2,\"result\":");
    assert_sent("\"code\":-32600");
    give("[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}]");
    assert_int_equal(n_sent, 0);
    assert_error("[]", "null", RPC_INVALID_REQUEST);
    give("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
         "\"params\":{\"protocolVersion\":\"2025-03-26\"}}]");
    assert_sent("[{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600");
}

static void a_cancelled_call_leaves_its_batch(void **state)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":2}}";

    (void)state;
    shake_hands("2025-03-26");
    give("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}," CALL("2") "]");
    mcp_receive(&peer, cancel, strlen(cancel));
    turn();
    assert_sent("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]");
}

/* --- calls --- */

static void a_call_that_fails_is_a_result(void **state)
{
    (void)state;
    shake_hands("2025-11-25");
    give(CALL("\"a\""));
    assert_int_equal(n_sent, 0);
    turn();
    assert_sent("\"id\":\"a\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"the toolset");
    assert_sent("\"isError\":true");
    assert_int_equal(n_idle, 1);
}

static void what_is_no_call_is_an_error(void **state)
{
    (void)state;
    shake_hands("2025-11-25");
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", "1",
                 RPC_INVALID_PARAMS);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                 "\"params\":{\"name\":\"edit_file\"}}",
                 "1", RPC_INVALID_PARAMS);
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
                 "{\"name\":\"run_command\",\"_meta\":{\"progressToken\":1.5}}}",
                 "1", RPC_INVALID_PARAMS);
}

static void two_open_requests_have_two_ids(void **state)
{
    (void)state;
    shake_hands("2025-11-25");
    give(CALL("1"));
    assert_error("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", "1", RPC_INVALID_REQUEST);
    give("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"ping\"}"); /* that is another one */
    assert_sent("\"result\"");
    turn();
    give("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    assert_sent("\"result\"");
}

static void nothing_is_sent_for_a_cancelled_call(void **state)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":1}}";

    (void)state;
    shake_hands("2025-11-25");
    give(CALL("1"));
    give(cancel);
    give(CALL("1")); /* its id is free */
    turn();
    assert_int_equal(n_sent, 1);
    give(cancel); /* long answered */
    assert_int_equal(n_sent, 0);
}

static void too_many_calls_are_told_so(void **state)
{
    char text[256];
    size_t refused = 0;

    (void)state;
    shake_hands("2025-11-25");
    forget();
    for (int i = 0; i < MCP_CALLS_MAX + 5; i++) {
        (void)snprintf(text, sizeof text,
                       "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":"
                       "{\"name\":\"run_command\",\"arguments\":{\"command\":\"true\"}}}",
                       i);
        mcp_receive(&peer, text, strlen(text));
    }
    turn();
    for (size_t i = 0; i < n_sent; i++)
        refused += strstr(sent[i], "Too many calls") != NULL;
    assert_int_equal(n_sent, MCP_CALLS_MAX + 5);
    assert_int_equal(refused, 5);
}

static void what_is_cut_is_not_answered(void **state)
{
    (void)state;
    shake_hands("2025-11-25");
    give(CALL("1"));
    assert_true(mcp_cut(&peer));
    assert_false(mcp_cut(&peer));
    turn();
    assert_int_equal(n_sent, 0);
}

int main(void)
{
#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_known_revision_is_agreed_on_and_another_gets_the_newest),
        SERVER_TEST(before_the_handshake_little_is_answered),
        SERVER_TEST(a_request_that_says_what_it_is_needs_no_handshake),
        SERVER_TEST(what_the_newest_revision_demands_is_demanded),
        SERVER_TEST(both_eras_share_one_conversation),
        SERVER_TEST(what_is_no_request_is_told_and_the_next_is_answered),
        SERVER_TEST(lists_take_no_cursor),
        SERVER_TEST(a_batch_is_answered_by_one_array),
        SERVER_TEST(a_cancelled_call_leaves_its_batch),
        SERVER_TEST(a_call_that_fails_is_a_result),
        SERVER_TEST(what_is_no_call_is_an_error),
        SERVER_TEST(two_open_requests_have_two_ids),
        SERVER_TEST(nothing_is_sent_for_a_cancelled_call),
        SERVER_TEST(too_many_calls_are_told_so),
        SERVER_TEST(what_is_cut_is_not_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
