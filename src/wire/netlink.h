/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink messages (netlink(7), netlink(3)): one builder and one bounded reader for requests to the
 * kernel about routes (rtnetlink(7)) and rules (nf_tables), and for packets that the kernel logs
 * (nfnetlink_log). In memory order, as the kernel has them. Pure code.
 *
 * Debian has libmnl as a shared library only, and atoll is one static program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row of messages in one buffer, sent with one call. Sticky: `bad` when there was no room. */
struct netlink_batch {
    uint8_t *buf;
    size_t size, len;
    size_t message;    /* where the open message starts */
    uint32_t sequence; /* of the last message */
    bool bad;
};

void netlink_batch_init(struct netlink_batch *b, void *buf, size_t size);

/**
 * netlink_begin() - start a message, closing none: netlink_end() comes before the next
 * @head: the fixed part after the header (struct rtmsg, struct nfgenmsg), @head_len bytes
 */
void netlink_begin(struct netlink_batch *b, uint16_t type, uint16_t flags, const void *head,
                   size_t head_len);
void netlink_end(struct netlink_batch *b);

void netlink_put(struct netlink_batch *b, uint16_t type, const void *data, size_t len);
void netlink_put_u8(struct netlink_batch *b, uint16_t type, uint8_t v);
void netlink_put_u32(struct netlink_batch *b, uint16_t type, uint32_t v);
void netlink_put_be16(struct netlink_batch *b, uint16_t type, uint16_t v);
void netlink_put_be32(struct netlink_batch *b, uint16_t type, uint32_t v);
void netlink_put_text(struct netlink_batch *b, uint16_t type, const char *s); /* with its NUL */

/** netlink_nest() - open an attribute that holds others; give its result to netlink_unnest() */
size_t netlink_nest(struct netlink_batch *b, uint16_t type);
void netlink_unnest(struct netlink_batch *b, size_t nest);

/* One message of those that came; views of the buffer. */
struct netlink_message {
    uint16_t type, flags;
    uint32_t sequence;
    const uint8_t *payload;
    size_t len;
};

/** netlink_next() - the next message; false at the end, with *@bad set when bytes are damaged */
bool netlink_next(const uint8_t **p, const uint8_t *end, struct netlink_message *ret, bool *bad);

/** netlink_error() - errno that a message of type NLMSG_ERROR holds; 0: it acknowledges; -1: none
 */
int netlink_error(const struct netlink_message *m);

struct netlink_attribute {
    uint16_t type; /* without the flags of netlink(7) */
    const uint8_t *data;
    size_t len;
};

/** netlink_attribute_next() - the next attribute; false at the end or at damaged bytes */
bool netlink_attribute_next(const uint8_t **p, const uint8_t *end, struct netlink_attribute *ret);
