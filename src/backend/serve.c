/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: greeting, which request goes where, and the end. */
#include <atoll_backend.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "backend/server.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "core/limits.h"
#include "wire/fault.h"
#include "base/guards.h"

enum { FAREWELL_US = 1000000, MESSAGES_AT_ONCE = 64 };

void *atoll_server_state(const struct atoll_server *server)
{
    return server->state;
}

static bool is_paused(const struct atoll_server *s)
{
    return s->phase == PHASE_MAKING || s->phase == PHASE_ENDING;
}

void server_client_lost(struct atoll_server *s)
{
    if (s->gone)
        return;
    s->gone = true;
    loop_forget(&s->loop, &s->in);
    loop_forget(&s->loop, &s->out);
    /* What is half made or half gone is waited for: then `closed` is told of a whole one. */
    if (is_paused(s))
        loop_at(&s->loop, &s->patience, clock_after_us(LIMIT_CREATE_US));
    else
        s->loop.stop = true;
}

void server_send(struct atoll_server *s, uint16_t type, uint32_t id, const struct writer *w)
{
    int r;

    if (s->gone)
        return;
    r = w->bad ? -EMSGSIZE : channel_send(&s->channel, type, id, w->start, writer_len(w), NULL, 0);
    if (r < 0)
        server_client_lost(s);
    else if (channel_waiting(&s->channel))
        (void)loop_change(&s->loop, &s->out, EPOLLOUT);
}

void server_refuse(struct atoll_server *s, uint32_t id, const struct error *err)
{
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);

    fault_encode(&w, err);
    server_send(s, MSG_ERROR, id, &w);
}

void server_refuse_text(struct atoll_server *s, uint32_t id, int cls, int code, const char *message,
                        const char *remedy)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err,
                    cls >= 0 && cls < ERROR_CLASS__MAX ? (enum error_class)cls : ERROR_TERMINAL,
                    code > 0 && code < 4096 ? code : EIO, "%s", message ? message : "it failed");
    if (remedy)
        (void)error_remedy(&err, "%s", remedy);
    server_refuse(s, id, &err);
}

void server_lacks(struct atoll_server *s, uint32_t id, const char *what)
{
    char text[160];

    (void)snprintf(text, sizeof text, "the backend %s cannot %s", s->backend->name, what);
    server_refuse_text(s, id, ERROR_USAGE, ENOSYS, text, "Use a backend that has this operation");
}

size_t server_room(const struct atoll_server *s)
{
    return s->channel.queued < QUEUE_SOFT ? QUEUE_SOFT - s->channel.queued : 0;
}

bool server_id_free(const struct atoll_server *s, uint32_t id)
{
    return !command_find(s, id) && !reply_find(s, id);
}

void server_resume(struct atoll_server *s)
{
    loop_at(&s->loop, &s->patience, CLOCK_NEVER);
    if (s->gone)
        s->loop.stop = true;
    else
        loop_at(&s->loop, &s->more, clock_after_us(1));
}

/* Return: 0, or -EPROTO when the peer speaks another protocol. */
static int greet(struct atoll_server *s, const struct message *m)
{
    struct hello mine = {WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR, s->backend->name};
    struct error err = ERROR_INIT;
    struct hello theirs;
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    hello_encode(&w, &mine);
    server_send(s, MSG_HELLO, m->id, &w);
    if (m->type == MSG_HELLO && hello_decode(m->payload, &theirs) == 0 &&
        theirs.major == WIRE_VERSION_MAJOR) {
        s->greeted = true;
        s->minor = theirs.minor;
        return 0;
    }
    (void)error_set(&err, ERROR_USAGE, EPROTO,
                    "the caller does not speak version %d of the sandbox protocol",
                    WIRE_VERSION_MAJOR);
    (void)error_remedy(&err, "Use a client and a backend of the same major version");
    server_refuse(s, m->id, &err);
    return -EPROTO;
}

