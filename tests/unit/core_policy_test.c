/* SPDX-License-Identifier: Apache-2.0 */
/* The network policy: what a spec may ask for, what is then let out, and the sentence that says
 * why. */
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

/* The problems of a policy that must be refused. */
static struct problems refused(const struct policy_input *in)
{
    struct problems problems = {0};
    struct policy p = {.n_hosts = 77};

    assert_int_equal(policy_build(in, &p, &problems), -EINVAL);
    assert_int_equal(p.n_hosts, 77); /* not written */
    assert_true(problems.n > 0);
    return problems;
}

static void assert_problem(const struct problems *p, const char *field, const char *message,
                           const char *remedy)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->items[i].field, field) == 0 && strstr(p->items[i].message, message) &&
            p->items[i].remedy && strstr(p->items[i].remedy, remedy))
            return;
    for (size_t i = 0; i < p->n; i++)
        print_error("%s: %s. %s.\n", p->items[i].field, p->items[i].message,
                    p->items[i].remedy ? p->items[i].remedy : "");
    fail_msg("no problem with %s: %s. %s.", field, message, remedy);
}

static struct policy_decision decide(const struct policy *p, const char *text)
{
    struct policy_destination to;
    struct policy_decision d;
    struct error err = ERROR_INIT;

    if (policy_destination_parse(text, strlen(text), &to, &err) != 0)
        fail_msg("'%s' was refused: %s", text, err.message);
    policy_decide(p, &to, &d);
    return d;
}

/* Building */

static void a_zeroed_policy_lets_nothing_out(void **state)
{
    struct policy p = {0};

    (void)state;
    assert_false(decide(&p, "ok.test:443").allowed);
    assert_false(decide(&p, "8.8.8.8:53").allowed);
    policy_done(&p);
    policy_done(&p);
}

static void an_empty_list_is_no_list(void **state)
{
    struct policy p = build(&(struct policy_input){.block_network = true});

    (void)state;
    assert_false(p.open);
    assert_int_equal(p.n_hosts + p.n_ranges + p.n_private_ranges, 0);
    policy_done(&p);
    p = build(&(struct policy_input){.block_network = false});
    assert_true(p.open);
    policy_done(&p);
}

static void both_lists_are_kept_as_written_and_without_duplicates(void **state)
{
    struct policy_input in = {
        .block_network = true,
        .allow_egress_to =
            LIST("Host.Example", "*.cdn.example", "host.example:443", "host.example:80"),
        .allow_egress_to_cidrs = LIST("203.0.113.7", " 203.0.113.7/32 ", "2001:DB8::/32",
                                      "2001:db8:0::/32", "203.0.113.0/24"),
    };
    struct policy p = build(&in);

    (void)state;
    assert_int_equal(p.n_hosts, 3);
    assert_string_equal(p.hosts[0].rule.text, "Host.Example");
    assert_string_equal(p.hosts[2].rule.text, "host.example:80");
    assert_int_equal(p.hosts[2].index, 3);
    assert_int_equal(p.n_ranges, 3);
    assert_string_equal(p.ranges[0].text, "203.0.113.7");
    assert_string_equal(p.ranges[1].text, "2001:DB8::/32");
    assert_int_equal(p.ranges[1].index, 2);
    assert_int_equal(p.ranges[2].index, 4);
    policy_done(&p);
}

static void every_wrong_entry_is_reported_under_its_name_and_place(void **state)
{
    const struct position at[] = {{5, 7}, {6, 7}, {7, 7}};
    struct policy_input in = {
        .block_network = true,
        .allow_egress_to = LIST("host.example", "https://x.example", "localhost"),
        .allow_egress_to_cidrs = LIST("host.example", "http://x/", "1.1.1", "1.1.1.1/33",
                                      "010.0.0.1", "203.0.113.1/24", "10.0.0.0/8"),
    };

    (void)state;
    in.allow_egress_to.at = at;
    in.allow_egress_to_cidrs.list_at = (struct position){9, 3};
    struct problems p = refused(&in);
    assert_int_equal(p.n, 8);
    assert_problem(&p, "spec.allow_egress_to[1]", "has a scheme", "x.example");
    assert_problem(&p, "spec.allow_egress_to[2]", "single label", "full name");
    assert_problem(&p, "spec.allow_egress_to_cidrs[0]", "'host.example'", "allow_egress_to");
    assert_problem(&p, "spec.allow_egress_to_cidrs[1]", "is a URL", "allow_egress_to");
    assert_problem(&p, "spec.allow_egress_to_cidrs[2]", "short", "Write an address");
    assert_problem(&p, "spec.allow_egress_to_cidrs[3]", "above 32", "1 to 32");
    assert_problem(&p, "spec.allow_egress_to_cidrs[4]", "octal", "Write an address");
    assert_problem(&p, "spec.allow_egress_to_cidrs[5]", "bits set", "203.0.113.0/24");
    assert_int_equal(p.items[0].at.line, 6);
    assert_int_equal(p.items[0].at.column, 7);
    assert_int_equal(p.items[1].at.line, 7);
    assert_int_equal(p.items[2].at.line, 9); /* of the list, when the entries have none */
    problems_done(&p);
}

