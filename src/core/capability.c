/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a spec against the rules of a backend. */
#include "core/capability.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/backend_tables.h"
#include "base/guards.h"

static const char *const verdict_names[] = {"enforced", "accepted", "refused"};
static_assert(ARRAY_SIZE(verdict_names) == CAPABILITY_VERDICT__MAX, "one name a verdict");

static const char *const feature_names[] = {
    "exec", "stdin",  "tty",     "signal", "timeout", "detach", "files", "ranges", "list",
    "pack", "unpack", "inspect", "ps",     "reopen",  "owner",  "lease", "tags",
};
static_assert(ARRAY_SIZE(feature_names) == FEATURE__MAX, "one name a feature");

const char *capability_verdict_name(enum capability_verdict verdict)
{
    return verdict_names[verdict];
}

const char *capability_feature_name(enum capability_feature feature)
{
    return feature_names[feature];
}

static int find_name(const char *const names[], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -EINVAL;
}

int capability_feature_find(const char *name, enum capability_feature *ret)
{
    int i = find_name(feature_names, ARRAY_SIZE(feature_names), name);

    if (i >= 0)
        *ret = (enum capability_feature)i;
    return i < 0 ? i : 0;
}

static void rule_done(struct capability_rule *rule)
{
    const char *const texts[] = {rule->text, rule->how, rule->by, rule->remedy};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free((void *)(uintptr_t)texts[i]);
}

static bool copy_text(const char **field)
{
    if (*field)
        *field = strdup(*field);
    return *field;
}

int capability_add(struct capability *c, const struct capability_rule *rule)
{
    struct capability_rule *more, copy = *rule;
    bool whole = true;

    assert(!c->rules || c->owned);
    const char **const texts[] = {&copy.text, &copy.how, &copy.by, &copy.remedy};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        whole = (!*texts[i] || copy_text(texts[i])) && whole;
    more = whole ? reallocarray(c->owned, c->n_rules + 1, sizeof *more) : NULL;
    if (!more) {
        rule_done(&copy);
        return -ENOMEM;
    }
    more[c->n_rules++] = copy;
    c->rules = c->owned = more;
    return 0;
}

void capability_done(struct capability *c)
{
    for (size_t i = 0; c->owned && i < c->n_rules; i++)
        rule_done(&c->owned[i]);
    free(c->owned);
    *c = (struct capability){0};
}

static const struct capability_rule *find_rule(const struct capability_rule *rules, size_t n,
                                               const struct capability_subject *x)
{
    for (size_t i = 0; i < n; i++)
        if (rules[i].field == x->field && capability_holds(&rules[i], x))
            return &rules[i];
    return NULL;
}

static struct capability_result judge(const struct capability_subject *x)
{
    static const struct capability_rule unknown = {
        .verdict = CAPABILITY_REFUSED,
        .how = "the backend has not said that it can keep this",
        .remedy = "Leave the field out, or use the backend local",
    };
    const struct capability_rule *rule = find_rule(backend_common_rules, backend_common_n_rules, x);

    if (!rule)
        rule = find_rule(x->c->rules, x->c->n_rules, x);
    if (!rule)
        rule = &unknown;
    return (struct capability_result){
        .field = x->field,
        .verdict = rule->verdict,
        .how = rule->how,
        .by = rule->by,
        .remedy = rule->remedy,
        .documented = rule->documented,
    };
}

/* What a user wants to know of every sandbox, asked for or not. */
static bool matters_always(enum spec_field_id field)
{
    return field == SPEC_FIELD_ENV || field == SPEC_FIELD_BLOCK_NETWORK ||
           field == SPEC_FIELD_IMAGE || field == SPEC_FIELD_SANDBOX_TIMEOUT;
}

bool capability_check(const struct capability *c, const struct spec *s,
                      struct capability_results *ret)
{
    *ret = (struct capability_results){0};
    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++) {
        if (i == SPEC_FIELD_NAME || (!matters_always(i) && !capability_field_stated(s, i)))
            continue;
        ret->items[ret->n] = judge(&(struct capability_subject){c, s, i});
        ret->n_of[ret->items[ret->n].verdict]++;
        ret->n++;
    }
    return ret->n_of[CAPABILITY_REFUSED] == 0;
}

void capability_problems(const struct capability_results *results, const char *backend,
                         struct problems *p)
{
    for (size_t i = 0; i < results->n; i++) {
        const struct capability_result *r = &results->items[i];
        char field[SPEC_PATH_MAX];

        spec_field_path(r->field, field);
        if (r->verdict == CAPABILITY_REFUSED)
            problems_add(p, field, (struct position){0}, r->remedy, "the backend %s refuses it: %s",
                         backend, r->how);
    }
}
