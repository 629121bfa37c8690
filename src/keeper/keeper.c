/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's loop: one caller, one sandbox. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/limits.h"
#include "keeper/command.h"
#include "wire/fault.h"
#include "base/guards.h"

enum { CLIENT_FD = 3, FAREWELL_US = 1000000, MESSAGES_AT_ONCE = 64 };

void keeper_send(struct keeper *k, uint16_t type, uint32_t id, const struct writer *w, int fd)
{
    int r = k->client.fd < 0 ? -EPIPE
            : w->bad
                ? -EMSGSIZE
                : channel_send(&k->client, type, id, w->start, writer_len(w), &fd, fd >= 0 ? 1 : 0);

    if (r < 0)
        keeper_end(k, ENDED_CALLER_DIED);
    else if (channel_waiting(&k->client))
        (void)loop_change(&k->loop, &k->client_source, EPOLLIN | EPOLLOUT);
}

int keeper_tell_init(struct keeper *k, uint16_t type, uint32_t id, const void *payload, size_t len,
                     const int *fds, size_t n_fds)
{
    int r = channel_send(&k->init, type, id, payload, len, fds, n_fds);

    if (r == 0 && channel_waiting(&k->init))
        r = loop_change(&k->loop, &k->init_source, EPOLLIN | EPOLLOUT);
    return r;
}

void keeper_refuse(struct keeper *k, uint32_t id, const struct error *err)
{
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);

    fault_encode(&w, err);
    keeper_send(k, MSG_ERROR, id, &w, -EBADF);
}

void keeper_end(struct keeper *k, enum ended_by by)
{
    static const enum exit_reason reasons[] = {
        [ENDED_DESTROYED] = REASON_KILLED, [ENDED_LIFETIME] = REASON_LIFETIME,
        [ENDED_IDLE] = REASON_LIFETIME,    [ENDED_OOM] = REASON_OOM,
        [ENDED_KILLED] = REASON_KILLED,    [ENDED_CALLER_DIED] = REASON_KILLED,
        [ENDED_ERROR] = REASON_ERROR,
    };
    _Static_assert(ARRAY_SIZE(reasons) == ENDED__MAX, "an end has no reason for its commands");
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    bool existed = k->state != KEEPER_NEW;

    if (k->state == KEEPER_ENDING)
        return;
    k->state = KEEPER_ENDING;
    k->ended_by = by;
    k->loop.stop = true;
    loop_forget(&k->loop, &k->init_source);
    loop_forget(&k->loop, &k->process_source);
    channel_done(&k->init); /* it owns the sandbox's end of the socket */
    k->sandbox.link_fd = -EBADF;
    sandbox_end(&k->sandbox);
    if (by == ENDED_CALLER_DIED || !existed)
        return;
    /* Nothing of it is left: only now it is said. */
    commands_abandon(k, reasons[by]);
    field_put_u32(&w, TAG_ENDED_BY, by);
    keeper_send(k, MSG_ENDED, k->create_id, &w, -EBADF);
}

static int create_overdue(struct loop *l, struct loop_timer *t)
{
    struct keeper *k = t->owner;
    struct error err = ERROR_INIT;

    (void)l;
    (void)error_set(&err, ERROR_TERMINAL, ETIMEDOUT, "the set-up did not end within %d s",
                    (int)(LIMIT_CREATE_US / 1000000));
    (void)error_remedy(&err, "See with -v which step hangs; a network file system may not answer");
    keeper_refuse(k, k->create_id, &err);
    keeper_end(k, ENDED_ERROR);
    return 0;
}

static int lifetime_over(struct loop *l, struct loop_timer *t)
{
    (void)l;
    keeper_end(t->owner, ENDED_LIFETIME);
    return 0;
}

static void tell_created(struct keeper *k)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    k->state = KEEPER_RUNNING;
    loop_at(&k->loop, &k->create_timer, CLOCK_NEVER);
    if (k->spec.lifetime_us > 0)
        loop_at(&k->loop, &k->lifetime_timer, clock_after_us(k->spec.lifetime_us));
    commands_begin(k);
    field_put_u32(&w, TAG_LANDLOCK_ABI, (uint32_t)k->sandbox.landlock_abi);
    keeper_send(k, MSG_CREATED, k->create_id, &w, -EBADF);
}

