/* SPDX-License-Identifier: Apache-2.0 */
/* The policy as told to people and models, and as recorded on a sandbox. */
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
#include "core/policy.h"
#include "base/guards.h"

#define LIST(...)                                                                                  \
    {                                                                                              \
        .items = (const char *const[]){__VA_ARGS__},                                               \
        .n = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)                     \
    }

static struct policy build(const struct policy_input *in)
{
    struct problems problems = {0};
    struct policy p;
    char line[1024];

    if (policy_build(in, &p, &problems) != 0) {
        problem_format(&problems.items[0], NULL, line, sizeof line);
        fail_msg("refused: %s", line);
    }
    assert_false(problems_any(&problems));
    return p;
}

/* Describing */

static void assert_described(const struct policy_input *in, const char *expected)
{
    struct policy p = build(in);
    char *text;

    assert_int_equal(policy_describe(&p, &text), 0);
    assert_string_equal(text, expected);
    free(text);
    policy_done(&p);
}

static void a_policy_is_described_in_plain_lines(void **state)
{
    struct policy_input closed = {.block_network = true};
    struct policy_input both = {.block_network = true,
                                .allow_egress_to =
                                    LIST("OK.test", "*.wild.test", "web.test:80", "git.test:22"),
                                .allow_egress_to_cidrs = LIST("203.0.113.7", "169.254.0.0/16")};
    struct policy_input ranges = {.block_network = true, .allow_egress_to_cidrs = LIST("fd00::/9")};
    struct policy_input open = {0};
    struct policy_input private = {.private_cidrs = LIST("10.0.0.0/8")};

    (void)state;
    assert_described(&closed,
                     "The sandbox has no network: nothing leaves it and no name resolves.\n");
    assert_described(
        &both,
        "The network of the sandbox is blocked but for what is listed here.\n"
        "It may reach these hosts, by name: ok.test (TLS on port 443), *.wild.test (TLS on "
        "port 443), "
        "web.test (HTTP on port 80), git.test (TCP on port 22).\n"
        "A star stands for 1 to 5 parts of a name, never for none.\n"
        "Hosts take no UDP; on port 443 the TLS server name has to be the host's, and on port "
        "80 the Host of each request.\n"
        "A host whose address is private, loopback or metadata is refused unless a range "
        "lists that address, or the spec gives it (backend.add_hosts).\n"
        "It may reach these addresses, on any port, by TCP and UDP: 203.0.113.7/32, "
        "169.254.0.0/16.\n"
        "Among them is 169.254.169.254, where clouds hand out credentials of the host.\n"
        "Other names do not resolve, and any other connection is refused at once; trying "
        "again does not "
        "help.\n");
    assert_described(
        &ranges,
        "The network of the sandbox is blocked but for what is listed here.\n"
        "It may reach these addresses, on any port, by TCP and UDP: fd00::/9.\n"
        "Among them is fd00:ec2::254, where clouds hand out credentials of the host.\n"
        "No name resolves, and any other connection is refused at once; trying again does not "
        "help.\n");
    assert_described(&open,
                     "The network of the sandbox is open: it may reach every public address.\n"
                     "Private, loopback, link-local and metadata addresses are refused at once.\n");
    assert_described(
        &private,
        "The network of the sandbox is open: it may reach every public address.\n"
        "Of private and other special addresses it may reach these: 10.0.0.0/8.\n"
        "Other private, loopback, link-local and metadata addresses are refused at once.\n");
}

static void a_long_list_is_described_in_part(void **state)
{
    static char texts[25][24];
    static const char *items[25];
    char *text;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        (void)snprintf(texts[i], sizeof texts[i], "h%zu.example", i);
        items[i] = texts[i];
    }
    struct policy_input in = {.block_network = true, .allow_egress_to = {.items = items, .n = 25}};
    struct policy p = build(&in);
    assert_int_equal(policy_describe(&p, &text), 0);
    assert_non_null(strstr(text, "h19.example (TLS on port 443), and 5 more.\n"));
    assert_null(strstr(text, "h20.example"));
    free(text);
    policy_done(&p);
}

/* Stamps */

