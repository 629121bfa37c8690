/* SPDX-License-Identifier: Apache-2.0 */
/* Errors between processes: round trip, cutting, and what cannot be trusted. */
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
#include "wire/fault.h"
#include "truncated.h"
#include "base/guards.h"

static struct reader message(const struct writer *w)
{
    return reader_over(w->start, writer_len(w));
}

static int decode(struct reader m)
{
    struct error e = ERROR_INIT;

    return fault_decode(m, &e);
}

static void an_error_comes_back_as_it_was_sent(void **state)
{
    struct error err = ERROR_INIT, got = ERROR_INIT;
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    error_set(&err, ERROR_TOO_LARGE, E2BIG, "it is too large");
    error_remedy(&err, "Ask for less");
    error_context(&err, "step 3");
    fault_encode(&w, &err);
    assert_int_equal(fault_decode(message(&w), &got), 0);
    assert_int_equal(got.code, E2BIG);
    assert_int_equal(got.cls, ERROR_TOO_LARGE);
    assert_string_equal(got.context, "step 3");
    assert_string_equal(got.message, "it is too large");
    assert_string_equal(got.remedy, "Ask for less");
    decode_truncated(&w, decode);
}

static void the_longest_error_fits_a_small_buffer(void **state)
{
    struct error err = ERROR_INIT, got = ERROR_INIT;
    uint8_t buf[2048]; /* what senders use */
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    error_set(&err, ERROR_USAGE, EINVAL, "%0600d", 0);
    error_remedy(&err, "%0600d", 0);
    error_context(&err, "%0600d", 0);
    fault_encode(&w, &err);
    assert_false(w.bad);
    assert_int_equal(fault_decode(message(&w), &got), 0);
    assert_memory_equal(&got, &err, sizeof got);
}

static void longer_texts_are_cut(void **state)
{
    struct error got = ERROR_INIT;
    char text[4000];
    uint8_t buf[16 * 1024];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    memset(text, 't', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    field_put_u32(&w, TAG_ERROR_CODE, EIO);
    field_put_string(&w, TAG_ERROR_CONTEXT, text);
    field_put_string(&w, TAG_ERROR_MESSAGE, text);
    field_put_string(&w, TAG_ERROR_REMEDY, text);
    assert_int_equal(fault_decode(message(&w), &got), 0);
    assert_int_equal(strlen(got.context), sizeof got.context - 1);
    assert_int_equal(strlen(got.message), sizeof got.message - 1);
    assert_int_equal(strlen(got.remedy), sizeof got.remedy - 1);
}

static void an_unknown_class_must_not_be_retried(void **state)
{
    static const uint32_t unknown[] = {ERROR_CLASS__MAX, 1000, UINT32_MAX};
    uint8_t buf[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
        struct writer w = writer_over(buf, sizeof buf);
        struct error got = ERROR_INIT;

        field_put_u32(&w, TAG_ERROR_CODE, EIO);
        field_put_u32(&w, TAG_ERROR_CLASS, unknown[i]);
        assert_int_equal(fault_decode(message(&w), &got), 0);
        assert_int_equal(got.cls, ERROR_TERMINAL);
    }
}

static void an_error_without_a_sound_code_is_refused(void **state)
{
    static const uint32_t codes[] = {0, 4096, UINT32_MAX};
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    assert_int_equal(decode(message(&w)), -EPROTO);
    field_put_u32(&w, TAG_ERROR_CLASS, ERROR_USAGE);
    assert_int_equal(decode(message(&w)), -EPROTO);
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        w = writer_over(buf, sizeof buf);
        field_put_u32(&w, TAG_ERROR_CODE, codes[i]);
        assert_int_equal(decode(message(&w)), -EPROTO);
    }
}

static void a_text_without_its_end_is_refused(void **state)
{
    static const uint16_t tags[] = {TAG_ERROR_CONTEXT, TAG_ERROR_MESSAGE, TAG_ERROR_REMEDY};
    uint8_t buf[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
        struct writer w = writer_over(buf, sizeof buf);

        field_put_u32(&w, TAG_ERROR_CODE, EIO);
        field_put_bytes(&w, tags[i], "open", 4);
        assert_int_equal(decode(message(&w)), -EPROTO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_comes_back_as_it_was_sent),
        cmocka_unit_test(the_longest_error_fits_a_small_buffer),
        cmocka_unit_test(longer_texts_are_cut),
        cmocka_unit_test(an_unknown_class_must_not_be_retried),
        cmocka_unit_test(an_error_without_a_sound_code_is_refused),
        cmocka_unit_test(a_text_without_its_end_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