static void earlier_problems_stay_and_do_not_count(void **state)
{
    struct problems problems = {0};
    struct policy p;

    (void)state;
    problems_add(&problems, "spec.env.A", (struct position){0}, NULL, "is bad");
    assert_int_equal(policy_build(&(struct policy_input){.block_network = true}, &p, &problems), 0);
    assert_int_equal(problems.n, 1);
    policy_done(&p);
    problems_done(&problems);
}

static void lists_contradict_an_open_network(void **state)
{
    struct policy_input hosts = {.allow_egress_to = LIST("host.example")};
    struct policy_input ranges = {.allow_egress_to_cidrs = LIST("203.0.113.0/24")};
    struct policy_input both = {.block_network_at = {4, 18},
                                .allow_egress_to = LIST("host.example"),
                                .allow_egress_to_cidrs = LIST("203.0.113.0/24")};

    (void)state;
    struct problems p = refused(&hosts);
    assert_int_equal(p.n, 1);
    assert_problem(&p, "spec.block_network",
                   "block_network: false opens the network, which contradicts "
                   "allow_egress_to",
                   "block_network");
    problems_done(&p);
    p = refused(&ranges);
    assert_int_equal(p.n, 1);
    assert_problem(&p, "spec.block_network", "contradicts allow_egress_to_cidrs", "block_network");
    problems_done(&p);
    p = refused(&both);
    assert_int_equal(p.n, 1);
    assert_problem(&p, "spec.block_network", "allow_egress_to and allow_egress_to_cidrs",
                   "block_network");
    assert_int_equal(p.items[0].at.line, 4);
    problems_done(&p);
}

static void private_ranges_want_an_open_network_and_private_space(void **state)
{
    struct policy_input closed = {.block_network = true, .private_cidrs = LIST("10.0.0.0/8")};
    struct policy_input good = {.private_cidrs = LIST("10.0.0.0/8", "127.0.0.1", "169.254.0.0/16",
                                                      "fd00::/8", "100.64.0.0/10", "240.0.0.0/4")};
    struct policy_input bad = {.private_cidrs =
                                   LIST("8.8.8.0/24", "10.0.0.0/7", "host.example", "0.0.0.0/0",
                                        "224.0.0.0/4", "8000::/1", "64:ff9b::/96")};

    (void)state;
    struct problems p = refused(&closed);
    assert_int_equal(p.n, 1);
    assert_problem(&p, "spec.private_cidrs", "open network only", "allow_egress_to_cidrs");
    problems_done(&p);

    struct policy policy = build(&good);
    assert_int_equal(policy.n_private_ranges, 6);
    policy_done(&policy);

    p = refused(&bad);
    assert_int_equal(p.n, 7);
    assert_problem(&p, "spec.private_cidrs[0]", "not within private", "10.0.0.0/8");
    assert_problem(&p, "spec.private_cidrs[1]", "not within private", "10.0.0.0/8");
    assert_problem(&p, "spec.private_cidrs[2]", "not a range", "203.0.113.0/24");
    assert_problem(&p, "spec.private_cidrs[3]", "every address", "block_network: false");
    assert_problem(&p, "spec.private_cidrs[4]", "multicast", "Leave the entry out");
    assert_problem(&p, "spec.private_cidrs[5]", "not within private", "10.0.0.0/8");
    assert_problem(&p, "spec.private_cidrs[6]", "not within private", "10.0.0.0/8");
    problems_done(&p);
}

