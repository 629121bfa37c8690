/* SPDX-License-Identifier: Apache-2.0 */
/* In-band streams with credit. */
#include "keeper/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/limits.h"
#include "keeper/command.h"
#include "base/guards.h"

enum { CHUNK_BYTES = FRAME_PAYLOAD_MAX - 64 };

static void finish_if_drained(struct streams *s)
{
    if (s->draining && s->outputs[0].fd < 0 && s->outputs[1].fd < 0) {
        s->draining = false;
        command_finish(s->command);
    }
}

static void send_output(struct output *o, const void *data, size_t len)
{
    struct keeper_command *c = o->owner->command;
    uint8_t buf[CHUNK_BYTES + 64];
    struct writer w = writer_over(buf, sizeof buf);
    struct stream_data x = {.stream = o->stream, .data = data, .len = len};

    stream_data_encode(&w, &x);
    connection_send(c->connection, MSG_OUTPUT, c->id, &w, -EBADF);
}

/* The stream is over: an OUTPUT without bytes says so. */
static void output_end(struct output *o)
{
    struct keeper *k = o->owner->command->keeper;

    loop_forget(&k->loop, &o->source);
    fd_closep(&o->fd);
    send_output(o, "", 0);
}

/* More time, but not for one who writes without end. */
static void drain_on(struct streams *s)
{
    uint64_t idle = clock_after_us(LIMIT_DRAIN_IDLE_US);
    bool due = s->outputs[0].due > 0 || s->outputs[1].due > 0;

    loop_at(&s->command->keeper->loop, &s->drain,
            !due && idle > s->drain_until_us ? s->drain_until_us : idle);
}

static int output_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct output *o = source->owner;
    struct streams *s = o->owner;
    uint8_t data[CHUNK_BYTES];
    size_t want = o->credit < sizeof data ? o->credit : sizeof data;

    (void)events;
    if (want == 0) /* hung up while no credit is left: look again when there is some */
        return loop_change(l, source, 0);
    ssize_t n = read(o->fd, data, want);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) { /* EIO: the last holder of the terminal's other end is gone */
        output_end(o);
        finish_if_drained(s);
        return 0;
    }
    o->credit -= (uint32_t)n;
    o->due = o->due > (uint64_t)n ? o->due - (uint64_t)n : 0;
    send_output(o, data, (size_t)n);
    if (s->draining)
        drain_on(s);
    return o->credit == 0 ? loop_change(l, source, 0) : 0;
}

/* Silence long enough: what is not here by now belongs to a process that was left behind. */
static int drain_due(struct loop *l, struct loop_timer *t)
{
    struct streams *s = t->owner;

    for (size_t i = 0; i < ARRAY_SIZE(s->outputs); i++)
        if (s->outputs[i].fd >= 0 && s->outputs[i].due > 0) { /* the caller is slow, not silent */
            loop_at(l, t, clock_after_us(LIMIT_DRAIN_IDLE_US));
            return 0;
        }
    for (size_t i = 0; i < ARRAY_SIZE(s->outputs); i++)
        if (s->outputs[i].fd >= 0)
            output_end(&s->outputs[i]);
    finish_if_drained(s);
    return 0;
}

void streams_init(struct streams *s, struct keeper_command *c)
{
    *s = (struct streams){.command = c, .input_fd = -EBADF, .terminal_fd = -EBADF};
    s->input_source.fd = -EBADF;
    s->drain = (struct loop_timer){.name = "drain", .owner = s, .due = drain_due};
    for (size_t i = 0; i < ARRAY_SIZE(s->outputs); i++)
        s->outputs[i] = (struct output){
            .source = {.name = "output",
                       .fd = -EBADF,
                       .owner = &s->outputs[i],
                       .ready = output_ready},
            .owner = s,
            .stream = i == 0 ? STREAM_STDOUT : STREAM_STDERR,
            .fd = -EBADF,
            .credit = STREAM_WINDOW_BYTES,
        };
}

static void close_input(struct streams *s)
{
    loop_forget(&s->command->keeper->loop, &s->input_source);
    fd_closep(&s->input_fd);
    free(s->input);
    s->input = NULL;
    s->input_from = s->input_to = 0;
}

void streams_done(struct streams *s)
{
    struct loop *l = &s->command->keeper->loop;

    loop_at(l, &s->drain, CLOCK_NEVER);
    close_input(s);
    fd_closep(&s->terminal_fd);
    for (size_t i = 0; i < ARRAY_SIZE(s->outputs); i++) {
        loop_forget(l, &s->outputs[i].source);
        fd_closep(&s->outputs[i].fd);
    }
}

static void grant_input(struct streams *s, size_t n)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    stream_credit_encode(&w, STREAM_STDIN, (uint32_t)n);
    connection_send(s->command->connection, MSG_CREDIT, s->command->id, &w, -EBADF);
}

