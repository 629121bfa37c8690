/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy lets out, written for nf_tables (linux/netfilter/nf_tables.h). */
#include "local/ruleset.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "base/cleanup.h"
#include "local/nft_expression.h"
#include "wire/control.h"
#include "base/guards.h"

static const char table_name[] = "atoll";

/* Offsets of RFC 791, 8200, 9293, 768, 792 and 4443. */
enum {
    IPV4_DESTINATION = 16,
    IPV6_DESTINATION = 24,
    DESTINATION_PORT = 2,
    TCP_FLAGS = 13,
    TCP_RST = 4,
    ICMP_TYPE = 0,
};

enum { LOG_BYTES = 128 }; /* of a packet: enough for the headers of any that programs send */

enum rule_set { SET_NONE, SET_ALLOW4, SET_ALLOW6, SET_PORTS, SET_NAMES, SET__MAX };

/* The type's number is what nft(8) shows the elements by; the kernel does not look at it. */
static const struct {
    const char *name;
    uint32_t type, key_bytes;
    bool interval;
} sets[SET__MAX] = {
    [SET_ALLOW4] = {"allow4", 7, 4, true},
    [SET_ALLOW6] = {"allow6", 8, 16, true},
    [SET_PORTS] = {"ports", 13, 2, false},
    [SET_NAMES] = {"names", 13, 2, false},
};

enum rule_chain { CHAIN_OUT, CHAIN_PRE, CHAIN_REFUSE, CHAIN__MAX };

static const struct {
    const char *name;
    uint32_t hook, policy;
    int32_t priority;
    bool base; /* bound to the hook; otherwise rules of others go there */
} chains[CHAIN__MAX] = {
    [CHAIN_OUT] = {"out", NF_INET_LOCAL_OUT, NF_DROP, 0, true},
    /* That of mangle: after defragmentation, before a route is looked up. */
    [CHAIN_PRE] = {"pre", NF_INET_PRE_ROUTING, NF_ACCEPT, -150, true},
    [CHAIN_REFUSE] = {.name = "refuse"},
};

enum rule_to { TO_ANY, TO_LOOPBACK, TO_MULTICAST, TO_BROADCAST, TO_POOL, TO_ALLOWED };
enum rule_what { WHAT_ANY, WHAT_RESET, WHAT_ICMP_ERROR, WHAT_PORTS, WHAT_NAMES };
enum rule_then { THEN_ACCEPT, THEN_REFUSE, THEN_LOG, THEN_RESET, THEN_REJECT, THEN_TPROXY };

struct rule {
    enum rule_chain chain;
    uint8_t family; /* NFPROTO_UNSPEC: both */
    enum rule_to to;
    uint8_t protocol; /* 0: any */
    enum rule_what what;
    enum rule_then then;
};

#define OUT    CHAIN_OUT
#define PRE    CHAIN_PRE
#define REFUSE CHAIN_REFUSE
#define ANY    NFPROTO_UNSPEC
#define V4     NFPROTO_IPV4
#define V6     NFPROTO_IPV6
#define TCP    IPPROTO_TCP
#define UDP    IPPROTO_UDP

