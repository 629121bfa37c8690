/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is told of a policy: never less than the policy allows, and exact with a closed
 * network but for IPv6 addresses that carry IPv4. */
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
#include "core/policy_reach.h"
#include "base/guards.h"

#define LIST(...)                                                                                  \
    {                                                                                              \
        .items = (const char *const[]){__VA_ARGS__},                                               \
        .n = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)                     \
    }

enum { ROUNDS = 1500, RANGES = 12, ADDRESSES = 120 };

static unsigned next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*seed >> 33);
}

static void build(const struct policy_input *in, struct policy *ret)
{
    struct problems problems = {0};
    char line[1024];

    if (policy_build(in, ret, &problems) == 0)
        return;
    problem_format(&problems.items[0], NULL, line, sizeof line);
    fail_msg("refused: %s", line);
}

static struct policy_reach reach_of(const struct policy *p)
{
    struct policy_pool pool;
    struct policy_reach r;
    struct error err = ERROR_INIT;

    assert_int_equal(policy_pool_choose(p, &pool, &err), 0);
    assert_int_equal(policy_reach_build(p, &pool, &r), 0);
    return r;
}

static bool has(const struct policy_reach *r, const struct address *a)
{
    const struct policy_interval *items = a->family == ADDRESS_V4 ? r->v4 : r->v6;
    size_t n = a->family == ADDRESS_V4 ? r->n_v4 : r->n_v6;

    for (size_t i = 0; i < n; i++)
        if (memcmp(items[i].first, a->bytes, 16) <= 0 && memcmp(a->bytes, items[i].last, 16) <= 0)
            return true;
    return false;
}

static struct address address(const char *text)
{
    struct address a;

    assert_int_equal(address_parse(text, strlen(text), &a), ADDRESS_GOOD);
    return a;
}

/* Bytes in network order, one more. Return: false after the last. */
static bool increment(uint8_t *bytes, size_t n)
{
    while (n-- > 0)
        if (++bytes[n] != 0)
            return true;
    return false;
}

static void assert_apart(const struct policy_interval *items, size_t n, size_t width)
{
    static const uint8_t zeros[16];

    for (size_t i = 0; i < n; i++) {
        struct policy_interval x = items[i];

        assert_true(memcmp(x.first, x.last, 16) <= 0);
        assert_memory_equal(x.first + width, zeros, 16 - width);
        assert_memory_equal(x.last + width, zeros, 16 - width);
        if (i + 1 < n) {
            assert_true(increment(x.last, width));
            assert_true(memcmp(x.last, items[i + 1].first, 16) < 0); /* at least one between */
        }
    }
}

/* One address against both: the kernel's intervals and the decision. */
static bool check_address(const struct policy *p, const struct policy_reach *r, struct address a)
{
    struct policy_destination to = {.address = a, .port = 1};
    struct policy_decision d;
    struct address inner;
    bool reached;

    policy_decide(p, &to, &d);
    a = address_unmapped(&a); /* as which the kernel sends it */
    reached = has(r, &a);
    if (d.allowed && !reached)
        fail_msg("allowed, and not let on: %s", d.explanation);
    if (!d.allowed && reached && !address_embedded(&a, &inner, NULL))
        fail_msg("refused, and let on: %s", d.explanation);
    if (reached && p->n_hosts > 0)
        assert_false(address_range_contains(&r->pool.v4, &a) ||
                     address_range_contains(&r->pool.v6, &a));
    return d.allowed;
}

/* An address somewhere near what is special, or anywhere. */
static struct address random_address(uint64_t *seed, bool v4)
{
    static const char *const starts[] = {
        "2001:db8::",       "fd00:ec2::254", "64:ff9b::",   "2002::", "::ffff:0:0",
        "fe80::",           "2001::",        "::",          "ff02::", "2a00::",
        "fd61:746f:6c6c::", "64:ff9b:1::",   "::ffff:0:0:0"};
    static const uint8_t tens[] = {10, 127, 169, 172, 192, 198, 224, 240, 255, 0, 100, 8};
    struct address a = {.family = v4 ? ADDRESS_V4 : ADDRESS_V6};
    size_t at = 0, n = v4 ? 4 : 16;

    if (v4 && next(seed) % 4 > 0)
        a.bytes[at++] = tens[next(seed) % ARRAY_SIZE(tens)];
    if (!v4 && next(seed) % 4 > 0) {
        a = address(starts[next(seed) % ARRAY_SIZE(starts)]);
        at = (size_t[]){2, 4, 6, 12, 15, 16}[next(seed) % 6];
    }
    for (; at < n; at++)
        a.bytes[at] = next(seed) % 3 == 0 ? (uint8_t)next(seed)
                                          : (uint8_t[]){0, 255, 254, 10}[next(seed) % 4];
    return a;
}

static void random_range(uint64_t *seed, char text[ADDRESS_RANGE_TEXT_BYTES])
{
    bool v4 = next(seed) % 2 == 0;
    struct address_range r = {random_address(seed, v4), 0};
    unsigned bits = v4 ? 32 : 128;

    r.prefix = 1 + next(seed) % bits;
    for (unsigned bit = r.prefix; bit < bits; bit++)
        r.base.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    address_range_format(&r, text);
}

