/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel has to know of a policy: which addresses and ports go on to egress at all. It is
 * never less than what policy_decide() allows; egress judges each connection exactly.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy.h"

/*
 * The synthetic addresses of names: 2^16 of each family. The one after the base of v4 is the
 * resolver's.
 */
struct policy_pool {
    struct address_range v4, v6;
};

/* Addresses from first to last, both included; network order; of IPv4 the first four bytes. */
struct policy_interval {
    uint8_t first[16], last[16];
};

struct policy_reach {
    struct policy_pool pool;
    bool names;                      /* names are served: port 53 of any address is the resolver */
    struct policy_interval *v4, *v6; /* owned; sorted, apart from each other by a gap */
    size_t n_v4, n_v6;
    uint16_t *ports; /* owned; of all hosts, sorted, each once: what may pass to the pool, by TCP */
    size_t n_ports;
};

/**
 * policy_pool_choose() - a pool that no listed range touches
 * @ret: always set; without hosts any pool will do
 *
 * The first of a fixed list of address space that nobody routes (RFC 2544; RFC 1112: 240.0.0.0/4;
 * RFC 4193, 5180, 6666), so that the same policy has the same pool. Return: 0, or -EADDRINUSE with
 * a usage error that names the ranges when they leave none free.
 */
int policy_pool_choose(const struct policy *p, struct policy_pool *ret, struct error *err);

/** policy_pool_free() - whether @p's ranges leave @pool alone: for a policy that replaces another
 */
bool policy_pool_free(const struct policy *p, const struct policy_pool *pool);

/** policy_pool_resolver() - the resolver's address, for resolv.conf */
struct address policy_pool_resolver(const struct policy_pool *pool);

/**
 * policy_reach_build() - the addresses and ports of @p
 *
 * With an open network: all addresses but those of special blocks, IPv6 that carries IPv4 as a
 * whole, and private_cidrs. Loopback (127.0.0.0/8, ::1), what nothing connects to (multicast and
 * the like), IPv4-mapped addresses, which the kernel sends as IPv4, and with hosts the pool are in
 * no interval. Allocates. Return: 0 with @ret owned by the caller, or -ENOMEM.
 */
int policy_reach_build(const struct policy *p, const struct policy_pool *pool,
                       struct policy_reach *ret);

void policy_reach_done(struct policy_reach *r);

/** policy_needs_egress() - whether anything may pass at all */
bool policy_needs_egress(const struct policy *p);
