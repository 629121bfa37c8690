/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: requests, events, streams. */
#include "client/execution.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

static void over(struct execution *c)
{
    c->running = false;
    session_forget(&c->request);
    bridge_input_stop(&c->in);
    for (size_t i = 0; i < ARRAY_SIZE(c->out); i++)
        bridge_output_end(&c->out[i]);
}

static int hear_exit(struct execution *c, const struct message *m)
{
    uint32_t number;

    if (exit_report_decode(m->payload, &c->exit) < 0)
        return -EPROTO;
    if (c->exit.interpreter)
        (void)snprintf(c->interpreter, sizeof c->interpreter, "%s", c->exit.interpreter);
    c->exit.interpreter = NULL;
    c->left_us = left_decode(m->payload);
    denials_done(&c->denials);
    if (denials_take(&c->denials, m->payload) == -EPROTO)
        return -EPROTO;
    if (number_decode(m->payload, TAG_COMMAND_NUMBER, &number) == 0)
        c->number = number;
    over(c);
    c->events->exited(c);
    return 0;
}

static int hear_start(struct execution *c, struct message *m)
{
    (void)number_decode(m->payload, TAG_PID, &c->pid);
    (void)number_decode(m->payload, TAG_COMMAND_NUMBER, &c->number);
    if (c->flags & EXEC_DETACH)
        over(c); /* nobody is told of its end */
    int terminal = message_take_fd(m, 0);
    if (c->events->started)
        c->events->started(c, terminal);
    else
        fd_closep(&terminal);
    return 0;
}

static int hear_stream(struct execution *c, const struct message *m)
{
    struct stream_data x;

    if (!(c->flags & EXEC_IN_BAND) || stream_data_decode(m->payload, &x) < 0)
        return -EPROTO;
    if (m->type == MSG_CREDIT)
        return x.stream == STREAM_STDIN ? bridge_input_credit(&c->in, x.credit) : -EPROTO;
    if (x.stream == STREAM_STDIN)
        return -EPROTO;
    return bridge_output_data(&c->out[x.stream - STREAM_STDOUT], x.data, x.len);
}

static int hear_error(struct execution *c, const struct message *m)
{
    struct error err;

    if (session_error(m, &err) < 0)
        return -EPROTO;
    if (err.code == EPIPE && c->flags & EXEC_IN_BAND && c->flags & EXEC_STDIN)
        return 0; /* input that crossed the command's end */
    if (err.code == ENOSYS && c->stop_asked && !c->kill_asked)
        return execution_kill(c) < 0 ? -EPROTO : 0;
    if (err.code == ENOSYS && c->kill_asked && !c->signal_asked) {
        c->signal_asked = true; /* it has no CANCEL: this is all that is left */
        (void)execution_signal(c, SIGKILL);
        return 0;
    }
    over(c);
    c->events->failed(c, &err);
    return 0;
}

static int told(struct session_request *q, struct message *m)
{
    struct execution *c = q->owner;

    switch (m->type) {
    case MSG_STARTED:
        return hear_start(c, m);
    case MSG_OUTPUT:
    case MSG_CREDIT:
        return hear_stream(c, m);
    case MSG_EXITED:
        return hear_exit(c, m);
    case MSG_ERROR:
        return hear_error(c, m);
    default:
        return -EPROTO;
    }
}

static void failed(struct session_request *q, const struct error *err)
{
    struct execution *c = q->owner;

    over(c);
    c->events->failed(c, err);
}

static int twin(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int open_bridges(struct execution *c, struct session *s, const int *fds, size_t n_fds)
{
    size_t n = 0;
    int r = 0, fd;

    if (c->flags & EXEC_STDIN && n < n_fds) {
        fd = twin(fds[n++]);
        r = fd < 0 ? -errno : bridge_input_start(&c->in, s, c->request.id, fd, NULL, NULL);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(c->out) && n < n_fds; i++) {
        fd = twin(fds[n++]);
        r = fd < 0 ? -errno
                   : bridge_output_start(&c->out[i], s, c->request.id,
                                         (uint32_t)(STREAM_STDOUT + i), fd, NULL, NULL);
    }
    return r;
}

int execution_start(struct execution *c, struct session *s, const struct exec_request *x,
                    const int *fds, size_t n_fds, struct error *err)
{
    struct exec_request sent = *x;
    bool in_band = s->in_band && !(x->flags & EXEC_DETACH);
    size_t size = exec_request_size(x);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    int r;

    if (!buf)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (in_band) {
        sent.flags |= EXEC_IN_BAND;
        sent.flags &= ~(uint32_t)EXEC_LAST; /* not in-band */
    }
    exec_request_encode(&w, &sent);
    if (w.bad || writer_len(&w) > MESSAGE_BYTES_MAX ||
        x->n_argv + x->n_envp + 2 > EXEC_STRINGS_MAX) {
        error_set(err, ERROR_USAGE, E2BIG, "the command's arguments are too large to pass on");
        return error_remedy(err, "Pass them in a file or on stdin");
    }
    c->flags = sent.flags;
    c->request = (struct session_request){
        .owner = c, .told = told, .failed = failed, .later = sent.flags & EXEC_DETACH};
    r = session_ask(s, &c->request, MSG_EXEC, &w, fds, in_band ? 0 : n_fds, err);
    if (r < 0)
        return r;
    c->running = true;
    if (in_band && (r = open_bridges(c, s, fds, n_fds)) < 0) {
        (void)execution_kill(c);
        execution_done(c);
        return error_set(err, ERROR_TERMINAL, -r, "cannot open the command's streams: %s",
                         strerror(-r));
    }
    return 0;
}

static int send_signal(struct execution *c, int signal, uint32_t flags)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    if (!c->running || !c->request.session)
        return -ESRCH;
    field_put_u32(&w, TAG_SIGNAL, (uint32_t)signal);
    if (flags != 0)
        field_put_u32(&w, TAG_SIGNAL_FLAGS, flags);
    return session_tell(c->request.session, MSG_SIGNAL, c->request.id, &w);
}

int execution_signal(struct execution *c, int signal)
{
    return send_signal(c, signal, 0);
}

int execution_stop(struct execution *c, int signal)
{
    c->stop_asked = true;
    return send_signal(c, signal, SIGNAL_ENDS_ALL);
}

void execution_resize(struct execution *c, uint16_t rows, uint16_t columns)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    if (!c->running || !c->request.session)
        return;
    field_put_u32(&w, TAG_ROWS, rows);
    field_put_u32(&w, TAG_COLUMNS, columns);
    (void)session_tell(c->request.session, MSG_RESIZE, c->request.id, &w);
}

int execution_kill(struct execution *c)
{
    struct session *s = c->request.session;
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    if (!c->running || !s)
        return -ESRCH;
    c->kill_asked = true;
    if (s->state == SESSION_OPEN && s->minor < 1)
        return execution_signal(c, SIGKILL); /* all that such a peer can do */
    if (c->number == 0)
        return session_tell(s, MSG_CANCEL, c->request.id, NULL);
    field_put_u32(&w, TAG_COMMAND_NUMBER, c->number);
    return session_tell(s, MSG_STOP, ++s->last_id, &w); /* the command's own end answers it */
}

bool execution_delivers(const struct execution *c)
{
    return bridge_output_busy(&c->out[0]) || bridge_output_busy(&c->out[1]);
}

void execution_done(struct execution *c)
{
    session_forget(&c->request);
    c->running = false;
    denials_done(&c->denials);
    bridge_input_stop(&c->in);
    for (size_t i = 0; i < ARRAY_SIZE(c->out); i++)
        bridge_output_stop(&c->out[i]);
}
