/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The group below which the groups of sandboxes are made: the highest ancestor of this process's
 * own in which this user may do that.
 *
 * The highest, since on cgroup v2 a group with processes of its own can give controllers to none
 * below it, so that the own group of this process is the one that rarely serves; and since whoever
 * looks for what killed keepers have left finds it by the same way. But no group is left that has
 * a ceiling itself, of memory, swap, CPU time, CPUs, memory nodes or disk traffic: what holds this
 * process holds its sandboxes too. A ceiling of processes (pids.max) is none of these: systemd sets
 * one on every service and session, in which no group could be made then, and a sandbox has its
 * own. No process is ever moved but a sandbox's own.
 */
#pragma once

#include "local/cgroup_find.h"
#include "local/cgroup_refusal.h"

struct cgroup_parent {
    int fd;                /* owned */
    char folder[PATH_MAX]; /* its path, for people; of a refusal too */
    enum cgroup_controller lacking;
    enum cgroup_why why; /* of -ENODEV */
};

/**
 * cgroup_parent_open() - find it
 * @controllers: CGROUP_BIT() of those that groups below it are to have
 * @ret:         folder, lacking and why are set on error too
 *
 * Changes nothing. Return: 0, or a negative errno: -ENODEV where there is no such controller,
 * -EBUSY where processes are in the way, -EACCES, -EROFS, …
 */
int cgroup_parent_open(const struct cgroup_place *place, unsigned controllers,
                       struct cgroup_parent *ret);

/**
 * cgroup_parent_each() - call @visit for each group from the highest down to this process's own
 * @fd: borrowed until it returns
 */
void cgroup_parent_each(const struct cgroup_place *place,
                        void (*visit)(void *arg, const struct cgroup_place *place, int fd),
                        void *arg);
