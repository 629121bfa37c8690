/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IP addresses and ranges of them as values: one strict way to read them, one way to write them,
 * and what is known of an address without asking anybody. A policy and the programs inside a
 * sandbox must not read the same text differently, so every form that some programs take for
 * another address (octal, short, numeric, with a zone) is refused here instead of guessed at.
 *
 * Pure code: no call here blocks, allocates or reads anything of the host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum address_family {
    ADDRESS_V4 = 4,
    ADDRESS_V6 = 6,
};

struct address {
    enum address_family family;
    uint8_t bytes[16]; /* network order; of IPv4 the first four, and the rest zero */
};

/* All addresses whose first prefix bits are those of base; the other bits of base are zero. */
struct address_range {
    struct address base;
    unsigned prefix; /* 0 to 32, or 0 to 128 */
};

/* Room for a text with its terminator: "ffff:…:255.255.255.255" (RFC 4291, 2.2), and "/128". */
#define ADDRESS_TEXT_BYTES       46
#define ADDRESS_RANGE_TEXT_BYTES (ADDRESS_TEXT_BYTES + 4)

/* Why a text is not an address. */
enum address_fault {
    ADDRESS_GOOD,
    ADDRESS_EMPTY,
    ADDRESS_LEADING_ZERO, /* 010.0.0.1, which some read as octal */
    ADDRESS_SHORT_FORM,   /* 1.1.1, 2130706433, 0x7f.1: forms of inet_aton(3) */
    ADDRESS_OCTET_RANGE,  /* 1.1.1.256 */
    ADDRESS_ZONE,         /* fe80::1%eth0 (RFC 4007, section 11) */
    ADDRESS_BRACKETS,     /* [::1], which belongs to a URL */
    ADDRESS_NOT_ONE,      /* something else, such as a name */
    ADDRESS_FAULT__MAX,
};

/* What an address is for. Only a public one leads to somebody whom anyone may ask. */
enum address_class {
    ADDRESS_PUBLIC,
    ADDRESS_UNSPECIFIED,
    ADDRESS_LOOPBACK,
    ADDRESS_LINK_LOCAL,
    ADDRESS_PRIVATE,
    ADDRESS_SHARED, /* between a provider and its customers (carrier-grade NAT) */
    ADDRESS_METADATA,
    ADDRESS_MULTICAST,
    ADDRESS_BROADCAST,
    ADDRESS_DOCUMENTATION,
    ADDRESS_BENCHMARK,
    ADDRESS_RESERVED,
    ADDRESS_UNASSIGNED,
    ADDRESS_CLASS__MAX,
};

/* A block that the standards, or the clouds, set aside. */
struct address_block {
    enum address_class cls;
    struct address_range range;
    const char *source; /* "RFC 1918, section 3" */
};

/**
 * address_parse() - @n bytes as one address, in full and in one spelling of its numbers
 *
 * IPv4: four decimal numbers without leading zeros. IPv6: RFC 4291, section 2.2, without zone or
 * brackets. Written on ADDRESS_GOOD only.
 */
enum address_fault address_parse(const char *s, size_t n, struct address *ret);

/**
 * address_parse_front() - the address that a text begins with, where ":PORT" may follow
 *
 * IPv4, or IPv6 in brackets; what follows is the end or a colon. Return: its length with brackets;
 * 0, with @ret as it was, if there is none.
 */
size_t address_parse_front(const char *s, struct address *ret);

/** address_fault_text() - what is wrong, to follow "'010.0.0.1' "; static storage */
const char *address_fault_text(enum address_fault fault);

/**
 * address_range_parse() - "203.0.113.0/24", "2001:db8::/32", or one address alone
 * @text: blanks around it are stripped
 *
 * Refused: bits below the prefix (a range is never widened to fit), masks instead of a prefix, a
 * prefix out of range, and whatever address_parse() refuses. Return: 0, or -EINVAL with a usage
 * error that quotes the text, and a remedy that names what was meant as far as that is clear.
 */
int address_range_parse(const char *text, struct address_range *ret, struct error *err);

/** address_format() - canonical: RFC 5952 for IPv6 */
void address_format(const struct address *a, char buf[static ADDRESS_TEXT_BYTES]);

/** address_range_format() - canonical, always with its prefix */
void address_range_format(const struct address_range *r, char buf[static ADDRESS_RANGE_TEXT_BYTES]);

/** address_range_of() - the range that is @a alone */
struct address_range address_range_of(const struct address *a);

bool address_equal(const struct address *a, const struct address *b);

/** address_range_contains() - whether @a is in @r; never across families */
bool address_range_contains(const struct address_range *r, const struct address *a);

/** address_range_within() - whether all of @inner is in @outer */
bool address_range_within(const struct address_range *inner, const struct address_range *outer);

/**
 * address_unmapped() - @a, or the IPv4 address that an IPv4-mapped one stands for
 *
 * A socket sends IPv4 packets to a mapped address (RFC 4291, 2.5.5.2; ipv6(7)), so it is one.
 */
struct address address_unmapped(const struct address *a);

/** address_range_unmapped() - whether @r is IPv4-mapped, and the IPv4 range that it stands for */
bool address_range_unmapped(const struct address_range *r, struct address_range *ret);

/**
 * address_embedded() - the IPv4 address that an IPv6 one carries, if it does
 * @ret_form: what carries it, such as "NAT64"; static storage; or NULL
 *
 * Mapped, translated, compatible, NAT64, 6to4 and Teredo (there the client's). Something on the way
 * may turn such an address into that IPv4 address, so what holds for the one holds for the other.
 */
bool address_embedded(const struct address *a, struct address *ret, const char **ret_form);

/**
 * address_block() - the block that @a lies in, by the IPv4 address it carries if it does
 *
 * Return: a row of a static table, or NULL for a public address.
 */
const struct address_block *address_block(const struct address *a);

/** address_range_block() - the block that holds all of @r, or NULL */
const struct address_block *address_range_block(const struct address_range *r);

/** address_blocks_at() - row @i of the table of blocks, NULL behind its end */
const struct address_block *address_blocks_at(size_t i);

/**
 * address_carriers_at() - row @i of the IPv6 ranges whose addresses carry IPv4 ones, NULL behind
 *                         the end; what is not in any of them has the block that its range says
 */
const struct address_range *address_carriers_at(size_t i);

/** address_class_text() - "a private address"; static storage */
const char *address_class_text(enum address_class cls);

/**
 * address_ranges_cover() - whether @n ranges together hold every public address of a family
 *
 * What the IPv4 part of NAT64 adds to IPv4 counts. Such a list is an open network by another name.
 * Return: 1 or 0, or -ENOMEM.
 */
int address_ranges_cover(enum address_family family, const struct address_range *ranges, size_t n);
