/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of exports: which paths they name, what is refused and what is never shown. */
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
#include "core/destination.h"
#include "base/guards.h"

static void expect_path(const char *url, const char *path, const char *name)
{
    struct destination d = {0};
    struct error err = ERROR_INIT;

    if (destination_parse(url, &d, &err) < 0)
        fail_msg("%s is refused: %s", url, err.message);
    assert_string_equal(d.path, path);
    assert_string_equal(d.name, name);
    destination_done(&d);
    assert_null(d.path);
}

/* @part of the whole error must be there. */
static void expect_refused(const char *url, const char *part)
{
    struct destination d = {0};
    struct error err = ERROR_INIT;
    char text[1200];

    if (destination_parse(url, &d, &err) == 0)
        fail_msg("%s is taken as %s", url, d.path);
    error_format(&err, text, sizeof text);
    assert_int_equal(err.code, EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_string_not_equal(err.remedy, "");
    assert_null(d.path);
    if (!strstr(text, part))
        fail_msg("%s: \"%s\" does not say \"%s\"", url, text, part);
    if (strstr(text, "secret"))
        fail_msg("%s: \"%s\" shows the user part", url, text);
}

static void a_url_names_a_path(void **state)
{
    (void)state;
    expect_path("file:///data/report.csv", "/data/report.csv", "report.csv");
    expect_path("file://localhost/data/report.csv", "/data/report.csv", "report.csv");
    expect_path("FILE://LocalHost/x", "/x", "x");
    expect_path("file:///a%20b/%C3%A4", "/a b/\xC3\xA4", "\xC3\xA4");
    expect_path("file:///a%2Fb", "/a/b", "b");
    expect_path("file:///a b/what is: this;=&+@", "/a b/what is: this;=&+@", "what is: this;=&+@");
    expect_path("file:///%3F%23%25", "/?#%", "?#%");
    expect_path("file:///a//b///c", "/a/b/c", "c");
    expect_path("file:////a", "/a", "a");
    expect_path("file:///...", "/...", "...");
    expect_path("file:///.hidden", "/.hidden", ".hidden");
    expect_path("file:///x.partial.txt", "/x.partial.txt", "x.partial.txt");
    expect_path("file:///\xFF", "/\xFF", "\xFF");
}

static void what_names_no_path_is_refused(void **state)
{
    (void)state;
    expect_refused("", "no URL");
    expect_refused("/data/report.csv", "no URL");
    expect_refused("data", "no URL");
    expect_refused("://x", "no URL");
    expect_refused("s3://bucket/key", "'s3'");
    expect_refused("filer:///x", "'filer'");
    expect_refused("file:", "\"file://\"");
    expect_refused("file:/x", "\"file://\"");
    expect_refused("file:x", "\"file://\"");
    expect_refused("file://", "no absolute path");
    expect_refused("file://localhost", "no absolute path");
    expect_refused("file://relative", "no absolute path");
    expect_refused("file://host/x", "another host");
    expect_refused("file://localhost:1/x", "another host");
    expect_refused("file:///", "ends with a '/'");
    expect_refused("file:////", "ends with a '/'");
    expect_refused("file:///folder/", "ends with a '/'");
    expect_refused("file:///folder%2f", "ends with a '/'");
}

static void paths_with_a_catch_are_refused(void **state)
{
    (void)state;
    expect_refused("file:///a/../b", "\"..\"");
    expect_refused("file:///a/..", "\"..\"");
    expect_refused("file:///a/.", "\".\"");
    expect_refused("file:///./a", "\".\"");
    expect_refused("file:///a/%2e%2E/b", "\"..\"");
    expect_refused("file:///a%00b", "NUL");
    expect_refused("file:///a%", "'%'");
    expect_refused("file:///a%2", "'%'");
    expect_refused("file:///a%zz", "'%'");
    expect_refused("file:///100%.txt", "%25");
    expect_refused("file:///a?b", "%3F");
    expect_refused("file:///a#b", "%23");
    expect_refused("file:///x.partial", ".partial");
    expect_refused("file:///.partial", ".partial");
}

static void the_user_part_is_never_shown(void **state)
{
    (void)state;
    expect_refused("s3://key:secret@bucket/x", "'s3'");
    expect_refused("file://me:secret@host/x", "another host");
    expect_refused("file://secret@", "no absolute path");
    expect_refused("secret@host/x", "no URL");
}

static void names_leave_room_for_a_staging_name(void **state)
{
    char url[PATH_MAX + 64], path[PATH_MAX + 64];

    (void)state;
    (void)snprintf(url, sizeof url, "file:///%0234d", 0);
    (void)snprintf(path, sizeof path, "/%0234d", 0);
    expect_path(url, path, path + 1);
    (void)snprintf(url, sizeof url, "file:///%0235d", 0);
    expect_refused(url, "234 bytes");

    /* 18 parts of 226 bytes, and one that fills it up to the last byte, or to one more. */
    for (int last = 6; last <= 7; last++) {
        int n = snprintf(url, sizeof url, "file://");

        for (int i = 0; i < 18; i++)
            n += snprintf(url + n, sizeof url - (size_t)n, "/%0225d", 0);
        (void)snprintf(url + n, sizeof url - (size_t)n, "/%0*d", last - 1, 0);
        assert_int_equal(strlen(url + 7), 4068 + last);
        if (last == 6)
            expect_path(url, url + 7, "00000");
        else
            expect_refused(url, "4074 bytes");
    }
}

static void what_is_shown_cannot_drive_a_terminal(void **state)
{
    struct destination d = {0};
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(destination_parse("file:///%1b[31m/", &d, &err), -EINVAL);
    assert_null(strchr(err.message, '\x1b'));
    expect_refused("file:///a\nb?", "a?b?");
}

static void clash_is_the_same_or_beneath(void **state)
{
    static const struct {
        const char *a, *b;
        bool clash;
    } pairs[] = {
        {"file:///a/b", "file:///a/b", true},   {"file:///a/b", "file:///a%2Fb", true},
        {"file:///a", "file:///a/b/c", true},   {"file:///a//b", "file:///a/b", true},
        {"file:///a/b", "file:///a/bc", false}, {"file:///a/b", "file:///a/c", false},
        {"file:///a/b", "file:///b", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        struct destination a = {0}, b = {0};
        struct error err = ERROR_INIT;

        assert_int_equal(destination_parse(pairs[i].a, &a, &err), 0);
        assert_int_equal(destination_parse(pairs[i].b, &b, &err), 0);
        assert_int_equal(destination_clash(&a, &b), pairs[i].clash);
        assert_int_equal(destination_clash(&b, &a), pairs[i].clash);
        destination_done(&a);
        destination_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_names_a_path),
        cmocka_unit_test(what_names_no_path_is_refused),
        cmocka_unit_test(paths_with_a_catch_are_refused),
        cmocka_unit_test(the_user_part_is_never_shown),
        cmocka_unit_test(names_leave_room_for_a_staging_name),
        cmocka_unit_test(what_is_shown_cannot_drive_a_terminal),
        cmocka_unit_test(clash_is_the_same_or_beneath),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
