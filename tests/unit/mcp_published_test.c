/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: what of the host a client can read, and above all what it cannot. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "export/manifest.h"
#include "export/staging.h"
#include "mcp/published.h"
#include "toolset/toolset.h"
#include "base/guards.h"

#define SECRET "hunter2hunter2"

enum { LIMIT = 4096 };

static const uint8_t no_sum[COPIER_SUM_BYTES];

/* A folder of the host, with one published file "file.txt" and one published folder "to". */
struct desk {
    char folder[32];
    int fd;
    struct atoll_toolset t;
    struct published p;
    struct manifest manifest; /* of "to" */
};

static void put(struct desk *d, const char *path, const void *bytes, size_t len)
{
    _cleanup_fd_ int fd = openat(d->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
}

static void put_text(struct desk *d, const char *path, const char *text)
{
    put(d, path, text, strlen(text));
}

static int put_piece(void *arg, const void *data, size_t len)
{
    return fwrite(data, 1, len, arg) == len ? 0 : -EIO;
}

/* Writes the manifest, with each file that was listed. */
static void put_manifest(struct desk *d)
{
    int fd = openat(d->fd, "to/" MANIFEST_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    FILE *f = fdopen(fd, "w");

    assert_non_null(f);
    assert_int_equal(manifest_write(&d->manifest, "sb-x", put_piece, f), 0);
    assert_int_equal(fclose(f), 0);
}

static void list(struct desk *d, const char *path)
{
    assert_int_equal(manifest_add_file(&d->manifest, path, 1, 0644, no_sum), 0);
    put_manifest(d);
}

/* A file in the published folder that its manifest lists. */
static void put_listed(struct desk *d, const char *path, const char *text)
{
    char name[256];

    (void)snprintf(name, sizeof name, "to/%s", path);
    put_text(d, name, text);
    list(d, path);
}

static void publish(struct desk *d, const char *path, const char *name, const char *sum)
{
    char url[256];
    const struct atoll_exported x = {
        .path = path, .url = url, .sha256 = sum, .files = 2, .bytes = 9};

    (void)snprintf(url, sizeof url, "file://%s/%s", d->folder, name);
    assert_int_equal(published_add(&d->p, &d->t, &x), 0);
}

static int begin(void **state)
{
    struct desk *d = calloc(1, sizeof *d);

    assert_non_null(d);
    *state = d;
    (void)snprintf(d->folder, sizeof d->folder, "/tmp/published-XXXXXX");
    assert_non_null(mkdtemp(d->folder));
    d->fd = open(d->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(d->fd >= 0);
    assert_non_null(d->t.mask = mask_new());
    assert_int_equal(mask_add(d->t.mask, SECRET, strlen(SECRET)), 0);
    d->t.spec.spec.toolset.max_read_bytes = LIMIT;
    assert_int_equal(mkdirat(d->fd, "to", 0755), 0);
    assert_int_equal(mkdirat(d->fd, "to/sub", 0755), 0);
    put_text(d, "file.txt", "content\n");
    put_text(d, "outside.txt", "not published");
    put_listed(d, "a.txt", "in a folder");
    put_listed(d, "sub/b.csv", "1,2\n");
    publish(d, "out/file.txt", "file.txt", "aa");
    publish(d, "out", "to", NULL);
    return 0;
}

static int end(void **state)
{
    struct desk *d = *state;

    published_done(&d->p);
    manifest_done(&d->manifest);
    mask_free(d->t.mask);
    (void)close(d->fd);
    assert_int_equal(staging_remove_tree(AT_FDCWD, d->folder), 0);
    free(d);
    return 0;
}

/* The one of `contents`. */
static json_t *read_uri(struct desk *d, const char *uri)
{
    struct error err = ERROR_INIT;
    json_t *contents = NULL, *one;

    if (published_read(&d->p, uri, &contents, &err) < 0)
        fail_msg("%s: %s", uri, err.message);
    assert_int_equal(json_array_size(contents), 1);
    one = json_incref(json_array_get(contents, 0));
    json_decref(contents);
    assert_string_equal(json_string_value(json_object_get(one, "uri")), uri);
    return one;
}

static void expect(struct desk *d, const char *name, const char *type, const char *key,
                   const char *value)
{
    char uri[512];

    (void)snprintf(uri, sizeof uri, "file://%s/%s", d->folder, name);
    json_t *one = read_uri(d, uri);
    assert_string_equal(json_string_value(json_object_get(one, "mimeType")), type);
    assert_string_equal(json_string_value(json_object_get(one, key)), value);
    assert_int_equal(json_object_size(one), 3);
    json_decref(one);
}

static void expect_text(struct desk *d, const char *name, const char *type, const char *text)
{
    expect(d, name, type, "text", text);
}

static void refuse(struct desk *d, const char *uri, int code)
{
    struct error err = ERROR_INIT;
    json_t *contents = NULL;
    int r = published_read(&d->p, uri, &contents, &err);

    if (r != -code)
        fail_msg("%s: %d instead of -%d", uri, r, code);
    assert_null(contents);
    assert_int_equal(err.code, code);
    assert_true(err.message[0] != '\0');
}

static void refuse_name(struct desk *d, const char *name, int code)
{
    char uri[6000];

    (void)snprintf(uri, sizeof uri, "file://%s/%s", d->folder, name);
    refuse(d, uri, code);
}

static void files_and_folders_are_read_by_their_urls(void **state)
{
    struct desk *d = *state;
    char uri[64];

    expect_text(d, "file.txt", "text/plain", "content\n");
    expect_text(d, "to/a.txt", "text/plain", "in a folder");
    expect_text(d, "to/sub/b.csv", "text/csv", "1,2\n");
    expect_text(d, "to/%61.txt", "text/plain", "in a folder");
    expect_text(d, "to/sub/%62%2Ecsv", "text/csv", "1,2\n");
    (void)snprintf(uri, sizeof uri, "file://%s/to", d->folder);
    json_t *one = read_uri(d, uri);
    assert_string_equal(json_string_value(json_object_get(one, "mimeType")), "application/json");
    json_t *manifest = json_loads(json_string_value(json_object_get(one, "text")), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(manifest, "files")), 2);
    json_decref(manifest);
    json_decref(one);
}

static void nothing_else_of_the_host_is_a_resource(void **state)
{
    static const char *const names[] = {
        "",           ".",         "outside.txt", "file",         "file.txt/",
        "file.txt/x", "file.txt?", "file.txt#",   "./file.txt",   "/file.txt",
        "%66ile.txt", "to/",       "to//",        "to/.",         "to/..",
        "too",        "to2/a.txt", "TO/a.txt",    "to/A.txt",     "to/a.txt/",
        "to/a.txt/.", "to/sub",    "to/sub/",     "to/sub/a.txt", ("to/" MANIFEST_NAME),
    };
    struct desk *d = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        refuse_name(d, names[i], ENOENT);
    refuse(d, "", ENOENT);
    refuse(d, "file:///etc/passwd", ENOENT);
    refuse(d, "/etc/passwd", ENOENT);
    refuse(d, d->folder, ENOENT);
    refuse(d, "file://", ENOENT);
    refuse(d, "https://host.example/", ENOENT);
}

/* Each of these would be "outside.txt" or "a.txt" to somebody who decodes or tidies up too much. */
static void no_spelling_leads_out_or_around(void **state)
{
    static const char *const names[] = {
        "to/../outside.txt",
        "to/sub/../../outside.txt",
        "to/sub/../a.txt",
        "to/./a.txt",
        "to//a.txt",
        "to/sub//b.csv",
        "to/%2e%2e/outside.txt",
        "to/%2E%2E/outside.txt",
        "to/.%2e/outside.txt",
        "to/%2e./outside.txt",
        "to/%2e/a.txt",
        "to/%252e%252e/outside.txt",
        "to/%25%32%65%25%32%65/outside.txt",
        "to/..%2foutside.txt",
        "to/..%2Foutside.txt",
        "to/sub%2Fb.csv",
        "to/sub%2fb.csv",
        "to%2Fa.txt",
        "to/%2Fa.txt",
        "to/%2Fetc/passwd",
        "to//etc/passwd",
        "to/..\\outside.txt",
        "to/..%5Coutside.txt",
        "to/sub\\b.csv",
        "to\\a.txt",
        "to/a.txt%00",
        "to/a.txt%00.png",
        "to/%00",
        "to/%",
        "to/%2",
        "to/%zz",
        "to/a.txt%",
        "to/a.txt?",
        "to/a.txt?x=1",
        "to/a.txt#x",
        "to/ a.txt",
        "to/a.txt ",
        "to/a.txt\n",
        "to/\xC0\xAE\xC0\xAE/outside.txt",
        "to/%C0%AE%C0%AE/outside.txt",
        "to/%u002e%u002e/outside.txt",
        "to/..;/outside.txt",
    };
    struct desk *d = *state;
    char path[64], long_name[5500];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        refuse_name(d, names[i], ENOENT);
    (void)snprintf(path, sizeof path, "to/%s/outside.txt", d->folder);
    refuse_name(d, path, ENOENT);
    memset(long_name, 'x', sizeof long_name);
    memcpy(long_name, "to/", 3);
    long_name[sizeof long_name - 1] = '\0';
    refuse_name(d, long_name, ENOENT);
}

/* Names that only look as if they led elsewhere are names like others. */
static void odd_names_are_read_if_they_are_listed(void **state)
{
    static const char *const names[][2] = {
        {"%2e%2e", "%252e%252e"},
        {"..\\x", "..\\x"},
        {"..\\x", "..%5Cx"},
        {"a b", "a%20b"},
        {"a b", "a b"},
        {"a?b", "a%3Fb"},
        {"a%00b", "a%2500b"},
        {"...", "..."},
        {"new\nline", "new%0Aline"},
        {"\xC3\xA4", "%C3%A4"},
        {"\xC3\xA4", "\xC3\xA4"},
        {"quo\"te", "quo%22te"},
        {"\xFF\xFE.bin", "%FF%FE.bin"},
    };
    struct desk *d = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char uri[64];

        put_listed(d, names[i][0], "odd");
        (void)snprintf(uri, sizeof uri, "to/%s", names[i][1]);
        expect_text(d, uri, "text/plain", "odd");
    }
    refuse_name(d, "to/??.bin", ENOENT); /* as the manifest shows the last of them */
    refuse_name(d, "to/%3F%3F.bin", ENOENT);
}

static void what_the_manifest_does_not_list_is_none(void **state)
{
    struct desk *d = *state;

    put_text(d, "to/planted.txt", "planted");
    put_text(d, "to/sub/planted.txt", "planted");
    refuse_name(d, "to/planted.txt", ENOENT);
    refuse_name(d, "to/sub/planted.txt", ENOENT);
    assert_int_equal(manifest_add_link(&d->manifest, "planted.txt", "a.txt"),
                     0); /* links neither */
    put_manifest(d);
    refuse_name(d, "to/planted.txt", ENOENT);
    list(d, "gone.txt"); /* listed, and not there */
    refuse_name(d, "to/gone.txt", ENOENT);
}

static void links_on_the_way_are_never_followed(void **state)
{
    struct desk *d = *state;

    list(d, "link.txt");
    list(d, "dir/outside.txt");
    list(d, "magic");
    assert_int_equal(symlinkat("a.txt", d->fd, "to/link.txt"), 0);
    assert_int_equal(symlinkat(d->folder, d->fd, "to/dir"), 0);
    assert_int_equal(symlinkat("/proc/self/exe", d->fd, "to/magic"), 0);
    refuse_name(d, "to/link.txt", ENOENT);
    refuse_name(d, "to/dir/outside.txt", ENOENT);
    refuse_name(d, "to/magic", ENOENT);

    /* The published ones replaced by links afterwards. */
    assert_int_equal(unlinkat(d->fd, "file.txt", 0), 0);
    assert_int_equal(symlinkat("outside.txt", d->fd, "file.txt"), 0);
    refuse_name(d, "file.txt", ENOENT);
    assert_int_equal(renameat(d->fd, "to", d->fd, "moved"), 0);
    assert_int_equal(symlinkat("moved", d->fd, "to"), 0);
    refuse_name(d, "to", ENOENT);
    refuse_name(d, "to/a.txt", ENOENT);
}

static void only_regular_files_are_read(void **state)
{
    struct desk *d = *state;

    list(d, "fifo");
    list(d, "sub");
    assert_int_equal(mkfifoat(d->fd, "to/fifo", 0644), 0);
    refuse_name(d, "to/fifo", ENOENT);
    refuse_name(d, "to/sub", ENOENT);
    assert_int_equal(unlinkat(d->fd, "file.txt", 0), 0);
    refuse_name(d, "file.txt", ENOENT);
    assert_int_equal(mkdirat(d->fd, "file.txt", 0755), 0);
    refuse_name(d, "file.txt", ENOENT);
}

static void a_folder_without_a_manifest_is_none(void **state)
{
    struct desk *d = *state;

    put_text(d, "to/" MANIFEST_NAME, "{\"files\":[{\"path\":\"a.txt\"}");
    refuse_name(d, "to/a.txt", ENOENT);
    put_text(d, "to/" MANIFEST_NAME, "[]");
    refuse_name(d, "to/a.txt", ENOENT);
    assert_int_equal(unlinkat(d->fd, "to/" MANIFEST_NAME, 0), 0);
    refuse_name(d, "to/a.txt", ENOENT);
    refuse_name(d, "to", ENOENT);
    assert_int_equal(symlinkat("../outside.txt", d->fd, "to/" MANIFEST_NAME), 0);
    refuse_name(d, "to", ENOENT);
}

static void what_is_no_text_comes_as_a_blob(void **state)
{
    struct desk *d = *state;

    publish(d, "bytes", "bytes", "aa");
    publish(d, "pic", "pic", "aa");
    publish(d, "wrong.txt", "wrong.txt", "aa");
    put(d, "bytes", "\0\1\2", 3);
    expect(d, "bytes", "application/octet-stream", "blob", "AAEC");
    put(d, "pic", "\x89PNG\r\n\x1a\n\0", 9);
    expect(d, "pic", "image/png", "blob", "iVBORw0KGgoA");
    put(d, "wrong.txt", "\xFF\xFE", 2);
    expect(d, "wrong.txt", "application/octet-stream", "blob", "//4=");
    put(d, "bytes", "", 0);
    expect_text(d, "bytes", "text/plain", "");
}

static void secrets_are_masked_in_text_and_kept_back_in_bytes(void **state)
{
    struct desk *d = *state;
    static const char bytes[] = "\0" SECRET;
    struct error err = ERROR_INIT;
    json_t *contents = NULL;
    char uri[64];

    put_text(d, "file.txt", "the password is " SECRET ".");
    expect_text(d, "file.txt", "text/plain", "the password is ***.");
    put(d, "file.txt", bytes, sizeof bytes - 1);
    (void)snprintf(uri, sizeof uri, "file://%s/file.txt", d->folder);
    assert_int_equal(published_read(&d->p, uri, &contents, &err), -EPERM);
    assert_non_null(strstr(err.message, "secret"));
    assert_null(strstr(err.message, SECRET));
    list(d, SECRET);
    (void)snprintf(uri, sizeof uri, "file://%s/to", d->folder);
    json_t *one = read_uri(d, uri);
    assert_null(strstr(json_string_value(json_object_get(one, "text")), SECRET));
    json_decref(one);
}

static void there_is_a_limit(void **state)
{
    struct desk *d = *state;
    char text[LIMIT + 1];

    memset(text, 'x', sizeof text);
    put(d, "file.txt", text, LIMIT);
    put(d, "to/a.txt", text, LIMIT + 1);
    text[LIMIT] = '\0';
    expect_text(d, "file.txt", "text/plain", text);
    refuse_name(d, "to/a.txt", EFBIG);
    for (int i = 0; i < LIMIT / 64; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "file-%d", i);
        assert_int_equal(manifest_add_file(&d->manifest, name, 1, 0644, no_sum), 0);
    }
    put_manifest(d);
    refuse_name(d, "to", EFBIG);
    expect_text(d, "to/sub/b.csv", "text/csv", "1,2\n"); /* the limit is for what is shown */
}

