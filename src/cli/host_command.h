/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of the host, not of a sandbox, as a child of this program: in a process group of its
 * own, so that all of it can be told to end, and in the foreground of the terminal if this program
 * is.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct host_command {
    pid_t pid;  /* and its process group's; 0: none */
    int status; /* as a shell says it, once it has ended */
    bool ended;
    bool foreground;           /* it has the terminal that was ours */
    sigset_t mask;             /* of the caller: what it begins with */
    struct sigaction pipe_was; /* what SIGPIPE meant to the caller */
};

/** host_command_prepare() - note how signals are taken, before that is changed */
void host_command_prepare(struct host_command *c);

/**
 * host_command_start() - start a program that is found on the PATH
 * @argv: NULL-terminated
 *
 * It has this program's environment and streams, and gets SIGTERM when this program dies. SIGCHLD
 * tells of its end. Return: 0, or a negative errno with an error: -ENOENT when there is no such
 * program.
 */
int host_command_start(struct host_command *c, char *const argv[], struct error *err);

/**
 * host_command_look() - to be called at SIGCHLD: whether it has ended
 *
 * One that was stopped from the terminal stops this program, too, and goes on with it.
 */
bool host_command_look(struct host_command *c);

/** host_command_signal() - to all of its group; harmless when it has ended */
void host_command_signal(const struct host_command *c, int signal);
