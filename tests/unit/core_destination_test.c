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

static const struct destination_values some = {.id = "sb-abc", .time = "20261130T065347Z"};

static void expect_filled(const char *url, const char *id, const char *expected)
{
    struct destination_values values = some;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *text = NULL;

    values.id = id;
    if (destination_fill(url, &values, &text, &err) < 0)
        fail_msg("%s is refused: %s", url, err.message);
    assert_string_equal(text, expected);
}

static void placeholders_are_filled(void **state)
{
    static const char *const rows[][2] = {
        {"file:///a/b", "file:///a/b"},
        {"", ""},
        {"file:///{id}", "file:///sb-abc"},
        {"file:///{time}/{id}.csv", "file:///20261130T065347Z/sb-abc.csv"},
        {"file:///{id}{id}-{time}", "file:///sb-abcsb-abc-20261130T065347Z"},
        {"s3://bucket/{id}", "s3://bucket/sb-abc"},
        {"file:///%7Bid%7D", "file:///%7Bid%7D"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect_filled(rows[i][0], some.id, rows[i][1]);
}

static void an_id_stays_within_one_name(void **state)
{
    static const struct {
        const char *id, *path;
    } rows[] = {
        {"Ab-1_2.3~", "/srv/Ab-1_2.3~"},
        {"a/b", "/srv/a%2Fb"},
        {"..", "/srv/%2E."},
        {".git/hooks/x", "/srv/%2Egit%2Fhooks%2Fx"},
        {"../../etc", "/srv/%2E.%2F..%2Fetc"},
        {"a%2Fb", "/srv/a%252Fb"},
        {"a?b#c", "/srv/a%3Fb%23c"},
        {"{time}", "/srv/%7Btime%7D"},
        {"\xC3\xA4 \n", "/srv/%C3%A4%20%0A"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct destination_values values = some;
        struct destination d = {0};
        struct error err = ERROR_INIT;
        _cleanup_free_ char *url = NULL;

        values.id = rows[i].id;
        assert_int_equal(destination_fill("file:///srv/{id}", &values, &url, &err), 0);
        assert_int_equal(destination_parse(url, &d, &err), 0);
        assert_string_equal(d.path, rows[i].path);
        destination_done(&d);
    }
}

static void other_braces_are_refused(void **state)
{
    static const struct {
        const char *url, *word;
    } rows[] = {
        {"file:///{", "a '{' without"},
        {"file:///{id", "a '{' without"},
        {"file:///}", "a '}' that ends"},
        {"file:///{id}}", "a '}' that ends"},
        {"file:///{}", "neither {id} nor {time}"},
        {"file:///{ID}", "neither {id} nor {time}"},
        {"file:///{ id}", "neither {id} nor {time}"},
        {"file:///{{id}}", "neither {id} nor {time}"},
        {"file:///{secret}", "neither {id} nor {time}"},
        {"https://me:{secret}@host/", "neither {id} nor {time}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = ERROR_INIT;
        char *text = NULL;

        assert_int_equal(destination_fill(rows[i].url, &some, &text, &err), -EINVAL);
        assert_null(text);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_non_null(strstr(err.message, rows[i].word));
        assert_null(strstr(err.message, "secret"));
        assert_non_null(strstr(err.remedy, "%7B and %7D"));
    }
}

static void without_an_id_there_is_none_to_fill_in(void **state)
{
    (void)state;
    for (const char *id = NULL;; id = "") {
        const struct destination_values values = {.id = id, .time = "20261130T065347Z"};
        struct error err = ERROR_INIT;
        char *text = NULL;

        expect_filled("file:///{time}", id, "file:///20261130T065347Z");
        assert_int_equal(destination_fill("file:///{id}", &values, &text, &err), -ENODATA);
        assert_null(text);
        if (id)
            break;
    }
}

static void a_time_is_utc(void **state)
{
    char text[DESTINATION_TIME_BYTES];

    (void)state;
    destination_time(UINT64_C(1796021627999999), text);
    assert_string_equal(text, "20261130T065347Z");
    destination_time(0, text);
    assert_string_equal(text, "19700101T000000Z");
    destination_time(UINT64_MAX, text); /* a year of six digits, which has no room */
    assert_string_equal(text, destination_samples.time);
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
        cmocka_unit_test(placeholders_are_filled),
        cmocka_unit_test(an_id_stays_within_one_name),
        cmocka_unit_test(other_braces_are_refused),
        cmocka_unit_test(without_an_id_there_is_none_to_fill_in),
        cmocka_unit_test(a_time_is_utc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
