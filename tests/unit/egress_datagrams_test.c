/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams for real: the program's network is one namespace, with the rules and sockets that
 * sandboxes have, and the host's is another. Both have all addresses, at their lo. What the kernel
 * lets on to egress is wider here than the policy, so that egress is who judges.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "local/inside_network.h"
#include "local/netlink_request.h"
#include "local/network.h"
#include "local/ruleset.h"
#include "base/guards.h"

#define PATIENCE_US UINT64_C(20000000)

enum { ECHO_PORT = 7000, DATAGRAM_MAX = 65507 };

static const char listed4[] = "203.0.113.5", listed6[] = "2001:db8::5";

/* ---- what egress is made of, and is not tried here ---- */

struct scene {
    struct egress e;
    int inside, outside; /* network namespaces */
    struct denial denied;
    char denied_address[64], denied_name[300], denied_reason[600];
    unsigned n_denied, n_asked;
    char own[64], no_route[64]; /* addresses */
};

static struct scene scene;

void keeper_link_tell(struct egress *e, uint16_t type, uint32_t id, const void *payload, size_t len)
{
    struct denial *x = &scene.denied;

    (void)e;
    (void)id;
    assert_int_equal(type, MSG_DENIED);
    assert_int_equal(denial_decode(reader_over(payload, len), x), 0);
    (void)snprintf(scene.denied_address, sizeof scene.denied_address, "%s", x->address);
    (void)snprintf(scene.denied_name, sizeof scene.denied_name, "%s", x->name);
    (void)snprintf(scene.denied_reason, sizeof scene.denied_reason, "%s", x->reason);
    scene.n_denied++;
}

enum own_address_answer own_address_ask(struct own_address *o, const struct address *a)
{
    char text[ADDRESS_TEXT_BYTES];

    (void)o;
    address_format(a, text);
    return strcmp(text, scene.own) == 0        ? ADDRESS_OWN
           : strcmp(text, scene.no_route) == 0 ? ADDRESS_NO_ROUTE
                                               : ADDRESS_ELSEWHERE;
}

/* Repeats the question, in capitals; one that starts with '-' is not answered. */
size_t dns_server_ask(struct dns_server *s, const struct datagram_ends *ends, const uint8_t *msg,
                      size_t len, uint8_t *buf, size_t size)
{
    (void)s;
    assert_int_equal(ends->to_port, 53);
    assert_true(len <= size);
    scene.n_asked++;
    for (size_t i = 0; i < len; i++)
        buf[i] = msg[i] >= 'a' && msg[i] <= 'z' ? (uint8_t)(msg[i] - 'a' + 'A') : msg[i];
    return len > 0 && msg[0] == '-' ? 0 : len;
}

/* ---- the two networks ---- */

static int this_network(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int make_all_addresses_local(void)
{
    uint8_t buf[256];
    struct netlink_batch b;
    uint32_t failed;
    _cleanup_fd_ int fd = netlink_open(NETLINK_ROUTE);

    netlink_batch_init(&b, buf, sizeof buf);
    routes_put(&b, (int)if_nametoindex("lo"));
    return netlink_request(fd, &b, b.sequence, &failed);
}

static int make_inside(struct egress *e)
{
    static struct policy_interval v4, v6;
    static uint16_t ports[] = {443};
    struct policy_reach reach = {.pool = e->pool,
                                 .names = true,
                                 .v4 = &v4,
                                 .v6 = &v6,
                                 .n_v4 = 1,
                                 .n_v6 = 1,
                                 .ports = ports,
                                 .n_ports = 1};
    struct error err = ERROR_INIT;

    memset(v4.last, 223, 4); /* what is above is refused by the kernel */
    memset(v6.last, 0xFF, 16);
    v6.first[0] = 1; /* not ::1 */
    if (unshare(CLONE_NEWNET) < 0 || network_loopback_up() < 0)
        return -1;
    int r = inside_network_open(&reach, e->inside, &err);
    if (r < 0)
        print_error("%s: %s\n", err.context, err.message);
    return r < 0 ? r : this_network();
}

static int make_networks(void **state)
{
    static const char *const hosts[] = {"example.org"};
    static const char *const ranges[] = {"203.0.113.0/24", "203.0.113.5", "2001:db8::/32"};
    const struct policy_input in = {
        .block_network = true,
        .allow_egress_to = {.items = hosts, .n = 1},
        .allow_egress_to_cidrs = {.items = ranges, .n = ARRAY_SIZE(ranges)}};
    struct problems problems = {0};
    struct error err = ERROR_INIT;
    struct rlimit files;

    *state = &scene;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (policy_build(&in, &scene.e.policy, &problems) < 0 ||
        policy_pool_choose(&scene.e.policy, &scene.e.pool, &err) < 0 ||
        names_init(&scene.e.names, &scene.e.pool) < 0 || loop_init(&scene.e.loop) < 0 ||
        unshare(CLONE_NEWUSER) < 0)
        return -1;
    problems_done(&problems);
    denials_init(&scene.e.denials, &scene.e);
    scene.inside = make_inside(&scene.e);
    if (scene.inside < 0 || unshare(CLONE_NEWNET) < 0 || network_loopback_up() < 0)
        return -1;
    scene.outside = this_network();
    return scene.outside < 0 ? -1 : make_all_addresses_local();
}

static int drop_networks(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < INSIDE__MAX; i++)
        fd_closep(&s->e.inside[i]);
    fd_closep(&s->inside);
    fd_closep(&s->outside);
    denials_end(&s->e.denials);
    names_done(&s->e.names);
    policy_done(&s->e.policy);
    loop_done(&s->e.loop);
    return 0;
}

