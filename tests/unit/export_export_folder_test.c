/* SPDX-License-Identifier: Apache-2.0 */
/* Folders whose stream a hostile sandbox writes: what is made, and what ends the export. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "export/export_folder.h"
#include "export/staging.h"
#include "fake_files.h"
#include "wire/sandbox_info.h"
#include "wire/tar.h"
#include "base/guards.h"

enum { STREAM_MAX = 128 * 1024, CHUNK = 16 * 1024 };

/* What the fake sandbox answers; set before it is started, since it is a copy of this process. */
static uint8_t stream[STREAM_MAX];
static size_t stream_len;
static int fault;
static const char *skipped;

static void pack(struct channel *c, uint16_t type, uint32_t id, const struct file_request *x)
{
    uint8_t buf[4096];
    struct writer w = writer_over(buf, sizeof buf);

    assert_int_equal(type, MSG_PACK);
    assert_true(x->flags & FILE_STEADY);
    for (size_t at = 0; at < stream_len; at += CHUNK)
        fake_output(c, id, STREAM_STDOUT, stream + at,
                    stream_len - at < CHUNK ? stream_len - at : CHUNK);
    fake_output(c, id, STREAM_STDOUT, "", 0);
    if (skipped)
        field_put_string(&w, TAG_SKIPPED, skipped);
    if (fault != 0)
        fake_fault(c, id, fault, x->path);
    else
        fake_send(c, MSG_DONE, id, &w);
}

static void add(enum tar_kind kind, const char *path, const char *link, const char *data)
{
    const struct tar_entry e = {.path = path,
                                .link = link,
                                .size = strlen(data),
                                .mode = kind == TAR_FOLDER ? 0755 : 04644,
                                .kind = kind};
    size_t n = tar_header(&e, stream + stream_len, sizeof stream - stream_len);

    assert_true(n > 0);
    stream_len += n;
    memcpy(stream + stream_len, data, strlen(data));
    stream_len += strlen(data) + tar_padding(strlen(data));
}

static void add_file(const char *path, const char *data)
{
    add(TAR_FILE, path, "", data);
}

static void add_folder(const char *path)
{
    add(TAR_FOLDER, path, "", "");
}

static char place[] = "/tmp/atoll-tests-folder-XXXXXX";
static struct loop loop;
static struct session session;
static struct source source;
static struct manifest manifest;
static struct export_folder folder;
static struct error error;
static bool ended;
static char judged[4096];

static void done(struct export_folder *f)
{
    (void)f;
    ended = true;
    loop.stop = true;
}

static void failed(struct export_folder *f, const struct error *err)
{
    (void)f;
    error = *err;
    loop.stop = true;
}

static int judge(void *owner, const char *path, uint32_t kind, struct error *err)
{
    size_t n = strlen(judged);
    char mark = kind == FILE_FOLDER ? '/' : kind == FILE_LINK ? '@' : ' ';

    (void)snprintf(judged + n, sizeof judged - n, "%s%c", path, mark);
    (void)owner;
    if (strcmp(path, "bad") == 0)
        return error_set(err, ERROR_RECOVERABLE, EPERM, "judged bad");
    return 0;
}

