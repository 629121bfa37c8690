/* SPDX-License-Identifier: Apache-2.0 */
/* One command in one sandbox of its own. */
#include "client/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/limits.h"
#include "base/guards.h"

enum { OUTPUT_PIPE_BYTES = 256 * 1024, PATIENCE_SIGNALS = 3 };

/* The state of one run; everything is a source or timer of its loop. */
struct run {
    struct loop loop;
    struct session session;
    struct loop_source session_source, signal_source;
    struct loop_timer drain;
    struct pump out, err, in;
    const struct run_request *request;
    struct run_result *result;
    uint32_t command;
    /* The terminal's descriptor, for its size; owned, beside the pump's own. It stays open until
     * the command is reaped: closing it hangs the terminal up, and that SIGHUP replaces the status
     * of a command that is just exiting. */
    int master;
    unsigned signals;
    uint64_t drain_until_us;
    bool exited, destroying, ended;
    struct error *error;
};

static uint64_t epoch_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

/* Once the sandbox has ended, only what it wrote before is still to be passed on. */
static void stop_if_over(struct run *r)
{
    if (r->ended && (r->result->hung_up_by != 0 || !pump_running(&r->out)) &&
        (r->result->hung_up_by != 0 || !pump_running(&r->err)))
        r->loop.stop = true;
}

static void destroy(struct run *r)
{
    if (r->destroying || r->ended)
        return;
    r->destroying = true;
    loop_at(&r->loop, &r->drain, CLOCK_NEVER);
    pump_stop(&r->in);
    if (session_destroy(&r->session) < 0)
        r->loop.stop = true;
}

/* After the command's end its output is awaited until it is at its end or has fallen silent: a
 * process left in the background may hold it open for ever, or write to it for ever. */
static void destroy_if_drained(struct run *r)
{
    if (!r->exited || r->result->exit.left_empty) /* then it ends by itself */
        return;
    bool overdue = clock_now_us() >= r->drain_until_us;
    if (pump_is_drained(&r->out, LIMIT_DRAIN_IDLE_US, overdue) &&
        pump_is_drained(&r->err, LIMIT_DRAIN_IDLE_US, overdue))
        destroy(r);
    else
        loop_at(&r->loop, &r->drain, clock_after_us(LIMIT_DRAIN_IDLE_US / 10));
}

static int drain_due(struct loop *l, struct loop_timer *t)
{
    (void)l;
    destroy_if_drained(t->owner);
    return 0;
}

static void output_ended(struct pump *p)
{
    struct run *r = p->owner;

    if (p->error != 0 && r->result->output_error == 0)
        r->result->output_error = p->error;
    destroy_if_drained(r);
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
    if (ret == 0 && r->request->started)
        r->request->started(r->request->arg);
    return ret;
}

static void command_exited(struct run *r, const struct exit_report *x)
{
    r->exited = true;
    r->result->exit = *x;
    if (x->interpreter)
        (void)snprintf(r->result->interpreter, sizeof r->result->interpreter, "%s", x->interpreter);
    r->result->exit.interpreter = NULL;
    r->drain_until_us = clock_after_us(LIMIT_DRAIN_US);
    pump_expect_end(&r->out);
    pump_expect_end(&r->err);
    destroy_if_drained(r);
}

static int handle_event(struct run *r, struct session_event *e)
{
    switch (e->type) {
    case MSG_STEP:
        if (r->request->step)
            r->request->step(r->request->arg, &e->step);
        return 0;
    case MSG_STARTED:
        return e->fd >= 0 ? start_terminal(r, e->fd) : 0;
    case MSG_EXITED:
        if (e->id == r->command && !r->exited)
            command_exited(r, &e->exit);
        return 0;
    case MSG_ERROR:
        if (r->error->code == 0)
            *r->error = e->error;
        r->loop.stop = true;
        return 0;
    case MSG_ENDED:
        r->result->ended_by = e->ended_by;
        r->ended = true;
        stop_if_over(r);
        return 0;
    default:
        return 0;
    }
}

