/* SPDX-License-Identifier: Apache-2.0 */
/* Logged packets: destinations of both families, and headers that a program inside made up. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/netlink.h"
#include "wire/nflog.h"
#include "base/guards.h"

/* The attributes of a message that logs @packet, in memory of exactly their size. */
static uint8_t *message(const uint8_t *packet, size_t len, bool sequenced, size_t *ret_len)
{
    static const uint8_t head[4] = {1};
    uint8_t buf[1024];
    struct netlink_batch b;

    netlink_batch_init(&b, buf, sizeof buf);
    netlink_begin(&b, 0x0400, 0, head, sizeof head);
    netlink_put_text(&b, NFULA_PREFIX, "");
    netlink_put(&b, NFULA_PAYLOAD, packet, len);
    if (sequenced)
        netlink_put_be32(&b, NFULA_SEQ, 0xFFFFFFFE);
    netlink_end(&b);
    *ret_len = b.len - 16;
    uint8_t *exact = malloc(*ret_len);
    memcpy(exact, buf + 16, *ret_len);
    return exact;
}

static int parse(const uint8_t *packet, size_t len, struct nflog_packet *ret)
{
    size_t size;
    _cleanup_free_ uint8_t *m = message(packet, len, true, &size);

    return nflog_parse(m, size, ret);
}

/* To 203.0.113.9, port 0x1F90. */
static size_t put_v4(uint8_t *p, uint8_t words, uint8_t protocol, uint16_t fragment)
{
    const uint8_t head[20] = {(uint8_t)(0x40 | words),
                              [6] = (uint8_t)(fragment >> 8),
                              (uint8_t)fragment,
                              [9] = protocol,
                              [16] = 203,
                              0,
                              113,
                              9};
    const uint8_t ports[8] = {0xC0, 1, 0x1F, 0x90};

    memset(p, 0xEE, 60);
    memcpy(p, head, sizeof head);
    memcpy(p + words * 4, ports, sizeof ports);
    return (size_t)words * 4 + sizeof ports;
}

static void a_destination_of_ipv4_is_found(void **state)
{
    uint8_t packet[128];
    struct nflog_packet x;

    (void)state;
    for (uint8_t words = 5; words <= 15; words++) {
        assert_int_equal(parse(packet, put_v4(packet, words, IPPROTO_UDP, 0x4000), &x), 0);
        assert_int_equal(x.family, 4);
        assert_memory_equal(x.address, "\313\0\161\011\0\0\0\0\0\0\0\0\0\0\0\0", 16);
        assert_int_equal(x.protocol, IPPROTO_UDP);
        assert_int_equal(x.port, 8080);
        assert_true(x.sequenced);
        assert_int_equal(x.sequence, 0xFFFFFFFE);
    }
}

static void what_has_no_port_or_does_not_show_it_has_none(void **state)
{
    uint8_t packet[128];
    struct nflog_packet x;

    (void)state;
    assert_int_equal(parse(packet, put_v4(packet, 5, IPPROTO_ICMP, 0), &x), 0);
    assert_int_equal(x.port, 0);
    assert_int_equal(x.protocol, IPPROTO_ICMP);
    assert_int_equal(parse(packet, put_v4(packet, 5, IPPROTO_TCP, 0x2001), &x), 0);
    assert_int_equal(x.port, 0); /* a later fragment holds no header */
    for (size_t len = 20; len < 24; len++) {
        (void)put_v4(packet, 5, IPPROTO_TCP, 0);
        assert_int_equal(parse(packet, len, &x), 0);
        assert_int_equal(x.port, 0);
        assert_int_equal(x.address[0], 203);
    }
    (void)put_v4(packet, 15, IPPROTO_TCP, 0); /* options that are cut off */
    assert_int_equal(parse(packet, 40, &x), 0);
    assert_int_equal(x.port, 0);
}

/* To 2001:db8::9, with @extensions of @len bytes, the first of type @first. */
static size_t put_v6(uint8_t *p, uint8_t first, const uint8_t *extensions, size_t len)
{
    const uint8_t head[40] = {0x60, [6] = first, [24] = 0x20, 1, 0x0D, 0xB8, [39] = 9};
    const uint8_t ports[4] = {0xC0, 1, 0x01, 0xBB};

    memcpy(p, head, sizeof head);
    if (len > 0)
        memcpy(p + 40, extensions, len);
    memcpy(p + 40 + len, ports, sizeof ports);
    return 40 + len + sizeof ports;
}

