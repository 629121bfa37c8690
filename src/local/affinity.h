/* SPDX-License-Identifier: Apache-2.0 */
/* On which CPUs a sandbox runs, so that programs inside start as many threads as have a use. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/**
 * affinity_limit() - let @pid, and all that it starts, run on @cpu_milli / 1000 CPUs, rounded up
 *
 * They are of those that this process may use; if it may use no more than that, nothing changes. A
 * program may choose others for itself: that is no ceiling, a quota is (local/cgroup.h). Return: 0
 * or a negative errno.
 */
int affinity_limit(pid_t pid, uint64_t cpu_milli);
