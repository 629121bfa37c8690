/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a backend of atoll in C: a program called `atoll-backend-NAME` on the PATH that makes
 * sandboxes some way of its own. atoll starts it and speaks the sandbox protocol
 * (docs/design/protocol.md) with it on standard input and output. This header hides the protocol:
 * fill in the functions of a vtable and call atoll_backend_serve() from main().
 *
 *     int main(void)
 *     {
 *         struct my_state state = {…};
 *         return atoll_backend_serve(&my_backend, &state);
 *     }
 *
 * docs/howto/write_a_backend.md is the way in; examples/backend/c is a whole one.
 *
 * The rules
 * - One process serves one client and at most one sandbox, and ends when the client's connection
 *   closes. Sandboxes that are to outlive it are the backend's own business; owned ones must be
 *   ended in `closed`.
 * - Everything runs in one thread, in one loop. A function must not block longer than the client
 *   may wait for everything else; long work reports back later through its reply object. Watches
 *   and timers (below) are how it hears of its own descriptors.
 * - A request is answered exactly once: with one of the reply functions for it, or
 *   atoll_reply_error(). The reply object is then gone. An answer to a client that has gone, or
 *   that has cancelled the request, is dropped by the library; nobody needs to ask.
 * - While a create, open or destroy waits for its answer, no further request is read.
 * - A setting that cannot be enforced must be refused in `create`, by an error of class
 *   ATOLL_USAGE that names the field; `rules` tells of it beforehand.
 * - Nothing but the protocol may be written to standard output. The library takes care of that:
 *   once atoll_backend_serve() runs, descriptor 1 is standard error, which is for logs, and
 *   descriptor 0 is empty.
 */
#ifndef ATOLL_BACKEND_H
#define ATOLL_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "atoll.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct atoll_server; /* the connection to the client, and the loop; one in a process */
struct atoll_reply;  /* a request that waits for its answer */
struct atoll_stream; /* a running command, seen from its backend */

/*
 * The fields of a spec that a backend may look at. Texts live during the call and are never NULL
 * where the spec has a default; 0 and NULL mean that nothing was asked for.
 */
struct atoll_backend_spec {
    const char *image, *workdir, *hostname, *name, *owner, *egress_enforcement, *resolver, *proxy;
    const char *proxy_credentials; /* a path of the client's host */
    const char *const *env,
        *const *tags, *const *allow_egress_to,
                          *const *allow_egress_to_cidrs,
                              *const *private_cidrs,
                                  *const *add_hosts, /* NAME=ADDR */
                                      *const *publish,
                                          *const *prices; /* NULL-terminated, never NULL */
    bool block_network, owned, user_set;
    uint32_t uid, gid; /* with user_set */
    uint64_t cpu_milli, memory_bytes, disk_bytes, pids, lifetime_us, idle_timeout_us,
        max_cost_micro;
    size_t n_volumes;  /* folders of the client's host, which a remote backend must refuse */
    const char *audit; /* a path of the client's host: a backend that cannot add lines to it has to
                          refuse the field */
};

struct atoll_backend_exec {
    const char *const *argv, *const *env; /* NULL-terminated; env comes on top of the spec's */
    const char *workdir;                  /* NULL: the sandbox's */
    bool wants_stdin, tty, detach, user_set;
    uint32_t uid, gid; /* with user_set */
    uint16_t rows, columns;
    uint64_t timeout_us; /* the backend must end all of the command by then; 0: none */
};

/* Why a command is over, or a sandbox. */
enum atoll_reason {
    ATOLL_EXITED = 0,
    ATOLL_TIMEOUT = 1,
    ATOLL_OOM = 2,
    ATOLL_KILLED = 3,
    ATOLL_LIFETIME = 4,
    ATOLL_FAILED = 5, /* the sandbox or the way to it was lost */
    ATOLL_COST = 6,   /* the sandbox has cost all that it may: backend.max_cost */
};

struct atoll_backend_exit {
    int exit_code;   /* of exit(), when signal is 0 */
    int signal;      /* that ended it */
    int reason;      /* enum atoll_reason */
    int start_errno; /* it did not start, and why; then exit_code is set by the library: 127 for a
                        program that does not exist, otherwise 126 */
    bool workdir_failed; /* with start_errno: it is about the working directory */
    uint64_t wall_us;    /* 0: the library's own measure */
    uint64_t user_us, system_us, peak_rss_bytes; /* 0: not known */
};

/* What becomes of a field of the spec here. Of the rules that fit a spec the first decides; what is
 * asked for and has no rule is refused. */
struct atoll_rule {
    const char *field;  /* "backend.memory"; "backend.image=host": of that value alone */
    int verdict;        /* 0 enforced, 1 accepted without being a ceiling, 2 refused */
    const char *how;    /* how and by whom, or why it is refused */
    const char *remedy; /* with 2: what to change */
};

/*
 * What a backend is. NULL stands for "this backend has no such operation": the client gets an
 * error that says so, and DESCRIBED does not list it.
 */
