/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where events go: events.jsonl in the folder of a held sandbox, which is bounded and goes with it,
 * and the file of backend.audit, which only grows and stays. A line is whole or not there. In the
 * place of lines that are not there stands one that says how many ("dropped"), so that those of
 * events.jsonl keep their numbers (cli/event_lines.h).
 *
 * What cannot be written is lost, and the sandbox goes on. But write(2) to a regular file knows no
 * O_NONBLOCK: the keeper waits while the kernel takes the bytes. That is bounded on a disk of the
 * host, and is not where a server has to answer: there no audit file may be.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"

enum {
    EVENTS_BYTES_MAX = 1024 * 1024,
    EVENT_LINE_BYTES_MAX = EVENTS_BYTES_MAX / 4, /* a longer line is not in events.jsonl */
};

/* What a sandbox has used in all; 0: not measured. */
struct event_usage {
    uint64_t cpu_us, memory_peak_bytes, egress_sent_bytes, egress_received_bytes, cost_micro;
};

/* Lines about refusals, of which a program inside can cause any number. */
struct denial_lines {
    uint64_t paid_us; /* CLOCK_MONOTONIC up to which the lines that were told take their share */
    json_t *waiting;  /* the first one that came too soon; owned; NULL: none */
    uint64_t dropped; /* attempts that are only counted, in the line that waits */
    struct loop_timer due;
};

struct event_log {
    int fd; /* owned; -EBADF: there is none, or not yet */
    size_t bytes;
    uint64_t lost;       /* lines that it had no room for since the last one that it took */
    bool withdrawn;      /* its folder is gone or goes now: no other file can stand in its place */
    int audit_fd;        /* owned; -EBADF: there is none */
    uint64_t audit_lost; /* lines that it had no room for since the last one that it took */
    bool audit_half;     /* the last one could be written in part only */
    bool created;        /* it was told that there is a sandbox */
    struct event_usage used;
    struct denial_lines denials;
    struct mask *mask; /* of what events must not show; owned; NULL: made with the first text */
};

#define EVENT_LOG_INIT                                                                             \
    {                                                                                              \
        .fd = -EBADF, .audit_fd = -EBADF                                                           \
    }

/** event_log_open() - make events.jsonl in the folder of sandbox @id; 0 or a negative errno */
int event_log_open(struct event_log *l, const char *id);

/**
 * event_log_audit() - open the file at @path, which is made if it is absent, to add lines to it
 *
 * Return: 0, or a negative errno with an error: it cannot be opened, is no ordinary file, or lies
 * where writing may wait for a server. Then no file was made there.
 */
int event_log_audit(struct event_log *l, const char *path, struct error *err);

/**
 * event_log_server_of() - "NFS" …: what kind of file system lets who writes wait for a server
 * @type: f_type of statfs(2)
 *
 * Return: its name; NULL: another one.
 */
const char *event_log_server_of(unsigned long type);

/**
 * event_log_add() - one event
 *
 * A full events.jsonl loses some lines of its older half: those of refusals, then those of
 * commands, and all of them only when that is not enough. It is not cut any more once it was
 * withdrawn.
 * @id:   of the sandbox, which stands in each line of the audit file
 * @kept: whether the sandbox has a folder: then events.jsonl gets the line too, and is made if that
 *        has not been done
 * @o:    an object whose first member is its time; consumed, and NULL (no memory) is lost
 */
void event_log_add(struct event_log *l, const char *id, bool kept, json_t *o);

/** event_time_json() - microseconds since the epoch as RFC 3339 has them, in UTC; or NULL */
json_t *event_time_json(uint64_t epoch_us);

/** event_log_close() - harmless when it was never opened */
void event_log_close(struct event_log *l);
