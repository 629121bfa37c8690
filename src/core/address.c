/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses and ranges: reading, writing, containment. What they are for: address_class.c. */
#include "core/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

static unsigned family_bits(enum address_family family)
{
    return family == ADDRESS_V4 ? 32 : 128;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Whether inet_aton(3) could take the text for an address: one to four numbers, hex included. */
static bool is_numeric_form(const char *s, size_t n)
{
    size_t digits = 0, dots = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '.' && digits > 0) {
            dots++;
            digits = 0;
        } else if ((s[i] == 'x' || s[i] == 'X') && digits == 1 && s[i - 1] == '0' && i + 1 < n) {
            for (i++; i < n && is_hex(s[i]); i++)
                digits++;
            i--;
        } else if (is_digit(s[i])) {
            digits++;
        } else {
            return false;
        }
    }
    return digits > 0 && dots <= 3;
}

static enum address_fault parse_v4(const char *s, size_t n, uint8_t bytes[4])
{
    size_t at = 0, octets = 0;

    if (!is_numeric_form(s, n))
        return ADDRESS_NOT_ONE;
    while (at < n && octets < 4) {
        unsigned value = 0;
        size_t start = at;

        for (; at < n && is_digit(s[at]) && value <= 255; at++)
            value = value * 10 + (unsigned)(s[at] - '0');
        if (at < n && s[at] != '.' && !is_digit(s[at]))
            return ADDRESS_SHORT_FORM; /* 0x */
        if (at - start > 1 && s[start] == '0')
            return ADDRESS_LEADING_ZERO;
        if (value > 255)
            return memchr(s, '.', n) ? ADDRESS_OCTET_RANGE : ADDRESS_SHORT_FORM;
        bytes[octets++] = (uint8_t)value;
        if (at < n)
            at++; /* the dot; none follows the last number, or it was no numeric form */
    }
    return octets == 4 ? ADDRESS_GOOD : ADDRESS_SHORT_FORM;
}

static enum address_fault parse_v6(const char *s, size_t n, uint8_t bytes[16])
{
    char text[ADDRESS_TEXT_BYTES];
    uint8_t tail[4];

    for (size_t i = 0; i < n; i++)
        if (!is_hex(s[i]) && s[i] != ':' && s[i] != '.')
            return s[i] == '%' && i > 0 ? ADDRESS_ZONE : ADDRESS_NOT_ONE;
    if (n >= sizeof text)
        return ADDRESS_NOT_ONE;
    memcpy(text, s, n);
    text[n] = '\0';
    const char *colon = strrchr(text, ':');
    if (strchr(colon, '.')) { /* judged here first: not every inet_pton() refuses leading zeros */
        enum address_fault fault = parse_v4(colon + 1, strlen(colon + 1), tail);

        if (fault != ADDRESS_GOOD)
            return fault;
    }
    return inet_pton(AF_INET6, text, bytes) == 1 ? ADDRESS_GOOD : ADDRESS_NOT_ONE;
}

enum address_fault address_parse(const char *s, size_t n, struct address *ret)
{
    struct address a = {0};
    enum address_fault fault;

    if (n == 0)
        return ADDRESS_EMPTY;
    if (s[0] == '[')
        return ADDRESS_BRACKETS;
    a.family = memchr(s, ':', n) ? ADDRESS_V6 : ADDRESS_V4;
    fault = a.family == ADDRESS_V6 ? parse_v6(s, n, a.bytes) : parse_v4(s, n, a.bytes);
    if (fault == ADDRESS_GOOD)
        *ret = a;
    return fault;
}

size_t address_parse_front(const char *s, struct address *ret)
{
    size_t n = strcspn(s, s[0] == '[' ? "]" : ":");
    struct address a;

    if (s[0] != '[') {
        if (address_parse(s, n, &a) != ADDRESS_GOOD)
            return 0;
        *ret = a;
        return n;
    }
    if (s[n] == '\0' || (s[n + 1] != ':' && s[n + 1] != '\0') ||
        address_parse(s + 1, n - 1, &a) != ADDRESS_GOOD || a.family != ADDRESS_V6)
        return 0;
    *ret = a;
    return n + 1;
}