static void a_list_that_is_an_open_network_by_another_name_is_refused(void **state)
{
    const struct {
        struct policy_list list;
        const char *field, *message;
    } rows[] = {
        {LIST("0.0.0.0/0"), "spec.allow_egress_to_cidrs[0]", "every address there is"},
        {LIST("x", "0.0.0.0/0"), "spec.allow_egress_to_cidrs[1]", "every address there is"},
        {LIST("10.0.0.0/8", "::/0"), "spec.allow_egress_to_cidrs[1]", "every address there is"},
        {LIST("::ffff:0:0/96"), "spec.allow_egress_to_cidrs[0]", "IPv6 spelling of IPv4"},
        {LIST("0.0.0.0/1", "128.0.0.0/1"), "spec.allow_egress_to_cidrs", "every public IPv4"},
        {LIST("128.0.0.0/2", "0.0.0.0/1", "192.0.0.0/2"), "spec.allow_egress_to_cidrs",
         "every public IPv4"},
        {LIST("::/1", "8000::/1"), "spec.allow_egress_to_cidrs", "every public IPv6"},
        {LIST("2000::/3"), "spec.allow_egress_to_cidrs", "every public IPv6"},
        {LIST("64:ff9b::/96"), "spec.allow_egress_to_cidrs", "every public IPv4"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct problems p = refused(
            &(struct policy_input){.block_network = true, .allow_egress_to_cidrs = rows[i].list});

        assert_problem(&p, rows[i].field, rows[i].message, "block_network: false");
        problems_done(&p);
    }
}

static void other_odd_ranges_are_refused(void **state)
{
    struct policy_input in = {.block_network = true,
                              .allow_egress_to_cidrs =
                                  LIST("::ffff:10.0.0.0/104", "224.0.0.0/8", "255.255.255.255",
                                       "0.0.0.0", "::", "ff00::/8", "203.0.113.0/255.255.255.0")};
    struct problems p = refused(&in);

    (void)state;
    assert_int_equal(p.n, 7);
    assert_problem(&p, "spec.allow_egress_to_cidrs[0]", "IPv6 spelling", "Write 10.0.0.0/8");
    assert_problem(&p, "spec.allow_egress_to_cidrs[1]", "multicast", "Leave");
    assert_problem(&p, "spec.allow_egress_to_cidrs[2]", "broadcast", "Leave");
    assert_problem(&p, "spec.allow_egress_to_cidrs[3]", "unspecified", "Leave");
    assert_problem(&p, "spec.allow_egress_to_cidrs[6]", "mask", "Write 203.0.113.0/24");
    problems_done(&p);
}

static void a_list_has_a_ceiling(void **state)
{
    static char texts[POLICY_HOSTS_MAX + 1][24];
    static const char *items[POLICY_HOSTS_MAX + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        (void)snprintf(texts[i], sizeof texts[i], "h%zu.example", i);
        items[i] = texts[i];
    }
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = {.items = items, .n = POLICY_HOSTS_MAX}};
    struct policy policy = build(&in);
    assert_int_equal(policy.n_hosts, POLICY_HOSTS_MAX);
    policy_done(&policy);
    in.allow_egress_to.n++;
    struct problems p = refused(&in);
    assert_problem(&p, "spec.allow_egress_to", "16385 entries", "wildcards");
    problems_done(&p);
    for (size_t i = 0; i < ARRAY_SIZE(items); i++)
        (void)snprintf(texts[i], sizeof texts[i], "10.%zu.%zu.%zu", i >> 16, i >> 8 & 255, i & 255);
    in.allow_egress_to.n = 0;
    in.allow_egress_to_cidrs = (struct policy_list){.items = items, .n = POLICY_RANGES_MAX + 1};
    p = refused(&in);
    assert_problem(&p, "spec.allow_egress_to_cidrs", "1025 entries", "ranges");
    problems_done(&p);
}

static void the_hosts_together_have_a_ceiling_in_bytes(void **state)
{
    static char text[HOST_NAME_BYTES_MAX + 1];
    static const char *items[POLICY_HOSTS_BYTES_MAX / HOST_NAME_BYTES_MAX + 1];

    (void)state;
    memset(text, 'a', sizeof text - 1);
    for (size_t i = 50; i < sizeof text - 1; i += 50)
        text[i] = '.';
    for (size_t i = 0; i < ARRAY_SIZE(items); i++)
        items[i] = text;
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = {.items = items, .n = ARRAY_SIZE(items) - 1}};
    struct policy policy = build(&in);
    assert_int_equal(policy.n_hosts, 1);
    policy_done(&policy);
    in.allow_egress_to.n++;
    struct problems p = refused(&in);
    assert_problem(&p, "spec.allow_egress_to", "bytes together", "wildcards");
    problems_done(&p);
}

/* Pins */

static void pins_are_kept_in_order_and_without_duplicates(void **state)
{
    struct policy_input in = {
        .block_network = true,
        .allow_egress_to = LIST("a.example", "*.b.example:5432"),
        .add_hosts = LIST("A.Example=10.0.0.1", "x.b.example=fd00::1", "a.example=10.0.0.1",
                          "a.example=127.0.0.1"),
    };
    struct policy p = build(&in);
    struct host_name name = {"a.example"}, other = {"x.b.example"}, none = {"y.b.example"};
    char text[ADDRESS_TEXT_BYTES];

    (void)state;
    assert_int_equal(p.n_pins, 3);
    const struct policy_pin *pin = policy_pin_next(&p, &name, NULL);
    assert_int_equal(pin->index, 0);
    pin = policy_pin_next(&p, &name, pin);
    assert_int_equal(pin->index, 3);
    address_format(&pin->address, text);
    assert_string_equal(text, "127.0.0.1");
    assert_null(policy_pin_next(&p, &name, pin));
    pin = policy_pin_next(&p, &other, NULL);
    assert_int_equal(pin->index, 1);
    assert_null(policy_pin_next(&p, &other, pin));
    assert_null(policy_pin_next(&p, &none, NULL));
    policy_done(&p);
    in = (struct policy_input){.add_hosts = LIST("db=10.0.0.1")}; /* open: every name is listed */
    p = build(&in);
    assert_int_equal(p.n_pins, 1);
    policy_done(&p);
}

