/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that has nothing to do gives back. */
#pragma once

#include <stdint.h>

/* Silence after which a process that waits for others is at rest, microseconds. */
#define REST_AFTER_US UINT64_C(2000000)

/**
 * rest_memory() - unmap the program's own read-only segments, and return free heap to the kernel
 *
 * The pages stay in the page cache and come back by minor faults, some 20 of them for a keeper,
 * when the process has something to do again. Until then they are not accounted to it (proc(5),
 * Pss), its page tables are small, and the kernel can reclaim them without asking. Segments that
 * were relocated are writable and are kept (elf(5), PT_LOAD). Never fails.
 */
void rest_memory(void);
