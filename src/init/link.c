/* SPDX-License-Identifier: Apache-2.0 */
/* Init's end of the keeper's socket: messages in one fixed buffer. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/init.h"
#include "base/guards.h"

void link_close_fds(struct init *i)
{
    for (size_t k = 0; k < i->n_fds; k++)
        if (i->fds[k] >= 0)
            (void)close(i->fds[k]);
    i->n_fds = 0;
}

/* 1: the message is whole; 0: more frames follow; negative errno. */
static int add_packet(struct init *i, size_t length)
{
    uint8_t *at = i->message + i->length;
    struct reader payload;
    struct frame f;

    if (frame_parse(at, length, &f, &payload) != PARSE_DONE ||
        length != FRAME_HEADER_BYTES + f.length)
        return -EPROTO;
    if (i->begun && (f.type != i->first.type || f.id != i->first.id))
        return -EPROTO;
    memmove(at, payload.p, f.length);
    i->length += f.length;
    i->first = f;
    i->begun = f.flags & FRAME_MORE;
    return i->begun ? 0 : 1;
}

int link_receive(struct init *i, struct frame *ret, struct reader *ret_payload)
{
    int r = 0;

    if (!i->begun) {
        i->length = 0;
        link_close_fds(i);
    }
    while (r == 0) {
        size_t n_fds = 0;
        int fds[IO_FDS_MAX];

        if (i->length > MESSAGE_BYTES_MAX)
            return -EPROTO;
        ssize_t n = io_recv_packet(INIT_CHANNEL_FD, i->message + i->length,
                                   sizeof i->message - i->length, fds, &n_fds);
        for (size_t k = 0; k < n_fds; k++) {
            if (i->n_fds < IO_FDS_MAX)
                i->fds[i->n_fds++] = fds[k];
            else
                (void)close(fds[k]);
        }
        if (n == -EAGAIN)
            return 0;
        if (n <= 0)
            return n == 0 ? -EPIPE : (int)n;
        r = add_packet(i, (size_t)n);
    }
    if (r < 0)
        return r;
    *ret = i->first;
    *ret_payload = reader_over(i->message, i->length);
    return 1;
}

void link_send(uint16_t type, uint32_t id, const struct writer *w, int fd)
{
    struct frame f = {.length = (uint32_t)writer_len(w), .type = type, .id = id};
    uint8_t head[FRAME_HEADER_BYTES];
    int r;

    frame_header(&f, head);
    do {
        r = io_send_packet(INIT_CHANNEL_FD, head, sizeof head, w->start, f.length, &fd,
                           fd >= 0 ? 1 : 0);
        /* The keeper always drains this socket; while it is full there is nothing else to do. */
        if (r == -EAGAIN)
            (void)io_wait(INIT_CHANNEL_FD, POLLOUT, CLOCK_NEVER);
    } while (r == -EAGAIN);
    if (r < 0)
        _exit(1); /* the keeper is gone: with process 1 everything ends */
}