static void wrong_pins_are_refused(void **state)
{
    struct policy_input in = {
        .block_network = true,
        .allow_egress_to = LIST("a.example", "*.b.example"),
        .add_hosts = LIST("a.example", "=10.0.0.1", "*.b.example=10.0.0.1", "c.example=10.0.0.1",
                          "a.example=010.0.0.1", "a.example=::ffff:10.0.0.1", "a.example=224.0.0.1",
                          "localhost=10.0.0.1", "b.example=10.0.0.1", "a.example=\x1b[2J",
                          "a.example.=10.0.0.1", "a.example:443=10.0.0.1"),
    };

    (void)state;
    struct problems p = refused(&in);
    assert_int_equal(p.n, 12);
    assert_problem(&p, "backend.add_hosts[0]", "no '='", "NAME=ADDR");
    assert_problem(&p, "backend.add_hosts[1]", "not the name of a host", "full name");
    assert_problem(&p, "backend.add_hosts[2]", "'*.b.example' is not the name", "without a star");
    assert_problem(&p, "backend.add_hosts[3]", "lists 'c.example'", "c.example");
    assert_problem(&p, "backend.add_hosts[4]", "octal", "NAME=ADDR");
    assert_problem(&p, "backend.add_hosts[5]", "IPv6 spelling", "Write 10.0.0.1");
    assert_problem(&p, "backend.add_hosts[6]", "multicast", "address of a host");
    assert_problem(&p, "backend.add_hosts[7]", "own loopback", "another name");
    assert_problem(&p, "backend.add_hosts[8]", "lists 'b.example'", "b.example");
    assert_problem(&p, "backend.add_hosts[9]", "'?[2J'", "NAME=ADDR");
    assert_problem(&p, "backend.add_hosts[10]", "not the name", "full name");
    assert_problem(&p, "backend.add_hosts[11]", "not the name", "without a port");
    problems_done(&p);
    in.allow_egress_to = (struct policy_list)LIST("a example");
    in.add_hosts = (struct policy_list)LIST("a.example=10.0.0.1");
    p = refused(&in); /* the entry that was meant has a problem of its own, and that will do */
    assert_int_equal(p.n, 1);
    problems_done(&p);
}

static void a_decision_tells_of_pins(void **state)
{
    struct policy_input in = {
        .block_network = true,
        .allow_egress_to = LIST("a.example", "b.example:5432", "c.example"),
        .add_hosts = LIST("a.example=169.254.169.254", "b.example=10.0.0.1", "b.example=fd00::2",
                          "b.example=10.0.0.3", "b.example=10.0.0.4", "b.example=10.0.0.5"),
    };
    struct policy p = build(&in);
    struct policy_decision d = decide(&p, "a.example:443");

    (void)state;
    assert_true(d.allowed);
    assert_non_null(strstr(d.explanation, "; backend.add_hosts gives it the address 169.254."));
    assert_null(strstr(d.explanation, "checked"));
    d = decide(&p, "b.example:5432");
    assert_non_null(strstr(d.explanation, "gives it the addresses 10.0.0.1, fd00::2, 10.0.0.3, "
                                          "10.0.0.4, and 1 more"));
    assert_non_null(strstr(decide(&p, "c.example:443").explanation, "checked when connecting"));
    assert_false(decide(&p, "a.example:80").allowed);
    assert_false(decide(&p, "10.0.0.1:5432").allowed); /* for the name alone */
    policy_done(&p);
}

static void a_decision_names_its_rule(void **state)
{
    struct policy p = build(&(struct policy_input){.block_network = true,
                                                   .allow_egress_to = LIST("a.example", "*.B.test"),
                                                   .allow_egress_to_cidrs = LIST("10.0.0.0/8")});
    char text[HOST_RULE_BYTES_MAX + 64];
    struct policy_decision d;

    (void)state;
    d = decide(&p, "x.b.test:443");
    policy_rule_text(&d, text, sizeof text);
    assert_string_equal(text, "allow_egress_to[1] '*.B.test'");
    d = decide(&p, "10.1.1.1:22");
    policy_rule_text(&d, text, sizeof text);
    assert_string_equal(text, "allow_egress_to_cidrs[0] '10.0.0.0/8'");
    d = decide(&p, "c.test:443");
    policy_rule_text(&d, text, sizeof text);
    assert_string_equal(text, "no rule");
    d = decide(&p, "224.0.0.1:443");
    policy_rule_text(&d, text, sizeof text);
    assert_string_equal(text, "no rule");
    policy_done(&p);
    p = build(&(struct policy_input){.private_cidrs = LIST("10.0.0.0/8")});
    d = decide(&p, "10.1.1.1:22");
    policy_rule_text(&d, text, sizeof text);
    assert_string_equal(text, "private_cidrs[0] '10.0.0.0/8'");
    d = decide(&p, "c.test:443");
    policy_rule_text(&d, text, sizeof text);
    assert_string_equal(text, "block_network");
    policy_done(&p);
}

