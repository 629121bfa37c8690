/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The new mount interface of Linux 5.2 and 5.12 (fsopen(2), open_tree(2), move_mount(2),
 * mount_setattr(2)): a mount is a descriptor first and gets a place later, so that no path is
 * looked up twice and nothing of the host is hidden while a root is put together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mount_option {
    const char *key, *value; /* value NULL: a flag */
};

/** mount_new() - a new file system as a detached mount with MOUNT_ATTR_* @attr; fd or -errno */
int mount_new(const char *type, const struct mount_option *options, size_t n, uint64_t attr);

/**
 * mount_clone() - a detached copy of the mount at @path
 * @recursive: with everything mounted below; attributes are set on all of it
 * @attr:      MOUNT_ATTR_* to set beside those that the original has
 *
 * Return: an fd, or a negative errno (-EINVAL in a user namespace when not recursive and something
 * is mounted below).
 */
int mount_clone(int dir_fd, const char *path, bool recursive, uint64_t attr);

/** mount_place() - attach @mount_fd at @target below @dir_fd; 0 or -errno */
int mount_place(int mount_fd, int dir_fd, const char *target);

/** mount_place_at() - attach @mount_fd on what the O_PATH descriptor @target_fd names; 0 or -errno
 */
int mount_place_at(int mount_fd, int target_fd);
