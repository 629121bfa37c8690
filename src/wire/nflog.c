/* SPDX-License-Identifier: Apache-2.0 */
/* Where a refused packet wanted to go, from the copy of its first bytes that the kernel logs. */
#include "wire/nflog.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <string.h>

#include "wire/netlink.h"
#include "wire/reader.h"
#include "base/guards.h"

enum {
    IPV4_BYTES = 20,
    IPV6_BYTES = 40,
    EXTENSIONS_MAX = 8, /* more than any program sends; a longer row is no packet to follow */
};

static uint16_t big_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static bool has_ports(uint8_t protocol)
{
    return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE ||
           protocol == IPPROTO_SCTP || protocol == IPPROTO_DCCP;
}

/* The destination's port: the second 16 bits of all protocols that have ports. */
static void read_port(struct reader *r, struct nflog_packet *ret)
{
    const uint8_t *ports = has_ports(ret->protocol) ? reader_take(r, 4) : NULL;

    if (ports)
        ret->port = big_u16(ports + 2);
}

/* RFC 791, 3.1. */
static int read_v4(struct reader *r, struct nflog_packet *ret)
{
    const uint8_t *h = reader_take(r, IPV4_BYTES);

    if (!h || (h[0] & 15) * 4 < IPV4_BYTES)
        return -EPROTO;
    ret->family = 4;
    ret->protocol = h[9];
    memcpy(ret->address, h + 16, 4);
    if ((big_u16(h + 6) & 0x1FFF) == 0 && /* later fragments begin in the middle of the data */
        reader_take(r, (size_t)(h[0] & 15) * 4 - IPV4_BYTES))
        read_port(r, ret);
    return 0;
}

/* Moves @r behind the extension header of @type (RFC 8200, 4); false when it is none, or when no
 * header of a transport follows that could be read. */
static bool skip_extension(struct reader *r, uint8_t *type)
{
    const uint8_t *h;
    size_t rest;

    if (*type != IPPROTO_HOPOPTS && *type != IPPROTO_ROUTING && *type != IPPROTO_DSTOPTS &&
        *type != IPPROTO_FRAGMENT && *type != IPPROTO_AH)
        return false;
    h = reader_take(r, 8);
    if (!h)
        return false;
    rest = *type == IPPROTO_FRAGMENT ? 0
           : *type == IPPROTO_AH     ? (size_t)h[1] * 4 /* RFC 4302, 2.2: it counts in fours */
                                     : (size_t)h[1] * 8;
    if (*type == IPPROTO_FRAGMENT && big_u16(h + 2) >> 3 != 0)
        r->bad = true;
    *type = h[0];
    return reader_take(r, rest) != NULL;
}

static int read_v6(struct reader *r, struct nflog_packet *ret)
{
    const uint8_t *h = reader_take(r, IPV6_BYTES);

    if (!h)
        return -EPROTO;
    ret->family = 6;
    ret->protocol = h[6];
    memcpy(ret->address, h + 24, 16);
    for (int i = 0; i < EXTENSIONS_MAX; i++)
        if (!skip_extension(r, &ret->protocol))
            break;
    read_port(r, ret);
    return 0;
}

static int read_packet(const struct netlink_attribute *a, struct nflog_packet *ret)
{
    struct reader r = reader_over(a->data, a->len);

    if (a->len == 0)
        return -EPROTO;
    /* What the kernel says of the family in the message is that of the hook, which is inet. */
    switch (a->data[0] >> 4) {
    case 4:
        return read_v4(&r, ret);
    case 6:
        return read_v6(&r, ret);
    default:
        return -EPROTO;
    }
}

int nflog_parse(const uint8_t *payload, size_t len, struct nflog_packet *ret)
{
    const uint8_t *p = payload + sizeof(struct nfgenmsg), *end = payload + len;
    struct nflog_packet found = {0};
    struct netlink_attribute a;
    bool sequenced = false;
    uint32_t sequence = 0;
    int r = -EPROTO;

    if (len < sizeof(struct nfgenmsg))
        return -EPROTO;
    while (netlink_attribute_next(&p, end, &a)) {
        if (a.type == NFULA_PAYLOAD) {
            found = (struct nflog_packet){0};
            r = read_packet(&a, &found);
        }
        if (a.type == NFULA_SEQ && a.len == 4) {
            sequence = (uint32_t)big_u16(a.data) << 16 | big_u16(a.data + 2);
            sequenced = true;
        }
    }
    if (p != end || r < 0)
        return -EPROTO;
    *ret = found;
    ret->sequence = sequence;
    ret->sequenced = sequenced;
    return 0;
}
