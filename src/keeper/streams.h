/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-band form of a command's streams: the keeper holds the pipes or the terminal, and bytes
 * travel as INPUT and OUTPUT messages under credit, so that neither side needs more memory than a
 * window. (In the other form the caller passes descriptors and the keeper is not on the data path.)
 */
#pragma once

#include "base/loop.h"
#include "core/channel.h"
#include "wire/control.h"

struct keeper_command;

/* One direction of one stream. */
struct output {
    struct loop_source source;
    struct streams *owner;
    enum stream stream;
    int fd; /* owned; -EBADF when it has ended */
    uint32_t credit;
    uint64_t due; /* bytes of the ended command that are still to be sent */
};

struct streams {
    struct keeper_command *command;
    struct output outputs[2]; /* stdout and stderr; a terminal uses the first */
    struct loop_source input_source;
    int input_fd;    /* owned */
    int terminal_fd; /* owned, beside outputs[0].fd: closing the last one hangs up, see streams.c */
    uint8_t *input;
    size_t input_from, input_to; /* bytes that wait to be written */
    bool input_ends;
    struct loop_timer drain;
    bool draining;
    uint64_t drain_until_us;
};

/** streams_init() - no streams; streams_done() closes all and frees */
void streams_init(struct streams *s, struct keeper_command *c);
void streams_done(struct streams *s);

/**
 * streams_open_pipes() - pipes for a command without a terminal
 * @ret_fds: what the command gets: stdin if @with_input, stdout, stderr; owned by the caller
 *
 * Return: how many, or a negative errno.
 */
int streams_open_pipes(struct streams *s, bool with_input, int ret_fds[static 3]);

/** streams_attach_terminal() - use @master, which is taken, for both directions; 0 or -errno */
int streams_attach_terminal(struct streams *s, int master, bool with_input);

/** streams_input() - bytes for stdin; none: end of input. 0, or -ENOBUFS over the window */
int streams_input(struct streams *s, const uint8_t *data, size_t len);

/** streams_credit() - the caller takes @credit bytes more of @stream; 0 or -EPROTO */
int streams_credit(struct streams *s, uint32_t stream, uint32_t credit);

/** streams_resize() - the terminal's size; harmless without one */
void streams_resize(struct streams *s, uint16_t rows, uint16_t columns);

/**
 * streams_drain() - the command has ended: send what is left, then call command_finish()
 *
 * A process that the command left behind may hold a stream open; after a short silence the rest is
 * given up.
 */
void streams_drain(struct streams *s);
