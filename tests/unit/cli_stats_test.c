/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes use: the table and the JSON form, of those that answer and of those that do not.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/stats.h"
#include "base/guards.h"

static char first[] = "sb-1", second[] = "sb-2", third[] = "sb-3", called[] = "box\033[2J";

static struct stats some(struct stats_row rows[static 3])
{
    rows[0] = (struct stats_row){.id = first,
                                 .name = called,
                                 .answer = STATS_KNOWN,
                                 .info = {.cpu_us = 1250000, .memory_used = 1536, .processes = 2}};
    rows[1] = (struct stats_row){.id = second, .answer = STATS_GONE};
    rows[2] = (struct stats_row){.id = third, .answer = STATS_SILENT, .info = {.processes = 9}};
    return (struct stats){.rows = rows, .n = 3};
}

static char *printed(const struct stats *s, unsigned width, unsigned rows)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    stats_print(f, s, width, rows, "\n");
    assert_int_equal(fclose(f), 0);
    return text;
}

static void each_has_a_line_that_says_how_it_is(void **state)
{
    struct stats_row rows[3];
    const struct stats s = some(rows);
    _cleanup_free_ char *text = printed(&s, 0, 0);

    (void)state;
    assert_non_null(strstr(text, "    1.25   1.5K "));
    assert_non_null(strstr(text, "\nsb-2    gone\nsb-3    no answer\n"));
    assert_null(strchr(text, '\033'));
}

static void a_terminal_bounds_lines_and_rows(void **state)
{
    struct stats_row rows[3];
    const struct stats s = some(rows);
    _cleanup_free_ char *text = printed(&s, 20, 3);
    size_t lines = 0;

    (void)state;
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1, lines++)
        assert_true(end - p <= 20);
    assert_int_equal(lines, 3);
    assert_non_null(strstr(text, "\nand 2 more\n"));
}

static void without_an_answer_nothing_is_known(void **state)
{
    struct stats_row rows[3];
    const struct stats s = some(rows);
    json_t *o = stats_json(&s), *list = json_object_get(o, "sandboxes");
    const json_t *known = json_array_get(list, 0), *silent = json_array_get(list, 2);

    (void)state;
    assert_int_equal(json_array_size(list), 3);
    assert_true(json_is_true(json_object_get(known, "answered")));
    assert_true(json_real_value(json_object_get(known, "cpu_time")) == 1.25);
    assert_int_equal(json_integer_value(json_object_get(known, "oom_kills")), 0);
    assert_true(json_is_false(json_object_get(silent, "answered")));
    assert_string_equal(json_string_value(json_object_get(silent, "id")), "sb-3");
    assert_true(json_is_null(json_object_get(json_object_get(silent, "processes"), "used")));
    assert_true(json_is_null(json_object_get(silent, "oom_kills")));
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_a_line_that_says_how_it_is),
        cmocka_unit_test(a_terminal_bounds_lines_and_rows),
        cmocka_unit_test(without_an_answer_nothing_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
