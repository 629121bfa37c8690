/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the Model Context Protocol, apart from how its messages travel: one conversation
 * over the tools of one or several toolsets. Two eras of the protocol are spoken side by side:
 * revisions 2024-11-05 to 2025-11-25, which begin with `initialize`, and 2026-07-28, where each
 * request says for itself what it is.
 *
 *     stdio.c       lines, in and out                       serve.c     the run as a whole
 *     receive.c     a line becomes requests                 answer.c    results and errors go out
 *     dispatch.c    eras, methods                           batch.c     … those of one array
 * together lifecycle.c   hello, levels, resources                content.c   what a tool answered
 *     tools.c       calls: begin, progress, end, cancel
 *
 * Requests are answered at once, but for calls of tools. Those wait in their toolset's row and are
 * answered as they end.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atoll_toolset.h"
#include "base/error.h"
#include "base/loop.h"
#include "core/limits.h"
#include "mcp/published.h"
#include "wire/rpc.h"

enum {
    MCP_CALLS_MAX = 1024, /* that may wait at once; further ones are refused */
    MCP_BATCH_MAX = 1024, /* messages of one array */
};
#define MCP_WAITING_BYTES_MAX (UINT64_C(256) << 20) /* of the arguments of those */

enum mcp_level {
    MCP_DEBUG,
    MCP_INFO,
    MCP_NOTICE,
    MCP_WARNING,
    MCP_ERROR,
    MCP_CRITICAL,
    MCP_ALERT,
    MCP_EMERGENCY,
    MCP_LEVEL__MAX, /* none: nothing is logged */
};

/* Answers to the requests of one JSON array (revision 2025-03-26), which go out together. */
struct mcp_batch {
    struct mcp_peer *peer;
    unsigned waiting; /* requests that are not answered yet; and 1 while it is being read */
    char *text;       /* "[…,…" so far; owned; NULL: nothing yet */
    size_t len;
};

/* A request that is being answered. Views into the line, unless it belongs to a call. */
struct mcp_request {
    struct mcp_peer *peer;
    bool modern;
    struct json_span id;
    struct json_span params;
    struct json_span progress_token; /* JSON_SPAN_NONE: no progress is wanted */
    enum mcp_level level;            /* modern: what may be logged while it is answered */
    struct mcp_batch *batch;         /* NULL: of none */
};

_Static_assert(LIMIT_MCP_TOOLSETS <= 64, "a set of toolsets is one uint64_t");

struct mcp_call;

/* A conversation. */
struct mcp_peer {
    struct atoll *a;
    struct atoll_toolset *const *toolsets;
    size_t n_toolsets;
    /* @message: @len bytes, taken, without a line end */
    void (*send)(void *owner, char *message, size_t len);
    void (*idle)(void *owner); /* the last of the calls has ended; not from within a call of ours */
    void *owner;

    json_t *tools; /* of all toolsets, as tools/list has them; owned */
    struct published published;
    const char *revision; /* that was agreed on by `initialize`; NULL: none was */
    enum mcp_level level; /* of these revisions */
    bool offers_resources;
    uint64_t used; /* toolsets of which a tool was called: bit by index */

    struct mcp_call *calls, **calls_end;
    unsigned n_calls;       /* that are under way or wait, cancelled ones too */
    uint64_t waiting_bytes; /* of their arguments */
};

/**
 * mcp_peer_init() - a conversation before its first message
 * @toolsets: borrowed; open, so that their texts stay as they are
 * @send, @idle, @owner: as in struct mcp_peer
 *
 * Return: 0 or -ENOMEM.
 */
int mcp_peer_init(struct mcp_peer *p, struct atoll *a, struct atoll_toolset *const *toolsets,
                  size_t n, void (*send)(void *owner, char *message, size_t len),
                  void (*idle)(void *owner), void *owner);

/** mcp_peer_done() - end all calls without an answer, and free what it holds */
void mcp_peer_done(struct mcp_peer *p);

