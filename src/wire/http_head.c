/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as a client sends it: heads judged line by line, bodies by their framing. */
#include "wire/http_head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "wire/http_line.h"
#include "base/guards.h"

enum {
    DEFAULT_PORT = 80,
    CHUNK_DIGITS_MAX = 15, /* below 2^63, so that no server's number overflows */
    CHUNK_LINE_MAX = 1024, /* with its extensions, which nobody uses */
};

/* Values of http_stream.state. */
enum {
    IN_HEAD,
    IN_BODY,
    IN_CHUNK_LINE,
    IN_CHUNK,
    AFTER_CHUNK,
    IN_TRAILER,
    AWAITING_ANSWER,
};

/* What the lines of one head say, until all are read. */
struct head {
    struct http_request request;
    bool old; /* HTTP/1.0 */
    bool has_target_host;
    char target_host[HTTP_HOST_MAX + 1];
    uint16_t target_port;
    unsigned n_hosts, n_lengths, n_codings, n_upgrades;
    bool connection_upgrade, offers_http2;
    uint64_t length;
};

/* In names, and in addresses within brackets. */
#define NAME_CHARS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
#define ADDRESS_CHARS "0123456789abcdefABCDEF:."

static size_t count_of(struct http_text t, const char *chars)
{
    size_t n = 0;

    while (n < t.n && t.at[n] != '\0' && strchr(chars, t.at[n]))
        n++;
    return n;
}

/* How many bytes of @t are a name or an address in brackets; 0: neither. */
static size_t host_bytes(struct http_text t)
{
    if (t.n == 0 || t.at[0] != '[')
        return count_of(t, NAME_CHARS);
    size_t n = count_of((struct http_text){t.at + 1, t.n - 1}, ADDRESS_CHARS);
    return n > 0 && n + 1 < t.n && t.at[n + 1] == ']' ? n + 2 : 0;
}

/* HOST or HOST:PORT (RFC 9110, 7.2). */
static enum http_fault read_authority(struct http_text t, char ret_host[static HTTP_HOST_MAX + 1],
                                      uint16_t *ret_port)
{
    size_t n = host_bytes(t);
    uint64_t port = 0;

    if (n == 0)
        return HTTP_BAD_HOST;
    if (n > HTTP_HOST_MAX)
        return HTTP_TOO_LONG;
    if (n < t.n) {
        struct http_text digits = {t.at + n + 1, t.n - n - 1};

        if (t.at[n] != ':' || !http_text_decimal(digits, &port) || port == 0 || port > UINT16_MAX)
            return HTTP_BAD_HOST;
    }
    for (size_t i = 0; i < n; i++)
        ret_host[i] = (char)(t.at[i] >= 'A' && t.at[i] <= 'Z' ? t.at[i] + ('a' - 'A') : t.at[i]);
    ret_host[n] = '\0';
    *ret_port = (uint16_t)port;
    return HTTP_GOOD;
}

/* The request line */

static bool is_target(struct http_text t)
{
    for (size_t i = 0; i < t.n; i++)
        if (t.at[i] <= ' ' || t.at[i] > '~' || t.at[i] == '#')
            return false;
    return t.n > 0;
}

/* A target of one of the forms of RFC 9112, 3.2, but that of CONNECT. */
static enum http_fault read_target(struct head *h, struct http_text t)
{
    static const char scheme[] = "http://";
    size_t n = 0;

    if (!is_target(t))
        return HTTP_MALFORMED;
    if (t.at[0] == '/')
        return HTTP_GOOD;
    if (http_text_is(t, "*"))
        return strcmp(h->request.method, "OPTIONS") == 0 ? HTTP_GOOD : HTTP_MALFORMED;
    if (t.n < strlen(scheme) || strncasecmp(t.at, scheme, strlen(scheme)) != 0)
        return HTTP_MALFORMED;
    t = (struct http_text){t.at + strlen(scheme), t.n - strlen(scheme)};
    while (n < t.n && t.at[n] != '/' && t.at[n] != '?')
        n++;
    h->has_target_host = true;
    return read_authority((struct http_text){t.at, n}, h->target_host, &h->target_port);
}

