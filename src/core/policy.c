/* SPDX-License-Identifier: Apache-2.0 */
/* Building a policy from the network fields of a spec, and every reason to refuse one. */
#include "core/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum list_id { HOSTS, RANGES, PRIVATE };

static const char *const list_names[] = {
    [HOSTS] = "allow_egress_to",
    [RANGES] = "allow_egress_to_cidrs",
    [PRIVATE] = "private_cidrs",
};

/* What one build works on. */
struct build {
    const struct policy_list *list;
    enum list_id id;
    struct problems *problems;
};

static void entry_problem(const struct build *b, size_t i, const char *remedy, const char *message)
{
    char field[64];

    (void)snprintf(field, sizeof field, "spec.%s[%zu]", list_names[b->id], i);
    problems_add(b->problems, field, b->list->at ? b->list->at[i] : b->list->list_at, remedy, "%s",
                 message);
}

static void entry_error(const struct build *b, size_t i, const struct error *err)
{
    entry_problem(b, i, err->remedy[0] ? err->remedy : NULL, err->message);
}

static void list_problem(const struct build *b, const char *remedy, const char *message)
{
    char field[64];

    (void)snprintf(field, sizeof field, "spec.%s", list_names[b->id]);
    problems_add(b->problems, field, b->list->list_at, remedy, "%s", message);
}

/* Whether there is something to read, and not too much. */
static bool list_fits(const struct build *b)
{
    char message[96];

    if (b->list->n <= POLICY_ENTRIES_MAX)
        return b->list->n > 0;
    (void)snprintf(message, sizeof message,
                   "the list has %zu entries, more than the %d it may have", b->list->n,
                   POLICY_ENTRIES_MAX);
    list_problem(b, "Use wildcards, or larger ranges", message);
    return false;
}

static void build_hosts(const struct build *b, struct policy *p)
{
    if (!list_fits(b))
        return;
    p->hosts = calloc(b->list->n, sizeof *p->hosts);
    if (!p->hosts)
        b->problems->no_memory = true;
    for (size_t i = 0; p->hosts && i < b->list->n; i++) {
        struct policy_host *host = &p->hosts[p->n_hosts];
        struct error err = ERROR_INIT;
        bool known = false;

        if (host_rule_parse(b->list->items[i], &host->rule, &err) < 0) {
            entry_error(b, i, &err);
            continue;
        }
        for (size_t k = 0; k < p->n_hosts && !known; k++)
            known = host_rule_equal(&p->hosts[k].rule, &host->rule);
        host->index = i;
        if (!known)
            p->n_hosts++;
    }
}

/* Addresses that nothing connects to. */
static bool is_no_destination(enum address_class cls)
{
    return cls == ADDRESS_UNSPECIFIED || cls == ADDRESS_MULTICAST || cls == ADDRESS_BROADCAST;
}

static bool check_private_range(const struct build *b, size_t i, const char *text,
                                const struct address_range *range)
{
    const struct address_block *block = address_range_block(range);
    char message[256];

    if (block && block->cls != ADDRESS_UNASSIGNED)
        return true;
    (void)snprintf(message, sizeof message, "'%s' is not within private or special address space",
                   text);
    entry_problem(b, i,
                  "List ranges within 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, "
                  "fc00::/7 and the like; what is public needs no entry when the network is open",
                  message);
    return false;
}

/* What a well-formed range must not be. Return: whether it is kept. */
static bool check_range(const struct build *b, size_t i, const char *text,
                        const struct address_range *range)
{
    const struct address_block *block = address_range_block(range);
    char message[256], remedy[128], v4_text[ADDRESS_RANGE_TEXT_BYTES];
    struct address_range v4;

    if (range->prefix == 0) {
        (void)snprintf(message, sizeof message, "'%s' is every address there is", text);
        entry_problem(b, i, "For an open network write block_network: false", message);
        return false;
    }
    if (address_range_unmapped(range, &v4)) {
        address_range_format(&v4, v4_text);
        (void)snprintf(message, sizeof message, "'%s' is an IPv6 spelling of IPv4 addresses", text);
        (void)snprintf(remedy, sizeof remedy, "Write %s", v4_text);
        entry_problem(b, i,
                      v4.prefix > 0 ? remedy : "For an open network write block_network: false",
                      message);
        return false;
    }
    if (block && is_no_destination(block->cls)) {
        (void)snprintf(message, sizeof message,
                       "'%s' holds no address that can be connected to: %s is %s", text, text,
                       address_class_text(block->cls));
        entry_problem(b, i, "Leave the entry out", message);
        return false;
    }
    return b->id != PRIVATE || check_private_range(b, i, text, range);
}

