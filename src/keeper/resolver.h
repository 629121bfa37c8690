/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting `resolve`, the process that looks names up outside (wire/resolve.h, src/resolve). It is
 * a program of its own, carried inside atoll, since the host's way to look a name up (getaddrinfo,
 * nsswitch.conf) loads shared libraries, and atoll is one static program.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

struct spec;

/**
 * resolver_start() - start it for the sandbox of @spec
 * @ret_pid_fd: owned by the caller; readable when the process has ended
 * @ret_fd:     owned by the caller: a non-blocking SOCK_SEQPACKET socket to it
 *
 * It has an empty environment, the descriptors 0 to 3, and nobody's ids if the caller is the host's
 * root; it ends when the keeper does, and when the other end of @ret_fd is closed. Returns when the
 * program has been executed. Return: 0, or a negative errno with a terminal error.
 */
int resolver_start(const struct spec *spec, pid_t *ret_pid, int *ret_pid_fd, int *ret_fd,
                   struct error *err);

/**
 * resolver_explain() - what it means that the process has ended by itself
 * @status: of waitpid(2)
 *
 * Return: a negative errno with a terminal error; a status of 127 is the dynamic loader's, when
 * the host's C library is not the one that the program needs.
 */
int resolver_explain(int status, struct error *err);
