/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the network policy of a sandbox that stands. */
#include "keeper/policy_change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/spec_copy.h"
#include "core/spec_rules.h"
#include "keeper/egress.h"
#include "keeper/ending.h"
#include "keeper/events.h"
#include "keeper/lease.h"
#include "keeper/report.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

struct policy_change {
    struct connection *connection; /* who asked; NULL: it has gone */
    uint32_t id;
    struct spec spec; /* with the new lists */
    char *stamp;      /* of the new policy; owned */
};

enum { LISTED_BYTES = 256, ANSWER_BYTES = 1024 };

/* The lists of a spec that make a closed network's policy. */
static const enum spec_field_id lists[] = {SPEC_FIELD_ALLOW_EGRESS_TO,
                                           SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, SPEC_FIELD_ADD_HOSTS};

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* --- edits --- */

static bool same_host(const char *a, const char *b)
{
    struct error ignored = ERROR_INIT;
    struct host_rule x, y;

    return strcmp(a, b) == 0 || (host_rule_parse(a, &x, &ignored) == 0 &&
                                 host_rule_parse(b, &y, &ignored) == 0 && host_rule_equal(&x, &y));
}

static bool same_range(const char *a, const char *b)
{
    struct error ignored = ERROR_INIT;
    struct address_range x, y;

    return strcmp(a, b) == 0 || (address_range_parse(a, &x, &ignored) == 0 &&
                                 address_range_parse(b, &y, &ignored) == 0 &&
                                 x.prefix == y.prefix && address_equal(&x.base, &y.base));
}

typedef bool same_fn(const char *a, const char *b);

static bool is_in(const struct string_list *l, const char *entry, same_fn *same)
{
    for (size_t i = 0; i < l->n; i++)
        if (same(l->items[i], entry))
            return true;
    return false;
}

/* Return: how many went. */
static size_t drop(struct string_list *l, const char *entry, same_fn *same)
{
    size_t kept = 0, before = l->n;

    for (size_t i = 0; i < before; i++) {
        if (same(l->items[i], entry))
            free(l->items[i]);
        else
            l->items[kept++] = l->items[i];
    }
    l->n = kept;
    if (l->items)
        l->items[kept] = NULL;
    return before - kept;
}

static int not_listed(const struct spec *s, const char *entry, struct error *err)
{
    const struct string_list *all[] = {&s->allow_egress_to, &s->allow_egress_to_cidrs};
    char text[LISTED_BYTES] = "";
    size_t n = 0, shown = 0;

    (void)error_set(err, ERROR_USAGE, EINVAL, "the policy has no entry '%.300s'", entry);
    for (size_t l = 0; l < ARRAY_SIZE(all); l++)
        for (size_t i = 0; i < all[l]->n; i++, n++) {
            const size_t len = strlen(text), more = strlen(all[l]->items[i]) + 2;

            if (shown < n || len + more >= sizeof text)
                continue;
            (void)snprintf(text + len, sizeof text - len, "%s%s", n > 0 ? ", " : "",
                           all[l]->items[i]);
            shown++;
        }
    if (n == 0)
        return error_remedy(err, "It has none at all");
    if (shown == n)
        return error_remedy(err, "Its entries are: %s", text);
    return error_remedy(err, "Its entries are: %s and %zu more; \"atoll policy ID\" shows them all",
                        text, n - shown);
}

static int remove_entries(struct spec *s, struct reader edits, struct error *err)
{
    const char *entry;

    while ((entry = text_next(&edits, TAG_REMOVE)))
        if (drop(&s->allow_egress_to, entry, same_host) +
                drop(&s->allow_egress_to_cidrs, entry, same_range) ==
            0)
            return not_listed(s, entry, err);
    return edits.bad ? -EPROTO : 0;
}