static int tell_step(struct keeper *k, struct message *m)
{
    uint8_t buf[1024];
    char text[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct step_report x;

    if (step_report_decode(m->payload, &x) < 0 || x.index >= k->sandbox.plan->n)
        return -EPROTO;
    step_describe(&k->sandbox.plan->steps[x.index], text, sizeof text);
    x.text = text;
    step_report_encode(&w, &x);
    keeper_send(k, MSG_STEP, k->create_id, &w, -EBADF);
    return 0;
}

static int setup_failed(struct keeper *k, struct message *m)
{
    struct error err = ERROR_INIT;
    struct step_report x;

    if (step_report_decode(m->payload, &x) < 0)
        return -EPROTO;
    (void)sandbox_fault(&k->sandbox, x.index, (int)x.error, &err);
    keeper_refuse(k, k->create_id, &err);
    keeper_end(k, ENDED_ERROR);
    return 0;
}

static int serve_init(struct keeper *k, struct message *m)
{
    bool setup = k->state == KEEPER_CREATING;

    /* Only init answers requests: whatever else it sends first, it is there. */
    if (setup && m->type != MSG_STEP && m->type != MSG_FAULT)
        tell_created(k);
    switch (m->type) {
    case MSG_READY:
        if (k->ready)
            return -EPROTO;
        k->ready = true;
        return 0;
    case MSG_STEP:
        return setup ? tell_step(k, m) : -EPROTO;
    case MSG_FAULT:
        return setup ? setup_failed(k, m) : -EPROTO;
    case MSG_STARTED:
        return command_started(k, m);
    case MSG_EXITED:
        return command_exited(k, m);
    case MSG_KILLED:
        return command_killed(k, m);
    default:
        return -EPROTO;
    }
}

static int init_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;
    struct message m;
    int r = events & EPOLLOUT ? channel_flush(&k->init) : 0;

    /* A bounded number: init must not be able to keep the timers and the caller waiting. */
    for (int n = 0; r >= 0 && n < MESSAGES_AT_ONCE && k->state != KEEPER_ENDING; n++) {
        r = channel_receive(&k->init, &m);
        if (r <= 0)
            break;
        r = serve_init(k, &m);
        message_close_fds(&m);
    }
    if (r < 0 && k->state == KEEPER_CREATING) {
        struct error err = ERROR_INIT;

        (void)error_set(&err, ERROR_TERMINAL, EIO, "the set-up process ended without a word");
        (void)error_remedy(&err, "Look for an out-of-memory kill in the host's log");
        keeper_refuse(k, k->create_id, &err);
    }
    if (r < 0)
        keeper_end(k, ENDED_ERROR);
    else
        (void)loop_change(l, s, EPOLLIN | (channel_waiting(&k->init) ? EPOLLOUT : 0u));
    return 0;
}

/* Process 1 has ended; what it sent before is still to be read. */
static int process_ended(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;

    (void)events;
    (void)init_ready(l, &k->init_source, EPOLLIN);
    keeper_end(k, ENDED_ERROR);
    return 0;
}

static int watch_sandbox(struct keeper *k)
{
    int r;

    channel_init(&k->init, k->sandbox.link_fd);
    k->init_source =
        (struct loop_source){.name = "init", .fd = -EBADF, .owner = k, .ready = init_ready};
    k->process_source =
        (struct loop_source){.name = "process 1", .fd = -EBADF, .owner = k, .ready = process_ended};
    r = loop_watch(&k->loop, &k->init_source, k->init.fd, EPOLLIN);
    return r < 0 ? r : loop_watch(&k->loop, &k->process_source, k->sandbox.pid_fd, EPOLLIN);
}

