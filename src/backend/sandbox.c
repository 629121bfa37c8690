/* SPDX-License-Identifier: Apache-2.0 */
/* Making, opening, describing and ending the sandbox. */
#include <atoll_backend.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "backend/server.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "core/spec.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

static const char *const *list_view(const struct string_list *l)
{
    static const char *const none[] = {NULL};

    return l->n > 0 ? (const char *const *)(uintptr_t)l->items : none;
}

static struct atoll_backend_spec spec_view(const struct spec *s)
{
    return (struct atoll_backend_spec){
        .image = s->image,
        .workdir = s->workdir ? s->workdir : SPEC_WORKDIR_DEFAULT,
        .hostname = s->hostname,
        .name = s->name,
        .owner = s->owner,
        .egress_enforcement = s->egress_enforcement,
        .resolver = s->resolver,
        .proxy = s->proxy,
        .proxy_credentials = s->proxy_credentials,
        .audit = s->audit,
        .env = list_view(&s->env),
        .tags = list_view(&s->tags),
        .allow_egress_to = list_view(&s->allow_egress_to),
        .allow_egress_to_cidrs = list_view(&s->allow_egress_to_cidrs),
        .private_cidrs = list_view(&s->private_cidrs),
        .add_hosts = list_view(&s->add_hosts),
        .publish = list_view(&s->publish),
        .prices = list_view(&s->prices),
        .block_network = s->block_network,
        .owned = s->owned,
        .user_set = s->user_set,
        .uid = s->uid,
        .gid = s->gid,
        .cpu_milli = s->cpu_milli,
        .memory_bytes = s->memory_bytes,
        .disk_bytes = s->disk_bytes,
        .pids = s->pids,
        .lifetime_us = s->lifetime_us,
        .idle_timeout_us = s->idle_timeout_us,
        .max_cost_micro = s->max_cost_micro,
        .n_volumes = s->n_volumes,
    };
}

/* A request for the one sandbox of the connection, or NULL when it was refused. */
static struct atoll_reply *begin_making(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r;

    if (s->phase != PHASE_NEW) {
        server_refuse_text(s, m->id, ERROR_USAGE, EEXIST, "this connection has a sandbox already",
                           "Start the backend once more for another sandbox");
        return NULL;
    }
    r = reply_new(s, m);
    if (r) {
        r->asked = true;
        s->phase = PHASE_MAKING;
        s->create_id = m->id;
    }
    return r;
}

void sandbox_create(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r = begin_making(s, m);
    struct error err = ERROR_INIT;
    struct spec spec = {0};

    if (!r)
        return;
    if (spec_decode(m->payload, &spec) < 0)
        (void)error_set(&err, ERROR_USAGE, EPROTO, "the spec cannot be read");
    else
        (void)spec_check(&spec, &err);
    if (err.code == 0 && tags_known(s->backend) && tags_stamp(&spec) < 0)
        (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (err.code != 0) {
        atoll_reply_error(r, (int)err.cls, err.code, err.message, err.remedy);
    } else if (!s->backend->create) {
        atoll_reply_error(r, ERROR_USAGE, ENOSYS, "this backend makes no sandboxes", NULL);
    } else {
        struct atoll_backend_spec view = spec_view(&spec);

        s->backend->create(s, &view, r);
    }
    spec_done(&spec);
}

void sandbox_open(struct atoll_server *s, const struct message *m)
{
    struct reader r = m->payload;
    const char *id = text_next(&r, TAG_SANDBOX_ID);

    if (!s->backend->open) {
        server_lacks(s, m->id, "reach a sandbox that another run has made");
    } else if (!id || id[0] == '\0') {
        server_refuse_text(s, m->id, ERROR_USAGE, EPROTO, "OPEN names no sandbox", NULL);
    } else {
        struct atoll_reply *reply = begin_making(s, m);

        if (reply)
            s->backend->open(s, id, reply);
    }
}

void sandbox_destroy(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r = reply_new(s, m);

    if (!r)
        return;
    r->asked = true;
    s->phase = PHASE_ENDING;
    if (s->backend->destroy)
        s->backend->destroy(s, s->sandbox, r);
    else
        atoll_reply_error(r, ERROR_USAGE, ENOSYS, "this backend cannot end a sandbox on request",
                          NULL);
}

void sandbox_ended(struct atoll_server *s, uint32_t reason, uint32_t ended_by)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    if (s->phase == PHASE_ENDED)
        return;
    s->phase = PHASE_ENDED;
    s->sandbox = NULL;
    while (s->streams)
        command_abandon(s->streams, reason);
    field_put_u32(&w, TAG_ENDED_BY, ended_by_for(ended_by, s->minor));
    server_send(s, MSG_ENDED, s->create_id, &w);
    s->loop.stop = true;
}

