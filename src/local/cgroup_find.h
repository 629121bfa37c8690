/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the control groups of this process are, from the kernel's texts: /proc/self/cgroup
 * (cgroups(7)) and /proc/self/mountinfo (proc_pid_mountinfo(5)). A controller belongs to one
 * hierarchy of cgroup v1, or else to the one of cgroup v2; a host may have both. Pure.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum cgroup_controller {
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_ACCOUNT, /* CPU time that was used; every group of cgroup v2 tells it */
    CGROUP_CONTROLLER__MAX,
};

#define CGROUP_BIT(controller) (1u << (controller))

struct cgroup_place {
    bool unified;         /* cgroup v2 */
    char mount[PATH_MAX]; /* the folder of the highest group that can be seen */
    char own[PATH_MAX];   /* the group of this process, below it: "a/b"; "": that one itself */
};

/**
 * cgroup_find() - the hierarchy of @controller, and this process's place in it
 * @groups, @mounts: the texts of the two files
 *
 * Return: 0; -ENOENT: it is not mounted, or not where this process is; -ENAMETOOLONG.
 */
int cgroup_find(enum cgroup_controller controller, const char *groups, const char *mounts,
                struct cgroup_place *ret);

/** cgroup_controller_name() - the kernel's word: "memory", "cpu", "cpuacct"; static storage */
const char *cgroup_controller_name(enum cgroup_controller controller);

/** cgroup_has_word() - whether the words of a line, which blanks or commas part, have @word */
bool cgroup_has_word(const char *words, const char *word);

/** cgroup_key() - the number after @key in a text of lines "KEY NUMBER"; 0 or -ENOENT */
int cgroup_key(const char *text, const char *key, uint64_t *ret);
