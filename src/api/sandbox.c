/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: creating, opening, ending, handles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "client/describe.h"
#include "client/stage.h"
#include "core/backends.h"
#include "core/sandbox_id.h"
#include "core/spec_copy.h"
#include "core/spec_rules.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum { ID_BYTES_MAX = 512 };

/* Both make a handle. */
struct create_op {
    struct atoll_op op;
    struct session_request request; /* CREATE or OPEN */
    struct atoll_sandbox *made;     /* until it was handed out */
    char *backend;                  /* whose name goes in front of the id; NULL: local */
    bool abandoned;                 /* given up while it was being created */
    struct spec spec; /* of a CREATE: a copy, as far as that sends it, and its inputs */
    struct description description; /* of a backend program, before it is asked to create */
    struct staging staging;         /* of the inputs, when it stands */
    struct lease_opening *lease;    /* of an OPEN: owned; NULL: none */
};

struct atoll_sandbox *sandbox_new(struct atoll *a)
{
    struct atoll_sandbox *sb = calloc(1, sizeof *sb);

    if (!sb)
        return NULL;
    sb->a = a;
    sb->session = (struct session)SESSION_INIT;
    sb->files.main = &sb->session;
    sb->next = a->sandboxes;
    sb->link = &a->sandboxes;
    if (sb->next)
        sb->next->link = &sb->next;
    a->sandboxes = sb;
    return sb;
}

void sandbox_free(struct atoll_sandbox *sb)
{
    bool ends = sb->owned || sb->session.backend;

    for (struct atoll_op *op = sb->a->ops; op; op = op->next)
        if (op->sb == sb)
            op_give_up(op, ECANCELED);
    sb->session.greeted = NULL;
    files_done(&sb->files);
    session_close(&sb->session);
    for (struct atoll_op *op = sb->a->ops; op; op = op->next)
        if (op->sb == sb) {
            if (op->class->detach)
                op->class->detach(op);
            op->sb = NULL;
        }
    context_leave(sb->a, &sb->session, ends);
    *sb->link = sb->next;
    if (sb->next)
        sb->next->link = sb->link;
    free(sb->id);
    free(sb->workdir);
    free(sb->policy);
    free(sb->holder);
    loop_free_later(&sb->a->loop, sb); /* the loop may be about to call its session */
}

const char *atoll_sandbox_id(const struct atoll_sandbox *sb)
{
    return sb->id ? sb->id : "";
}

void atoll_sandbox_free(struct atoll_sandbox *sb)
{
    if (sb)
        sandbox_free(sb);
}

/* --- creating and opening --- */

static void sandbox_over(struct session *s)
{
    struct atoll_sandbox *sb = s->owner;

    destroy_over(sb);
    if (sb->opening)
        op_fail(sb->opening, &s->error);
}

static void created(struct create_op *c)
{
    c->made->opening = NULL;
    op_done(&c->op);
}

static void got_lease(struct atoll_op *op)
{
    created((struct create_op *)op);
}

/* The connection is there, to a sandbox that stands. */
static void opened(struct create_op *c)
{
    if (c->lease)
        lease_opening_start(c->lease, c->made, &c->op, got_lease);
    else
        created(c);
}

static int set_id(struct create_op *c, const char *id)
{
    struct atoll_sandbox *sb = c->made;
    size_t size = strlen(id) + (c->backend ? strlen(c->backend) : 0) + 2;

    if (size > ID_BYTES_MAX)
        return -EPROTO;
    char *p = malloc(size);
    if (!p)
        return -ENOMEM;
    (void)snprintf(p, size, "%s%s%s", c->backend ? c->backend : "", c->backend ? ":" : "", id);
    free(sb->id);
    sb->id = p;
    return 0;
}

/* It will not be handed out: whatever there is of it must not stay. */
static void abandon(struct create_op *c)
{
    if (c->request.type != MSG_CREATE)
        return;
    c->abandoned = true;
    (void)session_destroy(&c->made->session);
}

static void inputs_staged(struct staging *g)
{
    created(g->owner);
}

static void inputs_failed(struct staging *g, const struct error *err)
{
    struct create_op *c = g->owner;

    abandon(c);
    op_fail(&c->op, err);
}

static void stage_inputs(struct create_op *c)
{
    c->staging = (struct staging){.owner = c, .done = inputs_staged, .failed = inputs_failed};
    staging_start(&c->staging, &c->made->session, &c->op.a->loop, &c->spec.inputs);
}

