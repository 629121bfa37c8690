/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver inside: what each question is answered by, at once or after a look-up outside. */
#include "egress/dns_server.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "egress/judge_dns.h"
#include "base/guards.h"

enum {
    /* Header, question, all the addresses that a name can have, OPT. */
    ANSWER_BYTES_MAX = DNS_HEADER_BYTES + 255 + 4 + RESOLVE_ADDRESSES_MAX * (12 + 16) + 11,
    TCP_OUT_BYTES = 16 * 1024,
    SWEEPS = 10, /* within the time that a connection may stand still */
};

static_assert(NAMES_KEEP_US > DNS_TTL_S * UINT64_C(1000000),
              "an address outlives what programs remember of it");

struct dns_connection {
    struct dns_connection *next;
    struct dns_server *server;
    struct loop_source source;
    int fd;
    uint64_t active_us; /* when bytes went or an answer came, last */
    size_t n_waiting;
    bool ended; /* the program sends no more */
    size_t n_in, n_out;
    uint8_t in[2 + DNS_MESSAGE_BYTES_MAX];
    uint8_t out[TCP_OUT_BYTES];
};

/* One question whose name is being looked up. */
struct dns_waiting {
    struct dns_waiting *next, *previous;
    struct dns_server *server;
    struct lookup_waiter waiter;
    struct dns_connection *connection; /* or NULL: by UDP, and */
    struct datagram_ends ends;
    struct dns_question question;
    uint8_t message[]; /* its header and question */
};

/* Who asks. */
struct asker {
    const struct datagram_ends *ends;  /* by UDP */
    struct dns_connection *connection; /* by TCP */
};

/* Waiting */

static void forget_waiting(struct dns_waiting *w)
{
    struct dns_server *s = w->server;

    lookup_forget(&w->waiter);
    *(w->previous ? &w->previous->next : &s->waiting) = w->next;
    if (w->next)
        w->next->previous = w->previous;
    s->n_waiting--;
    if (w->connection)
        w->connection->n_waiting--;
    free(w);
}

static void work(struct dns_connection *c);

static void deliver_by_tcp(struct dns_connection *c, const uint8_t *message,
                           const struct dns_question *q, const struct dns_answer *answer)
{
    uint8_t *to = c->out + c->n_out;
    size_t n = dns_answer_encode(message, q, answer, to + 2, sizeof c->out - c->n_out - 2);

    to[0] = (uint8_t)(n >> 8);
    to[1] = (uint8_t)n;
    c->n_out += 2 + n;
    c->active_us = clock_now_us();
}

static size_t udp_room(const struct dns_question *q, size_t size)
{
    return q->udp_bytes < size ? q->udp_bytes : size;
}

/* The name has been looked up; the policy may be another one by now. */
static void looked_up(struct lookup_waiter *waiter, struct name *x)
{
    struct dns_waiting *w = waiter->owner;
    struct dns_connection *c = w->connection;
    struct egress *e = w->server->egress;
    uint8_t buf[ANSWER_BYTES_MAX];
    struct dns_verdict v;

    if (judge_dns(e, &w->question, &v))
        judge_dns_looked_up(e, &w->question, x, &v);
    if (c) {
        deliver_by_tcp(c, w->message, &w->question, &v.answer);
    } else {
        const struct datagram_reply reply = {
            .ends = w->ends,
            .data = buf,
            .len = dns_answer_encode(w->message, &w->question, &v.answer, buf,
                                     udp_room(&w->question, sizeof buf)),
        };

        inject_datagrams(e, &reply, 1);
    }
    forget_waiting(w);
    if (c)
        work(c);
}

/* Return: whether the answer follows later; otherwise @v is it. */
static bool wait_for(struct dns_server *s, struct name *x, const struct asker *from,
                     const uint8_t *message, const struct dns_question *q, struct dns_verdict *v)
{
    struct dns_waiting *w = NULL;

    judge_dns_say(v, DNS_SERVFAIL);
    if (s->n_waiting < DNS_WAITING_MAX)
        w = malloc(sizeof *w + q->question_bytes);
    if (!w)
        return false;
    *w = (struct dns_waiting){
        .next = s->waiting,
        .server = s,
        .waiter = {.owner = w, .done = looked_up},
        .connection = from->connection,
        .question = *q,
    };
    if (from->ends)
        w->ends = *from->ends;
    memcpy(w->message, message, q->question_bytes);
    if (lookup_need(&s->egress->lookups, x, &w->waiter)) {
        free(w);
        judge_dns_looked_up(s->egress, q, x, v);
        return false;
    }
    if (s->waiting)
        s->waiting->previous = w;
    s->waiting = w;
    s->n_waiting++;
    if (w->connection)
        w->connection->n_waiting++;
    return true;
}

/* Return: whether @q and @v are a question and its answer; otherwise it follows or there is none.
 */
static bool ask(struct dns_server *s, const struct asker *from, const uint8_t *msg, size_t len,
                struct dns_question *q, struct dns_verdict *v)
{
    int r = dns_question_parse(msg, len, q);
    struct name *x;

    if (r < 0)
        return false;
    if (r != DNS_NOERROR) {
        judge_dns_say(v, (enum dns_rcode)r);
        if (q->odd)
            judge_dns_odd(s->egress, q);
        return true;
    }
    x = judge_dns(s->egress, q, v);
    return !x || !wait_for(s, x, from, msg, q, v);
}

