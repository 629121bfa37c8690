/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a lease, one state and event after the other; who is refused, and in which words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lease.h"
#include "core/limits.h"
#include "base/guards.h"

#define NO LEASE__MAX

enum { HOUR = 3600 };

/* Written down once more, from the picture in docs/design/lifecycle.md. */
static const struct {
    enum lease_state from;
    enum lease_event event;
    enum lease_state to;
} rows[] = {
    {LEASE_NONE, LEASE_SHARED, LEASE_FREE},
    {LEASE_NONE, LEASE_ATTACH_SAME, NO},
    {LEASE_NONE, LEASE_ATTACH_OTHER, NO},
    {LEASE_NONE, LEASE_RELEASE, NO},
    {LEASE_NONE, LEASE_LEFT, NO},
    {LEASE_NONE, LEASE_LEFT_AWHILE, NO},
    {LEASE_NONE, LEASE_EXPIRED, NO},
    {LEASE_FREE, LEASE_SHARED, NO},
    {LEASE_FREE, LEASE_ATTACH_SAME, NO},
    {LEASE_FREE, LEASE_ATTACH_OTHER, LEASE_HELD},
    {LEASE_FREE, LEASE_RELEASE, NO},
    {LEASE_FREE, LEASE_LEFT, NO},
    {LEASE_FREE, LEASE_LEFT_AWHILE, NO},
    {LEASE_FREE, LEASE_EXPIRED, NO},
    {LEASE_HELD, LEASE_SHARED, NO},
    {LEASE_HELD, LEASE_ATTACH_SAME, LEASE_HELD},
    {LEASE_HELD, LEASE_ATTACH_OTHER, NO},
    {LEASE_HELD, LEASE_RELEASE, LEASE_FREE},
    {LEASE_HELD, LEASE_LEFT, LEASE_FREE},
    {LEASE_HELD, LEASE_LEFT_AWHILE, LEASE_KEPT},
    {LEASE_HELD, LEASE_EXPIRED, NO},
    {LEASE_KEPT, LEASE_SHARED, NO},
    {LEASE_KEPT, LEASE_ATTACH_SAME, LEASE_HELD},
    {LEASE_KEPT, LEASE_ATTACH_OTHER, NO},
    {LEASE_KEPT, LEASE_RELEASE, NO},
    {LEASE_KEPT, LEASE_LEFT, NO},
    {LEASE_KEPT, LEASE_LEFT_AWHILE, NO},
    {LEASE_KEPT, LEASE_EXPIRED, LEASE_FREE},
};

static void every_event_in_every_state_leads_where_the_picture_says(void **state)
{
    bool seen[LEASE__MAX][LEASE_EVENT__MAX] = {{false}};

    (void)state;
    assert_int_equal(sizeof rows / sizeof *rows, LEASE__MAX * LEASE_EVENT__MAX);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum lease_state next = NO;
        bool legal = lease_next(rows[i].from, rows[i].event, &next);

        if (legal != (rows[i].to != NO) || next != rows[i].to)
            fail_msg("%s, %s: leads to %s", lease_state_name(rows[i].from),
                     lease_event_name(rows[i].event), lease_state_name(next));
        assert_false(seen[rows[i].from][rows[i].event]);
        seen[rows[i].from][rows[i].event] = true;
    }
}

static void what_is_no_state_or_event_leads_nowhere(void **state)
{
    enum lease_state next = LEASE_KEPT;

    (void)state;
    assert_false(lease_next(LEASE__MAX, LEASE_SHARED, &next));
    assert_false(lease_next(LEASE_NONE, LEASE_EVENT__MAX, &next));
    assert_int_equal(next, LEASE_KEPT);
    assert_string_equal(lease_event_name(LEASE_EVENT__MAX), "?");
}