static const struct rule rules[] = {
    {OUT, V4, TO_LOOPBACK, 0, WHAT_ANY, THEN_ACCEPT},
    {OUT, V6, TO_LOOPBACK, 0, WHAT_ANY, THEN_ACCEPT},
    /* The answers of REFUSE themselves come by here, and resets of connections that were let out.
     */
    {OUT, ANY, TO_ANY, IPPROTO_ICMP, WHAT_ICMP_ERROR, THEN_ACCEPT},
    {OUT, ANY, TO_ANY, IPPROTO_ICMPV6, WHAT_ICMP_ERROR, THEN_ACCEPT},
    {OUT, ANY, TO_ANY, TCP, WHAT_RESET, THEN_ACCEPT},
    {OUT, V4, TO_POOL, TCP, WHAT_PORTS, THEN_ACCEPT},
    {OUT, V6, TO_POOL, TCP, WHAT_PORTS, THEN_ACCEPT},
    {OUT, V4, TO_ALLOWED, TCP, WHAT_ANY, THEN_ACCEPT},
    {OUT, V6, TO_ALLOWED, TCP, WHAT_ANY, THEN_ACCEPT},
    {OUT, V4, TO_ALLOWED, UDP, WHAT_ANY, THEN_ACCEPT},
    {OUT, V6, TO_ALLOWED, UDP, WHAT_ANY, THEN_ACCEPT},
    /* No name server is asked there, and no answer could come from there. */
    {OUT, V4, TO_MULTICAST, 0, WHAT_ANY, THEN_REFUSE},
    {OUT, V4, TO_BROADCAST, 0, WHAT_ANY, THEN_REFUSE},
    {OUT, V6, TO_MULTICAST, 0, WHAT_ANY, THEN_REFUSE},
    {OUT, ANY, TO_ANY, TCP, WHAT_NAMES, THEN_ACCEPT},
    {OUT, ANY, TO_ANY, UDP, WHAT_NAMES, THEN_ACCEPT},
    {OUT, ANY, TO_ANY, 0, WHAT_ANY, THEN_REFUSE},
    {REFUSE, ANY, TO_ANY, 0, WHAT_ANY, THEN_LOG},
    {REFUSE, ANY, TO_ANY, TCP, WHAT_ANY, THEN_RESET},
    {REFUSE, ANY, TO_ANY, 0, WHAT_ANY, THEN_REJECT},
    {PRE, V4, TO_LOOPBACK, 0, WHAT_ANY, THEN_ACCEPT},
    {PRE, V6, TO_LOOPBACK, 0, WHAT_ANY, THEN_ACCEPT},
    {PRE, V4, TO_ANY, TCP, WHAT_ANY, THEN_TPROXY},
    {PRE, V4, TO_ANY, UDP, WHAT_ANY, THEN_TPROXY},
    {PRE, V6, TO_ANY, TCP, WHAT_ANY, THEN_TPROXY},
    {PRE, V6, TO_ANY, UDP, WHAT_ANY, THEN_TPROXY},
};

/* Of the messages of ruleset_put(): the batch's start, then as many of each as there are. */
enum {
    FIRST_CHAIN = 2 + 1,
    FIRST_SET = FIRST_CHAIN + CHAIN__MAX,
    FIRST_RULE = FIRST_SET + SET__MAX - 1,
    FIRST_ELEMENT = FIRST_RULE + ARRAY_SIZE(rules),
};

static void begin(struct netlink_batch *b, uint16_t type, uint16_t flags)
{
    const struct nfgenmsg head = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

    netlink_begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_REQUEST | flags, &head,
                  sizeof head);
}

/* Where a transaction begins or ends (NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END). */
static void put_bracket(struct netlink_batch *b, uint16_t type)
{
    const struct nfgenmsg head = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

    netlink_begin(b, type, NLM_F_REQUEST, &head, sizeof head);
    netlink_end(b);
}

/* The message that is open is acknowledged; it is the transaction's last. */
static void ask_acknowledgement(struct netlink_batch *b)
{
    struct nlmsghdr h;

    if (b->bad)
        return;
    memcpy(&h, b->buf + b->message, sizeof h);
    h.nlmsg_flags |= NLM_F_ACK;
    memcpy(b->buf + b->message, &h, sizeof h);
}

static void put_chain(struct netlink_batch *b, enum rule_chain c)
{
    begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    netlink_put_text(b, NFTA_CHAIN_TABLE, table_name);
    netlink_put_text(b, NFTA_CHAIN_NAME, chains[c].name);
    if (chains[c].base) {
        size_t hook = netlink_nest(b, NFTA_CHAIN_HOOK);

        netlink_put_be32(b, NFTA_HOOK_HOOKNUM, chains[c].hook);
        netlink_put_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)chains[c].priority);
        netlink_unnest(b, hook);
        netlink_put_be32(b, NFTA_CHAIN_POLICY, chains[c].policy);
        netlink_put_text(b, NFTA_CHAIN_TYPE, "filter");
    }
    netlink_end(b);
}

static void put_set(struct netlink_batch *b, enum rule_set s)
{
    begin(b, NFT_MSG_NEWSET, NLM_F_CREATE);
    netlink_put_text(b, NFTA_SET_TABLE, table_name);
    netlink_put_text(b, NFTA_SET_NAME, sets[s].name);
    netlink_put_be32(b, NFTA_SET_FLAGS, sets[s].interval ? NFT_SET_INTERVAL : 0);
    netlink_put_be32(b, NFTA_SET_KEY_TYPE, sets[s].type);
    netlink_put_be32(b, NFTA_SET_KEY_LEN, sets[s].key_bytes);
    netlink_put_be32(b, NFTA_SET_ID, s);
    netlink_end(b);
}

