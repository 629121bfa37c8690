/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations on a sandbox. Where descriptors can be passed they go over a connection of their
 * own to a process inside, which is opened when it is first needed; what is asked on one connection
 * is done in that order, so streams of any length have a connection each. In-band they go over the
 * session itself, with bridges for what streams.
 *
 * The process inside may be killed by what runs there. Then what was under way fails with an error
 * that invites another try, and the next operation opens a new connection. It may also have gone
 * since it was not asked for anything for a while; whoever asks then does not notice: what is known
 * not to have reached it is asked on a new connection.
 */
#pragma once

#include "client/bridge.h"
#include "client/session.h"
#include "wire/files.h"

struct file_op;

enum files_state { FILES_CLOSED, FILES_OPENING, FILES_OPEN };

/* One connection. Zeroed with main set: closed. It must stay where it is until files_done(). */
struct files {
    struct session *main; /* borrowed; watched */
    struct session link;  /* unless in-band */
    enum files_state state;
    struct session_request opening;
    struct error refusal; /* FILES_OPENED: why it is only for reading; code 0: it is not */
    struct file_op *waiting, **waiting_tail; /* for the connection to be open */
    struct loop_timer reset; /* closes what has failed, outside of its own callbacks */
};

struct file_op_events {
    /*
     * FILE: the answer to STAT, and to READ. @fd: the open file of a READ, a regular one, owned by
     * the callee; -EBADF for STAT and in-band. A READ in-band goes on until `done`. May be NULL for
     * operations without it.
     */
    void (*info)(struct file_op *op, const struct file_info *info, int fd);
    /* LISTED: some entries (file_entry_next()), a view. Return: 0 or -EPROTO, another negative
     * errno to give up. */
    int (*entries)(struct file_op *op, struct reader message);
    /* It is over and went well; no further event. @message: the fields of DONE, a view */
    void (*done)(struct file_op *op, struct reader message);
    /* It is over and did not; no further event */
    void (*failed)(struct file_op *op, const struct error *err);
};

struct file_op {
    struct session_request request;
    struct files *files;  /* while under way */
    struct file_op *next; /* of those that wait */
    uint16_t type;        /* MSG_READ … */
    uint8_t *message;     /* its fields, as they are sent; owned */
    size_t length;
    int pipe_fd; /* the end that goes to the other side; owned; -EBADF: none */
    bool under_way;
    bool commit;                         /* of a WRITE: wanted, and not yet sent */
    bool committed;                      /* wanted, and perhaps sent */
    bool returned;                       /* while it waits: came back from one that went */
    unsigned tries;                      /* connections that it was asked on in vain */
    bool answered;                       /* READ: FILE came */
    uint64_t range_offset, range_length; /* READ: what was asked for … */
    uint64_t range_left; /* … and in-band, how many bytes of it are still to come */
    struct bridge_output out;
    struct bridge_input in;
    int (*sink)(void *owner, const uint8_t *data, size_t len); /* takes OUTPUT without a pipe */
    const struct file_op_events *events;
    void *owner;
};

/**
 * file_op_start() - ask for an operation
 * @op:      events, owner and, for a READ in-band, sink are set by the caller; it must stay where
 *           it is until its last event or file_op_cancel()
 * @type:    MSG_READ, WRITE, LIST, STAT, PACK, UNPACK
 * @x:       borrowed; the flag FILE_IN_BAND is added where needed
 * @pipe_fd: taken, also on failure: the writing end for PACK, the reading end for UNPACK and a
 *           WRITE that is not inline; for a READ the writing end to use in-band, else unused;
 *           -EBADF: none
 *
 * Return: 0; or a negative errno with an error, and then no event comes.
 */
int file_op_start(struct files *f, struct file_op *op, uint16_t type, const struct file_request *x,
                  int pipe_fd, struct error *err);

/** file_op_commit() - the content of a WRITE is complete, or will be when its pipe ends */
void file_op_commit(struct file_op *op);

/** file_op_cancel() - give it up; no event comes any more. Harmless when it is over */
void file_op_cancel(struct file_op *op);

/**
 * files_done() - close the connection
 *
 * What is under way fails with ECANCELED.
 */
void files_done(struct files *f);