static enum http_fault read_request_line(struct head *h, struct http_text line)
{
    struct http_text method = http_text_cut(&line, ' '); /* read_method() has judged it */
    struct http_text target = line, version = line;

    memcpy(h->request.method, method.at, method.n);
    h->request.method[method.n] = '\0';
    while (version.n > 0 && memchr(version.at, ' ', version.n))
        (void)http_text_cut(&version, ' ');
    if (version.n == line.n)
        return HTTP_VERSION; /* HTTP/0.9 has no version there */
    target.n = line.n - version.n - 1;
    h->old = version.n == 8 && memcmp(version.at, "HTTP/1.0", 8) == 0;
    if (!h->old && (version.n != 8 || memcmp(version.at, "HTTP/1.1", 8) != 0))
        return HTTP_VERSION;
    if (http_text_is(method, "CONNECT"))
        return HTTP_CONNECT;
    return read_target(h, target);
}

/*
 * The method, as far as it is there: other protocols are known by their first bytes, and would
 * never send a line's end that one could wait for.
 */
static enum http_fault read_method(const struct http_stream *s, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == ' ' && i > 0)
            return HTTP_GOOD;
        if (!http_char_is_token((char)data[i]))
            return s->n_requests == 0 ? HTTP_NOT_HTTP : HTTP_MALFORMED;
        if (i == HTTP_METHOD_MAX)
            return HTTP_TOO_LONG;
    }
    return HTTP_GOOD;
}

/* Fields */

static enum http_fault read_host(struct head *h, struct http_text value)
{
    if (h->n_hosts++ > 0)
        return HTTP_TWO_HOSTS;
    if (value.n == 0)
        return HTTP_NO_HOST;
    return read_authority(value, h->request.host, &h->request.port);
}

/* Options of the connection (RFC 9110, 7.6.1). A proxy drops the fields that are named there. */
static enum http_fault read_connection(struct head *h, struct http_text value)
{
    while (value.n > 0) {
        struct http_text option = http_text_trimmed(http_text_cut(&value, ','));
        enum http_field field;

        if (option.n == 0)
            continue;
        if (!http_text_is_token(option) || !http_field_find(option, &field))
            return HTTP_MALFORMED;
        if (field == HTTP_FIELD_HOST || field == HTTP_FIELD_CONTENT_LENGTH ||
            field == HTTP_FIELD_TRANSFER_ENCODING)
            return HTTP_MALFORMED;
        h->connection_upgrade |= field == HTTP_FIELD_UPGRADE;
    }
    return HTTP_GOOD;
}

static enum http_fault read_field(struct head *h, struct http_text line)
{
    struct http_text value;
    enum http_field field;

    if (!http_line_field(line, &field, &value))
        return HTTP_MALFORMED;
    switch (field) {
    case HTTP_FIELD_HOST:
        return read_host(h, value);
    case HTTP_FIELD_CONTENT_LENGTH:
        if (h->n_lengths++ > 0 || !http_text_decimal(value, &h->length))
            return HTTP_BODY;
        return HTTP_GOOD;
    case HTTP_FIELD_TRANSFER_ENCODING:
        return h->n_codings++ > 0 || !http_text_is(value, "chunked") ? HTTP_BODY : HTTP_GOOD;
    case HTTP_FIELD_CONNECTION:
        return read_connection(h, value);
    case HTTP_FIELD_UPGRADE:
        /*
         * Some clients (Java's) offer h2c with every request. A server that takes the offer then
         * expects the preface of HTTP/2 before it reads anything else (RFC 7540, 3.2 and 3.5), and
         * no preface goes on; so requests behind it have one reading all the same.
         */
        if (http_text_is(value, "h2c")) {
            h->offers_http2 = true;
            return HTTP_GOOD;
        }
        return h->n_upgrades++ > 0 || !http_text_is(value, "websocket") ? HTTP_UPGRADE : HTTP_GOOD;
    case HTTP_FIELD_OTHER:
    case HTTP_FIELD__MAX:
        break;
    }
    return HTTP_GOOD;
}

