/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking a name up outside. Names with pins, or behind a proxy that looks up by itself, need no
 * look-up. One question of a name at a time, however many wait for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "egress/names.h"

struct egress;

#define LOOKUP_FRESH_US   UINT64_C(30000000) /* how long what was found is used again */
#define LOOKUP_AGAIN_US   UINT64_C(2000000)  /* and a failure, or that there is none */
#define LOOKUP_TIMEOUT_US UINT64_C(15000000)
enum { LOOKUPS_MAX = 256 }; /* under way at once */

/* Who waits; embedded in its owner. */
struct lookup_waiter {
    struct lookup_waiter *next;
    void *owner;
    /* @x->status and addresses are set; the waiter is forgotten before it is called. */
    void (*done)(struct lookup_waiter *w, struct name *x);
    struct lookup *lookup; /* while it waits */
};

struct lookup {
    struct lookup *next;
    uint32_t id;
    struct name *name; /* counted among its users */
    uint64_t deadline_us;
    struct lookup_waiter *waiters;
};

struct lookups {
    struct egress *egress;
    int fd; /* to `resolve`, owned; -EBADF: none */
    struct loop_source source;
    struct loop_timer timer;
    struct lookup *first;
    size_t n;
    uint32_t last_id;
};

int lookups_init(struct lookups *l, struct egress *e, int fd);
void lookups_done(struct lookups *l);

/**
 * lookup_need() - see that @x->status and addresses are fresh
 *
 * Return: true when they are already, and @w is not used; false when @w waits. When too many are
 * under way, @x gets RESOLVE_FAILED at once and the answer is true.
 */
bool lookup_need(struct lookups *l, struct name *x, struct lookup_waiter *w);

/** lookup_forget() - @w waits no more; harmless if it does not */
void lookup_forget(struct lookup_waiter *w);