static const char *of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void what_was_published_is_listed(void **state)
{
    struct desk *d = *state;
    char uri[64];

    publish(d, "out/*.csv", "tables", NULL);
    publish(d, "data", "data", "bb");
    put(d, "data", "GIF89a\1\0\1", 9);
    publish(d, "lost", "lost", "bb");
    json_t *list = published_list(&d->p);
    assert_int_equal(json_array_size(list), 5);
    const json_t *file = json_array_get(list, 0), *folder = json_array_get(list, 1);
    (void)snprintf(uri, sizeof uri, "file://%s/file.txt", d->folder);
    assert_string_equal(of(file, "uri"), uri);
    assert_string_equal(of(file, "name"), "file.txt");
    assert_string_equal(of(file, "mimeType"), "text/plain");
    assert_int_equal(json_integer_value(json_object_get(file, "size")), 9);
    assert_non_null(strstr(of(file, "description"), "'out/file.txt' of the sandbox"));
    assert_string_equal(of(folder, "name"), "out");
    assert_string_equal(of(folder, "mimeType"), "inode/directory");
    assert_non_null(strstr(of(folder, "description"), "2 files"));
    assert_null(json_object_get(folder, "size"));
    assert_string_equal(of(json_array_get(list, 2), "name"), "tables");
    assert_string_equal(of(json_array_get(list, 3), "mimeType"), "image/gif");
    assert_string_equal(of(json_array_get(list, 4), "mimeType"), "application/octet-stream");
    json_decref(list);
}

