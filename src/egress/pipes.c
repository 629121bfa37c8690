/* SPDX-License-Identifier: Apache-2.0 */
/* A stock of pipes to splice through. */
#include "egress/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

int pipes_take(struct pipes *p, struct pipe_ends *ret)
{
    int ends[2], size;

    if (p->n_idle > 0) {
        *ret = p->idle[--p->n_idle]; /* the one used last, whose pages are warm */
        return 0;
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    size = fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    if (size < 0) /* EPERM: the user's pages are used up, and what it has must do */
        size = fcntl(ends[1], F_GETPIPE_SZ);
    *ret =
        (struct pipe_ends){.in = ends[1], .out = ends[0], .size = size > 0 ? (size_t)size : 4096};
    return 0;
}

static void close_both(struct pipe_ends *pipe)
{
    fd_closep(&pipe->in);
    fd_closep(&pipe->out);
}

void pipes_give(struct pipes *p, struct pipe_ends *pipe, bool empty)
{
    /* A small pipe is not kept: by the next time there may be room for a large one. */
    if (empty && pipe->size >= PIPE_BYTES && p->n_idle < PIPES_IDLE_MAX)
        p->idle[p->n_idle++] = *pipe;
    else
        close_both(pipe);
    *pipe = (struct pipe_ends){.in = -EBADF, .out = -EBADF};
}

void pipes_done(struct pipes *p)
{
    while (p->n_idle > 0)
        close_both(&p->idle[--p->n_idle]);
}
