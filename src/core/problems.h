/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that is wrong with a spec, found in one go: a user should not have to run a check
 * once per mistake. Each problem names its field and, when it came from a file, its place there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Where in a text something stands, both counted from 1; a line of 0: not from a file. */
struct position {
    unsigned line, column;
};

struct problem {
    char *field; /* "spec.allow_egress_to[2]", "backend.memory"; owned */
    struct position at;
    char *message; /* one sentence without a full stop at its end; owned */
    char *remedy;  /* the same, or NULL; owned */
};

/* Ordered as found; problems_sort() orders by place. Zeroed: none. */
struct problems {
    struct problem *items;
    size_t n;
    bool no_memory; /* some could not be kept: the spec must be refused all the same */
};

void problems_done(struct problems *p);

/**
 * problems_add() - record one more
 * @remedy: copied, or NULL
 */
__attribute__((format(printf, 5, 6))) void problems_add(struct problems *p, const char *field,
                                                        struct position at, const char *remedy,
                                                        const char *fmt, ...);

/** problems_any() - whether the spec must be refused */
bool problems_any(const struct problems *p);

/** problems_sort() - by line and column; those without a place come last, in the order found */
void problems_sort(struct problems *p);

/**
 * problem_format() - one as a line for people: "job.yaml:4:9: spec.env.PORT: MESSAGE. REMEDY."
 * @file: the file's name, or NULL
 * @buf:  always terminated; control bytes replaced
 */
void problem_format(const struct problem *x, const char *file, char *buf, size_t size);

/**
 * problems_error() - all of them as one usage error, as far as its text holds them
 *
 * One problem becomes the error itself; of several, each is named and those that no longer fit are
 * counted. Return: -EINVAL with @err set, or 0 when there are none.
 */
int problems_error(const struct problems *p, const char *file, struct error *err);
