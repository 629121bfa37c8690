/* SPDX-License-Identifier: Apache-2.0 */
/* Refused attempts: counted, kept from flooding, and told to the keeper. */
#include "egress/denials.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "egress/egress.h"
#include "wire/netlink.h"
#include "wire/nflog.h"
#include "base/guards.h"

#define SECOND_US UINT64_C(1000000)

/* A flood of refused packets costs a few percent of a processor and no more: what is not read in
 * time the kernel drops and counts. */
#define LOG_PACE_US UINT64_C(10000)
enum { LOG_BATCH = 256, LOG_DRAIN_MAX = 16384, LOG_BYTES = 8192 };

enum { DENIAL_BYTES = 4 * DENIAL_TEXT_MAX + 256, RULE_BYTES = 512 };

/* ---- attempts that are known ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

static uint64_t hash_of(const struct denial *x)
{
    uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), &x->protocol, sizeof x->protocol);

    hash = hash_bytes(hash, &x->port, sizeof x->port);
    hash = hash_bytes(hash, x->name, strlen(x->name) + 1);
    return hash_bytes(hash, x->address, strlen(x->address));
}

/* By what was tried itself: the hash alone could be made to match by a program that hides one
 * attempt behind another. */
static struct denial_known *find(struct denials *d, const struct denial *x, uint64_t hash)
{
    for (size_t i = 0; i < DENIALS_KNOWN; i++) {
        struct denial_known *k = &d->known[i];

        if (k->texts && k->hash == hash && k->what.protocol == x->protocol &&
            k->what.port == x->port && strcmp(k->what.name, x->name) == 0 &&
            strcmp(k->what.address, x->address) == 0)
            return k;
    }
    return NULL;
}

static void forget(struct denial_known *k)
{
    free(k->texts);
    *k = (struct denial_known){.texts = NULL};
}

static const char *copy_text(char **p, const char *s)
{
    const char *start = *p;
    size_t n = strnlen(s, DENIAL_TEXT_MAX - 1);

    memcpy(*p, s, n);
    (*p)[n] = '\0';
    *p += n + 1;
    return start;
}

/* Without memory it is not remembered, and told more often. */
static void remember(struct denial_known *k, const struct denial *x, uint64_t hash, uint64_t now)
{
    char *texts = malloc(denial_size(x)), *p = texts;
    struct denial what = *x;

    if (texts) {
        what.name = copy_text(&p, x->name);
        what.address = copy_text(&p, x->address);
        what.rule = copy_text(&p, x->rule);
        what.reason = copy_text(&p, x->reason);
    }
    forget(k); /* only now: @x may be what it holds */
    if (texts)
        *k = (struct denial_known){
            .what = what, .texts = texts, .hash = hash, .at_us = now, .last_us = clock_epoch_us()};
}

/* ---- telling ---- */

static void send_denial(struct denials *d, const struct denial *x, uint64_t repeated,
                        uint64_t at_us)
{
    uint8_t buf[DENIAL_BYTES];
    struct writer w = writer_over(buf, sizeof buf);
    struct denial told = *x;

    told.repeated = repeated;
    told.at_us = at_us;
    told.dropped = d->dropped;
    denial_encode(&w, &told);
    d->dropped = 0;
    keeper_link_tell(d->egress, MSG_DENIED, 0, buf, writer_len(&w));
    forget(&d->kept); /* it has been counted; @x may have been it */
}

static void send_repeated(struct denials *d, struct denial_known *k, uint64_t now)
{
    uint64_t n = k->repeated;

    k->repeated = 0;
    k->at_us = now;
    send_denial(d, &k->what, n - 1, k->last_us); /* the line itself is one of them */
}

static bool may_tell(struct denials *d, uint64_t now)
{
    if (now - d->second_us >= SECOND_US) {
        d->second_us = now;
        d->told_this_second = 0;
    }
    return d->told_this_second < DENIALS_PER_SECOND;
}

static void flush_later(struct denials *d)
{
    if (!d->flush.set)
        loop_at(&d->egress->loop, &d->flush, clock_after_us(DENIALS_SAME_US));
}

static void count_lost(struct denials *d)
{
    uint64_t lost = d->log_gaps > d->log_drops ? d->log_gaps : d->log_drops;

    d->dropped += lost - d->log_lost;
    d->log_lost = lost;
}

/* No packet follows the last ones of a flood, whose number would show the gap: the socket knows how
 * many it had no room for. */
static void count_drops(struct denials *d)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof info;

    if (d->log_source.fd < 0 ||
        getsockopt(d->log_source.fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0 || len < sizeof info)
        return;
    d->log_drops += (uint32_t)(info[SK_MEMINFO_DROPS] - (uint32_t)d->log_drops);
    count_lost(d);
}

