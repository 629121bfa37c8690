/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as intervals of addresses, for the kernel, and the choice of synthetic addresses. */
#include "core/policy_reach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum { ADDRESS_BYTES = sizeof(((struct policy_interval *)0)->first) };

/* The pool */

#define V4_POOL(a, b)                                                                              \
    {                                                                                              \
        {ADDRESS_V4, {a, b}}, 16                                                                   \
    }

static const struct address_range v4_pools[] = {
    V4_POOL(198, 18), V4_POOL(198, 19),                                   /* RFC 2544 */
    V4_POOL(240, 0),  V4_POOL(244, 0),  V4_POOL(248, 0), V4_POOL(252, 0), /* RFC 1112, 4 */
};

static const struct address_range v6_pools[] = {
    {{ADDRESS_V6, {0xFD, 0x61, 0x74, 0x6F, 0x6C, 0x6C}}, 112}, /* RFC 4193 */
    {{ADDRESS_V6, {0x20, 0x01, 0, 2}}, 112},                   /* RFC 5180 */
    {{ADDRESS_V6, {1, 0}}, 112},                               /* RFC 6666 */
};

static bool touches(const struct address_range *a, const struct address_range *b)
{
    return address_range_within(a, b) || address_range_within(b, a);
}

/* The range of @p that touches @pool, or NULL. */
static const struct policy_range *taken_by(const struct policy *p, const struct address_range *pool)
{
    for (size_t i = 0; i < p->n_ranges; i++)
        if (touches(&p->ranges[i].range, pool))
            return &p->ranges[i];
    for (size_t i = 0; i < p->n_private_ranges; i++)
        if (touches(&p->private_ranges[i].range, pool))
            return &p->private_ranges[i];
    return NULL;
}

static int all_taken(const struct policy *p, const struct address_range *pools, size_t n,
                     struct error *err)
{
    char list[256] = "", entry[ADDRESS_RANGE_TEXT_BYTES + 2];
    const struct policy_range *last = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct policy_range *range = taken_by(p, &pools[i]);

        if (!range || range == last)
            continue;
        (void)snprintf(entry, sizeof entry, "%s%s", last ? ", " : "", range->text);
        if (strlen(list) + strlen(entry) < sizeof list)
            memcpy(list + strlen(list), entry, strlen(entry) + 1);
        last = range;
    }
    (void)error_set(err, ERROR_USAGE, EADDRINUSE,
                    "the ranges %s leave no address space free that could stand for names inside",
                    list);
    return error_remedy(err, "List smaller ranges, or no hosts");
}

static const struct address_range *first_free(const struct policy *p,
                                              const struct address_range *pools, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!taken_by(p, &pools[i]))
            return &pools[i];
    return NULL;
}

int policy_pool_choose(const struct policy *p, struct policy_pool *ret, struct error *err)
{
    const struct address_range *v4 = first_free(p, v4_pools, ARRAY_SIZE(v4_pools));
    const struct address_range *v6 = first_free(p, v6_pools, ARRAY_SIZE(v6_pools));

    ret->v4 = v4 ? *v4 : v4_pools[0];
    ret->v6 = v6 ? *v6 : v6_pools[0];
    if (p->n_hosts > 0 && !v4)
        return all_taken(p, v4_pools, ARRAY_SIZE(v4_pools), err);
    if (p->n_hosts > 0 && !v6)
        return all_taken(p, v6_pools, ARRAY_SIZE(v6_pools), err);
    return 0;
}

bool policy_pool_free(const struct policy *p, const struct policy_pool *pool)
{
    return p->n_hosts == 0 || (!taken_by(p, &pool->v4) && !taken_by(p, &pool->v6));
}

struct address policy_pool_resolver(const struct policy_pool *pool)
{
    struct address a = pool->v4.base;

    a.bytes[3]++; /* the base of a /16 ends in zeros */
    return a;
}

/* Intervals */

