/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that unpacking makes: walked to without links, remembered, settled at the end. */
#include "client/tree_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/guards.h"

enum {
    BYTES_MAX = 64 * 1024 * 1024,
    IMPLIED_MODE = 0755, /* of folders that only a path in them mentions */
};

struct folder {
    struct timespec mtime;
    mode_t mode;
    char path[];
};

static struct folder *new_folder(const char *path)
{
    size_t len = strlen(path);
    struct folder *f = malloc(sizeof *f + len + 1);

    if (f) {
        *f = (struct folder){.mode = IMPLIED_MODE, .mtime.tv_nsec = UTIME_OMIT};
        memcpy(f->path, path, len + 1);
    }
    return f;
}

/* Descending: a folder's path is less than those of what lies in it. */
static int later_path_first(const void *a, const void *b)
{
    return strcmp(((const struct folder *)b)->path, ((const struct folder *)a)->path);
}

static int remember(struct tree_folders *f, const char *path)
{
    size_t bytes = sizeof(struct folder) + strlen(path) + 1;
    struct folder *made, **found;

    if (bytes > BYTES_MAX - f->bytes)
        return -EOVERFLOW;
    made = new_folder(path);
    if (!made)
        return -ENOMEM;
    found = tsearch(made, &f->by_path, later_path_first);
    if (!found || *found != made)
        free(made); /* not new: somebody has removed the one that was made before */
    else
        f->bytes += bytes;
    return found ? 0 : -ENOMEM;
}

int tree_folders_make(struct tree_folders *f, int at, const char *name, const char *path)
{
    int r;

    if (mkdirat(at, name, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    r = remember(f, path);
    return r < 0 ? r : 1;
}

int tree_folders_walk(struct tree_folders *f, int root, char *path)
{
    _cleanup_fd_ int at = path_open_plain(root, path, O_PATH | O_DIRECTORY, 0);

    if (at != -ENOENT)
        return TAKE_FD(at);
    at = path_open_plain(root, ".", O_PATH | O_DIRECTORY, 0);
    for (char *part = path, *end; at >= 0 && part; part = end ? end + 1 : NULL) {
        end = strchr(part, '/');
        if (end)
            *end = '\0'; /* @path ends here for a moment */
        int r = tree_folders_make(f, at, part, path);
        int next = r < 0 ? r : path_open_plain(at, part, O_PATH | O_DIRECTORY, 0);
        if (end)
            *end = '/';
        fd_closep(&at);
        at = next;
    }
    return TAKE_FD(at);
}

int tree_folders_describe(struct tree_folders *f, const char *path, mode_t mode, int64_t mtime,
                          uint32_t mtime_ns)
{
    _cleanup_free_ struct folder *key = new_folder(path);
    struct folder **found;

    if (!key)
        return -ENOMEM;
    found = tfind(key, &f->by_path, later_path_first);
    if (found) {
        (*found)->mode = mode;
        (*found)->mtime = (struct timespec){.tv_sec = mtime, .tv_nsec = mtime_ns};
    }
    return 0;
}

struct settling {
    int root, error;
};

static int settle_one(int root, const struct folder *f)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, f->mtime};
    _cleanup_fd_ int fd = path_open_plain(root, f->path, O_PATH | O_DIRECTORY, 0);
    char path[32];

    if (fd < 0)
        return fd;
    /* The inode itself: a descriptor of O_PATH takes neither futimens() nor fchmod(). */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (utimensat(AT_FDCWD, path, times, 0) < 0 || chmod(path, f->mode) < 0)
        return -errno;
    return 0;
}

static void settle(const void *node, VISIT visit, void *arg)
{
    const struct folder *f = *(const struct folder *const *)node;
    struct settling *s = arg;

    if (visit != postorder && visit != leaf) /* each folder once, in their order */
        return;
    int r = settle_one(s->root, f);
    if (r < 0 && s->error == 0)
        s->error = r;
}

int tree_folders_settle(struct tree_folders *f, int root)
{
    struct settling s = {.root = root};

    twalk_r(f->by_path, settle, &s);
    tdestroy(f->by_path, free);
    *f = (struct tree_folders){0};
    return s.error;
}
