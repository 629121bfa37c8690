/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink messages: what is built is what is read, and damaged bytes are told from an end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/netlink.h"
#include "base/guards.h"

static const uint8_t head[4] = {1, 2, 3, 4};

/* Two messages, the second with an attribute in an attribute. */
static size_t build(uint8_t *buf, size_t size, bool *ret_bad)
{
    struct netlink_batch b;

    netlink_batch_init(&b, buf, size);
    netlink_begin(&b, 20, NLM_F_REQUEST, head, sizeof head);
    netlink_put_u8(&b, 1, 0xAB);
    netlink_put_u32(&b, 2, 7);
    netlink_end(&b);
    netlink_begin(&b, 21, NLM_F_ACK, head, sizeof head);
    size_t nest = netlink_nest(&b, 3);
    netlink_put_text(&b, 4, "five");
    netlink_put_be16(&b, 5, 0x0102);
    netlink_put_be32(&b, 6, 0x01020304);
    netlink_unnest(&b, nest);
    netlink_put(&b, 7, NULL, 0);
    netlink_end(&b);
    *ret_bad = b.bad;
    return b.len;
}

static void take(const uint8_t **p, const uint8_t *end, uint16_t type, const void *data, size_t len)
{
    struct netlink_attribute a;

    assert_true(netlink_attribute_next(p, end, &a));
    assert_int_equal(a.type, type);
    assert_int_equal(a.len, len);
    if (data)
        assert_memory_equal(a.data, data, len);
}

static void what_is_built_is_read_again(void **state)
{
    uint8_t buf[256];
    bool bad;
    const uint8_t *p = buf, *end = buf + build(buf, sizeof buf, &bad);
    struct netlink_message m;
    struct netlink_attribute a;
    uint32_t seven = 7;

    (void)state;
    assert_false(bad);
    assert_true(netlink_next(&p, end, &m, &bad));
    assert_int_equal(m.type, 20);
    assert_int_equal(m.flags, NLM_F_REQUEST);
    assert_int_equal(m.sequence, 1);
    assert_memory_equal(m.payload, head, sizeof head);
    const uint8_t *q = m.payload + sizeof head, *q_end = m.payload + m.len;
    take(&q, q_end, 1, "\xAB", 1);
    take(&q, q_end, 2, &seven, 4);
    assert_false(netlink_attribute_next(&q, q_end, &a));
    assert_true(netlink_next(&p, end, &m, &bad));
    assert_int_equal(m.type, 21);
    assert_int_equal(m.sequence, 2);
    q = m.payload + sizeof head;
    q_end = m.payload + m.len;
    assert_true(netlink_attribute_next(&q, q_end, &a));
    assert_int_equal(a.type, 3); /* without the flag that it is nested */
    const uint8_t *in = a.data, *in_end = a.data + a.len;
    take(&in, in_end, 4, "five", 5);
    take(&in, in_end, 5, "\1\2", 2);
    take(&in, in_end, 6, "\1\2\3\4", 4);
    assert_ptr_equal(in, in_end);
    take(&q, q_end, 7, NULL, 0);
    assert_ptr_equal(q, q_end);
    assert_false(netlink_next(&p, end, &m, &bad));
    assert_false(bad);
    assert_ptr_equal(p, end);
}

static void a_buffer_that_is_too_small_is_told_and_never_passed(void **state)
{
    uint8_t whole[256];
    bool bad;
    size_t needed = build(whole, sizeof whole, &bad);

    (void)state;
    for (size_t size = 0; size < needed; size++) {
        _cleanup_free_ uint8_t *exact = malloc(size ? size : 1);

        assert_true(build(exact, size, &bad) <= size);
        assert_true(bad);
    }
}

static void an_attribute_longer_than_its_length_can_say_is_refused(void **state)
{
    const size_t size = 200000;
    _cleanup_free_ uint8_t *buf = calloc(1, size), *data = calloc(1, size);
    struct netlink_batch b;

    (void)state;
    netlink_batch_init(&b, buf, size);
    netlink_begin(&b, 1, 0, head, sizeof head);
    netlink_put(&b, 1, data, 65531);
    assert_false(b.bad);
    netlink_put(&b, 1, data, 65532);
    assert_true(b.bad);

    netlink_batch_init(&b, buf, size);
    netlink_begin(&b, 1, 0, head, sizeof head);
    size_t nest = netlink_nest(&b, 1);
    netlink_put(&b, 1, data, 40000);
    netlink_put(&b, 1, data, 40000);
    assert_false(b.bad);
    netlink_unnest(&b, nest);
    assert_true(b.bad);
}

static void a_cut_batch_is_damaged_unless_cut_between_messages(void **state)
{
    uint8_t whole[256];
    bool bad;
    size_t len = build(whole, sizeof whole, &bad);
    struct netlink_message m;

    (void)state;
    for (size_t cut = 0; cut < len; cut++) {
        _cleanup_free_ uint8_t *exact = malloc(cut ? cut : 1);
        const uint8_t *p = exact;
        size_t n = 0, ends = 0;

        memcpy(exact, whole, cut);
        bad = false;
        while (netlink_next(&p, exact + cut, &m, &bad)) {
            n++;
            ends = (size_t)(m.payload + m.len - exact);
        }
        assert_true(n <= 1);
        assert_int_equal(bad, !(cut == 0 || (n == 1 && p == exact + cut && ends <= cut)));
    }
}

static void lengths_that_lie_are_damaged(void **state)
{
    static const uint32_t lies[] = {0, 1, 15, 21, UINT32_MAX, UINT32_MAX - 2};
    static const uint16_t short_lies[] = {0, 3, 9, UINT16_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        uint8_t bytes[20] = {0};
        const uint8_t *p = bytes;
        struct netlink_message m;
        bool bad = false;

        memcpy(bytes, &lies[i], sizeof lies[i]);
        assert_false(netlink_next(&p, bytes + sizeof bytes, &m, &bad));
        assert_true(bad);
    }
    for (size_t i = 0; i < ARRAY_SIZE(short_lies); i++) {
        uint8_t bytes[8] = {0};
        const uint8_t *p = bytes;
        struct netlink_attribute a;

        memcpy(bytes, &short_lies[i], sizeof short_lies[i]);
        assert_false(netlink_attribute_next(&p, bytes + sizeof bytes, &a));
        assert_ptr_equal(p, bytes); /* where the damage is */
    }
}

static void an_answer_is_an_errno_an_acknowledgement_or_neither(void **state)
{
    static const struct {
        int32_t error;
        uint16_t type;
        size_t len;
        int expected;
    } rows[] = {
        {-EPERM, NLMSG_ERROR, 4, EPERM}, {0, NLMSG_ERROR, 4, 0},  {0, NLMSG_ERROR, 3, -1},
        {0, NLMSG_DONE, 4, -1},          {1, NLMSG_ERROR, 4, -1}, {INT32_MIN, NLMSG_ERROR, 4, -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint8_t payload[4];
        const struct netlink_message m = {
            .type = rows[i].type, .payload = payload, .len = rows[i].len};

        memcpy(payload, &rows[i].error, sizeof payload);
        assert_int_equal(netlink_error(&m), rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_built_is_read_again),
        cmocka_unit_test(a_buffer_that_is_too_small_is_told_and_never_passed),
        cmocka_unit_test(an_attribute_longer_than_its_length_can_say_is_refused),
        cmocka_unit_test(a_cut_batch_is_damaged_unless_cut_between_messages),
        cmocka_unit_test(lengths_that_lie_are_damaged),
        cmocka_unit_test(an_answer_is_an_errno_an_acknowledgement_or_neither),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
