/* SPDX-License-Identifier: Apache-2.0 */
/* What run_command tells a model of the network, of an earlier task, of time, and of exports. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "toolset/describe.h"
#include "toolset/tools.h"
#include "base/guards.h"

#define LIST(...)                                                                                  \
    {                                                                                              \
        .items = (const char *const[]){__VA_ARGS__},                                               \
        .n = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)                     \
    }

static const struct policy_input closed = {.block_network = true};

/* The description without its fixed part; owned by the caller. */
static char *described(const struct describe_input *x)
{
    _cleanup_free_ char *text = NULL;
    const char *fixed = tools[TOOL_RUN_COMMAND].description, *rest;

    assert_int_equal(describe_run_command(x, &text), 0);
    assert_int_equal(strncmp(text, fixed, strlen(fixed)), 0);
    rest = strstr(text, "\n\n");
    assert_non_null(rest);
    return strdup(rest + 2);
}

static void assert_described(const struct describe_input *x, const char *expected)
{
    _cleanup_free_ char *text = described(x);

    assert_string_equal(text, expected);
}

static struct policy policy_of(const struct policy_input *in)
{
    struct problems problems = {0};
    struct policy p;

    assert_int_equal(policy_build(in, &p, &problems), 0);
    problems_done(&problems);
    return p;
}

static void assert_network(const struct policy_input *in, bool names_resolve, const char *expected)
{
    struct policy p = policy_of(in);
    struct describe_input x = {.policy = &p, .names_resolve = names_resolve, .remaining_s = -1};

    assert_described(&x, expected);
    policy_done(&p);
}

static void the_fixed_part_tells_how_commands_run(void **state)
{
    static const char *const facts[] = {"isolated sandbox", "exit code", "stderr", "&&",
                                        "credentials",      "pwd",       "globs"};
    struct describe_input x = {.remaining_s = -1, .prefix = "lab"};
    _cleanup_free_ char *text = NULL;

    (void)state;
    assert_int_equal(describe_run_command(&x, &text), 0);
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
        assert_non_null(strstr(text, facts[i]));
    assert_non_null(strstr(text, "lab_write_file"));
}

static void without_a_network_it_says_so_and_names_dns(void **state)
{
    (void)state;
    assert_network(&closed, false,
                   "Network: none. No address can be reached, DNS included, so installing or "
                   "downloading anything fails, and trying again does not help. Use what is "
                   "installed here.");
    assert_network(&closed, true,
                   "Network: none. No address can be reached, even where a name resolves, so "
                   "installing or downloading anything fails, and trying again does not help. Use "
                   "what is installed here.");
}

static void an_open_network_is_told(void **state)
{
    struct policy_input open = {0}, private = {.private_cidrs = LIST("10.0.0.0/8", "fd00::/8")};

    (void)state;
    assert_network(&open, true, "Network: outbound access to public addresses exists.");
    assert_network(&open, false,
                   "Network: outbound access to public addresses exists. Other addresses are "
                   "refused at once, and trying again does not help.");
    assert_network(&private, false,
                   "Network: outbound access to public addresses exists. Of private and other "
                   "special addresses these ranges can be reached: 10.0.0.0/8, fd00::/8. Other "
                   "addresses are refused at once, and trying again does not help.");
}

static void hosts_are_named_in_order_and_plain_http_as_failing(void **state)
{
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = LIST("Pypi.example", "a.example:443")};

    (void)state;
    assert_network(&in, false,
                   "Network: only these hosts can be reached, and by name: pypi.example, "
                   "a.example. They take HTTPS on port 443 only. Hosts take no UDP. Everything "
                   "else is refused at once, plain HTTP to any host included, and trying again "
                   "does not help. Names that are not listed do not resolve.");
    assert_network(&in, true,
                   "Network: only these hosts can be reached, and by name: pypi.example, "
                   "a.example. They take HTTPS on port 443 only. Everything else fails, plain HTTP "
                   "to any host included, and trying again does not help. Other names may resolve "
                   "all the same, but only what is listed here answers.");
}

static void hosts_with_ports_and_stars_are_told_as_what_they_are(void **state)
{
    struct policy_input mixed = {
        .block_network = true,
        .allow_egress_to = LIST("a.example", "*.b.example", "c.example:80", "d.example:5432")};
    struct policy_input no_https = {.block_network = true,
                                    .allow_egress_to = LIST("a.example:80", "b.example:80")};
    struct policy_input tcp = {.block_network = true, .allow_egress_to = LIST("git.example:22")};

    (void)state;
    assert_network(&mixed, false,
                   "Network: only these hosts can be reached, and by name: a.example, "
                   "*.b.example, c.example:80, d.example:5432. A host without a port behind its "
                   "name takes HTTPS on port 443 only. A host with :80 takes plain HTTP. A host "
                   "with another port takes TCP on that port. *.NAME stands for any name below "
                   "NAME, and not for NAME itself. Hosts take no UDP. Plain HTTP to a host that is "
                   "listed without :80 fails. Everything else is refused at once, and trying again "
                   "does not help. Names that are not listed do not resolve.");
    assert_network(&no_https, false,
                   "Network: only these hosts can be reached, and by name: a.example:80, "
                   "b.example:80. A host with :80 takes plain HTTP. Hosts take no UDP. Everything "
                   "else is refused at once, and trying again does not help. Names that are not "
                   "listed do not resolve.");
    assert_network(&tcp, false,
                   "Network: only these hosts can be reached, and by name: git.example:22. A host "
                   "with another port takes TCP on that port. Hosts take no UDP. Everything else "
                   "is refused at once, plain HTTP to any host included, and trying again does not "
                   "help. Names that are not listed do not resolve.");
}

