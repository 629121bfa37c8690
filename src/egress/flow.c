/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of programs inside, from accept to end. */
#include "egress/flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "egress/judge_http.h"
#include "egress/judge_tls.h"
#include "base/guards.h"

enum {
    PORT_DNS = 53,
    PORT_HTTP = 80,
    PORT_TLS = 443,
};
#define SWEEP_US UINT64_C(1000000)

/* --- the end --- */

static void listen_again(struct flows *fs)
{
    fs->full = false;
    for (size_t i = 0; i < ARRAY_SIZE(fs->listeners); i++)
        (void)loop_change(&fs->egress->loop, &fs->listeners[i], EPOLLIN);
}

static void unlink_flow(struct flows *fs, struct flow *f)
{
    if (f->next)
        f->next->previous = f->previous;
    if (f->previous)
        f->previous->next = f->next;
    else
        fs->first = f->next;
    fs->n--;
}

/* The loop's batch may still name sources within it. */
static void drop_dial(struct flow *f)
{
    if (!f->dial)
        return;
    dial_cancel(f->dial);
    loop_free_later(&f->egress->loop, TAKE_PTR(f->dial));
}

void flow_end(struct flow *f, bool reset)
{
    struct egress *e = f->egress;

    if (f->state == FLOW_OVER)
        return;
    f->state = FLOW_OVER;
    unlink_flow(&e->flows, f);
    drop_dial(f);
    relay_stop(&f->relay, reset);
    http_flow_free(f);
    if (f->name) {
        f->name->users--;
        names_touch(&e->names, f->name);
    }
    loop_free_later(&e->loop, f);
    if (e->flows.full)
        listen_again(&e->flows);
}

static struct address address_in(const struct sockaddr_storage *a, uint16_t *ret_port)
{
    struct address x = {.family = a->ss_family == AF_INET ? ADDRESS_V4 : ADDRESS_V6};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memcpy(&v4, a, sizeof v4);
    memcpy(&v6, a, sizeof v6);
    if (x.family == ADDRESS_V4)
        memcpy(x.bytes, &v4.sin_addr, sizeof v4.sin_addr);
    else
        memcpy(x.bytes, &v6.sin6_addr, sizeof v6.sin6_addr);
    *ret_port = ntohs(x.family == ADDRESS_V4 ? v4.sin_port : v6.sin6_port);
    return address_unmapped(&x);
}

/* --- what is refused --- */

static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

static void reset_fd(int fd)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fd_closep(&fd);
}

static const char *name_text(const struct flow *f)
{
    return f->name ? f->name->text.text : NULL;
}

void flow_refuse(struct flow *f, enum denial_protocol protocol, const char *reason, uint64_t bytes)
{
    struct policy_decision decision = {.kind = POLICY_RULE_NONE};

    denials_decided(&f->egress->denials, protocol, name_text(f), &f->to, f->port, &decision, reason,
                    bytes);
    flow_end(f, true);
}

static void tell_dial_failed(const struct flow *f, const char *why)
{
    char address[ADDRESS_TEXT_BYTES], reason[DENIAL_TEXT_MAX];

    address_format(&f->to, address);
    (void)snprintf(reason, sizeof reason, "dial failed: %s", why);
    denials_tell(&f->egress->denials, &(struct denial){.protocol = DENIAL_TCP,
                                                       .name = f->name ? name_text(f) : "",
                                                       .address = address,
                                                       .port = f->port,
                                                       .rule = "dial failed",
                                                       .reason = reason});
}

/* Its name is listed; an address that it turned out to have is not. */
static void tell_forbidden(const struct flow *f, const struct address *a, bool own)
{
    const struct address_block *block = address_block(a);
    struct policy_decision decision = {.kind = POLICY_RULE_CLASS};
    char address[ADDRESS_TEXT_BYTES], what[128], reason[DENIAL_TEXT_MAX];

    address_format(a, address);
    (void)snprintf(what, sizeof what, "is %s",
                   block ? address_class_text(block->cls) : "an address that no range lists");
    (void)snprintf(reason, sizeof reason, "%s%s%s, which %s%s", f->name ? name_text(f) : "",
                   f->name ? " has the address " : "", address,
                   own ? "the host itself answers for" : what,
                   own     ? ", and no range lists it alone"
                   : block ? ", and no range lists it"
                           : "");
    denials_decided(&f->egress->denials, DENIAL_TCP, name_text(f), a, f->port, &decision, reason,
                    0);
}

/* --- connected outside --- */

static void relay_over(struct relay *r, int error)
{
    flow_end(r->owner, error != 0);
}

