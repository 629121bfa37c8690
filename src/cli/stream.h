/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes between the caller's own streams and operations of a sandbox. */
#pragma once

#include <stdint.h>

#include "cli/handle.h"

/**
 * stream_into() - all of @from into an operation that takes bytes, and wait for its end
 * @from:   borrowed; may be a terminal, a pipe, a file
 * @commit: called when all of it has been passed on; may be NULL
 * @bytes:  counts what has been moved
 *
 * Ends early when the operation does. If @from cannot be read to its end, nothing is committed.
 * Return: 0, or a negative errno with an error.
 */
int stream_into(struct handle *h, struct atoll_op *op, int from, void (*commit)(struct atoll_op *),
                uint64_t *bytes, struct error *err);

/** stream_out_of() - all that an operation gives to @to, and wait for its end */
int stream_out_of(struct handle *h, struct atoll_op *op, int to, uint64_t *bytes,
                  struct error *err);

/** stream_pass() - all that @from gives to @to, while the context moves on */
int stream_pass(struct handle *h, int from, int to, uint64_t *bytes, struct error *err);

/**
 * stream_file() - a range of an open file to @to, by the kernel alone where it can
 * @from:   a regular file
 * @length: UINT64_MAX: to its end
 *
 * Blocks. Return: 0, also when the file is shorter; -EPIPE when @to is closed at its other end; a
 * negative errno, with an error.
 */
int stream_file(int from, uint64_t offset, uint64_t length, int to, struct error *err);