static int start(void **state)
{
    (void)state;
    memset(stream, 0, sizeof stream);
    stream_len = 0;
    fault = 0;
    skipped = NULL;
    memset(judged, 0, sizeof judged);
    memcpy(place + sizeof place - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(place));
    assert_int_equal(loop_init(&loop), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(staging_remove_tree(AT_FDCWD, place), 0);
    loop_done(&loop);
    return 0;
}

/* Exports the stream as it is now, beneath @beneath of a new folder. */
static void run(const char *beneath)
{
    _cleanup_fd_ int root = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    error = (struct error)ERROR_INIT;
    ended = false;
    fake_files_start(&session, &loop, pack);
    source_open(&source, &session, &loop, 1000);
    folder = (struct export_folder){.source = &source,
                                    .manifest = &manifest,
                                    .path = "in/dir",
                                    .root = root,
                                    .beneath = beneath,
                                    .judge = judge,
                                    .done = done,
                                    .failed = failed};
    export_folder_start(&folder);
    if (!ended && error.code == 0)
        fake_files_run(&loop);
    export_folder_stop(&folder);
    source_close(&source);
    session_end(&session);
}

static void expect_good(const char *beneath)
{
    run(beneath);
    if (error.code != 0)
        fail_msg("%s", error.message);
    assert_true(ended);
}

static void expect_error(int code, const char *words)
{
    run("");
    assert_false(ended);
    if (error.code != code || !strstr(error.message, words))
        fail_msg("%d %s", error.code, error.message);
    manifest_done(&manifest);
}

static void path_of(const char *name, char ret[static 256])
{
    (void)snprintf(ret, 256, "%s/%s", place, name);
}

static mode_t mode_of(const char *name)
{
    char path[256];
    struct stat st;

    path_of(name, path);
    return lstat(path, &st) < 0 ? 0 : st.st_mode;
}

static void files_folders_and_links_are_made_without_set_id_bits(void **state)
{
    char path[256], text[64] = "";

    (void)state;
    (void)umask(022);
    add_folder("dir");
    add_folder("dir/sub");
    add_file("dir/sub/f", "hello");
    add_file("dir/empty", "");
    add(TAR_SYMLINK, "dir/sub/up", "../empty", "");
    add_file("dir/implied/x", "1");
    stream_len += TAR_END_BYTES;
    expect_good("");
    assert_int_equal(mode_of("sub/f"), S_IFREG | 0644);
    assert_int_equal(mode_of("sub"), S_IFDIR | 0755);
    assert_int_equal(mode_of("empty"), S_IFREG | 0644);
    assert_int_equal(folder.mode, 0755);
    path_of("sub/up", path);
    assert_int_equal(readlink(path, text, sizeof text), 8);
    assert_string_equal(text, "../empty");
    assert_int_equal(manifest.files, 3);
    assert_int_equal(manifest.links, 1);
    assert_int_equal(manifest.bytes, 6);
    assert_string_equal(judged, "sub/sub/f empty sub/up@implied/x ");
    assert_memory_equal(manifest.items[0].sum, "\x2c\xf2\x4d\xba\x5f\xb0\xa3\x0e", 8);
    manifest_done(&manifest);
}

static void it_can_lie_beneath_the_staged_folder(void **state)
{
    (void)state;
    add_folder(".");
    add_file("./f", "x");
    expect_good("a/b");
    assert_int_equal(mode_of("a/b/f"), S_IFREG | 0644);
    assert_string_equal(manifest.items[0].path, "a/b/f");
    manifest_done(&manifest);
}

static void nothing_is_made_outside_or_twice(void **state)
{
    static const struct {
        enum tar_kind kind;
        const char *path, *link;
        int code;
        const char *words;
    } hostile[] = {
        {TAR_FILE, "dir/../../x", "", EBADMSG, "cannot be read"},
        {TAR_FILE, "/etc/x", "", EBADMSG, "cannot be read"},
        {TAR_FILE, "other/x", "", EBADMSG, "beside the folder"},
        {TAR_FILE, "dir", "", ENOTDIR, "not a folder any more"},
        {TAR_FILE, "dir/f", "", EEXIST, "'f'"},
        {TAR_FILE, "dir/f/x", "", ENOTDIR, "'f/x'"},
        {TAR_FILE, "dir/l/x", "", ELOOP, "'l/x'"},
        {TAR_FOLDER, "dir/f", "", EEXIST, "'f'"},
        {TAR_FOLDER, "dir/s", "", EEXIST, "'s'"},
        {TAR_SYMLINK, "dir/o", "../x", EXDEV, "in/dir/o"},
        {TAR_SYMLINK, "dir/o", "/etc/passwd", EXDEV, "leads out"},
        {TAR_SYMLINK, "dir/s/o", "x/../../..", EXDEV, "leads out"},
        {TAR_SYMLINK, "dir/f", "s", EEXIST, "'f'"},
        {TAR_HARDLINK, "dir/h", "dir/f", EBADMSG, "hard link"},
        {TAR_FIFO, "dir/p", "", EINVAL, "'in/dir/p' is a FIFO"},
        {TAR_FILE, "dir/bad", "", EPERM, "judged bad"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
        stream_len = 0;
        memset(stream, 0, sizeof stream);
        add_folder("dir");
        add_folder("dir/s");
        add_file("dir/f", "first");
        add(TAR_SYMLINK, "dir/l", "s", "");
        add(hostile[i].kind, hostile[i].path, hostile[i].link, "");
        expect_error(hostile[i].code, hostile[i].words);
        assert_int_equal(mode_of("../x"), 0);
        assert_int_equal(staging_remove_tree(AT_FDCWD, place), 0);
        assert_int_equal(mkdir(place, 0700), 0);
    }
}

static void what_is_too_large_is_refused_before_its_bytes(void **state)
{
    static char large[1002];

    (void)state;
    memset(large, 'x', 1001);
    add_folder("dir");
    add_file("dir/large", large);
    expect_error(EFBIG, "1001 bytes");
    assert_int_equal(error.cls, ERROR_TOO_LARGE);
    assert_int_equal(mode_of("large"), 0);
}

static void a_stream_that_breaks_off_is_no_folder(void **state)
{
    (void)state;
    add_folder("dir");
    add_file("dir/f", "hello");
    size_t whole = stream_len;
    for (size_t len = 0; len < whole; len += 100) {
        if (len % TAR_BLOCK_BYTES == 0 && len == TAR_BLOCK_BYTES)
            continue; /* ends with an entry, which is an end */
        stream_len = len;
        run("");
        assert_false(ended);
        assert_int_equal(error.code, EBADMSG);
        manifest_done(&manifest);
        assert_int_equal(staging_remove_tree(AT_FDCWD, place), 0);
        assert_int_equal(mkdir(place, 0700), 0);
    }
}

static void what_the_sandbox_reports_counts_more_than_the_stream(void **state)
{
    (void)state;
    add_folder("dir");
    add_file("dir/f", "hello");
    fault = ESTALE;
    expect_error(ESTALE, "changed");
}

static void something_that_was_left_out_ends_it(void **state)
{
    (void)state;
    add_folder("dir");
    skipped = "dir/sub/pipe";
    expect_error(EINVAL, "'in/dir/sub/pipe' is a FIFO, a socket or a device");
}

static void bytes_without_end_behind_the_archive_are_refused(void **state)
{
    (void)state;
    add_folder("dir");
    stream_len = sizeof stream;
    expect_error(EBADMSG, "behind its end");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_folders_and_links_are_made_without_set_id_bits),
        TEST(it_can_lie_beneath_the_staged_folder),
        TEST(nothing_is_made_outside_or_twice),
        TEST(what_is_too_large_is_refused_before_its_bytes),
        TEST(a_stream_that_breaks_off_is_no_folder),
        TEST(what_the_sandbox_reports_counts_more_than_the_stream),
        TEST(something_that_was_left_out_ends_it),
        TEST(bytes_without_end_behind_the_archive_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
