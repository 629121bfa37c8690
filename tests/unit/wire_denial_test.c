/* SPDX-License-Identifier: Apache-2.0 */
/* Refused attempts between processes: round trip, cutting, and what cannot be trusted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/control.h"
#include "wire/denial.h"
#include "truncated.h"
#include "base/guards.h"

static const struct denial sample = {
    .protocol = DENIAL_TLS,
    .name = "example.org",
    .address = "198.18.0.2",
    .port = 65535,
    .rule = "allow_egress_to[2] 'example.org'",
    .reason = "its server name is another one",
    .bytes = UINT64_MAX,
    .at_us = 1,
    .repeated = 2,
    .dropped = UINT64_MAX - 1,
};

static struct reader message(const struct writer *w)
{
    return reader_over(w->start, writer_len(w));
}

static int decode(struct reader m)
{
    struct denial x;

    return denial_decode(m, &x);
}

static void a_denial_comes_back_as_it_was_sent(void **state)
{
    uint8_t buf[1024];
    struct writer w = writer_over(buf, denial_size(&sample)); /* which is enough */
    struct denial got;

    (void)state;
    denial_encode(&w, &sample);
    assert_false(w.bad);
    assert_int_equal(denial_decode(message(&w), &got), 0);
    assert_int_equal(got.protocol, DENIAL_TLS);
    assert_string_equal(got.name, "example.org");
    assert_string_equal(got.address, "198.18.0.2");
    assert_int_equal(got.port, 65535);
    assert_string_equal(got.rule, "allow_egress_to[2] 'example.org'");
    assert_string_equal(got.reason, "its server name is another one");
    assert_true(got.bytes == UINT64_MAX);
    assert_true(got.at_us == 1 && got.repeated == 2 && got.dropped == UINT64_MAX - 1);
    decode_truncated(&w, decode);
}

static void texts_are_cut_and_none_is_missing(void **state)
{
    static char longest[3 * DENIAL_TEXT_MAX];
    static uint8_t buf[8 * DENIAL_TEXT_MAX];
    struct denial x = {.protocol = DENIAL_DNS, .name = longest, .rule = longest}, got;

    (void)state;
    memset(longest, 'a', sizeof longest - 1);
    struct writer w = writer_over(buf, denial_size(&x));
    denial_encode(&w, &x);
    assert_int_equal(denial_decode(message(&w), &got), 0);
    assert_int_equal(strlen(got.name), DENIAL_TEXT_MAX - 1);
    assert_int_equal(strlen(got.rule), DENIAL_TEXT_MAX - 1);
    assert_string_equal(got.address, "");
    assert_string_equal(got.reason, "");
}

/* A message of the protocol and one more field. */
static int decode_with(uint16_t tag, const void *data, size_t len)
{
    static uint8_t buf[4 * DENIAL_TEXT_MAX];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, TAG_DENIAL_PROTOCOL, DENIAL_UDP);
    field_put_bytes(&w, tag, data, len);
    assert_false(w.bad);
    return decode(message(&w));
}

static void damaged_fields_are_refused(void **state)
{
    static const uint16_t texts[] = {TAG_DENIAL_NAME, TAG_DENIAL_ADDRESS, TAG_DENIAL_RULE,
                                     TAG_DENIAL_REASON};
    static const uint16_t numbers[] = {TAG_DENIAL_BYTES, TAG_DENIAL_AT_US, TAG_DENIAL_REPEATED,
                                       TAG_DENIAL_DROPPED};
    static const uint8_t port[4] = {0, 0, 1, 0}, unknown[4] = {DENIAL_PROTOCOL__MAX};
    static char longest[DENIAL_TEXT_MAX + 1];

    (void)state;
    memset(longest, 'a', DENIAL_TEXT_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_int_equal(decode_with(texts[i], "a", 2), 0);
        assert_int_equal(decode_with(texts[i], "a", 1), -EPROTO);
        assert_int_equal(decode_with(texts[i], "a\0b", 4), -EPROTO);
        assert_int_equal(decode_with(texts[i], longest, sizeof longest), -EPROTO);
    }
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        assert_int_equal(decode_with(numbers[i], port, sizeof port), -EPROTO);
    assert_int_equal(decode_with(TAG_DENIAL_PORT, port, sizeof port), -EPROTO);
    assert_int_equal(decode_with(TAG_DENIAL_PROTOCOL, unknown, sizeof unknown), -EPROTO);
    assert_int_equal(decode_with(UINT16_MAX, unknown, sizeof unknown), 0); /* a newer peer's */
}

static void without_a_protocol_it_is_none(void **state)
{
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    assert_int_equal(decode(message(&w)), -EPROTO);
    field_put_string(&w, TAG_DENIAL_NAME, "a");
    assert_int_equal(decode(message(&w)), -EPROTO);
}

static void every_protocol_has_a_word(void **state)
{
    (void)state;
    assert_string_equal(denial_protocol_name(DENIAL_DNS), "dns");
    assert_string_equal(denial_protocol_name(DENIAL_TCP), "tcp");
    assert_string_equal(denial_protocol_name(DENIAL_UDP), "udp");
    assert_string_equal(denial_protocol_name(DENIAL_TLS), "tls");
    assert_string_equal(denial_protocol_name(DENIAL_HTTP), "http");
    assert_string_equal(denial_protocol_name(DENIAL_OTHER), "other");
    assert_string_equal(denial_protocol_name(UINT32_MAX), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_denial_comes_back_as_it_was_sent),
        cmocka_unit_test(texts_are_cut_and_none_is_missing),
        cmocka_unit_test(damaged_fields_are_refused),
        cmocka_unit_test(without_a_protocol_it_is_none),
        cmocka_unit_test(every_protocol_has_a_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
