/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking a tree: each entry is judged, its folder walked to, and what it is put there. */
#include "client/tree_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "client/tree_folders.h"
#include "wire/tar.h"
#include "base/guards.h"

enum {
    ENTRIES_MAX = 4 * 1024 * 1024, /* each may cost an inode, however small it is */
    TEMPORARY_BYTES = 32,
    TEMPORARY_TRIES = 16,
    TRAILING_BYTES_MAX = 64 * 1024, /* read after the end, for writers that fill up a record */
};

struct tree_unpack {
    struct tree_listener listener;
    struct tree_totals totals;
    int root;
    char *root_name, *name;
    uint64_t max_bytes, entries;
    struct tar_reader tar;

    struct tree_folders folders;
    bool ended; /* the end of the archive has been read */

    bool has_top;                /* the top of the archive is known, where it matters */
    char top[NAME_MAX + 1];      /* "." or its first part */
    char path[TAR_PATH_MAX + 1]; /* of the current entry beneath the root */
    const char *base;            /* its last part */

    int parent;                         /* of the last entry; -EBADF: none */
    char parent_path[TAR_PATH_MAX + 1]; /* the path of that */

    int file;                        /* being written */
    char temporary[TEMPORARY_BYTES]; /* its name in @parent, or empty */
    uint8_t buffer[TREE_BUFFER_BYTES];
};

/* Errors */

static int fail_text(const struct tree_unpack *u, struct error *err, enum error_class cls, int code,
                     const char *path, const char *why)
{
    char name[TREE_NAME_BYTES];

    tree_show(name, u->root_name, path);
    return error_set(err, cls, code, "%s cannot be written: %s", name, why);
}

/* What a failed call means for @path. */
static int fail(const struct tree_unpack *u, struct error *err, int code, const char *path)
{
    static const struct {
        int code;
        const char *why, *remedy;
    } known[] = {
        {ENOSPC, "the disk is full", "Free space on it, or copy to another one"},
        {EDQUOT, "the disk quota is used up", "Free space, or copy to another disk"},
        {EROFS, "it lies on a file system that is read-only", "Copy to another folder"},
        {EACCES, "there is no permission", "Copy to a folder in which you may write"},
        {EPERM, "that is not permitted", "Copy to a folder in which you may write"},
        {EFBIG, "it is larger than a file may be there", "Copy to another disk"},
        {EISDIR, "a folder stands in its place", "Remove the folder, or copy to another one"},
        {EEXIST, "something else stands in its place", "Remove it, or copy to another folder"},
        {ENOTDIR, "a file stands in the place of a folder",
         "Remove the file, or copy to another folder"},
        {ELOOP, "a symbolic link stands in the place of a folder, and links are not followed",
         "Remove the link, or copy to the folder that it names"},
        {EXDEV, "its path leaves the folder", "Copy again when nobody moves folders in there"},
        {ENAMETOOLONG, "its name is too long there", "Copy to a folder with a shorter path"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].code == code) {
            (void)fail_text(u, err, ERROR_RECOVERABLE, code, path, known[i].why);
            return error_remedy(err, "%s", known[i].remedy);
        }
    return fail_text(u, err, code == ENOMEM ? ERROR_TERMINAL : ERROR_RECOVERABLE, code, path,
                     code == ENOMEM ? "out of memory" : strerror(code));
}

static int fail_archive(const struct tree_unpack *u, struct error *err)
{
    return error_set(err, ERROR_RECOVERABLE, EBADMSG,
                     "the copy cannot be read any further: at byte %llu, %s",
                     (unsigned long long)u->tar.offset, tar_fault_text(u->tar.fault));
}

static void skip(struct tree_unpack *u, const char *why)
{
    char name[TREE_NAME_BYTES];

    u->totals.skipped++;
    tree_show(name, u->root_name, u->path);
    if (u->listener.skipped)
        u->listener.skipped(u->listener.arg, name, why);
}

/* Places */

/* Makes u->parent the folder that u->path lies in, and u->base its name there. */
static int enter_parent(struct tree_unpack *u, struct error *err)
{
    char *slash = strrchr(u->path, '/');
    char parent[TAR_PATH_MAX + 1] = ".";

    u->base = slash ? slash + 1 : u->path;
    if (slash) {
        memcpy(parent, u->path, (size_t)(slash - u->path));
        parent[slash - u->path] = '\0';
    }
    if (u->parent >= 0 && strcmp(parent, u->parent_path) == 0)
        return 0;
    fd_closep(&u->parent);
    u->parent = tree_folders_walk(&u->folders, u->root, parent);
    if (u->parent == -EOVERFLOW)
        return fail_text(u, err, ERROR_TOO_LARGE, EOVERFLOW, parent, "there are too many folders");
    if (u->parent < 0)
        return fail(u, err, -u->parent, parent);
    memcpy(u->parent_path, parent, strlen(parent) + 1);
    return 0;
}

