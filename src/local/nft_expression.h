/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rule of nf_tables is made of (linux/netfilter/nf_tables.h): expressions that work on a
 * register, one after another, until one does not match or gives a verdict. One register is enough
 * here. Each call adds one expression to the list that is open; pure code.
 */
#pragma once

#include "wire/netlink.h"

/** nft_value() - bytes as data: of an expression, or the key of a set's element */
void nft_value(struct netlink_batch *b, uint16_t type, const void *value, size_t len);

/** nft_load_meta() - a property of the packet (NFT_META_*) into the register */
void nft_load_meta(struct netlink_batch *b, uint32_t key);

/** nft_load_payload() - bytes of a header (NFT_PAYLOAD_*_HEADER) into the register */
void nft_load_payload(struct netlink_batch *b, uint32_t base, uint32_t offset, uint32_t len);

/** nft_mask() - clear all bits of the register but those of @bits; 16 bytes at most */
void nft_mask(struct netlink_batch *b, const uint8_t *bits, size_t len);

/** nft_compare() - go on if the register is equal */
void nft_compare(struct netlink_batch *b, const void *value, size_t len);

/** nft_lookup() - go on if the register is in a set */
void nft_lookup(struct netlink_batch *b, const char *set, uint32_t set_id);

/** nft_verdict() - NF_ACCEPT and the like; @chain: of NFT_GOTO, else NULL */
void nft_verdict(struct netlink_batch *b, uint32_t code, const char *chain);

/** nft_log() - tell a group of nfnetlink_log of the packet, with its first @bytes */
void nft_log(struct netlink_batch *b, uint16_t group, uint32_t bytes);

/** nft_reject() - refuse by an answer (NFT_REJECT_*) */
void nft_reject(struct netlink_batch *b, uint32_t type, uint8_t code);

/** nft_tproxy() - to the transparent socket at @port of loopback; of a packet of @family */
void nft_tproxy(struct netlink_batch *b, uint8_t family, uint16_t port);
