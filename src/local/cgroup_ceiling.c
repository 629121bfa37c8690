/* SPDX-License-Identifier: Apache-2.0 */
/* Setting the ceilings of a control group. */
#include "local/cgroup_ceiling.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "local/cgroup_file.h"
#include "base/guards.h"

static const char *memory_file(bool unified)
{
    return unified ? "memory.max" : "memory.limit_in_bytes";
}

static const char *swap_file(bool unified)
{
    return unified ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
}

int cgroup_ceiling_memory(int fd, bool unified, bool swap_is_on, uint64_t bytes)
{
    if (swap_is_on && cgroup_swap_is_uncounted(fd, unified))
        return -EOPNOTSUPP;
    int r = cgroup_file_write_number(fd, memory_file(unified), bytes);

    if (r < 0)
        return r;
    /* What v1 counts together has one ceiling; v2 counts them apart. */
    r = cgroup_file_write_number(fd, swap_file(unified), unified ? 0 : bytes);
    /* Where none is counted none is on: this is for what may be added later. */
    if (r == -ENOENT)
        r = unified ? 0 : cgroup_file_write_number(fd, "memory.swappiness", 0);
    if (r == 0 && unified) /* one process is killed, not all: init has to tell of it */
        (void)cgroup_file_write_number(fd, "memory.oom.group", 0);
    return r;
}

int cgroup_ceiling_cpu(int fd, bool unified, uint64_t milli)
{
    /* The kernel takes no quota below a millisecond. */
    const uint64_t period_us = milli < 10 ? 1000000 : 100000, quota_us = milli * period_us / 1000;
    char text[64];

    if (unified) {
        (void)snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, quota_us, period_us);
        return cgroup_file_write(fd, "cpu.max", text);
    }
    int r = cgroup_file_write_number(fd, "cpu.cfs_period_us", period_us);
    return r < 0 ? r : cgroup_file_write_number(fd, "cpu.cfs_quota_us", quota_us);
}

bool cgroup_swap_is_uncounted(int fd, bool unified)
{
    return faccessat(fd, memory_file(unified), F_OK, 0) == 0 &&
           faccessat(fd, swap_file(unified), F_OK, 0) < 0 && errno == ENOENT;
}

bool cgroup_swap_is_on(void)
{
    struct sysinfo info;

    /* Not /proc/swaps, which a container may show as it likes, or not at all. */
    return sysinfo(&info) < 0 || info.totalswap > 0;
}