struct atoll_backend {
    const char *name;               /* as in atoll-backend-NAME */
    const char *version;            /* for logs */
    const char *const *features;    /* NULL-terminated: what the functions below do not tell by
                                       being there: "timeout", "tty", "detach", "owner" */
    const struct atoll_rule *rules; /* ended by one without a field */

    /* The sandbox: an object of the backend's own, which goes with everything below. */
    void (*create)(struct atoll_server *server, const struct atoll_backend_spec *spec,
                   struct atoll_reply *reply); /* atoll_reply_created() */
    void (*open)(struct atoll_server *server, const char *id,
                 struct atoll_reply *reply); /* atoll_reply_created(), or an error ENOENT */
    void (*enumerate)(struct atoll_server *server,
                      struct atoll_reply *reply); /* atoll_reply_info() each, atoll_reply_done() */
    void (*inspect)(struct atoll_server *server, void *sandbox,
                    struct atoll_reply *reply); /* atoll_reply_info() */

    /* End it and all its commands: atoll_reply_done() when nothing is left, also if it was gone
     * already. The streams of commands that have not been reported by then are gone too. */
    void (*destroy)(struct atoll_server *server, void *sandbox, struct atoll_reply *reply);

    /* The client has gone, or the sandbox has ended: called once, last. End the commands that are
     * not detached, and the sandbox if it is owned; may block. @sandbox is NULL when there is none,
     * or none any more; the backend frees it. A create that is not answered is to be given up. */
    void (*closed)(struct atoll_server *server, void *sandbox);

    /* Commands. @stream names the command until atoll_stream_exited(). */
    void (*exec)(struct atoll_server *server, void *sandbox, const struct atoll_backend_exec *x,
                 struct atoll_stream *stream);

    /* Bytes for standard input; @end: nothing follows them. Return: how many were taken. The
     * library keeps the rest until atoll_stream_want_input() asks for it. The end counts as taken
     * with the last byte. */
    size_t (*input)(struct atoll_server *server, struct atoll_stream *stream, const void *data,
                    size_t len, bool end);
    void (*signal)(struct atoll_server *server, struct atoll_stream *stream,
                   int signal); /* to its process group */
    void (*resize)(struct atoll_server *server, struct atoll_stream *stream, uint16_t rows,
                   uint16_t columns);

    /* End the command with all it started, then atoll_stream_exited() as ever. */
    void (*stop)(struct atoll_server *server, struct atoll_stream *stream);

    /* Output of @which that was not taken may go on. */
    void (*room)(struct atoll_server *server, struct atoll_stream *stream, int which);

    /* Files, each with the whole path as the client gave it: bytes without NUL, relative to the
     * working directory unless absolute. Errors: atoll_reply_file_error(). */
    void (*read)(struct atoll_server *server, void *sandbox, const char *path, uint64_t offset,
                 uint64_t length, uint64_t max_bytes,
                 struct atoll_reply *reply); /* atoll_reply_content() */

    /* The whole content, in one step: old content or new, never a part. @mode: permission bits, or
     * ATOLL_KEEP_MODE. atoll_reply_done(). */
    void (*write)(struct atoll_server *server, void *sandbox, const char *path, uint32_t mode,
                  const void *data, size_t len, struct atoll_reply *reply);
    void (*list)(struct atoll_server *server, void *sandbox, const char *path,
                 struct atoll_reply *reply); /* atoll_reply_entry() each, atoll_reply_done() */
    void (*stat)(struct atoll_server *server, void *sandbox, const char *path, bool follow,
                 struct atoll_reply *reply); /* atoll_reply_file() */

    /* Tags by which several share a sandbox; both or none. Whoever attaches reads them, writes them
     * with its own name, and reads them back, so that they must come from where all processes of
     * the backend see them: not from what `open` has read. The spec's tags at `create` are the
     * first ones, and hold those of atoll too if the sandbox has an owner: keep them as they are.
     * This is no lock, and users are told so. */
    void (*read_tags)(struct atoll_server *server, void *sandbox,
                      struct atoll_reply *reply); /* atoll_reply_tags() */

    /* All of them anew, K=V each, NULL-terminated; others than these go. atoll_reply_done(). */
    void (*write_tags)(struct atoll_server *server, void *sandbox, const char *const *tags,
                       struct atoll_reply *reply);
};

/* The most that one read or write moves: it is held in memory. A client asks for parts. */
#define ATOLL_BACKEND_READ_MAX  ((size_t)64 << 20)
#define ATOLL_BACKEND_WRITE_MAX ((size_t)64 << 20)

/**
 * atoll_backend_serve() - speak the protocol on standard input and output until the client goes
 * @backend: borrowed
 * @state:   atoll_server_state() gives it back
 *
 * Blocks. SIGPIPE is ignored from here on. Return: an exit status for main(): 0, or 1 when the
 * client broke the protocol or there is no memory to begin with.
 */
int atoll_backend_serve(const struct atoll_backend *backend, void *state);

/** atoll_server_state() - what atoll_backend_serve() was given */
void *atoll_server_state(const struct atoll_server *server);

