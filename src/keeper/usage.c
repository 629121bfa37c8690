/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring a sandbox: CPU time, memory, cost, and kills for want of memory. */
#include "keeper/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "core/traffic.h"
#include "keeper/events.h"
#include "base/guards.h"

#define SAMPLE_US UINT64_C(1000000)

/* ---- CPU time without a control group ---- */

/* The sum of fields 14 to 17 of /proc/PID/stat: its own time, and that of children it has waited
 * for. The name in field 2 is the program's choice, brackets and all; the last one ends it. */
static uint64_t ticks_of(char *stat)
{
    uint64_t sum = 0, n;
    char *p = strrchr(stat, ')'), *field;

    if (!p)
        return 0;
    for (int i = 3; i <= 17 && (field = strchr(p, ' ')); i++) {
        p = field + 1;
        size_t length = strcspn(p, " \n");
        char end = p[length];

        p[length] = '\0';
        if (i >= 14 && parse_u64(p, 0, UINT64_MAX / 8, &n) == 0)
            sum += n;
        p[length] = end;
    }
    return sum;
}

static uint64_t process_ticks(int proc, const char *pid)
{
    char path[64], stat[1024];

    if (snprintf(path, sizeof path, "%s/stat", pid) >= (int)sizeof path)
        return 0;
    _cleanup_fd_ int fd = openat(proc, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof stat - 1);
    stat[n > 0 ? n : 0] = '\0';
    return ticks_of(stat);
}

/* Over all processes inside. What has ended is in its parent's count, and at last in that of
 * process 1. */
static uint64_t cpu_us_of_processes(const struct keeper *k)
{
    const long per_second = sysconf(_SC_CLK_TCK);
    const struct dirent *e;
    uint64_t ticks = 0;
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/root/proc", (int)k->sandbox.pid);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(dir_closep) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        fd_closep(&fd);
    while (dir && (e = readdir(dir)))
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            ticks += process_ticks(dirfd(dir), e->d_name);
    return per_second > 0 ? ticks * 1000000 / (uint64_t)per_second : 0;
}

static void read_use(const struct keeper *k, struct cgroup_use *ret)
{
    *ret = (struct cgroup_use){.cpu_us = 0};
    if (k->sandbox.group.n > 0)
        cgroup_read(&k->sandbox.group, ret);
    if (!ret->has_cpu && k->sandbox.pid > 0)
        ret->cpu_us = cpu_us_of_processes(k);
}

/* ---- cost ---- */

/* Until the next look memory counts as it was at the last one. */
static uint64_t cost_now(const struct keeper *k, const struct cgroup_use *use)
{
    const struct usage *u = &k->usage;
    struct cost_use cost = {.cpu_us = use->cpu_us, .memory_kib_ms = u->memory_kib_ms};

    if (u->looked_us > 0)
        cost_add_memory(&cost, u->memory_bytes, clock_now_us() - u->looked_us);
    return cost_micro(&u->prices, &cost);
}

static void look(struct keeper *k, const struct cgroup_use *use)
{
    struct usage *u = &k->usage;
    struct cost_use cost = {.memory_kib_ms = u->memory_kib_ms};
    uint64_t now = clock_now_us();

    if (u->looked_us > 0)
        cost_add_memory(&cost, u->memory_bytes, now - u->looked_us);
    u->memory_kib_ms = cost.memory_kib_ms;
    u->memory_bytes = use->memory_bytes;
    u->looked_us = now;
}

static int look_due(struct loop *l, struct loop_timer *t)
{
    struct keeper *k = t->owner;
    const uint64_t most = k->spec.max_cost_micro;
    struct cgroup_use use;

    read_use(k, &use);
    look(k, &use);
    uint64_t cost = cost_now(k, &use);
    if (most > 0 && cost >= most) {
        events_limit(k, "cost", cost);
        keeper_end(k, ENDED_COST);
        return 0;
    }
    if (most > 0 && !k->usage.warned && cost >= most - most / 10) {
        k->usage.warned = true;
        events_limit(k, "cost_near", cost);
    }
    loop_at(l, t, clock_after_us(SAMPLE_US));
    return 0;
}

void usage_begin(struct keeper *k)
{
    k->usage = (struct usage){
        .prices = cost_prices(&k->spec),
        .timer = {.name = "cost", .owner = k, .due = look_due},
    };
    if (cost_needs_group(&k->spec))
        loop_at(&k->loop, &k->usage.timer, clock_now_us());
}

void usage_done(struct keeper *k)
{
    if (k->usage.timer.owner)
        loop_at(&k->loop, &k->usage.timer, CLOCK_NEVER);
}

void usage_describe(const struct keeper *k, struct sandbox_info *x)
{
    struct cgroup_use use;

    read_use(k, &use);
    x->memory_limit_bytes = k->spec.memory_bytes;
    x->cpu_milli = k->spec.cpu_milli;
    x->cpu_us = use.cpu_us;
    x->egress_sent_bytes = traffic_bytes(k->egress.traffic, 0);
    x->egress_received_bytes = traffic_bytes(k->egress.traffic, 1);
    x->memory_used_bytes = use.memory_bytes;
    x->memory_peak_bytes = use.peak_bytes;
    x->oom_kills = use.oom_kills > UINT32_MAX ? UINT32_MAX : (uint32_t)use.oom_kills;
    x->cost_micro = cost_now(k, &use);
    x->max_cost_micro = k->spec.max_cost_micro;
}

/* ---- memory that ran out ---- */

uint64_t usage_oom_kills(const struct keeper *k)
{
    return cgroup_oom_kills(&k->sandbox.group);
}

/* Tells of kills that nobody has heard of yet. */
static void note_kills(struct keeper *k, uint64_t kills)
{
    struct cgroup_use use;

    if (kills <= k->usage.oom_noted)
        return;
    k->usage.oom_noted = kills;
    cgroup_read(&k->sandbox.group, &use);
    events_limit(k, "oom", use.peak_bytes);
}

/* By SIGKILL, or its child was and the shell says so. */
static bool was_killed(const struct exit_report *x)
{
    return x->signal == SIGKILL || (x->signal == 0 && x->exit_code == 128 + SIGKILL);
}

bool usage_is_oom(struct keeper *k, uint64_t before, const struct exit_report *x)
{
    const uint64_t kills = usage_oom_kills(k);
    const uint64_t known = before > k->usage.oom_told ? before : k->usage.oom_told;

    note_kills(k, kills);
    if (kills <= known || !was_killed(x))
        return false;
    k->usage.oom_told = kills;
    return true;
}

bool usage_is_oom_end(struct keeper *k)
{
    const uint64_t kills = usage_oom_kills(k);
    const uint64_t known = k->usage.oom_noted;

    note_kills(k, kills);
    return kills > known;
}
