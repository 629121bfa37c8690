/* SPDX-License-Identifier: Apache-2.0 */
/* Another lifetime for a sandbox, and what is left of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "core/sandbox_id.h"
#include "base/guards.h"

struct extend_op {
    struct atoll_op op;
    struct session_request request;
    uint64_t left_us;
};

static int told(struct session_request *q, struct message *m)
{
    struct extend_op *x = q->owner;
    struct error err;

    if (m->type == MSG_ERROR && session_error(m, &err) == 0) {
        session_forget(q);
        op_fail(&x->op, &err);
        return 0;
    }
    if (m->type != MSG_EXTENDED)
        return -EPROTO;
    session_forget(q);
    x->left_us = left_decode(m->payload);
    op_done(&x->op);
    return 0;
}

static void failed(struct session_request *q, const struct error *err)
{
    struct extend_op *x = q->owner;

    op_fail(&x->op, err);
}

/* What was asked for is done or not: only its answer is not waited for. */
static bool extend_cancel(struct atoll_op *op)
{
    session_forget(&((struct extend_op *)op)->request);
    return true;
}

static void extend_release(struct atoll_op *op)
{
    session_forget(&((struct extend_op *)op)->request);
}

static const struct op_class extend_class = {.cancel = extend_cancel, .release = extend_release};

/* A keeper counts the lifetime, and backend programs have none. */
static void refuse_backend(struct extend_op *x)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    struct error err = ERROR_INIT;

    if (!sandbox_id_split(atoll_sandbox_id(x->op.sb), backend))
        (void)snprintf(backend, sizeof backend, "?");
    (void)error_set(&err, ERROR_TERMINAL, EOPNOTSUPP,
                    "the sandbox is one of backend '%s', and only the lifetime of one of local "
                    "can be changed",
                    backend);
    (void)error_remedy(&err, "Create it with a longer --lifetime (backend.sandbox_timeout)");
    op_fail(&x->op, &err);
}

struct atoll_op *atoll_extend(struct atoll_sandbox *sb, const char *owner, uint64_t lifetime_us)
{
    struct extend_op *x = op_new(sb->a, sb, &extend_class, sizeof *x);
    size_t size = 32 + (owner ? strlen(owner) + FIELD_HEADER_BYTES + 1 : 0);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    struct error err = ERROR_INIT;

    if (!x)
        return NULL;
    x->left_us = UINT64_MAX;
    x->request = (struct session_request){.owner = x, .told = told, .failed = failed};
    if (!sb->local) {
        refuse_backend(x);
        return &x->op;
    }
    field_put_u64(&w, TAG_LIFETIME_US, lifetime_us);
    if (owner)
        field_put_string(&w, TAG_OWNER, owner);
    if (!buf)
        (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    else
        (void)session_ask(&sb->session, &x->request, MSG_EXTEND, &w, NULL, 0, &err);
    if (err.code != 0)
        op_fail(&x->op, &err);
    return &x->op;
}

uint64_t atoll_op_left_us(const struct atoll_op *op)
{
    if (!op->done || op->failed)
        return UINT64_MAX;
    if (op_is(op, &extend_class))
        return ((const struct extend_op *)op)->left_us;
    return exec_left_us(op);
}
