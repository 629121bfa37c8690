/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files. A path comes from a stranger and is looked up below the root by openat2(2), where the
 * kernel sees to it that no "..", absolute path or symbolic link leads out. Everything after that
 * works on descriptors, never on the path again: whoever runs inside could have changed it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "folder.h"

enum { LINKS_MAX = 16 };

int localize(const struct folder *f, const char *path, char ret[PATH_MAX])
{
    char root[PATH_MAX];
    int len = snprintf(root, sizeof root, "%s/root", f->path);
    bool inside = strncmp(path, root, (size_t)len) == 0 && (path[len] == '/' || path[len] == '\0');

    if (inside)
        len = snprintf(ret, PATH_MAX, "./%s", path + len);
    else if (path[0] == '/')
        len = snprintf(ret, PATH_MAX, "./%s", path);
    else
        len = snprintf(ret, PATH_MAX, "./%s/%s", f->workdir, path);
    return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int open_local(const struct folder *f, const char *local, int flags)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    long fd = syscall(SYS_openat2, f->root, local, &how, sizeof how);

    return fd < 0 ? -errno : (int)fd;
}

static int open_inside(const struct folder *f, const char *path, int flags)
{
    char local[PATH_MAX];
    int r = localize(f, path, local);

    return r < 0 ? r : open_local(f, local, flags);
}

static int kind_of(mode_t mode)
{
    return S_ISREG(mode)    ? ATOLL_FILE
           : S_ISDIR(mode)  ? ATOLL_FOLDER
           : S_ISLNK(mode)  ? ATOLL_LINK
           : S_ISFIFO(mode) ? ATOLL_FIFO
           : S_ISSOCK(mode) ? ATOLL_SOCKET
                            : ATOLL_DEVICE;
}

static struct atoll_file describe(const struct stat *st)
{
    return (struct atoll_file){
        .kind = kind_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
        .target_kind = ATOLL_LINK,
    };
}

/* A regular file, open; or the answer is given and -1 returned. Nothing is opened for reading
 * before it is known what it is: opening a FIFO may wait, and opening a device may do anything. */
static int open_regular(const struct folder *f, const char *path, struct stat *st,
                        struct atoll_reply *reply)
{
    int at = open_inside(f, path, O_PATH), fd, kind;
    char name[64];

    if (at < 0 || fstat(at, st) < 0) {
        atoll_reply_file_error(reply, at < 0 ? -at : errno, 0, 0);
        return -1;
    }
    kind = kind_of(st->st_mode);
    snprintf(name, sizeof name, "/proc/self/fd/%d", at);
    fd = kind == ATOLL_FILE ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        atoll_reply_file_error(reply,
                               kind == ATOLL_FILE     ? errno
                               : kind == ATOLL_FOLDER ? EISDIR
                                                      : EINVAL,
                               kind, 0);
    close(at);
    return fd;
}

void folder_read(struct atoll_server *server, void *sandbox, const char *path, uint64_t offset,
                 uint64_t length, uint64_t max_bytes, struct atoll_reply *reply)
{
    struct stat st;
    int fd = open_regular(sandbox, path, &st, reply);

    (void)server;
    if (fd < 0)
        return;
    uint64_t size = (uint64_t)st.st_size, from = offset < size ? offset : size;
    uint64_t len = length < size - from ? length : size - from;
    struct atoll_file file = describe(&st);
    char *data = len <= max_bytes ? malloc(len + 1) : NULL;
    ssize_t n = 1;

    for (size_t at = 0; data && at < len && n > 0; at += n > 0 ? (size_t)n : 0)
        n = pread(fd, data + at, len - at, (off_t)(from + at));
    if (!data)
        atoll_reply_file_error(reply, len > max_bytes ? EFBIG : ENOMEM, 0, size);
    else if (n <= 0) /* it has shrunk meanwhile: better an error than a part */
        atoll_reply_file_error(reply, n < 0 ? errno : ESTALE, 0, 0);
    else
        atoll_reply_content(reply, &file, data, len);
    free(data);
    close(fd);
}

void folder_stat(struct atoll_server *server, void *sandbox, const char *path, bool follow,
                 struct atoll_reply *reply)
{
    int fd = open_inside(sandbox, path, O_PATH | (follow ? 0 : O_NOFOLLOW));
    char target[PATH_MAX];
    struct stat st;

    (void)server;
    if (fd < 0 || fstat(fd, &st) < 0) {
        atoll_reply_file_error(reply, fd < 0 ? -fd : errno, 0, 0);
        return;
    }
    struct atoll_file file = describe(&st);
    ssize_t n = file.kind == ATOLL_LINK ? readlinkat(fd, "", target, sizeof target - 1) : -1;
    if (n >= 0) {
        target[n] = '\0';
        file.target = target;
    }
    atoll_reply_file(reply, &file);
    close(fd);
}

static void list_entry(const struct folder *f, int dir, const char *local, const char *name,
                       struct atoll_reply *reply)
{
    char target[PATH_MAX], behind[PATH_MAX + NAME_MAX + 2];
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* gone meanwhile */
    struct atoll_file file = describe(&st);
    ssize_t n = file.kind == ATOLL_LINK ? readlinkat(dir, name, target, sizeof target - 1) : -1;
    file.name = name;
    if (n >= 0) {
        target[n] = '\0';
        file.target = target;
        snprintf(behind, sizeof behind, "%s/%s", local, name);
        int fd = open_local(f, behind, O_PATH);
        if (fd >= 0 && fstat(fd, &st) == 0)
            file.target_kind = kind_of(st.st_mode);
        if (fd >= 0)
            close(fd);
    }
    atoll_reply_entry(reply, &file);
}

