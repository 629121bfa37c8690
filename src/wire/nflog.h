/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of a sandbox that its kernel rules refused, as nfnetlink_log tells of them: where each
 * wanted to go. The packet's own headers are whatever a program inside sent, so all of it is
 * foreign. Pure code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nflog_packet {
    uint8_t family;      /* 4 or 6 */
    uint8_t address[16]; /* destination; network order */
    uint8_t protocol;    /* IPPROTO_TCP, IPPROTO_UDP, …; of IPv6 after its extension headers */
    uint16_t port;       /* destination; 0: the protocol has none, or it was cut off */
    uint32_t sequence;   /* of this group; a gap counts what was dropped. 0 if not sequenced */
    bool sequenced;
};

/**
 * nflog_parse() - one NFULNL_MSG_PACKET: the payload of its netlink message
 *
 * Return: 0, or -EPROTO for a damaged message or a packet that is neither IPv4 nor IPv6.
 */
int nflog_parse(const uint8_t *payload, size_t len, struct nflog_packet *ret);
