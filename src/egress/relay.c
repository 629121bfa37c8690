/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sockets joined by splice(2). System calls are what a short connection costs, so each socket
 * is registered once, edge-triggered, and nothing is asked of the kernel that an event has told
 * already.
 */
#include "egress/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum {
    ROUNDS = 8,         /* of filling a pipe, before others have their turn */
    COPY_BYTES = 16384, /* at once, without a pipe */
    PAGE_BYTES = 4096,  /* that a slot of a pipe holds, at least */
};

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static void watch_for(struct relay *r, unsigned side, uint32_t events)
{
    int e = loop_change(r->loop, &r->sources[side], events);

    if (e < 0 && !r->error)
        r->error = e;
}

void relay_want_room(struct relay *r, unsigned way)
{
    r->ways[way].writable = false;
    watch_for(r, !way, r->sources[!way].events | EPOLLOUT);
}

void relay_again(struct relay *r, unsigned way)
{
    /* Any change of the mask makes epoll look again and report what is there (epoll_ctl(2)). Urgent
     * data is nothing to us, so its bit is free to be changed. */
    watch_for(r, way, r->sources[way].events ^ EPOLLPRI);
}

void relay_count(struct relay *r, unsigned way, size_t n)
{
    r->ways[way].bytes += n;
    traffic_add(r->traffic, way, n);
}

/*
 * Reads into the pipe. Return: 0, or -errno.
 *
 * An empty answer means "no bytes" only while the pipe is empty: a full one gives the same. Fewer
 * bytes than the pipe has slots mean that the socket has no more, since each slot holds one at
 * least; the next to come are told of by a new edge (epoll(7), question 9).
 */
