/* SPDX-License-Identifier: Apache-2.0 */
/* Names and their synthetic addresses: a hash table, the places of a pool, and a list by use. */
#include "egress/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

enum {
    SLOT_FIRST = 2, /* after the network's address, and the resolver's */
    MINUTE_US = 60000000,
};

/* FNV-1a (RFC 9923). */
static size_t bucket(const struct names *n, const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 32) & (n->n_buckets - 1);
}

/* How many addresses a range has, less the last one, which is a broadcast's to some. */
static size_t places(const struct address_range *r)
{
    unsigned bits = (r->base.family == ADDRESS_V4 ? 32 : 128) - r->prefix;
    size_t most = NAMES_MAX + SLOT_FIRST;

    return bits >= 16 || ((size_t)1 << bits) - 1 > most ? most : ((size_t)1 << bits) - 1;
}

int names_init(struct names *n, const struct policy_pool *pool)
{
    size_t v4 = places(&pool->v4), v6 = places(&pool->v6);

    *n = (struct names){.pool = pool, .n_slots = v4 < v6 ? v4 : v6, .keep_us = NAMES_KEEP_US};
    for (n->n_buckets = 1; n->n_buckets < n->n_slots;)
        n->n_buckets *= 2;
    n->by_text = calloc(n->n_buckets, sizeof(struct name *));
    n->by_slot = calloc(n->n_slots > 0 ? n->n_slots : 1, sizeof(struct name *));
    if (n->by_text && n->by_slot)
        return 0;
    names_done(n);
    return -ENOMEM;
}

void names_done(struct names *n)
{
    for (size_t i = 0; i < n->n_slots && n->by_slot; i++) {
        if (n->by_slot[i])
            free(n->by_slot[i]->addresses);
        free(n->by_slot[i]);
    }
    free(n->by_slot);
    free(n->by_text);
    *n = (struct names){.pool = NULL};
}

struct name *names_find(struct names *n, const struct host_name *text)
{
    struct name *x = n->n_buckets > 0 ? n->by_text[bucket(n, text->text)] : NULL;

    while (x && strcmp(x->text.text, text->text) != 0)
        x = x->next_by_text;
    return x;
}

static void unlink_use(struct names *n, struct name *x)
{
    *(x->older ? &x->older->newer : &n->oldest) = x->newer;
    *(x->newer ? &x->newer->older : &n->newest) = x->older;
    x->older = x->newer = NULL;
}

static void link_newest(struct names *n, struct name *x, uint64_t now_us)
{
    x->older = n->newest;
    x->newer = NULL;
    *(n->newest ? &n->newest->newer : &n->oldest) = x;
    n->newest = x;
    x->used_at_us = now_us;
}

void names_touch(struct names *n, struct name *x)
{
    unlink_use(n, x);
    link_newest(n, x, clock_now_us());
}

static void link_text(struct names *n, struct name *x)
{
    struct name **b = &n->by_text[bucket(n, x->text.text)];

    x->next_by_text = *b;
    *b = x;
}

/* Forgets a name whose place another gets. */
static void drop(struct names *n, struct name *x)
{
    struct name **p = &n->by_text[bucket(n, x->text.text)];

    while (*p != x)
        p = &(*p)->next_by_text;
    *p = x->next_by_text;
    unlink_use(n, x);
    n->by_slot[x->slot] = NULL;
    n->n--;
    free(x->addresses);
    free(x);
}

/* Whom nobody uses and nobody remembers, the longest; or NULL. */
static struct name *find_unused(struct names *n, uint64_t now_us)
{
    struct name *x = n->oldest;

    while (x && x->users > 0)
        x = x->newer;
    return x && now_us - x->used_at_us >= n->keep_us ? x : NULL;
}

/* Whether one more name below a wildcard may be made in this minute. */
static bool count_new(struct names *n, uint64_t now_us)
{
    if (n->minute_us == 0 || now_us - n->minute_us >= MINUTE_US) {
        n->minute_us = now_us;
        n->new_this_minute = 0;
    }
    return n->new_this_minute < NAMES_NEW_PER_MINUTE;
}

/* A place, empty now, or 0. Places are filled in turn and only ever change hands. */
static uint32_t find_place(struct names *n, uint64_t now_us)
{
    struct name *unused;
    uint32_t slot;

    if (n->n + SLOT_FIRST < n->n_slots)
        return (uint32_t)n->n + SLOT_FIRST;
    unused = find_unused(n, now_us);
    if (!unused)
        return 0;
    slot = unused->slot;
    drop(n, unused);
    return slot;
}

struct name *names_add(struct names *n, const struct host_name *text, bool by_wildcard,
                       int *ret_error)
{
    struct name *x = names_find(n, text);
    uint64_t now = clock_now_us();
    uint32_t slot;

    if (x) {
        names_touch(n, x);
        return x;
    }
    if (by_wildcard && !count_new(n, now)) {
        *ret_error = -EDQUOT;
        return NULL;
    }
    x = calloc(1, sizeof *x);
    slot = x ? find_place(n, now) : 0;
    if (slot == 0) {
        *ret_error = x ? -ENOSPC : -ENOMEM;
        free(x);
        return NULL;
    }
    *x = (struct name){.text = *text, .slot = slot};
    n->by_slot[slot] = x;
    n->n++;
    n->new_this_minute += by_wildcard;
    link_text(n, x);
    link_newest(n, x, now);
    return x;
}

bool names_in_pool(const struct names *n, const struct address *a)
{
    struct address to = address_unmapped(a);

    return address_range_contains(&n->pool->v4, &to) || address_range_contains(&n->pool->v6, &to);
}

/* The last four bytes of an address hold its place, above which the pool has its own bits. */
static uint8_t *place_of(struct address *a)
{
    return a->bytes + (a->family == ADDRESS_V4 ? 0 : 12);
}

static uint32_t read_place(struct address *a)
{
    const uint8_t *p = place_of(a);

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct name *names_by_address(struct names *n, const struct address *a)
{
    struct address to = address_unmapped(a), base;
    uint32_t slot;

    if (!names_in_pool(n, &to))
        return NULL;
    base = to.family == ADDRESS_V4 ? n->pool->v4.base : n->pool->v6.base;
    if (to.family == ADDRESS_V6 && memcmp(to.bytes, base.bytes, 12) != 0)
        return NULL; /* in the pool, above the bits that are given out */
    slot = read_place(&to) - read_place(&base);
    return slot < n->n_slots ? n->by_slot[slot] : NULL;
}

struct address names_address(const struct names *n, const struct name *x,
                             enum address_family family)
{
    struct address a = family == ADDRESS_V4 ? n->pool->v4.base : n->pool->v6.base;
    uint32_t place = read_place(&a) + x->slot;
    uint8_t *p = place_of(&a);

    for (size_t i = 0; i < 4; i++)
        p[i] = (uint8_t)(place >> (24 - 8 * i));
    return a;
}

int names_found(struct name *x, enum resolve_status status, const struct resolve_address *addresses,
                size_t n, uint64_t fresh_until_us)
{
    _cleanup_free_ struct address *found = NULL;

    if (n > 0 && !(found = calloc(n, sizeof *found)))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        found[i].family = addresses[i].family == 4 ? ADDRESS_V4 : ADDRESS_V6;
        memcpy(found[i].bytes, addresses[i].bytes, found[i].family == ADDRESS_V4 ? 4 : 16);
    }
    free(x->addresses);
    x->addresses = TAKE_PTR(found);
    x->n_addresses = n;
    x->status = status;
    x->fresh_until_us = fresh_until_us;
    x->looked_up = true;
    return 0;
}
