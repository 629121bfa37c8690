/* SPDX-License-Identifier: Apache-2.0 */
/* Names and their synthetic addresses: which is whose, for how long, and how many. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "egress/names.h"
#include "base/guards.h"

static const struct policy_pool large = {
    .v4 = {{ADDRESS_V4, {198, 18}}, 16},
    .v6 = {{ADDRESS_V6, {0xfd, 1, 2}}, 112},
};
/* Eight addresses, of which five are given out. */
static const struct policy_pool small = {
    .v4 = {{ADDRESS_V4, {198, 18, 255, 248}}, 29},
    .v6 = {{ADDRESS_V6, {0xfd, 1, 2, [15] = 0xf0}}, 124},
};

static struct host_name text_of(const char *text)
{
    struct host_name name;

    if (host_name_read(text, strlen(text), &name) < 0)
        fail_msg("no name: %s", text);
    return name;
}

static struct host_name numbered(unsigned i)
{
    char text[32];

    (void)snprintf(text, sizeof text, "n%u.test", i);
    return text_of(text);
}

static struct name *add(struct names *n, const char *text)
{
    struct host_name name = text_of(text);
    int error = 0;
    struct name *x = names_add(n, &name, false, &error);

    if (!x)
        fail_msg("%s: %d", text, error);
    return x;
}

static int error_of(struct names *n, const char *text, bool by_wildcard)
{
    struct host_name name = text_of(text);
    int error = 0;

    return names_add(n, &name, by_wildcard, &error) ? 0 : error;
}

static struct address parsed(const char *text)
{
    struct address a;

    assert_int_equal(address_parse(text, strlen(text), &a), ADDRESS_GOOD);
    return a;
}

static void assert_address(const struct address *a, const char *text)
{
    char buf[ADDRESS_TEXT_BYTES];

    address_format(a, buf);
    assert_string_equal(buf, text);
}

static void a_name_has_an_address_of_each_family(void **state)
{
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &large), 0);
    struct name *a = add(&n, "a.test"), *b = add(&n, "b.test");
    struct address a4 = names_address(&n, a, ADDRESS_V4), a6 = names_address(&n, a, ADDRESS_V6),
                   b4 = names_address(&n, b, ADDRESS_V4), mapped = parsed("::ffff:198.18.0.3");

    assert_address(&a4, "198.18.0.2");
    assert_address(&a6, "fd01:200::2");
    assert_address(&b4, "198.18.0.3");
    assert_ptr_equal(names_by_address(&n, &a4), a);
    assert_ptr_equal(names_by_address(&n, &a6), a);
    assert_ptr_equal(names_by_address(&n, &b4), b);
    assert_ptr_equal(names_by_address(&n, &mapped), b);
    names_done(&n);
}

static void other_addresses_are_nobodys(void **state)
{
    static const struct {
        const char *text;
        bool in_pool;
    } others[] = {
        {"198.18.0.0", true},      {"198.18.0.1", true},     {"198.18.0.3", true},
        {"198.18.255.255", true},  {"198.19.0.2", false},    {"198.17.255.255", false},
        {"fd01:200::", true},      {"fd01:200::1", true},    {"fd01:200::3", true},
        {"fd01:200::ffff", true},  {"fd01:200::1:2", false}, {"::ffff:198.18.0.1", true},
        {"::ffff:9.9.9.9", false}, {"::2", false},
    };
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &large), 0);
    (void)add(&n, "a.test");
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        struct address a = parsed(others[i].text);

        assert_null(names_by_address(&n, &a));
        if (names_in_pool(&n, &a) != others[i].in_pool)
            fail_msg("%s", others[i].text);
    }
    names_done(&n);
}

static void bits_of_a_wide_pool_that_are_not_given_out_are_nobodys(void **state)
{
    struct policy_pool wide = large;
    struct address high = parsed("fd01:200::1:0:2"), low = parsed("fd01:200::2");
    struct names n;

    (void)state;
    wide.v6.prefix = 64;
    assert_int_equal(names_init(&n, &wide), 0);
    struct name *a = add(&n, "a.test");
    assert_ptr_equal(names_by_address(&n, &low), a);
    assert_true(names_in_pool(&n, &high));
    assert_null(names_by_address(&n, &high));
    names_done(&n);
}

static void a_name_keeps_its_address(void **state)
{
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &large), 0);
    struct name *a = add(&n, "a.test");
    struct host_name upper = text_of("A.Test.");
    int error;

    (void)add(&n, "b.test");
    assert_ptr_equal(add(&n, "a.test"), a);
    assert_ptr_equal(names_add(&n, &upper, true, &error), a);
    assert_ptr_equal(names_find(&n, &upper), a);
    assert_int_equal(n.n, 2);
    names_done(&n);
}

static void an_unknown_name_is_not_found(void **state)
{
    struct host_name a = text_of("a.test"), b = text_of("b.test");
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &large), 0);
    assert_null(names_find(&n, &a));
    (void)add(&n, "a.test");
    assert_non_null(names_find(&n, &a));
    assert_null(names_find(&n, &b));
    names_done(&n);
}

static void the_longest_unused_gives_its_place(void **state)
{
    struct host_name a = text_of("a.test"), b = text_of("b.test");
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &small), 0);
    n.keep_us = 0;
    struct name *x = add(&n, "a.test");
    uint32_t slot_b = add(&n, "b.test")->slot;

    (void)add(&n, "c.test");
    (void)add(&n, "d.test");
    (void)add(&n, "e.test");
    names_touch(&n, x);
    assert_int_equal(add(&n, "f.test")->slot, slot_b);
    assert_ptr_equal(names_find(&n, &a), x);
    assert_null(names_find(&n, &b));
    assert_int_equal(n.n, 5);
    names_done(&n);
}

