/* SPDX-License-Identifier: Apache-2.0 */
/* Removing control groups: one's own at its end, and those that killed keepers have left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "local/cgroup.h"
#include "local/cgroup_file.h"
#include "local/cgroup_parent.h"
#include "base/guards.h"

#define SWEEP_PATIENCE_US UINT64_C(200000)

enum {
    AT_ONCE =
        64, /* looked at by who only makes a group: a thousand live ones must cost it little */
    PROCS_BYTES = 64 * 1024,
};

int cgroup_remove(int fd, const char *name, uint64_t patience_us)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t deadline_us = clock_after_us(patience_us);

    /* A process that was reaped may be in its group for a moment more. */
    while (unlinkat(fd, name, AT_REMOVEDIR) < 0) {
        if (errno != EBUSY || clock_now_us() >= deadline_us)
            return -errno;
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/* Kills what is in a group that is proven to be left behind. */
static void kill_all(int fd, bool unified)
{
    char text[PROCS_BYTES], *line = text;
    uint64_t pid;

    if (unified && cgroup_file_write(fd, "cgroup.kill", "1") == 0) /* from Linux 5.14 on */
        return;
    (void)cgroup_file_read(fd, "cgroup.procs", text, sizeof text);
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (parse_u64(line, 1, INT32_MAX, &pid) == 0) /* 0: in another process namespace */
            (void)kill((pid_t)pid, SIGKILL);
    }
}

/* Whether it was left behind and is gone now. */
static bool sweep_one(int parent_fd, const char *name, bool unified)
{
    _cleanup_fd_ int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return false; /* its keeper lives, or it is another user's */
    kill_all(fd, unified);
    return cgroup_remove(parent_fd, name, SWEEP_PATIENCE_US) == 0;
}

static size_t sweep(int fd, bool unified, size_t most)
{
    int again =
        openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a position of its own */
    _cleanup_(dir_closep) DIR *dir = again < 0 ? NULL : fdopendir(again);
    const struct dirent *e;
    size_t removed = 0;

    if (!dir)
        fd_closep(&again);
    while (dir && most > 0 && (e = readdir(dir))) {
        if (strncmp(e->d_name, CGROUP_PREFIX, sizeof CGROUP_PREFIX - 1) != 0)
            continue;
        most--;
        removed += sweep_one(fd, e->d_name, unified);
    }
    return removed;
}

size_t cgroup_sweep_folder(int fd, bool unified)
{
    return sweep(fd, unified, AT_ONCE);
}

static void visit(void *arg, const struct cgroup_place *place, int fd)
{
    _cleanup_fd_ int parent_fd =
        openat(fd, CGROUP_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    size_t *removed = arg;

    if (parent_fd < 0)
        return;
    *removed += sweep(parent_fd, place->unified, SIZE_MAX);
    (void)unlinkat(fd, CGROUP_FOLDER, AT_REMOVEDIR); /* unless others are in it */
}

size_t cgroup_sweep(void)
{
    _cleanup_free_ struct cgroup_places *places = cgroup_places_read();
    size_t removed = 0;

    for (enum cgroup_controller i = 0; places && i < CGROUP_CONTROLLER__MAX; i++)
        if (places->found[i] == 0 && cgroup_places_first(places, i) == i)
            cgroup_parent_each(&places->place[i], visit, &removed);
    return removed;
}
