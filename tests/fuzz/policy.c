/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a network policy: a destination, an entry of each list, a stamp. Whatever is taken
 * is the same after another trip, and a name that is taken can be read in one way only. The index
 * of names finds what a search through the list finds, and what the kernel would let on is never
 * less than what is allowed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/policy_reach.h"
#include "core/published.h"
#include "core/upstream.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_name(const struct host_name *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t n = strlen(name->text);
    struct host_name again;

    check(n > 0 && n <= HOST_NAME_BYTES_MAX && strspn(name->text, allowed) == n);
    check(name->text[0] != '.' && name->text[n - 1] != '.' && !strstr(name->text, ".."));
    check(host_name_read(name->text, n, &again) == 0 && strcmp(again.text, name->text) == 0);
}

static void build(struct policy_input in, struct policy *ret)
{
    struct problems problems = {0};

    check(policy_build(&in, ret, &problems) == 0);
}

/* What the index must find, by its definition. */
static const struct policy_host *find_linear(const struct policy *p, const struct host_name *name,
                                             uint16_t port)
{
    for (size_t i = 0; i < p->n_hosts; i++)
        if ((port == 0 || p->hosts[i].rule.port == port) &&
            host_rule_matches(&p->hosts[i].rule, name))
            return &p->hosts[i];
    return NULL;
}

static bool is_below(const struct host_name *name, const struct host_name *parent)
{
    size_t n = strlen(name->text), m = strlen(parent->text);

    return n > m && name->text[n - m - 1] == '.' && strcmp(name->text + n - m, parent->text) == 0;
}

static void check_found(const struct policy *p, const struct host_name *name, uint16_t port)
{
    const struct policy_host *any = find_linear(p, name, 0);
    bool exact = false, above = false;

    check(policy_find_host(p, name, port) == find_linear(p, name, port));
    check(policy_find_host(p, name, 0) == any);
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct host_rule *rule = &p->hosts[i].rule;
        const bool same = strcmp(rule->name.text, name->text) == 0;

        exact = exact || (same && !rule->wildcard);
        above = above || (same && rule->wildcard) || is_below(&rule->name, name);
    }
    check(policy_name_by_wildcard(p, name) == (any && !exact));
    check(policy_name_kind(p, name) == (p->open || any ? POLICY_NAME_LISTED
                                        : above        ? POLICY_NAME_ANCESTOR
                                                       : POLICY_NAME_UNLISTED));
}

/* Asks for every host of a policy, for its parents, and for a name below each. */
static void check_index(const struct policy *p)
{
    check(p->hosts || p->n_hosts == 0);
    for (size_t i = 0; i < p->n_hosts && i < 64; i++) {
        const struct host_rule *rule = &p->hosts[i].rule;
        struct host_name name;

        for (const char *at = rule->name.text; at; at = strchr(at, '.')) {
            at += at[0] == '.';
            (void)snprintf(name.text, sizeof name.text, "%s", at);
            check_found(p, &name, rule->port);
        }
        if (snprintf(name.text, sizeof name.text, "x.%s", rule->name.text) <= HOST_NAME_BYTES_MAX)
            check_found(p, &name, rule->port);
    }
}

static bool is_in(const struct policy_interval *items, size_t n, const struct address *a)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(items[i].first, a->bytes, sizeof items[i].first) <= 0 &&
            memcmp(a->bytes, items[i].last, sizeof items[i].last) <= 0)
            return true;
    return false;
}

/* An allowed address passes; with a closed network one that passes is allowed. */
static void check_reach(const struct policy *p, const struct address *a, bool allowed)
{
    const struct address to = address_unmapped(a);
    struct error err = ERROR_INIT;
    struct policy_pool pool;
    struct policy_reach r;
    struct address inner;

    if (policy_pool_choose(p, &pool, &err) < 0)
        return; /* the ranges leave no room for it */
    check(policy_pool_free(p, &pool) && policy_reach_build(p, &pool, &r) == 0);
    bool passes = to.family == ADDRESS_V4 ? is_in(r.v4, r.n_v4, &to) : is_in(r.v6, r.n_v6, &to);
    check(!allowed || passes);
    check(!passes || allowed || p->open || address_embedded(&to, &inner, NULL));
    policy_reach_done(&r);
}

/* Decides under a closed and an open policy. */
static void check_decisions(const struct policy_destination *to)
{
    const char *const hosts[] = {"ok.test", "*.wild.test:80"};
    const char *const ranges[] = {"10.0.0.0/8", "64:ff9b::/97", "fd00::/8"};
    const char *const privates[] = {"10.0.0.0/8", "fd00::/8"};
    struct policy policies[2];
    struct policy_decision d;

    build(
        (struct policy_input){.block_network = true,
                              .allow_egress_to = {.items = hosts, .n = ARRAY_SIZE(hosts)},
                              .allow_egress_to_cidrs = {.items = ranges, .n = ARRAY_SIZE(ranges)}},
        &policies[0]);
    build((struct policy_input){.private_cidrs = {.items = privates, .n = ARRAY_SIZE(privates)}},
          &policies[1]);
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        policy_decide(&policies[i], to, &d);
        check(d.explanation[0] != '\0' && (!d.allowed || d.remedy[0] == '\0'));
        if (to->by_name) {
            check_found(&policies[i], &to->name, to->port);
            continue;
        }
        check(!d.allowed || policy_may_dial(&policies[i], &to->address));
        check_reach(&policies[i], &to->address, d.allowed);
    }
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        policy_done(&policies[i]);
    }
}

