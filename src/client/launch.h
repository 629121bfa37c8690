/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the program at the other end of a session: `atoll keeper` for a local sandbox, or the
 * program of another backend. Nothing of the caller's address space is copied for it, however large
 * that is (posix_spawn(3)), and the caller's handling of SIGCHLD is left alone: only this child is
 * ever waited for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A child process of this one. Zeroed with pid_fd -EBADF: none. */
struct child {
    pid_t pid;  /* 0: none */
    int pid_fd; /* owned; -EBADF where nobody needs it */
};

#define CHILD_NONE                                                                                 \
    {                                                                                              \
        .pid_fd = -EBADF                                                                           \
    }

/**
 * launch_keeper() - start a keeper for one local sandbox
 * @program: the atoll program; an absolute path, or NULL for the installed one and, where that is
 *           missing, the first on the PATH
 * @ret_fd:  our end of a SOCK_SEQPACKET socket to it; owned by the caller, non-blocking
 *
 * Return: 0, or a negative errno with an error.
 */
int launch_keeper(const char *program, int *ret_fd, struct child *ret, struct error *err);

/**
 * launch_backend() - start a backend program in a session of its own
 * @program: absolute path
 * @ret_fd:  our end of the byte stream that is its standard input and output; owned, blocking
 *
 * Its standard error is ours. Return: 0, or a negative errno with an error.
 */
int launch_backend(const char *program, int *ret_fd, struct child *ret, struct error *err);

/**
 * child_reap() - collect an ended child, whose pid_fd is closed then
 * @until_us: how long to wait for its end; 0: not at all; CLOCK_NEVER
 *
 * Return: whether it is gone: also when somebody else has collected it.
 */
bool child_reap(struct child *c, uint64_t until_us);

/** child_kill() - SIGKILL to a child that did not end by itself */
void child_kill(const struct child *c);
