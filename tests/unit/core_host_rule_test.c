/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of allow_egress_to: the grammar, its refusals and remedies, and which names match. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/host_rule.h"
#include "base/guards.h"

static struct host_rule rule(const char *text)
{
    struct error err = ERROR_INIT;
    struct host_rule r;

    if (host_rule_parse(text, &r, &err) != 0)
        fail_msg("'%s' was refused: %s", text, err.message);
    return r;
}

/* Whether @n bytes, as somebody asks for them, are a name that @text lists. */
static bool lists(const char *text, const char *asked, size_t n)
{
    struct host_rule r = rule(text);
    struct host_name name;

    return host_name_read(asked, n, &name) == 0 && host_rule_matches(&r, &name);
}

static void a_host_and_a_port_are_taken_as_written(void **state)
{
    static const struct {
        const char *text, *name;
        bool wildcard;
        unsigned port;
    } rows[] = {
        {"host.example", "host.example", false, 443},
        {"Host.Example", "host.example", false, 443},
        {"*.cdn.example", "cdn.example", true, 443},
        {"a-b.example.co.uk", "a-b.example.co.uk", false, 443},
        {"host.example:443", "host.example", false, 443},
        {"host.example:80", "host.example", false, 80},
        {"host.example:1", "host.example", false, 1},
        {"*.Host.example:65535", "host.example", true, 65535},
        {"xn--bcher-kva.example", "xn--bcher-kva.example", false, 443},
        {"1.example", "1.example", false, 443},
        {"3com.4e", "3com.4e", false, 443},
        {"a.b", "a.b", false, 443},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct host_rule r = rule(rows[i].text);

        assert_string_equal(r.text, rows[i].text);
        assert_string_equal(r.name.text, rows[i].name);
        assert_int_equal(r.wildcard, rows[i].wildcard);
        assert_int_equal(r.port, rows[i].port);
    }
}

static void assert_refused(const char *text, const char *why, const char *remedy)
{
    struct error err = ERROR_INIT;
    struct host_rule r = {.port = 7};

    if (host_rule_parse(text, &r, &err) != -EINVAL)
        fail_msg("'%s' was taken", text);
    assert_int_equal(r.port, 7); /* not written */
    assert_int_equal(err.cls, ERROR_USAGE);
    if (!strstr(err.message, why) || !strstr(err.remedy, remedy))
        fail_msg("'%s' gave: %s. %s.", text, err.message, err.remedy);
    assert_null(strchr(err.message, '\n'));
    assert_true(err.remedy[0] >= 'A' && err.remedy[0] <= 'Z');
}

