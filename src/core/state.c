/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: finding, publishing and listing held sandboxes. */
#include "core/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/guards.h"

enum { BACKLOG = 128 };

#define UNPUBLISHED ".new-"      /* PID-ID: a sandbox's folder until it is complete */
#define EVENTS_NEW  "events.new" /* becomes STATE_EVENTS when it is complete */

void state_records_free(struct state_record *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        state_record_done(&r[i]);
    free(r);
}

static int folder_path(char *buf, size_t size)
{
    const char *chosen = getenv("ATOLL_STATE_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
    int n;

    if (chosen && chosen[0] == '/')
        n = snprintf(buf, size, "%s", chosen);
    else if (runtime && runtime[0] == '/')
        n = snprintf(buf, size, "%s/atoll", runtime);
    else if (geteuid() == 0)
        n = snprintf(buf, size, "/run/atoll");
    else
        n = snprintf(buf, size, "/tmp/atoll-%u", (unsigned)geteuid());
    return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

static int folder_error(const char *path, int code, const char *what, struct error *err)
{
    (void)error_set(err, ERROR_TERMINAL, code, "the state folder %s %s", path, what);
    return error_remedy(err, "Set ATOLL_STATE_DIR to a folder that only you can enter");
}

/* Whoever could write to it could stand in for a keeper. */
static int folder_judge(int fd, const char *path, struct error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return folder_error(path, errno, "cannot be examined", err);
    if (!S_ISDIR(st.st_mode))
        return folder_error(path, ENOTDIR, "is not a folder", err);
    if (st.st_uid != geteuid())
        return folder_error(path, EPERM, "belongs to another user", err);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return folder_error(path, EPERM, "can be written to by others", err);
    return 0;
}

int state_folder_open(struct error *err)
{
    char path[PATH_MAX];
    int r = folder_path(path, sizeof path);

    if (r < 0)
        return folder_error("path", -r, "is too long", err);
    const char *chosen = getenv("ATOLL_STATE_DIR");
    if (chosen && chosen[0] != '\0' && chosen[0] != '/') {
        (void)error_set(err, ERROR_USAGE, EINVAL, "ATOLL_STATE_DIR is '%s', not an absolute path",
                        chosen);
        return error_remedy(err, "Set it to the full path of a folder");
    }
    _cleanup_fd_ int fd = -EBADF;
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        (void)error_set(err, ERROR_TERMINAL, errno, "the state folder %s cannot be made: %s", path,
                        strerror(errno));
        return error_remedy(err, "Set ATOLL_STATE_DIR to a folder that you may write to");
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return folder_error(
            path, errno,
            errno == ENOTDIR || errno == ELOOP ? "is not a folder" : "cannot be opened", err);
    r = folder_judge(fd, path, err);
    return r < 0 ? r : TAKE_FD(fd);
}

/* A socket's address that is as short as a descriptor's number, however long the folder's path. */
static void control_address(int folder, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/control", folder);
}

/* Return: an owned listening socket in @folder, or a negative errno. */
static int listen_in(int folder)
{
    struct sockaddr_un address;
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    control_address(folder, &address);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Removes the files and the folder @name of @state. What a change of one of the files may have left
 * is looked for only where the folder is not empty. Return: whether it is this call that did. */
static bool remove_folder(int state, const char *name)
{
    _cleanup_fd_ int folder = openat(state, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (folder < 0)
        return false;
    (void)unlinkat(folder, "control", 0);
    (void)unlinkat(folder, "record.json", 0);
    (void)unlinkat(folder, STATE_EVENTS, 0);
    if (unlinkat(state, name, AT_REMOVEDIR) == 0)
        return true;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return false;
    (void)unlinkat(folder, EVENTS_NEW, 0);
    (void)unlinkat(folder, STATE_RECORD_NEW, 0);
    return unlinkat(state, name, AT_REMOVEDIR) == 0;
}

/* Return: as state_publish(), in the folder @name that exists already. */
static int fill_folder(int state, const char *name, const struct state_record *r)
{
    _cleanup_fd_ int folder = openat(state, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_fd_ int fd = folder < 0 ? -errno : listen_in(folder);
    int result = fd < 0 ? fd : state_record_write(folder, r);

    if (result == 0 && renameat(state, name, state, r->id) < 0)
        result = -errno;
    return result < 0 ? result : TAKE_FD(fd);
}

int state_publish(const struct state_record *r, struct error *err)
{
    char name[SANDBOX_ID_BYTES + 32];
    _cleanup_fd_ int state = state_folder_open(err);
    int result;

    if (state < 0)
        return state;
    (void)snprintf(name, sizeof name, UNPUBLISHED "%lld-%s", (long long)r->pid, r->id);
    result = mkdirat(state, name, 0700) < 0 ? -errno : fill_folder(state, name, r);
    if (result < 0) {
        (void)remove_folder(state, name);
        (void)error_set(err, ERROR_TERMINAL, -result,
                        "the sandbox's record cannot be written to the state folder: %s",
                        strerror(-result));
        return error_remedy(err,
                            "Set ATOLL_STATE_DIR to a folder with room on a local file system");
    }
    return result;
}

static int folder_in(int state, const char *id)
{
    int fd = openat(state, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* The folder of the caller's own sandbox. */
static int own_folder(const char *id)
{
    struct error ignored = ERROR_INIT;
    _cleanup_fd_ int state = state_folder_open(&ignored);

    return state < 0 ? state : folder_in(state, id);
}

int state_update(const struct state_record *r)
{
    _cleanup_fd_ int folder = own_folder(r->id);

    return folder < 0 ? folder : state_record_write(folder, r);
}

int state_events_begin(const char *id)
{
    _cleanup_fd_ int folder = own_folder(id);

    if (folder < 0)
        return folder;
    int fd = openat(folder, STATE_EVENTS,
                    O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

int state_events_create(const char *id)
{
    _cleanup_fd_ int folder = own_folder(id);

    if (folder < 0)
        return folder;
    int fd = openat(folder, EVENTS_NEW,
                    O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

int state_events_place(const char *id)
{
    _cleanup_fd_ int folder = own_folder(id);

    if (folder < 0)
        return folder;
    return renameat(folder, EVENTS_NEW, folder, STATE_EVENTS) < 0 ? -errno : 0;
}

void state_withdraw(const char *id)
{
    struct error ignored = ERROR_INIT;
    _cleanup_fd_ int state = state_folder_open(&ignored);

    if (state >= 0)
        (void)remove_folder(state, id);
}

/* Return: an owned connected socket; -EAGAIN when the keeper lets nobody in now, which only a
 * socket with @flags SOCK_NONBLOCK says instead of waiting; a negative errno: see is_dead(). */
static int connect_in(int folder, int flags)
{
    static const struct timeval patience = {.tv_sec = 5};
    struct sockaddr_un address;
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

    control_address(folder, &address);
    /* SO_SNDTIMEO is also how long connect(2) waits for a place in the queue (socket(7)). */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Nobody listens on the socket, or it has been removed. */
static bool is_dead(int r)
{
    return r == -ECONNREFUSED || r == -ENOENT;
}

static int gone(const char *id, struct error *err)
{
    (void)error_set(err, ERROR_TERMINAL, ENOENT, "sandbox %s is gone", id);
    return error_remedy(err, "It was removed or its lifetime is over; create another one");
}

/* Where a record says that it was made must be what its id says: a folder that was copied from
 * elsewhere, or restored, proves nothing. One that cannot be read says nothing. */
static bool is_made_elsewhere(int folder, const char *id, const struct place *place)
{
    struct state_record r = {0};

    if (state_record_read(folder, &r) < 0)
        return false;
    bool same = strcmp(r.place.host, place->host) == 0 && strcmp(r.place.boot, place->boot) == 0 &&
                r.place.uid == place->uid && strcmp(r.id, id) == 0;
    state_record_done(&r);
    return !same;
}

/* Return: an owned fd of the sandbox's folder, with @ret_state the state folder's, owned too. */
static int find_folder(const char *id, int *ret_state, struct error *err)
{
    struct place here;
    int r = place_read(&here);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "this host's boot id cannot be read: %s",
                         strerror(-r));
    r = sandbox_id_check(id, &here, err);
    if (r < 0)
        return r;
    _cleanup_fd_ int state = state_folder_open(err);
    if (state < 0)
        return state;
    int folder = folder_in(state, id);
    if (folder == -ENOENT)
        return gone(id, err);
    if (folder < 0)
        return error_set(err, ERROR_TERMINAL, -folder,
                         "the record of sandbox %s cannot be opened: %s", id, strerror(-folder));
    if (is_made_elsewhere(folder, id, &here)) {
        (void)close(folder);
        (void)error_set(err, ERROR_USAGE, EINVAL,
                        "the record of sandbox %s is of another host, start of the host, or user",
                        id);
        return error_remedy(err,
                            "Use it there; if its folder was copied here, remove that by hand");
    }
    *ret_state = TAKE_FD(state);
    return folder;
}

int state_sandbox_folder(const char *id, struct error *err)
{
    _cleanup_fd_ int state = -EBADF;

    return find_folder(id, &state, err);
}

int state_connect(const char *id, struct error *err)
{
    _cleanup_fd_ int state = -EBADF;
    _cleanup_fd_ int folder = find_folder(id, &state, err);

    if (folder < 0)
        return folder;
    int r = connect_in(folder, 0); /* waits when a hundred others are being let in */
    if (is_dead(r)) {
        (void)remove_folder(state, id);
        return gone(id, err);
    }
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "the keeper of sandbox %s cannot be reached: %s",
                         id, strerror(-r));
    return r;
}

/* Removes what an earlier start of this host has left of a sandbox of this user's. */
static size_t remove_earlier(int state, int folder, const char *name, const struct place *here)
{
    struct state_record r = {0};

    if (!sandbox_id_is_earlier(name, here))
        return 0;
    bool read = state_record_read(folder, &r) == 0;
    bool ours = !read || (strcmp(r.place.host, here->host) == 0 && r.place.uid == here->uid &&
                          strcmp(r.place.boot, here->boot) != 0);
    state_record_done(&r);
    return ours && remove_folder(state, name) ? 1 : 0;
}

/* A record of here and now whose keeper lives, be it busy. Its folder is removed if the keeper is
 * dead, and counted in @swept. */
static bool take_record(int state, const char *name, const struct place *here,
                        struct state_record *ret, size_t *swept)
{
    struct error ignored = ERROR_INIT;
    _cleanup_fd_ int folder = openat(state, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (folder < 0)
        return false;
    if (sandbox_id_check(name, here, &ignored) < 0) {
        *swept += remove_earlier(state, folder, name, here);
        return false;
    }
    if (is_made_elsewhere(folder, name, here))
        return false;
    _cleanup_fd_ int fd = connect_in(folder, SOCK_NONBLOCK);
    if (is_dead(fd))
        *swept += remove_folder(state, name);
    if ((fd < 0 && fd != -EAGAIN) || state_record_read(folder, ret) < 0)
        return false;
    if (strcmp(ret->id, name) == 0)
        return true;
    state_record_done(ret);
    return false;
}

/* ---- sweeping beside something else ---- */

enum { SWEPT_AT_ONCE = 4, NAMES_READ = 64 };

/* Whether the keeper that wrote the record may be there; it is not asked, since that wakes it. One
 * that nobody has collected yet is dead (proc(5), /proc/pid/stat). */
static bool may_live(int64_t pid)
{
    static const char name[] = " (atoll-keeper) ";
    char path[40], text[64] = "";

    (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    ssize_t n = read(fd, text, sizeof text - 1);
    const char *at = n > 0 ? strstr(text, name) : NULL;
    return n < 0 || (at && at[sizeof name - 1] != 'Z');
}

static void sweep_one(int state, const char *name, const struct place *here)
{
    _cleanup_fd_ int folder = folder_in(state, name);
    struct error ignored = ERROR_INIT;
    struct state_record r = {0};

    if (folder < 0)
        return;
    if (sandbox_id_check(name, here, &ignored) < 0) {
        (void)remove_earlier(state, folder, name, here);
        return;
    }
    bool dead = state_record_read(folder, &r) == 0 && !may_live(r.pid);
    state_record_done(&r);
    if (!dead || is_made_elsewhere(folder, name, here))
        return;
    _cleanup_fd_ int fd = connect_in(folder, SOCK_NONBLOCK);
    if (is_dead(fd))
        (void)remove_folder(state, name);
}

/* Of many folders it would be the reading of their names that takes long: then only one of so many
 * callers looks, and what is looked at stays the same for each. A file system that does not count
 * the folders in a folder has less than two links for it. */
static bool is_ones_turn(int state, uint64_t seed)
{
    struct stat st;

    return fstat(state, &st) == 0 &&
           (st.st_nlink <= NAMES_READ || seed % (st.st_nlink / NAMES_READ + 1) == 0);
}

/* The names of some of the sandboxes, each as likely as any other (reservoir sampling). Return: how
 * many. */
static size_t pick_names(DIR *dir, uint64_t seed, char ret[SWEPT_AT_ONCE][SANDBOX_ID_BYTES])
{
    const struct dirent *e;
    size_t n = 0;

    while ((e = readdir(dir))) {
        if (strncmp(e->d_name, "sb-", 3) != 0 || strlen(e->d_name) >= SANDBOX_ID_BYTES)
            continue;
        size_t at = n < SWEPT_AT_ONCE ? n : seed % (n + 1);
        if (at < SWEPT_AT_ONCE)
            memcpy(ret[at], e->d_name, strlen(e->d_name) + 1);
        n++;
        seed = seed * 6364136223846793005U + 1442695040888963407U; /* Knuth's MMIX */
        seed ^= seed >> 32;                                        /* the low bits are used */
    }
    return n < SWEPT_AT_ONCE ? n : SWEPT_AT_ONCE;
}

void state_sweep_some(const struct place *here, uint64_t seed)
{
    struct error ignored = ERROR_INIT;
    char names[SWEPT_AT_ONCE][SANDBOX_ID_BYTES];
    int fd = state_folder_open(&ignored);
    _cleanup_(dir_closep) DIR *dir = fd >= 0 && is_ones_turn(fd, seed) ? fdopendir(fd) : NULL;

    if (!dir) {
        fd_closep(&fd);
        return;
    }
    size_t n = pick_names(dir, seed, names);
    for (size_t i = 0; i < n; i++)
        sweep_one(dirfd(dir), names[i], here);
}

/* One whose keeper was killed before it could be found. Return: how many were removed. */
static size_t sweep_unpublished(int state, const char *name, const struct place *here)
{
    const char *from = name + strlen(UNPUBLISHED), *dash = strchr(from, '-');
    struct error ignored = ERROR_INIT;
    char digits[24];
    uint64_t pid;

    if (!dash || (size_t)(dash - from) >= sizeof digits)
        return 0;
    memcpy(digits, from, (size_t)(dash - from));
    digits[dash - from] = '\0';
    bool ours = sandbox_id_check(dash + 1, here, &ignored) == 0;
    if (parse_u64(digits, 1, INT32_MAX, &pid) < 0 ||
        (!ours && !sandbox_id_is_earlier(dash + 1, here)))
        return 0;
    return (!ours || !may_live((int64_t)pid)) && remove_folder(state, name) ? 1 : 0;
}

static int by_age(const void *a, const void *b)
{
    const struct state_record *x = a, *y = b;

    if (x->created_at_us != y->created_at_us)
        return x->created_at_us < y->created_at_us ? -1 : 1;
    return strcmp(x->id, y->id);
}

static int append(struct state_record **list, size_t *n, const struct state_record *r)
{
    struct state_record *more = reallocarray(*list, *n + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    *list = more;
    more[(*n)++] = *r;
    return 0;
}

static int read_folder(DIR *dir, const struct place *here, struct state_record **list, size_t *n,
                       size_t *swept)
{
    const struct dirent *e;

    while ((e = readdir(dir))) {
        struct state_record r = {0};

        if (strncmp(e->d_name, UNPUBLISHED, strlen(UNPUBLISHED)) == 0)
            *swept += sweep_unpublished(dirfd(dir), e->d_name, here);
        if (strncmp(e->d_name, "sb-", 3) != 0 ||
            !take_record(dirfd(dir), e->d_name, here, &r, swept))
            continue;
        if (append(list, n, &r) < 0) {
            state_record_done(&r);
            return -ENOMEM;
        }
    }
    return 0;
}

static int list_and_sweep(struct state_record **ret, size_t *ret_n, size_t *ret_swept,
                          struct error *err)
{
    struct state_record *list = NULL;
    struct place here;
    size_t n = 0, swept = 0;
    int fd = state_folder_open(err), r;

    if (fd < 0)
        return fd;
    _cleanup_(dir_closep) DIR *dir = fdopendir(fd);
    if (!dir)
        fd_closep(&fd);
    r = dir ? place_read(&here) : -ENOMEM;
    if (r == 0)
        r = read_folder(dir, &here, &list, &n, &swept);
    if (r < 0) {
        state_records_free(list, n);
        return error_set(err, ERROR_TERMINAL, -r, "the state folder cannot be read: %s",
                         strerror(-r));
    }
    if (n > 1)
        qsort(list, n, sizeof *list, by_age);
    *ret = list;
    *ret_n = n;
    *ret_swept = swept;
    return 0;
}

int state_list(struct state_record **ret, size_t *ret_n, struct error *err)
{
    size_t swept;

    return list_and_sweep(ret, ret_n, &swept, err);
}

int state_sweep(size_t *ret_n, struct error *err)
{
    struct state_record *list = NULL;
    size_t n = 0;
    int r = list_and_sweep(&list, &n, ret_n, err);

    state_records_free(list, n);
    return r;
}
