/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An egress of a test's own, for flows: in a network namespace with nothing but loopback, where a
 * test listens on any port as "outside", connects as "inside", and looks at what is refused. What
 * denials.h and dns_server.h would do is recorded here instead.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"

#define LIMIT_US   UINT64_C(20000000)
#define OUTSIDE    "127.0.0.1"   /* what the names are pinned to */
#define IN_RANGE   "203.0.113.9" /* listed alone, since it is this network's own */
#define NOT_LISTED "203.0.114.9"

struct told {
    unsigned n;
    uint32_t protocol;
    char name[256], address[ADDRESS_TEXT_BYTES], reason[DENIAL_TEXT_MAX], rule[DENIAL_TEXT_MAX];
    uint16_t port;
    uint64_t bytes;
};

struct fixture {
    struct egress e;
    struct told told;
    unsigned dns; /* connections that the resolver got */
    int listener; /* outside */
    int client;   /* the program's end */
    int server;   /* the end outside, once accepted */
};

static struct fixture *fixture_of(struct egress *e)
{
    return (struct fixture *)e;
}

void denials_tell(struct denials *d, const struct denial *x)
{
    struct told *t = &fixture_of(d->egress)->told;

    t->n++;
    t->protocol = x->protocol;
    t->port = (uint16_t)x->port;
    t->bytes = x->bytes;
    (void)snprintf(t->name, sizeof t->name, "%s", x->name);
    (void)snprintf(t->address, sizeof t->address, "%s", x->address);
    (void)snprintf(t->reason, sizeof t->reason, "%s", x->reason);
    (void)snprintf(t->rule, sizeof t->rule, "%s", x->rule);
}

void denials_decided(struct denials *d, enum denial_protocol protocol, const char *name,
                     const struct address *address, uint16_t port,
                     const struct policy_decision *decision, const char *reason, uint64_t bytes)
{
    char text[ADDRESS_TEXT_BYTES] = "", rule[DENIAL_TEXT_MAX];

    if (address)
        address_format(address, text);
    policy_rule_text(decision, rule, sizeof rule);
    denials_tell(d, &(struct denial){.protocol = protocol,
                                     .name = name ? name : "",
                                     .address = text,
                                     .port = port,
                                     .rule = rule,
                                     .reason = reason ? reason : decision->explanation,
                                     .bytes = bytes});
}

void dns_server_accept(struct dns_server *s, int fd)
{
    fixture_of(s->egress)->dns++;
    (void)close(fd);
}

/* --- the policy --- */

static void set_policy(struct fixture *x, const char *const *hosts, size_t n_hosts)
{
    static const char *const ranges[] = {IN_RANGE}, *const pins[] = {"ok.test=" OUTSIDE,
                                                                     "other.test=" OUTSIDE};
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = {.items = hosts, .n = n_hosts},
                              .allow_egress_to_cidrs = {.items = ranges, .n = 1},
                              .add_hosts = {.items = pins, .n = n_hosts > 0 ? 2 : 0}};
    struct problems problems = {0};

    policy_done(&x->e.policy);
    x->e.policy = (struct policy){0};
    assert_int_equal(policy_build(&in, &x->e.policy, &problems), 0);
    problems_done(&problems);
}

static const char *const hosts_all[] = {"ok.test:443", "ok.test:80",     "ok.test:22",
                                        "ok.test:25",  "other.test:443", "found.test:443"};

/* --- loopback of the test's own --- */

static void own_loopback_address(int fd, const char *label, const char *address, const char *mask)
{
    struct ifreq r = {0};
    struct sockaddr_in a = {.sin_family = AF_INET};

    (void)snprintf(r.ifr_name, sizeof r.ifr_name, "%s", label);
    a.sin_addr.s_addr = inet_addr(address);
    memcpy(&r.ifr_addr, &a, sizeof a);
    assert_return_code(ioctl(fd, SIOCSIFADDR, &r), errno);
    a.sin_addr.s_addr = inet_addr(mask);
    memcpy(&r.ifr_netmask, &a, sizeof a);
    assert_return_code(ioctl(fd, SIOCSIFNETMASK, &r), errno);
}

/* All of a prefix on loopback is local, which is what makes the pool's addresses reachable here. */
static int enter_network(void **state)
{
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK};
    _cleanup_fd_ int fd = -EBADF;

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 && unshare(CLONE_NEWNET) < 0) {
        print_message("no network namespace can be made here: %s\n", strerror(errno));
        exit(getenv("ATOLL_TESTS_MUST_RUN") ? 1 : 77);
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_return_code(ioctl(fd, SIOCSIFFLAGS, &up), errno);
    own_loopback_address(fd, "lo:1", "198.18.0.1", "255.255.0.0");
    own_loopback_address(fd, "lo:2", IN_RANGE, "255.255.255.0");
    return 0;
}

