/* SPDX-License-Identifier: Apache-2.0 */
/* One command, attached to the caller's streams. */
#include "client/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/claim.h"
#include "client/describe.h"
#include "client/execution.h"
#include "client/stage.h"
#include "core/limits.h"
#include "core/outcome.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum { OUTPUT_PIPE_BYTES = 256 * 1024, PATIENCE_SIGNALS = 3, ID_BYTES_MAX = 256 };

/* The state of one run; everything is a source or timer of its loop. */
struct run {
    struct loop loop;
    struct session *session;
    struct description description; /* of a backend program, before anything is made there */
    struct session_request create;
    struct claim claim; /* a lease that is presented */
    struct staging staging;
    struct execution command;
    struct loop_source signal_source;
    struct loop_timer drain;
    struct pump out, err, in;
    const struct run_request *request;
    struct run_result *result;
    /* The terminal's descriptor, for its size; owned, beside the pump's own. It stays open until
     * the command is reaped: closing it hangs the terminal up, and that SIGHUP replaces the status
     * of a command that is just exiting. */
    int master;
    unsigned signals;
    uint64_t drain_until_us;
    bool exited, leaving, ended;
    bool finish_begun, finishing, finished; /* run_finish */
    char id[ID_BYTES_MAX];                  /* of the sandbox, once told */
    struct error *error;
};

static void fail(struct run *r, const struct error *err)
{
    if (r->error->code == 0)
        *r->error = *err;
    r->loop.stop = true;
}

/* Once the sandbox has ended, only what it wrote before is still to be passed on. */
static void stop_if_over(struct run *r)
{
    if (r->ended && !r->finishing && (r->result->hung_up_by != 0 || !pump_running(&r->out)) &&
        (r->result->hung_up_by != 0 || !pump_running(&r->err)))
        r->loop.stop = true;
}

/* The run's own sandbox is destroyed; from another one the connection's end is all it takes. */
static void leave(struct run *r)
{
    if (r->leaving || r->ended)
        return;
    r->leaving = true;
    loop_at(&r->loop, &r->drain, CLOCK_NEVER);
    pump_stop(&r->in);
    if (!r->request->spec || session_destroy(r->session) < 0)
        r->loop.stop = true;
}

/* Nothing of the command is left to be done: now for what was asked to follow a good end. */
static void command_over(struct run *r)
{
    const struct run_finish *f = r->request->finish;

    if (r->finishing)
        return;
    if (!f || r->finish_begun || r->result->output_error != 0 ||
        outcome_status(&r->result->exit) != 0) {
        leave(r);
        return;
    }
    r->finish_begun = r->finishing = true;
    loop_at(&r->loop, &r->drain, CLOCK_NEVER);
    f->begin(f->arg, r, r->session, &r->loop, r->id);
}

void run_finished(struct run *r, const struct error *err)
{
    if (!r->finishing)
        return;
    r->finishing = false;
    r->finished = !err;
    if (err)
        fail(r, err);
    else if (r->ended)
        r->loop.stop = true;
    else
        leave(r);
}

static void end_finish(struct run *r)
{
    r->finishing = false;
    if (r->finish_begun)
        r->request->finish->end(r->request->finish->arg);
    r->finish_begun = false;
}

/* After the command's end its output is awaited until it is at its end or has fallen silent: a
 * process left in the background may hold it open for ever, or write to it for ever. */
static void leave_if_drained(struct run *r)
{
    if (!r->exited || r->ended || r->finishing || r->leaving)
        return;
    if (r->result->exit.left_empty) /* then it ends by itself */
        return;
    bool overdue = clock_now_us() >= r->drain_until_us;
    if (!execution_delivers(&r->command) &&
        pump_is_drained(&r->out, LIMIT_DRAIN_IDLE_US, overdue) &&
        pump_is_drained(&r->err, LIMIT_DRAIN_IDLE_US, overdue))
        command_over(r);
    else
        loop_at(&r->loop, &r->drain, clock_after_us(LIMIT_DRAIN_IDLE_US / 10));
}

static int drain_due(struct loop *l, struct loop_timer *t)
{
    (void)l;
    leave_if_drained(t->owner);
    return 0;
}

static void output_ended(struct pump *p)
{
    struct run *r = p->owner;

    if (p->error != 0 && r->result->output_error == 0)
        r->result->output_error = p->error;
    leave_if_drained(r);
    stop_if_over(r);
}

