/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Egress: the process that carries out what a policy allows to leave one sandbox, or to come in by
 * a published port. It holds sockets inside the sandbox's network (local/way_out.h) and opens its
 * own in the host's; it has no files, no capabilities, and few system calls (lockdown.h), since all
 * that it reads is foreign: what programs inside send, and what servers answer.
 *
 *   listener inside ── flow.c ── judge_tls.c, judge_http.c ── dial.c ── relay.c
 *   datagrams inside ─ datagrams.c ─ dns_server.c (port 53), or a flow of UDP to the host's side
 *   names.c       synthetic address <-> name          lookup.c      questions to `resolve`
 *   own_address.c does the host answer for it?        denials.c     what was refused, to the keeper
 *   publish.c     listeners outside, connections in   keeper_link.c the keeper's orders
 *
 * One process, one thread, one loop. Tables are bounded; when one is full, what is new waits in the
 * kernel or is refused, and what is there goes on. When egress dies the keeper ends the sandbox:
 * a connection cut in the middle could otherwise pass for one that ended well.
 */
#pragma once

#include "base/loop.h"
#include "core/channel.h"
#include "core/policy_reach.h"
#include "core/spec.h"
#include "core/traffic.h"
#include "egress/datagrams.h"
#include "egress/denials.h"
#include "egress/dns_server.h"
#include "egress/flow.h"
#include "egress/lookup.h"
#include "egress/names.h"
#include "egress/own_address.h"
#include "egress/proxy.h"
#include "egress/publish.h"
#include "wire/control.h"

/* What the keeper gives the process at its start. */
struct egress_start {
    int keeper_fd;  /* taken: the channel to the keeper */
    int resolve_fd; /* taken: the socket to `resolve`; -EBADF: nothing is looked up */
    const struct spec *spec;
    struct policy_pool pool;
    int *listeners; /* taken, n of them: one for each published port, bound and listening */
    size_t n_listeners;
    const uint16_t *ports;   /* inside, of each listener */
    struct traffic *traffic; /* shared with the keeper; NULL: nobody counts */
    uint32_t uid, gid;       /* to become, when the caller is the host's root; or UINT32_MAX */
};

struct egress {
    struct loop loop;
    struct channel keeper;
    struct loop_source keeper_source;
    struct policy policy;
    uint32_t generation; /* of the policy */
    struct policy_pool pool;
    struct traffic *traffic; /* borrowed; NULL: nobody counts */
    int inside[INSIDE__MAX]; /* owned; -EBADF until INSIDE came */
    struct names names;
    struct lookups lookups;
    struct own_address own_address;
    struct proxy proxy;
    struct denials denials;
    struct flows flows;
    struct datagrams datagrams;
    struct dns_server dns;
    struct publish publish;
    struct loop_timer finish; /* when to look again whether all has gone out; MSG_FINISH */
};

/**
 * egress_main() - become the egress process, for as long as the keeper lives
 *
 * For a fresh child of the keeper's. Takes everything it needs, closes every other descriptor,
 * locks itself in and runs. A failure at the start is told to the keeper as MSG_EGRESS_FAULT.
 * Returns the process's exit status.
 */
int egress_main(const struct egress_start *start);

/** keeper_link_start() - take the keeper's orders from @e->keeper; 0 or -errno */
int keeper_link_start(struct egress *e);

/** keeper_link_tell() - a message to the keeper; the process ends when it takes none any more */
void keeper_link_tell(struct egress *e, uint16_t type, uint32_t id, const void *payload,
                      size_t len);
