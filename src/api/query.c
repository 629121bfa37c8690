/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox tells of itself and its commands, lists, and ending commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "core/sandbox_id.h"
#include "core/state.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum { LIST_MAX = 100000 };

/* One sandbox: the message that told of it, and views into that. */
struct info_item {
    uint8_t *message;
    struct atoll_info info;
    char *id;          /* with the backend's name in front; NULL: as in the message */
    const char **tags; /* NULL-terminated, and behind that what is published, likewise */
    size_t length;     /* of the message */
};

struct command_item {
    struct atoll_command command;
    const char **argv; /* NULL-terminated */
};

struct query_op {
    struct atoll_op op;
    struct session_request request;
    uint16_t expected;                     /* DONE, SANDBOX, COMMANDS, POLICY_SET */
    char name[BACKEND_NAME_BYTES_MAX + 1]; /* of a backend program; empty: local */
    struct atoll_sandbox *backend;         /* of a list: the connection, owned */
    struct info_item *items;
    size_t n_items;
    struct state_record *records; /* of a local list; items hold views of them */
    size_t n_records;
    uint8_t *message; /* of PS and POLICY_SET; commands and policy hold views of it */
    struct command_item *commands;
    size_t n_commands;
    struct atoll_policy policy;
};

static struct info_item *add_item(struct query_op *q)
{
    struct info_item *more;

    /* Grows by doubling, at powers of two. */
    if ((q->n_items & (q->n_items - 1)) == 0) {
        more = realloc(q->items, (q->n_items ? q->n_items * 2 : 1) * sizeof *more);
        if (!more)
            return NULL;
        q->items = more;
    }
    q->items[q->n_items] = (struct info_item){0};
    return &q->items[q->n_items++];
}

/* Who has it, what it may and what it has used. */
static void fill_sharing(struct atoll_info *i, const struct sandbox_info *x)
{
    i->lease = lease_state_name(x->lease_state);
    i->holder = x->holder;
    i->lease_generation = x->lease_generation;
    i->lease_until_us = x->lease_until_us;
    i->memory_limit = x->memory_limit_bytes;
    i->cpu_milli = x->cpu_milli;
    i->max_cost_micro = x->max_cost_micro;
    i->cpu_us = x->cpu_us;
    i->memory_used = x->memory_used_bytes;
    i->memory_peak = x->memory_peak_bytes;
    i->egress_sent = x->egress_sent_bytes;
    i->egress_received = x->egress_received_bytes;
    i->cost_micro = x->cost_micro;
    i->oom_kills = x->oom_kills;
}

static int fill_info(struct info_item *item, const struct sandbox_info *x)
{
    item->tags = calloc(x->n_labels + x->n_published + 2, sizeof *item->tags);
    if (!item->tags)
        return -ENOMEM;
    const char **published = item->tags + x->n_labels + 1;
    for (size_t i = 0; i < x->n_labels; i++)
        item->tags[i] = x->labels[i];
    for (size_t i = 0; i < x->n_published; i++)
        published[i] = x->published[i];
    item->info = (struct atoll_info){
        .id = x->id,
        .name = x->name,
        .owner = x->owner,
        .backend = x->backend,
        .image = x->image,
        .workdir = x->workdir,
        .hostname = x->hostname,
        .network = x->network,
        .state = sandbox_state_name(x->state),
        .created_at_us = x->created_at_us,
        .expires_at_us = x->expires_at_us,
        .idle_us = x->idle_us,
        .disk_used = x->disk_used_bytes,
        .disk_limit = x->disk_limit_bytes,
        .inodes_used = x->inodes_used,
        .inodes_limit = x->inodes_limit,
        .pids_limit = x->pids_limit,
        .uid = x->uid,
        .gid = x->gid,
        .processes = x->processes,
        .commands = x->n_commands,
        .keeper_pid = x->keeper_pid,
        .landlock_abi = x->landlock_abi,
        .policy_generation = x->policy_generation,
        .published = published,
    };
    fill_sharing(&item->info, x);
    return 0;
}

static uint8_t *copy_of(struct reader payload, size_t *ret_len)
{
    size_t len = reader_left(&payload);
    uint8_t *copy = malloc(len + 1);

    if (copy && len > 0)
        memcpy(copy, payload.p, len);
    *ret_len = len;
    return copy;
}

static int hear_sandbox(struct query_op *q, const struct message *m)
{
    struct sandbox_info x;
    struct info_item *item;
    size_t len;
    int r;

    if (q->n_items >= LIST_MAX)
        return -EPROTO;
    item = add_item(q);
    if (!item || !(item->message = copy_of(m->payload, &len)))
        return -ENOMEM;
    item->length = len;
    r = sandbox_info_decode(reader_over(item->message, len), &x);
    if (r < 0)
        return r;
    r = fill_info(item, &x);
    item->info.tags = item->tags;
    if (r < 0 || q->name[0] == '\0')
        return r;
    if (asprintf(&item->id, "%s:%s", q->name, x.id) < 0) {
        item->id = NULL;
        return -ENOMEM;
    }
    item->info.id = item->id;
    return 0;
}

