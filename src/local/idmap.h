/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids for a caller who is the host's root: the maps of a sandbox's user namespace, and mounts on
 * which owners are mapped (mount_setattr(2), MOUNT_ATTR_IDMAP). All of it needs authority outside
 * the sandbox, so it is the keeper's part.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "local/plan.h"

/**
 * idmap_write() - write both id maps of the user namespace that @pid is in
 * @uid, @gid: inside, this id and 0 change places; 0: none do
 *
 * Return: 0 or a negative errno.
 */
int idmap_write(pid_t pid, const struct plan *p, uint32_t uid, uint32_t gid);

/** idmap_open() - the user namespace of @pid as a descriptor, owned, or a negative errno */
int idmap_open(pid_t pid);

/**
 * idmap_open_for_volumes() - a user namespace by which volumes are to be mapped
 * @pid: process 1 of the sandbox
 *
 * Files of the caller, id 0, are to belong to the user that commands run as. If that is root
 * inside, the sandbox's own map does it; otherwise a namespace is made whose map lets the two
 * change places. Return: an owned descriptor, or a negative errno.
 */
int idmap_open_for_volumes(const struct plan *p, pid_t pid);

/** idmap_mount() - a detached copy of the host's @source, mapped by @userns_fd; fd or -errno */
int idmap_mount(const char *source, bool read_only, int userns_fd);