static int start(void **state)
{
    struct scene *s = *state = &scene;

    s->n_denied = s->n_asked = 0;
    s->own[0] = s->no_route[0] = '\0';
    s->e.proxy.set = false;
    denials_end(&s->e.denials);
    denials_init(&s->e.denials, &s->e);
    if (datagrams_init(&s->e.datagrams, &s->e) < 0)
        return -1;
    return datagrams_listen(&s->e.datagrams, s->e.inside[INSIDE_UDP4], s->e.inside[INSIDE_UDP6]);
}

static int end(void **state)
{
    struct scene *s = *state;

    datagrams_done(&s->e.datagrams);
    return loop_turn(&s->e.loop, 0); /* frees the flows */
}

/* ---- programs and servers ---- */

union socket_name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool is_v6(const char *address)
{
    return strchr(address, ':') != NULL;
}

static socklen_t name_of(const char *address, uint16_t port, union socket_name *ret)
{
    struct address a;

    assert_int_equal(address_parse(address, strlen(address), &a), ADDRESS_GOOD);
    memset(ret, 0, sizeof *ret);
    if (a.family == ADDRESS_V4) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons(port);
        memcpy(&ret->v4.sin_addr, a.bytes, 4);
        return sizeof ret->v4;
    }
    ret->v6.sin6_family = AF_INET6;
    ret->v6.sin6_port = htons(port);
    memcpy(&ret->v6.sin6_addr, a.bytes, 16);
    return sizeof ret->v6;
}

static int udp_socket(bool v6)
{
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    return fd;
}

static int program(const struct scene *s, bool v6)
{
    assert_int_equal(setns(s->inside, CLONE_NEWNET), 0);
    int fd = udp_socket(v6);
    assert_int_equal(setns(s->outside, CLONE_NEWNET), 0);
    return fd;
}

/* Connected, so that it hears of errors. */
static int program_to(const struct scene *s, const char *address, uint16_t port)
{
    int fd = program(s, is_v6(address));
    union socket_name n;
    socklen_t len = name_of(address, port, &n);

    assert_int_equal(connect(fd, &n.any, len), 0);
    return fd;
}

static int server(const char *address, uint16_t port)
{
    int fd = udp_socket(is_v6(address)), on = 1;
    union socket_name n;
    socklen_t len = name_of(address, port, &n);

    /* A route makes an address local; that is enough for IPv4, and IPv6 wants it at an interface */
    if (is_v6(address))
        assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on), 0);
    assert_int_equal(bind(fd, &n.any, len), 0);
    return fd;
}

static void run_until_ready(struct scene *s, int fd)
{
    uint64_t until = clock_after_us(PATIENCE_US);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (poll(&p, 1, 0) == 0 && clock_now_us() < until)
        assert_int_equal(loop_turn(&s->e.loop, clock_after_us(1000)), 0);
    assert_true(p.revents != 0);
}

static void run_until_denied(struct scene *s, unsigned n)
{
    uint64_t until = clock_after_us(PATIENCE_US);

    while (s->n_denied < n && clock_now_us() < until)
        assert_int_equal(loop_turn(&s->e.loop, clock_after_us(1000)), 0);
    assert_int_equal(s->n_denied, n);
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
}

