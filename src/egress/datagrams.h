/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams of programs inside. Those to port 53 are the resolver's, unless a range lists their
 * destination; the others belong to flows of UDP, one for each pair of addresses and ports, each
 * with a connected socket of the host's. Answers go back as whole packets through a raw socket
 * inside, which is how they get the source address and port that the program expects; so do ICMP
 * errors (port unreachable), when the host's socket has one or the destination is refused. A
 * program that tries QUIC first then tries TCP at once.
 *
 * Only datagrams from loopback inside are served. Every address is a local one there, so a program
 * may send from any; an answer to another one would come back here as a datagram of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/address.h"

struct egress;

enum { DATAGRAM_FLOWS_MAX = 1024 };
#define DATAGRAM_IDLE_US UINT64_C(120000000) /* RFC 4787, REQ-5 */

struct datagram_ends { /* of one datagram from inside */
    struct address from, to;
    uint16_t from_port, to_port;
};

struct datagram_flow { /* private to datagrams.c */
    struct datagrams *datagrams;
    struct datagram_flow *next; /* in its bucket */
    struct datagram_flow *older, *newer;
    struct datagram_ends ends;
    int fd; /* owned; connected to ends.to */
    struct loop_source source;
    uint64_t used_at_us;
};

struct datagram_buffers; /* what one batch is received into; pages that no datagram touched, and
                            those of a burst that is over, take no memory */

struct datagrams {
    struct egress *egress;
    struct loop_source listeners[2];
    struct datagram_flow **table; /* by both ends */
    struct datagram_flow *oldest, *newest;
    size_t n;
    struct loop_timer sweep;
    struct datagram_buffers *buffers;
    uint64_t served_at_us; /* when datagrams from inside were, last */
    bool large;            /* a datagram of more than a page has come since the last sweep */
};

/** datagrams_init() - nothing is received yet; 0 or -errno */
int datagrams_init(struct datagrams *d, struct egress *e);

/**
 * datagrams_listen() - serve what comes at the sockets inside
 * @fd4, @fd6: borrowed; with IP_RECVORIGDSTADDR, IPV6_RECVORIGDSTADDR. @e->inside holds the raw
 *             sockets that answers go to.
 */
int datagrams_listen(struct datagrams *d, int fd4, int fd6);
void datagrams_done(struct datagrams *d);

/** datagrams_recheck() - the policy has changed: forget flows that it forbids now; how many */
unsigned datagrams_recheck(struct datagrams *d);

/* A datagram to be sent to a program inside, as if from @ends->to. */
struct datagram_reply {
    struct datagram_ends ends; /* as the request came */
    const uint8_t *data;       /* borrowed */
    size_t len;
};

/**
 * inject_datagrams() - send @n replies, as many as the kernel takes at once; the rest are lost
 *
 * An answer of IPv6 that is larger than lo's MTU lets pass goes in two fragments (RFC 8200, 4.5).
 */
void inject_datagrams(struct egress *e, const struct datagram_reply *replies, size_t n);

/**
 * inject_unreachable() - tell the program that nobody is at @ends->to, as a port unreachable
 * @data: what it had sent, as far as it is known; its first bytes are quoted (RFC 792; RFC 4443)
 */
void inject_unreachable(struct egress *e, const struct datagram_ends *ends, const uint8_t *data,
                        size_t len);
