/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of JSON-RPC 2.0 as MCP has them: ids are strings or integers, parameters are objects.
 * https://www.jsonrpc.org/specification, sections 4 and 5.
 */
#pragma once

#include <stddef.h>

#include "wire/json_scan.h"

/* Section 5.1, and those that MCP adds in its revision 2026-07-28. */
enum rpc_error {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL_ERROR = -32603,
    RPC_UNSUPPORTED_VERSION = -32022,
};

enum rpc_kind {
    RPC_REQUEST,
    RPC_NOTIFICATION,
    RPC_RESPONSE, /* to a request that was never made: passed over */
};

/* Longest id that is answered, with its quotes; what is longer no client means. */
enum { RPC_ID_BYTES_MAX = 4096, RPC_METHOD_BYTES = 128 };

struct rpc_message {
    enum rpc_kind kind;
    struct json_span id;           /* JSON_SPAN_NONE: none that can be answered */
    char method[RPC_METHOD_BYTES]; /* UTF-8, "" of a response; see below */
    struct json_span params;       /* an object; JSON_SPAN_NONE: none given */
};

/**
 * rpc_read() - one message
 * @value: of a text that json_scan() has judged; views in @ret point into it
 *
 * The method is without its escapes. One that no server knows stays so: what is longer is cut
 * between two characters, NULs become '?', and one with an unpaired surrogate keeps its escapes.
 *
 * What has a result or an error and no method is a response, whatever else is wrong with it: who
 * answers one could hit a request of the sender's own that has its id. Of anything else an id that
 * is not a string or an integer, two members of one name (json_span_unique()), another version than
 * "2.0", and a method that is absent, empty or no string are RPC_INVALID_REQUEST. Parameters of
 * a request that are no object, null included, are RPC_INVALID_PARAMS; those of a notification,
 * which nobody may answer, are passed over.
 *
 * Return: 0; or an enum rpc_error with *@problem a sentence that is not freed, when @ret->id is set
 * all the same if it could be read, and nothing else of @ret counts.
 */
int rpc_read(struct json_span value, struct rpc_message *ret, const char **problem);
