/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the CPUs of a sandbox. */
#include "local/affinity.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/guards.h"

enum { CPUS_MAX = 8192 }; /* the most that Linux is built for (NR_CPUS on x86) */

/* As the kernel has them: of machines with more CPUs than the 1024 of cpu_set_t too. */
union cpus {
    unsigned long words[CPUS_MAX / (8 * sizeof(unsigned long))];
    cpu_set_t set;
};

int affinity_limit(pid_t pid, uint64_t cpu_milli)
{
    const uint64_t wanted = (cpu_milli + 999) / 1000;
    union cpus may = {{0}}, chosen = {{0}};
    uint64_t n, seen = 0, taken = 0;

    if (sched_getaffinity(0, sizeof may.words, &may.set) < 0)
        return -errno;
    n = (uint64_t)CPU_COUNT_S(sizeof may.words, &may.set);
    if (wanted == 0 || n <= wanted)
        return 0;
    /* Neighbours, which often share a cache; by the pid, so that not all sandboxes share the first
     * ones. */
    const uint64_t first = (uint64_t)pid % n;
    for (size_t i = 0; taken < wanted; i = (i + 1) % CPUS_MAX) {
        if (!CPU_ISSET_S(i, sizeof may.words, &may.set))
            continue;
        if (seen++ < first)
            continue;
        CPU_SET_S(i, sizeof chosen.words, &chosen.set);
        taken++;
    }
    return sched_setaffinity(pid, sizeof chosen.words, &chosen.set) < 0 ? -errno : 0;
}
