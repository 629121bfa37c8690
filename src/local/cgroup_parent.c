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

/* Whether the text of a file is that of a ceiling; what cannot be read is taken for one. */
static bool is_ceiling(int fd, const char *file, bool (*judge)(char *text))
{
    char text[64];
    int r = cgroup_file_read(fd, file, text, sizeof text);

    return r < 0 ? r != -ENOENT : judge(text);
}

static bool v1_bytes(char *text)
{
    uint64_t bytes;

    text[strcspn(text, "\n")] = '\0';
    return parse_u64(text, 0, UINT64_MAX, &bytes) == 0 && bytes < V1_UNLIMITED;
}

static bool v1_quota(char *text)
{
    return text[0] != '-';
}

/* Of cpuset and io no ceiling is an empty text. */
static bool v2_any(char *text)
{
    return text[0] != '\0' && text[0] != '\n' && strncmp(text, "max", 3) != 0;
}

/* Whether the group itself bounds what is in it: then nothing of it may be put elsewhere. Whatever
 * controllers are wanted, others that are in the same hierarchy would be left as well. */
static bool has_ceiling(const struct cgroup_place *place, int fd)
{
    static const char *const files[] = {"memory.max",       "memory.high", "memory.swap.max",
                                        "memory.swap.high", "cpu.max",     "cpuset.cpus",
                                        "cpuset.mems",      "io.max"};

    if (!place->unified)
        return is_ceiling(fd, "memory.limit_in_bytes", v1_bytes) ||
               is_ceiling(fd, "cpu.cfs_quota_us", v1_quota);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (is_ceiling(fd, files[i], v2_any))
            return true;
    return false;
}

static int may_write(int fd, const char *name)
{
    return faccessat(fd, name, W_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* Whether the words of @file have all controllers: 0; -ENODEV: not @ret_lacking; or -errno. */
static int has_all(int fd, const char *file, unsigned controllers,
                   enum cgroup_controller *ret_lacking)
{
    char words[TEXT_BYTES];
    int r = cgroup_file_read(fd, file, words, sizeof words);

    for (enum cgroup_controller i = 0; r == 0 && i < CGROUP_CONTROLLER__MAX; i++)
        if (i != CGROUP_ACCOUNT && controllers & CGROUP_BIT(i) &&
            !cgroup_has_word(words, cgroup_controller_name(i))) {
            *ret_lacking = i;
            r = -ENODEV;
        }
    return r;
}

/* Whether it is the host's root group, which has no type. */
static bool is_root(int fd)
{
    return faccessat(fd, "cgroup.type", F_OK, 0) < 0 && errno == ENOENT;
}

/* Whether groups of sandboxes can be made in the one at @fd: 0 or a negative errno. */
static int judge(const struct cgroup_place *place, int fd, unsigned controllers,
                 enum cgroup_controller *ret_lacking)
{
    char text[64];
    int r = may_write(fd, ".");

    if (r < 0 || !place->unified)
        return r;
    /* To move a process takes the right to write cgroup.procs of the nearest group above both. */
    r = may_write(fd, "cgroup.procs");
    if (r == 0)
        r = has_all(fd, "cgroup.controllers", controllers, ret_lacking);
    if (r < 0)
        return r;
    r = has_all(fd, "cgroup.subtree_control", controllers, ret_lacking);
    if (r != -ENODEV)
        return r;
    /* It has to be switched on here. Only the host's root group may have processes of its own
     * then. */
    if (!is_root(fd) && cgroup_file_read(fd, "cgroup.procs", text, sizeof text) == 0 &&
        text[0] != '\0')
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

/* What the highest group has not, no delegation gives. */
static int judge_highest(const struct cgroup_place *place, int fd, unsigned controllers,
                         struct cgroup_parent *ret)
{
    int r = has_all(fd, "cgroup.controllers", controllers, &ret->lacking);

    if (r == -ENODEV)
        ret->why = is_root(fd) ? CGROUP_WHY_KERNEL : CGROUP_WHY_OUTSIDE;
    if (r < 0)
        set_folder(place, 0, ret);
    return r;
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
    ret->why = CGROUP_WHY_CODE;
    ret->lacking = controllers & CGROUP_BIT(CGROUP_MEMORY) ? CGROUP_MEMORY
                   : controllers & CGROUP_BIT(CGROUP_CPU)  ? CGROUP_CPU
                                                           : CGROUP_ACCOUNT;
    set_folder(place, strlen(place->own), ret);
    r = chain_open(place, &c);
    if (r == 0 && place->unified)
        r = judge_highest(place, c.fds[0], controllers, ret);
    if (r < 0)
        return r;
    for (top = c.n - 1; top > 0 && !has_ceiling(place, c.fds[top]); top--)
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
