/* SPDX-License-Identifier: Apache-2.0 */
/* Who is here and what it can do; levels; resources. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "mcp/server.h"
#include "base/buffer.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

enum {
    RESOURCE_NOT_FOUND = -32002, /* before revision 2026-07-28 */
    HOUR_MS = 3600000,           /* nothing that a server is changes while it runs */
};

/* The newest last. */
static const char *const revisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

/* A text of all toolsets, so all their secrets are masked in it. NULL: no memory. */
static json_t *masked_string(const struct mcp_peer *p, char *text)
{
    json_t *ret;

    for (size_t i = 0; text && i < p->n_toolsets; i++) {
        char *masked = toolset_masked(p->toolsets[i], text, strlen(text), NULL);

        free(text);
        text = masked;
    }
    ret = text ? json_string(text) : NULL;
    free(text);
    return ret;
}

/* What a model should know of the tools as a whole. NULL: no memory. */
static json_t *instructions(const struct mcp_peer *p)
{
    struct buffer b = {0};
    char *text = NULL;

    buffer_add_text(&b, TEXT_SERVER);
    for (size_t i = 0; i < p->n_toolsets; i++) {
        const struct atoll_toolset *t = p->toolsets[i];
        const char *prefix = toolset_prefix(t), *purpose = t->spec.spec.toolset.purpose;

        if (p->n_toolsets == 1 || !prefix)
            continue;
        buffer_add_text(&b, "\n" TEXT_SERVER_GROUP);
        buffer_add_text(&b, prefix);
        buffer_add_text(&b, purpose ? "_*: " : "_*.");
        buffer_add_text(&b, purpose ? purpose : "");
    }
    return buffer_take(&b, &text, NULL) == 0 ? masked_string(p, text) : NULL;
}

static json_t *capabilities(const struct mcp_peer *p, bool modern)
{
    json_t *o = json_pack("{s:{}}", "tools");

    /* A list that grows is told of where a client need not ask for that. */
    if (o && p->offers_resources)
        (void)json_object_set_new(o, "resources",
                                  modern ? json_object() : json_pack("{s:b}", "listChanged", 1));
    if (o)
        (void)json_object_set_new(o, "logging", json_object());
    return o;
}

void mcp_initialize(const struct mcp_request *q)
{
    struct json_span asked = json_span_member(q->params, "protocolVersion");
    struct mcp_peer *p = q->peer;

    if (asked.kind != JSON_SPAN_STRING) {
        mcp_error(q, RPC_INVALID_PARAMS, "initialize needs a protocolVersion, a string", NULL);
        return;
    }
    p->revision = revisions[ARRAY_SIZE(revisions) - 1];
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++)
        if (json_span_is(asked, revisions[i]))
            p->revision = revisions[i];
    mcp_result(q, json_pack("{s:s, s:o, s:o, s:o}", "protocolVersion", p->revision, "capabilities",
                            capabilities(p, false), "serverInfo", mcp_server_info(), "instructions",
                            instructions(p)));
}

void mcp_discover(const struct mcp_request *q)
{
    mcp_result_cached(q,
                      json_pack("{s:[s], s:o, s:o}", "supportedVersions", MCP_MODERN_REVISION,
                                "capabilities", capabilities(q->peer, true), "instructions",
                                instructions(q->peer)),
                      HOUR_MS);
}

void mcp_ping(const struct mcp_request *q)
{
    mcp_result(q, json_object());
}

void mcp_set_level(const struct mcp_request *q)
{
    enum mcp_level level = mcp_level_find(json_span_member(q->params, "level"));

    if (level == MCP_LEVEL__MAX) {
        mcp_error(q, RPC_INVALID_PARAMS,
                  "level has to be one of debug, info, notice, warning, error, critical, alert "
                  "and emergency",
                  NULL);
        return;
    }
    q->peer->level = level;
    mcp_result(q, json_object());
}

/* --- resources --- */

bool mcp_refuse_cursor(const struct mcp_request *q)
{
    struct json_span cursor = json_span_member(q->params, "cursor");

    if (cursor.kind == JSON_SPAN_NONE)
        return false;
    mcp_error(q, RPC_INVALID_PARAMS, "this cursor was never handed out", NULL);
    return true;
}

void mcp_resources_list(const struct mcp_request *q)
{
    if (!mcp_refuse_cursor(q))
        mcp_result_cached(q, json_pack("{s:o}", "resources", published_list(&q->peer->published)),
                          0);
}

void mcp_resources_templates(const struct mcp_request *q)
{
    if (!mcp_refuse_cursor(q))
        mcp_result_cached(q, json_pack("{s:[]}", "resourceTemplates"), HOUR_MS);
}

static void refuse_resource(const struct mcp_request *q, const char *uri, const struct error *err)
{
    char text[1024];

    if (err->code == ENOENT) {
        mcp_error(q, q->modern ? RPC_INVALID_PARAMS : RESOURCE_NOT_FOUND,
                  "there is no such resource", json_pack("{s:s}", "uri", uri));
        return;
    }
    (void)snprintf(text, sizeof text, "%s%s%s", err->message, err->remedy[0] ? ". " : "",
                   err->remedy);
    mcp_error(q, RPC_INTERNAL_ERROR, text, json_pack("{s:s}", "uri", uri));
}

void mcp_resources_read(const struct mcp_request *q)
{
    _cleanup_free_ char *uri = NULL;
    struct error err = ERROR_INIT;
    json_t *contents = NULL;
    size_t len = 0;

    if (json_span_text(json_span_member(q->params, "uri"), &uri, &len) < 0 || strlen(uri) != len) {
        mcp_error(q, RPC_INVALID_PARAMS, "resources/read needs a uri, a string", NULL);
        return;
    }
    int r = published_read(&q->peer->published, uri, &contents, &err);
    if (r < 0) {
        err.code = -r;
        refuse_resource(q, uri, &err);
    } else {
        mcp_result_cached(q, json_pack("{s:o}", "contents", contents), 0);
    }
}
