/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: in whatever pieces a stream comes, the same requests are seen, the same bytes go on and
 * the fault is the same; and a second reader, which knows nothing of refusals and takes whole lines
 * only, agrees on every request and every body that was let on.
 *
 * The first byte of the input seeds the pieces, the rest is the stream. It is read as the answers
 * of a server too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wire/http_head.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REQUESTS_MAX = 64 };

struct outcome {
    struct http_request requests[REQUESTS_MAX];
    size_t heads[REQUESTS_MAX]; /* where each begins */
    size_t bodies[REQUESTS_MAX];
    size_t n, passed;
    enum http_fault fault;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* In memory of its own, so that a sanitizer sees one byte too far. */
static enum http_step step_exact(struct http_stream *s, const uint8_t *data, size_t len,
                                 struct http_request *ret_request, size_t *ret_used,
                                 enum http_fault *ret_fault)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    enum http_step step;

    check(exact);
    if (len > 0)
        memcpy(exact, data, len);
    step = http_stream_step(s, exact, len, ret_request, ret_used, ret_fault);
    free(exact);
    check(*ret_used <= len);
    check((*ret_used > 0) == (step == HTTP_STEP_HEAD || step == HTTP_STEP_BODY));
    check((*ret_fault != HTTP_GOOD) == (step == HTTP_STEP_BAD));
    return step;
}

static void take(struct outcome *o, enum http_step step, const struct http_request *q, size_t used)
{
    if (step == HTTP_STEP_HEAD && o->n < REQUESTS_MAX) {
        o->requests[o->n] = *q;
        o->heads[o->n] = o->passed;
        o->bodies[o->n++] = o->passed + used;
    }
    o->passed += used;
}

/* The stream in pieces of 1 to @most bytes, 0: whole; to a server that never switches. */
static struct outcome run(const uint8_t *data, size_t len, uint32_t seed, size_t most)
{
    struct http_stream s = {0};
    struct outcome o = {0};
    size_t there = most == 0 ? len : 0;

    while (o.fault == HTTP_GOOD && o.n < REQUESTS_MAX) {
        struct http_request q;
        size_t used;
        enum http_step step =
            step_exact(&s, data + o.passed, there - o.passed, &q, &used, &o.fault);

        take(&o, step, &q, used);
        if (step == HTTP_STEP_HEAD && q.upgrade) {
            check(o.n == 1);
            check(step_exact(&s, data + o.passed, there - o.passed, &q, &used, &o.fault) ==
                  HTTP_STEP_MORE);
            http_stream_not_switched(&s);
        }
        if (step != HTTP_STEP_MORE)
            continue;
        if (there == len)
            break;
        seed = seed * 1103515245 + 12345;
        size_t piece = 1 + (seed >> 8) % most;
        there = len - there < piece ? len : there + piece;
    }
    return o;
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
    check(a->n == b->n && a->fault == b->fault);
    check(a->n == REQUESTS_MAX || a->passed == b->passed);
    for (size_t i = 0; i < a->n; i++) {
        const struct http_request *q = &a->requests[i], *r = &b->requests[i];

        check(strcmp(q->method, r->method) == 0 && strcmp(q->host, r->host) == 0);
        check(q->port == r->port && q->upgrade == r->upgrade);
        check(a->heads[i] == b->heads[i] && a->bodies[i] == b->bodies[i]);
    }
}

/* The value of a field in a head that was taken, without its blanks; NULL: none, or several. */
static const char *find(const char *head, const char *end, const char *name, size_t *ret_n)
{
    const char *found = NULL;
    size_t n = strlen(name);

    for (const char *line = head; line && line < end;) {
        const char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);

        check(stop && !memchr(line, '\n', (size_t)(stop - line)));
        if ((size_t)(stop - line) > n && strncasecmp(line, name, n) == 0 && line[n] == ':') {
            check(!found);
            for (found = line + n + 1; *found == ' ' || *found == '\t';)
                found++;
            const char *last = stop;
            while (last > found && (last[-1] == ' ' || last[-1] == '\t'))
                last--;
            *ret_n = (size_t)(last - found);
        }
        line = stop + 2;
    }
    return found;
}

