/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: streams, capture, ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/execution.h"
#include "core/limits.h"
#include "core/outcome.h"
#include "base/guards.h"

enum {
    CAPTURE_DEFAULT_BYTES = 1024 * 1024,
    OUTPUT_PIPE_BYTES = 256 * 1024,
    READS_AT_ONCE = 16, /* then other sources of the loop get their turn */
    SENTENCE_BYTES = 512,
};

struct exec_op;

/* A captured stream: our end of its pipe. */
struct captured {
    struct exec_op *owner;
    struct loop_source source;
    int fd; /* owned; -EBADF: at its end, or the caller's */
    struct capture capture;
    bool much;         /* more came at once than there was room for: it is made non-blocking */
    uint64_t due;      /* bytes that were there when the command ended */
    uint64_t moved_us; /* when the last ones came, once it has ended */
};

struct exec_op {
    struct atoll_op op;
    struct execution execution;
    struct captured streams[2]; /* stdout, stderr */
    int fds[3];                 /* the caller's ends, until taken; owned */
    uint8_t *input;             /* what is still to be fed */
    size_t input_at, input_len;
    int input_fd; /* owned; -EBADF: at its end, or the caller's */
    struct loop_source input_source;
    struct loop_timer drain;
    uint64_t drain_until_us;
    void (*follow)(void *arg, int stream, const void *bytes, size_t len);
    void *follow_arg;
    struct loop_timer *runs_told; /* set off when it runs */
    bool report_start, runs;
    bool exited;
    bool held;               /* its output was not at its end: a process that it left holds it */
    char *program, *workdir; /* for sentences */
    char problem[SENTENCE_BYTES];
    struct atoll_exit exit;
    struct exit_denials denials;
};

static void close_stream(struct captured *s)
{
    if (s->fd < 0)
        return;
    loop_forget(&s->owner->op.a->loop, &s->source);
    fd_closep(&s->fd);
}

static void close_input(struct exec_op *x)
{
    if (x->input_fd < 0)
        return;
    loop_forget(&x->op.a->loop, &x->input_source);
    fd_closep(&x->input_fd);
    free(x->input);
    x->input = NULL;
}

/* Nothing of it moves any more; what was captured stays. */
static void stop(struct exec_op *x)
{
    loop_at(&x->op.a->loop, &x->drain, CLOCK_NEVER);
    close_input(x);
    for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
        close_stream(&x->streams[i]);
}

static void describe_exit(struct exec_op *x)
{
    const struct execution *e = &x->execution;

    outcome_explain(&e->exit, x->program, e->interpreter[0] ? e->interpreter : NULL,
                    x->workdir ? x->workdir : SPEC_WORKDIR_DEFAULT, x->problem, sizeof x->problem);
    x->exit = (struct atoll_exit){
        .exit_code = (int)e->exit.exit_code,
        .signal = (int)e->exit.signal,
        .reason = exit_reason_name(e->exit.reason),
        .problem = x->problem[0] ? x->problem : NULL,
        .status = outcome_status(&e->exit),
        .command = e->number,
        .wall_us = e->exit.wall_us,
        .user_us = e->exit.user_us,
        .system_us = e->exit.system_us,
        .peak_rss_bytes = e->exit.peak_rss_bytes,
        .timeout_us = e->exit.timeout_us,
    };
    exit_denials_take(&x->denials, &x->execution.denials, &x->exit);
}

static void finish(struct exec_op *x)
{
    x->held = x->streams[0].fd >= 0 || x->streams[1].fd >= 0;
    stop(x);
    x->exit.stdout_total = x->streams[0].capture.total;
    x->exit.stderr_total = x->streams[1].capture.total;
    for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
        if (capture_finish(&x->streams[i].capture) < 0) {
            op_fail_errno(&x->op, ENOMEM, "cannot keep the command's output");
            return;
        }
    op_done(&x->op);
}

static bool is_drained(const struct captured *s, uint64_t now, bool overdue)
{
    if (s->fd < 0)
        return true;
    if (overdue && s->due == 0)
        return true;
    return now - s->moved_us >= LIMIT_DRAIN_IDLE_US && s->due == 0;
}

/* After the command's end its output is awaited until it is at its end or has fallen silent: a
 * process left in the background may hold it open for ever, or write to it for ever. */
static void finish_if_drained(struct exec_op *x)
{
    uint64_t now;

    if (!x->exited || x->op.done)
        return;
    if (x->streams[0].fd < 0 && x->streams[1].fd < 0 && !execution_delivers(&x->execution)) {
        finish(x);
        return;
    }
    now = clock_now_us();
    if (!execution_delivers(&x->execution) &&
        is_drained(&x->streams[0], now, now >= x->drain_until_us) &&
        is_drained(&x->streams[1], now, now >= x->drain_until_us))
        finish(x);
    else
        loop_at(&x->op.a->loop, &x->drain, now + LIMIT_DRAIN_IDLE_US / 10);
}