/* A lease of a sandbox of "a/b", in a state that its steps lead to. */
static struct lease made(enum lease_state s)
{
    const struct attach_request x = {.owner = "a/b", .holder = "one", .keep_us = HOUR};
    struct lease l = {.state = LEASE_NONE};

    if (s != LEASE_NONE)
        lease_share(&l);
    if (s == LEASE_HELD || s == LEASE_KEPT)
        assert_int_equal(lease_take(&l, &x), 0);
    if (s == LEASE_KEPT)
        assert_int_equal(lease_leave(&l, UINT64_MAX, 5), HOUR);
    assert_int_equal(l.state, s);
    return l;
}

static void the_operations_follow_the_table(void **state)
{
    (void)state;
    for (int s = LEASE_NONE; s < LEASE__MAX; s++) {
        for (int e = 0; e < LEASE_EVENT__MAX; e++) {
            struct lease l = made((enum lease_state)s);
            const uint32_t before = l.generation;
            struct attach_request x = {.owner = "a/b", .holder = "two"};
            enum lease_state next = (enum lease_state)s; /* what is not legal changes nothing */

            (void)lease_next((enum lease_state)s, (enum lease_event)e, &next);
            if (e == LEASE_SHARED) {
                lease_share(&l);
            } else if (e == LEASE_ATTACH_SAME || e == LEASE_ATTACH_OTHER) {
                x.holder = e == LEASE_ATTACH_SAME ? "one" : "two";
                if (e == LEASE_ATTACH_SAME && !l.holder)
                    continue; /* there is none that could be the same */
                int r = lease_take(&l, &x);
                assert_int_equal(r == 0, next == LEASE_HELD && l.generation == before + 1);
            } else if (e == LEASE_RELEASE) {
                lease_return(&l);
            } else if (e == LEASE_EXPIRED) {
                lease_expire(&l);
            } else {
                l.keep_us = e == LEASE_LEFT ? 0 : HOUR;
                (void)lease_leave(&l, UINT64_MAX, 0);
            }
            if (l.state != next)
                fail_msg("%s, %s: leads to %s", lease_state_name((uint32_t)s),
                         lease_event_name((enum lease_event)e), lease_state_name(l.state));
            assert_int_equal(l.holder != NULL, l.state == LEASE_HELD || l.state == LEASE_KEPT);
            assert_int_equal(l.until_us != 0, l.state == LEASE_KEPT);
            assert_true(l.generation >= before);
            lease_clear(&l);
        }
    }
}

static void expect_refused(enum lease_state s, const char *sandbox_owner, const char *owner,
                           const char *holder, int code, const char *first, const char *second)
{
    const struct attach_request x = {.owner = owner, .holder = holder};
    struct lease l = made(s);
    struct error err = ERROR_INIT;

    assert_int_equal(lease_judge(&l, sandbox_owner, &x, &err), -code);
    assert_int_equal(err.cls, ERROR_TERMINAL);
    assert_int_equal(err.code, code);
    if (!strstr(err.message, first) || (second && !strstr(err.message, second)))
        fail_msg("%s: %s", lease_state_name(s), err.message);
    assert_true(err.remedy[0] != '\0');
    assert_int_equal(l.state, s);
    lease_clear(&l);
}

static void nobody_attaches_to_what_is_not_shared(void **state)
{
    (void)state;
    expect_refused(LEASE_NONE, NULL, "a/b", "h", EACCES, "no owner", NULL);
    expect_refused(LEASE_NONE, NULL, "", "", EACCES, "no owner", NULL);
    expect_refused(LEASE_NONE, "a/b", "a/b", "h", EACCES, "not shared", NULL);
}

static void another_owner_is_refused_and_both_are_named(void **state)
{
    (void)state;
    for (int s = LEASE_FREE; s <= LEASE_KEPT; s++) {
        expect_refused((enum lease_state)s, "a/b", "c/d", "one", EACCES, "'a/b'", "'c/d'");
        expect_refused((enum lease_state)s, "a/b", "a/", "one", EACCES, "'a/b'", "'a/'");
        expect_refused((enum lease_state)s, "a/b", "A/B", "one", EACCES, "'a/b'", "'A/B'");
        expect_refused((enum lease_state)s, "a/b", "", "one", EACCES, "'a/b'", "no owner");
    }
}

