/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving the lease of a sandbox back at the end of a run: up to three attempts, a second apart. A
 * keeper frees it anyway when the connection closes; with a backend that has tags in the place of a
 * lease nobody else does. So where its program is gone an attempt starts that again.
 */
#pragma once

#include <stdint.h>

#include "toolset/toolset.h"

#define RELEASE_PAUSE_US UINT64_C(1000000)
enum { RELEASE_ATTEMPTS = 3 };

struct releasing {
    /* Set by the caller. */
    struct atoll_toolset *t; /* with release_due(); its handle, if any, stays until @done */
    void (*done)(struct releasing *r);
    void *owner;
    uint64_t pause_us; /* between two attempts */

    struct atoll_sandbox *again; /* a later handle, by the id alone; owned */
    struct atoll_op *inner;      /* what is awaited; owned */
    struct loop_timer step;
    unsigned attempts;
    char *warning, *note; /* what is to be told of it, masked; NULL: nothing; owned */
};

/** release_due() - whether the run has taken what it is to give back */
static inline bool release_due(const struct atoll_toolset *t)
{
    return t->attached && (t->sb || t->stays_held);
}

/** releasing_start() - begin; @done is called from the loop, and never from within */
void releasing_start(struct releasing *r);

/** releasing_stop() - give up what is under way, and free; harmless on a zeroed one */
void releasing_stop(struct releasing *r);