static uint64_t number(const char *s, size_t n, int base)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, s[i] | 0x20);

        check(s[i] != '\0' && at && at - digits < base);
        value = value * (uint64_t)base + (uint64_t)(at - digits);
    }
    return value;
}

/* Where a chunked body ends that begins at @at, or @end when it does not end. */
static const char *chunks_end(const char *at, const char *end)
{
    for (;;) {
        const char *line = memmem(at, (size_t)(end - at), "\r\n", 2);

        if (!line)
            return end;
        const char *semicolon = memchr(at, ';', (size_t)(line - at));
        uint64_t bytes = number(at, (size_t)((semicolon ? semicolon : line) - at), 16);
        if (bytes == 0) { /* trailers end with the first empty line */
            const char *last = memmem(line, (size_t)(end - line), "\r\n\r\n", 4);
            return last ? last + 4 : end;
        }
        at = line + 2;
        if ((uint64_t)(end - at) <= bytes + 1)
            return end;
        check(memcmp(at + bytes, "\r\n", 2) == 0);
        at += bytes + 2;
    }
}

/* One request that was let on, and its body up to the next one's head, or to what has gone on. */
static void check_request(const struct outcome *o, size_t i, const char *data)
{
    const struct http_request *q = &o->requests[i];
    const char *head = data + o->heads[i], *body = data + o->bodies[i], *end = data + o->passed;
    size_t n = 0;

    check(memmem(head, (size_t)(body - head), "\r\n\r\n", 4) == body - 4);
    check(strncmp(head, q->method, strlen(q->method)) == 0 && head[strlen(q->method)] == ' ');
    const char *host = find(head, body, "Host", &n);
    check(host && n >= strlen(q->host) && strncasecmp(host, q->host, strlen(q->host)) == 0);
    check(n == strlen(q->host)
              ? q->port == 0
              : q->port == number(host + strlen(q->host) + 1, n - strlen(q->host) - 1, 10));
    const char *length = find(head, body, "Content-Length", &n);
    uint64_t bytes = length ? number(length, n, 10) : 0;
    const char *coding = find(head, body, "Transfer-Encoding", &n);
    check(!length || !coding);
    const char *stop = body + (bytes < (uint64_t)(end - body) ? bytes : (uint64_t)(end - body));
    if (coding)
        stop = chunks_end(body, end);
    check(stop == (i + 1 < o->n ? data + o->heads[i + 1] : end));
}

static void check_answers(const uint8_t *data, size_t size)
{
    unsigned status = 0, again = 0;
    size_t bytes = 0, same = 0, step = size > 4096 ? size / 512 : 1;
    enum http_status_step whole = http_status_parse(data, size, &status, &bytes);

    if (whole == HTTP_STATUS_DONE) {
        check(bytes <= size && bytes <= HTTP_HEAD_BYTES_MAX);
        check(status == 101 || (status >= 200 && status <= 999));
        check(http_status_parse(data, bytes - 1, &again, &same) == HTTP_STATUS_MORE);
        check(http_status_parse(data, bytes, &again, &same) == HTTP_STATUS_DONE);
        check(again == status && same == bytes);
    }
    for (size_t len = 0; len < size; len += step) {
        enum http_status_step part = http_status_parse(data, len, &again, &same);

        if (part != HTTP_STATUS_MORE) {
            check(part == whole);
            break;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t seed = size > 0 ? data[0] : 0;
    const uint8_t *stream = data + (size > 0), *end = data + size;
    size_t len = (size_t)(end - stream);
    struct outcome whole = run(stream, len, 0, 0), pieces;

    pieces = run(stream, len, seed, len > 8192 ? 1000 : 1 + seed % 32);
    check_same(&whole, &pieces);
    if (len <= 2048) {
        pieces = run(stream, len, seed, 1);
        check_same(&whole, &pieces);
    }
    for (size_t i = 0; i < whole.n && whole.n < REQUESTS_MAX; i++)
        check_request(&whole, i, (const char *)stream);
    check_answers(stream, len);
    return 0;
}
