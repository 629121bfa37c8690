/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up steps that make the root and what lies on it: folders, files, binds,
 * volumes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "core/limits.h"
#include "local/mount_api.h"
#include "local/setup.h"
#include "base/guards.h"

enum { PLAIN_ATTR = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };

int setup_private(void)
{
    struct mount_attr set = {.propagation = MS_PRIVATE};

    return mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &set, sizeof set) < 0 ? -errno : 0;
}

int setup_root(struct setup *s, const struct step *step)
{
    char size[32], inodes[32];
    uint64_t n = step->value / LIMIT_DISK_BYTES_PER_INODE;
    const struct mount_option options[] = {{"size", size}, {"nr_inodes", inodes}, {"mode", "0755"}};

    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)step->value);
    (void)snprintf(inodes, sizeof inodes, "%llu",
                   (unsigned long long)(n > LIMIT_DISK_INODES_MIN ? n : LIMIT_DISK_INODES_MIN));
    (void)umask(0);
    s->root_fd = mount_new("tmpfs", options, ARRAY_SIZE(options), PLAIN_ATTR);
    if (s->root_fd < 0)
        return s->root_fd;
    /* On top of "/": our own root still is the host's, below it, so both can be
     * named. */
    return mount_place(s->root_fd, AT_FDCWD, "/");
}

int setup_overlay(struct setup *s, const struct step *step)
{
    const struct mount_option options[] = {
        {"lowerdir", "lower"}, {"upperdir", "upper"}, {"workdir", "work"}, {"userxattr", NULL}};
    static const char *const folders[] = {"lower", "upper", "work"};
    int given = s->volume_fds[s->plan->n_volumes];
    _cleanup_fd_ int lower =
        given >= 0 ? given
                   : mount_clone(AT_FDCWD, step->source, true, PLAIN_ATTR | MOUNT_ATTR_RDONLY);
    int r = lower < 0 ? lower : 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(folders); i++)
        if (mkdirat(s->root_fd, folders[i], 0755) < 0)
            r = -errno;
    if (r == 0)
        r = mount_place(lower, s->root_fd, "lower");
    if (r < 0)
        return r;
    if (fchdir(s->root_fd) < 0) /* the options name folders, looked up from here */
        return -errno;
    _cleanup_fd_ int overlay = mount_new("overlay", options, ARRAY_SIZE(options), PLAIN_ATTR);
    if (overlay < 0)
        return overlay;
    r = mount_place(overlay, AT_FDCWD, "/");
    if (r < 0)
        return r;
    fd_closep(&s->root_fd);
    s->root_fd = TAKE_FD(overlay);
    return 0;
}

