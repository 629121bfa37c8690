/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of exports: what is judged before anything is spent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "export/export.h"
#include "base/guards.h"

static struct error check(const char *const entries[])
{
    struct string_list list = {0};
    struct error err = ERROR_INIT;

    for (size_t i = 0; entries[i]; i++)
        assert_int_equal(string_list_add(&list, entries[i]), 0);
    int r = export_check(&list, &err);
    assert_int_equal(r, -err.code);
    if (r < 0) {
        assert_int_equal(r, -EINVAL);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_true(err.remedy[0] != '\0' || strstr(err.message, "nothing is named") ||
                    strstr(err.message, "no '='"));
    }
    string_list_done(&list);
    return err;
}

static void good_entries_pass(void **state)
{
    static const char *const good[][3] = {
        {"f=file:///a", NULL},
        {"a=b=file:///a=b", NULL}, /* the URL begins where one can begin */
        {"d/*=file:///srv/d", "f=file://localhost/srv/f", NULL},
        {"f=file:///a", "f=file:///b", NULL},
        {"f=file:///ab", "g=file:///a", NULL},
        {"f=file:///{id}/{time}", "g=file:///{id}/g", NULL},
        {"f=file:///%7Bx%7D", NULL},
        {"{f}=file:///a", NULL}, /* a path is no URL */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(check(good[i]).code, 0);
}

static void bad_entries_are_named(void **state)
{
    static const struct {
        const char *entries[3];
        const char *word;
    } bad[] = {
        {{NULL}, "nothing"},
        {{"f", NULL}, "="},
        {{"=file:///a", NULL}, "no path"},
        {{"f=", NULL}, "'f'"},
        {{"f=None", NULL}, "'f'"},
        {{"f=/a/b", NULL}, "'f'"},
        {{"f=s3://bucket/key", NULL}, "'f'"},
        {{"a/**=file:///a", NULL}, "**"},
        {{"f=file:///a", "g=file:///a", NULL}, "'g'"},
        {{"f=file:///a", "g=file:///a/b", NULL}, "'g'"},
        {{"f=file:///a/b", "g=file:///a", NULL}, "'g'"},
        {{"f=file:///a", "g=file:///%61", NULL}, "'g'"},
        {{"f=file:///{id}", "g=file:///{id}", NULL}, "'g'"},
        {{"f=file:///{id}/a", "g=file:///{id}", NULL}, "'g'"},
        {{"f=file:///{run}", NULL}, "the export of 'f': the destination has a placeholder"},
        {{"f=file:///{id", NULL}, "'f'"},
        {{"f=file://{id}/a", NULL}, "another host"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct error err = check(bad[i].entries);
        char text[1024];

        error_format(&err, text, sizeof text);
        if (err.code == 0 || !strstr(text, bad[i].word))
            fail_msg("%zu: %s", i, text);
    }
}

static void a_password_in_a_url_is_not_shown(void **state)
{
    static const char *const urls[] = {"f=https://me:hunter2@host/x", "f=file://me:hunter2@host/x",
                                       "https://me:hunter2@host/x", "f=me:hunter2@host",
                                       "f=https://me:{hunter2}@host/x"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct error err = check((const char *const[]){urls[i], NULL});
        char text[1024];

        error_format(&err, text, sizeof text);
        assert_int_not_equal(err.code, 0);
        assert_null(strstr(text, "hunter2"));
    }
}

static void one_that_has_not_begun_can_be_freed(void **state)
{
    static const struct export_events events = {0};
    struct string_list list = {0};
    struct error err = ERROR_INIT;
    struct exporting *x = NULL;
    size_t n = 1;

    (void)state;
    assert_int_equal(string_list_add(&list, "f=file:///a"), 0);
    const struct export_options options = {
        .entries = &list, .max_bytes = 1, .sandbox = "sb-x", .backend = "local"};
    assert_int_equal(export_new(&options, &events, &n, &x, &err), 0);
    string_list_done(&list);
    assert_ptr_equal(export_owner(x), &n);
    assert_int_equal(export_progress(x), 0);
    assert_null(export_warning(x, 0));
    (void)export_results(x, &n);
    assert_int_equal(n, 0);
    export_free(x);
    export_free(NULL);
}

static struct error begin(const char *const entries[], const char *sandbox)
{
    static const struct export_events events = {0};
    struct string_list list = {0};
    struct error err = ERROR_INIT;
    struct exporting *x = NULL;

    for (size_t i = 0; entries[i]; i++)
        assert_int_equal(string_list_add(&list, entries[i]), 0);
    const struct export_options options = {
        .entries = &list, .max_bytes = 1, .sandbox = sandbox, .backend = "fake"};
    (void)export_new(&options, &events, NULL, &x, &err);
    string_list_done(&list);
    export_free(x);
    return err;
}

static void what_clashes_with_an_id_is_refused_when_it_is_known(void **state)
{
    static const char *const entries[] = {"f=file:///{id}", "g=file:///sb-x", NULL};

    (void)state;
    assert_int_equal(check(entries).code, 0);
    assert_int_equal(begin(entries, "sb-y").code, 0);
    assert_int_equal(begin(entries, "fake:sb-y").code, 0);
    assert_int_equal(begin(entries, "sb-x").code, EINVAL);
    assert_int_equal(begin(entries, "fake:sb-x").code, EINVAL);
    assert_int_equal(begin(entries, "").code, ENODATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_entries_pass),
        cmocka_unit_test(bad_entries_are_named),
        cmocka_unit_test(a_password_in_a_url_is_not_shown),
        cmocka_unit_test(one_that_has_not_begun_can_be_freed),
        cmocka_unit_test(what_clashes_with_an_id_is_refused_when_it_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