/**
 * atoll_backend_watch() - call @ready when @fd is readable, or writable too
 * @events: of poll(2): POLLIN, POLLOUT; 0 stops watching, which must happen before @fd is closed.
 *          An end or an error of @fd is reported whatever was asked for
 * @ready:  gets the events that are there; may change or stop any watch
 *
 * A second call for the same descriptor replaces the first. Return: 0 or a negative errno, -EPERM
 * for a regular file, which is always ready.
 */
int atoll_backend_watch(struct atoll_server *server, int fd, short events,
                        void (*ready)(struct atoll_server *server, int fd, short events, void *arg),
                        void *arg);

/**
 * atoll_backend_timer() - call @due once, @us from now
 * @us: ATOLL_FOREVER: not at all
 *
 * @due and @arg together name the timer: a second call moves it. Return: 0 or -ENOMEM.
 */
int atoll_backend_timer(struct atoll_server *server, uint64_t us,
                        void (*due)(struct atoll_server *server, void *arg), void *arg);

/**
 * atoll_backend_ended() - the sandbox has ended by itself: its lifetime, a loss, an outsider
 * @reason: enum atoll_reason; ATOLL_EXITED for one that somebody else has destroyed
 *
 * Nothing of it may be left. The sandbox object is not named again, and streams are gone: the
 * library reports their end. The backend frees what it has for them. The connection closes.
 */
void atoll_backend_ended(struct atoll_server *server, int reason);

/* Answers. Texts and bytes are copied. */

/** atoll_reply_error() - to any request: enum atoll_error_class, an errno, a sentence, a remedy */
void atoll_reply_error(struct atoll_reply *r, int cls, int code, const char *message,
                       const char *remedy);

/**
 * atoll_reply_file_error() - to read, write, list, stat: the library and the client have the words
 * @code: errno: ENOENT, EISDIR, ENOTDIR, EACCES …; EINVAL for what is no regular file; EFBIG for a
 *        range longer than max_bytes
 * @kind: with EINVAL: enum atoll_kind of what it is; otherwise 0
 * @size: with EFBIG: of the whole file
 */
void atoll_reply_file_error(struct atoll_reply *r, int code, int kind, uint64_t size);

/** atoll_reply_created() - create, open: @id without "NAME:", which the client puts in front */
void atoll_reply_created(struct atoll_reply *r, const char *id, void *sandbox);

/** atoll_reply_info() - answers inspect; to enumerate one of many. 0 and NULL: not known */
void atoll_reply_info(struct atoll_reply *r, const struct atoll_info *info);

/** atoll_reply_tags() - answers read_tags: K=V each, NULL-terminated */
void atoll_reply_tags(struct atoll_reply *r, const char *const *tags);

/** atoll_reply_entry() - one entry of a list, with its name */
void atoll_reply_entry(struct atoll_reply *r, const struct atoll_file *entry);

/** atoll_reply_done() - ends enumerate and list; answers destroy, write and write_tags */
void atoll_reply_done(struct atoll_reply *r);

/** atoll_reply_file() - answers stat */
void atoll_reply_file(struct atoll_reply *r, const struct atoll_file *file);

/**
 * atoll_reply_content() - answers read
 * @file: what the file is; its size is that of the whole
 * @data: the asked range, all of it
 */
void atoll_reply_content(struct atoll_reply *r, const struct atoll_file *file, const void *data,
                         size_t len);

/* Commands */

/** atoll_stream_started() - the command runs; must be called for detached ones. @pid 0: unknown */
void atoll_stream_started(struct atoll_stream *s, uint32_t pid);

/** atoll_stream_room() - how much of stream @which would be taken now; if nothing, `room` follows
 */
size_t atoll_stream_room(struct atoll_stream *s, int which);

/**
 * atoll_stream_output() - bytes of stdout (1) or stderr (2); none: that stream is at its end
 *
 * Return: how many were taken; fewer than @len when the client is behind: keep the rest until
 * `room` is called. Output of a detached command is taken and dropped.
 */
size_t atoll_stream_output(struct atoll_stream *s, int which, const void *data, size_t len);

/** atoll_stream_want_input() - call `input` again with what is there, now or when it comes */
void atoll_stream_want_input(struct atoll_stream *s);

/** atoll_stream_exited() - the command is over and all its output was taken; @s is gone */
void atoll_stream_exited(struct atoll_stream *s, const struct atoll_backend_exit *x);

/** atoll_stream_error() - the command cannot be had at all, for a reason of the backend's; @s is
 * gone. A program that does not exist is no such reason, but an exit with start_errno. */
void atoll_stream_error(struct atoll_stream *s, int cls, int code, const char *message,
                        const char *remedy);

/** atoll_stream_number() - its number in the sandbox, from 1 */
uint32_t atoll_stream_number(const struct atoll_stream *s);

/** atoll_stream_set_data(), atoll_stream_data() - a pointer of the backend's; NULL at first */
void atoll_stream_set_data(struct atoll_stream *s, void *data);
void *atoll_stream_data(const struct atoll_stream *s);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