/* Gives what @fd names to the user that commands run as, if that is another. */
static int give_to_command(const struct setup *s, const struct step *step, int fd)
{
    const struct plan *p = s->plan;

    if (!(step->flags & STEP_OWNED) || (p->command_uid == p->uid && p->command_gid == p->gid))
        return 0;
    return fchownat(fd, "", p->command_uid, p->command_gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* The folder that holds @target, and the name in it. */
static int open_parent(struct setup *s, const char *target, const char **ret_name)
{
    const char *slash = strrchr(target, '/');
    char parent[4096];
    size_t n = (size_t)(slash - target);

    *ret_name = slash + 1;
    if (n >= sizeof parent)
        return -ENAMETOOLONG;
    memcpy(parent, target, n);
    parent[n] = '\0';
    return path_open_in_root(s->root_fd, n > 0 ? parent + 1 : ".", O_PATH | O_DIRECTORY, 0);
}

int setup_folder(struct setup *s, const struct step *step)
{
    const char *rel = step->target + 1, *name = rel;
    _cleanup_fd_ int parent = -EBADF;

    if (s->plan->image_folder) { /* which may have links anywhere: never through them to the host */
        _cleanup_fd_ int there = path_open_in_root(s->root_fd, rel, O_PATH | O_DIRECTORY, 0);

        if (there >= 0)
            return 0;
        parent = open_parent(s, step->target, &name);
        if (parent < 0)
            return parent;
    }
    int at = parent >= 0 ? parent : s->root_fd;
    if (mkdirat(at, name, (mode_t)step->value) < 0) {
        /* In an image it may be a link to nowhere: of use for nothing, least of all to start in. */
        bool needed = s->plan->image_folder && step->flags & STEP_OWNED;

        return errno != EEXIST ? -errno : needed ? -ENOTDIR : 0;
    }
    if (!(step->flags & STEP_OWNED))
        return 0;
    _cleanup_fd_ int made = path_open_plain(at, name, O_PATH | O_DIRECTORY, 0);
    return made < 0 ? made : give_to_command(s, step, made);
}

/* Binds a folder of the root onto itself: the bind stays writable when the root
 * no longer is. */
static int bind_onto_itself(struct setup *s, const char *rel)
{
    _cleanup_fd_ int fd = mount_clone(s->root_fd, rel, false, 0); /* as the root mount is */

    return fd < 0 ? fd : mount_place(fd, s->root_fd, rel);
}

int setup_writable(struct setup *s, const struct step *step)
{
    int r = setup_folder(s, step);

    return r < 0 ? r : bind_onto_itself(s, step->target + 1);
}

int setup_link(struct setup *s, const struct step *step)
{
    const char *name;

    if (!s->plan->image_folder)
        return symlinkat(step->source, s->root_fd, step->target + 1) < 0 ? -errno : 0;
    _cleanup_fd_ int parent = open_parent(s, step->target, &name);
    if (parent < 0)
        return parent;
    return symlinkat(step->source, parent, name) < 0 && errno != EEXIST ? -errno : 0;
}

/* In an image, links may stand anywhere on the way, and something else at the
 * place itself. */
static int make_file_in_image(struct setup *s, const char *target)
{
    const char *name;
    _cleanup_fd_ int parent = open_parent(s, target, &name);

    if (parent < 0)
        return parent;
    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return -errno;
    return path_open_plain(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
}

int setup_file(struct setup *s, const struct step *step)
{
    _cleanup_fd_ int fd =
        s->plan->image_folder
            ? make_file_in_image(s, step->target)
            : openat(s->root_fd, step->target + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0)
        return fd == -1 ? -errno : fd;
    return io_write_full(fd, step->source, strlen(step->source), CLOCK_NEVER);
}

/* A place to mount on, made if it is not there: a folder or a file, as
 * @mount_fd is. */
static int mount_point(struct setup *s, int mount_fd, const char *rel)
{
    struct stat st;
    int fd = path_open_plain(s->root_fd, rel, O_PATH, 0);

    if (fd != -ENOENT || fstat(mount_fd, &st) < 0)
        return fd;
    if (S_ISDIR(st.st_mode))
        return path_make_folders(s->root_fd, rel, 0755);
    const char *slash = strrchr(rel, '/');
    if (slash) {
        char parent[4096];

        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - rel), rel);
        _cleanup_fd_ int made = path_make_folders(s->root_fd, parent, 0755);
        if (made < 0)
            return made;
    }
    _cleanup_fd_ int file = path_open_plain(s->root_fd, rel, O_RDONLY | O_CREAT | O_EXCL, 0644);
    return file < 0 ? file : path_open_plain(s->root_fd, rel, O_PATH, 0);
}

int setup_bind(struct setup *s, const struct step *step)
{
    uint64_t attr = step->flags & STEP_LATER
                        ? 0u
                        : MOUNT_ATTR_NOSUID | (step->flags & STEP_DEVICE ? 0u : MOUNT_ATTR_NODEV) |
                              (step->flags & STEP_RO ? MOUNT_ATTR_RDONLY : 0u);
    bool is_file = step->flags & STEP_IS_FILE;
    const char *rel = step->target + 1;
    _cleanup_fd_ int fd = mount_clone(AT_FDCWD, step->source, !is_file, attr);

    if (fd < 0)
        return fd;
    if (s->plan->image_folder) {
        _cleanup_fd_ int at = mount_point(s, fd, rel);
        return at < 0 ? at : mount_place_at(fd, at);
    }
    /* A root of our own, with nothing in it that could be a link. */
    if (is_file ? mknodat(s->root_fd, rel, S_IFREG | 0644, 0) : mkdirat(s->root_fd, rel, 0755))
        return -errno;
    return mount_place(fd, s->root_fd, rel);
}

int setup_hide(struct setup *s, const struct step *step)
{
    _cleanup_fd_ int empty = mount_new("tmpfs", NULL, 0, PLAIN_ATTR | MOUNT_ATTR_RDONLY);

    return empty < 0 ? empty : mount_place(empty, s->root_fd, step->target + 1);
}

int setup_volume(struct setup *s, const struct step *step)
{
    uint64_t attr = PLAIN_ATTR | (step->flags & STEP_RO ? MOUNT_ATTR_RDONLY : 0u);
    int given = TAKE_FD(s->volume_fds[step->value]);
    _cleanup_fd_ int fd = given >= 0 ? given : mount_clone(AT_FDCWD, step->source, true, attr);

    if (fd < 0)
        return fd;
    _cleanup_fd_ int at = mount_point(s, fd, step->target + 1);
    return at < 0 ? at : mount_place_at(fd, at);
}

/* The mount that @fd lies on, as a number (statx(2), STATX_MNT_ID). */
static int mount_id(int fd, uint64_t *ret)
{
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
        return -errno;
    *ret = st.stx_mnt_id;
    return 0;
}

int setup_workdir(struct setup *s, const struct step *step)
{
    const char *rel = step->target[1] ? step->target + 1 : ".";
    uint64_t root_id = 0, folder_id = 0;
    _cleanup_fd_ int fd = path_open_in_root(s->root_fd, rel, O_PATH | O_DIRECTORY, 0);

    if (fd >= 0)
        return 0; /* it was there: whose it is stays as it is */
    if (fd != -ENOENT)
        return fd;
    fd = path_make_folders(s->root_fd, rel, 0755);
    int r = fd < 0 ? fd : give_to_command(s, step, fd);
    if (r == 0)
        r = mount_id(fd, &folder_id);
    if (r == 0)
        r = mount_id(s->root_fd, &root_id);
    if (r < 0 || folder_id != root_id || s->plan->image_folder)
        return r;
    return bind_onto_itself(s, rel); /* on the root, which is about to become read-only */
}

int setup_read_only(struct setup *s, const struct step *step)
{
    struct mount_attr set = {.attr_set = PLAIN_ATTR | MOUNT_ATTR_RDONLY};
    unsigned deep = step->flags & STEP_DEEP ? AT_RECURSIVE : 0;

    return mount_setattr(s->root_fd, step->target + 1, AT_EMPTY_PATH | deep, &set, sizeof set) < 0
               ? -errno
               : 0;
}

/* Whether a mount still lies over the root: then ".." of it leads onto that mount. */
static int check_nothing_above(void)
{
    struct statx root, above;

    if (statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &root) < 0 ||
        statx(AT_FDCWD, "/..", 0, STATX_MNT_ID, &above) < 0)
        return -errno;
    return root.stx_mnt_id == above.stx_mnt_id ? 0 : -EXDEV;
}

int setup_pivot(struct setup *s)
{
    /* The old root comes to lie on top of the new one's; for an image the tmpfs lies on that. */
    int layers = s->plan->image_folder ? 2 : 1;

    (void)umask(022);
    if (fchdir(s->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return -errno;
    while (layers-- > 0)
        if (umount2(".", MNT_DETACH) < 0)
            return -errno;
    if (chdir("/") < 0)
        return -errno;
    fd_closep(&s->root_fd);
    return check_nothing_above();
}
