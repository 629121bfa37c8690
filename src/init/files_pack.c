/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PACK: a file or a tree as a tar stream into the client's pipe. Folders are held by descriptors,
 * never by path, and each entry is looked at before it is opened, so that the tree may change
 * meanwhile as it likes: what is packed was there at some moment. Whoever wants files that were
 * not written to meanwhile asks for that (FILE_STEADY).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "init/directory.h"
#include "init/files.h"
#include "wire/tar.h"
#include "base/guards.h"

enum {
    DEPTH_MAX = 256, /* folders in one another; each takes a descriptor */
    SKIPPED_BYTES = 24 * 1024,
    TICKS_MAX = 50, /* milliseconds to wait for the clock's next tick */
    GATHERED_BYTES = 64 * 1024,
    NAMES_BYTES = 32 * 1024, /* of f->buffer, for the folder being read; the rest is for content */
};

struct pack {
    struct files *f;
    int out;
    int folders[DEPTH_MAX];
    size_t lengths[DEPTH_MAX]; /* of @path, where each folder's own name ends */
    size_t depth;
    char path[TAR_PATH_MAX + 2]; /* in the archive */
    size_t length;
    struct writer skipped; /* fields of DONE */
    uint8_t *gathered;     /* what goes into the pipe with the next write … */
    size_t n_gathered;     /* … so that a small file does not cost one of its own */
    bool steady;           /* a file that is written to while it is packed is a fault … */
    bool changed;          /* … and one that shrinks always is; its path is in f->path */
};

