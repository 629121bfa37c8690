/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver inside: real names, look-ups and policy. Played here are the process `resolve`, the
 * kernel's routes, the raw socket that answers go out by, and the record of what was refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "egress/egress.h"
#include "wire/resolve.h"
#include "base/guards.h"

#define LIMIT_US UINT64_C(10000000) /* of a wait for something that has to happen */

struct fixture {
    struct egress e;
    int resolve_fd; /* the end of `resolve` */
    struct {
        char name[256], address[ADDRESS_TEXT_BYTES], reason[256];
        enum policy_rule_kind kind;
        bool allowed;
    } denial; /* the last */
    size_t n_denials;
    uint8_t injected[4096]; /* the last */
    size_t injected_len, n_injected;
    struct datagram_ends injected_ends;
    const char *own, *no_route; /* addresses as text, or NULL */
};

/* What the server stands on, each found by the part of the fixture that it is given */

#define FIXTURE_OF(member_ptr, member)                                                             \
    ((struct fixture *)(void *)((char *)(member_ptr)-offsetof(struct fixture, e.member)))

void denials_decided(struct denials *d, enum denial_protocol protocol, const char *name,
                     const struct address *address, uint16_t port,
                     const struct policy_decision *decision, const char *reason, uint64_t bytes)
{
    struct fixture *f = FIXTURE_OF(d, denials);

    assert_int_equal(protocol, DENIAL_DNS);
    assert_int_equal(port, 0);
    assert_int_equal(bytes, 0);
    (void)snprintf(f->denial.name, sizeof f->denial.name, "%s", name ? name : "");
    f->denial.address[0] = '\0';
    if (address)
        address_format(address, f->denial.address);
    (void)snprintf(f->denial.reason, sizeof f->denial.reason, "%.255s",
                   reason ? reason : decision->explanation);
    f->denial.kind = decision->kind;
    f->denial.allowed = decision->allowed;
    f->n_denials++;
}

void inject_datagrams(struct egress *e, const struct datagram_reply *replies, size_t n)
{
    struct fixture *f = (struct fixture *)(void *)((char *)e - offsetof(struct fixture, e));

    assert_int_equal(n, 1);
    assert_true(replies->len <= sizeof f->injected);
    memcpy(f->injected, replies->data, replies->len);
    f->injected_len = replies->len;
    f->injected_ends = replies->ends;
    f->n_injected++;
}

enum own_address_answer own_address_ask(struct own_address *o, const struct address *a)
{
    const struct fixture *f = FIXTURE_OF(o, own_address);
    char text[ADDRESS_TEXT_BYTES];

    address_format(a, text);
    if (f->own && strcmp(text, f->own) == 0)
        return ADDRESS_OWN;
    return f->no_route && strcmp(text, f->no_route) == 0 ? ADDRESS_NO_ROUTE : ADDRESS_ELSEWHERE;
}

/* The fixture */

static struct policy policy_of(const char *const *hosts, size_t n_hosts, const char *pin)
{
    const char *const pins[] = {pin};
    const struct policy_input in = {
        .block_network = hosts != NULL,
        .allow_egress_to = {.items = hosts, .n = n_hosts},
        .add_hosts = {.items = pins, .n = pin != NULL},
    };
    struct problems problems = {0};
    struct policy p;

    if (policy_build(&in, &p, &problems) < 0)
        fail_msg("the policy has problems");
    problems_done(&problems);
    return p;
}

static const struct policy_pool pool = {
    .v4 = {{ADDRESS_V4, {198, 18}}, 16},
    .v6 = {{ADDRESS_V6, {0xfd, 1, 2}}, 112},
};

static struct fixture *fixture_with(struct policy policy)
{
    struct fixture *f = calloc(1, sizeof *f);
    int fds[2];

    assert_non_null(f);
    f->e.policy = policy;
    f->e.pool = pool;
    assert_int_equal(loop_init(&f->e.loop), 0);
    assert_int_equal(io_pair(fds), 0);
    f->resolve_fd = fds[1];
    assert_int_equal(names_init(&f->e.names, &f->e.pool), 0);
    assert_int_equal(lookups_init(&f->e.lookups, &f->e, fds[0]), 0);
    assert_int_equal(dns_server_init(&f->e.dns, &f->e), 0);
    return f;
}

static const char *const listed[] = {"ok.test", "ssh.test:22", "*.wild.test", "a.deep.below.test"};

static struct fixture *closed_network(void)
{
    return fixture_with(policy_of(listed, ARRAY_SIZE(listed), NULL));
}

static struct fixture *open_network(void)
{
    return fixture_with(policy_of(NULL, 0, NULL));
}

static void done(struct fixture *f)
{
    dns_server_done(&f->e.dns);
    lookups_done(&f->e.lookups);
    names_done(&f->e.names);
    policy_done(&f->e.policy);
    loop_done(&f->e.loop);
    fd_closep(&f->resolve_fd);
    free(f);
}

/* Questions and answers */

struct packet {
    uint8_t bytes[512];
    size_t len;
};

static struct packet question_of(const char *name, unsigned type)
{
    struct packet m = {{0x12, 0x34, 1, 0, 0, 1}, 12};

