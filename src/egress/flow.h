/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection that a program inside has made: accepted, decided on, judged by its first bytes
 * where the rule says so, dialled, relayed, and over.
 *
 *   accepted -> [reading the ClientHello | the first request] -> dialling -> relaying -> over
 *
 * What is refused is told (denials.h) before it is reset, so that whoever sees the reset can find
 * the reason. A synthetic address on port 443 is TLS, on port 80 HTTP; on other ports both sides
 * are relayed from the start, and if the client's first bytes are a ClientHello they are judged as
 * on 443 before any of them goes on. Addresses of ranges and of an open network are relayed
 * blindly.
 */
#pragma once

#include <stdint.h>

#include "base/loop.h"
#include "core/address.h"
#include "egress/dial.h"
#include "egress/pipes.h"
#include "egress/relay.h"
#include "wire/denial.h"

struct egress;
struct http_flow;

enum {
    FLOWS_MAX = 4096,
    FLOW_SCRATCH_BYTES = 64 * 1024, /* TLS_HELLO_BYTES_MAX, HTTP_HEAD_BYTES_MAX */
};
#define FLOW_HEAD_TIMEOUT_US UINT64_C(30000000) /* for a ClientHello or a request's head */

enum flow_kind { FLOW_ADDRESS, FLOW_TLS, FLOW_HTTP, FLOW_TCP };
enum flow_state { FLOW_READING, FLOW_DIALLING, FLOW_RELAYING, FLOW_OVER };

struct flow {
    struct flow *next, *previous;
    struct egress *egress;
    enum flow_kind kind;
    enum flow_state state;
    struct address to; /* that the program connected to */
    uint16_t port;
    bool low_water;         /* the sandbox's side has an SO_RCVLOWAT */
    struct name *name;      /* of a synthetic address: counted among its users; or NULL */
    uint64_t deadline_us;   /* for what is waited for; CLOCK_NEVER: nothing */
    struct dial *dial;      /* owned, while it runs; NULL otherwise */
    struct http_flow *http; /* owned, judge_http.h; NULL: not HTTP */
    struct relay relay;     /* fds[0] is the sandbox's side from the beginning */
};

struct flows {
    struct egress *egress;
    struct loop_source listeners[2];
    struct flow *first;
    size_t n;
    struct pipes pipes;
    uint8_t *scratch; /* FLOW_SCRATCH_BYTES, for what is looked at and let go at once; owned */
    struct loop_timer sweep; /* deadlines, once a second, while there are any */
    bool full;               /* the listeners are silent until some flow ends, or the sweep */
};

int flows_init(struct flows *f, struct egress *e);

/** flows_listen() - accept from the listeners inside; borrowed; 0 or -errno */
int flows_listen(struct flows *f, int fd4, int fd6);

/** flows_recheck() - the policy has changed: cut what it forbids now. Return: how many were cut. */
unsigned flows_recheck(struct flows *f);

void flows_done(struct flows *f);

/**
 * flow_begin() - take care of a connection that a program inside made
 * @fd: taken; non-blocking
 * @to: where it was made to; an IPv4-mapped address is the IPv4 one
 */
void flow_begin(struct egress *e, int fd, const struct address *to, uint16_t port);

/** flow_dial() - the first bytes are good: connect outside. The flow may be over on return. */
void flow_dial(struct flow *f);

/** flow_end() - close both sides; @reset: by a reset. The memory stays until the batch is done. */
void flow_end(struct flow *f, bool reset);

/**
 * flow_refuse() - tell that what it sent is refused, and reset it
 * @reason: one sentence without a full stop
 * @bytes:  that came of the program
 */
void flow_refuse(struct flow *f, enum denial_protocol protocol, const char *reason, uint64_t bytes);

/** flow_expect() - something has to come by FLOW_HEAD_TIMEOUT_US from now */
void flow_expect(struct flow *f);