/* Writes what waits. Without more to write, the source is silent, or the end is passed on. */
static int input_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct streams *s = source->owner;
    size_t left = s->input_to - s->input_from;

    (void)events;
    if (left > 0) {
        ssize_t n = write(s->input_fd, s->input + s->input_from, left);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n < 0) { /* nobody reads any more: the rest is taken and dropped */
            grant_input(s, left);
            close_input(s);
            return 0;
        }
        s->input_from += (size_t)n;
        grant_input(s, (size_t)n);
        left -= (size_t)n;
    }
    if (left > 0)
        return 0;
    s->input_from = s->input_to = 0;
    if (!s->input_ends)
        return loop_change(l, source, 0);
    close_input(s);
    return 0;
}

static int watch_input(struct streams *s, int fd)
{
    s->input_fd = fd;
    s->input_source =
        (struct loop_source){.name = "input", .fd = -EBADF, .owner = s, .ready = input_ready};
    return loop_watch(&s->command->keeper->loop, &s->input_source, fd, 0);
}

int streams_open_pipes(struct streams *s, bool with_input, int ret_fds[static 3])
{
    struct loop *l = &s->command->keeper->loop;
    int n = 0, ends[2], r = 0;

    if (with_input) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        ret_fds[n++] = ends[0];
        (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
        r = watch_input(s, ends[1]);
    }
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(s->outputs); i++) {
        if (pipe2(ends, O_CLOEXEC) < 0) {
            r = -errno;
            break;
        }
        ret_fds[n++] = ends[1];
        s->outputs[i].fd = ends[0];
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        r = loop_watch(l, &s->outputs[i].source, ends[0], EPOLLIN);
    }
    while (r < 0 && n > 0)
        fd_closep(&ret_fds[--n]);
    return r < 0 ? r : n;
}

int streams_attach_terminal(struct streams *s, int master, bool with_input)
{
    struct loop *l = &s->command->keeper->loop;
    struct output *o = &s->outputs[0];
    int r;

    o->fd = master;
    /* Kept until the command is reaped: a hang-up's SIGHUP would replace the status of one that is
     * just exiting, and its terminal is at its end a moment before it is. */
    s->terminal_fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
    (void)fcntl(master, F_SETFL, O_NONBLOCK);
    r = loop_watch(l, &o->source, master, EPOLLIN);
    if (r == 0 && with_input) {
        int twin = fcntl(master, F_DUPFD_CLOEXEC, 3); /* epoll takes one source a descriptor */

        r = twin < 0 ? -errno : watch_input(s, twin);
    }
    return r;
}

int streams_input(struct streams *s, const uint8_t *data, size_t len)
{
    static const uint8_t end_of_transmission = 4; /* how a terminal is told of the end of input */
    bool terminal = s->command->flags & EXEC_TTY;

    if (s->input_fd < 0)
        return 0; /* closed by its reader: what comes is dropped */
    if (len == 0)
        s->input_ends = !terminal;
    if (len == 0 && terminal) {
        data = &end_of_transmission;
        len = 1;
    }
    if (!s->input)
        s->input = malloc(STREAM_WINDOW_BYTES + 1);
    if (!s->input)
        return -ENOMEM;
    if (s->input_from > 0) {
        memmove(s->input, s->input + s->input_from, s->input_to - s->input_from);
        s->input_to -= s->input_from;
        s->input_from = 0;
    }
    if (len > STREAM_WINDOW_BYTES + 1 - s->input_to)
        return -ENOBUFS;
    if (len > 0)
        memcpy(s->input + s->input_to, data, len);
    s->input_to += len;
    return loop_change(&s->command->keeper->loop, &s->input_source, EPOLLOUT);
}

int streams_credit(struct streams *s, uint32_t stream, uint32_t credit)
{
    struct output *o = stream == STREAM_STDOUT   ? &s->outputs[0]
                       : stream == STREAM_STDERR ? &s->outputs[1]
                                                 : NULL;

    if (!o || credit > STREAM_WINDOW_BYTES - o->credit)
        return -EPROTO;
    o->credit += credit;
    if (s->draining)
        drain_on(s);
    return o->credit > 0 ? loop_change(&s->command->keeper->loop, &o->source, EPOLLIN) : 0;
}

void streams_resize(struct streams *s, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};

    if (s->command->flags & EXEC_TTY && s->outputs[0].fd >= 0)
        (void)ioctl(s->outputs[0].fd, TIOCSWINSZ, &size);
}

void streams_drain(struct streams *s)
{
    s->draining = true;
    s->drain_until_us = clock_after_us(LIMIT_DRAIN_US);
    close_input(s);
    for (size_t i = 0; i < ARRAY_SIZE(s->outputs); i++) {
        int waiting = 0;

        if (s->outputs[i].fd >= 0 && ioctl(s->outputs[i].fd, FIONREAD, &waiting) == 0)
            s->outputs[i].due = (uint64_t)waiting;
    }
    loop_at(&s->command->keeper->loop, &s->drain, clock_after_us(LIMIT_DRAIN_IDLE_US));
    finish_if_drained(s);
}
