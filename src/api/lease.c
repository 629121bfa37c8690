/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that hold the lease of a sandbox, or act for who holds it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/guards.h"

/* What a handle gets before it is handed out. */
struct lease_opening {
    struct claim claim;
    char *owner, *holder; /* of an attach; both NULL: a generation is presented */
    uint64_t keep_us;
    uint32_t generation;
    struct atoll_sandbox *sb;
    struct atoll_op *op;
    void (*got)(struct atoll_op *op);
    struct atoll_attached attached;
    bool has_attached;
};

struct release_op {
    struct atoll_op op;
    struct claim claim;
};

void lease_opening_stop(struct lease_opening *l)
{
    if (l)
        claim_done(&l->claim);
}

void lease_opening_free(struct lease_opening *l)
{
    if (!l)
        return;
    claim_done(&l->claim);
    free(l->owner);
    free(l->holder);
    free(l);
}

/* By tags it is the holder's name that shows whose it is, and by which it is released. */
static void claimed(struct claim *c)
{
    struct lease_opening *l = c->owner;

    if (!l->holder) {
        l->sb->lease = l->generation;
        l->got(l->op);
        return;
    }
    l->attached = (struct atoll_attached){
        .generation = c->report.generation,
        .left_us = c->report.left_us,
        .network = c->report.network,
        .workdir = c->report.workdir,
        .warning = c->warning[0] ? c->warning : NULL,
    };
    l->has_attached = true;
    l->sb->lease = c->report.generation;
    if (l->sb->session.backend)
        l->sb->holder = TAKE_PTR(l->holder);
    l->got(l->op);
}

static void refused(struct claim *c, const struct error *err)
{
    struct lease_opening *l = c->owner;

    op_fail(l->op, err);
}

void lease_opening_start(struct lease_opening *l, struct atoll_sandbox *sb, struct atoll_op *op,
                         void (*got)(struct atoll_op *op))
{
    const struct attach_request x = {.owner = l->owner, .holder = l->holder, .keep_us = l->keep_us};
    struct error err = ERROR_INIT;

    l->sb = sb;
    l->op = op;
    l->got = got;
    l->claim = (struct claim){.owner = l, .done = claimed, .failed = refused};
    if (l->holder)
        (void)claim_attach(&l->claim, &sb->session, &x, &err);
    else
        (void)claim_present(&l->claim, &sb->session, l->generation, &err);
    if (err.code != 0)
        op_fail(op, &err);
}

struct atoll_op *atoll_attach(struct atoll *a, const char *id, const struct atoll_attach *x)
{
    struct lease_opening *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->owner = strdup(x->owner ? x->owner : "");
    l->holder = strdup(x->holder ? x->holder : "");
    l->keep_us = x->keep_us;
    if (l->owner && l->holder)
        return sandbox_reach(a, id, l);
    lease_opening_free(l);
    return NULL;
}

struct atoll_op *atoll_open_lease(struct atoll *a, const char *id, uint32_t generation)
{
    struct lease_opening *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->generation = generation;
    return sandbox_reach(a, id, l);
}

const struct atoll_attached *atoll_op_attached(const struct atoll_op *op)
{
    const struct lease_opening *l = op->done && !op->failed ? sandbox_reached_lease(op) : NULL;

    return l && l->has_attached ? &l->attached : NULL;
}

bool lease_opening_left(const struct atoll_op *op)
{
    const struct lease_opening *l = op->failed || op->given_up ? sandbox_reached_lease(op) : NULL;

    return l && l->claim.written;
}

uint32_t atoll_lease(const struct atoll_sandbox *sb)
{
    return sb->session.state == SESSION_OPEN ? sb->lease : 0;
}

/* --- giving it back --- */

static void released(struct claim *c)
{
    struct release_op *r = c->owner;

    if (r->op.sb) {
        r->op.sb->lease = 0;
        free(r->op.sb->holder);
        r->op.sb->holder = NULL;
    }
    op_done(&r->op);
}

static void not_released(struct claim *c, const struct error *err)
{
    struct release_op *r = c->owner;

    op_fail(&r->op, err);
}

static bool release_cancel(struct atoll_op *op)
{
    claim_done(&((struct release_op *)op)->claim);
    return true;
}

static void release_free(struct atoll_op *op)
{
    claim_done(&((struct release_op *)op)->claim);
}

static const struct op_class release_class = {.cancel = release_cancel, .release = release_free};

struct atoll_op *atoll_release(struct atoll_sandbox *sb)
{
    struct release_op *r = op_new(sb->a, sb, &release_class, sizeof *r);
    struct error err = ERROR_INIT;

    if (!r)
        return NULL;
    r->claim = (struct claim){.owner = r, .done = released, .failed = not_released};
    if (!sb->holder && sb->lease == 0)
        op_done(&r->op); /* it has none, or none any more */
    else if (claim_release(&r->claim, &sb->session, sb->holder, &err) < 0)
        op_fail(&r->op, &err);
    return &r->op;
}
