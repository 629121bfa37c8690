/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up steps for what the kernel provides: /proc, /dev/pts, /dev/shm. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "local/mount_api.h"
#include "local/setup.h"
#include "base/guards.h"

enum { KERNEL_FS_ATTR = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };

/* Mounts a new file system on a folder of the root, which is made if absent. */
static int mount_on(struct setup *s, const char *target, const char *type,
                    const struct mount_option *options, size_t n, uint64_t attr)
{
    const char *rel = target + 1;
    _cleanup_fd_ int fd = mount_new(type, options, n, attr);

    if (fd < 0)
        return fd;
    if (s->plan->image_folder) { /* which may have links anywhere */
        _cleanup_fd_ int at = path_make_folders(s->root_fd, rel, 0755);
        return at < 0 ? at : mount_place_at(fd, at);
    }
    return mkdirat(s->root_fd, rel, 0755) < 0 ? -errno : mount_place(fd, s->root_fd, rel);
}

int setup_proc(struct setup *s, const struct step *step)
{
    return mount_on(s, step->target, "proc", NULL, 0, KERNEL_FS_ATTR);
}

int setup_sysctl(struct setup *s, const struct step *step)
{
    _cleanup_fd_ int fd = path_open_plain(s->root_fd, step->target + 1, O_WRONLY, 0);

    if (fd < 0)
        return fd;
    return io_write_full(fd, step->source, strlen(step->source), CLOCK_NEVER);
}

int setup_proc_lock(struct setup *s, const struct step *step)
{
    const char *rel = step->target + 1;
    _cleanup_fd_ int fd = mount_clone(s->root_fd, rel, true, KERNEL_FS_ATTR | MOUNT_ATTR_RDONLY);

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd; /* not every kernel has every one of them */
    return mount_place(fd, s->root_fd, rel);
}

int setup_proc_mask(struct setup *s, const struct step *step)
{
    const char *rel = step->target + 1;
    struct stat st;

    if (fstatat(s->root_fd, rel, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    _cleanup_fd_ int fd =
        S_ISDIR(st.st_mode)
            ? mount_new("tmpfs", NULL, 0, KERNEL_FS_ATTR | MOUNT_ATTR_RDONLY)
            : mount_clone(AT_FDCWD, "/dev/null", false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return fd < 0 ? fd : mount_place(fd, s->root_fd, rel);
}

int setup_dev(struct setup *s, const struct step *step)
{
    static const struct mount_option options[] = {
        {"size", "65536"}, {"nr_inodes", "64"}, {"mode", "0755"}};

    return mount_on(s, step->target, "tmpfs", options, ARRAY_SIZE(options),
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

int setup_terminals(struct setup *s, const struct step *step)
{
    static const struct mount_option options[] = {
        {"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"}};

    return mount_on(s, step->target, "devpts", options, ARRAY_SIZE(options),
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

int setup_shm(struct setup *s, const struct step *step)
{
    char size[32];
    const struct mount_option options[] = {{"size", size}, {"mode", "1777"}};

    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)step->value);
    return mount_on(s, step->target, "tmpfs", options, ARRAY_SIZE(options),
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}