    while (*name) {
        size_t n = strcspn(name, ".");

        m.bytes[m.len++] = (uint8_t)n;
        memcpy(m.bytes + m.len, name, n);
        m.len += n;
        name += n + (name[n] == '.');
    }
    m.bytes[m.len++] = 0;
    m.bytes[m.len++] = (uint8_t)(type >> 8);
    m.bytes[m.len++] = (uint8_t)type;
    m.bytes[m.len++] = 0;
    m.bytes[m.len++] = 1;
    return m;
}

static const struct datagram_ends ends = {
    .from = {ADDRESS_V4, {127, 0, 0, 1}},
    .to = {ADDRESS_V4, {198, 18, 0, 1}},
    .from_port = 40000,
    .to_port = 53,
};

/* Whether the answer has this rcode and these addresses, "" for none, "A B" for two. */
static void assert_answer(const uint8_t *buf, size_t len, const struct packet *question,
                          unsigned rcode, const char *addresses)
{
    char text[2048] = "";
    const uint8_t *p = buf + question->len;
    size_t n = len >= 12 ? (size_t)buf[6] << 8 | buf[7] : 0, used = 0;

    assert_true(len >= question->len);
    assert_memory_equal(buf, question->bytes, 2);
    assert_memory_equal(buf + 12, question->bytes + 12, question->len - 12);
    assert_int_equal(buf[3] & 15, rcode);
    for (size_t i = 0; i < n; i++) {
        struct address a = {.family = p[11] == 4 ? ADDRESS_V4 : ADDRESS_V6};
        char one[ADDRESS_TEXT_BYTES];

        assert_true(p[11] == 4 || p[11] == 16);
        assert_memory_equal(p, "\xC0\x0C", 2);
        assert_memory_equal(p + 6, "\0\0\0\x0A", 4); /* ten seconds */
        memcpy(a.bytes, p + 12, p[11]);
        address_format(&a, one);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? " " : "", one);
        p += 12 + p[11];
    }
    assert_int_equal(p - buf, len);
    assert_string_equal(text, addresses);
}

static void assert_at_once(struct fixture *f, const char *name, unsigned type, unsigned rcode,
                           const char *addresses)
{
    struct packet m = question_of(name, type);
    uint8_t buf[4096];
    size_t n = dns_server_ask(&f->e.dns, &ends, m.bytes, m.len, buf, sizeof buf);

    if (n == 0)
        fail_msg("%s: no answer at once", name);
    assert_answer(buf, n, &m, rcode, addresses);
}

static void assert_follows(struct fixture *f, const char *name, unsigned type)
{
    struct packet m = question_of(name, type);
    uint8_t buf[4096];

    assert_int_equal(dns_server_ask(&f->e.dns, &ends, m.bytes, m.len, buf, sizeof buf), 0);
}

static void assert_injected(struct fixture *f, const char *name, unsigned type, unsigned rcode,
                            const char *addresses)
{
    struct packet m = question_of(name, type);

    assert_answer(f->injected, f->injected_len, &m, rcode, addresses);
    assert_memory_equal(&f->injected_ends, &ends, sizeof ends);
}

static void assert_denied(const struct fixture *f, size_t n, const char *name, const char *words)
{
    assert_int_equal(f->n_denials, n);
    assert_string_equal(f->denial.name, name);
    if (!strstr(f->denial.reason, words))
        fail_msg("'%s' is not in: %s", words, f->denial.reason);
}

/* The name that `resolve` is asked for next, and the id; "" for none. */
static uint32_t asked(struct fixture *f, char name[static RESOLVE_NAME_MAX + 1])
{
    uint8_t buf[RESOLVE_PACKET_MAX];
    ssize_t n = recv(f->resolve_fd, buf, sizeof buf, MSG_DONTWAIT);
    uint32_t id = 0;

    name[0] = '\0';
    if (n > 0)
        assert_int_equal(resolve_question_parse(buf, (size_t)n, &id, name), 0);
    return id;
}

static void assert_nothing_asked(struct fixture *f)
{
    char name[RESOLVE_NAME_MAX + 1];

    (void)asked(f, name);
    assert_string_equal(name, "");
}

static void send_found(struct fixture *f, uint32_t id, enum resolve_status status,
                       const char *const *addresses, size_t n)
{
    struct resolve_answer answer = {.id = id, .status = status, .n = n};
    uint8_t buf[RESOLVE_PACKET_MAX];

    for (size_t i = 0; i < n; i++) {
        struct address a;

        assert_int_equal(address_parse(addresses[i], strlen(addresses[i]), &a), ADDRESS_GOOD);
        answer.addresses[i].family = (uint8_t)a.family;
        memcpy(answer.addresses[i].bytes, a.bytes, 16);
    }
    n = resolve_answer_encode(&answer, buf, sizeof buf);
    assert_true(n > 0);
    assert_int_equal(send(f->resolve_fd, buf, n, MSG_DONTWAIT), n);
}

static void turn(struct fixture *f)
{
    assert_int_equal(loop_turn(&f->e.loop, 0), 0);
}

/* `resolve` was asked for exactly this name, and says this. */
static void found(struct fixture *f, const char *expected, enum resolve_status status,
                  const char *const *addresses, size_t n)
{
    char name[RESOLVE_NAME_MAX + 1];
    uint32_t id = asked(f, name);

    assert_string_equal(name, expected);
    assert_nothing_asked(f);
    send_found(f, id, status, addresses, n);
    turn(f);
}