/* Decisions */

struct decision_row {
    const char *to;
    bool allowed;
    enum policy_rule_kind kind;
    size_t index;
    const char *rule, *explanation, *remedy;
};

static void assert_decisions(const struct policy *p, const struct decision_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct policy_decision d = decide(p, rows[i].to);

        if (d.allowed != rows[i].allowed || d.kind != rows[i].kind || d.index != rows[i].index ||
            !strstr(d.explanation, rows[i].explanation) || !strstr(d.remedy, rows[i].remedy))
            fail_msg("%s: %s by %d[%zu]: %s. %s.", rows[i].to, d.allowed ? "allowed" : "denied",
                     d.kind, d.index, d.explanation, d.remedy);
        if (rows[i].rule)
            assert_string_equal(d.rule, rows[i].rule);
        else
            assert_null(d.rule);
        if (d.allowed)
            assert_string_equal(d.remedy, "");
    }
}

static void a_closed_network_lets_nothing_out(void **state)
{
    static const struct decision_row rows[] = {
        {"ok.test:443", false, POLICY_RULE_NONE, 0, NULL,
         "the network is blocked (block_network: true) and no entry lists ok.test",
         "Add it: allow_egress_to: [ok.test], or --allow ok.test"},
        {"ok.test:22", false, POLICY_RULE_NONE, 0, NULL, "no entry lists ok.test",
         "allow_egress_to: [ok.test:22], or --allow ok.test:22"},
        {"8.8.8.8:53", false, POLICY_RULE_NONE, 0, NULL, "no entry lists 8.8.8.8",
         "allow_egress_to_cidrs: [\"8.8.8.8/32\"], or --allow-cidr 8.8.8.8/32"},
        {"[2606:4700::1111]:53", false, POLICY_RULE_NONE, 0, NULL, "2606:4700::1111",
         "--allow-cidr 2606:4700::1111/128"},
        {"ok:443", false, POLICY_RULE_NONE, 0, NULL, "no entry lists ok", "full name"},
        {"my_bucket.ok.test:443", false, POLICY_RULE_NONE, 0, NULL, "my_bucket.ok.test",
         "allow_egress_to: [\"*.ok.test\"], or --allow '*.ok.test'"},
        {"127.0.0.1:80", false, POLICY_RULE_LOOPBACK, 0, NULL, "sandbox's own loopback", ""},
        {"localhost:80", false, POLICY_RULE_LOOPBACK, 0, NULL, "sandbox's own loopback", ""},
        {"a.localhost:80", false, POLICY_RULE_LOOPBACK, 0, NULL, "sandbox's own loopback", ""},
        {"[::1]:80", false, POLICY_RULE_LOOPBACK, 0, NULL, "sandbox's own loopback", ""},
        {"[::ffff:127.0.0.1]:80", false, POLICY_RULE_LOOPBACK, 0, NULL, "own loopback", ""},
        {"0.0.0.0:80", false, POLICY_RULE_CLASS, 0, NULL, "unspecified", ""},
        {"224.0.0.1:80", false, POLICY_RULE_CLASS, 0, NULL, "multicast address (RFC 5771)", ""},
    };
    struct policy p = build(&(struct policy_input){.block_network = true});

    (void)state;
    assert_decisions(&p, rows, ARRAY_SIZE(rows));
    policy_done(&p);
}