/* A list that grows; of one family. */
struct intervals {
    struct policy_interval *items;
    size_t n, room;
    bool no_memory;
};

static void put(struct intervals *l, const struct policy_interval *i)
{
    if (l->n == l->room && !l->no_memory) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        struct policy_interval *more = reallocarray(l->items, room, sizeof *more);

        l->no_memory = !more;
        l->items = more ? more : l->items;
        l->room = more ? room : l->room;
    }
    if (!l->no_memory)
        l->items[l->n++] = *i;
}

static void put_range(struct intervals *l, const struct address_range *r)
{
    const unsigned bits = r->base.family == ADDRESS_V4 ? 32 : 128;
    struct policy_interval i;

    memcpy(i.first, r->base.bytes, sizeof i.first);
    memcpy(i.last, r->base.bytes, sizeof i.last);
    for (unsigned bit = r->prefix; bit < bits; bit++)
        i.last[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    put(l, &i);
}

static int compare(const uint8_t a[ADDRESS_BYTES], const uint8_t b[ADDRESS_BYTES])
{
    return memcmp(a, b, ADDRESS_BYTES);
}

static int by_first(const void *a, const void *b)
{
    const struct policy_interval *x = a, *y = b;

    return compare(x->first, y->first);
}

/* One more or one less, of @width bytes. Return: false, wrapped around, at the end of all. */
static bool step(uint8_t a[ADDRESS_BYTES], size_t width, bool up)
{
    for (size_t i = width; i-- > 0;) {
        a[i] = (uint8_t)(a[i] + (up ? 1 : -1));
        if (a[i] != (up ? 0 : UINT8_MAX))
            return true;
    }
    return false;
}

/* Sorts, and joins what overlaps or lies side by side. */
static void join(struct intervals *l, size_t width)
{
    size_t n = 0;

    if (l->n > 0)
        qsort(l->items, l->n, sizeof *l->items, by_first);
    for (size_t i = 0; i < l->n; i++) {
        struct policy_interval *last = n > 0 ? &l->items[n - 1] : NULL;
        struct policy_interval after = {0};
        bool ends = false; /* with the last address of all */

        if (last) {
            memcpy(after.first, last->last, sizeof after.first);
            ends = !step(after.first, width, true);
        }
        if (!last || (!ends && compare(l->items[i].first, after.first) > 0))
            l->items[n++] = l->items[i];
        else if (compare(l->items[i].last, last->last) > 0)
            memcpy(last->last, l->items[i].last, sizeof last->last);
    }
    l->n = n;
}

/* What of @from is in none of @minus, both joined, at the end of @ret. */
static void put_difference(struct intervals *ret, const struct intervals *from,
                           const struct intervals *minus, size_t width)
{
    size_t k = 0;

    for (size_t i = 0; i < from->n; i++) {
        struct policy_interval rest = from->items[i];
        bool left = true;

        while (k < minus->n && compare(minus->items[k].last, rest.first) < 0)
            k++;
        for (size_t m = k; left && m < minus->n && compare(minus->items[m].first, rest.last) <= 0;
             m++) {
            struct policy_interval before = rest;

            memcpy(before.last, minus->items[m].first, sizeof before.last);
            if (compare(before.last, before.first) > 0 && step(before.last, width, false))
                put(ret, &before);
            memcpy(rest.first, minus->items[m].last, sizeof rest.first);
            left = step(rest.first, width, true) && compare(rest.first, rest.last) <= 0;
        }
        if (left)
            put(ret, &rest);
    }
}

/* What no interval may hold: loopback, what nothing connects to, the pool. */
static void put_never(struct intervals *l, enum address_family family,
                      const struct address_range *pool)
{
    const struct address_block *b;

    for (size_t i = 0; (b = address_blocks_at(i)); i++)
        if (b->range.base.family == family &&
            (b->cls == ADDRESS_UNSPECIFIED || b->cls == ADDRESS_LOOPBACK ||
             b->cls == ADDRESS_MULTICAST || b->cls == ADDRESS_BROADCAST))
            put_range(l, &b->range);
    if (pool)
        put_range(l, pool);
}

/* All that is public, and whatever carries an IPv4 address, of which egress judges the rest. */
static void put_public(struct intervals *ret, enum address_family family, size_t width)
{
    const struct address_range all = {{.family = family}, 0}, *carrier;
    const struct address_block *b;
    struct intervals everything = {0}, blocks = {0};

    put_range(&everything, &all);
    for (size_t i = 0; (b = address_blocks_at(i)); i++)
        if (b->range.base.family == family)
            put_range(&blocks, &b->range);
    join(&blocks, width);
    put_difference(ret, &everything, &blocks, width);
    for (size_t i = 0; (carrier = address_carriers_at(i)); i++)
        if (carrier->base.family == family)
            put_range(ret, carrier);
    ret->no_memory = ret->no_memory || everything.no_memory || blocks.no_memory;
    free(everything.items);
    free(blocks.items);
}

/* The intervals of one family. @pool: NULL if there are no synthetic addresses */
static int build_family(const struct policy *p, enum address_family family,
                        const struct address_range *pool, struct policy_interval **ret,
                        size_t *ret_n)
{
    const size_t width = family == ADDRESS_V4 ? 4 : 16,
                 n = p->open ? p->n_private_ranges : p->n_ranges;
    const struct policy_range *ranges = p->open ? p->private_ranges : p->ranges;
    const struct address_range mapped = {{ADDRESS_V6, {[10] = 0xFF, [11] = 0xFF}}, 96};
    struct intervals reach = {0}, never = {0}, result = {0};

    for (size_t i = 0; i < n; i++)
        if (ranges[i].range.base.family == family)
            put_range(&reach, &ranges[i].range);
    if (p->open)
        put_public(&reach, family, width);
    join(&reach, width);
    put_never(&never, family, pool);
    if (family == ADDRESS_V6)
        put_range(&never, &mapped);
    join(&never, width);
    put_difference(&result, &reach, &never, width);
    free(reach.items);
    free(never.items);
    if (reach.no_memory || never.no_memory || result.no_memory) {
        free(result.items);
        return -ENOMEM;
    }
    *ret = result.items;
    *ret_n = result.n;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const uint16_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int build_ports(const struct policy *p, struct policy_reach *r)
{
    if (p->n_hosts == 0)
        return 0;
    r->ports = reallocarray(NULL, p->n_hosts, sizeof *r->ports);
    if (!r->ports)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_hosts; i++)
        r->ports[i] = p->hosts[i].rule.port;
    qsort(r->ports, p->n_hosts, sizeof *r->ports, by_number);
    for (size_t i = 0; i < p->n_hosts; i++)
        if (r->n_ports == 0 || r->ports[r->n_ports - 1] != r->ports[i])
            r->ports[r->n_ports++] = r->ports[i];
    return 0;
}

int policy_reach_build(const struct policy *p, const struct policy_pool *pool,
                       struct policy_reach *ret)
{
    struct policy_reach r = {.pool = *pool, .names = p->open || p->n_hosts > 0};
    bool synthetic = p->n_hosts > 0;

    if (build_family(p, ADDRESS_V4, synthetic ? &pool->v4 : NULL, &r.v4, &r.n_v4) < 0 ||
        build_family(p, ADDRESS_V6, synthetic ? &pool->v6 : NULL, &r.v6, &r.n_v6) < 0 ||
        build_ports(p, &r) < 0) {
        policy_reach_done(&r);
        return -ENOMEM;
    }
    *ret = r;
    return 0;
}

void policy_reach_done(struct policy_reach *r)
{
    free(r->v4);
    free(r->v6);
    free(r->ports);
    *r = (struct policy_reach){0};
}

bool policy_needs_egress(const struct policy *p)
{
    return p->open || p->n_hosts > 0 || p->n_ranges > 0;
}