static void assert_stamp(const struct policy_input *in, const char *expected)
{
    struct policy p = build(in), again;
    struct error err = ERROR_INIT;
    char *text, *second;

    assert_int_equal(policy_stamp_encode(&p, &text), 0);
    assert_string_equal(text, expected);
    assert_int_equal(policy_stamp_decode(text, strlen(text), &again, &err), 0);
    assert_int_equal(again.open, p.open);
    assert_int_equal(again.n_hosts, p.n_hosts);
    assert_int_equal(again.n_ranges, p.n_ranges);
    for (size_t i = 0; i < p.n_hosts; i++)
        assert_string_equal(again.hosts[i].rule.text, p.hosts[i].rule.text);
    assert_int_equal(policy_stamp_encode(&again, &second), 0);
    assert_string_equal(second, text);
    free(text);
    free(second);
    policy_done(&p);
    policy_done(&again);
}

static void a_stamp_is_three_keys_in_order(void **state)
{
    struct policy_input closed = {.block_network = true}, open = {0};
    struct policy_input both = {.block_network = true,
                                .allow_egress_to = LIST("Host.Example", "*.cdn.example:80"),
                                .allow_egress_to_cidrs = LIST(" 203.0.113.7 ", "2001:DB8::/32")};

    (void)state;
    assert_stamp(&closed,
                 "{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":true}");
    assert_stamp(&open,
                 "{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":false}");
    assert_stamp(&both, "{\"allow_egress_to\":[\"Host.Example\",\"*.cdn.example:80\"],"
                        "\"allow_egress_to_cidrs\":[\"203.0.113.7/32\",\"2001:db8::/32\"],"
                        "\"block_network\":true}");
}

static void what_is_no_stamp_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "is empty"},
        {"not json", "not JSON"},
        {"[1, 2]", "not a JSON object"},
        {"null", "not a JSON object"},
        {"{}", "no key 'allow_egress_to'"},
        {"{\"allow_egress_to\":[],\"block_network\":true}", "no key 'allow_egress_to_cidrs'"},
        {"{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[]}", "no key 'block_network'"},
        {"{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":true,\"x\":1}",
         "more keys"},
        {"{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":1}",
         "neither true nor false"},
        {"{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":null}",
         "neither true nor false"},
        {"{\"allow_egress_to\":\"ok.test\",\"allow_egress_to_cidrs\":[],\"block_network\":true}",
         "'allow_egress_to' is not a list"},
        {"{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":{},\"block_network\":true}",
         "'allow_egress_to_cidrs' is not a list"},
        {"{\"allow_egress_to\":[5],\"allow_egress_to_cidrs\":[],\"block_network\":true}",
         "not a string"},
        {"{\"allow_egress_to\":[\"a.b\\u0000c\"],\"allow_egress_to_cidrs\":[],\"block_network\":"
         "true}",
         "not JSON"},
        {"{\"allow_egress_to\":[\"localhost\"],\"allow_egress_to_cidrs\":[],\"block_network\":"
         "true}",
         "single label"},
        {"{\"allow_egress_to\":[\"ok.test\"],\"allow_egress_to_cidrs\":[],\"block_network\":false}",
         "contradicts"},
        {"{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[\"0.0.0.0/"
         "0\"],\"block_network\":true}",
         "every address"},
        {"{\"block_network\":true,\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],"
         "\"block_network\":false}",
         "not JSON"},
        {"{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":true} x",
         "not JSON"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct policy p = {.n_hosts = 77};
        struct error err = ERROR_INIT;

        if (policy_stamp_decode(rows[i].text, strlen(rows[i].text), &p, &err) != -EINVAL)
            fail_msg("'%s' was taken", rows[i].text);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_int_equal(p.n_hosts, 77);
        if (!strstr(err.message, rows[i].why))
            fail_msg("'%s' gave: %s", rows[i].text, err.message);
    }
}

static void a_stamp_may_be_spelt_otherwise_but_not_cut(void **state)
{
    const char text[] = " {\"block_network\": true, \"allow_egress_to_cidrs\": [],\n"
                        " \"allow_egress_to\": [\"ok.test\"]}";
    struct policy p;

    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        struct error err = ERROR_INIT;

        assert_int_equal(policy_stamp_decode(text, n, &p, &err), -EINVAL);
    }
    struct error err = ERROR_INIT;
    assert_int_equal(policy_stamp_decode(text, sizeof text - 1, &p, &err), 0);
    assert_int_equal(p.n_hosts, 1);
    policy_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_is_described_in_plain_lines),
        cmocka_unit_test(a_long_list_is_described_in_part),
        cmocka_unit_test(a_stamp_is_three_keys_in_order),
        cmocka_unit_test(what_is_no_stamp_is_refused),
        cmocka_unit_test(a_stamp_may_be_spelt_otherwise_but_not_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