static void look_up(struct netlink_batch *b, enum rule_set s)
{
    nft_lookup(b, sets[s].name, s);
}

static void match_byte(struct netlink_batch *b, uint32_t meta_key, uint8_t value)
{
    nft_load_meta(b, meta_key);
    nft_compare(b, &value, sizeof value);
}

static void load_destination(struct netlink_batch *b, uint8_t family)
{
    bool v4 = family == NFPROTO_IPV4;

    nft_load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, v4 ? IPV4_DESTINATION : IPV6_DESTINATION,
                     v4 ? 4 : 16);
}

static void match_range(struct netlink_batch *b, uint8_t family, const uint8_t *base,
                        unsigned prefix)
{
    unsigned len = family == NFPROTO_IPV4 ? 4 : 16;
    uint8_t bits[16] = {0};

    load_destination(b, family);
    for (unsigned i = 0; i < prefix; i++)
        bits[i / 8] |= (uint8_t)(0x80 >> i % 8);
    if (prefix < len * 8)
        nft_mask(b, bits, len);
    nft_compare(b, base, len);
}

static void match_destination(struct netlink_batch *b, const struct rule *r,
                              const struct policy_reach *reach)
{
    static const uint8_t loopback4[4] = {127}, loopback6[16] = {[15] = 1};
    static const uint8_t multicast4[4] = {224}, multicast6[16] = {0xFF};
    static const uint8_t broadcast[4] = {255, 255, 255, 255};
    bool v4 = r->family == NFPROTO_IPV4;
    const struct address_range *pool = v4 ? &reach->pool.v4 : &reach->pool.v6;

    switch (r->to) {
    case TO_ANY:
        break;
    case TO_LOOPBACK:
        match_range(b, r->family, v4 ? loopback4 : loopback6, v4 ? 8 : 128);
        break;
    case TO_MULTICAST:
        match_range(b, r->family, v4 ? multicast4 : multicast6, v4 ? 4 : 8);
        break;
    case TO_BROADCAST:
        match_range(b, r->family, broadcast, 32);
        break;
    case TO_POOL:
        match_range(b, r->family, pool->base.bytes, pool->prefix);
        break;
    case TO_ALLOWED:
        load_destination(b, r->family);
        look_up(b, v4 ? SET_ALLOW4 : SET_ALLOW6);
        break;
    }
}

/* After the protocol was matched, which says what the header is. */
static void match_what(struct netlink_batch *b, const struct rule *r)
{
    const uint8_t icmp = r->protocol == IPPROTO_ICMP ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH;
    const uint8_t reset = TCP_RST;

    switch (r->what) {
    case WHAT_ANY:
        break;
    case WHAT_RESET:
        nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1);
        nft_mask(b, &reset, 1);
        nft_compare(b, &reset, 1);
        break;
    case WHAT_ICMP_ERROR:
        nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, ICMP_TYPE, 1);
        nft_compare(b, &icmp, 1);
        break;
    case WHAT_PORTS:
    case WHAT_NAMES:
        nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, DESTINATION_PORT, 2);
        look_up(b, r->what == WHAT_PORTS ? SET_PORTS : SET_NAMES);
        break;
    }
}

