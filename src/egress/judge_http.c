/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to port 80 of a name, judged one by one on their way. */
#include "egress/judge_http.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "egress/egress.h"
#include "wire/http_head.h"
#include "base/guards.h"

enum {
    BUFFER_MAX = HTTP_HEAD_BYTES_MAX + 1, /* one more, by which a head that is too long shows */
    ROUNDS = 16,                          /* of reading and writing, before others' turn */
    GLANCE_BYTES = 64, /* so few are judged at each byte: what is no request shows at once */
};
static_assert((int)HTTP_HEAD_BYTES_MAX <= (int)FLOW_SCRATCH_BYTES,
              "an answer's head fits the scratch buffer");

/* What the client has sent, from its first byte that has not gone on. */
struct http_flow {
    struct http_stream stream;
    uint8_t *buf; /* owned; NULL while nothing is in it */
    size_t size, len;
    size_t good;   /* of len: judged, and may go on */
    size_t looked; /* of len: nothing could be told of these yet */
    uint64_t bytes;
    bool ended;    /* the client sends no more */
    bool begun;    /* the first request was good */
    bool asked;    /* a request to switch protocols is good, its answer not known */
    bool switched; /* what follows are no requests */
};

/* Of a step: nothing to do, something was done, or the flow is over. */
enum progress { STUCK, MOVED, OVER };

int http_flow_new(struct flow *f)
{
    f->http = calloc(1, sizeof *f->http);
    return f->http ? 0 : -ENOMEM;
}

void http_flow_free(struct flow *f)
{
    if (f->http)
        free(f->http->buf);
    free(f->http);
    f->http = NULL;
}

unsigned long long http_bytes(const struct flow *f)
{
    return f->http->bytes;
}

static enum progress refuse(struct flow *f, const char *reason)
{
    flow_refuse(f, DENIAL_HTTP, reason, f->http->bytes);
    return OVER;
}

/* --- judging --- */

/* Both names in their one form, so that nobody behind us can read one of them differently. */
static bool is_for_name(const struct flow *f, const struct http_request *request)
{
    struct host_name name;

    return host_name_read(request->host, strlen(request->host), &name) == 0 &&
           strcmp(name.text, f->name->text.text) == 0 &&
           (request->port == 0 || request->port == f->port);
}

static enum progress refuse_other(struct flow *f, const struct http_request *request)
{
    char shown[HTTP_HOST_MAX + 1], port[16] = "", reason[768];

    memcpy(shown, request->host, sizeof shown);
    text_make_printable(shown);
    if (request->port != 0)
        (void)snprintf(port, sizeof port, ":%u", request->port);
    (void)snprintf(reason, sizeof reason,
                   "the request is for the Host '%s%s', and the address is that of '%s'", shown,
                   port, f->name->text.text);
    return refuse(f, reason);
}

static enum progress judge_request(struct flow *f, const struct http_request *request, size_t used)
{
    struct http_flow *h = f->http;

    if (!is_for_name(f, request))
        return refuse_other(f, request);
    h->good += used;
    h->asked = request->upgrade;
    if (h->begun)
        return MOVED;
    h->begun = true;
    flow_dial(f);
    return f->state == FLOW_OVER ? OVER : MOVED;
}

/*
 * Whether more of what is held back can be told now than the last time. A head is complete only
 * with a line, and looking at it anew for each byte of a line would be work that a program inside
 * gets for nothing.
 */
static bool worth_looking(const struct http_flow *h)
{
    size_t held = h->len - h->good;

    if (held == 0 || h->len == h->looked)
        return false;
    return held <= GLANCE_BYTES || h->len == BUFFER_MAX || h->looked <= h->good ||
           memchr(h->buf + h->looked, '\n', h->len - h->looked);
}

static enum progress judge(struct flow *f)
{
    struct http_flow *h = f->http;
    enum progress progress = STUCK;

    while (!h->asked && !h->switched && worth_looking(h)) {
        struct http_request request;
        enum http_fault fault = HTTP_GOOD;
        char reason[256];
        size_t used = 0;

        switch (http_stream_step(&h->stream, h->buf + h->good, h->len - h->good, &request, &used,
                                 &fault)) {
        case HTTP_STEP_HEAD:
            progress = judge_request(f, &request, used);
            if (progress == OVER || f->http != h)
                return OVER;
            break;
        case HTTP_STEP_BODY:
            h->good += used;
            progress = MOVED;
            break;
        case HTTP_STEP_MORE:
            h->looked = h->len;
            break;
        case HTTP_STEP_BAD:
            (void)snprintf(reason, sizeof reason, "the request %s", http_fault_text(fault));
            return refuse(f, reason);
        }
    }
    if (h->switched && h->good < h->len) {
        h->good = h->len;
        progress = MOVED;
    }
    return progress;
}

/* --- moving --- */

/* Room for the next bytes: only a head that is not whole may take more than the first size. */
static bool make_room(struct http_flow *h)
{
    size_t size = h->size == 0                      ? HTTP_BUFFER_FIRST
                  : h->len < h->size || h->good > 0 ? h->size
                  : h->size * 2 < BUFFER_MAX        ? h->size * 2
                                                    : BUFFER_MAX;

    if (size != h->size) {
        uint8_t *buf = realloc(h->buf, size);

        if (!buf)
            return false;
        h->buf = buf;
        h->size = size;
    }
    return h->len < h->size;
}

static enum progress take_in(struct flow *f)
{
    struct http_flow *h = f->http;
    struct relay_way *y = &f->relay.ways[0];
    ssize_t n;

