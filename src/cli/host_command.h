/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of the host, not of a sandbox, as a child of this program.
 *
 * With a controlling terminal it stays in our process group. That is the job that a shell has made
 * of us and of what stands beside us in a pipeline, so that keys, "fg" and "bg" reach all of it;
 * what we tell it, it is told alone. Without one, nobody does job control, and it has a group of
 * its own, so that all of it can be told.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/error.h"

struct host_command {
    pid_t pid;     /* 0: none */
    int status;    /* as a shell says it, once it has ended */
    int not_begun; /* errno of its execution; 0: it went well, or did not come to it */
    bool ended, stopped;
    bool own_group;            /* its process group is its own, and not ours */
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
 * tells of its end. Return: 0, or a negative errno with an error; c->not_begun is set if it is the
 * program that cannot be executed.
 */
int host_command_start(struct host_command *c, char *const argv[], struct error *err);

/**
 * host_command_look() - to be called at SIGCHLD: whether it has ended
 *
 * If it has stopped by itself, and a shell with job control started us, we stop too, so that the
 * shell sees it; at SIGCONT both go on.
 */
bool host_command_look(struct host_command *c);

/**
 * host_command_signal() - to it, and to all of its group if that is its own
 *
 * One that tells it to end also lets it go on, since what is stopped cannot end. Harmless when it
 * has ended.
 */
void host_command_signal(struct host_command *c, int signal);

/** host_command_pass() - pass on a signal that we got, unless it got that itself from a terminal */
void host_command_pass(struct host_command *c, const struct signalfd_siginfo *info);
