/* SPDX-License-Identifier: Apache-2.0 */
/* One batch to the kernel, and its answers. */
#include "local/netlink_request.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum { ANSWER_BYTES = 8192 }; /* of one datagram: many short answers */

int netlink_open(int family)
{
    const int on = 1;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, family);

    if (fd < 0)
        return -errno;
    /* An error answers with the whole message that it is about, which may be large. */
    (void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    return fd;
}

/* Whether a datagram settles it: 1 when @last was acknowledged, -errno when anything was refused,
 * else 0. */
static int judge(const uint8_t *p, const uint8_t *end, uint32_t last, uint32_t *ret_failed)
{
    struct netlink_message m;
    bool bad = false;

    while (netlink_next(&p, end, &m, &bad)) {
        int error = netlink_error(&m);

        if (error > 0) {
            *ret_failed = m.sequence;
            return -error;
        }
        if (error == 0 && m.sequence == last)
            return 1;
    }
    return bad ? -EIO : 0;
}

int netlink_request(int fd, const struct netlink_batch *b, uint32_t last, uint32_t *ret_failed)
{
    const int room = (int)b->len + 4096;
    uint8_t answer[ANSWER_BYTES];
    int r = 0;

    *ret_failed = 0;
    if (b->bad)
        return -ENOBUFS;
    /* A message larger than the send buffer is refused; the default holds most. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (send(fd, b->buf, b->len, 0) < 0)
        return -errno;
    while (r == 0) {
        struct sockaddr_nl from = {0};
        socklen_t from_len = sizeof from;
        ssize_t n = recvfrom(fd, answer, sizeof answer, 0, (struct sockaddr *)&from, &from_len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) /* what it has to say is there when the sending is over */
            return errno == EAGAIN ? -EIO : -errno;
        if (from.nl_pid == 0) /* the kernel's own */
            r = judge(answer, answer + n, last, ret_failed);
    }
    return r < 0 ? r : 0;
}