static int add_command(struct query_op *q, const struct command_info *x)
{
    struct command_item *more =
        realloc(q->commands, (q->n_commands + 1) * sizeof *more); /* a thousand at most */
    struct command_item *c;

    if (!more)
        return -ENOMEM;
    q->commands = more;
    c = &q->commands[q->n_commands];
    c->argv = calloc(x->n_argv + 1, sizeof *c->argv);
    if (!c->argv)
        return -ENOMEM;
    for (size_t i = 0; i < x->n_argv; i++)
        c->argv[i] = x->argv[i];
    c->command = (struct atoll_command){
        .number = x->number,
        .pid = x->pid,
        .detached = x->flags & COMMAND_DETACHED,
        .tty = x->flags & COMMAND_TTY,
        .started_at_us = x->started_at_us,
        .timeout_us = x->timeout_us,
        .argv = c->argv,
    };
    q->n_commands++;
    return 0;
}

static int hear_commands(struct query_op *q, const struct message *m)
{
    struct command_info x;
    struct reader r;
    size_t len;
    int more;

    q->message = copy_of(m->payload, &len);
    if (!q->message)
        return -ENOMEM;
    r = reader_over(q->message, len);
    while ((more = command_info_next(&r, &x)) > 0) {
        int code = add_command(q, &x);

        if (code < 0)
            return code;
    }
    return more;
}

static int hear_policy(struct query_op *q, const struct message *m)
{
    struct policy_report x;
    size_t len;

    q->message = copy_of(m->payload, &len);
    if (!q->message)
        return -ENOMEM;
    int r = policy_report_decode(reader_over(q->message, len), &x);
    if (r == 0)
        q->policy = (struct atoll_policy){
            .network = x.network, .generation = x.generation, .flows_cut = x.flows_cut};
    return r;
}

static void finish(struct query_op *q, int r)
{
    session_forget(&q->request);
    if (r < 0)
        op_fail_errno(&q->op, -r, "cannot keep the answer");
    else
        op_done(&q->op);
}

static int told(struct session_request *request, struct message *m)
{
    struct query_op *q = request->owner;
    struct error err;
    int r = 0;

    if (m->type == MSG_ERROR) {
        if (session_error(m, &err) < 0)
            return -EPROTO;
        session_forget(request);
        op_fail(&q->op, &err);
        return 0;
    }
    if (m->type == MSG_SANDBOX && (q->expected == MSG_SANDBOX || q->backend))
        r = hear_sandbox(q, m);
    else if (m->type == MSG_COMMANDS && q->expected == MSG_COMMANDS)
        r = hear_commands(q, m);
    else if (m->type == MSG_POLICY_SET && q->expected == MSG_POLICY_SET)
        r = hear_policy(q, m);
    else if (m->type != q->expected)
        r = -EPROTO;
    if (r == -EPROTO)
        return r;
    if (r < 0 || m->type == q->expected)
        finish(q, r);
    return 0;
}

static void failed(struct session_request *request, const struct error *err)
{
    struct query_op *q = request->owner;

    op_fail(&q->op, err);
}

static bool query_cancel(struct atoll_op *op)
{
    session_forget(&((struct query_op *)op)->request);
    return true;
}

static void query_release(struct atoll_op *op)
{
    struct query_op *q = (struct query_op *)op;

    session_forget(&q->request);
    if (q->backend)
        sandbox_free(q->backend);
    for (size_t i = 0; i < q->n_items; i++) {
        if (q->items[i].message) /* it may hold values of variables */
            explicit_bzero(q->items[i].message, q->items[i].length);
        free(q->items[i].message);
        free(q->items[i].id);
        free(q->items[i].tags);
    }
    for (size_t i = 0; i < q->n_commands; i++)
        free(q->commands[i].argv);
    free(q->items);
    free(q->commands);
    free(q->message);
    state_records_free(q->records, q->n_records);
}

const struct op_class query_class = {.cancel = query_cancel, .release = query_release};

static void ask(struct query_op *q, struct session *s, uint16_t type, uint16_t expected,
                const struct writer *w)
{
    struct error err = ERROR_INIT;

    q->expected = expected;
    q->request = (struct session_request){.owner = q, .told = told, .failed = failed};
    if (session_ask(s, &q->request, type, w, NULL, 0, &err) < 0)
        op_fail(&q->op, &err);
}

static struct atoll_op *query(struct atoll_sandbox *sb, uint16_t type, uint16_t expected,
                              const struct writer *w)
{
    struct query_op *q = op_new(sb->a, sb, &query_class, sizeof *q);

    if (!q)
        return NULL;
    if (!sb->local && !sandbox_id_split(sb->id, q->name))
        q->name[0] = '\0';
    ask(q, &sb->session, type, expected, w);
    return &q->op;
}

struct atoll_op *atoll_inspect(struct atoll_sandbox *sb)
{
    return query(sb, MSG_INSPECT, MSG_SANDBOX, NULL);
}