static int hear_created(struct create_op *c, const struct message *m)
{
    struct reader fields = m->payload;
    const char *id = text_next(&fields, TAG_SANDBOX_ID);
    int r = 0;

    session_forget(&c->request);
    if (fields.bad || (!id && c->backend))
        return -EPROTO;
    if (id && !c->made->id && (r = set_id(c, id)) == -EPROTO)
        return r;
    if (r < 0)
        op_fail_errno(&c->op, -r, "cannot keep the sandbox's id");
    else if (c->spec.inputs.n > 0)
        stage_inputs(c);
    else
        opened(c);
    return 0;
}

static int create_told(struct session_request *q, struct message *m)
{
    struct create_op *c = q->owner;
    struct error err;

    if (m->type == MSG_STEP)
        return 0;
    if (m->type == MSG_CREATED)
        return hear_created(c, m);
    if (m->type != MSG_ERROR || session_error(m, &err) < 0)
        return -EPROTO;
    session_forget(q);
    op_fail(&c->op, &err);
    return 0;
}

static void create_failed(struct session_request *q, const struct error *err)
{
    struct create_op *c = q->owner;

    op_fail(&c->op, err);
}

/* The keeper of a sandbox that stands has nothing more to say than its greeting. */
static void keeper_greeted(struct session *s)
{
    struct atoll_sandbox *sb = s->owner;

    if (sb->opening && sb->local && sb->id)
        opened((struct create_op *)sb->opening);
}

static bool create_cancel(struct atoll_op *op)
{
    struct create_op *c = (struct create_op *)op;

    session_forget(&c->request);
    description_done(&c->description);
    staging_stop(&c->staging);
    lease_opening_stop(c->lease);
    abandon(c);
    return true;
}

static void create_release(struct atoll_op *op)
{
    struct create_op *c = (struct create_op *)op;

    session_forget(&c->request);
    description_done(&c->description);
    staging_stop(&c->staging);
    spec_done(&c->spec);
    lease_opening_free(c->lease);
    if (c->made) {
        c->made->opening = NULL;
        if (c->abandoned)
            c->made->owned = true; /* its end is waited for */
        sandbox_free(c->made);
    }
    free(c->backend);
}

const struct op_class create_class = {.cancel = create_cancel, .release = create_release};

struct atoll_sandbox *create_result(struct atoll_op *op)
{
    struct create_op *c = (struct create_op *)op;

    return op->done && !op->failed ? TAKE_PTR(c->made) : NULL;
}

int sandbox_connect_backend(struct atoll_sandbox *sb, const char *name, struct error *err)
{
    int r = session_backend(&sb->session, name, err);

    return r < 0 ? r : session_watch(&sb->session, &sb->a->loop, err);
}

static const char *program_of(const struct atoll *a)
{
    return a->program ? a->program : secure_getenv("ATOLL_PROGRAM");
}

/* What must be refused before anything is started. */
static int check_spec(struct atoll_spec *s, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    struct spec_filling f = {.spec = &s->spec, .problems = &problems, .given = s->given};
    struct capability_results results;
    struct backend_room room;
    struct backend backend;

    spec_finish(&f); /* may write the image as an absolute path: the same spec still */
    if (problems_any(&problems))
        return problems_error(&problems, NULL, err);
    int r = backend_find(s->spec.backend, getenv("PATH"), &room, &backend, err);
    if (r < 0 || backend.state == BACKEND_PROGRAM)
        return r; /* which judges by itself */
    r = backend_require(&backend, err);
    if (r < 0)
        return r;
    if (!capability_check(&backend.capability, &s->spec, &results))
        capability_problems(&results, backend.name, &problems);
    return problems_error(&problems, NULL, err);
}

static int start_session(struct create_op *c, const struct spec *spec, struct error *err)
{
    struct atoll_sandbox *sb = c->made;
    int r;

    if (!sb->local)
        return sandbox_connect_backend(sb, spec->backend, err);
    r = session_launch(&sb->session, program_of(sb->a), err);
    return r < 0 ? r : session_watch(&sb->session, &sb->a->loop, err);
}

static struct create_op *new_create(struct atoll *a, const char *backend)
{
    struct create_op *c = op_new(a, NULL, &create_class, sizeof *c);

