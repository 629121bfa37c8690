/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What addresses are for: the blocks that standards set aside (the IANA special-purpose registries,
 * RFC 6890), IPv4 addresses carried in IPv6 ones, and whether ranges leave nothing public out.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/address.h"
#include "base/guards.h"

#define V4(a, b, c, d, bits)                                                                       \
    {                                                                                              \
        {ADDRESS_V4, {a, b, c, d}}, bits                                                           \
    }
#define V6(a, b, c, d, e, f, g, h, bits)                                                           \
    {                                                                                              \
        {ADDRESS_V6,                                                                               \
         {GROUP(a), GROUP(b), GROUP(c), GROUP(d), GROUP(e), GROUP(f), GROUP(g), GROUP(h)}},        \
            bits                                                                                   \
    }
#define GROUP(x) (x) >> 8, (x)&0xFF

/* The first row that holds an address decides, so the narrow ones come first. */
static const struct address_block blocks[] = {
    /* Where clouds hand credentials to whoever asks: link-local in most, and not in some. */
    {ADDRESS_METADATA, V4(169, 254, 169, 254, 32), "RFC 3927, and a convention of clouds"},
    {ADDRESS_METADATA, V4(169, 254, 170, 2, 32), "RFC 3927, and a convention of clouds"},
    {ADDRESS_METADATA, V4(100, 100, 100, 200, 32), "RFC 6598, and a convention of clouds"},
    {ADDRESS_METADATA, V4(192, 0, 0, 192, 32), "RFC 6890, and a convention of clouds"},
    {ADDRESS_METADATA, V4(168, 63, 129, 16, 32), "a convention of clouds, no RFC"},
    {ADDRESS_METADATA, V6(0xFD00, 0x0EC2, 0, 0, 0, 0, 0, 0x0254, 128),
     "RFC 4193, and a convention of clouds"},
    {ADDRESS_METADATA, V6(0xFD20, 0x00CE, 0, 0, 0, 0, 0, 0x0254, 128),
     "RFC 4193, and a convention of clouds"},

    {ADDRESS_UNSPECIFIED, V4(0, 0, 0, 0, 8), "RFC 1122, section 3.2.1.3"},
    {ADDRESS_PRIVATE, V4(10, 0, 0, 0, 8), "RFC 1918, section 3"},
    {ADDRESS_SHARED, V4(100, 64, 0, 0, 10), "RFC 6598"},
    {ADDRESS_LOOPBACK, V4(127, 0, 0, 0, 8), "RFC 1122, section 3.2.1.3"},
    {ADDRESS_LINK_LOCAL, V4(169, 254, 0, 0, 16), "RFC 3927"},
    {ADDRESS_PRIVATE, V4(172, 16, 0, 0, 12), "RFC 1918, section 3"},
    {ADDRESS_RESERVED, V4(192, 0, 0, 0, 24), "RFC 6890, section 2.1"},
    {ADDRESS_DOCUMENTATION, V4(192, 0, 2, 0, 24), "RFC 5737"},
    {ADDRESS_RESERVED, V4(192, 88, 99, 0, 24), "RFC 7526"},
    {ADDRESS_PRIVATE, V4(192, 168, 0, 0, 16), "RFC 1918, section 3"},
    {ADDRESS_BENCHMARK, V4(198, 18, 0, 0, 15), "RFC 2544"},
    {ADDRESS_DOCUMENTATION, V4(198, 51, 100, 0, 24), "RFC 5737"},
    {ADDRESS_DOCUMENTATION, V4(203, 0, 113, 0, 24), "RFC 5737"},
    {ADDRESS_MULTICAST, V4(224, 0, 0, 0, 4), "RFC 5771"},
    {ADDRESS_BROADCAST, V4(255, 255, 255, 255, 32), "RFC 919"},
    {ADDRESS_RESERVED, V4(240, 0, 0, 0, 4), "RFC 1112, section 4"},

    {ADDRESS_UNSPECIFIED, V6(0, 0, 0, 0, 0, 0, 0, 0, 128), "RFC 4291, section 2.5.2"},
    {ADDRESS_LOOPBACK, V6(0, 0, 0, 0, 0, 0, 0, 1, 128), "RFC 4291, section 2.5.3"},
    {ADDRESS_PRIVATE, V6(0x0064, 0xFF9B, 1, 0, 0, 0, 0, 0, 48), "RFC 8215"},
    {ADDRESS_RESERVED, V6(0x0100, 0, 0, 0, 0, 0, 0, 0, 64), "RFC 6666"},
    {ADDRESS_BENCHMARK, V6(0x2001, 2, 0, 0, 0, 0, 0, 0, 48), "RFC 5180"},
    {ADDRESS_RESERVED, V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 23), "RFC 2928"},
    {ADDRESS_DOCUMENTATION, V6(0x2001, 0x0DB8, 0, 0, 0, 0, 0, 0, 32), "RFC 3849"},
    {ADDRESS_DOCUMENTATION, V6(0x3FFF, 0, 0, 0, 0, 0, 0, 0, 20), "RFC 9637"},
    {ADDRESS_PRIVATE, V6(0xFC00, 0, 0, 0, 0, 0, 0, 0, 7), "RFC 4193"},
    {ADDRESS_LINK_LOCAL, V6(0xFE80, 0, 0, 0, 0, 0, 0, 0, 10), "RFC 4291, section 2.5.6"},
    {ADDRESS_PRIVATE, V6(0xFEC0, 0, 0, 0, 0, 0, 0, 0, 10), "RFC 3879"},
    {ADDRESS_MULTICAST, V6(0xFF00, 0, 0, 0, 0, 0, 0, 0, 8), "RFC 4291, section 2.7"},
    /* Global unicast is 2000::/3 so far; the rest of the space: */
    {ADDRESS_UNASSIGNED, V6(0, 0, 0, 0, 0, 0, 0, 0, 3), "RFC 4291, section 2.4"},
    {ADDRESS_UNASSIGNED, V6(0x4000, 0, 0, 0, 0, 0, 0, 0, 2), "RFC 4291, section 2.4"},
    {ADDRESS_UNASSIGNED, V6(0x8000, 0, 0, 0, 0, 0, 0, 0, 1), "RFC 4291, section 2.4"},
};