/* The first bytes of a connection that is relayed already in the other direction. */
static int first_bytes(struct relay *r, unsigned way)
{
    struct flow *f = r->owner;

    if (!r->ways[way].readable)
        return 0;
    switch (judge_tls(f, r->ways[way].hung_up)) {
    case JUDGE_TLS_MORE:
        r->ways[way].readable = false;
        break;
    case JUDGE_TLS_GOOD:
    case JUDGE_TLS_NONE:
        relay_resume(r, way);
        break;
    case JUDGE_TLS_OVER:
        break;
    }
    return 0;
}

static void begin_relay(struct flow *f, int fd)
{
    f->relay.fds[1] = fd;
    f->state = FLOW_RELAYING;
    if (f->kind == FLOW_HTTP)
        http_relay(f);
    if (f->kind == FLOW_TCP) {
        f->relay.paused[0] = true;
        f->relay.paused_ready = first_bytes;
    }
    if (relay_start(&f->relay) < 0)
        flow_end(f, true);
}

static void dialled(struct dial *d, enum dial_result result, int fd)
{
    struct flow *f = d->owner;
    char why[DIAL_REASON_BYTES + 128];

    f->dial = NULL;
    loop_free_later(&f->egress->loop, d);
    switch (result) {
    case DIAL_CONNECTED:
        begin_relay(f, fd);
        return;
    case DIAL_FORBIDDEN:
        tell_forbidden(f, &d->judged, d->judged_own);
        break;
    case DIAL_NOT_FOUND:
        tell_dial_failed(f, "the name has no address");
        break;
    case DIAL_FAILED:
        (void)snprintf(why, sizeof why, "%s%s%s", d->reason, d->reason[0] ? ": " : "",
                       strerror(d->error));
        tell_dial_failed(f, why);
        break;
    }
    flow_end(f, true);
}

static int early_ready(struct loop *l, struct loop_source *s, uint32_t events);

static void watch(struct flow *f)
{
    struct loop_source *s = &f->relay.sources[0];

    if (f->state == FLOW_OVER || s->ready)
        return;
    *s = (struct loop_source){.name = "inside", .fd = -EBADF, .owner = f, .ready = early_ready};
    if (loop_watch(&f->egress->loop, s, f->relay.fds[0], RELAY_EVENTS) < 0) {
        s->fd = -EBADF;
        flow_end(f, true);
    }
}

static void start_dial(struct flow *f)
{
    struct dial *d = calloc(1, sizeof *d);

    if (!d) {
        flow_end(f, true);
        return;
    }
    d->egress = f->egress;
    d->name = f->name;
    d->port = f->port;
    d->addresses[0] = f->to;
    d->owner = f;
    d->done = dialled;
    f->dial = d;
    dial_start(d);
}

void flow_dial(struct flow *f)
{
    f->state = FLOW_DIALLING;
    f->deadline_us = CLOCK_NEVER; /* a dial has its own */
    start_dial(f);
    if (f->state == FLOW_DIALLING)
        watch(f); /* so that it is given up when the program does */
}

/* --- before that --- */

static void read_hello(struct flow *f)
{
    if (judge_tls(f, f->relay.ways[0].hung_up) == JUDGE_TLS_GOOD)
        flow_dial(f);
}

static int early_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct flow *f = s->owner;

    (void)l;
    if (events & (EPOLLERR | EPOLLHUP)) {
        flow_end(f, true);
        return 0;
    }
    f->relay.ways[0].readable = true;
    if (events & EPOLLRDHUP)
        f->relay.ways[0].hung_up = true;
    if (f->kind == FLOW_HTTP)
        http_read(f);
    else if (f->state == FLOW_READING)
        read_hello(f);
    return 0;
}

void flow_expect(struct flow *f)
{
    struct flows *fs = &f->egress->flows;

    f->deadline_us = clock_after_us(FLOW_HEAD_TIMEOUT_US);
    if (!fs->sweep.set)
        loop_at(&f->egress->loop, &fs->sweep, clock_after_us(SWEEP_US));
}

static struct flow *new_flow(struct egress *e, int fd, const struct address *to, uint16_t port,
                             struct name *name)
{
    struct flow *f = calloc(1, sizeof *f);

    if (!f) {
        reset_fd(fd);
        return NULL;
    }
    f->egress = e;
    f->to = *to;
    f->port = port;
    f->name = name;
    f->deadline_us = CLOCK_NEVER;
    f->kind = !name               ? FLOW_ADDRESS
              : port == PORT_TLS  ? FLOW_TLS
              : port == PORT_HTTP ? FLOW_HTTP
                                  : FLOW_TCP;
    f->relay = (struct relay){.loop = &e->loop,
                              .pipes = &e->flows.pipes,
                              .traffic = e->traffic,
                              .fds = {fd, -EBADF},
                              .owner = f,
                              .over = relay_over};
    if (name) {
        name->users++;
        names_touch(&e->names, name);
    }
    f->next = e->flows.first;
    if (f->next)
        f->next->previous = f;
    e->flows.first = f;
    e->flows.n++;
    return f;
}

