/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over one socket. */
#include "core/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum { STREAM_BUFFER_BYTES = 2 * (FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX) };

/* A packet that waits: header, payload, and duplicates of its descriptors. */
struct channel_packet {
    struct channel_packet *next;
    size_t length, n_fds;
    size_t sent; /* bytes that a stream has taken already */
    int fds[IO_FDS_MAX];
    uint8_t bytes[];
};

void channel_init(struct channel *c, int fd)
{
    *c = (struct channel){.fd = fd, .out_fd = -EBADF};
    c->tail = &c->head;
}

static int make_non_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int channel_init_stream(struct channel *c, int in_fd, int out_fd)
{
    channel_init(c, in_fd);
    c->out_fd = out_fd;
    c->stream = true;
    c->bytes = malloc(STREAM_BUFFER_BYTES);
    int r = c->bytes ? make_non_blocking(in_fd) : -ENOMEM;
    return r < 0 ? r : make_non_blocking(out_fd);
}

static void packet_free(struct channel_packet *p)
{
    for (size_t i = 0; i < p->n_fds; i++)
        fd_closep(&p->fds[i]);
    free(p);
}

static void drop_incoming_fds(struct channel *c)
{
    while (c->n_fds > 0)
        fd_closep(&c->fds[--c->n_fds]);
}

void channel_done(struct channel *c)
{
    if (c->out_fd != c->fd)
        fd_closep(&c->out_fd);
    fd_closep(&c->fd);
    drop_incoming_fds(c);
    while (c->head) {
        struct channel_packet *p = c->head;

        c->head = p->next;
        packet_free(p);
    }
    free(c->message);
    free(c->bytes);
    *c = (struct channel){.fd = -EBADF, .out_fd = -EBADF};
}

/* Room for one more frame behind the @c->length bytes of earlier ones. */
static int reserve(struct channel *c)
{
    size_t need = c->length + FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX;

    if (need <= c->capacity)
        return 0;
    size_t capacity = c->capacity ? c->capacity * 2 : need;
    uint8_t *m = realloc(c->message, capacity > need ? capacity : need);
    if (!m)
        return -ENOMEM;
    c->message = m;
    c->capacity = capacity > need ? capacity : need;
    return 0;
}

/* Adds one frame. 1: the message is whole; 0: more frames follow; -EPROTO. */
static int add_frame(struct channel *c, const struct frame *f, struct reader payload)
{
    if (c->begun && (f->type != c->first.type || f->id != c->first.id))
        return -EPROTO;
    if (f->length > MESSAGE_BYTES_MAX - c->length)
        return -EPROTO;
    if (f->length > 0)
        memmove(c->message + c->length, payload.p, f->length); /* payloads lie side by side */
    c->length += f->length;
    c->first = *f;
    c->begun = f->flags & FRAME_MORE;
    return c->begun ? 0 : 1;
}

static int add_packet(struct channel *c, size_t length)
{
    struct reader payload;
    struct frame f;

    if (frame_parse(c->message + c->length, length, &f, &payload) != PARSE_DONE ||
        length != FRAME_HEADER_BYTES + f.length)
        return -EPROTO;
    return add_frame(c, &f, payload);
}

/* More bytes of a stream behind those that wait. 0, -EAGAIN, -EPIPE, another negative errno. */
static int read_bytes(struct channel *c)
{
    ssize_t n;

    if (c->bytes_from > 0) {
        memmove(c->bytes, c->bytes + c->bytes_from, c->bytes_to - c->bytes_from);
        c->bytes_to -= c->bytes_from;
        c->bytes_from = 0;
    }
    do
        n = read(c->fd, c->bytes + c->bytes_to, STREAM_BUFFER_BYTES - c->bytes_to);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* told in front of the last bytes */
    if (n < 0)
        return -errno;
    c->bytes_to += (size_t)n;
    return n > 0 ? 0 : -EPIPE;
}

static int receive_bytes(struct channel *c)
{
    struct reader payload;
    struct frame f;
    int r = reserve(c);

    while (r == 0) {
        size_t have = c->bytes_to - c->bytes_from;
        enum parse_result p = frame_parse(c->bytes + c->bytes_from, have, &f, &payload);

        if (p == PARSE_DONE) {
            c->bytes_from += FRAME_HEADER_BYTES + f.length;
            return add_frame(c, &f, payload);
        }
        if (p == PARSE_BAD)
            return -EPROTO;
        r = read_bytes(c);
        if (r == -EPIPE && c->bytes_to > 0) /* it ended within a frame */
            return -EPROTO;
    }
    return r;
}

static int receive_packet(struct channel *c)
{
    int fds[IO_FDS_MAX];
    size_t n_fds = 0;
    ssize_t n;
    int r = reserve(c);

    if (r < 0)
        return r;
    n = io_recv_packet(c->fd, c->message + c->length, c->capacity - c->length, fds, &n_fds);
    for (size_t i = 0; i < n_fds; i++) {
        if (c->n_fds < IO_FDS_MAX)
            c->fds[c->n_fds++] = fds[i];
        else
            fd_closep(&fds[i]);
    }
    if (n == -EAGAIN)
        return -EAGAIN;
    if (n <= 0)
        return n == 0 ? -EPIPE : n == -EMSGSIZE ? -EPROTO : (int)n;
    return add_packet(c, (size_t)n);
}

