/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting outside: which addresses, in which order, and through the proxy if there is one. */
#include "egress/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "wire/http_head.h"
#include "base/guards.h"

enum {
    PROXY_REQUEST_MAX = 4096,
    PROXY_ANSWER_MAX = 16 * 1024, /* of its head: more is no answer to CONNECT */
};

static void close_try(struct dial *d, struct dial_try *t)
{
    if (t->fd < 0)
        return;
    loop_forget(&d->egress->loop, &t->source);
    fd_closep(&t->fd);
}

/* Gives everything back but what the caller set. */
static void end(struct dial *d)
{
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        close_try(d, &d->tries[i]);
    loop_at(&d->egress->loop, &d->timer, CLOCK_NEVER);
    lookup_forget(&d->waiter);
    free(d->proxied);
    d->proxied = NULL;
    if (d->name)
        d->name->users--;
    d->deadline_us = 0;
}

/* The last that is done with @d: its owner may free it in the call. */
static void finish(struct dial *d, enum dial_result result, int fd)
{
    end(d);
    d->done(d, result, fd);
}

static void fail(struct dial *d, int error, const char *reason)
{
    d->error = error;
    (void)snprintf(d->reason, sizeof d->reason, "%s", reason);
    finish(d, DIAL_FAILED, -EBADF);
}

void dial_cancel(struct dial *d)
{
    if (d->deadline_us != 0)
        end(d);
}

/* --- which addresses --- */

/* By name only what its addresses are is in question; by address, whether it may pass at all. */
static bool is_listed(const struct dial *d, const struct address *a)
{
    const struct policy *p = &d->egress->policy;

    return d->name || p->open ? policy_may_dial(p, a) : policy_find_range(p, a) != NULL;
}

/* Adds @a if it may be connected to; otherwise says in @d why not. */
static void consider(struct dial *d, const struct address *found)
{
    const struct address a = address_unmapped(found);
    const bool listed = is_listed(d, &a);
    enum own_address_answer way;

    if (d->n_addresses == DIAL_ADDRESSES_MAX)
        return;
    way = listed ? own_address_ask(&d->egress->own_address, &a) : ADDRESS_ELSEWHERE;
    if (!listed || (way == ADDRESS_OWN && !policy_lists_alone(&d->egress->policy, &a))) {
        d->judged = a;
        d->judged_own = listed;
    } else if (way == ADDRESS_NO_ROUTE && !d->egress->proxy.set) {
        d->error = ENETUNREACH;
    } else {
        d->addresses[d->n_addresses++] = a;
    }
}

/* Both families by turns, the first as it came (RFC 8305, section 4). */
static void interleave(struct dial *d)
{
    struct address sorted[DIAL_ADDRESSES_MAX] = {0};
    size_t next[2] = {0, 0}, turn = 0;
    const enum address_family first = d->addresses[0].family;

    for (size_t n = 0; n < d->n_addresses; turn = 1 - turn) {
        size_t i = next[turn];

        while (i < d->n_addresses && (d->addresses[i].family == first) != (turn == 0))
            i++;
        next[turn] = i + 1;
        if (i < d->n_addresses)
            sorted[n++] = d->addresses[i];
    }
    memcpy(d->addresses, sorted, d->n_addresses * sizeof sorted[0]);
}

/* --- trying them --- */

static void try_next(struct dial *d);
static void connected(struct dial *d, struct dial_try *t);

static socklen_t socket_address(const struct address *a, uint16_t port,
                                struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (a->family == ADDRESS_V4) {
        memcpy(&v4.sin_addr, a->bytes, sizeof v4.sin_addr);
        memcpy(ret, &v4, sizeof v4);
        return sizeof v4;
    }
    memcpy(&v6.sin6_addr, a->bytes, sizeof v6.sin6_addr);
    memcpy(ret, &v6, sizeof v6);
    return sizeof v6;
}

static int connect_to(int fd, const struct sockaddr_storage *to, socklen_t len)
{
    return connect(fd, (const struct sockaddr *)to, len) == 0 ? 0 : -errno;
}

static struct dial_try *free_try(struct dial *d)
{
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        if (d->tries[i].fd < 0)
            return &d->tries[i];
    return NULL;
}

static bool any_try(const struct dial *d)
{
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        if (d->tries[i].fd >= 0)
            return true;
    return false;
}

static int try_ready(struct loop *loop, struct loop_source *s, uint32_t events)
{
    struct dial_try *t = s->owner;
    struct dial *d = t->dial;
    int error = 0;
    socklen_t len = sizeof error;

    (void)loop;
    (void)events;
    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error == 0) {
        connected(d, t);
        return 0;
    }
    d->error = error;
    close_try(d, t);
    try_next(d);
    return 0;
}

/*
 * Begins with one address. Return: 0 when it is connected, -EINPROGRESS when it is watched, or why
 * it failed.
 *
 * A connection within this host is over when connect(2) returns, although that says EINPROGRESS:
 * the answer waited only for the socket's lock. A second call tells, and saves a turn of the loop.
 */