static int fill(struct relay *r, unsigned w)
{
    struct relay_way *y = &r->ways[w];
    ssize_t n =
        splice(r->fds[w], NULL, y->pipe.in, NULL, y->pipe.size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    if (n < 0 && !would_block(errno))
        return -errno;
    if (n < 0) {
        if (y->in_pipe == 0)
            y->readable = false;
        return 0;
    }
    if (n == 0) {
        y->ended = true;
        return 0;
    }
    y->in_pipe += (size_t)n;
    relay_count(r, w, (size_t)n);
    if (!y->hung_up && (size_t)n < y->pipe.size / PAGE_BYTES)
        y->readable = false;
    return 0;
}

/* Writes what is in the pipe, as far as there is room. Return: 0, or -errno. */
static int drain(struct relay *r, unsigned w)
{
    struct relay_way *y = &r->ways[w];
    /* The last bytes wait for the end that follows at once: one segment instead of two. */
    unsigned more = y->ended && !r->error ? SPLICE_F_MORE : 0;

    while (y->in_pipe > 0) {
        ssize_t n = splice(y->pipe.out, NULL, r->fds[!w], NULL, y->in_pipe,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK | more);

        if (n < 0 && !would_block(errno))
            return -errno;
        if (n <= 0) {
            relay_want_room(r, w);
            return 0;
        }
        y->in_pipe -= (size_t)n;
    }
    return 0;
}

/* One round without a pipe: what was taken is taken out of the queue (tcp(7): MSG_TRUNC). */
static int copy(struct relay *r, unsigned w)
{
    struct relay_way *y = &r->ways[w];
    char buf[COPY_BYTES];
    ssize_t n = recv(r->fds[w], buf, sizeof buf, MSG_PEEK | MSG_DONTWAIT), sent;

    if (n < 0) {
        y->readable = !would_block(errno);
        return y->readable ? -errno : 0;
    }
    y->ended = n == 0;
    if (n == 0)
        return 0;
    sent = send(r->fds[!w], buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
        if (!would_block(errno))
            return -errno;
        relay_want_room(r, w);
        return 0;
    }
    relay_count(r, w, (size_t)sent);
    return recv(r->fds[w], buf, (size_t)sent, MSG_TRUNC | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Passes the end on. Once both ways have theirs, closing the sockets does that. */
static int close_way(struct relay *r, unsigned w)
{
    r->ways[w].closed = true;
    if (r->ways[!w].closed || shutdown(r->fds[!w], SHUT_WR) == 0)
        return 0;
    return errno == ENOTCONN ? -ECONNRESET : -errno;
}

/* Whether a round can do anything: bytes to write and room for them, or bytes to read. */
static bool may_move(const struct relay_way *y)
{
    return y->writable && (y->in_pipe > 0 || (y->readable && !y->ended));
}

static int one_round(struct relay *r, unsigned w)
{
    struct relay_way *y = &r->ways[w];
    int e = 0;

    if (y->in_pipe == 0) {
        if (pipes_take(r->pipes, &y->pipe) < 0)
            return copy(r, w);
        e = fill(r, w);
        if (e == 0 && y->hung_up && !y->ended && y->in_pipe > 0)
            e = fill(r, w); /* the end is there, perhaps next */
    }
    if (y->in_pipe > 0) {
        /* What came before an error still goes on. */
        int write_error = drain(r, w);

        e = e < 0 ? e : write_error;
    }
    if (y->in_pipe == 0)
        pipes_give(r->pipes, &y->pipe, true);
    return e;
}

/* Moves what can be moved one way. Return: 0, or -errno. */
static int pump(struct relay *r, unsigned w)
{
    struct relay_way *y = &r->ways[w];
    int e = 0;

    for (unsigned rounds = 0; e == 0 && !r->paused[w] && may_move(y); rounds++) {
        if (rounds == ROUNDS) {
            relay_again(r, w);
            break;
        }
        e = one_round(r, w);
    }
    /* With an error at hand the end is none: nobody may take what is cut for what is complete. */
    if (e == 0 && !r->error && y->ended && y->in_pipe == 0 && !y->closed)
        e = close_way(r, w);
    return e;
}

static void note(struct relay *r, int error)
{
    if (error < 0 && r->error == 0)
        r->error = error;
}

/* An error that no read or write has told, such as a reset after both ends. */
static void ask_error(struct relay *r, unsigned side)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (r->error == 0 && getsockopt(r->fds[side], SOL_SOCKET, SO_ERROR, &error, &len) == 0)
        note(r, -error);
}

/* Does all that can be done now. @failed: a side that has an error, or -1 */
static void turn(struct relay *r, int failed)
{
    r->turning = true;
    for (unsigned w = 0; w < 2; w++) {
        if (r->paused[w] && !r->ways[w].closed)
            note(r, r->paused_ready(r, w));
        if (r->fds[0] < 0)
            return; /* stopped */
    }
    note(r, pump(r, 0));
    note(r, pump(r, 1));
    if (failed >= 0)
        ask_error(r, (unsigned)failed);
    r->turning = false;
    if (r->error < 0 || (r->ways[0].closed && r->ways[1].closed))
        r->over(r, r->error);
}

static int socket_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct relay *r = s->owner;
    unsigned side = s == &r->sources[1];

    (void)l;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        r->ways[side].readable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        r->ways[side].hung_up = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        r->ways[!side].writable = true;
    turn(r, events & EPOLLERR ? (int)side : -1);
    return 0;
}

/* How the kernel closes the socket: by a reset, or in order. */
static void close_by_reset(int fd, bool reset)
{
    const struct linger linger = {.l_onoff = reset, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

int relay_start(struct relay *r)
{
    bool known = false; /* that something is there already */

    for (unsigned i = 0; i < 2; i++) {
        bool watched = r->sources[i].ready;
        int e;

        /* Should this process be killed, both ends learn that the connection was cut. */
        close_by_reset(r->fds[i], true);
        r->ways[i].writable = true;
        r->sources[i].name = i == 0 ? "inside" : "outside";
        r->sources[i].owner = r;
        r->sources[i].ready = socket_ready;
        if (watched) { /* an edge may have been told to whoever watched */
            r->ways[i].readable = known = true;
            continue;
        }
        e = loop_watch(r->loop, &r->sources[i], r->fds[i], RELAY_EVENTS);
        if (e < 0) {
            r->sources[i].fd = -EBADF;
            return e;
        }
    }
    if (known)
        turn(r, -1);
    return 0;
}

void relay_resume(struct relay *r, unsigned way)
{
    r->paused[way] = false;
    r->ways[way].readable = true;
    if (!r->turning)
        turn(r, -1);
}

void relay_stop(struct relay *r, bool reset)
{
    for (unsigned i = 0; i < 2; i++) {
        struct relay_way *y = &r->ways[i];

        if (y->in_pipe > 0)
            pipes_give(r->pipes, &y->pipe, false);
        y->in_pipe = 0;
        /* Closing the only descriptor of a socket takes it out of epoll (epoll(7), question 6). */
        r->sources[i].fd = -EBADF;
        if (r->fds[i] >= 0)
            close_by_reset(r->fds[i], reset);
        fd_closep(&r->fds[i]);
    }
}
