/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that atoll carries inside, in memory files that nothing can change any more. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/**
 * sealed_image_open() - a program as a sealed memory file, to be executed by execveat(2)
 * @name: as /proc shows it
 * @start, @end: its bytes; borrowed
 *
 * What runs it never gets hold of a file of the host's through /proc/PID/exe. Does not block.
 * Return: an owned descriptor, or a negative errno with an error that names the remedy.
 */
int sealed_image_open(const char *name, const uint8_t *start, const uint8_t *end,
                      struct error *err);
