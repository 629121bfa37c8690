/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what is wrong: its order, its words, and what fits into one error. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/problems.h"
#include "base/guards.h"

enum { MESSAGE_BYTES = sizeof((struct error *)0)->message };

static const struct position nowhere;

static struct position at(unsigned line, unsigned column)
{
    return (struct position){line, column};
}

static void a_problem_is_copied(void **state)
{
    char field[] = "spec.env", remedy[] = "Do better", word[] = "bad";
    struct problems p = {0};

    (void)state;
    assert_false(problems_any(&p));
    problems_add(&p, field, at(4, 9), remedy, "it is %s %d", word, 7);
    memset(field, 'x', sizeof field - 1);
    memset(remedy, 'x', sizeof remedy - 1);
    problems_add(&p, "", nowhere, NULL, "second");
    assert_true(problems_any(&p));
    assert_int_equal(p.n, 2);
    assert_string_equal(p.items[0].field, "spec.env");
    assert_string_equal(p.items[0].remedy, "Do better");
    assert_string_equal(p.items[0].message, "it is bad 7");
    assert_int_equal(p.items[0].at.line, 4);
    assert_int_equal(p.items[0].at.column, 9);
    assert_null(p.items[1].remedy);
    problems_done(&p);
    assert_false(problems_any(&p));
    problems_done(&p); /* harmless again */
}

static void sorting_is_by_place_and_keeps_the_rest_in_order(void **state)
{
    static const struct {
        struct position at;
        const char *name;
    } found[] = {{{0, 0}, "no-1"}, {{3, 1}, "c"},  {{1, 9}, "b"},    {{0, 0}, "no-2"},
                 {{1, 2}, "a"},    {{3, 1}, "c2"}, {{0, 7}, "no-3"}, {{2, 1}, "b2"}};
    static const char *const wanted[] = {"a", "b", "b2", "c", "c2", "no-1", "no-2", "no-3"};
    struct problems p = {0};

    (void)state;
    problems_sort(&p); /* of none */
    for (size_t i = 0; i < ARRAY_SIZE(found); i++)
        problems_add(&p, found[i].name, found[i].at, NULL, "m");
    problems_sort(&p);
    assert_int_equal(p.n, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < p.n; i++)
        assert_string_equal(p.items[i].field, wanted[i]);
    problems_done(&p);
}

static void a_problem_is_a_line(void **state)
{
    struct problems p = {0};
    char buf[256], small[12];

    (void)state;
    problems_add(&p, "spec.env", at(4, 9), "Do better", "it is bad");
    problem_format(&p.items[0], "job.yaml", buf, sizeof buf);
    assert_string_equal(buf, "job.yaml:4:9: spec.env: it is bad. Do better.");
    problem_format(&p.items[0], NULL, buf, sizeof buf);
    assert_string_equal(buf, "spec.env: it is bad. Do better.");
    problem_format(&p.items[0], "job.yaml", small, sizeof small);
    assert_string_equal(small, "job.yaml:4:");
    problems_add(&p, "", nowhere, NULL, "a\n\033[2J");
    problem_format(&p.items[1], "a\x07.yaml", buf, sizeof buf);
    assert_string_equal(buf, "a?.yaml: a??[2J.");
    problems_done(&p);
}

static void no_problem_is_no_error(void **state)
{
    struct problems p = {0};
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(problems_error(&p, "f", &err), 0);
    assert_int_equal(err.code, 0);
}

