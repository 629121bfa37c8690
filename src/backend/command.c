/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: starting, signals, stopping, the list of those that run, and how they end. */
#include <atoll_backend.h>

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/server.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

/* Of a command's arguments, for PS: so much that all commands fit one message. */
enum { KEPT_ARGUMENT_BYTES = 2048 };
_Static_assert(COMMANDS_MAX *(KEPT_ARGUMENT_BYTES + 64 + 8 * COMMAND_ARGS_MAX) < MESSAGE_BYTES_MAX,
               "COMMANDS is one message");

struct atoll_stream *command_find(const struct atoll_server *s, uint32_t id)
{
    for (struct atoll_stream *c = s->streams; c; c = c->next)
        if (c->id == id && !(c->flags & EXEC_DETACH && c->told))
            return c;
    return NULL;
}

void command_free(struct atoll_stream *c)
{
    struct atoll_server *s = c->server;

    for (struct atoll_stream **at = &s->streams; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            s->n_streams--;
            break;
        }
    c->over = true;
    free(c->arguments);
    free(c->input);
    c->arguments = NULL;
    c->input = NULL;
    c->input_from = c->input_to = 0;
    loop_free_later(&s->loop, c); /* a function of the backend may be at work on it */
}

static bool has_feature(const struct atoll_backend *b, const char *name)
{
    for (const char *const *f = b->features; f && *f; f++)
        if (strcmp(*f, name) == 0)
            return true;
    return false;
}

/* Why this backend cannot have such a command, or 0. */
static int exec_judge(const struct atoll_server *s, const struct message *m,
                      const struct exec_request *x, struct error *err)
{
    const struct atoll_backend *b = s->backend;
    const char *lacks = x->flags & EXEC_TTY && !has_feature(b, "tty")         ? "terminals"
                        : x->flags & EXEC_DETACH && !has_feature(b, "detach") ? "detached commands"
                        : x->flags & EXEC_STDIN && !b->input                  ? "standard input"
                        : x->timeout_us > 0 && !has_feature(b, "timeout")     ? "timeouts"
                                                                              : NULL;

    if (lacks)
        return error_set(err, ERROR_USAGE, ENOSYS, "the backend %s has no %s", b->name, lacks);
    if (!(x->flags & (EXEC_IN_BAND | EXEC_DETACH)))
        return error_set(err, ERROR_USAGE, EINVAL,
                         "no descriptors can be passed here: ask for in-band streams");
    if (x->flags & (EXEC_LAST | EXEC_FILES))
        return error_set(err, ERROR_USAGE, EINVAL, "EXEC has a flag that means nothing here");
    if (x->n_envp > LIMIT_ENV_NAMES)
        return error_set(err, ERROR_USAGE, E2BIG, "more than %d variables", LIMIT_ENV_NAMES);
    if (!server_id_free(s, m->id))
        return error_set(err, ERROR_USAGE, EEXIST, "a request with id %u is under way", m->id);
    if (s->n_streams >= COMMANDS_MAX)
        return error_set(err, ERROR_RECOVERABLE, EAGAIN, "%d commands are running already",
                         COMMANDS_MAX);
    return 0;
}

/* As many of the arguments as are kept for PS. */
static int keep_arguments(struct atoll_stream *c, const struct exec_request *x)
{
    size_t size = 0;

    c->arguments = malloc(KEPT_ARGUMENT_BYTES);
    if (!c->arguments)
        return -ENOMEM;
    for (size_t i = 0; i < x->n_argv && i < COMMAND_ARGS_MAX; i++) {
        size_t n = strlen(x->argv[i]);

        if (size + 1 >= KEPT_ARGUMENT_BYTES)
            break;
        n = n < KEPT_ARGUMENT_BYTES - size - 1 ? n : KEPT_ARGUMENT_BYTES - size - 1;
        memcpy(c->arguments + size, x->argv[i], n);
        c->arguments[size + n] = '\0';
        size += n + 1;
        c->n_arguments++;
    }
    return 0;
}

