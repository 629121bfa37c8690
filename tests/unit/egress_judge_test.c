/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may send to a name: ClientHellos on 443 and elsewhere, requests on 80. */
#include "egress_fixture.h"

#include "wire/tls_hello.h"
#include "base/guards.h"

/* --- ClientHellos --- */

struct hello_bytes {
    uint8_t at[4096];
    size_t n;
};

static void number(struct hello_bytes *h, size_t value, unsigned bytes)
{
    while (bytes-- > 0)
        h->at[h->n++] = (uint8_t)(value >> 8 * bytes);
}

static void text(struct hello_bytes *h, const char *s)
{
    memcpy(h->at + h->n, s, strlen(s));
    h->n += strlen(s);
}

/* RFC 8446, 4.1.2, in one record; @name NULL: without a server name; @ech: with that extension. */
static struct hello_bytes make_hello(const char *name, bool ech)
{
    struct hello_bytes h = {0};
    size_t names = name ? 9 + strlen(name) : 0, extensions = names + (ech ? 8 : 0);
    size_t body = 2 + 32 + 1 + 4 + 2 + 2 + extensions;

    number(&h, TLS_RECORD_HANDSHAKE, 1);
    number(&h, 0x0301, 2);
    number(&h, body + 4, 2);
    number(&h, 1, 1);
    number(&h, body, 3);
    number(&h, 0x0303, 2);
    for (unsigned i = 0; i < 4; i++)
        number(&h, 0, 8);
    number(&h, 0, 1);
    number(&h, 0x00021301, 4);
    number(&h, 0x0100, 2);
    number(&h, extensions, 2);
    if (name) {
        number(&h, 0, 2);
        number(&h, 5 + strlen(name), 2);
        number(&h, 3 + strlen(name), 2);
        number(&h, 0, 1);
        number(&h, strlen(name), 2);
        text(&h, name);
    }
    if (ech) {
        number(&h, 0xfe0d0004, 4);
        number(&h, 0x01020304, 4);
    }
    return h;
}

static void hello_passes(struct fixture *x, uint16_t port, const char *name, bool ech)
{
    struct hello_bytes h = make_hello(name, ech);

    x->listener = listen_at(OUTSIDE, port);
    begin_name(x, "ok.test", port);
    put_bytes(x, x->client, h.at, h.n);
    wait_server(x);
    expect_bytes(x, x->server, h.at, h.n);
    put_text(x, x->server, "server hello");
    expect_text(x, x->client, "server hello");
    put_text(x, x->client, "what follows is not read");
    expect_text(x, x->server, "what follows is not read");
    assert_int_equal(x->told.n, 0);
}

static void a_hello_for_the_name_passes(void **state)
{
    hello_passes(*state, 443, "ok.test", false);
}

static void a_name_is_the_same_in_upper_case(void **state)
{
    hello_passes(*state, 443, "OK.Test", false);
}

static void a_hello_with_an_encrypted_one_passes_by_its_outer_name(void **state)
{
    hello_passes(*state, 443, "ok.test", true);
}

static void a_hello_for_the_name_passes_on_other_ports(void **state)
{
    hello_passes(*state, 25, "ok.test", false);
}

static void hello_refused(struct fixture *x, uint16_t port, const char *name, const char *reason)
{
    struct hello_bytes h = make_hello(name, false);

    x->listener = listen_at(OUTSIDE, port);
    begin_name(x, "ok.test", port);
    put_bytes(x, x->client, h.at, h.n);
    expect_refused(x, DENIAL_TLS, reason);
    assert_string_equal(x->told.name, "ok.test");
    assert_int_equal(x->told.bytes, h.n);
    if (port == 443)
        expect_no_server(x);
}

static void a_hello_for_another_name_is_refused(void **state)
{
    hello_refused(*state, 443, "other.test", "names the server 'other.test'");
}

static void a_hello_without_a_name_is_refused(void **state)
{
    hello_refused(*state, 443, NULL, "names no server");
}

static void odd_names_are_refused(void **state)
{
    static const char *const names[] = {
        "ok.test..",       "ok.test ",   "ok.test#",  "ok.test/.no.test", "xok.test",
        "ok.test.no.test", "ok.test%00", "ok.test\t", "127.0.0.1",        "user@ok.test"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct fixture *x = *state;

        hello_refused(x, 443, names[i], "the ClientHello ");
        x->told.n = 0;
        fd_closep(&x->client);
        fd_closep(&x->listener);
    }
}

