/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dialling with real sockets, in a network namespace of the test's own: loopback, an address that
 * looks public and is the host's own, and a network (a pair of veth) on which nobody answers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "egress/egress.h"
#include "base/guards.h"

#define OWN      "93.184.216.34" /* public by its looks */
#define SILENT   "198.51.100.2"  /* and .3, .4: of a network where nobody is */
#define SILENT6  "2001:db8:5::2"
#define LIMIT_US UINT64_C(20000000)

/* --- the namespace --- */

static int write_file(const char *path, const char *text)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* ip(8) with these words. */
static int ip(const char *words)
{
    char program[] = "ip", text[128], *argv[16] = {program}, *rest = NULL;
    int n = 1, status = -1;

    (void)snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[n++] = word;
    pid_t pid = fork();
    if (pid == 0) {
        (void)execvp("ip", argv);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static int enter_namespace(void **state)
{
    static const char *const words[] = {
        "link set lo up",
        ("addr add " OWN "/32 dev lo"),
        "link add v0 type veth peer name v1",
        "link set v0 up",
        "link set v1 up",
        "addr add 198.51.100.1/24 dev v0",
        "addr add 2001:db8:5::1/64 dev v0 nodad",
        "route add prohibit 203.0.113.0/24",
    };
    char uid_map[64], gid_map[64];

    (void)state;
    (void)snprintf(uid_map, sizeof uid_map, "0 %u 1", geteuid());
    (void)snprintf(gid_map, sizeof gid_map, "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
        print_message("this host does not let us make namespaces: %s\n", strerror(errno));
        return getenv("ATOLL_TESTS_MUST_RUN") ? -1 : (exit(77), -1);
    }
    if (write_file("/proc/self/setgroups", "deny") < 0 ||
        write_file("/proc/self/uid_map", uid_map) < 0 ||
        write_file("/proc/self/gid_map", gid_map) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (ip(words[i]) < 0) {
            print_message("ip %s failed\n", words[i]);
            return -1;
        }
    return 0;
}

/* --- the fixture --- */

struct fixture {
    struct egress *e;
    struct dial *d;
    unsigned n_done;
    enum dial_result result;
    int fd;
};

static void done(struct dial *d, enum dial_result result, int fd)
{
    struct fixture *f = d->owner;

    assert_int_equal(fd >= 0, result == DIAL_CONNECTED);
    f->n_done++;
    f->result = result;
    f->fd = fd;
}

static int start(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct policy nothing = {.open = false};
    struct error err = ERROR_INIT;

    if (!f || !(f->e = calloc(1, sizeof *f->e)) || !(f->d = calloc(1, sizeof *f->d)))
        return -1;
    f->fd = -EBADF;
    if (policy_pool_choose(&nothing, &f->e->pool, &err) < 0 || loop_init(&f->e->loop) < 0 ||
        names_init(&f->e->names, &f->e->pool) < 0 ||
        lookups_init(&f->e->lookups, f->e, -EBADF) < 0 || own_address_init(&f->e->own_address) < 0)
        return -1;
    *f->d = (struct dial){.egress = f->e, .port = 443, .owner = f, .done = done};
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    dial_cancel(f->d); /* harmless */
    lookups_done(&f->e->lookups);
    for (const struct name *x = f->e->names.oldest; x; x = x->newer)
        if (x->users != 0)
            return -1;
    if (f->e->loop.timers)
        return -1;
    fd_closep(&f->fd);
    names_done(&f->e->names);
    own_address_done(&f->e->own_address);
    policy_done(&f->e->policy);
    proxy_done(&f->e->proxy);
    loop_done(&f->e->loop);
    free(f->d);
    free(f->e);
    free(f);
    return 0;
}

/* A list of words, parted by blanks. */
struct words {
    char text[256];
    const char *items[16];
    struct policy_list list;
};

static struct policy_list split(struct words *w, const char *text)
{
    char *rest = NULL;

    (void)snprintf(w->text, sizeof w->text, "%s", text);
    for (char *word = strtok_r(w->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        w->items[w->list.n++] = word;
    w->list.items = w->items;
    return w->list;
}

static void set_policy(struct fixture *f, bool open, const char *ranges, const char *pins)
{
    struct words hosts = {.text = ""}, cidrs = {.text = ""}, adds = {.text = ""};
    struct problems problems = {0};
    struct policy_input in = {.block_network = !open, .add_hosts = split(&adds, pins)};

    *(open ? &in.private_cidrs : &in.allow_egress_to_cidrs) = split(&cidrs, ranges);
    if (!open)
        in.allow_egress_to = split(&hosts, "example.org");
    policy_done(&f->e->policy);
    assert_int_equal(policy_build(&in, &f->e->policy, &problems), 0);
    problems_done(&problems);
}

static struct address address(const char *text)
{
    struct address a;

    assert_int_equal(address_parse(text, strlen(text), &a), ADDRESS_GOOD);
    return a;
}

/* example.org, found at these addresses a moment ago. */
static void found_at(struct fixture *f, const char *texts, enum resolve_status status)
{
    struct resolve_address found[16];
    struct words w = {.text = ""};
    struct host_name name;
    int error = 0;

    (void)split(&w, texts);
    for (size_t i = 0; i < w.list.n; i++) {
        struct address a = address(w.items[i]);

        found[i].family = (uint8_t)a.family;
        memcpy(found[i].bytes, a.bytes, sizeof a.bytes);
    }
    assert_int_equal(host_name_read("example.org", 11, &name), 0);
    f->d->name = names_add(&f->e->names, &name, false, &error);
    assert_non_null(f->d->name);
    assert_int_equal(names_found(f->d->name, status, found, w.list.n, clock_after_us(LIMIT_US)), 0);
}

/* A listening socket; its port. */
static int listen_at(const char *text, uint16_t *ret_port)
{
    const struct address a = address(text);
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    bool is_v4 = a.family == ADDRESS_V4;
    socklen_t len = is_v4 ? sizeof v4 : sizeof v6;
    struct sockaddr *any = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&v4.sin_addr, a.bytes, 4);
    memcpy(&v6.sin6_addr, a.bytes, 16);
    assert_int_equal(bind(fd, any, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, any, &len), 0);
    *ret_port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
    return fd;
}

/* A port of loopback that nobody listens on. */
static uint16_t closed_port(void)
{
    uint16_t port;
    int fd = listen_at("127.0.0.1", &port);

    fd_closep(&fd);
    return port;
}

static void run(struct fixture *f)
{
    const uint64_t deadline_us = clock_after_us(LIMIT_US);

    while (f->n_done == 0 && clock_now_us() < deadline_us)
        assert_int_equal(loop_turn(&f->e->loop, deadline_us), 0);
    assert_int_equal(f->n_done, 1);
}

static void assert_connected_to(const struct fixture *f, const char *text)
{
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;
    const struct address a = address(text);
    const void *bytes = a.family == ADDRESS_V4
                            ? (const void *)&((struct sockaddr_in *)&peer)->sin_addr
                            : (const void *)&((struct sockaddr_in6 *)&peer)->sin6_addr;

    assert_int_equal(f->result, DIAL_CONNECTED);
    assert_int_equal(getpeername(f->fd, (struct sockaddr *)&peer, &len), 0);
    assert_int_equal(peer.ss_family, a.family == ADDRESS_V4 ? AF_INET : AF_INET6);
    assert_memory_equal(bytes, a.bytes, a.family == ADDRESS_V4 ? 4 : 16);
}

/* --- by name --- */

static void a_pin_is_connected_to_before_the_call_returns(void **state)
{
    struct fixture *f = *state;
    int on = 0;
    socklen_t len = sizeof on;
    _cleanup_fd_ int listener = listen_at("127.0.0.1", &f->d->port);

    assert_true(listener >= 0);
    set_policy(f, false, "", "example.org=127.0.0.1");
    found_at(f, OWN, RESOLVE_FOUND); /* what a look-up says does not matter then */
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_connected_to(f, "127.0.0.1");
    assert_int_equal(fcntl(f->fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(fcntl(f->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(getsockopt(f->fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    assert_int_equal(on, 1);
    assert_int_equal(f->d->name->users, 0);
}

static void the_next_pin_is_tried_when_one_refuses(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = listen_at("::1", &f->d->port);

    assert_true(listener >= 0);
    set_policy(f, false, "", "example.org=127.0.0.1 example.org=127.0.0.2 example.org=::1");
    found_at(f, "", RESOLVE_NOT_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_connected_to(f, "::1");
}

static void a_refusal_is_told_with_its_error(void **state)
{
    struct fixture *f = *state;

    f->d->port = closed_port();
    set_policy(f, false, "", "example.org=127.0.0.1");
    found_at(f, "", RESOLVE_NOT_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_int_equal(f->result, DIAL_FAILED);
    assert_int_equal(f->d->error, ECONNREFUSED);
}

static void what_a_look_up_says_is_told(void **state)
{
    struct fixture *f = *state;

    set_policy(f, false, "", "");
    found_at(f, "", RESOLVE_NOT_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_int_equal(f->result, DIAL_NOT_FOUND);
    found_at(f, "", RESOLVE_FAILED);
    dial_start(f->d);
    assert_int_equal(f->n_done, 2);
    assert_int_equal(f->result, DIAL_FAILED);
    assert_true(f->d->reason[0] != '\0');
}

static void addresses_that_the_policy_forbids_are_not_connected_to(void **state)
{
    static const char *const forbidden[] = {"127.0.0.1",       "::1",           "10.1.2.3",
                                            "169.254.169.254", "0.0.0.0",       "::ffff:127.0.0.1",
                                            "64:ff9b::7f00:1", "2002:7f00:1::", "fd00::1",
                                            "255.255.255.255", "224.0.0.1",     "fe80::1"};
    struct fixture *f = *state;
    _cleanup_fd_ int listener = listen_at("127.0.0.1", &f->d->port);

    assert_true(listener >= 0);
    for (unsigned open = 0; open < 2; open++)
        for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
            f->n_done = 0;
            set_policy(f, open != 0, "", "");
            found_at(f, forbidden[i], RESOLVE_FOUND);
            dial_start(f->d);
            assert_int_equal(f->n_done, 1);
            assert_int_equal(f->result, DIAL_FORBIDDEN);
            assert_false(f->d->judged_own);
            const struct address expected =
                address_unmapped(&(struct address[]){address(forbidden[i])}[0]);
            assert_true(address_equal(&f->d->judged, &expected));
        }
}

static void the_hosts_own_address_is_loopback_whatever_it_looks_like(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = listen_at(OWN, &f->d->port);

    assert_true(listener >= 0);
    for (unsigned open = 0; open < 2; open++) {
        f->n_done = 0;
        set_policy(f, open != 0, "", "");
        found_at(f, OWN, RESOLVE_FOUND);
        dial_start(f->d);
        assert_int_equal(f->n_done, 1);
        assert_int_equal(f->result, DIAL_FORBIDDEN);
        assert_true(f->d->judged_own);
    }
    f->n_done = 0;
    set_policy(f, false, OWN "/32", ""); /* but whoever lists it means it */
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_connected_to(f, OWN);
}

static void of_several_addresses_the_allowed_one_is_taken(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = listen_at("127.0.0.2", &f->d->port);

    assert_true(listener >= 0);
    set_policy(f, false, "127.0.0.2/32", "");
    found_at(f, "127.0.0.1 " OWN " 10.0.0.1 127.0.0.2", RESOLVE_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_connected_to(f, "127.0.0.2");
}

static void where_no_way_leads_nothing_is_tried(void **state)
{
    static const char *const texts[] = {"8.8.8.8", "203.0.113.9", "2606:4700::1"};
    struct fixture *f = *state;

    set_policy(f, false, "203.0.113.0/24", "");
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        f->n_done = 0;
        found_at(f, texts[i], RESOLVE_FOUND);
        dial_start(f->d);
        assert_int_equal(f->n_done, 1);
        assert_int_equal(f->result, DIAL_FAILED);
        assert_int_equal(f->d->error, ENETUNREACH);
    }
}

static void families_take_turns_and_the_first_comes_as_it_was_found(void **state)
{
    static const char *const expected[] = {SILENT, SILENT6, "198.51.100.3", "198.51.100.4"};
    struct fixture *f = *state;

    set_policy(f, false, "198.51.100.0/24 2001:db8:5::/64", "");
    found_at(f, SILENT " 198.51.100.3 198.51.100.4 " SILENT6, RESOLVE_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 0);
    assert_int_equal(f->d->n_addresses, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const struct address a = address(expected[i]);
        assert_true(address_equal(&f->d->addresses[i], &a));
    }
    assert_int_equal(f->d->next, 1);
    assert_int_equal(f->d->name->users, 1);
    dial_cancel(f->d);
    assert_int_equal(f->n_done, 0);
    assert_int_equal(f->d->name->users, 0);
}

static void a_silent_address_does_not_hold_up_the_next(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = listen_at("127.0.0.1", &f->d->port);
    uint64_t begin_us = clock_now_us();

    assert_true(listener >= 0);
    set_policy(f, false, "198.51.100.0/24 127.0.0.1/32", "");
    found_at(f, SILENT " 127.0.0.1", RESOLVE_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 0);
    run(f);
    assert_connected_to(f, "127.0.0.1");
    assert_true(clock_now_us() - begin_us >= DIAL_NEXT_US);
}

static void an_error_that_comes_later_is_told(void **state)
{
    struct fixture *f = *state;

    set_policy(f, false, "198.51.100.0/24", "");
    found_at(f, SILENT, RESOLVE_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 0);
    run(f); /* nobody answers there (ARP), which takes the kernel three seconds to find out */
    assert_int_equal(f->result, DIAL_FAILED);
    assert_int_equal(f->d->error, EHOSTUNREACH);
}

static void it_is_given_up_when_the_time_is_over(void **state)
{
    struct fixture *f = *state;

    set_policy(f, false, "198.51.100.0/24", "");
    found_at(f, SILENT, RESOLVE_FOUND);
    dial_start(f->d);
    assert_true(f->d->timer.deadline_us <= clock_after_us(DIAL_TIMEOUT_US));
    f->d->deadline_us = clock_now_us();
    loop_at(&f->e->loop, &f->d->timer, f->d->deadline_us);
    run(f);
    assert_int_equal(f->result, DIAL_FAILED);
    assert_int_equal(f->d->error, ETIMEDOUT);
}

static void a_name_is_looked_up_first(void **state)
{
    struct fixture *f = *state;
    struct resolve_answer x = {.status = RESOLVE_FOUND, .n = 1};
    uint8_t buf[RESOLVE_PACKET_MAX];
    char name[RESOLVE_NAME_MAX + 1];
    int pair[2];
    _cleanup_fd_ int listener = listen_at("127.0.0.1", &f->d->port);

    assert_true(listener >= 0);
    assert_int_equal(io_pair(pair), 0);
    _cleanup_fd_ int resolve = pair[1];
    assert_int_equal(lookups_init(&f->e->lookups, f->e, pair[0]), 0);
    set_policy(f, false, "127.0.0.1/32", "");
    found_at(f, "10.0.0.1", RESOLVE_FOUND);
    f->d->name->fresh_until_us = 0;
    dial_start(f->d);
    assert_int_equal(f->n_done, 0);
    ssize_t n = recv(resolve, buf, sizeof buf, 0);
    assert_int_equal(resolve_question_parse(buf, (size_t)n, &x.id, name), 0);
    x.addresses[0] = (struct resolve_address){.family = 4, .bytes = {127, 0, 0, 1}};
    n = (ssize_t)resolve_answer_encode(&x, buf, sizeof buf);
    assert_int_equal(send(resolve, buf, (size_t)n, 0), n);
    run(f);
    assert_connected_to(f, "127.0.0.1");
    f->n_done = 0;
    f->d->name->fresh_until_us = 0;
    dial_start(f->d); /* and given up while the question is out */
    dial_cancel(f->d);
    assert_int_equal(f->n_done, 0);
}

/* --- by address --- */

static void an_address_needs_a_range_or_an_open_network(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = listen_at(OWN, &f->d->port);
    static const struct {
        bool open;
        const char *ranges, *to;
        enum dial_result result;
        bool own;
    } cases[] = {
        {false, OWN "/32", OWN, DIAL_CONNECTED, false},
        {false, OWN "/32", "::ffff:" OWN, DIAL_CONNECTED, false},
        {false, "198.51.100.0/24", OWN, DIAL_FORBIDDEN, false},
        {false, "198.51.100.0/24", "8.8.8.8", DIAL_FORBIDDEN, false},
        {true, "", OWN, DIAL_FORBIDDEN, true},
        {true, "10.0.0.0/8", OWN, DIAL_FORBIDDEN, true},
        {true, "", "127.0.0.1", DIAL_FORBIDDEN, false},
        {true, "", "198.51.100.1", DIAL_FORBIDDEN, false},
        {true, "", "8.8.8.8", DIAL_FAILED, false}, /* allowed, but no way leads there */
    };

    assert_true(listener >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        f->n_done = 0;
        set_policy(f, cases[i].open, cases[i].ranges, "");
        f->d->addresses[0] = address(cases[i].to);
        f->d->judged_own = false;
        f->d->n_addresses = f->d->next = 0;
        f->d->judged = (struct address){.family = 0};
        dial_start(f->d);
        assert_int_equal(f->n_done, 1);
        assert_int_equal(f->result, cases[i].result);
        assert_int_equal(f->d->judged_own, cases[i].own);
        fd_closep(&f->fd);
    }
}

static void the_kernel_says_what_is_its_own(void **state)
{
    static const struct {
        const char *text;
        enum own_address_answer answer;
    } cases[] = {
        {"127.0.0.1", ADDRESS_OWN},
        {"127.9.9.9", ADDRESS_OWN},
        {"::1", ADDRESS_OWN},
        {OWN, ADDRESS_OWN},
        {"::ffff:" OWN, ADDRESS_OWN},
        {"198.51.100.1", ADDRESS_OWN},
        {"198.51.100.255", ADDRESS_OWN}, /* broadcast */

        {"2001:db8:5::1", ADDRESS_OWN},
        {SILENT, ADDRESS_ELSEWHERE},
        {SILENT6, ADDRESS_ELSEWHERE},
        {"8.8.8.8", ADDRESS_NO_ROUTE},
        {"2606:4700::1", ADDRESS_NO_ROUTE},
        {"203.0.113.1", ADDRESS_NO_ROUTE},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct address a = address(cases[i].text);

        if (own_address_ask(&f->e->own_address, &a) != cases[i].answer)
            fail_msg("%s", cases[i].text);
    }
    own_address_done(&f->e->own_address);
    const struct address elsewhere = address(SILENT);
    assert_int_equal(own_address_ask(&f->e->own_address, &elsewhere), ADDRESS_OWN);
}

/* --- through a proxy --- */

static int start_proxy(struct fixture *f)
{
    f->e->proxy = (struct proxy){.set = true, .n_addresses = 1};
    f->e->proxy.addresses[0] = address("127.0.0.1");
    return listen_at("127.0.0.1", &f->e->proxy.port);
}

/* Lets the dial go on until the proxy has its request. Return: the proxy's socket. */
static int accept_request(struct fixture *f, int listener, char *buf, size_t size)
{
    const uint64_t deadline_us = clock_after_us(LIMIT_US);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t n = 0;

    assert_true(fd >= 0);
    buf[0] = '\0';
    while (!strstr(buf, "\r\n\r\n") && clock_now_us() < deadline_us) {
        assert_int_equal(loop_turn(&f->e->loop, 0), 0);
        ssize_t more = recv(fd, buf + n, size - 1 - n, 0);
        n += more > 0 ? (size_t)more : 0;
        buf[n] = '\0';
    }
    return fd;
}

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void the_proxy_is_asked_for_the_name_itself(void **state)
{
    struct fixture *f = *state;
    static const char answer[] = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nVia: x\r\n\r\n";
    _cleanup_fd_ int listener = start_proxy(f);
    char buf[512];

    set_policy(f, false, "", "");
    found_at(f, "", RESOLVE_NOT_FOUND); /* here, which does not matter */
    f->d->port = 8443;
    dial_start(f->d);
    _cleanup_fd_ int fd = accept_request(f, listener, buf, sizeof buf);
    assert_string_equal(buf, "CONNECT example.org:8443 HTTP/1.1\r\nHost: example.org:8443\r\n\r\n");
    for (size_t i = 0; i + 1 < sizeof answer - 1; i++) { /* byte by byte */
        assert_int_equal(send(fd, answer + i, 1, 0), 1);
        assert_int_equal(loop_turn(&f->e->loop, 0), 0);
        assert_int_equal(f->n_done, 0);
    }
    put(fd, "\nSSH-2.0-x"); /* the last byte of the head, and the first of the server */
    run(f);
    assert_connected_to(f, "127.0.0.1");
    assert_int_equal(recv(f->fd, buf, sizeof buf, 0), 9);
    assert_memory_equal(buf, "SSH-2.0-x", 9);
    put(f->fd, "more");
    assert_int_equal(recv(fd, buf, sizeof buf, 0), 4);
    put(fd, "y"); /* one byte is enough again to wake a reader */
    assert_int_equal(io_wait(f->fd, POLLIN, clock_after_us(LIMIT_US)), 0);
}

static void a_dribbled_answer_does_not_spin(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = start_proxy(f);
    char buf[512];

    set_policy(f, false, "", "");
    found_at(f, "", RESOLVE_FOUND);
    dial_start(f->d);
    _cleanup_fd_ int fd = accept_request(f, listener, buf, sizeof buf);
    put(fd, "HTTP/1.1 200 O");
    assert_int_equal(loop_turn(&f->e->loop, clock_after_us(LIMIT_US)), 0);
    assert_int_equal(f->n_done, 0);
    assert_int_equal(io_wait(f->e->loop.epoll_fd, POLLIN, clock_after_us(50000)), -ETIMEDOUT);
    put(fd, "K\r\n\r\n");
    run(f);
    assert_int_equal(f->result, DIAL_CONNECTED);
}

static void the_proxy_is_asked_for_an_address_or_a_pin(void **state)
{
    static const struct {
        const char *ranges, *pins, *to, *line;
    } cases[] = {
        {"192.0.2.0/24", "", "192.0.2.9", "CONNECT 192.0.2.9:22 "}, /* no way leads there but his */
        {"2001:db8::/32", "", "2001:db8::9", "CONNECT [2001:db8::9]:22 "},
        {"", "example.org=10.0.0.9", NULL, "CONNECT 10.0.0.9:22 "},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_fd_ int listener = start_proxy(f);
        char buf[512];

        set_policy(f, false, cases[i].ranges, cases[i].pins);
        *f->d = (struct dial){.egress = f->e, .port = 22, .owner = f, .done = done};
        if (cases[i].to)
            f->d->addresses[0] = address(cases[i].to);
        else
            found_at(f, "", RESOLVE_FAILED);
        dial_start(f->d);
        _cleanup_fd_ int fd = accept_request(f, listener, buf, sizeof buf);
        assert_true(fd >= 0);
        assert_memory_equal(buf, cases[i].line, strlen(cases[i].line));
        dial_cancel(f->d);
    }
}

static void the_hosts_own_address_is_refused_through_a_proxy_too(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = start_proxy(f);

    assert_true(listener >= 0);
    set_policy(f, true, "", "");
    f->d->addresses[0] = address(OWN);
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_int_equal(f->result, DIAL_FORBIDDEN);
    assert_true(f->d->judged_own);
}

static void what_the_proxy_refuses_is_told(void **state)
{
    static const struct {
        const char *answer;
        int error;
        const char *words;
    } cases[] = {
        {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", EACCES, "407"},
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno.", EACCES, "403"},
        {"HTTP/1.0 502 Bad Gateway\r\n\r\n", EHOSTUNREACH, "502"},
        {"HTTP/1.1 504 Timeout\r\n\r\n", ETIMEDOUT, "504"},
        {"HTTP/1.1 302 Found\r\n\r\n", EHOSTUNREACH, "302"},
        {"SSH-2.0-OpenSSH_9.2\r\n", EPROTO, "no HTTP"},
        {"", ECONNRESET, "without an answer"},
        {"HTTP/1.1 200 O", EPROTO, "no whole head"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_fd_ int listener = start_proxy(f);
        char buf[512];

        f->n_done = 0;
        set_policy(f, false, "", "");
        *f->d = (struct dial){.egress = f->e, .port = 443, .owner = f, .done = done};
        found_at(f, "", RESOLVE_FOUND);
        dial_start(f->d);
        _cleanup_fd_ int fd = accept_request(f, listener, buf, sizeof buf);
        put(fd, cases[i].answer);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        run(f);
        assert_int_equal(f->result, DIAL_FAILED);
        assert_int_equal(f->d->error, cases[i].error);
        assert_non_null(strstr(f->d->reason, cases[i].words));
    }
}

static void a_proxy_that_is_not_there_is_told(void **state)
{
    struct fixture *f = *state;
    int listener = start_proxy(f);

    fd_closep(&listener);
    set_policy(f, false, "", "");
    found_at(f, "", RESOLVE_FOUND);
    dial_start(f->d);
    assert_int_equal(f->n_done, 1);
    assert_int_equal(f->result, DIAL_FAILED);
    assert_int_equal(f->d->error, ECONNREFUSED);
    assert_non_null(strstr(f->d->reason, "proxy"));
}

static void an_endless_head_of_the_proxy_is_refused(void **state)
{
    struct fixture *f = *state;
    _cleanup_fd_ int listener = start_proxy(f);
    char buf[4096];

    set_policy(f, false, "", "");
    found_at(f, "", RESOLVE_FOUND);
    dial_start(f->d);
    _cleanup_fd_ int fd = accept_request(f, listener, buf, sizeof buf);
    put(fd, "HTTP/1.1 200 OK\r\nX: ");
    memset(buf, 'x', sizeof buf);
    for (unsigned i = 0; i < 8 && f->n_done == 0; i++) {
        (void)send(fd, buf, sizeof buf, MSG_NOSIGNAL | MSG_DONTWAIT);
        assert_int_equal(loop_turn(&f->e->loop, 0), 0);
    }
    run(f);
    assert_int_equal(f->result, DIAL_FAILED);
    assert_int_equal(f->d->error, EPROTO);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_pin_is_connected_to_before_the_call_returns),
        CASE(the_next_pin_is_tried_when_one_refuses),
        CASE(a_refusal_is_told_with_its_error),
        CASE(what_a_look_up_says_is_told),
        CASE(addresses_that_the_policy_forbids_are_not_connected_to),
        CASE(the_hosts_own_address_is_loopback_whatever_it_looks_like),
        CASE(of_several_addresses_the_allowed_one_is_taken),
        CASE(where_no_way_leads_nothing_is_tried),
        CASE(families_take_turns_and_the_first_comes_as_it_was_found),
        CASE(a_silent_address_does_not_hold_up_the_next),
        CASE(an_error_that_comes_later_is_told),
        CASE(it_is_given_up_when_the_time_is_over),
        CASE(a_name_is_looked_up_first),
        CASE(an_address_needs_a_range_or_an_open_network),
        CASE(the_kernel_says_what_is_its_own),
        CASE(the_proxy_is_asked_for_the_name_itself),
        CASE(a_dribbled_answer_does_not_spin),
        CASE(the_proxy_is_asked_for_an_address_or_a_pin),
        CASE(the_hosts_own_address_is_refused_through_a_proxy_too),
        CASE(what_the_proxy_refuses_is_told),
        CASE(a_proxy_that_is_not_there_is_told),
        CASE(an_endless_head_of_the_proxy_is_refused),
    };

    return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
