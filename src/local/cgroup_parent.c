/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the group below which groups of sandboxes can be made. */
#include "local/cgroup_parent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "local/cgroup_file.h"
#include "base/guards.h"

enum { DEPTH_MAX = 64, TEXT_BYTES = 4096 };

/* cgroup v1 has no word for "no ceiling": it tells the largest number of pages, in bytes. */
#define V1_UNLIMITED (UINT64_C(1) << 62)

/* The folders from the highest group, 0, to this process's own, @n - 1. */
struct chain {
    int fds[DEPTH_MAX];
    size_t lengths[DEPTH_MAX]; /* of the part of place->own that names it */
    size_t n;
};

static void chain_done(struct chain *c)
{
    for (size_t i = 0; i < c->n; i++)
        fd_closep(&c->fds[i]);
}

static int chain_open(const struct cgroup_place *place, struct chain *ret)
{
    const char *own = place->own;

    *ret = (struct chain){.n = 0};
    for (size_t at = 0;;) {
        char path[PATH_MAX];

        memcpy(path, own, at);
        path[at] = '\0';
        int fd = ret->n == 0
                     ? open(place->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                     : openat(ret->fds[0], path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return -errno;
        ret->fds[ret->n] = fd;
        ret->lengths[ret->n++] = at;
        if (own[at] == '\0')
            return 0;
        if (ret->n == DEPTH_MAX)
            return -ENAMETOOLONG;
        at += own[at] == '/';
        at += strcspn(own + at, "/");
    }
}

static bool v1_has_ceiling(int fd, unsigned controllers)
{
    char text[64];
    uint64_t bytes;

    if (controllers & CGROUP_BIT(CGROUP_MEMORY) &&
        cgroup_file_read(fd, "memory.limit_in_bytes", text, sizeof text) == 0) {
        text[strcspn(text, "\n")] = '\0';
        if (parse_u64(text, 0, UINT64_MAX, &bytes) == 0 && bytes < V1_UNLIMITED)
            return true;
    }
    return controllers & CGROUP_BIT(CGROUP_CPU) &&
           cgroup_file_read(fd, "cpu.cfs_quota_us", text, sizeof text) == 0 && text[0] != '-';
}

/* Whether the group itself bounds what is in it: then nothing of it may be put elsewhere. */
static bool has_ceiling(const struct cgroup_place *place, int fd, unsigned controllers)
{
    char text[64];

    if (!place->unified)
        return v1_has_ceiling(fd, controllers);
    return (cgroup_file_read(fd, "memory.max", text, sizeof text) == 0 &&
            strncmp(text, "max", 3) != 0) ||
           (cgroup_file_read(fd, "cpu.max", text, sizeof text) == 0 &&
            strncmp(text, "max", 3) != 0);
}

static int may_write(int fd, const char *name)
{
    return faccessat(fd, name, W_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* The first controller that the words of @file do not have, or CGROUP_CONTROLLER__MAX. */
static enum cgroup_controller missing_in(int fd, const char *file, unsigned controllers)
{
    char words[TEXT_BYTES];

    (void)cgroup_file_read(fd, file, words, sizeof words);
    for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLER__MAX; i++)
        if (i != CGROUP_ACCOUNT && controllers & CGROUP_BIT(i) &&
            !cgroup_has_word(words, cgroup_controller_name(i)))
            return i;
    return CGROUP_CONTROLLER__MAX;
}

/* Whether groups of sandboxes can be made in the one at @fd: 0 or a negative errno. */
static int judge(const struct cgroup_place *place, int fd, unsigned controllers,
                 enum cgroup_controller *ret_lacking)
{
    enum cgroup_controller lacking = CGROUP_CONTROLLER__MAX;
    char text[64];
    int r = may_write(fd, ".");

    if (r < 0 || !place->unified)
        return r;
    /* To move a process takes the right to write cgroup.procs of the nearest group above both. */
    r = may_write(fd, "cgroup.procs");
    if (r < 0)
        return r;
    lacking = missing_in(fd, "cgroup.controllers", controllers);
    if (lacking != CGROUP_CONTROLLER__MAX) {
        *ret_lacking = lacking;
        return -ENODEV;
    }
    lacking = missing_in(fd, "cgroup.subtree_control", controllers);
    if (lacking == CGROUP_CONTROLLER__MAX)
        return 0;
    *ret_lacking = lacking;
    /* It has to be switched on here. Only the host's root group, which has no type, may have
     * processes of its own then. */
    if (cgroup_file_read(fd, "cgroup.type", text, sizeof text) == 0 &&
        cgroup_file_read(fd, "cgroup.procs", text, sizeof text) == 0 && text[0] != '\0')
        return -EBUSY;
    return may_write(fd, "cgroup.subtree_control");
}

static void set_folder(const struct cgroup_place *place, size_t length, struct cgroup_parent *ret)
{
    int n = snprintf(ret->folder, sizeof ret->folder, "%s%s%.*s", place->mount,
                     length > 0 ? "/" : "", (int)length, place->own);

    if (n < 0 || (size_t)n >= sizeof ret->folder)
        (void)snprintf(ret->folder, sizeof ret->folder, "%s", place->mount);
}

/* Which refusal tells more: "not yours" is said of every group above one's own. */
static bool tells_more(int r, int than)
{
    return than == 0 || than == -EACCES || than == -EPERM || r == -EBUSY;
}

int cgroup_parent_open(const struct cgroup_place *place, unsigned controllers,
                       struct cgroup_parent *ret)
{
    _cleanup_(chain_done) struct chain c;
    size_t top;
    int r, told = 0;

    ret->fd = -EBADF;
    ret->lacking = controllers & CGROUP_BIT(CGROUP_MEMORY) ? CGROUP_MEMORY
                   : controllers & CGROUP_BIT(CGROUP_CPU)  ? CGROUP_CPU
                                                           : CGROUP_ACCOUNT;
    set_folder(place, strlen(place->own), ret);
    r = chain_open(place, &c);
    if (r < 0)
        return r;
    for (top = c.n - 1; top > 0 && !has_ceiling(place, c.fds[top], controllers); top--)
        ;
    for (size_t i = top; i < c.n; i++) {
        enum cgroup_controller lacking = ret->lacking;

        r = judge(place, c.fds[i], controllers, &lacking);
        if (r == 0 || tells_more(r, told)) {
            set_folder(place, c.lengths[i], ret);
            ret->lacking = lacking;
            told = r;
        }
        if (r == 0) {
            ret->fd = TAKE_FD(c.fds[i]);
            return 0;
        }
    }
    return told;
}

void cgroup_parent_each(const struct cgroup_place *place,
                        void (*visit)(void *arg, const struct cgroup_place *place, int fd),
                        void *arg)
{
    _cleanup_(chain_done) struct chain c;

    (void)chain_open(place, &c); /* what is not there has nothing left in it */
    for (size_t i = 0; i < c.n; i++)
        visit(arg, place, c.fds[i]);
}