#define FOUND(f, name, ...)                                                                        \
    found(f, name, RESOLVE_FOUND, (const char *const[]){__VA_ARGS__},                              \
          ARRAY_SIZE(((const char *const[]){__VA_ARGS__})))

/* UDP */

static void an_unlisted_name_does_not_exist_and_is_told(void **state)
{
    static const char *const names[] = {"no.test",         "SECRET.no.test",   "xok.test",
                                        "ok.test.no.test", "sub.ok.test",      "ok",
                                        "evilwild.test",   "ok.test.corp.test"};
    struct fixture *f = closed_network();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_at_once(f, names[i], 1, 3, "");
        assert_int_equal(f->n_denials, i + 1);
    }
    assert_denied(f, ARRAY_SIZE(names), "ok.test.corp.test", "no entry");
    assert_int_equal(f->denial.kind, POLICY_RULE_NONE);
    assert_false(f->denial.allowed);
    assert_at_once(f, "SECRET.no.test", 16, 3, "");
    assert_denied(f, ARRAY_SIZE(names) + 1, "secret.no.test", "no entry");
    assert_nothing_asked(f);
    assert_int_equal(f->e.names.n, 0);
    done(f);
}

static void a_name_above_a_listed_one_exists_without_addresses(void **state)
{
    static const char *const names[] = {"test", "wild.test", "deep.below.test", "below.test", ""};
    struct fixture *f = closed_network();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_at_once(f, names[i], 1, 0, "");
        assert_at_once(f, names[i], 2, 0, "");
    }
    assert_nothing_asked(f);
    assert_int_equal(f->n_denials, 0);
    done(f);
}

static void a_listed_name_is_looked_up_and_has_a_synthetic_address(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_follows(f, "ok.test", 1);
    assert_int_equal(f->n_injected, 0);
    FOUND(f, "ok.test", "192.0.2.7");
    assert_int_equal(f->n_injected, 1);
    assert_injected(f, "ok.test", 1, 0, "198.18.0.2");
    assert_at_once(f, "ok.test", 1, 0, "198.18.0.2");
    assert_at_once(f, "oK.TeSt", 1, 0, "198.18.0.2");
    assert_follows(f, "ssh.test", 1); /* another port's: names have none */
    FOUND(f, "ssh.test", "192.0.2.8");
    assert_injected(f, "ssh.test", 1, 0, "198.18.0.3");
    assert_nothing_asked(f);
    assert_int_equal(f->n_denials, 0);
    assert_int_equal(f->e.dns.n_waiting, 0);
    done(f);
}

static void an_ipv6_address_is_synthetic_only_where_there_is_one(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_follows(f, "ok.test", 28);
    FOUND(f, "ok.test", "192.0.2.7", "192.0.2.8");
    assert_injected(f, "ok.test", 28, 0, "");
    assert_follows(f, "ssh.test", 28);
    FOUND(f, "ssh.test", "2001:db8::1");
    assert_injected(f, "ssh.test", 28, 0, "fd01:200::3");
    assert_at_once(f, "ssh.test", 1, 0, "198.18.0.3"); /* dialled by whatever it has */
    assert_follows(f, "a.wild.test", 28);
    FOUND(f, "a.wild.test", "::ffff:192.0.2.1");
    assert_injected(f, "a.wild.test", 28, 0, "");
    done(f);
}

static void other_types_of_a_listed_name_are_empty(void **state)
{
    static const unsigned types[] = {2, 5, 6, 10, 12, 15, 16, 33, 64, 65, 99, 252, 255, 257};
    struct fixture *f = closed_network();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        assert_at_once(f, "ok.test", types[i], 0, "");
    assert_nothing_asked(f);
    assert_int_equal(f->n_denials, 0);
    done(f);
}

static void what_the_look_up_says_is_passed_on(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_follows(f, "ok.test", 1);
    found(f, "ok.test", RESOLVE_NOT_FOUND, NULL, 0);
    assert_injected(f, "ok.test", 1, 3, "");
    assert_at_once(f, "ok.test", 28, 3, ""); /* for a while */
    assert_follows(f, "ssh.test", 1);
    found(f, "ssh.test", RESOLVE_FAILED, NULL, 0);
    assert_injected(f, "ssh.test", 1, 2, "");
    assert_int_equal(f->n_denials, 0); /* nobody has refused it */
    done(f);
}

static void what_was_found_is_looked_up_again_later(void **state)
{
    struct fixture *f = closed_network();
    struct host_name name = {"ok.test"};

    (void)state;
    assert_follows(f, "ok.test", 1);
    FOUND(f, "ok.test", "192.0.2.7");
    names_find(&f->e.names, &name)->fresh_until_us = clock_now_us();
    assert_follows(f, "ok.test", 28);
    FOUND(f, "ok.test", "2001:db8::1");
    assert_injected(f, "ok.test", 28, 0, "fd01:200::2");
    done(f);
}

static void a_name_is_looked_up_once_for_all_who_wait(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_follows(f, "ok.test", 1);
    assert_follows(f, "OK.test", 28);
    assert_follows(f, "ok.test", 1);
    FOUND(f, "ok.test", "192.0.2.7");
    assert_int_equal(f->n_injected, 3);
    done(f);
}

