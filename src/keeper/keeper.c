/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one sandbox: its creation, what init tells, its timers, its end. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/rest.h"
#include "core/backends.h"
#include "core/limits.h"
#include "core/state.h"
#include "keeper/command.h"
#include "keeper/connection.h"
#include "keeper/ending.h"
#include "keeper/lease.h"
#include "keeper/policy_change.h"
#include "keeper/report.h"
#include "keeper/usage.h"
#include "base/guards.h"

enum { CLIENT_FD = 3, MESSAGES_AT_ONCE = 64 };

int keeper_tell_init(struct keeper *k, uint16_t type, uint32_t id, const void *payload, size_t len,
                     const int *fds, size_t n_fds)
{
    int r = channel_send(&k->init, type, id, payload, len, fds, n_fds);

    if (r == 0 && channel_waiting(&k->init))
        r = loop_change(&k->loop, &k->init_source, EPOLLIN | EPOLLOUT);
    return r;
}

void keeper_stirred(struct keeper *k)
{
    if (k->state == KEEPER_RUNNING)
        loop_at(&k->loop, &k->rest_timer, clock_after_us(REST_AFTER_US));
}

/* What went wrong with CREATE, told to who asked for it. */
static void refuse_create(struct keeper *k, const struct error *err)
{
    connection_refuse(k->creator, k->create_id, err);
}

/* The only way from one state to the next. A step that the table lacks is a mistake of ours: what
 * follows from it cannot be known, so the sandbox ends. Return: 0 or a negative errno. */
static int step(struct keeper *k, enum lifecycle_event event)
{
    struct error err = ERROR_INIT;
    int r = lifecycle_next(k->state, event, &k->state);

    if (r < 0) {
        (void)error_set(&err, ERROR_TERMINAL, EPROTO,
                        "internal error: '%s' cannot happen to a sandbox that is '%s'",
                        lifecycle_event_name(event), lifecycle_state_name(k->state));
        (void)error_remedy(&err, "Please report it");
        keeper_fail(k, &err);
    }
    return r;
}

/* All clients hear of the end; the creator's message carries the id of its CREATE. */
static void tell_ended(struct keeper *k)
{
    struct connection *next;

    for (struct connection *c = k->connections; c; c = next) {
        uint8_t buf[64];
        struct writer w = writer_over(buf, sizeof buf);

        next = c->next; /* one that takes nothing any more goes on the way */
        field_put_u32(&w, TAG_ENDED_BY, ended_by_for(k->ended_by, c->minor));
        connection_send(c, MSG_ENDED, c == k->creator ? k->create_id : 0, &w, -EBADF);
    }
}

void keeper_end(struct keeper *k, enum ended_by by)
{
    static const enum exit_reason reasons[] = {
        [ENDED_DESTROYED] = REASON_KILLED, [ENDED_LIFETIME] = REASON_LIFETIME,
        [ENDED_IDLE] = REASON_LIFETIME,    [ENDED_OOM] = REASON_OOM,
        [ENDED_KILLED] = REASON_KILLED,    [ENDED_CALLER_DIED] = REASON_KILLED,
        [ENDED_ERROR] = REASON_ERROR,      [ENDED_COST] = REASON_COST,
    };
    _Static_assert(ARRAY_SIZE(reasons) == ENDED__MAX, "an end has no reason for its commands");
    bool existed = k->state != KEEPER_NEW;

    if (k->state == KEEPER_ENDING || k->state == KEEPER_GONE)
        return;
    (void)step(k, LIFE_ENDS);
    k->ended_by = by;
    k->loop.stop = true;
    events_ending(k);
    if (k->listen_fd >= 0)
        state_withdraw(k->id); /* nobody finds it any more */
    loop_forget(&k->loop, &k->init_source);
    loop_forget(&k->loop, &k->process_source);
    channel_done(&k->init); /* it owns the sandbox's end of the socket */
    k->sandbox.link_fd = -EBADF;
    sandbox_end(&k->sandbox);
    keeper_egress_end(k);
    if (!existed)
        return;
    /* Nothing of it is left: only now it is said. */
    commands_abandon(k, reasons[by]);
    events_state(k, "ended", ended_by_name(by));
    tell_ended(k);
}

