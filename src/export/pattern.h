/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path with *, ? or [ is a pattern: each part of it is matched by itself (fnmatch(3)) against the
 * folder listed inside, so that "*" never crosses a "/" and names that begin with "." want a ".".
 * Regular files and folders match; links do not, wherever they lead, nor are any followed.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "client/files.h"

struct pattern_match {
    char *path;       /* as it is asked for inside */
    const char *rest; /* its parts from the first wildcard on; a view of @path */
    bool folder;
};

/* Zeroed: none. It must stay where it is until pattern_done(). */
struct pattern {
    /* Set by the caller. */
    struct files *files; /* borrowed */
    void *owner;
    void (*done)(struct pattern *p); /* something matched */
    void (*failed)(struct pattern *p, const struct error *err);

    struct pattern_match *found; /* by the bytes of their paths; once done */
    size_t n_found;

    /* Private. */
    char *text;  /* NUL in the place of every "/" behind the prefix */
    char *shown; /* the pattern as it was written */
    const char *part, *end;
    size_t rest; /* where it begins in paths */
    struct pattern_match *next;
    size_t n_next, at;
    struct file_op op;
};

/** pattern_is() - whether @path is one */
bool pattern_is(const char *path);

/** pattern_check() - refuse (-EINVAL, usage) what could not match as it was meant: "**" */
int pattern_check(const char *path, struct error *err);

/**
 * pattern_start() - look for what matches
 *
 * No match is an error (ENOENT), since a promised file is missing. Return: 0, then `done` or
 * `failed` comes from the loop; or a negative errno with an error.
 */
int pattern_start(struct pattern *p, const char *path, struct error *err);

/** pattern_done() - give it up if it is under way, and free; harmless on a zeroed one */
void pattern_done(struct pattern *p);