static void start_flow(struct egress *e, int fd, const struct address *to, uint16_t port,
                       struct name *name)
{
    struct flow *f = new_flow(e, fd, to, port, name);

    if (!f)
        return;
    if (f->kind == FLOW_ADDRESS || f->kind == FLOW_TCP) {
        flow_dial(f);
        return;
    }
    f->state = FLOW_READING;
    if (f->kind == FLOW_HTTP && http_flow_new(f) < 0) {
        flow_end(f, true);
        return;
    }
    flow_expect(f);
    watch(f);
}

/* By the policy: on @name, or on the address if that is NULL. @ret is set for what is not. */
static bool is_allowed(struct egress *e, const struct address *to, uint16_t port,
                       const struct name *name, struct policy_decision *ret)
{
    struct policy_destination destination = {.by_name = name != NULL, .address = *to, .port = port};

    if (name && policy_find_host(&e->policy, &name->text, port))
        return true;
    if (name)
        destination.name = name->text;
    policy_decide(&e->policy, &destination, ret);
    return ret->allowed;
}

static bool serves_names(const struct policy *p, const struct address *to)
{
    return (p->open || p->n_hosts > 0) && !policy_find_range(p, to);
}

static bool is_loopback(const struct address *a)
{
    const struct address_block *block = address_block(a);
    struct address inner;

    return block && block->cls == ADDRESS_LOOPBACK && !address_embedded(a, &inner, NULL);
}

void flow_begin(struct egress *e, int fd, const struct address *to, uint16_t port)
{
    const struct address a = address_unmapped(to);
    bool in_pool = names_in_pool(&e->names, &a);
    struct name *name = in_pool ? names_by_address(&e->names, &a) : NULL;
    struct policy_decision decision = {.kind = POLICY_RULE_NONE};
    static const struct linger in_order = {.l_onoff = 0};

    if (is_loopback(&a)) { /* the listener itself was connected to, not through the rules */
        reset_fd(fd);
    } else if (port == PORT_DNS && serves_names(&e->policy, &a)) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &in_order, sizeof in_order);
        dns_server_accept(&e->dns, fd);
    } else if (in_pool && !name) {
        denials_decided(&e->denials, DENIAL_TCP, NULL, &a, port, &decision,
                        "nobody asked for that name lately", 0);
        reset_fd(fd);
    } else if (!is_allowed(e, &a, port, name, &decision)) {
        denials_decided(&e->denials, DENIAL_TCP, name ? name->text.text : NULL, &a, port, &decision,
                        NULL, 0);
        reset_fd(fd);
    } else {
        start_flow(e, fd, &a, port, name);
    }
}

/* --- accepting --- */

/* Where the program connected to is the accepted socket's own end: tproxy changes no address. */
static int own_end(int fd, struct address *ret, uint16_t *ret_port)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return -errno;
    *ret = address_in(&a, ret_port);
    return 0;
}

static void fall_silent(struct flows *fs)
{
    fs->full = true;
    for (size_t i = 0; i < ARRAY_SIZE(fs->listeners); i++)
        (void)loop_change(&fs->egress->loop, &fs->listeners[i], 0);
    /* What is lacking may come back without a flow's end. */
    if (!fs->sweep.set)
        loop_at(&fs->egress->loop, &fs->sweep, clock_after_us(SWEEP_US));
}

static bool is_lacking(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/*
 * One at a time: the listener is level-triggered, so epoll tells of the next one after open flows
 * have had their turn, and asking for one that is not there would cost more than that.
 */
static int listener_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct flows *fs = s->owner;
    struct address to;
    uint16_t port = 0;
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)l;
    (void)events;
    if (fd < 0) {
        if (is_lacking(errno))
            fall_silent(fs);
        return 0;
    }
    if (own_end(fd, &to, &port) < 0)
        reset_fd(fd);
    else
        flow_begin(fs->egress, fd, &to, port);
    if (fs->n >= FLOWS_MAX)
        fall_silent(fs);
    return 0;
}