static int add_hosts(struct spec *s, struct reader edits, struct error *err)
{
    const char *entry;
    struct host_rule rule;
    int r;

    while ((entry = text_next(&edits, TAG_ALLOW_HOST))) {
        r = host_rule_parse(entry, &rule, err);
        if (r < 0)
            return r;
        if (!is_in(&s->allow_egress_to, entry, same_host) &&
            string_list_add(&s->allow_egress_to, entry) < 0)
            return no_memory(err);
    }
    return edits.bad ? -EPROTO : 0;
}

static int add_ranges(struct spec *s, struct reader edits, struct error *err)
{
    const char *entry;
    struct address_range range;
    int r;

    while ((entry = text_next(&edits, TAG_ALLOW_RANGE))) {
        r = address_range_parse(entry, &range, err);
        if (r < 0)
            return r;
        if (!is_in(&s->allow_egress_to_cidrs, entry, same_range) &&
            string_list_add(&s->allow_egress_to_cidrs, entry) < 0)
            return no_memory(err);
    }
    return edits.bad ? -EPROTO : 0;
}

/* Addresses of names that no entry lists any more go with the entries. */
static int drop_pins(struct spec *s)
{
    struct string_list *pins = spec_field_list_of(s, SPEC_FIELD_ADD_HOSTS);
    struct string_list all = *pins;
    struct problems ignored = {0};
    struct policy policy = {0};
    size_t kept = 0;

    if (all.n == 0)
        return 0;
    pins->n = 0; /* the policy without them */
    int r = spec_policy(s, &policy, &ignored);
    problems_done(&ignored);
    pins->n = all.n;
    if (r < 0)
        return r == -ENOMEM ? r : 0; /* what is wrong is told when all of it is judged */
    for (size_t i = 0; i < all.n; i++) {
        const char *equals = strchr(all.items[i], '=');
        struct host_name name;

        if (!equals || host_name_read(all.items[i], (size_t)(equals - all.items[i]), &name) < 0 ||
            policy_find_host(&policy, &name, 0))
            pins->items[kept++] = all.items[i];
        else
            free(all.items[i]);
    }
    pins->n = kept;
    pins->items[kept] = NULL;
    policy_done(&policy);
    return 0;
}

int policy_edit(struct spec *s, struct reader edits, struct error *err)
{
    int r = remove_entries(s, edits, err);

    if (r == 0)
        r = add_hosts(s, edits, err);
    if (r == 0)
        r = add_ranges(s, edits, err);
    if (r == 0)
        r = drop_pins(s);
    if (r < 0 && err->code == 0)
        return error_set(err, ERROR_USAGE, -r, "the edits of the policy cannot be read: %s",
                         strerror(-r));
    return r;
}

/* --- putting it in force --- */

static void change_free(struct policy_change *c)
{
    if (!c)
        return;
    spec_done(&c->spec);
    free(c->stamp);
    free(c);
}

void policy_change_done(struct keeper *k)
{
    change_free(TAKE_PTR(k->policy_change));
}

void policy_change_forget(struct keeper *k, const struct connection *gone)
{
    if (k->policy_change && k->policy_change->connection == gone)
        k->policy_change->connection = NULL;
}

/* To who asked, and to whoever else is there. */
static void tell(struct keeper *k, struct connection *asker, uint32_t id,
                 const struct policy_report *x, bool all)
{
    size_t size = strlen(x->network) + ANSWER_BYTES;
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    struct connection *next;

    policy_report_encode(&w, x);
    connection_send(asker, MSG_POLICY_SET, id, &w, -EBADF);
    for (struct connection *c = all ? k->connections : NULL; c; c = next) {
        next = c->next;
        if (c != asker && c->greeted && c->minor >= message_since(MSG_POLICY_SET))
            connection_send(c, MSG_POLICY_SET, 0, &w, -EBADF);
    }
}

static void in_force(struct keeper *k, struct policy_change *c, uint32_t cut)
{
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        struct string_list *old = spec_field_list_of(&k->spec, lists[i]);
        struct string_list *new = spec_field_list_of(&c->spec, lists[i]), swap = *old;

        *old = *new;
        *new = swap;
    }
    const struct policy_report x = {
        .network = c->stamp, .generation = ++k->policy_generation, .flows_cut = cut};
    events_policy(k, x.generation, x.network, cut);
    tell(k, c->connection, c->id, &x, true);
}