static struct atoll_stream *command_new(struct atoll_server *s, uint32_t id,
                                        const struct exec_request *x)
{
    struct atoll_stream *c = calloc(1, sizeof *c);
    struct timespec now;

    if (!c)
        return NULL;
    if (keep_arguments(c, x) < 0) {
        free(c);
        return NULL;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    c->server = s;
    c->id = id;
    c->number = ++s->last_number;
    c->flags = x->flags;
    c->timeout_us = x->timeout_us;
    c->started_at_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    c->started_us = clock_now_us();
    c->out[0].credit = c->out[1].credit = c->input_credit = STREAM_WINDOW_BYTES;
    c->next = s->streams;
    s->streams = c;
    s->n_streams++;
    return c;
}

static int exec_decoded(struct atoll_server *s, const struct message *m,
                        const struct exec_request *x, struct error *err)
{
    int r = exec_judge(s, m, x, err);

    if (r < 0)
        return r;
    struct atoll_stream *c = command_new(s, m->id, x);
    if (!c)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    struct atoll_backend_exec view = {
        .argv = x->argv,
        .env = x->envp,
        .workdir = x->workdir,
        .wants_stdin = x->flags & EXEC_STDIN,
        .tty = x->flags & EXEC_TTY,
        .detach = x->flags & EXEC_DETACH,
        .user_set = x->flags & EXEC_USER_SET,
        .uid = x->uid,
        .gid = x->gid,
        .rows = x->rows,
        .columns = x->columns,
        .timeout_us = x->timeout_us,
    };
    s->backend->exec(s, s->sandbox, &view, c);
    return 0;
}

void command_exec(struct atoll_server *s, const struct message *m)
{
    /* Every string takes a field; two more are the NULLs that end the lists. */
    size_t max = reader_left(&m->payload) / (FIELD_HEADER_BYTES + 1) + 3;
    _cleanup_free_ const char **strings = malloc(max * sizeof *strings);
    struct error err = ERROR_INIT;
    struct exec_request x;
    int r;

    if (!s->backend->exec) {
        server_lacks(s, m->id, "run commands");
        return;
    }
    if (!strings)
        r = error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
    else if ((r = exec_request_decode(m->payload, strings, max, &x)) < 0)
        r = error_set(&err, ERROR_USAGE, -r, "the command cannot be read: %s", strerror(-r));
    else
        r = exec_decoded(s, m, &x, &err);
    if (r < 0)
        server_refuse(s, m->id, &err);
}

void command_signal(struct atoll_server *s, const struct message *m)
{
    struct atoll_stream *c = command_find(s, m->id);
    uint32_t number;

    if (!s->backend->signal)
        server_lacks(s, m->id, "send signals");
    else if (!c)
        return; /* it ended meanwhile */
    else if (number_decode(m->payload, TAG_SIGNAL, &number) < 0 || number == 0 || number > 64)
        server_refuse_text(s, m->id, ERROR_USAGE, EINVAL, "there is no such signal", NULL);
    else
        s->backend->signal(s, c, (int)number);
}

void command_resize(struct atoll_server *s, const struct message *m)
{
    struct atoll_stream *c = command_find(s, m->id);
    uint16_t rows, columns;

    if (!s->backend->resize)
        server_lacks(s, m->id, "resize a terminal");
    else if (!c || !(c->flags & EXEC_TTY))
        return;
    else if (size_decode(m->payload, &rows, &columns) < 0)
        server_refuse_text(s, m->id, ERROR_USAGE, EPROTO, "the size cannot be read", NULL);
    else
        s->backend->resize(s, c, rows, columns);
}

static bool is_meant(const struct atoll_stream *c, uint32_t number)
{
    return !c->over && (number == 0 || c->number == number);
}

/* Answers STOP once nothing of what it meant is running. A later command is not meant. */
static void stops_settle(struct atoll_server *s)
{
    struct atoll_reply *next;

    for (struct atoll_reply *r = s->replies; r; r = next) {
        bool running = false;

        next = r->next;
        if (r->type != MSG_STOP)
            continue;
        for (const struct atoll_stream *c = s->streams; c && !running; c = c->next)
            running = c->stopped && is_meant(c, r->number);
        if (!running) {
            struct writer w = writer_over(NULL, 0);

            server_send(s, MSG_DONE, r->id, &w);
            reply_free(r);
        }
    }
}

static struct atoll_stream *next_to_stop(const struct atoll_server *s)
{
    struct atoll_stream *c = s->streams;

    while (c && (!c->stopped || c->stop_told))
        c = c->next;
    return c;
}

void command_stop(struct atoll_server *s, const struct message *m)
{
    struct atoll_stream *c = s->streams;
    uint32_t number;

    if (!s->backend->stop) {
        server_lacks(s, m->id, "stop commands");
        return;
    }
    if (number_decode(m->payload, TAG_COMMAND_NUMBER, &number) < 0) {
        server_refuse_text(s, m->id, ERROR_USAGE, EPROTO, "STOP names no command", NULL);
        return;
    }
    while (c && !is_meant(c, number))
        c = c->next;
    if (!c && number != 0) {
        server_refuse_text(s, m->id, ERROR_RECOVERABLE, ESRCH, "there is no such command", NULL);
        return;
    }
    struct atoll_reply *r = reply_new(s, m);
    if (!r)
        return;
    r->number = number;
    for (c = s->streams; c; c = c->next)
        c->stopped = c->stopped || is_meant(c, number);
    while ((c = next_to_stop(s))) {
        c->stop_told = true;
        s->backend->stop(s, c); /* it may have reported others by now, too */
    }
    stops_settle(s);
}

void command_list(struct atoll_server *s, const struct message *m)
{
    size_t size = s->n_streams * (KEPT_ARGUMENT_BYTES + 64 + 8 * COMMAND_ARGS_MAX) + 64;
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    for (const struct atoll_stream *c = s->streams; c; c = c->next) {
        struct command_info x = {
            .number = c->number,
            .pid = c->pid,
            .flags = (c->flags & EXEC_DETACH ? COMMAND_DETACHED : 0u) |
                     (c->flags & EXEC_TTY ? COMMAND_TTY : 0u),
            .started_at_us = c->started_at_us,
            .timeout_us = c->timeout_us,
        };
        const char *text = c->arguments;

        for (; x.n_argv < c->n_arguments; text += strlen(text) + 1)
            x.argv[x.n_argv++] = text;
        command_info_encode(&w, &x);
    }
    if (buf)
        server_send(s, MSG_COMMANDS, m->id, &w);
    else
        server_refuse_text(s, m->id, ERROR_TERMINAL, ENOMEM, "out of memory", NULL);
}

void atoll_stream_started(struct atoll_stream *s, uint32_t pid)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    assert(!s->over);
    s->pid = pid;
    if (s->told || !(s->flags & (EXEC_DETACH | EXEC_REPORT_START | EXEC_TTY)))
        return;
    s->told = true;
    field_put_u32(&w, TAG_PID, pid);
    field_put_u32(&w, TAG_COMMAND_NUMBER, s->number);
    server_send(s->server, MSG_STARTED, s->id, &w);
}