/* IPv6 addresses that carry an IPv4 one, from byte @at on. */
struct carrier {
    const char *form;
    struct address_range range;
    unsigned at;
    uint8_t flip; /* Teredo's has all its bits turned around */
};

enum carrier_index {
    CARRIER_MAPPED,
    CARRIER_TRANSLATED,
    CARRIER_NAT64,
    CARRIER_6TO4,
    CARRIER_TEREDO,
    CARRIER_COMPATIBLE,
    CARRIER__MAX,
};

static const struct carrier carriers[] = {
    /* RFC 4291, section 2.5.5.2 */
    [CARRIER_MAPPED] = {"IPv4-mapped", V6(0, 0, 0, 0, 0, 0xFFFF, 0, 0, 96), 12, 0},
    /* RFC 2765, section 2.1 */
    [CARRIER_TRANSLATED] = {"IPv4-translated", V6(0, 0, 0, 0, 0xFFFF, 0, 0, 0, 96), 12, 0},
    /* RFC 6052, section 2.1 */
    [CARRIER_NAT64] = {"NAT64", V6(0x0064, 0xFF9B, 0, 0, 0, 0, 0, 0, 96), 12, 0},
    /* RFC 3056, section 2 */
    [CARRIER_6TO4] = {"6to4", V6(0x2002, 0, 0, 0, 0, 0, 0, 0, 16), 2, 0},
    /* RFC 4380, section 4 */
    [CARRIER_TEREDO] = {"Teredo", V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 32), 12, 0xFF},
    /* RFC 4291, section 2.5.5.1; not :: and ::1 */
    [CARRIER_COMPATIBLE] = {"IPv4-compatible", V6(0, 0, 0, 0, 0, 0, 0, 0, 96), 12, 0},
};
static_assert(ARRAY_SIZE(carriers) == CARRIER__MAX, "a row for each carrier");

static struct address carried(const struct carrier *c, const struct address *a)
{
    struct address v4 = {.family = ADDRESS_V4};

    for (unsigned i = 0; i < 4; i++)
        v4.bytes[i] = a->bytes[c->at + i] ^ c->flip;
    return v4;
}

bool address_embedded(const struct address *a, struct address *ret, const char **ret_form)
{
    static const uint8_t no_carrier[15]; /* :: and ::1 but for their last byte */

    for (size_t i = 0; i < CARRIER__MAX; i++) {
        if (!address_range_contains(&carriers[i].range, a))
            continue;
        if (i == CARRIER_COMPATIBLE && memcmp(a->bytes, no_carrier, 15) == 0 && a->bytes[15] <= 1)
            continue;
        *ret = carried(&carriers[i], a);
        if (ret_form)
            *ret_form = carriers[i].form;
        return true;
    }
    return false;
}

struct address address_unmapped(const struct address *a)
{
    return address_range_contains(&carriers[CARRIER_MAPPED].range, a)
               ? carried(&carriers[CARRIER_MAPPED], a)
               : *a;
}

