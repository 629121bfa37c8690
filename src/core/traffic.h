/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes have passed between a sandbox and the world, payload alone: of relayed
 * connections, also those from published ports, and of datagrams. Names and refusals are not in
 * it. Egress counts in memory that it shares with its keeper, which so can tell at any time without
 * waiting for anybody.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct traffic {
    _Atomic uint64_t bytes[2]; /* [0] out of the sandbox, [1] into it */
};

/** traffic_new() - zeroed, shared with children that are forked from now on; NULL without memory */
struct traffic *traffic_new(void);

/** traffic_free() - NULL is harmless */
void traffic_free(struct traffic *t);

/** traffic_add() - @n more bytes in direction @way; @t may be NULL: nobody counts */
static inline void traffic_add(struct traffic *t, unsigned way, size_t n)
{
    if (t)
        (void)atomic_fetch_add_explicit(&t->bytes[way], n, memory_order_relaxed);
}

/** traffic_bytes() - of one direction so far; 0 for NULL */
static inline uint64_t traffic_bytes(struct traffic *t, unsigned way)
{
    return t ? atomic_load_explicit(&t->bytes[way], memory_order_relaxed) : 0;
}
