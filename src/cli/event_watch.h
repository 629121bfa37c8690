/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of held sandboxes, as they stand in the state folder: what is there, and what comes. The
 * files are watched (inotify(7)); that a sandbox is over is told by its keeper, of which nothing
 * is asked, so that idle timeouts go on.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/loop.h"
#include "cli/options.h"

struct event_source;

struct event_watch {
    const struct text_list *tags; /* KEY=VALUE that a sandbox has to have; NULL: any */
    bool follow;
    int out_fd; /* where it is told to, borrowed: when nobody reads there any more, following ends
                 */
    void *owner;
    /* An event of sandbox @id: its line without the line end. 0, or -errno to stop */
    int (*line)(void *owner, const char *id, const char *line, const json_t *value);
    /* All that was there is told, as often as that happens. As above; may be NULL */
    int (*pause)(void *owner);

    /* Its own. */
    struct loop loop;
    struct loop_source changes, reader;
    struct loop_timer reap;
    struct event_source *sources;
    int changes_fd, state_fd, state_watch; /* -EBADF; -1 */
    bool all;                              /* those that come to be, too */
    bool unread;                           /* nobody reads at out_fd any more */
};

/**
 * event_watch_begin() - nothing is looked at yet; @w has its first six members set
 *
 * Return: 0 or a negative errno with an error; event_watch_done() is to be called in either case.
 */
int event_watch_begin(struct event_watch *w, struct error *err);

/** event_watch_one(), event_watch_all() - which: one sandbox by its whole id, or all with the tags;
 *  tells what is there. 0 or a negative errno with an error */
int event_watch_one(struct event_watch *w, const char *id, struct error *err);
int event_watch_all(struct event_watch *w, struct error *err);

/**
 * event_watch_follow() - tell what comes
 *
 * Blocks: of one sandbox until it is over, of all without end, and until nobody reads at out_fd,
 * which unread then says. Return: 0, or a negative errno with an error.
 */
int event_watch_follow(struct event_watch *w, struct error *err);

/** event_watch_done() - let go of everything */
void event_watch_done(struct event_watch *w);
