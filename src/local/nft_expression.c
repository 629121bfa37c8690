/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of rules, as attributes nested in each other. */
#include "local/nft_expression.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "base/guards.h"

static size_t expression(struct netlink_batch *b, const char *name, size_t *ret_element)
{
    *ret_element = netlink_nest(b, NFTA_LIST_ELEM);
    netlink_put_text(b, NFTA_EXPR_NAME, name);
    return netlink_nest(b, NFTA_EXPR_DATA);
}

static void expression_end(struct netlink_batch *b, size_t data, size_t element)
{
    netlink_unnest(b, data);
    netlink_unnest(b, element);
}

void nft_value(struct netlink_batch *b, uint16_t type, const void *value, size_t len)
{
    size_t nest = netlink_nest(b, type);

    netlink_put(b, NFTA_DATA_VALUE, value, len);
    netlink_unnest(b, nest);
}

void nft_load_meta(struct netlink_batch *b, uint32_t key)
{
    size_t element, data = expression(b, "meta", &element);

    netlink_put_be32(b, NFTA_META_KEY, key);
    netlink_put_be32(b, NFTA_META_DREG, NFT_REG_1);
    expression_end(b, data, element);
}

void nft_load_payload(struct netlink_batch *b, uint32_t base, uint32_t offset, uint32_t len)
{
    size_t element, data = expression(b, "payload", &element);

    netlink_put_be32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
    netlink_put_be32(b, NFTA_PAYLOAD_BASE, base);
    netlink_put_be32(b, NFTA_PAYLOAD_OFFSET, offset);
    netlink_put_be32(b, NFTA_PAYLOAD_LEN, len);
    expression_end(b, data, element);
}

void nft_mask(struct netlink_batch *b, const uint8_t *bits, size_t len)
{
    static const uint8_t zero[16] = {0};
    size_t element, data = expression(b, "bitwise", &element);

    netlink_put_be32(b, NFTA_BITWISE_SREG, NFT_REG_1);
    netlink_put_be32(b, NFTA_BITWISE_DREG, NFT_REG_1);
    netlink_put_be32(b, NFTA_BITWISE_LEN, (uint32_t)len);
    nft_value(b, NFTA_BITWISE_MASK, bits, len);
    nft_value(b, NFTA_BITWISE_XOR, zero, len);
    expression_end(b, data, element);
}

void nft_compare(struct netlink_batch *b, const void *value, size_t len)
{
    size_t element, data = expression(b, "cmp", &element);

    netlink_put_be32(b, NFTA_CMP_SREG, NFT_REG_1);
    netlink_put_be32(b, NFTA_CMP_OP, NFT_CMP_EQ);
    nft_value(b, NFTA_CMP_DATA, value, len);
    expression_end(b, data, element);
}

void nft_lookup(struct netlink_batch *b, const char *set, uint32_t set_id)
{
    size_t element, data = expression(b, "lookup", &element);

    netlink_put_be32(b, NFTA_LOOKUP_SREG, NFT_REG_1);
    netlink_put_text(b, NFTA_LOOKUP_SET, set);
    netlink_put_be32(b, NFTA_LOOKUP_SET_ID, set_id);
    expression_end(b, data, element);
}

void nft_verdict(struct netlink_batch *b, uint32_t code, const char *chain)
{
    size_t element, data = expression(b, "immediate", &element);

    netlink_put_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t value = netlink_nest(b, NFTA_IMMEDIATE_DATA);
    size_t verdict = netlink_nest(b, NFTA_DATA_VERDICT);
    netlink_put_be32(b, NFTA_VERDICT_CODE, code);
    if (chain)
        netlink_put_text(b, NFTA_VERDICT_CHAIN, chain);
    netlink_unnest(b, verdict);
    netlink_unnest(b, value);
    expression_end(b, data, element);
}

void nft_log(struct netlink_batch *b, uint16_t group, uint32_t bytes)
{
    size_t element, data = expression(b, "log", &element);

    netlink_put_be16(b, NFTA_LOG_GROUP, group);
    netlink_put_be32(b, NFTA_LOG_SNAPLEN, bytes);
    expression_end(b, data, element);
}

void nft_reject(struct netlink_batch *b, uint32_t type, uint8_t code)
{
    size_t element, data = expression(b, "reject", &element);

    netlink_put_be32(b, NFTA_REJECT_TYPE, type);
    netlink_put_u8(b, NFTA_REJECT_ICMP_CODE, code);
    expression_end(b, data, element);
}

void nft_tproxy(struct netlink_batch *b, uint8_t family, uint16_t port)
{
    const uint16_t be = htons(port);
    size_t element, data = expression(b, "immediate", &element);

    netlink_put_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    nft_value(b, NFTA_IMMEDIATE_DATA, &be, sizeof be);
    expression_end(b, data, element);
    data = expression(b, "tproxy", &element);
    netlink_put_be32(b, NFTA_TPROXY_FAMILY, family);
    netlink_put_be32(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
    expression_end(b, data, element);
}
