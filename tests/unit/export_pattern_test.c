/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns against folders that a fake sandbox lists. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "export/pattern.h"
#include "fake_files.h"
#include "base/guards.h"

static const struct {
    const char *folder, *name;
    uint32_t kind;
} entries[] = {
    {".", "b.csv", FILE_REGULAR},       {".", "a.csv", FILE_REGULAR},
    {".", ".hidden.csv", FILE_REGULAR}, {".", "link.csv", FILE_LINK},
    {".", "pipe.csv", FILE_FIFO},       {".", "dir.csv", FILE_FOLDER},
    {".", "out", FILE_FOLDER},          {".", "other", FILE_FOLDER},
    {".", "loop", FILE_LINK},           {"out", "x", FILE_FOLDER},
    {"out", "y", FILE_FOLDER},          {"out", "z", FILE_REGULAR},
    {"out/x", "r.txt", FILE_REGULAR},   {"out/y", "q", FILE_REGULAR},
    {"/", "srv", FILE_FOLDER},          {"/srv", "[x]", FILE_REGULAR},
};

static void list(struct channel *c, uint16_t type, uint32_t id, const struct file_request *x)
{
    uint8_t buf[4096];
    struct writer w = writer_over(buf, sizeof buf);
    size_t n = strlen(x->path);
    bool found = false;

    while (n > 1 && x->path[n - 1] == '/')
        n--;
    for (size_t i = 0; type == MSG_LIST && i < ARRAY_SIZE(entries); i++)
        if (strlen(entries[i].folder) == n && memcmp(entries[i].folder, x->path, n) == 0) {
            const struct file_info info = {.name = entries[i].name, .kind = entries[i].kind};

            file_entry_encode(&w, &info);
            found = true;
        }
    if (found) {
        fake_send(c, MSG_LISTED, id, &w);
        fake_done(c, id);
    } else {
        fake_fault(c, id, ENOENT, x->path);
    }
}

static struct loop loop;
static struct session session;
static struct files files;
static struct pattern pattern;
static struct error error;

static void done(struct pattern *p)
{
    (void)p;
    loop.stop = true;
}

static void failed(struct pattern *p, const struct error *err)
{
    (void)p;
    error = *err;
    loop.stop = true;
}

static int start(void **state)
{
    (void)state;
    assert_int_equal(loop_init(&loop), 0);
    fake_files_start(&session, &loop, list);
    files = (struct files){.main = &session};
    return 0;
}

static int end(void **state)
{
    (void)state;
    pattern_done(&pattern);
    files_done(&files);
    session_end(&session);
    loop_done(&loop);
    return 0;
}

static void look_for(const char *path)
{
    error = (struct error)ERROR_INIT;
    pattern_done(&pattern);
    pattern = (struct pattern){.files = &files, .done = done, .failed = failed};
    assert_int_equal(pattern_start(&pattern, path, &error), 0);
    fake_files_run(&loop);
}

/* What @path matches: paths and what they are called, in order, ended by NULL. */
static void expect(const char *path, const char *const expected[])
{
    size_t n = 0;

    look_for(path);
    if (error.code != 0)
        fail_msg("%s: %s", path, error.message);
    for (; expected[2 * n]; n++) {
        assert_true(n < pattern.n_found);
        assert_string_equal(pattern.found[n].path, expected[2 * n]);
        assert_string_equal(pattern.found[n].rest, expected[2 * n + 1]);
    }
    assert_int_equal(pattern.n_found, n);
}

static void files_and_folders_match_but_no_links_or_hidden_ones(void **state)
{
    (void)state;
    expect("*.csv",
           (const char *const[]){"a.csv", "a.csv", "b.csv", "b.csv", "dir.csv", "dir.csv", NULL});
    assert_false(pattern.found[0].folder);
    assert_true(pattern.found[2].folder);
    expect(".*.csv", (const char *const[]){".hidden.csv", ".hidden.csv", NULL});
    expect("[b-z].csv", (const char *const[]){"b.csv", "b.csv", NULL});
    expect("?.csv", (const char *const[]){"a.csv", "a.csv", "b.csv", "b.csv", NULL});
}

static void each_part_is_matched_by_itself(void **state)
{
    (void)state;
    expect("out/*", (const char *const[]){"out/x", "x", "out/y", "y", "out/z", "z", NULL});
    expect("o*/*/r.txt", (const char *const[]){"out/x/r.txt", "out/x/r.txt", NULL});
    expect("out/*/*", (const char *const[]){"out/x/r.txt", "x/r.txt", "out/y/q", "y/q", NULL});
    expect("out//?/", (const char *const[]){"out//x", "x", "out//y", "y", "out//z", "z", NULL});
    expect("/s*/[[]x]", (const char *const[]){"/srv/[x]", "srv/[x]", NULL});
}

static void nothing_that_matches_is_a_missing_file(void **state)
{
    (void)state;
    look_for("*.pdf");
    assert_int_equal(error.code, ENOENT);
    assert_non_null(strstr(error.message, "*.pdf"));
    look_for("out/*/nothing");
    assert_int_equal(error.code, ENOENT);
    look_for("nowhere/*");
    assert_int_equal(error.code, ENOENT);
    assert_non_null(strstr(error.message, "nowhere"));
}

static void it_can_be_given_up(void **state)
{
    (void)state;
    pattern_done(&pattern);
    pattern = (struct pattern){.files = &files, .done = done, .failed = failed};
    assert_int_equal(pattern_start(&pattern, "*/*/*", &error), 0);
    pattern_done(&pattern);
    pattern_done(&pattern);
    expect("*.csv",
           (const char *const[]){"a.csv", "a.csv", "b.csv", "b.csv", "dir.csv", "dir.csv", NULL});
}

static void two_stars_are_refused(void **state)
{
    struct error err = ERROR_INIT;

    (void)state;
    assert_true(pattern_is("a*") && pattern_is("?") && pattern_is("[a]/b"));
    assert_false(pattern_is("a/b c]"));
    assert_int_equal(pattern_check("a/*/b", &err), 0);
    assert_int_equal(pattern_check("a/**/b", &err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_and_folders_match_but_no_links_or_hidden_ones, start,
                                        end),
        cmocka_unit_test_setup_teardown(each_part_is_matched_by_itself, start, end),
        cmocka_unit_test_setup_teardown(nothing_that_matches_is_a_missing_file, start, end),
        cmocka_unit_test_setup_teardown(it_can_be_given_up, start, end),
        cmocka_unit_test(two_stars_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
