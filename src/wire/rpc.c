/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC messages: which kind one is, its id as it was written, its method, its parameters. */
#include "wire/rpc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

static int refuse(const char **problem, enum rpc_error code, const char *sentence)
{
    *problem = sentence;
    return code;
}

/* The members that count. */
enum member { JSONRPC, ID, METHOD, PARAMS, RESULT, ERROR, MEMBER__MAX };

struct members {
    struct json_span first[MEMBER__MAX];
    size_t n[MEMBER__MAX];
};

/* All of them in one walk, since there may be many megabytes between them. */
static void find_members(struct json_span message, struct members *ret)
{
    static const char *const names[] = {"jsonrpc", "id", "method", "params", "result", "error"};
    struct json_span name, value;
    const char *at = NULL;

    static_assert(ARRAY_SIZE(names) == MEMBER__MAX, "every member has a name");
    while (json_span_next_member(message, &at, &name, &value)) {
        for (size_t i = 0; i < MEMBER__MAX; i++)
            if (json_span_is(name, names[i]) && ret->n[i]++ == 0)
                ret->first[i] = value;
    }
}

/* The id, if there is one that can be echoed; of two nobody knows which is meant. */
static int read_id(const struct members *found, struct json_span *ret, const char **problem)
{
    struct json_span id = found->first[ID];

    static_assert(RPC_ID_BYTES_MAX == 4096, "as the sentence says");
    if (id.kind == JSON_SPAN_NONE)
        return 0;
    if (found->n[ID] > 1)
        return refuse(problem, RPC_INVALID_REQUEST, "the message has more than one id");
    if (id.kind != JSON_SPAN_STRING && !json_span_is_integer(id))
        return refuse(problem, RPC_INVALID_REQUEST, "id has to be a string or an integer");
    if (id.len > RPC_ID_BYTES_MAX)
        return refuse(problem, RPC_INVALID_REQUEST, "id is longer than 4096 bytes");
    *ret = id;
    return 0;
}

/* The start of a text as a string of C that can be shown; whole characters, a '?' for each NUL. */
static void copy_method(const char *text, size_t len, char *ret)
{
    size_t n = len;

    if (n >= RPC_METHOD_BYTES) {
        n = RPC_METHOD_BYTES - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
            n--;
    }
    for (size_t i = 0; i < n; i++)
        ret[i] = text[i] == '\0' ? '?' : text[i];
    ret[n] = '\0';
}

static int read_method(struct json_span method, char *ret, const char **problem)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r;

    if (method.kind == JSON_SPAN_NONE)
        return refuse(problem, RPC_INVALID_REQUEST, "the message has no method");
    if (method.kind != JSON_SPAN_STRING || method.len == strlen("\"\""))
        return refuse(problem, RPC_INVALID_REQUEST, "method has to be a string that is not empty");
    r = json_span_text(method, &text, &len);
    if (r == -ENOMEM)
        return refuse(problem, RPC_INTERNAL_ERROR, "out of memory");
    if (r == 0)
        copy_method(text, len, ret);
    else /* half of a surrogate pair: as it is written, with a backslash that no method has */
        copy_method(method.at + 1, method.len - 2, ret);
    return 0;
}

static int read_params(struct json_span params, struct rpc_message *m, const char **problem)
{
    if (params.kind == JSON_SPAN_OBJECT)
        m->params = params;
    else if (params.kind != JSON_SPAN_NONE && m->kind == RPC_REQUEST)
        return refuse(problem, RPC_INVALID_PARAMS, "params has to be an object");
    return 0;
}

int rpc_read(struct json_span value, struct rpc_message *ret, const char **problem)
{
    struct members found = {0};
    int r;

    *ret = (struct rpc_message){.kind = RPC_REQUEST};
    if (value.kind != JSON_SPAN_OBJECT)
        return refuse(problem, RPC_INVALID_REQUEST, "a message has to be an object");
    find_members(value, &found);
    if (found.n[METHOD] == 0 && found.n[RESULT] + found.n[ERROR] > 0) {
        ret->kind = RPC_RESPONSE;
        return 0;
    }
    r = read_id(&found, &ret->id, problem);
    if (r < 0)
        return r;
    if (!json_span_unique(value))
        return refuse(problem, RPC_INVALID_REQUEST,
                      "the message has two members of one name, or hundreds of members");
    if (!json_span_is(found.first[JSONRPC], "2.0"))
        return refuse(problem, RPC_INVALID_REQUEST, "jsonrpc has to be \"2.0\"");
    r = read_method(found.first[METHOD], ret->method, problem);
    if (r < 0)
        return r;
    if (ret->id.kind == JSON_SPAN_NONE)
        ret->kind = RPC_NOTIFICATION;
    return read_params(found.first[PARAMS], ret, problem);
}