static void forbidden_addresses_are_the_dials_to_refuse(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_follows(f, "ok.test", 1);
    FOUND(f, "ok.test", "127.0.0.1", "10.0.0.1", "169.254.169.254");
    assert_injected(f, "ok.test", 1, 0, "198.18.0.2");
    assert_int_equal(f->n_denials, 0);
    done(f);
}

static void a_pinned_name_is_not_looked_up(void **state)
{
    static const char *const hosts[] = {"ok.test", "six.test"};
    struct fixture *f = fixture_with(policy_of(hosts, 2, "ok.test=10.0.0.1"));

    (void)state;
    assert_at_once(f, "ok.test", 1, 0, "198.18.0.2");
    assert_at_once(f, "ok.test", 28, 0, "");
    done(f);
    f = fixture_with(policy_of(hosts, 2, "six.test=fd00::1"));
    assert_at_once(f, "six.test", 1, 0, "198.18.0.2");
    assert_at_once(f, "six.test", 28, 0, "fd01:200::2");
    assert_nothing_asked(f);
    done(f);
}

static void behind_a_proxy_nothing_is_looked_up(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    f->e.proxy.set = true;
    assert_at_once(f, "ok.test", 1, 0, "198.18.0.2");
    assert_at_once(f, "ok.test", 28, 0, "");
    assert_at_once(f, "no.test", 1, 3, "");
    assert_nothing_asked(f);
    done(f);
}

static void what_is_no_name_of_a_host_does_not_exist(void **state)
{
    static const char *const names[] = {
        "1.2.3.4",       "2130706433",  "0x7f.1",       "-a.wild.test",     "a-.wild.test",
        "a,b.wild.test", "*.wild.test", "a%00.ok.test", "no.test#.ok.test", "user@ok.test"};
    struct fixture *f = closed_network();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_at_once(f, names[i], 1, 3, "");
        assert_denied(f, i + 1, names[i], "no name of a host");
    }
    assert_nothing_asked(f);
    done(f);
}

static void a_name_with_two_readings_is_a_fault_and_is_told(void **state)
{
    struct packet m = question_of("no xok.test", 1);
    struct fixture *f = closed_network();
    uint8_t buf[512];

    (void)state;
    m.bytes[12 + 3] = '\0';
    size_t n = dns_server_ask(&f->e.dns, &ends, m.bytes, m.len, buf, sizeof buf);
    assert_answer(buf, n, &m, 1, "");
    assert_denied(f, 1, "no?xok.test", "byte");
    m.bytes[12 + 3] = '.';
    n = dns_server_ask(&f->e.dns, &ends, m.bytes, m.len, buf, sizeof buf);
    assert_answer(buf, n, &m, 1, "");
    assert_int_equal(f->n_denials, 2);
    assert_nothing_asked(f);
    done(f);
}

static void what_is_no_question_gets_no_answer_or_a_fault(void **state)
{
    struct packet answer = question_of("ok.test", 1), status = answer, chaos = answer;
    struct fixture *f = closed_network();
    uint8_t buf[512];

    (void)state;
    answer.bytes[2] |= 0x80;
    assert_int_equal(dns_server_ask(&f->e.dns, &ends, answer.bytes, answer.len, buf, sizeof buf),
                     0);
    status.bytes[2] = 0x10;
    assert_int_equal(dns_server_ask(&f->e.dns, &ends, status.bytes, status.len, buf, sizeof buf),
                     12);
    assert_int_equal(buf[3] & 15, DNS_NOTIMP);
    chaos.bytes[chaos.len - 1] = 3;
    size_t n = dns_server_ask(&f->e.dns, &ends, chaos.bytes, chaos.len, buf, sizeof buf);
    assert_answer(buf, n, &chaos, DNS_REFUSED, "");
    assert_int_equal(dns_server_ask(&f->e.dns, &ends, chaos.bytes, 11, buf, sizeof buf), 0);
    assert_int_equal(f->n_denials, 0);
    assert_nothing_asked(f);
    assert_int_equal(f->e.dns.n_waiting, 0);
    done(f);
}

static void localhost_is_loopback_whatever_the_policy(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_at_once(f, "localhost", 1, 0, "127.0.0.1");
    assert_at_once(f, "a.localhost", 28, 0, "::1");
    assert_at_once(f, "localhost", 16, 0, "");
    done(f);
    f = open_network();
    assert_at_once(f, "LocalHost", 1, 0, "127.0.0.1");
    assert_nothing_asked(f);
    assert_int_equal(f->n_denials, 0);
    done(f);
}

static void reverse_names_of_loopback_are_not_told(void **state)
{
    static const char v6[] =
        "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa";
    struct fixture *f = closed_network();

    (void)state;
    assert_at_once(f, "1.0.0.127.in-addr.arpa", 12, 3, "");
    assert_at_once(f, v6, 12, 3, "");
    assert_int_equal(f->n_denials, 0);
    assert_at_once(f, "1.0.0.10.in-addr.arpa", 12, 3, "");
    assert_int_equal(f->n_denials, 1);
    assert_at_once(f, "1.0.0.1127.in-addr.arpa", 12, 3, "");
    assert_int_equal(f->n_denials, 2);
    done(f);
}

