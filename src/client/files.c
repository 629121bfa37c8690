/* SPDX-License-Identifier: Apache-2.0 */
/* File operations: connections, requests, answers. */
#include "client/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/fault.h"
#include "base/guards.h"

enum { TRIES_MAX = 8 };

static void stop_streams(struct file_op *op)
{
    bridge_input_stop(&op->in);
    bridge_output_stop(&op->out);
    fd_closep(&op->pipe_fd);
}

/* It is over: nothing more is heard of it. */
static void settle(struct file_op *op)
{
    op->under_way = false;
    session_forget(&op->request);
    free(op->message);
    op->message = NULL;
    bridge_input_stop(&op->in);
    fd_closep(&op->pipe_fd);
}

static void fail(struct file_op *op, const struct error *err)
{
    if (!op->under_way)
        return;
    settle(op);
    bridge_output_stop(&op->out);
    op->events->failed(op, err);
}

static void done(struct file_op *op, struct reader message)
{
    settle(op);
    bridge_output_end(&op->out);
    op->events->done(op, message);
}

static bool is_regular(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static int hear_file(struct file_op *op, struct message *m)
{
    bool read = op->type == MSG_READ, in_band = op->request.session->in_band;
    struct file_info info;

    if ((!read && op->type != MSG_STAT) || op->answered || file_info_decode(m->payload, &info) < 0)
        return -EPROTO;
    _cleanup_fd_ int fd = message_take_fd(m, 0);
    /* What comes from inside is judged before it is used: a FIFO could stop its reader. */
    if (read && !in_band && !is_regular(fd))
        return -EPROTO;
    op->answered = true;
    op->range_left = op->range_offset < info.size ? info.size - op->range_offset : 0;
    if (op->range_left > op->range_length)
        op->range_left = op->range_length;
    if (!read || !in_band) {
        struct reader nothing = reader_over("", 0);

        op->events->info(op, &info, TAKE_FD(fd));
        if (op->under_way)
            done(op, nothing);
        return 0;
    }
    op->events->info(op, &info, -EBADF);
    return 0;
}

static int hear_output(struct file_op *op, const struct message *m)
{
    struct stream_data x;
    int r;

    if (stream_data_decode(m->payload, &x) < 0 || x.stream != STREAM_STDOUT ||
        (op->type == MSG_READ && !op->answered))
        return -EPROTO;
    /* FILE has said how many bytes come: fewer or more are not the file's. */
    if (op->type == MSG_READ && (x.len > op->range_left || (x.len == 0 && op->range_left > 0)))
        return -EPROTO;
    op->range_left -= op->type == MSG_READ ? x.len : 0;
    r = bridge_output_data(&op->out, x.data, x.len);
    if (r == 0 && x.len == 0 && op->type == MSG_READ)
        done(op, reader_over("", 0));
    return r;
}

static int hear_credit(struct file_op *op, const struct message *m)
{
    struct stream_data x;

    if (stream_data_decode(m->payload, &x) < 0 || x.stream != STREAM_STDIN)
        return -EPROTO;
    return bridge_input_credit(&op->in, x.credit);
}

static int hear_entries(struct file_op *op, const struct message *m)
{
    int r = op->type == MSG_LIST ? op->events->entries(op, m->payload) : -EPROTO;

    if (r < 0 && r != -EPROTO) {
        struct error err = ERROR_INIT;

        (void)error_set(&err, r == -EFBIG ? ERROR_TOO_LARGE : ERROR_TERMINAL, -r,
                        r == -EFBIG ? "the folder has too many entries to list" : "out of memory");
        if (r == -EFBIG)
            (void)error_remedy(&err, "Run a command inside that looks for what is wanted");
        fail(op, &err);
        return 0;
    }
    return r;
}

static bool is_writing(uint16_t type)
{
    return type == MSG_WRITE || type == MSG_UNPACK;
}

/* Behind @at, for the next connection. */
static void wait_for_next(struct files *f, struct file_op *op, struct file_op **at)
{
    session_forget(&op->request);
    op->tries++;
    op->commit = op->committed;
    op->next = *at;
    *at = op;
    if (!op->next)
        f->waiting_tail = &op->next;
}

/* The process is about to go and has not begun with it; its descriptor comes back. It was asked for
 * before those that wait already, but after others that came back like it. */
static int hear_unserved(struct file_op *op, struct message *m)
{
    struct files *f = op->files;
    struct file_op **at = &f->waiting;

    if (!op->message || op->answered || op->tries >= TRIES_MAX)
        return -EPROTO;
    while (*at && (*at)->returned)
        at = &(*at)->next;
    op->pipe_fd = message_take_fd(m, 0);
    op->returned = true;
    wait_for_next(f, op, at);
    return 0;
}

static int told(struct session_request *q, struct message *m)
{
    struct file_op *op = q->owner;
    struct error err;

    switch (m->type) {
    case MSG_FILE:
        return hear_file(op, m);
    case MSG_LISTED:
        return hear_entries(op, m);
    case MSG_OUTPUT:
        return hear_output(op, m);
    case MSG_CREDIT:
        return hear_credit(op, m);
    case MSG_DONE:
        if (op->type == MSG_READ || op->type == MSG_STAT)
            return -EPROTO;
        done(op, m->payload);
        return 0;
    case MSG_ERROR:
        if (session_error(m, &err) < 0)
            return -EPROTO;
        fail(op, err.code == EROFS && is_writing(op->type) && op->files->refusal.code != 0
                     ? &op->files->refusal
                     : &err);
        return 0;
    case MSG_ENDED:
        return hear_unserved(op, m);
    default:
        return -EPROTO;
    }
}

static void request_failed(struct session_request *q, const struct error *err)
{
    struct file_op *op = q->owner;
    const struct session *main = op->files->main;

    /* The process inside went with its sandbox. */
    fail(op, main->state == SESSION_OVER && main->error.code != 0 ? &main->error : err);
}

/* The bytes of a READ or PACK that come in-band; those of WRITE and UNPACK that go. */
static int open_bridge(struct file_op *op, struct session *s, bool streams_in)
{
    uint32_t id = op->request.id;
    int r = 0;

    if (op->type == MSG_READ || op->type == MSG_PACK)
        r = bridge_output_start(&op->out, s, id, STREAM_STDOUT, TAKE_FD(op->pipe_fd), op->sink,
                                op->owner);
    else if (streams_in)
        r = bridge_input_start(&op->in, s, id, TAKE_FD(op->pipe_fd), NULL, NULL);
    return r;
}

static void send_commit(struct file_op *op)
{
    if (!op->commit || !op->request.session || (op->in.started && !op->in.ended))
        return;
    op->commit = false;
    (void)session_tell(op->request.session, MSG_COMMIT, op->request.id, NULL);
}

static void input_passed(void *owner)
{
    send_commit(owner);
}

/* Sends one that has its message ready. */
static int submit(struct file_op *op, struct session *s, struct error *err)
{
    struct writer w = writer_over(op->message, op->length);
    bool passes = !s->in_band && op->type != MSG_READ && op->pipe_fd >= 0;
    bool streams_in = op->pipe_fd >= 0 && (op->type == MSG_WRITE || op->type == MSG_UNPACK);
    int r;

    w.p = w.end;
    op->request = (struct session_request){.owner = op, .told = told, .failed = request_failed};
    r = session_ask(s, &op->request, op->type, &w, &op->pipe_fd, passes ? 1 : 0, err);
    /* Once a message did not arrive, none after it does: this one was not taken. */
    if (r == 0 && s->files && (s->broken == EPIPE || s->broken == ECONNRESET) &&
        op->tries < TRIES_MAX) {
        wait_for_next(op->files, op, op->files->waiting_tail);
        return 0;
    }
    if (r == 0 && s->in_band && (r = open_bridge(op, s, streams_in)) < 0)
        (void)error_set(err, ERROR_TERMINAL, -r, "cannot open a stream: %s", strerror(-r));
    if (op->in.started) {
        op->in.passed_end = input_passed;
        op->in.owner = op;
    }
    fd_closep(&op->pipe_fd);
    if (r == 0)
        send_commit(op);
    return r;
}

static int open_link(struct files *f, struct error *err);

static void fail_waiting(struct files *f, const struct error *err)
{
    struct file_op *op = f->waiting;

    f->waiting = NULL;
    f->waiting_tail = &f->waiting;
    while (op) {
        struct file_op *next = op->next;

        fail(op, err);
        op = next;
    }
}

static int reset_due(struct loop *l, struct loop_timer *t)
{
    struct files *f = t->owner;
    struct error err = ERROR_INIT;

    (void)l;
    if (f->state == FILES_OPEN && f->link.state == SESSION_OVER) {
        session_close(&f->link);
        f->state = FILES_CLOSED;
    }
    if (f->state == FILES_CLOSED && f->waiting && open_link(f, &err) < 0)
        fail_waiting(f, &err);
    return 0;
}

/* The connection was lost; its requests have failed by now. */
static void link_over(struct session *s)
{
    struct files *f = s->owner;

    loop_at(f->main->loop, &f->reset, clock_now_us());
}

static int link_opened(struct files *f, struct message *m, struct error *err)
{
    struct file_op *op = f->waiting;
    int fd = message_take_fd(m, 0), r;

    if (fd < 0)
        return error_set(err, ERROR_TERMINAL, EPROTO, "no connection for files came");
    f->refusal = (struct error)ERROR_INIT;
    if (reader_left(&m->payload) > 0 && fault_decode(m->payload, &f->refusal) < 0)
        f->refusal = (struct error)ERROR_INIT; /* it has told something else */
    session_adopt_files(&f->link, fd);
    f->link.owner = f;
    f->link.over = link_over;
    r = session_watch(&f->link, f->main->loop, err);
    if (r < 0)
        return r;
    f->state = FILES_OPEN;
    f->waiting = NULL;
    f->waiting_tail = &f->waiting;
    while (op) {
        struct file_op *next = op->next;
        struct error failure = ERROR_INIT;

        op->returned = false;
        if (submit(op, &f->link, &failure) < 0)
            fail(op, &failure);
        op = next;
    }
    return 0;
}

static int opening_told(struct session_request *q, struct message *m)
{
    struct files *f = q->owner;
    struct error err = ERROR_INIT;

    session_forget(q);
    f->state = FILES_CLOSED;
    if (m->type == MSG_FILES_OPENED) {
        if (link_opened(f, m, &err) == 0)
            return 0;
    } else if (m->type != MSG_ERROR || session_error(m, &err) < 0) {
        return -EPROTO;
    }
    fail_waiting(f, &err);
    return 0;
}

static void opening_failed(struct session_request *q, const struct error *err)
{
    struct files *f = q->owner;

    f->state = FILES_CLOSED;
    fail_waiting(f, err);
}

static int open_link(struct files *f, struct error *err)
{
    int r;

    f->opening =
        (struct session_request){.owner = f, .told = opening_told, .failed = opening_failed};
    f->reset = (struct loop_timer){.name = "files", .owner = f, .due = reset_due};
    r = session_ask(f->main, &f->opening, MSG_FILES, NULL, NULL, 0, err);
    if (r == 0)
        f->state = FILES_OPENING;
    return r;
}

static int encode(struct file_op *op, const struct file_request *x, bool in_band, struct error *err)
{
    struct file_request sent = *x;
    size_t size = strlen(x->path) + x->len + 160;
    struct writer w;

    op->message = malloc(size);
    if (!op->message)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (in_band)
        sent.flags |= FILE_IN_BAND;
    w = writer_over(op->message, size);
    file_request_encode(&w, &sent);
    op->length = writer_len(&w);
    return w.bad ? error_set(err, ERROR_USAGE, EMSGSIZE, "a path or content is too long") : 0;
}

static int check_path(const char *path, struct error *err)
{
    if (path[0] == '\0')
        return error_set(err, ERROR_RECOVERABLE, ENOENT, "a path is empty");
    if (strlen(path) > FILE_PATH_BYTES_MAX)
        return error_set(err, ERROR_RECOVERABLE, ENAMETOOLONG,
                         "a path has %zu bytes, and %d are the most", strlen(path),
                         FILE_PATH_BYTES_MAX);
    return 0;
}

/* Whether another connection is needed, or worth a try: who was only to read may have the right to
 * write by now. */
static bool is_stale(const struct files *f, uint16_t type)
{
    return f->link.state == SESSION_OVER ||
           (f->refusal.code != 0 && is_writing(type) && !f->link.requests);
}

static int start(struct files *f, struct file_op *op, const struct file_request *x,
                 struct error *err)
{
    int r = check_path(x->path, err);

    if (r == 0)
        r = encode(op, x, f->main->in_band, err);
    if (r < 0)
        return r;
    if (f->main->in_band)
        return submit(op, f->main, err);
    if (f->state == FILES_OPEN && is_stale(f, op->type)) {
        loop_at(f->main->loop, &f->reset, CLOCK_NEVER);
        session_close(&f->link);
        f->state = FILES_CLOSED;
    }
    if (f->state == FILES_OPEN)
        return submit(op, &f->link, err);
    if (f->state == FILES_CLOSED) {
        if (!f->waiting)
            f->waiting_tail = &f->waiting;
        r = open_link(f, err);
        if (r < 0)
            return r;
    }
    op->next = NULL;
    *f->waiting_tail = op;
    f->waiting_tail = &op->next;
    return 0;
}

int file_op_start(struct files *f, struct file_op *op, uint16_t type, const struct file_request *x,
                  int pipe_fd, struct error *err)
{
    op->files = f;
    op->type = type;
    op->range_offset = x->offset;
    op->range_length = x->length;
    op->answered = op->commit = op->committed = op->returned = false;
    op->tries = 0;
    op->pipe_fd = pipe_fd;
    op->under_way = true;
    op->in = (struct bridge_input){0};
    op->out = (struct bridge_output){0};
    int r = start(f, op, x, err);
    if (r < 0) {
        settle(op);
        stop_streams(op);
    }
    return r;
}

void file_op_commit(struct file_op *op)
{
    if (!op->under_way)
        return;
    op->commit = op->committed = true;
    send_commit(op);
}

void file_op_cancel(struct file_op *op)
{
    struct session *s = op->request.session;

    if (op->under_way) {
        for (struct file_op **p = &op->files->waiting; *p; p = &(*p)->next)
            if (*p == op) {
                *p = op->next;
                if (!*p)
                    op->files->waiting_tail = p;
                break;
            }
        if (s)
            (void)session_tell(s, MSG_CANCEL, op->request.id, NULL);
        settle(op);
    }
    stop_streams(op);
}

void files_done(struct files *f)
{
    struct error err = ERROR_INIT;

    if (!f->main)
        return;
    (void)error_set(&err, ERROR_RECOVERABLE, ECANCELED, "the connection for files was closed");
    session_forget(&f->opening);
    if (f->main->loop)
        loop_at(f->main->loop, &f->reset, CLOCK_NEVER);
    if (f->state == FILES_OPEN) {
        f->link.error = err;
        session_close(&f->link);
    }
    f->state = FILES_CLOSED;
    fail_waiting(f, &err);
}