static void create(struct keeper *k, struct message *m)
{
    struct error err = ERROR_INIT;
    int r;

    if (k->state != KEEPER_NEW) {
        (void)error_set(&err, ERROR_USAGE, EEXIST, "this keeper has a sandbox already");
        keeper_refuse(k, m->id, &err);
        return;
    }
    k->create_id = m->id;
    k->state = KEEPER_CREATING;
    if (spec_decode(m->payload, &k->spec) < 0)
        r = error_set(&err, ERROR_USAGE, EPROTO, "the spec cannot be read");
    else if ((r = spec_check(&k->spec, &err)) == 0)
        r = sandbox_start(&k->spec, &k->sandbox, &err);
    if (r == 0 && (r = watch_sandbox(k)) < 0)
        (void)error_set(&err, ERROR_TERMINAL, -r, "cannot watch the sandbox: %s", strerror(-r));
    if (r < 0) {
        keeper_refuse(k, m->id, &err);
        keeper_end(k, ENDED_ERROR);
        return;
    }
    k->create_timer = (struct loop_timer){.name = "create", .owner = k, .due = create_overdue};
    k->lifetime_timer = (struct loop_timer){.name = "lifetime", .owner = k, .due = lifetime_over};
    loop_at(&k->loop, &k->create_timer, clock_after_us(LIMIT_CREATE_US));
}

/* Return: 0, or -EPROTO when the peer speaks another protocol. */
static int greet(struct keeper *k, struct message *m)
{
    struct hello mine = {WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR, "atoll keeper"};
    struct error err = ERROR_INIT;
    struct hello theirs;
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);

    hello_encode(&w, &mine);
    keeper_send(k, MSG_HELLO, m->id, &w, -EBADF);
    if (m->type == MSG_HELLO && hello_decode(m->payload, &theirs) == 0 &&
        theirs.major == WIRE_VERSION_MAJOR) {
        k->greeted = true;
        return 0;
    }
    (void)error_set(&err, ERROR_USAGE, EPROTO,
                    "the caller does not speak version %d of the sandbox protocol",
                    WIRE_VERSION_MAJOR);
    (void)error_remedy(&err, "Use a client and a keeper of the same major version");
    keeper_refuse(k, m->id, &err);
    return -EPROTO;
}

static void command_stream(struct keeper *k, struct message *m)
{
    struct keeper_command *c = command_by_id(k, m->id);
    struct error err = ERROR_INIT;
    struct stream_data x;
    uint16_t rows, columns;
    int r = -EPROTO;

    if (!c || c->exited || !(c->flags & EXEC_IN_BAND)) {
        if (m->type == MSG_INPUT) {
            (void)error_set(&err, ERROR_RECOVERABLE, EPIPE, "the command has exited");
            keeper_refuse(k, m->id, &err);
            return;
        }
        if (!c || m->type == MSG_RESIZE || !(c->flags & EXEC_IN_BAND))
            return; /* late, and of no use any more */
    }
    if (m->type == MSG_RESIZE) {
        r = size_decode(m->payload, &rows, &columns);
        if (r == 0)
            streams_resize(&c->streams, rows, columns);
    } else if (stream_data_decode(m->payload, &x) == 0) {
        r = m->type == MSG_CREDIT ? streams_credit(&c->streams, x.stream, x.credit)
            : x.stream == STREAM_STDIN && c->flags & EXEC_STDIN
                ? streams_input(&c->streams, x.data, x.len)
                : -EPROTO;
    }
    if (r < 0) {
        (void)error_set(&err, ERROR_USAGE, -r, "bytes or credit came that were not agreed on");
        keeper_refuse(k, m->id, &err);
    }
}

