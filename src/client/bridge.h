/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bridge carries one in-band stream of a session to or from a pipe, so that whoever holds the
 * pipe's other end need not know how the bytes travel. What a slow pipe does not take waits in a
 * buffer of one window (STREAM_WINDOW_BYTES); the peer gets credit for what was taken, and no more.
 *
 * Over a connection that passes descriptors there is nothing to bridge: the pipe itself is passed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "client/session.h"

/* OUTPUT of the peer on its way into a pipe, or to a function. Zeroed: none. */
struct bridge_output {
    struct session *session;
    uint32_t id, stream;
    int fd; /* owned, non-blocking; -EBADF: bytes go to @sink, or nowhere when its reader is gone */
    struct loop_source source;
    uint8_t *buffer; /* bytes that the pipe has not taken yet */
    size_t from, to;
    uint32_t credit; /* bytes that the peer may still send */
    uint32_t owed;   /* bytes that were taken and not yet given back as credit */
    bool ended;      /* the peer has said so: when the buffer is empty, the pipe is closed */
    bool started;
    int (*sink)(void *owner, const uint8_t *data, size_t len); /* 0 or a negative errno */
    void *owner;
};

/**
 * bridge_output_start() - take the OUTPUT of @stream of request @id
 * @fd:   taken, also on failure, and made non-blocking; a pipe's writing end, or -EBADF
 * @sink: where bytes go without @fd, at once; NULL: they are dropped
 *
 * Return: 0 or a negative errno.
 */
int bridge_output_start(struct bridge_output *b, struct session *s, uint32_t id, uint32_t stream,
                        int fd, int (*sink)(void *, const uint8_t *, size_t), void *owner);

/**
 * bridge_output_data() - bytes came; none: the end of the stream
 *
 * Return: 0; -EPROTO for bytes beyond the credit or behind the end; what the sink said.
 */
int bridge_output_data(struct bridge_output *b, const uint8_t *data, size_t len);

/** bridge_output_end() - nothing more comes: what is here is still delivered */
void bridge_output_end(struct bridge_output *b);

/** bridge_output_busy() - whether bytes still wait for the pipe */
bool bridge_output_busy(const struct bridge_output *b);

/** bridge_output_stop() - close and free; harmless on one that never began */
void bridge_output_stop(struct bridge_output *b);

/* Bytes of a pipe on their way to the peer as INPUT. Zeroed: none. */
struct bridge_input {
    struct session *session;
    uint32_t id;
    int fd; /* owned; -EBADF once its end was passed on */
    struct loop_source source;
    struct loop_timer again; /* while the connection is jammed */
    uint32_t credit;
    bool started;
    bool ended;                      /* the end of input was sent */
    void (*passed_end)(void *owner); /* may be NULL */
    void *owner;
};

/**
 * bridge_input_start() - pass on what can be read from @fd
 * @fd: taken, also on failure, and made non-blocking; a pipe's reading end
 *
 * Return: 0 or a negative errno.
 */
int bridge_input_start(struct bridge_input *b, struct session *s, uint32_t id, int fd,
                       void (*passed_end)(void *), void *owner);

/** bridge_input_credit() - the peer takes so many bytes more; -EPROTO beyond the window */
int bridge_input_credit(struct bridge_input *b, uint32_t credit);

/** bridge_input_stop() - close; harmless on one that never began or has ended */
void bridge_input_stop(struct bridge_input *b);
