/* SPDX-License-Identifier: Apache-2.0 */
/* Relays between TCP sockets of loopback: ends in both orders, resets, full sockets, many bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/relay.h"
#include "base/guards.h"

enum { CLIENT, SERVER };
#define LIMIT_US UINT64_C(30000000)

struct fixture {
    struct loop loop;
    struct pipes pipes;
    struct relay relay;
    int ends[2]; /* of the program inside, and of the server */
    bool over;
    int error;
    unsigned asked; /* how often a paused way was */
};

static void pair(int ret[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    _cleanup_fd_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(bind(listener, (struct sockaddr *)&a, sizeof a), errno);
    assert_return_code(listen(listener, 1), errno);
    assert_return_code(getsockname(listener, (struct sockaddr *)&a, &len), errno);
    ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(connect(ret[0], (struct sockaddr *)&a, sizeof a), errno);
    ret[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(ret[1] >= 0);
    assert_return_code(fcntl(ret[0], F_SETFL, O_NONBLOCK), errno);
}

static void over(struct relay *r, int error)
{
    struct fixture *x = r->owner;

    assert_false(x->over);
    x->over = true;
    x->error = error;
    relay_stop(r, error != 0);
}

static int set_up(void **state)
{
    struct fixture *x = calloc(1, sizeof *x);
    int inside[2], outside[2];

    (void)signal(SIGPIPE, SIG_IGN);
    assert_non_null(x);
    assert_int_equal(loop_init(&x->loop), 0);
    pair(inside);
    pair(outside);
    x->ends[CLIENT] = inside[0];
    x->ends[SERVER] = outside[0];
    x->relay = (struct relay){.loop = &x->loop,
                              .pipes = &x->pipes,
                              .fds = {inside[1], outside[1]},
                              .owner = x,
                              .over = over};
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *x = *state;

    relay_stop(&x->relay, true);
    fd_closep(&x->ends[0]);
    fd_closep(&x->ends[1]);
    pipes_done(&x->pipes);
    loop_done(&x->loop);
    free(x);
    return 0;
}

static void turn(struct fixture *x)
{
    assert_int_equal(loop_turn(&x->loop, clock_after_us(1000)), 0);
}

/* Waits until @end has an answer for recv(2); returns that, and errno with -1. */
static ssize_t receive(struct fixture *x, int end, void *buf, size_t size)
{
    uint64_t deadline = clock_after_us(LIMIT_US);
    ssize_t n;

    while ((n = recv(x->ends[end], buf, size, MSG_DONTWAIT)) < 0 && errno == EAGAIN) {
        assert_true(clock_now_us() < deadline);
        turn(x);
    }
    return n;
}

static void expect_text(struct fixture *x, int end, const char *text)
{
    char buf[64];

    assert_int_equal(receive(x, end, buf, sizeof buf), strlen(text));
    assert_memory_equal(buf, text, strlen(text));
}

static void expect_end(struct fixture *x, int end)
{
    char byte;

    assert_int_equal(receive(x, end, &byte, 1), 0);
}

static void expect_reset(struct fixture *x, int end)
{
    char byte;

    assert_int_equal(receive(x, end, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
}

/* After an end recv(2) goes on to say "end"; that it was broken off shows as an error. */
static void expect_broken(struct fixture *x, int end)
{
    uint64_t deadline = clock_after_us(LIMIT_US);
    int error = 0;
    socklen_t len = sizeof error;

    while (error == 0 && clock_now_us() < deadline) {
        turn(x);
        assert_return_code(getsockopt(x->ends[end], SOL_SOCKET, SO_ERROR, &error, &len), errno);
    }
    assert_true(error == EPIPE || error == ECONNRESET);
    assert_true(x->over);
    assert_true(x->error < 0);
}

static void put(struct fixture *x, int end, const char *text)
{
    assert_int_equal(send(x->ends[end], text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void reset(struct fixture *x, int end)
{
    struct linger now = {.l_onoff = 1};

    assert_return_code(setsockopt(x->ends[end], SOL_SOCKET, SO_LINGER, &now, sizeof now), errno);
    fd_closep(&x->ends[end]);
}

static void wait_over(struct fixture *x)
{
    uint64_t deadline = clock_after_us(LIMIT_US);

    while (!x->over) {
        assert_true(clock_now_us() < deadline);
        turn(x);
    }
}

/* --- ends --- */

static void half_close(struct fixture *x, int first)
{
    assert_int_equal(relay_start(&x->relay), 0);
    put(x, first, "request");
    assert_return_code(shutdown(x->ends[first], SHUT_WR), errno);
    expect_text(x, !first, "request");
    expect_end(x, !first);
    assert_false(x->over);
    put(x, !first, "the answer comes after the end");
    expect_text(x, first, "the answer comes after the end");
    assert_return_code(shutdown(x->ends[!first], SHUT_WR), errno);
    expect_end(x, first);
    wait_over(x);
    assert_int_equal(x->error, 0);
    assert_int_equal(x->relay.ways[first].bytes, 7);
}

static void an_end_of_the_client_leaves_the_answer_open(void **state)
{
    half_close(*state, CLIENT);
}

static void an_end_of_the_server_leaves_the_requests_open(void **state)
{
    half_close(*state, SERVER);
}

static void bytes_that_came_before_the_start_go_on(void **state)
{
    struct fixture *x = *state;

    put(x, CLIENT, "early");
    fd_closep(&x->ends[CLIENT]);
    assert_int_equal(relay_start(&x->relay), 0);
    expect_text(x, SERVER, "early");
    expect_end(x, SERVER);
}

/* --- resets --- */

static void a_reset_becomes_a_reset(struct fixture *x, int from)
{
    assert_int_equal(relay_start(&x->relay), 0);
    put(x, from, "last words");
    expect_text(x, !from, "last words");
    reset(x, from);
    expect_reset(x, !from);
    assert_true(x->over);
    assert_true(x->error < 0);
}

static void a_reset_of_the_client_reaches_the_server(void **state)
{
    a_reset_becomes_a_reset(*state, CLIENT);
}

static void a_reset_of_the_server_reaches_the_client(void **state)
{
    a_reset_becomes_a_reset(*state, SERVER);
}

static void bytes_before_a_reset_arrive_and_no_end_follows_them(void **state)
{
    struct fixture *x = *state;

    assert_int_equal(relay_start(&x->relay), 0);
    put(x, CLIENT, "unread"); /* closing over unread bytes resets (RFC 1122, 4.2.2.13) */
    turn(x);
    turn(x);
    put(x, SERVER, "answer");
    fd_closep(&x->ends[SERVER]);
    wait_over(x);
    assert_int_equal(x->error, -ECONNRESET);
    expect_text(x, CLIENT, "answer");
    expect_reset(x, CLIENT);
}

static void a_reset_after_an_end_is_a_reset(void **state)
{
    struct fixture *x = *state;

    assert_int_equal(relay_start(&x->relay), 0);
    assert_return_code(shutdown(x->ends[SERVER], SHUT_WR), errno);
    expect_end(x, CLIENT);
    reset(x, SERVER);
    expect_broken(x, CLIENT);
}

static void writing_to_one_who_has_gone_resets(void **state)
{
    struct fixture *x = *state;

    assert_int_equal(relay_start(&x->relay), 0);
    fd_closep(&x->ends[SERVER]); /* an end for all that one can see */
    expect_end(x, CLIENT);
    put(x, CLIENT, "anybody?");
    expect_broken(x, CLIENT);
}

/* --- many bytes --- */

/* The byte at a place of a stream; the two streams differ. */
static uint8_t byte_at(uint64_t place, int stream)
{
    uint64_t x = (place / 8 + 1 + (uint64_t)stream) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint8_t)(x >> (8 * (place % 8)));
}

struct stream {
    uint64_t sent, received, total;
    bool ended;
};

enum { CHUNK = 100000 };

static void send_some(struct fixture *x, int from, struct stream *s)
{
    static uint8_t buf[CHUNK];
    size_t n = s->total - s->sent < sizeof buf ? s->total - s->sent : sizeof buf;

    for (size_t i = 0; i < n; i++)
        buf[i] = byte_at(s->sent + i, from);
    ssize_t done = n == 0 ? 0 : send(x->ends[from], buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0)
        assert_int_equal(errno, EAGAIN);
    else if ((s->sent += (uint64_t)done) == s->total && n > 0)
        assert_return_code(shutdown(x->ends[from], SHUT_WR), errno);
}

static void receive_some(struct fixture *x, int from, struct stream *s)
{
    static uint8_t buf[CHUNK];
    ssize_t n = recv(x->ends[!from], buf, sizeof buf, MSG_DONTWAIT);

    if (n < 0)
        assert_int_equal(errno, EAGAIN);
    for (ssize_t i = 0; i < n; i++)
        if (buf[i] != byte_at(s->received + (uint64_t)i, from))
            fail_msg("byte %llu is another", (unsigned long long)s->received + (size_t)i);
    s->received += n > 0 ? (uint64_t)n : 0;
    s->ended = s->ended || n == 0;
}

static void transfer(struct fixture *x, struct stream s[2])
{
    uint64_t deadline = clock_after_us(LIMIT_US);

    while (!s[0].ended || !s[1].ended) {
        assert_true(clock_now_us() < deadline);
        for (int from = 0; from < 2; from++) {
            send_some(x, from, &s[from]);
            receive_some(x, from, &s[from]);
        }
        assert_int_equal(loop_turn(&x->loop, 0), 0);
    }
    for (int from = 0; from < 2; from++)
        assert_int_equal(s[from].received, s[from].total);
}

static void a_hundred_million_bytes_arrive_as_they_were_both_ways(void **state)
{
    struct fixture *x = *state;
    struct stream s[2] = {{.total = 100000000}, {.total = 100000001}};

    assert_int_equal(relay_start(&x->relay), 0);
    transfer(x, s);
    wait_over(x);
    assert_int_equal(x->error, 0);
}

static void many_bytes_arrive_without_a_descriptor_for_a_pipe(void **state)
{
    struct fixture *x = *state;
    struct stream s[2] = {{.total = 5000000}, {.total = 5000001}};
    struct rlimit was, none;

    assert_int_equal(relay_start(&x->relay), 0);
    assert_return_code(getrlimit(RLIMIT_NOFILE, &was), errno);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = was.rlim_max};
    assert_return_code(setrlimit(RLIMIT_NOFILE, &none), errno);
    transfer(x, s);
    wait_over(x);
    assert_return_code(setrlimit(RLIMIT_NOFILE, &was), errno);
    assert_int_equal(x->error, 0);
    assert_int_equal(x->pipes.n_idle, 0);
}

static void a_reader_that_is_slow_holds_the_writer_back(void **state)
{
    struct fixture *x = *state;
    struct stream s = {.total = UINT64_C(1) << 40};
    uint64_t before, turns = 0;

    assert_int_equal(relay_start(&x->relay), 0);
    do { /* until nothing moves any more */
        before = s.sent;
        for (unsigned i = 0; i < 100; i++) {
            send_some(x, CLIENT, &s);
            assert_int_equal(loop_turn(&x->loop, 0), 0);
        }
    } while (s.sent > before);
    assert_true(s.sent < UINT64_C(200) << 20);
    assert_true(x->relay.ways[0].in_pipe > 0);
    /* And nobody turns in circles while it waits. */
    for (uint64_t until = clock_after_us(100000); clock_now_us() < until; turns++)
        assert_int_equal(loop_turn(&x->loop, until), 0);
    assert_true(turns < 20);
    assert_return_code(shutdown(x->ends[CLIENT], SHUT_WR), errno);
    while (!s.ended) {
        receive_some(x, CLIENT, &s);
        assert_int_equal(loop_turn(&x->loop, 0), 0);
    }
    assert_int_equal(s.received, s.sent);
}

static void small_writes_arrive_one_by_one(void **state)
{
    struct fixture *x = *state;

    assert_int_equal(relay_start(&x->relay), 0);
    for (unsigned i = 0; i < 2000; i++) {
        char text[2] = {(char)('a' + i % 26), 0};

        put(x, i % 2, text);
        expect_text(x, !(i % 2), text);
    }
    assert_int_equal(x->relay.ways[0].in_pipe, 0);
    assert_int_equal(x->pipes.n_idle, 1);
}

/* More segments than a pipe has room for, each with a byte of its own. */
static void many_tiny_segments_at_once_arrive(void **state)
{
    struct fixture *x = *state;
    struct stream s = {.total = 500};

    for (; s.sent < s.total; s.sent++) {
        uint8_t byte = byte_at(s.sent, CLIENT);

        assert_int_equal(send(x->ends[CLIENT], &byte, 1, 0), 1);
    }
    assert_int_equal(relay_start(&x->relay), 0);
    while (s.received < s.total) {
        receive_some(x, CLIENT, &s);
        turn(x);
    }
    assert_false(s.ended);
}

/* --- paused ways --- */

static int count_asked(struct relay *r, unsigned way)
{
    struct fixture *x = r->owner;

    assert_int_equal(way, 0);
    x->asked += r->ways[way].readable;
    r->ways[way].readable = false;
    return 0;
}

static void a_paused_way_is_asked_about_and_goes_on_when_told(void **state)
{
    struct fixture *x = *state;
    char byte;

    x->relay.paused[0] = true;
    x->relay.paused_ready = count_asked;
    assert_int_equal(relay_start(&x->relay), 0);
    put(x, SERVER, "greeting");
    expect_text(x, CLIENT, "greeting");
    assert_int_equal(x->asked, 0);
    put(x, CLIENT, "hello");
    while (x->asked == 0)
        turn(x);
    assert_int_equal(recv(x->ends[SERVER], &byte, 1, MSG_DONTWAIT), -1);
    relay_resume(&x->relay, 0);
    expect_text(x, SERVER, "hello");
}

static void a_stop_with_a_reset_resets_both(void **state)
{
    struct fixture *x = *state;

    assert_int_equal(relay_start(&x->relay), 0);
    turn(x);
    relay_stop(&x->relay, true);
    relay_stop(&x->relay, true);
    expect_reset(x, CLIENT);
    expect_reset(x, SERVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        ROW(an_end_of_the_client_leaves_the_answer_open),
        ROW(an_end_of_the_server_leaves_the_requests_open),
        ROW(bytes_that_came_before_the_start_go_on),
        ROW(a_reset_of_the_client_reaches_the_server),
        ROW(a_reset_of_the_server_reaches_the_client),
        ROW(bytes_before_a_reset_arrive_and_no_end_follows_them),
        ROW(a_reset_after_an_end_is_a_reset),
        ROW(writing_to_one_who_has_gone_resets),
        ROW(a_hundred_million_bytes_arrive_as_they_were_both_ways),
        ROW(many_bytes_arrive_without_a_descriptor_for_a_pipe),
        ROW(a_reader_that_is_slow_holds_the_writer_back),
        ROW(small_writes_arrive_one_by_one),
        ROW(many_tiny_segments_at_once_arrive),
        ROW(a_paused_way_is_asked_about_and_goes_on_when_told),
        ROW(a_stop_with_a_reset_resets_both),
#undef ROW
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