static int begin(struct dial *d, struct dial_try *t, const struct address *a, uint16_t port)
{
    static const int on = 1;
    struct sockaddr_storage to = {0};
    socklen_t len = socket_address(a, port, &to);
    _cleanup_fd_ int fd =
        socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        return -errno;
    int r = connect_to(fd, &to, len);
    if (r == -EINPROGRESS)
        r = connect_to(fd, &to, len);
    if (r == -EALREADY) {
        t->source.ready = try_ready;
        r = loop_watch(&d->egress->loop, &t->source, fd, EPOLLOUT);
        r = r < 0 ? r : -EINPROGRESS;
    }
    if (r == 0 || r == -EINPROGRESS)
        t->fd = TAKE_FD(fd);
    return r;
}

static void set_timer(struct dial *d)
{
    uint64_t next = d->next < d->n_addresses ? clock_after_us(DIAL_NEXT_US) : CLOCK_NEVER;

    loop_at(&d->egress->loop, &d->timer, next < d->deadline_us ? next : d->deadline_us);
}

/* Begins with the next address, and with those behind it as long as they fail at once. */
static void try_next(struct dial *d)
{
    const struct proxy *proxy = &d->egress->proxy;
    struct dial_try *t = free_try(d);

    while (t && d->next < d->n_addresses) {
        int r = begin(d, t, &d->addresses[d->next++], proxy->set ? proxy->port : d->port);

        if (r == 0) {
            connected(d, t);
            return;
        }
        if (r == -EINPROGRESS)
            break;
        d->error = -r;
    }
    if (any_try(d)) {
        set_timer(d);
        return;
    }
    fail(d, d->error, proxy->set ? "the proxy cannot be connected to" : "");
}

static int timer_due(struct loop *loop, struct loop_timer *timer)
{
    struct dial *d = timer->owner;

    (void)loop;
    if (clock_now_us() >= d->deadline_us)
        fail(d, ETIMEDOUT, d->egress->proxy.set ? "the proxy does not answer in time" : "");
    else
        try_next(d);
    return 0;
}

/* --- through the proxy --- */

static void proxy_answered(struct dial *d, struct dial_try *t, unsigned status)
{
    char reason[DIAL_REASON_BYTES];

    if (status >= 200 && status < 300) {
        int fd = t->fd;

        loop_forget(&d->egress->loop, &t->source);
        t->fd = -EBADF;
        finish(d, DIAL_CONNECTED, fd);
        return;
    }
    (void)snprintf(reason, sizeof reason, "the proxy %s (status %u)",
                   status == 407   ? "wants other credentials"
                   : status == 403 ? "refuses it"
                   : status >= 500 ? "cannot connect to it"
                                   : "does not do it",
                   status);
    fail(d,
         status == 407 || status == 403 ? EACCES
         : status == 504                ? ETIMEDOUT
                                        : EHOSTUNREACH,
         reason);
}

/* Reads the answer's head, and not one byte of what the server behind the proxy says after it. */
static void read_answer(struct dial *d, struct dial_try *t, uint32_t events)
{
    uint8_t buf[PROXY_ANSWER_MAX];
    ssize_t n = recv(t->fd, buf, sizeof buf, MSG_PEEK | MSG_DONTWAIT);
    unsigned status = 0;
    size_t head = 0;
    int more;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail(d, n < 0 ? errno : ECONNRESET, "the proxy closes the connection without an answer");
        return;
    }
    switch (http_status_parse(buf, (size_t)n, &status, &head)) {
    case HTTP_STATUS_MORE:
        /* Nothing further happens until more than this is there: the rest stays unread. */
        more = (int)n + 1;
        if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) || (size_t)n == sizeof buf ||
            setsockopt(t->fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more) < 0)
            fail(d, EPROTO, "the proxy answers with no whole head of HTTP");
        return;
    case HTTP_STATUS_BAD:
        fail(d, EPROTO, "the proxy answers with something that is no HTTP");
        return;
    case HTTP_STATUS_DONE:
        break;
    }
    more = 1;
    if (recv(t->fd, buf, head, MSG_DONTWAIT) != (ssize_t)head ||
        setsockopt(t->fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more) < 0)
        fail(d, EIO, "the proxy's answer cannot be read");
    else
        proxy_answered(d, t, status);
}

static void write_request(struct dial *d, struct dial_try *t)
{
    ssize_t n = send(t->fd, d->proxied + d->proxied_done, d->proxied_bytes - d->proxied_done,
                     MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        fail(d, errno, "the proxy closes the connection");
        return;
    }
    d->proxied_done += (size_t)n;
    if (d->proxied_done == d->proxied_bytes &&
        loop_change(&d->egress->loop, &t->source, EPOLLIN | EPOLLRDHUP) < 0)
        fail(d, ENOMEM, "");
}

