/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MCP server from its lines to its answers, all but the sandbox: the toolset is closed, so a
 * call is judged, waits and is answered by what it fails with. Whatever comes, what goes out is
 * lines of JSON-RPC, and the server lives.
 *
 * Input: what a client writes.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "mcp/server.h"
#include "mcp/stdio.h"
#include "base/buffer.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIPE_BYTES = 1 << 20, INPUT_MAX = 60000 };

struct conversation {
    struct stdio stdio;
    struct mcp_peer peer;
    bool ended, broken;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_send(void *owner, char *text, size_t len)
{
    check(!memchr(text, '\n', len));
    stdio_send(&((struct conversation *)owner)->stdio, text, len);
}

static void on_line(void *owner, const char *text, size_t len)
{
    mcp_receive(&((struct conversation *)owner)->peer, text, len);
}

static void on_overlong(void *owner)
{
    mcp_receive_overlong(&((struct conversation *)owner)->peer);
}

static void on_ended(void *owner)
{
    ((struct conversation *)owner)->ended = true;
}

static void on_written(void *owner)
{
    (void)owner;
}

static void on_broken(void *owner)
{
    ((struct conversation *)owner)->broken = true;
}

static const struct stdio_events events = {.line = on_line,
                                           .overlong = on_overlong,
                                           .ended = on_ended,
                                           .written = on_written,
                                           .broken = on_broken};

static void check_message(const json_t *o)
{
    const char *version = json_string_value(json_object_get(o, "jsonrpc"));

    check(version && strcmp(version, "2.0") == 0);
    check(json_object_get(o, "result") || json_object_get(o, "error") ||
          json_object_get(o, "method"));
}

/* The ids that come back may be numbers of any size, which only real numbers hold here. */
static void check_line(const char *text, size_t len)
{
    json_t *value = json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);

    if (!value) /* a number too large even for that; or an id whose surrogates are no pair */
        return;
    if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value); i++)
            check_message(json_array_get(value, i));
    else
        check_message(value);
    json_decref(value);
}

static void read_output(int fd, struct buffer *b)
{
    char piece[65536];
    ssize_t n;

    while ((n = read(fd, piece, sizeof piece)) > 0)
        buffer_add(b, piece, (size_t)n);
}

static void check_output(const struct buffer *b)
{
    size_t from = 0;

    for (size_t i = 0; i < b->len; i++)
        if (b->bytes[i] == '\n') {
            check_line(b->bytes + from, i - from);
            from = i + 1;
        }
    check(from == b->len);
}

static void converse(struct atoll *a, struct atoll_toolset *const *toolset, const uint8_t *data,
                     size_t size)
{
    struct conversation c = {0};
    struct buffer out = {0};
    int in[2], output[2];

    check(pipe2(in, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC | O_NONBLOCK) == 0);
    check(fcntl(in[1], F_SETPIPE_SZ, PIPE_BYTES) > 0 && fcntl(output[0], F_SETPIPE_SZ, PIPE_BYTES));
    check(mcp_peer_init(&c.peer, a, toolset, 1, on_send, NULL, &c) == 0);
    check(stdio_start(&c.stdio, &a->loop, in[0], output[1], &events, &c) == 0);
    check(write(in[1], data, size) == (ssize_t)size);
    close(in[1]);
    while (!c.broken && (!c.ended || c.peer.calls || stdio_pending(&c.stdio) > 0)) {
        check(loop_turn(&a->loop, UINT64_MAX) == 0);
        read_output(output[0], &out);
    }
    read_output(output[0], &out);
    check(!c.broken && !out.bad);
    check_output(&out);
    stdio_stop(&c.stdio);
    mcp_peer_done(&c.peer);
    buffer_done(&out);
    close(in[0]);
    close(output[0]);
    close(output[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct atoll_error err;
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_toolset *t = NULL;
    struct atoll *a = NULL;

    check(spec && atoll_new(&a, &err) == 0);
    check(atoll_spec_set(spec, "toolset.tools", "publish_exports", &err) == 0);
    check(atoll_spec_set(spec, "toolset.exports", "out=file:///tmp/out", &err) == 0);
    check(atoll_toolset_new(a, spec, NULL, &t, &err) == 0);
    converse(a, &t, data, size < INPUT_MAX ? size : INPUT_MAX);
    atoll_toolset_free(t);
    atoll_spec_free(spec);
    atoll_free(a);
    return 0;
}
