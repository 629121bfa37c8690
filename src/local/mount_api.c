/* SPDX-License-Identifier: Apache-2.0 */
/* Thin wrappers around the new mount interface. */
#include "local/mount_api.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

int mount_new(const char *type, const struct mount_option *options, size_t n, uint64_t attr)
{
    _cleanup_fd_ int fs = fsopen(type, FSOPEN_CLOEXEC);

    if (fs < 0)
        return -errno;
    for (size_t i = 0; i < n; i++)
        if (fsconfig(fs, options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, options[i].key,
                     options[i].value, 0) < 0)
            return -errno;
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attr);
    return fd < 0 ? -errno : fd;
}

int mount_clone(int dir_fd, const char *path, bool recursive, uint64_t attr)
{
    struct mount_attr set = {.attr_set = attr};
    unsigned deep = recursive ? AT_RECURSIVE : 0;
    _cleanup_fd_ int fd = open_tree(dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep);

    if (fd < 0)
        return -errno;
    if (attr != 0 && mount_setattr(fd, "", AT_EMPTY_PATH | deep, &set, sizeof set) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int mount_place(int mount_fd, int dir_fd, const char *target)
{
    return move_mount(mount_fd, "", dir_fd, target, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

int mount_place_at(int mount_fd, int target_fd)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;

    return move_mount(mount_fd, "", target_fd, "", flags) < 0 ? -errno : 0;
}
