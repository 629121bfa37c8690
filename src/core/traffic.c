/* SPDX-License-Identifier: Apache-2.0 */
/* A page for counters that two processes share. */
#include "core/traffic.h"

#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/guards.h"

struct traffic *traffic_new(void)
{
    void *p = mmap(NULL, sizeof(struct traffic), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void traffic_free(struct traffic *t)
{
    if (t)
        (void)munmap(t, sizeof *t);
}
