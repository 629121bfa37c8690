/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UNPACK: a tar stream from the client's pipe into a folder. Entries go below it and nowhere else:
 * no link on the way is followed, and what stands in a file's place is replaced, not written into.
 * All of it happens inside, so even a mistake here could reach nothing but the sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "init/files.h"
#include "wire/tar.h"
#include "base/guards.h"

enum { SKIPPED_BYTES = 24 * 1024, FOLDER_BITS = 0700 /* or nothing could be put into it */ };

struct unpack {
    struct files *f;
    int top; /* the folder, owned */
    struct tar_reader tar;
    char clean[TAR_PATH_MAX + 1];
    int parent; /* of the entry being made, owned; -1 between entries */
    int fd;     /* its temporary file, owned; -1 */
    const char *name;
    char temporary[24];
    struct writer skipped;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void blame(struct unpack *u, const char *path)
{
    size_t n = strlen(path);

    n = n < sizeof u->f->path ? n : sizeof u->f->path - 1;
    memcpy(u->f->path, path, n);
    u->f->path[n] = '\0';
}

/* The folder of the path @clean, made as far as missing; its last part in @ret_name. */
static int open_parent(int top, char *clean, const char **ret_name)
{
    int folder = openat(top, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), r = folder < 0 ? -errno : 0;
    char *slash;

    for (; r == 0 && (slash = strchr(clean, '/')); clean = slash + 1) {
        *slash = '\0';
        int next = openat(folder, clean, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (next < 0 && errno == ENOENT && mkdirat(folder, clean, 0777) == 0)
            next = openat(folder, clean, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            r = -errno;
        *slash = '/';
        close_fd(&folder);
        folder = next;
    }
    *ret_name = clean;
    return r < 0 ? r : folder;
}

static int make_folder(struct unpack *u)
{
    mode_t mode = (u->tar.entry.mode & 0777) | FOLDER_BITS;
    int fd, r = 0;

    if (strcmp(u->clean, ".") == 0)
        return 0;
    if (mkdirat(u->parent, u->name, mode) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(u->parent, u->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, mode) < 0)
        r = -errno;
    close_fd(&fd);
    return r;
}

/* A link under a temporary name, put in place at once. */
static int make_link(struct unpack *u, bool hard)
{
    char target[TAR_PATH_MAX + 1];
    const char *name;
    int from, r;

    if (!hard) {
        r = symlinkat(u->tar.entry.link, u->parent, u->temporary) < 0 ? -errno : 0;
    } else {
        if (tar_path_check(u->tar.entry.link, strlen(u->tar.entry.link), target) != TAR_PATH_OK)
            return -EINVAL;
        from = open_parent(u->top, target, &name);
        r = from < 0 ? from : linkat(from, name, u->parent, u->temporary, 0) < 0 ? -errno : 0;
        close_fd(&from);
    }
    if (r == 0 && renameat(u->parent, u->temporary, u->parent, u->name) < 0) {
        r = -errno;
        (void)unlinkat(u->parent, u->temporary, 0);
    }
    return r;
}

static int begin_file(struct unpack *u)
{
    u->fd =
        openat(u->parent, u->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return u->fd < 0 ? -errno : 0;
}

static int begin_entry(struct unpack *u)
{
    const struct tar_entry *e = &u->tar.entry;
    struct writer before = u->skipped;

    blame(u, e->path);
    if (tar_path_check(e->path, strlen(e->path), u->clean) != TAR_PATH_OK)
        return -EXDEV;
    u->parent = open_parent(u->top, u->clean, &u->name);
    if (u->parent < 0)
        return u->parent;
    files_temporary(u->temporary);
    switch (e->kind) {
    case TAR_FILE:
        return begin_file(u);
    case TAR_FOLDER:
        return make_folder(u);
    case TAR_SYMLINK:
        return make_link(u, false);
    case TAR_HARDLINK:
        return make_link(u, true);
    case TAR_FIFO:
    case TAR_CHAR_DEVICE:
    case TAR_BLOCK_DEVICE:
    case TAR_KIND__MAX:
        break;
    }
    field_put_string(&u->skipped, TAG_SKIPPED, e->path);
    if (u->skipped.bad)
        u->skipped = before;
    return 0;
}

static int end_entry(struct unpack *u)
{
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = u->tar.entry.mtime, .tv_nsec = (long)u->tar.entry.mtime_ns},
    };
    int r = 0;

    if (u->fd >= 0) {
        if (fchmod(u->fd, u->tar.entry.mode & 0777) < 0 || futimens(u->fd, times) < 0)
            r = -errno;
        if (close(u->fd) < 0 && r == 0)
            r = -errno;
        u->fd = -1;
        if (r == 0 && renameat(u->parent, u->temporary, u->parent, u->name) < 0)
            r = -errno;
        if (r < 0)
            (void)unlinkat(u->parent, u->temporary, 0);
    }
    close_fd(&u->parent);
    return r;
}

/* 0: all of @in is used; 1: the archive is at its end; a negative errno. */
static int take(struct unpack *u, struct reader in)
{
    int r = 0;

    while (r == 0) {
        switch (tar_next(&u->tar, &in)) {
        case TAR_MORE:
            return 0;
        case TAR_ENTRY:
            r = begin_entry(u);
            break;
        case TAR_DATA:
            if (u->fd >= 0)
                r = files_write_all(u->fd, u->tar.data.p, reader_left(&u->tar.data));
            break;
        case TAR_ENTRY_END:
            r = end_entry(u);
            break;
        case TAR_END:
            return 1;
        case TAR_BAD:
            blame(u, tar_fault_text(u->tar.fault));
            return -EBADMSG;
        }
    }
    return r;
}

/* To the end of the pipe, though the archive may end before: whoever writes must not be hurt. */
static int take_all(struct unpack *u, int from)
{
    struct files *f = u->f;
    int r = 0;

    for (;;) {
        struct pollfd p[2] = {{.fd = from, .events = POLLIN},
                              {.fd = INIT_CHANNEL_FD, .events = POLLIN}};

        (void)poll(p, 2, -1);
        if (!p[0].revents && p[1].revents)
            return -ECANCELED;
        ssize_t n = files_read_some(from, f->buffer, sizeof f->buffer);
        if (n == -EAGAIN)
            continue;
        if (n <= 0)
            return n < 0 ? (int)n : r;
        if (r == 0)
            r = take(u, reader_over(f->buffer, (size_t)n));
        if (r < 0)
            return r;
    }
}

static int open_top(const char *path)
{
    char made[FILES_PATH_BYTES];
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    /* Made with its parents; the part that exists may lead over links, so it is opened by path. */
    memcpy(made, path, strlen(path) + 1);
    size_t n = strlen(made);
    while (n > 1 && made[n - 1] == '/')
        made[--n] = '\0';
    for (size_t i = 1; i <= n; i++) {
        if (made[i] != '/' && made[i] != '\0')
            continue;
        char keep = made[i];
        made[i] = '\0';
        if (mkdir(made, 0777) < 0 && errno != EEXIST && errno != EROFS)
            return -errno;
        made[i] = keep;
    }
    fd = open(made, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void files_unpack(struct files *f, const struct file_request *x)
{
    static struct unpack u; /* too large for a stack, and there is one at a time */
    static uint8_t skipped[SKIPPED_BYTES];
    int pipe = f->link->n_fds == 1 ? f->link->fds[0] : -1, r;

    u.f = f;
    u.parent = u.fd = -1;
    u.skipped = writer_over(skipped, sizeof skipped);
    tar_reader_init(&u.tar);
    u.top = open_top(x->path);
    r = u.top < 0 ? u.top : pipe < 0 ? -EBADF : take_all(&u, pipe);
    if (r == 0 && tar_finish(&u.tar) != TAR_FAULT_NONE) {
        blame(&u, tar_fault_text(TAR_FAULT_TRUNCATED));
        r = -EBADMSG;
    }
    if (u.fd >= 0)
        (void)unlinkat(u.parent, u.temporary, 0);
    close_fd(&u.fd);
    close_fd(&u.parent);
    close_fd(&u.top);
    link_close_fds(f->link);
    if (r < 0)
        files_fault(f, r);
    else
        files_done(f, &u.skipped);
}