const char *address_fault_text(enum address_fault fault)
{
    static const char *const texts[] = {
        [ADDRESS_GOOD] = "is an address",
        [ADDRESS_EMPTY] = "is empty",
        [ADDRESS_LEADING_ZERO] =
            "has a number with a leading zero, which some programs read as octal",
        [ADDRESS_SHORT_FORM] = "is a short or numeric form, which programs read differently",
        [ADDRESS_OCTET_RANGE] = "has a number above 255",
        [ADDRESS_ZONE] = "names a network interface, which means nothing outside its host",
        [ADDRESS_BRACKETS] = "has brackets around the address",
        [ADDRESS_NOT_ONE] = "is not an IP address",
    };
    static_assert(ARRAY_SIZE(texts) == ADDRESS_FAULT__MAX, "a text for each fault");

    return texts[fault];
}

/* Clears the bits of @a below @prefix. */
static struct address masked(const struct address *a, unsigned prefix)
{
    struct address m = *a;

    for (unsigned bit = prefix; bit < family_bits(a->family); bit++)
        m.bytes[bit / 8] &= (uint8_t) ~(0x80u >> (bit % 8));
    return m;
}

static int refuse(struct error *err, const char *text, const char *why, const char *remedy)
{
    (void)error_set(err, ERROR_USAGE, EINVAL, "'%.100s%s' %s", text,
                    strlen(text) > 100 ? "..." : "", why);
    text_make_printable(err->message);
    return error_remedy(err, "%s", remedy);
}

/* The text before the slash is no address. */
static int refuse_address(struct error *err, const char *text, size_t n, enum address_fault fault)
{
    static const char *const example =
        "Write an address with its prefix, such as 203.0.113.0/24 or 2001:db8::/32";
    const char *colon = memchr(text, ':', n);
    char inner[ADDRESS_TEXT_BYTES + 8], remedy[128];
    struct address a;

    if (strstr(text, "://"))
        return refuse(err, text, "is a URL",
                      "For a host by name use allow_egress_to; a range is written like "
                      "203.0.113.0/24");
    if (fault == ADDRESS_EMPTY)
        return refuse(err, text, "has no address", example);
    if (fault == ADDRESS_BRACKETS && n > 2 && text[n - 1] == ']' &&
        address_parse(text + 1, n - 2, &a) == ADDRESS_GOOD) {
        address_format(&a, inner);
        (void)snprintf(remedy, sizeof remedy, "Write it without brackets: %s%.5s", inner, text + n);
        return refuse(err, text, address_fault_text(fault), remedy);
    }
    if (fault == ADDRESS_NOT_ONE && colon &&
        address_parse(text, (size_t)(colon - text), &a) == ADDRESS_GOOD) {
        address_format(&a, inner);
        (void)snprintf(remedy, sizeof remedy, "Write %s/32: a range covers every port", inner);
        return refuse(err, text, "has a port", remedy);
    }
    if (fault == ADDRESS_NOT_ONE && memchr(text, '.', n))
        return refuse(err, text, "is not a range of addresses",
                      "For a host by name use allow_egress_to: [host.example]; a range is written "
                      "like 203.0.113.0/24");
    return refuse(err, text, address_fault_text(fault), example);
}

/* The number of leading ones of @mask if nothing but zeros follows, or -1. */
static int mask_prefix(const uint8_t mask[4])
{
    uint32_t bits = (uint32_t)mask[0] << 24 | (uint32_t)mask[1] << 16 | (uint32_t)mask[2] << 8 |
                    (uint32_t)mask[3];
    int prefix = 0;

    for (; prefix < 32 && (bits & 0x80000000u); prefix++)
        bits <<= 1;
    return bits == 0 ? prefix : -1;
}

/* "203.0.113.0/255.255.255.0", and the same with the bits turned around, as some lists have it. */
static int refuse_mask(struct error *err, const char *text, const struct address *a,
                       const uint8_t mask[4])
{
    const uint8_t turned[4] = {(uint8_t)~mask[0], (uint8_t)~mask[1], (uint8_t)~mask[2],
                               (uint8_t)~mask[3]};
    char range[ADDRESS_RANGE_TEXT_BYTES], remedy[128];
    bool wildcard = mask_prefix(mask) < 0;
    int prefix = mask_prefix(wildcard ? turned : mask);

    if (a->family != ADDRESS_V4 || prefix <= 0)
        return refuse(err, text, "has a mask where the length of the prefix belongs",
                      "Write the number of leading bits after the slash, such as 203.0.113.0/24");
    address_range_format(&(struct address_range){masked(a, (unsigned)prefix), (unsigned)prefix},
                         range);
    (void)snprintf(remedy, sizeof remedy, "Write %s", range);
    return refuse(err, text, wildcard ? "has a wildcard mask" : "has a dotted mask", remedy);
}