/** mcp_receive() - a message; @text: @len bytes, any */
void mcp_receive(struct mcp_peer *p, const char *text, size_t len);

/** mcp_receive_overlong() - a message came that was too long to be kept */
void mcp_receive_overlong(struct mcp_peer *p);

/* --- answer.c --- */

/**
 * mcp_result() - answer a request
 * @result: an object, taken; NULL: there was no memory for it, and an error is sent
 */
void mcp_result(const struct mcp_request *q, json_t *result);

/** mcp_result_cached() - the same for what a client may keep for @ttl_ms, as modern ones are told
 */
void mcp_result_cached(const struct mcp_request *q, json_t *result, int ttl_ms);

/** mcp_error() - answer with an error; @data: taken; NULL: none */
void mcp_error(const struct mcp_request *q, int code, const char *message, json_t *data);

/** mcp_server_info() - name, title and version. NULL: no memory */
json_t *mcp_server_info(void);

/** mcp_no_answer() - a request that will not be answered; its batch waits no longer for it */
void mcp_no_answer(const struct mcp_request *q);

/** mcp_notify() - @params: taken; NULL: no memory, and nothing is sent */
void mcp_notify(struct mcp_peer *p, const char *method, json_t *params);

/**
 * mcp_log() - tell the client of something, if it wants to hear of such
 * @q: on whose behalf; modern clients hear nothing else
 */
__attribute__((format(printf, 3, 4))) void mcp_log(const struct mcp_request *q,
                                                   enum mcp_level level, const char *fmt, ...);

/** mcp_level_find() - by its name in the protocol; MCP_LEVEL__MAX: none */
enum mcp_level mcp_level_find(struct json_span name);

/* --- batch.c --- */

/** mcp_batch_finish() - one that @b waited for needs no more waiting; the last one sends it */
void mcp_batch_finish(struct mcp_batch *b);

/** mcp_batch_add() - an answer; @text: @len bytes, taken */
void mcp_batch_add(struct mcp_batch *b, char *text, size_t len);

/* --- dispatch.c --- */

/** mcp_dispatch() - a request or notification that is well-formed; @batch may be NULL */
void mcp_dispatch(struct mcp_peer *p, const struct rpc_message *m, struct mcp_batch *batch);

#define MCP_MODERN_REVISION "2026-07-28"

/* --- lifecycle.c: methods; each answers @q --- */

void mcp_initialize(const struct mcp_request *q);
void mcp_discover(const struct mcp_request *q);
void mcp_ping(const struct mcp_request *q);
void mcp_set_level(const struct mcp_request *q);
void mcp_resources_list(const struct mcp_request *q);
void mcp_resources_templates(const struct mcp_request *q);
void mcp_resources_read(const struct mcp_request *q);

/** mcp_refuse_cursor() - whether the request has a cursor, of which none was ever handed out;
 * then it is answered */
bool mcp_refuse_cursor(const struct mcp_request *q);

/* --- tools.c --- */

void mcp_tools_list(const struct mcp_request *q);
void mcp_tools_call(const struct mcp_request *q);

/** mcp_cancel() - notifications/cancelled: end a call, of which nothing more is sent */
void mcp_cancel(struct mcp_peer *p, struct json_span params);

/** mcp_is_open() - whether a call with this id is still to be answered */
bool mcp_is_open(const struct mcp_peer *p, struct json_span id);

/** mcp_cut() - end all calls without an answer. Return: whether any was still to be answered */
bool mcp_cut(struct mcp_peer *p);

/* --- content.c --- */

/**
 * mcp_content() - the result of a call that ended well
 * @t:     whose secrets are masked in links
 * @op:    done; with an answer
 * @path:  of the file that it read, masked; NULL: none
 * @links: the client knows blocks of the kind `resource_link`
 *
 * NULL: no memory.
 */
json_t *mcp_content(const struct atoll_toolset *t, const struct atoll_op *op, const char *path,
                    bool links);

/** mcp_content_failed() - the result of one that did not: isError and a sentence */
json_t *mcp_content_failed(const char *text);
