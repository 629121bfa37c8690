/* SPDX-License-Identifier: Apache-2.0 */
/* DESCRIBE and what comes of it. */
#include "client/describe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

#define ANSWER_US UINT64_C(10000000)

/*
 * A rule's field may carry a value: "spec.block_network=false" is about an open network alone. The
 * texts are views of the message until capability_add() copies them.
 */
static int rule_take(struct capability *c, const struct rule_info *x)
{
    static const enum capability_verdict verdicts[] = {
        [RULE_ENFORCED] = CAPABILITY_ENFORCED,
        [RULE_ACCEPTED] = CAPABILITY_ACCEPTED,
        [RULE_REFUSED] = CAPABILITY_REFUSED,
    };
    const char *equals = strchr(x->field, '=');
    _cleanup_free_ char *path =
        equals ? strndup(x->field, (size_t)(equals - x->field)) : strdup(x->field);
    struct capability_rule rule = {
        .verdict = verdicts[x->verdict],
        .how = x->how ? x->how : "the backend does not say how",
        .by = x->verdict == RULE_REFUSED ? NULL : "the backend program",
        .remedy = x->remedy,
    };

    if (!path)
        return -ENOMEM;
    const char *rest = "";
    rule.field = spec_field_at(path, &rest);
    if (rule.field == SPEC_FIELD__MAX || rest[0] != '\0')
        return 0; /* a field of a later version: nobody can state it here */
    if (equals && rule.field == SPEC_FIELD_BLOCK_NETWORK) {
        rule.when = strcmp(equals + 1, "false") == 0 ? WHEN_OPEN : WHEN_BLOCKED;
    } else if (equals) {
        rule.when = WHEN_TEXT;
        rule.text = equals + 1;
    }
    if (rule.verdict == CAPABILITY_REFUSED && !rule.remedy)
        rule.remedy = "Remove it, or use another backend";
    return capability_add(c, &rule);
}

static int take(struct description *d, const struct message *m)
{
    struct reader features = m->payload, rules = m->payload, names = m->payload;
    const char *text;
    struct rule_info rule;
    int r;

    while ((text = text_next(&features, TAG_FEATURE))) {
        enum capability_feature feature;

        if (capability_feature_find(text, &feature) == 0) /* others are of a later version */
            d->capability.features |= 1u << feature;
    }
    text = text_next(&names, TAG_BACKEND);
    if (text)
        (void)snprintf(d->name, sizeof d->name, "%s", text);
    while ((r = rule_info_next(&rules, &rule)) > 0)
        if (rule_take(&d->capability, &rule) < 0)
            return -ENOMEM;
    return features.bad || r < 0 ? -EPROTO : 0;
}

static int hear(struct session_request *q, struct message *m)
{
    struct description *d = q->owner;
    struct error err = ERROR_INIT;
    int r;

    if (m->type == MSG_ERROR) {
        if (session_error(m, &err) < 0)
            return -EPROTO;
        session_forget(q);
        d->told(d, &err);
        return 0;
    }
    r = m->type == MSG_DESCRIBED ? take(d, m) : -EPROTO;
    if (r == -EPROTO)
        return r;
    session_forget(q);
    if (r < 0)
        (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    d->told(d, r < 0 ? &err : NULL);
    return 0;
}

static void not_heard(struct session_request *q, const struct error *err)
{
    struct description *d = q->owner;

    d->told(d, err);
}

int description_ask(struct description *d, struct session *s, struct error *err)
{
    d->request = (struct session_request){.owner = d, .told = hear, .failed = not_heard};
    return session_ask(s, &d->request, MSG_DESCRIBE, NULL, NULL, 0, err);
}

int description_admits(const struct description *d, const struct spec *spec, struct error *err)
{
    struct capability_results results;
    struct problems problems = {0};

    if (capability_check(&d->capability, spec, &results))
        return 0;
    capability_problems(&results, spec->backend, &problems);
    int r = problems_error(&problems, NULL, err);
    problems_done(&problems);
    return r;
}

void description_done(struct description *d)
{
    session_forget(&d->request);
    capability_done(&d->capability);
}

/* A loop that only waits for one answer. */
struct fetch {
    struct loop loop;
    struct loop_timer timer;
    struct error error;
};

static void fetched(struct description *d, const struct error *err)
{
    struct fetch *f = d->owner;

    if (err)
        f->error = *err;
    f->loop.stop = true;
}

static int too_late(struct loop *l, struct loop_timer *t)
{
    struct fetch *f = t->owner;

    (void)error_set(&f->error, ERROR_TERMINAL, ETIMEDOUT,
                    "the backend program did not say within %d s what it can do",
                    (int)(ANSWER_US / 1000000));
    l->stop = true;
    return 0;
}

int description_fetch_wait(struct description *d, const char *name, struct error *err)
{
    struct session s = SESSION_INIT;
    struct fetch f = {.error = ERROR_INIT};
    int r = loop_init(&f.loop);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot open an event loop: %s", strerror(-r));
    f.timer = (struct loop_timer){.name = "answer", .owner = &f, .due = too_late};
    d->owner = &f;
    d->told = fetched;
    r = session_backend(&s, name, err);
    if (r == 0)
        r = session_watch(&s, &f.loop, err);
    if (r == 0)
        r = description_ask(d, &s, err);
    if (r == 0) {
        loop_at(&f.loop, &f.timer, clock_after_us(ANSWER_US));
        r = loop_run(&f.loop);
        if (r < 0)
            (void)error_set(err, ERROR_TERMINAL, -r, "cannot wait for an answer: %s", strerror(-r));
    }
    if (r == 0 && f.error.code != 0) {
        *err = f.error;
        r = -f.error.code;
    }
    session_forget(&d->request);
    session_end(&s);
    loop_done(&f.loop);
    if (r < 0)
        description_done(d);
    d->owner = NULL;
    return r;
}
