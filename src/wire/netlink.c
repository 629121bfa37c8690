/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to and from the kernel over netlink sockets. */
#include "wire/netlink.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <string.h>

#include "base/guards.h"

/* What messages and attributes are aligned to (netlink(3)); both aligned sizes are those of their
 * headers, too. */
enum { ALIGNMENT = 4, MESSAGE_HEADER = sizeof(struct nlmsghdr), ATTRIBUTE_HEADER = 4 };

static size_t aligned(size_t n)
{
    return (n + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

void netlink_batch_init(struct netlink_batch *b, void *buf, size_t size)
{
    *b = (struct netlink_batch){.buf = buf, .size = size};
}

/* Room for @n bytes, zeroed and filled up to the alignment; its offset, or 0 with @b->bad. */
static size_t reserve(struct netlink_batch *b, size_t n)
{
    size_t at = b->len;

    if (b->bad || n > SIZE_MAX - ALIGNMENT || aligned(n) > b->size - b->len) {
        b->bad = true;
        return 0;
    }
    memset(b->buf + at, 0, aligned(n));
    b->len += aligned(n);
    return at;
}

void netlink_begin(struct netlink_batch *b, uint16_t type, uint16_t flags, const void *head,
                   size_t head_len)
{
    struct nlmsghdr h = {.nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = b->sequence + 1};
    size_t at = reserve(b, MESSAGE_HEADER + head_len);

    if (b->bad)
        return;
    b->message = at;
    b->sequence++;
    memcpy(b->buf + at, &h, sizeof h);
    memcpy(b->buf + at + sizeof h, head, head_len);
}

void netlink_end(struct netlink_batch *b)
{
    uint32_t len = (uint32_t)(b->len - b->message);

    if (!b->bad)
        memcpy(b->buf + b->message + offsetof(struct nlmsghdr, nlmsg_len), &len, sizeof len);
}

static void put_header(struct netlink_batch *b, size_t at, uint16_t type, size_t len)
{
    struct nlattr h = {.nla_len = (uint16_t)len, .nla_type = type};

    memcpy(b->buf + at, &h, sizeof h);
}

void netlink_put(struct netlink_batch *b, uint16_t type, const void *data, size_t len)
{
    if (len > UINT16_MAX - ATTRIBUTE_HEADER)
        b->bad = true;
    size_t at = reserve(b, ATTRIBUTE_HEADER + len);
    if (b->bad)
        return;
    put_header(b, at, type, ATTRIBUTE_HEADER + len);
    if (len > 0)
        memcpy(b->buf + at + ATTRIBUTE_HEADER, data, len);
}

void netlink_put_u8(struct netlink_batch *b, uint16_t type, uint8_t v)
{
    netlink_put(b, type, &v, sizeof v);
}

void netlink_put_u32(struct netlink_batch *b, uint16_t type, uint32_t v)
{
    netlink_put(b, type, &v, sizeof v);
}

void netlink_put_be16(struct netlink_batch *b, uint16_t type, uint16_t v)
{
    uint16_t be = htons(v);

    netlink_put(b, type, &be, sizeof be);
}

void netlink_put_be32(struct netlink_batch *b, uint16_t type, uint32_t v)
{
    uint32_t be = htonl(v);

    netlink_put(b, type, &be, sizeof be);
}

void netlink_put_text(struct netlink_batch *b, uint16_t type, const char *s)
{
    netlink_put(b, type, s, strlen(s) + 1);
}

size_t netlink_nest(struct netlink_batch *b, uint16_t type)
{
    size_t at = reserve(b, ATTRIBUTE_HEADER);

    if (!b->bad)
        put_header(b, at, type | NLA_F_NESTED, ATTRIBUTE_HEADER);
    return at;
}

void netlink_unnest(struct netlink_batch *b, size_t nest)
{
    size_t len = b->len - nest;
    uint16_t short_len = (uint16_t)len;

    if (len > UINT16_MAX) /* it would be cut without a word */
        b->bad = true;
    if (!b->bad)
        memcpy(b->buf + nest, &short_len, sizeof short_len);
}

/* Moves @*p behind @len bytes and their filling, which the last one may lack. */
static void advance(const uint8_t **p, const uint8_t *end, size_t len)
{
    size_t left = (size_t)(end - *p);

    *p += aligned(len) < left ? aligned(len) : left;
}

bool netlink_next(const uint8_t **p, const uint8_t *end, struct netlink_message *ret, bool *bad)
{
    size_t left = (size_t)(end - *p);
    struct nlmsghdr h;

    if (left == 0)
        return false;
    if (left >= sizeof h)
        memcpy(&h, *p, sizeof h);
    if (left < sizeof h || h.nlmsg_len < sizeof h || h.nlmsg_len > left) {
        *bad = true;
        return false;
    }
    *ret = (struct netlink_message){.type = h.nlmsg_type,
                                    .flags = h.nlmsg_flags,
                                    .sequence = h.nlmsg_seq,
                                    .payload = *p + sizeof h,
                                    .len = h.nlmsg_len - sizeof h};
    advance(p, end, h.nlmsg_len);
    return true;
}

int netlink_error(const struct netlink_message *m)
{
    int32_t error;

    if (m->type != NLMSG_ERROR || m->len < sizeof error)
        return -1;
    memcpy(&error, m->payload, sizeof error);
    /* Anything that is no negative errno would be taken for what it is not. */
    return error == 0 ? 0 : error < 0 && error >= -4095 ? -error : -1;
}

bool netlink_attribute_next(const uint8_t **p, const uint8_t *end, struct netlink_attribute *ret)
{
    size_t left = (size_t)(end - *p);
    struct nlattr h;

    if (left < sizeof h)
        return false;
    memcpy(&h, *p, sizeof h);
    if (h.nla_len < sizeof h || h.nla_len > left)
        return false;
    *ret = (struct netlink_attribute){
        .type = h.nla_type & NLA_TYPE_MASK, .data = *p + sizeof h, .len = h.nla_len - sizeof h};
    advance(p, end, h.nla_len);
    return true;
}
