/* SPDX-License-Identifier: Apache-2.0 */
/* Commands between a client and init: starting, timeouts, ends. */
#include "keeper/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/limits.h"
#include "keeper/ending.h"
#include "keeper/lease.h"
#include "keeper/usage.h"
#include "wire/fault.h"
#include "wire/files.h"
#include "base/guards.h"

enum { EXIT_BYTES = 1024 }; /* of EXITED, but for what was refused */

/* Numbers of processes that serve files have this bit. */
#define FILES_NUMBERS UINT32_C(0x80000000)

/* How long egress may take to tell what it refused. */
#define SYNC_US UINT64_C(2000000)

/* How long a process that serves files may take to go when its client has gone. */
#define FILES_TIDY_US UINT64_C(2000000)

struct keeper_command *command_by_id(const struct connection *connection, uint32_t id)
{
    for (struct keeper_command *c = connection->keeper->commands; c; c = c->next)
        if (c->connection == connection && c->id == id)
            return c;
    return NULL;
}

struct keeper_command *command_by_number(const struct keeper *k, uint32_t number)
{
    for (struct keeper_command *c = k->commands; c; c = c->next)
        if (c->number == number)
            return c;
    return NULL;
}

static void tell_event(struct keeper_command *c, const char *what)
{
    events_command(c->keeper, what, c);
    free(TAKE_PTR(c->told));
}

/* Once, when all that it was refused is known, or when nothing of it will be heard any more. */
static void tell_exit_event(struct keeper_command *c)
{
    if (c->told_exit)
        return;
    c->told_exit = true;
    tell_event(c, "exited");
}

void command_forget(struct keeper_command *c)
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
    if (c->exited || c->started)
        tell_exit_event(c);
    free(c->told);
    free(c->arguments);
    command_denials_free(c->denials);
    loop_free_later(&k->loop, c);
    /* One that serves files may have gone since nobody asked it anything for so long. */
    bool silent = c->flags & EXEC_FILES && c->exited && c->report.signal == 0 &&
                  c->report.exit_code == FILES_EXIT_SILENT;
    ending_active_before(k, silent ? c->timeout_us : 0);
    stops_check(k);
}

static void tell_exit(struct keeper_command *c, struct writer *w)
{
    struct exit_report x = c->report;

    x.reason = exit_reason_for(x.reason, c->connection->minor);
    exit_report_encode(w, &x);
    field_put_u32(w, TAG_COMMAND_NUMBER, c->number);
    if (c->keeper->policy_generation > 1)
        field_put_u32(w, TAG_POLICY_GENERATION, c->keeper->policy_generation);
    uint64_t left = ending_left_us(c->keeper);
    if (left != UINT64_MAX)
        field_put_u64(w, TAG_LEFT_US, left);
    command_denials_encode(w, c->denials);
    connection_send(c->connection, MSG_EXITED, c->id, w, -EBADF);
}

static void tell_exit_with_denials(struct keeper_command *c)
{
    size_t size = EXIT_BYTES + command_denials_size(c->denials);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    tell_exit(c, &w); /* without memory its client is dropped */
}

void command_finish(struct keeper_command *c)
{
    uint8_t buf[EXIT_BYTES];
    struct writer w = writer_over(buf, sizeof buf);

    if (c->connection && !(c->flags & EXEC_FILES)) {
        if (c->denials)
            tell_exit_with_denials(c);
        else
            tell_exit(c, &w);
    }
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

void command_kill(struct keeper_command *c)
{
    if (c->killing || c->exited)
        return;
    c->killing = true;
    c->timeout.due = kill_overdue;
    loop_at(&c->keeper->loop, &c->timeout, clock_after_us(LIMIT_KILL_US));
    if (keeper_tell_init(c->keeper, MSG_KILL, c->number, NULL, 0, NULL, 0) < 0)
        keeper_end(c->keeper, ENDED_ERROR);
}

static int timeout_due(struct loop *l, struct loop_timer *t)
{
    struct keeper_command *c = t->owner;

    (void)l;
    c->timed_out = true;
    command_kill(c);
    return 0;
}

/* The end of the lifetime comes before a later timeout, and tells its own reason. */
static void apply_timeout(struct keeper_command *c)
{
    uint64_t left = ending_left_us(c->keeper), run = clock_now_us() - c->since_us;
    uint64_t most = left < UINT64_MAX - run ? left + run : UINT64_MAX;

    c->applied_us = c->timeout_us < most ? c->timeout_us : most;
}

void commands_extended(struct keeper *k)
{
    for (struct keeper_command *c = k->commands; c; c = c->next)
        apply_timeout(c);
}

void command_begin_timeout(struct keeper_command *c)
{
    c->since_us = clock_now_us();
    apply_timeout(c);
    if (c->timeout_us > 0 && !c->killing)
        loop_at(&c->keeper->loop, &c->timeout, clock_after_us(c->timeout_us));
}

/* What `ps` shows of the arguments: the first ones, as far as there is room for them whole. */
static int keep_arguments(struct keeper_command *c, const struct exec_request *x)
{
    size_t bytes = 0, n = 0;

    for (; n < x->n_argv && n < COMMAND_ARGS_MAX; n++) {
        size_t len = strlen(x->argv[n]) + 1;

        if (bytes + len > COMMAND_ARGS_BYTES_MAX)
            break;
        bytes += len;
    }
    char *p = malloc(bytes + 1);
    if (!p)
        return -ENOMEM;
    c->arguments = p;
    c->n_arguments = n;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(x->argv[i]) + 1;

        memcpy(p, x->argv[i], len);
        p += len;
    }
    return 0;
}

