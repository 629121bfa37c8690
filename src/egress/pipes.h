/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes that bytes are spliced through. A direction of a connection has one only while bytes are in
 * it; idle ones wait here. The kernel lets an ordinary user have 16,384 pages in pipes, then
 * fcntl(2) F_SETPIPE_SZ fails and new pipes are small (pipe(7)): that is slower, and works.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PIPE_BYTES = 256 * 1024, PIPES_IDLE_MAX = 32 };

struct pipe_ends {
    int in, out; /* in: to write to; out: to read from */
    size_t size; /* that the kernel gave it */
};

struct pipes {
    struct pipe_ends idle[PIPES_IDLE_MAX];
    size_t n_idle;
};

/** pipes_take() - an empty pipe, owned by the caller until pipes_give(); 0 or -errno */
int pipes_take(struct pipes *p, struct pipe_ends *ret);

/** pipes_give() - back; @empty: nothing is in it, so it may be used again */
void pipes_give(struct pipes *p, struct pipe_ends *pipe, bool empty);
void pipes_done(struct pipes *p);