static void hosts_are_reached_by_name_and_port(void **state)
{
    static const struct decision_row rows[] = {
        {"ok.test:443", true, POLICY_RULE_HOST, 0, "OK.test",
         "allow_egress_to[0] 'OK.test' lists ok.test: TLS on port 443, whose server name must be "
         "that "
         "name; its address is checked when connecting, and private, loopback and metadata "
         "addresses "
         "are refused unless a range lists them",
         ""},
        {"https://OK.TEST./x", true, POLICY_RULE_HOST, 0, "OK.test", "ok.test", ""},
        {"https://a.wild.test", true, POLICY_RULE_HOST, 1, "*.wild.test", "lists a.wild.test", ""},
        {"b.a.wild.test:443", true, POLICY_RULE_HOST, 1, "*.wild.test", "lists b.a.wild.test", ""},
        {"http://web.test/", true, POLICY_RULE_HOST, 2, "web.test:80",
         "HTTP on port 80, whose Host must be that name", ""},
        {"git.test:22", true, POLICY_RULE_HOST, 3, "git.test:22", "TCP on port 22; its address",
         ""},
        {"ok.test:80", false, POLICY_RULE_NONE, 0, NULL,
         "allow_egress_to[0] 'OK.test' lists ok.test for port 443 only, and no entry lists port 80",
         "allow_egress_to: [ok.test:80]"},
        {"wild.test:443", false, POLICY_RULE_NONE, 0, NULL,
         "allow_egress_to[1] '*.wild.test' lists the names below wild.test, not wild.test itself",
         "allow_egress_to: [wild.test]"},
        {"f.e.d.c.b.a.wild.test:443", false, POLICY_RULE_NONE, 0, NULL,
         "allow_egress_to[1] '*.wild.test' lists names with at most 5 parts and 100 characters in "
         "the star's place, and f.e.d.c.b.a.wild.test has more",
         "allow_egress_to: [f.e.d.c.b.a.wild.test]"},
        {"evilwild.test:443", false, POLICY_RULE_NONE, 0, NULL,
         "no entry of allow_egress_to lists evilwild.test, so the name does not resolve",
         "allow_egress_to: [evilwild.test]"},
        {"xok.test:443", false, POLICY_RULE_NONE, 0, NULL, "no entry", "xok.test"},
        {"ok.test.no.test:443", false, POLICY_RULE_NONE, 0, NULL, "no entry", "ok.test.no.test"},
        {"ok:443", false, POLICY_RULE_NONE, 0, NULL, "no entry", "full name"},
        {"203.0.113.7:443", false, POLICY_RULE_NONE, 0, NULL,
         "203.0.113.7 is an address, and allow_egress_to lists names",
         "allow_egress_to_cidrs: [\"203.0.113.7/32\"]"},
    };
    struct policy_input in = {.block_network = true,
                              .allow_egress_to =
                                  LIST("OK.test", "*.wild.test", "web.test:80", "git.test:22")};
    struct policy p = build(&in);

    (void)state;
    assert_decisions(&p, rows, ARRAY_SIZE(rows));
    policy_done(&p);
}

static void ranges_are_decided_on_the_address_alone(void **state)
{
    static const struct decision_row rows[] = {
        {"203.0.113.7:53", true, POLICY_RULE_RANGE, 0, "203.0.113.0/24",
         "allow_egress_to_cidrs[0] '203.0.113.0/24' lists 203.0.113.7, on any port", ""},
        {"[::ffff:203.0.113.7]:1", true, POLICY_RULE_RANGE, 0, "203.0.113.0/24", "203.0.113.7", ""},
        {"https://10.1.2.3/", true, POLICY_RULE_RANGE, 1, "10.0.0.0/8", "10.1.2.3", ""},
        {"[fd00::1]:22", true, POLICY_RULE_RANGE, 2, "fd00::/8", "fd00::1", ""},
        {"[64:ff9b::10.1.2.3]:22", true, POLICY_RULE_RANGE, 3, "64:ff9b::/97",
         "64:ff9b::a01:203, which carries 10.1.2.3 (NAT64)", ""},
        {"[64:ff9b::8.8.8.8]:22", true, POLICY_RULE_RANGE, 3, "64:ff9b::/97", "8.8.8.8", ""},
        {"[64:ff9b::127.0.0.1]:22", false, POLICY_RULE_NONE, 0, NULL,
         "allow_egress_to_cidrs[3] '64:ff9b::/97' lists 64:ff9b::7f00:1, which carries 127.0.0.1 "
         "(NAT64), which is a loopback address (RFC 1122, section 3.2.1.3) that no entry lists",
         "Add it: allow_egress_to_cidrs: [\"127.0.0.1/32\"], or --allow-cidr 127.0.0.1/32"},
        {"[2002:c0a8:101::1]:22", false, POLICY_RULE_NONE, 0, NULL, "no entry",
         "Add both: allow_egress_to_cidrs: [\"2002:c0a8:101::1/128\", \"192.168.1.1/32\"], or "
         "--allow-cidr 2002:c0a8:101::1/128 --allow-cidr 192.168.1.1/32"},
        {"203.0.114.7:53", false, POLICY_RULE_NONE, 0, NULL,
         "no entry of allow_egress_to_cidrs lists 203.0.114.7", "--allow-cidr 203.0.114.7/32"},
        {"169.254.169.254:80", false, POLICY_RULE_NONE, 0, NULL, "no entry", "169.254.169.254/32"},
        {"255.255.255.255:80", false, POLICY_RULE_CLASS, 0, NULL, "broadcast", ""},
        {"ok.test:443", false, POLICY_RULE_NONE, 0, NULL,
         "no host is listed in allow_egress_to, so ok.test does not resolve; allow_egress_to_cidrs "
         "lists addresses, not names",
         "allow_egress_to: [ok.test]"},
        {"127.0.0.1:80", false, POLICY_RULE_LOOPBACK, 0, NULL,
         "leads nowhere else; the range that lists it is for names that have this address", ""},
    };
    struct policy_input in = {.block_network = true,
                              .allow_egress_to_cidrs =
                                  LIST("203.0.113.0/24", "10.0.0.0/8", "fd00::/8", "64:ff9b::/97",
                                       "127.0.0.1/32", "240.0.0.0/4")};

    (void)state;
    in.allow_egress_to_cidrs.n = 4;
    struct policy p = build(&in);
    assert_decisions(&p, rows, ARRAY_SIZE(rows) - 1);
    policy_done(&p);
    in.allow_egress_to_cidrs.n = 6;
    p = build(&in);
    assert_decisions(&p, rows + ARRAY_SIZE(rows) - 1, 1);
    assert_false(decide(&p, "255.255.255.255:80").allowed); /* whatever lists it */
    policy_done(&p);
}

