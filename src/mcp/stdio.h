/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stdio transport of MCP: one message on a line, in and out. It knows lines and no messages.
 *
 * Nothing of it blocks: what the client does not take yet waits in a queue, and while that is long
 * no more is read. Descriptors may be pipes, sockets, terminals or files; where they share an open
 * file description with other processes its flags are left alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

#define STDIO_LINE_BYTES_MAX  (UINT64_C(64) << 20) /* a longer line is dropped as it comes */
#define STDIO_QUEUE_BYTES_MAX (UINT64_C(8) << 20)  /* beyond it nothing is read for a while */

struct stdio_events {
    /* A line without its end, not blank; a view until return. */
    void (*line)(void *owner, const char *text, size_t len);
    void (*overlong)(void *owner); /* a line was dropped */
    void (*ended)(void *owner);    /* nothing more will be read; at most once */
    void (*written)(void *owner);  /* all that was to be sent was taken */
    void (*broken)(void *owner);   /* nothing more can be written, queued lines are lost; once */
};

struct stdio_message {
    struct stdio_message *next;
    size_t len, at;
    char *text; /* owned; its line end is in it */
};

struct stdio {
    struct loop *loop;
    const struct stdio_events *events;
    void *owner;
    struct loop_source in, out;
    struct loop_timer again; /* reads on where epoll(7) cannot tell, as from a file */
    int in_fd, out_fd;       /* in: borrowed; out: owned, a duplicate; -EBADF: at its end */
    bool out_socket, out_blocking;
    bool failed; /* something could not be written */
    bool polled, paused, dropping;
    char *buf; /* what came of a line */
    size_t len, room, scanned;
    struct stdio_message *queue, **queue_end;
    uint64_t queued;
};

/**
 * stdio_start() - begin to read
 * @in_fd: borrowed until stdio_stop()
 * @out_fd: duplicated
 *
 * Events come from the loop only, never from within a call of this header. Return: 0 or a negative
 * errno.
 */
int stdio_start(struct stdio *s, struct loop *l, int in_fd, int out_fd,
                const struct stdio_events *events, void *owner);

/** stdio_send() - one message as a line; @text: @len bytes, taken, allocated; it has no line end */
void stdio_send(struct stdio *s, char *text, size_t len);

/** stdio_pending() - bytes that are not written yet; 0 also when nothing can be written any more */
uint64_t stdio_pending(const struct stdio *s);

/** stdio_failed() - whether a message was lost because nobody took it */
bool stdio_failed(const struct stdio *s);

/** stdio_close_input() - read no more; no event tells of it */
void stdio_close_input(struct stdio *s);

/** stdio_stop() - let go of both; what is queued is lost. Harmless on a zeroed one */
void stdio_stop(struct stdio *s);
