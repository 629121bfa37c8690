/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of libatoll share: a context with its loop, operations and sandboxes.
 *
 * An operation of each kind is a struct that begins with struct atoll_op; its class says how it is
 * given up and freed. Callbacks of the layers below mark operations as done and do nothing else
 * that a caller could see: no code of the caller's ever runs from within here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atoll.h"
#include "base/error.h"
#include "base/loop.h"
#include "client/claim.h"
#include "client/denials.h"
#include "client/files.h"
#include "client/session.h"
#include "core/spec.h"

struct atoll_spec {
    struct spec spec;
    uint64_t given; /* fields that were set, as spec_field_bit() */
};

/* A keeper or backend program whose sandbox nobody holds any more: it is waited for. */
struct left_child {
    struct left_child *next;
    struct atoll *a;
    struct child child;
    struct loop_source source;
    bool ends; /* its sandbox is ending, so atoll_free() waits for it */
    bool backend;
};

struct atoll {
    struct loop loop;
    char *program; /* as atoll_set_program() */
    struct atoll_op *ops;
    struct atoll_sandbox *sandboxes;
    struct left_child *children;
};

struct op_class {
    /*
     * Give it up. Return: whether it is over by that; else it becomes done later. Called once, and
     * only while it is not done.
     */
    bool (*cancel)(struct atoll_op *op);
    /* Let go of its sandbox, whose connection was closed. May be NULL. */
    void (*detach)(struct atoll_op *op);
    /* Free what it holds besides itself; it is done, or was given up. */
    void (*release)(struct atoll_op *op);
    /*
     * What its accessors show, each NULL where there is nothing: the number of results of one that
     * went well, what was published, warnings of one that is done, bytes copied so far.
     */
    size_t (*count)(const struct atoll_op *op);
    const struct atoll_exported *(*exported)(const struct atoll_op *op, size_t i);
    const char *(*warning)(const struct atoll_op *op, size_t i);
    uint64_t (*progress)(const struct atoll_op *op);
};

struct atoll_op {
    const struct op_class *class;
    struct atoll *a;
    struct atoll_sandbox *sb; /* of which it is; NULL: of none, or that was let go */
    struct atoll_op *next, **link;
    bool done;
    bool failed;
    int given_up; /* ECANCELED or ETIMEDOUT, once it was */
    struct atoll_error error;
    struct loop_timer timeout;
    struct loop_timer *awaited; /* set off when it is done: see op_await() */
    void *data;
};

struct atoll_sandbox {
    struct atoll *a;
    struct atoll_sandbox *next, **link;
    struct session session;
    struct files files;
    char *id;
    char *workdir;  /* NULL: not known */
    char *policy;   /* to which others have changed it meanwhile, as a stamp; NULL: they have not */
    uint32_t lease; /* the generation that it acts by; 0: none */
    char *holder;   /* whose name its tags bear, with a backend program; NULL: nobody's of ours */
    bool made;      /* by this handle, which therefore needs no owner to end it */
    bool owned;
    bool local;
    struct atoll_op *opening; /* the create or open whose result it is to be; not yet handed out */
};

/* --- context.c --- */

/** api_error() - an error as callers see it; @ret may be NULL. Return: -err->code */
int api_error(struct atoll_error *ret, const struct error *err);

/** context_leave() - take over the child of a session that was closed */
void context_leave(struct atoll *a, struct session *s, bool ends);

/* --- op.c --- */

/**
 * op_new() - a zeroed operation of @size bytes, under way
 * @sb: NULL: of none
 *
 * Return: NULL without memory.
 */
void *op_new(struct atoll *a, struct atoll_sandbox *sb, const struct op_class *class, size_t size);

/** op_done() - it ended well */
void op_done(struct atoll_op *op);

/** op_fail() - it ended badly; if it was given up, that is its error. Harmless on a done one */
void op_fail(struct atoll_op *op, const struct error *err);

/** op_fail_errno() - the same for what has no words of its own: "WHAT: strerror" */
void op_fail_errno(struct atoll_op *op, int code, const char *what);

/** op_give_up() - cancel with @code as its error */
void op_give_up(struct atoll_op *op, int code);

/**
 * op_await() - set @t off when @op is done, at once if it is
 * @t: borrowed until @op is freed
 *
 * For operations that are made of others.
 */
void op_await(struct atoll_op *op, struct loop_timer *t);

/** op_is() - whether @op is of that class; NULL is of none */
bool op_is(const struct atoll_op *op, const struct op_class *class);

/* --- sandbox.c --- */

/** sandbox_new() - a handle without a connection; NULL without memory */
struct atoll_sandbox *sandbox_new(struct atoll *a);

/** sandbox_free() - close the connection and free; what is under way fails */
void sandbox_free(struct atoll_sandbox *sb);

struct lease_opening; /* lease.c */

/**
 * sandbox_reach() - atoll_open() that is done when @l is
 * @l: taken; NULL: nothing but to be open
 */
struct atoll_op *sandbox_reach(struct atoll *a, const char *id, struct lease_opening *l);

/** sandbox_reached_lease() - what an operation of sandbox_reach() was given; NULL: nothing, or it
 * is another one */
const struct lease_opening *sandbox_reached_lease(const struct atoll_op *op);

