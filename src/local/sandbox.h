/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local sandbox as its keeper holds it: process 1 with all its namespaces,
 * and the socket to it. Everything of the sandbox hangs on that process: when
 * it ends, the kernel takes the rest.
 */
#pragma once

#include "base/error.h"
#include "local/cgroup.h"
#include "local/network.h"
#include "local/plan.h"
#include "local/way_out.h"

struct sandbox {
    struct plan *plan; /* owned; in memory shared with the set-up process; NULL once settled */
    pid_t pid;
    int pid_fd;                     /* owned */
    struct network_helper *network; /* owned; NULL before it starts, and with a way out */
    int link_fd;                    /* owned; the socket that init listens on */
    int landlock_abi;
    struct cgroup group; /* with a ceiling or prices; otherwise there is none */
};

#define SANDBOX_INIT                                                                               \
    {                                                                                              \
        .pid_fd = -EBADF, .link_fd = -EBADF                                                        \
    }

/* For a sandbox that something may leave, or enter, from its start on. */
struct sandbox_way_out {
    int egress_fd;                    /* as in struct visit; borrowed */
    const struct policy_reach *reach; /* borrowed */
    struct visitor *visitor;          /* set when it was started; due for visitor_end() */
};

/**
 * sandbox_start() - make the namespaces and start the set-up in them
 * @pool:    whose resolver programs inside are told of; NULL: nothing will ever be let out
 * @way_out: NULL: sealed. Otherwise a visitor makes the network: when that fails, the set-up fails
 *           at its network step with the same errno, and visitor_end() knows why
 *
 * Returns while the set-up still runs: MSG_STEP, MSG_FAULT, then MSG_READY of
 * init come on
 * @ret->link_fd, where requests to init may already be sent. Blocks for as long
 * as writing id maps and opening volumes takes. Return: 0, or a negative errno
 * with an error; then nothing is left, the visitor included.
 */
int sandbox_start(const struct spec *spec, const struct policy_pool *pool,
                  const struct sandbox_way_out *way_out, struct sandbox *ret, struct error *err);

/**
 * sandbox_settle() - the set-up is over: free what only that needed
 *
 * Waits for a process that is at its end. Harmless twice.
 */
void sandbox_settle(struct sandbox *sb);

/**
 * sandbox_end() - kill process 1 and with it all others, wait until all are
 * gone, free the rest
 *
 * Blocks until the kernel has ended every process inside. Harmless on one that
 * never started.
 */
void sandbox_end(struct sandbox *sb);

/** sandbox_fault() - a failed step as an error with its place in the plan;
 * returns -@code */
int sandbox_fault(const struct sandbox *sb, uint32_t step, int code, struct error *err);
