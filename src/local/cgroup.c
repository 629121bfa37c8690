/* SPDX-License-Identifier: Apache-2.0 */
/* Making, setting, entering, reading and ending the control group of a sandbox. */
#include "local/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "core/cost.h"
#include "local/cgroup_ceiling.h"
#include "local/cgroup_file.h"
#include "local/cgroup_parent.h"
#include "local/cgroup_refusal.h"
#include "base/guards.h"

enum { TRIES = 1000, TEXT_BYTES = 4096 }; /* a second in all */

struct cgroup_wants cgroup_wants(const struct spec *s)
{
    return (struct cgroup_wants){.memory_bytes = s->memory_bytes,
                                 .cpu_milli = s->cpu_milli,
                                 .follow_memory = cost_counts_memory(s),
                                 .account = cost_needs_group(s)};
}

bool cgroup_wanted(const struct cgroup_wants *w)
{
    return w->memory_bytes > 0 || w->cpu_milli > 0 || w->follow_memory || w->account;
}

static unsigned controllers_for(const struct cgroup_wants *w)
{
    return (w->memory_bytes > 0 || w->follow_memory ? CGROUP_BIT(CGROUP_MEMORY) : 0) |
           (w->cpu_milli > 0 ? CGROUP_BIT(CGROUP_CPU) : 0) |
           (w->account ? CGROUP_BIT(CGROUP_ACCOUNT) : 0);
}

/* @x: all but its field */
static int refuse(const struct cgroup_wants *w, struct cgroup_denial x, struct error *err)
{
    static const char *const fields[] = {
        [CGROUP_MEMORY] = "backend.memory",
        [CGROUP_CPU] = "backend.cpu",
        [CGROUP_ACCOUNT] = "backend.max_cost",
    };
    const bool priced = x.controller == CGROUP_MEMORY && w->memory_bytes == 0;

    x.field = priced ? "backend.prices" : fields[x.controller];
    return cgroup_refuse(&x, err);
}

static void part_done(struct cgroup_part *p)
{
    fd_closep(&p->fd);
    fd_closep(&p->parent_fd);
    fd_closep(&p->above_fd);
}

/* The place for the groups of each hierarchy that is needed, in @ret->parts, all but their fds. */
static int find_parents(const struct cgroup_wants *w, struct cgroup *ret, struct error *err)
{
    _cleanup_free_ struct cgroup_places *places = cgroup_places_read();
    _cleanup_free_ struct cgroup_parent *parent = malloc(sizeof *parent);
    unsigned wanted = controllers_for(w);
    unsigned of[CGROUP_CONTROLLER__MAX] = {0};

    if (!places || !parent)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLER__MAX; i++) {
        if (!(wanted & CGROUP_BIT(i)))
            continue;
        if (places->found[i] < 0)
            return refuse(w, (struct cgroup_denial){.controller = i, .code = -places->found[i]},
                          err);
        of[cgroup_places_first(places, i)] |= CGROUP_BIT(i);
    }
    for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLER__MAX; i++) {
        const struct cgroup_place *place = &places->place[i];

        if (of[i] == 0)
            continue;
        int r = cgroup_parent_open(place, of[i], parent);
        if (r < 0)
            return refuse(w,
                          (struct cgroup_denial){.controller = parent->lacking,
                                                 .folder = parent->folder,
                                                 .unified = place->unified,
                                                 .code = -r,
                                                 .why = parent->why},
                          err);
        ret->parts[ret->n++] = (struct cgroup_part){.above_fd = parent->fd,
                                                    .parent_fd = -EBADF,
                                                    .fd = -EBADF,
                                                    .controllers = of[i],
                                                    .unified = place->unified};
    }
    return 0;
}

/* Gives the groups below the one at @fd the controllers. */
static int enable(int fd, unsigned controllers)
{
    char words[TEXT_BYTES], text[64];
    size_t n = 0;

    (void)cgroup_file_read(fd, "cgroup.subtree_control", words, sizeof words);
    for (enum cgroup_controller i = 0; i < CGROUP_ACCOUNT; i++)
        if (controllers & CGROUP_BIT(i) && !cgroup_has_word(words, cgroup_controller_name(i)))
            n += (size_t)snprintf(text + n, sizeof text - n, "+%s ", cgroup_controller_name(i));
    return n > 0 ? cgroup_file_write(fd, "cgroup.subtree_control", text) : 0;
}

