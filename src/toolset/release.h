/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving the lease of a sandbox back at the end of a run: up to three attempts, a second apart. A
 * keeper frees it anyway when the connection closes; with a backend that has tags in the place of a
 * lease nobody else does.
 */
#pragma once

#include <stdint.h>

#include "toolset/toolset.h"

#define RELEASE_PAUSE_US UINT64_C(1000000)
enum { RELEASE_ATTEMPTS = 3 };

struct releasing {
    /* Set by the caller. */
    struct atoll_toolset *t; /* its sandbox is there, and stays so until @done */
    void (*done)(struct releasing *r);
    void *owner;
    uint64_t pause_us; /* between two attempts */

    struct atoll_op *inner; /* what is awaited; owned */
    struct loop_timer step;
    unsigned attempts;
    char *warning, *note; /* what is to be told of it, masked; NULL: nothing; owned */
};

/** releasing_start() - begin; @done is called from the loop, and never from within */
void releasing_start(struct releasing *r);

/** releasing_stop() - give up what is under way, and free; harmless on a zeroed one */
void releasing_stop(struct releasing *r);