static void a_holder_must_have_a_name(void **state)
{
    char longest[LIMIT_TEXT_BYTES + 2];
    const struct attach_request good = {.owner = "a/b", .holder = longest + 1};
    struct error err = ERROR_INIT;
    struct lease l = made(LEASE_FREE);

    (void)state;
    memset(longest, 'h', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int s = LEASE_FREE; s <= LEASE_KEPT; s++) {
        expect_refused((enum lease_state)s, "a/b", "a/b", "", EACCES, "empty", NULL);
        expect_refused((enum lease_state)s, "a/b", "a/b", longest, EACCES, "printable", NULL);
        expect_refused((enum lease_state)s, "a/b", "a/b", "a\nb", EACCES, "printable", NULL);
        expect_refused((enum lease_state)s, "a/b", "a/b", "\xff", EACCES, "printable", NULL);
    }
    assert_int_equal(lease_judge(&l, "a/b", &good, &err), 0);
    lease_clear(&l);
}

static void another_holder_is_refused_and_both_are_named(void **state)
{
    (void)state;
    expect_refused(LEASE_HELD, "a/b", "a/b", "two", EBUSY, "held by 'one'", "'two'");
    expect_refused(LEASE_KEPT, "a/b", "a/b", "two", EBUSY, "kept for 'one'", "'two'");
    expect_refused(LEASE_HELD, "a/b", "a/b", "on", EBUSY, "held by 'one'", "'on'");
}

static void who_needs_a_lease_is_told_who_has_it(void **state)
{
    struct error held = ERROR_INIT, kept = ERROR_INIT;
    struct lease l = made(LEASE_HELD);

    (void)state;
    assert_int_equal(lease_refuse(&l, &held), -EBUSY);
    assert_non_null(strstr(held.message, "held by 'one'; reading is open to all"));
    assert_int_equal(lease_leave(&l, UINT64_MAX, 0), HOUR);
    assert_int_equal(lease_refuse(&l, &kept), -EBUSY);
    assert_non_null(strstr(kept.message, "kept for 'one'"));
    lease_clear(&l);
}

static void an_owner_is_the_same_to_the_byte(void **state)
{
    struct error err[3] = {ERROR_INIT, ERROR_INIT, ERROR_INIT};

    (void)state;
    assert_int_equal(lease_judge_owner("a", "a", &err[0]), 0);
    assert_int_equal(lease_judge_owner("a", NULL, &err[0]), -EACCES);
    assert_int_equal(lease_judge_owner("a", "", &err[1]), -EACCES);
    assert_int_equal(lease_judge_owner("a", "a ", &err[2]), -EACCES);
    assert_non_null(strstr(err[2].message, "'a'"));
    assert_non_null(strstr(err[2].message, "'a '"));
}

static void who_presents_an_owner_means_a_sandbox_that_has_one(void **state)
{
    struct error extend = ERROR_INIT, end = ERROR_INIT, none = ERROR_INIT;
    struct lease l = made(LEASE_NONE);

    (void)state;
    assert_int_equal(lease_judge_owner(NULL, NULL, &none), 0);
    assert_int_equal(lease_judge_owner(NULL, "", &none), 0);
    assert_int_equal(lease_judge_end(&l, NULL, NULL, &none), 0);
    assert_int_equal(none.code, 0);
    assert_int_equal(lease_judge_owner(NULL, "a/b", &extend), -EACCES);
    assert_int_equal(lease_judge_end(&l, NULL, "a/b", &end), -EACCES);
    assert_int_equal(end.cls, ERROR_TERMINAL);
    assert_string_equal(end.message, "the sandbox carries no owner, and 'a/b' was given");
    assert_string_equal(extend.message, end.message);
    assert_non_null(strstr(end.remedy, "Leave --owner out"));
    lease_clear(&l);
}

