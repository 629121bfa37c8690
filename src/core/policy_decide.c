/* SPDX-License-Identifier: Apache-2.0 */
/* Deciding on one destination, and saying why in one sentence. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/policy_index.h"
#include "base/guards.h"

/* What a name that is let through still has to pass. */
enum { PINS_SHOWN = 4, CONDITION_BYTES = 256 };

#define CHECKED_LATER                                                                              \
    "its address is checked when connecting, and private, loopback and metadata addresses are "    \
    "refused unless a range lists them"

/* Set aside by everybody: nothing connects there, whatever a range says. */
static bool is_no_destination(const struct address_block *block)
{
    return block && (block->cls == ADDRESS_UNSPECIFIED || block->cls == ADDRESS_MULTICAST ||
                     block->cls == ADDRESS_BROADCAST);
}

static const struct policy_range *find_in(const struct policy *p, const struct address *a)
{
    const struct policy_range *items = p->open ? p->private_ranges : p->ranges;
    size_t n = p->open ? p->n_private_ranges : p->n_ranges;

    for (size_t i = 0; i < n; i++)
        if (address_range_contains(&items[i].range, a))
            return &items[i];
    return NULL;
}

const struct policy_range *policy_find_range(const struct policy *p, const struct address *a)
{
    struct address to = address_unmapped(a), inner;
    const struct address_block *block = address_block(&to);

    if (is_no_destination(block))
        return NULL;
    if (block && address_embedded(&to, &inner, NULL)) {
        const struct policy_range *by_v4 = find_in(p, &inner);

        /* Closed, both must be listed; open, IPv6 itself is public but for what it carries. */
        return p->open || !by_v4 ? by_v4 : find_in(p, &to);
    }
    return find_in(p, &to);
}

bool policy_lists_alone(const struct policy *p, const struct address *a)
{
    const struct address to = address_unmapped(a);
    const struct address_range alone = address_range_of(&to);
    const struct policy_range *items = p->open ? p->private_ranges : p->ranges;
    size_t n = p->open ? p->n_private_ranges : p->n_ranges;

    for (size_t i = 0; i < n; i++)
        if (items[i].range.prefix == alone.prefix && address_range_contains(&items[i].range, &to))
            return true;
    return false;
}

bool policy_may_dial(const struct policy *p, const struct address *a)
{
    return !address_block(a) || policy_find_range(p, a);
}