static unsigned port_or_default(uint16_t port)
{
    return port ? port : DEFAULT_PORT;
}

/* What only all lines together tell. */
static enum http_fault judge_head(const struct http_stream *s, struct head *h)
{
    struct http_request *q = &h->request;

    if (h->n_hosts == 0)
        return HTTP_NO_HOST;
    if (h->has_target_host && (strcmp(h->target_host, q->host) != 0 ||
                               port_or_default(h->target_port) != port_or_default(q->port)))
        return HTTP_HOST_DIFFERS;
    if (h->n_codings > 0 && (h->n_lengths > 0 || h->old))
        return HTTP_BODY;
    if (h->n_upgrades > 0 && h->offers_http2)
        return HTTP_UPGRADE; /* which of the two a server takes would be open */
    if (h->n_upgrades == 0)
        return HTTP_GOOD;
    /* RFC 6455, 4.1; a body would be bytes of the new protocol to some */
    q->upgrade = s->n_requests == 0 && !h->old && h->connection_upgrade && h->n_codings == 0 &&
                 h->length == 0 && strcmp(q->method, "GET") == 0;
    return q->upgrade ? HTTP_GOOD : HTTP_UPGRADE;
}

/* The lines that are there of a head. Return: its bytes, or 0 when its end is not there. */
static size_t read_lines(struct head *h, const uint8_t *data, size_t len, enum http_fault *fault)
{
    size_t at = 0, bytes;
    struct http_text line;

    while (*fault == HTTP_GOOD && (bytes = http_line_bytes(data, len, at)) > 0) {
        bool first = at == 0;

        if (!http_line_text(data + at, bytes, &line)) {
            *fault = HTTP_MALFORMED;
            return 0;
        }
        at += bytes;
        if (line.n == 0)
            return at;
        *fault = first ? read_request_line(h, line) : read_field(h, line);
    }
    return 0;
}

static void begin_body(struct http_stream *s, const struct head *h)
{
    s->n_requests += s->n_requests < 2; /* only the first one counts */
    s->line_bytes = 0;
    s->body_left = h->length;
    if (h->request.upgrade)
        s->state = AWAITING_ANSWER;
    else if (h->n_codings > 0)
        s->state = IN_CHUNK_LINE;
    else
        s->state = h->length > 0 ? IN_BODY : IN_HEAD;
}

static enum http_step step_head(struct http_stream *s, const uint8_t *data, size_t len,
                                struct http_request *ret_request, size_t *ret_used,
                                enum http_fault *ret_fault)
{
    struct head h = {0};
    enum http_fault fault = read_method(s, data, len);
    size_t used = 0;

    if (len > HTTP_HEAD_BYTES_MAX)
        len = HTTP_HEAD_BYTES_MAX;
    if (s->line_bytes > len)
        s->line_bytes = 0;
    /* Looked at again only when a line has come to its end since. */
    if (fault == HTTP_GOOD && http_line_bytes(data, len, s->line_bytes) > 0)
        used = read_lines(&h, data, len, &fault);
    if (fault == HTTP_GOOD && used > 0)
        fault = judge_head(s, &h);
    if (fault == HTTP_GOOD && used == 0 && len == HTTP_HEAD_BYTES_MAX)
        fault = HTTP_TOO_LONG;
    if (fault != HTTP_GOOD) {
        *ret_fault = fault;
        return HTTP_STEP_BAD;
    }
    s->line_bytes = len;
    if (used == 0)
        return HTTP_STEP_MORE;
    begin_body(s, &h);
    *ret_request = h.request;
    *ret_used = used;
    return HTTP_STEP_HEAD;
}

/* Bodies */

/* SIZE or SIZE;EXTENSIONS, which were judged as a line and mean nothing here. */
static enum http_fault read_chunk_line(struct http_stream *s, struct http_text line)
{
    struct http_text digits = http_text_cut(&line, ';');
    uint64_t size = 0;