/* INPUT and CREDIT belong to a command or to a file operation, by their id. */
static void serve_bytes(struct atoll_server *s, const struct message *m)
{
    struct atoll_stream *c = command_find(s, m->id);
    struct atoll_reply *r = c ? NULL : reply_find(s, m->id);
    bool input = m->type == MSG_INPUT;
    struct stream_data x;

    if (!c && !r) {
        if (input)
            server_refuse_text(s, m->id, ERROR_RECOVERABLE, EPIPE,
                               "the command or file operation is over", NULL);
        return;
    }
    if (stream_data_decode(m->payload, &x) < 0)
        server_refuse_text(s, m->id, ERROR_USAGE, EPROTO, "the message cannot be read", NULL);
    else if (c)
        (input ? stream_input : stream_credit)(c, &x);
    else
        (input ? file_input : file_credit)(r, &x);
}

typedef void (*handler)(struct atoll_server *s, const struct message *m);

/* What needs a sandbox is refused without one. */
static const struct route {
    uint16_t type;
    bool needs_sandbox;
    handler handle;
} routes[] = {
    {MSG_CREATE, false, sandbox_create},
    {MSG_OPEN, false, sandbox_open},
    {MSG_DESCRIBE, false, sandbox_describe},
    {MSG_ENUMERATE, false, sandbox_enumerate},
    {MSG_DESTROY, true, sandbox_destroy},
    {MSG_INSPECT, true, sandbox_inspect},
    {MSG_EXEC, true, command_exec},
    {MSG_SIGNAL, false, command_signal},
    {MSG_RESIZE, false, command_resize},
    {MSG_INPUT, false, serve_bytes},
    {MSG_CREDIT, false, serve_bytes},
    {MSG_PS, true, command_list},
    {MSG_STOP, true, command_stop},
    {MSG_READ, true, file_read},
    {MSG_WRITE, true, file_write},
    {MSG_COMMIT, true, file_commit},
    {MSG_LIST, true, file_list},
    {MSG_STAT, true, file_stat},
    {MSG_CANCEL, false, file_cancel},
    {MSG_TAGS, true, tags_read},
    {MSG_SET_TAGS, true, tags_write},
};

/* What this version names is left to keepers; what it does not, a later version may have. */
static void refuse_unknown(struct atoll_server *s, const struct message *m)
{
    const char *name = message_name(m->type);
    char text[80];

    if (name)
        (void)snprintf(text, sizeof text, "this backend has no operation '%s'", name);
    else
        (void)snprintf(text, sizeof text, "this backend has no operation %u", m->type);
    server_refuse_text(s, m->id, ERROR_USAGE, ENOSYS, text,
                       name ? "Use a sandbox of the backend local for it"
                            : "Use one of the client's version");
}

static int serve(struct atoll_server *s, const struct message *m)
{
    if (!s->greeted)
        return greet(s, m);
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        if (routes[i].type != m->type)
            continue;
        if (routes[i].needs_sandbox && s->phase != PHASE_RUNNING)
            server_refuse_text(s, m->id, ERROR_USAGE, ENOENT, "there is no sandbox yet", NULL);
        else
            routes[i].handle(s, m);
        return 0;
    }
    refuse_unknown(s, m);
    return 0;
}

/* Serves what is here, a bounded number at a time so that timers and watches have their turn. */
static void serve_some(struct atoll_server *s)
{
    struct message m;
    int r = 1;

    for (int n = 0; r > 0 && !s->loop.stop && !s->gone; n++) {
        if (is_paused(s)) {
            /* A hang-up is still heard. */
            (void)loop_change(&s->loop, &s->in, EPOLLRDHUP);
            return;
        }
        if (n == MESSAGES_AT_ONCE) {
            loop_at(&s->loop, &s->more, clock_after_us(1));
            return;
        }
        r = channel_receive(&s->channel, &m);
        if (r > 0)
            r = serve(s, &m) < 0 ? -EPROTO : 1;
    }
    if (r == -EPROTO)
        s->broken = true;
    if (r < 0)
        s->loop.stop = true; /* what it was told last is still sent */
    else if (!s->gone)
        (void)loop_change(&s->loop, &s->in, EPOLLIN);
}

