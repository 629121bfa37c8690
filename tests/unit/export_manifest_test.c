/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: JSON in the order of paths, names of any bytes, and sinks that fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "export/manifest.h"
#include "base/guards.h"

struct text {
    char bytes[4096];
    size_t n, room;
};

static int put(void *arg, const void *data, size_t len)
{
    struct text *t = arg;

    if (len > t->room - t->n)
        return -ENOSPC;
    memcpy(t->bytes + t->n, data, len);
    t->n += len;
    return 0;
}

static const uint8_t sum[COPIER_SUM_BYTES] = {0xab, 0x01};

static json_t *written(struct manifest *m)
{
    struct text t = {.room = sizeof t.bytes};

    assert_int_equal(manifest_write(m, "sb-x", put, &t), 0);
    json_t *o = json_loadb(t.bytes, t.n, 0, NULL);
    assert_non_null(o);
    return o;
}

static const char *string_at(const json_t *list, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(list, i), key));
}

static void an_empty_folder_has_empty_lists(void **state)
{
    struct manifest m = {0};
    json_t *o = written(&m);

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(o, "version")), 1);
    assert_string_equal(json_string_value(json_object_get(o, "sandbox")), "sb-x");
    assert_int_equal(json_array_size(json_object_get(o, "files")), 0);
    assert_int_equal(json_array_size(json_object_get(o, "links")), 0);
    json_decref(o);
    manifest_done(&m);
}

static void files_and_links_are_in_the_order_of_their_paths(void **state)
{
    struct manifest m = {0};

    (void)state;
    assert_int_equal(manifest_add_file(&m, "b", 7, 0755, sum), 0);
    assert_int_equal(manifest_add_link(&m, "l", "b"), 0);
    assert_int_equal(manifest_add_file(&m, "a/x", 5, 0100644, sum), 0);
    json_t *o = written(&m), *files = json_object_get(o, "files");
    json_t *total = json_object_get(o, "total");

    assert_int_equal(json_array_size(files), 2);
    assert_string_equal(string_at(files, 0, "path"), "a/x");
    assert_string_equal(string_at(files, 0, "mode"), "0644");
    assert_string_equal(string_at(files, 1, "path"), "b");
    assert_string_equal(string_at(files, 1, "mode"), "0755");
    assert_memory_equal(string_at(files, 1, "sha256"), "ab0100", 6);
    assert_int_equal(strlen(string_at(files, 1, "sha256")), 64);
    assert_string_equal(string_at(json_object_get(o, "links"), 0, "target"), "b");
    assert_int_equal(json_integer_value(json_object_get(total, "files")), 2);
    assert_int_equal(json_integer_value(json_object_get(total, "links")), 1);
    assert_int_equal(json_integer_value(json_object_get(total, "bytes")), 12);
    json_decref(o);
    manifest_done(&m);
}

static void a_name_that_is_not_utf8_is_there_as_bytes_too(void **state)
{
    struct manifest m = {0};

    (void)state;
    assert_int_equal(manifest_add_file(&m, "\xff\"\n", 1, 0644, sum), 0);
    json_t *o = written(&m), *files = json_object_get(o, "files");

    assert_non_null(string_at(files, 0, "path"));
    assert_string_equal(string_at(files, 0, "path_base64"), "/yIK");
    json_decref(o);
    manifest_done(&m);
}

static void a_sink_that_fails_ends_it(void **state)
{
    struct manifest m = {0};

    (void)state;
    assert_int_equal(manifest_add_file(&m, "a", 1, 0644, sum), 0);
    for (size_t room = 0; room < 100; room += 9) {
        struct text t = {.room = room};

        assert_int_equal(manifest_write(&m, "sb-x", put, &t), -ENOSPC);
    }
    manifest_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_has_empty_lists),
        cmocka_unit_test(files_and_links_are_in_the_order_of_their_paths),
        cmocka_unit_test(a_name_that_is_not_utf8_is_there_as_bytes_too),
        cmocka_unit_test(a_sink_that_fails_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