size_t dns_server_ask(struct dns_server *s, const struct datagram_ends *ends, const uint8_t *msg,
                      size_t len, uint8_t *buf, size_t size)
{
    const struct asker from = {.ends = ends};
    struct dns_question q;
    struct dns_verdict v;

    if (!ask(s, &from, msg, len, &q, &v))
        return 0;
    return dns_answer_encode(msg, &q, &v.answer, buf, udp_room(&q, size));
}

/* TCP (RFC 7766): messages with two bytes of length before each, answered in any order */

static void drop(struct dns_connection *c)
{
    struct dns_server *s = c->server;
    struct dns_connection **at = &s->connections;

    for (struct dns_waiting *w = s->waiting, *next; w && c->n_waiting > 0; w = next) {
        next = w->next;
        if (w->connection == c)
            forget_waiting(w);
    }
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    s->n_connections--;
    loop_forget(&s->egress->loop, &c->source);
    fd_closep(&c->fd);
    loop_free_later(&s->egress->loop, c);
}

/* Whether one more answer finds room beside those that are to come. */
static bool has_room(const struct dns_connection *c)
{
    return c->n_out + (c->n_waiting + 1) * (2 + ANSWER_BYTES_MAX) <= sizeof c->out;
}

/* Answers the questions that are there in full. Return: false for what is no such stream. */
static bool take_questions(struct dns_connection *c)
{
    const struct asker from = {.connection = c};
    struct dns_question q;
    struct dns_verdict v;
    size_t at = 0;

    while (has_room(c) && c->n_in - at >= 2) {
        const uint8_t *p = c->in + at;
        size_t n = (size_t)p[0] << 8 | p[1];

        if (n < DNS_HEADER_BYTES || n > DNS_MESSAGE_BYTES_MAX)
            return false;
        if (c->n_in - at < 2 + n)
            break;
        if (ask(c->server, &from, p + 2, n, &q, &v))
            deliver_by_tcp(c, p + 2, &q, &v.answer);
        at += 2 + n;
    }
    memmove(c->in, c->in + at, c->n_in - at);
    c->n_in -= at;
    return true;
}

/* Return: 0, also when the kernel takes no more now, or a negative errno. */
static int flush(struct dns_connection *c)
{
    ssize_t n = send(c->fd, c->out, c->n_out, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    memmove(c->out, c->out + n, c->n_out - (size_t)n);
    c->n_out -= (size_t)n;
    c->active_us = clock_now_us();
    return 0;
}

/* All that can be done now: questions, answers, what is waited for next, or the end. */
static void work(struct dns_connection *c)
{
    uint32_t events = 0;
    bool good;

    do {
        good = take_questions(c);
        if (c->n_out == 0)
            break;
        good = good && flush(c) == 0;
    } while (good && c->n_out == 0);
    if (!good || (c->ended && c->n_waiting == 0 && c->n_out == 0)) {
        drop(c);
        return;
    }
    if (!c->ended && has_room(c))
        events |= EPOLLIN;
    if (c->n_out > 0)
        events |= EPOLLOUT;
    if (loop_change(&c->server->egress->loop, &c->source, events) < 0)
        drop(c);
}

static int connection_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct dns_connection *c = source->owner;

    (void)l;
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !c->ended && has_room(c)) {
        ssize_t n = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, MSG_DONTWAIT);

        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            drop(c);
            return 0;
        }
        if (n > 0) {
            c->n_in += (size_t)n;
            c->active_us = clock_now_us();
        }
        c->ended = n == 0;
    } else if (events & (EPOLLERR | EPOLLHUP)) {
        drop(c); /* whoever would read the answers is gone */
        return 0;
    }
    work(c);
    return 0;
}

/* Ends connections that stand still: nothing is looked up, or nobody takes the answers. */
static int sweep_due(struct loop *l, struct loop_timer *t)
{
    struct dns_server *s = t->owner;
    uint64_t now = clock_now_us();

    for (struct dns_connection *c = s->connections, *next; c; c = next) {
        next = c->next;
        if (now - c->active_us >= s->idle_us && (c->n_waiting == 0 || c->n_out > 0))
            drop(c);
    }
    if (s->n_connections > 0)
        loop_at(l, t, clock_after_us(s->idle_us / SWEEPS));
    return 0;
}

void dns_server_accept(struct dns_server *s, int fd)
{
    struct dns_connection *c = NULL;
    const int on = 1;

    if (s->n_connections < DNS_CONNECTIONS_MAX)
        c = malloc(sizeof *c);
    if (!c) {
        (void)close(fd);
        return;
    }
    *c = (struct dns_connection){
        .next = s->connections,
        .server = s,
        .fd = fd,
        .source = {.name = "dns", .fd = -EBADF, .owner = c, .ready = connection_ready},
        .active_us = clock_now_us(),
    };
    s->connections = c;
    s->n_connections++;
    /* Answers are small, and a program may wait for each before it acknowledges anything. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (loop_watch(&s->egress->loop, &c->source, fd, EPOLLIN) < 0) {
        drop(c);
        return;
    }
    if (!s->sweep.set)
        loop_at(&s->egress->loop, &s->sweep, clock_after_us(s->idle_us / SWEEPS));
}

int dns_server_init(struct dns_server *s, struct egress *e)
{
    *s = (struct dns_server){
        .egress = e,
        .idle_us = DNS_IDLE_US,
        .sweep = {.name = "dns connections", .owner = s, .due = sweep_due},
    };
    return 0;
}

void dns_server_done(struct dns_server *s)
{
    if (!s->egress)
        return;
    while (s->connections)
        drop(s->connections);
    while (s->waiting)
        forget_waiting(s->waiting);
    loop_at(&s->egress->loop, &s->sweep, CLOCK_NEVER);
}
