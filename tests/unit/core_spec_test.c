/* SPDX-License-Identifier: Apache-2.0 */
/* The spec's fields: what each takes, what it refuses, and that the text names field and remedy. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "core/spec.h"
#include "base/guards.h"

typedef int setter(struct spec *s, const char *text, struct error *err);

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

static void assert_taken(struct spec *s, setter *set, const char *text)
{
    struct error err = ERROR_INIT;

    if (set(s, text, &err) != 0)
        fail_msg("'%s' was refused: %s", text, err.message);
    assert_int_equal(err.code, 0);
}

/* Refused by a usage error that names the field and says what to do. */
static void assert_refused(struct spec *s, setter *set, const char *text, const char *field,
                           int code)
{
    struct error err = ERROR_INIT;

    if (set(s, text, &err) != -code)
        fail_msg("'%.80s' gave %s (%d)", text, err.message, err.code);
    assert_int_equal(err.code, code);
    assert_int_equal(err.cls, ERROR_USAGE);
    if (strncmp(err.message, field, strlen(field)) != 0)
        fail_msg("'%s' does not name %s", err.message, field);
    assert_true(err.remedy[0] >= 'A' && err.remedy[0] <= 'Z');
    assert_null(strchr(err.message, '\n'));
}

static void a_fresh_spec_has_the_defaults(void **state)
{
    const struct spec *s = *state;

    assert_string_equal(s->image, "host");
    assert_string_equal(s->hostname, "sandbox");
    assert_null(s->workdir);
    assert_int_equal(s->uid, 0);
    assert_int_equal(s->pids, LIMIT_PIDS_DEFAULT);
    assert_int_equal(s->disk_bytes, 0);
    assert_int_equal(s->n_volumes, 0);
    assert_int_equal(s->env.n, 0);
}

static void freeing_is_harmless_on_a_zeroed_spec(void **state)
{
    struct spec s = {0};

    (void)state;
    spec_done(&s);
    spec_done(&s);
}

static void an_image_is_the_host_or_a_folder(void **state)
{
    struct spec *s = *state;
    char link[64] = "/tmp/spec-test-XXXXXX";

    assert_taken(s, spec_set_image, "dir:/usr");
    assert_string_equal(s->image, "dir:/usr");
    assert_taken(s, spec_set_image, "dir:/usr/../usr//");
    assert_string_equal(s->image, "dir:/usr");
    assert_taken(s, spec_set_image, "host");
    assert_string_equal(s->image, "host");

    assert_refused(s, spec_set_image, "", "image", EINVAL);
    assert_refused(s, spec_set_image, "Host", "image", EINVAL);
    assert_refused(s, spec_set_image, "debian:12", "image", EINVAL);
    assert_refused(s, spec_set_image, "dir:", "image", EINVAL);
    assert_refused(s, spec_set_image, "dir:/absent", "image", ENOENT);
    assert_refused(s, spec_set_image, "dir:/etc/passwd", "image", ENOTDIR);
    assert_refused(s, spec_set_image, "dir:/", "image", ENOTDIR);
    assert_refused(s, spec_set_image, "dir:/proc/..", "image", ENOTDIR);
    assert_string_equal(s->image, "host"); /* a refusal changes nothing */

    /* overlayfs splits its options at colons, commas and backslashes */
    assert_non_null(mkdtemp(link));
    char odd[80];
    (void)snprintf(odd, sizeof odd, "dir:%s/a,b", link);
    assert_int_equal(mkdir(odd + 4, 0700), 0);
    assert_refused(s, spec_set_image, odd, "image", ENOTDIR);
    assert_int_equal(rmdir(odd + 4), 0);
    assert_int_equal(rmdir(link), 0);
}

static void a_workdir_is_a_plain_absolute_path(void **state)
{
    struct spec *s = *state;
    char longest[PATH_MAX + 1];

    assert_taken(s, spec_set_workdir, "/");
    assert_taken(s, spec_set_workdir, "/a b/c");
    assert_string_equal(s->workdir, "/a b/c");
    assert_refused(s, spec_set_workdir, "", "workdir", EINVAL);
    assert_refused(s, spec_set_workdir, "here", "workdir", EINVAL);
    assert_refused(s, spec_set_workdir, "./a", "workdir", EINVAL);
    assert_refused(s, spec_set_workdir, "/a/../b", "workdir", EINVAL);
    assert_refused(s, spec_set_workdir, "/a/", "workdir", EINVAL);
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    assert_refused(s, spec_set_workdir, longest, "workdir", EINVAL);
    assert_string_equal(s->workdir, "/a b/c");
}

static void a_hostname_is_one_label(void **state)
{
    struct spec *s = *state;
    char label[65];

    assert_taken(s, spec_set_hostname, "a");
    assert_taken(s, spec_set_hostname, "Build-7");
    assert_string_equal(s->hostname, "Build-7");
    memset(label, 'x', sizeof label);
    label[63] = '\0';
    assert_taken(s, spec_set_hostname, label);
    label[63] = 'x';
    label[64] = '\0';
    assert_refused(s, spec_set_hostname, label, "hostname", EINVAL);
    assert_refused(s, spec_set_hostname, "", "hostname", EINVAL);
    assert_refused(s, spec_set_hostname, "-a", "hostname", EINVAL);
    assert_refused(s, spec_set_hostname, "a-", "hostname", EINVAL);
    assert_refused(s, spec_set_hostname, "a.b", "hostname", EINVAL);
    assert_refused(s, spec_set_hostname, "a_b", "hostname", EINVAL);
    assert_refused(s, spec_set_hostname, "a b", "hostname", EINVAL);
    assert_refused(s, spec_set_hostname, "caf\xC3\xA9", "hostname", EINVAL);
}