static void hosts_and_ranges_do_not_weaken_each_other(void **state)
{
    struct policy_input in = {.block_network = true,
                              .allow_egress_to = LIST("ok.test"),
                              .allow_egress_to_cidrs = LIST("203.0.113.0/24")};
    struct policy p = build(&in);

    (void)state;
    assert_true(decide(&p, "ok.test:443").allowed);
    assert_true(decide(&p, "203.0.113.7:9").allowed);
    assert_false(decide(&p, "ok.test:80").allowed);       /* a range opens no port of a host */
    assert_false(decide(&p, "no.test:443").allowed);      /* nor a name */
    assert_false(decide(&p, "198.51.100.7:443").allowed); /* a host opens 443 of no address */
    policy_done(&p);
}

static void an_open_network_lets_the_public_out(void **state)
{
    static const struct decision_row rows[] = {
        {"ok.test:22", true, POLICY_RULE_OPEN, 0, NULL,
         "block_network: false opens the network to ok.test; its address is checked", ""},
        {"intranet:80", true, POLICY_RULE_OPEN, 0, NULL, "its address is checked", ""},
        {"8.8.8.8:53", true, POLICY_RULE_OPEN, 0, NULL, "opens the network to 8.8.8.8", ""},
        {"[2606:4700::1111]:53", true, POLICY_RULE_OPEN, 0, NULL, "2606:4700::1111", ""},
        {"[64:ff9b::8.8.8.8]:53", true, POLICY_RULE_OPEN, 0, NULL, "carries 8.8.8.8 (NAT64)", ""},
        {"10.1.2.3:22", true, POLICY_RULE_PRIVATE, 0, "10.1.0.0/16",
         "private_cidrs[0] '10.1.0.0/16' lists 10.1.2.3", ""},
        {"[64:ff9b::10.1.2.3]:22", true, POLICY_RULE_PRIVATE, 0, "10.1.0.0/16", "(NAT64)", ""},
        {"10.2.2.3:22", false, POLICY_RULE_CLASS, 0, NULL,
         "block_network: false opens the public network only, and 10.2.2.3 is a private address "
         "(RFC "
         "1918, section 3)",
         "Add it: private_cidrs: [\"10.2.2.3/32\"], or --allow-private 10.2.2.3/32"},
        {"169.254.169.254:80", false, POLICY_RULE_CLASS, 0, NULL, "metadata address",
         "private_cidrs"},
        {"[fd00:ec2::254]:80", false, POLICY_RULE_CLASS, 0, NULL, "metadata address",
         "private_cidrs"},
        {"169.254.1.1:80", false, POLICY_RULE_CLASS, 0, NULL, "link-local", "private_cidrs"},
        {"100.64.0.1:80", false, POLICY_RULE_CLASS, 0, NULL, "shared", "private_cidrs"},
        {"[2002:c0a8:101::1]:80", false, POLICY_RULE_CLASS, 0, NULL,
         "2002:c0a8:101::1, which carries 192.168.1.1 (6to4) is a private address",
         "private_cidrs: [\"192.168.1.1/32\"]"},
        {"[::ffff:192.168.1.1]:80", false, POLICY_RULE_CLASS, 0, NULL, "192.168.1.1 is a private",
         "192.168.1.1/32"},
        {"127.0.0.1:80", false, POLICY_RULE_LOOPBACK, 0, NULL, "sandbox's own loopback", ""},
        {"239.1.1.1:80", false, POLICY_RULE_CLASS, 0, NULL, "multicast", ""},
    };
    struct policy_input in = {.private_cidrs = LIST("10.1.0.0/16")};
    struct policy p = build(&in);

    (void)state;
    assert_decisions(&p, rows, ARRAY_SIZE(rows));
    policy_done(&p);
}

