/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network policy: what a sandbox may reach, who says so, and why not. It is pure: the same
 * policy judges a spec before anything exists, answers `explain`, tells a model what to expect, and
 * is what egress carries out, so that no two of them can differ.
 *
 * With a closed network (the default) a destination needs an entry: a name one of allow_egress_to,
 * an address one of allow_egress_to_cidrs. The lists do not touch each other: a range lets no name
 * through, and a host lets no address through but those that its name has, looked up outside. With
 * an open network every public destination passes. In both, an address that is not public
 * (loopback, private, link-local, metadata and the like, or an IPv6 form of one) is refused unless
 * a range lists it: of allow_egress_to_cidrs, or of private_cidrs with an open network.
 *
 * No call here blocks. Only those that say so allocate.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/address.h"
#include "core/host_rule.h"
#include "core/limits.h"
#include "core/problems.h"

/* Entries of one list. Hosts are found through an index, ranges one by one. */
enum {
    POLICY_HOSTS_MAX = LIMIT_HOSTS,
    POLICY_RANGES_MAX = LIMIT_LIST_ENTRIES,
    POLICY_PINS_MAX = LIMIT_LIST_ENTRIES,
    POLICY_HOSTS_BYTES_MAX = LIMIT_HOSTS_BYTES, /* of all hosts together, as written */
};

/* A list as a spec has it; all borrowed. */
struct policy_list {
    const char *const *items;
    size_t n;
    const struct position *at; /* of each item, or NULL: not from a file */
    struct position list_at;   /* of the list itself */
};

struct policy_input {
    bool block_network;
    struct position block_network_at;
    struct policy_list allow_egress_to;
    struct policy_list allow_egress_to_cidrs;
    struct policy_list private_cidrs;
    struct policy_list add_hosts; /* NAME=ADDR */
};

struct policy_host {
    struct host_rule rule;
    size_t index; /* in the list of the spec */
};

struct policy_range {
    struct address_range range;
    char text[ADDRESS_RANGE_TEXT_BYTES]; /* as written, without blanks around it */
    size_t index;
};

/*
 * An address that the spec gives to a listed name, instead of what a look-up would find. It is the
 * spec's author who says so, and no answer of a name server: so it may be any address that can be
 * connected to, for that name on the ports that its entries list.
 */
struct policy_pin {
    struct host_name name;
    struct address address;
    size_t index; /* in backend.add_hosts */
    size_t next;  /* private to policy_index.c: of the same name, counted from 1; 0: none */
};

struct policy_index; /* private to policy_index.c: hosts by name */

/* Owns its arrays, each without duplicates, in the order given. Zeroed: nothing may pass. */
struct policy {
    bool open; /* block_network: false */
    struct policy_host *hosts;
    size_t n_hosts;
    struct policy_range *ranges; /* allow_egress_to_cidrs */
    size_t n_ranges;
    struct policy_range *private_ranges; /* private_cidrs */
    size_t n_private_ranges;
    struct policy_pin *pins; /* add_hosts */
    size_t n_pins;
    struct policy_index *index; /* NULL without hosts and pins */
};

/**
 * policy_build() - judge the network fields of a spec and compile them
 * @problems: gets one problem for each wrong entry and each contradiction, under names such as
 *            "spec.allow_egress_to[2]"; what it holds already stays
 *
 * Refused beside wrong entries: a pin of a name that no host lists (with an open network every name
 * will do), lists next to an open network, private_cidrs next to a closed one, and ranges that
 * together leave nothing public out, since that is an open network by another name. Allocates.
 * Return: 0 with @ret owned by the caller; -EINVAL with problems added; or -ENOMEM, which @problems
 * records too.
 */
int policy_build(const struct policy_input *in, struct policy *ret, struct problems *problems);

void policy_done(struct policy *p);

/* Where something inside wants to connect to. */
struct policy_destination {
    bool by_name;
    struct host_name name;  /* by_name */
    struct address address; /* otherwise; an IPv4-mapped one is the IPv4 address */
    uint16_t port;
};

/**
 * policy_destination_parse() - URL, HOST:PORT, ADDR:PORT or [V6]:PORT
 * @text: @n bytes, not necessarily terminated
 *
 * A URL of http and https has its default port, any other must name one. What two programs could
 * read as two destinations is refused, not guessed at: user names, backslashes, escapes in the
 * host, numeric forms of addresses, more than one colon. Return: 0, or -EINVAL with a usage error
 * that says how to write it.
 */
int policy_destination_parse(const char *text, size_t n, struct policy_destination *ret,
                             struct error *err);

