/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: the caller's end of the sandbox protocol, over a socket that passes descriptors (a
 * keeper, a connection for file operations) or over a byte stream (a backend program).
 *
 * Requests are embedded in whoever asks. They are sent without waiting, several in a row if one
 * likes; what the peer tells about one comes to its callback, told by its id. A peer that breaks
 * the protocol, ends, or does not greet within its time is lost: every request then fails with the
 * same sentence, which names the peer. What is told of requests that nobody waits for any more is
 * dropped.
 *
 * Nothing here blocks but session_end().
 */
#pragma once

#include "base/error.h"
#include "base/loop.h"
#include "client/launch.h"
#include "core/channel.h"
#include "core/spec.h"
#include "wire/control.h"

struct session;

/* How long a backend program, or the keeper of a sandbox that stands, may take to greet. */
#define SESSION_HELLO_US UINT64_C(10000000)

enum { SESSION_PEER_BYTES = 128 };

struct session_request {
    struct session *session; /* NULL while it is not under way */
    uint32_t id;
    uint16_t type;
    bool later; /* needs 1.1 although its type does not: EXEC_DETACH, a held sandbox */
    struct session_request *next, **link;
    void *owner;
    /*
     * The peer tells something about it. Views in @m live until the return; descriptors that are
     * not taken are closed. It stays under way until session_forget(). Return: 0, or -EPROTO for
     * what cannot be understood; then the session is lost.
     */
    int (*told)(struct session_request *q, struct message *m);
    /* No answer will come: the session is over, or the peer is too old. No longer under way. */
    void (*failed)(struct session_request *q, const struct error *err);
};

enum session_state {
    SESSION_OFF,
    SESSION_GREETING, /* HELLO was sent, not yet received */
    SESSION_OPEN,
    SESSION_OVER, /* ENDED came, or it was lost: session.error says how */
};

struct session {
    enum session_state state;
    struct channel channel;
    struct child child;            /* the keeper or backend program, if we started it */
    char peer[SESSION_PEER_BYTES]; /* "the sandbox's keeper", to begin a sentence in the middle */
    bool in_band;                  /* nothing but bytes can be passed */
    bool backend;                  /* a backend program */
    bool files;        /* a connection for file operations: no HELLO, and it may end at any time */
    uint64_t hello_us; /* SESSION_HELLO_US; 0: no limit */
    uint32_t minor;    /* of the peer, once open */
    uint32_t last_id;
    struct session_request *requests;
    struct loop *loop; /* borrowed; NULL until watched */
    struct loop_source source;
    struct loop_timer timer; /* for HELLO; then for what is left to be done soon */
    int broken;              /* errno of a send that failed; told of by the loop */
    bool ended;              /* ENDED came: nothing of the sandbox is left */
    uint32_t ended_by;       /* enum ended_by */
    struct error error;      /* how it came to be over */
    void *owner;
    void (*greeted)(struct session *s); /* HELLO came; may be NULL */
    void (*over)(struct session *s);    /* after its requests have failed; may be NULL */
    /* Another client has changed the sandbox's network policy; a view. May be NULL. */
    void (*policy_changed)(struct session *s, const struct policy_report *x);
    /* The lease that this connection took, or acted by, is over; the connection is not. May be
     * NULL. */
    void (*lease_lost)(struct session *s);
};

#define SESSION_INIT                                                                               \
    {                                                                                              \
        .channel = {.fd = -EBADF, .out_fd = -EBADF}, .child = CHILD_NONE, .source.fd = -EBADF,     \
    }

/**
 * session_adopt() - speak with a keeper at the other end of @fd, and greet it
 * @fd:    a SOCK_SEQPACKET socket, taken
 * @child: the keeper's pid if it is our child, else 0
 *
 * Return: 0, or a negative errno with an error; then session_end() is still to be called.
 */
int session_adopt(struct session *s, int fd, pid_t child, struct error *err);

/** session_adopt_files() - the same for a connection that FILES_OPENED has brought */
void session_adopt_files(struct session *s, int fd);

/** session_launch() - start a keeper (client/launch.h) and greet it; as session_adopt() */
int session_launch(struct session *s, const char *program, struct error *err);

/** session_connect() - greet the keeper of a held sandbox, by its local id; as session_adopt() */
int session_connect(struct session *s, const char *id, struct error *err);

/**
 * session_backend() - start the program of backend @name, found on the PATH, and greet it
 *
 * SIGPIPE must be ignored. As session_adopt().
 */
int session_backend(struct session *s, const char *name, struct error *err);

/**
 * session_watch() - receive on @l from now on
 *
 * Requests may have been sent before. @s and @l must stay where they are until session_end().
 * Return: 0, or a negative errno with an error.
 */
int session_watch(struct session *s, struct loop *l, struct error *err);

/**
 * session_ask() - send a request
 * @q:   told, failed and owner are set by the caller; it must stay where it is until forgotten
 * @w:   its fields; NULL: none
 * @fds: borrowed; must be none in-band
 *
 * Return: 0; or a negative errno with an error, and @q is not under way: the session is over, the
 * message does not fit, or the peer's version lacks the request. A peer found gone by the sending
 * is told to failed, after what it still said has been read.
 */
int session_ask(struct session *s, struct session_request *q, uint16_t type, const struct writer *w,
                const int *fds, size_t n_fds, struct error *err);

/**
 * session_tell() - send what is not answered: SIGNAL, RESIZE, INPUT, CREDIT, COMMIT, CANCEL
 *
 * Return: 0 or a negative errno; a session that breaks by it is reported lost by the loop.
 */
int session_tell(struct session *s, uint16_t type, uint32_t id, const struct writer *w);

/** session_forget() - take no further interest; harmless when @q is not under way */
void session_forget(struct session_request *q);

/**
 * session_error() - the error that a MSG_ERROR carries, faults of file operations put into words
 *
 * Return: 0 with @ret set, or -EPROTO.
 */
int session_error(const struct message *m, struct error *ret);

/** session_create() - ask for a sandbox; answered by CREATED or ERROR. As session_ask() */
int session_create(struct session *s, struct session_request *q, const struct spec *spec,
                   struct error *err);

/** session_open() - name the sandbox that a backend program is to serve; as session_create() */
int session_open(struct session *s, struct session_request *q, const char *id, struct error *err);

/** session_destroy() - ask for the end, which session.over then reports. 0 or a negative errno */
int session_destroy(struct session *s);

/**
 * session_close() - close the connection; requests that are under way fail
 *
 * An owned sandbox ends by that. The child, if there is one, is the caller's to collect.
 */
void session_close(struct session *s);

/**
 * session_end() - close the connection and wait until the child is gone
 *
 * Blocks until nothing of an owned sandbox is left. A backend program that does not end by itself
 * is killed after a few seconds.
 */
void session_end(struct session *s);
