/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand in the place of ID. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/copy.h"
#include "cli/handle.h"
#include "base/guards.h"

static void a_name_is_plain_and_means_nothing_else(void **state)
{
    static const char *const good[] = {"a", "box", "Box.2_b-c", "0", "sb", "sbx-1", "modal2"};
    static const char *const bad[] = {"",    "-a",  ".a", "_a",    "a b",   "a/b",
                                      "a:b", "a\n", "ä",  "modal", "local", "sb-x"};
    char longest[65];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(handle_is_name(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(handle_is_name(bad[i]));
    memset(longest, 'x', sizeof longest);
    longest[63] = '\0';
    assert_true(handle_is_name(longest));
    longest[63] = 'x';
    longest[64] = '\0';
    assert_false(handle_is_name(longest));
}

static void what_stands_before_a_colon_may_mean_a_sandbox(void **state)
{
    (void)state;
    assert_true(handle_may_mean("C:x", 1));
    assert_true(handle_may_mean("sb-abc:x", 6));
    assert_true(handle_may_mean("modal:x", 5));
    assert_false(handle_may_mean(":x", 0));
    assert_false(handle_may_mean("./a:x", 3));
    assert_false(handle_may_mean("../x", 2));
    assert_false(handle_may_mean("a b:x", 3));
}

static void ids_that_are_whole_are_not_looked_for(void **state)
{
    static const char id[] = "sb-abcdefghijklmnopqrstuvwxyz";
    struct error err = ERROR_INIT;
    char *found = NULL;

    (void)state;
    assert_int_equal(handle_find(id, &found, &err), 0);
    assert_string_equal(found, id);
    free(found);
    assert_int_equal(handle_find("local:sb-abcdefghijklmnopqrstuvwxyz", &found, &err), 0);
    assert_string_equal(found, id);
    free(found);
}

static void what_cannot_be_an_id_is_refused(void **state)
{
    static const struct {
        const char *typed;
        int code;
        const char *word;
    } rows[] = {
        {"", ENOENT, "no sandbox is called"},
        {"/etc", ENOENT, "no sandbox is called"},
        {"a b", ENOENT, "no sandbox is called"},
        {"Up:x", ENOENT, "no sandbox is called"},
        {"modal:x", ENOSYS, "modal"},
        {"nobody-has-this:x", ENOENT, "nobody-has-this"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        char *found = NULL;

        assert_int_equal(handle_find(rows[i].typed, &found, &err), -rows[i].code);
        assert_non_null(strstr(err.message, rows[i].word));
        assert_true(err.remedy[0] != '\0');
        assert_null(found);
    }
}

static void the_last_part_of_a_path_is_its_name(void **state)
{
    static const struct {
        const char *path, *want;
    } rows[] = {
        {"a", "a"},     {"a/", "a"},    {"/a/b", "b"}, {"./b//", "b"}, {"...", "..."},
        {"a/.b", ".b"}, {"", NULL},     {"/", NULL},   {"//", NULL},   {".", NULL},
        {"..", NULL},   {"a/..", NULL}, {"a/.", NULL}, {"a/./", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char *name = copy_name(rows[i].path);

        if (rows[i].want)
            assert_string_equal(name, rows[i].want);
        else
            assert_null(name);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_plain_and_means_nothing_else),
        cmocka_unit_test(what_stands_before_a_colon_may_mean_a_sandbox),
        cmocka_unit_test(ids_that_are_whole_are_not_looked_for),
        cmocka_unit_test(what_cannot_be_an_id_is_refused),
        cmocka_unit_test(the_last_part_of_a_path_is_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