/** sandbox_connect_backend() - begin to speak with the program of backend @name */
int sandbox_connect_backend(struct atoll_sandbox *sb, const char *name, struct error *err);

/* --- destroy.c --- */

/** destroy_over() - the session of @sb is over: operations that wait for that are done */
void destroy_over(struct atoll_sandbox *sb);

/* --- lease.c --- */

/**
 * lease_opening_start() - take the lease, or present one, on the connection of a handle
 * @sb:  whose session is open
 * @op:  fails if that fails
 * @got: called when it is there
 */
void lease_opening_start(struct lease_opening *l, struct atoll_sandbox *sb, struct atoll_op *op,
                         void (*got)(struct atoll_op *op));

/** lease_opening_stop() - wait for it no longer; harmless on NULL */
void lease_opening_stop(struct lease_opening *l);

/** lease_opening_left() - whether @op, an attach that failed, may have left its holder in the tags
 */
bool lease_opening_left(const struct atoll_op *op);
void lease_opening_free(struct lease_opening *l);

/* --- capture.c --- */

/* The last bytes of a stream, and how many there were. */
struct capture {
    uint8_t *bytes; /* a ring once it is full */
    size_t capacity, length, start;
    size_t max;
    uint64_t total;
};

/** capture_space() - where the next bytes may be read to, at least one; NULL without memory */
uint8_t *capture_space(struct capture *c, size_t *ret_room);

/** capture_took() - @n bytes were put there */
void capture_took(struct capture *c, size_t n);

/** capture_finish() - in a row from bytes[0] on, with a NUL behind them; 0 or -ENOMEM */
int capture_finish(struct capture *c);

void capture_done(struct capture *c);

/* --- exit_denials.c --- */

/* What was refused while a command ran, for its operation, which outlives the execution. */
struct exit_denials {
    struct denials heard;
    struct atoll_denial *list; /* the same for callers, views of those */
};

/** exit_denials_take() - out of @from, which is empty then, into @d and as members of @exit */
void exit_denials_take(struct exit_denials *d, struct denials *from, struct atoll_exit *exit);
void exit_denials_done(struct exit_denials *d);

/* --- what the accessors of op.c ask of the classes --- */

struct atoll_sandbox *create_result(struct atoll_op *op);
size_t info_count(const struct atoll_op *op);
const struct atoll_info *info_result(const struct atoll_op *op, size_t i);
size_t commands_count(const struct atoll_op *op);
const struct atoll_command *command_result(const struct atoll_op *op, size_t i);
const struct atoll_policy *policy_result(const struct atoll_op *op);
const struct atoll_exit *exit_result(const struct atoll_op *op);
int exec_take_fd(struct atoll_op *op, int i);
const void *exec_output(const struct atoll_op *op, int stream, size_t *ret_len);
int exec_signal(struct atoll_op *op, int signal);
int file_take_fd(struct atoll_op *op, int i);
const void *file_output(const struct atoll_op *op, size_t *ret_len);
size_t file_count(const struct atoll_op *op);

/* --- exec.c --- */

/** exec_report() - how a command ended, as the peer told it; NULL: it did not */
const struct exit_report *exec_report(const struct atoll_op *op);

/** exec_left_us() - of the lifetime when a command ended; UINT64_MAX: no end, or not known */
uint64_t exec_left_us(const struct atoll_op *op);

/** exec_dropped() - bytes of a stream (1 or 2) that came and were not kept: the first ones */
uint64_t exec_dropped(const struct atoll_op *op, int stream);

/**
 * exec_follow() - have every piece of what a command writes passed on as it comes, too
 * @fn: must not free @op; @stream is 1 or 2
 *
 * To be asked for right after atoll_exec(), whose output is captured. Until @op is freed.
 */
void exec_follow(struct atoll_op *op,
                 void (*fn)(void *arg, int stream, const void *bytes, size_t len), void *arg);

/** exec_told() - atoll_exec() whose start is told: exec_await_start() */
struct atoll_op *exec_told(struct atoll_sandbox *sb, const struct atoll_exec *x);

/**
 * exec_await_start() - set @t off when the command runs; NULL: nobody waits any more
 *
 * To be asked for right after exec_told(). One that never runs is done instead: op_await().
 */
void exec_await_start(struct atoll_op *op, struct loop_timer *t);

/** exec_runs() - whether the start of one of exec_told() was told */
bool exec_runs(const struct atoll_op *op);

/**
 * exec_stop() - as atoll_op_signal(); what the command has left then ends with it
 *
 * @op is done when nothing of it is left. 0 or a negative errno.
 */
int exec_stop(struct atoll_op *op, int signal);

/** exec_held() - whether a process that it left behind held its output when that was given up */
bool exec_held(const struct atoll_op *op);

/* --- query.c --- */

/** inspect_with_env() - atoll_inspect() that is told the values of the spec's variables, too */
struct atoll_op *inspect_with_env(struct atoll_sandbox *sb);

/**
 * info_next_env() - the next "NAME=VALUE" of such an answer; NULL at the end
 * @at: zeroed before the first
 *
 * Other backends than local tell none. A view that lives as long as @op.
 */
const char *info_next_env(const struct atoll_op *op, struct reader *at);

extern const struct op_class create_class, destroy_class, query_class, exec_class, file_class;