static int parse_prefix(const char *text, const char *s, size_t n, const struct address *a,
                        unsigned *ret, struct error *err)
{
    unsigned max = family_bits(a->family), value = 0;
    struct address mask;
    bool number = n > 0 && !(n > 1 && s[0] == '0');
    char remedy[96];

    if (address_parse(s, n, &mask) == ADDRESS_GOOD && mask.family == ADDRESS_V4)
        return refuse_mask(err, text, a, mask.bytes);
    for (size_t i = 0; i < n; i++) {
        number = number && is_digit(s[i]);
        if (number && value <= max)
            value = value * 10 + (unsigned)(s[i] - '0');
    }
    (void)snprintf(remedy, sizeof remedy, "Write a prefix from 1 to %u after the slash", max);
    if (!number)
        return refuse(err, text,
                      n == 0 ? "has nothing after its slash"
                             : "has no plain decimal number after its slash",
                      remedy);
    if (value > max)
        return refuse(err, text,
                      max == 32 ? "has a prefix above 32, the length of an IPv4 address"
                                : "has a prefix above 128, the length of an IPv6 address",
                      remedy);
    *ret = value;
    return 0;
}

static int refuse_host_bits(struct error *err, const char *text, const struct address *a,
                            unsigned prefix)
{
    char network[ADDRESS_RANGE_TEXT_BYTES], single[ADDRESS_RANGE_TEXT_BYTES], remedy[192];
    struct address_range one = address_range_of(a);

    address_range_format(&(struct address_range){masked(a, prefix), prefix}, network);
    address_range_format(&one, single);
    if (prefix == 0)
        (void)snprintf(remedy, sizeof remedy,
                       "Write %s for the single address, or block_network: false for an open "
                       "network",
                       single);
    else
        (void)snprintf(remedy, sizeof remedy,
                       "Write %s for the network or %s for the single address", network, single);
    return refuse(err, text, "has bits set below its prefix, and a range is never widened", remedy);
}

int address_range_parse(const char *text, struct address_range *ret, struct error *err)
{
    const char *s = text + strspn(text, " \t");
    size_t n = strlen(s);
    struct address a;
    unsigned prefix;

    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        n--;
    const char *slash = memchr(s, '/', n);
    size_t address_len = slash ? (size_t)(slash - s) : n;
    enum address_fault fault = address_parse(s, address_len, &a);

    if (fault != ADDRESS_GOOD)
        return refuse_address(err, s, address_len, fault);
    prefix = family_bits(a.family);
    if (slash) {
        int r = parse_prefix(s, slash + 1, n - address_len - 1, &a, &prefix, err);

        if (r < 0)
            return r;
    }
    struct address base = masked(&a, prefix);
    if (!address_equal(&base, &a))
        return refuse_host_bits(err, s, &a, prefix);
    *ret = (struct address_range){a, prefix};
    return 0;
}

void address_format(const struct address *a, char buf[static ADDRESS_TEXT_BYTES])
{
    const char *text =
        inet_ntop(a->family == ADDRESS_V4 ? AF_INET : AF_INET6, a->bytes, buf, ADDRESS_TEXT_BYTES);

    assert(text);
    (void)text;
}

void address_range_format(const struct address_range *r, char buf[static ADDRESS_RANGE_TEXT_BYTES])
{
    address_format(&r->base, buf);
    size_t n = strlen(buf);
    (void)snprintf(buf + n, ADDRESS_RANGE_TEXT_BYTES - n, "/%u", r->prefix);
}

struct address_range address_range_of(const struct address *a)
{
    return (struct address_range){*a, family_bits(a->family)};
}

bool address_equal(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, family_bits(a->family) / 8) == 0;
}

bool address_range_contains(const struct address_range *r, const struct address *a)
{
    unsigned whole = r->prefix / 8, rest = r->prefix % 8;

    if (r->base.family != a->family || memcmp(r->base.bytes, a->bytes, whole) != 0)
        return false;
    return rest == 0 || ((r->base.bytes[whole] ^ a->bytes[whole]) & (0xFF00u >> rest) & 0xFF) == 0;
}

bool address_range_within(const struct address_range *inner, const struct address_range *outer)
{
    return inner->prefix >= outer->prefix && address_range_contains(outer, &inner->base);
}
