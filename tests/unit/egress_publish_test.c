/* SPDX-License-Identifier: Apache-2.0 */
/* Published ports, with loopback of the test's own as both networks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "base/guards.h"

#define PATIENCE_US UINT64_C(20000000)

enum { PORTS = 2 };

struct scene {
    struct egress e;
    int inside[PORTS];                /* servers */
    uint16_t port[PORTS], out[PORTS]; /* inside and outside */
    unsigned n_asked;
    unsigned n_busy;      /* how often it was told … */
    uint32_t connections; /* … that there are so many */
};

static struct scene *the_scene;

/* In the place of keeper_link.c. */
void keeper_link_tell(struct egress *e, uint16_t type, uint32_t id, const void *payload, size_t len)
{
    (void)e;
    (void)id;
    if (type == MSG_BUSY) {
        assert_int_equal(
            number_decode(reader_over(payload, len), TAG_CONNECTIONS, &the_scene->connections), 0);
        the_scene->n_busy++;
        return;
    }
    assert_int_equal(type, MSG_SOCKETS);
    assert_int_equal(len, 0);
    the_scene->n_asked++;
}

static int listener(uint16_t *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return -1;
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static int start(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    int listeners[PORTS];

    *state = the_scene = s;
    if (!s || loop_init(&s->e.loop) < 0)
        return -1;
    for (size_t i = 0; i < PORTS; i++) {
        s->inside[i] = listener(&s->port[i]);
        listeners[i] = listener(&s->out[i]);
        if (s->inside[i] < 0 || listeners[i] < 0)
            return -1;
    }
    int r = publish_init(&s->e.publish, &s->e, listeners, PORTS, s->port);
    return r == 0 && listeners[0] == -EBADF && listeners[1] == -EBADF ? 0 : -1;
}

static int end(void **state)
{
    struct scene *s = *state;

    publish_done(&s->e.publish);
    assert_int_equal(loop_turn(&s->e.loop, 0), 0); /* frees the flows */
    pipes_done(&s->e.flows.pipes);
    loop_done(&s->e.loop);
    for (size_t i = 0; i < PORTS; i++)
        fd_closep(&s->inside[i]);
    free(s);
    return 0;
}

static void give_sockets(struct scene *s, size_t n)
{
    int fds[128];

    assert_true(n <= ARRAY_SIZE(fds));
    for (size_t i = 0; i < n; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fds[i] >= 0);
    }
    publish_sockets(&s->e.publish, fds, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(fds[i], -EBADF);
}

static int client(uint16_t port)
{
    const struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static bool is_ready(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void turn(struct scene *s)
{
    assert_int_equal(loop_turn(&s->e.loop, clock_after_us(1000)), 0);
}

static void run_until_ready(struct scene *s, int fd)
{
    uint64_t until = clock_after_us(PATIENCE_US);

    while (!is_ready(fd) && clock_now_us() < until)
        turn(s);
    assert_true(is_ready(fd));
}

static int accept_inside(struct scene *s, size_t i)
{
    run_until_ready(s, s->inside[i]);
    int fd = accept4(s->inside[i], NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void assert_passes(struct scene *s, int from, int to, const char *text)
{
    char buf[64] = "";

    assert_int_equal(send(from, text, strlen(text), 0), strlen(text));
    run_until_ready(s, to);
    assert_int_equal(recv(to, buf, sizeof buf - 1, 0), strlen(text));
    assert_string_equal(buf, text);
}

static void run_until_told(struct scene *s, unsigned n_busy)
{
    uint64_t until = clock_after_us(PATIENCE_US);

    while (s->n_busy < n_busy && clock_now_us() < until)
        turn(s);
    assert_int_equal(s->n_busy, n_busy);
}

static void the_first_connection_and_the_end_of_the_last_are_told(void **state)
{
    struct scene *s = *state;
    int outside[2], inside[2];

    give_sockets(s, 40);
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
            outside[i] = client(s->out[0]);
            inside[i] = accept_inside(s, 0);
        }
        run_until_told(s, 2 * round + 1);
        assert_int_equal(s->connections, 1);
        (void)close(outside[0]);
        (void)close(inside[0]);
        (void)close(outside[1]);
        while (s->e.publish.n > 1)
            turn(s);
        assert_int_equal(s->n_busy, 2 * round + 1); /* one is still there */
        (void)close(inside[1]);
        run_until_told(s, 2 * round + 2);
        assert_int_equal(s->connections, 0);
    }
}

static void a_connection_leads_to_its_port_inside(void **state)
{
    struct scene *s = *state;
    char c;

    give_sockets(s, 40);
    for (size_t i = 0; i < PORTS; i++) {
        _cleanup_fd_ int outside = client(s->out[i]);
        _cleanup_fd_ int inside = accept_inside(s, i);

        assert_passes(s, outside, inside, "a question");
        assert_passes(s, inside, outside, "an answer");
        assert_int_equal(shutdown(outside, SHUT_WR), 0); /* the other way stays open */
        run_until_ready(s, inside);
        assert_int_equal(recv(inside, &c, 1, 0), 0);
        assert_passes(s, inside, outside, "a late answer");
    }
    uint64_t until = clock_after_us(PATIENCE_US);
    while (s->e.publish.n > 0 && clock_now_us() < until)
        turn(s);
    assert_int_equal(s->e.publish.n, 0);
    assert_int_equal(s->n_asked, 0); /* enough are left */
}

static void without_a_socket_it_waits_and_asks(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int outside = client(s->out[0]);
    uint64_t until = clock_after_us(PATIENCE_US);

    while (s->n_asked == 0 && clock_now_us() < until)
        turn(s);
    assert_int_equal(s->n_asked, 1);
    assert_true(s->e.publish.ports[0].silent);
    for (unsigned i = 0; i < 20; i++)
        turn(s);
    assert_int_equal(s->n_asked, 1); /* once */
    assert_false(is_ready(s->inside[0]));
    give_sockets(s, 20);
    _cleanup_fd_ int inside = accept_inside(s, 0);
    assert_passes(s, inside, outside, "hello");
    assert_false(s->e.publish.ports[0].silent);
}

static void what_does_not_come_is_asked_for_again(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int outside = client(s->out[0]);
    uint64_t until = clock_after_us(PATIENCE_US);

    while (s->n_asked < 2 && clock_now_us() < until)
        turn(s);
    assert_int_equal(s->n_asked, 2);
    give_sockets(s, 1);
    _cleanup_fd_ int inside = accept_inside(s, 0);
    assert_passes(s, outside, inside, "at last");
}

static void more_are_asked_for_before_they_run_out(void **state)
{
    struct scene *s = *state;
    int outside[4], inside[4];

    give_sockets(s, PUBLISH_LOW + 2);
    for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
        outside[i] = client(s->out[0]);
        inside[i] = accept_inside(s, 0);
    }
    assert_int_equal(s->n_asked, 1);
    assert_int_equal(s->e.publish.n_sockets, PUBLISH_LOW - 2);
    give_sockets(s, 100); /* more than it holds: the rest is closed */
    assert_int_equal(s->e.publish.n_sockets, PUBLISH_SOCKETS);
    assert_int_equal(s->e.publish.n, ARRAY_SIZE(outside));
    for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
        assert_passes(s, outside[i], inside[i], "each its own");
        (void)close(outside[i]);
        (void)close(inside[i]);
    }
}

static void where_nobody_listens_the_client_gets_a_reset(void **state)
{
    struct scene *s = *state;
    char c;

    fd_closep(&s->inside[0]);
    give_sockets(s, 20);
    for (unsigned i = 0; i < 50; i++) { /* more than there are sockets: they are used again */
        _cleanup_fd_ int outside = client(s->out[0]);

        run_until_ready(s, outside);
        assert_int_equal(recv(outside, &c, 1, 0), -1);
        assert_int_equal(errno, ECONNRESET);
    }
    assert_int_equal(s->e.publish.n, 0);
    assert_int_equal(s->e.publish.n_sockets, 20);
    assert_int_equal(s->n_asked, 0);
    /* One that was refused so often still connects. */
    _cleanup_fd_ int outside = client(s->out[1]);
    _cleanup_fd_ int inside = accept_inside(s, 1);
    assert_passes(s, outside, inside, "open");
}

static void a_reset_inside_is_a_reset_outside(void **state)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct scene *s = *state;
    char c;

    give_sockets(s, 20);
    _cleanup_fd_ int outside = client(s->out[0]);
    int inside = accept_inside(s, 0);
    assert_passes(s, outside, inside, "x");
    assert_int_equal(setsockopt(inside, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    (void)close(inside);
    run_until_ready(s, outside);
    assert_int_equal(recv(outside, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    turn(s);
    assert_int_equal(s->e.publish.n, 0);
}

static void a_shortage_of_descriptors_passes(void **state)
{
    struct scene *s = *state;
    struct rlimit files, few;

    give_sockets(s, 20);
    _cleanup_fd_ int outside = client(s->out[0]);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    few = files;
    few.rlim_cur = 3; /* below what is open: no other can be made */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    uint64_t until = clock_after_us(PATIENCE_US);
    while (!s->e.publish.ports[0].silent && clock_now_us() < until)
        (void)loop_turn(&s->e.loop, clock_after_us(1000));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(s->e.publish.ports[0].silent);
    _cleanup_fd_ int inside = accept_inside(s, 0);
    assert_passes(s, outside, inside, "after all");
}

static void a_full_table_waits_for_an_end(void **state)
{
    struct scene *s = *state;

    give_sockets(s, 20);
    s->e.publish.n += PUBLISH_CONNECTIONS_MAX - 1; /* as if so many were there */
    _cleanup_fd_ int outside = client(s->out[0]), other = client(s->out[0]);
    int inside = accept_inside(s, 0);
    assert_passes(s, outside, inside, "the last one");
    for (unsigned i = 0; i < 20; i++)
        turn(s);
    assert_false(is_ready(s->inside[0]));
    assert_true(s->e.publish.ports[0].silent);
    fd_closep(&outside);
    fd_closep(&inside);
    _cleanup_fd_ int after = accept_inside(s, 0);
    assert_passes(s, other, after, "and the next");
    s->e.publish.n -= PUBLISH_CONNECTIONS_MAX - 1;
    assert_int_equal(s->e.publish.n, 1);
}

#define with_scene(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_scene(the_first_connection_and_the_end_of_the_last_are_told),
        with_scene(a_connection_leads_to_its_port_inside),
        with_scene(without_a_socket_it_waits_and_asks),
        with_scene(what_does_not_come_is_asked_for_again),
        with_scene(more_are_asked_for_before_they_run_out),
        with_scene(where_nobody_listens_the_client_gets_a_reset),
        with_scene(a_reset_inside_is_a_reset_outside),
        with_scene(a_shortage_of_descriptors_passes),
        with_scene(a_full_table_waits_for_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