/* A terminal is told of the end of input by a character; a pipe by its closing. */
static void end_terminal_input(struct run *r)
{
    static const char end_of_transmission = 4;

    if (pump_running(&r->out))
        (void)!write(r->master, &end_of_transmission, 1);
}

static void terminal_input_ended(struct pump *p)
{
    end_terminal_input(p->owner);
}

static int start_terminal(struct run *r, int master)
{
    r->master = fcntl(master, F_DUPFD_CLOEXEC, 3);
    int ret = pump_start(&r->out, &r->loop, master, STDOUT_FILENO, false, output_ended, r);
    if (ret == 0 && r->request->interactive) {
        int to = fcntl(master, F_DUPFD_CLOEXEC, 3); /* which init has made non-blocking */
        int from = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

        ret = pump_start(&r->in, &r->loop, from, to, true, terminal_input_ended, r);
    } else if (ret == 0) {
        end_terminal_input(r);
    }
    return ret;
}

static void command_started(struct execution *c, int terminal)
{
    struct run *r = c->owner;
    int ret = terminal >= 0 ? start_terminal(r, terminal) : 0;

    if (ret < 0) {
        struct error err = ERROR_INIT;

        (void)error_set(&err, ERROR_TERMINAL, -ret, "cannot attach the terminal: %s",
                        strerror(-ret));
        fail(r, &err);
        return;
    }
    r->result->command = c->number;
    if (r->request->detach)
        r->exited = r->loop.stop = true;
    else if (r->request->tty && r->request->started)
        r->request->started(r->request->arg);
}

static void command_exited(struct execution *c)
{
    struct run *r = c->owner;

    r->exited = true;
    r->result->exit = c->exit;
    memcpy(r->result->interpreter, c->interpreter, sizeof c->interpreter);
    r->result->denials = c->denials;
    c->denials = (struct denials){0};
    r->drain_until_us = clock_after_us(LIMIT_DRAIN_US);
    pump_expect_end(&r->out);
    pump_expect_end(&r->err);
    leave_if_drained(r);
}

static void command_failed(struct execution *c, const struct error *err)
{
    struct run *r = c->owner;

    if (!r->session->ended) /* else it is told there */
        fail(r, err);
}

static const struct execution_events execution_events = {
    .started = command_started,
    .exited = command_exited,
    .failed = command_failed,
};

static int start_command(struct run *r);

/* The sandbox stands, with nothing in it yet but its inputs, on which the command has to wait. */
static void inputs_staged(struct staging *g)
{
    struct run *r = g->owner;

    if (start_command(r) < 0)
        r->loop.stop = true;
}

static void inputs_failed(struct staging *g, const struct error *err)
{
    struct run *r = g->owner;

    if (!r->session->ended)
        fail(r, err);
}

static bool has_inputs(const struct run *r)
{
    return r->request->spec && r->request->spec->inputs.n > 0;
}

static void stage(struct run *r)
{
    r->staging = (struct staging){.owner = r, .done = inputs_staged, .failed = inputs_failed};
    staging_start(&r->staging, r->session, &r->loop, &r->request->spec->inputs);
}

static int created(struct run *r, struct reader fields)
{
    struct reader ports = fields;
    const char *id = text_next(&fields, TAG_SANDBOX_ID), *port;

    if (fields.bad || (id && strlen(id) >= sizeof r->id))
        return -EPROTO;
    if (id)
        memcpy(r->id, id, strlen(id) + 1);
    while (r->request->published && (port = text_next(&ports, TAG_PUBLISHED)))
        r->request->published(r->request->arg, port);
    if (ports.bad)
        return -EPROTO;
    if (has_inputs(r))
        stage(r);
    return 0;
}

static int create_told(struct session_request *q, struct message *m)
{
    struct run *r = q->owner;
    struct step_report step;
    struct error err;

    switch (m->type) {
    case MSG_CREATED:
        return created(r, m->payload);
    case MSG_STEP:
        if (step_report_decode(m->payload, &step) < 0)
            return -EPROTO;
        if (r->request->step)
            r->request->step(r->request->arg, &step);
        return 0;
    case MSG_ERROR:
        if (session_error(m, &err) < 0)
            return -EPROTO;
        fail(r, &err);
        return 0;
    default:
        return -EPROTO;
    }
}

static void create_failed(struct session_request *q, const struct error *err)
{
    struct run *r = q->owner;

    if (!r->session->ended)
        fail(r, err);
}