static void assert_receives(struct scene *s, int fd, const char *text)
{
    char buf[64];

    run_until_ready(s, fd);
    ssize_t n = recv(fd, buf, sizeof buf, 0);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(buf, text, strlen(text));
}

/* That an error comes back: nobody is there. */
static void assert_unreachable(struct scene *s, int fd)
{
    char c;

    run_until_ready(s, fd);
    assert_int_equal(recv(fd, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

static void send_back(struct scene *s, int fd)
{
    static uint8_t buf[DATAGRAM_MAX + 1];
    union socket_name from;
    socklen_t len = sizeof from;

    run_until_ready(s, fd);
    ssize_t n = recvfrom(fd, buf, sizeof buf, 0, &from.any, &len);
    assert_true(n >= 0);
    assert_int_equal(sendto(fd, buf, (size_t)n, 0, &from.any, len), n);
}

/* ---- flows ---- */

static void answers_come_from_whom_was_asked(void **state)
{
    static const char *const addresses[] = {listed4, listed6};
    struct scene *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        _cleanup_fd_ int there = server(addresses[i], ECHO_PORT);
        _cleanup_fd_ int fd = program(s, is_v6(addresses[i]));
        union socket_name to, from;
        socklen_t len = name_of(addresses[i], ECHO_PORT, &to), from_len = sizeof from;
        char buf[8];

        assert_int_equal(sendto(fd, "hello", 5, 0, &to.any, len), 5);
        send_back(s, there);
        run_until_ready(s, fd);
        assert_int_equal(recvfrom(fd, buf, sizeof buf, 0, &from.any, &from_len), 5);
        assert_memory_equal(buf, "hello", 5);
        assert_int_equal(from_len, len);
        assert_memory_equal(&from, &to, len);
    }
    assert_int_equal(s->e.datagrams.n, 2);
    assert_int_equal(s->n_denied, 0);
}

/* The kernel drops what has a wrong sum, so what arrives had a right one. */
static void datagrams_of_every_size_pass_both_ways(void **state)
{
    static const size_t sizes[] = {0,     1,     2,     3,     511,   1472,        4097,
                                   32760, 32761, 65487, 65488, 65489, DATAGRAM_MAX};
    static const char *const addresses[] = {listed4, listed6};
    static uint8_t sent[DATAGRAM_MAX], got[DATAGRAM_MAX + 1];
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t a = 0; a < ARRAY_SIZE(addresses); a++) {
        _cleanup_fd_ int there = server(addresses[a], ECHO_PORT);
        _cleanup_fd_ int fd = program_to(s, addresses[a], ECHO_PORT);

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            sent[0] = (uint8_t)i; /* other bytes, other sums */
            assert_int_equal(send(fd, sent, sizes[i], 0), sizes[i]);
            send_back(s, there);
            run_until_ready(s, fd);
            assert_int_equal(recv(fd, got, sizeof got, 0), sizes[i]);
            assert_memory_equal(got, sent, sizes[i]);
        }
    }
    assert_true(s->e.datagrams.large);
}

static void two_programs_have_two_flows(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int there = server(listed4, ECHO_PORT);
    _cleanup_fd_ int a = program_to(s, listed4, ECHO_PORT), b = program_to(s, listed4, ECHO_PORT);

    send_text(a, "from a");
    send_back(s, there);
    send_text(b, "from b");
    send_back(s, there);
    assert_receives(s, a, "from a");
    assert_receives(s, b, "from b");
    assert_int_equal(s->e.datagrams.n, 2);
    send_text(a, "again"); /* no third one */
    send_back(s, there);
    assert_receives(s, a, "again");
    assert_int_equal(s->e.datagrams.n, 2);
}

static void a_port_where_nobody_is_says_so(void **state)
{
    static const char *const addresses[] = {listed4, listed6};
    struct scene *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        _cleanup_fd_ int fd = program_to(s, addresses[i], ECHO_PORT + 1);

        send_text(fd, "anybody?");
        assert_unreachable(s, fd);
        /* Somebody comes, and the same flow goes there. */
        _cleanup_fd_ int there = server(addresses[i], ECHO_PORT + 1);
        send_text(fd, "now?");
        send_back(s, there);
        assert_receives(s, fd, "now?");
    }
    assert_int_equal(s->n_denied, 0);
}

