/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams from inside: questions to the resolver, and flows of UDP to the host's side. */
#include "egress/datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "base/guards.h"

#define SWEEP_US UINT64_C(10000000)
#define BURST_US UINT64_C(200) /* between datagrams that follow one another */

enum {
    BATCH = 32,
    TURNS = 4,              /* batches of one socket before others have their turn */
    SERVED = TURNS * BATCH, /* datagrams, the same */
    LOOKS = 20,
    DATAGRAM_BYTES = 65536,
    LARGE_BYTES = 4096,
    CONTROL_BYTES = 64, /* one address that a datagram was sent to */
    BUCKETS = 2 * DATAGRAM_FLOWS_MAX,
    PORT_DNS = 53,
};

struct datagram_buffers {
    uint8_t data[BATCH][DATAGRAM_BYTES]; /* first, so that it can be given back by pages */
    uint8_t answers[BATCH][DNS_MESSAGE_BYTES_MAX];
    uint8_t control[BATCH][CONTROL_BYTES] __attribute__((aligned(8)));
    struct sockaddr_in6 from[BATCH];
    struct iovec parts[BATCH];
    struct mmsghdr messages[BATCH];
    struct datagram_reply replies[BATCH];
};

/* ---- batches ---- */

static void trim(struct datagrams *d)
{
    if (d->large)
        (void)madvise(d->buffers->data, sizeof d->buffers->data, MADV_DONTNEED);
    d->large = false;
}

static void sweep_later(struct datagrams *d)
{
    if (!d->sweep.set)
        loop_at(&d->egress->loop, &d->sweep, clock_after_us(SWEEP_US));
}

/* What has come at @fd: how many datagrams, or -errno. Only an unconnected socket needs @names. */
static int receive(struct datagrams *d, int fd, bool names)
{
    struct datagram_buffers *b = d->buffers;

    for (unsigned i = 0; i < BATCH; i++) {
        b->parts[i] = (struct iovec){.iov_base = b->data[i], .iov_len = DATAGRAM_BYTES};
        b->messages[i].msg_hdr = (struct msghdr){.msg_iov = &b->parts[i], .msg_iovlen = 1};
        if (!names)
            continue;
        b->messages[i].msg_hdr.msg_name = &b->from[i];
        b->messages[i].msg_hdr.msg_namelen = sizeof b->from[i];
        b->messages[i].msg_hdr.msg_control = b->control[i];
        b->messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    int n = recvmmsg(fd, b->messages, BATCH, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
    for (int i = 0; i < n; i++)
        if (b->messages[i].msg_len > LARGE_BYTES) {
            d->large = true;
            sweep_later(d);
        }
    return n < 0 ? -errno : n;
}

/* ---- ends ---- */

static bool read_name(const void *data, size_t len, struct address *ret, uint16_t *ret_port)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    sa_family_t family;

    if (len < sizeof family)
        return false;
    memcpy(&family, data, sizeof family);
    *ret = (struct address){.family = family == AF_INET ? ADDRESS_V4 : ADDRESS_V6};
    if (family == AF_INET && len >= sizeof v4) {
        memcpy(&v4, data, sizeof v4);
        memcpy(ret->bytes, &v4.sin_addr, 4);
        *ret_port = ntohs(v4.sin_port);
        return true;
    }
    if (family == AF_INET6 && len >= sizeof v6) {
        memcpy(&v6, data, sizeof v6);
        memcpy(ret->bytes, &v6.sin6_addr, 16);
        *ret_port = ntohs(v6.sin6_port);
        return true;
    }
    return false;
}

static bool is_loopback(const struct address *a)
{
    return a->family == ADDRESS_V4 ? a->bytes[0] == 127
                                   : memcmp(a->bytes, &in6addr_loopback, 16) == 0;
}

/* Where a datagram came from and was sent to; false for one that is not to be served. */
static bool read_ends(struct msghdr *m, struct datagram_ends *ret)
{
    if (m->msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
        !read_name(m->msg_name, m->msg_namelen, &ret->from, &ret->from_port) ||
        !is_loopback(&ret->from))
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR))
            return read_name(CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0), &ret->to, &ret->to_port) &&
                   ret->to.family == ret->from.family;
    return false;
}

/* ---- what may pass ---- */

struct judgement {
    bool passes;
    bool told; /* it is refused by the policy, not for want of a way */
    const struct name *name;
    struct policy_decision decision;
    const char *reason; /* NULL: the decision's */
};

