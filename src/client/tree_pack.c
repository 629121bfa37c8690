/* SPDX-License-Identifier: Apache-2.0 */
/* Packing a tree: a walk on a stack of open folders, into one buffer. */
#include "client/tree_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "wire/tar.h"
#include "base/guards.h"

/* A folder that is being read; its path is the beginning of the current one. */
struct level {
    DIR *dir;
    size_t path_len;
};

struct tree_pack {
    struct tree_listener listener;
    struct tree_totals totals;
    char *host;                  /* the path that was named */
    char path[TAR_PATH_MAX + 1]; /* of the current entry, in the archive */
    size_t top_len;              /* so much of it stands for the named path */
    struct level levels[TREE_DEPTH_MAX];
    size_t depth;
    int file;       /* the current one; -EBADF when it has ended before its size */
    uint64_t left;  /* bytes of it to come */
    size_t padding; /* after them */
    bool ended;
    struct error late; /* of a file that has shrunk */
    size_t at, end;    /* bytes in the buffer that wait to be written */
    uint8_t buffer[TREE_BUFFER_BYTES];
};

/* The current entry, by its path on the host. */
static void show(const struct tree_pack *p, char buf[static TREE_NAME_BYTES])
{
    tree_show(buf, p->host, p->path + p->top_len);
}

static int fail(const struct tree_pack *p, struct error *err, int code)
{
    char name[TREE_NAME_BYTES];

    show(p, name);
    switch (code) {
    case ENOMEM:
        return error_set(err, ERROR_TERMINAL, code, "out of memory while reading %s", name);
    case EMFILE:
    case ENFILE:
        (void)error_set(err, ERROR_RECOVERABLE, code, "too many files are open to read %s", name);
        return error_remedy(err, "Raise the limit of open files, or copy a part of the tree");
    case EACCES:
    case EPERM:
        (void)error_set(err, ERROR_RECOVERABLE, code, "there is no permission to read %s", name);
        return error_remedy(err, "Make it readable, or copy what lies beside it");
    default:
        return error_set(err, ERROR_RECOVERABLE, code, "%s cannot be read: %s", name,
                         strerror(code));
    }
}

static void skip(struct tree_pack *p, const char *why)
{
    char name[TREE_NAME_BYTES];

    p->totals.skipped++;
    show(p, name);
    if (p->listener.skipped)
        p->listener.skipped(p->listener.arg, name, why);
}

/* The same inode, opened for reading: nothing is looked up by name again. */
static int reopen(int fd, int flags)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int r = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);

    return r < 0 ? -errno : r;
}

static int push_folder(struct tree_pack *p, int fd, struct error *err)
{
    char name[TREE_NAME_BYTES];

    if (p->depth == TREE_DEPTH_MAX) {
        show(p, name);
        (void)error_set(err, ERROR_RECOVERABLE, ELOOP, "%s lies more than %d folders deep", name,
                        TREE_DEPTH_MAX);
        return error_remedy(err, "Copy the folders below it by themselves");
    }
    _cleanup_fd_ int opened = reopen(fd, O_DIRECTORY);
    if (opened < 0)
        return fail(p, err, -opened);
    DIR *dir = fdopendir(opened);
    if (!dir)
        return fail(p, err, errno);
    (void)TAKE_FD(opened);
    p->levels[p->depth++] = (struct level){dir, strlen(p->path)};
    return 0;
}

/* Why an inode of this type is not copied. */
static const char *special(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFIFO:
        return "it is a FIFO";
    case S_IFSOCK:
        return "it is a socket";
    case S_IFBLK:
    case S_IFCHR:
        return "it is a device";
    default:
        return "it is neither a file nor a folder nor a link";
    }
}

