/* SPDX-License-Identifier: Apache-2.0 */
/* Commands between the caller and init: starting, timeouts, ends. */
#include "keeper/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/limits.h"
#include "base/guards.h"

struct keeper_command *command_by_id(struct keeper *k, uint32_t id)
{
    for (struct keeper_command *c = k->commands; c; c = c->next)
        if (c->id == id)
            return c;
    return NULL;
}

static void command_forget(struct keeper_command *c)
{
    struct keeper *k = c->keeper;

    for (struct keeper_command **p = &k->commands; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            k->n_commands--;
            break;
        }
    loop_at(&k->loop, &c->timeout, CLOCK_NEVER);
    streams_done(&c->streams);
    loop_free_later(&k->loop, c);
}

void command_finish(struct keeper_command *c)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);

    exit_report_encode(&w, &c->report);
    keeper_send(c->keeper, MSG_EXITED, c->id, &w, -EBADF);
    command_forget(c);
}

/* Init did not manage to end all of a command: then the sandbox must end. */
static int kill_overdue(struct loop *l, struct loop_timer *t)
{
    struct keeper_command *c = t->owner;

    (void)l;
    keeper_end(c->keeper, ENDED_ERROR);
    return 0;
}

static int timeout_due(struct loop *l, struct loop_timer *t)
{
    struct keeper_command *c = t->owner;

    c->timed_out = true;
    t->due = kill_overdue;
    loop_at(l, t, clock_after_us(LIMIT_KILL_US));
    if (keeper_tell_init(c->keeper, MSG_KILL, c->id, NULL, 0, NULL, 0) < 0)
        keeper_end(c->keeper, ENDED_ERROR);
    return 0;
}

static void start_timeout(struct keeper_command *c)
{
    if (c->timeout_us > 0)
        loop_at(&c->keeper->loop, &c->timeout, clock_after_us(c->timeout_us));
}

static struct keeper_command *command_new(struct keeper *k, uint32_t id,
                                          const struct exec_request *x)
{
    struct keeper_command *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->keeper = k;
    c->id = id;
    c->flags = x->flags;
    c->timeout_us = x->timeout_us;
    c->timeout = (struct loop_timer){.name = "timeout", .owner = c, .due = timeout_due};
    streams_init(&c->streams, c);
    c->next = k->commands;
    k->commands = c;
    k->n_commands++;
    return c;
}

/* The request as init gets it: the environment complete, the working directory and user decided. */
static int forward(struct keeper *k, uint32_t id, const struct exec_request *asked, const int *fds,
                   size_t n_fds)
{
    struct exec_request x = *asked;
    struct string_list env = {0};
    int r = env_build(&k->spec, asked->envp, asked->n_envp, asked->flags & EXEC_TTY, &env);

    if (r < 0)
        return r;
    x.envp = (const char **)(uintptr_t)env.items;
    x.n_envp = env.n;
    if (!x.workdir)
        x.workdir = k->spec.workdir ? k->spec.workdir : SPEC_WORKDIR_DEFAULT;
    if (!(x.flags & EXEC_USER_SET)) {
        x.flags |= EXEC_USER_SET;
        x.uid = k->spec.uid;
        x.gid = k->spec.gid;
    }
    size_t size = exec_request_size(&x);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    exec_request_encode(&w, &x);
    r = !buf    ? -ENOMEM
        : w.bad ? -E2BIG
                : keeper_tell_init(k, MSG_EXEC, id, buf, writer_len(&w), fds, n_fds);
    string_list_done(&env);
    return r;
}

static int start_checked(struct keeper *k, struct message *m, const struct exec_request *x,
                         struct error *err)
{
    bool in_band = x->flags & EXEC_IN_BAND, tty = x->flags & EXEC_TTY;
    size_t expected = in_band || tty ? 0 : x->flags & EXEC_STDIN ? 3 : 2;
    int fds[3] = {-EBADF, -EBADF, -EBADF};
    int n;

    if (k->state != KEEPER_CREATING && k->state != KEEPER_RUNNING)
        return error_set(err, ERROR_USAGE, ENOENT, "there is no sandbox yet to run a command in");
    if (x->n_envp > LIMIT_ENV_NAMES)
        return error_set(err, ERROR_USAGE, E2BIG, "more than %d variables", LIMIT_ENV_NAMES);
    if (in_band && x->flags & EXEC_LAST)
        return error_set(err, ERROR_USAGE, EINVAL, "EXEC_LAST does not go with in-band streams");
    if (command_by_id(k, m->id))
        return error_set(err, ERROR_USAGE, EEXIST, "a command with id %u is running", m->id);
    if (m->n_fds != expected)
        return error_set(err, ERROR_USAGE, EINVAL, "%zu descriptors came instead of %zu", m->n_fds,
                         expected);
    struct keeper_command *c = command_new(k, m->id, x);
    if (!c)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (in_band && !tty) {
        n = streams_open_pipes(&c->streams, x->flags & EXEC_STDIN, fds);
        if (n < 0) {
            command_forget(c);
            return error_set(err, ERROR_TERMINAL, -n, "cannot make pipes: %s", strerror(-n));
        }
    }
    int r = in_band && !tty ? forward(k, m->id, x, fds, (size_t)n)
                            : forward(k, m->id, x, m->fds, m->n_fds);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fd_closep(&fds[i]);
    if (r < 0) {
        command_forget(c);
        return error_set(err, ERROR_TERMINAL, -r, "cannot pass the command on: %s", strerror(-r));
    }
    if (k->state == KEEPER_RUNNING)
        start_timeout(c);
    return 0;
}

