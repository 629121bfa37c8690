/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What start_process has started in the sandbox in use. Each is a command of libatoll that goes on
 * while other calls run; what it writes is kept as news until it is asked for.
 */
#pragma once

#include "toolset/toolset.h"

enum {
    PROCESSES_RUNNING_MAX = 16,
    PROCESSES_ENDED_MAX = 32, /* that can still be asked for */
};

struct process {
    struct process *next;
    struct atoll_toolset *t;
    uint32_t number;     /* 0: it is in no table yet */
    struct atoll_op *op; /* of atoll_exec(); owned; NULL: not yet */
    struct news *news;   /* owned */
    struct loop_timer over;
    bool ended;             /* the operation is done, and nothing more will be written */
    bool stopped;           /* it was asked to end */
    bool judged;            /* that it ended was no loss of the sandbox */
    struct tool_call *call; /* that is about it */
    bool awaits_news;       /* … for what it writes, too, and not for its end alone */
};

struct processes {
    struct process *running, *ended; /* in the order of their starts; of their ends */
    uint32_t last_number;
};

/** process_new() - one that is to be started; NULL without memory */
struct process *process_new(struct atoll_toolset *t);

/** process_free() - of any state; its operation is cancelled. NULL is harmless */
void process_free(struct process *p);

/** process_follow() - keep what @op writes from now on; with NULL in its place, forget it */
void process_follow(struct process *p, struct atoll_op *op);

/**
 * processes_add() - it runs, so it gets a number
 * @p, @op: taken on success
 *
 * Return: 0 or -ENOMEM.
 */
int processes_add(struct process *p, struct atoll_op *op);

/** processes_find() - NULL: there is none of that number */
struct process *processes_find(const struct atoll_toolset *t, uint32_t number);

size_t processes_running(const struct atoll_toolset *t);

/**
 * processes_numbers() - "1, 2 and 3" of those that run, or of those that have ended
 *
 * Return: the text, empty for none, owned by the caller; NULL without memory.
 */
char *processes_numbers(const struct atoll_toolset *t, bool ended);

/** process_hold() - @c is about it, so it is not forgotten until process_leave() */
void process_hold(struct process *p, struct tool_call *c);

/**
 * process_await() - set the step of @c off when @p has ended, and at @until_us at the latest
 * @news: also shortly after it has written something
 *
 * Holds it, too. Until process_leave().
 */
void process_await(struct process *p, struct tool_call *c, bool news, uint64_t until_us);
void process_leave(struct process *p, const struct tool_call *c);
