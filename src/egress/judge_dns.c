/* SPDX-License-Identifier: Apache-2.0 */
/* What each question is answered by: listed names, names above them, and no others. */
#include "egress/judge_dns.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/egress.h"
#include "base/guards.h"

#define REASON_ODD     "a byte of the name has no place in the names of hosts"
#define REASON_NO_NAME "no entry can list it, since it is no name of a host"
#define REASON_MANY    "too many new names below a wildcard were asked for within a minute"
#define REASON_FULL    "too many names are in use at once"
#define REASON_OWN     "the only address of the name is one of the host's own"

void judge_dns_say(struct dns_verdict *v, enum dns_rcode rcode)
{
    v->answer = (struct dns_answer){.rcode = rcode, .addresses = v->addresses, .ttl = DNS_TTL_S};
}

static void say_address(struct dns_verdict *v, const struct address *a)
{
    struct dns_address *to = &v->addresses[v->answer.n_addresses];

    if (v->answer.n_addresses == RESOLVE_ADDRESSES_MAX)
        return;
    to->v6 = a->family == ADDRESS_V6;
    memcpy(to->bytes, a->bytes, sizeof to->bytes);
    v->answer.n_addresses++;
}

/* What is refused */

/* @name: NULL if it is none; then @shown is what was asked for */
static void deny(struct egress *e, const struct host_name *name, const char *shown,
                 const char *reason)
{
    struct policy_decision decision = {.kind = POLICY_RULE_NONE};
    struct policy_destination to = {.by_name = true, .port = HOST_RULE_PORT_DEFAULT};

    if (name) {
        const struct policy_host *host = policy_find_host(&e->policy, name, 0);

        to.name = *name;
        to.port = host ? host->rule.port : to.port;
        policy_decide(&e->policy, &to, &decision);
    }
    denials_decided(&e->denials, DENIAL_DNS, shown, NULL, 0, &decision, reason, 0);
}

/* A name all of whose addresses are forbidden, and one of them. */
static void deny_address(struct egress *e, const struct name *x, const struct address *a, bool own)
{
    struct policy_destination to = {.address = *a};
    struct policy_decision decision;

    policy_decide(&e->policy, &to, &decision);
    denials_decided(&e->denials, DENIAL_DNS, x->text.text, a, 0, &decision, own ? REASON_OWN : NULL,
                    0);
}

static bool is_below(const char *name, const char *parent)
{
    size_t n = strlen(name), m = strlen(parent);

    return n >= m && strcmp(name + n - m, parent) == 0 && (n == m || name[n - m - 1] == '.');
}

/* Whose names programs ask for of their own accord, when somebody connects to them by loopback. */
static bool is_loopback_reverse(const char *name)
{
    return is_below(name, "127.in-addr.arpa") ||
           is_below(name,
                    "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa");
}

/* Programs that connect to a listed host, such as apt, ask first whether its service is elsewhere.
 */
static bool is_service_of_listed(const struct policy *p, const struct host_name *name)
{
    const char *text = host_name_of_service(name);
    struct host_name host;

    return text && host_name_read(text, strlen(text), &host) == 0 &&
           policy_name_kind(p, &host) == POLICY_NAME_LISTED;
}

/* What is answered */

static bool has_v6(const struct name *x)
{
    for (size_t i = 0; i < x->n_addresses; i++)
        if (address_unmapped(&x->addresses[i]).family == ADDRESS_V6)
            return true;
    return false;
}

static bool is_pinned_v6(const struct policy *p, const struct policy_pin *pin)
{
    for (const struct policy_pin *i = pin; i; i = policy_pin_next(p, &pin->name, i))
        if (address_unmapped(&i->address).family == ADDRESS_V6)
            return true;
    return false;
}

/* The synthetic address; of IPv6 only where something of IPv6 is behind it. */
static void say_synthetic(struct egress *e, const struct dns_question *q, const struct name *x,
                          bool v6, struct dns_verdict *v)
{
    struct address a;

    judge_dns_say(v, DNS_NOERROR);
    if (q->type == DNS_AAAA && !v6)
        return;
    a = names_address(&e->names, x, q->type == DNS_AAAA ? ADDRESS_V6 : ADDRESS_V4);
    say_address(v, &a);
}

/*
 * The name's own addresses, less those that may not be connected to. Those without a way to them
 * are told only if there is no other: a program that gets both families tries what it likes first,
 * and inside that connects before anybody knows whether it does outside.
 */
static void say_found(struct egress *e, const struct dns_question *q, const struct name *x,
                      struct dns_verdict *v)
{
    enum own_address_answer ways[RESOLVE_ADDRESSES_MAX];
    const struct address *forbidden = NULL;
    size_t n = x->n_addresses < RESOLVE_ADDRESSES_MAX ? x->n_addresses : RESOLVE_ADDRESSES_MAX;
    bool allowed[RESOLVE_ADDRESSES_MAX], own = false, any = false, any_way = false;