static void a_hello_for_another_name_is_refused_on_other_ports_and_never_goes_on(void **state)
{
    struct fixture *x = *state;

    hello_refused(x, 25, "other.test", "names the server 'other.test'");
    wait_server(x);
    expect_reset(x, x->server);
}

static void what_is_not_tls_is_refused_on_443(void **state)
{
    struct fixture *x = *state;

    x->listener = listen_at(OUTSIDE, 443);
    begin_name(x, "ok.test", 443);
    put_text(x, x->client, "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n");
    expect_refused(x, DENIAL_TLS, "are not TLS");
    expect_no_server(x);
}

static void a_hello_byte_by_byte_wakes_nobody_but_its_end(void **state)
{
    struct fixture *x = *state;
    struct hello_bytes h = make_hello("ok.test", false);
    unsigned woken = 0;

    x->listener = listen_at(OUTSIDE, 443);
    begin_name(x, "ok.test", 443);
    put_bytes(x, x->client, h.at, 5); /* until the length of the record is known */
    turn(x);
    assert_true(x->e.flows.first->low_water);
    for (size_t i = 5; i < h.n - 1; i++) {
        x->e.flows.first->relay.ways[0].readable = false; /* which each event sets */
        assert_int_equal(send(x->client, &h.at[i], 1, 0), 1);
        assert_int_equal(loop_turn(&x->e.loop, 0), 0);
        assert_true(x->e.flows.first->state == FLOW_READING);
        woken += x->e.flows.first->relay.ways[0].readable;
    }
    assert_true(woken <=
                4); /* for what is in the record: at most until its first length is known */
    put_bytes(x, x->client, &h.at[h.n - 1], 1);
    wait_server(x);
    expect_bytes(x, x->server, h.at, h.n);
}

static void an_end_within_a_hello_is_refused(void **state)
{
    struct fixture *x = *state;
    struct hello_bytes h = make_hello("ok.test", false);

    begin_name(x, "ok.test", 443);
    put_bytes(x, x->client, h.at, h.n - 1);
    assert_return_code(shutdown(x->client, SHUT_WR), errno);
    expect_refused(x, DENIAL_TLS, "ended within its ClientHello");
}

static void an_end_without_a_byte_is_only_an_end(void **state)
{
    struct fixture *x = *state;

    begin_name(x, "ok.test", 443);
    assert_return_code(shutdown(x->client, SHUT_WR), errno);
    expect_end(x, x->client);
    assert_int_equal(x->told.n, 0);
}

static void an_end_within_a_hello_is_refused_on_other_ports(void **state)
{
    struct fixture *x = *state;

    x->listener = listen_at(OUTSIDE, 25);
    begin_name(x, "ok.test", 25);
    put_bytes(x, x->client, "\x16\x03\x01", 3);
    expect_nothing(x, x->client);
    assert_return_code(shutdown(x->client, SHUT_WR), errno);
    expect_refused(x, DENIAL_TLS, "ended within its ClientHello");
}

/* --- requests --- */

#define REQUEST "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"

static void begin_http(struct fixture *x)
{
    x->listener = listen_at(OUTSIDE, 80);
    begin_name(x, "ok.test", 80);
}

static void requests_for_the_name_pass(void **state)
{
    struct fixture *x = *state;
    static const char *const requests[] = {
        REQUEST,
        "GET /b HTTP/1.1\r\nHost: OK.test:80\r\n\r\n" REQUEST,
        "POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\n\r\nhello" REQUEST,
        "POST / HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\n\r\n" REQUEST,
    };

    begin_http(x);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        put_text(x, x->client, requests[i]);
        if (i == 0)
            wait_server(x);
        expect_text(x, x->server, requests[i]);
        put_text(x, x->server, "HTTP/1.1 204 No Content\r\n\r\n");
        expect_text(x, x->client, "HTTP/1.1 204 No Content\r\n\r\n");
    }
    assert_return_code(shutdown(x->client, SHUT_WR), errno);
    expect_end(x, x->server);
    put_text(x, x->server, "late");
    expect_text(x, x->client, "late");
    fd_closep(&x->server);
    expect_end(x, x->client);
    assert_int_equal(x->told.n, 0);
    assert_int_equal(x->e.flows.n, 0);
}

static void a_request_byte_by_byte_passes(void **state)
{
    struct fixture *x = *state;

    begin_http(x);
    for (const char *p = REQUEST; *p; p++)
        put_bytes(x, x->client, p, 1);
    wait_server(x);
    expect_text(x, x->server, REQUEST);
}