static void a_destination_of_ipv6_is_found_behind_extension_headers(void **state)
{
    static const uint8_t row[] = {
        IPPROTO_DSTOPTS,  1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* hop by hop, 16 bytes */
        IPPROTO_FRAGMENT, 0, 0, 0, 0, 0, 0, 0,                         /* options, 8 */
        IPPROTO_AH,       0, 0, 0, 0, 0, 0, 0,                         /* the first fragment */
        IPPROTO_TCP,      1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,             /* AH, 12 */
    };
    uint8_t packet[128];
    struct nflog_packet x;

    (void)state;
    assert_int_equal(parse(packet, put_v6(packet, IPPROTO_TCP, NULL, 0), &x), 0);
    assert_int_equal(x.family, 6);
    assert_memory_equal(x.address, "\x20\1\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\x09", 16);
    assert_int_equal(x.port, 443);
    assert_int_equal(parse(packet, put_v6(packet, IPPROTO_HOPOPTS, row, sizeof row), &x), 0);
    assert_int_equal(x.protocol, IPPROTO_TCP);
    assert_int_equal(x.port, 443);
}

static void a_row_of_extension_headers_comes_to_an_end(void **state)
{
    static const uint8_t later[8] = {IPPROTO_TCP, 0, 0, 8}; /* a later fragment */
    static const uint8_t too_long[8] = {IPPROTO_TCP, 255};
    uint8_t endless[8 * 20] = {0}, packet[512];
    struct nflog_packet x;

    (void)state;
    assert_int_equal(parse(packet, put_v6(packet, IPPROTO_FRAGMENT, later, 8), &x), 0);
    assert_int_equal(x.port, 0);
    assert_int_equal(parse(packet, put_v6(packet, IPPROTO_DSTOPTS, too_long, 8), &x), 0);
    assert_int_equal(x.port, 0);
    assert_int_equal(parse(packet, put_v6(packet, IPPROTO_HOPOPTS, endless, sizeof endless), &x),
                     0);
    assert_int_equal(x.port, 0);
}

static void what_is_no_packet_is_refused(void **state)
{
    uint8_t packet[128];
    struct nflog_packet x;
    size_t n;

    (void)state;
    n = put_v4(packet, 5, IPPROTO_TCP, 0);
    for (size_t len = 0; len < 20; len++)
        assert_int_equal(parse(packet, len, &x), -EPROTO);
    packet[0] = 0x44; /* a header of 16 bytes */
    assert_int_equal(parse(packet, n, &x), -EPROTO);
    packet[0] = 0x55;
    assert_int_equal(parse(packet, n, &x), -EPROTO);
    (void)put_v6(packet, IPPROTO_TCP, NULL, 0);
    for (size_t len = 0; len < 40; len++)
        assert_int_equal(parse(packet, len, &x), -EPROTO);
}

static void a_message_that_is_cut_is_refused(void **state)
{
    uint8_t packet[128];
    size_t size, n = put_v4(packet, 5, IPPROTO_TCP, 0);
    _cleanup_free_ uint8_t *whole = message(packet, n, false, &size);
    struct nflog_packet x;

    (void)state;
    assert_int_equal(nflog_parse(whole, size, &x), 0);
    assert_false(x.sequenced);
    assert_int_equal(x.port, 8080);
    for (size_t len = 0; len < size; len++) {
        _cleanup_free_ uint8_t *exact = malloc(len ? len : 1);

        memcpy(exact, whole, len);
        assert_int_equal(nflog_parse(exact, len, &x), -EPROTO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_destination_of_ipv4_is_found),
        cmocka_unit_test(what_has_no_port_or_does_not_show_it_has_none),
        cmocka_unit_test(a_destination_of_ipv6_is_found_behind_extension_headers),
        cmocka_unit_test(a_row_of_extension_headers_comes_to_an_end),
        cmocka_unit_test(what_is_no_packet_is_refused),
        cmocka_unit_test(a_message_that_is_cut_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
