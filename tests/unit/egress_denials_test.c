/* SPDX-License-Identifier: Apache-2.0 */
/* Refused attempts: what is told, what is counted, and that the sum of both is what was tried. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "wire/netlink.h"
#include "base/guards.h"

enum { TOLD_MAX = 2048, PATIENCE_US = 20000000 };

/* What the keeper was told; texts are copied. */
struct told {
    struct denial x;
    char name[300], address[64], rule[300], reason[600];
};

static struct told told[TOLD_MAX];
static size_t n_told;

/* In the place of keeper_link.c. */
void keeper_link_tell(struct egress *e, uint16_t type, uint32_t id, const void *payload, size_t len)
{
    struct told *t = &told[n_told++];

    (void)e;
    (void)id;
    assert_true(n_told <= TOLD_MAX);
    assert_int_equal(type, MSG_DENIED);
    assert_int_equal(denial_decode(reader_over(payload, len), &t->x), 0);
    (void)snprintf(t->name, sizeof t->name, "%s", t->x.name);
    (void)snprintf(t->address, sizeof t->address, "%s", t->x.address);
    (void)snprintf(t->rule, sizeof t->rule, "%s", t->x.rule);
    (void)snprintf(t->reason, sizeof t->reason, "%s", t->x.reason);
}

/* All attempts that the lines stand for. */
static uint64_t attempts(void)
{
    uint64_t n = 0;

    for (size_t i = 0; i < n_told; i++)
        n += 1 + told[i].x.repeated + told[i].x.dropped;
    return n;
}

struct scene {
    struct egress e;
    int log; /* the kernel's end of the log */
    uint32_t sequence;
};

