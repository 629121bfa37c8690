/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of one sandbox, as its keeper follows them: timeout, streams, report. */
#pragma once

#include "keeper/keeper.h"
#include "keeper/streams.h"

struct keeper_command {
    struct keeper_command *next;
    struct keeper *keeper;
    uint32_t id;
    uint32_t flags; /* enum exec_flags */
    uint64_t timeout_us;
    struct loop_timer timeout;
    bool timed_out;
    bool started; /* STARTED came */
    bool exited;  /* only its output is still on the way */
    struct exit_report report;
    char interpreter[INTERPRETER_BYTES_MAX + 1];
    struct streams streams; /* in-band form only */
};

/** command_by_id() - a command that has not been reported as ended, or NULL */
struct keeper_command *command_by_id(struct keeper *k, uint32_t id);

/** command_start() - MSG_EXEC of the caller: check, complete the environment, pass on to init */
void command_start(struct keeper *k, struct message *m);

/** commands_begin() - the sandbox is there: what was asked before has only now begun to run */
void commands_begin(struct keeper *k);

/** command_signal() - MSG_SIGNAL of the caller */
void command_signal(struct keeper *k, struct message *m);

/* What init tells; each returns 0, or -EPROTO for what a sound init would not send. */
int command_started(struct keeper *k, struct message *m);
int command_exited(struct keeper *k, struct message *m);
int command_killed(struct keeper *k, struct message *m);

/** command_finish() - send EXITED and forget the command; called when its streams are drained */
void command_finish(struct keeper_command *c);

/** commands_abandon() - report every command as ended by @reason; the sandbox is over */
void commands_abandon(struct keeper *k, enum exit_reason reason);