void keeper_fail(struct keeper *k, const struct error *err)
{
    if (k->state == KEEPER_CREATING)
        refuse_create(k, err);
    keeper_end(k, ENDED_ERROR);
}

static int rest(struct loop *l, struct loop_timer *t)
{
    (void)l;
    (void)t;
    rest_memory(); /* of a thousand sandboxes most have nothing to do */
    return 0;
}

static int create_overdue(struct loop *l, struct loop_timer *t)
{
    struct keeper *k = t->owner;
    struct error err = ERROR_INIT;

    (void)l;
    (void)error_set(&err, ERROR_TERMINAL, ETIMEDOUT, "the set-up did not end within %d s",
                    (int)(LIMIT_CREATE_US / 1000000));
    (void)error_remedy(&err, "See with -v which step hangs; a network file system may not answer");
    keeper_fail(k, &err);
    return 0;
}

/* The record of a held sandbox, by which others find it. All of it is lent, and never freed. */
static struct state_record record_of(const struct keeper *k, uint64_t expires_at_us)
{
    struct state_record record = {
        .place = k->place,
        .pid = getpid(),
        .created_at_us = k->created_at_us,
        .expires_at_us = expires_at_us,
        .name = k->spec.name,
        .owner = k->spec.owner,
        .image = k->spec.image,
        .program = (char *)(uintptr_t)ATOLL_VERSION,
        .tags = k->spec.tags,
    };

    memcpy(record.id, k->id, sizeof record.id);
    return record;
}

int keeper_record(const struct keeper *k, uint64_t expires_at_us)
{
    const struct state_record record = record_of(k, expires_at_us);

    return k->listen_fd >= 0 ? state_update(&record) : 0;
}

static int publish(struct keeper *k, struct error *err)
{
    const struct state_record record = record_of(k, k->expires_at_us);
    int fd = state_publish(&record, err);

    if (fd < 0)
        return fd;
    int r = connections_listen(k, fd);
    if (r == 0)
        (void)events_open(k); /* tried again with the next event */
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "cannot wait for clients: %s", strerror(-r))
                 : 0;
}

static void answer_create(struct keeper *k)
{
    const struct string_list *published = &k->egress.ports.texts;
    size_t size = 128;

    for (size_t i = 0; i < published->n; i++)
        size += FIELD_HEADER_BYTES + strlen(published->items[i]) + 1;
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0); /* without memory the client is dropped */
    field_put_u32(&w, TAG_LANDLOCK_ABI, (uint32_t)k->sandbox.landlock_abi);
    field_put_string(&w, TAG_SANDBOX_ID, k->id);
    for (size_t i = 0; i < published->n; i++)
        field_put_string(&w, TAG_PUBLISHED, published->items[i]);
    connection_send(k->creator, MSG_CREATED, k->create_id, &w, -EBADF);
    if (k->creator && k->creator->broken) /* nobody would ever know of the sandbox */
        keeper_end(k, ENDED_CALLER_DIED);
}