/* Whether the folder @fd is still the one that is found by its name. */
static bool is_linked(int parent_fd, const char *name, int fd)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && fstatat(parent_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Opens a folder that was made just now. If it cannot be opened it goes, unless there are groups of
 * others in it. */
static int open_made(int fd, const char *name, int *ret)
{
    int r;

    *ret = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret >= 0)
        return 0;
    if (errno == ENOENT)
        return -EAGAIN;
    r = -errno;
    (void)unlinkat(fd, name, AT_REMOVEDIR);
    return r;
}

/* One try at a locked group; -EAGAIN where somebody swept a folder away meanwhile. */
static int try_part(struct cgroup_part *p, const char *name)
{
    int r = p->unified ? enable(p->above_fd, p->controllers) : 0;

    if (r == 0 && mkdirat(p->above_fd, CGROUP_FOLDER, 0755) < 0 && errno != EEXIST)
        r = -errno;
    if (r < 0)
        return r;
    r = open_made(p->above_fd, CGROUP_FOLDER, &p->parent_fd);
    if (r < 0)
        return r;
    (void)cgroup_sweep_folder(p->parent_fd, p->unified);
    r = p->unified ? enable(p->parent_fd, p->controllers) : 0;
    if (r == 0 && mkdirat(p->parent_fd, name, 0700) < 0)
        r = errno == EEXIST ? -EAGAIN : -errno; /* of the last try, about to be swept away */
    if (r < 0)                                  /* ENOENT, ENODEV: the folder went */
        return is_linked(p->above_fd, CGROUP_FOLDER, p->parent_fd) ? r : -EAGAIN;
    r = open_made(p->parent_fd, name, &p->fd);
    if (r == 0 && flock(p->fd, LOCK_EX | LOCK_NB) < 0)
        r = -errno; /* EWOULDBLOCK, which is EAGAIN: it was taken for a leaving */
    if (r == 0 && !is_linked(p->parent_fd, name, p->fd))
        r = -EAGAIN;
    return r;
}

static int make_part(struct cgroup_part *p, const char *name)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    int r = -EAGAIN;

    for (int i = 0; i < TRIES && r == -EAGAIN; i++) {
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        fd_closep(&p->fd);
        fd_closep(&p->parent_fd);
        r = try_part(p, name);
    }
    return r;
}

static const struct cgroup_part *part_with(const struct cgroup *g, enum cgroup_controller c)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->parts[i].controllers & CGROUP_BIT(c))
            return &g->parts[i];
    return NULL;
}

/* The same as refuse(), of a group whose parents are found; @x: controller, code and why. */
static int refuse_at(const struct cgroup_wants *w, const struct cgroup *g, struct cgroup_denial x,
                     struct error *err)
{
    const struct cgroup_part *p = part_with(g, x.controller);
    char link[64], folder[PATH_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", p->above_fd);
    n = readlink(link, folder, sizeof folder - 1);
    folder[n > 0 ? n : 0] = '\0';
    x.folder = folder;
    x.unified = p->unified;
    return refuse(w, x, err);
}

static int refuse_swap(const struct cgroup_wants *w, const struct cgroup *g, struct error *err)
{
    return refuse_at(w, g,
                     (struct cgroup_denial){
                         .controller = CGROUP_MEMORY, .code = EOPNOTSUPP, .why = CGROUP_WHY_SWAP},
                     err);
}

/* Fills a group whose parents are found. */
static int make(const struct cgroup_wants *w, struct cgroup *g, struct error *err)
{
    enum cgroup_controller at = CGROUP_MEMORY;
    uint64_t random;
    int r = getrandom(&random, sizeof random, 0) == sizeof random ? 0 : -EIO;

    (void)snprintf(g->name, sizeof g->name, CGROUP_PREFIX "%016" PRIx64, random);
    for (size_t i = 0; r == 0 && i < g->n; i++) {
        at = (enum cgroup_controller)__builtin_ctz(g->parts[i].controllers);
        r = make_part(&g->parts[i], g->name);
    }
    if (r == 0 && w->memory_bytes > 0) {
        const struct cgroup_part *p = part_with(g, CGROUP_MEMORY);

        at = CGROUP_MEMORY;
        r = cgroup_ceiling_memory(p->fd, p->unified, cgroup_swap_is_on(), w->memory_bytes);
        if (r == -EOPNOTSUPP)
            return refuse_swap(w, g, err);
    }
    if (r == 0 && w->cpu_milli > 0) {
        const struct cgroup_part *p = part_with(g, CGROUP_CPU);

        at = CGROUP_CPU;
        r = cgroup_ceiling_cpu(p->fd, p->unified, w->cpu_milli);
    }
    return r < 0 ? refuse_at(w, g, (struct cgroup_denial){.controller = at, .code = -r}, err) : 0;
}

static void note_uncounted(void *arg, const struct cgroup_place *place, int fd)
{
    bool *found = arg;

    *found = *found || cgroup_swap_is_uncounted(fd, place->unified);
}

/* Whether this host has swap that no group counts. Any group above shows it, but the root of v2. */
static bool swap_escapes(void)
{
    _cleanup_free_ struct cgroup_places *places = cgroup_places_read();
    bool found = false;

    if (places && places->found[CGROUP_MEMORY] == 0)
        cgroup_parent_each(&places->place[CGROUP_MEMORY], note_uncounted, &found);
    return found && cgroup_swap_is_on();
}

int cgroup_judge(const struct cgroup_wants *w, struct error *err)
{
    struct cgroup g = {.n = 0};
    int r = find_parents(w, &g, err);

    if (r == 0 && w->memory_bytes > 0 && swap_escapes())
        r = refuse_swap(w, &g, err);
    for (size_t i = 0; i < g.n; i++)
        part_done(&g.parts[i]);
    return r;
}

int cgroup_make(const struct cgroup_wants *w, struct cgroup *ret, struct error *err)
{
    struct cgroup g = {.n = 0};
    int r = find_parents(w, &g, err);

    if (r == 0)
        r = make(w, &g, err);
    if (r < 0) {
        cgroup_end(&g);
        return r;
    }
    *ret = g;
    return 0;
}

int cgroup_enter(const struct cgroup *g, pid_t pid)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < g->n; i++)
        r = cgroup_file_write_number(g->parts[i].fd, "cgroup.procs", (uint64_t)pid);
    return r;
}

