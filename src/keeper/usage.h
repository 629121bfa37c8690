/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox has used so far, and what that costs at the prices of its spec; and whether the
 * kernel ended something inside because its memory ran out.
 *
 * A sandbox with a ceiling or prices has a control group (local/cgroup.h), which is asked. The CPU
 * time of others is summed up over their processes: what a program hides there costs it nothing
 * that was to be held to it. With backend.max_cost the cost is looked at every second, and when
 * that is reached the sandbox ends, by cost; "cost_near" and "cost" are events.
 */
#pragma once

#include "keeper/keeper.h"
#include "wire/sandbox_info.h"

/** usage_begin() - the sandbox stands: its cost is counted from now on, if it has prices */
void usage_begin(struct keeper *k);

/** usage_done() - nothing is counted any more */
void usage_done(struct keeper *k);

/** usage_describe() - CPU time, memory, bytes that left and came, cost, ceilings; what is known */
void usage_describe(const struct keeper *k, struct sandbox_info *x);

/** usage_oom_kills() - how often the kernel has killed one of its processes for want of memory */
uint64_t usage_oom_kills(const struct keeper *k);

/**
 * usage_is_oom() - whether a command that ended as @x says was ended for want of memory
 * @before: usage_oom_kills() when it started
 *
 * It is, if it was killed and the kernel's count has risen meanwhile; each kill counts for one
 * command. Tells of every kill as an event.
 */
bool usage_is_oom(struct keeper *k, uint64_t before, const struct exit_report *x);

/** usage_is_oom_end() - the same of process 1, which has ended without having been asked to */
bool usage_is_oom_end(struct keeper *k);
