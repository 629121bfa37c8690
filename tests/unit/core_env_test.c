/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a command: exactly what was asked for, in a fixed order. */
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
#include "core/limits.h"
#include "core/spec.h"
#include "wire/control.h"
#include "base/guards.h"

static int start(void **state)
{
    static struct spec s;

    *state = &s;
    return spec_init(&s);
}

static int end(void **state)
{
    spec_done(*state);
    return 0;
}

static void add(struct spec *s, const char *entry)
{
    struct error err = ERROR_INIT;

    if (spec_add_env(s, entry, NULL, &err) != 0)
        fail_msg("%s", err.message);
}

static void assert_refused(struct spec *s, const char *text, char *const callers[], int code)
{
    struct error err = ERROR_INIT;

    assert_int_equal(spec_add_env(s, text, callers, &err), -code);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_int_equal(strncmp(err.message, "env: ", 5), 0);
    assert_null(strstr(err.message, "hunter2"));
    assert_null(strstr(err.remedy, "hunter2"));
}

/* The environment of a call is exactly @expected, NULL-terminated, in that order. */
static void assert_built(const struct spec *s, const char *const calls[], size_t n_calls, bool tty,
                         const char *const expected[])
{
    struct string_list env;
    size_t n = 0;

    assert_int_equal(env_build(s, calls, n_calls, tty, &env), 0);
    for (; expected[n]; n++) {
        assert_true(n < env.n);
        assert_string_equal(env.items[n], expected[n]);
    }
    assert_int_equal(env.n, n);
    assert_null(env.items[n]);
    string_list_done(&env);
}

