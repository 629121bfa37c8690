/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a sandbox, and who may ask for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "core/lease.h"
#include "base/guards.h"

struct destroy_op {
    struct atoll_op op;
    struct claim claim; /* of tags, that it may be done; a keeper judges DESTROY itself */
    struct session_request request;
    char *owner; /* owned; NULL: none is presented */
    bool force;
};

static void finish(struct atoll_op *op)
{
    const struct session *s = &op->sb->session;

    /* A keeper that is gone has taken its sandbox with it. */
    if (s->ended || (op->sb->local && (s->error.code == EPIPE || s->error.code == 0)))
        op_done(op);
    else
        op_fail(op, &s->error);
}

void destroy_over(struct atoll_sandbox *sb)
{
    for (struct atoll_op *op = sb->a->ops; op; op = op->next)
        if (op->sb == sb && op->class == &destroy_class && !op->done)
            finish(op);
}

/* ENDED is told to the session; here comes that it cannot be done. */
static int told(struct session_request *q, struct message *m)
{
    struct atoll_op *op = q->owner;
    struct error err;

    if (m->type != MSG_ERROR || session_error(m, &err) < 0)
        return -EPROTO;
    session_forget(q);
    op_fail(op, &err);
    return 0;
}

/* With the session: destroy_over() knows whether that is good or bad. */
static void failed(struct session_request *q, const struct error *err)
{
    (void)q;
    (void)err;
}

/* When it cannot be sent, the session is over in a moment. */
static void send_destroy(struct destroy_op *d)
{
    size_t size = 3 * (FIELD_HEADER_BYTES + sizeof(uint64_t)) + (d->owner ? strlen(d->owner) : 0);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    struct error err = ERROR_INIT;

    if (d->owner)
        field_put_string(&w, TAG_OWNER, d->owner);
    if (d->force)
        field_put_u32(&w, TAG_DESTROY_FLAGS, DESTROY_FORCE);
    if (!buf)
        op_fail_errno(&d->op, ENOMEM, "cannot ask for the sandbox's end");
    else if (session_ask(&d->op.sb->session, &d->request, MSG_DESTROY, &w, NULL, 0, &err) ==
             -E2BIG) /* nothing was sent, and nothing will be answered */
        op_fail(&d->op, &err);
}

static void permitted(struct claim *c)
{
    send_destroy(c->owner);
}

static void not_permitted(struct claim *c, const struct error *err)
{
    struct destroy_op *d = c->owner;

    if (d->op.sb && d->op.sb->session.state != SESSION_OVER)
        op_fail(&d->op, err);
}

/* There is no way back from DESTROY; only its end is not waited for. */
static bool cancel(struct atoll_op *op)
{
    struct destroy_op *d = (struct destroy_op *)op;

    claim_done(&d->claim);
    session_forget(&d->request);
    return true;
}

static void release(struct atoll_op *op)
{
    struct destroy_op *d = (struct destroy_op *)op;

    (void)cancel(op);
    free(d->owner);
}

const struct op_class destroy_class = {.cancel = cancel, .release = release};

struct atoll_op *atoll_destroy(struct atoll_sandbox *sb)
{
    return atoll_destroy_as(sb, NULL, false);
}

/* @judged: by whoever hears DESTROY, or there is nothing to judge. */
static void start(struct destroy_op *d, bool judged)
{
    struct atoll_sandbox *sb = d->op.sb;
    struct error err = ERROR_INIT;

    if (sb->session.state == SESSION_OVER) {
        finish(&d->op);
    } else if (judged) {
        send_destroy(d);
    } else {
        d->claim = (struct claim){.owner = d, .done = permitted, .failed = not_permitted};
        if (claim_end(&d->claim, &sb->session, d->owner, &err) == 0)
            return;
        if (err.code == ENOSYS) { /* an earlier program, which has no owners */
            err = (struct error)ERROR_INIT;
            (void)lease_judge_owner(NULL, d->owner, &err);
        }
        if (err.code == 0)
            send_destroy(d);
        else
            op_fail(&d->op, &err);
    }
}

struct atoll_op *atoll_destroy_as(struct atoll_sandbox *sb, const char *owner, bool force)
{
    struct destroy_op *d = op_new(sb->a, sb, &destroy_class, sizeof *d);

    if (!d)
        return NULL;
    d->request = (struct session_request){.owner = d, .told = told, .failed = failed};
    d->force = force;
    if (owner && !(d->owner = strdup(owner)))
        op_fail_errno(&d->op, ENOMEM, "cannot ask for the sandbox's end");
    else
        start(d, force || sb->made || sb->local);
    return &d->op;
}