static void an_address_of_a_name_is_dialled_if_public_or_listed(void **state)
{
    static const struct {
        const char *address;
        bool closed, open;
    } rows[] = {
        {"8.8.8.8/32", true, true},
        {"2606:4700::1111/128", true, true},
        {"10.1.2.3/32", true, true},
        {"10.2.2.3/32", false, false},
        {"127.0.0.1/32", true, true},
        {"127.0.0.2/32", false, false},
        {"::1/128", false, false},
        {"169.254.169.254/32", false, false},
        {"0.0.0.0/32", false, false},
        {"224.0.0.1/32", false, false},
        {"64:ff9b::808:808/128", true, true},
        {"64:ff9b::a9fe:a9fe/128", false, false},
        {"2002:7f00:2::/128", false, false},
    };
    struct policy_input closed = {.block_network = true,
                                  .allow_egress_to = LIST("ok.test"),
                                  .allow_egress_to_cidrs = LIST("10.1.0.0/16", "127.0.0.1")};
    struct policy_input open = {.private_cidrs = LIST("10.1.0.0/16", "127.0.0.1")};
    struct policy p = build(&closed), q = build(&open);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct address_range r;
        struct error err = ERROR_INIT;

        assert_int_equal(address_range_parse(rows[i].address, &r, &err), 0);
        if (policy_may_dial(&p, &r.base) != rows[i].closed ||
            policy_may_dial(&q, &r.base) != rows[i].open)
            fail_msg("%s", rows[i].address);
    }
    struct address mapped = {ADDRESS_V6, {[10] = 0xFF, 0xFF, 10, 1, 2, 3}};
    assert_true(policy_may_dial(&p, &mapped));
    assert_false(policy_lists_alone(&p, &mapped)); /* 10.1.0.0/16 has others too */
    mapped.bytes[12] = 127;
    assert_false(policy_may_dial(&p, &mapped));
    memcpy(mapped.bytes + 12, (const uint8_t[]){127, 0, 0, 1}, 4);
    assert_true(policy_lists_alone(&p, &mapped) && policy_lists_alone(&q, &mapped));
    policy_done(&p);
    policy_done(&q);
}

static void the_longest_texts_fit(void **state)
{
    char host[HOST_RULE_BYTES_MAX + 1], to[300];
    const char *items[] = {host};

    (void)state;
    for (size_t i = 0; i < 253; i++)
        host[i] = i % 60 == 59 ? '.' : 'a';
    memcpy(host + 253, ":65535", 7);
    struct policy_input in = {.block_network = true, .allow_egress_to = {.items = items, .n = 1}};
    struct policy p = build(&in);
    struct policy_decision d = decide(&p, host);
    assert_true(d.allowed);
    assert_string_equal(d.explanation + strlen(d.explanation) - 10, "lists them");
    (void)snprintf(to, sizeof to, "%.253s:65534", host);
    d = decide(&p, to);
    assert_false(d.allowed);
    assert_string_equal(d.explanation + strlen(d.explanation) - 10, "port 65534");
    assert_string_equal(d.remedy + strlen(d.remedy) - 10, "aaaa:65534");
    policy_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_policy_lets_nothing_out),
        cmocka_unit_test(an_empty_list_is_no_list),
        cmocka_unit_test(both_lists_are_kept_as_written_and_without_duplicates),
        cmocka_unit_test(every_wrong_entry_is_reported_under_its_name_and_place),
        cmocka_unit_test(earlier_problems_stay_and_do_not_count),
        cmocka_unit_test(lists_contradict_an_open_network),
        cmocka_unit_test(private_ranges_want_an_open_network_and_private_space),
        cmocka_unit_test(a_list_that_is_an_open_network_by_another_name_is_refused),
        cmocka_unit_test(other_odd_ranges_are_refused),
        cmocka_unit_test(a_list_has_a_ceiling),
        cmocka_unit_test(the_hosts_together_have_a_ceiling_in_bytes),
        cmocka_unit_test(pins_are_kept_in_order_and_without_duplicates),
        cmocka_unit_test(wrong_pins_are_refused),
        cmocka_unit_test(a_decision_tells_of_pins),
        cmocka_unit_test(a_decision_names_its_rule),
        cmocka_unit_test(a_closed_network_lets_nothing_out),
        cmocka_unit_test(hosts_are_reached_by_name_and_port),
        cmocka_unit_test(ranges_are_decided_on_the_address_alone),
        cmocka_unit_test(hosts_and_ranges_do_not_weaken_each_other),
        cmocka_unit_test(an_open_network_lets_the_public_out),
        cmocka_unit_test(an_address_of_a_name_is_dialled_if_public_or_listed),
        cmocka_unit_test(the_longest_texts_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