static void first_requests_that_are_wrong_reach_nobody(void **state)
{
    static const char *const rows[][2] = {
        {"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", "for the Host 'other.test'"},
        {"GET / HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n", "for the Host 'ok.test:8080'"},
        {"GET / HTTP/1.1\r\nHost: ok.test.no.test\r\n\r\n", "for the Host"},
        {"GET / HTTP/1.1\r\n\r\n", "the request "},
        {"GET / HTTP/1.1\r\nHost: ok.test\r\nHost: other.test\r\n\r\n", "the request "},
        {"GET http://other.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", "the request "},
        {"CONNECT other.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n", "the request "},
        {"\x16\x03\x01\x02\x00\x01\x00\x01", "the request "},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "the request "},
    };
    struct fixture *x = *state;

    x->listener = listen_at(OUTSIDE, 80);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        begin_name(x, "ok.test", 80);
        put_text(x, x->client, i == 7 ? "\x16\x03\x01\x02" : rows[i][0]);
        expect_refused(x, DENIAL_HTTP, rows[i][1]);
        expect_no_server(x);
        x->told.n = 0;
        fd_closep(&x->client);
    }
}

static void a_later_request_for_another_host_resets_both(void **state)
{
    struct fixture *x = *state;

    begin_http(x);
    put_text(x, x->client, REQUEST);
    wait_server(x);
    expect_text(x, x->server, REQUEST);
    put_text(x, x->client, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n");
    expect_refused(x, DENIAL_HTTP, "for the Host 'other.test'");
    expect_reset(x, x->server);
}

static void a_second_request_in_the_same_segment_is_judged_too(void **state)
{
    struct fixture *x = *state;

    begin_http(x);
    put_text(x, x->client, REQUEST "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n");
    expect_refused(x, DENIAL_HTTP, "for the Host 'other.test'");
}

static void a_head_that_is_long_passes_and_one_too_long_does_not(void **state)
{
    enum { LONG = 60000, TOO_LONG = 70000 };
    struct fixture *x = *state;
    char *head = malloc(TOO_LONG + 100);
    int n = snprintf(head, 100, "GET / HTTP/1.1\r\nHost: ok.test\r\n");

    for (; n < LONG; n += 10)
        memcpy(head + n, "a: bcdef\r\n", 10);
    memcpy(head + n, "\r\n", 2);
    begin_http(x);
    put_bytes(x, x->client, head, (size_t)n + 2);
    wait_server(x);
    expect_bytes(x, x->server, head, (size_t)n + 2);
    for (; n < TOO_LONG; n += 10)
        memcpy(head + n, "a: bcdef\r\n", 10);
    put_bytes(x, x->client, head, (size_t)n);
    expect_refused(x, DENIAL_HTTP, "the request ");
    free(head);
}

static void a_body_waits_for_a_server_that_is_slow(void **state)
{
    enum { BODY = 40000000 };
    struct fixture *x = *state;
    static uint8_t buf[65536];
    size_t sent = 0, received = 0, last;
    char head[128];

    (void)snprintf(head, sizeof head,
                   "PUT / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: %d\r\n\r\n", BODY);
    begin_http(x);
    put_text(x, x->client, head);
    wait_server(x);
    expect_text(x, x->server, head);
    do { /* nobody reads */
        last = sent;
        for (unsigned i = 0; i < 200; i++) {
            size_t n = BODY - sent < sizeof buf ? BODY - sent : sizeof buf;

            for (size_t k = 0; k < n; k++)
                buf[k] = (uint8_t)((sent + k) * 31 >> 3);
            ssize_t done = send(x->client, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent += done > 0 ? (size_t)done : 0;
            assert_int_equal(loop_turn(&x->e.loop, 0), 0);
        }
    } while (sent > last);
    assert_true(sent < BODY);
    while (received < BODY) {
        ssize_t n = receive(x, x->server, buf, sizeof buf);

        assert_true(n > 0);
        for (ssize_t k = 0; k < n; k++)
            assert_int_equal(buf[k], (uint8_t)((received + (size_t)k) * 31 >> 3));
        received += (size_t)n;
        n = (ssize_t)(BODY - sent < sizeof buf ? BODY - sent : sizeof buf);
        for (ssize_t k = 0; k < n; k++)
            buf[k] = (uint8_t)((sent + (size_t)k) * 31 >> 3);
        n = n > 0 ? send(x->client, buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        sent += n > 0 ? (size_t)n : 0;
    }
    put_text(x, x->client, REQUEST);
    expect_text(x, x->server, REQUEST);
}

static void an_end_within_a_head_is_refused(void **state)
{
    struct fixture *x = *state;

    begin_http(x);
    put_text(x, x->client, "GET / HTTP/1.1\r\nHos");
    assert_return_code(shutdown(x->client, SHUT_WR), errno);
    expect_refused(x, DENIAL_HTTP, "ended within the head");
}

/* --- websocket --- */

#define UPGRADE                                                                                    \
    "GET /ws HTTP/1.1\r\nHost: ok.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
#define SWITCHED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

static void begin_upgrade(struct fixture *x, const char *behind)
{
    begin_http(x);
    put_text(x, x->client, UPGRADE);
    put_text(x, x->client, behind);
    wait_server(x);
    expect_text(x, x->server, UPGRADE);
    expect_nothing(x, x->server);
}

static void after_an_upgrade_bytes_pass_both_ways(void **state)
{
    struct fixture *x = *state;

    begin_upgrade(x, "\x82\x05");
    put_bytes(x, x->server, SWITCHED, 20); /* a head in two parts */
    expect_nothing(x, x->client);
    put_text(x, x->server, &SWITCHED[20]);
    expect_text(x, x->client, SWITCHED);
    expect_text(x, x->server, "\x82\x05");
    put_text(x, x->client, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n");
    expect_text(x, x->server, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n");
    put_text(x, x->server, "frames");
    expect_text(x, x->client, "frames");
    assert_return_code(shutdown(x->client, SHUT_WR), errno);
    expect_end(x, x->server);
    assert_int_equal(x->told.n, 0);
}

static void without_an_upgrade_what_follows_is_judged_as_before(void **state)
{
    struct fixture *x = *state;

    begin_upgrade(x, REQUEST);
    put_text(x, x->server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    expect_text(x, x->client, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    expect_text(x, x->server, REQUEST);
    put_text(x, x->client, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n");
    expect_refused(x, DENIAL_HTTP, "for the Host 'other.test'");
}

static void a_server_that_ends_instead_of_an_answer_ends_the_client_too(void **state)
{
    struct fixture *x = *state;

    begin_upgrade(x, "");
    fd_closep(&x->server);
    expect_end(x, x->client);
    fd_closep(&x->client);
    while (x->e.flows.n > 0)
        turn(x);
    assert_int_equal(x->told.n, 0);
}

static void an_answer_that_is_no_http_is_refused(void **state)
{
    struct fixture *x = *state;

    begin_upgrade(x, "");
    put_text(x, x->server, "220 I am something else\r\n");
    expect_refused(x, DENIAL_HTTP, "is not HTTP");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        ROW(a_hello_for_the_name_passes),
        ROW(a_name_is_the_same_in_upper_case),
        ROW(a_hello_with_an_encrypted_one_passes_by_its_outer_name),
        ROW(a_hello_for_the_name_passes_on_other_ports),
        ROW(a_hello_for_another_name_is_refused),
        ROW(a_hello_without_a_name_is_refused),
        ROW(odd_names_are_refused),
        ROW(a_hello_for_another_name_is_refused_on_other_ports_and_never_goes_on),
        ROW(what_is_not_tls_is_refused_on_443),
        ROW(a_hello_byte_by_byte_wakes_nobody_but_its_end),
        ROW(an_end_within_a_hello_is_refused),
        ROW(an_end_without_a_byte_is_only_an_end),
        ROW(an_end_within_a_hello_is_refused_on_other_ports),
        ROW(requests_for_the_name_pass),
        ROW(a_request_byte_by_byte_passes),
        ROW(first_requests_that_are_wrong_reach_nobody),
        ROW(a_later_request_for_another_host_resets_both),
        ROW(a_second_request_in_the_same_segment_is_judged_too),
        ROW(a_head_that_is_long_passes_and_one_too_long_does_not),
        ROW(a_body_waits_for_a_server_that_is_slow),
        ROW(an_end_within_a_head_is_refused),
        ROW(after_an_upgrade_bytes_pass_both_ways),
        ROW(without_an_upgrade_what_follows_is_judged_as_before),
        ROW(a_server_that_ends_instead_of_an_answer_ends_the_client_too),
        ROW(an_answer_that_is_no_http_is_refused),
#undef ROW
    };

    return cmocka_run_group_tests(tests, enter_network, NULL);
}
