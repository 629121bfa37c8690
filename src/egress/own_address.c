/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the kernel which way an address lies. */
#include "egress/own_address.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "wire/netlink.h"
#include "base/guards.h"

enum {
    REQUEST_BYTES = 128,
    ANSWER_BYTES = 4096,
    ANSWERS_MAX = 16,      /* old ones that are skipped */
    LOOPBACK_INTERFACE = 1 /* the kernel makes "lo" first in each network namespace */
};

int own_address_init(struct own_address *o)
{
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    /* Connected: what other processes send to this socket is not received. */
    if (fd < 0 || connect(fd, (const struct sockaddr *)&kernel, sizeof kernel) < 0)
        return -errno;
    *o = (struct own_address){.fd = TAKE_FD(fd)};
    return 0;
}

void own_address_done(struct own_address *o)
{
    fd_closep(&o->fd);
}

static int send_request(struct own_address *o, const struct address *a)
{
    uint8_t buf[REQUEST_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
    const bool v6 = a->family == ADDRESS_V6;
    const struct rtmsg head = {.rtm_family = v6 ? AF_INET6 : AF_INET, .rtm_dst_len = v6 ? 128 : 32};
    struct netlink_batch b;

    netlink_batch_init(&b, buf, sizeof buf);
    b.sequence = o->sequence;
    netlink_begin(&b, RTM_GETROUTE, NLM_F_REQUEST, &head, sizeof head);
    netlink_put(&b, RTA_DST, a->bytes, v6 ? 16 : 4);
    netlink_end(&b);
    if (b.bad)
        return -ENOBUFS;
    o->sequence = b.sequence;
    return send(o->fd, buf, b.len, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static enum own_address_answer of_route(const struct netlink_message *m)
{
    struct rtmsg head;
    struct netlink_attribute a;

    if (m->len < NLMSG_ALIGN(sizeof head))
        return ADDRESS_OWN;
    memcpy(&head, m->payload, sizeof head);
    const uint8_t *p = m->payload + NLMSG_ALIGN(sizeof head), *end = m->payload + m->len;
    while (netlink_attribute_next(&p, end, &a)) {
        uint32_t interface = 0;

        if (a.type != RTA_OIF || a.len != sizeof interface)
            continue;
        memcpy(&interface, a.data, sizeof interface);
        if (interface == LOOPBACK_INTERFACE) /* however the route calls itself */
            return ADDRESS_OWN;
    }
    return head.rtm_type == RTN_UNICAST ? ADDRESS_ELSEWHERE : ADDRESS_OWN;
}

/* What ip-route(8) says of routes of the types unreachable, prohibit and blackhole, and of none. */
static enum own_address_answer of_error(int error)
{
    return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES || error == EINVAL
               ? ADDRESS_NO_ROUTE
               : ADDRESS_OWN;
}

enum own_address_answer own_address_ask(struct own_address *o, const struct address *a)
{
    const struct address to = address_unmapped(a); /* a socket sends IPv4 to it */
    uint8_t buf[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));

    if (send_request(o, &to) < 0)
        return ADDRESS_OWN;
    for (unsigned i = 0; i < ANSWERS_MAX; i++) {
        /* The kernel answers within send(2), so there is nothing to wait for (netlink(7)). */
        ssize_t n = recv(o->fd, buf, sizeof buf, MSG_DONTWAIT);
        const uint8_t *p = buf;
        struct netlink_message m;
        bool bad;

        if (n <= 0)
            break;
        while (netlink_next(&p, buf + n, &m, &bad)) {
            if (m.sequence != o->sequence)
                continue;
            if (m.type == RTM_NEWROUTE)
                return of_route(&m);
            if (m.type == NLMSG_ERROR)
                return of_error(netlink_error(&m));
        }
    }
    return ADDRESS_OWN;
}
