/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: from start to end, whatever they do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

void *op_new(struct atoll *a, struct atoll_sandbox *sb, const struct op_class *class, size_t size)
{
    struct atoll_op *op = calloc(1, size);

    if (!op)
        return NULL;
    op->class = class;
    op->a = a;
    op->sb = sb;
    op->next = a->ops;
    op->link = &a->ops;
    if (op->next)
        op->next->link = &op->next;
    a->ops = op;
    return op;
}

static void set_done(struct atoll_op *op)
{
    op->done = true;
    loop_at(&op->a->loop, &op->timeout, CLOCK_NEVER);
    if (op->awaited)
        loop_at(&op->a->loop, op->awaited, clock_now_us());
}

void op_await(struct atoll_op *op, struct loop_timer *t)
{
    op->awaited = t;
    if (op->done)
        loop_at(&op->a->loop, t, clock_now_us());
}

static void fail_given_up(struct atoll_op *op)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_RECOVERABLE, op->given_up,
                    op->given_up == ETIMEDOUT ? "the operation was given up: its time was over"
                                              : "the operation was cancelled");
    op->failed = true;
    (void)api_error(&op->error, &err);
}

void op_done(struct atoll_op *op)
{
    if (op->done)
        return;
    if (op->given_up)
        fail_given_up(op);
    set_done(op);
}

void op_fail(struct atoll_op *op, const struct error *err)
{
    if (op->done)
        return;
    if (op->given_up) {
        fail_given_up(op);
    } else {
        op->failed = true;
        (void)api_error(&op->error, err);
    }
    set_done(op);
}

void op_fail_errno(struct atoll_op *op, int code, const char *what)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, code, "%s: %s", what, strerror(code));
    op_fail(op, &err);
}

void op_give_up(struct atoll_op *op, int code)
{
    struct error none = ERROR_INIT;

    if (op->done || op->given_up)
        return;
    op->given_up = code;
    if (op->class->cancel(op))
        op_fail(op, &none);
}

bool op_is(const struct atoll_op *op, const struct op_class *class)
{
    return op && op->class == class;
}

bool atoll_op_done(const struct atoll_op *op)
{
    return op->done;
}

int atoll_wait(struct atoll_op *op, uint64_t timeout_us)
{
    uint64_t until = timeout_us == ATOLL_FOREVER ? CLOCK_NEVER : clock_after_us(timeout_us);

    while (!op->done) {
        int r = loop_turn(&op->a->loop, until);

        if (r < 0)
            return r;
        if (!op->done && until != CLOCK_NEVER && clock_now_us() >= until)
            return -EINPROGRESS;
    }
    return op->failed ? -op->error.code : 0;
}

const struct atoll_error *atoll_op_error(const struct atoll_op *op)
{
    return op->failed ? &op->error : NULL;
}

void atoll_op_cancel(struct atoll_op *op)
{
    op_give_up(op, ECANCELED);
}

static int time_over(struct loop *l, struct loop_timer *t)
{
    (void)l;
    op_give_up(t->owner, ETIMEDOUT);
    return 0;
}

void atoll_op_set_timeout(struct atoll_op *op, uint64_t us)
{
    if (op->done)
        return;
    op->timeout.name = "operation";
    op->timeout.owner = op;
    op->timeout.due = time_over;
    loop_at(&op->a->loop, &op->timeout, clock_after_us(us));
}

void atoll_op_set_data(struct atoll_op *op, void *data)
{
    op->data = data;
}

void *atoll_op_data(const struct atoll_op *op)
{
    return op->data;
}

void atoll_op_free(struct atoll_op *op)
{
    if (!op)
        return;
    if (!op->done && !op->given_up)
        (void)op->class->cancel(op);
    op->done = true;
    loop_at(&op->a->loop, &op->timeout, CLOCK_NEVER);
    op->class->release(op);
    *op->link = op->next;
    if (op->next)
        op->next->link = op->link;
    loop_free_later(&op->a->loop, op);
}

struct atoll_sandbox *atoll_op_sandbox(struct atoll_op *op)
{
    return op_is(op, &create_class) ? create_result(op) : NULL;
}

size_t atoll_op_count(const struct atoll_op *op)
{
    if (!op->done || op->failed)
        return 0;
    if (op->class->count)
        return op->class->count(op);
    return op_is(op, &file_class) ? file_count(op) : info_count(op) + commands_count(op);
}

const struct atoll_info *atoll_op_info(const struct atoll_op *op, size_t i)
{
    return op->done && !op->failed ? info_result(op, i) : NULL;
}

const struct atoll_command *atoll_op_command(const struct atoll_op *op, size_t i)
{
    return op->done && !op->failed ? command_result(op, i) : NULL;
}

const struct atoll_policy *atoll_op_policy(const struct atoll_op *op)
{
    return op->done && !op->failed ? policy_result(op) : NULL;
}

const struct atoll_exit *atoll_op_exit(const struct atoll_op *op)
{
    return op->done && op_is(op, &exec_class) ? exit_result(op) : NULL;
}

int atoll_op_signal(struct atoll_op *op, int signal)
{
    if (signal < 1 || signal > 64)
        return -EINVAL;
    if (!op_is(op, &exec_class))
        return -ENOTSUP;
    return op->done ? -ESRCH : exec_signal(op, signal);
}

int atoll_op_take_fd(struct atoll_op *op, int i)
{
    return op_is(op, &exec_class)   ? exec_take_fd(op, i)
           : op_is(op, &file_class) ? file_take_fd(op, i)
                                    : -EBADF;
}

const void *atoll_op_output(const struct atoll_op *op, int stream, size_t *ret_len)
{
    const void *p = NULL;
    size_t len = 0;

    if (op->done && op_is(op, &exec_class))
        p = exec_output(op, stream, &len);
    else if (op->done && !op->failed && op_is(op, &file_class) && stream == 1)
        p = file_output(op, &len);
    if (ret_len)
        *ret_len = len;
    return p;
}

const struct atoll_exported *atoll_op_exported(const struct atoll_op *op, size_t i)
{
    bool there = op->done && !op->failed && op->class->exported;

    return there ? op->class->exported(op, i) : NULL;
}

const char *atoll_op_warning(const struct atoll_op *op, size_t i)
{
    return op->done && op->class->warning ? op->class->warning(op, i) : NULL;
}

uint64_t atoll_op_progress(const struct atoll_op *op)
{
    return op->class->progress ? op->class->progress(op) : 0;
}
