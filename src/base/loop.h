/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one event loop: descriptors, timers, signals and processes (as pidfds) are sources with a
 * name and a callback. There is no thread and no signal handler.
 *
 * Sources and timers are embedded in their owner. A callback may forget any source, its own too;
 * memory that holds a source is given to loop_free_later(), since the batch of events being worked
 * on may still name it.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

struct loop_source {
    const char *name; /* for logs: "client", "init", "child" */
    int fd;           /* borrowed; -EBADF while not watched */
    uint32_t events;
    void *owner;
    /* Return: 0, or a negative errno with which the whole loop ends. */
    int (*ready)(struct loop *l, struct loop_source *s, uint32_t events);
};

struct loop_timer {
    const char *name;
    uint64_t deadline_us; /* CLOCK_MONOTONIC */
    bool set;
    void *owner;
    int (*due)(struct loop *l, struct loop_timer *t);
    struct loop_timer *next;
};

struct loop {
    int epoll_fd;
    bool stop;
    struct loop_timer *timers; /* by deadline */
    void **garbage;
    size_t n_garbage;
    struct loop_source alarm; /* a timerfd, once the loop is pollable */
    uint64_t alarm_us;        /* when it goes off; CLOCK_NEVER: not */
};

/** loop_init() - an empty loop; 0 or a negative errno */
int loop_init(struct loop *l);

/** loop_done() - free what the loop owns; watched descriptors stay open */
void loop_done(struct loop *l);

/**
 * loop_watch() - call @s->ready when @fd has one of @events (EPOLLIN …)
 * @s:  its name, owner and ready are set by the caller; it must stay where it is until forgotten
 * @fd: borrowed
 *
 * Return: 0 or a negative errno (-EPERM for a regular file: epoll(7) has no such source).
 */
int loop_watch(struct loop *l, struct loop_source *s, int fd, uint32_t events);

/**
 * loop_change() - other events for a watched source
 *
 * 0 silences it altogether. (epoll itself reports a hang-up whatever was asked for, and would do so
 * without end while nobody reads.) Return: 0 or a negative errno.
 */
int loop_change(struct loop *l, struct loop_source *s, uint32_t events);

/** loop_forget() - stop watching; harmless when not watched. Does not close the descriptor. */
void loop_forget(struct loop *l, struct loop_source *s);

/** loop_at() - set or move a timer; CLOCK_NEVER clears it */
void loop_at(struct loop *l, struct loop_timer *t, uint64_t deadline_us);

/**
 * loop_open_signals() - block @set and open a descriptor that tells of its signals
 *
 * Return: a signalfd (signalfd(2)), owned by the caller, or a negative errno.
 */
int loop_open_signals(const sigset_t *set);

/** loop_free_later() - free() @p when the batch of events is done */
void loop_free_later(struct loop *l, void *p);

/**
 * loop_make_pollable() - let the epoll descriptor be readable when a timer is due, too
 *
 * For a loop that is driven by loop_turn() from inside another one. Return: 0 or a negative errno.
 */
int loop_make_pollable(struct loop *l);

/**
 * loop_turn() - work on what has happened, once
 * @until_us: how long to wait for something to happen; 0: not at all
 *
 * Return: 0, also when nothing has happened, or what a callback ended the loop with.
 */
int loop_turn(struct loop *l, uint64_t until_us);

/**
 * loop_run() - work on events until @l->stop
 *
 * Blocks. Return: 0, or what a callback ended the loop with.
 */
int loop_run(struct loop *l);
