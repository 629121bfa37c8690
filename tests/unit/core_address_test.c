/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and ranges: what is read, what is refused and why, and what each address is for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/address.h"
#include "base/guards.h"

static struct address address(const char *text)
{
    struct address a;

    if (address_parse(text, strlen(text), &a) != ADDRESS_GOOD)
        fail_msg("'%s' is not read as an address", text);
    return a;
}

static struct address_range range(const char *text)
{
    struct error err = ERROR_INIT;
    struct address_range r;

    if (address_range_parse(text, &r, &err) != 0)
        fail_msg("'%s' was refused: %s", text, err.message);
    return r;
}

static void addresses_are_read_and_written_canonically(void **state)
{
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"0.0.0.0", "0.0.0.0"},
        {"203.0.113.7", "203.0.113.7"},
        {"255.255.255.255", "255.255.255.255"},
        {"::", "::"},
        {"::1", "::1"},
        {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
        {"2001:0db8::0001", "2001:db8::1"},
        {"2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"},
        {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
        {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
        {"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
        {"::FFFF:102:304", "::ffff:1.2.3.4"},
        {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address a = address(rows[i].text), again;
        char text[ADDRESS_TEXT_BYTES];

        address_format(&a, text);
        assert_string_equal(text, rows[i].canonical);
        again = address(text);
        assert_true(address_equal(&a, &again));
    }
}

static void what_is_no_address_is_refused_for_its_own_reason(void **state)
{
    static const struct {
        const char *text;
        enum address_fault fault;
    } rows[] = {
        {"", ADDRESS_EMPTY},
        {"010.0.0.1", ADDRESS_LEADING_ZERO},
        {"1.2.3.04", ADDRESS_LEADING_ZERO},
        {"00.0.0.0", ADDRESS_LEADING_ZERO},
        {"0300.0.0.1", ADDRESS_LEADING_ZERO},
        {"017700000001", ADDRESS_LEADING_ZERO},
        {"::ffff:127.0.0.01", ADDRESS_LEADING_ZERO},
        {"1.1.1", ADDRESS_SHORT_FORM},
        {"127.1", ADDRESS_SHORT_FORM},
        {"10", ADDRESS_SHORT_FORM},
        {"2130706433", ADDRESS_SHORT_FORM},
        {"0x7f.1", ADDRESS_SHORT_FORM},
        {"0x7f000001", ADDRESS_SHORT_FORM},
        {"127.0.0.0X1", ADDRESS_SHORT_FORM},
        {"::ffff:127.1", ADDRESS_SHORT_FORM},
        {"1.1.1.256", ADDRESS_OCTET_RANGE},
        {"999999999999999999999.1.1.1", ADDRESS_OCTET_RANGE},
        {"::1.2.3.256", ADDRESS_OCTET_RANGE},
        {"fe80::1%eth0", ADDRESS_ZONE},
        {"::1%25lo", ADDRESS_ZONE},
        {"[::1]", ADDRESS_BRACKETS},
        {"[1.2.3.4]", ADDRESS_BRACKETS},
        {"1.2.3.4.5", ADDRESS_NOT_ONE},
        {"1.2.3.", ADDRESS_NOT_ONE},
        {"1.2.3.4.", ADDRESS_NOT_ONE},
        {".1.2.3.4", ADDRESS_NOT_ONE},
        {"1..2.3", ADDRESS_NOT_ONE},
        {"1.2.3.4 ", ADDRESS_NOT_ONE},
        {" 1.2.3.4", ADDRESS_NOT_ONE},
        {"+1.2.3.4", ADDRESS_NOT_ONE},
        {"1.2.3.-4", ADDRESS_NOT_ONE},
        {"1.2.3.4\n", ADDRESS_NOT_ONE},
        {"1.2.3.4/32", ADDRESS_NOT_ONE},
        {"1.2.3.4:80", ADDRESS_NOT_ONE},
        {"0x", ADDRESS_NOT_ONE},
        {"0xg.0.0.1", ADDRESS_NOT_ONE},
        {"\xD9\xA1.2.3.4", ADDRESS_NOT_ONE},
        {"host.example", ADDRESS_NOT_ONE},
        {":", ADDRESS_NOT_ONE},
        {":::", ADDRESS_NOT_ONE},
        {"::1::", ADDRESS_NOT_ONE},
        {"1:2:3:4:5:6:7", ADDRESS_NOT_ONE},
        {"1:2:3:4:5:6:7:8:9", ADDRESS_NOT_ONE},
        {"12345::", ADDRESS_NOT_ONE},
        {"g::1", ADDRESS_NOT_ONE},
        {"::1.2.3.4:5", ADDRESS_NOT_ONE},
        {"::1 ", ADDRESS_NOT_ONE},
        {"0000000000:0000000000:0000000000:0000000000:00:1", ADDRESS_NOT_ONE},
        {"%eth0", ADDRESS_NOT_ONE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address a = {.family = ADDRESS_V4, .bytes = {9, 9, 9, 9}};
        size_t n = strlen(rows[i].text);
        enum address_fault fault = address_parse(rows[i].text, n, &a);

        if (fault != rows[i].fault)
            fail_msg("'%s' %s", rows[i].text, address_fault_text(fault));
        assert_int_equal(a.bytes[0], 9); /* not written */
    }
}

static void an_address_is_read_to_its_length_and_no_further(void **state)
{
    struct address a;

    (void)state;
    assert_int_equal(address_parse("1.2.3.456", 7, &a), ADDRESS_GOOD);
    assert_int_equal(a.bytes[3], 4);
    assert_int_equal(address_parse("::12", 3, &a), ADDRESS_GOOD);
    assert_int_equal(a.bytes[15], 1);
    assert_int_equal(address_parse("1.2.3.4\0.5", 10, &a), ADDRESS_NOT_ONE);
    assert_int_equal(address_parse("::1\0", 4, &a), ADDRESS_NOT_ONE);
    for (size_t n = 0; n < 7; n++) /* truncated twins */
        assert_int_not_equal(address_parse("1.2.3.4", n, &a), ADDRESS_GOOD);
}

static void ranges_are_read_and_written_canonically(void **state)
{
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"203.0.113.0/24", "203.0.113.0/24"},
        {"203.0.113.7", "203.0.113.7/32"},
        {" 203.0.113.7/32 ", "203.0.113.7/32"},
        {"\t203.0.113.7\t", "203.0.113.7/32"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"128.0.0.0/1", "128.0.0.0/1"},
        {"::/0", "::/0"},
        {"::1", "::1/128"},
        {"2001:DB8::/32", "2001:db8::/32"},
        {"fd00::/8", "fd00::/8"},
        {"2001:db8::1/128", "2001:db8::1/128"},
        {"2001:db8:8000::/33", "2001:db8:8000::/33"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address_range r = range(rows[i].text);
        char text[ADDRESS_RANGE_TEXT_BYTES];

        address_range_format(&r, text);
        assert_string_equal(text, rows[i].canonical);
    }
}

static void a_wrong_range_is_refused_with_what_was_meant(void **state)
{
    static const struct {
        const char *text, *why, *remedy;
    } rows[] = {
        {"", "has no address", "such as 203.0.113.0/24"},
        {"   ", "has no address", "such as 203.0.113.0/24"},
        {"/24", "has no address", "such as 203.0.113.0/24"},
        {"203.0.113.1/24", "has bits set below its prefix",
         "Write 203.0.113.0/24 for the network or 203.0.113.1/32 for the single address"},
        {"10.0.0.1/8", "has bits set", "10.0.0.0/8"},
        {"2001:db8::1/64", "has bits set", "2001:db8::/64 for the network or 2001:db8::1/128"},
        {"1.2.3.4/0", "has bits set", "block_network: false"},
        {"203.0.113.0/33", "prefix above 32", "1 to 32"},
        {"1.1.1.1/33", "prefix above 32", "1 to 32"},
        {"1.1.1.1/4294967328", "prefix above 32", "1 to 32"},
        {"::/129", "prefix above 128", "1 to 128"},
        {"203.0.113.0/", "nothing after its slash", "1 to 32"},
        {"203.0.113.0/024", "no plain decimal number", "1 to 32"},
        {"203.0.113.0/+24", "no plain decimal number", "1 to 32"},
        {"203.0.113.0/ 24", "no plain decimal number", "1 to 32"},
        {"203.0.113.0/24/24", "no plain decimal number", "1 to 32"},
        {"203.0.113.0/24\n", "no plain decimal number", "1 to 32"},
        {"203.0.113.0/x", "no plain decimal number", "1 to 32"},
        {"203.0.113.0/255.255.255.0", "has a dotted mask", "Write 203.0.113.0/24"},
        {"203.0.113.9/255.255.255.0", "has a dotted mask", "Write 203.0.113.0/24"},
        {"203.0.113.0/0.0.0.255", "has a wildcard mask", "Write 203.0.113.0/24"},
        {"203.0.113.0/255.0.255.0", "has a mask", "leading bits"},
        {"::/255.255.0.0", "has a mask", "leading bits"},
        {"010.0.0.1", "octal", "Write an address"},
        {"1.1.1", "short or numeric form", "Write an address"},
        {"10/8", "short or numeric form", "Write an address"},
        {"2130706433", "short or numeric form", "Write an address"},
        {"1.1.1.256/32", "above 255", "Write an address"},
        {"fe80::1%eth0", "network interface", "Write an address"},
        {"[2001:db8::]/32", "has brackets", "Write it without brackets: 2001:db8::/32"},
        {"[::1", "has brackets", "Write an address"},
        {"203.0.113.7:443", "has a port", "Write 203.0.113.7/32"},
        {"host.example", "is not a range of addresses", "allow_egress_to: [host.example]"},
        {"host.example:443", "is not a range of addresses", "allow_egress_to"},
        {"http://x/", "is a URL", "allow_egress_to"},
        {"https://203.0.113.7/", "is a URL", "allow_egress_to"},
        {"localhost", "is not an IP address", "Write an address"},
        {"*", "is not an IP address", "Write an address"},
        {"1.2.3.4-1.2.3.9", "is not a range of addresses", "203.0.113.0/24"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address_range r = {.prefix = 77};
        struct error err = ERROR_INIT;

        if (address_range_parse(rows[i].text, &r, &err) != -EINVAL)
            fail_msg("'%s' was taken", rows[i].text);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_int_equal(r.prefix, 77); /* not written */
        if (!strstr(err.message, rows[i].why) || !strstr(err.remedy, rows[i].remedy))
            fail_msg("'%s' gave: %s. %s.", rows[i].text, err.message, err.remedy);
        assert_null(strchr(err.message, '\n'));
        assert_true(err.remedy[0] >= 'A' && err.remedy[0] <= 'Z');
    }
}

static void a_long_text_is_quoted_in_part(void **state)
{
    struct error err = ERROR_INIT;
    struct address_range r;
    char text[4096];

    (void)state;
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(address_range_parse(text, &r, &err), -EINVAL);
    assert_non_null(strstr(err.message, "111...' "));
    assert_true(strlen(err.message) < 250);
}

static void containment_is_by_prefix_and_never_across_families(void **state)
{
    static const struct {
        const char *range, *address;
        bool inside;
    } rows[] = {
        {"203.0.113.0/24", "203.0.113.0", true},
        {"203.0.113.0/24", "203.0.113.255", true},
        {"203.0.113.0/24", "203.0.112.255", false},
        {"203.0.113.0/24", "203.0.114.0", false},
        {"10.128.0.0/9", "10.128.0.1", true},
        {"10.128.0.0/9", "10.127.255.255", false},
        {"203.0.113.6/31", "203.0.113.7", true},
        {"203.0.113.6/31", "203.0.113.8", false},
        {"203.0.113.7/32", "203.0.113.7", true},
        {"203.0.113.7/32", "203.0.113.6", false},
        {"0.0.0.0/0", "255.255.255.255", true},
        {"0.0.0.0/0", "::", false},
        {"::/0", "0.0.0.0", false},
        {"::/0", "ffff::", true},
        {"fd00::/8", "fd12:3456::1", true},
        {"fd00::/8", "fc00::1", false},
        {"2001:db8::/127", "2001:db8::1", true},
        {"2001:db8::/127", "2001:db8::2", false},
        {"::/96", "1.2.3.4", false},
        {"2001:db8::1", "2001:db8::1", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address_range r = range(rows[i].range);
        struct address a = address(rows[i].address);

        if (address_range_contains(&r, &a) != rows[i].inside)
            fail_msg("%s in %s", rows[i].address, rows[i].range);
    }
}

static void a_range_lies_within_a_wider_one_only(void **state)
{
    struct address_range wide = range("10.0.0.0/8"), narrow = range("10.1.0.0/16");
    struct address_range other = range("11.0.0.0/16"), v6 = range("::/0");

    (void)state;
    assert_true(address_range_within(&narrow, &wide));
    assert_true(address_range_within(&wide, &wide));
    assert_false(address_range_within(&wide, &narrow));
    assert_false(address_range_within(&other, &wide));
    assert_false(address_range_within(&narrow, &v6));
}

static void every_address_has_its_class(void **state)
{
    static const struct {
        const char *address;
        enum address_class cls;
        const char *source;
    } rows[] = {
        {"1.1.1.1", ADDRESS_PUBLIC, ""},
        {"9.255.255.255", ADDRESS_PUBLIC, ""},
        {"11.0.0.0", ADDRESS_PUBLIC, ""},
        {"100.63.255.255", ADDRESS_PUBLIC, ""},
        {"100.128.0.0", ADDRESS_PUBLIC, ""},
        {"126.255.255.255", ADDRESS_PUBLIC, ""},
        {"128.0.0.0", ADDRESS_PUBLIC, ""},
        {"172.15.255.255", ADDRESS_PUBLIC, ""},
        {"172.32.0.0", ADDRESS_PUBLIC, ""},
        {"192.167.255.255", ADDRESS_PUBLIC, ""},
        {"192.169.0.0", ADDRESS_PUBLIC, ""},
        {"198.17.255.255", ADDRESS_PUBLIC, ""},
        {"198.20.0.0", ADDRESS_PUBLIC, ""},
        {"223.255.255.255", ADDRESS_PUBLIC, ""},
        {"0.0.0.0", ADDRESS_UNSPECIFIED, "RFC 1122"},
        {"0.1.2.3", ADDRESS_UNSPECIFIED, "RFC 1122"},
        {"127.0.0.1", ADDRESS_LOOPBACK, "RFC 1122"},
        {"127.255.255.255", ADDRESS_LOOPBACK, "RFC 1122"},
        {"169.254.0.1", ADDRESS_LINK_LOCAL, "RFC 3927"},
        {"169.254.169.253", ADDRESS_LINK_LOCAL, "RFC 3927"},
        {"169.254.169.254", ADDRESS_METADATA, "RFC 3927"},
        {"169.254.170.2", ADDRESS_METADATA, "RFC 3927"},
        {"100.100.100.200", ADDRESS_METADATA, "RFC 6598"},
        {"192.0.0.192", ADDRESS_METADATA, "RFC 6890"},
        {"168.63.129.16", ADDRESS_METADATA, "clouds"},
        {"168.63.129.17", ADDRESS_PUBLIC, ""},
        {"10.0.0.0", ADDRESS_PRIVATE, "RFC 1918"},
        {"10.255.255.255", ADDRESS_PRIVATE, "RFC 1918"},
        {"172.16.0.1", ADDRESS_PRIVATE, "RFC 1918"},
        {"172.31.255.255", ADDRESS_PRIVATE, "RFC 1918"},
        {"192.168.1.1", ADDRESS_PRIVATE, "RFC 1918"},
        {"100.64.0.1", ADDRESS_SHARED, "RFC 6598"},
        {"100.127.255.255", ADDRESS_SHARED, "RFC 6598"},
        {"192.0.0.1", ADDRESS_RESERVED, "RFC 6890"},
        {"192.0.2.1", ADDRESS_DOCUMENTATION, "RFC 5737"},
        {"198.51.100.1", ADDRESS_DOCUMENTATION, "RFC 5737"},
        {"203.0.113.1", ADDRESS_DOCUMENTATION, "RFC 5737"},
        {"192.88.99.1", ADDRESS_RESERVED, "RFC 7526"},
        {"198.18.0.1", ADDRESS_BENCHMARK, "RFC 2544"},
        {"198.19.255.255", ADDRESS_BENCHMARK, "RFC 2544"},
        {"224.0.0.1", ADDRESS_MULTICAST, "RFC 5771"},
        {"239.255.255.255", ADDRESS_MULTICAST, "RFC 5771"},
        {"240.0.0.1", ADDRESS_RESERVED, "RFC 1112"},
        {"255.255.255.254", ADDRESS_RESERVED, "RFC 1112"},
        {"255.255.255.255", ADDRESS_BROADCAST, "RFC 919"},

        {"2606:4700::1111", ADDRESS_PUBLIC, ""},
        {"2001:200::1", ADDRESS_PUBLIC, ""},
        {"3ffe::1", ADDRESS_PUBLIC, ""},
        {"::", ADDRESS_UNSPECIFIED, "RFC 4291"},
        {"::1", ADDRESS_LOOPBACK, "RFC 4291"},
        {"fe80::1", ADDRESS_LINK_LOCAL, "RFC 4291"},
        {"febf::1", ADDRESS_LINK_LOCAL, "RFC 4291"},
        {"fec0::1", ADDRESS_PRIVATE, "RFC 3879"},
        {"fc00::1", ADDRESS_PRIVATE, "RFC 4193"},
        {"fdff::1", ADDRESS_PRIVATE, "RFC 4193"},
        {"fd00:ec2::254", ADDRESS_METADATA, "RFC 4193"},
        {"fd00:ec2::253", ADDRESS_PRIVATE, "RFC 4193"},
        {"fd20:ce::254", ADDRESS_METADATA, "RFC 4193"},
        {"64:ff9b:1::1", ADDRESS_PRIVATE, "RFC 8215"},
        {"100::1", ADDRESS_RESERVED, "RFC 6666"},
        {"2001:2::1", ADDRESS_BENCHMARK, "RFC 5180"},
        {"2001:10::1", ADDRESS_RESERVED, "RFC 2928"},
        {"2001:db8::1", ADDRESS_DOCUMENTATION, "RFC 3849"},
        {"3fff:fff::1", ADDRESS_DOCUMENTATION, "RFC 9637"},
        {"3fff:1000::1", ADDRESS_PUBLIC, ""},
        {"ff02::1", ADDRESS_MULTICAST, "RFC 4291"},
        {"100:1::1", ADDRESS_UNASSIGNED, "RFC 4291"},
        {"4000::1", ADDRESS_UNASSIGNED, "RFC 4291"},
        {"8000::1", ADDRESS_UNASSIGNED, "RFC 4291"},
        {"fe00::1", ADDRESS_UNASSIGNED, "RFC 4291"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address a = address(rows[i].address);
        const struct address_block *block = address_block(&a);
        enum address_class cls = block ? block->cls : ADDRESS_PUBLIC;

        if (cls != rows[i].cls || (block && !strstr(block->source, rows[i].source)))
            fail_msg("%s is %s (%s)", rows[i].address, address_class_text(cls),
                     block ? block->source : "");
    }
}

static void an_address_that_carries_another_is_classed_by_it(void **state)
{
    static const struct {
        const char *address, *inner, *form;
        enum address_class cls;
    } rows[] = {
        {"::ffff:127.0.0.1", "127.0.0.1", "IPv4-mapped", ADDRESS_LOOPBACK},
        {"::ffff:8.8.8.8", "8.8.8.8", "IPv4-mapped", ADDRESS_PUBLIC},
        {"::ffff:169.254.169.254", "169.254.169.254", "IPv4-mapped", ADDRESS_METADATA},
        {"::ffff:0:10.0.0.1", "10.0.0.1", "IPv4-translated", ADDRESS_PRIVATE},
        {"::127.0.0.1", "127.0.0.1", "IPv4-compatible", ADDRESS_LOOPBACK},
        {"::2", "0.0.0.2", "IPv4-compatible", ADDRESS_UNSPECIFIED},
        {"64:ff9b::169.254.169.254", "169.254.169.254", "NAT64", ADDRESS_METADATA},
        {"64:ff9b::7f00:1", "127.0.0.1", "NAT64", ADDRESS_LOOPBACK},
        {"64:ff9b::8.8.8.8", "8.8.8.8", "NAT64", ADDRESS_PUBLIC},
        {"2002:7f00:1::", "127.0.0.1", "6to4", ADDRESS_LOOPBACK},
        {"2002:c0a8:101:1::1", "192.168.1.1", "6to4", ADDRESS_PRIVATE},
        {"2002:808:808::1", "8.8.8.8", "6to4", ADDRESS_PUBLIC},
        {"2001:0:4136:e378:8000:63bf:80ff:fffe", "127.0.0.1", "Teredo", ADDRESS_LOOPBACK},
        {"2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45", "Teredo", ADDRESS_DOCUMENTATION},
        {"2001:0:4136:e378:8000:63bf:f7f7:f7f7", "8.8.8.8", "Teredo", ADDRESS_PUBLIC},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address a = address(rows[i].address), inner, expected = address(rows[i].inner);
        const struct address_block *block = address_block(&a);
        const char *form = NULL;

        if (!address_embedded(&a, &inner, &form) || !address_equal(&inner, &expected))
            fail_msg("%s does not carry %s", rows[i].address, rows[i].inner);
        assert_string_equal(form, rows[i].form);
        assert_int_equal(block ? block->cls : ADDRESS_PUBLIC, rows[i].cls);
    }
}

static void others_carry_nothing(void **state)
{
    static const char *const rows[] = {"::",           "::1",           "2606:4700::1",
                                       "64:ff9b:1::1", "::1:0:0:1:2:3", "127.0.0.1",
                                       "2003::1",      "2001:1::1"};
    struct address inner;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address a = address(rows[i]);

        if (address_embedded(&a, &inner, NULL))
            fail_msg("%s carries something", rows[i]);
    }
}

static void only_a_mapped_address_is_the_ipv4_one(void **state)
{
    struct address mapped = address("::ffff:10.1.2.3"), nat64 = address("64:ff9b::10.1.2.3");
    struct address v4 = address("10.1.2.3"), a;
    struct address_range r = range("::ffff:10.0.0.0/104"), expected = range("10.0.0.0/8"), v4_range;

    (void)state;
    a = address_unmapped(&mapped);
    assert_true(address_equal(&a, &v4));
    a = address_unmapped(&nat64);
    assert_true(address_equal(&a, &nat64));
    a = address_unmapped(&v4);
    assert_true(address_equal(&a, &v4));
    assert_true(address_range_unmapped(&r, &v4_range));
    assert_true(address_equal(&v4_range.base, &expected.base));
    assert_int_equal(v4_range.prefix, 8);
    r = range("::/64");
    assert_false(address_range_unmapped(&r, &v4_range));
}

static void a_block_holds_a_range_or_does_not(void **state)
{
    static const struct {
        const char *range;
        enum address_class cls;
    } rows[] = {
        {"10.0.0.0/8", ADDRESS_PRIVATE},       {"10.1.0.0/16", ADDRESS_PRIVATE},
        {"10.0.0.0/7", ADDRESS_PUBLIC},        {"172.16.0.0/12", ADDRESS_PRIVATE},
        {"172.0.0.0/8", ADDRESS_PUBLIC},       {"169.254.0.0/16", ADDRESS_LINK_LOCAL},
        {"169.254.169.254", ADDRESS_METADATA}, {"fd00::/8", ADDRESS_PRIVATE},
        {"fc00::/6", ADDRESS_UNASSIGNED},      {"2000::/3", ADDRESS_PUBLIC},
        {"127.0.0.1", ADDRESS_LOOPBACK},       {"224.0.0.0/3", ADDRESS_PUBLIC},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address_range r = range(rows[i].range);
        const struct address_block *block = address_range_block(&r);

        if ((block ? block->cls : ADDRESS_PUBLIC) != rows[i].cls)
            fail_msg("%s", rows[i].range);
    }
}

static bool covers(enum address_family family, const char *list)
{
    struct address_range ranges[48];
    size_t n = 0;
    char *copy = strdup(list), *at = copy;

    for (char *item; (item = strsep(&at, " ")) && item[0];) {
        assert_true(n < ARRAY_SIZE(ranges));
        ranges[n++] = range(item);
    }
    free(copy);
    int r = address_ranges_cover(family, ranges, n);
    assert_true(r == 0 || r == 1);
    return r == 1;
}

/* The 32 ranges that are everything but 8.8.8.8, and that one added if asked. */
static void all_but_one(char *buf, size_t size, bool that_too)
{
    const uint32_t one = 0x08080808;
    size_t n = 0;

    for (unsigned prefix = 32; prefix >= 1; prefix--) {
        uint32_t base = (one ^ (UINT32_C(1) << (32 - prefix))) & (UINT32_MAX << (32 - prefix));

        n += (size_t)snprintf(buf + n, size - n, "%u.%u.%u.%u/%u ", base >> 24, base >> 16 & 255,
                              base >> 8 & 255, base & 255, prefix);
    }
    if (that_too)
        (void)snprintf(buf + n, size - n, "8.8.8.8");
    else
        buf[n - 1] = '\0';
}

static void ranges_that_leave_nothing_public_out_are_found(void **state)
{
    char list[1024];

    (void)state;
    assert_false(covers(ADDRESS_V4, ""));
    assert_false(covers(ADDRESS_V6, ""));
    assert_false(covers(ADDRESS_V4, "203.0.113.0/24"));
    assert_true(covers(ADDRESS_V4, "0.0.0.0/1 128.0.0.0/1"));
    assert_true(covers(ADDRESS_V4, "128.0.0.0/1 0.0.0.0/1 10.0.0.0/8"));
    assert_false(covers(ADDRESS_V6, "0.0.0.0/1 128.0.0.0/1"));
    assert_false(covers(ADDRESS_V4, "0.0.0.0/1"));
    assert_false(covers(ADDRESS_V4, "128.0.0.0/1"));
    assert_true(covers(ADDRESS_V4, "0.0.0.0/2 64.0.0.0/2 128.0.0.0/2 192.0.0.0/2"));
    assert_false(covers(ADDRESS_V4, "0.0.0.0/2 64.0.0.0/2 192.0.0.0/2"));
    assert_true(
        covers(ADDRESS_V4, "0.0.0.0/1 128.0.0.0/2 192.0.0.0/3")); /* but multicast, class E */
    assert_true(covers(ADDRESS_V4, "1.0.0.0/8 2.0.0.0/7 4.0.0.0/6 8.0.0.0/7 11.0.0.0/8 12.0.0.0/6 "
                                   "16.0.0.0/4 32.0.0.0/3 64.0.0.0/2 128.0.0.0/1"));
    assert_false(covers(ADDRESS_V4, "1.0.0.0/8 2.0.0.0/7 4.0.0.0/6 8.0.0.0/7 12.0.0.0/6 "
                                    "16.0.0.0/4 32.0.0.0/3 64.0.0.0/2 128.0.0.0/1"));
    all_but_one(list, sizeof list, false);
    assert_false(covers(ADDRESS_V4, list));
    all_but_one(list, sizeof list, true);
    assert_true(covers(ADDRESS_V4, list));

    assert_true(covers(ADDRESS_V6, "::/1 8000::/1"));
    assert_true(covers(ADDRESS_V6, "2000::/3"));
    assert_true(covers(ADDRESS_V6, "2000::/4 3000::/4"));
    assert_false(covers(ADDRESS_V6, "2000::/4"));
    assert_false(covers(ADDRESS_V6, "8000::/1"));
    assert_false(covers(ADDRESS_V4, "2000::/3"));
    assert_true(covers(ADDRESS_V4, "64:ff9b::/96"));
    assert_true(covers(ADDRESS_V4, "64:ff9b::/97 128.0.0.0/1"));
    assert_false(covers(ADDRESS_V4, "64:ff9b::/97"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written_canonically),
        cmocka_unit_test(what_is_no_address_is_refused_for_its_own_reason),
        cmocka_unit_test(an_address_is_read_to_its_length_and_no_further),
        cmocka_unit_test(ranges_are_read_and_written_canonically),
        cmocka_unit_test(a_wrong_range_is_refused_with_what_was_meant),
        cmocka_unit_test(a_long_text_is_quoted_in_part),
        cmocka_unit_test(containment_is_by_prefix_and_never_across_families),
        cmocka_unit_test(a_range_lies_within_a_wider_one_only),
        cmocka_unit_test(every_address_has_its_class),
        cmocka_unit_test(an_address_that_carries_another_is_classed_by_it),
        cmocka_unit_test(others_carry_nothing),
        cmocka_unit_test(only_a_mapped_address_is_the_ipv4_one),
        cmocka_unit_test(a_block_holds_a_range_or_does_not),
        cmocka_unit_test(ranges_that_leave_nothing_public_out_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