/* Files and links */

static void new_temporary(struct tree_unpack *u)
{
    uint64_t random = 0;

    (void)!getrandom(&random, sizeof random, 0); /* only against names that are there */
    (void)snprintf(u->temporary, sizeof u->temporary, ".copy-%016llx", (unsigned long long)random);
}

static void drop_temporary(struct tree_unpack *u)
{
    fd_closep(&u->file);
    if (u->temporary[0] != '\0')
        (void)unlinkat(u->parent, u->temporary, 0);
    u->temporary[0] = '\0';
}

/* Gives the temporary file its name. */
static int put_in_place(struct tree_unpack *u, struct error *err)
{
    if (renameat(u->parent, u->temporary, u->parent, u->base) < 0)
        return fail(u, err, errno, u->path);
    u->temporary[0] = '\0';
    return 0;
}

/* A folder in the way is found before the data comes; renameat() would find it after. */
static int check_place(const struct tree_unpack *u, struct error *err)
{
    struct stat st;

    if (fstatat(u->parent, u->base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return fail(u, err, EISDIR, u->path);
    return 0;
}

/*
 * Makes something under a temporary name by @make, which gets a number for that: 0, an fd, or a
 * negative errno.
 */
static int make_temporary(struct tree_unpack *u, int (*make)(struct tree_unpack *u, int arg),
                          int arg, struct error *err)
{
    int r = check_place(u, err);

    if (r < 0)
        return r;
    r = -EEXIST;
    for (unsigned tries = 0; r == -EEXIST && tries < TEMPORARY_TRIES; tries++) {
        new_temporary(u);
        r = make(u, arg);
    }
    if (r >= 0)
        return r;
    u->temporary[0] = '\0'; /* it is not ours to remove */
    return fail(u, err, -r, u->path);
}

static int make_file(struct tree_unpack *u, int arg)
{
    (void)arg;
    return path_open_plain(u->parent, u->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

static int make_symlink(struct tree_unpack *u, int arg)
{
    (void)arg;
    return symlinkat(u->tar.entry.link, u->parent, u->temporary) < 0 ? -errno : 0;
}

static int make_hardlink(struct tree_unpack *u, int target)
{
    char path[32];

    /* The inode that was judged, whatever has its name now. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", target);
    return linkat(AT_FDCWD, path, u->parent, u->temporary, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int begin_file(struct tree_unpack *u, struct error *err)
{
    int r = make_temporary(u, make_file, 0, err);

    if (r < 0)
        return r;
    u->file = r;
    u->totals.files++;
    return 0;
}

static int write_data(struct tree_unpack *u, struct reader data, struct error *err)
{
    while (reader_left(&data) > 0) {
        ssize_t n = write(u->file, data.p, reader_left(&data));

        if (n < 0 && errno != EINTR)
            return fail(u, err, errno, u->path);
        if (n > 0) {
            (void)reader_take(&data, (size_t)n);
            u->totals.bytes += (uint64_t)n;
        }
    }
    return 0;
}

static int end_file(struct tree_unpack *u, struct error *err)
{
    const struct tar_entry *e = &u->tar.entry;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = e->mtime, .tv_nsec = e->mtime_ns}};

    if (fchmod(u->file, e->mode & 0777) < 0 || futimens(u->file, times) < 0)
        return fail(u, err, errno, u->path);
    int fd = TAKE_FD(u->file);
    if (close(fd) < 0 && errno != EINTR) /* where quotas of network file systems are told */
        return fail(u, err, errno, u->path);
    return put_in_place(u, err);
}

static int add_symlink(struct tree_unpack *u, struct error *err)
{
    const struct tar_entry *e = &u->tar.entry;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = e->mtime, .tv_nsec = e->mtime_ns}};

    if (!tar_link_stays(u->path, e->link, u->name ? 1 : 0)) {
        skip(u, "it is a symbolic link that may lead out of the copied tree");
        return 0;
    }
    int r = enter_parent(u, err);
    if (r == 0)
        r = make_temporary(u, make_symlink, 0, err);
    if (r < 0)
        return r;
    (void)utimensat(u->parent, u->temporary, times, AT_SYMLINK_NOFOLLOW); /* not everywhere */
    u->totals.links++;
    return put_in_place(u, err);
}

static int map_path(struct tree_unpack *u, const char *path, char ret[static TAR_PATH_MAX + 1],
                    struct error *err);

static int add_hardlink(struct tree_unpack *u, struct error *err)
{
    char target[TAR_PATH_MAX + 1];
    struct stat st;
    int r = map_path(u, u->tar.entry.link, target, err);

    if (r < 0)
        return r;
    _cleanup_fd_ int fd = path_open_plain(u->root, target, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(u, err, fd < 0 ? -fd : errno, u->path);
    if (!S_ISREG(st.st_mode))
        return fail_text(u, err, ERROR_RECOVERABLE, EINVAL, u->path,
                         "it is a hard link to something that is not a file");
    r = enter_parent(u, err);
    if (r == 0)
        r = make_temporary(u, make_hardlink, fd, err);
    if (r < 0)
        return r;
    if (renameat(u->parent, u->temporary, u->parent, u->base) < 0)
        return fail(u, err, errno, u->path);
    drop_temporary(u); /* rename(2) leaves it if both are the same file already */
    u->totals.files++;
    return 0;
}

static int add_folder(struct tree_unpack *u, struct error *err)
{
    const struct tar_entry *e = &u->tar.entry;
    int r = enter_parent(u, err);

    if (r < 0 || strcmp(u->path, ".") == 0)
        return r;
    r = tree_folders_make(&u->folders, u->parent, u->base, u->path);
    if (r == -EOVERFLOW)
        return fail_text(u, err, ERROR_TOO_LARGE, EOVERFLOW, u->path, "there are too many folders");
    if (r == 0) {
        _cleanup_fd_ int fd = path_open_plain(u->parent, u->base, O_PATH | O_DIRECTORY, 0);
        r = fd < 0 ? fd : 0;
    }
    if (r >= 0)
        r = tree_folders_describe(&u->folders, u->path, e->mode & 0777, e->mtime, e->mtime_ns);
    if (r < 0)
        return fail(u, err, -r, u->path);
    u->totals.folders++;
    return 0;
}

/* Entries */

/* Puts the name that the top shall have in the place of the one it has in the archive. */
static int rename_top(struct tree_unpack *u, const char *clean, char ret[static TAR_PATH_MAX + 1],
                      struct error *err)
{
    size_t first = strcspn(clean, "/");
    const char *rest = clean;

    if (!u->has_top) {
        memcpy(u->top, clean, first);
        u->top[first] = '\0';
        u->has_top = true;
    }
    if (strcmp(u->top, ".") != 0) {
        if (strlen(u->top) != first || memcmp(u->top, clean, first) != 0)
            return fail_text(u, err, ERROR_RECOVERABLE, EBADMSG, clean,
                             "it lies beside the tree that is copied");
        rest = clean + first + (clean[first] == '/');
    } else if (strcmp(clean, ".") == 0) {
        rest = "";
    }
    size_t n = strlen(u->name), len = strlen(rest);
    if (n + 1 + len >= TAR_PATH_MAX)
        return fail(u, err, ENAMETOOLONG, clean);
    memcpy(ret, u->name, n);
    if (len > 0)
        ret[n++] = '/';
    memcpy(ret + n, rest, len + 1);
    return 0;
}

/* From a path in the archive to one beneath the root. */
static int map_path(struct tree_unpack *u, const char *path, char ret[static TAR_PATH_MAX + 1],
                    struct error *err)
{
    char clean[TAR_PATH_MAX + 1], name[TREE_NAME_BYTES];
    enum tar_path verdict = tar_path_check(path, strlen(path), clean);

    if (verdict != TAR_PATH_OK) {
        tree_show(name, "", path);
        return error_set(err, ERROR_RECOVERABLE, EBADMSG,
                         "the copy has a path that is not taken, \"%s\": %s", name,
                         tar_path_text(verdict));
    }
    if (u->name)
        return rename_top(u, clean, ret, err);
    memcpy(ret, clean, strlen(clean) + 1);
    return 0;
}

static int check_limits(struct tree_unpack *u, uint64_t size, struct error *err)
{
    if (++u->entries > ENTRIES_MAX)
        return error_set(err, ERROR_TOO_LARGE, EFBIG, "the copy has more than %d files and folders",
                         ENTRIES_MAX);
    if (u->max_bytes == 0 || size <= u->max_bytes - u->totals.bytes)
        return 0;
    (void)error_set(err, ERROR_TOO_LARGE, EFBIG, "the copy is larger than its limit of %llu bytes",
                    (unsigned long long)u->max_bytes);
    return error_remedy(err, "Copy a part of it, or raise the limit");
}

static int begin_entry(struct tree_unpack *u, struct error *err)
{
    const struct tar_entry *e = &u->tar.entry;
    int r = map_path(u, e->path, u->path, err);

    if (r == 0)
        r = check_limits(u, e->size, err);
    if (r < 0)
        return r;
    if (e->kind != TAR_FOLDER && strcmp(u->path, ".") == 0)
        return fail(u, err, EISDIR, "");
    switch (e->kind) {
    case TAR_FILE:
        r = enter_parent(u, err);
        return r < 0 ? r : begin_file(u, err);
    case TAR_FOLDER:
        return add_folder(u, err);
    case TAR_SYMLINK:
        return add_symlink(u, err);
    case TAR_HARDLINK:
        return add_hardlink(u, err);
    case TAR_FIFO:
        skip(u, "it is a FIFO");
        return 0;
    case TAR_CHAR_DEVICE:
    case TAR_BLOCK_DEVICE:
        skip(u, "it is a device");
        return 0;
    case TAR_KIND__MAX:
        break;
    }
    return 0;
}

int tree_unpack_feed(struct tree_unpack *u, const void *data, size_t len, struct error *err)
{
    struct reader in = reader_over(data, len);

    for (int r = 0;;) {
        switch (tar_next(&u->tar, &in)) {
        case TAR_MORE:
            return 0;
        case TAR_ENTRY:
            r = begin_entry(u, err);
            break;
        case TAR_DATA:
            r = write_data(u, u->tar.data, err);
            break;
        case TAR_ENTRY_END:
            r = u->file >= 0 ? end_file(u, err) : 0;
            break;
        case TAR_END:
            u->ended = true;
            return 1;
        case TAR_BAD:
            r = fail_archive(u, err);
            break;
        }
        if (r < 0) {
            drop_temporary(u);
            return r;
        }
    }
}

int tree_unpack_finish(struct tree_unpack *u, struct error *err)
{
    drop_temporary(u);
    if (tar_finish(&u->tar) != TAR_FAULT_NONE)
        return fail_archive(u, err);
    int r = tree_folders_settle(&u->folders, u->root);
    return r < 0 ? error_set(err, ERROR_RECOVERABLE, -r,
                             "the mode or time of a folder in %s cannot be set: %s",
                             u->root_name[0] ? u->root_name : "the copy", strerror(-r))
                 : 0;
}

int tree_unpack_step(struct tree_unpack *u, int in_fd, struct error *err)
{
    size_t moved = 0, trailing = 0;

    while (trailing < TRAILING_BYTES_MAX) {
        ssize_t n = read(in_fd, u->buffer, sizeof u->buffer);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || (n < 0 && u->ended))
            break;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0)
            return error_set(err, ERROR_RECOVERABLE, errno, "the copy cannot be received: %s",
                             strerror(errno));
        trailing += u->ended ? (size_t)n : 0;
        moved += (size_t)n;
        int r = tree_unpack_feed(u, u->buffer, (size_t)n, err);
        if (r < 0)
            return r;
        if (!u->ended && moved >= TREE_STEP_BYTES)
            return 0;
    }
    int r = tree_unpack_finish(u, err);
    return r < 0 ? r : 1;
}

/* Beginning and end */

static bool is_one_name(const char *name)
{
    char clean[TAR_PATH_MAX + 1];

    return tar_path_check(name, strlen(name), clean) == TAR_PATH_OK && !strchr(name, '/') &&
           strcmp(name, ".") != 0;
}

int tree_unpack_new(const struct tree_unpack_options *o, struct tree_unpack **ret,
                    struct error *err)
{
    struct tree_unpack *u;

    if (o->name && !is_one_name(o->name))
        return error_set(err, ERROR_USAGE, EINVAL, "\"%.200s\" cannot be the name of a file",
                         o->name);
    u = calloc(1, sizeof *u);
    if (!u)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    u->parent = u->file = -EBADF;
    u->listener = o->listener;
    u->max_bytes = o->max_bytes;
    u->root_name = strdup(o->folder ? o->folder : "");
    u->name = o->name ? strdup(o->name) : NULL;
    u->root = fcntl(o->folder_fd, F_DUPFD_CLOEXEC, 0);
    tar_reader_init(&u->tar);
    int code = u->root < 0 ? errno : ENOMEM;
    if (u->root < 0 || !u->root_name || (o->name && !u->name)) {
        tree_unpack_free(u);
        return error_set(err, ERROR_TERMINAL, code, "a copy cannot be begun: %s", strerror(code));
    }
    *ret = u;
    return 0;
}

const struct tree_totals *tree_unpack_totals(const struct tree_unpack *u)
{
    return &u->totals;
}

void tree_unpack_free(struct tree_unpack *u)
{
    if (!u)
        return;
    drop_temporary(u);
    (void)tree_folders_settle(&u->folders, u->root); /* after an error, as far as it goes */
    fd_closep(&u->parent);
    fd_closep(&u->root);
    free(u->root_name);
    free(u->name);
    free(u);
}
