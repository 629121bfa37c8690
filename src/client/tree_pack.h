/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file or folder of the host's as a tar stream, made as fast as it is taken and never held as a
 * whole. Below the path that was named no link is followed, and only files and folders are opened:
 * whatever else is there, a FIFO, a socket, a device, may wait for ever or do something when
 * opened.
 */
#pragma once

#include "base/error.h"
#include "client/tree.h"

enum { TREE_DEPTH_MAX = 512 }; /* folders in each other; each holds a descriptor */

struct tree_pack;

struct tree_pack_options {
    const char *path; /* a file or folder, or a symbolic link to one; copied */
    const char *name; /* what it is called in the archive: relative, without ".."; copied */
    struct tree_listener listener;
};

/**
 * tree_pack_new() - open the path and begin
 * @ret: to be given to tree_pack_free()
 *
 * Return: 0, or a negative errno with @err set.
 */
int tree_pack_new(const struct tree_pack_options *o, struct tree_pack **ret, struct error *err);

/**
 * tree_pack_step() - write as much as @out_fd takes
 * @out_fd: non-blocking; borrowed. SIGPIPE must be ignored
 *
 * Blocks for nothing but the host's disk, and not longer than TREE_STEP_BYTES take. Special files,
 * and what vanishes meanwhile, are skipped. A file that grows is cut at the size it had; one that
 * shrinks is filled with zeros and, since the copy is not what anybody wrote, is an error after the
 * archive's end. Return: 1 when all is written; 0 to be called again when @out_fd is writable; a
 * negative errno with @err set, -EPIPE when @out_fd is closed at its other end.
 */
int tree_pack_step(struct tree_pack *p, int out_fd, struct error *err);

/** tree_pack_totals() - what has been packed so far; a view */
const struct tree_totals *tree_pack_totals(const struct tree_pack *p);

/** tree_pack_free() - close and free; NULL is fine */
void tree_pack_free(struct tree_pack *p);
