/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes in words and as JSON, and which of them are meant. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/sandbox_text.h"
#include "base/guards.h"

static void spans_are_rounded_down(void **state)
{
    static const struct {
        uint64_t s;
        const char *want;
    } rows[] = {
        {0, "0 s"},    {119, "119 s"},   {120, "2 min"},  {7199, "119 min"},
        {7200, "2 h"}, {172799, "47 h"}, {172800, "2 d"}, {31622400, "366 d"},
    };
    char buf[SANDBOX_WORDS];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        sandbox_span_text(buf, rows[i].s * 1000000 + 999999);
        assert_string_equal(buf, rows[i].want);
    }
}

static void bytes_have_a_unit(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {UINT64_C(20) << 20, "20.0 MiB"},
        {UINT64_C(5) << 30, "5.0 GiB"},
        {UINT64_C(3) << 40, "3.0 TiB"},
        {UINT64_C(9000) << 40, "9000.0 TiB"},
    };
    char buf[SANDBOX_WORDS];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        sandbox_bytes_text(buf, rows[i].bytes);
        assert_string_equal(buf, rows[i].want);
    }
}

static void times_are_universal(void **state)
{
    char buf[SANDBOX_WORDS];

    (void)state;
    sandbox_time_text(buf, UINT64_C(1580702706) * 1000000);
    assert_string_equal(buf, "2020-02-03 04:05:06 UTC");
    sandbox_time_text(buf, 0);
    assert_string_equal(buf, "1970-01-01 00:00:00 UTC");
}

static void all_tags_and_the_owner_must_fit(void **state)
{
    static const char *const tags[] = {"job=1", "kind=a=b", NULL};
    const char *both[] = {"kind=a=b", "job=1"}, *other[] = {"job=1", "job=2"}, *part[] = {"job"};
    const struct text_list none = {0}, two = {both, 2, false}, wrong = {other, 2, false},
                           half = {part, 1, false};
    const struct atoll_info i = {.id = "sb-x", .owner = "me", .tags = tags}, bare = {.id = "sb-y"};
    struct error err = ERROR_INIT;

    (void)state;
    assert_true(sandbox_matches(&i, &(struct sandbox_filter){.tags = &none}));
    assert_true(sandbox_matches(&i, &(struct sandbox_filter){.tags = &two, .owner = "me"}));
    assert_false(sandbox_matches(&i, &(struct sandbox_filter){.tags = &wrong}));
    assert_false(sandbox_matches(&i, &(struct sandbox_filter){.tags = &none, .owner = "you"}));
    assert_false(sandbox_matches(&bare, &(struct sandbox_filter){.tags = &none, .owner = "me"}));
    assert_false(sandbox_matches(&bare, &(struct sandbox_filter){.tags = &two}));
    assert_int_equal(sandbox_filter_check(&(struct sandbox_filter){.tags = &two}, &err), 0);
    assert_int_equal(sandbox_filter_check(&(struct sandbox_filter){.tags = &half}, &err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
}

static void what_is_not_known_is_null(void **state)
{
    static const char *const tags[] = {"a=1", "b=x=y", NULL};
    const struct atoll_info bare = {.id = "sb-x", .state = "running"};
    const struct atoll_info full = {
        .id = "sb-x", .name = "box", .created_at_us = 1500000, .tags = tags, .disk_limit = 7};
    json_t *o = sandbox_json(&bare);

    (void)state;
    assert_non_null(o);
    assert_int_equal(sandbox_json_usage(o, &bare), 0);
    assert_true(json_is_null(json_object_get(o, "name")));
    assert_true(json_is_null(json_object_get(o, "expires_at")));
    assert_true(json_is_null(json_object_get(o, "landlock_abi")));
    assert_true(json_is_null(json_object_get(json_object_get(o, "disk_bytes"), "limit")));
    assert_int_equal(json_object_size(json_object_get(o, "tags")), 0);
    assert_true(json_is_null(json_object_get(o, "cpu_time")));
    assert_true(json_is_null(json_object_get(o, "cost")));
    assert_true(json_is_null(json_object_get(json_object_get(o, "memory_bytes"), "peak")));
    json_decref(o);
    o = sandbox_json(&full);
    assert_int_equal(sandbox_json_usage(o, &full), 0);
    assert_true(json_real_value(json_object_get(o, "created_at")) == 1.5);
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "tags"), "b")), "x=y");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "disk_bytes"), "limit")),
                     7);
    json_decref(o);
}

static void what_was_measured_is_told(void **state)
{
    const struct atoll_info i = {.cpu_us = 1500000,
                                 .cpu_milli = 500,
                                 .memory_used = 1,
                                 .memory_peak = 2,
                                 .memory_limit = 3,
                                 .egress_sent = 4,
                                 .egress_received = 5,
                                 .cost_micro = 250000,
                                 .max_cost_micro = 2000000,
                                 .oom_kills = 6};
    json_t *o = sandbox_json_measured(&i);
    char *text = json_dumps(o, JSON_SORT_KEYS | JSON_COMPACT);

    (void)state;
    assert_string_equal(text,
                        "{\"cost\":0.25,\"cpu_limit\":0.5,\"cpu_time\":1.5,"
                        "\"egress_bytes\":{\"received\":5,\"sent\":4},\"max_cost\":2.0,"
                        "\"memory_bytes\":{\"limit\":3,\"peak\":2,\"used\":1},\"oom_kills\":6}");
    free(text);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_rounded_down),
        cmocka_unit_test(bytes_have_a_unit),
        cmocka_unit_test(times_are_universal),
        cmocka_unit_test(all_tags_and_the_owner_must_fit),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(what_was_measured_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
