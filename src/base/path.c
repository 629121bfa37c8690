/* SPDX-License-Identifier: Apache-2.0 */
/* The one wrapper around openat2(2), and what is built on it. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum { OPEN_TRIES = 64 };

static int open_resolved(int root_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
        .mode = creates ? mode : 0,
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };

    for (unsigned tries = 0; tries < OPEN_TRIES; tries++) {
        long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);

        if (fd >= 0)
            return (int)fd;
        if (errno != EAGAIN && errno != EINTR) /* EAGAIN: a rename raced the check of ".." */
            return -errno;
    }
    return -EAGAIN;
}

int path_open_beneath(int root_fd, const char *path, int flags, mode_t mode)
{
    return open_resolved(root_fd, path, flags, mode, RESOLVE_BENEATH);
}

int path_open_plain(int root_fd, const char *path, int flags, mode_t mode)
{
    return open_resolved(root_fd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int path_open_in_root(int root_fd, const char *path, int flags, mode_t mode)
{
    return open_resolved(root_fd, path, flags, mode, RESOLVE_IN_ROOT);
}

int path_make_folders(int root_fd, const char *path, mode_t mode)
{
    _cleanup_fd_ int at = open_resolved(root_fd, ".", O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH);
    char name[NAME_MAX + 1];

    if (at < 0)
        return at;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");

        if (n > 0 && !(n == 1 && *p == '.')) {
            if (n >= sizeof name)
                return -ENAMETOOLONG;
            memcpy(name, p, n);
            name[n] = '\0';
            if (mkdirat(at, name, mode) < 0 && errno != EEXIST && errno != EROFS)
                return -errno;
            int next = path_open_plain(at, name, O_PATH | O_DIRECTORY, 0);
            if (next < 0)
                return next == -ENOENT ? -EROFS : next;
            fd_closep(&at);
            at = next;
        }
        p += n + (p[n] == '/');
    }
    return TAKE_FD(at);
}

bool path_is_plain_absolute(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *p = path + 1; *p;) {
        size_t n = strcspn(p, "/");

        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p == '/' && *++p == '\0')
            return false;
    }
    return true;
}

bool path_is_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (n == 1) /* "/" */
        return true;
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}
