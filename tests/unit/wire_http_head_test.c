/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: what is taken, what is refused and why, and that the pieces they come in change
 * nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/http_head.h"
#include "base/guards.h"

enum { REQUESTS_MAX = 8 };

/* What a whole stream of bytes gave. */
struct outcome {
    struct http_request requests[REQUESTS_MAX];
    size_t n_requests;
    size_t passed; /* bytes that went on */
    enum http_fault fault;
};

/* One call, in memory of its own, so that a sanitizer sees one byte too far. */
static enum http_step step_exact(struct http_stream *s, const char *data, size_t len,
                                 struct http_request *ret_request, size_t *ret_used,
                                 enum http_fault *ret_fault)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    enum http_step step;

    memcpy(exact, data, len);
    step = http_stream_step(s, exact, len, ret_request, ret_used, ret_fault);
    free(exact);
    assert_true(*ret_used <= len);
    assert_int_equal(*ret_used > 0, step == HTTP_STEP_HEAD || step == HTTP_STEP_BODY);
    assert_int_equal(*ret_fault != HTTP_GOOD, step == HTTP_STEP_BAD);
    return step;
}

/* @text as it would be relayed when it comes in pieces of @piece bytes. */
static struct outcome run(const char *text, size_t len, size_t piece)
{
    struct http_stream s = {0};
    struct outcome o = {0};
    size_t there = 0;

    while (o.fault == HTTP_GOOD) {
        struct http_request q;
        size_t used;
        enum http_step step =
            step_exact(&s, text + o.passed, there - o.passed, &q, &used, &o.fault);

        o.passed += used;
        if (step == HTTP_STEP_HEAD) {
            assert_true(o.n_requests < REQUESTS_MAX);
            o.requests[o.n_requests++] = q;
        }
        if (step == HTTP_STEP_MORE) {
            if (there == len)
                break;
            there = len - there < piece ? len : there + piece;
        }
    }
    return o;
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->passed, b->passed);
    assert_int_equal(a->fault, b->fault);
    assert_int_equal(a->n_requests, b->n_requests);
    for (size_t i = 0; i < a->n_requests; i++) {
        assert_string_equal(a->requests[i].method, b->requests[i].method);
        assert_string_equal(a->requests[i].host, b->requests[i].host);
        assert_int_equal(a->requests[i].port, b->requests[i].port);
        assert_int_equal(a->requests[i].upgrade, b->requests[i].upgrade);
    }
}

static struct outcome run_pieces(const char *text, size_t len)
{
    struct outcome whole = run(text, len, len > 0 ? len : 1);

    for (size_t piece = 1; piece < len && piece < 70; piece++) {
        struct outcome o = run(text, len, piece);

        assert_same(&o, &whole);
    }
    return whole;
}

static struct outcome run_text(const char *text)
{
    return run_pieces(text, strlen(text));
}

static void assert_fault(const char *text, enum http_fault fault)
{
    struct outcome o = run_text(text);

    if (o.fault != fault)
        fail_msg("the request %s, not: %s\n%s", http_fault_text(o.fault), http_fault_text(fault),
                 text);
}

/* One request whose head must be refused, so that nothing of it goes on. */
static void assert_refused(const char *text, enum http_fault fault)
{
    struct outcome o = run_text(text);

    assert_fault(text, fault);
    assert_int_equal(o.n_requests, 0);
    assert_int_equal(o.passed, 0);
}

/* Exactly @n requests to example.org, of which every byte goes on. */
static void assert_taken(const char *text, size_t n)
{
    struct outcome o = run_text(text);

    if (o.fault != HTTP_GOOD)
        fail_msg("the request %s\n%s", http_fault_text(o.fault), text);
    assert_int_equal(o.n_requests, n);
    assert_int_equal(o.passed, strlen(text));
    for (size_t i = 0; i < n; i++)
        assert_string_equal(o.requests[i].host, "example.org");
}