static void flush(struct denials *d, bool all)
{
    uint64_t now = clock_now_us();
    bool left = false;

    count_drops(d);
    for (size_t i = 0; i < DENIALS_KNOWN; i++) {
        struct denial_known *k = &d->known[i];

        if (k->repeated > 0 && (all || now - k->at_us >= DENIALS_SAME_US))
            send_repeated(d, k, now);
        left |= k->repeated > 0;
    }
    if (d->kept.texts && (all || may_tell(d, now))) {
        d->dropped--;
        d->told_this_second++;
        send_denial(d, &d->kept.what, 0, d->kept.last_us);
    }
    if (left || d->kept.texts)
        flush_later(d);
}

static int flush_due(struct loop *l, struct loop_timer *t)
{
    (void)l;
    flush(t->owner, false);
    return 0;
}

/* Whether an attempt is only counted: it needs no rule and no reason then. */
static bool count_only(struct denials *d, const struct denial *x, uint64_t hash, uint64_t now)
{
    struct denial_known *k = find(d, x, hash);
    bool may = may_tell(d, now);

    if (k && (!may || now - k->at_us < DENIALS_SAME_US)) {
        k->repeated++;
        k->last_us = clock_epoch_us();
    } else if (!may && d->kept.texts) {
        d->dropped++;
    } else {
        return false;
    }
    flush_later(d);
    return true;
}

/* A place for another attempt: its own, a free one, or the one that was told longest ago. */
static struct denial_known *place_for(struct denials *d, const struct denial *x, uint64_t hash)
{
    struct denial_known *k = find(d, x, hash), *oldest = &d->known[0];

    if (k)
        return k;
    for (size_t i = 0; i < DENIALS_KNOWN; i++) {
        if (!d->known[i].texts)
            return &d->known[i];
        if (d->known[i].at_us < oldest->at_us)
            oldest = &d->known[i];
    }
    return oldest;
}

