/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tar stream from a sandbox, made into files beneath one folder of the host's. The stream is
 * hostile: whatever it says, nothing outside that folder is written, linked, changed or followed.
 *
 * - Every walk is the kernel's (base/path.h) and follows no symbolic link, not even the host's own.
 * - Files, links and hard links are made under a temporary name and renamed over what is there, so
 *   a link that stands there is replaced, and a file is there whole or not at all.
 * - Folders are never replaced, nor anything by a folder. Those that were there keep their mode and
 *   time; those that are made get theirs at the end.
 * - Symbolic links that could lead out of the copied tree (tar_link_stays()) are skipped, and so
 * are FIFOs and devices. Modes lose the set-id and sticky bits. The owner is the caller.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "client/tree.h"

struct tree_unpack;

struct tree_unpack_options {
    int folder_fd;      /* O_PATH is enough; duplicated */
    const char *folder; /* how people call it; copied, may be NULL */
    /*
     * What the archive's top is called here: one name; copied. All entries must lie in one top
     * then, and links must stay in it. NULL: the archive says what is made in the folder, which
     * only suits a folder that was made for it.
     */
    const char *name;
    uint64_t max_bytes; /* of all files together; 0: no limit */
    struct tree_listener listener;
};

/** tree_unpack_new() - begin; 0, or a negative errno with @err set */
int tree_unpack_new(const struct tree_unpack_options *o, struct tree_unpack **ret,
                    struct error *err);

/**
 * tree_unpack_feed() - take the next bytes of the archive
 *
 * Blocks for nothing but the host's disk. Return: 1 when the archive's end has been read, and what
 * follows is ignored; 0; a negative errno with @err set, after which only tree_unpack_free() may
 * follow. Files that were complete before an error stay.
 */
int tree_unpack_feed(struct tree_unpack *u, const void *data, size_t len, struct error *err);

/**
 * tree_unpack_finish() - no more bytes will come: set the modes and times of folders
 *
 * Return: 0; a negative errno with @err set, also when the archive is not whole.
 */
int tree_unpack_finish(struct tree_unpack *u, struct error *err);

/**
 * tree_unpack_step() - read what @in_fd has, and finish at its end
 * @in_fd: non-blocking; borrowed
 *
 * Not more than TREE_STEP_BYTES are taken at once. Return: 1 when all is done; 0 to be called again
 * when @in_fd is readable; a negative errno with @err set.
 */
int tree_unpack_step(struct tree_unpack *u, int in_fd, struct error *err);

/** tree_unpack_totals() - what has been made so far; a view */
const struct tree_totals *tree_unpack_totals(const struct tree_unpack *u);

/** tree_unpack_free() - remove the file that is not complete, and free; NULL is fine */
void tree_unpack_free(struct tree_unpack *u);
