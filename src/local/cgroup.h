/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control group of a sandbox: what holds its processes together to a ceiling of memory and CPU,
 * and tells what they have used where none of them can hide it. Only a sandbox that asks for one of
 * these has a group.
 *
 *     PARENT/atoll/sandbox-RANDOM      PARENT: local/cgroup_parent.h
 *
 * On cgroup v2 that is one group; of v1 there is one in each hierarchy that is needed. The keeper
 * holds a lock (flock(2)) on each folder as long as it lives: a group whose lock can be had is one
 * that a killed keeper has left, and whoever makes the next, or looks for leavings, removes it. The
 * folder `atoll` goes with the last group in it.
 *
 * Memory that is written to files counts too, since they lie in memory; so the ceiling bounds both
 * together.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "core/spec.h"
#include "local/cgroup_find.h"

/* What a group is for; all zero: none is needed. */
struct cgroup_wants {
    uint64_t memory_bytes, cpu_milli; /* ceilings; 0: none */
    bool follow_memory;               /* its use has to be known */
    bool account;                     /* the CPU time too */
};

/** cgroup_wants() - what @s asks for */
struct cgroup_wants cgroup_wants(const struct spec *s);

/** cgroup_wanted() - whether that is anything */
bool cgroup_wanted(const struct cgroup_wants *w);

/* The group in one hierarchy. */
struct cgroup_part {
    int above_fd, parent_fd, fd; /* owned: PARENT, PARENT/atoll, the group, which is locked */
    unsigned controllers;        /* CGROUP_BIT() */
    bool unified;
};

struct cgroup {
    struct cgroup_part parts[CGROUP_CONTROLLER__MAX];
    size_t n; /* 0: there is none */
    char name[32];
};

/**
 * cgroup_make() - make the group and set its ceilings
 *
 * Blocks for a few small writes. Return: 0, or a negative errno with an error that names the field,
 * the controller and what to do; then nothing is left.
 */
int cgroup_make(const struct cgroup_wants *w, struct cgroup *ret, struct error *err);

/** cgroup_judge() - whether cgroup_make() can be expected to work, changing nothing; as it returns
 */
int cgroup_judge(const struct cgroup_wants *w, struct error *err);

/** cgroup_enter() - move process @pid into it, with what it starts from now on; 0 or -errno */
int cgroup_enter(const struct cgroup *g, pid_t pid);

/**
 * cgroup_end() - remove it, once all its processes have ended
 *
 * Waits for the last of them to be gone, CGROUP_PATIENCE_US at most; then it is left to
 * cgroup_sweep(). Harmless where there is none.
 */
void cgroup_end(struct cgroup *g);

#define CGROUP_PATIENCE_US UINT64_C(1000000)

/* What was used. */
struct cgroup_use {
    bool has_cpu, has_memory; /* it is measured; otherwise the numbers are 0 */
    uint64_t cpu_us;
    /* peak 0: it is not known. Before Linux 5.19 cgroup v2 does not tell: what it was at least,
     * once the group's own ceiling was reached. */
    uint64_t memory_bytes, peak_bytes;
    uint64_t oom_kills;
};

/** cgroup_read() - what the group has used so far */
void cgroup_read(const struct cgroup *g, struct cgroup_use *ret);

/** cgroup_oom_kills() - how often the kernel killed a process of it because memory ran out */
uint64_t cgroup_oom_kills(const struct cgroup *g);

/**
 * cgroup_sweep() - remove the groups that killed keepers have left, and kill what is in them
 *
 * Those of this user, or all for root, as far as they are below ancestors of this process's own
 * group. Return: how many.
 */
size_t cgroup_sweep(void);

/* --- cgroup_sweep.c, for cgroup.c --- */

#define CGROUP_FOLDER "atoll"
#define CGROUP_PREFIX "sandbox-"

/** cgroup_sweep_folder() - the same for the folder `atoll` at @fd; how many were removed */
size_t cgroup_sweep_folder(int fd, bool unified);

/** cgroup_remove() - rmdir @name in @fd, trying again while it has processes; 0 or -errno */
int cgroup_remove(int fd, const char *name, uint64_t patience_us);

/* --- cgroup_places.c --- */

/* Where each controller is; as cgroup_find(). */
struct cgroup_places {
    struct cgroup_place place[CGROUP_CONTROLLER__MAX];
    int found[CGROUP_CONTROLLER__MAX]; /* 0, or a negative errno */
};

/** cgroup_places_read() - read it, owned by the caller; NULL without memory */
struct cgroup_places *cgroup_places_read(void);

/** cgroup_places_first() - the first controller that is in the same hierarchy as @c */
enum cgroup_controller cgroup_places_first(const struct cgroup_places *p, enum cgroup_controller c);