/* The ends of an interval and their neighbours on both sides. */
static void check_edges(const struct policy *p, const struct policy_reach *r,
                        enum address_family family)
{
    const size_t n = family == ADDRESS_V4 ? r->n_v4 : r->n_v6,
                 width = family == ADDRESS_V4 ? 4 : 16;
    const struct policy_interval *items = family == ADDRESS_V4 ? r->v4 : r->v6;

    for (size_t i = 0; i < n; i++) {
        struct address a = {.family = family};

        memcpy(a.bytes, items[i].first, 16);
        (void)check_address(p, r, a);
        memcpy(a.bytes, items[i].last, 16);
        (void)check_address(p, r, a);
        if (increment(a.bytes, width))
            (void)check_address(p, r, a);
    }
}

/* One random policy, if it is one; how many of its addresses were allowed. */
static size_t try_policy(uint64_t *seed, bool open, size_t *policies)
{
    char texts[RANGES][ADDRESS_RANGE_TEXT_BYTES];
    const char *items[RANGES];
    const char *const hosts[] = {"a.example"};
    const struct policy_list ranges = {.items = items, .n = next(seed) % (RANGES + 1)};
    struct policy_input in = {.block_network = !open};
    struct problems problems = {0};
    struct policy_pool pool;
    struct error err = ERROR_INIT;
    struct policy_reach r;
    struct policy p;
    size_t allowed = 0;

    for (size_t i = 0; i < ranges.n; i++) {
        random_range(seed, texts[i]);
        items[i] = texts[i];
    }
    *(open ? &in.private_cidrs : &in.allow_egress_to_cidrs) = ranges;
    if (!open && next(seed) % 2 == 0)
        in.allow_egress_to = (struct policy_list){.items = hosts, .n = 1};
    if (policy_build(&in, &p, &problems) < 0) {
        problems_done(&problems); /* a range that no spec may have */
        return 0;
    }
    if (policy_pool_choose(&p, &pool, &err) == 0) {
        assert_true(policy_pool_free(&p, &pool));
        assert_int_equal(policy_reach_build(&p, &pool, &r), 0);
        assert_apart(r.v4, r.n_v4, 4);
        assert_apart(r.v6, r.n_v6, 16);
        check_edges(&p, &r, ADDRESS_V4);
        check_edges(&p, &r, ADDRESS_V6);
        for (size_t i = 0; i < ADDRESSES; i++)
            allowed += check_address(&p, &r, random_address(seed, i % 2 == 0));
        policy_reach_done(&r);
        (*policies)++;
    }
    policy_done(&p);
    return allowed;
}

static void the_reach_is_what_the_policy_allows(void **state)
{
    uint64_t seed = 31;

    (void)state;
    for (int open = 0; open < 2; open++) {
        size_t policies = 0, allowed = 0;

        for (size_t i = 0; i < ROUNDS; i++)
            allowed += try_policy(&seed, open, &policies);
        assert_in_range(policies, ROUNDS / 20, ROUNDS);
        assert_in_range(allowed, policies, policies * ADDRESSES - policies);
    }
}

static void an_open_network_reaches_what_is_public(void **state)
{
    struct policy p;

    (void)state;
    build(&(struct policy_input){.private_cidrs = LIST("10.1.0.0/16", "fd00:1::/32")}, &p);
    struct policy_reach r = reach_of(&p);
    assert_true(r.names && r.n_ports == 0);
    assert_true(has(&r, &(struct address){ADDRESS_V4, {8, 8, 8, 8}}));
    assert_true(has(&r, &(struct address){ADDRESS_V4, {10, 1, 0, 0}}));
    assert_true(has(&r, &(struct address){ADDRESS_V4, {10, 1, 255, 255}}));
    assert_false(has(&r, &(struct address){ADDRESS_V4, {10, 2, 0, 0}}));
    assert_false(has(&r, &(struct address){ADDRESS_V4, {169, 254, 169, 254}}));
    assert_false(has(&r, &(struct address){ADDRESS_V4, {127, 0, 0, 1}}));
    assert_false(has(&r, &(struct address){ADDRESS_V4, {0, 0, 0, 0}}));
    static const char *const yes[] = {"2a00::1", "fd00:1::5", "64:ff9b::808:808", "2002:808:808::"};
    static const char *const no[] = {"::1",     "::",          "fd00:2::",      "fe80::1",
                                     "ff02::1", "2001:db8::1", "::ffff:8.8.8.8"};
    for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
        assert_true(has(&r, &(struct address[]){address(yes[i])}[0]));
    for (size_t i = 0; i < ARRAY_SIZE(no); i++)
        assert_false(has(&r, &(struct address[]){address(no[i])}[0]));
    policy_reach_done(&r);
    policy_done(&p);
}

