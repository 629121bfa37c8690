/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of commands, under credit both ways. A backend sees none of it: it gives what is
 * taken, and takes what it can use.
 */
#include <atoll_backend.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/server.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/guards.h"

static struct stream_output *output_of(struct atoll_stream *c, int which)
{
    assert(which == STREAM_STDOUT || which == STREAM_STDERR);
    return &c->out[which - STREAM_STDOUT];
}

/* Nobody gets what a detached command writes. */
static bool is_dropped(const struct atoll_stream *c)
{
    return c->flags & EXEC_DETACH || c->server->gone;
}

static void send_output(struct atoll_stream *c, int which, const void *data, size_t len)
{
    uint8_t buf[CHUNK_BYTES + 64];
    struct writer w = writer_over(buf, sizeof buf);
    struct stream_data x = {.stream = (uint32_t)which, .data = data, .len = len};

    stream_data_encode(&w, &x);
    server_send(c->server, MSG_OUTPUT, c->id, &w);
}

static void end_output(struct atoll_stream *c, int which)
{
    struct stream_output *o = output_of(c, which);

    if (!o->ended && !is_dropped(c))
        send_output(c, which, "", 0);
    o->ended = true;
}

void stream_end_outputs(struct atoll_stream *c)
{
    end_output(c, STREAM_STDOUT);
    if (!(c->flags & EXEC_TTY)) /* a terminal has one */
        end_output(c, STREAM_STDERR);
}

size_t atoll_stream_room(struct atoll_stream *s, int which)
{
    struct stream_output *o = output_of(s, which);
    size_t queue = server_room(s->server);
    size_t room = o->credit < queue ? o->credit : queue;

    assert(!s->over);
    if (is_dropped(s))
        return STREAM_WINDOW_BYTES;
    o->waiting = o->waiting || room == 0;
    return room;
}

size_t atoll_stream_output(struct atoll_stream *s, int which, const void *data, size_t len)
{
    struct stream_output *o = output_of(s, which);
    const uint8_t *p = data;
    size_t taken = 0;

    assert(!s->over);
    if (len == 0)
        end_output(s, which);
    if (is_dropped(s) || o->ended)
        return len;
    while (taken < len) {
        size_t n = atoll_stream_room(s, which);

        if (n == 0)
            break;
        n = n < len - taken ? n : len - taken;
        n = n < CHUNK_BYTES ? n : CHUNK_BYTES;
        o->credit -= (uint32_t)n;
        send_output(s, which, p + taken, n);
        taken += n;
    }
    return taken;
}

static void tell_room(struct atoll_stream *c, int which)
{
    struct stream_output *o = output_of(c, which);
    struct atoll_server *s = c->server;

    if (c->over || !o->waiting || o->credit == 0 || server_room(s) == 0)
        return;
    o->waiting = false;
    if (s->backend->room)
        s->backend->room(s, c, which);
}

void streams_pump(struct atoll_server *s)
{
    struct atoll_stream *next;

    /* One that ends meanwhile stays in memory, and in this row, until the batch is done. */
    for (struct atoll_stream *c = s->streams; c && !s->gone; c = next) {
        next = c->next;
        tell_room(c, STREAM_STDOUT);
        tell_room(c, STREAM_STDERR);
    }
}

void stream_credit(struct atoll_stream *c, const struct stream_data *x)
{
    struct stream_output *o;

    if (x->stream == STREAM_STDIN ||
        x->credit > STREAM_WINDOW_BYTES - output_of(c, (int)x->stream)->credit) {
        server_refuse_text(c->server, c->id, ERROR_USAGE, EPROTO,
                           "credit came that was not agreed on", NULL);
        return;
    }
    o = output_of(c, (int)x->stream);
    o->credit += x->credit;
    tell_room(c, (int)x->stream);
}

static void grant(struct atoll_stream *c, size_t n)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    c->input_credit += (uint32_t)n;
    stream_credit_encode(&w, STREAM_STDIN, (uint32_t)n);
    server_send(c->server, MSG_CREDIT, c->id, &w);
}

/* Offers what is here until the backend takes no more of it. */
static void offer(struct atoll_stream *c)
{
    static const uint8_t nothing[1];
    struct atoll_server *s = c->server;

    if (c->offering)
        return; /* asked for from within `input` */
    c->offering = true;
    while (!c->over && !c->input_closed) {
        size_t len = c->input_to - c->input_from;

        if (len == 0 && !c->input_ended)
            break;
        size_t n = s->backend->input(s, c, len > 0 ? c->input + c->input_from : nothing, len,
                                     c->input_ended);
        if (c->over)
            break;
        assert(n <= len);
        c->input_from += n;
        c->input_closed = n == len && c->input_ended;
        if (n > 0)
            grant(c, n);
        if (n < len)
            break;
    }
    c->offering = false;
}

void atoll_stream_want_input(struct atoll_stream *s)
{
    assert(!s->over);
    if (s->server->backend->input)
        offer(s);
}

/* Return: 0 or a negative errno with which it is refused. */
static int keep_input(struct atoll_stream *c, const struct stream_data *x)
{
    if (x->stream != STREAM_STDIN || !(c->flags & EXEC_STDIN))
        return -EPROTO;
    if (c->input_ended)
        return -EPIPE;
    if (x->len > c->input_credit)
        return -ENOBUFS;
    if (!c->input)
        c->input = malloc(STREAM_WINDOW_BYTES);
    if (!c->input)
        return -ENOMEM;
    if (c->input_from > 0) {
        memmove(c->input, c->input + c->input_from, c->input_to - c->input_from);
        c->input_to -= c->input_from;
        c->input_from = 0;
    }
    if (x->len > 0)
        memcpy(c->input + c->input_to, x->data, x->len);
    c->input_to += x->len;
    c->input_credit -= (uint32_t)x->len;
    c->input_ended = x->len == 0;
    return 0;
}

void stream_input(struct atoll_stream *c, const struct stream_data *x)
{
    int r = keep_input(c, x);

    if (r < 0)
        server_refuse_text(c->server, c->id, ERROR_USAGE, -r, "bytes came that were not agreed on",
                           NULL);
    else
        offer(c);
}