static int start(void **state)
{
    static const char *const hosts[] = {"example.org", "db.example.org:5432"};
    static const char *const ranges[] = {"203.0.113.0/24"};
    const struct policy_input in = {.block_network = true,
                                    .allow_egress_to = {.items = hosts, .n = ARRAY_SIZE(hosts)},
                                    .allow_egress_to_cidrs = {.items = ranges, .n = 1}};
    struct scene *s = calloc(1, sizeof *s);
    struct problems problems = {0};
    struct error err = ERROR_INIT;
    int ends[2];

    n_told = 0;
    *state = s;
    if (!s || loop_init(&s->e.loop) < 0 || policy_build(&in, &s->e.policy, &problems) < 0 ||
        policy_pool_choose(&s->e.policy, &s->e.pool, &err) < 0 ||
        names_init(&s->e.names, &s->e.pool) < 0 ||
        socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -1;
    problems_done(&problems);
    denials_init(&s->e.denials, &s->e);
    s->log = ends[1];
    return denials_listen(&s->e.denials, ends[0]);
}

static int end(void **state)
{
    struct scene *s = *state;

    (void)close(s->e.denials.log_source.fd);
    denials_end(&s->e.denials);
    (void)close(s->log);
    names_done(&s->e.names);
    policy_done(&s->e.policy);
    loop_done(&s->e.loop);
    free(s);
    return 0;
}

static struct address address_of(const char *text)
{
    struct address a;

    assert_int_equal(address_parse(text, strlen(text), &a), ADDRESS_GOOD);
    return a;
}

/* The first bytes of a packet as the kernel copies them. */
static size_t put_packet(uint8_t *p, uint8_t protocol, const struct address *to, uint16_t port)
{
    size_t head = to->family == ADDRESS_V4 ? 20 : 40;

    memset(p, 0, head + 8);
    if (to->family == ADDRESS_V4) {
        p[0] = 0x45;
        p[9] = protocol;
        memcpy(p + 16, to->bytes, 4);
    } else {
        p[0] = 0x60;
        p[6] = protocol;
        memcpy(p + 24, to->bytes, 16);
    }
    p[head + 2] = (uint8_t)(port >> 8);
    p[head + 3] = (uint8_t)port;
    return head + 8;
}

static int try_log(struct scene *s, uint8_t protocol, const char *to, uint16_t port)
{
    uint8_t buf[512] __attribute__((aligned(4))), packet[64];
    const struct nfgenmsg head = {.nfgen_family = AF_INET};
    struct address a = address_of(to);
    struct netlink_batch b;

    netlink_batch_init(&b, buf, sizeof buf);
    netlink_begin(&b, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET, 0, &head, sizeof head);
    netlink_put(&b, NFULA_PAYLOAD, packet, put_packet(packet, protocol, &a, port));
    netlink_put_be32(&b, NFULA_SEQ, s->sequence++);
    netlink_end(&b);
    assert_false(b.bad);
    return send(s->log, buf, b.len, 0) == (ssize_t)b.len ? 0 : -1;
}

static void log_packet(struct scene *s, uint8_t protocol, const char *to, uint16_t port)
{
    assert_int_equal(try_log(s, protocol, to, port), 0);
}

static void run_until_told(struct scene *s, size_t n)
{
    uint64_t until = clock_after_us(PATIENCE_US);

    while (n_told < n && clock_now_us() < until)
        assert_int_equal(loop_turn(&s->e.loop, until), 0);
    assert_true(n_told >= n);
}

static void tell_dns(struct scene *s, const char *name)
{
    denials_tell(&s->e.denials, &(struct denial){.protocol = DENIAL_DNS,
                                                 .name = name,
                                                 .rule = "no rule",
                                                 .reason = "it is not listed"});
}

static void an_attempt_is_told_at_once(void **state)
{
    struct scene *s = *state;
    uint64_t before = clock_epoch_us();

    denials_tell(&s->e.denials, &(struct denial){.protocol = DENIAL_TLS,
                                                 .name = "a.example",
                                                 .address = "198.18.0.9",
                                                 .port = 443,
                                                 .rule = "no rule",
                                                 .reason = "because",
                                                 .bytes = 517,
                                                 .at_us = 5,
                                                 .repeated = 6,
                                                 .dropped = 7});
    assert_int_equal(n_told, 1);
    assert_int_equal(told[0].x.protocol, DENIAL_TLS);
    assert_string_equal(told[0].name, "a.example");
    assert_string_equal(told[0].address, "198.18.0.9");
    assert_int_equal(told[0].x.port, 443);
    assert_string_equal(told[0].reason, "because");
    assert_int_equal(told[0].x.bytes, 517);
    assert_true(told[0].x.at_us >= before && told[0].x.at_us <= clock_epoch_us());
    assert_int_equal(told[0].x.repeated, 0);
    assert_int_equal(told[0].x.dropped, 0);
}

static void a_decision_is_told_with_its_rule(void **state)
{
    struct scene *s = *state;
    struct policy_destination to = {.address = address_of("192.0.2.1"), .port = 22};
    struct policy_decision decision;

    policy_decide(&s->e.policy, &to, &decision);
    denials_decided(&s->e.denials, DENIAL_TCP, NULL, &to.address, 22, &decision, NULL, 3);
    denials_decided(&s->e.denials, DENIAL_HTTP, "n.example", NULL, 80, &decision, "so it is", 0);
    assert_int_equal(n_told, 2);
    assert_string_equal(told[0].address, "192.0.2.1");
    assert_string_equal(told[0].rule, "no rule");
    assert_string_equal(told[0].reason, decision.explanation);
    assert_string_equal(told[1].name, "n.example");
    assert_string_equal(told[1].address, "");
    assert_string_equal(told[1].reason, "so it is");
}

static void the_same_again_is_counted_and_the_count_is_not_lost(void **state)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 1000; i++)
        tell_dns(s, "again.example");
    assert_int_equal(n_told, 1);
    run_until_told(s, 2);
    assert_int_equal(n_told, 2);
    assert_string_equal(told[1].name, "again.example");
    assert_string_equal(told[1].reason, "it is not listed");
    assert_int_equal(told[1].x.repeated, 998);
    assert_int_equal(attempts(), 1000);
    assert_true(told[1].x.at_us >= told[0].x.at_us);
}

static void draining_tells_what_was_counted(void **state)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 10; i++) {
        tell_dns(s, "a.example");
        tell_dns(s, "b.example");
    }
    denials_drain(&s->e.denials);
    assert_int_equal(n_told, 4);
    assert_int_equal(attempts(), 20);
    denials_drain(&s->e.denials); /* nothing is left */
    assert_int_equal(n_told, 4);
}

static void what_differs_in_one_thing_is_another_attempt(void **state)
{
    struct scene *s = *state;
    struct denial x = {.protocol = DENIAL_TCP,
                       .name = "a.example",
                       .address = "192.0.2.1",
                       .port = 1,
                       .rule = "r",
                       .reason = "s"};

    denials_tell(&s->e.denials, &x);
    x.port = 2;
    denials_tell(&s->e.denials, &x);
    x.address = "192.0.2.2";
    denials_tell(&s->e.denials, &x);
    x.name = "b.example";
    denials_tell(&s->e.denials, &x);
    x.protocol = DENIAL_UDP;
    denials_tell(&s->e.denials, &x);
    assert_int_equal(n_told, 5);
    x.reason = "t"; /* the same attempt, refused for another reason */
    denials_tell(&s->e.denials, &x);
    assert_int_equal(n_told, 5);
}

