/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel: messages over one SOCK_SEQPACKET socket, or over a byte stream each way, which carries
 * no descriptors. Frames are put together to messages, large messages are cut to frames, and what
 * the peer cannot take now waits in a bounded queue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "wire/frame.h"

enum { CHANNEL_QUEUE_MAX = 8 * 1024 * 1024 }; /* bytes that may wait to be sent */

struct channel_packet;

struct channel {
    int fd;         /* owned; non-blocking */
    int out_fd;     /* of a stream: where it is written to, owned; may be the number of fd */
    bool stream;    /* bytes, not packets */
    uint8_t *bytes; /* of a stream: read and not yet taken apart */
    size_t bytes_from, bytes_to;
    uint8_t *message; /* frames of the message that is coming in */
    size_t length, capacity;
    struct frame first;
    bool begun;
    int fds[IO_FDS_MAX]; /* descriptors that came with it */
    size_t n_fds;
    struct channel_packet *head, **tail; /* waiting to be sent */
    size_t queued;
};

/* One message that came in. The payload is a view until the next receive; the fds are owned. */
struct message {
    uint16_t type;
    uint32_t id;
    struct reader payload;
    int fds[IO_FDS_MAX];
    size_t n_fds;
};

/** channel_init() - a channel over @fd, which it owns from now on. channel_done() closes it. */
void channel_init(struct channel *c, int fd);

/**
 * channel_init_stream() - a channel over byte streams
 * @in_fd, @out_fd: taken, and made non-blocking; may be the same. Pipes or stream sockets; with
 *                  pipes SIGPIPE must be ignored
 *
 * Return: 0 or a negative errno; the descriptors are taken in either case.
 */
int channel_init_stream(struct channel *c, int in_fd, int out_fd);
void channel_done(struct channel *c);

/**
 * channel_receive() - the next whole message
 *
 * Never blocks. Return: 1 with @ret set; 0 when no whole message is here yet; -EPIPE at the end of
 * the stream; -EPROTO for bytes that are no message, after which the channel is useless; a
 * negative errno. The caller closes what it does not want of @ret->fds: message_close_fds().
 */
int channel_receive(struct channel *c, struct message *ret);

/** message_close_fds() - close every descriptor of @m that was not taken (-EBADF) */
void message_close_fds(struct message *m);

/** message_take_fd() - the descriptor at @i, owned by the caller, or -EBADF */
int message_take_fd(struct message *m, size_t i);

/**
 * channel_send() - one message
 * @payload: borrowed
 * @fds:     borrowed; duplicated into the packet or the queue
 *
 * Never blocks: what cannot be sent now is queued. Return: 0; -ENOBUFS when the queue would pass
 * its ceiling, and then nothing of the message is sent; -EINVAL for descriptors over a stream; a
 * negative errno when the peer is gone.
 */
int channel_send(struct channel *c, uint16_t type, uint32_t id, const void *payload, size_t len,
                 const int *fds, size_t n_fds);

/** channel_flush() - send what waits; 0 when all is sent or the socket is full, or -errno */
int channel_flush(struct channel *c);

/** channel_waiting() - whether something waits to be sent (then watch for EPOLLOUT) */
bool channel_waiting(const struct channel *c);