    if (!y->readable || h->ended || (h->asked && h->len >= HTTP_BUFFER_FIRST) || !make_room(h))
        return STUCK;
    n = recv(f->relay.fds[0], h->buf + h->len, h->size - h->len, MSG_DONTWAIT);
    if (n > 0) {
        h->len += (size_t)n;
        h->bytes += (uint64_t)n;
        return MOVED;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        flow_end(f, true);
        return OVER;
    }
    y->readable = false;
    h->ended = n == 0;
    return STUCK;
}

static enum progress pass_on(struct flow *f)
{
    struct http_flow *h = f->http;
    struct relay_way *y = &f->relay.ways[0];
    ssize_t n;

    if (f->state != FLOW_RELAYING || !y->writable || h->good == 0)
        return STUCK;
    n = send(f->relay.fds[1], h->buf, h->good, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR) {
            relay_want_room(&f->relay, 0);
            return STUCK;
        }
        flow_end(f, true);
        return OVER;
    }
    h->len -= (size_t)n;
    h->good -= (size_t)n;
    h->looked = h->looked > (size_t)n ? h->looked - (size_t)n : 0;
    memmove(h->buf, h->buf + n, h->len);
    relay_count(&f->relay, 0, (size_t)n);
    return MOVED;
}

/* An idle connection, of which there may be thousands, keeps no buffer. */
static void let_go(struct http_flow *h)
{
    if (h->len > 0)
        return;
    free(h->buf);
    h->buf = NULL;
    h->size = h->looked = 0;
}

static void set_deadline(struct flow *f)
{
    const struct http_flow *h = f->http;

    if (h->len > h->good && !h->asked) {
        if (f->deadline_us == CLOCK_NEVER)
            flow_expect(f);
    } else if (h->begun) {
        f->deadline_us = CLOCK_NEVER;
    }
}

/* The client sends no more. What is left of a request cannot be judged, so it cannot go on. */
static void end_of_requests(struct flow *f)
{
    struct http_flow *h = f->http;

    if (h->len > h->good && !h->asked)
        (void)refuse(f, "the connection ended within the head of a request");
    else if (!h->begun)
        flow_end(f, false); /* it has said nothing, so there is nothing to refuse */
    else
        f->relay.ways[0].ended = h->len == 0; /* the relay passes that on */
}

/* Takes in, judges and passes on until nothing moves. The flow may be over on return. */
static void move(struct flow *f)
{
    static enum progress (*const steps[])(struct flow *) = {take_in, judge, pass_on};
    unsigned taken = 0;

    for (enum progress progress = MOVED; progress == MOVED;) {
        progress = STUCK;
        for (size_t i = taken < ROUNDS ? 0 : 1; i < ARRAY_SIZE(steps); i++) {
            enum progress one = steps[i](f);

            if (one == OVER || f->state == FLOW_OVER)
                return;
            taken += i == 0 && one == MOVED;
            progress = one == MOVED ? MOVED : progress;
        }
    }
    if (taken == ROUNDS && f->relay.ways[0].readable)
        relay_again(&f->relay, 0);
    set_deadline(f);
    let_go(f->http);
    if (f->http->ended)
        end_of_requests(f);
}

void http_read(struct flow *f)
{
    move(f);
}

/* --- beside a relay --- */

/* Reads what the server answers to a request to switch protocols, and leaves it to the relay. */
static void read_answer(struct flow *f)
{
    struct http_flow *h = f->http;
    struct relay_way *y = &f->relay.ways[1];
    uint8_t *data = f->egress->flows.scratch;
    ssize_t n = recv(f->relay.fds[1], data, HTTP_HEAD_BYTES_MAX, MSG_PEEK | MSG_DONTWAIT);
    enum http_status_step step = HTTP_STATUS_MORE;
    unsigned status = 0;
    size_t bytes;

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        y->readable = false;
        return;
    }
    if (n < 0) { /* it is told once, so the relay would take it for an end */
        flow_end(f, true);
        return;
    }
    if (n > 0)
        step = http_status_parse(data, (size_t)n, &status, &bytes);
    if (step == HTTP_STATUS_BAD || (step == HTTP_STATUS_MORE && n == HTTP_HEAD_BYTES_MAX)) {
        (void)refuse(f, "what the server answers to a request for an upgrade is not HTTP");
        return;
    }
    if (step == HTTP_STATUS_MORE && n > 0 && !y->hung_up) {
        y->readable = false;
        return;
    }
    if (step == HTTP_STATUS_DONE) {
        h->switched = status == 101;
        h->asked = false;
        h->looked = 0;
        if (!h->switched)
            http_stream_not_switched(&h->stream);
    }
    relay_resume(&f->relay, 1); /* also an end, which is the relay's to pass on */
}

static int paused_ready(struct relay *r, unsigned way)
{
    struct flow *f = r->owner;

    if (way == 1) {
        if (r->ways[1].readable)
            read_answer(f);
        if (f->state == FLOW_OVER || r->paused[1])
            return 0;
    }
    if (r->paused[0] && !r->ways[0].closed)
        move(f);
    if (f->state != FLOW_OVER && f->http->switched && f->http->len == 0 && !f->http->ended)
        relay_resume(r, 0);
    return 0;
}

void http_relay(struct flow *f)
{
    f->relay.paused[0] = true;
    f->relay.paused[1] = f->http->asked;
    f->relay.paused_ready = paused_ready;
}