#define PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static void a_command_gets_the_built_in_variables_and_no_other(void **state)
{
    static const char *const expected[] = {
        PATH, "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "LANG=C.UTF-8", NULL};

    assert_built(*state, NULL, 0, false, expected);
}

static void term_is_set_only_with_a_terminal(void **state)
{
    static const char *const expected[] = {
        PATH,           "HOME=/root",          "USER=root", "LOGNAME=root", "SHELL=/bin/sh",
        "LANG=C.UTF-8", "TERM=xterm-256color", NULL};

    assert_built(*state, NULL, 0, true, expected);
}

static void another_user_has_another_home(void **state)
{
    static const char *const expected[] = {
        PATH, "HOME=/home/user", "USER=user", "LOGNAME=user", "SHELL=/bin/sh", "LANG=C.UTF-8",
        NULL};
    struct spec *s = *state;

    s->uid = 1000;
    assert_built(s, NULL, 0, false, expected);
}

static void later_values_replace_earlier_ones_in_their_place(void **state)
{
    static const char *const calls[] = {"B=call", "NEW=1", "LANG=", "NEW=2", "TERM=dumb"};
    static const char *const expected[] = {
        "PATH=/mine",    "HOME=/root", "USER=root", "LOGNAME=root",
        "SHELL=/bin/sh", "LANG=",      "TERM=dumb", "A=1",
        "B=call",        "NEW=2",      NULL};
    struct spec *s = *state;

    add(s, "A=1");
    add(s, "B=spec");
    add(s, "PATH=/mine");
    assert_built(s, calls, ARRAY_SIZE(calls), true, expected);
}

static void a_name_that_begins_like_another_is_not_it(void **state)
{
    struct string_list l = {0};

    (void)state;
    assert_int_equal(env_set(&l, "AB=1"), 0);
    assert_int_equal(env_set(&l, "A=2"), 0);
    assert_int_equal(env_set(&l, "ABC=3"), 0);
    assert_int_equal(l.n, 3);
    assert_string_equal(env_get(l.items, "A"), "2");
    assert_string_equal(env_get(l.items, "AB"), "1");
    assert_string_equal(env_get(l.items, "ABC"), "3");
    assert_null(env_get(l.items, "ABCD"));
    assert_null(env_get(NULL, "A"));
    assert_int_equal(env_set(&l, "A="), 0);
    assert_string_equal(env_get(l.items, "A"), "");
    assert_int_equal(l.n, 3);
    string_list_done(&l);
    string_list_done(&l);
}

static void values_are_bytes(void **state)
{
    struct spec *s = *state;

    add(s, "A=x=y \t\n\xFF'\"$(z)");
    assert_string_equal(s->env.items[0], "A=x=y \t\n\xFF'\"$(z)");
}

static void a_bare_name_takes_the_callers_value(void **state)
{
    char first[] = "TOKEN=hunter2", second[] = "EMPTY=";
    char *const callers[] = {first, second, NULL};
    struct error err = ERROR_INIT;
    struct spec *s = *state;

    assert_int_equal(spec_add_env(s, "TOKEN", callers, &err), 0);
    assert_int_equal(spec_add_env(s, "EMPTY", callers, &err), 0);
    assert_int_equal(s->env.n, 2);
    assert_string_equal(s->env.items[0], "TOKEN=hunter2");
    assert_string_equal(s->env.items[1], "EMPTY=");
    assert_refused(s, "TOKE", callers, ENOENT);
    assert_refused(s, "TOKEN", NULL, ENOENT);
}

static void what_is_no_name_is_refused_without_showing_the_value(void **state)
{
    static const char *const bad[] = {
        "",    "=hunter2",  "1A=hunter2", "A-B=hunter2", "A B=hunter2", "\xC3\xA9=hunter2",
        "A.B", " A=hunter2"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_refused(*state, bad[i], NULL, EINVAL);
    add(*state, "_=1");
    add(*state, "_a9Z=1");
}

static void a_value_that_exec_cannot_carry_is_refused(void **state)
{
    struct spec *s = *state;
    char *entry = malloc(EXEC_STRING_BYTES_MAX + 2);

    assert_non_null(entry);
    memset(entry, 'v', EXEC_STRING_BYTES_MAX + 1);
    entry[0] = 'A';
    entry[1] = '=';
    entry[EXEC_STRING_BYTES_MAX] = '\0';
    add(s, entry);
    entry[EXEC_STRING_BYTES_MAX] = 'v';
    entry[EXEC_STRING_BYTES_MAX + 1] = '\0';
    assert_refused(s, entry, NULL, E2BIG);
    assert_int_equal(s->env.n, 1);
    free(entry);
}

static void the_number_of_variables_has_a_ceiling(void **state)
{
    struct spec *s = *state;
    char entry[32];

    for (int i = 0; i < LIMIT_ENV_NAMES; i++) {
        (void)snprintf(entry, sizeof entry, "V%d=1", i);
        add(s, entry);
    }
    assert_refused(s, "MORE=1", NULL, E2BIG);
}

static void a_full_list_still_takes_new_values_for_its_names(void **state)
{
    struct spec *s = *state;
    char entry[32];

    for (int i = 0; i < LIMIT_ENV_NAMES; i++) {
        (void)snprintf(entry, sizeof entry, "V%d=1", i);
        add(s, entry);
    }
    add(s, "V7=new");
    assert_string_equal(env_get(s->env.items, "V7"), "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_gets_the_built_in_variables_and_no_other, start,
                                        end),
        cmocka_unit_test_setup_teardown(term_is_set_only_with_a_terminal, start, end),
        cmocka_unit_test_setup_teardown(another_user_has_another_home, start, end),
        cmocka_unit_test_setup_teardown(later_values_replace_earlier_ones_in_their_place, start,
                                        end),
        cmocka_unit_test(a_name_that_begins_like_another_is_not_it),
        cmocka_unit_test_setup_teardown(values_are_bytes, start, end),
        cmocka_unit_test_setup_teardown(a_bare_name_takes_the_callers_value, start, end),
        cmocka_unit_test_setup_teardown(what_is_no_name_is_refused_without_showing_the_value, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_value_that_exec_cannot_carry_is_refused, start, end),
        cmocka_unit_test_setup_teardown(the_number_of_variables_has_a_ceiling, start, end),
        cmocka_unit_test_setup_teardown(a_full_list_still_takes_new_values_for_its_names, start,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
