/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: the caller's end of the sandbox protocol. Requests are sent without waiting, several
 * in a row if one likes; what the sandbox tells comes one by one from session_next().
 */
#pragma once

#include "base/error.h"
#include "core/channel.h"
#include "core/spec.h"
#include "wire/control.h"

struct session {
    struct channel channel;
    pid_t keeper; /* our child; 0: none */
    uint32_t last_id;
};

/* What a sandbox tells. Which fields hold something depends on the type. */
struct session_event {
    uint16_t type;             /* enum message_type */
    uint32_t id;               /* of the request or command it is about */
    struct exit_report exit;   /* MSG_EXITED */
    struct step_report step;   /* MSG_STEP */
    struct stream_data stream; /* MSG_OUTPUT, MSG_CREDIT */
    struct error error;        /* MSG_ERROR */
    uint32_t ended_by;         /* MSG_ENDED */
    int fd;                    /* MSG_STARTED with a terminal: owned by the caller; else -EBADF */
};

/**
 * session_start() - start a keeper as a child process and greet it
 *
 * Forks: meant for small programs. Return: 0, or a negative errno with an error.
 */
int session_start(struct session *s, struct error *err);

/** session_create() - ask for the sandbox; answered by MSG_CREATED or MSG_ERROR */
int session_create(struct session *s, const struct spec *spec, struct error *err);

/**
 * session_exec() - start a command; may be sent before MSG_CREATED came
 * @fds:    borrowed; stdin if EXEC_STDIN, stdout, stderr; none with a terminal
 * @ret_id: by which events and later requests name it
 */
int session_exec(struct session *s, const struct exec_request *x, const int *fds, size_t n_fds,
                 uint32_t *ret_id, struct error *err);

/** session_signal() - send @signal to the process group of command @id; 0 or a negative errno */
int session_signal(struct session *s, uint32_t id, int signal);

/** session_destroy() - ask for the end; answered by MSG_ENDED. 0 or a negative errno */
int session_destroy(struct session *s);

/**
 * session_next() - the next thing the sandbox tells
 *
 * Never blocks. Views in @ret live until the next call. Return: 1; 0: nothing now; -EPIPE: the
 * keeper is gone; -EPROTO: it sends what is no message.
 */
int session_next(struct session *s, struct session_event *ret);

/**
 * session_end() - close the connection and wait until the keeper is gone
 *
 * A sandbox that still stands is ended by that. Blocks until nothing of it is left.
 */
void session_end(struct session *s);