static bool is_resolver(const struct egress *e, const struct datagram_ends *ends)
{
    const struct policy *p = &e->policy;

    return ends->to_port == PORT_DNS && (p->open || p->n_hosts > 0) &&
           !policy_find_range(p, &ends->to);
}

static void judge_synthetic(struct egress *e, const struct datagram_ends *ends, struct judgement *j)
{
    struct policy_destination to = {.address = ends->to, .port = ends->to_port};

    j->told = true;
    j->name = names_by_address(&e->names, &ends->to);
    j->reason = "no name that was asked for has this address";
    if (j->name) {
        to.by_name = true;
        to.name = j->name->text;
        j->reason = "a name is reached by TCP, and UDP goes to listed addresses only";
    }
    policy_decide(&e->policy, &to, &j->decision);
}

static void judge(struct egress *e, const struct datagram_ends *ends, struct judgement *j)
{
    const struct policy_destination to = {.address = ends->to, .port = ends->to_port};

    *j = (struct judgement){.passes = false};
    if (is_loopback(&ends->to)) /* the listener itself, which is nobody's destination */
        return;
    if (names_in_pool(&e->names, &ends->to)) {
        judge_synthetic(e, ends, j);
        return;
    }
    policy_decide(&e->policy, &to, &j->decision);
    j->told = true;
    if (!j->decision.allowed)
        return;
    if (e->proxy.set) {
        j->reason = "UDP cannot pass the proxy that everything leaves through";
        return;
    }
    enum own_address_answer way = own_address_ask(&e->own_address, &ends->to);
    if (way == ADDRESS_OWN && !policy_lists_alone(&e->policy, &ends->to)) {
        j->reason = "the host itself answers for this address, and no range lists it alone";
        return;
    }
    j->told = way != ADDRESS_NO_ROUTE;
    j->passes = j->told;
}

static void refuse(struct egress *e, const struct datagram_ends *ends, const struct judgement *j,
                   const uint8_t *data, size_t len)
{
    if (j->told)
        denials_decided(&e->denials, DENIAL_UDP, j->name ? j->name->text.text : NULL, &ends->to,
                        ends->to_port, &j->decision, j->reason, len);
    inject_unreachable(e, ends, data, len);
}

/* ---- the table ---- */

static struct datagram_flow **bucket_of(struct datagrams *d, const struct datagram_ends *ends)
{
    const struct address *parts[] = {&ends->from, &ends->to};
    uint64_t hash =
        UINT64_C(0xcbf29ce484222325) ^ ((uint32_t)ends->from_port << 16 | ends->to_port);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        for (size_t k = 0; k < sizeof parts[i]->bytes; k++)
            hash = (hash ^ parts[i]->bytes[k]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return &d->table[(hash ^ hash >> 32) % BUCKETS];
}

static bool same_ends(const struct datagram_ends *a, const struct datagram_ends *b)
{
    return a->from_port == b->from_port && a->to_port == b->to_port &&
           address_equal(&a->from, &b->from) && address_equal(&a->to, &b->to);
}

static struct datagram_flow *find_flow(struct datagrams *d, const struct datagram_ends *ends)
{
    struct datagram_flow *f = *bucket_of(d, ends);

    while (f && !same_ends(&f->ends, ends))
        f = f->next;
    return f;
}

static void unlink_age(struct datagrams *d, struct datagram_flow *f)
{
    *(f->older ? &f->older->newer : &d->oldest) = f->newer;
    *(f->newer ? &f->newer->older : &d->newest) = f->older;
}

static void link_newest(struct datagrams *d, struct datagram_flow *f)
{
    f->used_at_us = clock_now_us();
    f->newer = NULL;
    f->older = d->newest;
    *(d->newest ? &d->newest->newer : &d->oldest) = f;
    d->newest = f;
}

static void touch(struct datagrams *d, struct datagram_flow *f)
{
    unlink_age(d, f);
    link_newest(d, f);
}

static void end_flow(struct datagrams *d, struct datagram_flow *f)
{
    struct datagram_flow **p = bucket_of(d, &f->ends);

    while (*p != f)
        p = &(*p)->next;
    *p = f->next;
    unlink_age(d, f);
    d->n--;
    loop_forget(&d->egress->loop, &f->source);
    fd_closep(&f->fd);
    loop_free_later(&d->egress->loop, f);
}

static int sweep_due(struct loop *l, struct loop_timer *t)
{
    struct datagrams *d = t->owner;
    uint64_t now = clock_now_us();

    (void)l;
    while (d->oldest && now - d->oldest->used_at_us >= DATAGRAM_IDLE_US)
        end_flow(d, d->oldest);
    trim(d);
    if (d->n > 0)
        sweep_later(d);
    return 0;
}

/* ---- flows ---- */

/* An error of the host's socket is one of the destination's: nobody is there. */
static bool is_answer(int error)
{
    return error != EAGAIN && error != EINTR && error != ENOBUFS && error != ENOMEM &&
           error != EMSGSIZE;
}

static int flow_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct datagram_flow *f = s->owner;
    struct datagrams *d = f->datagrams;
    struct datagram_buffers *b = d->buffers;
    int n = BATCH;