void folder_list(struct atoll_server *server, void *sandbox, const char *path,
                 struct atoll_reply *reply)
{
    const struct folder *f = sandbox;
    char local[PATH_MAX];
    int r = localize(f, path, local);
    int fd = r < 0 ? r : open_local(f, local, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    (void)server;
    if (!dir) {
        atoll_reply_file_error(reply, fd < 0 ? -fd : errno, 0, 0);
        return;
    }
    while ((e = readdir(dir)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            list_entry(f, fd, local, e->d_name, reply);
    atoll_reply_done(reply);
    closedir(dir);
}

/* The folder of a path, made if it is missing, and the name in it. An owned descriptor. */
static int open_parent(const struct folder *f, char *local, const char **ret_name)
{
    char *slash = strrchr(local, '/'); /* there is one: localize() begins with "./" */
    int at, r;

    *slash = '\0';
    r = make_folders(f, local);
    at = r < 0 ? r : open_local(f, local, O_PATH | O_DIRECTORY);
    *slash = '/';
    *ret_name = slash + 1;
    return at;
}

int make_folders(const struct folder *f, const char *path)
{
    char part[PATH_MAX];

    for (const char *end = path; *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        snprintf(part, sizeof part, "./%.*s", (int)(end - path), path);
        int at = open_local(f, part, O_PATH | O_DIRECTORY);
        if (at == -ENOENT) {
            char *slash = strrchr(part, '/');
            *slash = '\0';
            int parent = open_local(f, part, O_PATH | O_DIRECTORY);
            int r = parent < 0 ? parent : mkdirat(parent, slash + 1, 0777) < 0 ? -errno : 0;
            if (parent >= 0)
                close(parent);
            if (r < 0 && r != -EEXIST)
                return r;
        } else if (at < 0) {
            return at;
        } else {
            close(at);
        }
    }
    return 0;
}

/* A symbolic link is followed to what is to be replaced, also if that does not exist yet. */
static int follow(const struct folder *f, char local[PATH_MAX], const char **ret_name)
{
    char target[PATH_MAX], next[2 * PATH_MAX];

    for (int i = 0; i < LINKS_MAX; i++) {
        int parent = open_parent(f, local, ret_name);
        ssize_t n = parent < 0 ? -1 : readlinkat(parent, *ret_name, target, sizeof target - 1);

        if (parent < 0 || n < 0)
            return parent;
        close(parent);
        target[n] = '\0';
        if (target[0] == '/')
            snprintf(next, sizeof next, "./%s", target);
        else
            snprintf(next, sizeof next, "%.*s/%s", (int)(*ret_name - 1 - local), local, target);
        if (strlen(next) >= PATH_MAX)
            return -ENAMETOOLONG;
        memcpy(local, next, strlen(next) + 1);
    }
    return -ELOOP;
}

/* Writes a file beside the old one and puts it in its place in one step. 0 or a negative errno. */
static int replace(int parent, const char *name, const struct stat *old, uint32_t mode,
                   const char *data, size_t len)
{
    char temporary[64];
    int r = 0;

    snprintf(temporary, sizeof temporary, ".atoll-%d-%llx", getpid(),
             (unsigned long long)clock_us(CLOCK_MONOTONIC));
    int fd = openat(parent, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    for (size_t at = 0; at < len && r == 0;) {
        ssize_t n = write(fd, data + at, len - at);

        r = n < 0 ? -errno : 0;
        at += n < 0 ? 0 : (size_t)n;
    }
    if (r == 0 && old && fchown(fd, old->st_uid, old->st_gid) < 0 && geteuid() == 0)
        r = -errno;
    if (r == 0 && (old || mode != ATOLL_KEEP_MODE) &&
        fchmod(fd, mode != ATOLL_KEEP_MODE ? mode : old->st_mode & 07777) < 0)
        r = -errno;
    if (r == 0 && renameat(parent, temporary, parent, name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(parent, temporary, 0);
    close(fd);
    return r;
}

void folder_write(struct atoll_server *server, void *sandbox, const char *path, uint32_t mode,
                  const void *data, size_t len, struct atoll_reply *reply)
{
    const struct folder *f = sandbox;
    char local[PATH_MAX];
    const char *name = "";
    struct stat st;
    int r = localize(f, path, local);
    int parent = r < 0 ? r : follow(f, local, &name);
    bool exists = parent >= 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    int kind = exists ? kind_of(st.st_mode) : ATOLL_FILE;

    (void)server;
    if (parent < 0)
        r = parent;
    else if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        r = -EISDIR;
    else if (kind != ATOLL_FILE)
        r = kind == ATOLL_FOLDER ? -EISDIR : -EINVAL;
    else
        r = replace(parent, name, exists ? &st : NULL, mode, data, len);
    if (r < 0)
        atoll_reply_file_error(reply, -r, kind, 0);
    else
        atoll_reply_done(reply);
    if (parent >= 0)
        close(parent);
}
