/* SPDX-License-Identifier: Apache-2.0 */
/* Staging places: opened, filled, published, taken back and removed. */
#include "export/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "export/host_error.h"
#include "base/guards.h"

enum {
    SHOWN_BYTES = 256,
    PUBLISH_TRIES = 8, /* others may make and remove the destination meanwhile */
};

/* Names and errors */

static int fail(const struct staging_place *s, struct error *err, int code)
{
    return host_error(err, code, "'%.*s' cannot be written", SHOWN_BYTES, s->to->path);
}

/* Says that the staged @what is left behind under its own name. */
static int left_behind(const struct staging_place *s, struct error *err, int code, const char *what)
{
    int folder = (int)(strrchr(s->to->path, '/') - s->to->path);

    (void)host_error(err, code, "%s is left behind as '%.*s/%.*s'", what,
                     folder < SHOWN_BYTES ? folder : SHOWN_BYTES, s->to->path, SHOWN_BYTES,
                     s->name);
    return error_remedy(err, "Remove it");
}

/* What stands there must be of the kind that comes, so that one rename can change them. */
static int judge(const struct staging_place *s, const struct stat *st, struct error *err)
{
    const char *path = s->to->path;

    if (s->folder ? S_ISDIR(st->st_mode) : S_ISREG(st->st_mode))
        return 0;
    if (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)) {
        (void)error_set(err, ERROR_RECOVERABLE, s->folder ? ENOTDIR : EISDIR,
                        "'%.*s' cannot be written: a %s stands in its place", SHOWN_BYTES, path,
                        s->folder ? "file" : "folder");
        return error_remedy(err, "Remove it, or export under another name");
    }
    if (S_ISLNK(st->st_mode)) {
        (void)error_set(err, ERROR_RECOVERABLE, ELOOP,
                        "'%.*s' cannot be written: a symbolic link stands in its place, and links "
                        "are not followed",
                        SHOWN_BYTES, path);
        return error_remedy(err, "Remove the link, or export to the path that it names");
    }
    (void)error_set(err, ERROR_RECOVERABLE, EEXIST,
                    "'%.*s' cannot be written: a %s stands in its place", SHOWN_BYTES, path,
                    S_ISFIFO(st->st_mode)   ? "FIFO"
                    : S_ISSOCK(st->st_mode) ? "socket"
                                            : "device");
    return error_remedy(err, "Export under another name");
}