    (void)l;
    (void)events;
    for (unsigned turn = 0; turn < TURNS && n == BATCH; turn++) {
        n = receive(d, f->fd, false);
        if (n < 0 && is_answer(-n))
            inject_unreachable(d->egress, &f->ends, NULL, 0);
        for (int i = 0; i < n; i++) {
            b->replies[i] = (struct datagram_reply){
                .ends = f->ends, .data = b->data[i], .len = b->messages[i].msg_len};
            traffic_add(d->egress->traffic, 1, b->messages[i].msg_len);
        }
        if (n > 0)
            inject_datagrams(d->egress, b->replies, (size_t)n);
    }
    touch(d, f);
    return 0;
}

static int connect_to(int fd, const struct datagram_ends *ends)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(ends->to_port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(ends->to_port)};
    int r;

    memcpy(&v4.sin_addr, ends->to.bytes, 4);
    memcpy(&v6.sin6_addr, ends->to.bytes, 16);
    if (ends->to.family == ADDRESS_V4)
        r = connect(fd, (const struct sockaddr *)&v4, sizeof v4);
    else
        r = connect(fd, (const struct sockaddr *)&v6, sizeof v6);
    return r < 0 ? -errno : 0;
}

/* A socket of the host's; when there is none left, that of the flow that was silent longest. */
static int open_socket(struct datagrams *d, const struct datagram_ends *ends)
{
    int family = ends->to.family == ADDRESS_V4 ? AF_INET : AF_INET6;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && d->oldest) {
        end_flow(d, d->oldest);
        fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    return fd < 0 ? -errno : fd;
}

static int add_flow(struct datagrams *d, const struct datagram_ends *ends)
{
    struct datagram_flow *f = calloc(1, sizeof *f), **bucket = bucket_of(d, ends);
    int r;

    if (!f)
        return -ENOMEM;
    if (d->n == DATAGRAM_FLOWS_MAX)
        end_flow(d, d->oldest);
    *f = (struct datagram_flow){
        .datagrams = d,
        .ends = *ends,
        .source = {.name = "datagrams", .fd = -EBADF, .owner = f, .ready = flow_ready}};
    r = f->fd = open_socket(d, ends);
    if (r >= 0)
        r = connect_to(f->fd, ends);
    if (r >= 0)
        r = loop_watch(&d->egress->loop, &f->source, f->fd, EPOLLIN);
    if (r < 0) {
        fd_closep(&f->fd);
        free(f);
        return r;
    }
    f->next = *bucket;
    *bucket = f;
    link_newest(d, f);
    d->n++;
    sweep_later(d);
    return 0;
}

/* The flow of a datagram, made if the policy lets it pass; NULL when there is none. */
static struct datagram_flow *flow_for(struct datagrams *d, const struct datagram_ends *ends,
                                      const uint8_t *data, size_t len)
{
    struct datagram_flow *f = find_flow(d, ends);
    struct judgement j;

    if (f)
        return f;
    judge(d->egress, ends, &j);
    if (!j.passes) {
        refuse(d->egress, ends, &j, data, len);
        return NULL;
    }
    int r = add_flow(d, ends);
    if (r < 0) {
        if (is_answer(-r))
            inject_unreachable(d->egress, ends, data, len);
        return NULL;
    }
    return d->newest;
}

