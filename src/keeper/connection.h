/* SPDX-License-Identifier: Apache-2.0 */
/* One client of a keeper: its socket, and what it asks. */
#pragma once

#include "keeper/keeper.h"

struct connection {
    struct connection *next;
    struct keeper *keeper;
    struct channel channel;
    struct loop_source source;
    bool greeted;              /* HELLO came */
    uint32_t minor;            /* of the client's version */
    bool broken;               /* it takes nothing any more, and will be dropped */
    bool gone;                 /* dropped: freed when the loop has come round */
    uint32_t lease_generation; /* by which it acts now; 0: by none */
    bool fenced; /* the lease that it acted by is over, and it changes nothing any more */
    struct loop_timer drop;
};

/** connection_new() - serve the client at @fd, which is taken; 0 or a negative errno */
int connection_new(struct keeper *k, int fd);

/** connections_listen() - take clients from the listening socket @fd, which is taken */
int connections_listen(struct keeper *k, int fd);

/** connection_send() - a message to a client; one that takes nothing any more is dropped */
void connection_send(struct connection *c, uint16_t type, uint32_t id, const struct writer *w,
                     int fd);

/** connection_refuse() - MSG_ERROR for its request @id */
void connection_refuse(struct connection *c, uint32_t id, const struct error *err);

/** connections_farewell() - give what still waits for slow clients a moment, then close all */
void connections_farewell(struct keeper *k);
