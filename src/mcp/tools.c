/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools, from the request to the answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "mcp/server.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "base/guards.h"

#define TICK_US  UINT64_C(250000)  /* how often a client hears of new output, at most */
#define QUIET_US UINT64_C(1000000) /* and how often that it still runs */

enum { TOOLS_TTL_MS = 3600000 }; /* they never change while a server runs */

struct mcp_call {
    struct mcp_call *next, **link;
    struct mcp_request q; /* its spans are in @kept */
    char *kept;
    struct atoll_toolset *t;
    struct atoll_op *op;
    struct loop_timer done, tick;
    uint64_t read_us, told_us; /* when the request came; when progress was last told */
    uint64_t bytes;            /* of its arguments */
    char *path;                /* of the file that it is about, masked; NULL: of none; owned */
    bool cancelled;            /* nothing is sent for it any more */
};

void mcp_tools_list(const struct mcp_request *q)
{
    if (!mcp_refuse_cursor(q))
        mcp_result_cached(q, json_pack("{s:O}", "tools", q->peer->tools), TOOLS_TTL_MS);
}

/* --- the end of a call --- */

static void free_call(struct mcp_call *c)
{
    struct mcp_peer *p = c->q.peer;

    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    else
        p->calls_end = c->link;
    loop_at(&p->a->loop, &c->done, CLOCK_NEVER);
    loop_at(&p->a->loop, &c->tick, CLOCK_NEVER);
    p->n_calls--;
    p->waiting_bytes -= c->bytes;
    atoll_op_free(c->op);
    free(c->path);
    free(c->kept);
    free(c);
}

static bool knows_links(const struct mcp_request *q)
{
    return q->modern || strcmp(q->peer->revision, "2025-06-18") >= 0;
}

/* What it published can be read from now on. */
static void keep_published(const struct mcp_call *c)
{
    struct mcp_peer *p = c->q.peer;
    const struct atoll_exported *x;
    size_t n = 0;

    while ((x = atoll_op_exported(c->op, n))) {
        (void)published_add(&p->published, c->t, x); /* without memory it is just not listed */
        n++;
    }
    if (n == 0)
        return;
    mcp_log(&c->q, MCP_NOTICE, "%zu %s published", n, n == 1 ? "export was" : "exports were");
    if (!c->q.modern)
        mcp_notify(p, "notifications/resources/list_changed", json_object());
}

static void answer_well(const struct mcp_call *c)
{
    const struct atoll_tool_answer *x = atoll_op_answer(c->op);

    if (x->replaced)
        mcp_log(&c->q, MCP_WARNING, "the sandbox was lost and replaced by an empty one");
    keep_published(c);
    mcp_result(&c->q, mcp_content(c->t, c->op, c->path, knows_links(&c->q)));
}

/*
 * A sandbox whose life is over ends an agent's run. A server lives on with its client, perhaps for
 * days, so the next call gets another sandbox, and this answer says so.
 */
static void answer_badly(const struct mcp_call *c)
{
    const struct atoll_error *e = atoll_op_error(c->op);
    bool renewed = provision_renew(c->t);
    char text[2048];

    (void)snprintf(text, sizeof text, "%s%s%s.%s", e->message, e->remedy[0] ? ". " : "", e->remedy,
                   renewed ? " " TEXT_RENEWED : "");
    mcp_log(&c->q, MCP_ERROR, "%s", text);
    mcp_result(&c->q, mcp_content_failed(text));
}

static int call_done(struct loop *l, struct loop_timer *timer)
{
    struct mcp_call *c = timer->owner;
    struct mcp_peer *p = c->q.peer;

    (void)l;
    if (!c->cancelled && atoll_op_error(c->op))
        answer_badly(c);
    else if (!c->cancelled)
        answer_well(c);
    free_call(c);
    if (!p->calls && p->idle)
        p->idle(p->owner);
    return 0;
}

/* --- progress --- */

