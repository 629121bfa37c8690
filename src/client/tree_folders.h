/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders that unpacking has made. They are made for their owner alone, and get their modes and
 * times at the end: until then they must take entries, which would change their times too.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed: none. */
struct tree_folders {
    void *by_path; /* see tsearch(3); those inside before the one they lie in */
    size_t bytes;  /* of what is remembered */
};

/**
 * tree_folders_make() - make the folder @name in @at
 * @path: of it beneath the root of all folders; copied
 *
 * Return: 1 when it is new; 0 when something is there already; a negative errno, -EOVERFLOW when
 * there are too many to remember.
 */
int tree_folders_make(struct tree_folders *f, int at, const char *name, const char *path);

/**
 * tree_folders_walk() - open the folder @path beneath @root, and make what is missing of it
 * @path: changed while it runs
 *
 * No link is followed. Return: an owned O_PATH fd, or a negative errno as tree_folders_make() and
 * path_open_plain() have them.
 */
int tree_folders_walk(struct tree_folders *f, int root, char *path);

/** tree_folders_describe() - keep a mode and time for @path if it was made here; 0 or -ENOMEM */
int tree_folders_describe(struct tree_folders *f, const char *path, mode_t mode, int64_t mtime,
                          uint32_t mtime_ns);

/**
 * tree_folders_settle() - set all modes and times, and forget them
 *
 * Return: 0, or the first negative errno; the others are set all the same.
 */
int tree_folders_settle(struct tree_folders *f, int root);