static void that_a_listed_host_has_no_service_elsewhere_is_not_told(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_at_once(f, "_http._tcp.ok.test", 33, 3, "");
    assert_at_once(f, "_sip._udp.ok.test", 33, 3, "");
    assert_int_equal(f->n_denials, 0);
    assert_at_once(f, "_http._tcp.ok.test", 16, 3, "");
    assert_at_once(f, "_http._tcp.no.test", 33, 3, "");
    assert_at_once(f, "_http.ok.test", 33, 3, "");
    assert_at_once(f, "http._tcp.ok.test", 33, 3, "");
    assert_at_once(f, "_a._b._tcp.ok.test", 33, 3, "");
    assert_int_equal(f->n_denials, 5);
    assert_nothing_asked(f);
    done(f);
}

static void too_many_names_below_a_wildcard_are_refused(void **state)
{
    struct fixture *f = closed_network();
    char name[64];

    (void)state;
    for (unsigned i = 0; i < NAMES_NEW_PER_MINUTE; i++) {
        (void)snprintf(name, sizeof name, "x%u.wild.test", i);
        assert_follows(f, name, 1);
        FOUND(f, name, "192.0.2.1");
    }
    assert_at_once(f, "more.wild.test", 1, 5, "");
    assert_denied(f, 1, "more.wild.test", "too many new names below a wildcard");
    assert_int_equal(f->denial.kind, POLICY_RULE_HOST);
    assert_nothing_asked(f);
    assert_at_once(f, "x0.wild.test", 1, 0, "198.18.0.2");
    assert_at_once(f, "more.wild.test", 16, 0, ""); /* tells nobody anything */
    assert_follows(f, "ok.test", 1);
    done(f);
}

static void a_policy_that_changes_while_a_name_is_looked_up_decides(void **state)
{
    static const char *const other[] = {"other.test"};
    struct fixture *f = closed_network();

    (void)state;
    assert_follows(f, "ok.test", 1);
    policy_done(&f->e.policy);
    f->e.policy = policy_of(other, 1, NULL);
    FOUND(f, "ok.test", "192.0.2.7");
    assert_injected(f, "ok.test", 1, 3, "");
    assert_denied(f, 1, "ok.test", "no entry");
    done(f);
}

static void those_who_wait_are_bounded(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    for (size_t i = 0; i < DNS_WAITING_MAX; i++)
        assert_follows(f, "ok.test", 1);
    assert_at_once(f, "ok.test", 1, 2, "");
    assert_int_equal(f->e.dns.n_waiting, DNS_WAITING_MAX);
    FOUND(f, "ok.test", "192.0.2.7");
    assert_int_equal(f->n_injected, DNS_WAITING_MAX);
    assert_int_equal(f->e.dns.n_waiting, 0);
    done(f);
}

static void without_resolve_a_name_fails_at_once(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    fd_closep(&f->resolve_fd);
    turn(f);
    assert_at_once(f, "ok.test", 1, 2, "");
    done(f);
}

static void those_who_wait_are_forgotten_at_the_end(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_follows(f, "ok.test", 1);
    assert_follows(f, "ssh.test", 1);
    done(f);
}

/* An open network */

static void an_open_network_tells_the_addresses_of_a_name(void **state)
{
    struct fixture *f = open_network();

    (void)state;
    assert_follows(f, "any.example", 1);
    FOUND(f, "any.example", "9.9.9.9", "2620:fe::fe", "10.0.0.1", "8.8.8.8");
    assert_injected(f, "any.example", 1, 0, "9.9.9.9 8.8.8.8");
    assert_at_once(f, "any.example", 28, 0, "2620:fe::fe");
    assert_at_once(f, "any.example", 65, 0, "");
    assert_int_equal(f->n_denials, 0);
    assert_follows(f, "none.example", 1);
    found(f, "none.example", RESOLVE_NOT_FOUND, NULL, 0);
    assert_injected(f, "none.example", 1, 3, "");
    done(f);
}

static void an_open_network_tells_no_forbidden_address(void **state)
{
    struct fixture *f = open_network();

    (void)state;
    assert_follows(f, "rebind.example", 1);
    FOUND(f, "rebind.example", "127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1");
    assert_injected(f, "rebind.example", 1, 0, "");
    assert_denied(f, 1, "rebind.example", "10.0.0.1");
    assert_string_equal(f->denial.address, "::ffff:10.0.0.1");
    f->own = "9.9.9.9";
    assert_follows(f, "own.example", 1);
    FOUND(f, "own.example", "9.9.9.9");
    assert_injected(f, "own.example", 1, 0, "");
    assert_denied(f, 2, "own.example", "the host's own");
    assert_string_equal(f->denial.address, "9.9.9.9");
    done(f);
}

static void an_address_without_a_way_is_told_if_there_is_no_other(void **state)
{
    struct fixture *f = open_network();

    (void)state;
    f->no_route = "2620:fe::fe";
    assert_follows(f, "dual.example", 28);
    FOUND(f, "dual.example", "9.9.9.9", "2620:fe::fe");
    assert_injected(f, "dual.example", 28, 0, "");
    assert_at_once(f, "dual.example", 1, 0, "9.9.9.9");
    assert_follows(f, "six.example", 28);
    FOUND(f, "six.example", "2620:fe::fe");
    assert_injected(f, "six.example", 28, 0, "2620:fe::fe");
    assert_int_equal(f->n_denials, 0);
    done(f);
}

