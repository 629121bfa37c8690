/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations: the forms that are read, and what is refused for being read in two ways. */
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

static void a_destination_has_four_forms(void **state)
{
    static const struct {
        const char *text, *name, *address;
        unsigned port;
    } rows[] = {
        {"ok.test:443", "ok.test", NULL, 443},
        {"OK.Test.:22", "ok.test", NULL, 22},
        {"ok:80", "ok", NULL, 80},
        {"https://ok.test", "ok.test", NULL, 443},
        {"HTTPS://OK.TEST/", "ok.test", NULL, 443},
        {"http://ok.test/a?b#c", "ok.test", NULL, 80},
        {"https://ok.test:8443/@scope/%41", "ok.test", NULL, 8443},
        {"wss://ok.test/", "ok.test", NULL, 443},
        {"ssh://ok.test:22", "ok.test", NULL, 22},
        {"203.0.113.7:65535", NULL, "203.0.113.7", 65535},
        {"http://203.0.113.7/", NULL, "203.0.113.7", 80},
        {"[2001:db8::1]:53", NULL, "2001:db8::1", 53},
        {"https://[2001:DB8::1]/", NULL, "2001:db8::1", 443},
        {"[fd00::1]:22", NULL, "fd00::1", 22},
        {"[::ffff:127.0.0.1]:80", NULL, "127.0.0.1", 80},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct policy_destination to;
        struct error err = ERROR_INIT;
        char text[ADDRESS_TEXT_BYTES];

        if (policy_destination_parse(rows[i].text, strlen(rows[i].text), &to, &err) != 0)
            fail_msg("'%s' was refused: %s", rows[i].text, err.message);
        assert_int_equal(to.port, rows[i].port);
        assert_int_equal(to.by_name, rows[i].name != NULL);
        if (rows[i].name) {
            assert_string_equal(to.name.text, rows[i].name);
        } else {
            address_format(&to.address, text);
            assert_string_equal(text, rows[i].address);
        }
    }
}

static void a_destination_that_reads_two_ways_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        const char *why;
    } rows[] = {
#define ROW(s, why) {s, sizeof(s) - 1, why}
        ROW("", "is empty"),
        ROW("ok.test", "has no port"),
        ROW("203.0.113.7", "has no port"),
        ROW("[2001:db8::1]", "has no port"),
        ROW("ssh://ok.test", "has no port"),
        ROW(":443", "has no host"),
        ROW("https:///x", "has no host"),
        ROW("https://:443/", "has no host"),
        ROW("://ok.test:1", "no scheme"),
        ROW("a b://ok.test:1", "blank"),
        ROW("1x://ok.test:1", "no scheme"),
        ROW("ok.test:", "no port from 1 to 65535"),
        ROW("ok.test:0", "no port from 1 to 65535"),
        ROW("ok.test:65536", "no port from 1 to 65535"),
        ROW("ok.test:0443", "no port from 1 to 65535"),
        ROW("ok.test:443x", "no port from 1 to 65535"),
        ROW("ok.test:x443", "no port from 1 to 65535"),
        ROW("ok.test:+443", "no port from 1 to 65535"),
        ROW("ok.test:999999999999999999999", "no port from 1 to 65535"),
        ROW("https://ok.test:/", "no port from 1 to 65535"),
        ROW("ok.test/x", "path but no scheme"),
        ROW("ok.test:443/x", "path but no scheme"),
        ROW("ok.test:443:80", "more than one colon"),
        ROW("2001:db8::1", "without brackets"),
        ROW("https://2001:db8::1/", "without brackets"),
        ROW("[203.0.113.7]:80", "no IPv6 address"),
        ROW("[]:80", "no IPv6 address"),
        ROW("[[::1]]:80", "no IPv6 address"),
        ROW("[::1:80", "no IPv6 address"),
        ROW("[ok.test]:80", "no IPv6 address"),
        ROW("[::1]80", "between its address and its port"),
        ROW("[::1].ok.test:80", "between its address and its port"),
        ROW("[fe80::1%eth0]:80", "'%' in its host"),
        ROW("user@no.test:443", "user name"),
        ROW("https://user@no.test/", "user name"),
        ROW("https://ok.test@no.test/", "user name"),
        ROW("https://ok.test:443@no.test/", "user name"),
        ROW("ok.test@no.test:443", "user name"),
        ROW("no.test\0.ok.test:443", "control character"),
        ROW("https://ok.test/\0", "control character"),
        ROW("https://ok.test/\r\nx", "control character"),
        ROW("ok.test\t:443", "blank"),
        ROW(" ok.test:443", "blank"),
        ROW("https://ok.test/a b", "blank"),
        ROW("no.test%00.ok.test:443", "'%' in its host"),
        ROW("https://no.test%2f.ok.test/", "'%' in its host"),
        ROW("no.test#.ok.test:443", "no '/'"),
        ROW("https://no.test#.ok.test/", "no '/'"),
        ROW("https://ok.test?x", "no '/'"),
        ROW("https://no.test\\.ok.test/", "backslash"),
        ROW("https://no.test\\@ok.test/", "backslash"),
        ROW("no.test/.ok.test", "path but no scheme"),
        ROW("ok\xE3\x80\x82test:443", "beyond ASCII"),
        ROW("https://ok.test/\xC3\xBC", "beyond ASCII"),
        ROW("ok.test..:443", "no host name"),
        ROW(".ok.test:443", "no host name"),
        ROW("a,b.test:443", "no host name"),
        ROW("*.ok.test:443", "has a star"),
        ROW("0x7f.1:80", "short or numeric"),
        ROW("017700000001:80", "octal"),
        ROW("2130706433:80", "short or numeric"),
        ROW("http://2130706433/", "short or numeric"),
        ROW("127.1:80", "short or numeric"),
        ROW("127.0.0.1.:80", "no host name"),
        ROW("1.2.3.4.5:80", "no host name"),
        ROW("1.2.3.256:80", "above 255"),
        ROW("[::ffff:127.1]:80", "short or numeric"),
        ROW("https:ok.test", "no port from 1 to 65535"),
        ROW("https:/ok.test", "path but no scheme"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct policy_destination to = {.port = 7};
        struct error err = ERROR_INIT;

        if (policy_destination_parse(rows[i].text, rows[i].n, &to, &err) != -EINVAL)
            fail_msg("'%s' was taken", rows[i].text);
        assert_int_equal(to.port, 7); /* not written */
        assert_int_equal(err.cls, ERROR_USAGE);
        if (!strstr(err.message, rows[i].why))
            fail_msg("'%s' gave: %s", rows[i].text, err.message);
        assert_true(err.remedy[0] >= 'A' && err.remedy[0] <= 'Z');
    }
}

static void a_destination_is_read_to_its_length_and_no_further(void **state)
{
    const char text[] = "https://ok.test:8443/";
    struct policy_destination to;

    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++) { /* truncated twins */
        struct error err = ERROR_INIT;
        char *exact = malloc(n + 1);

        assert_non_null(exact);
        memcpy(exact, text, n);
        exact[n] = 'x'; /* no terminator behind it */
        int r = policy_destination_parse(exact, n, &to, &err);
        free(exact);
        if (r == 0)
            assert_true(to.port != 8443 || n >= 20);
        else
            assert_int_equal(err.code, EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_destination_has_four_forms),
        cmocka_unit_test(a_destination_that_reads_two_ways_is_refused),
        cmocka_unit_test(a_destination_is_read_to_its_length_and_no_further),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
