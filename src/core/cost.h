/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What use costs at the prices of a spec. Times are microseconds, money is millionths of whatever
 * currency the prices are in. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/spec.h"

/* The units that have a price, as the words of a rule (core/capability.h). */
#define COST_UNITS "cpu_hour gib_hour"

struct prices {
    uint64_t cpu_hour_micro; /* an hour of one CPU at work */
    uint64_t gib_hour_micro; /* an hour of one GiB of memory in use */
};

/* What was used. Memory is an integral over time: KiB times milliseconds. */
struct cost_use {
    uint64_t cpu_us, memory_kib_ms;
};

/** cost_prices() - the prices of a spec that was checked; units without a price are free */
struct prices cost_prices(const struct spec *s);

/** cost_counts_memory() - whether memory has a price, so that its use has to be followed */
bool cost_counts_memory(const struct spec *s);

/** cost_needs_group() - whether the use must be measured where no program can hide it (a cgroup) */
bool cost_needs_group(const struct spec *s);

/** cost_add_memory() - @bytes were in use for @us; saturates */
void cost_add_memory(struct cost_use *use, uint64_t bytes, uint64_t us);

/** cost_micro() - what it costs, rounded down; UINT64_MAX: more than can be told */
uint64_t cost_micro(const struct prices *p, const struct cost_use *use);
