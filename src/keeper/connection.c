/* SPDX-License-Identifier: Apache-2.0 */
/* Clients: letting them in, serving what they ask, noticing that they are gone. */
#include "keeper/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "keeper/command.h"
#include "keeper/ending.h"
#include "keeper/events.h"
#include "keeper/lease.h"
#include "keeper/policy_change.h"
#include "keeper/report.h"
#include "wire/fault.h"
#include "base/guards.h"

enum { FAREWELL_US = 1000000, CLIENTS_AT_ONCE = 16, MESSAGES_AT_ONCE = 64, PAUSE_US = 100000 };

/* With a client go its commands; with the owner of a sandbox, the sandbox. */
static void connection_drop(struct connection *c)
{
    struct keeper *k = c->keeper;

    if (c->gone)
        return;
    c->gone = true;
    loop_at(&k->loop, &c->drop, CLOCK_NEVER);
    loop_forget(&k->loop, &c->source);
    channel_done(&c->channel);
    for (struct connection **p = &k->connections; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    loop_free_later(&k->loop, c);
    stops_forget(k, c);
    policy_change_forget(k, c);
    commands_orphan(k, c);
    lease_connection_gone(c);
    bool last_word = k->state == KEEPER_NEW && !k->connections; /* there will be no sandbox */
    bool owner = c == k->creator && (k->spec.owned || k->state == KEEPER_CREATING);
    if (c == k->creator)
        k->creator = NULL;
    if (owner || last_word)
        keeper_end(k, ENDED_CALLER_DIED);
}

static int drop_due(struct loop *l, struct loop_timer *t)
{
    (void)l;
    connection_drop(t->owner);
    return 0;
}

void connection_send(struct connection *c, uint16_t type, uint32_t id, const struct writer *w,
                     int fd)
{
    if (!c || c->gone || c->broken)
        return;
    int r =
        w->bad ? -EMSGSIZE
               : channel_send(&c->channel, type, id, w->start, writer_len(w), &fd, fd >= 0 ? 1 : 0);
    if (r < 0) { /* dropped in a moment: whoever sends may be working on one of its commands */
        c->broken = true;
        loop_at(&c->keeper->loop, &c->drop, 0);
    } else if (channel_waiting(&c->channel)) {
        (void)loop_change(&c->keeper->loop, &c->source, EPOLLIN | EPOLLOUT);
    }
}

void connection_refuse(struct connection *c, uint32_t id, const struct error *err)
{
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);

    fault_encode(&w, err);
    connection_send(c, MSG_ERROR, id, &w, -EBADF);
}

/* Return: 0, or -EPROTO when the peer speaks another protocol. */
static int greet(struct connection *c, struct message *m)
{
    struct hello mine = {WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR, "atoll keeper " ATOLL_VERSION};
    struct error err = ERROR_INIT;
    struct hello theirs;
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);

    hello_encode(&w, &mine);
    connection_send(c, MSG_HELLO, m->id, &w, -EBADF);
    if (m->type == MSG_HELLO && hello_decode(m->payload, &theirs) == 0 &&
        theirs.major == WIRE_VERSION_MAJOR) {
        c->greeted = true;
        c->minor = theirs.minor;
        return 0;
    }
    (void)error_set(&err, ERROR_USAGE, EPROTO,
                    "the caller does not speak version %d of the sandbox protocol",
                    WIRE_VERSION_MAJOR);
    (void)error_remedy(&err, "Use a client and a keeper of the same major version");
    connection_refuse(c, m->id, &err);
    return -EPROTO;
}

static void unknown_request(struct connection *c, const struct message *m)
{
    struct error err = ERROR_INIT;

    if (message_name(m->type))
        (void)error_set(&err, ERROR_USAGE, ENOSYS, "this keeper has no operation '%s'",
                        message_name(m->type));
    else
        (void)error_set(&err, ERROR_USAGE, ENOSYS, "this keeper has no operation %u", m->type);
    (void)error_remedy(&err, "Use a keeper of the client's version");
    connection_refuse(c, m->id, &err);
}

/* Whoever made it may end it; others need its owner, and nobody who has its lease. */
static void destroy(struct connection *c, const struct message *m)
{
    struct reader message = m->payload;
    struct error err = ERROR_INIT;
    const char *owner = NULL;
    uint32_t flags = 0;
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_OWNER)
            good = (owner = field_string(&f)) != NULL;
        else if (f.tag == TAG_DESTROY_FLAGS)
            good = field_u32(&f, &flags);
    }
    if (!good || message.bad)
        (void)error_set(&err, ERROR_USAGE, EPROTO, "DESTROY cannot be read");
    else if (c != c->keeper->creator && !(flags & DESTROY_FORCE))
        (void)lease_owner_admits(c->keeper, owner, true, &err);
    if (err.code != 0)
        connection_refuse(c, m->id, &err);
    else
        keeper_end(c->keeper, ENDED_DESTROYED);
}

