/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, the second fence: should a mount be wrong, writes outside the writable folders are
 * still refused (landlock(7)). It is used where the kernel has it, from ABI 2 on: ABI 1 would
 * forbid moving files between folders.
 */
#pragma once

#include "local/plan.h"

enum { LANDLOCK_ABI_MIN = 2 };

/** landlock_abi() - the kernel's ABI number, or 0 where it has none or has it turned off */
int landlock_abi(void);

/**
 * landlock_fence() - restrict this process and all its children, for good
 *
 * Called after pivot_root, with no_new_privs or CAP_SYS_ADMIN. Return: 0 or a negative errno.
 */
int landlock_fence(const struct plan *p, int abi);