static void who_may_not_end_it_is_told_how_to(void **state)
{
    struct error err[3] = {ERROR_INIT, ERROR_INIT, ERROR_INIT};
    struct lease l = made(LEASE_HELD);

    (void)state;
    assert_int_equal(lease_judge_end(&l, "a/b", NULL, &err[0]), -EACCES);
    assert_int_equal(lease_judge_end(&l, "a/b", "c", &err[1]), -EACCES);
    for (int i = 0; i < 2; i++)
        assert_string_equal(err[i].remedy, "Give --owner NAME as at create, or --force");
    assert_int_equal(lease_judge_end(&l, "a/b", "a/b", &err[2]), -EBUSY);
    assert_non_null(strstr(err[2].message, "held by 'one'"));
    lease_clear(&l);
}

static void each_attach_has_a_higher_generation_until_there_is_none(void **state)
{
    const struct attach_request x = {.owner = "a/b", .holder = "one"};
    struct lease l = made(LEASE_FREE);
    struct error err = ERROR_INIT;

    (void)state;
    for (uint32_t i = 1; i < 5; i++) {
        assert_int_equal(lease_judge(&l, "a/b", &x, &err), 0);
        assert_int_equal(lease_take(&l, &x), 0);
        assert_int_equal(l.generation, i);
        if (i % 2 == 0)
            lease_return(&l);
    }
    l.generation = UINT32_MAX; /* it must not begin anew: old ones would count again */
    assert_int_equal(lease_judge(&l, "a/b", &x, &err), -EOVERFLOW);
    lease_clear(&l);
}

static void nothing_is_kept_beyond_the_lifetime(void **state)
{
    const struct {
        uint64_t asked, left, kept;
    } cases[] = {
        {0, UINT64_MAX, 0},
        {HOUR, UINT64_MAX, HOUR},
        {HOUR, HOUR, HOUR},
        {HOUR, HOUR - 1, HOUR - 1},
        {HOUR, 0, 0},
        {UINT64_MAX, 90, 90},
        {UINT64_MAX, UINT64_MAX, LIMIT_TIME_MAX_US},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct attach_request x = {
            .owner = "a/b", .holder = "one", .keep_us = cases[i].asked};
        struct lease l = made(LEASE_FREE);

        assert_int_equal(lease_take(&l, &x), 0);
        assert_int_equal(lease_leave(&l, cases[i].left, 1000), cases[i].kept);
        assert_int_equal(l.state, cases[i].kept > 0 ? LEASE_KEPT : LEASE_FREE);
        assert_int_equal(l.until_us, cases[i].kept > 0 ? 1000 + cases[i].kept : 0);
        lease_clear(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state_leads_where_the_picture_says),
        cmocka_unit_test(what_is_no_state_or_event_leads_nowhere),
        cmocka_unit_test(the_operations_follow_the_table),
        cmocka_unit_test(nobody_attaches_to_what_is_not_shared),
        cmocka_unit_test(another_owner_is_refused_and_both_are_named),
        cmocka_unit_test(a_holder_must_have_a_name),
        cmocka_unit_test(another_holder_is_refused_and_both_are_named),
        cmocka_unit_test(who_needs_a_lease_is_told_who_has_it),
        cmocka_unit_test(an_owner_is_the_same_to_the_byte),
        cmocka_unit_test(who_presents_an_owner_means_a_sandbox_that_has_one),
        cmocka_unit_test(who_may_not_end_it_is_told_how_to),
        cmocka_unit_test(each_attach_has_a_higher_generation_until_there_is_none),
        cmocka_unit_test(nothing_is_kept_beyond_the_lifetime),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