/* All of it into the pipe, unless the client cancels or goes. */
static int put_through(struct pack *p, const void *data, size_t len)
{
    const uint8_t *at = data;

    while (len > 0) {
        ssize_t n = write(p->out, at, len);

        if (n < 0 && errno == EAGAIN) {
            struct pollfd wait[2] = {{.fd = p->out, .events = POLLOUT},
                                     {.fd = INIT_CHANNEL_FD, .events = POLLIN}};
            (void)poll(wait, 2, -1);
            if (wait[1].revents && !wait[0].revents)
                return -ECANCELED;
            continue;
        }
        if (n < 0 && errno != EINTR)
            return errno == EPIPE ? -ECANCELED : -errno;
        at += n > 0 ? (size_t)n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int flush(struct pack *p)
{
    size_t n = p->n_gathered;

    p->n_gathered = 0;
    return put_through(p, p->gathered, n);
}

static int put(struct pack *p, const void *data, size_t len)
{
    int r = len > GATHERED_BYTES - p->n_gathered ? flush(p) : 0;

    if (r < 0 || len > GATHERED_BYTES)
        return r < 0 ? r : put_through(p, data, len);
    memcpy(p->gathered + p->n_gathered, data, len);
    p->n_gathered += len;
    return 0;
}

/* The path at fault, for people: the asked one and where below it. */
static void blame(struct pack *p)
{
    size_t n = p->length < sizeof p->f->path ? p->length : sizeof p->f->path - 1;

    memcpy(p->f->path, p->path, n);
    p->f->path[n] = '\0';
}

static void skip(struct pack *p)
{
    struct writer before = p->skipped;

    field_put_string(&p->skipped, TAG_SKIPPED, p->path);
    if (p->skipped.bad) /* thousands of sockets: the first ones are named */
        p->skipped = before;
}

static int put_header(struct pack *p, const struct stat *st, enum tar_kind kind, const char *link)
{
    uint8_t head[TAR_HEADER_MAX];
    struct tar_entry e = {
        .path = p->path,
        .link = link,
        .size = kind == TAR_FILE ? (uint64_t)st->st_size : 0,
        .mtime = st->st_mtim.tv_sec,
        .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
        .mode = st->st_mode & 07777,
        .kind = kind,
    };
    size_t n = tar_header(&e, head, sizeof head);

    return n > 0 ? put(p, head, n) : -ENAMETOOLONG;
}

static void note_change(struct pack *p)
{
    if (!p->changed)
        blame(p);
    p->changed = true;
}

/* Exactly @size bytes: a file that grows is cut, one that shrinks filled up, and reported. */
static int put_content(struct pack *p, int fd, uint64_t size)
{
    uint8_t *buffer = p->f->buffer + NAMES_BYTES;
    size_t room = sizeof p->f->buffer - NAMES_BYTES;
    uint64_t left = size;
    int r = 0;

    while (r == 0 && left > 0) {
        size_t want = left < room ? (size_t)left : room;
        ssize_t n = files_read_some(fd, buffer, want);

        if (n < 0)
            return (int)n;
        if (n == 0) {
            note_change(p);
            memset(buffer, 0, want);
            n = (ssize_t)want;
        }
        r = put(p, buffer, (size_t)n);
        left -= (uint64_t)n;
    }
    return r < 0 ? r : put(p, tar_zeros, tar_padding(size));
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/*
 * Looks at the file again when its last change lies behind the clock's last tick, from which its
 * times come: a write in the same tick could not be told from none.
 */
static int look_steadily(int fd, struct stat *ret)
{
    struct timespec now;

    for (unsigned ticks = 0; ticks < TICKS_MAX; ticks++) {
        if (fstat(fd, ret) < 0 || clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
            return -errno;
        if (is_later(&now, &ret->st_ctim))
            break;
        (void)poll(NULL, 0, 1);
    }
    return 0;
}

static bool was_steady(int fd, const struct stat *before)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size == before->st_size &&
           !is_later(&st.st_ctim, &before->st_ctim) && !is_later(&before->st_ctim, &st.st_ctim);
}

static int pack_file(struct pack *p, int look, const struct stat *found)
{
    struct stat st = *found;
    int fd = files_reopen(look, O_RDONLY);
    int r = fd < 0 ? fd : p->steady ? look_steadily(fd, &st) : 0;

    if (r == 0)
        r = put_header(p, &st, TAR_FILE, "");
    if (r == 0)
        r = put_content(p, fd, (uint64_t)st.st_size);
    if (r == 0 && p->steady && !was_steady(fd, &st))
        note_change(p);
    if (fd >= 0)
        (void)close(fd);
    return r;
}

static int pack_link(struct pack *p, int look, const struct stat *st)
{
    ssize_t n = readlinkat(look, "", p->f->target, sizeof p->f->target - 1);

    if (n < 0)
        return -errno;
    p->f->target[n] = '\0';
    return put_header(p, st, TAR_SYMLINK, p->f->target);
}

static int enter_folder(struct pack *p, int look, const struct stat *st)
{
    int fd;

    if (p->depth == DEPTH_MAX)
        return -ENAMETOOLONG;
    fd = files_reopen(look, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    p->folders[p->depth] = fd;
    p->lengths[p->depth++] = p->length;
    return put_header(p, st, TAR_FOLDER, "");
}

/* One entry, already looked at; a folder is entered. */
static int pack_entry(struct pack *p, int look, const struct stat *st)
{
    switch (files_kind(st->st_mode)) {
    case FILE_REGULAR:
        return pack_file(p, look, st);
    case FILE_FOLDER:
        return enter_folder(p, look, st);
    case FILE_LINK:
        return pack_link(p, look, st);
    default:
        skip(p);
        return 0;
    }
}

/* The entry @name of the innermost folder. 0; 1: it has gone meanwhile; a negative errno. */
static int pack_name(struct pack *p, const char *name)
{
    size_t base = p->lengths[p->depth - 1], n = strlen(name);
    struct stat st;
    int look, r;

    if (base + 1 + n > TAR_PATH_MAX)
        return -ENAMETOOLONG;
    p->path[base] = '/';
    memcpy(p->path + base + 1, name, n + 1);
    p->length = base + 1 + n;
    look = openat(p->folders[p->depth - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (look < 0)
        return errno == ENOENT ? 1 : -errno;
    r = fstat(look, &st) < 0 ? -errno : pack_entry(p, look, &st);
    (void)close(look);
    return r;
}

/* Depth first. The innermost folder is read on from where a deeper one interrupted it. */
static int pack_below(struct pack *p)
{
    while (p->depth > 0) {
        size_t depth = p->depth;
        struct directory d = directory_over(p->folders[depth - 1], p->f->buffer, NAMES_BYTES);
        const char *name;
        int r = 0;

        while (r >= 0 && p->depth == depth && (name = directory_next(&d)))
            r = pack_name(p, name);
        if (r >= 0 && d.error < 0)
            r = d.error;
        if (r < 0)
            return r;
        if (p->depth > depth) {
            if (lseek(p->folders[depth - 1], d.offset, SEEK_SET) < 0)
                return -errno;
        } else {
            (void)close(p->folders[--p->depth]);
        }
    }
    return 0;
}

/* The last part of a path, as the top entry's name; the root has none. */
static void name_top(struct pack *p, const char *path)
{
    size_t end = strlen(path), begin;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    bool none = end == begin || (end - begin == 1 && path[begin] == '.') ||
                (end - begin == 2 && path[begin] == '.' && path[begin + 1] == '.');
    p->length = none ? 1 : end - begin;
    memcpy(p->path, none ? "." : path + begin, p->length);
    p->path[p->length] = '\0';
}

static int pack(struct pack *p, const struct file_request *x)
{
    struct stat st;
    int look = files_look(x->path, 0, &st), r;

    if (look < 0)
        return look;
    name_top(p, x->path);
    uint32_t kind = files_kind(st.st_mode);
    if (kind != FILE_REGULAR && kind != FILE_FOLDER) {
        (void)close(look);
        return 1; /* asked for by name, it is not left out in silence */
    }
    r = pack_entry(p, look, &st);
    (void)close(look);
    if (r == 0)
        r = pack_below(p);
    if (r < 0 && p->length > 0 && p->depth > 0)
        blame(p);
    if (r == 0)
        r = put(p, tar_zeros, TAR_END_BYTES);
    return r < 0 ? r : flush(p);
}

void files_pack(struct files *f, const struct file_request *x)
{
    static struct pack p; /* too large for a stack, and there is one at a time */
    static uint8_t skipped[SKIPPED_BYTES], gathered[GATHERED_BYTES];
    struct stat st;
    int r;

    p = (struct pack){.f = f,
                      .out = f->link->n_fds == 1 ? f->link->fds[0] : -1,
                      .steady = x->flags & FILE_STEADY,
                      .gathered = gathered};
    p.skipped = writer_over(skipped, sizeof skipped);
    r = p.out < 0 ? -EBADF : pack(&p, x);
    while (p.depth > 0)
        (void)close(p.folders[--p.depth]);
    link_close_fds(f->link); /* the end of the stream */
    if (r == 1 && stat(x->path, &st) == 0)
        files_fault_kind(f, files_kind(st.st_mode));
    else if (r != 0)
        files_fault(f, r == 1 ? -ENOENT : r);
    else if (p.changed)
        files_fault(f, -ESTALE);
    else
        files_done(f, &p.skipped);
}