static void tell_created(struct keeper *k)
{
    struct error err = ERROR_INIT;

    if (step(k, LIFE_STANDS) < 0)
        return;
    loop_at(&k->loop, &k->create_timer, CLOCK_NEVER);
    k->created_at_us = clock_epoch_us();
    int r = ending_begin(k);
    if (r < 0)
        (void)error_set(&err, ERROR_TERMINAL, -r, "the lifetime cannot be counted: %s",
                        strerror(-r));
    if (r < 0 || (!k->spec.owned && publish(k, &err) < 0)) {
        refuse_create(k, &err); /* CREATE has no answer yet, although all of it runs */
        keeper_end(k, ENDED_ERROR);
        return;
    }
    events_state(k, "created", NULL);
    lease_begin(k);
    usage_begin(k);
    commands_begin(k);
    ending_active(k);
    answer_create(k);
    sandbox_settle(&k->sandbox); /* last, since nobody waits for it */
    if (k->listen_fd >= 0)
        state_sweep_some(&k->place, clock_now_us());
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
    connection_send(k->creator, MSG_STEP, k->create_id, &w, -EBADF);
    return 0;
}

static int setup_failed(struct keeper *k, struct message *m)
{
    struct error err = ERROR_INIT;
    struct step_report x;

    if (step_report_decode(m->payload, &x) < 0)
        return -EPROTO;
    if (!keeper_egress_failed(k, &err)) /* which knows more of it */
        (void)sandbox_fault(&k->sandbox, x.index, (int)x.error, &err);
    keeper_fail(k, &err);
    return 0;
}

static int serve_init(struct keeper *k, struct message *m)
{
    bool setup = k->state == KEEPER_CREATING;

    /* Only init answers requests: whatever else it sends first, it is there. */
    if (setup && m->type != MSG_STEP && m->type != MSG_FAULT) {
        tell_created(k);
        if (k->state == KEEPER_ENDING)
            return 0;
    }
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

/* Process 1 is gone. If that was to be, the end waits for what egress still has to tell. */
static void init_gone(struct keeper *k)
{
    if (!commands_end_soon(k)) {
        keeper_end(k, usage_is_oom_end(k) ? ENDED_OOM : ENDED_ERROR);
        return;
    }
    loop_forget(&k->loop, &k->init_source);
    loop_forget(&k->loop, &k->process_source);
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

        if (usage_oom_kills(k) > 0) {
            (void)error_set(&err, ERROR_TERMINAL, ENOMEM,
                            "backend.memory is too small for the sandbox itself");
            (void)error_remedy(&err, "Raise it; programs need more than 8M");
        } else {
            (void)error_set(&err, ERROR_TERMINAL, EIO, "the set-up process ended without a word");
            (void)error_remedy(&err, "Look for an out-of-memory kill in the host's log");
        }
        refuse_create(k, &err);
    }
    if (r < 0)
        init_gone(k);
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
    if (k->state != KEEPER_ENDING)
        init_gone(k);
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

int keeper_admit(const struct spec *s, struct error *err)
{
    const struct backend *local = backend_known(0);
    struct capability_results results;
    struct problems problems = {0};

    if (capability_check(&local->capability, s, &results))
        return 0;
    capability_problems(&results, local->name, &problems);
    int r = problems_error(&problems, NULL, err);
    problems_done(&problems);
    return r;
}

static int identify(struct keeper *k, struct error *err)
{
    uint64_t random[2];
    int r = place_read(&k->place);

    if (r == 0 && getrandom(random, sizeof random, 0) != sizeof random)
        r = -EIO;
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "no id can be made for the sandbox: %s",
                         strerror(-r));
    sandbox_id_make(&k->place, random, k->id);
    return 0;
}

/*
 * A held sandbox may outlive whoever started its keeper, or end long before: it is nobody's child,
 * so that nobody is left with a zombie that it does not expect. The copy has all descriptors.
 */
static int leave_parent(struct keeper *k, const struct connection *c, struct error *err)
{
    k->spec.owned = k->spec.owned || c->minor < 1; /* version 1.0 had no others */
    if (k->spec.owned)
        return 0;
    pid_t pid = fork();
    if (pid < 0)
        return error_set(err, ERROR_TERMINAL, errno, "the keeper cannot start: %s",
                         strerror(errno));
    if (pid > 0)
        _exit(0);
    /* epoll(7) waits on the signals of the process that added a signalfd, and that is gone. */
    int signals = k->signal_source.fd;
    loop_forget(&k->loop, &k->signal_source);
    int r = loop_watch(&k->loop, &k->signal_source, signals, EPOLLIN);
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "cannot wait for signals: %s", strerror(-r))
                 : 0;
}

