/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of an HTTP/1.1 client (RFC 9112), one after another on a connection, read for one
 * fact: which host each of them is for. The bytes go on to the server as they are; so the reading
 * must be the only possible one, and what two servers could read as two things is refused.
 *
 * Refused are therefore, beside what the grammar forbids: no Host or two; a Host that differs from
 * an absolute-form target; a line that ends without CR; a space before a colon; a folded line; a
 * byte of control in a value; Content-Length beside Transfer-Encoding, twice, or not plain digits;
 * a Transfer-Encoding other than "chunked" alone, or in HTTP/1.0; one of these names with '_' for
 * '-'; a Connection that lists one of them or Host; any of them, or Host, in a trailer; CONNECT;
 * HTTP/2 (RFC 9113, 3.4) and anything else but HTTP/1.1 and 1.0; an Upgrade to anything but
 * websocket, or h2c alone, after which the preface of HTTP/2 is refused. A body is framed the same
 * way whatever the method is (RFC 9112, 6), so GET may have one.
 *
 * Pure code: no call blocks or allocates. The stream is told of each byte once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_HEAD_BYTES_MAX = 64 * 1024, /* request line and fields */
    HTTP_HOST_MAX = 255,
    HTTP_METHOD_MAX = 31,
};

enum http_fault {
    HTTP_GOOD,
    HTTP_NOT_HTTP,     /* the first bytes are no request */
    HTTP_TOO_LONG,     /* a head above HTTP_HEAD_BYTES_MAX, or a part of it */
    HTTP_MALFORMED,    /* against the grammar, or open to two readings */
    HTTP_VERSION,      /* neither HTTP/1.1 nor 1.0 */
    HTTP_NO_HOST,      /* or an empty one */
    HTTP_TWO_HOSTS,    /* or one in a trailer */
    HTTP_HOST_DIFFERS, /* the target names another host than Host */
    HTTP_BAD_HOST,     /* user name, path, odd bytes in it */
    HTTP_BODY,         /* how long the body is can be read in two ways */
    HTTP_CONNECT,      /* the method CONNECT */
    HTTP_UPGRADE,      /* to something that is not websocket, or not in the first request */
    HTTP_FAULT__MAX,
};

/* What one request says. */
struct http_request {
    char method[HTTP_METHOD_MAX + 1];
    char host[HTTP_HOST_MAX + 1]; /* Host without its port, lower case; IPv6 in its brackets */
    uint16_t port;                /* of Host; 0: it names none */
    bool upgrade;                 /* asks for websocket (RFC 6455, 4.1) */
};

/* Where in the stream of requests one is. Zeroed: at its start. */
struct http_stream {
    int state; /* private to http_head.c, like all below */
    uint64_t body_left;
    size_t line_bytes; /* of a head: looked at without finding its end; of trailers: gone on */
    unsigned n_requests;
};

enum http_step {
    HTTP_STEP_HEAD, /* a whole head is there: *ret_request is set, *ret_used its bytes */
    HTTP_STEP_BODY, /* *ret_used bytes of the current body (framing included) may go on */
    HTTP_STEP_MORE, /* nothing can be told yet; keep the bytes and come back with more */
    HTTP_STEP_BAD,  /* *ret_fault says why; nothing further of this stream may go on */
};

/**
 * http_stream_step() - look at the next bytes of the client
 * @data: bytes that have not gone on yet
 *
 * The caller judges each request before it passes its head on, passes on exactly *@ret_used bytes,
 * and calls again with what is left. So that a head or a line of framing can come to its end, the
 * caller keeps up to HTTP_HEAD_BYTES_MAX bytes of it; each is judged as soon as its line is there.
 * In whatever pieces a stream comes, its requests, the bytes that go on and the fault are the same.
 *
 * Once a request with upgrade has gone on, the stream gives HTTP_STEP_MORE until the caller has
 * seen the server's answer (http_status_parse()). After a 101 bytes are no requests any more, and
 * the caller stops calling; after any other, http_stream_not_switched(), and requests follow as
 * before. *@ret_request is written with HTTP_STEP_HEAD only; *@ret_used is 0 with HTTP_STEP_MORE
 * and HTTP_STEP_BAD.
 */
enum http_step http_stream_step(struct http_stream *s, const uint8_t *data, size_t len,
                                struct http_request *ret_request, size_t *ret_used,
                                enum http_fault *ret_fault);

void http_stream_not_switched(struct http_stream *s);

/** http_fault_text() - "has two Host fields", to follow "the request "; static storage */
const char *http_fault_text(enum http_fault fault);

enum http_status_step { HTTP_STATUS_MORE, HTTP_STATUS_DONE, HTTP_STATUS_BAD };

/**
 * http_status_parse() - the status of the first final answer of a server, or of 101
 *
 * Other 1xx answers before it are skipped (RFC 9110, 15.2). @len: what of the answers is there.
 * @ret_bytes: the bytes up to the end of that answer's head. Also reads what a proxy answers to
 * CONNECT. At most HTTP_HEAD_BYTES_MAX are looked at. Fields are not read. Results are written with
 * HTTP_STATUS_DONE only.
 */
enum http_status_step http_status_parse(const uint8_t *data, size_t len, unsigned *ret_status,
                                        size_t *ret_bytes);