static void an_open_network_counts_no_names(void **state)
{
    struct fixture *f = open_network();
    char name[64];

    (void)state;
    for (unsigned i = 0; i < 2 * NAMES_NEW_PER_MINUTE; i++) {
        (void)snprintf(name, sizeof name, "x%u.example", i);
        assert_follows(f, name, 1);
        FOUND(f, name, "9.9.9.9");
    }
    assert_int_equal(f->n_denials, 0);
    done(f);
}

static void an_open_network_forgets_names_when_it_needs_the_room(void **state)
{
    struct fixture *f = open_network();
    struct host_name name = {""};
    int error = 0;

    (void)state;
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        (void)snprintf(name.text, sizeof name.text, "x%u.example", i);
        assert_non_null(names_add(&f->e.names, &name, false, &error));
    }
    assert_follows(f, "more.example", 1);
    FOUND(f, "more.example", "9.9.9.9");
    assert_injected(f, "more.example", 1, 0, "9.9.9.9");
    done(f);
}

static void find_many(struct fixture *f, const char *name)
{
    char texts[RESOLVE_ADDRESSES_MAX][ADDRESS_TEXT_BYTES];
    const char *addresses[RESOLVE_ADDRESSES_MAX];

    for (unsigned i = 0; i < RESOLVE_ADDRESSES_MAX; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "2620:fe::%x", i + 1);
        addresses[i] = texts[i];
    }
    found(f, name, RESOLVE_FOUND, addresses, RESOLVE_ADDRESSES_MAX);
}

static void what_exceeds_a_datagram_is_to_be_asked_for_by_tcp(void **state)
{
    struct packet m = question_of("many.example", 28);
    struct fixture *f = open_network();
    uint8_t buf[4096];

    (void)state;
    assert_follows(f, "many.example", 28);
    find_many(f, "many.example");
    assert_true(f->injected[2] & 2);
    assert_injected(f, "many.example", 28, 0, "");
    assert_int_equal(dns_server_ask(&f->e.dns, &ends, m.bytes, m.len, buf, sizeof buf), m.len);
    assert_true(buf[2] & 2);
    m.bytes[11] = 1; /* OPT with 1232 */
    memcpy(m.bytes + m.len, "\0\0\x29\x04\xD0\0\0\0\0\0\0", 11);
    size_t n = dns_server_ask(&f->e.dns, &ends, m.bytes, m.len + 11, buf, sizeof buf);
    assert_int_equal(n, m.len + RESOLVE_ADDRESSES_MAX * 28 + 11);
    assert_false(buf[2] & 2);
    done(f);
}

/* TCP */

static int connected(struct fixture *f)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    dns_server_accept(&f->e.dns, fds[0]);
    return fds[1];
}

static size_t frame(const struct packet *m, uint8_t *buf)
{
    buf[0] = (uint8_t)(m->len >> 8);
    buf[1] = (uint8_t)m->len;
    memcpy(buf + 2, m->bytes, m->len);
    return 2 + m->len;
}

static void send_framed(int fd, const char *name, unsigned type)
{
    struct packet m = question_of(name, type);
    uint8_t buf[600];
    size_t n = frame(&m, buf);

    assert_int_equal(send(fd, buf, n, MSG_NOSIGNAL), n);
}

/* Exactly @n bytes, while the server turns. */
static void receive(struct fixture *f, int fd, uint8_t *buf, size_t n)
{
    uint64_t limit = clock_after_us(LIMIT_US);

    for (size_t have = 0; have < n;) {
        ssize_t got = recv(fd, buf + have, n - have, MSG_DONTWAIT);

        if (got > 0)
            have += (size_t)got;
        else if (got == 0 || errno != EAGAIN || clock_now_us() > limit)
            fail_msg("%zu bytes of %zu came", have, n);
        turn(f);
    }
}

static void assert_framed(struct fixture *f, int fd, const char *name, unsigned type,
                          unsigned rcode, const char *addresses)
{
    struct packet m = question_of(name, type);
    uint8_t buf[4096];

    receive(f, fd, buf, 2);
    size_t n = (size_t)buf[0] << 8 | buf[1];
    assert_true(n <= sizeof buf);
    receive(f, fd, buf, n);
    assert_answer(buf, n, &m, rcode, addresses);
}

