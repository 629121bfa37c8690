/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, asking, changing and ending the processes of a sandbox's way out. */
#include "keeper/egress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/spec_copy.h"
#include "core/spec_rules.h"
#include "core/traffic.h"
#include "egress/egress.h"
#include "keeper/command.h"
#include "keeper/ending.h"
#include "keeper/events.h"
#include "keeper/keeper.h"
#include "keeper/resolver.h"
#include "local/host.h"
#include "wire/fault.h"
#include "base/guards.h"

enum { NOBODY = 65534 };
#define FINISH_US UINT64_C(10000000)

/* A policy on its way into force. */
struct keeper_change {
    void (*done)(struct keeper *k, void *owner, int r, uint32_t cut, const struct error *err);
    void *owner;
    struct policy_reach reach; /* of the new policy; owned until it is in force */
    uint32_t cut;
    bool applied; /* egress has it; what the kernel lets pass is still to follow */
    bool opens;   /* the sandbox was sealed: its network has neither rules nor sockets yet */
};

/* The fields that make a policy, and how names are looked up. */
static uint64_t policy_fields(void)
{
    return spec_field_bit(SPEC_FIELD_BLOCK_NETWORK) | spec_field_bit(SPEC_FIELD_ALLOW_EGRESS_TO) |
           spec_field_bit(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS) |
           spec_field_bit(SPEC_FIELD_PRIVATE_CIDRS) | spec_field_bit(SPEC_FIELD_ADD_HOSTS);
}

static int compile(const struct spec *spec, struct policy *ret, struct error *err)
{
    struct problems problems = {0};
    int r = spec_policy(spec, ret, &problems);

    if (r < 0)
        (void)problems_error(&problems, NULL, err);
    problems_done(&problems);
    return r;
}

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

int keeper_egress_prepare(struct keeper *k, struct error *err)
{
    struct keeper_egress *g = &k->egress;
    struct policy policy = {0};
    int r = compile(&k->spec, &policy, err);

    if (r == 0)
        r = policy_pool_choose(&policy, &g->pool, err);
    g->needed = r == 0 && (policy_needs_egress(&policy) || k->spec.publish.n > 0);
    if (g->needed && policy_reach_build(&policy, &g->pool, &g->reach) < 0)
        r = no_memory(err);
    policy_done(&policy);
    if (r == 0 && k->spec.publish.n > 0)
        r = published_ports_open(&k->spec.publish, &g->ports, err);
    return r;
}

/* --- what egress says --- */

static void visit_next(struct keeper *k);

static int take_denied(struct keeper *k, const struct message *m)
{
    struct denial x;

    if (denial_decode(m->payload, &x) < 0)
        return -EPROTO;
    events_denied(k, &x);
    return 0;
}

static int take_applied(struct keeper *k, const struct message *m)
{
    struct keeper_change *c = k->egress.change;

    if (m->id == 0) { /* the policy before, put back */
        visit_next(k);
        return 0;
    }
    if (!c || c->applied || number_decode(m->payload, TAG_FLOWS_CUT, &c->cut) < 0)
        return -EPROTO;
    c->applied = true;
    visit_next(k);
    return 0;
}

static int take_busy(struct keeper *k, const struct message *m)
{
    uint32_t n;

    if (number_decode(m->payload, TAG_CONNECTIONS, &n) < 0)
        return -EPROTO;
    ending_connections(k, n);
    return 0;
}

static int take_fault(struct keeper *k, const struct message *m)
{
    struct error err = ERROR_INIT;

    if (fault_decode(m->payload, &err) < 0)
        return -EPROTO;
    keeper_fail(k, &err);
    return 0;
}

static int serve_egress(struct keeper *k, const struct message *m)
{
    switch (m->type) {
    case MSG_DENIED:
        return take_denied(k, m);
    case MSG_SYNCED:
        commands_synced(k, m->id);
        return 0;
    case MSG_APPLIED:
        return take_applied(k, m);
    case MSG_SOCKETS:
        k->egress.sockets_wanted = true;
        visit_next(k);
        return 0;
    case MSG_BUSY:
        return take_busy(k, m);
    case MSG_EGRESS_FAULT:
        return take_fault(k, m);
    default:
        return -EPROTO;
    }
}

static void egress_lost(struct keeper *k, const char *what)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, EIO, "%s", what);
    (void)error_remedy(&err, "Look for an out-of-memory kill in the host's log");
    keeper_fail(k, &err);
}