static void try_destination(const char *text, size_t n)
{
    char again_text[HOST_NAME_BYTES_MAX + 16], address[ADDRESS_TEXT_BYTES];
    struct policy_destination to, again;
    struct error err = ERROR_INIT;

    if (policy_destination_parse(text, n, &to, &err) < 0) {
        check(err.code != 0 && err.message[0] != '\0' && err.remedy[0] != '\0');
        return;
    }
    check(to.port > 0);
    if (to.by_name) {
        check_name(&to.name);
        (void)snprintf(again_text, sizeof again_text, "%s:%u", to.name.text, to.port);
    } else {
        address_format(&to.address, address);
        (void)snprintf(again_text, sizeof again_text,
                       to.address.family == ADDRESS_V6 ? "[%s]:%u" : "%s:%u", address, to.port);
    }
    check(policy_destination_parse(again_text, strlen(again_text), &again, &err) == 0);
    check(again.by_name == to.by_name && again.port == to.port);
    check(to.by_name ? strcmp(again.name.text, to.name.text) == 0
                     : address_equal(&again.address, &to.address));
    check_decisions(&to);
}

static void try_entries(const char *text)
{
    struct error err = ERROR_INIT, other = ERROR_INIT;
    struct host_rule rule, rule_again;
    struct address_range range, range_again;
    char canonical[ADDRESS_RANGE_TEXT_BYTES];

    if (host_rule_parse(text, &rule, &err) == 0) {
        check(strcmp(rule.text, text) == 0 && rule.port > 0);
        check_name(&rule.name);
        check(host_rule_matches(&rule, &rule.name) == !rule.wildcard);
        check(host_rule_parse(rule.text, &rule_again, &err) == 0);
        check(host_rule_equal(&rule, &rule_again));
    } else {
        check(err.message[0] != '\0' && err.remedy[0] != '\0');
    }
    if (address_range_parse(text, &range, &other) == 0) {
        address_range_format(&range, canonical);
        check(address_range_parse(canonical, &range_again, &other) == 0);
        check(address_equal(&range.base, &range_again.base) && range.prefix == range_again.prefix);
        check(address_range_contains(&range, &range.base));
    } else {
        check(other.message[0] != '\0' && other.remedy[0] != '\0');
    }
}

/* One entry as a policy of its own, and as a pin. */
static void try_policy(const char *text)
{
    const char *const own[] = {text, "*.test"}, *const pins[] = {text, "a.test=10.0.0.1"};
    const struct policy_list list = {.items = own, .n = 1};
    struct policy_input in = {.block_network = true, .allow_egress_to = list};
    struct problems problems = {0};
    struct policy p;

    if (policy_build(&in, &p, &problems) == 0) {
        check_index(&p);
        policy_done(&p);
    }
    problems_done(&problems);
    in = (struct policy_input){.block_network = true, .allow_egress_to_cidrs = list};
    if (policy_build(&in, &p, &problems) == 0) {
        const struct policy_destination to = {.address = p.ranges[0].range.base, .port = 1};
        struct policy_decision d;

        policy_decide(&p, &to, &d);
        check_reach(&p, &to.address, d.allowed);
        policy_done(&p);
    }
    problems_done(&problems);
    in = (struct policy_input){.add_hosts = {.items = pins, .n = ARRAY_SIZE(pins)}};
    if (policy_build(&in, &p, &problems) == 0) {
        const struct policy_pin *pin = policy_pin_next(&p, &p.pins[0].name, NULL);

        check(pin == &p.pins[0]);
        check_name(&pin->name);
        policy_done(&p);
    }
    problems_done(&problems);
}

/* What stands on the host's side. */
static void try_upstream(const char *text)
{
    char again[PUBLISHED_TEXT_BYTES], again2[PUBLISHED_TEXT_BYTES];
    struct error err = ERROR_INIT, resolver_err = ERROR_INIT, proxy_err = ERROR_INIT;
    struct published x, y;
    struct proxy_url url;
    struct address a;
    uint16_t port;

    if (published_parse(text, &x, &err) == 0) {
        published_format(&x, again);
        check(x.port > 0 && published_parse(again, &y, &err) == 0);
        published_format(&y, again2);
        check(strcmp(again, again2) == 0);
    }
    if (resolver_parse(text, &a, &port, &resolver_err) == 0)
        check(port > 0);
    if (proxy_parse(text, &url, &proxy_err) == 0)
        check(url.port > 0 && url.host[0] != '\0' && !strchr(text, '@'));
}

static void try_stamp(const char *text, size_t n)
{
    struct error err = ERROR_INIT;
    struct policy p, again;
    char *first, *second, *words;

    if (policy_stamp_decode(text, n, &p, &err) < 0) {
        check(err.code != 0 && err.message[0] != '\0');
        return;
    }
    check(policy_stamp_encode(&p, &first) == 0);
    check(policy_stamp_decode(first, strlen(first), &again, &err) == 0);
    check(policy_stamp_encode(&again, &second) == 0);
    check(strcmp(first, second) == 0);
    check_index(&p);
    check(policy_describe(&p, &words) == 0 && words[0] != '\0');
    free(first);
    free(second);
    free(words);
    policy_done(&p);
    policy_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *exact = malloc(size > 0 ? size : 1); /* so that a sanitizer sees one byte too far */
    struct host_name name;

    check(text && exact);
    if (size > 0) {
        memcpy(text, data, size);
        memcpy(exact, data, size);
    }
    text[size] = '\0';
    if (host_name_read(exact, size, &name) == 0)
        check_name(&name);
    try_destination(exact, size);
    try_stamp(exact, size);
    try_entries(text);
    try_policy(text);
    try_upstream(text);
    free(text);
    free(exact);
    return 0;
}
