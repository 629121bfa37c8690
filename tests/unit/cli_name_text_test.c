/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files for terminals and for JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/name_text.h"
#include "base/guards.h"

static void assert_quoted(const char *name, const char *want)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    name_print_quoted(f, name);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    free(text);
}

static void plain_names_stand_as_they_are(void **state)
{
    (void)state;
    assert_quoted("main.py", "main.py");
    assert_quoted("a-b_c+d:e@f%g,h/i", "a-b_c+d:e@f%g,h/i");
    assert_quoted("-rf", "-rf");
    assert_quoted("\u62a5\u544a.txt", "\u62a5\u544a.txt");
}

static void what_a_shell_would_read_is_quoted(void **state)
{
    (void)state;
    assert_quoted("", "''");
    assert_quoted("a b", "'a b'");
    assert_quoted("$(reboot)", "'$(reboot)'");
    assert_quoted("it's", "'it'\\''s'");
    assert_quoted("*", "'*'");
    assert_quoted("~", "'~'");
    assert_quoted("\u62a5 \u544a", "'\u62a5 \u544a'");
}

static void what_a_terminal_would_act_on_is_escaped(void **state)
{
    (void)state;
    assert_quoted("a\nb\tc", "$'a\\nb\\tc'");
    assert_quoted("\033[31m", "$'\\033[31m'");
    assert_quoted("\177", "$'\\177'");
    assert_quoted("\xc2\x9b"
                  "1m",
                  "$'\\302\\2331m'"); /* a C1 control, as UTF-8 */
    assert_quoted("\xff'\\", "$'\\377\\'\\\\'");
    assert_quoted("\xe2\x82", "$'\\342\\202'"); /* cut */
}

static void assert_member(json_t *o, const char *key, const char *want)
{
    const char *value = json_string_value(json_object_get(o, key));

    if (!want)
        assert_null(value);
    else
        assert_string_equal(value, want);
}

static void bytes_that_json_cannot_hold_come_beside(void **state)
{
    static const struct {
        const char *name, *text, *base64;
    } rows[] = {
        {"a", "a", NULL},
        {"new\nline", "new\nline", NULL},
        {"\u62a5", "\u62a5", NULL},
        {"\xff", "?", "/w=="},
        {"\xff"
         "a",
         "?a", "/2E="},
        {"\xff"
         "ab",
         "?ab", "/2Fi"},
        {"\xff"
         "abc",
         "?abc", "/2FiYw=="},
        {"\xfb\xef\xbe", "???", "++++"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        json_t *o = json_object();

        assert_int_equal(name_set_json(o, "name", rows[i].name), 0);
        assert_member(o, "name", rows[i].text);
        assert_member(o, "name_base64", rows[i].base64);
        json_decref(o);
    }
    json_t *o = json_object();
    assert_int_equal(name_set_json(o, "target", NULL), 0);
    assert_int_equal(json_object_size(o), 0);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names_stand_as_they_are),
        cmocka_unit_test(what_a_shell_would_read_is_quoted),
        cmocka_unit_test(what_a_terminal_would_act_on_is_escaped),
        cmocka_unit_test(bytes_that_json_cannot_hold_come_beside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
