/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend program's end of the sandbox protocol, behind include/atoll_backend.h: one client on
 * two byte streams, at most one sandbox, its commands and the requests that wait for an answer.
 *
 * The client is not trusted: what it sends is read by src/wire/ alone, and each list and buffer
 * here has a ceiling. The backend is trusted to keep the rules of the public header; what can be
 * checked of them is asserted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/channel.h"
#include "wire/control.h"
#include "wire/files.h"

struct atoll_backend;
struct atoll_server;
struct backend_watch;
struct backend_timer;
struct sandbox_info;
struct spec;

enum {
    COMMANDS_MAX = 1024,                 /* running at once */
    REPLIES_MAX = 1024,                  /* requests that wait */
    COLLECTED_MAX = 256 * 1024 * 1024,   /* bytes of all files that are being written */
    LISTING_MAX = 64 * 1024 * 1024,      /* bytes of one list */
    QUEUE_SOFT = CHANNEL_QUEUE_MAX / 2,  /* above it nothing that can wait is sent */
    CHUNK_BYTES = FRAME_PAYLOAD_MAX - 64 /* DATA of one OUTPUT that is one frame */
};

enum phase {
    PHASE_NEW,     /* no sandbox yet */
    PHASE_MAKING,  /* CREATE or OPEN waits for the backend; nothing further is read */
    PHASE_RUNNING, /* there is one */
    PHASE_ENDING,  /* DESTROY waits for the backend; nothing further is read */
    PHASE_ENDED,   /* ENDED is said */
};

/* A request that waits for its answer, or an answer that waits for the client. */
struct atoll_reply {
    struct atoll_server *server;
    struct atoll_reply *next;
    uint16_t type; /* of the request: enum message_type */
    uint32_t id;
    bool asked;    /* the backend has it, and will answer */
    bool dropped;  /* cancelled: what the backend answers is thrown away */
    bool answered; /* the backend is through; the rest of @data is to be sent */
    bool overflow; /* a list too long to be kept */

    uint32_t number; /* STOP: of the command; 0: all */

    char *path; /* file requests: owned */
    uint64_t offset, length, max_bytes;
    uint32_t mode;
    bool input_ended; /* WRITE: the content is complete */

    uint8_t *data; /* WRITE: collected; READ: content; LIST, ENUMERATE: messages, see reply.c */
    size_t size, capacity, sent, last;
    uint32_t credit; /* READ: bytes that the client takes */
};

/* A running command. */
struct atoll_stream {
    struct atoll_server *server;
    struct atoll_stream *next;
    uint32_t id, number, pid;
    uint32_t flags; /* enum exec_flags */
    uint64_t timeout_us, started_at_us, started_us;
    char *arguments; /* owned: NUL-terminated texts in a row, cut when long */
    size_t n_arguments;
    void *data;     /* the backend's */
    bool over;      /* reported; freed when the batch of events is done */
    bool told;      /* STARTED is sent */
    bool stopped;   /* STOP is meant for it */
    bool stop_told; /* to the backend */

    struct stream_output {
        uint32_t credit;
        bool waiting, ended; /* the backend was told to wait for `room` */
    } out[2];

    uint8_t *input; /* owned; STREAM_WINDOW_BYTES once there is any */
    size_t input_from, input_to;
    uint32_t input_credit; /* what the client may still send */
    bool input_ended;      /* by the client */
    bool input_closed;     /* the backend knows */
    bool offering;
};

struct atoll_server {
    const struct atoll_backend *backend;
    void *state;
    struct loop loop;
    struct channel channel;
    struct loop_source in, out;
    struct loop_timer more; /* messages that are here already are still to be served */
    struct loop_timer patience;
    bool greeted;
    uint32_t minor; /* of the client's version, once it has greeted */
    bool gone;      /* the client */
    bool broken;    /* it did not keep to the protocol */
    enum phase phase;
    uint32_t create_id;
    void *sandbox; /* the backend's */

    struct atoll_stream *streams;
    size_t n_streams;
    uint32_t last_number;

    struct atoll_reply *replies;
    size_t n_replies, collected;

    struct backend_watch *watches;
    struct backend_timer *timers;
};

struct error;

/* serve.c */

/** server_send() - one message; dropped when the client has gone */
void server_send(struct atoll_server *s, uint16_t type, uint32_t id, const struct writer *w);

/** server_refuse() - ERROR for request @id */
void server_refuse(struct atoll_server *s, uint32_t id, const struct error *err);