static void one_problem_becomes_the_error_itself(void **state)
{
    struct problems p = {0};
    struct error err = ERROR_INIT;

    (void)state;
    problems_add(&p, "spec.env", at(4, 9), "Do better", "it is 100%% bad");
    assert_int_equal(problems_error(&p, "job.yaml", &err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_string_equal(err.message, "job.yaml:4:9: spec.env: it is 100% bad");
    assert_string_equal(err.remedy, "Do better");
    err = (struct error)ERROR_INIT;
    assert_int_equal(problems_error(&p, NULL, &err), -EINVAL);
    assert_string_equal(err.message, "spec.env: it is 100% bad");
    problems_done(&p);
}

static void several_are_joined_as_long_as_they_fit(void **state)
{
    struct problems p = {0};
    struct error err = ERROR_INIT;

    (void)state;
    problems_add(&p, "a", nowhere, "Do one thing", "one");
    problems_add(&p, "b", nowhere, "Do another", "two");
    assert_int_equal(problems_error(&p, NULL, &err), -EINVAL);
    assert_string_equal(err.message, "a: one; b: two");
    assert_string_equal(err.remedy, ""); /* there is none for all */
    problems_done(&p);
}

/* The number in "; and N more" at the end of @text, or 0. */
static size_t counted(const char *text)
{
    const char *p = strstr(text, "; and ");
    size_t n = 0;

    for (p = p ? p + 6 : ""; *p >= '0' && *p <= '9'; p++)
        n = 10 * n + (size_t)(*p - '0');
    assert_string_equal(p, n > 0 ? " more" : "");
    return n;
}

static size_t count(const char *text, char c)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == c;
    return n;
}

static void those_that_do_not_fit_are_counted(void **state)
{
    struct problems p = {0};

    (void)state;
    for (size_t n = 1; n <= 300; n++) {
        struct error err = ERROR_INIT;

        problems_add(&p, "field", nowhere, NULL, "#%zu%.*s", n, (int)(n % 60),
                     "............................................................");
        assert_int_equal(problems_error(&p, NULL, &err), -EINVAL);
        assert_int_equal(count(err.message, '#') + counted(err.message), n);
        assert_true(strlen(err.message) < MESSAGE_BYTES);
    }
    problems_done(&p);
}

static void the_last_one_needs_no_room_for_a_count(void **state)
{
    char text[MESSAGE_BYTES];

    (void)state;
    /* "a: m; b: TEXT" is exactly as long as an error's text may be, or one byte longer. */
    for (size_t more = 0; more < 2; more++) {
        struct problems p = {0};
        struct error err = ERROR_INIT;

        memset(text, 'x', sizeof text);
        text[MESSAGE_BYTES - 1 - strlen("a: m; b: ") + more] = '\0';
        problems_add(&p, "a", nowhere, NULL, "m");
        problems_add(&p, "b", nowhere, NULL, "%s", text);
        assert_int_equal(problems_error(&p, NULL, &err), -EINVAL);
        if (more == 0)
            assert_int_equal(strlen(err.message), MESSAGE_BYTES - 1);
        else
            assert_string_equal(err.message, "a: m; and 1 more");
        problems_done(&p);
    }
}

static void the_rest_is_counted_behind_a_long_one_too(void **state)
{
    static char text[3000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    for (size_t len = 400; len < sizeof text; len += len < 600 ? 1 : 97) {
        struct problems p = {0};
        struct error err = ERROR_INIT;

        problems_add(&p, "#", nowhere, NULL, "%.*s", (int)len, text);
        for (int i = 0; i < 1000; i++)
            problems_add(&p, "#", nowhere, NULL, "%s", text);
        assert_int_equal(problems_error(&p, NULL, &err), -EINVAL);
        assert_int_equal(counted(err.message), 1000);
        problems_done(&p);
    }
}

static void a_lack_of_memory_is_a_refusal(void **state)
{
    struct problems p = {.no_memory = true};
    struct error err = ERROR_INIT;

    (void)state;
    assert_true(problems_any(&p));
    assert_int_equal(problems_error(&p, NULL, &err), -ENOMEM);
    assert_int_equal(err.cls, ERROR_TERMINAL);
    err = (struct error)ERROR_INIT;
    problems_add(&p, "a", nowhere, NULL, "one"); /* what could be kept is told */
    assert_int_equal(problems_error(&p, NULL, &err), -EINVAL);
    assert_string_equal(err.message, "a: one");
    problems_done(&p);
    assert_false(problems_any(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_problem_is_copied),
        cmocka_unit_test(sorting_is_by_place_and_keeps_the_rest_in_order),
        cmocka_unit_test(a_problem_is_a_line),
        cmocka_unit_test(no_problem_is_no_error),
        cmocka_unit_test(one_problem_becomes_the_error_itself),
        cmocka_unit_test(several_are_joined_as_long_as_they_fit),
        cmocka_unit_test(those_that_do_not_fit_are_counted),
        cmocka_unit_test(the_last_one_needs_no_room_for_a_count),
        cmocka_unit_test(the_rest_is_counted_behind_a_long_one_too),
        cmocka_unit_test(a_lack_of_memory_is_a_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