static void a_user_is_one_or_two_numbers(void **state)
{
    struct spec *s = *state;

    assert_taken(s, spec_set_user, "1000:100");
    assert_true(s->user_set);
    assert_int_equal(s->uid, 1000);
    assert_int_equal(s->gid, 100);
    assert_taken(s, spec_set_user, "65534");
    assert_int_equal(s->uid, 65534);
    assert_int_equal(s->gid, 65534);
    assert_taken(s, spec_set_user, "root");
    assert_int_equal(s->uid, 0);
    assert_int_equal(s->gid, 0);
    assert_refused(s, spec_set_user, "", "user", EINVAL);
    assert_refused(s, spec_set_user, "me", "user", EINVAL);
    assert_refused(s, spec_set_user, "1:", "user", EINVAL);
    assert_refused(s, spec_set_user, ":1", "user", EINVAL);
    assert_refused(s, spec_set_user, "1:2:3", "user", EINVAL);
    assert_refused(s, spec_set_user, "-1", "user", EINVAL);
    assert_refused(s, spec_set_user, "65535", "user", EINVAL);
    assert_refused(s, spec_set_user, "4294967296", "user", EINVAL);
    assert_refused(s, spec_set_user, "00000000000000000000001", "user", EINVAL);
}

static void a_volume_is_two_paths_and_a_mode(void **state)
{
    struct spec *s = *state;

    assert_taken(s, spec_add_volume, "/usr:/data");
    assert_taken(s, spec_add_volume, "/usr/../usr/:/other:ro");
    assert_taken(s, spec_add_volume, "/usr:/third:rw");
    assert_taken(s, spec_add_volume, "/etc/passwd:/file:ro");
    assert_int_equal(s->n_volumes, 4);
    assert_string_equal(s->volumes[1].host, "/usr");
    assert_string_equal(s->volumes[1].guest, "/other");
    assert_false(s->volumes[0].read_only);
    assert_true(s->volumes[1].read_only);
    assert_false(s->volumes[2].read_only);
}

static void a_relative_host_path_becomes_absolute(void **state)
{
    struct spec *s = *state;
    char here[PATH_MAX];

    assert_non_null(getcwd(here, sizeof here));
    assert_taken(s, spec_add_volume, ".:/here");
    assert_string_equal(s->volumes[0].host, here);
}

static void a_bad_volume_is_refused_and_not_kept(void **state)
{
    struct spec *s = *state;
    char longest[PATH_MAX + 8];

    assert_taken(s, spec_add_volume, "/usr:/data");
    assert_refused(s, spec_add_volume, "", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr", "volume", EINVAL);
    assert_refused(s, spec_add_volume, ":/data", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:data", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:/", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:/a/../b", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:/x:wo", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/absent:/x", "volume", ENOENT);
    assert_refused(s, spec_add_volume, "/usr:/data", "volume", EEXIST);
    assert_refused(s, spec_add_volume, "/usr:/proc", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:/proc/sys", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:/dev/null", "volume", EINVAL);
    assert_refused(s, spec_add_volume, "/usr:/sys:ro", "volume", EINVAL);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_refused(s, spec_add_volume, longest, "volume", ENAMETOOLONG);
    assert_int_equal(s->n_volumes, 1);
}

static void the_number_of_volumes_has_a_ceiling(void **state)
{
    struct spec *s = *state;
    char text[32];

    for (int i = 0; i < LIMIT_VOLUMES; i++) {
        (void)snprintf(text, sizeof text, "/usr:/v%d", i);
        assert_taken(s, spec_add_volume, text);
    }
    assert_refused(s, spec_add_volume, "/usr:/more", "volume", E2BIG);
    assert_int_equal(s->n_volumes, LIMIT_VOLUMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fresh_spec_has_the_defaults, start, end),
        cmocka_unit_test(freeing_is_harmless_on_a_zeroed_spec),
        cmocka_unit_test_setup_teardown(an_image_is_the_host_or_a_folder, start, end),
        cmocka_unit_test_setup_teardown(a_workdir_is_a_plain_absolute_path, start, end),
        cmocka_unit_test_setup_teardown(a_hostname_is_one_label, start, end),
        cmocka_unit_test_setup_teardown(a_user_is_one_or_two_numbers, start, end),
        cmocka_unit_test_setup_teardown(a_volume_is_two_paths_and_a_mode, start, end),
        cmocka_unit_test_setup_teardown(a_relative_host_path_becomes_absolute, start, end),
        cmocka_unit_test_setup_teardown(a_bad_volume_is_refused_and_not_kept, start, end),
        cmocka_unit_test_setup_teardown(the_number_of_volumes_has_a_ceiling, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
