/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over one socket. */
#include "core/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

/* A packet that waits: header, payload, and duplicates of its descriptors. */
struct channel_packet {
    struct channel_packet *next;
    size_t length, n_fds;
    int fds[IO_FDS_MAX];
    uint8_t bytes[];
};

void channel_init(struct channel *c, int fd)
{
    *c = (struct channel){.fd = fd};
    c->tail = &c->head;
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
    fd_closep(&c->fd);
    drop_incoming_fds(c);
    while (c->head) {
        struct channel_packet *p = c->head;

        c->head = p->next;
        packet_free(p);
    }
    free(c->message);
    *c = (struct channel){.fd = -EBADF};
}

/* Room for one more frame behind the @c->length bytes of earlier ones. */
static int reserve(struct channel *c)
{
    size_t need = c->length + FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX;

    if (need > MESSAGE_BYTES_MAX + FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX)
        return -EPROTO;
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

/* Adds one packet. 1: the message is whole; 0: more frames follow; negative errno. */
static int add_packet(struct channel *c, size_t length)
{
    uint8_t *at = c->message + c->length;
    struct reader payload;
    struct frame f;

    if (frame_parse(at, length, &f, &payload) != PARSE_DONE ||
        length != FRAME_HEADER_BYTES + f.length)
        return -EPROTO;
    if (c->begun && (f.type != c->first.type || f.id != c->first.id))
        return -EPROTO;
    memmove(at, payload.p, f.length); /* payloads lie side by side */
    c->length += f.length;
    c->first = f;
    c->begun = f.flags & FRAME_MORE;
    return c->begun ? 0 : 1;
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
        r = receive_packet(c);
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

    if (c->queued + FRAME_HEADER_BYTES + len > CHANNEL_QUEUE_MAX)
        return -ENOBUFS;
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

int channel_flush(struct channel *c)
{
    while (c->head) {
        struct channel_packet *p = c->head;
        int r = io_send_packet(c->fd, p->bytes, p->length, NULL, 0, p->fds, p->n_fds);

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
    if (r < 0)
        return r;
    do {
        size_t n = len < FRAME_PAYLOAD_MAX ? len : FRAME_PAYLOAD_MAX;
        struct frame f = {.length = (uint32_t)n, .type = type, .id = id};
        uint8_t head[FRAME_HEADER_BYTES];

        f.flags = n < len ? FRAME_MORE : 0;
        frame_header(&f, head);
        r = channel_waiting(c) ? -EAGAIN
                               : io_send_packet(c->fd, head, sizeof head, p, n, fds, n_fds);
        if (r == -EAGAIN)
            r = enqueue(c, head, p, n, fds, n_fds);
        p = n > 0 ? p + n : p;
        len -= n;
        n_fds = 0; /* descriptors travel with the first frame */
    } while (r == 0 && len > 0);
    return r;
}