struct keeper_command *command_new(struct connection *connection, uint32_t id,
                                   const struct exec_request *x)
{
    struct keeper *k = connection->keeper;
    struct keeper_command *c = calloc(1, sizeof *c);

    if (!c || keep_arguments(c, x) < 0) {
        free(c);
        return NULL;
    }
    c->keeper = k;
    c->connection = connection;
    c->id = id;
    /* Those that serve files are in no list, and leave no gaps in it. */
    c->number = x->flags & EXEC_FILES ? FILES_NUMBERS | ++k->last_files : ++k->last_number;
    c->flags = x->flags;
    c->timeout_us = x->timeout_us;
    c->started_at_us = clock_epoch_us();
    c->oom_kills = usage_oom_kills(k);
    if (!(x->flags & EXEC_FILES))
        c->told = events_arguments(k, x);
    c->timeout = (struct loop_timer){.name = "timeout", .owner = c, .due = timeout_due};
    streams_init(&c->streams, c);
    c->next = k->commands;
    k->commands = c;
    k->n_commands++;
    ending_active(k);
    return c;
}

void commands_begin(struct keeper *k)
{
    for (struct keeper_command *c = k->commands; c; c = c->next)
        command_begin_timeout(c);
}

void command_signal(struct connection *connection, struct message *m)
{
    const struct keeper_command *c = command_by_id(connection, m->id);
    struct keeper *k = connection->keeper;
    uint32_t signal;

    if (!c || c->exited || c->flags & EXEC_FILES || connection->fenced)
        return; /* it ended meanwhile, is about to, or is none of the client's */
    if (number_decode(m->payload, TAG_SIGNAL, &signal) < 0 || signal == 0 || signal > 64) {
        struct error err = ERROR_INIT;

        (void)error_set(&err, ERROR_USAGE, EINVAL, "there is no such signal");
        connection_refuse(connection, m->id, &err);
        return;
    }
    if (keeper_tell_init(k, MSG_SIGNAL, c->number, m->payload.p, reader_left(&m->payload), NULL,
                         0) < 0)
        keeper_end(k, ENDED_ERROR);
}

void command_cancel(struct connection *connection, struct message *m)
{
    struct keeper_command *c = command_by_id(connection, m->id);

    if (!c || c->exited)
        return; /* it ended meanwhile */
    c->stopped = true;
    command_kill(c);
}

