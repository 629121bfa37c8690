/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below /proc of one process, without the weight of printf in init. */
#pragma once

#include <sys/types.h>

enum { PROC_PATH_BYTES = 48 };

/** proc_path() - "/proc/PID/NAME" into @buf; @name has at most 24 bytes */
void proc_path(char buf[PROC_PATH_BYTES], pid_t pid, const char *name);
