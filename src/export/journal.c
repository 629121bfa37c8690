/* SPDX-License-Identifier: Apache-2.0 */
/* Journals of exports: one file of paths each, locked while its export lives. */
#include "export/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "core/state.h"
#include "export/staging.h"
#include "base/guards.h"

enum {
    HEX_DIGITS = 12,
    JOURNAL_BYTES_MAX = 64 * 1024 * 1024,
    OPEN_TRIES = 16,
};

static const char prefix[] = "export-";          /* of a journal that is locked, or dead */
static const char new_prefix[] = ".new-export-"; /* of one that nobody may have locked yet */
static const char staging_suffix[] = ".partial";

static bool starts_with(const char *s, const char *start)
{
    return strncmp(s, start, strlen(start)) == 0;
}

static bool is_hex(const char *s, size_t n)
{
    return strspn(s, "0123456789abcdef") >= n;
}

/* Whether @name is what staging_make() calls what it makes: NAME.<12 digits>.partial */
static bool is_staging_name(const char *name)
{
    const size_t tail = 1 + HEX_DIGITS + strlen(staging_suffix);
    size_t n = strlen(name);

    if (n <= tail || n > NAME_MAX)
        return false;
    const char *dot = name + n - tail;
    return *dot == '.' && is_hex(dot + 1, HEX_DIGITS) &&
           strcmp(dot + 1 + HEX_DIGITS, staging_suffix) == 0;
}

static bool is_journal_name(const char *name, const char *start)
{
    size_t n = strlen(start);

    return starts_with(name, start) && strlen(name) == n + HEX_DIGITS &&
           is_hex(name + n, HEX_DIGITS);
}

/* Opens journal @name and locks it. Return: an owned fd; -EWOULDBLOCK: its export lives; -ENOENT:
 * it is gone by now, or nothing of this user's. */
static int lock_journal(int folder, const char *name)
{
    struct stat st;
    _cleanup_fd_ int fd =
        openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return -ENOENT;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    /* Its export may have ended well, and removed it, between the two calls. */
    if (fstat(fd, &st) < 0 || st.st_nlink == 0)
        return -ENOENT;
    return TAKE_FD(fd);
}

/* One pass over the state folder */

struct sweep {
    struct journal_sweep result;
    void (*told)(void *arg, const char *path, int r);
    void *arg;
};

/* Removes what stands at the staging path @path. Return: 0, also when nothing does. */
static int remove_staged(struct sweep *s, char *path)
{
    struct stat st;
    char *slash = strrchr(path, '/');

    if (path[0] != '/' || !is_staging_name(slash + 1))
        return 0;
    *slash = '\0';
    /* It was written without links, so one that is in it now was put there by somebody else. */
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int parent =
        root < 0 ? -errno
                 : path_open_plain(root, slash == path ? "." : path + 1, O_PATH | O_DIRECTORY, 0);
    *slash = '/';
    if (parent < 0)
        return parent == -ENOENT || parent == -ENOTDIR || parent == -ELOOP ? 0 : parent;
    if (fstatat(parent, slash + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = staging_remove_tree(parent, slash + 1);
    if (r == 0)
        s->result.removed++;
    if (r == 0 && s->told)
        s->told(s->arg, path, 0);
    return r;
}

/* @text: paths, each with a NUL behind it. Return: whether all is removed. */
static bool remove_all_staged(struct sweep *s, char *text, size_t len)
{
    bool all = true;

    for (char *path = text, *end; (end = memchr(path, '\0', len - (size_t)(path - text)));
         path = end + 1) {
        int r = remove_staged(s, path);

        if (r == 0)
            continue;
        all = false;
        s->result.failed++;
        if (s->told)
            s->told(s->arg, path, r);
    }
    return all; /* a path without its NUL was never made */
}

static void sweep_journal(struct sweep *s, int folder, const char *name)
{
    struct stat st;
    _cleanup_fd_ int fd = lock_journal(folder, name);

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > JOURNAL_BYTES_MAX)
        return;
    size_t len = (size_t)st.st_size;
    _cleanup_free_ char *text = malloc(len + 1);
    if (!text || io_read_full(fd, text, len, CLOCK_NEVER) < 0)
        return;
    if (remove_all_staged(s, text, len) && unlinkat(folder, name, 0) == 0)
        s->result.exports++;
}

/* One that was never given its name has nothing in it. */
static void sweep_nameless(int folder, const char *name)
{
    _cleanup_fd_ int fd = lock_journal(folder, name);

    if (fd >= 0)
        (void)unlinkat(folder, name, 0);
}

/* Return: 0 or a negative errno: the folder cannot be read. */
static int sweep_folder(int folder, struct sweep *s)
{
    const struct dirent *e;
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        int r = -errno;

        fd_closep(&fd);
        return r;
    }
    while ((e = readdir(dir))) {
        if (is_journal_name(e->d_name, prefix))
            sweep_journal(s, folder, e->d_name);
        else if (is_journal_name(e->d_name, new_prefix))
            sweep_nameless(folder, e->d_name);
    }
    return 0;
}