void commands_begin(struct keeper *k)
{
    for (struct keeper_command *c = k->commands; c; c = c->next)
        start_timeout(c);
}

void command_start(struct keeper *k, struct message *m)
{
    /* Every string takes a field; two more are the NULLs that end the lists. */
    size_t max = reader_left(&m->payload) / (FIELD_HEADER_BYTES + 1) + 3;
    _cleanup_free_ const char **strings = malloc(max * sizeof *strings);
    struct error err = ERROR_INIT;
    struct exec_request x;
    int r;

    if (!strings)
        r = error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    else if ((r = exec_request_decode(m->payload, strings, max, &x)) < 0)
        r = error_set(&err, ERROR_USAGE, -r, "the command cannot be read: %s", strerror(-r));
    else
        r = start_checked(k, m, &x, &err);
    if (r < 0)
        keeper_refuse(k, m->id, &err);
}

void command_signal(struct keeper *k, struct message *m)
{
    const struct keeper_command *c = command_by_id(k, m->id);
    uint32_t signal;

    if (!c || c->exited)
        return; /* it ended meanwhile */
    if (number_decode(m->payload, TAG_SIGNAL, &signal) < 0 || signal == 0 || signal > 64) {
        struct error err = ERROR_INIT;

        (void)error_set(&err, ERROR_USAGE, EINVAL, "there is no such signal");
        keeper_refuse(k, m->id, &err);
        return;
    }
    if (keeper_tell_init(k, MSG_SIGNAL, m->id, m->payload.p, reader_left(&m->payload), NULL, 0) < 0)
        keeper_end(k, ENDED_ERROR);
}

int command_started(struct keeper *k, struct message *m)
{
    struct keeper_command *c = command_by_id(k, m->id);
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    uint32_t pid;

    if (!c || c->exited || c->started || number_decode(m->payload, TAG_PID, &pid) < 0)
        return -EPROTO;
    if (m->n_fds != (c->flags & EXEC_TTY ? 1u : 0u))
        return -EPROTO;
    c->started = true;
    field_put_u32(&w, TAG_PID, pid);
    if (c->flags & EXEC_IN_BAND && c->flags & EXEC_TTY) {
        if (streams_attach_terminal(&c->streams, message_take_fd(m, 0), c->flags & EXEC_STDIN) < 0)
            return -EPROTO;
        keeper_send(k, MSG_STARTED, c->id, &w, -EBADF);
        return 0;
    }
    keeper_send(k, MSG_STARTED, c->id, &w, m->n_fds > 0 ? m->fds[0] : -EBADF);
    return 0;
}

int command_exited(struct keeper *k, struct message *m)
{
    struct keeper_command *c = command_by_id(k, m->id);
    struct exit_report x;

    if (!c || c->exited || exit_report_decode(m->payload, &x) < 0)
        return -EPROTO;
    c->exited = true;
    c->report = x;
    if (x.interpreter) {
        (void)snprintf(c->interpreter, sizeof c->interpreter, "%s", x.interpreter);
        c->report.interpreter = c->interpreter;
    }
    c->report.timeout_us = c->timeout_us;
    if (c->timed_out)
        c->report.reason = REASON_TIMEOUT;
    if (x.left_empty) {
        if (!(c->flags & EXEC_LAST))
            return -EPROTO;
        keeper_end(k, ENDED_DESTROYED); /* which reports it when nothing is left */
        return 0;
    }
    if (c->timed_out)
        return 0; /* reported when init says that all of it is dead */
    loop_at(&k->loop, &c->timeout, CLOCK_NEVER);
    if (c->flags & EXEC_IN_BAND)
        streams_drain(&c->streams);
    else
        command_finish(c);
    return 0;
}

int command_killed(struct keeper *k, struct message *m)
{
    struct keeper_command *c = command_by_id(k, m->id);
    uint32_t error;

    if (number_decode(m->payload, TAG_ERROR_CODE, &error) < 0)
        return -EPROTO;
    if (!c || !c->timed_out) /* nobody asked for it */
        return -EPROTO;
    loop_at(&k->loop, &c->timeout, CLOCK_NEVER);
    if (error != 0) {
        keeper_end(k, ENDED_ERROR);
        return 0;
    }
    if (!c->exited)
        return -EPROTO; /* its first process was reaped before this was sent */
    if (c->flags & EXEC_IN_BAND)
        streams_drain(&c->streams);
    else
        command_finish(c);
    return 0;
}

void commands_abandon(struct keeper *k, enum exit_reason reason)
{
    while (k->commands) {
        struct keeper_command *c = k->commands;

        if (!c->exited) {
            c->report = (struct exit_report){.signal = SIGKILL, .timeout_us = c->timeout_us};
            c->report.reason = c->timed_out ? REASON_TIMEOUT : reason;
        }
        command_finish(c);
    }
}