static int drain_due(struct loop *l, struct loop_timer *t)
{
    struct exec_op *x = t->owner;

    (void)l;
    if (x->exited)
        finish_if_drained(x);
    else /* it was to be killed, and nothing was heard of that */
        op_fail_errno(&x->op, ETIMEDOUT, "the command could not be ended");
    return 0;
}

/* Small output needs no more than the pipe as it was made. */
static void expect_much(struct captured *s)
{
    if (s->much)
        return;
    (void)fcntl(s->fd, F_SETPIPE_SZ, OUTPUT_PIPE_BYTES); /* smaller works too */
    s->much = fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0;
}

/* Reads once; 1 when there may be more, 0 when not, negative at the end. */
static int read_stream(struct captured *s)
{
    struct exec_op *x = s->owner;
    size_t room;
    uint8_t *p = capture_space(&s->capture, &room);
    ssize_t n;

    if (!p)
        return -ENOMEM;
    n = read(s->fd, p, room);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ENODATA;
    capture_took(&s->capture, (size_t)n);
    if (x->follow)
        x->follow(x->follow_arg, s == x->streams ? 1 : 2, p, (size_t)n);
    s->due = s->due > (uint64_t)n ? s->due - (uint64_t)n : 0;
    if (x->exited)
        s->moved_us = clock_now_us();
    if ((size_t)n < room)
        return 0;
    expect_much(s);
    return s->much;
}

static int stream_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct captured *s = source->owner;
    struct exec_op *x = s->owner;
    int r = 1;

    (void)l;
    /* Hung up with nothing in it: no need to ask again. */
    if (!(events & EPOLLIN) && events & EPOLLHUP)
        r = -ENODATA;
    for (int n = 0; n < READS_AT_ONCE && r > 0; n++)
        r = read_stream(s);
    if (r < 0)
        close_stream(s);
    if (r < 0 && x->exited)
        finish_if_drained(x);
    return 0;
}

static int input_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct exec_op *x = source->owner;

    (void)l;
    (void)events;
    while (x->input_at < x->input_len) {
        ssize_t n = write(x->input_fd, x->input + x->input_at, x->input_len - x->input_at);

        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != EINTR)
            break; /* nobody reads it any more */
        if (n > 0)
            x->input_at += (size_t)n;
    }
    close_input(x);
    return 0;
}

static void exited(struct execution *e)
{
    struct exec_op *x = e->owner;
    uint64_t now = 0;

    x->exited = true;
    close_input(x);
    describe_exit(x);
    for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++) {
        struct captured *s = &x->streams[i];
        int waiting = 0;

        if (s->fd < 0)
            continue;
        now = now ? now : clock_now_us();
        s->moved_us = now;
        if (ioctl(s->fd, FIONREAD, &waiting) == 0 && waiting > 0)
            s->due = (uint64_t)waiting;
    }
    x->drain_until_us = now + LIMIT_DRAIN_US;
    finish_if_drained(x);
}

static void started(struct execution *e, int terminal)
{
    struct exec_op *x = e->owner;

    fd_closep(&terminal); /* none was asked for */
    x->exit.command = e->number;
    x->runs = true;
    if (x->runs_told)
        loop_at(&x->op.a->loop, x->runs_told, clock_now_us());
    if (e->flags & EXEC_DETACH)
        op_done(&x->op);
}

/* What has come of a stream, when its end will not be told. */
static void take_rest(struct captured *s)
{
    int r = s->fd >= 0 && fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0;

    for (int n = 0; n < READS_AT_ONCE && r > 0; n++)
        r = read_stream(s);
}

static void failed(struct execution *e, const struct error *err)
{
    struct exec_op *x = e->owner;
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(x->streams); i++) {
        take_rest(&x->streams[i]);
        r = capture_finish(&x->streams[i].capture);
    }
    stop(x);
    op_fail(&x->op, err);
}

static const struct execution_events events = {
    .started = started, .exited = exited, .failed = failed};

static bool exec_cancel(struct atoll_op *op)
{
    struct exec_op *x = (struct exec_op *)op;

    if (!x->exited && execution_kill(&x->execution) == 0 && op->given_up) {
        loop_at(&op->a->loop, &x->drain, clock_after_us(LIMIT_KILL_US));
        return false; /* its end is told, when all of it is dead */
    }
    stop(x);
    return true;
}

static void exec_detach(struct atoll_op *op)
{
    execution_done(&((struct exec_op *)op)->execution);
}