static int proxy_ready(struct loop *loop, struct loop_source *s, uint32_t events)
{
    struct dial_try *t = s->owner;
    struct dial *d = t->dial;

    (void)loop;
    if (d->proxied_done < d->proxied_bytes)
        write_request(d, t);
    else
        read_answer(d, t, events);
    return 0;
}

static int make_request(struct dial *d)
{
    const struct address *a = d->target.family != 0 ? &d->target : NULL;
    char text[ADDRESS_TEXT_BYTES];

    if (a)
        address_format(a, text);
    d->proxied = malloc(PROXY_REQUEST_MAX);
    if (!d->proxied)
        return -ENOMEM;
    d->proxied_bytes =
        proxy_request(&d->egress->proxy, a ? text : d->name->text.text,
                      a && a->family == ADDRESS_V6, d->port, d->proxied, PROXY_REQUEST_MAX);
    return d->proxied_bytes > 0 ? 0 : -EMSGSIZE;
}

/* The proxy looks the name up itself, unless the spec pins it; an address has been judged. */
static void start_proxied(struct dial *d)
{
    const struct proxy *proxy = &d->egress->proxy;
    const struct policy_pin *pin =
        d->name ? policy_pin_next(&d->egress->policy, &d->name->text, NULL) : NULL;

    if (!d->name)
        d->target = d->addresses[0];
    else if (pin)
        d->target = pin->address;
    d->n_addresses = proxy->n_addresses;
    memcpy(d->addresses, proxy->addresses, proxy->n_addresses * sizeof proxy->addresses[0]);
    interleave(d);
    int r = make_request(d);
    if (r < 0)
        fail(d, -r, "");
    else
        try_next(d);
}

/* --- one of them is connected --- */

static void connected(struct dial *d, struct dial_try *t)
{
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        if (&d->tries[i] != t)
            close_try(d, &d->tries[i]);
    loop_forget(&d->egress->loop, &t->source);
    if (!d->egress->proxy.set) {
        int fd = t->fd;

        t->fd = -EBADF;
        finish(d, DIAL_CONNECTED, fd);
        return;
    }
    t->source.ready = proxy_ready;
    loop_at(&d->egress->loop, &d->timer, d->deadline_us);
    if (loop_watch(&d->egress->loop, &t->source, t->fd, EPOLLOUT) < 0)
        fail(d, ENOMEM, "");
}

/* --- the start --- */

/* What was considered is all there is. */
static void try_all(struct dial *d)
{
    if (d->n_addresses == 0 && d->judged.family != 0) {
        finish(d, DIAL_FORBIDDEN, -EBADF);
    } else if (d->n_addresses == 0) {
        fail(d, ENETUNREACH, "this host has no route to it");
    } else if (d->egress->proxy.set) {
        start_proxied(d);
    } else {
        interleave(d);
        try_next(d);
    }
}

static void by_name(struct dial *d, const struct name *x)
{
    if (x->status == RESOLVE_NOT_FOUND) {
        finish(d, DIAL_NOT_FOUND, -EBADF);
    } else if (x->status != RESOLVE_FOUND) {
        fail(d, EHOSTUNREACH, "its name cannot be looked up now");
    } else {
        for (size_t i = 0; i < x->n_addresses; i++)
            consider(d, &x->addresses[i]);
        try_all(d);
    }
}

static void looked_up(struct lookup_waiter *w, struct name *x)
{
    by_name(w->owner, x);
}

static void by_pins(struct dial *d, const struct policy_pin *pin)
{
    const struct policy *p = &d->egress->policy;

    for (; pin && d->n_addresses < DIAL_ADDRESSES_MAX;
         pin = policy_pin_next(p, &d->name->text, pin))
        d->addresses[d->n_addresses++] = address_unmapped(&pin->address);
    interleave(d);
    try_next(d);
}

void dial_start(struct dial *d)
{
    struct egress *e = d->egress;
    const struct policy_pin *pin =
        d->name ? policy_pin_next(&e->policy, &d->name->text, NULL) : NULL;

    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        d->tries[i] =
            (struct dial_try){.fd = -EBADF,
                              .source = {.name = "dial", .fd = -EBADF, .owner = &d->tries[i]},
                              .dial = d};
    d->timer = (struct loop_timer){.name = "dial", .owner = d, .due = timer_due};
    d->waiter = (struct lookup_waiter){.owner = d, .done = looked_up};
    d->deadline_us = clock_after_us(DIAL_TIMEOUT_US);
    if (d->name)
        d->name->users++;
    if (!d->name) {
        const struct address only = d->addresses[0];

        consider(d, &only);
        try_all(d);
    } else if (e->proxy.set) {
        start_proxied(d);
    } else if (pin) {
        by_pins(d, pin);
    } else if (lookup_need(&e->lookups, d->name, &d->waiter)) {
        by_name(d, d->name);
    }
}