static void put_action(struct netlink_batch *b, const struct rule *r)
{
    switch (r->then) {
    case THEN_ACCEPT:
        nft_verdict(b, NF_ACCEPT, NULL);
        break;
    case THEN_REFUSE:
        nft_verdict(b, (uint32_t)NFT_GOTO, chains[CHAIN_REFUSE].name);
        break;
    case THEN_LOG:
        nft_log(b, EGRESS_LOG_GROUP, LOG_BYTES);
        break;
    case THEN_RESET:
        nft_reject(b, NFT_REJECT_TCP_RST, 0);
        break;
    case THEN_REJECT:
        nft_reject(b, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
        break;
    case THEN_TPROXY: /* if nobody listens it has no effect, and the packet is refused */
        nft_tproxy(b, r->family, EGRESS_PORT);
        nft_verdict(b, NF_ACCEPT, NULL);
        break;
    }
}

static void put_rule(struct netlink_batch *b, const struct rule *r,
                     const struct policy_reach *reach)
{
    begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    netlink_put_text(b, NFTA_RULE_TABLE, table_name);
    netlink_put_text(b, NFTA_RULE_CHAIN, chains[r->chain].name);
    size_t list = netlink_nest(b, NFTA_RULE_EXPRESSIONS);
    if (r->family != NFPROTO_UNSPEC)
        match_byte(b, NFT_META_NFPROTO, r->family);
    match_destination(b, r, reach);
    if (r->protocol != 0)
        match_byte(b, NFT_META_L4PROTO, r->protocol);
    match_what(b, r);
    put_action(b, r);
    netlink_unnest(b, list);
    netlink_end(b);
}

/* A message for elements of a set, and how many fit in one: the list is an attribute, of 64 KiB at
 * most. */
enum { ELEMENTS_PER_MESSAGE = 512 };

struct elements {
    struct netlink_batch *b;
    enum rule_set set;
    size_t list, n;
};

static void elements_close(struct elements *e)
{
    if (e->n == 0)
        return;
    netlink_unnest(e->b, e->list);
    netlink_end(e->b);
    e->n = 0;
}

static void begin_elements(struct netlink_batch *b, uint16_t type, uint16_t flags, enum rule_set s)
{
    begin(b, type, flags);
    netlink_put_text(b, NFTA_SET_ELEM_LIST_TABLE, table_name);
    netlink_put_text(b, NFTA_SET_ELEM_LIST_SET, sets[s].name);
}

static void put_element(struct elements *e, const void *key, uint32_t flags)
{
    if (e->n == ELEMENTS_PER_MESSAGE)
        elements_close(e);
    if (e->n++ == 0) {
        begin_elements(e->b, NFT_MSG_NEWSETELEM, NLM_F_CREATE, e->set);
        e->list = netlink_nest(e->b, NFTA_SET_ELEM_LIST_ELEMENTS);
    }
    size_t element = netlink_nest(e->b, NFTA_LIST_ELEM);
    if (flags != 0)
        netlink_put_be32(e->b, NFTA_SET_ELEM_FLAGS, flags);
    nft_value(e->b, NFTA_SET_ELEM_KEY, key, sets[e->set].key_bytes);
    netlink_unnest(e->b, element);
}

/* The address after @a; false if it is the last one. */
static bool next_address(const uint8_t *a, size_t len, uint8_t *ret)
{
    memcpy(ret, a, len);
    while (len-- > 0)
        if (++ret[len] != 0)
            return true;
    return false;
}

/* An interval is two elements: its start, and what follows its end. One that ends at the last
 * address has no end. */
static void put_intervals(struct netlink_batch *b, enum rule_set s, const struct policy_interval *x,
                          size_t n)
{
    struct elements e = {.b = b, .set = s};
    uint8_t after[16];

    for (size_t i = 0; i < n; i++) {
        put_element(&e, x[i].first, 0);
        if (next_address(x[i].last, sets[s].key_bytes, after))
            put_element(&e, after, NFT_SET_ELEM_INTERVAL_END);
    }
    elements_close(&e);
}

static void put_elements(struct netlink_batch *b, const struct policy_reach *reach)
{
    struct elements ports = {.b = b, .set = SET_PORTS}, names = {.b = b, .set = SET_NAMES};
    const uint16_t domain = htons(53);

    put_intervals(b, SET_ALLOW4, reach->v4, reach->n_v4);
    put_intervals(b, SET_ALLOW6, reach->v6, reach->n_v6);
    for (size_t i = 0; i < reach->n_ports; i++) {
        uint16_t port = htons(reach->ports[i]);

        put_element(&ports, &port, 0);
    }
    elements_close(&ports);
    if (reach->names)
        put_element(&names, &domain, 0);
    elements_close(&names);
}

static void put_end(struct netlink_batch *b)
{
    ask_acknowledgement(b);
    put_bracket(b, NFNL_MSG_BATCH_END);
}

void ruleset_put(struct netlink_batch *b, const struct policy_reach *reach)
{
    put_bracket(b, NFNL_MSG_BATCH_BEGIN);
    begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
    netlink_put_text(b, NFTA_TABLE_NAME, table_name);
    netlink_end(b);
    for (enum rule_chain c = 0; c < CHAIN__MAX; c++)
        put_chain(b, c);
    for (enum rule_set s = SET_NONE + 1; s < SET__MAX; s++)
        put_set(b, s);
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        put_rule(b, &rules[i], reach);
    put_elements(b, reach);
    put_end(b);
}

void ruleset_put_sets(struct netlink_batch *b, const struct policy_reach *reach)
{
    put_bracket(b, NFNL_MSG_BATCH_BEGIN);
    for (enum rule_set s = SET_NONE + 1; s < SET__MAX; s++) {
        begin_elements(b, NFT_MSG_DELSETELEM, 0, s); /* without a list: all of them */
        netlink_end(b);
    }
    put_elements(b, reach);
    put_end(b);
}

uint32_t ruleset_acknowledged(const struct netlink_batch *b)
{
    return b->sequence - 1;
}

const char *ruleset_module(uint32_t sequence)
{
    if (sequence < FIRST_RULE || sequence >= FIRST_ELEMENT)
        return "nf_tables";
    switch (rules[sequence - FIRST_RULE].then) {
    case THEN_LOG:
        return "nft_log nfnetlink_log";
    case THEN_RESET:
    case THEN_REJECT:
        return "nft_reject nft_reject_inet";
    case THEN_TPROXY:
        return "nft_tproxy";
    case THEN_ACCEPT:
    case THEN_REFUSE:
        break;
    }
    return "nf_tables";
}

size_t ruleset_size(const struct policy_reach *reach)
{
    /* A rule takes 600 bytes at most, an address of an interval 36, a port 20, the start of a
     * message of elements 64. */
    size_t n = 2 * (reach->n_v4 + reach->n_v6) + reach->n_ports + 1;

    return 4096 + ARRAY_SIZE(rules) * 600 + n * 36 + (n / ELEMENTS_PER_MESSAGE + SET__MAX) * 64;
}

static void put_route(struct netlink_batch *b, uint8_t family, const uint8_t *any,
                      const uint8_t *source, size_t len, int lo_index)
{
    const struct rtmsg head = {
        .rtm_family = family,
        .rtm_table = RT_TABLE_LOCAL,
        .rtm_protocol = RTPROT_BOOT,
        .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
        .rtm_type = RTN_LOCAL,
    };

    netlink_begin(b, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &head,
                  sizeof head);
    netlink_put(b, RTA_DST, any, len);
    netlink_put(b, RTA_PREFSRC, source, len);
    netlink_put_u32(b, RTA_OIF, (uint32_t)lo_index);
    netlink_end(b);
}

static void put_address(struct netlink_batch *b, const struct address *a, int lo_index)
{
    const size_t len = a->family == ADDRESS_V4 ? 4 : 16;
    const struct ifaddrmsg head = {
        .ifa_family = a->family == ADDRESS_V4 ? AF_INET : AF_INET6,
        .ifa_prefixlen = a->family == ADDRESS_V4 ? 32 : 128,
        .ifa_flags = a->family == ADDRESS_V4 ? 0 : IFA_F_NODAD,
        .ifa_scope = RT_SCOPE_UNIVERSE,
        .ifa_index = (uint32_t)lo_index,
    };
    /* Never chosen as a source, nor by tproxy as the listener's address, which is ::1 (the kernel's
     * nf_tproxy_laddr6). Of IPv4 the first address is, and that is 127.0.0.1. */
    static const struct ifa_cacheinfo deprecated = {.ifa_prefered = 0, .ifa_valid = UINT32_MAX};

    netlink_begin(b, RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &head,
                  sizeof head);
    netlink_put(b, IFA_LOCAL, a->bytes, len);
    netlink_put(b, IFA_ADDRESS, a->bytes, len);
    if (a->family == ADDRESS_V6)
        netlink_put(b, IFA_CACHEINFO, &deprecated, sizeof deprecated);
    netlink_end(b);
}

void addresses_put(struct netlink_batch *b, int lo_index)
{
    static const struct address dummy4 = {ADDRESS_V4, {192, 0, 0, 8}},
                                dummy6 = {ADDRESS_V6, {1, [7] = 1, [15] = 1}};

    put_address(b, &dummy4, lo_index);
    put_address(b, &dummy6, lo_index);
}

void routes_put(struct netlink_batch *b, int lo_index)
{
    static const uint8_t any[16] = {0}, loopback4[4] = {127, 0, 0, 1}, loopback6[16] = {[15] = 1};

    put_route(b, AF_INET, any, loopback4, 4, lo_index);
    put_route(b, AF_INET6, any, loopback6, 16, lo_index);
}
