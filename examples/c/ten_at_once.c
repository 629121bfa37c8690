/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten commands at once in one sandbox, driven by a poll(2) loop that could watch anything else as
 * well. One of them would take an hour, and is cancelled when the others are done.
 */
#include <atoll.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMMANDS = 10, SLEEPER = 4 };

static void give_up(const char *what, const struct atoll_error *err)
{
    fprintf(stderr, "ten_at_once: %s: %s. %s\n", what, err ? err->message : "out of memory",
            err ? err->remedy : "");
    exit(1);
}

/* Waits until something has happened, and lets atoll work on it. */
static void turn(struct atoll *a)
{
    struct pollfd p = {.fd = atoll_fd(a), .events = POLLIN};

    if (poll(&p, 1, -1) < 0 || atoll_step(a) < 0) {
        perror("ten_at_once");
        exit(1);
    }
}

static struct atoll_sandbox *create(struct atoll *a)
{
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_op *op = spec ? atoll_create(a, spec, ATOLL_OWNED) : NULL;
    struct atoll_sandbox *sb;

    if (!op)
        give_up("create", NULL);
    while (!atoll_op_done(op))
        turn(a);
    if (atoll_op_error(op))
        give_up("create", atoll_op_error(op));
    sb = atoll_op_sandbox(op);
    atoll_op_free(op);
    atoll_spec_free(spec);
    return sb;
}

static struct atoll_op *start(struct atoll_sandbox *sb, int i)
{
    char script[64];
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct atoll_exec x = {.argv = argv};
    struct atoll_op *op;

    if (i == SLEEPER)
        snprintf(script, sizeof script, "sleep 3600");
    else
        snprintf(script, sizeof script, "echo $((%d * %d))", i, i);
    op = atoll_exec(sb, &x); /* all strings are copied */
    if (!op)
        give_up("exec", NULL);
    return op;
}

static int count_done(struct atoll_op *const ops[])
{
    int n = 0;

    for (int i = 0; i < COMMANDS; i++)
        n += atoll_op_done(ops[i]);
    return n;
}

int main(void)
{
    struct atoll_op *ops[COMMANDS];
    struct atoll_error err;
    struct atoll *a;

    signal(SIGPIPE, SIG_IGN);
    if (atoll_new(&a, &err) < 0)
        give_up("context", &err);
    struct atoll_sandbox *sb = create(a);

    for (int i = 0; i < COMMANDS; i++)
        ops[i] = start(sb, i);
    while (count_done(ops) < COMMANDS - 1)
        turn(a);
    atoll_op_cancel(ops[SLEEPER]);
    while (!atoll_op_done(ops[SLEEPER]))
        turn(a);

    for (int i = 0; i < COMMANDS; i++) {
        if (atoll_op_error(ops[i]))
            printf("%d: %s\n", i, atoll_op_error(ops[i])->message);
        else
            printf("%d: %s", i, (const char *)atoll_op_output(ops[i], 1, NULL));
        atoll_op_free(ops[i]);
    }
    atoll_free(a); /* with its sandbox */
    return 0;
}
