/* SPDX-License-Identifier: Apache-2.0 */
/* Connections from outside to servers inside. */
#include "egress/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "base/guards.h"

#define ASK_AGAIN_US UINT64_C(2000000) /* the keeper's visitor failed, or is slow */
#define SHORTAGE_US  UINT64_C(100000)  /* no descriptor or memory for a connection */

enum { ACCEPTS = 16 }; /* of one listener before others have their turn */

struct published_flow {
    struct publish *publish;
    struct published_flow *next, *previous;
    struct relay relay;
    struct loop_source connecting;
    int inside, outside; /* owned until the relay has them */
    uint16_t port;
};

/* ---- listening, and not ---- */

static bool has_room(const struct publish *p)
{
    return p->n_sockets > 0 && p->n < PUBLISH_CONNECTIONS_MAX;
}

static void set_silent(struct publish *p, struct published_port *port, bool silent)
{
    if (port->silent != silent &&
        loop_change(&p->egress->loop, &port->source, silent ? 0 : EPOLLIN) == 0)
        port->silent = silent;
}

/* A sandbox that somebody outside speaks with is not idle. */
static void tell_busy(struct publish *p)
{
    uint8_t buf[16];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_CONNECTIONS, (uint32_t)p->n);
    keeper_link_tell(p->egress, MSG_BUSY, 0, buf, writer_len(&w));
}

static void listen_again(struct publish *p)
{
    for (size_t i = 0; i < p->n_ports && has_room(p); i++)
        set_silent(p, &p->ports[i], false);
}

static void ask(struct publish *p)
{
    if (p->asked || p->n_sockets >= PUBLISH_LOW)
        return;
    p->asked = true;
    loop_at(&p->egress->loop, &p->again, clock_after_us(ASK_AGAIN_US));
    keeper_link_tell(p->egress, MSG_SOCKETS, 0, NULL, 0);
}

static int again_due(struct loop *l, struct loop_timer *t)
{
    struct publish *p = t->owner;

    (void)l;
    p->asked = false;
    listen_again(p);
    if (p->n_sockets == 0)
        ask(p);
    return 0;
}

/* ---- one connection ---- */

static void reset_outside(struct published_flow *f)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (f->outside >= 0)
        (void)setsockopt(f->outside, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fd_closep(&f->outside);
}

/* Closes what the flow still has. */
static void end_flow(struct published_flow *f)
{
    struct publish *p = f->publish;

    loop_forget(&p->egress->loop, &f->connecting);
    reset_outside(f);
    fd_closep(&f->inside);
    *(f->previous ? &f->previous->next : &p->first) = f->next;
    if (f->next)
        f->next->previous = f->previous;
    if (--p->n == 0)
        tell_busy(p);
    loop_free_later(&p->egress->loop, f);
    listen_again(p);
}

static void relay_over(struct relay *r, int error)
{
    relay_stop(r, error < 0);
    end_flow(r->owner);
}

static void start_relay(struct published_flow *f)
{
    struct egress *e = f->publish->egress;

    loop_forget(&e->loop, &f->connecting);
    f->relay.loop = &e->loop;
    f->relay.pipes = &e->flows.pipes;
    f->relay.traffic = e->traffic;
    f->relay.fds[0] = TAKE_FD(f->inside);
    f->relay.fds[1] = TAKE_FD(f->outside);
    f->relay.owner = f;
    f->relay.over = relay_over;
    int r = relay_start(&f->relay);
    if (r < 0)
        relay_over(&f->relay, r);
}

/*
 * A first call of connect(2) begins, and one more tells how it went: 0, its error, or -EALREADY.
 * To loopback it is mostly over when the first returns. After an error the socket may be used
 * again, and a client that tries a port where nobody listens costs none.
 */
static int try_connect(const struct published_flow *f)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(f->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return connect(f->inside, (const struct sockaddr *)&to, sizeof to) < 0 ? -errno : 0;
}

static void connected(struct published_flow *f, int r)
{
    struct publish *p = f->publish;

    if (r == 0) {
        start_relay(f);
        return;
    }
    loop_forget(&p->egress->loop, &f->connecting);
    if (r == -ECONNREFUSED && p->n_sockets < PUBLISH_SOCKETS)
        p->sockets[p->n_sockets++] = TAKE_FD(f->inside);
    end_flow(f);
}

static int connecting_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct published_flow *f = s->owner;
    int r = try_connect(f);

    (void)l;
    (void)events;
    if (r != -EALREADY)
        connected(f, r);
    return 0;
}