static void exec_release(struct atoll_op *op)
{
    struct exec_op *x = (struct exec_op *)op;

    stop(x);
    execution_done(&x->execution);
    for (size_t i = 0; i < ARRAY_SIZE(x->fds); i++)
        fd_closep(&x->fds[i]);
    for (size_t i = 0; i < ARRAY_SIZE(x->streams); i++)
        capture_done(&x->streams[i].capture);
    free(x->input);
    free(x->program);
    free(x->workdir);
    exit_denials_done(&x->denials);
}

const struct op_class exec_class = {
    .cancel = exec_cancel, .detach = exec_detach, .release = exec_release};

static int open_input(struct exec_op *x, const struct atoll_exec *asked, int *ret_fd)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_fd = ends[0];
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0) {
        (void)close(ends[1]);
        return -errno;
    }
    if (asked->flags & ATOLL_STDIN) {
        x->fds[0] = ends[1];
        return 0;
    }
    x->input_fd = ends[1];
    x->input = malloc(asked->input_len + 1);
    if (!x->input)
        return -ENOMEM;
    if (asked->input_len > 0)
        memcpy(x->input, asked->input, asked->input_len);
    x->input_len = asked->input_len;
    x->input_source =
        (struct loop_source){.name = "input", .fd = -EBADF, .owner = x, .ready = input_ready};
    return loop_watch(&x->op.a->loop, &x->input_source, x->input_fd, EPOLLOUT);
}

static int open_output(struct exec_op *x, size_t i, bool to_caller, int *ret_fd)
{
    struct captured *s = &x->streams[i];
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_fd = ends[1];
    if (to_caller) {
        x->fds[1 + i] = ends[0];
        return fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    }
    /* A blocking end will do: it is read when epoll says so, and by us alone. */
    s->fd = ends[0];
    return loop_watch(&x->op.a->loop, &s->source, s->fd, EPOLLIN);
}

/* The other ends of the command's streams into @fds. Return: how many, or a negative errno. */
static int open_streams(struct exec_op *x, const struct atoll_exec *asked, int fds[static 3])
{
    int n = 0, r = 0;

    if (asked->flags & ATOLL_DETACH)
        return 0;
    if (asked->flags & ATOLL_STDIN || asked->input)
        r = open_input(x, asked, &fds[n++]);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(x->streams); i++)
        r = open_output(x, i, asked->flags & ATOLL_STREAMS, &fds[n++]);
    return r < 0 ? r : n;
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static int check(const struct atoll_exec *x, struct error *err)
{
    const unsigned known = ATOLL_STDIN | ATOLL_STREAMS | ATOLL_DETACH | ATOLL_USER;

    if (count(x->argv) == 0)
        return error_set(err, ERROR_USAGE, EINVAL, "no command was given to run");
    if (x->flags & ~known)
        return error_set(err, ERROR_USAGE, EINVAL, "unknown flags to run a command");
    if (x->flags & ATOLL_DETACH && (x->flags & (ATOLL_STDIN | ATOLL_STREAMS) || x->input))
        return error_set(err, ERROR_USAGE, EINVAL, "a detached command has no streams");
    if (x->flags & ATOLL_STDIN && x->input)
        return error_set(err, ERROR_USAGE, EINVAL,
                         "standard input is either a pipe or the bytes that were given");
    for (const char *const *s = x->argv; *s; s++)
        if (strlen(*s) > EXEC_STRING_BYTES_MAX) { /* execve(2), MAX_ARG_STRLEN */
            (void)error_set(err, ERROR_USAGE, E2BIG,
                            "an argument has %zu bytes, and the kernel passes at most %d in one",
                            strlen(*s), EXEC_STRING_BYTES_MAX);
            return error_remedy(err, "Pass a file instead, or send it on standard input");
        }
    return 0;
}

static struct exec_request request_of(const struct atoll_exec *asked)
{
    struct exec_request x = {
        .argv = (const char **)(uintptr_t)asked->argv,
        .envp = (const char **)(uintptr_t)asked->env,
        .n_argv = count(asked->argv),
        .n_envp = count(asked->env),
        .workdir = asked->workdir,
        .uid = asked->uid,
        .gid = asked->gid,
        .timeout_us = asked->timeout_us,
    };

    x.flags = asked->flags & ATOLL_DETACH ? EXEC_DETACH : 0;
    if (asked->flags & ATOLL_STDIN || asked->input)
        x.flags |= EXEC_STDIN;
    if (asked->flags & ATOLL_USER)
        x.flags |= EXEC_USER_SET;
    return x;
}

static int start(struct exec_op *x, struct atoll_sandbox *sb, const struct atoll_exec *asked,
                 struct error *err)
{
    struct exec_request request;
    int fds[3] = {-EBADF, -EBADF, -EBADF};
    const char *workdir = asked->workdir ? asked->workdir : sb->workdir;
    int r = check(asked, err);

