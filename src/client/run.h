/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command, attached to the caller's streams, in a sandbox of its own (create, run, drain,
 * destroy) or in one that stands. The streams are pumped to and from pipes, so that the command
 * never holds a descriptor of the caller's.
 */
#pragma once

#include "client/denials.h"
#include "client/pump.h"
#include "client/session.h"

struct run; /* one that is under way */

/* What is still to be done with the sandbox once its command has ended well. */
struct run_finish {
    void *arg;
    /*
     * The command has ended with status 0 and its output is delivered. The sandbox stands until
     * run_finished(), which may come before the return. @id: as the session's peer calls it, a
     * view.
     */
    void (*begin)(void *arg, struct run *r, struct session *s, struct loop *l, const char *id);
    /* The run is over: let go of session and loop. Called once if begin() was. */
    void (*end)(void *arg);
};

struct run_request {
    const struct spec *spec;  /* borrowed; NULL: the session is of a sandbox that stands */
    const char *open_id;      /* with a backend program: which sandbox that is; NULL: as created */
    uint32_t lease;           /* whose generation is presented to a keeper first; 0: none */
    struct exec_request exec; /* argv, timeout, size, user; flags are set from the next three */
    bool interactive;         /* feed stdin */
    bool tty;
    bool detach; /* start it only; it runs on in the sandbox */
    /* Called for each set-up step; may be NULL. */
    void (*step)(void *arg, const struct step_report *step);
    /* A port of the host leads inside, "ADDR:PORT:PORT" with the one that was picked; may be NULL
     */
    void (*published)(void *arg, const char *port);
    void (*started)(void *arg); /* the terminal is there: go raw now */
    void *arg;
    const struct run_finish *finish; /* borrowed; NULL: the sandbox goes with the command */
    int terminal_fd; /* whose window size the terminal inside follows; -EBADF: none */
};

struct run_result {
    struct exit_report exit; /* without its interpreter, which is below */
    char interpreter[INTERPRETER_BYTES_MAX + 1];
    struct denials denials;        /* refused while it ran; run_result_done() */
    uint32_t command;              /* with detach: its number in the sandbox */
    uint32_t ended_by;             /* enum ended_by, of a sandbox of its own */
    int output_error;              /* errno of writing the caller's own stdout or stderr; 0: none */
    int hung_up_by;                /* the signal that ended the run from outside, or 0 */
    uint64_t started_us, ended_us; /* microseconds since the epoch */
};

/**
 * run_command() - carry out @request
 * @s: begun by session_adopt() or one of its kin, not yet watched; ended here in any case
 *
 * Blocks until the command has ended and its output is delivered, and with a sandbox of its own
 * until nothing of that is left. With detach it blocks until the command has started.
 * SIGINT, SIGTERM and SIGQUIT go to the command. The third one, or SIGHUP, ends the sandbox
 * instead, or in one that stands the command with all it has started, by closing the connection.
 * So does any of them once the command has ended.
 * The process's signal mask is left as it needs it. SIGPIPE must be ignored.
 * Return: 0 with @ret set, also when the command failed; a negative errno with an error when the
 * sandbox could not be made, reached, or was lost.
 */
int run_command(struct session *s, const struct run_request *request, struct run_result *ret,
                struct error *err);

/** run_result_done() - free what it owns; harmless on a zeroed one */
void run_result_done(struct run_result *r);

/**
 * run_finished() - what run_finish.begin() began is done
 * @err: NULL: it went well; else the run fails with it
 */
void run_finished(struct run *r, const struct error *err);