static void session_over(struct session *s)
{
    struct run *r = s->owner;

    if (!s->ended) {
        fail(r, &s->error);
        return;
    }
    r->ended = true;
    r->result->ended_by = s->ended_by;
    if (!r->request->spec && !r->exited)
        fail(r, &s->error);
    stop_if_over(r);
}

static void resize(struct run *r)
{
    struct winsize size;

    if (!r->request->tty || ioctl(r->request->terminal_fd, TIOCGWINSZ, &size) < 0)
        return;
    if (r->session->in_band)
        execution_resize(&r->command, size.ws_row, size.ws_col);
    else if (r->master >= 0 && pump_running(&r->out))
        (void)ioctl(r->master, TIOCSWINSZ, &size);
}

static void pass_signal(struct run *r, int signal)
{
    if (signal == SIGWINCH) {
        resize(r);
        return;
    }
    if (signal == SIGHUP || ++r->signals >= PATIENCE_SIGNALS || r->finishing) {
        r->result->hung_up_by = signal;
        if (r->finishing)
            end_finish(r);
        leave(r);
        stop_if_over(r);
        return;
    }
    (void)execution_signal(&r->command, signal);
}

static int signal_came(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct signalfd_siginfo info;

    (void)l;
    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info)
        pass_signal(s->owner, (int)info.ssi_signo);
    return 0;
}

static int open_loop(struct run *r)
{
    sigset_t set;
    int ret = loop_init(&r->loop);

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    if (ret == 0)
        ret = loop_open_signals(&set);
    if (ret < 0)
        return ret;
    r->signal_source =
        (struct loop_source){.name = "signals", .fd = -EBADF, .owner = r, .ready = signal_came};
    return loop_watch(&r->loop, &r->signal_source, ret, EPOLLIN);
}

/* A pipe whose reading end is the command's stdin, fed from ours; or ended at once. */
static int open_input(struct run *r, int *ret_fd)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_fd = ends[0];
    if (!r->request->interactive) {
        (void)close(ends[1]);
        return 0;
    }
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    return in < 0 ? -errno : pump_start(&r->in, &r->loop, in, ends[1], true, NULL, r);
}

/* The command's streams as pipes; ours go to pumps. */
static int open_pipes(struct run *r, uint32_t flags, int ret_fds[static 3], size_t *ret_n)
{
    size_t n = 0;
    int ends[2], ret = 0;
    const struct {
        struct pump *pump;
        int to;
    } outputs[] = {{&r->out, STDOUT_FILENO}, {&r->err, STDERR_FILENO}};

    if (flags & EXEC_STDIN)
        ret = open_input(r, &ret_fds[n++]);
    for (size_t i = 0; ret == 0 && i < (flags & EXEC_TTY ? 1u : ARRAY_SIZE(outputs)); i++) {
        if (pipe2(ends, O_CLOEXEC) < 0) {
            ret = -errno;
            break;
        }
        ret_fds[n++] = ends[1];
        (void)fcntl(ends[0], F_SETPIPE_SZ, OUTPUT_PIPE_BYTES); /* smaller works too */
        ret = pump_start(outputs[i].pump, &r->loop, ends[0], outputs[i].to, false, output_ended, r);
    }
    *ret_n = n;
    return ret;
}

static uint32_t exec_flags(const struct run *r)
{
    const struct run_request *q = r->request;
    uint32_t flags = q->exec.flags & EXEC_USER_SET;

    if (q->detach)
        return flags | EXEC_DETACH;
    if (q->spec && !q->finish)
        flags |= EXEC_LAST;
    /* A terminal in-band is told of the end of input only by one who may send some. */
    if (q->interactive || (q->tty && r->session->in_band))
        flags |= EXEC_STDIN;
    return flags | (q->tty ? EXEC_TTY : 0u);
}

static int start_command(struct run *r)
{
    struct exec_request x = r->request->exec;
    int fds[3] = {-EBADF, -EBADF, -EBADF};
    size_t n_fds = 0;
    int ret = 0;

    x.flags = exec_flags(r);
    if (!(x.flags & EXEC_DETACH) && (!(x.flags & EXEC_TTY) || r->session->in_band) &&
        (ret = open_pipes(r, x.flags, fds, &n_fds)) < 0)
        (void)error_set(r->error, ERROR_TERMINAL, -ret, "cannot open the command's streams: %s",
                        strerror(-ret));
    if (ret == 0)
        ret = execution_start(&r->command, r->session, &x, fds, n_fds, r->error);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fd_closep(&fds[i]);
    return ret;
}