static void done(struct keeper *k, void *owner, int r, uint32_t cut, const struct error *err)
{
    struct policy_change *c = owner;

    k->policy_change = NULL;
    if (r == 0)
        in_force(k, c, cut);
    else if (c->connection)
        connection_refuse(c->connection, c->id, err);
    change_free(c);
    lease_settle(k); /* whoever has it now is told of the policy that holds */
}

static int judge(const struct connection *c, struct error *err)
{
    const struct keeper *k = c->keeper;

    if (k->state != KEEPER_RUNNING)
        return error_set(err, ERROR_USAGE, ENOENT, "there is no sandbox yet");
    if (lease_admits(c, err) < 0)
        return -err->code;
    if (!k->spec.block_network) {
        (void)error_set(err, ERROR_USAGE, EINVAL,
                        "the network of this sandbox is open, which cannot be changed");
        return error_remedy(err,
                            "Make a new sandbox whose network is closed but for what you list");
    }
    if (k->policy_change) {
        (void)error_set(err, ERROR_RECOVERABLE, EBUSY,
                        "the network policy is being changed already");
        return error_remedy(err, "Try again in a moment");
    }
    return 0;
}

/* The whole of it, as that of a new sandbox would be judged. */
static int compile(struct policy_change *c, struct policy *ret, struct error *err)
{
    struct problems problems = {0};
    int r = spec_policy(&c->spec, ret, &problems);

    if (r < 0)
        (void)problems_error(&problems, NULL, err);
    problems_done(&problems);
    if (r == 0)
        r = keeper_admit(&c->spec, err);
    if (r == 0 && policy_stamp_encode(ret, &c->stamp) < 0)
        r = no_memory(err);
    if (r == 0 && strlen(c->stamp) + ANSWER_BYTES > MESSAGE_BYTES_MAX)
        r = error_set(err, ERROR_USAGE, E2BIG, "the policy has more entries than can be told of");
    return r;
}

/* Nothing differs: whoever asks twice is answered twice. */
static bool is_in_force(struct keeper *k, const struct policy_change *c)
{
    _cleanup_free_ char *stamp = report_network(&k->spec);
    const struct policy_report x = {.network = c->stamp, .generation = k->policy_generation};

    if (!stamp || strcmp(stamp, c->stamp) != 0)
        return false;
    tell(k, c->connection, c->id, &x, false);
    return true;
}

/* Return: 0 when it is under way, or over; then @c is no longer the caller's. */
static int begin(struct keeper *k, struct policy_change *c, struct reader edits, struct error *err)
{
    struct policy policy = {0};
    int r = spec_copy(&k->spec, UINT64_MAX, &c->spec) < 0 ? no_memory(err)
                                                          : policy_edit(&c->spec, edits, err);

    if (r == 0)
        r = compile(c, &policy, err);
    if (r == 0 && is_in_force(k, c)) {
        change_free(c);
    } else if (r == 0) {
        k->policy_change = c;
        r = keeper_egress_change(k, &c->spec, &policy, done, c, err);
        if (r < 0)
            k->policy_change = NULL;
    }
    policy_done(&policy);
    return r;
}

void policy_change(struct connection *connection, struct message *m)
{
    struct keeper *k = connection->keeper;
    struct error err = ERROR_INIT;
    int r = judge(connection, &err);
    struct policy_change *c = r == 0 ? calloc(1, sizeof *c) : NULL;

    if (r == 0 && !c)
        r = no_memory(&err);
    if (c) {
        c->connection = connection;
        c->id = m->id;
        r = begin(k, c, m->payload, &err);
    }
    if (r == 0) {
        ending_active(k);
        return;
    }
    change_free(c);
    connection_refuse(connection, m->id, &err);
}