/* Whether the server closes, and nothing more comes. */
static void assert_closed(struct fixture *f, int fd)
{
    uint64_t limit = clock_after_us(LIMIT_US);
    uint8_t byte;
    ssize_t n;

    while ((n = recv(fd, &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN) {
        if (clock_now_us() > limit)
            fail_msg("the connection stays open");
        assert_int_equal(loop_turn(&f->e.loop, clock_after_us(5000)), 0);
    }
    assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
    (void)close(fd);
}

static void a_question_by_tcp_comes_byte_by_byte(void **state)
{
    struct packet m = question_of("ok.test", 1);
    struct fixture *f = closed_network();
    int fd = connected(f);
    uint8_t buf[600];
    size_t n = frame(&m, buf);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        char name[RESOLVE_NAME_MAX + 1];

        (void)asked(f, name);
        assert_string_equal(name, "");
        assert_int_equal(send(fd, buf + i, 1, 0), 1);
        turn(f);
    }
    FOUND(f, "ok.test", "192.0.2.7");
    assert_framed(f, fd, "ok.test", 1, 0, "198.18.0.2");
    send_framed(fd, "no.test", 1); /* the connection stays */
    assert_framed(f, fd, "no.test", 1, 3, "");
    (void)close(fd);
    turn(f);
    assert_int_equal(f->e.dns.n_connections, 0);
    done(f);
}

static void questions_by_tcp_come_in_a_row_and_answers_in_any_order(void **state)
{
    struct fixture *f = closed_network();
    int fd = connected(f);

    (void)state;
    send_framed(fd, "ok.test", 1);
    send_framed(fd, "no.test", 1);
    send_framed(fd, "wild.test", 1);
    turn(f);
    assert_framed(f, fd, "no.test", 1, 3, "");
    assert_framed(f, fd, "wild.test", 1, 0, "");
    FOUND(f, "ok.test", "192.0.2.7");
    assert_framed(f, fd, "ok.test", 1, 0, "198.18.0.2");
    (void)close(fd);
    done(f);
}

static void whoever_ends_its_half_still_gets_its_answers(void **state)
{
    struct fixture *f = closed_network();
    int fd = connected(f);

    (void)state;
    send_framed(fd, "no.test", 1);
    send_framed(fd, "ok.test", 1);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    turn(f);
    turn(f);
    assert_framed(f, fd, "no.test", 1, 3, "");
    FOUND(f, "ok.test", "192.0.2.7");
    assert_framed(f, fd, "ok.test", 1, 0, "198.18.0.2");
    assert_closed(f, fd);
    assert_int_equal(f->e.dns.n_connections, 0);
    done(f);
}

static void half_a_question_at_the_end_is_none(void **state)
{
    struct fixture *f = closed_network();
    int fd = connected(f);

    (void)state;
    assert_int_equal(send(fd, "\0\x20xyz", 5, 0), 5);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_closed(f, fd);
    done(f);
}

static void a_length_that_no_question_has_ends_the_connection(void **state)
{
    static const char *const lengths[] = {"\0\0", "\0\x0B", "\x10\x01", "\xFF\xFF"};
    struct fixture *f = closed_network();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        int fd = connected(f);

        assert_int_equal(send(fd, lengths[i], 2, 0), 2);
        assert_closed(f, fd);
    }
    assert_int_equal(f->e.dns.n_connections, 0);
    done(f);
}

static void whoever_goes_while_it_waits_is_forgotten(void **state)
{
    struct fixture *f = closed_network();
    int fd = connected(f);

    (void)state;
    send_framed(fd, "ok.test", 1);
    send_framed(fd, "ok.test", 28);
    turn(f);
    assert_follows(f, "ok.test", 1); /* one by UDP among them */
    send_framed(fd, "ok.test", 1);
    turn(f);
    assert_int_equal(f->e.dns.n_waiting, 4);
    (void)close(fd);
    turn(f);
    FOUND(f, "ok.test", "192.0.2.7");
    turn(f);
    assert_int_equal(f->n_injected, 1);
    assert_int_equal(f->e.dns.n_connections, 0);
    assert_int_equal(f->e.dns.n_waiting, 0);
    done(f);
}

