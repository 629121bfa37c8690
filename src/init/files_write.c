/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITE: a whole file in one step. The content goes to a temporary file in the target's folder,
 * which gets the mode, owner and extended attributes of the file that it replaces, and is renamed
 * over it at the end. Whoever reads meanwhile has the old file, whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "init/files.h"
#include "base/guards.h"

enum {
    LINKS_MAX = 40, /* as the kernel follows: path_resolution(7) */
    NAME_BYTES = 256,
    XATTR_NAMES_BYTES = 64 * 1024,
    PERMISSIONS_NEW = 0666 & ~022,
};

/* Where a file is to be put. */
struct place {
    int folder; /* owned */
    char name[NAME_BYTES];
    int old; /* O_PATH of the file that stands there, owned; or -1 */
    struct stat old_stat;
};

static void place_done(struct place *p)
{
    if (p->folder >= 0)
        (void)close(p->folder);
    if (p->old >= 0)
        (void)close(p->old);
}

/* Enters @name of *@folder, making it if need be; *@folder is replaced. 0 or a negative errno. */
static int enter(int *folder, const char *name)
{
    int next = openat(*folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (next < 0 && errno == ENOENT) {
        if (mkdirat(*folder, name, 0777) < 0 && errno != EEXIST)
            return -errno;
        next = openat(*folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (next < 0)
        return -errno;
    (void)close(*folder);
    *folder = next;
    return 0;
}

/*
 * Walks @path (which is taken apart) from @p->folder to the folder of its last part, making what is
 * missing, and leaves that part in @p->name. A slash at the end, "." and ".." name a folder.
 */
static int walk_to_parent(struct place *p, char *path)
{
    int r = 0;

    if (path[0] == '/') {
        int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (root < 0)
            return -errno;
        (void)close(p->folder);
        p->folder = root;
    }
    path += strspn(path, "/");
    for (char *slash; r == 0 && (slash = strchr(path, '/'));
         path = slash + 1 + strspn(slash + 1, "/")) {
        *slash = '\0';
        if (path[0] != '\0')
            r = enter(&p->folder, path);
    }
    if (r < 0)
        return r;
    if (path[0] == '\0' || strcmp(path, ".") == 0 || strcmp(path, "..") == 0)
        return -EISDIR;
    if (strlen(path) >= sizeof p->name)
        return -ENAMETOOLONG;
    memcpy(p->name, path, strlen(path) + 1);
    return 0;
}

/* Looks at what stands there. 1: a link, whose target is in @f->target; 0: this is the place. */
static int look(struct files *f, struct place *p)
{
    int fd = openat(p->folder, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    p->old = fd;
    if (fstat(fd, &p->old_stat) < 0)
        return -errno;
    if (!S_ISLNK(p->old_stat.st_mode))
        return 0;
    ssize_t n = readlinkat(fd, "", f->target, sizeof f->target - 1);
    (void)close(fd);
    p->old = -1;
    if (n < 0)
        return -errno;
    f->target[n] = '\0';
    return 1;
}

/* Follows links to the place that a write to @path means, as open(2) with O_CREAT would. */
static int find_place(struct files *f, const char *path, struct place *p)
{
    int r;

    *p = (struct place){.folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), .old = -1};
    if (p->folder < 0)
        return -errno;
    memcpy(f->target, path, strlen(path) + 1);
    for (int links = 0; links <= LINKS_MAX; links++) {
        r = walk_to_parent(p, f->target);
        if (r == 0)
            r = look(f, p);
        if (r <= 0)
            return r;
    }
    return -ELOOP;
}

/* Whether the old file may be written to: replacing it must need no less. */
static int may_replace(const struct place *p)
{
    int fd = files_reopen(p->old, O_WRONLY);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0 || fd == -ETXTBSY ? 0 : fd; /* a running program can be replaced, not written */
}

/* Extended attributes of the user's; those of the system that cannot be had are the system's. */
static int copy_attributes(struct files *f, const struct place *p, int to)
{
    char *names = (char *)f->buffer, *value = names + XATTR_NAMES_BYTES;
    int from = files_reopen(p->old, O_RDONLY);
    ssize_t n = from < 0 ? 0 : flistxattr(from, names, XATTR_NAMES_BYTES);
    int r = 0;

    for (ssize_t at = 0; r == 0 && at < n; at += (ssize_t)strlen(names + at) + 1) {
        ssize_t len = fgetxattr(from, names + at, value, FILES_BUFFER_BYTES - XATTR_NAMES_BYTES);

        if (len >= 0 && fsetxattr(to, names + at, value, (size_t)len, 0) < 0 &&
            strncmp(names + at, "user.", 5) == 0)
            r = -errno;
    }
    if (from >= 0)
        (void)close(from);
    return r;
}

static int dress(struct files *f, const struct file_request *x, const struct place *p, int fd)
{
    mode_t mode = PERMISSIONS_NEW;
    int r = 0;

    if (p->old >= 0) {
        mode = p->old_stat.st_mode & 07777;
        if ((p->old_stat.st_uid != geteuid() || p->old_stat.st_gid != getegid()) &&
            fchown(fd, p->old_stat.st_uid, p->old_stat.st_gid) < 0)
            r = -errno;
        if (r == 0)
            r = copy_attributes(f, p, fd);
    }
    if (x->flags & FILE_MODE_SET)
        mode = x->mode;
    return r == 0 && fchmod(fd, mode) < 0 ? -errno : r;
}

/* What the client says while it writes: COMMIT, early or late; anything else, its end included, is
 * -ECANCELED. Return: 1 when COMMIT has come, 0 when nothing has. */
static int hear(struct files *f)
{
    struct reader message;
    struct frame frame;
    int r = link_receive(f->link, &frame, &message);

    if (r == 0)
        return 0;
    return r > 0 && frame.type == MSG_COMMIT && frame.id == f->id ? 1 : -ECANCELED;
}

/* All that the client's pipe gives, until it is at its end and COMMIT has come. */
static int take_content(struct files *f, int from, int to)
{
    bool ended = false;
    int committed = 0;

    while (!ended || committed == 0) {
        struct pollfd p[2] = {{.fd = INIT_CHANNEL_FD, .events = committed ? 0 : POLLIN},
                              {.fd = ended ? -1 : from, .events = POLLIN}};
        int r = 0;

        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (p[1].revents) { /* before the socket: a client that has gone may have said it all */
            ssize_t n = files_read_some(from, f->buffer, sizeof f->buffer);

            ended = n == 0;
            r = n < 0 ? (int)n : files_write_all(to, f->buffer, (size_t)n);
        } else if (p[0].revents) {
            r = committed = hear(f);
        }
        if (r < 0 && r != -EAGAIN)
            return r;
    }
    return 0;
}

/* Fills the temporary file @fd. The pipe came with the message, unless the content is in it. */
static int fill(struct files *f, const struct file_request *x, int fd)
{
    if (x->flags & FILE_INLINE)
        return files_write_all(fd, x->data, x->len);
    if (f->link->n_fds != 1)
        return -EBADF;
    int pipe = f->link->fds[0];
    f->link->n_fds = 0; /* the next message does not close it */
    int r = take_content(f, pipe, fd);
    (void)close(pipe);
    return r;
}

static int write_at(struct files *f, const struct file_request *x, const struct place *p,
                    uint64_t *ret_size)
{
    struct stat st = {0};
    char temporary[24];
    int fd, r;

    files_temporary(temporary);
    fd = openat(p->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = fill(f, x, fd);
    if (r == 0)
        r = dress(f, x, p, fd);
    if (r == 0 && fstat(fd, &st) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0) /* some file systems say only now that they are full */
        r = -errno;
    if (r == 0 && renameat(p->folder, temporary, p->folder, p->name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(p->folder, temporary, 0);
    else
        *ret_size = (uint64_t)st.st_size;
    return r;
}

void files_write(struct files *f, const struct file_request *x)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    struct place p;
    uint64_t size = 0;
    int r = find_place(f, x->path, &p);

    if (r == 0 && p.old >= 0 && !S_ISREG(p.old_stat.st_mode)) {
        files_fault_kind(f, files_kind(p.old_stat.st_mode));
        place_done(&p);
        return;
    }
    if (r == 0 && p.old >= 0)
        r = may_replace(&p);
    if (r == 0)
        r = write_at(f, x, &p, &size);
    place_done(&p);
    if (r < 0) {
        files_fault(f, r);
        return;
    }
    field_put_u64(&w, TAG_SIZE, size);
    files_done(f, &w);
}
