/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of control groups, as the kernel makes them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** cgroup_file_read() - the text of a file in folder @fd, cut to @size - 1; 0 or -errno, and "" */
int cgroup_file_read(int fd, const char *name, char *buf, size_t size);

/** cgroup_file_write() - write a text into a file in folder @fd, at once; 0 or -errno */
int cgroup_file_write(int fd, const char *name, const char *text);

/** cgroup_file_write_number() - the same of a number */
int cgroup_file_write_number(int fd, const char *name, uint64_t value);