static int egress_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;
    struct channel *channel = &k->egress.channel;
    struct message m;
    int r = events & EPOLLOUT ? channel_flush(channel) : 0;

    /* A bounded number, as with init: what it reads is foreign. */
    for (int n = 0; r >= 0 && n < EGRESS_MESSAGES_AT_ONCE && k->egress.running; n++) {
        r = channel_receive(channel, &m);
        if (r <= 0)
            break;
        r = serve_egress(k, &m);
        message_close_fds(&m);
    }
    if (!k->egress.running)
        return 0;
    if (r < 0)
        egress_lost(k, "the egress process ended without a word");
    else
        (void)loop_change(l, s, EPOLLIN | (channel_waiting(channel) ? EPOLLOUT : 0u));
    if (events & EPOLLOUT && k->egress.running)
        visit_next(k);
    return 0;
}

static int egress_ended(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;

    (void)events;
    (void)egress_ready(l, &k->egress.channel_source, EPOLLIN); /* its last words */
    if (k->egress.running)
        egress_lost(k, "the egress process ended without a word");
    return 0;
}

static int resolve_ended(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;
    struct error err = ERROR_INIT;
    int status = 0;

    (void)l;
    (void)events;
    if (waitpid(k->egress.resolve_pid, &status, WNOHANG) == k->egress.resolve_pid)
        k->egress.resolve_pid = 0;
    (void)resolver_explain(status, &err);
    keeper_fail(k, &err);
    return 0;
}

static void tell_egress(struct keeper *k, uint16_t type, uint32_t id, const void *payload,
                        size_t len, int fd)
{
    struct keeper_egress *g = &k->egress;
    int r = channel_send(&g->channel, type, id, payload, len, &fd, fd >= 0 ? 1 : 0);

    if (r == 0 && channel_waiting(&g->channel))
        (void)loop_change(&k->loop, &g->channel_source, EPOLLIN | EPOLLOUT);
    /* Otherwise it is gone, which its process tells. */
}

uint32_t keeper_egress_sync(struct keeper *k)
{
    struct keeper_egress *g = &k->egress;

    if (!g->running)
        return 0;
    g->last_sync += g->last_sync == UINT32_MAX ? 2 : 1;
    tell_egress(k, MSG_SYNC, g->last_sync, NULL, 0, -EBADF);
    return g->last_sync;
}

/* --- its processes --- */

static int watch(struct keeper *k, struct loop_source *s, const char *name, int fd,
                 int (*ready)(struct loop *, struct loop_source *, uint32_t))
{
    *s = (struct loop_source){.name = name, .fd = -EBADF, .owner = k, .ready = ready};
    return loop_watch(&k->loop, s, fd, EPOLLIN);
}

static int fork_egress(struct keeper *k, const struct spec *spec, int channel_fd, int resolve_fd,
                       struct error *err)
{
    struct keeper_egress *g = &k->egress;
    const bool root = host_is_kernel_root();
    const struct egress_start start = {
        .keeper_fd = channel_fd,
        .resolve_fd = resolve_fd,
        .spec = spec,
        .pool = g->pool,
        .listeners = g->ports.listeners,
        .n_listeners = g->ports.n,
        .ports = g->ports.inside,
        .traffic = g->traffic,
        .uid = root ? NOBODY : UINT32_MAX,
        .gid = root ? NOBODY : UINT32_MAX,
    };
    pid_t pid = fork();

    if (pid < 0)
        return error_set(err, ERROR_TERMINAL, errno, "the egress process cannot start: %s",
                         strerror(errno));
    if (pid == 0)
        _exit(egress_main(&start));
    g->pid = pid;
    g->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return g->pid_fd < 0 ? error_set(err, ERROR_TERMINAL, errno, "pidfd_open: %s", strerror(errno))
                         : 0;
}

/* With ranges alone there is nothing to look up; but a proxy may be called by its name. */
static bool looks_up(const struct spec *spec)
{
    return !spec->block_network || spec->allow_egress_to.n > 0 || spec->proxy;
}

static int start_resolver(struct keeper *k, const struct spec *spec, int *ret_fd, struct error *err)
{
    struct keeper_egress *g = &k->egress;
    int r = resolver_start(spec, &g->resolve_pid, &g->resolve_pid_fd, ret_fd, err);

    if (r == 0 &&
        (r = watch(k, &g->resolve_source, "resolve process", g->resolve_pid_fd, resolve_ended)) < 0)
        (void)error_set(err, ERROR_TERMINAL, -r, "cannot watch a process: %s", strerror(-r));
    return r;
}

