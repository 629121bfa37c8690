/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts found by the hash of their names: the same answers as a search through the list. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/policy.h"
#include "base/guards.h"

enum { ROUNDS = 400, HOSTS = 60, QUESTIONS = 300 };

/* A small generator of its own: the same names in each run. */
static unsigned next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*seed >> 33);
}

/* Of few labels, so that names and their parents meet. */
static void random_name(uint64_t *seed, char *buf, size_t size)
{
    static const char *const labels[] = {"a", "b", "aa"};
    size_t n = 2 + next(seed) % (next(seed) % 8 == 0 ? 8 : 4),
           len = 0; /* sometimes beyond a star */

    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%s", i > 0 ? "." : "",
                                labels[next(seed) % ARRAY_SIZE(labels)]);
}

static const struct policy_host *find_linear(const struct policy *p, const struct host_name *name,
                                             uint16_t port)
{
    for (size_t i = 0; i < p->n_hosts; i++)
        if ((port == 0 || p->hosts[i].rule.port == port) &&
            host_rule_matches(&p->hosts[i].rule, name))
            return &p->hosts[i];
    return NULL;
}

static bool is_below(const struct host_name *name, const struct host_name *parent)
{
    size_t n = strlen(name->text), m = strlen(parent->text);

    return n > m && name->text[n - m - 1] == '.' && strcmp(name->text + n - m, parent->text) == 0;
}

/* Whether a listed name lies below @name: the definition, for each entry. */
static bool is_ancestor(const struct policy *p, const struct host_name *name)
{
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct host_rule *rule = &p->hosts[i].rule;

        if (is_below(&rule->name, name) ||
            (rule->wildcard && strcmp(rule->name.text, name->text) == 0))
            return true;
    }
    return false;
}

static void check_name(const struct policy *p, const struct host_name *name)
{
    static const uint16_t ports[] = {0, 80, 443, 5432, 99};
    const struct policy_host *any = find_linear(p, name, 0);
    bool exact = false;

    for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
        assert_ptr_equal(policy_find_host(p, name, ports[i]), find_linear(p, name, ports[i]));
    for (size_t i = 0; i < p->n_hosts; i++)
        exact = exact ||
                (!p->hosts[i].rule.wildcard && strcmp(p->hosts[i].rule.name.text, name->text) == 0);
    assert_int_equal(policy_name_by_wildcard(p, name), any && !exact);
    assert_int_equal(policy_name_kind(p, name), any                    ? POLICY_NAME_LISTED
                                                : is_ancestor(p, name) ? POLICY_NAME_ANCESTOR
                                                                       : POLICY_NAME_UNLISTED);
}

static void build(struct policy_input in, struct policy *ret)
{
    struct problems problems = {0};

    assert_int_equal(policy_build(&in, ret, &problems), 0);
}

static void the_index_finds_what_a_search_finds(void **state)
{
    static const char *const ports[] = {"", ":80", ":5432"};
    char texts[HOSTS][64];
    const char *items[HOSTS];
    uint64_t seed = 6;
    size_t duplicates = 0, listed = 0;

    (void)state;
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t n = 1 + next(&seed) % HOSTS;
        struct policy p;

        for (size_t i = 0; i < n; i++) {
            char name[48];

            random_name(&seed, name, sizeof name);
            (void)snprintf(texts[i], sizeof texts[i], "%s%s%s", next(&seed) % 3 == 0 ? "*." : "",
                           name, ports[next(&seed) % ARRAY_SIZE(ports)]);
            items[i] = texts[i];
        }
        build((struct policy_input){.block_network = true,
                                    .allow_egress_to = {.items = items, .n = n}},
              &p);
        for (size_t i = 0; i < p.n_hosts; i++)
            for (size_t k = 0; k < i; k++)
                assert_false(host_rule_equal(&p.hosts[i].rule, &p.hosts[k].rule));
        duplicates += n - p.n_hosts;
        for (size_t i = 0; i < QUESTIONS; i++) {
            struct host_name name;

            random_name(&seed, name.text, sizeof name.text);
            check_name(&p, &name);
            listed += policy_name_kind(&p, &name) == POLICY_NAME_LISTED;
        }
        policy_done(&p);
    }
    assert_true(duplicates > ROUNDS / 8); /* all of it was tried */
    assert_in_range(listed, ROUNDS, (uintmax_t)ROUNDS * QUESTIONS - ROUNDS);
}