static void the_table_is_bounded_and_the_oldest_goes(void **state)
{
    enum { MORE = 20 };
    struct scene *s = *state;
    struct datagrams *d = &s->e.datagrams;
    _cleanup_fd_ int fd = program(s, false);
    uint64_t until = clock_after_us(PATIENCE_US);
    union socket_name to;
    socklen_t len = name_of(listed4, ECHO_PORT, &to);

    for (unsigned i = 0; i < DATAGRAM_FLOWS_MAX + MORE; i++) {
        to.v4.sin_port = htons((uint16_t)(ECHO_PORT + i));
        assert_int_equal(sendto(fd, "x", 1, 0, &to.any, len), 1);
        (void)!recv(fd, &(char){0}, 1, 0); /* an error of one before */
        assert_int_equal(loop_turn(&s->e.loop, 0), 0);
    }
    while (d->newest->ends.to_port < ECHO_PORT + DATAGRAM_FLOWS_MAX + MORE - 1 &&
           clock_now_us() < until)
        assert_int_equal(loop_turn(&s->e.loop, clock_after_us(1000)), 0);
    assert_true(d->n <= DATAGRAM_FLOWS_MAX);
    assert_true(d->n > DATAGRAM_FLOWS_MAX / 2); /* unless the host's limit of files is small */
    assert_int_equal(d->newest->ends.to_port, ECHO_PORT + DATAGRAM_FLOWS_MAX + MORE - 1);
    assert_true(d->oldest->ends.to_port >= ECHO_PORT + MORE);
    size_t n = 0;
    for (struct datagram_flow *f = d->oldest; f; f = f->newer)
        n++;
    assert_int_equal(n, d->n);
}

static void an_idle_flow_is_forgotten(void **state)
{
    struct scene *s = *state;
    struct datagrams *d = &s->e.datagrams;
    _cleanup_fd_ int there = server(listed4, ECHO_PORT);
    _cleanup_fd_ int a = program_to(s, listed4, ECHO_PORT), b = program_to(s, listed4, ECHO_PORT);

    send_text(a, "a");
    send_back(s, there);
    assert_receives(s, a, "a");
    send_text(b, "b");
    send_back(s, there);
    assert_receives(s, b, "b");
    assert_int_equal(d->n, 2);
    assert_true(d->sweep.set);
    d->oldest->used_at_us -= DATAGRAM_IDLE_US;
    assert_int_equal(d->sweep.due(&s->e.loop, &d->sweep), 0);
    assert_int_equal(d->n, 1);
    send_text(b, "still here");
    send_back(s, there);
    assert_receives(s, b, "still here");
    send_text(a, "anew");
    send_back(s, there);
    assert_receives(s, a, "anew");
    assert_int_equal(d->n, 2);
}

/* ---- refusals ---- */

static void assert_refused(struct scene *s, const char *address, uint16_t port, const char *reason)
{
    _cleanup_fd_ int fd = program_to(s, address, port);
    unsigned before = s->n_denied;

    send_text(fd, "may I?");
    assert_unreachable(s, fd);
    assert_int_equal(s->n_denied, before + 1);
    assert_int_equal(s->denied.protocol, DENIAL_UDP);
    assert_int_equal(s->denied.port, port);
    assert_int_equal(s->denied.bytes, 6);
    assert_string_equal(s->denied_address, address);
    if (!strstr(s->denied_reason, reason))
        fail_msg("'%s' is the reason, not '%s'", s->denied_reason, reason);
    assert_int_equal(s->e.datagrams.n, 0);
}

static void what_no_range_lists_is_refused_and_told(void **state)
{
    struct scene *s = *state;

    assert_refused(s, "192.0.2.1", 443, "no entry of allow_egress_to_cidrs lists 192.0.2.1");
    assert_refused(s, "2001:db9::1", 443, "no entry of allow_egress_to_cidrs lists 2001:db9::1");
}

static void a_name_is_not_reached_by_udp(void **state)
{
    struct scene *s = *state;
    char address[ADDRESS_TEXT_BYTES];
    struct host_name text;
    int r = 0;

    assert_int_equal(host_name_read("example.org", 11, &text), 0);
    struct name *x = names_add(&s->e.names, &text, false, &r);
    assert_non_null(x);
    for (unsigned i = 0; i < 2; i++) {
        struct address a = names_address(&s->e.names, x, i == 0 ? ADDRESS_V4 : ADDRESS_V6);

        address_format(&a, address);
        assert_refused(s, address, 444, "a name is reached by TCP");
        assert_string_equal(s->denied_name, "example.org");
    }
}