static void many_different_ones_are_cut_and_counted(void **state)
{
    struct scene *s = *state;
    char name[32];

    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "n%u.example", i);
        tell_dns(s, name);
    }
    assert_true(n_told >= DENIALS_PER_SECOND && n_told < 1000);
    denials_drain(&s->e.denials);
    assert_int_equal(attempts(), 5000);
    assert_string_equal(told[n_told - 1].reason, "it is not listed"); /* a real one carries it */
}

static void what_was_cut_is_told_a_second_later(void **state)
{
    struct scene *s = *state;
    char name[32];

    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "n%u.example", i);
        tell_dns(s, name);
    }
    run_until_told(s, n_told + 1);
    assert_int_equal(attempts(), 300);
}

static void one_that_makes_room_for_another_takes_its_count_along(void **state)
{
    struct scene *s = *state;
    char name[32];

    tell_dns(s, "first.example");
    tell_dns(s, "first.example");
    for (unsigned i = 0; i < DENIALS_KNOWN; i++) {
        (void)snprintf(name, sizeof name, "n%u.example", i);
        tell_dns(s, name);
    }
    assert_int_equal(attempts(), 2 + DENIALS_KNOWN);
    assert_string_equal(told[DENIALS_KNOWN].name, "first.example");
}

/* ---- the kernel's log ---- */

static void a_logged_packet_is_told(void **state)
{
    struct scene *s = *state;

    log_packet(s, IPPROTO_TCP, "192.0.2.1", 22);
    log_packet(s, IPPROTO_UDP, "2001:db8::1", 443);
    log_packet(s, IPPROTO_SCTP, "192.0.2.1", 9);
    run_until_told(s, 3);
    assert_int_equal(told[0].x.protocol, DENIAL_TCP);
    assert_string_equal(told[0].address, "192.0.2.1");
    assert_int_equal(told[0].x.port, 22);
    assert_string_equal(told[0].rule, "no rule");
    assert_string_equal(told[0].reason, "no entry of allow_egress_to_cidrs lists 192.0.2.1");
    assert_int_equal(told[1].x.protocol, DENIAL_UDP);
    assert_string_equal(told[1].address, "2001:db8::1");
    assert_int_equal(told[2].x.protocol, DENIAL_OTHER);
    assert_int_equal(attempts(), 3);
}

static void what_a_range_lists_is_refused_for_its_protocol(void **state)
{
    struct scene *s = *state;

    log_packet(s, IPPROTO_SCTP, "203.0.113.1", 9);
    run_until_told(s, 1);
    assert_string_equal(told[0].rule, "no rule");
    assert_string_equal(told[0].reason, "only TCP and UDP leave a sandbox");
}

static void a_synthetic_address_is_told_with_its_name(void **state)
{
    struct scene *s = *state;
    struct host_name text;
    char address[ADDRESS_TEXT_BYTES];
    int r = 0;

    assert_int_equal(host_name_read("db.example.org", 14, &text), 0);
    struct name *x = names_add(&s->e.names, &text, false, &r);
    assert_non_null(x);
    struct address a = names_address(&s->e.names, x, ADDRESS_V4);
    address_format(&a, address);
    log_packet(s, IPPROTO_TCP, address, 22);
    log_packet(s, IPPROTO_UDP, address, 5432);
    run_until_told(s, 2);
    assert_string_equal(told[0].name, "db.example.org");
    assert_string_equal(told[0].address, address);
    assert_non_null(strstr(told[0].reason, "for port 5432 only"));
    assert_string_equal(told[1].rule, "no rule");
    assert_non_null(strstr(told[1].reason, "reached by TCP"));
}

static void a_synthetic_address_of_nobody_says_so(void **state)
{
    struct scene *s = *state;
    struct address a = s->e.pool.v4.base;
    char address[ADDRESS_TEXT_BYTES];

    a.bytes[2] = 200;
    address_format(&a, address);
    log_packet(s, IPPROTO_TCP, address, 443);
    run_until_told(s, 1);
    assert_string_equal(told[0].name, "");
    assert_string_equal(told[0].reason, "no name that was asked for has this address");
}

static void gaps_in_the_numbers_are_counted(void **state)
{
    struct scene *s = *state;

    s->sequence = 4; /* the first four never came */
    log_packet(s, IPPROTO_TCP, "192.0.2.1", 1);
    s->sequence += 10;
    log_packet(s, IPPROTO_TCP, "192.0.2.1", 2);
    log_packet(s, IPPROTO_TCP, "192.0.2.1", 3);
    run_until_told(s, 3);
    assert_int_equal(told[0].x.dropped, 4);
    assert_int_equal(told[1].x.dropped, 10);
    assert_int_equal(told[2].x.dropped, 0);
}

