/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's end of the sandbox protocol: connections, requests, loss. */
#include "client/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/backends.h"
#include "core/file_error.h"
#include "core/limits.h"
#include "core/state.h"
#include "wire/fault.h"
#include "wire/files.h"
#include "base/guards.h"

enum {
    MESSAGES_AT_ONCE = 64, /* then other sources of the loop get their turn */
    BACKEND_END_US = 5000000,
    BACKEND_LOST_US = 500000, /* one that broke the protocol is not trusted to end well */
};

static void set_over(struct session *s)
{
    if (s->state == SESSION_OVER)
        return;
    s->state = SESSION_OVER;
    if (s->loop) {
        loop_forget(s->loop, &s->source);
        loop_at(s->loop, &s->timer, CLOCK_NEVER);
    }
    channel_done(&s->channel);
    while (s->requests) {
        struct session_request *q = s->requests;

        session_forget(q);
        q->failed(q, &s->error);
    }
    if (s->over)
        s->over(s);
}

static int out_of_reach(const struct session *s, int code, struct error *err)
{
    if (code == EPIPE || code == ECONNRESET)
        (void)error_set(err, ERROR_TERMINAL, EPIPE, "%s is gone", s->peer);
    else
        (void)error_set(err, ERROR_TERMINAL, code, "cannot reach %s: %s", s->peer, strerror(code));
    if (s->backend)
        return error_remedy(err, "Look at what the program wrote on standard error");
    if (err->code == EPIPE && s->child.pid == 0) /* with its keeper goes a sandbox that stands */
        return error_remedy(err, "Create another one");
    return -err->code;
}

static int greet(struct session *s, struct error *err)
{
    const struct hello hello = {WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR, "atoll"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);

    hello_encode(&w, &hello);
    s->state = SESSION_GREETING;
    int r = channel_send(&s->channel, MSG_HELLO, 0, buf, writer_len(&w), NULL, 0);
    /* One that is gone already may have left word of why, which is still to be read. */
    return r < 0 && r != -EPIPE && r != -ECONNRESET ? out_of_reach(s, -r, err) : 0;
}

static void adopt(struct session *s, int fd, const struct child *child, const char *peer)
{
    *s = (struct session)SESSION_INIT;
    s->child = *child;
    /* A keeper that we have just started has a limit of its own for what may hang. */
    s->hello_us = child->pid == 0 ? SESSION_HELLO_US : 0;
    channel_init(&s->channel, fd);
    (void)snprintf(s->peer, sizeof s->peer, "%s", peer);
}

int session_adopt(struct session *s, int fd, pid_t child, struct error *err)
{
    const struct child c = {.pid = child, .pid_fd = -EBADF};

    adopt(s, fd, &c, "the sandbox's keeper");
    return greet(s, err);
}

void session_adopt_files(struct session *s, int fd)
{
    const struct child none = CHILD_NONE;

    adopt(s, fd, &none, "the process that serves files inside the sandbox");
    s->files = true;
    s->state = SESSION_OPEN;
    s->minor = WIRE_VERSION_MINOR;
}

int session_launch(struct session *s, const char *program, struct error *err)
{
    struct child child = CHILD_NONE;
    int fd = -EBADF, r;

    *s = (struct session)SESSION_INIT;
    r = launch_keeper(program, &fd, &child, err);
    if (r < 0)
        return r;
    adopt(s, fd, &child, "the sandbox's keeper");
    return greet(s, err);
}

int session_connect(struct session *s, const char *id, struct error *err)
{
    int fd;

    *s = (struct session)SESSION_INIT;
    fd = state_connect(id, err);
    return fd < 0 ? fd : session_adopt(s, fd, 0, err);
}

int session_backend(struct session *s, const char *name, struct error *err)
{
    struct backend_room room;
    struct backend backend;
    struct child child = CHILD_NONE;
    int fd = -EBADF, r;

    *s = (struct session)SESSION_INIT;
    r = backend_find(name, getenv("PATH"), &room, &backend, err);
    if (r == 0 && backend.state == BACKEND_KNOWN)
        r = backend_require(&backend, err);
    if (r == 0 && backend.state != BACKEND_PROGRAM)
        r = error_set(err, ERROR_USAGE, ENOSYS, "backend '%s' is no program of its own", name);
    if (r == 0)
        r = launch_backend(backend.program, &fd, &child, err);
    if (r < 0)
        return r;
    adopt(s, -EBADF, &child, "");
    (void)snprintf(s->peer, sizeof s->peer, "the backend program 'atoll-backend-%s'", name);
    s->backend = s->in_band = true;
    s->hello_us = SESSION_HELLO_US;
    r = channel_init_stream(&s->channel, fd, fd);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot speak with %s: %s", s->peer,
                         strerror(-r));
    return greet(s, err);
}

