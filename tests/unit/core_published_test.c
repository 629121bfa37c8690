/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of backend.publish. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/published.h"
#include "base/guards.h"

static void an_entry_is_read_and_written(void **state)
{
    static const char *const rows[][2] = {
        {"8080:80", "127.0.0.1:8080:80"},
        {"0:80", "127.0.0.1:0:80"},
        {"0.0.0.0:8080:80", "0.0.0.0:8080:80"},
        {"192.0.2.7:1:65535", "192.0.2.7:1:65535"},
        {"[::1]:8080:80", "[::1]:8080:80"},
        {"[::]:0:1", "[::]:0:1"},
        {"[2001:DB8:0::1]:8:9", "[2001:db8::1]:8:9"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[PUBLISHED_TEXT_BYTES];
        struct error err = ERROR_INIT;
        struct published p, again;

        if (published_parse(rows[i][0], &p, &err) != 0)
            fail_msg("%s", err.message);
        published_format(&p, text);
        assert_string_equal(text, rows[i][1]);
        assert_int_equal(published_parse(text, &again, &err), 0);
        assert_true(address_equal(&again.address, &p.address));
        assert_int_equal(again.host_port, p.host_port);
        assert_int_equal(again.port, p.port);
    }
}

static void what_is_no_entry_is_refused_with_the_form(void **state)
{
    static const char *const rows[] = {
        "",
        "80",
        ":80",
        "80:",
        "8080:0",
        "65536:80",
        "8080:65536",
        "::1:8080:80",
        "[::1]8080:80",
        "[127.0.0.1]:8080:80",
        "host:80:80",
        "8080:80/udp",
        "-1:80",
        "8080:80:",
        "127.0.0.1:80",
        " 8080:80",
        "010.0.0.1:1:1",
        "[::1]:80",
        "[::1:80:80",
        "1:2:3:4",
        "\x1b:8080:80",
        "224.0.0.1:80:80",
        "255.255.255.255:1:1",
        "[ff02::1]:1:1",
        "[]:1:1",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        struct published p = {.port = 77};

        if (published_parse(rows[i], &p, &err) != -EINVAL)
            fail_msg("'%s' was taken", rows[i]);
        assert_int_equal(p.port, 77); /* not written */
        assert_null(strchr(err.message, '\x1b'));
        assert_non_null(strstr(err.remedy, "[ADDR:]HOSTPORT:PORT"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_read_and_written),
        cmocka_unit_test(what_is_no_entry_is_refused_with_the_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
