/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to a sandbox, one JSON object a line, in events.jsonl of its folder in the state
 * folder; and what a command is told of the attempts that were refused while it ran. The file is
 * bounded: at EVENTS_BYTES_MAX the older half goes, and the first line then says how many went.
 * Whoever reads it has either the file before that or the one after it, whole lines in both
 * (docs/reference/json/events.schema.json).
 */
#pragma once

#include "wire/denial.h"

struct keeper;

enum {
    EVENTS_BYTES_MAX = 1024 * 1024,
    DENIALS_OF_COMMAND = 16, /* different ones that EXITED tells; the rest is counted */
};

struct event_log {
    int fd; /* owned; -EBADF: there is none, or not yet */
    size_t bytes;
    uint64_t gone; /* lines that the file has no more */
};

#define EVENT_LOG_INIT                                                                             \
    {                                                                                              \
        .fd = -EBADF                                                                               \
    }

/**
 * events_open() - make the file of a held sandbox; 0 or -errno. An owned one has none.
 *
 * One that is sealed gets it with its first event.
 */
int events_open(struct keeper *k);
void events_close(struct keeper *k);

/** events_denied() - a refusal: a line, and a note for each command that runs */
void events_denied(struct keeper *k, const struct denial *x);

/** events_policy() - the policy was changed, to what @stamp says */
void events_policy(struct keeper *k, uint32_t generation, const char *stamp, uint32_t cut);
