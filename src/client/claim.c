/* SPDX-License-Identifier: Apache-2.0 */
/* Leases, asked for or made of tags. */
#include "client/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/lease.h"
#include "core/share_tags.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

/* Tags as they came, views of a message. */
struct tag_views {
    const char *items[SANDBOX_LABELS_MAX];
    size_t n;
};

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int ask(struct claim *c, enum claim_step step, uint16_t type, const struct writer *w,
               struct error *err)
{
    c->step = step;
    return session_ask(c->session, &c->request, type, w, NULL, 0, err);
}

static void end_failed(struct claim *c, struct error *err)
{
    c->step = CLAIM_NONE;
    if (c->written)
        (void)error_remedy(err,
                           "The name '%.200s' may be left as that of its holder: attach as that "
                           "once more, and release it",
                           c->holder);
    c->failed(c, err);
}

/* Who has failed holds nothing: what it wrote is taken out first, if it is there. */
static bool take_back(struct claim *c, const struct error *why)
{
    struct error ignored = ERROR_INIT;

    if (!c->written || c->why.code != 0)
        return false;
    c->why = *why;
    return ask(c, CLAIM_LEAVE, MSG_TAGS, NULL, &ignored) == 0;
}

static void fail(struct claim *c, const struct error *err)
{
    struct error why = c->why.code != 0 ? c->why : *err;

    if (!take_back(c, err))
        end_failed(c, &why);
}

static void succeed(struct claim *c)
{
    c->written = false;
    if (c->why.code != 0) {
        end_failed(c, &c->why);
        return;
    }
    c->step = CLAIM_NONE;
    c->done(c);
}

/* Keeps the message for the views of a report. */
static int keep_answer(struct claim *c, const struct message *m, struct reader *ret)
{
    size_t n = reader_left(&m->payload);
    uint8_t *copy = malloc(n + 1);

    if (!copy)
        return -ENOMEM;
    if (n > 0)
        memcpy(copy, m->payload.p, n);
    free(c->answer);
    c->answer = copy;
    *ret = reader_over(copy, n);
    return 0;
}

/* --- tags --- */

static int read_views(struct reader message, struct tag_views *ret)
{
    const char *tag;

    ret->n = 0;
    while ((tag = text_next(&message, TAG_LABEL))) {
        if (ret->n == SANDBOX_LABELS_MAX)
            return -EPROTO;
        ret->items[ret->n++] = tag;
    }
    return message.bad ? -EPROTO : 0;
}

static bool is_holder(const char *tag)
{
    return strncmp(tag, SHARE_TAG_HOLDER "=", sizeof SHARE_TAG_HOLDER) == 0;
}

/* Writes all of them anew: without a holder, and then with @holder unless it is NULL. */
static int write_tags(struct claim *c, const struct tag_views *t, const char *holder,
                      struct error *err)
{
    size_t size = FIELD_HEADER_BYTES + sizeof SHARE_TAG_HOLDER + 1 + (holder ? strlen(holder) : 0);
    _cleanup_free_ char *tag = NULL;

    if (holder && asprintf(&tag, SHARE_TAG_HOLDER "=%s", holder) < 0) {
        tag = NULL;
        return no_memory(err);
    }
    for (size_t i = 0; i < t->n; i++)
        size += FIELD_HEADER_BYTES + strlen(t->items[i]) + 1;
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    if (!buf)
        return no_memory(err);
    for (size_t i = 0; i < t->n; i++)
        if (!is_holder(t->items[i]))
            field_put_string(&w, TAG_LABEL, t->items[i]);
    if (tag)
        field_put_string(&w, TAG_LABEL, tag);
    c->written = c->written || holder;
    return ask(c, holder ? CLAIM_WRITE : CLAIM_ERASE, MSG_SET_TAGS, &w, err);
}

/* Return: 1 when that was all; 0 when more is asked; a negative errno with an error. */
static int judge_attach(struct claim *c, const struct tag_views *t, struct error *err)
{
    const struct share_tags tags = {t->items, t->n};
    const char *found = share_tags_find(&tags, SHARE_TAG_HOLDER);
    int r = share_tags_admit(&tags, c->owner_name, c->holder, err);

    c->written = c->written && found && strcmp(found, c->holder) == 0;
    if (r < 0)
        return r;
    if (r == 0 && c->step == CLAIM_READ)
        return write_tags(c, t, c->holder, err);
    if (r == 0) {
        (void)error_set(err, ERROR_TERMINAL, EBUSY,
                        "that '%.200s' holds the sandbox was written, and is not there any more",
                        c->holder);
        return error_remedy(err, "Try again; somebody else has changed its tags meanwhile");
    }
    share_tags_report(&tags, clock_epoch_us(), &c->report, c->warning, sizeof c->warning);
    return 1;
}

static int judge_release(struct claim *c, const struct tag_views *t, struct error *err)
{
    const struct share_tags tags = {t->items, t->n};
    const char *holder = share_tags_find(&tags, SHARE_TAG_HOLDER);

    return !holder || strcmp(holder, c->holder) != 0 ? 1 : write_tags(c, t, NULL, err);
}

static int judge_end(const struct claim *c, const struct tag_views *t, struct error *err)
{
    const struct share_tags tags = {t->items, t->n};
    int r = share_tags_judge_end(&tags, c->owner_name, err);

    return r < 0 ? r : 1;
}

