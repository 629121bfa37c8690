/* SPDX-License-Identifier: Apache-2.0 */
/* The ceilings of one control group, and whether the kernel holds them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/**
 * cgroup_ceiling_memory() - bound memory and swap together, so that what does not fit is not just
 * moved to the disk
 * @fd:         of the group's folder
 * @swap_is_on: cgroup_swap_is_on()
 *
 * Return: 0; -EOPNOTSUPP: swap is on and not counted, so that nothing would be held; or -errno.
 */
int cgroup_ceiling_memory(int fd, bool unified, bool swap_is_on, uint64_t bytes);

/** cgroup_ceiling_cpu() - let it have @milli thousandths of a CPU; 0 or -errno */
int cgroup_ceiling_cpu(int fd, bool unified, uint64_t milli);

/**
 * cgroup_swap_is_uncounted() - whether this group's memory is counted and its swap is not
 *
 * So with swapaccount=0, up to Linux 6.0, and in a kernel without swap at all. False for a group
 * without a count of memory, such as the root group of cgroup v2, which does not tell.
 */
bool cgroup_swap_is_uncounted(int fd, bool unified);

/** cgroup_swap_is_on() - whether this host has swap; true where that cannot be known */
bool cgroup_swap_is_on(void);