static void ranges_take_any_port_and_plain_http_is_not_spoken_of(void **state)
{
    struct policy_input in = {.block_network = true,
                              .allow_egress_to_cidrs = LIST("203.0.113.7", "2001:db8:0::/33")};
    struct policy p = policy_of(&in);
    struct describe_input x = {.policy = &p, .remaining_s = -1};
    _cleanup_free_ char *text = described(&x);

    (void)state;
    assert_null(strstr(text, "HTTP"));
    policy_done(&p);
    assert_network(&in, true,
                   "Network: only these address ranges can be reached, on any port: "
                   "203.0.113.7/32, 2001:db8::/33. Everything else fails, and trying again does "
                   "not help. Host names may still resolve, but only addresses in these ranges "
                   "answer.");
    assert_network(&in, false,
                   "Network: only these address ranges can be reached, on any port: "
                   "203.0.113.7/32, 2001:db8::/33. Everything else is refused at once, and trying "
                   "again does not help. No host name resolves; use addresses.");
}

static void beside_ranges_plain_http_fails_to_the_hosts_alone(void **state)
{
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = LIST("a.example", "b.example"),
                              .allow_egress_to_cidrs = LIST("203.0.113.0/24")};
    struct policy_input http = {.block_network = true,
                                .allow_egress_to = LIST("a.example", "b.example:80"),
                                .allow_egress_to_cidrs = LIST("203.0.113.0/24")};

    (void)state;
    assert_network(&in, false,
                   "Network: only these hosts can be reached, and by name: a.example, b.example. "
                   "They take HTTPS on port 443 only. These address ranges can be reached too, on "
                   "any port: 203.0.113.0/24. Hosts take no UDP; the ranges do. Plain HTTP to the "
                   "hosts fails; the ranges take any port. Everything else is refused at once, and "
                   "trying again does not help. Names that are not listed do not resolve.");
    assert_network(&http, true,
                   "Network: only these hosts can be reached, and by name: a.example, "
                   "b.example:80. A host without a port behind its name takes HTTPS on port 443 "
                   "only. A host with :80 takes plain HTTP. These address ranges can be reached "
                   "too, on any port: 203.0.113.0/24. Plain HTTP to a host that is listed without "
                   ":80 fails. Everything else fails, and trying again does not help. Other names "
                   "may resolve all the same, but only what is listed here answers.");
}

static void a_long_list_is_cut_and_counted(void **state)
{
    static char names[45][32];
    const char *items[45];
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = {.items = items, .n = ARRAY_SIZE(items)}};
    struct policy p;
    struct describe_input x = {.remaining_s = -1};
    _cleanup_free_ char *text = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu.example", i + 1);
        items[i] = names[i];
    }
    p = policy_of(&in);
    x.policy = &p;
    text = described(&x);
    assert_non_null(strstr(text, "h39.example, h40.example and 5 more. They"));
    policy_done(&p);
}

#define NO_NETWORK                                                                                 \
    "Network: none. No address can be reached, DNS included, so installing or downloading "        \
    "anything fails, and trying again does not help. Use what is installed here."
#define EARLIER                                                                                    \
    "This sandbox was set up by an earlier task, and what it left is here. Files stay when this "  \
    "run ends, for a later task to collect. "

static void before_it_is_asked_a_standing_sandbox_is_told_in_short(void **state)
{
    struct describe_input x = {.attached = true, .remaining_s = -1};

    (void)state;
    assert_described(&x, "This sandbox was set up by an earlier task.");
}

static void a_standing_sandbox_tells_of_both_tasks_the_network_and_the_clock(void **state)
{
    struct policy p = policy_of(&closed);
    struct describe_input x = {
        .attached = true, .known = true, .policy = &p, .remaining_s = 30 * 60};

    (void)state;
    assert_described(&x, EARLIER
                     "When this run began, the sandbox had about 30 minutes left.\n\n" NO_NETWORK);
    policy_done(&p);
}

