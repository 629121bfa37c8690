/* SPDX-License-Identifier: Apache-2.0 */
/* The run of a server: toolsets are opened, lines served, what was promised is published. */
#include "mcp/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/rest.h"
#include "mcp/server.h"
#include "mcp/stdio.h"
#include "toolset/toolset.h"
#include "base/guards.h"

#define FINISH_US UINT64_C(2000000) /* for calls that were read, once the input has ended */
#define PARENT_US UINT64_C(100000)  /* a parent that was killed is gone by then */

struct serving {
    const struct mcp_serve_options *o;
    struct mcp_peer peer;
    struct stdio stdio;
    struct loop_source signals;
    struct loop_timer limit, rest;
    bool ended;     /* no more input: calls are being finished */
    bool over;      /* nothing more is to be waited for */
    bool cut;       /* a call was not answered, or an answer not taken */
    bool finishing; /* exports are being published: a signal does not stop that */
    int signal;     /* that came; or 0 */
};

/* --- the conversation --- */

/* Over, when every answer is there and was taken. */
static void end_if_idle(struct serving *s)
{
    if (s->ended && !s->peer.calls && stdio_pending(&s->stdio) == 0)
        s->over = true;
}

static void send_message(void *owner, char *text, size_t len)
{
    stdio_send(&((struct serving *)owner)->stdio, text, len);
}

static void idle(void *owner)
{
    end_if_idle(owner);
}

static void on_line(void *owner, const char *text, size_t len)
{
    struct serving *s = owner;

    loop_at(&s->o->a->loop, &s->rest, clock_after_us(REST_AFTER_US));
    mcp_receive(&s->peer, text, len);
}

static void on_overlong(void *owner)
{
    mcp_receive_overlong(&((struct serving *)owner)->peer);
}

static void on_ended(void *owner)
{
    struct serving *s = owner;

    s->ended = true;
    loop_at(&s->o->a->loop, &s->limit, clock_after_us(FINISH_US));
    end_if_idle(s);
}

static void on_written(void *owner)
{
    end_if_idle(owner);
}

/* Nobody will hear of anything any more. */
static void on_broken(void *owner)
{
    struct serving *s = owner;

    s->over = true;
}

static const struct stdio_events events = {.line = on_line,
                                           .overlong = on_overlong,
                                           .ended = on_ended,
                                           .written = on_written,
                                           .broken = on_broken};

/* A client may not come back for hours. */
static int rest(struct loop *l, struct loop_timer *t)
{
    const struct serving *s = t->owner;

    if (s->peer.calls)
        loop_at(l, t, clock_after_us(REST_AFTER_US));
    else
        rest_memory();
    return 0;
}

static int finish_overdue(struct loop *l, struct loop_timer *t)
{
    (void)l;
    ((struct serving *)t->owner)->over = true;
    return 0;
}

static int signal_came(struct loop *l, struct loop_source *source, uint32_t ready)
{
    struct serving *s = source->owner;
    struct signalfd_siginfo info;

    (void)l;
    (void)ready;
    while (read(source->fd, &info, sizeof info) == sizeof info)
        if (!s->finishing && s->signal == 0)
            s->signal = (int)info.ssi_signo;
    s->over = s->over || s->signal != 0;
    return 0;
}

/* --- begin --- */

static int take_error(const struct atoll_op *op, struct error *err)
{
    const struct atoll_error *e = op ? atoll_op_error(op) : NULL;

    if (!op)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    (void)error_set(err, (enum error_class)e->cls, e->code, "%s", e->message);
    return e->remedy[0] ? error_remedy(err, "%s", e->remedy) : -e->code;
}

static void tell_log(const struct serving *s, const struct atoll_op *op)
{
    for (size_t i = 0; atoll_op_warning(op, i); i++)
        log_write(s->o->log, LOG_LEVEL_WARNING, "mcp", "%s", atoll_op_warning(op, i));
    for (size_t i = 0; atoll_toolset_note(op, i); i++)
        log_write(s->o->log, LOG_LEVEL_INFO, "mcp", "%s", atoll_toolset_note(op, i));
}

static int open_toolsets(const struct serving *s, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->o->n_toolsets; i++) {
        struct atoll_op *op = atoll_toolset_open(s->o->toolsets[i]);

        r = op ? atoll_wait(op, ATOLL_FOREVER) : -ENOMEM;
        if (op)
            tell_log(s, op);
        if (r < 0)
            r = take_error(op, err);
        atoll_op_free(op);
    }
    return r;
}