    if (digits.n == 0 || digits.n > CHUNK_DIGITS_MAX)
        return HTTP_BODY;
    for (size_t i = 0; i < digits.n; i++) {
        int digit = parse_hex_digit(digits.at[i]);

        if (digit < 0)
            return HTTP_BODY;
        size = size << 4 | (uint64_t)digit;
    }
    s->body_left = size;
    s->line_bytes = 0;
    s->state = size > 0 ? IN_CHUNK : IN_TRAILER;
    return HTTP_GOOD;
}

/* One line of the fields after the last chunk: none that the head was judged by. */
static enum http_fault read_trailer(struct http_stream *s, struct http_text line, size_t bytes)
{
    struct http_text value;
    enum http_field field;

    if (line.n == 0) {
        s->state = IN_HEAD;
        s->line_bytes = 0;
        return HTTP_GOOD;
    }
    if (!http_line_field(line, &field, &value))
        return HTTP_MALFORMED;
    if (field == HTTP_FIELD_HOST)
        return HTTP_TWO_HOSTS;
    if (field == HTTP_FIELD_CONTENT_LENGTH || field == HTTP_FIELD_TRANSFER_ENCODING)
        return HTTP_BODY;
    if (field != HTTP_FIELD_OTHER)
        return HTTP_MALFORMED;
    s->line_bytes += bytes; /* of all of them; a line that is refused is looked at again */
    return HTTP_GOOD;
}

/* A line of a chunked body's framing. Return: its bytes; 0: not there yet, or a fault. */
static size_t step_line(struct http_stream *s, const uint8_t *data, size_t len,
                        enum http_fault *fault)
{
    size_t most = s->state == IN_TRAILER ? HTTP_HEAD_BYTES_MAX - s->line_bytes : CHUNK_LINE_MAX;
    size_t there = len < most ? len : most, bytes = http_line_bytes(data, there, 0);
    struct http_text line;

    if (bytes == 0) {
        *fault = there == most ? HTTP_TOO_LONG : HTTP_GOOD;
        return 0;
    }
    if (!http_line_text(data, bytes, &line))
        *fault = HTTP_MALFORMED;
    else if (s->state == IN_TRAILER)
        *fault = read_trailer(s, line, bytes);
    else
        *fault = read_chunk_line(s, line);
    return *fault == HTTP_GOOD ? bytes : 0;
}

/* Data, as far as it is there. Return: its bytes. */
static size_t step_data(struct http_stream *s, size_t len)
{
    size_t bytes = len < s->body_left ? len : (size_t)s->body_left;

    s->body_left -= bytes;
    if (s->body_left == 0)
        s->state = s->state == IN_CHUNK ? AFTER_CHUNK : IN_HEAD;
    return bytes;
}

/* The CR LF that ends a chunk. It goes on whole, as each line does. */
static size_t step_chunk_end(struct http_stream *s, const uint8_t *data, size_t len,
                             enum http_fault *fault)
{
    if ((len > 0 && data[0] != '\r') || (len > 1 && data[1] != '\n')) {
        *fault = HTTP_BODY;
        return 0;
    }
    if (len < 2)
        return 0;
    s->state = IN_CHUNK_LINE;
    return 2;
}

/* As much of the body as is there: many small chunks are one step. */
static enum http_step step_body(struct http_stream *s, const uint8_t *data, size_t len,
                                size_t *ret_used, enum http_fault *ret_fault)
{
    enum http_fault fault = HTTP_GOOD;
    size_t used = 0, bytes = 0;

    do {
        if (s->state == IN_BODY || s->state == IN_CHUNK)
            bytes = step_data(s, len - used);
        else if (s->state == AFTER_CHUNK)
            bytes = step_chunk_end(s, data + used, len - used, &fault);
        else
            bytes = step_line(s, data + used, len - used, &fault);
        used += bytes;
    } while (bytes > 0 && s->state != IN_HEAD);
    if (used > 0) { /* a fault behind it is found again by the next call */
        *ret_used = used;
        return HTTP_STEP_BODY;
    }
    if (fault == HTTP_GOOD)
        return HTTP_STEP_MORE;
    *ret_fault = fault;
    return HTTP_STEP_BAD;
}