/* Opens what the entry needs and says what it is. Return: 1, 0 if it is skipped, -errno. */
static int open_entry(struct tree_pack *p, int fd, const struct stat *st, struct tar_entry *e,
                      char link[static TAR_PATH_MAX + 1], struct error *err)
{
    ssize_t n;
    int r;

    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        e->kind = TAR_FILE;
        e->size = (uint64_t)st->st_size;
        r = reopen(fd, 0);
        if (r < 0)
            return fail(p, err, -r);
        p->file = r;
        p->totals.files++;
        return 1;
    case S_IFDIR:
        e->kind = TAR_FOLDER;
        p->totals.folders++;
        r = push_folder(p, fd, err);
        return r < 0 ? r : 1;
    case S_IFLNK:
        e->kind = TAR_SYMLINK;
        n = readlinkat(fd, "", link, TAR_PATH_MAX);
        if (n < 0)
            return fail(p, err, errno);
        link[n] = '\0';
        p->totals.links++;
        return 1;
    default:
        skip(p, special(st->st_mode));
        return 0;
    }
}

/* Writes the header of what @fd, opened by O_PATH, is. */
static int add_entry(struct tree_pack *p, int fd, struct error *err)
{
    char link[TAR_PATH_MAX + 1] = "";
    struct stat st;

    if (fstat(fd, &st) < 0)
        return fail(p, err, errno);
    struct tar_entry e = {
        .path = p->path,
        .link = link,
        .mode = st.st_mode & 07777,
        .mtime = st.st_mtim.tv_sec,
        .mtime_ns = (uint32_t)st.st_mtim.tv_nsec,
    };
    int r = open_entry(p, fd, &st, &e, link, err);
    if (r <= 0)
        return r;
    size_t n = tar_header(&e, p->buffer + p->end, sizeof p->buffer - p->end);
    if (n == 0)
        return fail(p, err, EOVERFLOW);
    p->end += n;
    p->left = e.size;
    p->padding = tar_padding(e.size);
    if (p->left == 0)
        fd_closep(&p->file);
    return 0;
}

/* The next name in the innermost folder, or the end of that folder. */
static int next_child(struct tree_pack *p, struct error *err)
{
    const struct level *l = &p->levels[p->depth - 1];
    const struct dirent *d;
    char name[TREE_NAME_BYTES];

    p->path[l->path_len] = '\0';
    errno = 0;
    d = readdir(l->dir);
    if (!d && errno != 0)
        return fail(p, err, errno);
    if (!d) {
        dir_closep(&p->levels[--p->depth].dir);
        return 0;
    }
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    size_t n = strlen(d->d_name);
    if (l->path_len + 1 + n >= TAR_PATH_MAX) {
        tree_show(name, p->path, d->d_name);
        return error_set(err, ERROR_RECOVERABLE, ENAMETOOLONG,
                         "the path of %s is longer than %d bytes", name, TAR_PATH_MAX - 1);
    }
    p->path[l->path_len] = '/';
    memcpy(p->path + l->path_len + 1, d->d_name, n + 1);
    _cleanup_fd_ int fd = path_open_plain(dirfd(l->dir), d->d_name, O_PATH | O_NOFOLLOW, 0);
    if (fd == -ENOENT) {
        skip(p, "it was removed meanwhile");
        return 0;
    }
    return fd < 0 ? fail(p, err, -fd) : add_entry(p, fd, err);
}

static void note_shrunk(struct tree_pack *p)
{
    char name[TREE_NAME_BYTES];

    fd_closep(&p->file);
    if (p->late.code != 0)
        return;
    show(p, name);
    (void)error_set(&p->late, ERROR_RECOVERABLE, EIO,
                    "%s became shorter while it was copied, so the copy ends with zeros", name);
    (void)error_remedy(&p->late, "Copy it again when nobody writes to it");
}

static int add_data(struct tree_pack *p, struct error *err)
{
    size_t room = sizeof p->buffer - p->end;
    size_t n = p->left < room ? (size_t)p->left : room;

    if (p->file < 0) {
        memset(p->buffer + p->end, 0, n);
    } else {
        ssize_t r = read(p->file, p->buffer + p->end, n);

        if (r < 0)
            return errno == EINTR ? 0 : fail(p, err, errno);
        if (r == 0) {
            note_shrunk(p);
            return 0;
        }
        n = (size_t)r;
    }
    p->end += n;
    p->left -= n;
    p->totals.bytes += n;
    if (p->left == 0)
        fd_closep(&p->file);
    return 0;
}