static void whoever_does_not_read_is_not_read_from(void **state)
{
    enum { QUESTIONS = 20000 };
    struct packet m = question_of("no.test", 1);
    struct fixture *f = closed_network();
    int fd = connected(f);
    uint8_t question[600], answer[600];
    size_t n = frame(&m, question), sent = 0, stalled = 0;

    (void)state;
    while (sent < QUESTIONS && stalled < 3) { /* until neither side takes any more */
        if (send(fd, question, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n) {
            sent++;
            stalled = 0;
            continue;
        }
        assert_int_equal(errno, EAGAIN);
        turn(f);
        stalled++;
    }
    assert_true(sent > 0 && sent < QUESTIONS);
    for (size_t i = 0; i < sent; i++) {
        receive(f, fd, answer, n);
        assert_memory_equal(answer, question, 4);
        assert_int_equal(answer[5] & 15, DNS_NXDOMAIN);
    }
    (void)close(fd);
    done(f);
}

/* More questions than answers find room at once. */
static void ask_for_many(struct fixture *f, int fd, bool first)
{
    enum { QUESTIONS = 40 };
    uint8_t buf[4096];

    for (size_t i = 0; i < QUESTIONS; i++)
        send_framed(fd, "many.example", 28);
    turn(f);
    if (first)
        find_many(f, "many.example");
    for (size_t i = 0; i < QUESTIONS; i++) {
        receive(f, fd, buf, 2);
        size_t n = (size_t)buf[0] << 8 | buf[1];
        assert_int_equal(n, question_of("many.example", 28).len + RESOLVE_ADDRESSES_MAX * 28);
        receive(f, fd, buf, n);
        assert_int_equal(buf[7], RESOLVE_ADDRESSES_MAX);
    }
}

static void by_tcp_all_addresses_have_room(void **state)
{
    struct fixture *f = open_network();
    int fd = connected(f);

    (void)state;
    ask_for_many(f, fd, true);
    ask_for_many(f, fd, false); /* all known by now */
    (void)close(fd);
    done(f);
}

static void a_connection_that_stands_still_is_closed(void **state)
{
    struct fixture *f = closed_network();

    (void)state;
    assert_int_equal(f->e.dns.idle_us, 10000000);
    f->e.dns.idle_us = 30000;
    int fd = connected(f), waiting = connected(f);
    send_framed(waiting, "ok.test", 1);
    turn(f);
    assert_closed(f, fd);
    assert_int_equal(f->e.dns.n_connections, 1); /* whoever waits for an answer of ours stays */
    FOUND(f, "ok.test", "192.0.2.7");
    assert_framed(f, waiting, "ok.test", 1, 0, "198.18.0.2");
    assert_closed(f, waiting);
    assert_false(f->e.dns.sweep.set);
    done(f);
}

static void connections_are_bounded(void **state)
{
    struct fixture *f = closed_network();
    int fds[DNS_CONNECTIONS_MAX];

    (void)state;
    for (size_t i = 0; i < DNS_CONNECTIONS_MAX; i++)
        fds[i] = connected(f);
    assert_closed(f, connected(f));
    send_framed(fds[0], "no.test", 1);
    assert_framed(f, fds[0], "no.test", 1, 3, "");
    (void)close(fds[1]);
    turn(f);
    fds[1] = connected(f);
    send_framed(fds[1], "no.test", 1);
    assert_framed(f, fds[1], "no.test", 1, 3, "");
    for (size_t i = 0; i < DNS_CONNECTIONS_MAX; i++)
        (void)close(fds[i]);
    done(f);
}

static void connections_are_closed_at_the_end(void **state)
{
    struct fixture *f = closed_network();
    int fd = connected(f);

    (void)state;
    send_framed(fd, "ok.test", 1);
    turn(f);
    dns_server_done(&f->e.dns);
    assert_int_equal(f->e.dns.n_waiting, 0);
    assert_closed(f, fd);
    done(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unlisted_name_does_not_exist_and_is_told),
        cmocka_unit_test(a_name_above_a_listed_one_exists_without_addresses),
        cmocka_unit_test(a_listed_name_is_looked_up_and_has_a_synthetic_address),
        cmocka_unit_test(an_ipv6_address_is_synthetic_only_where_there_is_one),
        cmocka_unit_test(other_types_of_a_listed_name_are_empty),
        cmocka_unit_test(what_the_look_up_says_is_passed_on),
        cmocka_unit_test(what_was_found_is_looked_up_again_later),
        cmocka_unit_test(a_name_is_looked_up_once_for_all_who_wait),
        cmocka_unit_test(forbidden_addresses_are_the_dials_to_refuse),
        cmocka_unit_test(a_pinned_name_is_not_looked_up),
        cmocka_unit_test(behind_a_proxy_nothing_is_looked_up),
        cmocka_unit_test(what_is_no_name_of_a_host_does_not_exist),
        cmocka_unit_test(a_name_with_two_readings_is_a_fault_and_is_told),
        cmocka_unit_test(what_is_no_question_gets_no_answer_or_a_fault),
        cmocka_unit_test(localhost_is_loopback_whatever_the_policy),
        cmocka_unit_test(reverse_names_of_loopback_are_not_told),
        cmocka_unit_test(that_a_listed_host_has_no_service_elsewhere_is_not_told),
        cmocka_unit_test(too_many_names_below_a_wildcard_are_refused),
        cmocka_unit_test(a_policy_that_changes_while_a_name_is_looked_up_decides),
        cmocka_unit_test(those_who_wait_are_bounded),
        cmocka_unit_test(without_resolve_a_name_fails_at_once),
        cmocka_unit_test(those_who_wait_are_forgotten_at_the_end),
        cmocka_unit_test(an_open_network_tells_the_addresses_of_a_name),
        cmocka_unit_test(an_open_network_tells_no_forbidden_address),
        cmocka_unit_test(an_address_without_a_way_is_told_if_there_is_no_other),
        cmocka_unit_test(an_open_network_counts_no_names),
        cmocka_unit_test(an_open_network_forgets_names_when_it_needs_the_room),
        cmocka_unit_test(what_exceeds_a_datagram_is_to_be_asked_for_by_tcp),
        cmocka_unit_test(a_question_by_tcp_comes_byte_by_byte),
        cmocka_unit_test(questions_by_tcp_come_in_a_row_and_answers_in_any_order),
        cmocka_unit_test(whoever_ends_its_half_still_gets_its_answers),
        cmocka_unit_test(half_a_question_at_the_end_is_none),
        cmocka_unit_test(a_length_that_no_question_has_ends_the_connection),
        cmocka_unit_test(whoever_goes_while_it_waits_is_forgotten),
        cmocka_unit_test(whoever_does_not_read_is_not_read_from),
        cmocka_unit_test(by_tcp_all_addresses_have_room),
        cmocka_unit_test(a_connection_that_stands_still_is_closed),
        cmocka_unit_test(connections_are_bounded),
        cmocka_unit_test(connections_are_closed_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