/* Whether a byte stream ended within a message: what is there of it could still become one. */
static bool ended_halfway(const struct channel *c)
{
    struct reader payload;
    struct frame f;
    char byte;

    return c->stream && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 &&
           frame_parse(c->bytes + c->bytes_from, c->bytes_to - c->bytes_from, &f, &payload) ==
               PARSE_MORE;
}

/* Says why the session is lost, from the errno with which receiving or sending failed. */
static void lose(struct session *s, int code)
{
    struct error *e = &s->error;

    if (s->state == SESSION_OVER)
        return;
    if (e->code != 0) {
        /* said already, where more was known */
    } else if (code == EPROTO && ended_halfway(&s->channel)) {
        (void)error_set(e, ERROR_TERMINAL, EPIPE, "%s ended in the middle of a message", s->peer);
    } else if (code == EPROTO) {
        (void)error_set(e, ERROR_TERMINAL, EPROTO,
                        "%s sent what is no message of the sandbox protocol", s->peer);
    } else if (code == ENOBUFS) {
        (void)error_set(e, ERROR_TERMINAL, code, "%s takes no more messages", s->peer);
    } else if (s->files) {
        (void)error_set(e, ERROR_TERMINAL, EPIPE, "%s has ended", s->peer);
    } else {
        (void)out_of_reach(s, code, e);
    }
    if (s->files) { /* the sandbox stands, and another one can be had */
        e->cls = ERROR_RECOVERABLE;
        (void)error_remedy(e, "Try again; whether the operation was done is not known");
    }
    if (s->backend && e->remedy[0] == '\0')
        (void)error_remedy(e, "Look at what the program wrote on standard error");
    set_over(s);
}

/* The minor version that a request needs of its peer. */
static uint32_t needed_minor(const struct session_request *q)
{
    uint32_t since = message_since(q->type);

    return q->later && since < 1 ? 1 : since;
}

/* What an older peer has not, for the refusal. */
static const char *missing_feature(const struct session_request *q)
{
    if (q->later)
        return q->type == MSG_CREATE ? "sandboxes that are held or have an idle timeout"
                                     : "detached commands";
    if (q->type == MSG_POLICY)
        return "way to change its network policy";
    if (q->type == MSG_EXTEND)
        return "way to extend its lifetime";
    if (message_since(q->type) == 3)
        return "lease that one could take";
    if (q->type >= MSG_FILES)
        return "file operations";
    return q->type == MSG_PS || q->type == MSG_STOP ? "list of its commands"
           : q->type == MSG_INSPECT                 ? "description of itself"
                                                    : "sandboxes that are held";
}

static int refuse_old(const struct session *s, const struct session_request *q, struct error *err)
{
    (void)error_set(err, ERROR_RECOVERABLE, ENOSYS, "%s is of version %d.%u and has no %s", s->peer,
                    WIRE_VERSION_MAJOR, s->minor, missing_feature(q));
    return error_remedy(err, s->backend ? "Use a newer version of that program"
                                        : "Create the sandbox anew with this program");
}

/* What was asked before the peer's version was known. */
static void refuse_newer_requests(struct session *s)
{
    struct session_request *next;

    for (struct session_request *q = s->requests; q && s->state == SESSION_OPEN; q = next) {
        struct error err = ERROR_INIT;

        next = q->next;
        if (needed_minor(q) <= s->minor)
            continue;
        session_forget(q);
        (void)refuse_old(s, q, &err);
        q->failed(q, &err);
        next = s->requests; /* the callback may have changed the list */
    }
}

/* Return: 0, or -EPROTO with the error set where more can be said. */
static int hear_hello(struct session *s, struct message *m)
{
    struct hello hello;

    if (m->type != MSG_HELLO || hello_decode(m->payload, &hello) < 0) {
        (void)error_set(&s->error, ERROR_TERMINAL, EPROTO, "%s does not speak the sandbox protocol",
                        s->peer);
        return -EPROTO;
    }
    if (hello.major != WIRE_VERSION_MAJOR) {
        (void)error_set(&s->error, ERROR_TERMINAL, EPROTO,
                        "%s speaks version %u.%u of the sandbox protocol, and this program "
                        "version %d.%d",
                        s->peer, hello.major, hello.minor, WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR);
        (void)error_remedy(&s->error, "Use two of the same major version");
        return -EPROTO;
    }
    s->minor = hello.minor;
    s->state = SESSION_OPEN;
    loop_at(s->loop, &s->timer, CLOCK_NEVER);
    refuse_newer_requests(s);
    if (s->greeted && s->state == SESSION_OPEN)
        s->greeted(s);
    return 0;
}

