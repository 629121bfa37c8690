/* SPDX-License-Identifier: Apache-2.0 */
/* backend.resolver and backend.proxy as texts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/upstream.h"
#include "base/guards.h"

static void a_name_server_is_an_address_with_or_without_a_port(void **state)
{
    static const struct {
        const char *text, *address;
        uint16_t port;
    } rows[] = {
        {"9.9.9.9", "9.9.9.9", 53},         {"9.9.9.9:5353", "9.9.9.9", 5353},
        {"2620:fe::fe", "2620:fe::fe", 53}, {"[2620:fe::fe]", "2620:fe::fe", 53},
        {"[::1]:65535", "::1", 65535},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        char text[ADDRESS_TEXT_BYTES];
        struct address a;
        uint16_t port;

        assert_int_equal(resolver_parse(rows[i].text, &a, &port, &err), 0);
        address_format(&a, text);
        assert_string_equal(text, rows[i].address);
        assert_int_equal(port, rows[i].port);
    }
}

static void what_is_no_name_server_is_refused(void **state)
{
    static const char *const rows[] = {
        "",           "dns.example", "9.9.9.9:",    "9.9.9.9:0",    "9.9.9.9:65536", "9.9.9",
        "[9.9.9.9]",  "[::1]53",     "[::1]:",      "fe80::1%eth0", "0.0.0.0",       "224.0.0.251",
        "[ff02::fb]", "::",          "9.9.9.9:53 ", "\x1b[2J",      "::ffff:0.0.0.0"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        struct address a;
        uint16_t port = 77;

        if (resolver_parse(rows[i], &a, &port, &err) != -EINVAL)
            fail_msg("'%s' was taken", rows[i]);
        assert_int_equal(port, 77);
        assert_null(strchr(err.message, '\x1b'));
        assert_non_null(strstr(err.remedy, "ADDR:PORT"));
    }
}

static void a_proxy_is_a_url_with_a_host_and_a_port(void **state)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
        enum proxy_scheme scheme;
    } rows[] = {
        {"http://proxy.example:3128", "proxy.example", 3128, PROXY_HTTP},
        {"http://Proxy.Example/", "proxy.example", 80, PROXY_HTTP},
        {"https://proxy", "proxy", 443, PROXY_HTTPS},
        {"socks5://10.0.0.1:9050", "10.0.0.1", 9050, PROXY_SOCKS5},
        {"http://[FD00::1]:8080/", "fd00::1", 8080, PROXY_HTTP},
        {"http://[fd00::1]", "fd00::1", 80, PROXY_HTTP},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        struct proxy_url u;

        if (proxy_parse(rows[i].text, &u, &err) != 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_string_equal(u.host, rows[i].host);
        assert_int_equal(u.port, rows[i].port);
        assert_int_equal(u.scheme, rows[i].scheme);
    }
}

static void a_url_with_a_password_is_refused_and_not_shown(void **state)
{
    static const char *const rows[] = {"http://user:hunter2@proxy.example:3128",
                                       "http://hunter2@proxy.example", "socks5://:hunter2@10.0.0.1",
                                       "http://proxy.example/@hunter2"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        struct proxy_url u;

        assert_int_equal(proxy_parse(rows[i], &u, &err), -EINVAL);
        assert_null(strstr(err.message, "hunter2"));
        assert_non_null(strstr(err.remedy, "proxy_credentials"));
    }
}

static void what_is_no_proxy_is_refused(void **state)
{
    static const char *const rows[] = {"",
                                       "proxy.example:3128",
                                       "ftp://proxy.example",
                                       "http://",
                                       "http:///",
                                       "http://proxy:0",
                                       "http://proxy:65536",
                                       "http://proxy/path",
                                       "http://a b",
                                       "http://proxy:80:80",
                                       "http://[::1",
                                       "http://[::1]x",
                                       "http://1.2.3",
                                       "http://proxy:",
                                       "HTTP://proxy",
                                       "http://proxy?x",
                                       "http://0.0.0.0:80",
                                       "http://224.0.0.1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        struct proxy_url u = {.port = 77};

        if (proxy_parse(rows[i], &u, &err) != -EINVAL)
            fail_msg("'%s' was taken", rows[i]);
        assert_int_equal(u.port, 77);
        assert_non_null(strstr(err.remedy, "http://proxy.example:3128"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_server_is_an_address_with_or_without_a_port),
        cmocka_unit_test(what_is_no_name_server_is_refused),
        cmocka_unit_test(a_proxy_is_a_url_with_a_host_and_a_port),
        cmocka_unit_test(a_url_with_a_password_is_refused_and_not_shown),
        cmocka_unit_test(what_is_no_proxy_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