static int hear_tags(struct claim *c, const struct message *m, struct error *err)
{
    struct tag_views t;
    struct reader kept;

    if (keep_answer(c, m, &kept) < 0)
        return no_memory(err);
    if (read_views(kept, &t) < 0)
        return -EPROTO;
    session_forget(&c->request);
    return c->step == CLAIM_END     ? judge_end(c, &t, err)
           : c->step == CLAIM_LEAVE ? judge_release(c, &t, err)
                                    : judge_attach(c, &t, err);
}

/* --- a keeper's answers --- */

static int hear_attached(struct claim *c, const struct message *m, struct error *err)
{
    struct reader kept;

    if (keep_answer(c, m, &kept) < 0)
        return no_memory(err);
    return attach_report_decode(kept, &c->report) < 0 ? -EPROTO : 1;
}

/* As judge_attach(); -EPROTO without an error: the session is lost. */
static int hear(struct claim *c, const struct message *m, struct error *err)
{
    switch (c->step) {
    case CLAIM_ASKED:
        if (c->request.type == MSG_ATTACH)
            return m->type == MSG_ATTACHED ? hear_attached(c, m, err) : -EPROTO;
        return m->type == MSG_DONE ? 1 : -EPROTO;
    case CLAIM_READ:
    case CLAIM_READ_BACK:
    case CLAIM_LEAVE:
    case CLAIM_END:
        return m->type == MSG_TAGS_READ ? hear_tags(c, m, err) : -EPROTO;
    case CLAIM_WRITE:
    case CLAIM_ERASE:
        if (m->type != MSG_DONE)
            return -EPROTO;
        session_forget(&c->request);
        return c->step == CLAIM_ERASE ? 1 : ask(c, CLAIM_READ_BACK, MSG_TAGS, NULL, err);
    case CLAIM_NONE:
        break;
    }
    return -EPROTO;
}

/* A program that has no tags cannot have made a sandbox for somebody. Return: 1, or as @err. */
static int judge_without_tags(const struct claim *c, struct error *err)
{
    if (c->step != CLAIM_END || err->code != ENOSYS)
        return -err->code;
    *err = (struct error)ERROR_INIT;
    int r = lease_judge_owner(NULL, c->owner_name, err);
    return r < 0 ? r : 1;
}

static int told(struct session_request *q, struct message *m)
{
    struct claim *c = q->owner;
    struct error err = ERROR_INIT;
    int r;

    if (m->type == MSG_ERROR)
        r = session_error(m, &err) < 0 ? -EPROTO : judge_without_tags(c, &err);
    else
        r = hear(c, m, &err);
    if (r < 0 && err.code == 0)
        return -EPROTO;
    if (r == 0)
        return 0;
    session_forget(q);
    if (r < 0)
        fail(c, &err);
    else
        succeed(c);
    return 0;
}

static void failed(struct session_request *q, const struct error *err)
{
    struct claim *c = q->owner;
    struct error why = *err;

    if (judge_without_tags(c, &why) > 0)
        succeed(c);
    else
        fail(c, &why);
}

static void begin(struct claim *c, struct session *s)
{
    c->session = s;
    c->written = false;
    c->why = (struct error)ERROR_INIT;
    c->request = (struct session_request){.owner = c, .told = told, .failed = failed};
}

int claim_attach(struct claim *c, struct session *s, const struct attach_request *x,
                 struct error *err)
{
    size_t size = attach_request_size(x);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    begin(c, s);
    if (s->backend && x->keep_us > 0) {
        (void)error_set(err, ERROR_USAGE, EOPNOTSUPP,
                        "a sandbox of %s cannot be kept for a time after its holder's death: it "
                        "has tags and no lease, and the holder's name stays until the same holder "
                        "comes back",
                        s->peer);
        return error_remedy(err, "Leave the time out (--keep)");
    }
    if (s->backend) {
        c->owner_name = strdup(x->owner);
        c->holder = strdup(x->holder);
        return c->owner_name && c->holder ? ask(c, CLAIM_READ, MSG_TAGS, NULL, err)
                                          : no_memory(err);
    }
    if (!buf)
        return no_memory(err);
    attach_request_encode(&w, x);
    return ask(c, CLAIM_ASKED, MSG_ATTACH, &w, err);
}

int claim_release(struct claim *c, struct session *s, const char *holder, struct error *err)
{
    begin(c, s);
    if (!s->backend)
        return ask(c, CLAIM_ASKED, MSG_RELEASE, NULL, err);
    c->holder = strdup(holder);
    return c->holder ? ask(c, CLAIM_LEAVE, MSG_TAGS, NULL, err) : no_memory(err);
}

int claim_end(struct claim *c, struct session *s, const char *owner, struct error *err)
{
    begin(c, s);
    if (owner && !(c->owner_name = strdup(owner)))
        return no_memory(err);
    return ask(c, CLAIM_END, MSG_TAGS, NULL, err);
}

int claim_present(struct claim *c, struct session *s, uint32_t generation, struct error *err)
{
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    begin(c, s);
    if (s->backend) {
        (void)error_set(err, ERROR_USAGE, EOPNOTSUPP,
                        "a sandbox of %s has no lease to act by, only tags", s->peer);
        return error_remedy(err, "Leave the generation out");
    }
    field_put_u32(&w, TAG_LEASE_GENERATION, generation);
    return ask(c, CLAIM_ASKED, MSG_PRESENT, &w, err);
}

void claim_done(struct claim *c)
{
    session_forget(&c->request);
    free(c->answer);
    free(c->owner_name);
    free(c->holder);
    c->answer = NULL;
    c->owner_name = c->holder = NULL;
    c->step = CLAIM_NONE;
}
