/* SPDX-License-Identifier: Apache-2.0 */
/* The resolv.conf of a sandbox: who is asked for names when, and what is left out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "local/name_servers.h"
#include "base/guards.h"

#define THE_POOL                                                                                   \
    {                                                                                              \
        .v4 = {.base = {.family = ADDRESS_V4, .bytes = {198, 18}}, .prefix = 16}, .v6 = {          \
            .base = {.family = ADDRESS_V6, .bytes = {0xFD}},                                       \
            .prefix = 64                                                                           \
        }                                                                                          \
    }
static const struct policy_pool pool = THE_POOL;

/* 10.0.0.0/8 and 2001:db8::/32, by address alone. */
static struct policy_interval v4[] = {{{10}, {10, 255, 255, 255}}};
static struct policy_interval v6[] = {
    {{0x20, 1, 0x0D, 0xB8}, {0x20, 1, 0x0D, 0xB8, [4 ... 15] = 255}}};
static const struct policy_reach ranges = {
    .pool = THE_POOL, .v4 = v4, .v6 = v6, .n_v4 = 1, .n_v6 = 1};
static const struct policy_reach names = {.pool = THE_POOL, .names = true, .v4 = v4, .n_v4 = 1};
static const struct policy_reach nothing = {.pool = THE_POOL};

#define OPEN   "options timeout:5 attempts:2\n"
#define SEALED "options timeout:1 attempts:1\n"
#define POOL   "nameserver 198.18.0.1\n"

static void each_kind_of_network_has_its_name_servers(void **state)
{
    static const struct {
        const struct policy_pool *pool;
        const struct policy_reach *reach;
        const char *resolver, *host, *expected;
    } rows[] = {
        {NULL, NULL, NULL, NULL, "nameserver 127.0.0.1\n" SEALED},
        {&pool, NULL, NULL, NULL, POOL SEALED},
        {&pool, NULL, "10.0.0.1", "nameserver 10.0.0.1\n", POOL SEALED},
        {&pool, &nothing, NULL, "nameserver 10.0.0.1\n", POOL SEALED}, /* published ports alone */
        {&pool, &names, "10.0.0.1", "nameserver 10.0.0.1\n", POOL OPEN},
        {&pool, &ranges, NULL, NULL, POOL OPEN},
        {&pool, &ranges, NULL, "", POOL OPEN},
        {&pool, &ranges, NULL, "nameserver 127.0.0.53\nnameserver 192.0.2.1\n", POOL OPEN},
        {&pool, &ranges, NULL, "nameserver 192.0.2.1\nnameserver 10.0.0.1\n",
         "nameserver 10.0.0.1\n" OPEN},
        {&pool, &ranges, NULL,
         "# c\n;nameserver 10.9.9.9\nsearch a.b\nnameserver\t10.0.0.1 # x\nnameserver  "
         "2001:DB8::1\r\nnameserver10.0.0.2\nnameservers 10.0.0.3\n nameserver 10.0.0.4\n"
         "nameserver fe80::1%eth0\nnameserver 10.0.0.5",
         "nameserver 10.0.0.1\nnameserver 2001:db8::1\nnameserver 10.0.0.5\n" OPEN},
        {&pool, &ranges, NULL,
         "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n",
         "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n" OPEN},
        {&pool, &ranges, NULL, "nameserver \nnameserver\n\nnameserver", POOL OPEN},
        {&pool, &ranges, "10.0.0.7", "nameserver 10.0.0.1\n", "nameserver 10.0.0.7\n" OPEN},
        {&pool, &ranges, "[2001:db8::7]:53", NULL, "nameserver 2001:db8::7\n" OPEN},
        {&pool, &ranges, "10.0.0.7:5353", "nameserver 10.0.0.1\n", POOL OPEN},
        {&pool, &ranges, "192.0.2.7", "nameserver 10.0.0.1\n", POOL OPEN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char buf[NAME_SERVERS_TEXT_BYTES];

        name_servers_text(rows[i].pool, rows[i].reach, rows[i].resolver, rows[i].host, buf);
        if (strcmp(buf, rows[i].expected) != 0)
            fail_msg("row %zu: \"%s\" is not \"%s\"", i, buf, rows[i].expected);
    }
}

static void the_hosts_file_is_wanted_only_where_it_matters(void **state)
{
    (void)state;
    assert_true(name_servers_wants_host(&ranges, NULL));
    assert_false(name_servers_wants_host(&ranges, "10.0.0.1"));
    assert_false(name_servers_wants_host(&names, NULL));
    assert_false(name_servers_wants_host(&nothing, NULL));
    assert_false(name_servers_wants_host(NULL, NULL));
}

static void the_longest_list_fits(void **state)
{
    static struct policy_interval all[] = {{{0}, {[0 ... 15] = 255}}};
    const struct policy_reach r = {.pool = pool, .v6 = all, .n_v6 = 1};
    const char *line = "nameserver 1111:2222:3333:4444:5555:6666:7777:8888\n";
    char host[256], expected[512], buf[NAME_SERVERS_TEXT_BYTES];

    (void)state;
    (void)snprintf(host, sizeof host, "%s%s%s", line, line, line);
    (void)snprintf(expected, sizeof expected, "%s" OPEN, host);
    name_servers_text(&pool, &r, NULL, host, buf);
    assert_string_equal(buf, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_network_has_its_name_servers),
        cmocka_unit_test(the_hosts_file_is_wanted_only_where_it_matters),
        cmocka_unit_test(the_longest_list_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