int flows_listen(struct flows *fs, int fd4, int fd6)
{
    static const int on = 1;
    const int fds[] = {fd4, fd6};

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        /* Accepted sockets take it over from their listener (tcp(7) is silent; Linux: clone_lock).
         * The second: if this process is killed, nobody inside takes that for an end. */
        (void)setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        int r = fds[i] < 0 ? 0 : loop_watch(&fs->egress->loop, &fs->listeners[i], fds[i], EPOLLIN);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- all of them --- */

/* Whoever has sent nothing at all has only opened a connection early, as browsers do. */
static void time_out(struct flow *f)
{
    ssize_t n = recv(f->relay.fds[0], f->egress->flows.scratch, FLOW_SCRATCH_BYTES,
                     MSG_PEEK | MSG_DONTWAIT);

    if (f->kind == FLOW_HTTP && http_bytes(f) > 0)
        flow_refuse(f, DENIAL_HTTP, "the head of a request did not come in time", http_bytes(f));
    else if (f->kind != FLOW_HTTP && n > 0)
        flow_refuse(f, DENIAL_TLS, "the ClientHello did not come in time", (uint64_t)n);
    else
        flow_end(f, false);
}

static int sweep_due(struct loop *l, struct loop_timer *t)
{
    struct flows *fs = t->owner;
    uint64_t now = clock_now_us();
    bool more = false;

    for (struct flow *f = fs->first, *next; f; f = next) {
        next = f->next;
        if (f->deadline_us <= now)
            time_out(f);
        else
            more = more || f->deadline_us != CLOCK_NEVER;
    }
    if (fs->full && fs->n < FLOWS_MAX)
        listen_again(fs);
    if (more && !t->set)
        loop_at(l, t, clock_after_us(SWEEP_US));
    return 0;
}

static struct address peer_of(int fd)
{
    struct sockaddr_storage a = {.ss_family = AF_INET};
    socklen_t len = sizeof a;
    uint16_t port;

    (void)getpeername(fd, (struct sockaddr *)&a, &len); /* gone: 0.0.0.0, which nothing lists */
    return address_in(&a, &port);
}

static bool is_pinned(const struct policy *p, const struct host_name *name, const struct address *a)
{
    const struct policy_pin *pin = NULL;

    while ((pin = policy_pin_next(p, name, pin)))
        if (address_equal(&pin->address, a))
            return true;
    return false;
}

/* The name may still pass, but not the address that it has led to. */
static bool is_peer_allowed(const struct flow *f, struct address *ret_peer)
{
    const struct egress *e = f->egress;

    if (!f->name || f->state != FLOW_RELAYING || e->proxy.set)
        return true;
    *ret_peer = peer_of(f->relay.fds[1]);
    return is_pinned(&e->policy, &f->name->text, ret_peer) || policy_may_dial(&e->policy, ret_peer);
}

/* Return: whether it was cut. */
static bool recheck(struct flow *f)
{
    struct egress *e = f->egress;
    struct policy_decision decision = {.kind = POLICY_RULE_NONE};
    struct address peer;

    if (!is_allowed(e, &f->to, f->port, f->name, &decision)) {
        denials_decided(&e->denials, DENIAL_TCP, name_text(f), &f->to, f->port, &decision, NULL,
                        f->relay.ways[0].bytes);
    } else if (!is_peer_allowed(f, &peer)) {
        tell_forbidden(f, &peer, false);
    } else {
        /* The addresses that a dial tries were judged by the policy before. */
        if (f->state == FLOW_DIALLING) {
            drop_dial(f);
            start_dial(f);
        }
        return false;
    }
    flow_end(f, true);
    return true;
}

unsigned flows_recheck(struct flows *fs)
{
    unsigned cut = 0;

    for (struct flow *f = fs->first, *next; f; f = next) {
        next = f->next;
        cut += recheck(f);
    }
    return cut;
}

int flows_init(struct flows *fs, struct egress *e)
{
    *fs = (struct flows){.egress = e, .sweep = {.name = "flows", .owner = fs, .due = sweep_due}};
    for (size_t i = 0; i < ARRAY_SIZE(fs->listeners); i++)
        fs->listeners[i] = (struct loop_source){
            .name = "listener", .fd = -EBADF, .owner = fs, .ready = listener_ready};
    fs->scratch = malloc(FLOW_SCRATCH_BYTES);
    return fs->scratch ? 0 : -ENOMEM;
}

void flows_done(struct flows *fs)
{
    while (fs->first)
        flow_end(fs->first, true);
    for (size_t i = 0; i < ARRAY_SIZE(fs->listeners); i++)
        loop_forget(&fs->egress->loop, &fs->listeners[i]);
    loop_at(&fs->egress->loop, &fs->sweep, CLOCK_NEVER);
    pipes_done(&fs->pipes);
    free(TAKE_PTR(fs->scratch));
}