struct atoll_op *inspect_with_env(struct atoll_sandbox *sb)
{
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_INSPECT_FLAGS, INSPECT_ENV);
    return query(sb, MSG_INSPECT, MSG_SANDBOX, &w);
}

const char *info_next_env(const struct atoll_op *op, struct reader *at)
{
    const struct query_op *q = op_is(op, &query_class) ? (const struct query_op *)op : NULL;

    if (!q || q->n_items != 1 || !q->items[0].message)
        return NULL;
    if (!at->p)
        *at = reader_over(q->items[0].message, q->items[0].length);
    return text_next(at, TAG_ENV);
}

struct atoll_op *atoll_ps(struct atoll_sandbox *sb)
{
    return query(sb, MSG_PS, MSG_COMMANDS, NULL);
}

struct atoll_op *atoll_kill(struct atoll_sandbox *sb, uint32_t number)
{
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_COMMAND_NUMBER, number);
    return query(sb, MSG_STOP, MSG_DONE, &w);
}

static size_t put_all(struct writer *w, uint16_t tag, const char *const *list)
{
    size_t size = 0;

    for (; list && *list; list++) {
        size += FIELD_HEADER_BYTES + strlen(*list) + 1;
        if (w)
            field_put_string(w, tag, *list);
    }
    return size;
}

struct atoll_op *atoll_change_policy(struct atoll_sandbox *sb, const struct atoll_policy_edits *e)
{
    size_t size = put_all(NULL, TAG_REMOVE, e->remove) +
                  put_all(NULL, TAG_ALLOW_HOST, e->allow_hosts) +
                  put_all(NULL, TAG_ALLOW_RANGE, e->allow_ranges);
    _cleanup_free_ uint8_t *buf = malloc(size + 1);
    struct writer w = writer_over(buf, buf ? size : 0);

    if (!buf)
        return NULL;
    (void)put_all(&w, TAG_REMOVE, e->remove);
    (void)put_all(&w, TAG_ALLOW_HOST, e->allow_hosts);
    (void)put_all(&w, TAG_ALLOW_RANGE, e->allow_ranges);
    return query(sb, MSG_POLICY, MSG_POLICY_SET, &w);
}

/* --- lists --- */

static int list_local(struct query_op *q, struct error *err)
{
    int r = state_list(&q->records, &q->n_records, err);

    for (size_t i = 0; r == 0 && i < q->n_records; i++) {
        const struct state_record *x = &q->records[i];
        struct info_item *item = add_item(q);

        if (!item)
            return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
        item->info = (struct atoll_info){
            .id = x->id,
            .name = x->name,
            .owner = x->owner,
            .backend = "local",
            .image = x->image,
            .state = sandbox_state_name(STATE_RUNNING),
            .created_at_us = x->created_at_us,
            .expires_at_us = x->expires_at_us,
            .keeper_pid = (uint32_t)x->pid,
        };
        item->tags = calloc(x->tags.n + 1, sizeof *item->tags);
        if (!item->tags)
            return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
        for (size_t j = 0; j < x->tags.n; j++)
            item->tags[j] = x->tags.items[j];
        item->info.tags = item->tags;
    }
    return r;
}

struct atoll_op *atoll_list(struct atoll *a, const char *backend)
{
    struct query_op *q = op_new(a, NULL, &query_class, sizeof *q);
    struct error err = ERROR_INIT;

    if (!q)
        return NULL;
    if (strcmp(backend, "local") == 0) {
        if (list_local(q, &err) < 0)
            op_fail(&q->op, &err);
        else
            op_done(&q->op);
        return &q->op;
    }
    (void)snprintf(q->name, sizeof q->name, "%s", backend);
    q->backend = sandbox_new(a);
    if (!q->backend)
        (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    else if (sandbox_connect_backend(q->backend, backend, &err) == 0)
        ask(q, &q->backend->session, MSG_ENUMERATE, MSG_DONE, NULL);
    if (err.code != 0)
        op_fail(&q->op, &err);
    return &q->op;
}

static const struct query_op *query_of(const struct atoll_op *op)
{
    return op_is(op, &query_class) ? (const struct query_op *)op : NULL;
}

size_t info_count(const struct atoll_op *op)
{
    const struct query_op *q = query_of(op);

    return q ? q->n_items : 0;
}

const struct atoll_info *info_result(const struct atoll_op *op, size_t i)
{
    const struct query_op *q = query_of(op);

    return q && i < q->n_items ? &q->items[i].info : NULL;
}

size_t commands_count(const struct atoll_op *op)
{
    const struct query_op *q = query_of(op);

    return q ? q->n_commands : 0;
}

const struct atoll_command *command_result(const struct atoll_op *op, size_t i)
{
    const struct query_op *q = query_of(op);

    return q && i < q->n_commands ? &q->commands[i].command : NULL;
}

const struct atoll_policy *policy_result(const struct atoll_op *op)
{
    const struct query_op *q = query_of(op);

    return q && q->policy.network ? &q->policy : NULL;
}
