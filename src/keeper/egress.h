/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that carry a network policy out, as their keeper holds them: egress, which judges
 * and relays; `resolve`, which looks names up the host's way; and visitors, which change what the
 * kernel lets pass inside (local/way_out.h). There are none for a sandbox that is sealed and stays
 * so. When one of the first two dies, the sandbox ends: a connection that was cut could pass for
 * one that ended well.
 */
#pragma once

#include "base/loop.h"
#include "core/channel.h"
#include "core/policy_reach.h"
#include "keeper/published_ports.h"
#include "local/way_out.h"

struct keeper;
struct keeper_change; /* a policy that is being put in force */

enum { EGRESS_MESSAGES_AT_ONCE = 256 };

struct keeper_egress {
    bool needed;            /* the spec lets something pass, or in */
    bool running;           /* the process egress */
    struct channel channel; /* to it */
    struct loop_source channel_source, process_source, resolve_source, visitor_source;
    pid_t pid, resolve_pid;     /* 0: none */
    int pid_fd, resolve_pid_fd; /* owned */
    struct policy_pool pool;    /* settled when the sandbox starts, also of one that is sealed */
    struct policy_reach reach;  /* what the kernel lets pass now */
    struct published_ports ports;
    struct visitor visitor;       /* one at a time */
    struct keeper_change *change; /* NULL: none under way */
    bool socket_visit;            /* the visitor fetches sockets */
    bool sockets_wanted;
    uint32_t generation; /* of the policy: 1 at the start */
    uint32_t last_sync;
    struct traffic *traffic; /* owned; what egress counts; NULL: there is none */
};

#define KEEPER_EGRESS_INIT                                                                         \
    {                                                                                              \
        .generation = 1, .pid_fd = -EBADF, .resolve_pid_fd = -EBADF, .visitor = VISITOR_INIT,      \
        .channel_source.fd = -EBADF, .process_source.fd = -EBADF, .resolve_source.fd = -EBADF,     \
        .visitor_source.fd = -EBADF                                                                \
    }

/**
 * keeper_egress_prepare() - judge what the spec needs; open the published ports
 *
 * Before the sandbox starts. Return: 0, or -errno with @err.
 */
int keeper_egress_prepare(struct keeper *k, struct error *err);

/**
 * keeper_egress_start() - fork `resolve` and egress, if k->egress.needed
 *
 * The channel stands when it returns; the sockets inside follow from the visitor that the
 * sandbox's start sends. Return: 0, or -errno with @err.
 */
int keeper_egress_start(struct keeper *k, struct error *err);

/** keeper_egress_watch() - wait for the end of the visitor; 0 or -errno */
int keeper_egress_watch(struct keeper *k);

/**
 * keeper_egress_failed() - whether it was the visitor that made the set-up fail
 *
 * Blocks until the visitor is gone. Return: true with its @err.
 */
bool keeper_egress_failed(struct keeper *k, struct error *err);

/**
 * keeper_egress_finish() - let egress pass on what programs sent before they ended
 *
 * For a sandbox that has ended by itself. Blocks until that is done, for 10 s at most; what is left
 * then is reset by keeper_egress_end().
 */
void keeper_egress_finish(struct keeper *k);

/** keeper_egress_end() - kill all of them, and wait until they are gone; harmless without any */
void keeper_egress_end(struct keeper *k);

/** keeper_egress_done() - free the rest */
void keeper_egress_done(struct keeper *k);

/**
 * keeper_egress_sync() - have egress tell all that was refused until now
 *
 * Return: a number, with which commands_synced() is called when the last of it has come; or 0 when
 * there is no egress, and nothing to wait for.
 */
uint32_t keeper_egress_sync(struct keeper *k);

/**
 * keeper_egress_change() - put another policy in force
 * @spec:   whose network fields it has; borrowed for the call
 * @policy: compiled from it; borrowed for the call
 * @done:   called once, later or within the call: 0 and the number of flows that were cut, or
 *          -errno with an error; then the policy before holds
 *
 * First what the new policy forbids is forbidden and cut, then what it allows is let in, so that at
 * no time something passes that neither allows. Starts egress for a sandbox that began sealed. One
 * at a time: -EBUSY. Return: 0, or -errno with @err and @done not called.
 */
int keeper_egress_change(struct keeper *k, const struct spec *spec, const struct policy *policy,
                         void (*done)(struct keeper *k, void *owner, int r, uint32_t cut,
                                      const struct error *err),
                         void *owner, struct error *err);
