/* SPDX-License-Identifier: Apache-2.0 */
/* Building a policy from the network fields of a spec, and every reason to refuse one. */
#include "core/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/policy_index.h"
#include "base/guards.h"

enum list_id { HOSTS, RANGES, PRIVATE, PINS };

static const struct {
    const char *path;
    size_t max;
} lists[] = {
    [HOSTS] = {"spec.allow_egress_to", POLICY_HOSTS_MAX},
    [RANGES] = {"spec.allow_egress_to_cidrs", POLICY_RANGES_MAX},
    [PRIVATE] = {"spec.private_cidrs", POLICY_RANGES_MAX},
    [PINS] = {"backend.add_hosts", POLICY_PINS_MAX},
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

    (void)snprintf(field, sizeof field, "%s[%zu]", lists[b->id].path, i);
    problems_add(b->problems, field, b->list->at ? b->list->at[i] : b->list->list_at, remedy, "%s",
                 message);
}

static void entry_error(const struct build *b, size_t i, const struct error *err)
{
    entry_problem(b, i, err->remedy[0] ? err->remedy : NULL, err->message);
}

static void list_problem(const struct build *b, const char *remedy, const char *message)
{
    problems_add(b->problems, lists[b->id].path, b->list->list_at, remedy, "%s", message);
}

/* Whether there is something to read, and not too much. */
static bool list_fits(const struct build *b)
{
    const size_t max = lists[b->id].max;
    char message[96];

    if (b->list->n <= max)
        return b->list->n > 0;
    (void)snprintf(message, sizeof message,
                   "the list has %zu entries, more than the %zu it may have", b->list->n, max);
    list_problem(b, b->id == PINS ? "Leave some out" : "Use wildcards, or larger ranges", message);
    return false;
}

static bool hosts_fit(const struct build *b)
{
    char message[96];
    size_t bytes = 0;

    if (!list_fits(b))
        return false;
    for (size_t i = 0; i < b->list->n; i++)
        bytes += strlen(b->list->items[i]);
    if (bytes <= POLICY_HOSTS_BYTES_MAX)
        return true;
    (void)snprintf(message, sizeof message,
                   "the hosts have %zu bytes together, more than the %d they may have", bytes,
                   POLICY_HOSTS_BYTES_MAX);
    list_problem(b, "Use wildcards", message);
    return false;
}

static void build_hosts(const struct build *b, struct policy *p)
{
    if (!hosts_fit(b))
        return;
    p->hosts = calloc(b->list->n, sizeof *p->hosts);
    if (!p->hosts)
        b->problems->no_memory = true;
    for (size_t i = 0; p->hosts && i < b->list->n; i++) {
        struct policy_host *host = &p->hosts[p->n_hosts];
        struct error err = ERROR_INIT;

        if (host_rule_parse(b->list->items[i], &host->rule, &err) < 0) {
            entry_error(b, i, &err);
            continue;
        }
        host->index = i;
        int r = policy_index_add_host(p, p->n_hosts);
        if (r < 0)
            b->problems->no_memory = true;
        if (r > 0)
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

/* Pins */

/* An address of a pin, or what to write instead of it. */
static bool read_pin_address(const struct build *b, size_t i, const char *text, struct address *ret)
{
    enum address_fault fault = address_parse(text, strlen(text), ret);
    char quoted[ADDRESS_TEXT_BYTES], v4[ADDRESS_TEXT_BYTES], message[256], remedy[96];

    (void)snprintf(quoted, sizeof quoted, "%s", text);
    text_make_printable(quoted);
    if (fault != ADDRESS_GOOD) {
        (void)snprintf(message, sizeof message, "'%s' %s", quoted, address_fault_text(fault));
        entry_problem(b, i, "Write NAME=ADDR, such as host.example=192.0.2.7", message);
        return false;
    }
    const struct address unmapped = address_unmapped(ret);
    const struct address_block *block = address_block(&unmapped);
    if (unmapped.family != ret->family) {
        address_format(&unmapped, v4);
        (void)snprintf(message, sizeof message, "'%s' is an IPv6 spelling of an IPv4 address",
                       quoted);
        (void)snprintf(remedy, sizeof remedy, "Write %s", v4);
        entry_problem(b, i, remedy, message);
        return false;
    }
    if (block && is_no_destination(block->cls)) {
        (void)snprintf(message, sizeof message, "'%s' is %s, which nothing connects to", quoted,
                       address_class_text(block->cls));
        entry_problem(b, i, "Give the name an address of a host", message);
        return false;
    }
    return true;
}

static bool read_pin(const struct build *b, size_t i, struct policy_pin *ret)
{
    const char *text = b->list->items[i], *equals = strchr(text, '=');
    char message[160];

    if (!equals) {
        entry_problem(b, i, "Write NAME=ADDR, such as host.example=192.0.2.7",
                      "there is no '=' in it");
        return false;
    }
    if (host_name_read(text, (size_t)(equals - text), &ret->name) < 0 || equals[-1] == '.') {
        (void)snprintf(message, sizeof message, "'%.*s' is not the name of a host",
                       (int)(equals - text < 100 ? equals - text : 100), text);
        text_make_printable(message);
        entry_problem(b, i, "Write the full name, without a star and without a port", message);
        return false;
    }
    if (host_name_is_localhost(&ret->name)) {
        entry_problem(b, i, "Give the address another name",
                      "localhost is the sandbox's own loopback");
        return false;
    }
    ret->index = i;
    return read_pin_address(b, i, equals + 1, &ret->address);
}

/* @judged: p->hosts has every entry; one that was refused for its form might have listed a name */
static void build_pins(const struct build *b, struct policy *p, bool judged)
{
    char message[HOST_NAME_BYTES_MAX + 64], remedy[HOST_NAME_BYTES_MAX + 64];

    if (!list_fits(b))
        return;
    p->pins = calloc(b->list->n, sizeof *p->pins);
    if (!p->pins)
        b->problems->no_memory = true;
    for (size_t i = 0; p->pins && i < b->list->n; i++) {
        struct policy_pin *pin = &p->pins[p->n_pins];

        if (!read_pin(b, i, pin))
            continue;
        if (judged && !p->open && !policy_find_host(p, &pin->name, 0)) {
            (void)snprintf(message, sizeof message, "no entry of spec.allow_egress_to lists '%s'",
                           pin->name.text);
            (void)snprintf(remedy, sizeof remedy, "List it there too: %s, or leave this out",
                           pin->name.text);
            entry_problem(b, i, remedy, message);
            continue;
        }
        int r = policy_index_add_pin(p, p->n_pins);
        if (r < 0)
            b->problems->no_memory = true;
        if (r > 0)
            p->n_pins++;
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
                     hosts ? "allow_egress_to" : "", hosts && ranges ? " and " : "",
                     ranges ? "allow_egress_to_cidrs" : "");
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
    const struct build pins = {&in->add_hosts, PINS, problems};

    check_contradictions(in, problems);
    size_t contradictions = problems->n;
    build_hosts(&hosts, &p);
    build_pins(&pins, &p, problems->n == contradictions);
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
    free(p->pins);
    policy_index_free(p->index);
    *p = (struct policy){0};
}
