/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a sandbox ends by itself: its lifetime, its idle timeout, and the warning before.
 *
 * The lifetime counts the time that the host sleeps (CLOCK_BOOTTIME): a promise about when things
 * are gone, which must not wait for a lid to be opened. Timeouts of commands and the idle timeout
 * count the time that a program could have used (CLOCK_MONOTONIC).
 */
#pragma once

#include "keeper/connection.h"

/** ending_begin() - the sandbox stands: its lifetime begins; 0 or a negative errno */
int ending_begin(struct keeper *k);

/** ending_extend() - EXTEND of a client: another lifetime, from now on, for who has the owner */
void ending_extend(struct connection *c, struct message *m);

/** ending_left_us() - microseconds of the lifetime that are left; UINT64_MAX: it has no end */
uint64_t ending_left_us(const struct keeper *k);

/** ending_active() - something was done in the sandbox: idle time starts again */
void ending_active(struct keeper *k);

/** ending_active_before() - the same, but that it ended @us ago */
void ending_active_before(struct keeper *k, uint64_t us);

/** ending_connections() - so many connections to published ports there are now */
void ending_connections(struct keeper *k, uint32_t n);

/** ending_done() - nothing is counted any more */
void ending_done(struct keeper *k);
