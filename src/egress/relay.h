/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes between two connected sockets, both ways at once, each until its end: an end of one
 * direction is passed on as such (shutdown(2)) while the other goes on; a reset becomes a reset.
 * Data is spliced, never copied into this process, unless there is no descriptor for a pipe.
 *
 * The process must ignore SIGPIPE: splice(2) has no flag against it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/loop.h"
#include "core/traffic.h"
#include "egress/pipes.h"

struct relay;

/* What a socket is watched for; EPOLLOUT is added once it was full. */
#define RELAY_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

struct relay_way {         /* one direction */
    struct pipe_ends pipe; /* while in_pipe is not 0 */
    size_t in_pipe;
    uint64_t bytes;
    bool readable, writable; /* as epoll said last; edge-triggered */
    bool hung_up;            /* the reader's side sends no more: its end is there to be read */
    bool ended;              /* and was read */
    bool closed;             /* and was passed on */
};

struct relay {
    struct loop *loop;
    struct pipes *pipes;
    struct traffic *traffic; /* borrowed; where bytes are counted; NULL: nowhere */
    int fds[2]; /* owned; [0] the sandbox's side, [1] the host's; -EBADF once stopped */
    struct loop_source sources[2];
    struct relay_way ways[2]; /* [0] from fds[0] to fds[1] */
    bool paused[2];           /* a direction that something else reads for now */
    bool turning;             /* private, as is error */
    int error;
    void *owner;
    /*
     * For paused directions: something has happened that concerns @way, see its flags; those that
     * turn out to be used up are cleared by the callee. It may stop the relay, resume a way, or set
     * `ended` of one whose bytes have all gone on. Return: 0, or -errno when a socket is broken.
     */
    int (*paused_ready)(struct relay *r, unsigned way);
    /* Both ways are at their end (0), or broken (-errno). To be answered by relay_stop(). */
    void (*over)(struct relay *r, int error);
};

/**
 * relay_start() - begin; loop, pipes, traffic, fds, owner and over are set, the rest zero
 * @r->paused:  with paused_ready; [0] true: the bytes from the sandbox's side are not touched until
 *              relay_resume()
 * @r->sources: one whose `ready` is set is watched already, by r->loop for RELAY_EVENTS; it stays
 *              so, and is the relay's from now on
 *
 * Both sockets are non-blocking and have TCP_NODELAY. Return: 0 or -errno. May call over before it
 * returns.
 */
int relay_start(struct relay *r);

/** relay_resume() - a paused direction goes on; may call over, but not within paused_ready */
void relay_resume(struct relay *r, unsigned way);

/** relay_count() - @n bytes of a way have gone on; for whoever moves those of a paused one */
void relay_count(struct relay *r, unsigned way, size_t n);

/** relay_again() - have the turn of a way come again, after others; its socket is readable */
void relay_again(struct relay *r, unsigned way);

/** relay_want_room() - be told when a way that could not be written may be written again */
void relay_want_room(struct relay *r, unsigned way);

/**
 * relay_stop() - close both sockets; harmless when that was done
 * @reset: with a reset towards both, so that neither takes it for an end (SO_LINGER 0)
 */
void relay_stop(struct relay *r, bool reset);