static void a_later_publication_takes_the_place_of_an_earlier_one(void **state)
{
    struct desk *d = *state;

    assert_int_equal(d->p.n, 2);
    publish(d, "other", "file.txt", "cc");
    assert_int_equal(d->p.n, 2);
    assert_string_equal(d->p.items[0].path, "other");
    assert_string_equal(d->p.items[0].sha256, "cc");
    publish(d, "other", "more.txt", "cc");
    assert_int_equal(d->p.n, 3);
}

static void a_link_is_a_block_of_content(void **state)
{
    struct desk *d = *state;
    const struct atoll_exported x = {
        .path = "r.csv", .url = "file:///srv/" SECRET "/r.csv", .sha256 = "aa", .bytes = 7};
    json_t *link = published_link(&d->t, &x);

    assert_string_equal(of(link, "type"), "resource_link");
    assert_string_equal(of(link, "uri"), "file:///srv/***/r.csv");
    assert_string_equal(of(link, "name"), "r.csv");
    assert_string_equal(of(link, "mimeType"), "text/csv");
    assert_int_equal(json_integer_value(json_object_get(link, "size")), 7);
    json_decref(link);
}

static void a_url_with_a_secret_is_read_as_it_is_listed(void **state)
{
    struct desk *d = *state;
    const char *name = SECRET ".txt";

    publish(d, "r", name, "aa");
    put_text(d, name, "content");
    json_t *list = published_list(&d->p);
    const char *uri = of(json_array_get(list, 2), "uri");
    assert_null(strstr(uri, SECRET));
    json_t *one = read_uri(d, uri);
    assert_string_equal(of(one, "text"), "content");
    json_decref(one);
    json_decref(list);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_and_folders_are_read_by_their_urls),
        TEST(nothing_else_of_the_host_is_a_resource),
        TEST(no_spelling_leads_out_or_around),
        TEST(odd_names_are_read_if_they_are_listed),
        TEST(what_the_manifest_does_not_list_is_none),
        TEST(links_on_the_way_are_never_followed),
        TEST(only_regular_files_are_read),
        TEST(a_folder_without_a_manifest_is_none),
        TEST(what_is_no_text_comes_as_a_blob),
        TEST(secrets_are_masked_in_text_and_kept_back_in_bytes),
        TEST(there_is_a_limit),
        TEST(what_was_published_is_listed),
        TEST(a_later_publication_takes_the_place_of_an_earlier_one),
        TEST(a_link_is_a_block_of_content),
        TEST(a_url_with_a_secret_is_read_as_it_is_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