void command_stream(struct connection *connection, struct message *m)
{
    struct keeper_command *c = command_by_id(connection, m->id);
    struct error err = ERROR_INIT;
    struct stream_data x;
    uint16_t rows, columns;
    int r = -EPROTO;

    if (connection->fenced && c && !c->exited && m->type != MSG_CREDIT)
        return; /* it is being killed, and must not hear of this before */
    if (!c || c->exited || !(c->flags & EXEC_IN_BAND)) {
        if (m->type == MSG_INPUT) {
            (void)error_set(&err, ERROR_RECOVERABLE, EPIPE, "the command has exited");
            connection_refuse(connection, m->id, &err);
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
        connection_refuse(connection, m->id, &err);
    }
}

int command_started(struct keeper *k, struct message *m)
{
    struct keeper_command *c = command_by_number(k, m->id);
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    if (!c || c->exited || c->started || number_decode(m->payload, TAG_PID, &c->pid) < 0)
        return -EPROTO;
    if (m->n_fds != (c->flags & EXEC_TTY ? 1u : 0u))
        return -EPROTO;
    c->started = true;
    tell_event(c, "started");
    if (!(c->flags & (EXEC_TTY | EXEC_REPORT_START | EXEC_DETACH)))
        return 0; /* init tells of every start, for `ps` */
    field_put_u32(&w, TAG_PID, c->pid);
    field_put_u32(&w, TAG_COMMAND_NUMBER, c->number);
    if (c->flags & EXEC_IN_BAND && c->flags & EXEC_TTY) {
        if (streams_attach_terminal(&c->streams, message_take_fd(m, 0), c->flags & EXEC_STDIN) < 0)
            return -EPROTO;
        connection_send(c->connection, MSG_STARTED, c->id, &w, -EBADF);
        return 0;
    }
    connection_send(c->connection, MSG_STARTED, c->id, &w, m->n_fds > 0 ? m->fds[0] : -EBADF);
    if (c->flags & EXEC_DETACH)
        c->connection = NULL; /* from now on it is nobody's */
    return 0;
}

bool command_may_have_tried(const struct keeper_command *c)
{
    return !(c->flags & EXEC_FILES) && (!c->exited || c->sync != 0);
}

/* All that there is to tell of it is known. */
static void command_told(struct keeper_command *c)
{
    c->sync = 0;
    loop_at(&c->keeper->loop, &c->timeout, CLOCK_NEVER);
    tell_exit_event(c);
    if (c->last) {
        keeper_egress_finish(c->keeper);
        keeper_end(c->keeper, ENDED_DESTROYED); /* which reports it when nothing is left */
    } else if (c->flags & EXEC_IN_BAND && c->connection) {
        streams_drain(&c->streams);
    } else {
        command_finish(c);
    }
}

/* An egress process that lives and does not answer: the command's end is told without. */
static int sync_overdue(struct loop *l, struct loop_timer *t)
{
    (void)l;
    command_told(t->owner);
    return 0;
}

/* Its first process is gone, and if it was killed, all others are too. What it tried last may
 * still be on its way from egress. */
static void command_over(struct keeper_command *c)
{
    struct keeper *k = c->keeper;

    loop_at(&k->loop, &c->timeout, CLOCK_NEVER);
    if (!(c->flags & EXEC_FILES))
        c->sync = keeper_egress_sync(k);
    if (c->sync == 0) {
        command_told(c);
        return;
    }
    c->timeout.due = sync_overdue;
    loop_at(&k->loop, &c->timeout, clock_after_us(SYNC_US));
}

void commands_synced(struct keeper *k, uint32_t sync)
{
    struct keeper_command *next;

    for (struct keeper_command *c = k->commands; c && k->state != KEEPER_ENDING; c = next) {
        next = c->next;
        if (sync != 0 && c->sync == sync)
            command_told(c);
    }
}

bool commands_end_soon(const struct keeper *k)
{
    for (const struct keeper_command *c = k->commands; c; c = c->next)
        if (c->last)
            return true;
    return false;
}

int command_exited(struct keeper *k, struct message *m)
{
    struct keeper_command *c = command_by_number(k, m->id);
    struct exit_report x;

    if (!c || c->exited || exit_report_decode(m->payload, &x) < 0)
        return -EPROTO;
    c->exited = true;
    c->report = x;
    if (x.interpreter) {
        (void)snprintf(c->interpreter, sizeof c->interpreter, "%s", x.interpreter);
        c->report.interpreter = c->interpreter;
    }
    c->report.timeout_us = c->applied_us;
    if (c->timed_out || c->stopped)
        c->report.reason = c->timed_out ? REASON_TIMEOUT : REASON_KILLED;
    else if (usage_is_oom(k, c->oom_kills, &x))
        c->report.reason = REASON_OOM;
    if (x.left_empty) {
        if (!(c->flags & EXEC_LAST))
            return -EPROTO;
        c->last = true;
        command_over(c);
        return 0;
    }
    if (!c->killing) /* otherwise reported when init says that all of it is dead */
        command_over(c);
    return 0;
}

int command_killed(struct keeper *k, struct message *m)
{
    struct keeper_command *c = command_by_number(k, m->id);
    uint32_t error;

    if (m->id == 0)
        return lease_rest_killed(k, m);
    if (number_decode(m->payload, TAG_ERROR_CODE, &error) < 0)
        return -EPROTO;
    if (!c || !c->killing) /* nobody asked for it */
        return -EPROTO;
    if (error != 0) {
        keeper_end(k, ENDED_ERROR);
        return 0;
    }
    if (!c->exited)
        return -EPROTO; /* its first process was reaped before this was sent */
    c->killed = true;
    command_over(c);
    stops_check(k); /* its client may take its last output later */
    lease_settle(k);
    return 0;
}

void commands_orphan(struct keeper *k, const struct connection *gone)
{
    struct keeper_command *next;

    for (struct keeper_command *c = k->commands; c; c = next) {
        next = c->next;
        if (c->connection != gone)
            continue;
        c->connection = NULL;
        streams_done(&c->streams);
        if (c->last) /* the sandbox ends in a moment, and tells that to the others */
            continue;
        if (c->exited && (!c->killing || (c->killed && c->sync == 0)))
            command_forget(c); /* only what there is to tell was still on the way */
        else if (c->killing)   /* it is waited for as long as it was before */
            continue;
        else if (c->flags & EXEC_FILES) /* its client's end is its own: it tidies up, and goes */
            loop_at(&k->loop, &c->timeout, clock_after_us(FILES_TIDY_US));
        else if (!(c->flags & EXEC_DETACH) && k->state != KEEPER_ENDING)
            command_kill(c);
        if (k->state == KEEPER_ENDING) /* init is gone, and with the sandbox all commands */
            return;
    }
}

void commands_abandon(struct keeper *k, enum exit_reason reason)
{
    while (k->commands) {
        struct keeper_command *c = k->commands;

        if (!c->exited) {
            c->report = (struct exit_report){.signal = SIGKILL, .timeout_us = c->applied_us};
            c->report.wall_us = c->since_us > 0 ? clock_now_us() - c->since_us : 0;
            c->report.reason = c->timed_out ? REASON_TIMEOUT : reason;
        }
        command_finish(c);
    }
}
