/* SPDX-License-Identifier: Apache-2.0 */
/* Whole packets for programs inside, written by hand: UDP and ICMP over IPv4 and IPv6. */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "egress/egress.h"
#include "base/guards.h"

/* Sizes, and RFC 791, 768, 8200, 4443. */
enum {
    V4_BYTES = 20,
    V6_BYTES = 40,
    FRAGMENT_BYTES = 8,
    UDP_BYTES = 8,
    ICMP_BYTES = 8,
    HEAD_MAX = V6_BYTES + FRAGMENT_BYTES + UDP_BYTES,
    HOPS = 64,
    LO_MTU = 65536,
    QUOTED_MAX = 128, /* bytes of a datagram in an ICMP error; a receiver needs none of them */
    BATCH = 32,
};

static void put_u16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* ---- checksums (RFC 1071), as sums that are folded at the end ---- */

static uint64_t sum(uint64_t s, const uint8_t *p, size_t n)
{
    for (; n >= 4; p += 4, n -= 4)
        s += (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    if (n >= 2)
        s += (uint32_t)p[0] << 8 | p[1];
    if (n & 1)
        s += (uint32_t)p[n - 1] << 8;
    return s;
}

static uint16_t fold(uint64_t s)
{
    while (s >> 16)
        s = (s & 0xFFFF) + (s >> 16);
    return (uint16_t)~s;
}

/* What RFC 8200, section 8.1, adds to the sum of a packet's payload. */
static uint64_t sum_pseudo_v6(const struct address *from, const struct address *to, size_t len,
                              uint8_t protocol)
{
    return sum(sum(len + protocol, from->bytes, 16), to->bytes, 16);
}

/* ---- headers; @len is what follows them ---- */

/* Of an IPv4 header that is sent by itself the kernel writes the sum and the identification
 * (raw(7)); one that is quoted has the sum too. */
static size_t put_ip(uint8_t *p, const struct address *from, const struct address *to,
                     uint8_t protocol, size_t len)
{
    if (to->family == ADDRESS_V4) {
        memset(p, 0, V4_BYTES);
        p[0] = 0x45;
        put_u16(p + 2, (uint32_t)(V4_BYTES + len));
        p[8] = HOPS;
        p[9] = protocol;
        memcpy(p + 12, from->bytes, 4);
        memcpy(p + 16, to->bytes, 4);
        put_u16(p + 10, fold(sum(0, p, V4_BYTES)));
        return V4_BYTES;
    }
    memset(p, 0, V6_BYTES);
    p[0] = 0x60;
    put_u16(p + 4, (uint32_t)len);
    p[6] = protocol;
    p[7] = HOPS;
    memcpy(p + 8, from->bytes, 16);
    memcpy(p + 24, to->bytes, 16);
    return V6_BYTES;
}

static size_t put_udp(uint8_t *p, uint16_t from_port, uint16_t to_port, size_t len)
{
    put_u16(p, from_port);
    put_u16(p + 2, to_port);
    put_u16(p + 4, (uint32_t)(UDP_BYTES + len));
    put_u16(p + 6, 0); /* of IPv4: none was computed (RFC 768) */
    return UDP_BYTES;
}

/* IPv6 has no datagrams without a sum; one that comes out as 0 is written as its other form. */
static void sum_udp_v6(uint8_t *udp, const struct datagram_reply *r)
{
    size_t len = UDP_BYTES + r->len;
    uint64_t s = sum_pseudo_v6(&r->ends.to, &r->ends.from, len, IPPROTO_UDP);
    uint16_t folded = fold(sum(sum(s, udp, UDP_BYTES), r->data, r->len));

    put_u16(udp + 6, folded == 0 ? 0xFFFF : folded);
}

/* ---- sending ---- */

union raw_name {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* To whom a raw socket sends; the kernel takes the rest from the packet. */
static socklen_t put_name(union raw_name *n, const struct address *to)
{
    if (to->family == ADDRESS_V4) {
        n->v4 = (struct sockaddr_in){.sin_family = AF_INET};
        memcpy(&n->v4.sin_addr, to->bytes, 4);
        return sizeof n->v4;
    }
    n->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
    memcpy(&n->v6.sin6_addr, to->bytes, 16);
    return sizeof n->v6;
}

static int raw_socket(const struct egress *e, enum address_family family)
{
    return e->inside[family == ADDRESS_V4 ? INSIDE_RAW4 : INSIDE_RAW6];
}

/* What the kernel does not take now is lost, as datagrams are. */
static void send_parts(const struct egress *e, const struct address *to, struct iovec *parts,
                       size_t n)
{
    union raw_name name;
    struct msghdr m = {.msg_name = &name, .msg_iov = parts, .msg_iovlen = n};

    m.msg_namelen = put_name(&name, to);
    (void)!sendmsg(raw_socket(e, to->family), &m, MSG_DONTWAIT);
}

struct packet {
    uint8_t head[HEAD_MAX];
    struct iovec parts[2];
    union raw_name name;
};

struct batch {
    struct packet packets[BATCH];
    struct mmsghdr messages[BATCH];
    unsigned n;
};

static void put_part(struct iovec *part, const uint8_t *data, size_t len)
{
    memcpy(&part->iov_base, &data, sizeof data); /* it is only read */
    part->iov_len = len;
}

static void batch_send(const struct egress *e, enum address_family family, struct batch *b)
{
    unsigned done = 0;

    while (done < b->n) {
        int n = sendmmsg(raw_socket(e, family), b->messages + done, b->n - done, MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN)
            break;
        done += n > 0 ? (unsigned)n : 1; /* the first of them was refused: to the next */
    }
    b->n = 0;
}

static void batch_add(struct batch *b, const struct datagram_reply *r)
{
    struct packet *p = &b->packets[b->n];
    size_t udp = put_ip(p->head, &r->ends.to, &r->ends.from, IPPROTO_UDP, UDP_BYTES + r->len);
    size_t head = udp + put_udp(p->head + udp, r->ends.to_port, r->ends.from_port, r->len);

    if (r->ends.to.family == ADDRESS_V6)
        sum_udp_v6(p->head + udp, r);
    put_part(&p->parts[0], p->head, head);
    put_part(&p->parts[1], r->data, r->len);
    b->messages[b->n].msg_hdr = (struct msghdr){.msg_name = &p->name,
                                                .msg_namelen = put_name(&p->name, &r->ends.from),
                                                .msg_iov = p->parts,
                                                .msg_iovlen = 2};
    b->n++;
}

/* ---- an answer that is too large for one packet of IPv6 ---- */

static void send_fragment(const struct egress *e, const struct datagram_reply *r, uint32_t id,
                          const uint8_t *udp, size_t from, size_t len, bool more)
{
    /* Offsets count from the start of the UDP header, which is in the first fragment. */
    size_t udp_len = from == 0 ? UDP_BYTES : 0, offset = from == 0 ? 0 : UDP_BYTES + from;
    uint8_t head[HEAD_MAX], *p = head;
    struct iovec parts[2];

    p += put_ip(p, &r->ends.to, &r->ends.from, IPPROTO_FRAGMENT, FRAGMENT_BYTES + udp_len + len);
    p[0] = IPPROTO_UDP;
    p[1] = 0;
    put_u16(p + 2, (uint32_t)offset | (more ? 1 : 0));
    put_u16(p + 4, id >> 16);
    put_u16(p + 6, id & 0xFFFF);
    p += FRAGMENT_BYTES;
    memcpy(p, udp, udp_len);
    put_part(&parts[0], head, (size_t)(p - head) + udp_len);
    put_part(&parts[1], r->data + from, len);
    send_parts(e, &r->ends.from, parts, 2);
}

static void send_in_two(const struct egress *e, const struct datagram_reply *r)
{
    enum { FIRST = 32768 - UDP_BYTES }; /* with its header a multiple of 8, as it has to be */
    uint32_t id = (uint32_t)clock_now_us();
    uint8_t udp[UDP_BYTES];

    (void)put_udp(udp, r->ends.to_port, r->ends.from_port, r->len);
    sum_udp_v6(udp, r);
    send_fragment(e, r, id, udp, 0, FIRST, true);
    send_fragment(e, r, id, udp, FIRST, r->len - FIRST, false);
}

void inject_datagrams(struct egress *e, const struct datagram_reply *replies, size_t n)
{
    struct batch v4, v6;

    v4.n = v6.n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct datagram_reply *r = &replies[i];
        struct batch *b = r->ends.from.family == ADDRESS_V4 ? &v4 : &v6;

        if (b == &v6 && V6_BYTES + UDP_BYTES + r->len > LO_MTU) {
            send_in_two(e, r);
            continue;
        }
        batch_add(b, r);
        if (b->n == BATCH)
            batch_send(e, r->ends.from.family, b);
    }
    batch_send(e, ADDRESS_V4, &v4);
    batch_send(e, ADDRESS_V6, &v6);
}

/* ---- errors ---- */

void inject_unreachable(struct egress *e, const struct datagram_ends *ends, const uint8_t *data,
                        size_t len)
{
    uint8_t buf[2 * V6_BYTES + ICMP_BYTES + UDP_BYTES + QUOTED_MAX], *icmp, *p;
    const bool v4 = ends->from.family == ADDRESS_V4;
    const size_t quoted = len < QUOTED_MAX ? len : QUOTED_MAX;
    const size_t ip_len = v4 ? V4_BYTES : V6_BYTES;
    const size_t icmp_len = ICMP_BYTES + ip_len + UDP_BYTES + quoted;

    icmp = buf + put_ip(buf, &ends->to, &ends->from, v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, icmp_len);
    memset(icmp, 0, ICMP_BYTES);
    icmp[0] = v4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH;
    icmp[1] = v4 ? ICMP_PORT_UNREACH : ICMP6_DST_UNREACH_NOPORT;
    p = icmp + ICMP_BYTES;
    p += put_ip(p, &ends->from, &ends->to, IPPROTO_UDP, UDP_BYTES + len);
    p += put_udp(p, ends->from_port, ends->to_port, len);
    if (quoted > 0)
        memcpy(p, data, quoted);
    uint64_t s = v4 ? 0 : sum_pseudo_v6(&ends->to, &ends->from, icmp_len, IPPROTO_ICMPV6);
    put_u16(icmp + 2, fold(sum(s, icmp, icmp_len)));

    struct iovec whole = {.iov_base = buf, .iov_len = ip_len + icmp_len};
    send_parts(e, &ends->from, &whole, 1);
}