__attribute__((format(printf, 2, 3))) static void explain(struct policy_decision *d,
                                                          const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(d->explanation, sizeof d->explanation, fmt, ap);
    va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void remedy(struct policy_decision *d, const char *fmt,
                                                         ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(d->remedy, sizeof d->remedy, fmt, ap);
    va_end(ap);
}

/* What a name that is let through still has to pass, or where its pins lead. */
static void condition_text(const struct policy *p, const struct host_name *name, char *buf,
                           size_t size)
{
    const struct policy_pin *pin = policy_pin_next(p, name, NULL);
    size_t n = 0, len = 0;
    char text[ADDRESS_TEXT_BYTES];

    if (!pin) {
        (void)snprintf(buf, size, CHECKED_LATER);
        return;
    }
    for (const struct policy_pin *i = pin; i; i = policy_pin_next(p, name, i))
        n++;
    len =
        (size_t)snprintf(buf, size, "backend.add_hosts gives it the address%s ", n > 1 ? "es" : "");
    for (size_t i = 0; pin && i < PINS_SHOWN; i++, pin = policy_pin_next(p, name, pin)) {
        address_format(&pin->address, text);
        len += (size_t)snprintf(buf + len, size - len, "%s%s", i > 0 ? ", " : "", text);
    }
    if (n > PINS_SHOWN)
        (void)snprintf(buf + len, size - len, ", and %zu more", n - PINS_SHOWN);
}

static void allow_by_host(const struct policy *p, struct policy_decision *d,
                          const struct policy_host *host, const struct policy_destination *to)
{
    char condition[CONDITION_BYTES];
    const char *name = to->name.text;

    condition_text(p, &to->name, condition, sizeof condition);
    d->allowed = true;
    d->kind = POLICY_RULE_HOST;
    d->index = host->index;
    d->rule = host->rule.text;
    if (to->port == 443)
        explain(d,
                "allow_egress_to[%zu] '%s' lists %s: TLS on port 443, whose server name must be "
                "that name; %s",
                d->index, d->rule, name, condition);
    else if (to->port == 80)
        explain(d,
                "allow_egress_to[%zu] '%s' lists %s: HTTP on port 80, whose Host must be that "
                "name; %s",
                d->index, d->rule, name, condition);
    else
        explain(d, "allow_egress_to[%zu] '%s' lists %s: TCP on port %u; %s", d->index, d->rule,
                name, to->port, condition);
}

/* Which entry would allow a name, as far as one can. */
static void remedy_for_name(struct policy_decision *d, const struct policy_destination *to)
{
    const char *name = to->name.text, *parent = strchr(name, '.');
    char entry[HOST_RULE_BYTES_MAX + 8], port[8] = "";
    struct error ignored = ERROR_INIT;
    struct host_rule rule;

    if (to->port != HOST_RULE_PORT_DEFAULT)
        (void)snprintf(port, sizeof port, ":%u", to->port);
    (void)snprintf(entry, sizeof entry, "%s%s", name, port);
    if (host_rule_parse(entry, &rule, &ignored) == 0) {
        remedy(d, "Add it: allow_egress_to: [%s], or --allow %s", entry, entry);
        return;
    }
    if (!parent) {
        remedy(d, "Use its full name, with a dot: allow_egress_to lists no single labels");
        return;
    }
    ignored = (struct error)ERROR_INIT;
    (void)snprintf(entry, sizeof entry, "*%s%s", parent, port);
    if (host_rule_parse(entry, &rule, &ignored) == 0)
        remedy(d, "Add what is below its parent: allow_egress_to: [\"%s\"], or --allow '%s'", entry,
               entry);
}

static void refuse_name(const struct policy *p, struct policy_decision *d,
                        const struct policy_destination *to)
{
    const char *name = to->name.text;
    const struct policy_host *near = policy_find_host(p, &to->name, 0);

    remedy_for_name(d, to);
    if (near) {
        explain(d,
                "allow_egress_to[%zu] '%s' lists %s for port %u only, and no entry lists port %u",
                near->index, near->rule.text, name, near->rule.port, to->port);
        return;
    }
    near = policy_index_wildcard_of(p, &to->name);
    if (near) {
        explain(d, "allow_egress_to[%zu] '%s' lists the names below %s, not %s itself", near->index,
                near->rule.text, name, name);
        return;
    }
    near = policy_index_wildcard_above(p, &to->name);
    if (near) {
        explain(d,
                "allow_egress_to[%zu] '%s' lists names with at most %d parts and %d characters in "
                "the star's place, and %s has more",
                near->index, near->rule.text, HOST_WILDCARD_LABELS_MAX, HOST_WILDCARD_BYTES_MAX,
                name);
        return;
    }
    if (p->n_hosts > 0)
        explain(d, "no entry of allow_egress_to lists %s, so the name does not resolve", name);
    else if (p->n_ranges > 0)
        explain(d,
                "no host is listed in allow_egress_to, so %s does not resolve; "
                "allow_egress_to_cidrs lists addresses, not names",
                name);
    else
        explain(d, "the network is blocked (block_network: true) and no entry lists %s", name);
}

static void decide_name(const struct policy *p, const struct policy_destination *to,
                        struct policy_decision *d)
{
    const struct policy_host *host = policy_find_host(p, &to->name, to->port);
    char condition[CONDITION_BYTES];

    if (host_name_is_localhost(&to->name)) {
        d->kind = POLICY_RULE_LOOPBACK;
        explain(d, "%s is the sandbox's own loopback: it needs no entry and leads nowhere else",
                to->name.text);
    } else if (p->open) {
        d->allowed = true;
        d->kind = POLICY_RULE_OPEN;
        condition_text(p, &to->name, condition, sizeof condition);
        explain(d, "block_network: false opens the network to %s; %s", to->name.text, condition);
    } else if (host) {
        allow_by_host(p, d, host, to);
    } else {
        refuse_name(p, d, to);
    }
}

/* "10.0.0.1", or "64:ff9b::a00:1, which carries 10.0.0.1 (NAT64)". */
static void address_text(const struct address *a, char *buf, size_t size)
{
    char text[ADDRESS_TEXT_BYTES], inner_text[ADDRESS_TEXT_BYTES];
    struct address inner;
    const char *form;

    address_format(a, text);
    if (!address_embedded(a, &inner, &form)) {
        (void)snprintf(buf, size, "%s", text);
        return;
    }
    address_format(&inner, inner_text);
    (void)snprintf(buf, size, "%s, which carries %s (%s)", text, inner_text, form);
}

static void allow_by_range(const struct policy *p, struct policy_decision *d,
                           const struct policy_range *range, const char *text)
{
    d->allowed = true;
    d->kind = p->open ? POLICY_RULE_PRIVATE : POLICY_RULE_RANGE;
    d->index = range->index;
    d->rule = range->text;
    explain(d, "%s[%zu] '%s' lists %s, on any port",
            p->open ? "private_cidrs" : "allow_egress_to_cidrs", d->index, d->rule, text);
}

/* Names the ranges that would list @a: itself, and what it carries where that is not public. */
static void remedy_for_address(const struct policy *p, struct policy_decision *d,
                               const struct address *a)
{
    const char *list = p->open ? "private_cidrs" : "allow_egress_to_cidrs";
    const char *option = p->open ? "--allow-private" : "--allow-cidr";
    char one[ADDRESS_RANGE_TEXT_BYTES], carried[ADDRESS_RANGE_TEXT_BYTES];
    struct address inner = *a;
    bool carrier = address_block(a) && address_embedded(a, &inner, NULL);
    struct address_range range = address_range_of(a), inner_range = address_range_of(&inner);

    address_range_format(&range, one);
    address_range_format(&inner_range, carried);
    if (carrier && !p->open && !find_in(p, a))
        remedy(d, "Add both: %s: [\"%s\", \"%s\"], or %s %s %s %s", list, one, carried, option, one,
               option, carried);
    else
        remedy(d, "Add it: %s: [\"%s\"], or %s %s", list, carrier ? carried : one, option,
               carrier ? carried : one);
}

static void refuse_address(const struct policy *p, struct policy_decision *d,
                           const struct address *a, const char *text)
{
    const struct address_block *block = address_block(a);

    if (is_no_destination(block)) {
        d->kind = POLICY_RULE_CLASS;
        explain(d, "%s is %s (%s), which nothing connects to", text, address_class_text(block->cls),
                block->source);
        return;
    }
    remedy_for_address(p, d, a);
    if (p->open) {
        assert(block); /* an open network lets the public out */
        d->kind = POLICY_RULE_CLASS;
        explain(d, "block_network: false opens the public network only, and %s is %s (%s)", text,
                address_class_text(block->cls), block->source);
        return;
    }
    const struct policy_range *outer = find_in(p, a);
    if (outer && block)
        explain(d, "allow_egress_to_cidrs[%zu] '%s' lists %s, which is %s (%s) that no entry lists",
                outer->index, outer->text, text, address_class_text(block->cls), block->source);
    else if (p->n_ranges > 0)
        explain(d, "no entry of allow_egress_to_cidrs lists %s", text);
    else if (p->n_hosts > 0)
        explain(d,
                "%s is an address, and allow_egress_to lists names, whose addresses are looked up "
                "outside",
                text);
    else
        explain(d, "the network is blocked (block_network: true) and no entry lists %s", text);
}

static void decide_address(const struct policy *p, const struct address *a,
                           struct policy_decision *d)
{
    const struct address_block *block = address_block(a);
    const struct policy_range *range = policy_find_range(p, a);
    char text[2 * ADDRESS_TEXT_BYTES + 48];
    struct address inner;

    address_text(a, text, sizeof text);
    if (block && block->cls == ADDRESS_LOOPBACK && !address_embedded(a, &inner, NULL)) {
        /* True also where a range lists it: that is for names that lead to the host's. */
        d->kind = POLICY_RULE_LOOPBACK;
        explain(d, "%s is the sandbox's own loopback: it needs no entry and leads nowhere else%s",
                text, range ? "; the range that lists it is for names that have this address" : "");
    } else if (range) {
        allow_by_range(p, d, range, text);
    } else if (p->open && !block) {
        d->allowed = true;
        d->kind = POLICY_RULE_OPEN;
        explain(d, "block_network: false opens the network to %s", text);
    } else {
        refuse_address(p, d, a, text);
    }
}

void policy_decide(const struct policy *p, const struct policy_destination *to,
                   struct policy_decision *ret)
{
    *ret = (struct policy_decision){.kind = POLICY_RULE_NONE};
    if (to->by_name)
        decide_name(p, to, ret);
    else
        decide_address(p, &to->address, ret);
}

void policy_rule_text(const struct policy_decision *d, char *buf, size_t size)
{
    static const char *const lists[] = {
        [POLICY_RULE_HOST] = "allow_egress_to",
        [POLICY_RULE_RANGE] = "allow_egress_to_cidrs",
        [POLICY_RULE_PRIVATE] = "private_cidrs",
        [POLICY_RULE__MAX] = NULL,
    };

    if (lists[d->kind])
        (void)snprintf(buf, size, "%s[%zu] '%s'", lists[d->kind], d->index, d->rule);
    else
        (void)snprintf(buf, size, "%s", d->kind == POLICY_RULE_OPEN ? "block_network" : "no rule");
}
