/* SPDX-License-Identifier: Apache-2.0 */
/* In-band streams as pipes. */
#include "client/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

enum {
    CHUNK_BYTES = FRAME_PAYLOAD_MAX - 64,
    CREDIT_STEP_BYTES = STREAM_WINDOW_BYTES / 4, /* a message of credit for each so many bytes */
    JAM_BYTES = CHANNEL_QUEUE_MAX / 2,           /* so much waits in a connection that is jammed */
    JAM_US = 10000,
};

static int make_non_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static void give_back(struct bridge_output *b, size_t n)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    b->owed += (uint32_t)n;
    if (b->ended || b->owed < CREDIT_STEP_BYTES)
        return;
    stream_credit_encode(&w, b->stream, b->owed);
    b->credit += b->owed;
    b->owed = 0;
    (void)session_tell(b->session, MSG_CREDIT, b->id, &w); /* a loss is told of by the session */
}

static void close_output(struct bridge_output *b)
{
    if (b->session && b->session->loop)
        loop_forget(b->session->loop, &b->source);
    fd_closep(&b->fd);
    free(b->buffer);
    b->buffer = NULL;
    b->from = b->to = 0;
}

/* Bytes that the pipe has taken. Its reader being gone is no fault: the rest is dropped. */
static size_t put(struct bridge_output *b, const uint8_t *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(b->fd, data + done, len - done);

        if (n >= 0) {
            done += (size_t)n;
        } else if (errno == EAGAIN) {
            return done;
        } else if (errno != EINTR) {
            close_output(b);
            return len;
        }
    }
    return done;
}

static int keep(struct bridge_output *b, const uint8_t *data, size_t len)
{
    if (!b->buffer)
        b->buffer = malloc(STREAM_WINDOW_BYTES);
    if (!b->buffer)
        return -ENOMEM;
    if (len > STREAM_WINDOW_BYTES - b->to) {
        memmove(b->buffer, b->buffer + b->from, b->to - b->from);
        b->to -= b->from;
        b->from = 0;
    }
    memcpy(b->buffer + b->to, data, len); /* the credit is never above the room */
    b->to += len;
    return loop_change(b->session->loop, &b->source, EPOLLOUT);
}

static int output_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct bridge_output *b = source->owner;
    size_t waiting = b->to - b->from;
    size_t n = put(b, b->buffer + b->from, waiting);

    (void)events;
    if (b->fd >= 0) /* else the buffer is gone */
        b->from += n;
    if (b->fd >= 0 && b->from == b->to) {
        b->from = b->to = 0;
        (void)loop_change(l, source, 0);
        if (b->ended)
            close_output(b);
    }
    give_back(b, n);
    return 0;
}

int bridge_output_start(struct bridge_output *b, struct session *s, uint32_t id, uint32_t stream,
                        int fd, int (*sink)(void *, const uint8_t *, size_t), void *owner)
{
    int r = 0;

    *b = (struct bridge_output){
        .session = s,
        .id = id,
        .stream = stream,
        .fd = fd,
        .source = {.name = "bridge", .fd = -EBADF, .owner = b, .ready = output_ready},
        .credit = STREAM_WINDOW_BYTES,
        .started = true,
        .sink = sink,
        .owner = owner,
    };
    if (fd >= 0)
        r = make_non_blocking(fd);
    if (r == 0 && fd >= 0)
        r = loop_watch(s->loop, &b->source, fd, 0);
    if (r < 0)
        bridge_output_stop(b);
    return r;
}

int bridge_output_data(struct bridge_output *b, const uint8_t *data, size_t len)
{
    size_t done = 0;
    int r = 0;

    if (!b->started || b->ended || len > b->credit)
        return -EPROTO;
    if (len == 0) {
        bridge_output_end(b);
        return 0;
    }
    b->credit -= (uint32_t)len;
    if (b->fd < 0) {
        r = b->sink ? b->sink(b->owner, data, len) : 0;
        done = len;
    } else {
        done = b->from == b->to ? put(b, data, len) : 0;
        if (done < len)
            r = keep(b, data + done, len - done);
    }
    give_back(b, done);
    return r;
}

void bridge_output_end(struct bridge_output *b)
{
    if (!b->started)
        return;
    b->ended = true;
    if (b->from == b->to)
        close_output(b);
}

bool bridge_output_busy(const struct bridge_output *b)
{
    return b->started && b->from != b->to;
}

void bridge_output_stop(struct bridge_output *b)
{
    if (!b->started)
        return;
    close_output(b);
    b->ended = true;
}

static void close_input(struct bridge_input *b)
{
    if (b->session->loop) {
        loop_forget(b->session->loop, &b->source);
        loop_at(b->session->loop, &b->again, CLOCK_NEVER);
    }
    fd_closep(&b->fd);
}

static int send_input(struct bridge_input *b, const uint8_t *data, size_t len)
{
    const struct stream_data x = {.stream = STREAM_STDIN, .data = data, .len = len};
    uint8_t buf[CHUNK_BYTES + 64];
    struct writer w = writer_over(buf, sizeof buf);

    stream_data_encode(&w, &x);
    return session_tell(b->session, MSG_INPUT, b->id, &w);
}

static int input_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct bridge_input *b = source->owner;
    uint8_t data[CHUNK_BYTES];
    size_t want = b->credit < sizeof data ? b->credit : sizeof data;

    (void)events;
    if (b->session->channel.queued > JAM_BYTES) {
        (void)loop_change(l, source, 0);
        loop_at(l, &b->again, clock_after_us(JAM_US));
        return 0;
    }
    if (want == 0) /* hung up while no credit is left: look again when there is some */
        return loop_change(l, source, 0);
    ssize_t n = read(b->fd, data, want);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        close_input(b);
        b->ended = true;
        (void)send_input(b, (const uint8_t *)"", 0);
        if (b->passed_end)
            b->passed_end(b->owner);
        return 0;
    }
    b->credit -= (uint32_t)n;
    (void)send_input(b, data, (size_t)n);
    return b->credit == 0 ? loop_change(l, source, 0) : 0;
}

static int jam_over(struct loop *l, struct loop_timer *t)
{
    struct bridge_input *b = t->owner;

    return b->credit > 0 ? loop_change(l, &b->source, EPOLLIN) : 0;
}

int bridge_input_start(struct bridge_input *b, struct session *s, uint32_t id, int fd,
                       void (*passed_end)(void *), void *owner)
{
    *b = (struct bridge_input){
        .session = s,
        .id = id,
        .fd = fd,
        .source = {.name = "bridge", .fd = -EBADF, .owner = b, .ready = input_ready},
        .again = {.name = "jam", .owner = b, .due = jam_over},
        .credit = STREAM_WINDOW_BYTES,
        .started = true,
        .passed_end = passed_end,
        .owner = owner,
    };
    int r = make_non_blocking(fd);
    if (r == 0)
        r = loop_watch(s->loop, &b->source, fd, EPOLLIN);
    if (r < 0)
        bridge_input_stop(b);
    return r;
}

int bridge_input_credit(struct bridge_input *b, uint32_t credit)
{
    if (!b->started || b->fd < 0)
        return 0; /* of no use any more */
    if (credit > STREAM_WINDOW_BYTES - b->credit)
        return -EPROTO;
    b->credit += credit;
    return b->credit > 0 && !b->again.set ? loop_change(b->session->loop, &b->source, EPOLLIN) : 0;
}

void bridge_input_stop(struct bridge_input *b)
{
    if (b->started)
        close_input(b);
}