bool address_range_unmapped(const struct address_range *r, struct address_range *ret)
{
    const struct carrier *mapped = &carriers[CARRIER_MAPPED];

    if (!address_range_within(r, &mapped->range))
        return false;
    *ret = (struct address_range){carried(mapped, &r->base), r->prefix - mapped->range.prefix};
    return true;
}

const struct address_block *address_block(const struct address *a)
{
    struct address inner = *a;

    (void)address_embedded(a, &inner, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        if (address_range_contains(&blocks[i].range, &inner))
            return &blocks[i];
    return NULL;
}

const struct address_block *address_range_block(const struct address_range *r)
{
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        if (address_range_within(r, &blocks[i].range))
            return &blocks[i];
    return NULL;
}

const struct address_block *address_blocks_at(size_t i)
{
    return i < ARRAY_SIZE(blocks) ? &blocks[i] : NULL;
}

const struct address_range *address_carriers_at(size_t i)
{
    return i < CARRIER__MAX ? &carriers[i].range : NULL;
}

const char *address_class_text(enum address_class cls)
{
    static const char *const texts[] = {
        [ADDRESS_PUBLIC] = "a public address",
        [ADDRESS_UNSPECIFIED] = "an unspecified address",
        [ADDRESS_LOOPBACK] = "a loopback address",
        [ADDRESS_LINK_LOCAL] = "a link-local address",
        [ADDRESS_PRIVATE] = "a private address",
        [ADDRESS_SHARED] = "a provider's shared address",
        [ADDRESS_METADATA] = "a cloud's metadata address",
        [ADDRESS_MULTICAST] = "a multicast address",
        [ADDRESS_BROADCAST] = "the broadcast address",
        [ADDRESS_DOCUMENTATION] = "an address for documentation",
        [ADDRESS_BENCHMARK] = "an address for benchmarks",
        [ADDRESS_RESERVED] = "a reserved address",
        [ADDRESS_UNASSIGNED] = "an address of unassigned space",
    };
    static_assert(ARRAY_SIZE(texts) == ADDRESS_CLASS__MAX, "a text for each class");

    return texts[cls];
}

/* What the IPv6 range @r reaches of IPv4 through NAT64. */
static bool through_nat64(const struct address_range *r, struct address_range *ret)
{
    const struct carrier *nat64 = &carriers[CARRIER_NAT64];

    if (address_range_within(&nat64->range, r)) {
        *ret = (struct address_range){{.family = ADDRESS_V4}, 0};
        return true;
    }
    if (!address_range_within(r, &nat64->range))
        return false;
    *ret = (struct address_range){carried(nat64, &r->base), r->prefix - nat64->range.prefix};
    return true;
}

static int by_base(const void *a, const void *b)
{
    const struct address_range *x = a, *y = b;

    return memcmp(x->base.bytes, y->base.bytes, sizeof x->base.bytes);
}

/* Moves @a to the first address after @r; false when @r ends with the last of all. */
static bool step_past(struct address *a, const struct address_range *r)
{
    unsigned byte = (r->prefix + 7) / 8; /* the one after the last that the prefix reaches */

    *a = r->base;
    if (byte == 0)
        return false;
    unsigned carry = 1u << (byte * 8 - r->prefix);
    while (byte > 0 && carry > 0) {
        carry += a->bytes[--byte];
        a->bytes[byte] = (uint8_t)carry;
        carry >>= 8;
    }
    return carry == 0;
}

/* @list is sorted and of one family: whether it has no gap from the first address to the last. */
static bool leaves_no_gap(const struct address_range *list, size_t n)
{
    struct address next = {0};

    for (size_t i = 0; i < n; i++) {
        struct address after;

        if (memcmp(list[i].base.bytes, next.bytes, sizeof next.bytes) > 0)
            return false;
        if (!step_past(&after, &list[i]))
            return true;
        if (memcmp(after.bytes, next.bytes, sizeof next.bytes) > 0)
            next = after;
    }
    return false;
}

int address_ranges_cover(enum address_family family, const struct address_range *ranges, size_t n)
{
    _cleanup_free_ struct address_range *list = NULL;
    size_t count = 0;
    bool any = false;

    list = reallocarray(NULL, n + ARRAY_SIZE(blocks) + CARRIER__MAX, sizeof *list);
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].base.family == family)
            list[count++] = ranges[i];
        else if (family == ADDRESS_V4 && through_nat64(&ranges[i], &list[count]))
            count++;
    }
    any = count > 0;
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) /* what is not public need not be listed */
        if (blocks[i].range.base.family == family)
            list[count++] = blocks[i].range;
    for (size_t i = 0; i < CARRIER__MAX; i++)
        if (carriers[i].range.base.family == family)
            list[count++] = carriers[i].range;
    qsort(list, count, sizeof *list, by_base);
    return any && leaves_no_gap(list, count);
}
