/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of one sandbox, as its keeper follows them: timeout, streams, report. */
#pragma once

#include "keeper/command_denials.h"
#include "keeper/connection.h"
#include "keeper/streams.h"
#include "wire/sandbox_info.h"

struct keeper_command {
    struct keeper_command *next;
    struct keeper *keeper;
    struct connection *connection; /* whose it is; NULL: detached, or its client has gone */
    uint32_t id;                   /* the client's name for it */
    uint32_t number;               /* init's, and that of `ps` and `kill`; unique in the sandbox */
    uint32_t flags;                /* enum exec_flags */
    uint32_t pid;                  /* inside; 0: not known */
    uint64_t started_at_us;        /* since the epoch */
    uint64_t timeout_us;           /* as asked for; 0: none */
    uint64_t since_us;             /* CLOCK_MONOTONIC: from when on it is counted */
    uint64_t applied_us;           /* less than timeout_us, when the lifetime ends before */
    struct loop_timer timeout;
    bool timed_out, stopped; /* why it is being killed */
    bool killing;            /* KILL was sent: its end is told when KILLED has come */
    bool killed;             /* KILLED came: none of its processes is left */
    bool started;            /* STARTED came */
    bool exited;             /* only its output is still on the way */
    uint64_t oom_kills;      /* usage_oom_kills() when it started */
    uint32_t sync;           /* egress was asked to tell what it refused; 0: it was not, or has */
    bool last;               /* it left nothing behind, and the sandbox ends when sync is over */
    struct command_denials *denials; /* refused since it started; owned */
    struct exit_report report;
    char interpreter[INTERPRETER_BYTES_MAX + 1];
    char *told;      /* what its first event will show: events_arguments(); owned; NULL: it has */
    bool told_exit;  /* its last event is written */
    char *arguments; /* NUL-separated, n_arguments of them; for `ps`; owned */
    size_t n_arguments;
    struct streams streams; /* in-band form only */
};

/* --- command_start.c --- */

/** command_start() - EXEC of a client: check, complete the environment, pass on to init */
void command_start(struct connection *c, struct message *m);

/** command_start_files() - FILES of a client: a process inside that serves file operations */
void command_start_files(struct connection *c, struct message *m);

/* --- command.c --- */

/** command_by_id() - by its client's name for it; NULL: there is none */
struct keeper_command *command_by_id(const struct connection *connection, uint32_t id);

/** command_by_number() - by init's; NULL: there is none */
struct keeper_command *command_by_number(const struct keeper *k, uint32_t number);

/**
 * command_new() - one that is about to be asked of init
 * @id: as its client calls it
 * @x:  of which a copy is kept of what `ps` and events show
 *
 * Return: NULL without memory.
 */
struct keeper_command *command_new(struct connection *connection, uint32_t id,
                                   const struct exec_request *x);

/** command_forget() - it has ended, or never began; nobody is told */
void command_forget(struct keeper_command *c);

/** command_begin_timeout() - it runs from now on */
void command_begin_timeout(struct keeper_command *c);

/** commands_begin() - the sandbox is there: what was asked before has only now begun to run */
void commands_begin(struct keeper *k);

/** commands_extended() - the lifetime has changed, and with it what is applied to those that run */
void commands_extended(struct keeper *k);

/** command_signal() - SIGNAL of a client */
void command_signal(struct connection *c, struct message *m);

/** command_cancel() - CANCEL of a client: all of its command is killed; EXITED tells of that */
void command_cancel(struct connection *c, struct message *m);

/** command_stream() - RESIZE, INPUT, CREDIT of a client */
void command_stream(struct connection *c, struct message *m);

/* What init tells; each returns 0, or -EPROTO for what a sound init would not send. */
int command_started(struct keeper *k, struct message *m);
int command_exited(struct keeper *k, struct message *m);
int command_killed(struct keeper *k, struct message *m);

/** command_may_have_tried() - whether what egress has refused just now may be of this command */
bool command_may_have_tried(const struct keeper_command *c);

/** commands_synced() - egress has told all that it refused until keeper_egress_sync() gave @sync */
void commands_synced(struct keeper *k, uint32_t sync);

/**
 * commands_end_soon() - whether the sandbox ends anyway, once egress has told of the last command
 *
 * Then the end of its process 1 is no fault.
 */
bool commands_end_soon(const struct keeper *k);

/** command_kill() - have init end all of it; its report follows */
void command_kill(struct keeper_command *c);

/** command_finish() - send EXITED and forget the command; called when its streams are drained */
void command_finish(struct keeper_command *c);

/** commands_orphan() - client @gone has left: its commands are killed, but for detached ones */
void commands_orphan(struct keeper *k, const struct connection *gone);

/** commands_abandon() - report every command as ended by @reason; the sandbox is over */
void commands_abandon(struct keeper *k, enum exit_reason reason);

/* --- stop.c: STOP --- */

/** commands_stop() - STOP of a client: kill one command or all, and tell when they are gone */
void commands_stop(struct connection *c, struct message *m);

/** stops_check() - a command has ended: answer the requests that waited for it */
void stops_check(struct keeper *k);

/** stops_forget() - client @gone has left; stops_done() - free all */
void stops_forget(struct keeper *k, const struct connection *gone);
void stops_done(struct keeper *k);
