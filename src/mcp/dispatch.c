/* SPDX-License-Identifier: Apache-2.0 */
/* Which era a request belongs to, and who answers it. */
#include <stdio.h>
#include <string.h>

#include "mcp/server.h"
#include "base/cleanup.h"
#include "base/guards.h"

enum { LEGACY = 1 << 0, MODERN = 1 << 1, BEFORE = 1 << 2 /* the handshake */, RESOURCES = 1 << 3 };

static const struct method {
    const char *name;
    unsigned flags;
    void (*answer)(const struct mcp_request *q);
} methods[] = {
    {"initialize", LEGACY | BEFORE, mcp_initialize},
    {"ping", LEGACY | BEFORE, mcp_ping},
    {"logging/setLevel", LEGACY | BEFORE, mcp_set_level},
    {"server/discover", MODERN, mcp_discover},
    {"tools/list", LEGACY | MODERN, mcp_tools_list},
    {"tools/call", LEGACY | MODERN, mcp_tools_call},
    {"resources/list", LEGACY | MODERN | RESOURCES, mcp_resources_list},
    {"resources/templates/list", LEGACY | MODERN | RESOURCES, mcp_resources_templates},
    {"resources/read", LEGACY | MODERN | RESOURCES, mcp_resources_read},
};

#define META_PREFIX  "io.modelcontextprotocol/"
#define META_VERSION META_PREFIX "protocolVersion"

/* A revision that is not spoken. */
static void refuse_revision(const struct mcp_request *q, struct json_span version)
{
    _cleanup_free_ char *asked = NULL;
    size_t len = 0;

    if (json_span_text(version, &asked, &len) < 0) {
        mcp_error(q, RPC_INVALID_PARAMS, "params._meta has a " META_VERSION " that is no string",
                  NULL);
        return;
    }
    mcp_error(
        q, RPC_UNSUPPORTED_VERSION, "this revision of the protocol is not spoken here",
        json_pack("{s:[s], s:s%}", "supported", MCP_MODERN_REVISION, "requested", asked, len));
}

/* What every request of the modern era has to say. Return: whether it does; otherwise answered. */
static bool take_meta(struct mcp_request *q, struct json_span meta)
{
    struct json_span version = json_span_member(meta, META_VERSION);
    struct json_span level = json_span_member(meta, META_PREFIX "logLevel");
    struct json_span able = json_span_member(meta, META_PREFIX "clientCapabilities");

    if (version.kind == JSON_SPAN_NONE) {
        mcp_error(q, RPC_INVALID_PARAMS, "params._meta lacks " META_VERSION, NULL);
        return false;
    }
    if (!json_span_is(version, MCP_MODERN_REVISION)) {
        refuse_revision(q, version);
        return false;
    }
    if (able.kind != JSON_SPAN_OBJECT) {
        mcp_error(q, RPC_INVALID_PARAMS,
                  "params._meta lacks " META_PREFIX "clientCapabilities, an object", NULL);
        return false;
    }
    q->level = level.kind == JSON_SPAN_NONE ? MCP_LEVEL__MAX : mcp_level_find(level);
    if (level.kind == JSON_SPAN_NONE || q->level != MCP_LEVEL__MAX)
        return true;
    mcp_error(q, RPC_INVALID_PARAMS, "params._meta has an unknown " META_PREFIX "logLevel", NULL);
    return false;
}

static bool is_token(struct json_span token)
{
    long long ignored;

    return token.kind == JSON_SPAN_NONE || token.kind == JSON_SPAN_STRING ||
           json_span_integer(token, &ignored) == 0;
}

static const struct method *find(const char *name, unsigned era)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (methods[i].flags & era && strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static void refuse_early(const struct mcp_request *q, const char *method)
{
    char text[RPC_METHOD_BYTES + 200];

    (void)snprintf(text, sizeof text,
                   "'%s' comes before a handshake: send initialize first, or give each request "
                   "params._meta with " META_VERSION,
                   method);
    mcp_error(q, RPC_INVALID_PARAMS, text, NULL);
}

static void answer(struct mcp_request *q, const struct rpc_message *m)
{
    const struct method *method = find(m->method, q->modern ? MODERN : LEGACY);
    char text[RPC_METHOD_BYTES + 40];

    if (!q->modern && !q->peer->revision && !(method && method->flags & BEFORE)) {
        refuse_early(q, m->method);
    } else if (!method || (method->flags & RESOURCES && !q->peer->offers_resources)) {
        (void)snprintf(text, sizeof text, "there is no method '%s'", m->method);
        mcp_error(q, RPC_METHOD_NOT_FOUND, text, NULL);
    } else {
        method->answer(q);
    }
}

static void dispatch_request(struct mcp_request *q, const struct rpc_message *m)
{
    struct json_span meta = json_span_member(m->params, "_meta");

    q->progress_token = json_span_member(meta, "progressToken");
    q->modern = json_span_member(meta, META_VERSION).kind != JSON_SPAN_NONE ||
                strcmp(m->method, "server/discover") == 0;
    if (mcp_is_open(q->peer, m->id))
        mcp_error(q, RPC_INVALID_REQUEST, "a request with this id is still under way", NULL);
    else if (!is_token(q->progress_token))
        mcp_error(q, RPC_INVALID_PARAMS, "a progressToken is a string or an integer", NULL);
    else if (!q->modern || take_meta(q, meta))
        answer(q, m);
}

void mcp_dispatch(struct mcp_peer *p, const struct rpc_message *m, struct mcp_batch *batch)
{
    struct mcp_request q = {
        .peer = p, .id = m->id, .params = m->params, .level = MCP_LEVEL__MAX, .batch = batch};

    if (m->kind == RPC_NOTIFICATION && strcmp(m->method, "notifications/cancelled") == 0)
        mcp_cancel(p, m->params);
    if (m->kind != RPC_REQUEST)
        return; /* what else there is to be told changes nothing here */
    if (batch)
        batch->waiting++;
    dispatch_request(&q, m);
}