static void a_wrong_entry_is_refused_with_what_to_write(void **state)
{
    static const struct {
        const char *text, *why, *remedy;
    } rows[] = {
        {"", "has no host", "Write a host"},
        {":443", "has no host", "Write a host"},
        {"*", "would be every host", "block_network: false"},
        {"*:443", "would be every host", "block_network: false"},
        {"*.", "would be every host", "block_network: false"},
        {"https://host.example", "has a scheme", "Write the host alone: host.example"},
        {"https://host.example/", "has a scheme", "Write the host alone: host.example"},
        {"http://host.example/x?y", "has a scheme",
         "Write the host and port alone: host.example:80"},
        {"https://me@host.example:8443/x", "has a scheme",
         "Write the host and port alone: host.example:8443"},
        {"https://10.0.0.5/x", "has a scheme", "List it in allow_egress_to_cidrs: 10.0.0.5/32"},
        {"https://", "has a scheme", "Write the host alone, such as host.example"},
        {"me@host.example", "has a user name", "Write the host alone: host.example"},
        {"host.example/path", "has a path", "Write the host alone: host.example"},
        {"host.example?x", "has a path", "Write the host alone: host.example"},
        {"host.example#x", "has a path", "Write the host alone: host.example"},
        {"host.example\\x", "has a path", "Write the host alone: host.example"},
        {"host .example", "has a blank", "Write the host alone"},
        {" host.example", "has a blank", "Write the host alone: host.example"},
        {"host.example\t", "has a blank", "Write the host alone: host.example"},
        {"host.example\n", "has a line end", "Write the host alone: host.example"},
        {"host.example\r\n", "has a line end", "Write the host alone: host.example"},
        {"host\x01.example", "control character", "Write the host alone"},
        {"b\xC3\xBC"
         "cher.example",
         "beyond ASCII", "xn--"},
        {"ok\xE3\x80\x82test.example", "beyond ASCII", "xn--"},
        {"a.example,b.example", "has a comma", "entry of its own"},
        {"*.*.host.example", "more than one star", "*.host.example"},
        {"**.host.example", "more than one star", "*.host.example"},
        {"a.*.example", "elsewhere than as its first label", "*.host.example"},
        {"*a.example.org", "elsewhere than as its first label", "*.host.example"},
        {"a*.example.org", "elsewhere than as its first label", "*.host.example"},
        {"host.*", "elsewhere than as its first label", "*.host.example"},
        {"10.0.0.5", "is an address", "List it in allow_egress_to_cidrs: 10.0.0.5/32"},
        {"169.254.169.254", "is an address", "allow_egress_to_cidrs: 169.254.169.254/32"},
        {"10.0.0.5:443", "is an address", "allow_egress_to_cidrs: 10.0.0.5/32"},
        {"::1", "is an address", "allow_egress_to_cidrs: ::1/128"},
        {"[2001:db8::1]:443", "is an address", "allow_egress_to_cidrs: 2001:db8::1/128"},
        {"[zz]", "is an address", "allow_egress_to_cidrs"},
        {"fe80::1%eth0", "is an address", "allow_egress_to_cidrs"},
        {"10.0.0.0/8", "is a range of addresses", "List it in allow_egress_to_cidrs: 10.0.0.0/8"},
        {"2001:db8::/32", "is a range of addresses", "allow_egress_to_cidrs: 2001:db8::/32"},
        {"443", "ends in a number", "host.example:443"},
        {"host.443", "ends in a number", "Write a name"},
        {"1.1.1", "ends in a number", "Write a name"},
        {"010.0.0.1", "ends in a number", "Write a name"},
        {"host.0x7f", "ends in a number", "Write a name"},
        {"*.1.2", "ends in a number", "Write a name"},
        {"localhost", "is a single label", "Write the full name"},
        {"internal", "is a single label", "Write the full name"},
        {"internal:80", "is a single label", "Write the full name"},
        {"*.com", "top-level domain", "two parts after the star"},
        {"*.com:80", "top-level domain", "two parts after the star"},
        {"-a.example", "starts or ends with a hyphen", "Write the host's full name"},
        {"a-.example", "starts or ends with a hyphen", "Write the host's full name"},
        {"a.example-", "starts or ends with a hyphen", "Write the host's full name"},
        {"a_b.example", "has an underscore", "*.host.example"},
        {"host.example.", "ends with a dot", "Write the host alone: host.example"},
        {"host.example..", "two dots in a row", "Write the host's full name"},
        {"host..example", "two dots in a row", "Write the host's full name"},
        {"*..example", "two dots in a row", "Write the host's full name"},
        {".host.example", "starts with a dot", "Write *.host.example for all names below it"},
        {".", "starts with a dot", "Write"},
        {"host.example:", "no port from 1 to 65535", "host.example:8443"},
        {"host.example:0", "no port from 1 to 65535", "host.example:8443"},
        {"host.example:65536", "no port from 1 to 65535", "host.example:8443"},
        {"host.example:0443", "no port from 1 to 65535", "host.example:8443"},
        {"host.example:+1", "no port from 1 to 65535", "host.example:8443"},
        {"host.example:https", "no port from 1 to 65535", "host.example:8443"},
        {"host.example:99999999999999999999999", "no port from 1 to 65535", "host.example:8443"},
        {"host.example:443:80", "more than one colon", "Write host:port"},
        {"ho%73t.example", "character that host names do not have", "Use letters"},
        {"host!.example", "character that host names do not have", "Use letters"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_refused(rows[i].text, rows[i].why, rows[i].remedy);
}

/* @n bytes of labels of at most 63, ending in ".example". */
static void long_name(char *buf, size_t n)
{
    static const char end[] = ".example";
    size_t body = n - (sizeof end - 1);

    for (size_t i = 0; i < body; i++)
        buf[i] = i % 50 == 49 && i + 1 < body ? '.' : 'a';
    memcpy(buf + body, end, sizeof end);
}

static void lengths_have_ceilings(void **state)
{
    char text[300], label[80];

    (void)state;
    memset(label, 'x', 64);
    memcpy(label + 63, ".example", 9);
    assert_int_equal(strlen(rule(label).name.text), 71);
    memcpy(label + 63, "x.example", 10);
    assert_refused(label, "more than 63 characters", "Write");

    long_name(text, HOST_NAME_BYTES_MAX);
    assert_int_equal(strlen(rule(text).text), HOST_NAME_BYTES_MAX);
    memcpy(text + HOST_NAME_BYTES_MAX, ":65535", 7);
    assert_int_equal(rule(text).port, 65535);
    assert_int_equal(strlen(rule(text).text), HOST_RULE_BYTES_MAX);
    long_name(text, HOST_NAME_BYTES_MAX + 1);
    assert_refused(text, "longer than a name can be", "Write");
    text[0] = '*';
    text[1] = '.';
    assert_refused(text, "longer than a name can be", "Write");
    long_name(text, 299);
    assert_refused(text, "longer than a name can be", "Write");
}

static void names_match_by_whole_labels_in_any_case(void **state)
{
    static const struct {
        const char *rule, *asked;
        bool listed;
    } rows[] = {
        {"ok.test", "ok.test", true},
        {"ok.test", "OK.TEST", true},
        {"OK.Test", "ok.tesT", true},
        {"ok.test", "ok.test.", true},
        {"ok.test:80", "ok.test", true},
        {"ok.test", "ok", false},
        {"ok.test", "test", false},
        {"ok.test", "xok.test", false},
        {"ok.test", "a.ok.test", false},
        {"ok.test", "ok.test.no.test", false},
        {"ok.test", "ok.test.corp.test", false},
        {"ok.test", "ok.testx", false},
        {"*.wild.test", "a.wild.test", true},
        {"*.wild.test", "A.WILD.TEST.", true},
        {"*.wild.test", "b.a.wild.test", true},
        {"*.wild.test", "my_bucket.wild.test", true},
        {"*.wild.test", "wild.test", false},
        {"*.wild.test", "wild.test.", false},
        {"*.wild.test", "evilwild.test", false},
        {"*.wild.test", "a.evilwild.test", false},
        {"*.wild.test", ".wild.test", false},
        {"*.wild.test", "*.wild.test", false},
        {"*.wild.test", "a..wild.test", false},
        {"*.wild.test", "-.wild.test", false},
        {"*.wild.test", "a.wild.test.no.test", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (lists(rows[i].rule, rows[i].asked, strlen(rows[i].asked)) != rows[i].listed)
            fail_msg("'%s' by '%s'", rows[i].asked, rows[i].rule);
}

static void a_star_stands_for_few_and_short_labels(void **state)
{
    char name[HOST_NAME_BYTES_MAX + 1];

    (void)state;
    assert_true(lists("*.wild.test", "e.d.c.b.a.wild.test", 19));
    assert_false(lists("*.wild.test", "f.e.d.c.b.a.wild.test", 21));
    for (size_t n = HOST_WILDCARD_BYTES_MAX - 1; n <= HOST_WILDCARD_BYTES_MAX + 1; n++) {
        memset(name, 'a', n);
        name[50] = '.';
        memcpy(name + n, ".wild.test", sizeof ".wild.test");
        assert_int_equal(lists("*.wild.test", name, strlen(name)), n <= HOST_WILDCARD_BYTES_MAX);
        /* A name that is listed itself may be as long as it likes. */
        assert_true(lists(name, name, strlen(name)));
    }
    assert_false(host_wildcard_holds("a", 0));
}

/* Names that somebody after us may read as another: none is a name, so none is compared. */
static void an_odd_name_is_no_name(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } rows[] = {
#define ODD(s) {s, sizeof(s) - 1}
        ODD(""),
        ODD("."),
        ODD(".."),
        ODD("no.test\0.ok.test"),
        ODD("ok.test\0"),
        ODD("ok.test\0.no.test"),
        ODD("no.test%00.ok.test"),
        ODD("no.test#.ok.test"),
        ODD("no.test/.ok.test"),
        ODD("no.test?.ok.test"),
        ODD("no.test\\.ok.test"),
        ODD("user@no.test"),
        ODD("ok.test@no.test"),
        ODD("no.test@ok.test"),
        ODD("ok.test.."),
        ODD(".ok.test"),
        ODD(" ok.test"),
        ODD("ok.test "),
        ODD("ok.test\t"),
        ODD("ok.test\n"),
        ODD("\nok.test"),
        ODD("ok.test:443"),
        ODD("ok.test:443:80"),
        ODD("ok\xE3\x80\x82test"),
        ODD("ok\xEF\xBC\x8Etest"),
        ODD("b\xC3\xBC"
            "cher.test"),
        ODD("ok.t\xC5\xBF"
            "t"),
        ODD("\xEF\xBB\xBFok.test"),
        ODD("ok.te\x7Fst"),
        ODD("0x7f.1"),
        ODD("0x7f000001"),
        ODD("017700000001"),
        ODD("2130706433"),
        ODD("127.0.0.1"),
        ODD("127.0.0.1."),
        ODD("127.1"),
        ODD("ok.test.0x"),
        ODD("ok.test.0xA"),
        ODD("::1"),
        ODD("[::1]"),
        ODD("[::ffff:127.0.0.1]"),
        ODD("-ok.test"),
        ODD("ok-.test"),
    };
    struct host_name name;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (host_name_read(rows[i].text, rows[i].n, &name) != -EINVAL)
            fail_msg("'%s' (row %zu) is read as a name", rows[i].text, i);
}

static void an_over_long_name_is_no_name(void **state)
{
    struct host_name name;
    char text[300];

    (void)state;
    long_name(text, 253);
    assert_int_equal(host_name_read(text, 253, &name), 0);
    assert_int_equal(strlen(name.text), 253);
    text[253] = '.';
    assert_int_equal(host_name_read(text, 254, &name), 0);
    assert_int_equal(strlen(name.text), 253);
    long_name(text, 254);
    assert_int_equal(host_name_read(text, 254, &name), -EINVAL);
    memset(text, 'a', 64);
    memcpy(text + 64, ".ok.test", 9);
    assert_int_equal(host_name_read(text, 72, &name), -EINVAL);
    assert_int_equal(host_name_read(text + 1, 71, &name), 0);
}

static void a_name_is_read_to_its_length_and_no_further(void **state)
{
    struct host_name name;

    (void)state;
    assert_int_equal(host_name_read("ok.test/x", 7, &name), 0);
    assert_string_equal(name.text, "ok.test");
    assert_int_equal(host_name_read("xn--bcher-kva.ok.test", 21, &name), 0);
    assert_string_equal(name.text, "xn--bcher-kva.ok.test");
    assert_int_equal(host_name_read("_http._tcp.host.example", 23, &name), 0);
    assert_string_equal(host_name_of_service(&name), "host.example");
    assert_int_equal(host_name_read("localhost", 9, &name), 0);
    for (size_t n = 1; n < 7; n++) { /* truncated twins are other names */
        assert_int_equal(host_name_read("ok.test", n, &name), 0);
        assert_string_not_equal(name.text, "ok.test");
    }
}

static void rules_are_equal_when_they_allow_the_same(void **state)
{
    struct host_rule a = rule("ok.test"), b = rule("OK.test:443"), c = rule("ok.test:80");
    struct host_rule d = rule("*.ok.test");

    (void)state;
    assert_true(host_rule_equal(&a, &b));
    assert_false(host_rule_equal(&a, &c));
    assert_false(host_rule_equal(&a, &d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_and_a_port_are_taken_as_written),
        cmocka_unit_test(a_wrong_entry_is_refused_with_what_to_write),
        cmocka_unit_test(lengths_have_ceilings),
        cmocka_unit_test(names_match_by_whole_labels_in_any_case),
        cmocka_unit_test(a_star_stands_for_few_and_short_labels),
        cmocka_unit_test(an_odd_name_is_no_name),
        cmocka_unit_test(an_over_long_name_is_no_name),
        cmocka_unit_test(a_name_is_read_to_its_length_and_no_further),
        cmocka_unit_test(rules_are_equal_when_they_allow_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