enum policy_rule_kind {
    POLICY_RULE_NONE,     /* no entry lists it */
    POLICY_RULE_HOST,     /* allow_egress_to[index] */
    POLICY_RULE_RANGE,    /* allow_egress_to_cidrs[index] */
    POLICY_RULE_PRIVATE,  /* private_cidrs[index] */
    POLICY_RULE_OPEN,     /* block_network: false */
    POLICY_RULE_CLASS,    /* what kind of address it is; never an entry */
    POLICY_RULE_LOOPBACK, /* the sandbox's own loopback, which leads nowhere else */
    POLICY_RULE__MAX,
};

struct policy_decision {
    bool allowed;
    enum policy_rule_kind kind; /* of the rule that decided */
    size_t index;               /* of its entry in the spec's list; 0 without one */
    const char *rule;           /* its entry as written: a view of the policy; or NULL */
    char explanation[1024];     /* one sentence without a full stop at its end */
    char remedy[768];           /* of a refusal: which entry would allow it; or empty */
};

/**
 * policy_decide() - would this be let out, and by which rule
 *
 * An allowed name is a promise with a condition, which the explanation states: each address that it
 * turns out to have must pass policy_may_dial(). Does not allocate.
 */
void policy_decide(const struct policy *p, const struct policy_destination *to,
                   struct policy_decision *ret);

/**
 * policy_find_host() - the entry that lists @name on @port, or NULL
 * @port: 0 for any port, which is the question of a name look-up
 */
const struct policy_host *policy_find_host(const struct policy *p, const struct host_name *name,
                                           uint16_t port);

/* What the resolver inside says of a name. */
enum policy_name_kind {
    POLICY_NAME_LISTED,   /* it is looked up outside and answered */
    POLICY_NAME_ANCESTOR, /* a listed name lies below it: it exists, without addresses (RFC 8020) */
    POLICY_NAME_UNLISTED, /* it does not exist */
};

/**
 * policy_name_kind() - how a name stands to the policy, on whatever port
 *
 * With an open network every name is listed. A wildcard's own name is an ancestor. Takes time with
 * the number of labels, not of entries.
 */
enum policy_name_kind policy_name_kind(const struct policy *p, const struct host_name *name);

/** policy_name_by_wildcard() - whether no entry but a wildcard lists @name, on any port */
bool policy_name_by_wildcard(const struct policy *p, const struct host_name *name);

/** policy_pin_next() - the next pin of @name after @last (NULL: the first), or NULL */
const struct policy_pin *policy_pin_next(const struct policy *p, const struct host_name *name,
                                         const struct policy_pin *last);

/** policy_rule_text() - "allow_egress_to[2] 'example.org'", "block_network", or "no rule" */
void policy_rule_text(const struct policy_decision *d, char *buf, size_t size);

/**
 * policy_find_range() - the entry that lists the address, or NULL
 *
 * An IPv6 address that carries a non-public IPv4 one is listed only if that one is too. What cannot
 * be connected to (unspecified, multicast, broadcast) is never listed.
 */
const struct policy_range *policy_find_range(const struct policy *p, const struct address *a);

/**
 * policy_lists_alone() - whether a range lists this address and no other
 *
 * What it takes to reach an address that the host itself answers for: a wider range that happens to
 * hold it says nothing about the host's own services.
 */
bool policy_lists_alone(const struct policy *p, const struct address *a);

/**
 * policy_may_dial() - whether an address that an allowed name has may be connected to
 *
 * True for public addresses, and for others that a range lists. Addresses that the host itself
 * answers for are known to the host alone, and are egress's to refuse. A pinned address of a name
 * needs no permission: policy_pin_next().
 */
bool policy_may_dial(const struct policy *p, const struct address *a);

/**
 * policy_describe() - what the sandbox may reach, as a few plain lines for people and models
 *
 * Allocates. Return: 0 with *@ret owned by the caller, each line with its line end; or -ENOMEM.
 */
int policy_describe(const struct policy *p, char **ret);

/**
 * policy_stamp_encode() - the policy as recorded on a sandbox: compact JSON, keys sorted
 *
 * {"allow_egress_to":[],"allow_egress_to_cidrs":[],"block_network":true}, the hosts as written, the
 * ranges canonical. The same policy gives the same bytes. private_cidrs is no part of a stamp.
 * Allocates. Return: 0 with *@ret owned by the caller, or -ENOMEM.
 */
int policy_stamp_encode(const struct policy *p, char **ret);

/**
 * policy_stamp_decode() - the policy that a stamp of @n bytes records
 *
 * Strict: the three keys and no other, each once, of the right type, and entries that a spec could
 * have. A stamp that says more than this version knows is refused, since it may restrict more.
 * Allocates. Return: 0 with @ret owned by the caller, -EINVAL or -ENOMEM with @err set.
 */
int policy_stamp_decode(const char *text, size_t n, struct policy *ret, struct error *err);