    if (!c)
        return NULL;
    c->made = sandbox_new(a);
    c->backend = strcmp(backend, "local") == 0 ? NULL : strdup(backend);
    if (!c->made || (!c->backend && strcmp(backend, "local") != 0)) {
        c->op.done = true;
        atoll_op_free(&c->op);
        return NULL;
    }
    c->made->opening = &c->op;
    c->made->local = !c->backend;
    c->request = (struct session_request){.owner = c, .told = create_told, .failed = create_failed};
    return c;
}

/* Without memory it is not told; what may be reached is as it is all the same. */
static void policy_changed(struct session *s, const struct policy_report *x)
{
    struct atoll_sandbox *sb = s->owner;
    char *copy = strdup(x->network);

    if (!copy)
        return;
    free(sb->policy);
    sb->policy = copy;
}

static void lease_lost(struct session *s)
{
    struct atoll_sandbox *sb = s->owner;

    sb->lease = 0;
}

/* Only once a session is there can it tell of its end. */
static void attend(struct atoll_sandbox *sb)
{
    sb->session.owner = sb;
    sb->session.over = sandbox_over;
    sb->session.greeted = keeper_greeted;
    sb->session.policy_changed = policy_changed;
    sb->session.lease_lost = lease_lost;
}

static void described(struct description *d, const struct error *err)
{
    struct create_op *c = d->owner;
    struct error failure = ERROR_INIT;

    if (err)
        failure = *err;
    else if (description_admits(d, &c->spec, &failure) == 0)
        (void)session_create(&c->made->session, &c->request, &c->spec, &failure);
    if (failure.code != 0)
        op_fail(&c->op, &failure);
}

static int create(struct create_op *c, struct atoll_spec *spec, unsigned flags, struct error *err)
{
    struct atoll_sandbox *sb = c->made;
    int r = flags & ~(unsigned)ATOLL_OWNED
                ? error_set(err, ERROR_USAGE, EINVAL, "unknown flags to create a sandbox")
                : check_spec(spec, err);

    if (r == 0)
        r = spec_copy(&spec->spec, UINT64_MAX, &c->spec); /* it is only lent */
    if (r == 0 && spec->spec.workdir && !(sb->workdir = strdup(spec->spec.workdir)))
        r = -ENOMEM;
    if (r == -ENOMEM && err->code == 0)
        (void)error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (r == 0)
        r = start_session(c, &spec->spec, err);
    attend(sb);
    if (r < 0)
        return r;
    sb->made = true;
    sb->owned = c->spec.owned = flags & ATOLL_OWNED;
    c->description.owner = c;
    c->description.told = described;
    return sb->local ? session_create(&sb->session, &c->request, &c->spec, err)
                     : description_ask(&c->description, &sb->session, err);
}

struct atoll_op *atoll_create(struct atoll *a, const struct atoll_spec *spec, unsigned flags)
{
    struct create_op *c = new_create(a, spec->spec.backend);
    struct error err = ERROR_INIT;

    if (!c)
        return NULL;
    if (create(c, (struct atoll_spec *)(uintptr_t)spec, flags, &err) < 0)
        op_fail(&c->op, &err);
    return &c->op;
}

static int open_by_id(struct create_op *c, const char *id, const char *rest, struct error *err)
{
    struct atoll_sandbox *sb = c->made;
    int r;

    sb->id = strdup(id);
    if (!sb->id)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (!sb->local) {
        r = sandbox_connect_backend(sb, c->backend, err);
        attend(sb);
        return r < 0 ? r : session_open(&sb->session, &c->request, rest, err);
    }
    r = session_connect(&sb->session, id, err);
    attend(sb);
    return r < 0 ? r : session_watch(&sb->session, &sb->a->loop, err);
}

struct atoll_op *atoll_open(struct atoll *a, const char *id)
{
    return sandbox_reach(a, id, NULL);
}

struct atoll_op *sandbox_reach(struct atoll *a, const char *id, struct lease_opening *l)
{
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    const char *rest = sandbox_id_split(id, backend);
    struct create_op *c = new_create(a, rest ? backend : "local");
    struct error err = ERROR_INIT;

    if (!c) {
        lease_opening_free(l);
        return NULL;
    }
    c->lease = l;
    if (!rest)
        (void)error_set(&err, ERROR_USAGE, EINVAL, "'%.100s' is no sandbox's id", id);
    else
        (void)open_by_id(c, id, rest, &err);
    if (err.code != 0)
        op_fail(&c->op, &err);
    return &c->op;
}

const struct lease_opening *sandbox_reached_lease(const struct atoll_op *op)
{
    return op_is(op, &create_class) ? ((const struct create_op *)op)->lease : NULL;
}
