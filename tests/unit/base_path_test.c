/* SPDX-License-Identifier: Apache-2.0 */
/* Paths from outside: nothing leaves the root, whatever stands on the way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/guards.h"

/* A tree: "inside/…" is the root of every walk, "secret" lies beside it. */
struct tree {
    char path[64];
    int top, root;
};

static void make_file(int at, const char *name, const char *text)
{
    _cleanup_fd_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static int make_tree(void **state)
{
    static struct tree t;
    char target[80];

    (void)snprintf(t.path, sizeof t.path, "/tmp/path-test-XXXXXX");
    assert_non_null(mkdtemp(t.path));
    t.top = open(t.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    make_file(t.top, "secret", "secret");
    assert_int_equal(mkdirat(t.top, "inside", 0700), 0);
    t.root = openat(t.top, "inside", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(t.root, "folder", 0700), 0);
    make_file(t.root, "folder/file", "inside");
    make_file(t.root, "secret", "inside");
    (void)snprintf(target, sizeof target, "%s/secret", t.path);
    assert_int_equal(symlinkat("folder/file", t.root, "link"), 0);
    assert_int_equal(symlinkat("folder", t.root, "folder-link"), 0);
    assert_int_equal(symlinkat("../secret", t.root, "up"), 0);
    assert_int_equal(symlinkat(target, t.root, "absolute"), 0);
    assert_int_equal(symlinkat("/secret", t.root, "rooted"), 0);
    assert_int_equal(symlinkat("loop", t.root, "loop"), 0);
    assert_int_equal(symlinkat("..", t.root, "folder/parent"), 0);
    *state = &t;
    return 0;
}

static int remove_tree(void **state)
{
    static const char *const names[] = {"folder/parent", "folder/file", "loop", "rooted",
                                        "absolute",      "up",          "link", "folder-link",
                                        "secret",        "new"};
    struct tree *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        (void)unlinkat(t->root, names[i], 0);
    (void)unlinkat(t->root, "a/b/c", AT_REMOVEDIR);
    (void)unlinkat(t->root, "a/b", AT_REMOVEDIR);
    (void)unlinkat(t->root, "a", AT_REMOVEDIR);
    (void)unlinkat(t->root, "folder", AT_REMOVEDIR);
    (void)unlinkat(t->top, "secret", 0);
    fd_closep(&t->root);
    (void)unlinkat(t->top, "inside", AT_REMOVEDIR);
    fd_closep(&t->top);
    return rmdir(t->path);
}

/* The first word of what @fd holds; closes it. */
static void assert_holds(int fd, const char *text)
{
    char buf[16] = "";

    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(read(fd, buf, sizeof buf - 1) > 0);
    assert_string_equal(buf, text);
    (void)close(fd);
}

static void links_are_followed_as_long_as_they_stay_beneath(void **state)
{
    const struct tree *t = *state;

    assert_holds(path_open_beneath(t->root, "folder/file", O_RDONLY, 0), "inside");
    assert_holds(path_open_beneath(t->root, "link", O_RDONLY, 0), "inside");
    assert_holds(path_open_beneath(t->root, "folder-link/file", O_RDONLY, 0), "inside");
    assert_holds(path_open_beneath(t->root, "folder/../folder/file", O_RDONLY, 0), "inside");
    assert_holds(path_open_beneath(t->root, "folder/parent/link", O_RDONLY, 0), "inside");
}

static void what_would_leave_is_refused(void **state)
{
    static const char *const leaving[] = {
        "..",       "../secret", "/secret", "/etc/passwd",         "up",
        "absolute", "rooted",    "/",       "folder/../../secret", "folder/parent/../secret"};
    const struct tree *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(leaving); i++) {
        assert_int_equal(path_open_beneath(t->root, leaving[i], O_RDONLY, 0), -EXDEV);
        assert_true(path_open_plain(t->root, leaving[i], O_RDONLY, 0) < 0);
    }
    assert_int_equal(path_open_beneath(t->root, "loop", O_RDONLY, 0), -ELOOP);
    assert_int_equal(path_open_beneath(t->root, "absent", O_RDONLY, 0), -ENOENT);
    assert_int_equal(path_open_beneath(t->root, "", O_RDONLY, 0), -ENOENT);
}

static void magic_links_lead_nowhere(void **state)
{
    _cleanup_fd_ int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(proc >= 0);
    assert_int_equal(path_open_beneath(proc, "root", O_RDONLY, 0), -ELOOP);
    assert_int_equal(path_open_in_root(proc, "cwd", O_RDONLY, 0), -ELOOP);
    assert_int_equal(path_open_in_root(proc, "exe", O_RDONLY, 0), -ELOOP);
    assert_int_equal(path_open_plain(proc, "fd/0", O_RDONLY, 0), -ELOOP);
}

static void a_plain_walk_follows_no_link_at_all(void **state)
{
    const struct tree *t = *state;

    assert_holds(path_open_plain(t->root, "folder/file", O_RDONLY, 0), "inside");
    assert_int_equal(path_open_plain(t->root, "link", O_RDONLY, 0), -ELOOP);
    assert_int_equal(path_open_plain(t->root, "folder-link/file", O_RDONLY, 0), -ELOOP);
}

static void in_a_root_the_walk_ends_at_the_root(void **state)
{
    const struct tree *t = *state;

    assert_holds(path_open_in_root(t->root, "/secret", O_RDONLY, 0), "inside");
    assert_holds(path_open_in_root(t->root, "../../secret", O_RDONLY, 0), "inside");
    assert_holds(path_open_in_root(t->root, "up", O_RDONLY, 0), "inside");
    assert_holds(path_open_in_root(t->root, "rooted", O_RDONLY, 0), "inside");
    assert_int_equal(path_open_in_root(t->root, "absolute", O_RDONLY, 0), -ENOENT);
}

static void a_file_is_made_with_the_mode_that_was_asked_for(void **state)
{
    const struct tree *t = *state;
    mode_t old = umask(0);
    _cleanup_fd_ int fd = path_open_beneath(t->root, "new", O_WRONLY | O_CREAT | O_EXCL, 0640);
    struct stat st;

    (void)umask(old);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(path_open_beneath(t->root, "up", O_WRONLY | O_CREAT, 0600), -EXDEV);
}

static void folders_are_made_with_their_parents_and_twice(void **state)
{
    const struct tree *t = *state;
    struct stat made, found;

    for (int i = 0; i < 2; i++) {
        _cleanup_fd_ int fd = path_make_folders(t->root, "/a//b/./c/", 0755);

        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &made), 0);
        assert_int_equal(fstatat(t->root, "a/b/c", &found, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(made.st_ino, found.st_ino);
    }
}

static void folders_are_not_made_through_links_or_upwards(void **state)
{
    const struct tree *t = *state;
    char name[NAME_MAX + 2];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(path_make_folders(t->root, "folder-link/x", 0755), -ELOOP);
    assert_int_equal(path_make_folders(t->root, "../x", 0755), -EXDEV);
    assert_int_equal(path_make_folders(t->root, "folder/../x", 0755), -EXDEV);
    assert_int_equal(path_make_folders(t->root, "link", 0755), -ELOOP);
    assert_int_equal(path_make_folders(t->root, "secret", 0755), -ENOTDIR);
    assert_int_equal(path_make_folders(t->root, name, 0755), -ENAMETOOLONG);
    assert_int_equal(faccessat(t->top, "x", F_OK, 0), -1);
    assert_int_equal(faccessat(t->root, "folder/x", F_OK, 0), -1);
}

static void a_plain_absolute_path_has_no_odd_part(void **state)
{
    static const char *const plain[] = {"/", "/a", "/a/b", "/.a", "/..a", "/a..", "/...", "/a b"};
    static const char *const odd[] = {"",      "a",     "./a",   "//",      "/a/",
                                      "//a",   "/a//b", "/.",    "/..",     "/a/.",
                                      "/a/..", "/./a",  "/../a", "/a/../b", "/a/./b"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        assert_true(path_is_plain_absolute(plain[i]));
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
        assert_false(path_is_plain_absolute(odd[i]));
}

static void a_folder_holds_itself_and_what_is_below_it_only(void **state)
{
    (void)state;
    assert_true(path_is_within("/proc", "/proc"));
    assert_true(path_is_within("/proc/sys", "/proc"));
    assert_true(path_is_within("/anything", "/"));
    assert_true(path_is_within("/", "/"));
    assert_false(path_is_within("/process", "/proc"));
    assert_false(path_is_within("/pro", "/proc"));
    assert_false(path_is_within("/", "/proc"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_followed_as_long_as_they_stay_beneath),
        cmocka_unit_test(what_would_leave_is_refused),
        cmocka_unit_test(magic_links_lead_nowhere),
        cmocka_unit_test(a_plain_walk_follows_no_link_at_all),
        cmocka_unit_test(in_a_root_the_walk_ends_at_the_root),
        cmocka_unit_test(a_file_is_made_with_the_mode_that_was_asked_for),
        cmocka_unit_test(folders_are_made_with_their_parents_and_twice),
        cmocka_unit_test(folders_are_not_made_through_links_or_upwards),
        cmocka_unit_test(a_plain_absolute_path_has_no_odd_part),
        cmocka_unit_test(a_folder_holds_itself_and_what_is_below_it_only),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
