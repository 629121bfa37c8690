/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of events.jsonl (keeper/events.h), each once, also when lines of the file go while it
 * is read: then another file stands in its place, in which a line stands for those that are gone,
 * and says how many ("dropped").
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVENT_LINES_BYTES_MAX = 1024 * 1024 };

struct event_lines {
    int folder;  /* of the sandbox; borrowed */
    int fd;      /* of the file that is being read; owned; -EBADF: none */
    char *bytes; /* what is no whole line yet; owned */
    size_t len, capacity;
    uint64_t next; /* the number of the line that comes next, from 0 */
    uint64_t at;   /* of the line that is read next, in this file */
    bool too_long; /* what is read now belongs to a line that is passed over */
    char time[32]; /* of that; "": it has none */
    void *owner;
    /* @line without its line end, NUL-terminated, and the same as JSON. For one of more than
     * EVENT_LINES_BYTES_MAX it is a line "dropped". 0, or -errno to stop */
    int (*line)(void *owner, const char *line, const json_t *value);
};

/** event_lines_init() - nothing is read yet; owner and line are set by the caller */
void event_lines_init(struct event_lines *l, int folder);

/**
 * event_lines_read() - all lines that are there now
 *
 * Return: 0, also when there is no file; what line() returned; or a negative errno.
 */
int event_lines_read(struct event_lines *l);

void event_lines_done(struct event_lines *l);