static void tell_progress(const struct mcp_call *c, uint64_t now,
                          const struct atoll_tool_progress *x)
{
    struct json_span token = c->q.progress_token;
    double budget = (double)(now - x->elapsed_us + x->timeout_us - c->read_us) / 1e6;
    json_t *id = json_loadb(token.at, token.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_t *params =
        json_pack("{s:o, s:f}", "progressToken", id, "progress", (double)(now - c->read_us) / 1e6);

    if (params && x->running && x->timeout_us > 0)
        (void)json_object_set_new(params, "total", json_real(budget));
    if (params && x->len > 0)
        (void)json_object_set_new(params, "message", json_stringn(x->news, x->len));
    mcp_notify(c->q.peer, "notifications/progress", params);
}

static int tick(struct loop *l, struct loop_timer *timer)
{
    struct mcp_call *c = timer->owner;
    struct atoll_tool_progress x = {0};
    uint64_t now = clock_now_us();

    if (atoll_tool_progress(c->op, &x) == 0 && (x.len > 0 || now - c->told_us >= QUIET_US)) {
        tell_progress(c, now, &x);
        c->told_us = now;
    }
    loop_at(l, timer, now + TICK_US);
    return 0;
}

/* --- the beginning --- */

/* Which toolset has a tool of this name; n_toolsets: none. */
static size_t find_toolset(const struct mcp_peer *p, struct json_span name)
{
    const struct atoll_tool *tool;

    for (size_t i = 0; i < p->n_toolsets; i++)
        for (size_t j = 0; (tool = atoll_toolset_tool(p->toolsets[i], j)); j++)
            if (json_span_is(name, tool->name))
                return i;
    return p->n_toolsets;
}

/* The request outlives the line that it came in. */
static int keep_request(struct mcp_call *c, const struct mcp_request *q)
{
    c->q = *q;
    c->q.params = (struct json_span){0};
    c->kept = malloc(q->id.len + q->progress_token.len + 1);
    if (!c->kept)
        return -ENOMEM;
    memcpy(c->kept, q->id.at, q->id.len);
    c->q.id.at = c->kept;
    if (q->progress_token.kind == JSON_SPAN_NONE)
        return 0;
    memcpy(c->kept + q->id.len, q->progress_token.at, q->progress_token.len);
    c->q.progress_token.at = c->kept + q->id.len;
    return 0;
}

/* For the name of what is answered with its bytes; without memory it has none. */
static void keep_path(struct mcp_call *c, struct json_span arguments)
{
    _cleanup_free_ char *path = NULL;
    size_t len;

    if (json_span_text(json_span_member(arguments, "path"), &path, &len) == 0)
        c->path = toolset_masked(c->t, path, len, NULL);
}

static void enqueue(struct mcp_call *c)
{
    struct mcp_peer *p = c->q.peer;

    c->link = p->calls_end;
    *c->link = c;
    p->calls_end = &c->next;
    p->n_calls++;
    p->waiting_bytes += c->bytes;
    c->done = (struct loop_timer){.name = "call", .owner = c, .due = call_done};
    c->tick = (struct loop_timer){.name = "progress", .owner = c, .due = tick};
    c->read_us = c->told_us = clock_now_us();
    if (c->q.progress_token.kind != JSON_SPAN_NONE && atoll_tool_follow(c->op) == 0)
        loop_at(&p->a->loop, &c->tick, c->read_us + TICK_US);
    op_await(c->op, &c->done);
}

static void begin(const struct mcp_request *q, size_t toolset, struct json_span name,
                  struct json_span arguments)
{
    struct atoll_toolset *t = q->peer->toolsets[toolset];
    _cleanup_free_ char *tool = NULL;
    struct mcp_call *c = calloc(1, sizeof *c);
    size_t len;

    if (c && keep_request(c, q) == 0 && json_span_text(name, &tool, &len) == 0) {
        c->t = t;
        c->bytes = arguments.len;
        c->op = atoll_tool_call(t, tool, arguments.at ? arguments.at : "{}",
                                arguments.at ? arguments.len : 2);
    }
    if (c && c->op) {
        q->peer->used |= UINT64_C(1) << toolset;
        keep_path(c, arguments);
        enqueue(c);
        return;
    }
    if (c)
        free(c->kept);
    free(c);
    mcp_error(q, RPC_INTERNAL_ERROR, "out of memory", NULL);
}

void mcp_tools_call(const struct mcp_request *q)
{
    struct json_span name = json_span_member(q->params, "name");
    struct json_span arguments = json_span_member(q->params, "arguments");
    const struct mcp_peer *p = q->peer;
    size_t toolset = find_toolset(p, name);

    if (name.kind != JSON_SPAN_STRING)
        mcp_error(q, RPC_INVALID_PARAMS, "tools/call needs a name, a string", NULL);
    else if (toolset == p->n_toolsets)
        mcp_error(q, RPC_INVALID_PARAMS, "there is no tool of this name", NULL);
    else if (p->n_calls >= MCP_CALLS_MAX ||
             p->waiting_bytes + arguments.len > MCP_WAITING_BYTES_MAX)
        mcp_result(q, mcp_content_failed(TEXT_TOO_MANY_CALLS));
    else
        begin(q, toolset, name, arguments);
}

/* --- cancelling --- */

static struct mcp_call *find_open(const struct mcp_peer *p, struct json_span id)
{
    for (struct mcp_call *c = p->calls; c; c = c->next)
        if (!c->cancelled && json_span_equal(c->q.id, id))
            return c;
    return NULL;
}

bool mcp_is_open(const struct mcp_peer *p, struct json_span id)
{
    return find_open(p, id) != NULL;
}

/* Its command is killed; the row goes on when all of that is dead. */
static void cancel(struct mcp_call *c)
{
    c->cancelled = true;
    loop_at(&c->q.peer->a->loop, &c->tick, CLOCK_NEVER);
    atoll_op_cancel(c->op);
    mcp_no_answer(&c->q);
    c->q.batch = NULL;
}

void mcp_cancel(struct mcp_peer *p, struct json_span params)
{
    struct mcp_call *c = find_open(p, json_span_member(params, "requestId"));

    if (c)
        cancel(c);
}

bool mcp_cut(struct mcp_peer *p)
{
    bool any = false;

    for (struct mcp_call *c = p->calls; c; c = c->next)
        if (!c->cancelled) {
            any = true;
            cancel(c);
        }
    return any;
}

/* --- conversations --- */

/* All toolsets' tools in one list. Return: 0 or -ENOMEM. */
static int list_tools(struct mcp_peer *p)
{
    p->tools = json_array();
    for (size_t i = 0; i < p->n_toolsets; i++) {
        _cleanup_free_ char *text = atoll_toolset_render(p->toolsets[i], ATOLL_TOOLS_MCP);
        json_t *more = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
        int r = json_array_extend(p->tools, more);

        json_decref(more);
        if (r < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Files can be published before the end only by this tool. */
static bool has_resources(const struct atoll_toolset *t)
{
    return t->tools[TOOL_PUBLISH_EXPORTS].given;
}

int mcp_peer_init(struct mcp_peer *p, struct atoll *a, struct atoll_toolset *const *toolsets,
                  size_t n, void (*send)(void *owner, char *message, size_t len),
                  void (*idle)(void *owner), void *owner)
{
    *p = (struct mcp_peer){.a = a,
                           .toolsets = toolsets,
                           .n_toolsets = n,
                           .send = send,
                           .idle = idle,
                           .owner = owner,
                           .level = MCP_LEVEL__MAX};
    p->calls_end = &p->calls;
    for (size_t i = 0; i < n; i++)
        p->offers_resources = p->offers_resources || has_resources(toolsets[i]);
    return list_tools(p);
}

void mcp_peer_done(struct mcp_peer *p)
{
    while (p->calls) {
        mcp_no_answer(&p->calls->q);
        free_call(p->calls);
    }
    json_decref(p->tools);
    p->tools = NULL;
    published_done(&p->published);
}
