/* SPDX-License-Identifier: Apache-2.0 */
/* core/cost.c: what use costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/cost.h"
#include "base/guards.h"

#define HOUR_US UINT64_C(3600000000)
#define GIB     (UINT64_C(1) << 30)

static void an_hour_of_each_costs_its_price(void **state)
{
    const struct prices p = {.cpu_hour_micro = 120000, .gib_hour_micro = 10000};
    struct cost_use use = {.cpu_us = HOUR_US};

    (void)state;
    assert_int_equal(cost_micro(&p, &use), 120000);
    for (int second = 0; second < 3600; second++)
        cost_add_memory(&use, 2 * GIB, 1000000);
    assert_int_equal(cost_micro(&p, &use), 140000);
    use.cpu_us = HOUR_US / 2;
    assert_int_equal(cost_micro(&p, &use), 80000);
}

static void what_has_no_price_is_free(void **state)
{
    const struct prices none = {0}, cpu = {.cpu_hour_micro = 1000000};
    struct cost_use use = {.cpu_us = 1800 * UINT64_C(1000000)};

    (void)state;
    cost_add_memory(&use, 64 * GIB, HOUR_US);
    assert_int_equal(cost_micro(&none, &use), 0);
    assert_int_equal(cost_micro(&cpu, &use), 500000);
}

static void small_use_adds_up(void **state)
{
    const struct prices p = {.gib_hour_micro = 3600 * UINT64_C(1000000)}; /* one a GiB-second */
    struct cost_use use = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        cost_add_memory(&use, GIB / 4, 1000);
    assert_int_equal(cost_micro(&p, &use), 250000);
}

static void the_largest_numbers_do_not_wrap(void **state)
{
    const struct prices p = {UINT64_MAX, UINT64_MAX};
    struct cost_use use = {.cpu_us = UINT64_MAX, .memory_kib_ms = UINT64_MAX};

    (void)state;
    assert_int_equal(cost_micro(&p, &use), UINT64_MAX);
    cost_add_memory(&use, UINT64_MAX, UINT64_MAX);
    assert_int_equal(use.memory_kib_ms, UINT64_MAX);
    use = (struct cost_use){.cpu_us = HOUR_US};
    assert_int_equal(cost_micro(&p, &use), UINT64_MAX);
    use.cpu_us = HOUR_US - 1;
    assert_true(cost_micro(&p, &use) < UINT64_MAX);
}

static void prices_are_those_of_the_spec(void **state)
{
    struct spec s;

    (void)state;
    assert_int_equal(spec_init(&s), 0);
    assert_false(cost_needs_group(&s));
    assert_int_equal(string_list_add(&s.prices, "cpu_hour=0.12"), 0);
    assert_false(cost_needs_group(&s));
    s.max_cost_micro = 1;
    assert_true(cost_needs_group(&s));
    assert_false(cost_counts_memory(&s));
    s.max_cost_micro = 0;
    assert_int_equal(string_list_add(&s.prices, "gib_hour=1"), 0);
    assert_true(cost_counts_memory(&s));
    assert_true(cost_needs_group(&s));
    struct prices p = cost_prices(&s);
    assert_int_equal(p.cpu_hour_micro, 120000);
    assert_int_equal(p.gib_hour_micro, 1000000);
    spec_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_of_each_costs_its_price),
        cmocka_unit_test(what_has_no_price_is_free),
        cmocka_unit_test(small_use_adds_up),
        cmocka_unit_test(the_largest_numbers_do_not_wrap),
        cmocka_unit_test(prices_are_those_of_the_spec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