#define HOST "Host: example.org\r\n"
#define GET  "GET / HTTP/1.1\r\n"
#define POST "POST /p HTTP/1.1\r\n" HOST
#define NEXT "GET /next HTTP/1.1\r\n" HOST "\r\n"

static void a_plain_request_says_its_host(void **state)
{
    struct outcome o =
        run_text("GET /a?b=%20 HTTP/1.1\r\nAccept: */*\r\nHOST:\t Example.ORG:8080 \r\n\r\n");

    (void)state;
    assert_int_equal(o.fault, HTTP_GOOD);
    assert_int_equal(o.n_requests, 1);
    assert_string_equal(o.requests[0].method, "GET");
    assert_string_equal(o.requests[0].host, "example.org");
    assert_int_equal(o.requests[0].port, 8080);
    assert_false(o.requests[0].upgrade);
    assert_taken("GET / HTTP/1.0\r\n" HOST "\r\n", 1);
    assert_taken(GET HOST "X-Empty:\r\nX-Text: \xc3\xa9\xff\r\n\r\n", 1);
}

static void a_host_is_a_name_or_an_address_and_perhaps_a_port(void **state)
{
    static const struct {
        const char *value, *host;
        unsigned port;
    } rows[] = {
        {"a", "a", 0},
        {"xn--bcher-kva.example.", "xn--bcher-kva.example.", 0},
        {"_a.b-c:1", "_a.b-c", 1},
        {"192.0.2.1:65535", "192.0.2.1", 65535},
        {"[2001:DB8::1]", "[2001:db8::1]", 0},
        {"[::ffff:192.0.2.1]:80", "[::ffff:192.0.2.1]", 80},
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        (void)snprintf(text, sizeof text, GET "Host: %s\r\n\r\n", rows[i].value);
        struct outcome o = run_text(text);
        assert_int_equal(o.n_requests, 1);
        assert_string_equal(o.requests[0].host, rows[i].host);
        assert_int_equal(o.requests[0].port, rows[i].port);
    }
}

static void a_host_that_is_odd_in_any_way_is_refused(void **state)
{
    static const char *const values[] = {
        "user@a",  "a/b",
        "a?b",     "a#b",
        "a b",     "a,b",
        "a%2eb",   "a\\b",
        "a:",      "a:0",
        "a:080",   "a:+1",
        "a:65536", "a:99999999999999999999",
        "a:1:2",   "a:b",
        "::1",     "[::1",
        "[::1]x",  "[::1]:",
        "[]",      "[fe80::1%25e]",
        "[v1.x]",  "b\303\274cher",
        ":80",     "http://a",
        "\"a\"",   "a;b",
        "a\tb",
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        (void)snprintf(text, sizeof text, GET "Host: %s\r\n\r\n", values[i]);
        assert_refused(text, HTTP_BAD_HOST);
    }
    assert_refused(GET "Host:\r\n\r\n", HTTP_NO_HOST);
    assert_refused(GET "Host: \t \r\n\r\n", HTTP_NO_HOST);
    assert_refused(GET "Accept: a\r\n\r\n", HTTP_NO_HOST);
    assert_refused("GET / HTTP/1.0\r\n\r\n", HTTP_NO_HOST);
    assert_refused(GET "X-Host: example.org\r\n\r\n", HTTP_NO_HOST);
    assert_refused(GET HOST HOST "\r\n", HTTP_TWO_HOSTS);
    assert_refused(GET HOST "hOsT: other.example\r\n\r\n", HTTP_TWO_HOSTS);
    assert_refused(GET HOST "Host:\r\n\r\n", HTTP_TWO_HOSTS);
}

static void a_host_has_a_longest_length(void **state)
{
    char text[HTTP_HOST_MAX + 100];
    static char name[HTTP_HOST_MAX + 2];

    (void)state;
    memset(name, 'a', HTTP_HOST_MAX);
    (void)snprintf(text, sizeof text, GET "Host: %s\r\n\r\n", name);
    assert_fault(text, HTTP_GOOD);
    name[HTTP_HOST_MAX] = 'a';
    (void)snprintf(text, sizeof text, GET "Host: %s\r\n\r\n", name);
    assert_refused(text, HTTP_TOO_LONG);
}

