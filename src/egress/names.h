/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that programs inside have asked for, each with a synthetic address of both families and
 * what a look-up outside has found. A connection to a synthetic address is a connection to the
 * name. An address stays with its name while a connection uses it and for NAMES_KEEP_US after it
 * was last asked for; then it may go to another name, the longest unused first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/policy_reach.h"
#include "wire/resolve.h"

enum { NAMES_MAX = 16384 };
#define NAMES_KEEP_US UINT64_C(600000000) /* ten minutes: longer than programs cache */

struct name {
    struct host_name text;
    uint32_t slot;  /* its place in the pool */
    uint32_t users; /* connections, questions: while any, it stays */
    uint64_t used_at_us;
    enum resolve_status status;
    bool looked_up; /* status and addresses are set */
    uint64_t fresh_until_us;
    struct address *addresses; /* owned; as found, unjudged */
    size_t n_addresses;
    struct name *next_by_text, *newer, *older; /* private to names.c */
};

struct names {
    const struct policy_pool *pool;
    struct name **by_text; /* hash table */
    struct name **by_slot;
    size_t n, n_slots, n_buckets;
    uint64_t keep_us; /* NAMES_KEEP_US, or less where nobody is told synthetic addresses */
    struct name *oldest, *newest;
    uint64_t minute_us; /* of the count below */
    unsigned new_this_minute;
};

/**
 * names_init() - no names
 * @pool: borrowed. Of its addresses the first is the network's, the second the resolver's, and the
 *        last nobody's; the others are given out, NAMES_MAX at most.
 *
 * Return: 0 or -ENOMEM.
 */
int names_init(struct names *n, const struct policy_pool *pool);
void names_done(struct names *n);

/** names_find() - a known name, or NULL */
struct name *names_find(struct names *n, const struct host_name *text);

/**
 * names_add() - the name, made if need be, as used now
 * @by_wildcard: only a wildcard lists it: new ones are counted, since each tells a name server
 *               outside something
 *
 * Return: the name; or NULL with *@ret_error -EDQUOT when too many new ones came in this minute
 * (NAMES_NEW_PER_MINUTE), -ENOSPC when all are in use, -ENOMEM.
 */
enum { NAMES_NEW_PER_MINUTE = 60 };
struct name *names_add(struct names *n, const struct host_name *text, bool by_wildcard,
                       int *ret_error);

/** names_touch() - used now */
void names_touch(struct names *n, struct name *x);

/** names_by_address() - whose synthetic address it is, or NULL */
struct name *names_by_address(struct names *n, const struct address *a);

/** names_in_pool() - whether it is a synthetic address at all, given out or not */
bool names_in_pool(const struct names *n, const struct address *a);

/** names_address() - the synthetic address of @x in a family */
struct address names_address(const struct names *n, const struct name *x,
                             enum address_family family);

/** names_found() - keep what a look-up said, until @fresh_until_us; 0 or -ENOMEM */
int names_found(struct name *x, enum resolve_status status, const struct resolve_address *addresses,
                size_t n, uint64_t fresh_until_us);
