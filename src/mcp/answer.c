/* SPDX-License-Identifier: Apache-2.0 */
/* What goes out: results, errors, notifications. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "mcp/server.h"
#include "base/buffer.h"
#include "base/guards.h"

enum { DIGITS = 15 }; /* of a number: as many as a double keeps of what was written */

static const char *const level_names[] = {
    [MCP_DEBUG] = "debug",     [MCP_INFO] = "info",           [MCP_NOTICE] = "notice",
    [MCP_WARNING] = "warning", [MCP_ERROR] = "error",         [MCP_CRITICAL] = "critical",
    [MCP_ALERT] = "alert",     [MCP_EMERGENCY] = "emergency",
};
_Static_assert(ARRAY_SIZE(level_names) == MCP_LEVEL__MAX, "a level has no name");

enum mcp_level mcp_level_find(struct json_span name)
{
    enum mcp_level level = MCP_DEBUG;

    while (level < MCP_LEVEL__MAX && !json_span_is(name, level_names[level]))
        level++;
    return level;
}

json_t *mcp_server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "atoll", "title", "atoll sandbox", "version",
                     ATOLL_VERSION);
}

/*
 * {"jsonrpc":"2.0","id":…,"KIND":VALUE}, the id as it came. An id that could not be read is left
 * out; before revision 2026-07-28 it was null.
 */
static void send_answer(const struct mcp_request *q, const char *kind, json_t *value)
{
    struct mcp_peer *p = q->peer;
    struct buffer b = {0};
    _cleanup_free_ char *dump =
        value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
    char *text = NULL;
    size_t len = 0;

    json_decref(value);
    buffer_add_text(&b, "{\"jsonrpc\":\"2.0\",");
    if (q->id.kind != JSON_SPAN_NONE || p->revision)
        buffer_add_text(&b, "\"id\":");
    if (q->id.kind != JSON_SPAN_NONE)
        buffer_add(&b, q->id.at, q->id.len);
    else if (p->revision)
        buffer_add_text(&b, "null");
    if (b.len > 0 && b.bytes[b.len - 1] != ',')
        buffer_add_text(&b, ",");
    buffer_add_text(&b, "\"");
    buffer_add_text(&b, dump ? kind : "error");
    buffer_add_text(&b, "\":");
    buffer_add_text(&b, dump ? dump : "{\"code\":-32603,\"message\":\"out of memory\"}");
    buffer_add_text(&b, "}");
    if (buffer_take(&b, &text, &len) < 0)
        mcp_no_answer(q); /* there is not even memory to say so */
    else if (q->batch)
        mcp_batch_add(q->batch, text, len);
    else
        p->send(p->owner, text, len);
}

void mcp_result_cached(const struct mcp_request *q, json_t *result, int ttl_ms)
{
    if (q->modern && result &&
        (json_object_set_new(result, "resultType", json_string("complete")) < 0 ||
         json_object_set_new(
             result, "_meta",
             json_pack("{s:o}", "io.modelcontextprotocol/serverInfo", mcp_server_info())) < 0 ||
         (ttl_ms >= 0 &&
          (json_object_set_new(result, "ttlMs", json_integer(ttl_ms)) < 0 ||
           json_object_set_new(result, "cacheScope", json_string("private")) < 0)))) {
        json_decref(result);
        result = NULL;
    }
    send_answer(q, "result", result);
}

void mcp_result(const struct mcp_request *q, json_t *result)
{
    mcp_result_cached(q, result, -1);
}

void mcp_error(const struct mcp_request *q, int code, const char *message, json_t *data)
{
    send_answer(q, "error",
                json_pack("{s:i, s:s, s:o*}", "code", code, "message", message, "data", data));
}

void mcp_no_answer(const struct mcp_request *q)
{
    if (q->batch)
        mcp_batch_finish(q->batch);
}

void mcp_notify(struct mcp_peer *p, const char *method, json_t *params)
{
    json_t *message =
        params ? json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params)
               : NULL;
    char *text = message ? json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;

    json_decref(message);
    if (text)
        p->send(p->owner, text, strlen(text));
}

void mcp_log(const struct mcp_request *q, enum mcp_level level, const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;

    if (level < (q->modern ? q->level : q->peer->level))
        return;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    if (text)
        mcp_notify(q->peer, "notifications/message",
                   json_pack("{s:s, s:s, s:s}", "level", level_names[level], "logger", "atoll",
                             "data", text));
}
