/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded I/O and packets with descriptors. */
#include "base/io.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guards.h"

int io_wait(int fd, short events, uint64_t deadline_us)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, clock_poll_ms(deadline_us));

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0 && clock_now_us() >= deadline_us)
            return -ETIMEDOUT;
    }
}

int io_read_full(int fd, void *buf, size_t len, uint64_t deadline_us)
{
    uint8_t *p = buf;

    while (len > 0) {
        ssize_t n = read(fd, p, len);

        if (n > 0) {
            p += n;
            len -= (size_t)n;
        } else if (n == 0) {
            return -EPIPE;
        } else if (errno == EAGAIN) {
            int r = io_wait(fd, POLLIN, deadline_us);
            if (r < 0)
                return r;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int io_write_full(int fd, const void *buf, size_t len, uint64_t deadline_us)
{
    const uint8_t *p = buf;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            int r = io_wait(fd, POLLOUT, deadline_us);
            if (r < 0)
                return r;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int io_send_packet(int fd, const void *head, size_t head_len, const void *body, size_t body_len,
                   const int *fds, size_t n_fds)
{
    struct iovec iov[2] = {
        {.iov_base = (void *)(uintptr_t)head, .iov_len = head_len},
        {.iov_base = (void *)(uintptr_t)body, .iov_len = body_len},
    };
    union {
        char bytes[CMSG_SPACE(IO_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = body_len > 0 ? 2 : 1};

    if (n_fds > IO_FDS_MAX)
        return -EINVAL;
    if (n_fds > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    for (;;) {
        ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0)
            return 0; /* SOCK_SEQPACKET: whole or not at all */
        if (errno != EINTR)
            return -errno;
    }
}

/* Takes the descriptors out of a received packet's control data. */
static void take_fds(struct msghdr *msg, int fds[static IO_FDS_MAX], size_t *n_fds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            if (*n_fds < IO_FDS_MAX)
                fds[(*n_fds)++] = fd;
            else
                (void)close(fd);
        }
    }
}

ssize_t io_recv_packet(int fd, void *buf, size_t size, int fds[static IO_FDS_MAX],
                       size_t *ret_n_fds)
{
    struct iovec iov = {.iov_base = buf, .iov_len = size};
    union {
        char bytes[CMSG_SPACE(IO_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    ssize_t n;

    *ret_n_fds = 0;
    /* A peer that died with unread bytes is told of once, in front of what it sent before. */
    do
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0)
        return -errno;
    take_fds(&msg, fds, ret_n_fds);
    if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        /* Fewer than there was room for: this process may hold no more of them. */
        bool no_room = !(msg.msg_flags & MSG_TRUNC) && *ret_n_fds < IO_FDS_MAX;

        while (*ret_n_fds > 0)
            (void)close(fds[--*ret_n_fds]);
        return no_room ? -EMFILE : -EMSGSIZE;
    }
    return n;
}

int io_pair(int ret[static 2])
{
    int sv[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0)
        return -errno;
    ret[0] = sv[0];
    ret[1] = sv[1];
    return 0;
}