static int start_sandbox(struct keeper *k, struct error *err)
{
    struct keeper_egress *g = &k->egress;
    int r = keeper_egress_prepare(k, err);

    if (r == 0)
        r = keeper_egress_start(k, err);
    if (r < 0)
        return r;
    const struct sandbox_way_out out = {
        .egress_fd = g->channel.fd, .reach = &g->reach, .visitor = &g->visitor};
    r = sandbox_start(&k->spec, &g->pool, g->running ? &out : NULL, &k->sandbox, err);
    if (r == 0 && g->running && (r = keeper_egress_watch(k)) < 0)
        (void)error_set(err, ERROR_TERMINAL, -r, "cannot watch a visitor: %s", strerror(-r));
    return r;
}

void keeper_create(struct keeper *k, struct connection *c, struct message *m)
{
    struct error err = ERROR_INIT;
    int r;

    if (k->state != KEEPER_NEW) {
        (void)error_set(&err, ERROR_USAGE, EEXIST, "this keeper has a sandbox already");
        connection_refuse(c, m->id, &err);
        return;
    }
    k->creator = c;
    k->create_id = m->id;
    if (step(k, LIFE_ASKED) < 0)
        return;
    if (spec_decode(m->payload, &k->spec) < 0)
        r = error_set(&err, ERROR_USAGE, EPROTO, "the spec cannot be read");
    else if ((r = spec_check(&k->spec, &err)) == 0 && (r = keeper_admit(&k->spec, &err)) == 0 &&
             (r = leave_parent(k, c, &err)) == 0 && (r = events_audit(k, &err)) == 0 &&
             (r = start_sandbox(k, &err)) == 0)
        r = identify(k, &err);
    if (r == 0 && (r = watch_sandbox(k)) < 0)
        (void)error_set(&err, ERROR_TERMINAL, -r, "cannot watch the sandbox: %s", strerror(-r));
    if (r < 0) {
        refuse_create(k, &err);
        keeper_end(k, ENDED_ERROR);
        return;
    }
    k->create_timer = (struct loop_timer){.name = "create", .owner = k, .due = create_overdue};
    k->rest_timer = (struct loop_timer){.name = "rest", .owner = k, .due = rest};
    loop_at(&k->loop, &k->create_timer, clock_after_us(LIMIT_CREATE_US));
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

    channel_init(&k->init, -EBADF);
    k->sandbox = (struct sandbox)SANDBOX_INIT;
    k->egress = (struct keeper_egress)KEEPER_EGRESS_INIT;
    k->events = (struct event_log)EVENT_LOG_INIT;
    k->policy_generation = 1;
    k->listen_fd = k->init_source.fd = k->process_source.fd = -EBADF;
    k->signal_source =
        (struct loop_source){.name = "signals", .fd = -EBADF, .owner = k, .ready = signal_came};
    if (r == 0)
        r = connection_new(k, client_fd);
    sigfillset(&set); /* none may end the keeper halfway; SIGTERM is heard, the rest is not */
    if (r == 0)
        r = loop_open_signals(&set);
    return r < 0 ? r : loop_watch(&k->loop, &k->signal_source, r, EPOLLIN);
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
    connections_farewell(&k);
    (void)step(&k, LIFE_EMPTY);
    ending_done(&k);
    usage_done(&k);
    stops_done(&k);
    policy_change_done(&k);
    lease_done(&k);
    events_close(&k);
    keeper_egress_done(&k);
    signals = k.signal_source.fd;
    fd_closep(&signals);
    fd_closep(&k.listen_fd);
    spec_done(&k.spec);
    loop_done(&k.loop);
    return r < 0;
}
