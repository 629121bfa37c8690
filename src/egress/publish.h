/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of the host that lead inside. The keeper has opened the listeners; a connection is
 * accepted only when a socket of the sandbox's network is at hand to reach loopback inside with
 * (the keeper sends more, MSG_SOCKETS), then relayed as any other. When nobody listens inside, the
 * client outside gets a reset.
 *
 * The sockets are of IPv4, and lead to 127.0.0.1: a server that listens at ::1 alone is not
 * reached, one that listens at any address, [::] included, is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "egress/relay.h"

struct egress;
struct published_flow; /* private to publish.c */

enum { PUBLISH_SOCKETS = 64, PUBLISH_LOW = 16, PUBLISH_CONNECTIONS_MAX = 1024 };

struct published_port {
    struct loop_source source;
    int fd;        /* the listener; owned */
    uint16_t port; /* inside */
    bool silent;   /* until there is a socket and room for a connection */
    struct publish *publish;
};

struct publish {
    struct egress *egress;
    struct published_port *ports;
    size_t n_ports;
    int sockets[PUBLISH_SOCKETS]; /* of the sandbox's network, unconnected; owned */
    size_t n_sockets;
    bool asked;              /* the keeper, for more */
    struct loop_timer again; /* when to ask once more, or to listen again after a shortage */
    struct published_flow *first;
    size_t n;
};

/**
 * publish_init() - accept from @listeners, which lead to @ports inside
 * @listeners: taken, on failure too: each becomes -EBADF
 *
 * The first connection asks the keeper for sockets. Return: 0 or -errno.
 */
int publish_init(struct publish *p, struct egress *e, int *listeners, size_t n,
                 const uint16_t *ports);
void publish_done(struct publish *p);

/** publish_finish() - nobody is inside any more: end connections that have had all from there */
void publish_finish(struct publish *p);

/** publish_sockets() - more sockets came; taken; non-blocking, of IPv4 and TCP */
void publish_sockets(struct publish *p, int *fds, size_t n);