static void a_synthetic_address_of_nobody_is_refused(void **state)
{
    struct scene *s = *state;
    struct address a = s->e.pool.v4.base;
    char address[ADDRESS_TEXT_BYTES];

    a.bytes[2] = 99;
    address_format(&a, address);
    assert_refused(s, address, 444, "no name that was asked for has this address");
}

static void a_proxy_lets_no_udp_pass(void **state)
{
    struct scene *s = *state;

    s->e.proxy.set = true;
    assert_refused(s, listed4, ECHO_PORT, "UDP cannot pass the proxy");
}

static void the_hosts_own_address_is_refused_unless_it_is_listed_alone(void **state)
{
    struct scene *s = *state;
    struct policy closed = s->e.policy;

    (void)snprintf(s->own, sizeof s->own, "%s", "198.51.100.1");
    s->e.policy = (struct policy){.open = true};
    (void)snprintf(s->own, sizeof s->own, "%s", "8.8.4.4");
    assert_refused(s, "8.8.4.4", ECHO_PORT, "the host itself answers for this address");
    s->e.policy = closed;
    (void)snprintf(s->own, sizeof s->own, "%s", "203.0.113.6"); /* within a range is not enough */
    assert_refused(s, "203.0.113.6", ECHO_PORT, "the host itself answers for this address");
    (void)snprintf(s->own, sizeof s->own, "%s", listed4);
    _cleanup_fd_ int there = server(listed4, ECHO_PORT);
    _cleanup_fd_ int fd = program_to(s, listed4, ECHO_PORT);
    send_text(fd, "listed");
    send_back(s, there);
    assert_receives(s, fd, "listed");
}

static void an_address_without_a_way_is_no_refusal(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int fd = program_to(s, listed6, ECHO_PORT);

    (void)snprintf(s->no_route, sizeof s->no_route, "%s", listed6);
    send_text(fd, "lost");
    assert_unreachable(s, fd);
    assert_int_equal(s->n_denied, 0);
}

static void what_another_policy_forbids_is_cut(void **state)
{
    struct scene *s = *state;
    struct policy before = s->e.policy;
    _cleanup_fd_ int there = server(listed4, ECHO_PORT), there6 = server(listed6, ECHO_PORT);
    _cleanup_fd_ int fd = program_to(s, listed4, ECHO_PORT);
    _cleanup_fd_ int fd6 = program_to(s, listed6, ECHO_PORT);

    send_text(fd, "one");
    send_back(s, there);
    assert_receives(s, fd, "one");
    send_text(fd6, "six");
    send_back(s, there6);
    assert_receives(s, fd6, "six");
    assert_int_equal(datagrams_recheck(&s->e.datagrams), 0);
    s->e.policy.n_ranges = 1; /* that of IPv4 */
    assert_int_equal(datagrams_recheck(&s->e.datagrams), 1);
    assert_int_equal(s->e.datagrams.n, 1);
    send_text(fd6, "six?");
    assert_unreachable(s, fd6);
    send_text(fd, "two");
    send_back(s, there);
    assert_receives(s, fd, "two");
    s->e.policy = before;
}

static void a_source_that_is_not_loopback_is_not_served(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int there = server(listed4, ECHO_PORT);
    _cleanup_fd_ int odd = program(s, false), fd = program_to(s, listed4, ECHO_PORT);
    union socket_name own, to;
    socklen_t len = name_of("203.0.113.77", 5000, &own);

    assert_int_equal(bind(odd, &own.any, len), 0); /* every address is local inside */
    len = name_of(listed4, ECHO_PORT, &to);
    assert_int_equal(sendto(odd, "odd", 3, 0, &to.any, len), 3);
    len = name_of("192.0.2.53", 53, &to);
    assert_int_equal(sendto(odd, "odd question", 12, 0, &to.any, len), 12);
    send_text(fd, "even");
    assert_receives(s, there, "even"); /* the first that comes */
    assert_int_equal(s->e.datagrams.n, 1);
    assert_int_equal(s->n_asked, 0);
}

static void the_listener_itself_is_nobodys_destination(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int fd = program_to(s, "127.0.0.1", EGRESS_PORT);

    send_text(fd, "you?");
    assert_unreachable(s, fd);
    assert_int_equal(s->n_denied, 0);
}