static void presented(struct claim *c)
{
    (void)c; /* then the command may be started, which was asked for right behind */
}

static void not_presented(struct claim *c, const struct error *err)
{
    fail(c->owner, err);
}

/* The command is sent at once: it waits in the socket until the sandbox is ready for it. */
static int send_requests(struct run *r)
{
    int ret = 0;

    r->create = (struct session_request){.owner = r, .told = create_told, .failed = create_failed};
    r->claim = (struct claim){.owner = r, .done = presented, .failed = not_presented};
    if (r->request->spec)
        ret = session_create(r->session, &r->create, r->request->spec, r->error);
    else if (r->request->open_id)
        ret = session_open(r->session, &r->create, r->request->open_id, r->error);
    else if (r->request->lease > 0)
        ret = claim_present(&r->claim, r->session, r->request->lease, r->error);
    return ret < 0 || has_inputs(r) ? ret : start_command(r);
}

static void described(struct description *d, const struct error *err)
{
    struct run *r = d->owner;

    if (err)
        fail(r, err);
    else if (description_admits(d, r->request->spec, r->error) < 0 || send_requests(r) < 0)
        r->loop.stop = true;
}

/* A backend program first says what it can keep; atoll's own keeper is known. */
static int begin(struct run *r)
{
    if (!r->session->backend || !r->request->spec)
        return send_requests(r);
    r->description.owner = r;
    r->description.told = described;
    return description_ask(&r->description, r->session, r->error);
}

static int run_loop(struct run *r)
{
    int ret = loop_run(&r->loop);

    if (ret < 0 && r->error->code == 0)
        return error_set(r->error, ERROR_TERMINAL, -ret, "cannot wait for the sandbox: %s",
                         strerror(-ret));
    return r->error->code != 0 ? -r->error->code : 0;
}

/* The sandbox may have ended before the command's end was told, or told only a keeper's view. */
static int judge(struct run *r)
{
    const struct run_result *x = r->result;

    if (x->hung_up_by != 0)
        return 0;
    if (!r->exited)
        return error_set(r->error, ERROR_TERMINAL, ECONNRESET,
                         "the sandbox ended (%s) while the command was running",
                         ended_by_name(x->ended_by));
    if (!r->request->finish || r->finished || x->output_error != 0 || outcome_status(&x->exit) != 0)
        return 0;
    return error_set(r->error, ERROR_TERMINAL, ECONNRESET,
                     "the sandbox ended (%s) before anything could be exported from it",
                     ended_by_name(x->ended_by));
}

static void close_all(struct run *r)
{
    int signals = r->signal_source.fd;

    end_finish(r);
    r->session->over = NULL;
    r->session->owner = NULL;
    execution_done(&r->command);
    staging_stop(&r->staging);
    description_done(&r->description);
    session_forget(&r->create);
    claim_done(&r->claim);
    session_end(r->session);
    pump_stop(&r->in);
    pump_stop(&r->out);
    pump_stop(&r->err);
    fd_closep(&r->master);
    fd_closep(&signals);
    loop_done(&r->loop);
}

int run_command(struct session *s, const struct run_request *request, struct run_result *ret,
                struct error *err)
{
    struct run_result result = {.started_us = clock_epoch_us()};
    struct run r = {.request = request,
                    .session = s,
                    .result = &result,
                    .error = err,
                    .master = -EBADF,
                    .signal_source.fd = -EBADF};
    int code;

    r.drain = (struct loop_timer){.name = "drain", .owner = &r, .due = drain_due};
    r.command.events = &execution_events;
    r.command.owner = &r;
    r.session->owner = &r;
    r.session->over = session_over;
    code = open_loop(&r);
    if (code < 0)
        (void)error_set(err, ERROR_TERMINAL, -code, "cannot open an event loop: %s",
                        strerror(-code));
    if (code == 0)
        code = session_watch(s, &r.loop, err);
    if (code == 0)
        code = begin(&r);
    if (code == 0)
        code = run_loop(&r);
    close_all(&r);
    if (code == 0)
        code = judge(&r);
    result.ended_us = clock_epoch_us();
    if (code == 0)
        *ret = result;
    else
        run_result_done(&result);
    return code;
}

void run_result_done(struct run_result *r)
{
    denials_done(&r->denials);
}