static int watch_signals(struct serving *s)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    int fd;

    (void)signal(SIGPIPE, SIG_IGN); /* a client that has gone is an error code, not a signal */
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
        sigaddset(&set, stops[i]);
    fd = loop_open_signals(&set);
    if (fd < 0)
        return fd;
    s->signals =
        (struct loop_source){.name = "signals", .fd = -EBADF, .owner = s, .ready = signal_came};
    return loop_watch(&s->o->a->loop, &s->signals, fd, EPOLLIN);
}

static int begin(struct serving *s, struct error *err)
{
    const struct mcp_serve_options *o = s->o;
    int r = open_toolsets(s, err);

    if (r < 0)
        return r;
    s->limit = (struct loop_timer){.name = "finish", .owner = s, .due = finish_overdue};
    s->rest = (struct loop_timer){.name = "rest", .owner = s, .due = rest};
    r = watch_signals(s);
    if (r == 0)
        r = mcp_peer_init(&s->peer, o->a, o->toolsets, o->n_toolsets, send_message, idle, s);
    if (r == 0)
        r = stdio_start(&s->stdio, &o->a->loop, o->in_fd, o->out_fd, &events, s);
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "cannot serve on these descriptors: %s",
                             strerror(-r))
                 : 0;
}

/* --- end --- */

static bool promises(const struct serving *s, size_t i)
{
    return s->peer.used & UINT64_C(1) << i && s->o->toolsets[i]->spec.spec.toolset.exports.n > 0;
}

/* Whether anything is to be published: without a call there was no run. */
static bool promises_any(const struct serving *s)
{
    for (size_t i = 0; i < s->o->n_toolsets; i++)
        if (promises(s, i))
            return true;
    return false;
}

/* What is left of the conversation: calls that have no answer yet are ended. */
static void end_conversation(struct serving *s)
{
    s->cut = mcp_cut(&s->peer) || stdio_pending(&s->stdio) > 0 || stdio_failed(&s->stdio);
    stdio_stop(&s->stdio);
    loop_at(&s->o->a->loop, &s->limit, CLOCK_NEVER);
    loop_at(&s->o->a->loop, &s->rest, CLOCK_NEVER);
    mcp_peer_done(&s->peer);
}

/* A client that was killed closes its pipes too, and its end is seen a little later. */
static bool parent_lives(struct serving *s)
{
    struct pollfd parent = {.fd = s->o->parent_fd, .events = POLLIN};
    uint64_t until = clock_after_us(PARENT_US);

    while (s->signal == 0 && clock_now_us() < until && loop_turn(&s->o->a->loop, until) == 0)
        ;
    return s->signal == 0 && parent.fd >= 0 && poll(&parent, 1, 0) == 0;
}

/* Whether what was promised is due. With an error, if not and no signal says why. */
static bool may_publish(struct serving *s, struct error *err)
{
    const char *why = NULL;

    if (!promises_any(s) || s->signal != 0)
        return false;
    if (s->cut)
        why = "a call was still under way when the client went, or could not be answered";
    else if (!parent_lives(s) && s->signal == 0)
        why = "the process that started the server is gone, so the run did not come to its end";
    if (!why)
        return s->signal == 0;
    (void)error_set(err, ERROR_TERMINAL, ECANCELED, "nothing was published at the end: %s", why);
    (void)error_remedy(err, "Give the tool publish_exports (--tool), which publishes during a run");
    return false;
}

static int close_toolsets(struct serving *s, bool publish, struct error *err)
{
    const struct mcp_serve_options *o = s->o;
    int ret = 0;

    s->finishing = publish;
    for (size_t i = 0; i < o->n_toolsets; i++) {
        struct atoll_op *op = atoll_toolset_close(o->toolsets[i], publish && promises(s, i));
        int r = op ? atoll_wait(op, ATOLL_FOREVER) : -ENOMEM;

        if (op)
            tell_log(s, op);
        if (r < 0 && ret == 0)
            ret = take_error(op, err);
        atoll_op_free(op);
    }
    return ret;
}

int mcp_serve(const struct mcp_serve_options *options, int *ret_signal, struct error *err)
{
    struct serving s = {.o = options, .signals = {.fd = -EBADF}};
    struct error failed = ERROR_INIT;
    int r = begin(&s, err), signals = s.signals.fd;
    bool publish;

    while (r == 0 && !s.over)
        if (loop_turn(&options->a->loop, CLOCK_NEVER) < 0)
            s.over = true;
    end_conversation(&s);
    publish = r == 0 && may_publish(&s, err);
    r = r < 0 ? r : -err->code;
    if (close_toolsets(&s, publish, &failed) < 0 && r == 0 && s.signal == 0) {
        *err = failed;
        r = -failed.code;
    }
    loop_forget(&options->a->loop, &s.signals);
    fd_closep(&signals);
    *ret_signal = s.signal;
    return s.signal != 0 ? 0 : r;
}