static int serve_client(struct keeper *k, struct message *m)
{
    if (!k->greeted)
        return greet(k, m);
    switch (m->type) {
    case MSG_CREATE:
        create(k, m);
        return 0;
    case MSG_EXEC:
        command_start(k, m);
        return 0;
    case MSG_SIGNAL:
        command_signal(k, m);
        return 0;
    case MSG_RESIZE:
    case MSG_INPUT:
    case MSG_CREDIT:
        command_stream(k, m);
        return 0;
    case MSG_DESTROY:
        keeper_end(k, ENDED_DESTROYED);
        return 0;
    default: {
        struct error err = ERROR_INIT;

        (void)error_set(&err, ERROR_USAGE, ENOSYS, "this keeper has no operation %u", m->type);
        (void)error_remedy(&err, "Use a keeper of the client's version");
        keeper_refuse(k, m->id, &err);
        return 0;
    }
    }
}

static int client_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;
    struct message m;
    int r = 0;

    if (events & EPOLLOUT) {
        r = channel_flush(&k->client);
        if (!channel_waiting(&k->client))
            (void)loop_change(l, s, EPOLLIN);
    }
    while (r >= 0 && k->state != KEEPER_ENDING && (r = channel_receive(&k->client, &m)) > 0) {
        r = serve_client(k, &m);
        message_close_fds(&m);
    }
    if (r < 0) {
        keeper_end(k, ENDED_CALLER_DIED);
        l->stop = true;
    }
    return 0;
}

static int signal_came(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct signalfd_siginfo info;

    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGTERM) {
            keeper_end(s->owner, ENDED_KILLED);
            l->stop = true;
        }
    return 0;
}

/* A process of its own: no terminal, no descriptor of whoever started it. */
static int detach(int client_fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    (void)prctl(PR_SET_NAME, "atoll-keeper");
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would take away what is to be waited for */
    if (null < 0)
        return -errno;
    client_fd = fcntl(client_fd, F_DUPFD_CLOEXEC, CLIENT_FD + 1);
    if (client_fd < 0)
        return -errno;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0)
            return -errno;
    if (dup3(client_fd, CLIENT_FD, O_CLOEXEC) < 0)
        return -errno;
    if (syscall(SYS_close_range, CLIENT_FD + 1, ~0u, 0) < 0)
        return -errno;
    return fcntl(CLIENT_FD, F_SETFL, O_NONBLOCK) < 0 ? -errno : CLIENT_FD;
}

static int open_sources(struct keeper *k, int client_fd)
{
    sigset_t set;
    int r = loop_init(&k->loop);

    channel_init(&k->client, client_fd);
    channel_init(&k->init, -EBADF);
    k->sandbox = (struct sandbox)SANDBOX_INIT;
    k->init_source.fd = k->process_source.fd = -EBADF;
    k->client_source =
        (struct loop_source){.name = "client", .fd = -EBADF, .owner = k, .ready = client_ready};
    k->signal_source =
        (struct loop_source){.name = "signals", .fd = -EBADF, .owner = k, .ready = signal_came};
    if (r == 0)
        r = loop_watch(&k->loop, &k->client_source, client_fd, EPOLLIN);
    sigfillset(&set); /* none may end the keeper halfway; SIGTERM is heard, the rest is not */
    if (r == 0)
        r = loop_open_signals(&set);
    return r < 0 ? r : loop_watch(&k->loop, &k->signal_source, r, EPOLLIN);
}

/* What still waits for a slow caller gets a moment more. */
static void say_farewell(struct keeper *k)
{
    uint64_t deadline = clock_after_us(FAREWELL_US);

    while (k->client.fd >= 0 && channel_waiting(&k->client) && channel_flush(&k->client) == 0 &&
           channel_waiting(&k->client))
        if (io_wait(k->client.fd, POLLOUT, deadline) < 0)
            break;
}

int keeper_main(int client_fd)
{
    struct keeper k = {.state = KEEPER_NEW};
    int signals = -EBADF;
    int r = detach(client_fd);

    if (r < 0)
        return 1;
    r = open_sources(&k, r);
    if (r == 0)
        r = loop_run(&k.loop);
    if (k.state != KEEPER_ENDING)
        keeper_end(&k, ENDED_ERROR);
    say_farewell(&k);
    signals = k.signal_source.fd;
    fd_closep(&signals);
    channel_done(&k.client);
    spec_done(&k.spec);
    loop_done(&k.loop);
    return r < 0;
}