static void say_exited(struct atoll_stream *c, const struct exit_report *x)
{
    struct atoll_server *s = c->server;
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);

    if (!(c->flags & EXEC_DETACH && c->told)) { /* nobody waits for the end of such a one */
        struct exit_report told = *x;

        told.reason = exit_reason_for(told.reason, s->minor);
        stream_end_outputs(c);
        exit_report_encode(&w, &told);
        server_send(s, MSG_EXITED, c->id, &w);
    }
    command_free(c);
    stops_settle(s);
}

void command_abandon(struct atoll_stream *c, uint32_t reason)
{
    struct exit_report x = {
        .signal = SIGKILL,
        .reason = reason,
        .timeout_us = c->timeout_us,
        .wall_us = clock_now_us() - c->started_us,
    };

    say_exited(c, &x);
}

void atoll_stream_exited(struct atoll_stream *s, const struct atoll_backend_exit *x)
{
    struct exit_report report = {
        .exit_code = (uint32_t)x->exit_code & 0xff,
        .signal = (uint32_t)x->signal <= 64 ? (uint32_t)x->signal : 0,
        .reason = (uint32_t)x->reason < REASON__MAX ? (uint32_t)x->reason : REASON_ERROR,
        .wall_us = x->wall_us ? x->wall_us : clock_now_us() - s->started_us,
        .user_us = x->user_us,
        .system_us = x->system_us,
        .peak_rss_bytes = x->peak_rss_bytes,
        .timeout_us = s->timeout_us,
    };

    assert(!s->over);
    if (x->start_errno > 0 && x->start_errno < 4096) {
        report.start_errno = (uint32_t)x->start_errno;
        report.start_stage = x->workdir_failed ? START_WORKDIR : START_EXEC;
        report.exit_code = x->start_errno == ENOENT && !x->workdir_failed ? 127 : 126;
    }
    if (s->stopped && report.reason == REASON_EXITED)
        report.reason = REASON_KILLED;
    say_exited(s, &report);
}

void atoll_stream_error(struct atoll_stream *s, int cls, int code, const char *message,
                        const char *remedy)
{
    struct atoll_server *server = s->server;

    assert(!s->over);
    server_refuse_text(server, s->id, cls, code, message, remedy);
    command_free(s);
    stops_settle(server);
}

uint32_t atoll_stream_number(const struct atoll_stream *s)
{
    return s->number;
}

void atoll_stream_set_data(struct atoll_stream *s, void *data)
{
    s->data = data;
}

void *atoll_stream_data(const struct atoll_stream *s)
{
    return s->data;
}
