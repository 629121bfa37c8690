/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command in one sandbox of its own: create, run, drain, destroy. The caller's streams are
 * pumped to and from pipes, so that the command never holds a descriptor of the caller's.
 */
#pragma once

#include "client/pump.h"
#include "client/session.h"

struct run_request {
    const struct spec *spec;  /* borrowed */
    struct exec_request exec; /* argv, timeout, size; flags are set from the next two */
    bool interactive;         /* feed stdin */
    bool tty;
    /* Called for each set-up step; may be NULL. */
    void (*step)(void *arg, const struct step_report *step);
    void (*started)(void *arg); /* the terminal is there: go raw now */
    void *arg;
    int terminal_fd; /* whose window size the terminal inside follows; -EBADF: none */
};

struct run_result {
    struct exit_report exit; /* without its interpreter, which is below */
    char interpreter[INTERPRETER_BYTES_MAX + 1];
    uint32_t ended_by;             /* enum ended_by */
    int output_error;              /* errno of writing the caller's own stdout or stderr; 0: none */
    int hung_up_by;                /* the signal that ended the run from outside, or 0 */
    uint64_t started_us, ended_us; /* microseconds since the epoch */
};

/**
 * run_command() - carry out @request
 *
 * Blocks until the command has ended, its output is delivered and nothing of the sandbox is left.
 * SIGINT, SIGTERM and SIGQUIT go to the command (the third one ends the sandbox instead), SIGHUP
 * ends the sandbox; the process's signal mask is left as it needs it. SIGPIPE must be ignored.
 * Return: 0 with @ret set, also when the command failed; a negative errno with an error when the
 * sandbox could not be made or was lost.
 */
int run_command(const struct run_request *request, struct run_result *ret, struct error *err);