enum http_step http_stream_step(struct http_stream *s, const uint8_t *data, size_t len,
                                struct http_request *ret_request, size_t *ret_used,
                                enum http_fault *ret_fault)
{
    *ret_used = 0;
    *ret_fault = HTTP_GOOD;
    if (len == 0 || s->state == AWAITING_ANSWER)
        return HTTP_STEP_MORE;
    if (s->state == IN_HEAD)
        return step_head(s, data, len, ret_request, ret_used, ret_fault);
    return step_body(s, data, len, ret_used, ret_fault);
}

void http_stream_not_switched(struct http_stream *s)
{
    if (s->state == AWAITING_ANSWER)
        s->state = IN_HEAD;
}

const char *http_fault_text(enum http_fault fault)
{
    static const char *const texts[] = {
        [HTTP_GOOD] = "is good",
        [HTTP_NOT_HTTP] = "is not HTTP",
        [HTTP_TOO_LONG] = "is too long",
        [HTTP_MALFORMED] = "is malformed, or could be read in two ways",
        [HTTP_VERSION] = "is neither HTTP/1.1 nor HTTP/1.0",
        [HTTP_NO_HOST] = "names no host",
        [HTTP_TWO_HOSTS] = "has two Host fields",
        [HTTP_HOST_DIFFERS] = "has a target whose host differs from its Host field",
        [HTTP_BAD_HOST] = "has a host that is no plain name or address",
        [HTTP_BODY] = "has a body whose length could be read in two ways",
        [HTTP_CONNECT] = "asks for a tunnel by CONNECT",
        [HTTP_UPGRADE] = "asks for another protocol than WebSocket, or asks too late",
    };

    static_assert(ARRAY_SIZE(texts) == HTTP_FAULT__MAX, "every fault has a text");
    return texts[fault];
}

/* Answers */

/* "HTTP/1.1 101 Switching Protocols", as far as it is there; the reason may lack. */
static enum http_status_step read_status_line(const uint8_t *data, size_t len, unsigned *ret)
{
    static const char pattern[] = "HTTP/1.# ###";
    unsigned status = 0;

    for (size_t i = 0; i < strlen(pattern); i++) {
        if (i == len)
            return HTTP_STATUS_MORE;
        if (pattern[i] == '#' ? (data[i] < '0' || data[i] > '9') : data[i] != (uint8_t)pattern[i])
            return HTTP_STATUS_BAD;
        if (i > strlen("HTTP/1.# "))
            status = status * 10 + (unsigned)(data[i] - '0');
        else if (i == strlen("HTTP/1.# "))
            status = (unsigned)(data[i] - '0');
    }
    if (len == strlen(pattern))
        return HTTP_STATUS_MORE;
    uint8_t next = data[strlen(pattern)];
    if (status < 100 || (next != ' ' && next != '\r'))
        return HTTP_STATUS_BAD;
    *ret = status;
    return HTTP_STATUS_DONE;
}

/* Return: the bytes of the head at @data, or 0 when its end is not there. */
static size_t answer_bytes(const uint8_t *data, size_t len)
{
    const uint8_t *end = memmem(data, len, "\r\n\r\n", 4);

    return end ? (size_t)(end - data) + 4 : 0;
}

enum http_status_step http_status_parse(const uint8_t *data, size_t len, unsigned *ret_status,
                                        size_t *ret_bytes)
{
    size_t there = len < HTTP_HEAD_BYTES_MAX ? len : HTTP_HEAD_BYTES_MAX, at = 0;
    unsigned status = 0;

    do {
        enum http_status_step step = read_status_line(data + at, there - at, &status);
        size_t bytes = step == HTTP_STATUS_DONE ? answer_bytes(data + at, there - at) : 0;

        if (step == HTTP_STATUS_BAD)
            return step;
        if (bytes == 0)
            return there == HTTP_HEAD_BYTES_MAX ? HTTP_STATUS_BAD : HTTP_STATUS_MORE;
        at += bytes;
    } while (status < 200 && status != 101);
    *ret_status = status;
    *ret_bytes = at;
    return HTTP_STATUS_DONE;
}
