/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where events go: events.jsonl in the folder of a held sandbox, which is bounded and goes with it,
 * and the file of backend.audit, which only grows and stays. A line is whole in both or in neither.
 * Nothing here waits for a disk: what cannot be written is lost, and the sandbox goes on.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { EVENTS_BYTES_MAX = 1024 * 1024 };

/* What a sandbox has used in all; 0: not measured. */
struct event_usage {
    uint64_t cpu_us, memory_peak_bytes, egress_sent_bytes, egress_received_bytes, cost_micro;
};

struct event_log {
    int fd; /* owned; -EBADF: there is none, or not yet */
    size_t bytes;
    uint64_t gone;       /* lines that the file has no more */
    int audit_fd;        /* owned; -EBADF: there is none */
    uint64_t audit_lost; /* lines that it had no room for since the last one that it took */
    bool audit_half;     /* the last one could be written in part only */
    bool created;        /* it was told that there is a sandbox */
    struct event_usage used;
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
 * Return: 0, or a negative errno with an error: it cannot be opened, or is no ordinary file.
 */
int event_log_audit(struct event_log *l, const char *path, struct error *err);

/**
 * event_log_add() - one event
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