static void tell(struct denials *d, const struct denial *x, uint64_t hash, uint64_t now)
{
    struct denial_known *k = place_for(d, x, hash);
    uint64_t repeated = 0;

    if (!may_tell(d, now)) {
        d->dropped++;
        remember(&d->kept, x, hash, now);
        flush_later(d);
        return;
    }
    if (k->repeated > 0 && find(d, x, hash) != k)
        send_repeated(d, k, now);
    else
        repeated = k->repeated;
    remember(k, x, hash, now);
    d->told_this_second++;
    send_denial(d, x, repeated, clock_epoch_us());
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

void denials_tell(struct denials *d, const struct denial *x)
{
    uint64_t now = clock_now_us(), hash;
    struct denial whole = *x;

    whole.name = or_empty(x->name);
    whole.address = or_empty(x->address);
    whole.rule = or_empty(x->rule);
    whole.reason = or_empty(x->reason);
    hash = hash_of(&whole);
    if (!count_only(d, &whole, hash, now))
        tell(d, &whole, hash, now);
}

void denials_decided(struct denials *d, enum denial_protocol protocol, const char *name,
                     const struct address *address, uint16_t port,
                     const struct policy_decision *decision, const char *reason, uint64_t bytes)
{
    char text[ADDRESS_TEXT_BYTES] = "", rule[RULE_BYTES];

    if (address)
        address_format(address, text);
    policy_rule_text(decision, rule, sizeof rule);
    denials_tell(d, &(struct denial){.protocol = protocol,
                                     .name = name,
                                     .address = text,
                                     .port = port,
                                     .rule = rule,
                                     .reason = reason ? reason : decision->explanation,
                                     .bytes = bytes});
}

/* ---- what the kernel logs ---- */

static enum denial_protocol protocol_of(const struct nflog_packet *p)
{
    return p->protocol == IPPROTO_TCP   ? DENIAL_TCP
           : p->protocol == IPPROTO_UDP ? DENIAL_UDP
                                        : DENIAL_OTHER;
}

/* Why the kernel refused what the policy does not, looked at by its address alone. */
static const char *other_reason(const struct denial *x, bool synthetic)
{
    if (x->protocol == DENIAL_OTHER)
        return "only TCP and UDP leave a sandbox";
    if (x->protocol == DENIAL_UDP && synthetic)
        return "a name is reached by TCP, and UDP goes to listed addresses only";
    return "the policy allows it now, and did not when it was tried";
}

static void tell_packet(struct denials *d, const struct nflog_packet *p)
{
    struct egress *e = d->egress;
    struct policy_destination to = {.address = {.family = p->family == 4 ? ADDRESS_V4 : ADDRESS_V6},
                                    .port = p->port};
    char address[ADDRESS_TEXT_BYTES], rule[RULE_BYTES] = "no rule";
    struct policy_decision decision;
    struct denial x = {.protocol = protocol_of(p), .name = "", .port = p->port};
    uint64_t now = clock_now_us();

    memcpy(to.address.bytes, p->address, p->family == 4 ? 4 : 16);
    address_format(&to.address, address);
    x.address = address;
    const struct name *name = names_by_address(&e->names, &to.address);
    if (name) {
        to.by_name = true;
        to.name = name->text;
        x.name = name->text.text;
    }
    uint64_t hash = hash_of(&x);
    if (count_only(d, &x, hash, now))
        return;
    policy_decide(&e->policy, &to, &decision);
    if (!decision.allowed)
        policy_rule_text(&decision, rule, sizeof rule);
    x.rule = rule;
    x.reason = decision.allowed ? other_reason(&x, name != NULL) : decision.explanation;
    if (!name && names_in_pool(&e->names, &to.address))
        x.reason = "no name that was asked for has this address";
    tell(d, &x, hash, now);
}

/* Packets that were numbered and never came here. */
static void count_gap(struct denials *d, const struct nflog_packet *p)
{
    uint32_t gap = p->sequence - d->log_sequence - 1;

    if (!p->sequenced || gap > INT32_MAX) /* the latter: not in order; it was counted already */
        return;
    d->log_gaps += gap;
    d->log_sequence = p->sequence;
    count_lost(d);
}

static void take_messages(struct denials *d, const uint8_t *buf, size_t len)
{
    const uint8_t *p = buf;
    struct netlink_message m;
    struct nflog_packet packet;
    bool bad = false;

    while (netlink_next(&p, buf + len, &m, &bad)) {
        if (m.type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
            nflog_parse(m.payload, m.len, &packet) < 0)
            continue;
        count_gap(d, &packet);
        tell_packet(d, &packet);
    }
}

/* Reads at most @max datagrams of what there is; how many it were. */
static unsigned read_log(struct denials *d, unsigned max)
{
    uint8_t buf[LOG_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));

    for (unsigned n = 0; n < max; n++) {
        struct sockaddr_nl from = {0};
        socklen_t from_len = sizeof from;
        ssize_t len = recvfrom(d->log_source.fd, buf, sizeof buf, MSG_DONTWAIT | MSG_TRUNC,
                               (struct sockaddr *)&from, &from_len);

        if (len < 0 && errno != EINTR &&
            errno != ENOBUFS) /* the latter: it was full (netlink(7)) */
            return n;
        if (len > 0 && (size_t)len <= sizeof buf && from.nl_pid == 0) /* from the kernel */
            take_messages(d, buf, (size_t)len);
    }
    return max;
}

static int log_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct denials *d = s->owner;
    uint64_t now = clock_now_us();

    (void)events;
    if (now - d->log_since_us >= LOG_PACE_US) {
        d->log_since_us = now;
        d->log_read = 0;
    }
    d->log_read += read_log(d, LOG_BATCH - d->log_read);
    if (d->log_read < LOG_BATCH)
        return 0;
    loop_at(l, &d->log_again, d->log_since_us + LOG_PACE_US);
    return loop_change(l, s, 0);
}

static int log_again_due(struct loop *l, struct loop_timer *t)
{
    struct denials *d = t->owner;

    return loop_change(l, &d->log_source, EPOLLIN);
}

/* ---- life ---- */

void denials_init(struct denials *d, struct egress *e)
{
    *d = (struct denials){
        .egress = e,
        .log_source = {.name = "log", .fd = -EBADF, .owner = d, .ready = log_ready},
        .flush = {.name = "denials", .owner = d, .due = flush_due},
        .log_again = {.name = "log", .owner = d, .due = log_again_due},
        .log_sequence = UINT32_MAX, /* the kernel counts from 0 */
    };
}

void denials_end(struct denials *d)
{
    loop_forget(&d->egress->loop, &d->log_source);
    loop_at(&d->egress->loop, &d->flush, CLOCK_NEVER);
    loop_at(&d->egress->loop, &d->log_again, CLOCK_NEVER);
    for (size_t i = 0; i < DENIALS_KNOWN; i++)
        forget(&d->known[i]);
    forget(&d->kept);
}

int denials_listen(struct denials *d, int fd)
{
    return loop_watch(&d->egress->loop, &d->log_source, fd, EPOLLIN);
}

void denials_drain(struct denials *d)
{
    if (d->log_source.fd >= 0)
        (void)read_log(d, LOG_DRAIN_MAX);
    flush(d, true);
}
