/* SPDX-License-Identifier: Apache-2.0 */
/* EXPORTED: there and back, cut short, and URLs without what lets somebody in. */
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
#include "wire/exported.h"
#include "base/guards.h"

static void what_is_told_is_read(void **state)
{
    const struct exported_report x = {
        .path = "a b", .url = "file:///srv/x", .bytes = 7, .digest = "sha256:12"};
    const struct exported_report failed = {.path = "a", .url = "u", .message = "no"};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct exported_report got;

    (void)state;
    exported_report_encode(&w, &x);
    assert_false(w.bad);
    assert_true(writer_len(&w) <= exported_report_size(&x));
    assert_int_equal(exported_report_decode(reader_over(buf, writer_len(&w)), &got), 0);
    assert_string_equal(got.path, "a b");
    assert_string_equal(got.url, "file:///srv/x");
    assert_string_equal(got.digest, "sha256:12");
    assert_int_equal(got.bytes, 7);
    assert_null(got.message);
    w = writer_over(buf, sizeof buf);
    exported_report_encode(&w, &failed);
    assert_int_equal(exported_report_decode(reader_over(buf, writer_len(&w)), &got), 0);
    assert_string_equal(got.message, "no");
    assert_null(got.digest);
}

static void what_is_cut_short_or_lacks_a_field_is_refused(void **state)
{
    const struct exported_report x = {.path = "a", .url = "file:///x", .bytes = 7, .message = "m"};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    struct exported_report got;
    size_t good = 0;

    (void)state;
    exported_report_encode(&w, &x);
    for (size_t n = 0; n < writer_len(&w); n++)
        good += exported_report_decode(reader_over(buf, n), &got) == 0;
    assert_int_equal(good, 2); /* between fields, once path and URL are there */
    w = writer_over(buf, sizeof buf);
    field_put_string(&w, TAG_PATH, "a");
    assert_int_equal(exported_report_decode(reader_over(buf, writer_len(&w)), &got), -EPROTO);
}

static void long_texts_are_cut(void **state)
{
    static char path[2 * EXPORTED_TEXT_MAX];
    static uint8_t buf[4 * EXPORTED_TEXT_MAX];
    const struct exported_report x = {.path = path, .url = path};
    struct writer w = writer_over(buf, sizeof buf);
    struct exported_report got;

    (void)state;
    memset(path, 'x', sizeof path - 1);
    assert_true(exported_report_size(&x) <= sizeof buf);
    exported_report_encode(&w, &x);
    assert_true(writer_len(&w) <= exported_report_size(&x));
    assert_int_equal(exported_report_decode(reader_over(buf, writer_len(&w)), &got), 0);
    assert_int_equal(strlen(got.path), EXPORTED_TEXT_MAX - 1);
}

/* Whoever does not cut them: a message has room for more. */
static void longer_texts_are_refused(void **state)
{
    static const uint16_t tags[] = {TAG_PATH, TAG_URL, TAG_DIGEST, TAG_ERROR_MESSAGE};
    static char text[EXPORTED_TEXT_MAX + 1];
    static uint8_t buf[4 * EXPORTED_TEXT_MAX];

    (void)state;
    memset(text, 'x', EXPORTED_TEXT_MAX);
    for (size_t extra = 0; extra < 2; extra++)
        for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
            struct writer w = writer_over(buf, sizeof buf);
            struct exported_report got;

            field_put_string(&w, TAG_PATH, "a");
            field_put_string(&w, TAG_URL, "u");
            field_put_string(&w, tags[i], text + 1 - extra);
            assert_false(w.bad);
            assert_int_equal(exported_report_decode(reader_over(buf, writer_len(&w)), &got),
                             extra > 0 ? -EPROTO : 0);
        }
}

static void urls_lose_passwords_and_signatures(void **state)
{
    static const struct {
        const char *from, *url, *text;
    } cases[] = {
        {"file:///srv/a@b", "file:///srv/a@b", NULL},
        {"s3://bucket/key", "s3://bucket/key", NULL},
        {"https://me:p@ss@host/a", "https://host/a", NULL},
        {"https://me@host", "https://host", NULL},
        {"https://host?sig=a b", "https://host?***", "https://host?*** b"},
        {"https://me:pw@host/x?sig=1#y", "https://host/x?***", NULL},
        {"no url @ all?", "no url @ all?", NULL},
        {"://@", "://", NULL},
        {"", "", NULL},
        {"a://u:p@b c://u:p@d", "a://b c://u:p@d", "a://b c://d"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *url = exported_url(cases[i].from);
        _cleanup_free_ char *text = exported_text(cases[i].from);

        assert_string_equal(url, cases[i].url);
        assert_string_equal(text, cases[i].text ? cases[i].text : cases[i].url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_read),
        cmocka_unit_test(what_is_cut_short_or_lacks_a_field_is_refused),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(longer_texts_are_refused),
        cmocka_unit_test(urls_lose_passwords_and_signatures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
