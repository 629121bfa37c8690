/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is told of refused attempts and of a changed policy. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "client/denials.h"
#include "toolset/refusals.h"
#include "base/guards.h"

static int start(void **state)
{
    static struct atoll_toolset t;

    t = (struct atoll_toolset){.mask = mask_new()};
    *state = &t;
    return t.mask ? mask_add(t.mask, "hunter22", 8) : -1;
}

static int end(void **state)
{
    struct atoll_toolset *t = *state;

    mask_free(t->mask);
    return 0;
}

static struct atoll_denial attempt(const char *protocol, const char *name, const char *address,
                                   uint32_t port)
{
    return (struct atoll_denial){.protocol = protocol,
                                 .name = name,
                                 .address = address,
                                 .port = port,
                                 .rule = "no rule",
                                 .reason = "nothing lists it",
                                 .repeated = 2};
}

static void assert_note(const struct atoll_toolset *t, const struct atoll_exit *x, const char *text)
{
    _cleanup_free_ char *note = NULL;

    assert_int_equal(refusals_note(t, x, &note), 0);
    if (text)
        assert_string_equal(note, text);
    else
        assert_null(note);
}

static void each_place_is_named_once(void **state)
{
    const struct atoll_denial list[] = {
        attempt("dns", "foo.test", "", 0),
        attempt("tcp", "example.net", "198.18.0.9", 443),
        attempt("tls", "example.net", "198.18.0.9", 443),
        attempt("udp", "", "2001:db8::1", 53),
        attempt("dns", "foo.test", "", 0),
    };
    const struct atoll_exit x = {.denials = list, .n_denials = ARRAY_SIZE(list)};

    assert_note(*state, &x,
                "[refused by the network policy: dns foo.test, tcp example.net:443, "
                "udp [2001:db8::1]:53. Trying again does not help.]");
}

static void nothing_refused_says_nothing(void **state)
{
    const struct atoll_exit x = {.status = 1};

    assert_note(*state, &x, NULL);
    assert_note(*state, NULL, NULL);
}

static void many_are_counted(void **state)
{
    struct atoll_denial list[13];
    char names[13][16];

    for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu", i);
        list[i] = attempt("tcp", names[i], "", 1);
    }
    const struct atoll_exit x = {
        .denials = list, .n_denials = ARRAY_SIZE(list), .more_denials = 100};
    assert_note(*state, &x,
                "[refused by the network policy: tcp h0:1, tcp h1:1, tcp h2:1, tcp h3:1, tcp h4:1, "
                "tcp h5:1, tcp h6:1, tcp h7:1, tcp h8:1, tcp h9:1 and 103 more. Trying again does "
                "not help.]");
}

static void a_name_that_holds_a_secret_is_masked(void **state)
{
    const struct atoll_denial list[] = {attempt("dns", "hunter22.evil.test", "", 0)};
    const struct atoll_exit x = {.denials = list, .n_denials = 1};
    _cleanup_free_ char *note = NULL;

    assert_int_equal(refusals_note(*state, &x, &note), 0);
    assert_null(strstr(note, "hunter22"));
    assert_non_null(strstr(note, ".evil.test"));
    json_t *json = refusals_json(*state, &x);
    _cleanup_free_ char *text = json_dumps(json, 0);
    assert_null(strstr(text, "hunter22"));
    assert_non_null(strstr(text, "\"reason\": \"nothing lists it\""));
    json_decref(json);
}

static void a_name_cannot_end_the_note(void **state)
{
    const struct atoll_denial list[] = {attempt("dns", "a\n\x1b[2Jb\xff", "", 0)};
    const struct atoll_exit x = {.denials = list, .n_denials = 1};

    assert_note(*state, &x,
                "[refused by the network policy: dns a??[2Jb?. Trying again does not help.]");
}

static void assert_policy(const struct atoll_toolset *t, const char *stamp, const char *text)
{
    _cleanup_free_ char *note = NULL;

    assert_int_equal(refusals_policy_note(t, stamp, &note), 0);
    assert_string_equal(note, text);
}

static void a_changed_policy_is_told_in_one_line(void **state)
{
    assert_policy(*state,
                  "{\"allow_egress_to\":[\"example.org\",\"git.test:22\"],"
                  "\"allow_egress_to_cidrs\":[\"192.0.2.0/24\"],\"block_network\":true}",
                  "[the network policy was changed; this can be reached now, and nothing else: "
                  "example.org, git.test:22, 192.0.2.0/24]");
    assert_policy(*state,
                  "{\"allow_egress_to\":[],\"allow_egress_to_cidrs\":[],\"block_network\":true}",
                  "[the network policy was changed; nothing can be reached any more]");
    assert_policy(*state, "{\"later\":1}",
                  "[the network policy was changed; test what you need before you rely on it]");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, start, end)
    const struct CMUnitTest tests[] = {
        TEST(each_place_is_named_once),   TEST(nothing_refused_says_nothing),
        TEST(many_are_counted),           TEST(a_name_that_holds_a_secret_is_masked),
        TEST(a_name_cannot_end_the_note), TEST(a_changed_policy_is_told_in_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