static void a_place_is_kept_while_a_connection_uses_it(void **state)
{
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &small), 0);
    n.keep_us = 0;
    add(&n, "a.test")->users++;
    struct name *b = add(&n, "b.test");
    b->users++;
    add(&n, "c.test")->users++;
    add(&n, "d.test")->users++;
    add(&n, "e.test")->users++;
    assert_int_equal(error_of(&n, "f.test", false), -ENOSPC);
    b->users--;
    uint32_t slot = b->slot;
    assert_int_equal(add(&n, "f.test")->slot, slot);
    names_done(&n);
}

static void a_place_is_kept_as_long_as_programs_may_remember_it(void **state)
{
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &small), 0);
    struct name *a = add(&n, "a.test");

    (void)add(&n, "b.test");
    (void)add(&n, "c.test");
    (void)add(&n, "d.test");
    (void)add(&n, "e.test");
    assert_int_equal(error_of(&n, "f.test", false), -ENOSPC);
    a->used_at_us -= NAMES_KEEP_US - 1000000;
    assert_int_equal(error_of(&n, "f.test", false), -ENOSPC);
    a->used_at_us -= 1000000;
    assert_int_equal(error_of(&n, "f.test", false), 0);
    assert_int_equal(error_of(&n, "a.test", false), -ENOSPC);
    names_done(&n);
}

static void sixty_new_names_below_wildcards_come_in_a_minute(void **state)
{
    struct names n;
    int error;

    (void)state;
    assert_int_equal(names_init(&n, &large), 0);
    for (unsigned i = 0; i < NAMES_NEW_PER_MINUTE; i++) {
        struct host_name name = numbered(i);

        assert_non_null(names_add(&n, &name, true, &error));
    }
    assert_int_equal(error_of(&n, "more.test", true), -EDQUOT);
    assert_int_equal(error_of(&n, "n0.test", true), 0); /* known */
    assert_int_equal(error_of(&n, "listed.test", false), 0);
    n.minute_us -= 60000001;
    assert_int_equal(error_of(&n, "more.test", true), 0);
    assert_int_equal(n.new_this_minute, 1);
    names_done(&n);
}

static void a_full_pool_has_every_name_at_its_place(void **state)
{
    struct names n;
    int error;

    (void)state;
    assert_int_equal(names_init(&n, &large), 0);
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        struct host_name name = numbered(i);

        assert_non_null(names_add(&n, &name, false, &error));
    }
    assert_int_equal(error_of(&n, "more.test", false), -ENOSPC);
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        struct host_name name = numbered(i);
        struct name *x = names_find(&n, &name);
        struct address a4 = names_address(&n, x, ADDRESS_V4), a6 = names_address(&n, x, ADDRESS_V6);

        assert_int_equal(x->slot, i + 2);
        assert_ptr_equal(names_by_address(&n, &a4), x);
        assert_ptr_equal(names_by_address(&n, &a6), x);
    }
    n.keep_us = 0;
    for (unsigned i = 0; i < NAMES_MAX; i++) { /* all change hands */
        struct host_name name = numbered(NAMES_MAX + i);

        assert_non_null(names_add(&n, &name, false, &error));
    }
    for (unsigned i = 0; i < 2 * NAMES_MAX; i++) {
        struct host_name name = numbered(i);

        assert_int_equal(names_find(&n, &name) != NULL, i >= NAMES_MAX);
    }
    assert_int_equal(n.n, NAMES_MAX);
    names_done(&n);
}

static void what_a_look_up_said_is_kept(void **state)
{
    static const struct resolve_address found[] = {{4, {192, 0, 2, 1}},
                                                   {6, {0x20, 1, 0xd, 0xb8, [15] = 1}}};
    struct names n;

    (void)state;
    assert_int_equal(names_init(&n, &large), 0);
    struct name *x = add(&n, "a.test");
    assert_false(x->looked_up);
    assert_int_equal(names_found(x, RESOLVE_FOUND, found, 2, 77), 0);
    assert_true(x->looked_up);
    assert_int_equal(x->status, RESOLVE_FOUND);
    assert_int_equal(x->n_addresses, 2);
    assert_address(&x->addresses[0], "192.0.2.1");
    assert_address(&x->addresses[1], "2001:db8::1");
    assert_int_equal(x->fresh_until_us, 77);
    assert_int_equal(names_found(x, RESOLVE_NOT_FOUND, NULL, 0, 78), 0);
    assert_int_equal(x->status, RESOLVE_NOT_FOUND);
    assert_int_equal(x->n_addresses, 0);
    assert_int_equal(names_found(x, RESOLVE_FOUND, found, 1, 79), 0);
    assert_int_equal(x->n_addresses, 1);
    names_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_an_address_of_each_family),
        cmocka_unit_test(other_addresses_are_nobodys),
        cmocka_unit_test(bits_of_a_wide_pool_that_are_not_given_out_are_nobodys),
        cmocka_unit_test(a_name_keeps_its_address),
        cmocka_unit_test(an_unknown_name_is_not_found),
        cmocka_unit_test(the_longest_unused_gives_its_place),
        cmocka_unit_test(a_place_is_kept_while_a_connection_uses_it),
        cmocka_unit_test(a_place_is_kept_as_long_as_programs_may_remember_it),
        cmocka_unit_test(sixty_new_names_below_wildcards_come_in_a_minute),
        cmocka_unit_test(a_full_pool_has_every_name_at_its_place),
        cmocka_unit_test(what_a_look_up_said_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