void atoll_backend_ended(struct atoll_server *server, int reason)
{
    static const struct {
        uint32_t reason, ended_by;
    } ends[] = {
        [ATOLL_EXITED] = {REASON_KILLED, ENDED_DESTROYED},
        [ATOLL_TIMEOUT] = {REASON_LIFETIME, ENDED_IDLE},
        [ATOLL_OOM] = {REASON_OOM, ENDED_OOM},
        [ATOLL_KILLED] = {REASON_KILLED, ENDED_KILLED},
        [ATOLL_LIFETIME] = {REASON_LIFETIME, ENDED_LIFETIME},
        [ATOLL_FAILED] = {REASON_ERROR, ENDED_ERROR},
        [ATOLL_COST] = {REASON_COST, ENDED_COST},
    };
    size_t i = reason >= 0 && (size_t)reason < ARRAY_SIZE(ends) ? (size_t)reason : ATOLL_FAILED;

    sandbox_ended(server, ends[i].reason, ends[i].ended_by);
}

void sandbox_inspect(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r;

    if (!s->backend->inspect) {
        server_lacks(s, m->id, "inspect a sandbox");
        return;
    }
    r = reply_new(s, m);
    if (r) {
        r->asked = true;
        s->backend->inspect(s, s->sandbox, r);
    }
}

void sandbox_enumerate(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r;

    if (!s->backend->enumerate) {
        server_lacks(s, m->id, "list its sandboxes");
        return;
    }
    r = reply_new(s, m);
    if (r) {
        r->asked = true;
        s->backend->enumerate(s, r);
    }
}

/* What the functions that are there say by themselves, in the words of core/capability.h. */
static void put_features(const struct atoll_backend *b, struct writer *w)
{
    const struct {
        const char *name;
        bool there;
    } features[] = {
        {"exec", b->exec != NULL},
        {"stdin", b->exec && b->input},
        {"signal", b->exec && b->signal},
        {"ps", b->exec && b->stop},
        {"files", b->read && b->write && b->stat},
        {"ranges", b->read != NULL},
        {"list", b->list != NULL},
        {"inspect", b->inspect != NULL},
        {"reopen", b->open && b->enumerate},
        {"tags", tags_known(b)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(features); i++)
        if (features[i].there)
            field_put_string(w, TAG_FEATURE, features[i].name);
    for (const char *const *f = b->features; f && *f; f++)
        field_put_string(w, TAG_FEATURE, *f);
}

void sandbox_describe(struct atoll_server *s, const struct message *m)
{
    const struct atoll_backend *b = s->backend;
    uint8_t buf[FRAME_PAYLOAD_MAX];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_string(&w, TAG_BACKEND, b->name);
    put_features(b, &w);
    for (const struct atoll_rule *rule = b->rules; rule && rule->field; rule++) {
        struct rule_info x = {.field = rule->field,
                              .verdict = (uint32_t)rule->verdict,
                              .how = rule->how,
                              .remedy = rule->remedy};

        rule_info_encode(&w, &x);
    }
    server_send(s, MSG_DESCRIBED, m->id, &w);
}