static void build_ranges(const struct build *b, struct policy_range **items, size_t *n)
{
    if (!list_fits(b))
        return;
    *items = calloc(b->list->n, sizeof **items);
    if (!*items)
        b->problems->no_memory = true;
    for (size_t i = 0; *items && i < b->list->n; i++) {
        struct policy_range *entry = &(*items)[*n];
        const char *text = b->list->items[i] + strspn(b->list->items[i], " \t");
        struct error err = ERROR_INIT;
        bool known = false;

        if (address_range_parse(text, &entry->range, &err) < 0) {
            entry_error(b, i, &err);
            continue;
        }
        /* It fits: a range has no longer spelling than its room. */
        (void)snprintf(entry->text, sizeof entry->text, "%.*s", (int)strcspn(text, " \t"), text);
        entry->index = i;
        if (!check_range(b, i, entry->text, &entry->range))
            continue;
        for (size_t k = 0; k < *n && !known; k++)
            known = address_range_within(&entry->range, &(*items)[k].range) &&
                    entry->range.prefix == (*items)[k].range.prefix;
        if (!known)
            (*n)++;
    }
}

/* Ranges that leave nothing out, though none of them is everything. */
static void check_coverage(const struct build *b, const struct policy *p)
{
    static const enum address_family families[] = {ADDRESS_V4, ADDRESS_V6};
    _cleanup_free_ struct address_range *ranges = NULL;

    if (p->n_ranges == 0)
        return;
    ranges = reallocarray(NULL, p->n_ranges, sizeof *ranges);
    for (size_t i = 0; ranges && i < p->n_ranges; i++)
        ranges[i] = p->ranges[i].range;
    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        int r = ranges ? address_ranges_cover(families[i], ranges, p->n_ranges) : -ENOMEM;

        if (r < 0)
            b->problems->no_memory = true;
        if (r > 0)
            list_problem(b, "For an open network write block_network: false",
                         families[i] == ADDRESS_V4
                             ? "the ranges together hold every public IPv4 address, "
                               "directly or through NAT64"
                             : "the ranges together hold every public IPv6 address");
    }
}

static void check_contradictions(const struct policy_input *in, struct problems *problems)
{
    const bool hosts = in->allow_egress_to.n > 0, ranges = in->allow_egress_to_cidrs.n > 0;

    if (!in->block_network && (hosts || ranges))
        problems_add(problems, "spec.block_network", in->block_network_at,
                     "For those destinations alone leave block_network at true; for an open "
                     "network leave the list out",
                     "block_network: false opens the network, which contradicts %s%s%s",
                     hosts ? list_names[HOSTS] : "", hosts && ranges ? " and " : "",
                     ranges ? list_names[RANGES] : "");
    if (in->block_network && in->private_cidrs.n > 0)
        problems_add(problems, "spec.private_cidrs", in->private_cidrs.list_at,
                     "List the ranges in allow_egress_to_cidrs, or open the network with "
                     "block_network: false",
                     "private_cidrs widens an open network only, and block_network is true");
}

int policy_build(const struct policy_input *in, struct policy *ret, struct problems *problems)
{
    struct policy p = {.open = !in->block_network};
    size_t before = problems->n;
    const struct build hosts = {&in->allow_egress_to, HOSTS, problems};
    const struct build ranges = {&in->allow_egress_to_cidrs, RANGES, problems};
    const struct build private_ranges = {&in->private_cidrs, PRIVATE, problems};

    check_contradictions(in, problems);
    build_hosts(&hosts, &p);
    build_ranges(&ranges, &p.ranges, &p.n_ranges);
    build_ranges(&private_ranges, &p.private_ranges, &p.n_private_ranges);
    check_coverage(&ranges, &p);
    if (problems->no_memory || problems->n > before) {
        policy_done(&p);
        return problems->no_memory ? -ENOMEM : -EINVAL;
    }
    *ret = p;
    return 0;
}

void policy_done(struct policy *p)
{
    free(p->hosts);
    free(p->ranges);
    free(p->private_ranges);
    *p = (struct policy){0};
}
