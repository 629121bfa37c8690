/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a folder without allocation: getdents64(2) into a buffer of the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct directory {
    int fd; /* borrowed */
    uint8_t *buffer;
    size_t size, at, end;
    int64_t offset; /* where the next entry begins, for lseek(2) */
    int error;      /* a negative errno, or 0 */
};

/** directory_over() - the folder @fd, from where it stands; @buffer aligned to 8 */
struct directory directory_over(int fd, void *buffer, size_t size);

/**
 * directory_next() - the next name but "." and ".."
 *
 * A view until the next call. Return: NULL at the end, and then @d->error tells whether it was one.
 */
const char *directory_next(struct directory *d);