static void pass_on(struct datagrams *d, const struct datagram_ends *ends, const uint8_t *data,
                    size_t len)
{
    struct datagram_flow *f = flow_for(d, ends, data, len);

    if (!f)
        return;
    touch(d, f);
    /* The first error may be that of an earlier datagram, which the socket still had to tell. */
    for (unsigned tries = 0; tries < 2; tries++) {
        if (send(f->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            traffic_add(d->egress->traffic, 0, len);
            return;
        }
        if (!is_answer(errno))
            return;
        inject_unreachable(d->egress, ends, data, len);
    }
}

/* ---- from inside ---- */

static size_t serve(struct datagrams *d, int n)
{
    struct datagram_buffers *b = d->buffers;
    size_t answers = 0;

    for (int i = 0; i < n; i++) {
        struct datagram_ends ends;
        size_t len = b->messages[i].msg_len;

        if (!read_ends(&b->messages[i].msg_hdr, &ends))
            continue;
        if (!is_resolver(d->egress, &ends)) {
            pass_on(d, &ends, b->data[i], len);
            continue;
        }
        uint8_t *answer = b->answers[answers];
        len =
            dns_server_ask(&d->egress->dns, &ends, b->data[i], len, answer, DNS_MESSAGE_BYTES_MAX);
        if (len > 0)
            b->replies[answers++] =
                (struct datagram_reply){.ends = ends, .data = answer, .len = len};
    }
    return answers;
}

/*
 * The next datagrams of a burst. To sleep and be woken costs the program that asks more than the
 * answer does, so they are waited for awake, some 10 us; whoever can run meanwhile does.
 */
static int receive_more(struct datagrams *d, int fd)
{
    int n = receive(d, fd, true);

    for (unsigned i = 0; n == -EAGAIN && i < LOOKS; i++) {
        (void)sched_yield();
        n = receive(d, fd, true);
    }
    return n;
}

static int listener_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct datagrams *d = s->owner;
    const bool burst = clock_now_us() - d->served_at_us < BURST_US;
    int n = receive(d, s->fd, true), served = 0;

    (void)l;
    (void)events;
    while (n > 0) {
        size_t answers = serve(d, n);

        if (answers > 0)
            inject_datagrams(d->egress, d->buffers->replies, answers);
        served += n;
        d->served_at_us = clock_now_us();
        n = served >= SERVED ? 0 : burst ? receive_more(d, s->fd) : receive(d, s->fd, true);
    }
    return 0;
}

/* ---- life ---- */

int datagrams_init(struct datagrams *d, struct egress *e)
{
    void *buffers, *table = calloc(BUCKETS, sizeof(struct datagram_flow *));

    if (!table)
        return -ENOMEM;
    buffers =
        mmap(NULL, sizeof *d->buffers, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffers == MAP_FAILED) {
        free(table);
        return -ENOMEM;
    }
    *d = (struct datagrams){.egress = e,
                            .table = table,
                            .buffers = buffers,
                            .sweep = {.name = "datagrams", .owner = d, .due = sweep_due}};
    for (size_t i = 0; i < ARRAY_SIZE(d->listeners); i++)
        d->listeners[i] = (struct loop_source){
            .name = "datagrams", .fd = -EBADF, .owner = d, .ready = listener_ready};
    return 0;
}

int datagrams_listen(struct datagrams *d, int fd4, int fd6)
{
    int r = loop_watch(&d->egress->loop, &d->listeners[0], fd4, EPOLLIN);

    return r < 0 ? r : loop_watch(&d->egress->loop, &d->listeners[1], fd6, EPOLLIN);
}

unsigned datagrams_recheck(struct datagrams *d)
{
    unsigned cut = 0;

    for (struct datagram_flow *f = d->oldest, *next; f; f = next) {
        struct judgement j;

        next = f->newer;
        judge(d->egress, &f->ends, &j);
        if (is_resolver(d->egress, &f->ends) || (!j.passes && j.told)) {
            end_flow(d, f);
            cut++;
        }
    }
    return cut;
}

void datagrams_done(struct datagrams *d)
{
    if (!d->egress)
        return;
    while (d->oldest)
        end_flow(d, d->oldest);
    for (size_t i = 0; i < ARRAY_SIZE(d->listeners); i++)
        loop_forget(&d->egress->loop, &d->listeners[i]);
    loop_at(&d->egress->loop, &d->sweep, CLOCK_NEVER);
    (void)munmap(d->buffers, sizeof *d->buffers);
    free(d->table);
    *d = (struct datagrams){.egress = NULL};
}