/** server_refuse_text() - the same from its parts; @remedy may be NULL */
void server_refuse_text(struct atoll_server *s, uint32_t id, int cls, int code, const char *message,
                        const char *remedy);

/** server_lacks() - ERROR with ENOSYS: this backend has no such operation */
void server_lacks(struct atoll_server *s, uint32_t id, const char *what);

/** server_client_lost() - the connection is no more */
void server_client_lost(struct atoll_server *s);

/** server_resume() - read requests again; they are served from the loop, not from here */
void server_resume(struct atoll_server *s);

/** server_room() - bytes that may be queued for the client without being a burden */
size_t server_room(const struct atoll_server *s);

/** server_id_free() - whether @id names no request or command that is under way */
bool server_id_free(const struct atoll_server *s, uint32_t id);

/* sandbox.c: CREATE to ENUMERATE. Each is given a message of that type. */
void sandbox_create(struct atoll_server *s, const struct message *m);
void sandbox_open(struct atoll_server *s, const struct message *m);
void sandbox_destroy(struct atoll_server *s, const struct message *m);
void sandbox_inspect(struct atoll_server *s, const struct message *m);
void sandbox_enumerate(struct atoll_server *s, const struct message *m);
void sandbox_describe(struct atoll_server *s, const struct message *m);

/** sandbox_ended() - report the commands that are left, then ENDED; the connection closes */
void sandbox_ended(struct atoll_server *s, uint32_t reason, uint32_t ended_by);

/* tags.c: TAGS, SET_TAGS */
void tags_read(struct atoll_server *s, const struct message *m);
void tags_write(struct atoll_server *s, const struct message *m);

/** tags_known() - whether the backend has both functions */
bool tags_known(const struct atoll_backend *b);

/** tags_stamp() - @spec gets the tags that its sandbox begins with; 0 or -ENOMEM */
int tags_stamp(struct spec *spec);

/** tags_describe() - who holds a sandbox, as its tags in @x say it; those of atoll go from there */
void tags_describe(struct sandbox_info *x);

/* command.c: EXEC, SIGNAL, RESIZE, STOP, PS */
void command_exec(struct atoll_server *s, const struct message *m);
void command_signal(struct atoll_server *s, const struct message *m);
void command_resize(struct atoll_server *s, const struct message *m);
void command_stop(struct atoll_server *s, const struct message *m);
void command_list(struct atoll_server *s, const struct message *m);

/** command_find() - the running command with request id @id, or NULL */
struct atoll_stream *command_find(const struct atoll_server *s, uint32_t id);

/** command_abandon() - EXITED for one that the backend did not report; frees it */
void command_abandon(struct atoll_stream *c, uint32_t reason);

/** command_free() - without a word */
void command_free(struct atoll_stream *c);

/* stream.c: INPUT and CREDIT of commands */
void stream_input(struct atoll_stream *c, const struct stream_data *x);
void stream_credit(struct atoll_stream *c, const struct stream_data *x);

/** stream_end_outputs() - the end of each output that has not ended */
void stream_end_outputs(struct atoll_stream *c);

/** streams_pump() - the queue has room again: tell those who wait for it */
void streams_pump(struct atoll_server *s);

/* file.c: READ to CANCEL; INPUT and CREDIT of file operations */
void file_read(struct atoll_server *s, const struct message *m);
void file_write(struct atoll_server *s, const struct message *m);
void file_commit(struct atoll_server *s, const struct message *m);
void file_list(struct atoll_server *s, const struct message *m);
void file_stat(struct atoll_server *s, const struct message *m);
void file_cancel(struct atoll_server *s, const struct message *m);
void file_input(struct atoll_reply *r, const struct stream_data *x);
void file_credit(struct atoll_reply *r, const struct stream_data *x);

/* reply.c */

/** reply_new() - a request that waits; NULL when there are too many, and then it is refused */
struct atoll_reply *reply_new(struct atoll_server *s, const struct message *m);

/** reply_find() - the request with @id that is under way, or NULL */
struct atoll_reply *reply_find(const struct atoll_server *s, uint32_t id);

/** reply_free() - forget it, at once */
void reply_free(struct atoll_reply *r);

/** reply_append() - bytes behind its data; 0 or -ENOMEM */
int reply_append(struct atoll_reply *r, const void *data, size_t len);

/** replies_pump() - send what the client takes of answers that are longer than a message */
void replies_pump(struct atoll_server *s);

/* watch.c */

/** watches_done() - stop all watches and timers */
void watches_done(struct atoll_server *s);
