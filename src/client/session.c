/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's end of the sandbox protocol. */
#include "client/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "keeper/keeper.h"
#include "wire/fault.h"
#include "base/guards.h"

static int send_failed(int r, struct error *err)
{
    if (r == 0)
        return 0;
    return error_set(err, ERROR_TERMINAL, -r, "cannot reach the sandbox's keeper: %s",
                     strerror(-r));
}

static int greet(struct session *s)
{
    const struct hello hello = {WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR, "atoll"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);

    hello_encode(&w, &hello);
    return channel_send(&s->channel, MSG_HELLO, 0, buf, writer_len(&w), NULL, 0);
}

int session_start(struct session *s, struct error *err)
{
    int pair[2];
    int r = io_pair(pair);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    pid_t pid = fork();
    if (pid < 0) {
        r = -errno;
        (void)close(pair[0]);
        (void)close(pair[1]);
        return error_set(err, ERROR_TERMINAL, -r, "cannot start a keeper: %s", strerror(-r));
    }
    if (pid == 0)
        _exit(keeper_main(pair[1]));
    (void)close(pair[1]);
    *s = (struct session){.keeper = pid};
    channel_init(&s->channel, pair[0]);
    return send_failed(greet(s), err);
}

int session_create(struct session *s, const struct spec *spec, struct error *err)
{
    size_t size = spec_size(spec);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    if (!buf)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    spec_encode(&w, spec);
    if (w.bad || writer_len(&w) > MESSAGE_BYTES_MAX)
        return error_set(err, ERROR_USAGE, E2BIG, "the spec has more than %d bytes",
                         MESSAGE_BYTES_MAX);
    return send_failed(
        channel_send(&s->channel, MSG_CREATE, ++s->last_id, buf, writer_len(&w), NULL, 0), err);
}

int session_exec(struct session *s, const struct exec_request *x, const int *fds, size_t n_fds,
                 uint32_t *ret_id, struct error *err)
{
    size_t size = exec_request_size(x);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);

    if (!buf)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    exec_request_encode(&w, x);
    if (w.bad || writer_len(&w) > MESSAGE_BYTES_MAX ||
        x->n_argv + x->n_envp + 2 > EXEC_STRINGS_MAX) {
        error_set(err, ERROR_USAGE, E2BIG, "the command's arguments are too large to pass on");
        return error_remedy(err, "Pass them in a file or on stdin");
    }
    *ret_id = ++s->last_id;
    return send_failed(
        channel_send(&s->channel, MSG_EXEC, *ret_id, buf, writer_len(&w), fds, n_fds), err);
}

int session_signal(struct session *s, uint32_t id, int signal)
{
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_SIGNAL, (uint32_t)signal);
    return channel_send(&s->channel, MSG_SIGNAL, id, buf, writer_len(&w), NULL, 0);
}

int session_destroy(struct session *s)
{
    return channel_send(&s->channel, MSG_DESTROY, ++s->last_id, NULL, 0, NULL, 0);
}

static int event_decode(struct message *m, struct session_event *e)
{
    struct hello hello;

    switch (m->type) {
    case MSG_HELLO:
        return hello_decode(m->payload, &hello) == 0 && hello.major == WIRE_VERSION_MAJOR ? 0
                                                                                          : -EPROTO;
    case MSG_EXITED:
        return exit_report_decode(m->payload, &e->exit);
    case MSG_STEP:
        return step_report_decode(m->payload, &e->step);
    case MSG_OUTPUT:
    case MSG_CREDIT:
        return stream_data_decode(m->payload, &e->stream);
    case MSG_ERROR:
        return fault_decode(m->payload, &e->error);
    case MSG_ENDED:
        return number_decode(m->payload, TAG_ENDED_BY, &e->ended_by);
    case MSG_STARTED:
        e->fd = message_take_fd(m, 0);
        return 0;
    default:
        return 0;
    }
}

int session_next(struct session *s, struct session_event *ret)
{
    struct message m;
    int r = channel_receive(&s->channel, &m);

    if (r <= 0)
        return r;
    *ret = (struct session_event){.type = m.type, .id = m.id, .fd = -EBADF};
    r = event_decode(&m, ret);
    message_close_fds(&m);
    return r < 0 ? r : 1;
}

void session_end(struct session *s)
{
    channel_done(&s->channel);
    while (s->keeper > 0 && waitpid(s->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
    s->keeper = 0;
}
