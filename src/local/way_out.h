/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's side of what may leave it. Its network namespace has no interface but lo. Routes
 * make every address a local one, and rules of the kernel (nf_tables) decide, in the output hook,
 * what goes on to egress: packets to addresses that a range lists, to synthetic addresses on a port
 * that some entry lists, and to port 53 if names are served. Everything else is refused there, with
 * a TCP reset or an ICMP error, and told of by nfnetlink_log. What goes on is handed, by a tproxy
 * rule, to the listeners that egress holds inside. Without rules, or without egress, nothing
 * passes.
 *
 * A visitor is a process of the keeper's that enters the sandbox's network, does one job with the
 * authority it has there, and exits. It runs none of the sandbox's code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "core/policy_reach.h"

enum visit_job {
    VISIT_MAKE,    /* make the network namespace, then all of it; for a sandbox that starts */
    VISIT_OPEN,    /* all of it in the network of a sandbox that stands and was sealed */
    VISIT_CHANGE,  /* other addresses and ports in rules that are there */
    VISIT_SOCKETS, /* TCP sockets, for connections to published ports */
};

struct visit {
    enum visit_job job;
    int pid_fd;                       /* process 1 of the sandbox; borrowed */
    const struct policy_reach *reach; /* borrowed; not for VISIT_SOCKETS */
    int egress_fd; /* a channel's end to the egress process (core/channel.h): INSIDE or
                      SOCKETS is sent on it; borrowed; not for VISIT_CHANGE */
    int setup_fd;  /* VISIT_MAKE: where the set-up waits for the network
                      (local/network.h); borrowed */
};

struct visitor {
    pid_t pid;
    int pid_fd; /* owned; readable when it has ended */
    int fd;     /* owned; what visitor_end() reads */
};

#define VISITOR_INIT                                                                               \
    {                                                                                              \
        .pid_fd = -EBADF, .fd = -EBADF                                                             \
    }

/** visitor_start() - fork it; returns at once. 0, or a negative errno with @err set. */
int visitor_start(const struct visit *v, struct visitor *ret, struct error *err);

/**
 * visitor_end() - how it went; kills it if it still runs, reaps and frees it
 *
 * To be called when @v->pid_fd is readable, or to give up. Return: 0, or a negative errno with the
 * step that failed, what that means and what to do about it. Harmless on VISITOR_INIT, with
 * -ECHILD.
 */
int visitor_end(struct visitor *v, struct error *err);