static int in_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct atoll_server *s = source->owner;

    (void)l;
    if (!is_paused(s))
        serve_some(s);
    else if (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
        server_client_lost(s);
    return 0;
}

static int more_due(struct loop *l, struct loop_timer *t)
{
    (void)l;
    serve_some(t->owner);
    return 0;
}

static int patience_ended(struct loop *l, struct loop_timer *t)
{
    (void)t;
    l->stop = true;
    return 0;
}

static int out_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct atoll_server *s = source->owner;

    (void)events;
    if (channel_flush(&s->channel) < 0) {
        server_client_lost(s);
        return 0;
    }
    replies_pump(s);
    streams_pump(s);
    return s->gone || channel_waiting(&s->channel) ? 0 : loop_change(l, source, 0);
}

/* Takes the client's streams away from 0 and 1, where a stray printf() would be a message. */
static int take_streams(struct channel *c)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    _cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int r = channel_init_stream(c, in, out);

    if (r < 0)
        return r;
    if (in < 0 || out < 0 || null < 0)
        return -EBADF;
    /* check-calls: the two standard streams of this process, which children may have */
    if (dup3(null, STDIN_FILENO, 0) < 0)
        return -errno;
    /* check-calls: the same */
    return dup3(fcntl(STDERR_FILENO, F_GETFD) < 0 ? null : STDERR_FILENO, STDOUT_FILENO, 0) < 0
               ? -errno
               : 0;
}

static int server_open(struct atoll_server *s)
{
    int r = loop_init(&s->loop);

    s->in = (struct loop_source){.name = "client", .fd = -EBADF, .owner = s, .ready = in_ready};
    s->out = (struct loop_source){.name = "answers", .fd = -EBADF, .owner = s, .ready = out_ready};
    s->more = (struct loop_timer){.name = "more", .owner = s, .due = more_due};
    s->patience = (struct loop_timer){.name = "patience", .owner = s, .due = patience_ended};
    if (r == 0)
        r = take_streams(&s->channel);
    if (r == 0)
        r = loop_watch(&s->loop, &s->in, s->channel.fd, EPOLLIN);
    return r < 0 ? r : loop_watch(&s->loop, &s->out, s->channel.out_fd, 0);
}

/* What still waits for a slow client gets a moment more. */
static void say_farewell(struct atoll_server *s)
{
    uint64_t deadline = clock_after_us(FAREWELL_US);

    while (!s->gone && channel_waiting(&s->channel) && channel_flush(&s->channel) == 0 &&
           channel_waiting(&s->channel))
        if (io_wait(s->channel.out_fd, POLLOUT, deadline) < 0)
            break;
}

int atoll_backend_serve(const struct atoll_backend *backend, void *state)
{
    struct atoll_server s = {.backend = backend, .state = state, .phase = PHASE_NEW};
    int r;

    (void)signal(SIGPIPE, SIG_IGN);
    s.channel = (struct channel){.fd = -EBADF, .out_fd = -EBADF};
    r = server_open(&s);
    if (r == 0)
        r = loop_run(&s.loop);
    else
        (void)fprintf(stderr, "%s: cannot speak on standard input and output: %s\n", backend->name,
                      strerror(-r));
    say_farewell(&s);
    s.gone = true; /* from here on answers are dropped */
    channel_done(&s.channel);
    if (backend->closed)
        backend->closed(&s, s.phase == PHASE_RUNNING || s.phase == PHASE_ENDING ? s.sandbox : NULL);
    while (s.streams)
        command_free(s.streams);
    while (s.replies)
        reply_free(s.replies);
    watches_done(&s);
    loop_done(&s.loop);
    return r < 0 || s.broken;
}