static int hear_end(struct session *s, const struct message *m)
{
    if (number_decode(m->payload, TAG_ENDED_BY, &s->ended_by) < 0)
        return -EPROTO;
    s->ended = true;
    (void)error_set(&s->error, ERROR_TERMINAL, ESHUTDOWN, "the sandbox has ended (%s)",
                    ended_by_name(s->ended_by));
    (void)error_remedy(&s->error, "Create another one");
    set_over(s);
    return 0;
}

/* Somebody else has changed what the sandbox may reach. */
static int hear_policy(struct session *s, const struct message *m)
{
    struct policy_report x;

    if (policy_report_decode(m->payload, &x) < 0)
        return -EPROTO;
    if (s->policy_changed)
        s->policy_changed(s, &x);
    return 0;
}

static int hear(struct session *s, struct message *m)
{
    /* Whoever comes to a keeper while its sandbox ends is not greeted any more. */
    if (m->type == MSG_ENDED && !s->files && (s->state == SESSION_OPEN || !s->backend))
        return hear_end(s, m);
    if (s->state == SESSION_GREETING)
        return hear_hello(s, m);
    /* The keeper of a held sandbox has left its parent by now: what we started has ended. */
    if (m->type == MSG_CREATED)
        (void)child_reap(&s->child, 0);
    if (m->type == MSG_POLICY_SET && m->id == 0)
        return hear_policy(s, m);
    if (m->type == MSG_LEASE_LOST && m->id == 0) {
        if (s->lease_lost)
            s->lease_lost(s);
        return 0;
    }
    for (struct session_request *q = s->requests; q; q = q->next)
        if (q->id == m->id)
            return q->told(q, m);
    return 0; /* about what nobody waits for any more */
}

static int receive(struct session *s)
{
    struct message m;
    int r = 0;

    for (int n = 0; n < MESSAGES_AT_ONCE && s->state != SESSION_OVER; n++) {
        r = channel_receive(&s->channel, &m);
        if (r ==
            -ECONNRESET) /* said once of a peer that left something unread; then its last words */
            r = channel_receive(&s->channel, &m);
        if (r <= 0)
            return r;
        r = hear(s, &m);
        message_close_fds(&m);
        if (r < 0)
            return r;
    }
    /* Bytes that were read and not yet taken apart make no descriptor readable. */
    if (s->state == SESSION_OPEN && s->in_band)
        loop_at(s->loop, &s->timer, clock_now_us());
    return 0;
}

