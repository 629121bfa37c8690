/* SPDX-License-Identifier: Apache-2.0 */
/* What comes: a message, or an array of them (revision 2025-03-26 alone has these). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/server.h"
#include "base/guards.h"

static void refuse(struct mcp_peer *p, struct json_span id, struct mcp_batch *batch, int code,
                   const char *problem)
{
    const struct mcp_request q = {.peer = p, .id = id, .batch = batch, .level = MCP_LEVEL__MAX};

    if (batch)
        batch->waiting++;
    mcp_error(&q, code, problem, NULL);
}

static void receive_one(struct mcp_peer *p, struct json_span value, struct mcp_batch *batch)
{
    struct rpc_message m;
    const char *problem = NULL;
    int code = rpc_read(value, &m, &problem);

    if (code != 0)
        refuse(p, m.id, batch, code, problem);
    else if (batch && strcmp(m.method, "initialize") == 0)
        refuse(p, m.id, batch, RPC_INVALID_REQUEST, "initialize cannot be part of a batch");
    else
        mcp_dispatch(p, &m, batch);
}

/* How many elements an array has, or one more than is taken. */
static unsigned count(struct json_span array)
{
    struct json_span element;
    const char *at = NULL;
    unsigned n = 0;

    while (n <= MCP_BATCH_MAX && json_span_next(array, &at, &element))
        n++;
    return n;
}

static void receive_batch(struct mcp_peer *p, struct json_span array)
{
    const struct json_span none = {0};
    unsigned n = count(array);
    struct mcp_batch *batch = n > 0 && n <= MCP_BATCH_MAX ? calloc(1, sizeof *batch) : NULL;
    struct json_span element;
    const char *at = NULL;

    if (n == 0) {
        refuse(p, none, NULL, RPC_INVALID_REQUEST, "the batch is empty");
    } else if (n > MCP_BATCH_MAX) {
        refuse(p, none, NULL, RPC_INVALID_REQUEST, "the batch has more than 1024 messages");
    } else if (!batch) {
        refuse(p, none, NULL, RPC_INTERNAL_ERROR, "out of memory");
    } else {
        *batch = (struct mcp_batch){.peer = p, .waiting = 1};
        while (json_span_next(array, &at, &element))
            receive_one(p, element, batch);
        mcp_batch_finish(batch);
    }
}

void mcp_receive(struct mcp_peer *p, const char *text, size_t len)
{
    const struct json_span none = {0};
    struct json_span value;
    int r = json_scan(text, len, &value);

    if (r == -E2BIG)
        refuse(p, none, NULL, RPC_PARSE_ERROR, "the message is nested deeper than 512 levels");
    else if (r < 0)
        refuse(p, none, NULL, RPC_PARSE_ERROR, "the message is no JSON in UTF-8");
    else if (value.kind != JSON_SPAN_ARRAY)
        receive_one(p, value, NULL);
    else if (p->revision && strcmp(p->revision, "2025-03-26") == 0)
        receive_batch(p, value);
    else
        refuse(p, none, NULL, RPC_INVALID_REQUEST, "this revision has no batches of messages");
}

void mcp_receive_overlong(struct mcp_peer *p)
{
    refuse(p, (struct json_span){0}, NULL, RPC_INVALID_REQUEST,
           "the message is longer than 64 MiB and was dropped");
}