static void assert_clock(int64_t remaining_s, bool none, const char *expected)
{
    struct policy p = policy_of(&closed);
    struct describe_input x = {.attached = true,
                               .known = true,
                               .policy = &p,
                               .remaining_s = remaining_s,
                               .lifetime_none = none};
    char whole[1024];

    (void)snprintf(whole, sizeof whole, EARLIER "%s\n\n" NO_NETWORK, expected);
    assert_described(&x, whole);
    policy_done(&p);
}

static void the_clock_is_told_in_minutes_rounded_to_the_even_side(void **state)
{
    static const char short_one[] = "The sandbox has less than a minute left: finish up.";

    (void)state;
    assert_clock(-1, false, "How long the sandbox will live is not known.");
    assert_clock(0, false, short_one);
    assert_clock(59, false, short_one);
    assert_clock(60, false, "When this run began, the sandbox had about 1 minute left.");
    assert_clock(75, false, "When this run began, the sandbox had about 1 minute left.");
    assert_clock(90, false, "When this run began, the sandbox had about 2 minutes left.");
    assert_clock(150, false, "When this run began, the sandbox had about 2 minutes left.");
    assert_clock(151, false, "When this run began, the sandbox had about 3 minutes left.");
    assert_clock(210, false, "When this run began, the sandbox had about 4 minutes left.");
    assert_clock(5, true, "The sandbox has no time limit of its own.");
}

static void an_unrecorded_network_is_admitted(void **state)
{
    struct describe_input x = {.attached = true, .known = true, .remaining_s = -1};

    (void)state;
    assert_described(&x, EARLIER
                     "How long the sandbox will live is not known.\n\n"
                     "Network: whatever the creator of the sandbox allowed, which is not recorded. "
                     "Test what you need before you rely on it.");
}

static void exports_are_named_by_their_paths_alone(void **state)
{
    static char first[] = "out/report.csv=s3://bucket/secret-name?a=b";
    static char second[] = "/w/b\nc=file:///srv/b";
    static char *items[] = {first, second, NULL};
    struct string_list exports = {.items = items, .n = 2}, none = {0};
    struct policy p = policy_of(&closed);
    struct describe_input x = {.policy = &p, .exports = &exports, .remaining_s = -1};

    (void)state;
    assert_described(&x, NO_NETWORK
                     "\n\nWhen this run ends, these paths are copied out and everything else is "
                     "discarded, so write your results there first: out/report.csv, $'/w/b\\nc'.");
    x.attached = true; /* where nothing is discarded */
    assert_described(&x, "This sandbox was set up by an earlier task."
                         "\n\nWhen this run ends, these paths are copied out, so write your "
                         "results there first: out/report.csv, $'/w/b\\nc'.");
    x.attached = false;
    x.exports = &none;
    assert_described(&x, NO_NETWORK);
    policy_done(&p);
}

static void the_other_tools_do_not_mention_the_network(void **state)
{
    (void)state;
    for (enum tool_id id = TOOL_READ_FILE; id < TOOL__MAX; id++) {
        assert_null(strcasestr(tools[id].description, "network"));
        assert_null(strcasestr(tools[id].description, "host"));
        assert_null(strcasestr(tools[id].description, "discarded"));
    }
}

static void asked_twice_it_says_the_same(void **state)
{
    struct policy_input in = {.block_network = true, .allow_egress_to = LIST("a.example")};
    struct policy p = policy_of(&in);
    struct describe_input x = {
        .attached = true, .known = true, .policy = &p, .remaining_s = 1234, .prefix = "x"};
    _cleanup_free_ char *one = NULL, *two = NULL;

    (void)state;
    assert_int_equal(describe_run_command(&x, &one), 0);
    assert_int_equal(describe_run_command(&x, &two), 0);
    assert_string_equal(one, two);
    policy_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_part_tells_how_commands_run),
        cmocka_unit_test(without_a_network_it_says_so_and_names_dns),
        cmocka_unit_test(an_open_network_is_told),
        cmocka_unit_test(hosts_are_named_in_order_and_plain_http_as_failing),
        cmocka_unit_test(hosts_with_ports_and_stars_are_told_as_what_they_are),
        cmocka_unit_test(ranges_take_any_port_and_plain_http_is_not_spoken_of),
        cmocka_unit_test(beside_ranges_plain_http_fails_to_the_hosts_alone),
        cmocka_unit_test(a_long_list_is_cut_and_counted),
        cmocka_unit_test(before_it_is_asked_a_standing_sandbox_is_told_in_short),
        cmocka_unit_test(a_standing_sandbox_tells_of_both_tasks_the_network_and_the_clock),
        cmocka_unit_test(the_clock_is_told_in_minutes_rounded_to_the_even_side),
        cmocka_unit_test(an_unrecorded_network_is_admitted),
        cmocka_unit_test(exports_are_named_by_their_paths_alone),
        cmocka_unit_test(the_other_tools_do_not_mention_the_network),
        cmocka_unit_test(asked_twice_it_says_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