/* Return: 1 when something fit stands at the destination, 0 when nothing does, -errno with @err. */
static int look(const struct staging_place *s, struct error *err)
{
    struct stat st;

    if (fstatat(s->parent_fd, s->to->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail(s, err, errno);
    int r = judge(s, &st, err);
    return r < 0 ? r : 1;
}

/* The parent folder */

/* Return: an owned O_PATH fd of folder @name in @at, made if it is missing; or a negative errno. */
static int enter(struct staging_place *s, int at, const char *name)
{
    int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    if (mkdirat(at, name, 0777) == 0) {
        s->n_made_parents++;
        fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    if (errno != EEXIST)
        return -errno;
    s->n_made_parents = 0; /* somebody else's, so what lies above it is not empty any more */
    fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ENOLINK : -errno;
    return fd;
}

/* Walks to the folder of the destination. Links on the way are the caller's own folders' and are
 * followed; below the first folder that is made there are none. */
static int enter_parents(struct staging_place *s)
{
    _cleanup_free_ char *path = strdup(s->to->path);

    if (!path)
        return -ENOMEM;
    *strrchr(path, '/') = '\0';
    s->parent_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->parent_fd < 0)
        return -errno;
    for (char *part = path, *rest; (part = strtok_r(part, "/", &rest)); part = NULL) {
        int next = enter(s, s->parent_fd, part);

        if (next < 0)
            return next;
        fd_closep(&s->parent_fd);
        s->parent_fd = next;
    }
    return 0;
}

int staging_open(struct staging_place *s, const struct destination *to, bool folder,
                 struct error *err)
{
    *s = (struct staging_place)STAGING_PLACE_INIT;
    s->to = to;
    s->folder = folder;
    int r = enter_parents(s);
    if (r == 0 && faccessat(s->parent_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
        r = -errno;
    if (r < 0)
        return fail(s, err, -r);
    /* A folder that may not be read can be written to, but not synchronised. */
    int fd = openat(s->parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fd_closep(&s->parent_fd);
        s->parent_fd = fd;
    }
    r = look(s, err);
    return r < 0 ? r : 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether @inner's folder is what stands at the destination of @outer, or lies beneath it. */
static bool lies_beneath(const struct staging_place *inner, const struct staging_place *outer)
{
    struct stat target, at, above;
    _cleanup_fd_ int fd = fcntl(inner->parent_fd, F_DUPFD_CLOEXEC, 0);

    if (fstatat(outer->parent_fd, outer->to->name, &target, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    for (unsigned level = 0; fd >= 0 && level < PATH_MAX && fstat(fd, &at) == 0; level++) {
        if (same(&at, &target))
            return true;
        int next = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_closep(&fd);
        fd = next;
        if (fd < 0 || fstat(fd, &above) < 0 || same(&at, &above)) /* the root */
            return false;
    }
    return false;
}

bool staging_clash(const struct staging_place *a, const struct staging_place *b)
{
    struct stat in_a, in_b;

    if (fstat(a->parent_fd, &in_a) < 0 || fstat(b->parent_fd, &in_b) < 0)
        return false;
    if (same(&in_a, &in_b) && strcmp(a->to->name, b->to->name) == 0)
        return true;
    return (b->folder && lies_beneath(a, b)) || (a->folder && lies_beneath(b, a));
}

/* Making */

static int choose_name(const struct staging_place *s, char ret[static NAME_MAX + 1])
{
    uint64_t random;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -errno;
    int n = snprintf(ret, NAME_MAX + 1, "%s.%012llx.partial", s->to->name,
                     (unsigned long long)(random >> 16));
    return n > NAME_MAX ? -ENAMETOOLONG : 0;
}

/* The path that the kernel knows the parent folder by, without any links. */
static int parent_path(const struct staging_place *s, char ret[static PATH_MAX])
{
    char link[32];

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", s->parent_fd);
    ssize_t n = readlink(link, ret, PATH_MAX);
    if (n < 0)
        return -errno;
    if (n >= PATH_MAX)
        return -ENAMETOOLONG;
    ret[n] = '\0';
    return 0;
}

/* Writes the staging path to the journal. */
static int announce(const struct staging_place *s, struct journal *journal, struct error *err)
{
    char folder[PATH_MAX], path[PATH_MAX + 1 + NAME_MAX + 1];
    int r = parent_path(s, folder);

    if (r < 0)
        return fail(s, err, -r);
    (void)snprintf(path, sizeof path, strcmp(folder, "/") == 0 ? "%s%s" : "%s/%s", folder, s->name);
    return journal_add(journal, path, err);
}

static int open_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int make(struct staging_place *s)
{
    if (s->folder) {
        if (mkdirat(s->parent_fd, s->name, 0700) < 0)
            return -errno;
        s->made = true;
        s->fd = open_folder(s->parent_fd, s->name);
    } else {
        s->fd = openat(s->parent_fd, s->name,
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
        s->made = s->fd >= 0;
        s->fd = s->made ? s->fd : -errno;
    }
    if (s->fd < 0)
        return s->fd;
    /* Whatever the umask has left of it. */
    return fchmod(s->fd, s->folder ? 0700 : 0600) < 0 ? -errno : 0;
}

int staging_make(struct staging_place *s, struct journal *journal, struct error *err)
{
    int r = choose_name(s, s->name);

    if (r < 0)
        return fail(s, err, -r);
    r = announce(s, journal, err);
    if (r < 0)
        return r;
    r = make(s);
    return r < 0 ? fail(s, err, -r) : 0;
}

/* Publishing */

/* This process's umask, which umask(2) could not tell without changing it for other threads. */
static mode_t read_umask(void)
{
    static const char key[] = "\nUmask:\t";
    char text[4096];
    mode_t mask = 0;
    _cleanup_fd_ int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (n < 0)
        return 077;
    text[n] = '\0';
    const char *p = strstr(text, key);
    if (!p)
        return 077;
    for (p += sizeof key - 1; *p >= '0' && *p <= '7'; p++)
        mask = mask * 8 + (mode_t)(*p - '0');
    return mask & 0777;
}

/* The file system, or the kernel for it, does not know the flag. */
static bool is_unknown_flag(int code)
{
    return code == EINVAL || code == ENOSYS || code == EOPNOTSUPP;
}

static int move(const struct staging_place *s, const char *from, const char *to, unsigned flags)
{
    if (renameat2(s->parent_fd, from, s->parent_fd, to, flags) == 0)
        return 0;
    return -errno;
}

/* Return: 0, -EEXIST, or a negative errno. */
static int publish_new(const struct staging_place *s)
{
    int r = move(s, s->name, s->to->name, RENAME_NOREPLACE);

    return r < 0 && is_unknown_flag(-r) ? move(s, s->name, s->to->name, 0) : r;
}

/* Where nothing can be exchanged, a second link keeps the old file. It takes the staging name as
 * soon as that is free. */
static int replace_file(struct staging_place *s)
{
    char backup[NAME_MAX + 1];
    int r = choose_name(s, backup);

    if (r < 0)
        return r;
    if (linkat(s->parent_fd, s->to->name, s->parent_fd, backup, 0) < 0)
        return -errno;
    r = move(s, s->name, s->to->name, 0);
    if (r < 0) {
        (void)unlinkat(s->parent_fd, backup, 0);
        return r;
    }
    r = move(s, backup, s->name, 0);
    if (r < 0)
        (void)move(s, backup, s->to->name, 0); /* the old one is back, the new one is not */
    s->made = r == 0;
    return r;
}

static int publish_over(struct staging_place *s, struct error *err)
{
    struct stat st;
    int r = move(s, s->name, s->to->name, RENAME_EXCHANGE);

    if (r < 0 && is_unknown_flag(-r)) {
        if (s->folder) {
            (void)error_set(err, ERROR_RECOVERABLE, EOPNOTSUPP,
                            "'%.*s' cannot be replaced: its file system cannot exchange folders",
                            SHOWN_BYTES, s->to->path);
            return error_remedy(err, "Remove the folder, or export under another name");
        }
        r = replace_file(s);
    }
    if (r == -ENOENT)
        return -EAGAIN;
    if (r < 0)
        return fail(s, err, -r);
    s->published = s->exchanged = true;
    /* Something else may have been put there since it was looked at. */
    if (fstatat(s->parent_fd, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(s, err, errno);
    return judge(s, &st, err);
}

/* Return: 0; -EAGAIN, without an error: somebody else made or removed the destination. */
static int publish_once(struct staging_place *s, struct error *err)
{
    int r = look(s, err);

    if (r < 0)
        return r;
    if (r > 0)
        return publish_over(s, err);
    r = publish_new(s);
    if (r == -EEXIST)
        return -EAGAIN;
    if (r < 0)
        return fail(s, err, -r);
    s->published = true;
    s->made = false;
    return 0;
}

/* Return: 0; a negative errno when the folder's entries cannot be written to the disk. */
static int sync_parent(const struct staging_place *s)
{
    if (fsync(s->parent_fd) == 0)
        return 0;
    /* EBADF: it may not be read, and so not be opened for this; EINVAL: no such call there. */
    return errno == EBADF || errno == EINVAL || errno == EROFS ? 0 : -errno;
}

int staging_publish(struct staging_place *s, mode_t mode, struct error *err)
{
    struct error ignored = ERROR_INIT;
    struct stat st;
    int r = -EAGAIN;

    /* A folder keeps that group which the one above it hands down. */
    mode_t kept = s->folder && fstat(s->fd, &st) == 0 ? st.st_mode & S_ISGID : 0;
    if (fchmod(s->fd, (mode & 0777 & ~read_umask()) | kept) < 0)
        return fail(s, err, errno);
    for (unsigned tries = 0; r == -EAGAIN && tries < PUBLISH_TRIES; tries++)
        r = publish_once(s, err);
    if (r == -EAGAIN) {
        (void)error_set(err, ERROR_RECOVERABLE, EBUSY,
                        "'%.*s' cannot be written: somebody makes and removes it all the time",
                        SHOWN_BYTES, s->to->path);
        return error_remedy(err, "Export under another name");
    }
    if (r == 0) {
        r = sync_parent(s);
        if (r < 0)
            r = fail(s, err, -r);
    }
    if (r < 0 && s->published)
        (void)staging_undo(s, &ignored);
    return r;
}

/* Taking back */

/* Whether what stands at the destination is what this export put there. */
static bool is_ours(const struct staging_place *s)
{
    struct stat mine, there;

    return fstat(s->fd, &mine) == 0 &&
           fstatat(s->parent_fd, s->to->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           same(&mine, &there);
}

static int take_back(struct staging_place *s)
{
    int r = move(s, s->to->name, s->name, s->exchanged ? RENAME_EXCHANGE : RENAME_NOREPLACE);

    if (r == 0)
        s->made = true;
    if (r == 0 || !is_unknown_flag(-r))
        return r;
    if (!s->exchanged) {
        r = move(s, s->to->name, s->name, 0);
        s->made = r == 0;
        return r;
    }
    r = move(s, s->name, s->to->name, 0); /* a file: the new one goes by this */
    s->made = r < 0;
    return r;
}

int staging_undo(struct staging_place *s, struct error *err)
{
    if (!s->published)
        return 0;
    if (!is_ours(s)) {
        (void)error_set(err, ERROR_RECOVERABLE, ESTALE,
                        "'%.*s' cannot be taken back: somebody else has replaced it", SHOWN_BYTES,
                        s->to->path);
        return -ESTALE;
    }
    int r = take_back(s);
    if (r < 0)
        return host_error(err, -r, "'%.*s' cannot be taken back", SHOWN_BYTES, s->to->path);
    s->published = s->exchanged = false;
    (void)sync_parent(s);
    return 0;
}

/* Ends */

int staging_settle(struct staging_place *s, struct error *err)
{
    if (!s->published || !s->exchanged)
        return 0;
    int r = staging_remove_tree(s->parent_fd, s->name);
    if (r < 0)
        return left_behind(s, err, -r, "what was exported over");
    s->exchanged = s->made = false;
    return 0;
}

/* The last part of the name that the kernel knows the parent folder by. */
static int parent_name(const struct staging_place *s, char ret[static NAME_MAX + 1])
{
    char path[PATH_MAX];
    int r = parent_path(s, path);
    const char *slash = r < 0 ? NULL : strrchr(path, '/');

    if (!slash || strlen(slash + 1) > NAME_MAX)
        return r < 0 ? r : -ENAMETOOLONG;
    memcpy(ret, slash + 1, strlen(slash + 1) + 1);
    return 0;
}

/* Removes the folders that were made for it, the innermost first, as long as they are empty. */
static void remove_made_parents(struct staging_place *s)
{
    for (; s->n_made_parents > 0; s->n_made_parents--) {
        struct stat mine, there;
        char name[NAME_MAX + 1];
        _cleanup_fd_ int above = openat(s->parent_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (above < 0 || parent_name(s, name) < 0 || fstat(s->parent_fd, &mine) < 0 ||
            fstatat(above, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || !same(&mine, &there) ||
            unlinkat(above, name, AT_REMOVEDIR) < 0)
            return;
        fd_closep(&s->parent_fd);
        s->parent_fd = TAKE_FD(above);
    }
}

int staging_drop(struct staging_place *s, struct error *err)
{
    int r = 0;

    if (s->parent_fd >= 0 && s->made && !s->published)
        r = staging_remove_tree(s->parent_fd, s->name);
    if (r < 0)
        (void)left_behind(s, err, -r, "what was staged");
    else if (s->parent_fd >= 0 && !s->published)
        remove_made_parents(s);
    fd_closep(&s->fd);
    fd_closep(&s->parent_fd);
    s->made = false;
    s->n_made_parents = 0;
    return r;
}
