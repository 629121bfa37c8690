/* SPDX-License-Identifier: Apache-2.0 */
/* Tags in the place of a lease: who is let in, what is learnt, what a new sandbox begins with. */
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
#include "core/share_tags.h"
#include "base/guards.h"

#define CLOSED "{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":true}"
#define NOW_US UINT64_C(1700000000500000)

enum { TAGS_MAX = 8 };

/* The tags of a sandbox, up to TAGS_MAX of them. */
static struct share_tags tags_of(const char *const items[TAGS_MAX])
{
    struct share_tags t = {.items = items};

    while (t.n < TAGS_MAX && items[t.n])
        t.n++;
    return t;
}

static void the_owner_has_to_be_the_same_and_nobody_else_in(void **state)
{
    static const struct {
        const char *tags[TAGS_MAX];
        const char *owner, *holder;
        int result;
        const char *words[2];
    } rows[] = {
        {{"airflow_owner=a/b", "team=x"}, "a/b", "t", 0, {NULL}},
        {{"airflow_owner=a/b", "airflow_holder=t"}, "a/b", "t", 1, {NULL}},
        {{"airflow_owner=a/b", "airflow_holder="}, "a/b", "t", 0, {NULL}},
        {{"airflow_owner=a=b"}, "a=b", "t", 0, {NULL}},
        {{"airflow_owner=a/b", "airflow_holder=other"}, "a/b", "t", -EBUSY, {"'other'", "'t'"}},
        {{"airflow_owner=a/b"}, "a/c", "t", -EACCES, {"'a/b'", "'a/c'"}},
        {{"airflow_owner=a/b"}, "a", "t", -EACCES, {"'a/b'", "'a'"}},
        {{"airflow_owner=a/b"}, "", "t", -EACCES, {"'a/b'", "no owner"}},
        {{"airflow_owner=a/b"}, "a/b", "", -EACCES, {"holder", "empty"}},
        {{"airflow_owner="}, "", "t", -EACCES, {"no owner", ""}},
        {{"airflow_ownership=a/b", "owner=a/b"}, "a/b", "t", -EACCES, {"no owner", ""}},
        {{NULL}, "a/b", "t", -EACCES, {"no owner", ""}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct share_tags t = tags_of(rows[i].tags);
        struct error err = ERROR_INIT;

        assert_int_equal(share_tags_admit(&t, rows[i].owner, rows[i].holder, &err), rows[i].result);
        if (rows[i].result >= 0) {
            assert_int_equal(err.code, 0);
            continue;
        }
        assert_int_equal(err.cls, ERROR_TERMINAL);
        assert_non_null(strstr(err.message, rows[i].words[0]));
        assert_non_null(strstr(err.message, rows[i].words[1]));
    }
}

static void a_refusal_says_how_a_dead_holders_name_is_taken_out(void **state)
{
    static const struct {
        const char *tag, *words;
    } rows[] = {
        {"airflow_holder=other", "\"atoll hold ID --owner OWNER --holder 'other' -- true\""},
        {"airflow_holder=it's", "--holder HOLDER -- true"}, /* which quotes would not hold */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *const tags[TAGS_MAX] = {"airflow_owner=a/b", rows[i].tag};
        const struct share_tags t = tags_of(tags);
        struct error err = ERROR_INIT;

        assert_int_equal(share_tags_admit(&t, "a/b", "t", &err), -EBUSY);
        assert_non_null(strstr(err.remedy, rows[i].words));
    }
}

static void it_is_ended_by_its_owner_while_nobody_holds_it(void **state)
{
    static const struct {
        const char *tags[TAGS_MAX];
        const char *owner;
        int result;
    } rows[] = {
        {{"airflow_owner=a/b", "team=x"}, "a/b", 0},
        {{"airflow_owner=a/b", "airflow_holder=t"}, "a/b", -EBUSY},
        {{"airflow_owner=a/b", "airflow_holder=t"}, NULL, -EACCES},
        {{"airflow_owner=a/b"}, "a/c", -EACCES},
        {{"airflow_owner=a/b"}, "", -EACCES},
        {{"airflow_owner=a/b"}, NULL, -EACCES},
        {{"airflow_owner=", "airflow_holder=t"}, NULL, 0},
        {{"team=x"}, "a/b", -EACCES},
        {{"airflow_owner="}, "a/b", -EACCES},
        {{"team=x"}, NULL, 0},
        {{"team=x"}, "", 0},
        {{NULL}, NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct share_tags t = tags_of(rows[i].tags);
        struct error err = ERROR_INIT;

        assert_int_equal(share_tags_judge_end(&t, rows[i].owner, &err), rows[i].result);
        assert_int_equal(err.code, -rows[i].result);
    }
}

static void what_is_left_is_counted_from_the_tag(void **state)
{
    static const struct {
        const char *tag;
        uint64_t left_us;
    } rows[] = {
        {"airflow_expires_at=1700000600", UINT64_C(599500000)},
        {"airflow_expires_at=1700000000", 0}, /* half a second ago */
        {"airflow_expires_at=0", 0},
        {"airflow_expires_at=soon", UINT64_MAX},
        {"airflow_expires_at=-5", UINT64_MAX},
        {"airflow_expires_at=1e9", UINT64_MAX},
        {"airflow_expires_at=99999999999999999999", UINT64_MAX},
        {"airflow_expires_at=18446744073709551615", UINT64_MAX}, /* no number of microseconds */
        {"other=1", UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct share_tags t = {&rows[i].tag, 1};
        struct attach_report x;
        char warning[256];

        share_tags_report(&t, NOW_US, &x, warning, sizeof warning);
        assert_true(x.left_us == rows[i].left_us);
        assert_string_equal(warning, "");
        assert_int_equal(x.generation, 0);
    }
}

static void network_and_workdir_are_told_as_they_were_recorded(void **state)
{
    static const char open[] = "{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[\"10.0.0.0/8\"],"
                               "\"block_network\":true}";
    static const char *const good[TAGS_MAX] = {"airflow_workdir=/data", "airflow_network=" CLOSED};
    static const char *const none[TAGS_MAX] = {"airflow_workdir="};
    char stamp[256], warning[256];
    const char *ranges[TAGS_MAX] = {stamp};
    struct attach_report x;
    struct share_tags t = tags_of(good);

    (void)state;
    share_tags_report(&t, NOW_US, &x, warning, sizeof warning);
    assert_string_equal(x.workdir, "/data");
    assert_string_equal(x.network, CLOSED);
    assert_string_equal(warning, "");
    (void)snprintf(stamp, sizeof stamp, "airflow_network=%s", open);
    t = tags_of(ranges);
    share_tags_report(&t, NOW_US, &x, warning, sizeof warning);
    assert_string_equal(x.network, open);
    t = tags_of(none);
    share_tags_report(&t, NOW_US, &x, warning, sizeof warning);
    assert_null(x.workdir);
    assert_null(x.network);
    assert_string_equal(warning, ""); /* nothing was recorded: nothing to warn of */
}

static void a_stamp_that_cannot_be_read_is_not_known_and_quoted(void **state)
{
    static const char *const bad[] = {"airflow_network=open", "airflow_network=[]",
                                      "airflow_network={\"block_network\":true}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const struct share_tags t = {&bad[i], 1};
        struct attach_report x;
        char warning[256];

        share_tags_report(&t, NOW_US, &x, warning, sizeof warning);
        assert_null(x.network);
        assert_non_null(strstr(warning, strchr(bad[i], '=') + 1));
    }
}

static const char *stamped(const struct string_list *l, const char *key)
{
    const struct share_tags t = {(const char *const *)(uintptr_t)l->items, l->n};

    return share_tags_find(&t, key);
}

static void a_new_sandbox_is_stamped_and_nobody_forges_that(void **state)
{
    struct string_list l = {0};
    struct spec s;

    (void)state;
    assert_int_equal(spec_init(&s), 0);
    assert_int_equal(string_list_add(&s.tags, "airflow_owner=forged"), 0);
    assert_int_equal(string_list_add(&s.tags, "airflow_holder=forged"), 0);
    assert_int_equal(string_list_add(&s.tags, "team=x"), 0);
    s.lifetime_us = UINT64_C(600000000);
    assert_int_equal(share_tags_stamp(&s, NOW_US, &l), 0);
    assert_int_equal(l.n, 1); /* it is not shared */
    assert_string_equal(l.items[0], "team=x");
    string_list_done(&l);
    l = (struct string_list){0};
    s.owner = strdup("a/b");
    s.workdir = strdup("/data");
    assert_int_equal(share_tags_stamp(&s, NOW_US, &l), 0);
    assert_string_equal(stamped(&l, "team"), "x");
    assert_string_equal(stamped(&l, SHARE_TAG_OWNER), "a/b");
    assert_string_equal(stamped(&l, SHARE_TAG_EXPIRES), "1700000600");
    assert_string_equal(stamped(&l, SHARE_TAG_NETWORK), CLOSED);
    assert_string_equal(stamped(&l, SHARE_TAG_WORKDIR), "/data");
    assert_null(stamped(&l, SHARE_TAG_HOLDER));
    string_list_done(&l);
    l = (struct string_list){0};
    free(s.workdir);
    s.workdir = NULL;
    s.lifetime_us = 0;
    assert_int_equal(share_tags_stamp(&s, NOW_US, &l), 0);
    assert_null(stamped(&l, SHARE_TAG_WORKDIR)); /* nobody chose one */
    assert_null(stamped(&l, SHARE_TAG_EXPIRES));
    string_list_done(&l);
    spec_done(&s);
}

static void only_whole_keys_are_reserved(void **state)
{
    (void)state;
    assert_true(share_tag_reserved("airflow_owner=x"));
    assert_true(share_tag_reserved("airflow_network="));
    assert_false(share_tag_reserved("airflow_owner"));
    assert_false(share_tag_reserved("airflow_owners=x"));
    assert_false(share_tag_reserved("x_airflow_owner=x"));
    assert_false(share_tag_reserved("team=airflow_owner=x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_owner_has_to_be_the_same_and_nobody_else_in),
        cmocka_unit_test(a_refusal_says_how_a_dead_holders_name_is_taken_out),
        cmocka_unit_test(it_is_ended_by_its_owner_while_nobody_holds_it),
        cmocka_unit_test(what_is_left_is_counted_from_the_tag),
        cmocka_unit_test(network_and_workdir_are_told_as_they_were_recorded),
        cmocka_unit_test(a_stamp_that_cannot_be_read_is_not_known_and_quoted),
        cmocka_unit_test(a_new_sandbox_is_stamped_and_nobody_forges_that),
        cmocka_unit_test(only_whole_keys_are_reserved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