    if (r < 0)
        return r;
    x->program = strdup(asked->argv[0]);
    x->workdir = workdir ? strdup(workdir) : NULL;
    if (!x->program || (workdir && !x->workdir))
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    request = request_of(asked);
    if (x->report_start)
        request.flags |= EXEC_REPORT_START;
    r = open_streams(x, asked, fds);
    if (r < 0)
        (void)error_set(err, ERROR_TERMINAL, -r, "cannot open the command's streams: %s",
                        strerror(-r));
    else
        r = execution_start(&x->execution, &sb->session, &request, fds, (size_t)r, err);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fd_closep(&fds[i]);
    return r;
}

static struct atoll_op *exec(struct atoll_sandbox *sb, const struct atoll_exec *x,
                             bool report_start)
{
    struct exec_op *e = op_new(sb->a, sb, &exec_class, sizeof *e);
    struct error err = ERROR_INIT;

    if (!e)
        return NULL;
    e->report_start = report_start;
    e->execution.events = &events;
    e->execution.owner = e;
    e->input_fd = -EBADF;
    e->drain = (struct loop_timer){.name = "drain", .owner = e, .due = drain_due};
    for (size_t i = 0; i < ARRAY_SIZE(e->fds); i++)
        e->fds[i] = -EBADF;
    for (size_t i = 0; i < ARRAY_SIZE(e->streams); i++) {
        struct captured *s = &e->streams[i];

        s->owner = e;
        s->fd = -EBADF;
        s->source =
            (struct loop_source){.name = "output", .fd = -EBADF, .owner = s, .ready = stream_ready};
        s->capture.max = x->capture_max ? x->capture_max : CAPTURE_DEFAULT_BYTES;
    }
    if (start(e, sb, x, &err) < 0) {
        stop(e);
        op_fail(&e->op, &err);
    }
    return &e->op;
}

struct atoll_op *atoll_exec(struct atoll_sandbox *sb, const struct atoll_exec *x)
{
    return exec(sb, x, false);
}

struct atoll_op *exec_told(struct atoll_sandbox *sb, const struct atoll_exec *x)
{
    return exec(sb, x, true);
}

void exec_await_start(struct atoll_op *op, struct loop_timer *t)
{
    if (op_is(op, &exec_class))
        ((struct exec_op *)op)->runs_told = t;
}

bool exec_runs(const struct atoll_op *op)
{
    return op_is(op, &exec_class) && ((const struct exec_op *)op)->runs;
}

int exec_stop(struct atoll_op *op, int signal)
{
    if (!op_is(op, &exec_class))
        return -ENOTSUP;
    return op->done ? -ESRCH : execution_stop(&((struct exec_op *)op)->execution, signal);
}

int exec_signal(struct atoll_op *op, int signal)
{
    return execution_signal(&((struct exec_op *)op)->execution, signal);
}

int exec_take_fd(struct atoll_op *op, int i)
{
    struct exec_op *x = (struct exec_op *)op;

    return i >= 0 && i < (int)ARRAY_SIZE(x->fds) ? TAKE_FD(x->fds[i]) : -EBADF;
}

const struct atoll_exit *exit_result(const struct atoll_op *op)
{
    const struct exec_op *x = (const struct exec_op *)op;

    return x->exited || (!op->failed && x->execution.flags & EXEC_DETACH) ? &x->exit : NULL;
}

uint64_t exec_left_us(const struct atoll_op *op)
{
    const struct exec_op *x = (const struct exec_op *)op;

    return op_is(op, &exec_class) && x->exited ? x->execution.left_us : UINT64_MAX;
}

const struct exit_report *exec_report(const struct atoll_op *op)
{
    const struct exec_op *x = (const struct exec_op *)op;

    return op_is(op, &exec_class) && x->exited ? &x->execution.exit : NULL;
}

uint64_t exec_dropped(const struct atoll_op *op, int stream)
{
    const struct exec_op *x = (const struct exec_op *)op;
    const struct capture *c =
        op_is(op, &exec_class) && stream > 0 && stream < 3 ? &x->streams[stream - 1].capture : NULL;

    return c ? c->total - c->length : 0;
}

bool exec_held(const struct atoll_op *op)
{
    return op_is(op, &exec_class) && ((const struct exec_op *)op)->held;
}

const void *exec_output(const struct atoll_op *op, int stream, size_t *ret_len)
{
    const struct exec_op *x = (const struct exec_op *)op;

    if (stream < 1 || stream > 2)
        return NULL;
    *ret_len = x->streams[stream - 1].capture.length;
    return x->streams[stream - 1].capture.bytes;
}

void exec_follow(struct atoll_op *op,
                 void (*fn)(void *arg, int stream, const void *bytes, size_t len), void *arg)
{
    struct exec_op *x = (struct exec_op *)op;

    if (!op_is(op, &exec_class))
        return;
    x->follow = fn;
    x->follow_arg = arg;
}
