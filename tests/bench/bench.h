/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs that time things with libatoll share: held.c and mcp.c. Each line of their
 * output is "NAME NANOSECONDS"; a failure is said on standard error and ends the program with
 * status 1.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "atoll.h"

enum {
    LIMIT_US = 60000000,
    ROUNDS_PER_WARM_UP = 50,
    ROUNDS_MAX = 1000000,
};

/* Longer than any measurement takes, and the end of what is left should this program be killed. */
#define BENCH_LIFETIME "300s"

static inline uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline int fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    return -1;
}

static inline int number(const char *text, int max)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || n < 1 || n > max) {
        (void)fail(text, strerror(EINVAL));
        exit(2);
    }
    return (int)n;
}

/* Rounds that come first and are not counted. */
static inline int warm_up(int rounds)
{
    return 1 + rounds / ROUNDS_PER_WARM_UP;
}

static inline void tell(const char *name, uint64_t ns)
{
    (void)printf("%s %llu\n", name, (unsigned long long)ns);
}

/* Return: 0 after a line on stdin, -1 at its end. */
static inline int await_line(void)
{
    char line[16];

    (void)fflush(stdout);
    return fgets(line, sizeof line, stdin) ? 0 : -1;
}

/* Waits for an operation. Return: 0, or -1 when it failed, which is said. */
static inline int finish(struct atoll_op *op, const char *what)
{
    const struct atoll_error *err;
    int r;

    if (!op)
        return fail(what, strerror(ENOMEM));
    r = atoll_wait(op, LIMIT_US);
    if (r == 0)
        return 0;
    err = atoll_op_error(op);
    return fail(what, err ? err->message : strerror(-r));
}

static inline int finish_and_free(struct atoll_op *op, const char *what)
{
    int r = finish(op, what);

    atoll_op_free(op);
    return r;
}

/* Return: a handle owned by the caller, or NULL. */
static inline struct atoll_sandbox *create_sandbox(struct atoll *a, unsigned flags)
{
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_sandbox *sb = NULL;
    struct atoll_error err;

    if (!spec || atoll_spec_set(spec, "backend.sandbox_timeout", BENCH_LIFETIME, &err) < 0) {
        (void)fail("spec", spec ? err.message : strerror(ENOMEM));
    } else {
        struct atoll_op *op = atoll_create(a, spec, flags);

        if (finish(op, "create") == 0)
            sb = atoll_op_sandbox(op);
        atoll_op_free(op);
    }
    atoll_spec_free(spec);
    return sb;
}

/* Runs a command in a sandbox with its output captured, until its results are freed. */
static inline int exec_inside(struct atoll_sandbox *sb, const char *const *argv)
{
    const struct atoll_exec x = {.argv = argv};
    struct atoll_op *op = atoll_exec(sb, &x);
    int r = finish(op, argv[0]);

    if (r == 0 && atoll_op_exit(op)->status != 0)
        r = fail(argv[0], atoll_op_output(op, 2, NULL));
    atoll_op_free(op);
    return r;
}