static void start_connecting(struct published_flow *f)
{
    int r = try_connect(f);

    if (r == -EINPROGRESS)
        r = try_connect(f);
    if (r == -EALREADY)
        r = loop_watch(&f->publish->egress->loop, &f->connecting, f->inside, EPOLLOUT);
    else if (r == 0) {
        connected(f, 0);
        return;
    }
    if (r < 0)
        connected(f, r);
}

/* @outside is taken. */
static void add_flow(struct publish *p, int outside, uint16_t port)
{
    static const int on = 1;
    struct published_flow *f = calloc(1, sizeof *f);

    if (!f) {
        (void)close(outside);
        return;
    }
    *f = (struct published_flow){
        .publish = p,
        .next = p->first,
        .relay.fds = {-EBADF, -EBADF},
        .connecting = {.name = "published", .fd = -EBADF, .owner = f, .ready = connecting_ready},
        .inside = p->sockets[--p->n_sockets],
        .outside = outside,
        .port = port};
    if (p->first)
        p->first->previous = f;
    p->first = f;
    if (p->n++ == 0)
        tell_busy(p);
    (void)setsockopt(f->inside, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(f->outside, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    start_connecting(f);
}

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static int port_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct published_port *port = s->owner;
    struct publish *p = port->publish;

    (void)events;
    for (unsigned i = 0; i < ACCEPTS && has_room(p); i++) {
        int fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            add_flow(p, fd, port->port);
            continue;
        }
        if (is_shortage(errno)) { /* it stays readable, and would be tried without end */
            set_silent(p, port, true);
            loop_at(l, &p->again, clock_after_us(SHORTAGE_US));
        }
        break; /* what failed was one connection: accept(2), or there is none */
    }
    ask(p);
    if (!has_room(p))
        set_silent(p, port, true);
    return 0;
}

/* ---- life ---- */

void publish_sockets(struct publish *p, int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p->egress && p->n_sockets < PUBLISH_SOCKETS && fds[i] >= 0)
            p->sockets[p->n_sockets++] = TAKE_FD(fds[i]);
        else
            fd_closep(&fds[i]);
    }
    if (!p->egress || n == 0)
        return;
    p->asked = false;
    loop_at(&p->egress->loop, &p->again, CLOCK_NEVER);
    listen_again(p);
}

/* accept4(2) must not wait for a connection that was there and is gone. */
static int watch_port(struct publish *p, struct published_port *port)
{
    int flags = fcntl(port->fd, F_GETFL);

    if (flags < 0 || fcntl(port->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return loop_watch(&p->egress->loop, &port->source, port->fd, EPOLLIN);
}

int publish_init(struct publish *p, struct egress *e, int *listeners, size_t n,
                 const uint16_t *ports)
{
    int r = 0;

    *p = (struct publish){.egress = e, .again = {.name = "publish", .owner = p, .due = again_due}};
    p->ports = calloc(n > 0 ? n : 1, sizeof *p->ports);
    for (size_t i = 0; i < n && p->ports; i++, p->n_ports++)
        p->ports[i] = (struct published_port){
            .source = {.name = "published port",
                       .fd = -EBADF,
                       .owner = &p->ports[i],
                       .ready = port_ready},
            .fd = TAKE_FD(listeners[i]),
            .port = ports[i],
            .publish = p,
        };
    for (size_t i = 0; i < n; i++)
        fd_closep(&listeners[i]);
    if (!p->ports)
        r = -ENOMEM;
    for (size_t i = 0; i < p->n_ports && r == 0; i++)
        r = watch_port(p, &p->ports[i]);
    if (r < 0)
        publish_done(p);
    return r;
}

void publish_finish(struct publish *p)
{
    for (struct published_flow *f = p->first, *next; f; f = next) {
        next = f->next;
        if (f->relay.ways[0].closed)
            relay_over(&f->relay, 0);
    }
}

void publish_done(struct publish *p)
{
    if (!p->egress)
        return;
    for (size_t i = 0; i < p->n_ports; i++) {
        loop_forget(&p->egress->loop, &p->ports[i].source);
        fd_closep(&p->ports[i].fd);
    }
    p->n_ports = 0; /* so that the end of a flow wakes none */
    while (p->first) {
        relay_stop(&p->first->relay, true);
        end_flow(p->first);
    }
    while (p->n_sockets > 0)
        fd_closep(&p->sockets[--p->n_sockets]);
    loop_at(&p->egress->loop, &p->again, CLOCK_NEVER);
    free(p->ports);
    *p = (struct publish){.egress = NULL};
}