static void a_sealed_network_reaches_nothing(void **state)
{
    struct policy p;

    (void)state;
    build(&(struct policy_input){.block_network = true}, &p);
    assert_false(policy_needs_egress(&p));
    struct policy_reach r = reach_of(&p);
    assert_false(r.names);
    assert_int_equal(r.n_v4 + r.n_v6 + r.n_ports, 0);
    policy_reach_done(&r);
    policy_done(&p);
}

static void the_ports_of_all_hosts_may_pass_to_the_pool(void **state)
{
    static const uint16_t wanted[] = {80, 443, 5432};
    struct policy p;

    (void)state;
    build(&(struct policy_input){.block_network = true,
                                 .allow_egress_to = LIST("a.example:5432", "b.example",
                                                         "*.c.example:80", "d.example:443")},
          &p);
    assert_true(policy_needs_egress(&p));
    struct policy_reach r = reach_of(&p);
    assert_true(r.names);
    assert_int_equal(r.n_v4 + r.n_v6, 0);
    assert_int_equal(r.n_ports, ARRAY_SIZE(wanted));
    assert_memory_equal(r.ports, wanted, sizeof wanted);
    policy_reach_done(&r);
    policy_done(&p);
}

static void neighbouring_and_overlapping_ranges_are_one_interval(void **state)
{
    struct policy p;

    (void)state;
    build(&(struct policy_input){.block_network = true,
                                 .allow_egress_to_cidrs = LIST(
                                     "10.0.1.0/24", "10.0.0.0/24", "10.0.0.128/25", "10.0.3.0/24",
                                     "255.255.255.254/31", "223.0.0.0/8", "8000::/1", "7fff::/16")},
          &p);
    struct policy_reach r = reach_of(&p);
    assert_false(r.names);
    assert_int_equal(r.n_v4, 4);
    assert_memory_equal(r.v4[0].first, ((uint8_t[]){10, 0, 0, 0}), 4);
    assert_memory_equal(r.v4[0].last, ((uint8_t[]){10, 0, 1, 255}), 4);
    assert_memory_equal(r.v4[3].first, ((uint8_t[]){255, 255, 255, 254}), 4);
    assert_memory_equal(r.v4[3].last, ((uint8_t[]){255, 255, 255, 254}), 4); /* not broadcast */
    assert_int_equal(r.n_v6, 1);
    assert_int_equal(r.v6[0].first[0], 0x7F);
    assert_int_equal(r.v6[0].last[0], 0xFE); /* not multicast */
    policy_reach_done(&r);
    policy_done(&p);
}

static void the_pool_is_what_no_range_touches(void **state)
{
    struct policy_pool pool, other;
    struct error err = ERROR_INIT;
    struct policy p;
    char text[ADDRESS_TEXT_BYTES];

    (void)state;
    build(&(struct policy_input){.block_network = true, .allow_egress_to = LIST("a.example")}, &p);
    assert_int_equal(policy_pool_choose(&p, &pool, &err), 0);
    struct address resolver = policy_pool_resolver(&pool);
    address_format(&resolver, text);
    assert_string_equal(text, "198.18.0.1");
    policy_done(&p);

    build(&(struct policy_input){.block_network = true,
                                 .allow_egress_to = LIST("a.example"),
                                 .allow_egress_to_cidrs = LIST("198.18.255.255", "fc00::/7")},
          &p);
    assert_false(policy_pool_free(&p, &pool));
    assert_int_equal(policy_pool_choose(&p, &other, &err), 0);
    assert_true(policy_pool_free(&p, &other));
    assert_int_equal(other.v4.base.bytes[1], 19);
    assert_int_equal(other.v6.base.bytes[0], 0x20);
    policy_done(&p);

    const char *const ranges[] = {"198.18.0.0/15", "240.0.0.0/4"}, *const hosts[] = {"a.example"};
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = {.items = hosts, .n = 1},
                              .allow_egress_to_cidrs = {.items = ranges, .n = 2}};
    build(&in, &p);
    assert_int_equal(policy_pool_choose(&p, &other, &err), -EADDRINUSE);
    assert_non_null(strstr(err.message, "198.18.0.0/15, 240.0.0.0/4"));
    assert_int_equal(other.v4.prefix, 16); /* set all the same */
    policy_done(&p);
    in.allow_egress_to.n = 0;
    build(&in, &p);
    assert_int_equal(policy_pool_choose(&p, &other, &err), 0);
    assert_true(policy_pool_free(&p, &other));
    struct policy_reach r;
    assert_int_equal(policy_reach_build(&p, &other, &r), 0);
    assert_true(has(&r, &other.v4.base)); /* nothing stands for a name: it is an address as any */
    policy_reach_done(&r);
    policy_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reach_is_what_the_policy_allows),
        cmocka_unit_test(an_open_network_reaches_what_is_public),
        cmocka_unit_test(a_sealed_network_reaches_nothing),
        cmocka_unit_test(the_ports_of_all_hosts_may_pass_to_the_pool),
        cmocka_unit_test(neighbouring_and_overlapping_ranges_are_one_interval),
        cmocka_unit_test(the_pool_is_what_no_range_touches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