/* What the kernel's rules refuse does not come this far, and is told all the same. */
static void the_kernels_refusals_are_read_from_its_log(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int fd = -EBADF;
    union socket_name to;

    assert_int_equal(denials_listen(&s->e.denials, s->e.inside[INSIDE_LOG]), 0);
    assert_int_equal(setns(s->inside, CLONE_NEWNET), 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setns(s->outside, CLONE_NEWNET), 0);
    socklen_t len = name_of("240.0.0.1", 8080, &to);
    assert_int_equal(connect(fd, &to.any, len), -1);
    assert_int_equal(errno, ECONNREFUSED);
    run_until_denied(s, 1);
    assert_int_equal(s->denied.protocol, DENIAL_TCP);
    assert_string_equal(s->denied_address, "240.0.0.1");
    assert_int_equal(s->denied.port, 8080);
    assert_int_equal(s->denied.dropped, 0);
}

/* ---- the resolver ---- */

static void port_53_of_any_address_is_the_resolver(void **state)
{
    static const char *const addresses[] = {"192.0.2.53", "2001:db9::53", "8.8.8.8"};
    struct scene *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        _cleanup_fd_ int fd = program_to(s, addresses[i], 53); /* hears that address only */

        send_text(fd, "who is it");
        assert_receives(s, fd, "WHO IS IT");
    }
    assert_int_equal(s->n_asked, 3);
    assert_int_equal(s->e.datagrams.n, 0);
}

static void a_batch_of_questions_is_answered_each_to_its_asker(void **state)
{
    enum { PROGRAMS = 8, EACH = 10 };
    struct scene *s = *state;
    int fds[PROGRAMS];
    char text[32];

    for (unsigned i = 0; i < PROGRAMS; i++)
        fds[i] = program_to(s, i % 2 == 0 ? "192.0.2.53" : "2001:db9::53", 53);
    for (unsigned k = 0; k < EACH; k++)
        for (unsigned i = 0; i < PROGRAMS; i++) {
            (void)snprintf(text, sizeof text, "%c%u to %u", i == 3 ? '-' : 'q', k, i);
            send_text(fds[i], text);
        }
    for (unsigned i = 0; i < PROGRAMS; i++)
        for (unsigned k = 0; k < EACH && i != 3; k++) {
            (void)snprintf(text, sizeof text, "Q%u TO %u", k, i);
            assert_receives(s, fds[i], text);
        }
    assert_int_equal(s->n_asked, PROGRAMS * EACH);
    assert_int_equal(recv(fds[3], text, sizeof text, 0), -1); /* not answered */
    for (unsigned i = 0; i < PROGRAMS; i++)
        (void)close(fds[i]);
}

static void port_53_of_a_listed_address_is_itself(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int there = server(listed4, 53);
    _cleanup_fd_ int fd = program_to(s, listed4, 53);

    send_text(fd, "who is it");
    send_back(s, there);
    assert_receives(s, fd, "who is it");
    assert_int_equal(s->n_asked, 0);
}

#define with_scene(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_scene(answers_come_from_whom_was_asked),
        with_scene(datagrams_of_every_size_pass_both_ways),
        with_scene(two_programs_have_two_flows),
        with_scene(a_port_where_nobody_is_says_so),
        with_scene(the_table_is_bounded_and_the_oldest_goes),
        with_scene(an_idle_flow_is_forgotten),
        with_scene(what_no_range_lists_is_refused_and_told),
        with_scene(a_name_is_not_reached_by_udp),
        with_scene(a_synthetic_address_of_nobody_is_refused),
        with_scene(a_proxy_lets_no_udp_pass),
        with_scene(the_hosts_own_address_is_refused_unless_it_is_listed_alone),
        with_scene(an_address_without_a_way_is_no_refusal),
        with_scene(what_another_policy_forbids_is_cut),
        with_scene(a_source_that_is_not_loopback_is_not_served),
        with_scene(the_listener_itself_is_nobodys_destination),
        with_scene(the_kernels_refusals_are_read_from_its_log),
        with_scene(port_53_of_any_address_is_the_resolver),
        with_scene(a_batch_of_questions_is_answered_each_to_its_asker),
        with_scene(port_53_of_a_listed_address_is_itself),
    };

    return cmocka_run_group_tests(tests, make_networks, drop_networks);
}