static void add_zeros(struct tree_pack *p, size_t n)
{
    memset(p->buffer + p->end, 0, n);
    p->end += n;
}

/* Fills the empty buffer as far as there is something. */
static int fill(struct tree_pack *p, struct error *err)
{
    int r = 0;

    p->at = p->end = 0;
    while (r == 0) {
        size_t room = sizeof p->buffer - p->end;

        if (p->left > 0 && room > 0) {
            r = add_data(p, err);
        } else if (p->left == 0 && p->padding <= room && p->padding > 0) {
            add_zeros(p, p->padding);
            p->padding = 0;
        } else if (p->left > 0 || p->padding > 0 || room < TAR_HEADER_MAX || p->ended) {
            break;
        } else if (p->depth > 0) {
            r = next_child(p, err);
        } else {
            add_zeros(p, TAR_END_BYTES);
            p->ended = true;
        }
    }
    return r;
}

int tree_pack_step(struct tree_pack *p, int out_fd, struct error *err)
{
    for (size_t moved = 0; moved < TREE_STEP_BYTES;) {
        if (p->at == p->end) {
            int r = fill(p, err);

            if (r < 0)
                return r;
            if (p->end == 0)
                break;
        }
        ssize_t n = write(out_fd, p->buffer + p->at, p->end - p->at);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno == EPIPE)
            return error_set(err, ERROR_RECOVERABLE, EPIPE,
                             "the copy of %s was not taken to its end", p->host);
        if (n < 0 && errno != EINTR)
            return error_set(err, ERROR_RECOVERABLE, errno, "the copy of %s cannot be sent: %s",
                             p->host, strerror(errno));
        p->at += n > 0 ? (size_t)n : 0;
        moved += n > 0 ? (size_t)n : 0;
    }
    if (!p->ended || p->at < p->end)
        return 0;
    if (p->late.code != 0)
        *err = p->late;
    return p->late.code != 0 ? -p->late.code : 1;
}

/* Opens the path that was named, through whatever links it has. */
static int open_top(struct tree_pack *p, struct error *err)
{
    _cleanup_fd_ int fd = open(p->host, O_PATH | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return error_set(err, ERROR_RECOVERABLE, errno, "there is no file or folder %s", p->host);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(p, err, errno);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return error_set(err, ERROR_RECOVERABLE, EINVAL, "%s cannot be copied: %s", p->host,
                         special(st.st_mode));
    if (strcmp(p->path, ".") == 0 && !S_ISDIR(st.st_mode))
        return error_set(err, ERROR_RECOVERABLE, ENOTDIR, "%s is not a folder", p->host);
    return add_entry(p, fd, err);
}

int tree_pack_new(const struct tree_pack_options *o, struct tree_pack **ret, struct error *err)
{
    struct tree_pack *p = calloc(1, sizeof *p);
    char *host = strdup(o->path);

    if (!p || !host) {
        free(p);
        free(host);
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    }
    p->file = -EBADF;
    p->listener = o->listener;
    p->host = host;
    enum tar_path verdict = tar_path_check(o->name, strlen(o->name), p->path);
    int r = verdict == TAR_PATH_OK
                ? 0
                : error_set(err, ERROR_USAGE, EINVAL, "\"%.200s\" cannot be a name in a copy: %s",
                            o->name, tar_path_text(verdict));
    if (r == 0) {
        p->top_len = strlen(p->path);
        r = open_top(p, err);
    }
    if (r < 0) {
        tree_pack_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

const struct tree_totals *tree_pack_totals(const struct tree_pack *p)
{
    return &p->totals;
}

void tree_pack_free(struct tree_pack *p)
{
    if (!p)
        return;
    while (p->depth > 0)
        dir_closep(&p->levels[--p->depth].dir);
    fd_closep(&p->file);
    free(p->host);
    free(p);
}