static void watch_again(struct session *s)
{
    if (s->state != SESSION_OVER && s->source.fd >= 0)
        (void)loop_change(s->loop, &s->source,
                          channel_waiting(&s->channel) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct session *s = source->owner;
    int r = events & EPOLLOUT ? channel_flush(&s->channel) : 0;

    (void)l;
    if (r == 0 || r == -EPIPE || r == -ECONNRESET) { /* what it said before it went still counts */
        int received = receive(s);

        r = received < 0 ? received : r;
    }
    if (r < 0)
        lose(s, -r);
    else
        watch_again(s);
    return 0;
}

static int due(struct loop *l, struct loop_timer *t)
{
    struct session *s = t->owner;

    if (s->broken != 0 && s->state != SESSION_OVER) {
        int r = receive(s); /* it may have said why before it went */

        lose(s, r < 0 && r != -EPIPE ? -r : s->broken);
    } else if (s->state == SESSION_GREETING) {
        (void)error_set(&s->error, ERROR_TERMINAL, ETIMEDOUT, "%s did not answer within %u s",
                        s->peer, (unsigned)(s->hello_us / 1000000));
        lose(s, ETIMEDOUT);
    } else if (s->state == SESSION_OPEN) {
        return ready(l, &s->source, EPOLLIN);
    }
    return 0;
}

int session_watch(struct session *s, struct loop *l, struct error *err)
{
    uint32_t events = EPOLLIN | (channel_waiting(&s->channel) ? EPOLLOUT : 0u);

    s->loop = l;
    s->source = (struct loop_source){.name = "session", .fd = -EBADF, .owner = s, .ready = ready};
    s->timer = (struct loop_timer){.name = "session", .owner = s, .due = due};
    int r = loop_watch(l, &s->source, s->channel.fd, events);
    if (r < 0) {
        s->loop = NULL;
        return error_set(err, ERROR_TERMINAL, -r, "cannot wait for %s: %s", s->peer, strerror(-r));
    }
    if (s->state == SESSION_GREETING && s->hello_us > 0)
        loop_at(l, &s->timer, clock_after_us(s->hello_us));
    return 0;
}

/* A send failed: the loop reports the loss, after the caller has come to its own end. */
static void note_broken(struct session *s, int code)
{
    if (s->broken != 0 || !s->loop)
        return;
    s->broken = code;
    loop_at(s->loop, &s->timer, clock_now_us());
}

int session_ask(struct session *s, struct session_request *q, uint16_t type, const struct writer *w,
                const int *fds, size_t n_fds, struct error *err)
{
    size_t len = w ? writer_len(w) : 0;

    q->session = NULL;
    q->type = type;
    if (s->state == SESSION_OVER || s->state == SESSION_OFF) {
        if (s->error.code != 0)
            *err = s->error;
        else
            (void)error_set(err, ERROR_TERMINAL, EPIPE, "the connection is closed");
        return -err->code;
    }
    if ((w && w->bad) || len > MESSAGE_BYTES_MAX)
        return error_set(err, ERROR_USAGE, E2BIG, "a request has more than %d bytes",
                         MESSAGE_BYTES_MAX);
    if (s->state == SESSION_OPEN && s->minor < needed_minor(q))
        return refuse_old(s, q, err);
    q->id = ++s->last_id;
    int r = channel_send(&s->channel, type, q->id, w ? w->start : NULL, len, fds, n_fds);
    if (r < 0)
        note_broken(s, -r);
    /* A peer that is gone may have left word of why: that, still unread, is the answer. */
    if (r < 0 && r != -EPIPE && r != -ECONNRESET)
        return out_of_reach(s, -r, err);
    if (r == 0)
        watch_again(s);
    q->session = s;
    q->link = &s->requests;
    q->next = s->requests;
    if (q->next)
        q->next->link = &q->next;
    s->requests = q;
    return 0;
}

int session_tell(struct session *s, uint16_t type, uint32_t id, const struct writer *w)
{
    int r = s->state == SESSION_OVER || s->state == SESSION_OFF ? -EPIPE
            : w && w->bad                                       ? -EMSGSIZE
                                                                : 0;

    if (r < 0)
        return r;
    r = channel_send(&s->channel, type, id, w ? w->start : NULL, w ? writer_len(w) : 0, NULL, 0);
    if (r < 0)
        note_broken(s, -r);
    else
        watch_again(s);
    return r;
}

void session_forget(struct session_request *q)
{
    if (!q->session)
        return;
    *q->link = q->next;
    if (q->next)
        q->next->link = q->link;
    q->session = NULL;
    q->next = NULL;
    q->link = NULL;
}

int session_error(const struct message *m, struct error *ret)
{
    struct file_fault fault;

    *ret = (struct error)ERROR_INIT;
    if (fault_decode(m->payload, ret) < 0)
        return -EPROTO;
    if (ret->message[0] != '\0')
        return 0;
    if (file_fault_decode(m->payload, &fault)) {
        *ret = (struct error)ERROR_INIT;
        (void)file_error(&fault, ret);
    } else {
        (void)snprintf(ret->message, sizeof ret->message, "%s", strerror(ret->code));
    }
    return 0;
}

int session_create(struct session *s, struct session_request *q, const struct spec *spec,
                   struct error *err)
{
    size_t size = spec_size(spec);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    if (!buf)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    spec_encode(&w, spec);
    if (w.bad || writer_len(&w) > MESSAGE_BYTES_MAX)
        return error_set(err, ERROR_USAGE, E2BIG, "the spec has more than %d bytes",
                         MESSAGE_BYTES_MAX);
    /* An older keeper would skip these fields, and keep less than was asked for. */
    q->later = !spec->owned || spec->idle_timeout_us > 0;
    return session_ask(s, q, MSG_CREATE, &w, NULL, 0, err);
}

int session_open(struct session *s, struct session_request *q, const char *id, struct error *err)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_string(&w, TAG_SANDBOX_ID, id);
    return session_ask(s, q, MSG_OPEN, &w, NULL, 0, err);
}

int session_destroy(struct session *s)
{
    return session_tell(s, MSG_DESTROY, ++s->last_id, NULL);
}

void session_close(struct session *s)
{
    if (s->state == SESSION_OFF)
        return;
    s->over = NULL;
    if (s->error.code == 0)
        (void)error_set(&s->error, ERROR_RECOVERABLE, ECANCELED, "the connection was closed");
    set_over(s);
}

void session_end(struct session *s)
{
    bool lost = s->state == SESSION_OVER && !s->ended;

    session_close(s);
    channel_done(&s->channel);
    if (!s->backend) {
        (void)child_reap(&s->child, CLOCK_NEVER);
    } else if (!child_reap(&s->child, clock_after_us(lost ? BACKEND_LOST_US : BACKEND_END_US))) {
        child_kill(&s->child);
        (void)child_reap(&s->child, CLOCK_NEVER);
    }
}