static int listen_at(const char *address, uint16_t port)
{
    static const int on = 1;
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {inet_addr(address)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_return_code(bind(fd, (struct sockaddr *)&a, sizeof a), errno);
    assert_return_code(listen(fd, 16), errno);
    return fd;
}

static int connect_at(const char *address, uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {inet_addr(address)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(connect(fd, (struct sockaddr *)&a, sizeof a), errno);
    assert_return_code(fcntl(fd, F_SETFL, O_NONBLOCK), errno);
    return fd;
}

/* --- an egress --- */

static int set_up(void **state)
{
    struct fixture *x = calloc(1, sizeof *x);
    struct error err = ERROR_INIT;

    assert_non_null(x);
    x->listener = x->client = x->server = -EBADF;
    assert_int_equal(loop_init(&x->e.loop), 0);
    x->e.denials.egress = x->e.dns.egress = &x->e;
    set_policy(x, hosts_all, ARRAY_SIZE(hosts_all));
    assert_int_equal(policy_pool_choose(&x->e.policy, &x->e.pool, &err), 0);
    assert_int_equal(names_init(&x->e.names, &x->e.pool), 0);
    assert_int_equal(own_address_init(&x->e.own_address), 0);
    assert_int_equal(lookups_init(&x->e.lookups, &x->e, -EBADF), 0);
    assert_int_equal(flows_init(&x->e.flows, &x->e), 0);
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *x = *state;

    flows_done(&x->e.flows);
    lookups_done(&x->e.lookups);
    own_address_done(&x->e.own_address);
    names_done(&x->e.names);
    policy_done(&x->e.policy);
    loop_done(&x->e.loop);
    fd_closep(&x->listener);
    fd_closep(&x->client);
    fd_closep(&x->server);
    free(x);
    return 0;
}

static struct name *add_name(struct fixture *x, const char *text)
{
    struct host_name name;
    int r = 0;

    assert_int_equal(host_name_read(text, strlen(text), &name), 0);
    struct name *n = names_add(&x->e.names, &name, false, &r);
    assert_non_null(n);
    return n;
}

/* A program inside has connected to @to. */
static void begin(struct fixture *x, const struct address *to, uint16_t port)
{
    int any = listen_at("127.0.0.1", 9);

    x->client = connect_at("127.0.0.1", 9);
    flow_begin(&x->e, accept4(any, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), to, port);
    (void)close(any);
}

static inline void begin_name(struct fixture *x, const char *name, uint16_t port)
{
    struct address to = names_address(&x->e.names, add_name(x, name), ADDRESS_V4);

    begin(x, &to, port);
}

static inline struct address address_of(const char *text)
{
    struct address a;

    assert_int_equal(address_parse(text, strlen(text), &a), ADDRESS_GOOD);
    return a;
}

/* --- waiting --- */

static void turn(struct fixture *x)
{
    assert_int_equal(loop_turn(&x->e.loop, clock_after_us(1000)), 0);
}

static inline void wait_server(struct fixture *x)
{
    uint64_t deadline = clock_after_us(LIMIT_US);

    while ((x->server = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0) {
        assert_true(clock_now_us() < deadline);
        turn(x);
    }
}

static inline void expect_no_server(struct fixture *x)
{
    assert_int_equal(accept4(x->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), -1);
    assert_int_equal(errno, EAGAIN);
}

static ssize_t receive(struct fixture *x, int fd, void *buf, size_t size)
{
    uint64_t deadline = clock_after_us(LIMIT_US);
    ssize_t n;

    while ((n = recv(fd, buf, size, MSG_DONTWAIT)) < 0 && errno == EAGAIN) {
        assert_true(clock_now_us() < deadline);
        turn(x);
    }
    return n;
}

static inline void expect_bytes(struct fixture *x, int fd, const void *data, size_t len)
{
    char *buf = malloc(len + 1);
    size_t done = 0;

    assert_non_null(buf);
    while (done < len) {
        ssize_t n = receive(x, fd, buf + done, len - done);

        assert_true(n > 0);
        done += (size_t)n;
    }
    assert_memory_equal(buf, data, len);
    free(buf);
}

static inline void expect_text(struct fixture *x, int fd, const char *text)
{
    expect_bytes(x, fd, text, strlen(text));
}

static inline void expect_nothing(struct fixture *x, int fd)
{
    char byte;

    for (unsigned i = 0; i < 5; i++)
        turn(x);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

static inline void expect_end(struct fixture *x, int fd)
{
    char byte;

    assert_int_equal(receive(x, fd, &byte, 1), 0);
}

static inline void expect_reset(struct fixture *x, int fd)
{
    char byte;

    assert_int_equal(receive(x, fd, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
}

static inline void put_bytes(struct fixture *x, int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        assert_true(n > 0 || errno == EAGAIN);
        p += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
        turn(x);
    }
}

static inline void put_text(struct fixture *x, int fd, const char *text)
{
    put_bytes(x, fd, text, strlen(text));
}

/* One refusal was told, whose reason has @part; the program sees a reset. */
static inline void expect_refused(struct fixture *x, enum denial_protocol protocol,
                                  const char *part)
{
    expect_reset(x, x->client);
    assert_int_equal(x->told.n, 1);
    assert_int_equal(x->told.protocol, protocol);
    if (!strstr(x->told.reason, part))
        fail_msg("'%s' does not say '%s'", x->told.reason, part);
    assert_int_equal(x->e.flows.n, 0);
}
