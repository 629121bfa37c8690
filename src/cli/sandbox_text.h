/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a sandbox, in words and as JSON: for create, list and inspect. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "atoll.h"
#include "cli/options.h"

/** sandbox_seconds() - microseconds since the epoch as a JSON number of seconds; 0 is null */
json_t *sandbox_seconds(uint64_t us);

/**
 * sandbox_json() - who a sandbox is: id, name, backend, state, times, image, tags
 *
 * The same members in every form that tells of sandboxes. Return: a new reference, or NULL.
 */
json_t *sandbox_json(const struct atoll_info *i);

/** sandbox_json_published() - the ports of the host that lead inside, as a list; a new reference */
json_t *sandbox_json_published(const struct atoll_info *i);

/** sandbox_json_lease() - who has it: state, holder, generation, until; a new reference */
json_t *sandbox_json_lease(const struct atoll_info *i);

/**
 * sandbox_json_measured() - what was used of processors, memory, network and money
 *
 * The same members in every form that tells of use; what was not measured is null. Return: a new
 * reference, or NULL.
 */
json_t *sandbox_json_measured(const struct atoll_info *i);

/** sandbox_json_usage() - adds what it uses and what fences it; 0 or -1 without memory */
int sandbox_json_usage(json_t *o, const struct atoll_info *i);

enum { SANDBOX_WORDS = 64, SANDBOX_LEASE_WORDS = 1200 };

/** sandbox_lease_text() - "free", "held by 'X'", "kept for 'X' until …"; "-" when it is not shared
 */
void sandbox_lease_text(char buf[SANDBOX_LEASE_WORDS], const struct atoll_info *i);

/** sandbox_time_text() - "2026-05-01 12:00:05 UTC" */
void sandbox_time_text(char buf[SANDBOX_WORDS], uint64_t epoch_us);

/** sandbox_span_text() - "5 s", "59 min", "3 h", "2 d": how long, rounded down */
void sandbox_span_text(char buf[SANDBOX_WORDS], uint64_t us);

/** sandbox_bytes_text() - "512 B", "1.5 KiB", "20.0 MiB" */
void sandbox_bytes_text(char buf[SANDBOX_WORDS], uint64_t bytes);

/* Which sandboxes are meant. */
struct sandbox_filter {
    const struct text_list *tags; /* KEY=VALUE each; all must be there */
    const char *owner;            /* NULL: any */
};

/** sandbox_matches() - whether a sandbox is one of those */
bool sandbox_matches(const struct atoll_info *i, const struct sandbox_filter *f);

/** sandbox_filter_check() - refuse (-EINVAL, usage) what is no tag */
int sandbox_filter_check(const struct sandbox_filter *f, struct error *err);