int journal_sweep(struct journal_sweep *ret, void (*told)(void *arg, const char *path, int r),
                  void *arg, struct error *err)
{
    struct sweep s = {.told = told, .arg = arg};
    _cleanup_fd_ int folder = state_folder_open(err);

    if (folder < 0)
        return folder;
    int r = sweep_folder(folder, &s);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "the state folder cannot be read: %s",
                         strerror(-r));
    *ret = s.result;
    return 0;
}

/* The journal of this export */

/*
 * Makes a locked journal. It bears a name by which it is found only once it is locked: a sweep
 * would take one without a lock for a dead export's. Return: 0; -EAGAIN: a sweep came in between.
 */
static int make(struct journal *j)
{
    char new_name[sizeof j->name];
    uint64_t random;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -errno;
    random &= (UINT64_C(1) << (4 * HEX_DIGITS)) - 1;
    (void)snprintf(j->name, sizeof j->name, "%s%012llx", prefix, (unsigned long long)random);
    (void)snprintf(new_name, sizeof new_name, "%s%012llx", new_prefix, (unsigned long long)random);
    _cleanup_fd_ int fd =
        openat(j->folder_fd, new_name,
               O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? -EAGAIN : -errno;
    int r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
    if (r == 0 && renameat(j->folder_fd, new_name, j->folder_fd, j->name) < 0)
        r = -errno;
    if (r == 0) {
        j->fd = TAKE_FD(fd);
        return 0;
    }
    (void)unlinkat(j->folder_fd, new_name, 0);
    return r == -EWOULDBLOCK || r == -ENOENT ? -EAGAIN : r;
}

static int fail(struct error *err, int code)
{
    (void)error_set(err, ERROR_TERMINAL, code,
                    "the export's journal cannot be written to the state folder: %s",
                    strerror(code));
    return error_remedy(err, "Set ATOLL_STATE_DIR to a folder with room on a local file system");
}

int journal_open(struct journal *j, struct error *err)
{
    struct sweep ignored = {.told = NULL};
    int r = -EAGAIN;

    *j = (struct journal)JOURNAL_INIT;
    j->folder_fd = state_folder_open(err);
    if (j->folder_fd < 0)
        return j->folder_fd;
    (void)sweep_folder(j->folder_fd, &ignored); /* what is left over is for `atoll gc` to tell */
    for (unsigned tries = 0; r == -EAGAIN && tries < OPEN_TRIES; tries++)
        r = make(j);
    if (r == 0)
        return 0;
    fd_closep(&j->folder_fd);
    return fail(err, -r);
}

int journal_add(struct journal *j, const char *path, struct error *err)
{
    size_t len = strlen(path) + 1;

    if (len > PATH_MAX)
        return fail(err, ENAMETOOLONG);
    ssize_t n = write(j->fd, path, len);
    if (n == (ssize_t)len)
        return 0;
    /* What was written of it must not become the beginning of the next one. */
    int code = n < 0 ? errno : ENOSPC;
    if (n > 0)
        (void)!write(j->fd, "", 1);
    return fail(err, code);
}

void journal_close(struct journal *j)
{
    if (j->fd >= 0)
        (void)unlinkat(j->folder_fd, j->name, 0);
    fd_closep(&j->fd);
    fd_closep(&j->folder_fd);
}