/* With a log that drops as netlink's does, whose kernel's end is port 0: that field is 0 in an
 * address of IPv6 as well. */
static void the_last_of_a_flood_are_counted_though_no_gap_shows_them(void **state)
{
    enum { FLOOD = 3000 };
    struct scene *s = *state;
    struct denials *d = &s->e.denials;
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof at;
    const int room = 128 * 1024;
    int listening = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int old = d->log_source.fd, end = s->log;

    assert_int_equal(bind(listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    s->log = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s->log, (struct sockaddr *)&at, sizeof at), 0);
    loop_forget(&s->e.loop, &d->log_source);
    assert_int_equal(denials_listen(d, listening), 0);
    for (unsigned i = 0; i < FLOOD; i++)
        log_packet(s, IPPROTO_TCP, "192.0.2.1", (uint16_t)(1 + i % 200));
    denials_drain(d);
    assert_int_equal(attempts(), FLOOD);
    assert_true(d->log_drops > 0 && d->log_gaps < d->log_drops);

    loop_forget(&s->e.loop, &d->log_source);
    (void)close(s->log);
    (void)close(listening);
    s->log = end;
    assert_int_equal(denials_listen(d, old), 0);
}

static void damaged_messages_are_skipped(void **state)
{
    static const char noise[] = "this is no message of netlink at all";
    struct scene *s = *state;

    assert_int_equal(send(s->log, noise, sizeof noise, 0), sizeof noise);
    assert_int_equal(send(s->log, noise, 3, 0), 3);
    log_packet(s, IPPROTO_TCP, "192.0.2.1", 1);
    run_until_told(s, 1);
    assert_int_equal(attempts(), 1);
}

/* As fast as the socket takes them: none is lost from the sum, and the pace is kept. */
static void a_flood_is_read_at_a_bounded_pace(void **state)
{
    enum { FLOOD = 3000 };
    struct scene *s = *state;
    uint64_t from = clock_now_us(), until = from + PATIENCE_US;
    unsigned sent = 0;

    while (sent < FLOOD && clock_now_us() < until) {
        while (sent < FLOOD && try_log(s, IPPROTO_TCP, "192.0.2.1", (uint16_t)(1 + sent % 7)) == 0)
            sent++;
        if (sent < FLOOD)
            s->sequence--; /* that one was not sent */
        assert_int_equal(loop_turn(&s->e.loop, clock_after_us(1000)), 0);
    }
    assert_int_equal(sent, FLOOD);
    denials_drain(&s->e.denials);
    assert_int_equal(attempts(), FLOOD);
    assert_true(n_told < FLOOD / 10);
    assert_true(s->e.denials.log_read <= 256);
}

static void draining_reads_the_log_though_it_is_silent(void **state)
{
    struct scene *s = *state;

    assert_int_equal(loop_change(&s->e.loop, &s->e.denials.log_source, 0), 0);
    log_packet(s, IPPROTO_TCP, "192.0.2.1", 1);
    log_packet(s, IPPROTO_TCP, "192.0.2.1", 1);
    denials_drain(&s->e.denials);
    assert_int_equal(n_told, 2);
    assert_int_equal(attempts(), 2);
}

#define with_scene(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_scene(an_attempt_is_told_at_once),
        with_scene(a_decision_is_told_with_its_rule),
        with_scene(the_same_again_is_counted_and_the_count_is_not_lost),
        with_scene(draining_tells_what_was_counted),
        with_scene(what_differs_in_one_thing_is_another_attempt),
        with_scene(many_different_ones_are_cut_and_counted),
        with_scene(what_was_cut_is_told_a_second_later),
        with_scene(one_that_makes_room_for_another_takes_its_count_along),
        with_scene(a_logged_packet_is_told),
        with_scene(what_a_range_lists_is_refused_for_its_protocol),
        with_scene(a_synthetic_address_is_told_with_its_name),
        with_scene(a_synthetic_address_of_nobody_says_so),
        with_scene(gaps_in_the_numbers_are_counted),
        with_scene(the_last_of_a_flood_are_counted_though_no_gap_shows_them),
        with_scene(damaged_messages_are_skipped),
        with_scene(a_flood_is_read_at_a_bounded_pace),
        with_scene(draining_reads_the_log_though_it_is_silent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