static enum policy_name_kind kind(const struct policy *p, const char *text)
{
    struct host_name name;

    assert_int_equal(host_name_read(text, strlen(text), &name), 0);
    return policy_name_kind(p, &name);
}

static void a_name_above_a_listed_one_exists(void **state)
{
    const char *const hosts[] = {"www.a.example", "*.b.example:80"};
    struct policy p;

    (void)state;
    build((struct policy_input){.block_network = true,
                                .allow_egress_to = {.items = hosts, .n = ARRAY_SIZE(hosts)}},
          &p);
    assert_int_equal(kind(&p, "www.a.example"), POLICY_NAME_LISTED);
    assert_int_equal(kind(&p, "a.example"), POLICY_NAME_ANCESTOR);
    assert_int_equal(kind(&p, "example"), POLICY_NAME_ANCESTOR);
    assert_int_equal(kind(&p, "b.example"), POLICY_NAME_ANCESTOR);
    assert_int_equal(kind(&p, "x.y.b.example"), POLICY_NAME_LISTED);
    assert_int_equal(kind(&p, "ww.a.example"), POLICY_NAME_UNLISTED);
    assert_int_equal(kind(&p, "x.www.a.example"), POLICY_NAME_UNLISTED);
    assert_int_equal(kind(&p, "xexample"), POLICY_NAME_UNLISTED);
    policy_done(&p);
    build((struct policy_input){.block_network = false}, &p);
    assert_int_equal(kind(&p, "a.example"), POLICY_NAME_LISTED);
    assert_int_equal(kind(&p, "example"), POLICY_NAME_LISTED);
    policy_done(&p);
    build((struct policy_input){.block_network = true}, &p);
    assert_int_equal(kind(&p, "example"), POLICY_NAME_UNLISTED);
    policy_done(&p);
}

/* As many labels as a name can have, in a list at its ceiling: every parent is asked for. */
static void the_longest_names_are_found_in_the_longest_list(void **state)
{
    static char texts[POLICY_HOSTS_MAX][32];
    static const char *items[POLICY_HOSTS_MAX];
    struct policy p;
    struct host_name name;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        (void)snprintf(texts[i], sizeof texts[i], i % 2 == 0 ? "*.h%zu.a.a:%zu" : "h%zu.a.a:%zu",
                       i / 64, 1 + i);
        items[i] = texts[i];
    }
    build((struct policy_input){.block_network = true,
                                .allow_egress_to = {.items = items, .n = ARRAY_SIZE(items)}},
          &p);
    assert_int_equal(p.n_hosts, POLICY_HOSTS_MAX);
    for (size_t i = 0; i + 1 < HOST_NAME_BYTES_MAX; i += 2)
        memcpy(name.text + i, "a.", 2);
    memcpy(name.text + HOST_NAME_BYTES_MAX - 9, ".h255.a.a", 10);
    check_name(&p, &name);
    assert_int_equal(policy_name_kind(&p, &name), POLICY_NAME_UNLISTED); /* too long for a star */
    memcpy(name.text, "a.a.a.a.a.h255.a.a", sizeof "a.a.a.a.a.h255.a.a");
    check_name(&p, &name);
    assert_non_null(policy_find_host(&p, &name, POLICY_HOSTS_MAX - 1));
    for (size_t i = 0; i + 1 < HOST_NAME_BYTES_MAX; i += 2)
        memcpy(name.text + i, "a.", 2);
    memcpy(name.text + HOST_NAME_BYTES_MAX - 9, ".h256.a.a", 10);
    check_name(&p, &name);
    assert_int_equal(policy_name_kind(&p, &name), POLICY_NAME_UNLISTED);
    policy_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_finds_what_a_search_finds),
        cmocka_unit_test(a_name_above_a_listed_one_exists),
        cmocka_unit_test(the_longest_names_are_found_in_the_longest_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