static int start(struct keeper *k, const struct spec *spec, struct error *err)
{
    struct keeper_egress *g = &k->egress;
    _cleanup_fd_ int ours = -EBADF, theirs = -EBADF, resolve_fd = -EBADF;
    int pair[2];
    int r = io_pair(pair);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    ours = pair[0];
    theirs = pair[1];
    if (!g->traffic && !(g->traffic = traffic_new()))
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (looks_up(spec))
        r = start_resolver(k, spec, &resolve_fd, err);
    if (r == 0)
        r = fork_egress(k, spec, theirs, resolve_fd, err);
    published_ports_close(&g->ports);
    if (r < 0)
        return r;
    channel_init(&g->channel, TAKE_FD(ours));
    g->running = true;
    g->generation = 1;
    r = watch(k, &g->channel_source, "egress", g->channel.fd, egress_ready);
    if (r == 0)
        r = watch(k, &g->process_source, "egress process", g->pid_fd, egress_ended);
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "cannot watch egress: %s", strerror(-r)) : 0;
}

int keeper_egress_start(struct keeper *k, struct error *err)
{
    return k->egress.needed ? start(k, &k->spec, err) : 0;
}

static void end_process(struct loop *l, struct loop_source *s, pid_t *pid, int *pid_fd)
{
    loop_forget(l, s);
    if (*pid > 0) {
        (void)kill(*pid, SIGKILL); /* not reaped yet, so the number is still its own */
        while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    *pid = 0;
    fd_closep(pid_fd);
}

void keeper_egress_finish(struct keeper *k)
{
    struct keeper_egress *g = &k->egress;

    if (!g->running || channel_send(&g->channel, MSG_FINISH, 0, NULL, 0, NULL, 0) < 0 ||
        channel_waiting(&g->channel))
        return;
    loop_forget(&k->loop, &g->process_source); /* its exit is no accident */
    (void)io_wait(g->pid_fd, POLLIN, clock_after_us(FINISH_US));
}

void keeper_egress_end(struct keeper *k)
{
    struct keeper_egress *g = &k->egress;
    struct error ignored = ERROR_INIT;

    loop_forget(&k->loop, &g->visitor_source);
    (void)visitor_end(&g->visitor, &ignored);
    loop_forget(&k->loop, &g->channel_source);
    end_process(&k->loop, &g->process_source, &g->pid, &g->pid_fd);
    end_process(&k->loop, &g->resolve_source, &g->resolve_pid, &g->resolve_pid_fd);
    if (g->running)
        channel_done(&g->channel);
    g->running = false;
    published_ports_close(&g->ports);
}

void keeper_egress_done(struct keeper *k)
{
    struct keeper_egress *g = &k->egress;

    if (g->change)
        policy_reach_done(&g->change->reach);
    free(g->change);
    g->change = NULL;
    policy_reach_done(&g->reach);
    published_ports_done(&g->ports);
    traffic_free(g->traffic);
    g->traffic = NULL;
}

/* --- visitors, one at a time --- */

static void finish_change(struct keeper *k, int r, const struct error *err)
{
    struct keeper_egress *g = &k->egress;
    struct keeper_change *c = g->change;

    g->change = NULL;
    if (r == 0) {
        policy_reach_done(&g->reach);
        g->reach = c->reach;
        g->generation += c->opens ? 0 : 1;
    } else {
        policy_reach_done(&c->reach);
    }
    c->done(k, c->owner, r, c->cut, err);
    free(c);
}

/* With the socket to `resolve` if that has only now been started. */
static int send_generation(struct keeper *k, const struct spec *spec, uint32_t id, int resolve_fd)
{
    struct spec part;
    int r = spec_copy(spec, policy_fields(), &part);

    if (r < 0)
        return r;
    size_t size = spec_size(&part);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    if (buf)
        spec_encode(&w, &part);
    spec_done(&part);
    if (!buf || w.bad)
        return -ENOMEM;
    tell_egress(k, MSG_GENERATION, id, buf, writer_len(&w), resolve_fd);
    return 0;
}

/* Back to what held before: the sandbox's spec has not been changed yet. */
static void undo_change(struct keeper *k)
{
    if (k->egress.change->opens)
        keeper_egress_end(k);
    else if (send_generation(k, &k->spec, 0, -EBADF) < 0)
        egress_lost(k, "out of memory");
}

static int visitor_ended(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct keeper *k = s->owner;
    struct keeper_egress *g = &k->egress;
    const bool sockets = g->socket_visit;
    struct error err = ERROR_INIT;

    (void)events;
    loop_forget(l, s);
    int r = visitor_end(&g->visitor, &err);
    g->socket_visit = false;
    if (r < 0 && (sockets || !g->change)) {
        keeper_fail(k, &err);
        return 0;
    }
    if (!sockets && g->change) {
        if (r < 0)
            undo_change(k);
        if (k->state != KEEPER_ENDING)
            finish_change(k, r, &err);
    }
    if (k->state != KEEPER_ENDING)
        visit_next(k);
    return 0;
}

int keeper_egress_watch(struct keeper *k)
{
    return watch(k, &k->egress.visitor_source, "visitor", k->egress.visitor.pid_fd, visitor_ended);
}

bool keeper_egress_failed(struct keeper *k, struct error *err)
{
    struct keeper_egress *g = &k->egress;

    if (g->visitor.pid <= 0)
        return false;
    loop_forget(&k->loop, &g->visitor_source);
    return visitor_end(&g->visitor, err) < 0;
}

static void visit_next(struct keeper *k)
{
    struct keeper_egress *g = &k->egress;
    struct error err = ERROR_INIT;
    struct visit visit = {
        .pid_fd = k->sandbox.pid_fd, .egress_fd = g->channel.fd, .setup_fd = -EBADF};

    /* A visitor writes to the same socket: nothing of ours may wait there half sent. */
    if (g->visitor.pid > 0 || !g->running || channel_waiting(&g->channel))
        return;
    if (g->change && g->change->applied) {
        visit.job = g->change->opens ? VISIT_OPEN : VISIT_CHANGE;
        visit.reach = &g->change->reach;
    } else if (g->sockets_wanted && !g->change) {
        visit.job = VISIT_SOCKETS;
        g->sockets_wanted = false;
        g->socket_visit = true;
    } else {
        return;
    }
    if (visitor_start(&visit, &g->visitor, &err) < 0 || keeper_egress_watch(k) < 0)
        keeper_fail(k, &err);
}

/* --- another policy --- */

/* One that has egress, but perhaps nobody yet who looks names up. */
static int change_running(struct keeper *k, const struct spec *spec, struct error *err)
{
    _cleanup_fd_ int resolve_fd = -EBADF;

    if (looks_up(spec) && k->egress.resolve_pid <= 0) {
        int r = start_resolver(k, spec, &resolve_fd, err);

        if (r < 0)
            return r;
    }
    return send_generation(k, spec, 1, resolve_fd) < 0 ? no_memory(err) : 0;
}

/* A sandbox that was sealed until now. */
static int change_sealed(struct keeper *k, const struct spec *spec, struct error *err)
{
    int r = start(k, spec, err);

    if (r < 0) {
        keeper_egress_end(k);
        return r;
    }
    k->egress.change->opens = true;
    k->egress.change->applied = true;
    visit_next(k);
    return 0;
}

int keeper_egress_change(struct keeper *k, const struct spec *spec, const struct policy *policy,
                         void (*done)(struct keeper *k, void *owner, int r, uint32_t cut,
                                      const struct error *err),
                         void *owner, struct error *err)
{
    struct keeper_egress *g = &k->egress;

    if (g->change || g->visitor.pid > 0) {
        error_set(err, ERROR_RECOVERABLE, EBUSY, "the network policy is being changed already");
        return error_remedy(err, "Try again in a moment");
    }
    if (!policy_pool_free(policy, &g->pool)) {
        error_set(err, ERROR_USAGE, EADDRINUSE,
                  "a listed range overlaps the addresses that this sandbox has for names");
        return error_remedy(err, "Make a new sandbox with that range: it gets other ones");
    }
    struct keeper_change *c = calloc(1, sizeof *c);
    if (!c || policy_reach_build(policy, &g->pool, &c->reach) < 0) {
        free(c);
        return no_memory(err);
    }
    c->done = done;
    c->owner = owner;
    g->change = c;
    int r = g->running ? change_running(k, spec, err) : change_sealed(k, spec, err);
    if (r < 0 && g->change == c) {
        policy_reach_done(&c->reach);
        free(c);
        g->change = NULL;
    }
    return r;
}
