/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command in a sandbox. Its streams are pipes on every kind of connection: passed to the
 * keeper where descriptors can be, bridged to in-band streams where not.
 */
#pragma once

#include "client/bridge.h"
#include "client/denials.h"
#include "client/session.h"
#include "core/outcome.h"

struct execution;

struct execution_events {
    /* It runs, or has its terminal, if that was to be told: @terminal is owned by the callee,
     * -EBADF in-band or without one. May be NULL. */
    void (*started)(struct execution *c, int terminal);
    void (*exited)(struct execution *c);                          /* c->exit holds how */
    void (*failed)(struct execution *c, const struct error *err); /* instead of the others */
};

struct execution {
    struct session_request request;
    struct bridge_input in;
    struct bridge_output out[2];               /* stdout, stderr */
    uint32_t flags;                            /* as sent */
    uint32_t number;                           /* in the sandbox; 0: not told */
    uint32_t pid;                              /* inside; 0: not told */
    bool stop_asked, kill_asked, signal_asked; /* STOP, CANCEL; SIGKILL in the place of that */
    bool running;                              /* asked for, and not yet over */
    struct exit_report exit;                   /* without its interpreter, which is below */
    uint64_t left_us;                          /* of the sandbox's lifetime, at its end */
    char interpreter[INTERPRETER_BYTES_MAX + 1];
    struct denials denials; /* refused while it ran; of a sandbox whose backend tells */
    const struct execution_events *events;
    void *owner;
};

/**
 * execution_start() - ask for a command; may be sent before CREATED came
 * @c:   events and owner are set by the caller; it must stay where it is until execution_done()
 * @x:   EXEC_IN_BAND is added where needed
 * @fds: borrowed: stdin if EXEC_STDIN, stdout, and without a terminal stderr; none with
 *       EXEC_DETACH, and none with EXEC_TTY but in-band
 *
 * The session must be watched already if it is in-band. Return: 0, or a negative errno with an
 * error; then no event comes.
 */
int execution_start(struct execution *c, struct session *s, const struct exec_request *x,
                    const int *fds, size_t n_fds, struct error *err);

/** execution_signal() - to its process group; 0 or a negative errno */
int execution_signal(struct execution *c, int signal);

/**
 * execution_stop() - the same, and whatever it left ends with it: then its end is that of all of it
 *
 * A peer that cannot send signals is asked to kill it; one that does not know the latter leaves
 * what the command left. 0 or a negative errno.
 */
int execution_stop(struct execution *c, int signal);

/** execution_resize() - the size of a terminal in-band */
void execution_resize(struct execution *c, uint16_t rows, uint16_t columns);

/**
 * execution_kill() - end every process that it started
 *
 * By a peer that cannot do that, of its process group alone. Its end is told as ever. Return: 0 or
 * a negative errno.
 */
int execution_kill(struct execution *c);

/** execution_delivers() - whether output that has come in-band still waits for a pipe */
bool execution_delivers(const struct execution *c);

/**
 * execution_done() - forget it; one that runs is not ended by that
 *
 * Harmless on a zeroed one, or twice.
 */
void execution_done(struct execution *c);