int channel_receive(struct channel *c, struct message *ret)
{
    int r;

    if (!c->begun)
        c->length = 0;
    do
        r = c->stream ? receive_bytes(c) : receive_packet(c);
    while (r == 0);
    if (r == -EAGAIN)
        return 0;
    if (r < 0)
        return r;
    *ret = (struct message){
        .type = c->first.type,
        .id = c->first.id,
        .payload = reader_over(c->message, c->length),
        .n_fds = c->n_fds,
    };
    memcpy(ret->fds, c->fds, c->n_fds * sizeof(int));
    c->n_fds = 0;
    return 1;
}

void message_close_fds(struct message *m)
{
    for (size_t i = 0; i < m->n_fds; i++)
        fd_closep(&m->fds[i]);
    m->n_fds = 0;
}

int message_take_fd(struct message *m, size_t i)
{
    return i < m->n_fds ? TAKE_FD(m->fds[i]) : -EBADF;
}

/* Puts a packet behind those that wait. */
static int enqueue(struct channel *c, const uint8_t *head, const void *payload, size_t len,
                   const int *fds, size_t n_fds)
{
    struct channel_packet *p;

    p = malloc(sizeof *p + FRAME_HEADER_BYTES + len);
    if (!p)
        return -ENOMEM;
    *p = (struct channel_packet){.length = FRAME_HEADER_BYTES + len};
    memcpy(p->bytes, head, FRAME_HEADER_BYTES);
    if (len > 0)
        memcpy(p->bytes + FRAME_HEADER_BYTES, payload, len);
    for (; p->n_fds < n_fds; p->n_fds++) {
        p->fds[p->n_fds] = fcntl(fds[p->n_fds], F_DUPFD_CLOEXEC, 3);
        if (p->fds[p->n_fds] < 0) {
            int r = -errno;
            packet_free(p);
            return r;
        }
    }
    *c->tail = p;
    c->tail = &p->next;
    c->queued += p->length;
    return 0;
}

/* The rest of a packet into a stream: 0 when all of it is written, -EAGAIN, a negative errno. */
static int write_bytes(const struct channel *c, struct channel_packet *p)
{
    while (p->sent < p->length) {
        const uint8_t *at = p->bytes + p->sent;
        ssize_t n = send(c->out_fd, at, p->length - p->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == ENOTSOCK)
            n = write(c->out_fd, at, p->length - p->sent);
        if (n < 0 && errno != EINTR)
            return -errno;
        p->sent += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int channel_flush(struct channel *c)
{
    while (c->head) {
        struct channel_packet *p = c->head;
        int r = c->stream ? write_bytes(c, p)
                          : io_send_packet(c->fd, p->bytes, p->length, NULL, 0, p->fds, p->n_fds);

        if (r == -EAGAIN)
            return 0;
        if (r < 0)
            return r;
        c->head = p->next;
        if (!c->head)
            c->tail = &c->head;
        c->queued -= p->length;
        packet_free(p);
    }
    return 0;
}

bool channel_waiting(const struct channel *c)
{
    return c->head != NULL;
}

int channel_send(struct channel *c, uint16_t type, uint32_t id, const void *payload, size_t len,
                 const int *fds, size_t n_fds)
{
    const uint8_t *p = payload;
    int r = channel_flush(c);

    if (len > MESSAGE_BYTES_MAX)
        return -EMSGSIZE;
    if (c->stream && n_fds > 0)
        return -EINVAL;
    if (r < 0)
        return r;
    /* All of it fits or nothing of it is taken: the peer could not make sense of a half. */
    if (c->queued > 0 &&
        c->queued + len + (len / FRAME_PAYLOAD_MAX + 1) * FRAME_HEADER_BYTES > CHANNEL_QUEUE_MAX)
        return -ENOBUFS;
    do {
        size_t n = len < FRAME_PAYLOAD_MAX ? len : FRAME_PAYLOAD_MAX;
        struct frame f = {.length = (uint32_t)n, .type = type, .id = id};
        uint8_t head[FRAME_HEADER_BYTES];

        f.flags = n < len ? FRAME_MORE : 0;
        frame_header(&f, head);
        r = c->stream || channel_waiting(c)
                ? -EAGAIN
                : io_send_packet(c->fd, head, sizeof head, p, n, fds, n_fds);
        if (r == -EAGAIN)
            r = enqueue(c, head, p, n, fds, n_fds);
        p = n > 0 ? p + n : p;
        len -= n;
        n_fds = 0; /* descriptors travel with the first frame */
    } while (r == 0 && len > 0);
    return r == 0 && c->stream ? channel_flush(c) : r;
}
