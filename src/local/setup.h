/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying the plan out, in the new process 1, before any foreign code runs
 * there.
 *
 * The process starts as a copy of the keeper in fresh namespaces, while the
 * keeper still makes the plan, in memory that both share. It works through the
 * steps in order; each narrows what the process may still do, and the last one
 * replaces it by init.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/limits.h"
#include "local/plan.h"

/* Ids of MSG_GO: the mount of a volume by its number (one more is the image's),
 * or one of these. */
enum { GO_PLAN = 1000 };

struct setup {
    const struct plan *plan;
    int link_fd;  /* the socket to the keeper; becomes init's */
    int init_fd;  /* init's memory file */
    int root_fd;  /* the new root mount; -EBADF before STEP_ROOT */
    int net_fd;   /* a socket on which the network namespace comes */
    int oom_fd;   /* this process's oom_score_adj, for init; -EBADF: it does without */
    bool planned; /* the plan is made, the ids are mapped */
    int landlock_abi;
    int volume_fds[LIMIT_VOLUMES + 1]; /* mounts the keeper made: volumes, then the image */
};

/**
 * setup_run() - wait for the plan, carry out all steps and become init
 *
 * What the keeper and its helper make meanwhile comes as MSG_GO: GO_PLAN says
 * that @s->plan is made and the ids are mapped; mounts that only the keeper
 * could make come before that; the network comes when it is ready. Runs in the
 * child of clone(2). A failure is sent to the keeper as MSG_FAULT. Does not
 * return.
 */
__attribute__((noreturn)) void setup_run(struct setup *s);

/* Each of these carries out one kind of step. Return: 0 or a negative errno. */
int setup_private(void);
int setup_network(struct setup *s);
int setup_wait_for_plan(struct setup *s);
int setup_ids(const struct setup *s);
int setup_root(struct setup *s, const struct step *step);
int setup_overlay(struct setup *s, const struct step *step);
int setup_folder(struct setup *s, const struct step *step);
int setup_writable(struct setup *s, const struct step *step);
int setup_link(struct setup *s, const struct step *step);
int setup_file(struct setup *s, const struct step *step);
int setup_bind(struct setup *s, const struct step *step);
int setup_hide(struct setup *s, const struct step *step);
int setup_volume(struct setup *s, const struct step *step);
int setup_workdir(struct setup *s, const struct step *step);
int setup_proc(struct setup *s, const struct step *step);
int setup_proc_lock(struct setup *s, const struct step *step);
int setup_proc_mask(struct setup *s, const struct step *step);
int setup_sysctl(struct setup *s, const struct step *step);
int setup_dev(struct setup *s, const struct step *step);
int setup_terminals(struct setup *s, const struct step *step);
int setup_shm(struct setup *s, const struct step *step);
int setup_read_only(struct setup *s, const struct step *step);
int setup_pivot(struct setup *s);
int setup_limits(const struct step *step);
int setup_landlock(struct setup *s);
int setup_privileges(void);
int setup_init(struct setup *s);