static int session_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct run *r = s->owner;
    struct session_event e;
    int ret = 0;

    if (events & EPOLLOUT)
        ret = channel_flush(&r->session.channel);
    while (ret >= 0 && !l->stop && !r->ended && (ret = session_next(&r->session, &e)) > 0)
        ret = handle_event(r, &e);
    if (r->ended) { /* the keeper's last word; its socket may be closed by now */
        loop_forget(l, s);
        return 0;
    }
    if (ret < 0) {
        if (r->error->code == 0)
            (void)error_set(r->error, ERROR_TERMINAL, -ret, "the sandbox's keeper is gone");
        l->stop = true;
        return 0;
    }
    return loop_change(l, s, channel_waiting(&r->session.channel) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void pass_signal(struct run *r, int signal)
{
    struct winsize size;

    if (signal == SIGWINCH) {
        if (r->master >= 0 && pump_running(&r->out) &&
            ioctl(r->request->terminal_fd, TIOCGWINSZ, &size) == 0)
            (void)ioctl(r->master, TIOCSWINSZ, &size);
        return;
    }
    if (signal == SIGHUP || ++r->signals >= PATIENCE_SIGNALS) {
        r->result->hung_up_by = signal;
        destroy(r);
        stop_if_over(r);
        return;
    }
    (void)session_signal(&r->session, r->command, signal);
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

/* The command's three streams as pipes; ours go to pumps. */
static int open_pipes(struct run *r, int ret_fds[static 3], size_t *ret_n)
{
    size_t n = 0;
    int ends[2], ret = 0;
    const struct {
        struct pump *pump;
        int to;
    } outputs[] = {{&r->out, STDOUT_FILENO}, {&r->err, STDERR_FILENO}};

    if (r->request->interactive) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        ret_fds[n++] = ends[0];
        (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
        int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        ret = in < 0 ? -errno : pump_start(&r->in, &r->loop, in, ends[1], true, NULL, r);
    }
    for (size_t i = 0; ret == 0 && i < ARRAY_SIZE(outputs); i++) {
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

static int send_requests(struct run *r)
{
    struct exec_request x = r->request->exec;
    int fds[3] = {-EBADF, -EBADF, -EBADF};
    size_t n_fds = 0;
    int ret = session_create(&r->session, r->request->spec, r->error);

    x.flags =
        EXEC_LAST | (r->request->interactive ? EXEC_STDIN : 0u) | (r->request->tty ? EXEC_TTY : 0u);
    if (ret == 0 && !r->request->tty && (ret = open_pipes(r, fds, &n_fds)) < 0)
        (void)error_set(r->error, ERROR_TERMINAL, -ret, "cannot open the command's streams: %s",
                        strerror(-ret));
    /* Sent at once: the command waits in the socket until the sandbox is ready for it. */
    if (ret == 0)
        ret = session_exec(&r->session, &x, fds, n_fds, &r->command, r->error);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fd_closep(&fds[i]);
    return ret;
}

static int run_loop(struct run *r)
{
    uint32_t events = EPOLLIN | (channel_waiting(&r->session.channel) ? EPOLLOUT : 0u);
    int ret;

    r->session_source =
        (struct loop_source){.name = "keeper", .fd = -EBADF, .owner = r, .ready = session_ready};
    ret = loop_watch(&r->loop, &r->session_source, r->session.channel.fd, events);
    if (ret == 0)
        ret = loop_run(&r->loop);
    if (ret < 0 && r->error->code == 0)
        return error_set(r->error, ERROR_TERMINAL, -ret, "cannot wait for the sandbox: %s",
                         strerror(-ret));
    return r->error->code != 0 ? -r->error->code : 0;
}

/* The sandbox may have ended before the command's end was told, or told only a keeper's view. */
static int judge(struct run *r)
{
    if (r->exited || r->result->hung_up_by != 0)
        return 0;
    (void)error_set(r->error, ERROR_TERMINAL, ECONNRESET,
                    "the sandbox ended (%s) while the command "
                    "was running",
                    ended_by_name(r->result->ended_by));
    return -ECONNRESET;
}

int run_command(const struct run_request *request, struct run_result *ret, struct error *err)
{
    struct run_result result = {.started_us = epoch_us()};
    struct run r = {.request = request, .result = &result, .error = err, .master = -EBADF};
    int signals, code;

    r.drain = (struct loop_timer){.name = "drain", .owner = &r, .due = drain_due};
    code = session_start(&r.session, err);
    if (code < 0)
        return code;
    code = open_loop(&r);
    if (code < 0)
        (void)error_set(err, ERROR_TERMINAL, -code, "cannot open an event loop: %s",
                        strerror(-code));
    if (code == 0)
        code = send_requests(&r);
    if (code == 0)
        code = run_loop(&r);
    session_end(&r.session);
    pump_stop(&r.in);
    pump_stop(&r.out);
    pump_stop(&r.err);
    fd_closep(&r.master);
    signals = r.signal_source.fd;
    fd_closep(&signals);
    loop_done(&r.loop);
    if (code == 0)
        code = judge(&r);
    result.ended_us = epoch_us();
    if (code == 0)
        *ret = result;
    return code;
}