    judge_dns_say(v, DNS_NOERROR);
    for (size_t i = 0; i < n; i++) {
        const struct address *a = &x->addresses[i];

        allowed[i] = policy_may_dial(&e->policy, a);
        ways[i] = allowed[i] ? own_address_ask(&e->own_address, a) : ADDRESS_ELSEWHERE;
        if (!allowed[i] || (ways[i] == ADDRESS_OWN && !policy_lists_alone(&e->policy, a))) {
            own = allowed[i];
            allowed[i] = false;
            forbidden = a;
        }
        any = any || allowed[i];
        any_way = any_way || (allowed[i] && ways[i] != ADDRESS_NO_ROUTE);
    }
    for (size_t i = 0; i < n; i++)
        if (allowed[i] && (!any_way || ways[i] != ADDRESS_NO_ROUTE) &&
            (x->addresses[i].family == ADDRESS_V6) == (q->type == DNS_AAAA))
            say_address(v, &x->addresses[i]);
    if (!any && forbidden)
        deny_address(e, x, forbidden, own);
}

void judge_dns_looked_up(struct egress *e, const struct dns_question *q, const struct name *x,
                         struct dns_verdict *v)
{
    if (x->status == RESOLVE_FAILED || !x->looked_up)
        judge_dns_say(v, DNS_SERVFAIL);
    else if (x->status != RESOLVE_FOUND || x->n_addresses == 0)
        judge_dns_say(v, DNS_NXDOMAIN);
    else if (e->policy.open)
        say_found(e, q, x, v);
    else
        say_synthetic(e, q, x, has_v6(x), v);
}

/* A listed name. Return: as judge_dns(). */
static struct name *judge_listed(struct egress *e, const struct dns_question *q,
                                 const struct host_name *name, struct dns_verdict *v)
{
    const struct policy *p = &e->policy;
    const struct policy_pin *pin = policy_pin_next(p, name, NULL);
    int error = 0;

    judge_dns_say(v, DNS_NOERROR);
    if (q->type != DNS_A && q->type != DNS_AAAA)
        return NULL;
    /* An open network tells no synthetic addresses: a place there can be given away at once. */
    e->names.keep_us = p->open ? 0 : NAMES_KEEP_US;
    struct name *x = names_find(&e->names, name);
    if (x)
        names_touch(&e->names, x);
    else
        x = names_add(&e->names, name, !p->open && policy_name_by_wildcard(p, name), &error);
    if (!x) {
        judge_dns_say(v, error == -EDQUOT ? DNS_REFUSED : DNS_SERVFAIL);
        deny(e, name, name->text, error == -EDQUOT ? REASON_MANY : REASON_FULL);
        return NULL;
    }
    if (pin || (e->proxy.set && !p->open)) {
        say_synthetic(e, q, x, pin && is_pinned_v6(p, pin), v);
        return NULL;
    }
    if (!x->looked_up || x->used_at_us >= x->fresh_until_us)
        return x;
    judge_dns_looked_up(e, q, x, v);
    return NULL;
}

/* localhost and what is below it (RFC 6761, 6.3): inside, as anywhere, nobody else's. */
static void say_localhost(const struct dns_question *q, struct dns_verdict *v)
{
    const struct address v4 = {ADDRESS_V4, {127, 0, 0, 1}}, v6 = {ADDRESS_V6, {[15] = 1}};

    judge_dns_say(v, DNS_NOERROR);
    if (q->type == DNS_A || q->type == DNS_AAAA)
        say_address(v, q->type == DNS_A ? &v4 : &v6);
}

struct name *judge_dns(struct egress *e, const struct dns_question *q, struct dns_verdict *v)
{
    struct host_name name;

    judge_dns_say(v, DNS_NOERROR);
    if (q->name[0] == '\0')
        return NULL; /* the root is above every name */
    if (host_name_read(q->name, strlen(q->name), &name) < 0) {
        judge_dns_say(v, DNS_NXDOMAIN);
        deny(e, NULL, q->name, REASON_NO_NAME);
        return NULL;
    }
    if (host_name_is_localhost(&name)) {
        say_localhost(q, v);
        return NULL;
    }
    switch (policy_name_kind(&e->policy, &name)) {
    case POLICY_NAME_LISTED:
        return judge_listed(e, q, &name, v);
    case POLICY_NAME_ANCESTOR:
        break;
    case POLICY_NAME_UNLISTED:
        judge_dns_say(v, DNS_NXDOMAIN);
        if (!is_loopback_reverse(name.text) &&
            !(q->type == DNS_SRV && is_service_of_listed(&e->policy, &name)))
            deny(e, &name, name.text, NULL);
        break;
    }
    return NULL;
}

void judge_dns_odd(struct egress *e, const struct dns_question *q)
{
    deny(e, NULL, q->name, REASON_ODD);
}