static void an_absolute_target_names_the_same_host(void **state)
{
    (void)state;
    assert_taken("GET http://example.org/x HTTP/1.1\r\n" HOST "\r\n", 1);
    assert_taken("GET HTTP://EXAMPLE.org HTTP/1.1\r\n" HOST "\r\n", 1);
    assert_taken("GET http://example.org:80/ HTTP/1.1\r\n" HOST "\r\n", 1);
    assert_taken("GET http://example.org?q HTTP/1.1\r\nHost: example.org:80\r\n\r\n", 1);
    assert_taken("GET http://example.org:81/ HTTP/1.1\r\nHost: example.org:81\r\n\r\n", 1);
    assert_refused("GET http://other.example/ HTTP/1.1\r\n" HOST "\r\n", HTTP_HOST_DIFFERS);
    assert_refused("GET http://example.org:81/ HTTP/1.1\r\n" HOST "\r\n", HTTP_HOST_DIFFERS);
    assert_refused("GET http://example.org./ HTTP/1.1\r\n" HOST "\r\n", HTTP_HOST_DIFFERS);
    assert_refused("GET http://u@example.org/ HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_HOST);
    assert_refused("GET http://other.example\\@example.org/ HTTP/1.1\r\n" HOST "\r\n",
                   HTTP_BAD_HOST);
    assert_refused("GET http:///x HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_HOST);
    assert_refused("GET https://example.org/ HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET http:example.org HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET http://example.org/ HTTP/1.1\r\n\r\n", HTTP_NO_HOST);
}

static void other_targets_have_the_forms_of_the_standard(void **state)
{
    (void)state;
    assert_taken("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 1);
    assert_taken("GET //other.example/x HTTP/1.1\r\n" HOST "\r\n", 1); /* a path */
    assert_refused("GET * HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET example.org HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET ?q HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET /a#b HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET /a b HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET  / HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET /  HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET\t/ HTTP/1.1\r\n" HOST "\r\n", HTTP_NOT_HTTP);
    assert_refused("GET /\tx HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
    assert_refused("GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n", HTTP_MALFORMED);
}

static void only_http_1_1_and_1_0_are_spoken(void **state)
{
    (void)state;
    assert_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_VERSION);
    assert_refused("GET / HTTP/2.0\r\n" HOST "\r\n", HTTP_VERSION);
    assert_refused("GET / HTTP/1.2\r\n" HOST "\r\n", HTTP_VERSION);
    assert_refused("GET / HTTP/1.10\r\n" HOST "\r\n", HTTP_VERSION);
    assert_refused("GET / http/1.1\r\n" HOST "\r\n", HTTP_VERSION);
    assert_refused("GET / HTTP/1.1 \r\n" HOST "\r\n", HTTP_VERSION);
    assert_refused("GET /\r\n", HTTP_VERSION); /* HTTP/0.9 */
    assert_refused("GET \r\n", HTTP_VERSION);
}

static void other_protocols_are_known_before_their_line_ends(void **state)
{
    static const char *const rows[] = {"\x16\x03\x01", "SSH-2.0-x\r\n", "\r\nGET /", " GET",
                                       "{\"a\"",       "EHLO:",         "GET\r\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_refused(rows[i], HTTP_NOT_HTTP);
    assert_refused("MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM", HTTP_TOO_LONG);
    assert_fault("MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM / HTTP/1.1\r\n" HOST "\r\n", HTTP_GOOD);
    /* after a request it is only malformed */
    assert_fault(GET HOST "\r\n\x16\x03", HTTP_MALFORMED);
    assert_fault(GET HOST "\r\n\r\n" NEXT, HTTP_MALFORMED);
}

static void a_line_ends_in_one_way(void **state)
{
    (void)state;
    assert_refused("GET / HTTP/1.1\nHost: example.org\n\n", HTTP_MALFORMED);
    assert_refused(GET "Host: example.org\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "A: b\nHost: other.example\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "A: b\rHost: other.example\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "A: b\r\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "\n" NEXT, HTTP_MALFORMED);
    assert_refused(GET HOST "\r\r\n", HTTP_MALFORMED);
    assert_refused("GET / HTTP/1.1\r" HOST "\r\n", HTTP_MALFORMED);
}

static void a_field_is_a_name_a_colon_and_a_plain_value(void **state)
{
    static const char nul[] = GET HOST "A: b\0c\r\n\r\n";
    struct outcome o = run_pieces(nul, sizeof nul - 1);

    (void)state;
    assert_int_equal(o.fault, HTTP_MALFORMED);
    assert_int_equal(o.passed, 0);
    assert_refused(GET "Host : example.org\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "Transfer-Encoding : chunked\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST " folded: x\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "A: b\r\n\tc\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET " Host: example.org\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "no colon\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST ": no name\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "A(b): c\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "\xc3\xa9: c\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "A: \x01\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "A: \x7f\r\n\r\n", HTTP_MALFORMED);
    assert_taken(GET HOST "A: \tb\tc \r\nX_Y: z\r\n\r\n", 1);
}

static void a_body_of_known_length_goes_on_and_no_byte_of_the_next_request(void **state)
{
    (void)state;
    assert_taken(POST "Content-Length: 5\r\n\r\nhello" NEXT, 2);
    assert_taken(POST "Content-Length: 0\r\n\r\n" NEXT NEXT, 3);
    assert_taken(POST "Content-Length: 8\r\n\r\nGET / HT" NEXT, 2);
    assert_taken("GET / HTTP/1.1\r\n" HOST "content-length: 3\r\n\r\n\r\n.", 1);
    assert_taken("HEAD / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nxx" NEXT, 2);
    assert_taken(
        "GET / HTTP/1.1\r\n" HOST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\nxx" NEXT, 2);
    assert_taken(
        "POST / HTTP/1.0\r\n" HOST "Content-Length: 1\r\nConnection: keep-alive\r\n\r\nx" NEXT, 2);

    struct outcome o = run_text(POST "Content-Length: 2\r\n\r\nxx"
                                     "BAD\r\n\r\n");
    assert_int_equal(o.fault, HTTP_MALFORMED);
    assert_int_equal(o.passed, strlen(POST "Content-Length: 2\r\n\r\nxx"));
    o = run_text(POST "Content-Length: 4\r\n\r\nxx");
    assert_int_equal(o.fault, HTTP_GOOD);
    assert_int_equal(o.passed, strlen(POST "Content-Length: 4\r\n\r\nxx"));
}

static void a_length_is_plain_digits_and_stands_alone(void **state)
{
    static const char *const values[] = {"",     "+5",   "-5",  "5,5",
                                         "5, 5", "5 5",  "0x5", "05",
                                         "5.0",  "a",    "5;a", "1234567890123456789",
                                         "5\t5", "\"5\""};
    char text[300];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        (void)snprintf(text, sizeof text, POST "Content-Length: %s\r\n\r\nhello", values[i]);
        assert_refused(text, HTTP_BODY);
    }
    assert_fault(POST "Content-Length: 999999999999999999\r\n\r\nhello", HTTP_GOOD);
    assert_refused(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", HTTP_BODY);
    assert_refused(POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\nhello", HTTP_BODY);
    assert_refused(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   HTTP_BODY);
    assert_refused(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
                   HTTP_BODY);
    assert_refused(POST "Content_Length: 5\r\n\r\nhello", HTTP_MALFORMED);
    assert_refused(POST "Content-Length: 5\r\nContent_Length: 0\r\n\r\nhello", HTTP_MALFORMED);
}

static void a_transfer_encoding_is_chunked_and_nothing_else(void **state)
{
    static const char *const values[] = {
        "",           "chunked, identity", "identity, chunked", "xchunked",
        "chunked;q",  "gzip, chunked",     "\"chunked\"",       "chunke",
        "\013chunked"};
    char text[300];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        (void)snprintf(text, sizeof text, POST "Transfer-Encoding: %s\r\n\r\n0\r\n\r\n", values[i]);
        assert_refused(text, values[i][0] == '\013' ? HTTP_MALFORMED : HTTP_BODY);
    }
    assert_refused(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                   HTTP_BODY);
    assert_refused(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
                   HTTP_BODY);
    assert_refused(POST "Transfer_Encoding: chunked\r\n\r\n", HTTP_MALFORMED);
    assert_refused(POST "Transfer-Encoding:\r\n chunked\r\n\r\n", HTTP_BODY);
    assert_refused("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", HTTP_BODY);
    assert_taken(POST "Transfer-Encoding: Chunked\t\r\n\r\n0\r\n\r\n" NEXT, 2);
    assert_taken(POST "TE: trailers\r\nTransfer-encoding:chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 1);
}

#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static void chunks_go_on_with_their_framing(void **state)
{
    (void)state;
    assert_taken(CHUNKED "5\r\nhello\r\n0\r\n\r\n" NEXT, 2);
    assert_taken(CHUNKED "a\r\n0123456789\r\nA;x=\"y;z\"\r\n0123456789\r\n000\r\n\r\n" NEXT, 2);
    assert_taken(CHUNKED "7\r\n0\r\n\r\nGE\r\n0\r\n\r\n" NEXT, 2); /* what looks like its end */
    assert_taken(CHUNKED "0\r\nX-Sum: 1\r\nX-More:\r\n\r\n" NEXT, 2);
}

static void chunks_have_one_reading(void **state)
{
    static const struct {
        const char *body;
        enum http_fault fault;
        size_t passed; /* of the body */
    } rows[] = {
        {"\r\n", HTTP_BODY, 0},
        {"x\r\n", HTTP_BODY, 0},
        {"0x5\r\nhello\r\n", HTTP_BODY, 0},
        {"+5\r\nhello\r\n", HTTP_BODY, 0},
        {"-1\r\n", HTTP_BODY, 0},
        {" 5\r\nhello\r\n", HTTP_BODY, 0},
        {"5 \r\nhello\r\n", HTTP_BODY, 0},
        {"5 ;x\r\nhello\r\n", HTTP_BODY, 0},
        {";x\r\n", HTTP_BODY, 0},
        {"5\nhello\r\n", HTTP_MALFORMED, 0},
        {"5;a\nb\r\nhello\r\n", HTTP_MALFORMED, 0},
        {"5;a\rb\r\nhello\r\n", HTTP_MALFORMED, 0},
        {"ffffffffffffffff\r\n", HTTP_BODY, 0},
        {"10000000000000005\r\nhello\r\n", HTTP_BODY, 0},
        {"0000000000000005\r\nhello\r\n", HTTP_BODY, 0},
        {"5\r\nhelloX\r\n0\r\n\r\n", HTTP_BODY, 8},
        {"5\r\nhello\n0\r\n\r\n", HTTP_BODY, 8},
        {"5\r\nhello\rX", HTTP_BODY, 8},
        {"0\r\nHost: other.example\r\n\r\n", HTTP_TWO_HOSTS, 3},
        {"0\r\nA: b\r\nContent-Length: 5\r\n\r\n", HTTP_BODY, 9},
        {"0\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_BODY, 3},
        {"0\r\nUpgrade: h2c\r\n\r\n", HTTP_MALFORMED, 3},
        {"0\r\n folded\r\n\r\n", HTTP_MALFORMED, 3},
        {"0\r\nA : b\r\n\r\n", HTTP_MALFORMED, 3},
        {"0\r\nA: b\n\r\n", HTTP_MALFORMED, 3},
        {"0\r\n\n", HTTP_MALFORMED, 3},
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        (void)snprintf(text, sizeof text, CHUNKED "%s", rows[i].body);
        struct outcome o = run_text(text);
        assert_fault(text, rows[i].fault);
        assert_int_equal(o.n_requests, 1);
        assert_int_equal(o.passed, strlen(CHUNKED) + rows[i].passed);
    }
}

static void a_connection_does_not_drop_what_was_judged(void **state)
{
    (void)state;
    assert_taken(GET HOST "Connection: close, TE\r\nConnection: ,keep-alive,\r\n\r\n", 1);
    assert_refused(GET HOST "Connection: close, Host\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "Connection: content-length\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "Connection: Transfer-Encoding\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "Connection: transfer_encoding\r\n\r\n", HTTP_MALFORMED);
    assert_refused(GET HOST "Connection: a b\r\n\r\n", HTTP_MALFORMED);
}

static void a_tunnel_is_refused(void **state)
{
    (void)state;
    assert_refused("CONNECT example.org:443 HTTP/1.1\r\n" HOST "\r\n", HTTP_CONNECT);
    assert_refused("connect / HTTP/1.1\r\n" HOST "\r\n", HTTP_CONNECT);
    assert_fault(GET HOST "\r\nCONNECT example.org:443 HTTP/1.1\r\n" HOST "\r\n", HTTP_CONNECT);
}

#define WEBSOCKET GET HOST "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n"

static void a_websocket_waits_for_the_answer(void **state)
{
    static const char text[] = WEBSOCKET NEXT;
    struct http_stream s = {0};
    struct http_request q;
    enum http_fault fault;
    size_t used, first = strlen(WEBSOCKET);

    (void)state;
    assert_int_equal(step_exact(&s, text, strlen(text), &q, &used, &fault), HTTP_STEP_HEAD);
    assert_true(q.upgrade && used == first);
    for (int i = 0; i < 2; i++)
        assert_int_equal(step_exact(&s, text + first, strlen(NEXT), &q, &used, &fault),
                         HTTP_STEP_MORE);
    http_stream_not_switched(&s);
    assert_int_equal(step_exact(&s, text + first, strlen(NEXT), &q, &used, &fault), HTTP_STEP_HEAD);
    assert_false(q.upgrade);
    /* and not again */
    assert_int_equal(step_exact(&s, text, first, &q, &used, &fault), HTTP_STEP_BAD);
    assert_int_equal(fault, HTTP_UPGRADE);
}

static void every_other_upgrade_is_refused(void **state)
{
    (void)state;
    assert_refused(GET HOST "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", HTTP_UPGRADE);
    assert_refused(GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
                   HTTP_UPGRADE);
    assert_refused(GET HOST "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n", HTTP_UPGRADE);
    assert_refused(GET HOST "Connection: Upgrade\r\nUpgrade:\r\n\r\n", HTTP_UPGRADE);
    assert_refused(GET HOST "Upgrade: websocket\r\n\r\n",
                   HTTP_UPGRADE); /* hop by hop: of no effect */
    assert_refused(POST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", HTTP_UPGRADE);
    assert_refused(GET HOST
                   "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx",
                   HTTP_UPGRADE);
    assert_refused(
        GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n",
        HTTP_UPGRADE);
    assert_refused("GET / HTTP/1.0\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                   HTTP_UPGRADE);
    assert_taken(GET HOST "Connection: Upgrade\r\n\r\n", 1);
    assert_fault(NEXT WEBSOCKET, HTTP_UPGRADE);
}

static void every_request_of_a_connection_is_judged(void **state)
{
    (void)state;
    assert_taken(NEXT NEXT NEXT, 3);
    struct outcome o = run_text(NEXT NEXT "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n");
    assert_int_equal(o.n_requests, 3);
    assert_string_equal(o.requests[2].host, "other.example");
    o = run_text(NEXT "GET / HTTP/1.1\r\n\r\n" NEXT);
    assert_int_equal(o.fault, HTTP_NO_HOST);
    assert_int_equal(o.passed, strlen(NEXT));
}

/* A text with @fill bytes in the place of its '@'; freed by the caller. */
static char *filled(const char *text, size_t fill, size_t *ret_len)
{
    const char *at = strchr(text, '@');
    char *buf = malloc(strlen(text) + fill);
    size_t before = (size_t)(at - text), after = strlen(at + 1);

    memcpy(buf, text, before);
    memset(buf + before, 'x', fill);
    memcpy(buf + before + fill, at + 1, after);
    *ret_len = before + fill + after;
    return buf;
}

static void assert_longest(const char *text, size_t fill, size_t passed)
{
    for (size_t more = 0; more < 2; more++) {
        size_t len;
        char *buf = filled(text, fill + more, &len);

        for (size_t piece = len; piece > 500; piece /= 7) {
            struct outcome o = run(buf, len, piece);

            assert_int_equal(o.fault, more ? HTTP_TOO_LONG : HTTP_GOOD);
            assert_int_equal(o.passed, more ? passed : len);
        }
        free(buf);
    }
}

static void heads_chunk_lines_and_trailers_have_longest_lengths(void **state)
{
    (void)state;
    assert_longest(GET HOST "A: @\r\n\r\n", HTTP_HEAD_BYTES_MAX - strlen(GET HOST "A: \r\n\r\n"),
                   0);
    assert_longest("GET /@ HTTP/1.1\r\n" HOST "\r\n",
                   HTTP_HEAD_BYTES_MAX - strlen("GET / HTTP/1.1\r\n" HOST "\r\n"), 0);
    assert_longest(CHUNKED "1;@\r\nx\r\n0\r\n\r\n", 1024 - strlen("1;\r\n"), strlen(CHUNKED));
    /* all trailers together, with the line that ends them */
    size_t fill = HTTP_HEAD_BYTES_MAX - strlen("A: b\r\nC: \r\n\r\n");
    assert_longest(CHUNKED "0\r\nA: b\r\nC: @\r\n\r\n", fill,
                   strlen(CHUNKED "0\r\nA: b\r\nC: \r\n") + fill + 1);
}

static void a_fault_stays_one_when_it_is_asked_for_again(void **state)
{
    static const char *const rows[] = {GET "Host: a\n\r\n", CHUNKED "0\r\nA: b\r\nC : d\r\n\r\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct http_stream s = {0};
        struct http_request q;
        enum http_fault fault;
        size_t used, at = 0;

        while (step_exact(&s, rows[i] + at, strlen(rows[i]) - at, &q, &used, &fault) !=
               HTTP_STEP_BAD)
            at += used;
        assert_int_equal(fault, HTTP_MALFORMED);
        assert_int_equal(step_exact(&s, rows[i] + at, strlen(rows[i]) - at, &q, &used, &fault),
                         HTTP_STEP_BAD);
        assert_int_equal(fault, HTTP_MALFORMED);
    }
}

static void every_fault_has_a_text(void **state)
{
    (void)state;
    for (int f = 0; f < HTTP_FAULT__MAX; f++)
        assert_true(strlen(http_fault_text((enum http_fault)f)) > 5);
}

static void the_status_of_an_answer_is_read_past_interim_ones(void **state)
{
    static const struct {
        const char *text;
        unsigned status;
        size_t rest; /* bytes behind its head */
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, 1},
        {"HTTP/1.0 407 \r\n\r\n", 407, 0},
        {"HTTP/1.1 204\r\n\r\n", 204, 0},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x00", 101, 2},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
         "HTTP/1.1 404 Not Found\r\n\r\n",
         404, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const uint8_t *data = (const uint8_t *)rows[i].text;
        size_t whole = strlen(rows[i].text) + (rows[i].status == 101), head, bytes;
        unsigned status = 0;

        head = whole - rows[i].rest;
        for (size_t len = 0; len <= whole; len++) {
            enum http_status_step step = http_status_parse(data, len, &status, &bytes);

            assert_int_equal(step, len < head ? HTTP_STATUS_MORE : HTTP_STATUS_DONE);
        }
        assert_int_equal(status, rows[i].status);
        assert_int_equal(bytes, head);
    }
}

static void what_is_no_answer_is_known_early(void **state)
{
    static const char *const rows[] = {"HTTP/2",
                                       "X",
                                       "HTTP/1.1  ",
                                       "HTTP/1.1 20x",
                                       "HTTP/1.1 2000",
                                       "HTTP/1.1 099 ",
                                       "HTTP/1.1 200\n",
                                       "http/1.1 200 OK\r\n",
                                       "HTTP/1.1 100 A\r\n\r\nGET"};
    static char endless[HTTP_HEAD_BYTES_MAX + 1];
    unsigned status;
    size_t bytes;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(
            http_status_parse((const uint8_t *)rows[i], strlen(rows[i]), &status, &bytes),
            HTTP_STATUS_BAD);
    memset(endless, 'a', sizeof endless);
    memcpy(endless, "HTTP/1.1 200 ", 13);
    assert_int_equal(
        http_status_parse((const uint8_t *)endless, HTTP_HEAD_BYTES_MAX - 1, &status, &bytes),
        HTTP_STATUS_MORE);
    assert_int_equal(http_status_parse((const uint8_t *)endless, sizeof endless, &status, &bytes),
                     HTTP_STATUS_BAD);
}

#define OFFER                                                                                      \
    GET HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"                             \
             "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n"

/* A server that takes the offer waits for the preface, and the preface never goes on. */
static void an_offer_of_http2_leads_nowhere(void **state)
{
    (void)state;
    assert_taken(OFFER, 1);
    assert_taken(OFFER NEXT OFFER, 3);
    assert_fault(OFFER "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_request_says_its_host),
        cmocka_unit_test(a_host_is_a_name_or_an_address_and_perhaps_a_port),
        cmocka_unit_test(a_host_that_is_odd_in_any_way_is_refused),
        cmocka_unit_test(a_host_has_a_longest_length),
        cmocka_unit_test(an_absolute_target_names_the_same_host),
        cmocka_unit_test(other_targets_have_the_forms_of_the_standard),
        cmocka_unit_test(only_http_1_1_and_1_0_are_spoken),
        cmocka_unit_test(other_protocols_are_known_before_their_line_ends),
        cmocka_unit_test(a_line_ends_in_one_way),
        cmocka_unit_test(a_field_is_a_name_a_colon_and_a_plain_value),
        cmocka_unit_test(a_body_of_known_length_goes_on_and_no_byte_of_the_next_request),
        cmocka_unit_test(a_length_is_plain_digits_and_stands_alone),
        cmocka_unit_test(a_transfer_encoding_is_chunked_and_nothing_else),
        cmocka_unit_test(chunks_go_on_with_their_framing),
        cmocka_unit_test(chunks_have_one_reading),
        cmocka_unit_test(a_connection_does_not_drop_what_was_judged),
        cmocka_unit_test(a_tunnel_is_refused),
        cmocka_unit_test(a_websocket_waits_for_the_answer),
        cmocka_unit_test(every_other_upgrade_is_refused),
        cmocka_unit_test(an_offer_of_http2_leads_nowhere),
        cmocka_unit_test(every_request_of_a_connection_is_judged),
        cmocka_unit_test(heads_chunk_lines_and_trailers_have_longest_lengths),
        cmocka_unit_test(a_fault_stays_one_when_it_is_asked_for_again),
        cmocka_unit_test(every_fault_has_a_text),
        cmocka_unit_test(the_status_of_an_answer_is_read_past_interim_ones),
        cmocka_unit_test(what_is_no_answer_is_known_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
