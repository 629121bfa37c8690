/* SPDX-License-Identifier: Apache-2.0 */
/* Removing what was staged, be it a folder with anything in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "export/staging.h"
#include "base/guards.h"

/*
 * A tree is flattened while it is emptied: a folder that is not empty is moved up to the top, and
 * emptied there. So neither a stack nor descriptors grow with its depth, which whoever made the
 * tree has chosen.
 */
struct removal {
    int top;        /* of the tree */
    dev_t device;   /* that all of it lies on */
    unsigned moved; /* for new names at the top */
    int error;      /* the first */
};

/* Makes folder @name of @at one that its owner can empty. Return: an owned fd or -errno. */
static int open_for_removal(int at, const char *name, dev_t *device)
{
    char path[32];
    struct stat st;
    _cleanup_fd_ int plain = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (plain < 0 || fstat(plain, &st) < 0)
        return -errno;
    if (*device == 0)
        *device = st.st_dev;
    if (*device != st.st_dev)
        return -EBUSY; /* something is mounted there */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", plain);
    if ((st.st_mode & 0700) != 0700 && chmod(path, 0700) < 0)
        return -errno;
    int fd = openat(plain, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Return: 0, also when it is not there; -ENOTEMPTY; or a negative errno. */
static int remove_one(int at, const char *name)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    int r = -errno;
    if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTDIR)
        return r;
    return errno == EEXIST ? -ENOTEMPTY : -errno;
}

/* Moves folder @name of @at to the top. */
static int move_up(struct removal *x, int at, const char *name)
{
    /* Its ".." is changed by that, for which its owner needs a permission. */
    _cleanup_fd_ int fd = open_for_removal(at, name, &x->device);

    if (fd < 0)
        return fd;
    for (;;) {
        char to[32];

        (void)snprintf(to, sizeof to, ".removed-%u", x->moved++);
        if (renameat(at, name, x->top, to) == 0)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            return -errno;
    }
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/*
 * Removes what lies in @folder, or moves it to the top; passes over it until one finds nothing,
 * because a directory that is changed may hide entries from who is reading it.
 */
static void empty(struct removal *x, int folder,
                  int (*away)(struct removal *x, int at, const char *name))
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    bool progress = true;

    if (!dir) {
        x->error = x->error ? x->error : -errno;
        fd_closep(&fd);
        return;
    }
    while (progress) {
        const struct dirent *e;
        int first = 0;

        progress = false;
        rewinddir(dir);
        while ((e = readdir(dir))) {
            if (is_dots(e->d_name))
                continue;
            int r = away(x, folder, e->d_name);
            progress = progress || r == 0;
            first = first ? first : r;
        }
        if (!progress && first < 0)
            x->error = x->error ? x->error : first;
    }
}

static int away_from_inner(struct removal *x, int at, const char *name)
{
    int r = remove_one(at, name);

    return r == -ENOTEMPTY ? move_up(x, at, name) : r;
}

static int away_from_top(struct removal *x, int at, const char *name)
{
    int r = remove_one(at, name);

    if (r != -ENOTEMPTY)
        return r;
    _cleanup_fd_ int folder = open_for_removal(at, name, &x->device);
    if (folder < 0)
        return folder;
    empty(x, folder, away_from_inner);
    return remove_one(at, name);
}

int staging_remove_tree(int parent_fd, const char *name)
{
    struct removal x = {.top = -EBADF};
    int r = remove_one(parent_fd, name);

    if (r != -ENOTEMPTY)
        return r;
    _cleanup_fd_ int top = open_for_removal(parent_fd, name, &x.device);
    if (top < 0)
        return top;
    x.top = top;
    empty(&x, top, away_from_top);
    r = remove_one(parent_fd, name);
    return r == -ENOTEMPTY && x.error ? x.error : r;
}