void cgroup_end(struct cgroup *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct cgroup_part *p = &g->parts[i];

        if (p->fd >= 0)
            (void)cgroup_remove(p->parent_fd, g->name, CGROUP_PATIENCE_US);
        if (p->parent_fd >= 0) /* unless others are in it */
            (void)unlinkat(p->above_fd, CGROUP_FOLDER, AT_REMOVEDIR);
        part_done(p);
    }
    g->n = 0;
}

static uint64_t read_number(int fd, const char *name)
{
    char text[64];
    uint64_t n = 0;

    (void)cgroup_file_read(fd, name, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    return parse_u64(text, 0, UINT64_MAX, &n) < 0 ? 0 : n;
}

static uint64_t read_key(int fd, const char *name, const char *key)
{
    char text[TEXT_BYTES];
    uint64_t n = 0;

    (void)cgroup_file_read(fd, name, text, sizeof text);
    return cgroup_key(text, key, &n) < 0 ? 0 : n;
}

uint64_t cgroup_oom_kills(const struct cgroup *g)
{
    const struct cgroup_part *p = part_with(g, CGROUP_MEMORY);

    return p ? read_key(p->fd, p->unified ? "memory.events" : "memory.oom_control", "oom_kill") : 0;
}

/* Of any part that tells it: every group of v2 does, and of v1 those with the controller. */
static bool read_cpu(const struct cgroup *g, uint64_t *ret_us)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct cgroup_part *p = &g->parts[i];

        if (p->unified)
            *ret_us = read_key(p->fd, "cpu.stat", "usage_usec");
        else if (p->controllers & CGROUP_BIT(CGROUP_ACCOUNT))
            *ret_us = read_number(p->fd, "cpuacct.usage") / 1000;
        else
            continue;
        return true;
    }
    return false;
}

static uint64_t read_peak(const struct cgroup_part *p)
{
    if (!p->unified)
        return read_number(p->fd, "memory.max_usage_in_bytes");
    const uint64_t peak = read_number(p->fd, "memory.peak"); /* from Linux 5.19 on */
    if (peak > 0 || read_key(p->fd, "memory.events", "oom") == 0)
        return peak;
    /* It has stood at its own ceiling: at least that much it was. */
    const uint64_t ceiling = read_number(p->fd, "memory.max"),
                   now = read_number(p->fd, "memory.current");
    return now > ceiling ? now : ceiling;
}

void cgroup_read(const struct cgroup *g, struct cgroup_use *ret)
{
    const struct cgroup_part *p = part_with(g, CGROUP_MEMORY);

    *ret = (struct cgroup_use){.has_memory = p};
    ret->has_cpu = read_cpu(g, &ret->cpu_us);
    if (!p)
        return;
    ret->memory_bytes = read_number(p->fd, p->unified ? "memory.current" : "memory.usage_in_bytes");
    ret->peak_bytes = read_peak(p);
    ret->oom_kills = cgroup_oom_kills(g);
}
