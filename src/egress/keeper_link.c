/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper orders: sockets inside, another policy, an account of what was refused. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/spec_rules.h"
#include "egress/egress.h"
#include "base/guards.h"

void keeper_link_tell(struct egress *e, uint16_t type, uint32_t id, const void *payload, size_t len)
{
    int r = channel_send(&e->keeper, type, id, payload, len, NULL, 0);

    if (r == 0 && channel_waiting(&e->keeper))
        r = loop_change(&e->loop, &e->keeper_source, EPOLLIN | EPOLLOUT);
    if (r < 0)
        e->loop.stop = true; /* what it does not hear of must not happen */
}

/* The sockets inside: from now on, what was waiting at them is served. */
static int take_inside(struct egress *e, struct message *m)
{
    int r;

    if (m->n_fds != INSIDE__MAX || e->inside[0] >= 0)
        return -EPROTO;
    for (size_t i = 0; i < INSIDE__MAX; i++)
        e->inside[i] = message_take_fd(m, i);
    r = denials_listen(&e->denials, e->inside[INSIDE_LOG]);
    if (r == 0)
        r = datagrams_listen(&e->datagrams, e->inside[INSIDE_UDP4], e->inside[INSIDE_UDP6]);
    return r < 0 ? r : flows_listen(&e->flows, e->inside[INSIDE_TCP4], e->inside[INSIDE_TCP6]);
}

static int take_sockets(struct egress *e, struct message *m)
{
    int fds[IO_FDS_MAX];
    size_t n = m->n_fds;

    for (size_t i = 0; i < n; i++)
        fds[i] = message_take_fd(m, i);
    publish_sockets(&e->publish, fds, n);
    return 0;
}

/* Another policy, whole: the one before is gone before anything is decided again. */
static int take_generation(struct egress *e, struct message *m)
{
    struct problems problems = {0};
    struct spec spec = {0};
    struct policy policy = {0};
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);
    int r = spec_decode(m->payload, &spec);

    if (r == 0)
        r = spec_policy(&spec, &policy, &problems);
    problems_done(&problems);
    spec_done(&spec);
    if (r < 0)
        return r;
    if (m->n_fds == 1 && e->lookups.fd < 0) /* names are looked up for the first time */
        r = lookups_init(&e->lookups, e, message_take_fd(m, 0));
    if (r < 0) {
        policy_done(&policy);
        return r;
    }
    policy_done(&e->policy);
    e->policy = policy;
    e->generation++;
    field_put_u32(&w, TAG_FLOWS_CUT, flows_recheck(&e->flows) + datagrams_recheck(&e->datagrams));
    keeper_link_tell(e, MSG_APPLIED, m->id, buf, writer_len(&w));
    return 0;
}

/* --- the end --- */

#define FINISH_STEP_US UINT64_C(1000)

/* What its program has sent has gone on, its end included; or it had sent nothing yet. */
static bool has_sent_all(const struct flow *f)
{
    if (f->state == FLOW_RELAYING)
        return f->relay.ways[0].closed;
    return recv(f->relay.fds[0], f->egress->flows.scratch, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

/* Whether connections are still to be accepted: what the kernel tells of a listener as its
 * unacknowledged segments (tcp_get_info()). */
static bool has_more(const struct loop_source *listener)
{
    struct tcp_info info = {.tcpi_unacked = 0};
    socklen_t len = sizeof info;

    return listener->fd >= 0 && getsockopt(listener->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_unacked > 0;
}

/* Whoever was inside is gone and waits for no answer. What is not over by the time that the keeper
 * gives is reset. */
static int finish_due(struct loop *l, struct loop_timer *t)
{
    struct egress *e = t->owner;
    struct flows *fs = &e->flows;

    for (struct flow *f = fs->first, *next; f; f = next) {
        next = f->next;
        if (has_sent_all(f))
            flow_end(f, f->state != FLOW_RELAYING);
    }
    publish_finish(&e->publish);
    if (fs->n == 0 && e->publish.n == 0 && !has_more(&fs->listeners[0]) &&
        !has_more(&fs->listeners[1]))
        l->stop = true;
    else
        loop_at(l, t, clock_after_us(FINISH_STEP_US));
    return 0;
}

static int serve(struct egress *e, struct message *m)
{
    switch (m->type) {
    case MSG_INSIDE:
        return take_inside(e, m);
    case MSG_SOCKETS:
        return take_sockets(e, m);
    case MSG_SYNC:
        denials_drain(&e->denials);
        keeper_link_tell(e, MSG_SYNCED, m->id, NULL, 0);
        return 0;
    case MSG_GENERATION:
        return take_generation(e, m);
    case MSG_FINISH:
        e->finish = (struct loop_timer){.name = "finish", .owner = e, .due = finish_due};
        return finish_due(&e->loop, &e->finish);
    default:
        return -EPROTO;
    }
}

static int keeper_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct egress *e = s->owner;
    struct message m;
    int r = events & EPOLLOUT ? channel_flush(&e->keeper) : 0;

    while (r >= 0 && (r = channel_receive(&e->keeper, &m)) > 0) {
        r = serve(e, &m);
        message_close_fds(&m);
    }
    if (r < 0)
        l->stop = true; /* the keeper is gone, or is none; it ends the sandbox */
    else
        (void)loop_change(l, s, EPOLLIN | (channel_waiting(&e->keeper) ? EPOLLOUT : 0u));
    return 0;
}

int keeper_link_start(struct egress *e)
{
    e->keeper_source =
        (struct loop_source){.name = "keeper", .fd = -EBADF, .owner = e, .ready = keeper_ready};
    return loop_watch(&e->loop, &e->keeper_source, e->keeper.fd, EPOLLIN);
}
