/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pump moves bytes from one descriptor to another on the event loop, with splice(2) where both
 * ends allow it, without ever holding more than one buffer and without touching the flags of a
 * descriptor that belongs to somebody else.
 */
#pragma once

#include <stdbool.h>

#include "base/loop.h"

struct pump {
    struct loop *loop;
    struct loop_source from_source, to_source;
    int from;            /* owned; -EBADF once it has ended */
    int to;              /* a duplicate, owned */
    bool copies;         /* through the buffer: splice does not work here, or it could block */
    bool to_waits;       /* @to has no readiness (a regular file): writes go through at once */
    bool from_waits;     /* the same for @from: it is read whenever @to takes bytes */
    size_t write_bytes;  /* what one write may carry without blocking */
    uint64_t moved, due; /* bytes so far; how many must be moved whatever the time, see below */
    uint8_t *buffer;
    size_t at, end;                /* bytes in the buffer that wait to be written */
    uint64_t moved_us;             /* when a byte was last moved */
    int error;                     /* errno of a write that failed for good, other than EPIPE */
    void (*ended)(struct pump *p); /* called once, when @from has ended or @to takes no more */
    void *owner;
};

/**
 * pump_start() - begin to move
 * @from:  taken, also on failure
 * @to:    borrowed; duplicated, or taken if @take_to
 * @ended: may be NULL
 *
 * SIGPIPE must be ignored. Return: 0 or a negative errno.
 */
int pump_start(struct pump *p, struct loop *l, int from, int to, bool take_to,
               void (*ended)(struct pump *), void *owner);

/**
 * pump_expect_end() - whoever writes to @from has ended
 *
 * What it wrote is there by now, and is due. What comes later comes from others.
 */
void pump_expect_end(struct pump *p);

/**
 * pump_is_drained() - whether an expected end has come
 * @idle_us: so long a silence counts as the end, microseconds
 * @overdue: do not wait for silence any more, only for what is due
 */
bool pump_is_drained(const struct pump *p, uint64_t idle_us, bool overdue);

/** pump_running() - whether it has neither ended nor been stopped */
bool pump_running(const struct pump *p);

/** pump_stop() - close both ends and free; harmless on one that has ended or never began */
void pump_stop(struct pump *p);