static int serve(struct connection *c, struct message *m)
{
    struct keeper *k = c->keeper;

    if (!c->greeted)
        return greet(c, m);
    if (message_since(m->type) > WIRE_VERSION_MINOR) {
        unknown_request(c, m);
        return 0;
    }
    if (m->type != MSG_CREDIT)
        keeper_stirred(k);
    switch (m->type) {
    case MSG_CREATE:
        keeper_create(k, c, m);
        return 0;
    case MSG_EXEC:
        command_start(c, m);
        return 0;
    case MSG_SIGNAL:
        command_signal(c, m);
        return 0;
    case MSG_RESIZE:
    case MSG_INPUT:
    case MSG_CREDIT:
        command_stream(c, m);
        return 0;
    case MSG_CANCEL:
        command_cancel(c, m);
        return 0;
    case MSG_FILES:
        command_start_files(c, m);
        return 0;
    case MSG_DESCRIBE:
        report_capabilities(c, m);
        return 0;
    case MSG_INSPECT:
        report_sandbox(c, m);
        return 0;
    case MSG_PS:
        report_commands(c, m);
        return 0;
    case MSG_STOP:
        commands_stop(c, m);
        return 0;
    case MSG_POLICY:
        policy_change(c, m);
        return 0;
    case MSG_EXPORTED:
        events_exported(c, m);
        return 0;
    case MSG_ATTACH:
        lease_attach(c, m);
        return 0;
    case MSG_RELEASE:
        lease_release(c, m);
        return 0;
    case MSG_PRESENT:
        lease_present(c, m);
        return 0;
    case MSG_EXTEND:
        ending_extend(c, m);
        return 0;
    case MSG_DESTROY:
        destroy(c, m);
        return 0;
    default:
        unknown_request(c, m);
        return 0;
    }
}

static int connection_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct connection *c = s->owner;
    struct keeper *k = c->keeper;
    struct message m;
    int r = 0;

    if (events & EPOLLOUT) {
        r = channel_flush(&c->channel);
        if (!channel_waiting(&c->channel))
            (void)loop_change(l, s, EPOLLIN);
    }
    /* A bounded number, so that others get their turn. */
    for (int n = 0; r >= 0 && n < MESSAGES_AT_ONCE && !c->gone && k->state != KEEPER_ENDING; n++) {
        r = channel_receive(&c->channel, &m);
        if (r <= 0)
            break;
        r = serve(c, &m);
        message_close_fds(&m);
    }
    if (r < 0)
        connection_drop(c);
    return 0;
}

int connection_new(struct keeper *k, int fd)
{
    struct connection *c = calloc(1, sizeof *c);

    if (!c) {
        fd_closep(&fd);
        return -ENOMEM;
    }
    c->keeper = k;
    channel_init(&c->channel, fd);
    c->source =
        (struct loop_source){.name = "client", .fd = -EBADF, .owner = c, .ready = connection_ready};
    c->drop = (struct loop_timer){.name = "drop", .owner = c, .due = drop_due};
    int r = loop_watch(&k->loop, &c->source, fd, EPOLLIN);
    if (r < 0) {
        channel_done(&c->channel);
        free(c);
        return r;
    }
    c->next = k->connections;
    k->connections = c;
    return 0;
}

/* The socket lies in a folder that only its user enters; whoever else holds an end of it is root.
 */
static bool is_welcome(const struct keeper *k, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == k->place.uid || peer.uid == 0);
}

static int listen_again(struct loop *l, struct loop_timer *t)
{
    struct keeper *k = t->owner;

    return loop_change(l, &k->listen_source, EPOLLIN);
}

static int client_came(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;

    (void)events;
    for (int i = 0; i < CLIENTS_AT_ONCE; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
            break;
        if (fd < 0) { /* no descriptors to spare: they wait, and are not looked at without end */
            loop_at(l, &k->listen_timer, clock_after_us(PAUSE_US));
            return loop_change(l, s, 0);
        }
        if (is_welcome(k, fd))
            (void)connection_new(k, fd);
        else
            fd_closep(&fd);
    }
    return 0;
}

int connections_listen(struct keeper *k, int fd)
{
    k->listen_fd = fd;
    k->listen_source =
        (struct loop_source){.name = "control", .fd = -EBADF, .owner = k, .ready = client_came};
    k->listen_timer = (struct loop_timer){.name = "control", .owner = k, .due = listen_again};
    return loop_watch(&k->loop, &k->listen_source, fd, EPOLLIN);
}

void connections_farewell(struct keeper *k)
{
    uint64_t deadline = clock_after_us(FAREWELL_US);

    while (k->connections) {
        struct connection *c = k->connections;

        while (channel_waiting(&c->channel) && channel_flush(&c->channel) == 0 &&
               channel_waiting(&c->channel))
            if (io_wait(c->channel.fd, POLLOUT, deadline) < 0)
                break;
        connection_drop(c);
    }
}
