/* SPDX-License-Identifier: Apache-2.0 */
/* Copying trees: round trips, other programs' archives, hostile ones, and somebody who swaps. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "client/tree_pack.h"
#include "client/tree_unpack.h"
#include "wire/tar.h"
#include "base/guards.h"

enum { TEXT_MAX = 1 << 20, RACE_ROUNDS = 2000, RACE_ROUNDS_MAX = 200000 };

/* Files and folders of one test: "src" and "dst" are folders of @top. */
struct place {
    char path[64], src[80], dst[80];
    int top, src_fd, dst_fd;
    char outside[256]; /* what describe() says of a folder that nobody may touch */
};

/* What of the times is compared. */
enum times { TIMES_EXACT, TIMES_SECONDS, TIMES_SECONDS_BUT_OF_LINKS };

/* A text, or an archive. */
struct bytes {
    uint8_t *p;
    size_t len, size;
};

static void append(struct bytes *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    if (!b->p || len > b->size - b->len) {
        b->size = 2 * (b->len + len);
        b->p = realloc(b->p, b->size);
        assert_non_null(b->p);
    }
    memcpy(b->p + b->len, data, len);
    b->len += len;
}

static void bytes_done(struct bytes *b)
{
    free(b->p);
    *b = (struct bytes){0};
}

#define _cleanup_bytes_ _cleanup_(bytes_done)

/* Places */

static void remove_in(int at, const char *name)
{
    int fd;

    if (unlinkat(at, name, 0) == 0)
        return;
    (void)!fchmodat(at, name, 0700, 0); /* if it is a folder, it must be readable */
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    DIR *dir = fdopendir(fd);
    const struct dirent *d;
    while (dir && (d = readdir(dir)))
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            remove_in(fd, d->d_name);
    dir_closep(&dir);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

static int make_place(void **state)
{
    static struct place t;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    t = (struct place){.path = "/tmp/tree-test-XXXXXX"};
    assert_non_null(mkdtemp(t.path));
    assert_int_equal(chmod(t.path, 0755), 0);
    t.top = open(t.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(t.src, sizeof t.src, "%s/src", t.path);
    (void)snprintf(t.dst, sizeof t.dst, "%s/dst", t.path);
    assert_int_equal(mkdirat(t.top, "src", 0755), 0);
    assert_int_equal(mkdirat(t.top, "dst", 0755), 0);
    t.src_fd = openat(t.top, "src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    t.dst_fd = openat(t.top, "dst", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = &t;
    return 0;
}

static int remove_place(void **state)
{
    struct place *t = *state;

    remove_in(AT_FDCWD, t->path);
    fd_closep(&t->src_fd);
    fd_closep(&t->dst_fd);
    fd_closep(&t->top);
    return access(t->path, F_OK) == 0 ? -1 : 0;
}

static void renew_dst(struct place *t)
{
    fd_closep(&t->dst_fd);
    remove_in(t->top, "dst");
    assert_int_equal(mkdirat(t->top, "dst", 0755), 0);
    t->dst_fd = openat(t->top, "dst", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(t->dst_fd >= 0);
}

static void set_time(int at, const char *name, int64_t seconds, long ns)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = seconds, .tv_nsec = ns}};

    assert_int_equal(utimensat(at, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void make_file(int at, const char *name, const char *text, mode_t mode)
{
    _cleanup_fd_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
}

static void assert_holds(int at, const char *name, const char *text)
{
    _cleanup_fd_ int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char buf[256] = "";

    assert_true(fd >= 0);
    assert_true(read(fd, buf, sizeof buf - 1) >= 0);
    assert_string_equal(buf, text);
}

static bool exists(int at, const char *name)
{
    struct stat st;

    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Everything in a folder as a text, by name: kind, mode, time, content. */
static void describe(int at, const char *name, enum times times, struct bytes *b)
{
    char line[NAME_MAX + 128], target[PATH_MAX] = "";
    struct stat st;

    assert_int_equal(fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    if (S_ISLNK(st.st_mode))
        assert_true(readlinkat(at, name, target, sizeof target - 1) > 0);
    if (times != TIMES_EXACT)
        st.st_mtim.tv_nsec = 0;
    if (times == TIMES_SECONDS_BUT_OF_LINKS && S_ISLNK(st.st_mode))
        st.st_mtim.tv_sec = 0;
    int n = snprintf(line, sizeof line, "%s %o %lld.%09ld %lld ", name, st.st_mode,
                     (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                     S_ISREG(st.st_mode) ? (long long)st.st_size : 0);
    append(b, line, (size_t)n);
    append(b, target, strlen(target));
    _cleanup_fd_ int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (S_ISREG(st.st_mode)) {
        static char buf[65536];
        uint32_t sum = 0;

        assert_true(fd >= 0);
        for (ssize_t k; (k = read(fd, buf, sizeof buf)) > 0;)
            for (ssize_t i = 0; i < k; i++)
                sum = sum * 31 + (uint8_t)buf[i];
        append(b, line, (size_t)snprintf(line, sizeof line, "%08x", sum));
    }
    append(b, "\n", 1);
    if (!S_ISDIR(st.st_mode))
        return;
    struct dirent **names;
    int count = scandirat(fd, ".", &names, NULL, alphasort);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0)
            describe(fd, names[i]->d_name, times, b);
        free(names[i]);
    }
    free(names);
    append(b, ")\n", 2);
}

static void assert_same_trees(int a_fd, int b_fd, const char *name, enum times times)
{
    _cleanup_bytes_ struct bytes a = {0}, b = {0};

    describe(a_fd, name, times, &a);
    describe(b_fd, name, times, &b);
    append(&a, "", 1);
    append(&b, "", 1);
    assert_string_equal((char *)a.p, (char *)b.p);
}

/* "src/tree" with something of everything that every format can hold. */
static void make_tree(const struct place *t)
{
    static const char *const folders[] = {"tree", "tree/empty", "tree/sub", "tree/sub/closed"};
    int at = t->src_fd;

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        assert_int_equal(mkdirat(at, folders[i], 0755), 0);
    make_file(at, "tree/file", "hello", 0640);
    make_file(at, "tree/none", "", 0400);
    make_file(at, "tree/program", "#!/bin/sh\n", 0755);
    make_file(at, "tree/sub/large", "", 0666);
    _cleanup_fd_ int fd = openat(at, "tree/sub/large", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(write(fd, &(uint32_t){(uint32_t)i * 2654435761u}, 4), 4);
    make_file(at, "tree/sub/closed/inside", "x", 0600);
    make_file(at, "tree/b\xff\xfe", "not UTF-8", 0644);
    make_file(at, "tree/\xc3\xa4", "UTF-8", 0644);
    make_file(at, "tree/line\nend\t\x1b", "controls", 0644);
    assert_int_equal(symlinkat("../file", at, "tree/sub/link"), 0);
    assert_int_equal(symlinkat("sub/nowhere", at, "tree/dangling"), 0);
    set_time(at, "tree/sub/link", 1000000001, 0);
    set_time(at, "tree/dangling", 1000000002, 5);
    set_time(at, "tree/file", 1500000000, 123456789);
    set_time(at, "tree/program", 0, 0);
    set_time(at, "tree/empty", 1234567890, 500000000);
    assert_int_equal(fchmodat(at, "tree/sub/closed", 0500, 0), 0);
    set_time(at, "tree/sub/closed", 1111111111, 0);
    set_time(at, "tree/sub", 1222222222, 0);
    set_time(at, "tree", 1333333333, 7);
}

/* Packing and unpacking */

static struct bytes heard; /* what was skipped, a line each */

static void hear(void *arg, const char *path, const char *why)
{
    assert_ptr_equal(arg, &heard);
    append(&heard, path, strlen(path));
    append(&heard, ": ", 2);
    append(&heard, why, strlen(why));
    append(&heard, "\n", 1);
}

static void assert_heard(const char *text)
{
    append(&heard, "", 1);
    assert_non_null(strstr((char *)heard.p, text));
    bytes_done(&heard);
}

static void drain(int fd, struct bytes *out)
{
    static uint8_t buf[65536];
    ssize_t n;

    while ((n = read(fd, buf, sizeof buf)) > 0)
        append(out, buf, (size_t)n);
}

/* Through a pipe, which is full again and again. */
static int pack(const char *path, const char *name, struct bytes *out, struct error *err)
{
    const struct tree_pack_options o = {path, name, {hear, &heard}};
    struct tree_pack *p = NULL;
    int fds[2], r = tree_pack_new(&o, &p, err);

    if (r < 0)
        return r;
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    while ((r = tree_pack_step(p, fds[1], err)) == 0)
        drain(fds[0], out);
    drain(fds[0], out);
    (void)close(fds[0]);
    (void)close(fds[1]);
    tree_pack_free(p);
    return r;
}

static void pack_tree(const struct place *t, const char *name, struct bytes *out)
{
    struct error err = ERROR_INIT;
    char path[128];

    (void)snprintf(path, sizeof path, "%s/tree", t->src);
    if (pack(path, name, out, &err) != 1)
        fail_msg("%s", err.message);
}

static int unpack_limited(const struct place *t, const char *name, const struct bytes *in,
                          uint64_t max_bytes, size_t piece, struct error *err)
{
    const struct tree_unpack_options o = {t->dst_fd, t->dst, name, max_bytes, {hear, &heard}};
    struct tree_unpack *u = NULL;
    int r = tree_unpack_new(&o, &u, err);

    for (size_t at = 0; at < in->len && r == 0; at += piece)
        r = tree_unpack_feed(u, in->p + at, in->len - at < piece ? in->len - at : piece, err);
    if (r >= 0)
        r = tree_unpack_finish(u, err);
    tree_unpack_free(u);
    return r;
}

static int unpack(const struct place *t, const char *name, const struct bytes *in,
                  struct error *err)
{
    return unpack_limited(t, name, in, 0, 100000, err);
}

static void unpack_well(const struct place *t, const char *name, const struct bytes *in)
{
    struct error err = ERROR_INIT;

    if (unpack(t, name, in, &err) != 0)
        fail_msg("%s", err.message);
}

/* No temporary file is left in "dst" or its folders. */
static void assert_no_remains(const struct place *t)
{
    _cleanup_bytes_ struct bytes b = {0};

    describe(t->top, "dst", TIMES_EXACT, &b);
    append(&b, "", 1);
    assert_null(strstr((char *)b.p, ".copy-"));
}

static void add(struct bytes *b, struct tar_entry e, const char *data)
{
    static uint8_t head[TAR_HEADER_MAX];

    if (!e.link)
        e.link = "";
    if (data)
        e.size = strlen(data);
    size_t n = tar_header(&e, head, sizeof head);
    assert_true(n > 0);
    append(b, head, n);
    if (data) {
        append(b, data, (size_t)e.size);
        append(b, tar_zeros, tar_padding(e.size));
    }
}

static void add_file(struct bytes *b, const char *path, const char *data)
{
    add(b, (struct tar_entry){.path = path, .mode = 0644, .mtime = 5, .kind = TAR_FILE}, data);
}

static void add_folder(struct bytes *b, const char *path)
{
    add(b, (struct tar_entry){.path = path, .mode = 0755, .mtime = 5, .kind = TAR_FOLDER}, NULL);
}

static void add_link(struct bytes *b, enum tar_kind kind, const char *path, const char *target)
{
    add(b, (struct tar_entry){.path = path, .link = target, .mtime = 5, .kind = kind}, NULL);
}

static void a_tree_comes_back_as_it_was(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};

    make_tree(t);
    pack_tree(t, "tree", &b);
    unpack_well(t, "tree", &b);
    assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_EXACT);
    assert_int_equal(fchmodat(t->dst_fd, "tree/sub/closed", 0700, 0), 0);
    unpack_well(t, "tree", &b); /* over what is there */
    assert_holds(t->dst_fd, "tree/file", "hello");
    assert_no_remains(t);
    renew_dst(t);
    unpack_well(t, NULL, &b);
    assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_EXACT);
    assert_int_equal(heard.len, 0);
}

static void steps_go_from_one_pipe_to_the_other(void **state)
{
    struct place *t = *state;
    struct tree_pack *p = NULL;
    struct tree_unpack *u = NULL;
    struct error err = ERROR_INIT;
    char path[128];
    int fds[2], packed = 0, unpacked;

    make_tree(t);
    make_file(t->src_fd, "tree/big", "", 0644);
    (void)snprintf(path, sizeof path, "%s/tree/big", t->src);
    assert_int_equal(truncate(path, 9 * 1000 * 1000 + 1), 0); /* several steps */
    set_time(t->src_fd, "tree", 1333333333, 7);
    (void)snprintf(path, sizeof path, "%s/tree", t->src);
    const struct tree_pack_options po = {path, "x", {hear, &heard}};
    const struct tree_unpack_options uo = {t->dst_fd, NULL, "tree", 0, {hear, &heard}};
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(tree_pack_new(&po, &p, &err), 0);
    assert_int_equal(tree_unpack_new(&uo, &u, &err), 0);
    do {
        if (packed == 0)
            packed = tree_pack_step(p, fds[1], &err);
        assert_true(packed >= 0);
        unpacked = tree_unpack_step(u, fds[0], &err);
    } while (unpacked == 0);
    assert_int_equal(packed, 1);
    assert_int_equal(unpacked, 1); /* the end is seen although the pipe stays open */
    assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_EXACT);
    assert_memory_equal(tree_pack_totals(p), tree_unpack_totals(u), sizeof(struct tree_totals));
    assert_int_equal(tree_pack_totals(p)->folders, 4);
    tree_pack_free(p);
    tree_unpack_free(u);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void a_closed_pipe_ends_either_side(void **state)
{
    struct place *t = *state;
    struct tree_pack *p = NULL;
    struct tree_unpack *u = NULL;
    struct error err = ERROR_INIT;
    int fds[2];

    make_tree(t);
    const struct tree_pack_options po = {t->src, "x", {NULL, NULL}};
    const struct tree_unpack_options uo = {t->dst_fd, NULL, "x", 0, {NULL, NULL}};
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(tree_pack_new(&po, &p, &err), 0);
    assert_int_equal(tree_unpack_new(&uo, &u, &err), 0);
    assert_int_equal(tree_unpack_step(u, fds[0], &err), 0);
    (void)close(fds[1]);
    assert_int_equal(tree_unpack_step(u, fds[0], &err), -EBADMSG); /* nothing is no archive */
    err = (struct error)ERROR_INIT;
    (void)close(fds[0]);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    (void)close(fds[0]);
    assert_int_equal(tree_pack_step(p, fds[1], &err), -EPIPE);
    (void)close(fds[1]);
    tree_pack_free(p);
    tree_unpack_free(u);
}

static void a_single_file_and_a_named_link_are_copied(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;
    char path[128];

    make_tree(t);
    assert_int_equal(symlinkat("tree/file", t->src_fd, "named"), 0);
    (void)snprintf(path, sizeof path, "%s/named", t->src);
    assert_int_equal(pack(path, "a/b", &b, &err), 1);
    unpack_well(t, NULL, &b); /* makes the folder that only the path mentions */
    assert_holds(t->dst_fd, "a/b", "hello");
    b.len = 0;
    assert_int_equal(pack(path, "b", &b, &err), 1);
    unpack_well(t, "other", &b);
    assert_holds(t->dst_fd, "other", "hello");
}

static void a_folder_can_be_packed_as_the_top_itself(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};

    make_tree(t);
    pack_tree(t, ".", &b);
    unpack_well(t, NULL, &b);
    assert_holds(t->dst_fd, "sub/closed/inside", "x");
    renew_dst(t);
    unpack_well(t, "tree", &b);
    assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_EXACT);
}

static void special_files_are_skipped_by_name_and_never_opened(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;
    char path[128];

    make_tree(t);
    (void)snprintf(path, sizeof path, "%s/tree/fifo", t->src);
    assert_int_equal(mkfifo(path, 0600), 0);
    pack_tree(t, "tree", &b); /* would wait for a writer */
    assert_heard("/src/tree/fifo: it is a FIFO\n");
    unpack_well(t, "tree", &b);
    assert_false(exists(t->dst_fd, "tree/fifo"));
    assert_int_equal(pack(path, "x", &b, &err), -EINVAL);
    assert_non_null(strstr(err.message, "/src/tree/fifo cannot be copied: it is a FIFO"));
    err = (struct error)ERROR_INIT;
    assert_int_equal(pack("/dev/zero", "x", &b, &err), -EINVAL);
    err = (struct error)ERROR_INIT;
    assert_int_equal(pack("/nowhere", "x", &b, &err), -ENOENT);
}

static void bad_names_are_refused_at_once(void **state)
{
    static const char *const bad[] = {"", "/x", "..", "a/../b"};
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct error err = ERROR_INIT;

        assert_int_equal(pack(t->src, bad[i], &b, &err), -EINVAL);
        err = (struct error)ERROR_INIT;
        assert_int_equal(unpack(t, bad[i], &b, &err), -EINVAL);
    }
    struct error err = ERROR_INIT;
    assert_int_equal(unpack(t, "a/b", &b, &err), -EINVAL);
}

/* Runs @test as somebody without privilege, in a child; 0 is success. */
static int unprivileged(const struct place *t, int (*test)(const struct place *t))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (getuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
                              setresuid(65534, 65534, 65534) < 0))
            _exit(99);
        _exit(test(t));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static int pack_unreadable(const struct place *t)
{
    struct bytes b = {0};
    struct error err = ERROR_INIT;
    int r = pack(t->src, "x", &b, &err);

    bytes_done(&b);
    return r == -EACCES && err.cls == ERROR_RECOVERABLE && err.remedy[0] &&
                   strstr(err.message, "/src/secret")
               ? 0
               : 1;
}

static int unpack_unwritable(const struct place *t)
{
    struct bytes b = {0};
    struct error err = ERROR_INIT;

    add_file(&b, "x", "data");
    int r = unpack(t, "x", &b, &err);
    bytes_done(&b);
    return r == -EACCES && strstr(err.message, "/dst/x") && strstr(err.message, "permission") ? 0
                                                                                              : 1;
}

/* A folder that nobody may enter gets that mode only after those in it have theirs. */
static int unpack_closed(const struct place *t)
{
    struct bytes b = {0};
    struct error err = ERROR_INIT;
    struct stat st;

    add(&b, (struct tar_entry){.path = "d", .mode = 0, .kind = TAR_FOLDER}, NULL);
    add(&b, (struct tar_entry){.path = "d/e", .mode = 0, .kind = TAR_FOLDER}, NULL);
    add(&b, (struct tar_entry){.path = "d/e/f", .mode = 0100, .kind = TAR_FOLDER}, NULL);
    add_file(&b, "d/e/f/file", "data");
    int r = unpack(t, "d", &b, &err);
    bytes_done(&b);
    return r == 0 && fstatat(t->dst_fd, "d", &st, 0) == 0 && (st.st_mode & 07777) == 0 &&
                   fchmodat(t->dst_fd, "d", 0700, 0) == 0 &&
                   fstatat(t->dst_fd, "d/e", &st, 0) == 0 && (st.st_mode & 07777) == 0
               ? 0
               : 1;
}

static void closed_folders_are_closed_last(void **state)
{
    struct place *t = *state;

    assert_int_equal(fchmod(t->dst_fd, 0777), 0);
    assert_int_equal(unprivileged(t, unpack_closed), 0);
}

static void missing_permission_names_the_file(void **state)
{
    struct place *t = *state;

    make_file(t->src_fd, "secret", "x", 0);
    assert_int_equal(fchmod(t->dst_fd, 0555), 0);
    assert_int_equal(unprivileged(t, pack_unreadable), 0);
    assert_int_equal(unprivileged(t, unpack_unwritable), 0);
}

static void folders_deeper_than_the_limit_are_refused(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    _cleanup_fd_ int at = openat(t->src_fd, ".", O_PATH | O_CLOEXEC);
    for (int i = 1; i < TREE_DEPTH_MAX; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_PATH | O_CLOEXEC);
        fd_closep(&at);
        at = next;
    }
    assert_int_equal(pack(t->src, "x", &b, &err), 1);
    unpack_well(t, "src", &b);
    assert_int_equal(mkdirat(at, "d", 0755), 0);
    assert_int_equal(pack(t->src, "x", &b, &err), -ELOOP);
    assert_non_null(strstr(err.message, "512 folders deep"));
}

static void paths_of_4000_bytes_come_back(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    _cleanup_fd_ int at = openat(t->src_fd, ".", O_PATH | O_CLOEXEC);
    char name[201];

    memset(name, 'n', 200);
    name[200] = '\0';
    for (int i = 0; i < 20; i++) {
        const char *here = i == 0 ? "tree" : name;

        name[0] = (char)(i % 2 ? 'n' : '\xe4'); /* some are not UTF-8 */
        assert_int_equal(mkdirat(at, here, 0755), 0);
        int next = openat(at, here, O_PATH | O_CLOEXEC);
        fd_closep(&at);
        at = next;
    }
    make_file(at, "file", "deep", 0644); /* at 4 + 19 * 201 + 5 */
    make_file(at, name, "deeper", 0644); /* at 4024 */
    assert_int_equal(symlinkat(name, at, "link"), 0);
    pack_tree(t, "tree", &b);
    unpack_well(t, "tree", &b);
    assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_EXACT);
}

static void a_file_that_shrinks_is_padded_and_reported(void **state)
{
    struct place *t = *state;
    const struct tree_pack_options o = {t->src, "src", {NULL, NULL}};
    _cleanup_bytes_ struct bytes b = {0};
    struct tree_pack *p = NULL;
    struct error err = ERROR_INIT;
    char path[128];
    struct stat st;
    int fds[2], r;

    make_file(t->src_fd, "shrinks", "", 0644);
    (void)snprintf(path, sizeof path, "%s/shrinks", t->src);
    assert_int_equal(truncate(path, 3000001), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(tree_pack_new(&o, &p, &err), 0);
    assert_int_equal(tree_pack_step(p, fds[1], &err), 0);
    assert_int_equal(truncate(path, 100), 0);
    while ((r = tree_pack_step(p, fds[1], &err)) == 0)
        drain(fds[0], &b);
    drain(fds[0], &b);
    assert_int_equal(r, -EIO);
    assert_int_equal(err.cls, ERROR_RECOVERABLE);
    assert_non_null(strstr(err.message, "/src/shrinks became shorter"));
    tree_pack_free(p);
    (void)close(fds[0]);
    (void)close(fds[1]);
    unpack_well(t, "src", &b); /* the archive itself is whole */
    assert_int_equal(fstatat(t->dst_fd, "src/shrinks", &st, 0), 0);
    assert_int_equal(st.st_size, 3000001);
}

static void a_file_that_grows_is_cut(void **state)
{
    struct place *t = *state;
    const struct tree_pack_options o = {t->src, "src", {NULL, NULL}};
    _cleanup_bytes_ struct bytes b = {0};
    struct tree_pack *p = NULL;
    struct error err = ERROR_INIT;
    char path[128];
    struct stat st;
    int fds[2], r;

    make_file(t->src_fd, "grows", "", 0644);
    (void)snprintf(path, sizeof path, "%s/grows", t->src);
    assert_int_equal(truncate(path, 1000001), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(tree_pack_new(&o, &p, &err), 0);
    assert_int_equal(tree_pack_step(p, fds[1], &err), 0);
    assert_int_equal(truncate(path, 2000000), 0);
    while ((r = tree_pack_step(p, fds[1], &err)) == 0)
        drain(fds[0], &b);
    drain(fds[0], &b);
    assert_int_equal(r, 1);
    tree_pack_free(p);
    (void)close(fds[0]);
    (void)close(fds[1]);
    unpack_well(t, "src", &b);
    assert_int_equal(fstatat(t->dst_fd, "src/grows", &st, 0), 0);
    assert_int_equal(st.st_size, 1000001);
}

/* Hostile archives. What lies outside "dst" is "outside" beside it, and must not change. */

static void describe_outside(const struct place *t, char *buf, size_t size)
{
    _cleanup_bytes_ struct bytes b = {0};

    describe(t->top, "outside", TIMES_EXACT, &b);
    assert_true(b.len < size);
    memcpy(buf, b.p, b.len);
    buf[b.len] = '\0';
}

static void make_outside(struct place *t)
{
    assert_int_equal(mkdirat(t->top, "outside", 0755), 0);
    _cleanup_fd_ int fd = openat(t->top, "outside", O_PATH | O_CLOEXEC);
    make_file(fd, "canary", "sings", 0640);
    set_time(t->top, "outside/canary", 77, 0);
    set_time(t->top, "outside", 78, 0);
    describe_outside(t, t->outside, sizeof t->outside);
}

static void assert_outside_is_untouched(const struct place *t)
{
    char now[sizeof t->outside];

    describe_outside(t, now, sizeof now);
    assert_string_equal(now, t->outside);
}

static void paths_that_leave_are_refused(void **state)
{
    static const char *const bad[] = {"../outside/canary", "tree/../../outside/canary", "tree/..",
                                      "/tmp/tree-test-absolute", "./../outside/new"};
    struct place *t = *state;

    make_outside(t);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        for (enum tar_kind kind = TAR_FILE; kind <= TAR_FIFO; kind++) {
            _cleanup_bytes_ struct bytes b = {0};
            struct error err = ERROR_INIT;

            add_folder(&b, "tree");
            if (kind == TAR_FILE || kind == TAR_FOLDER || kind == TAR_FIFO)
                add(&b, (struct tar_entry){.path = bad[i], .kind = kind}, NULL);
            else
                add_link(&b, kind, bad[i], "tree");
            assert_int_equal(unpack(t, i % 2 ? "tree" : NULL, &b, &err), -EBADMSG);
            assert_non_null(strstr(err.message, "not taken"));
        }
    assert_outside_is_untouched(t);
    assert_false(exists(AT_FDCWD, bad[3]));
    assert_no_remains(t);
}

static void nothing_is_written_through_links(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;

    make_outside(t);
    /* links of the archive's own: that which leads out is not made, so a folder is */
    add_link(&b, TAR_SYMLINK, "tree/out", "../../outside");
    add_file(&b, "tree/out/canary", "dead");
    unpack_well(t, "tree", &b);
    assert_heard("/dst/tree/out: it is a symbolic link that may lead out");
    assert_holds(t->dst_fd, "tree/out/canary", "dead");
    b.len = 0;
    /* and that which stays is not followed either */
    add_folder(&b, "tree/sub");
    add_link(&b, TAR_SYMLINK, "tree/in", "sub");
    add_file(&b, "tree/in/file", "dead");
    assert_int_equal(unpack(t, "tree", &b, &err), -ELOOP);
    assert_non_null(strstr(err.message, "tree/in cannot be written: a symbolic link"));
    assert_false(exists(t->dst_fd, "tree/sub/file"));
    b.len = 0;
    /* links that were there before */
    assert_int_equal(symlinkat("../outside", t->dst_fd, "there"), 0);
    add_file(&b, "there/canary", "dead");
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack(t, "there", &b, &err), -ELOOP);
    b.len = 0;
    add_folder(&b, "there");
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack(t, NULL, &b, &err), -ELOOP);
    b.len = 0;
    assert_int_equal(symlinkat("../outside/canary", t->dst_fd, "file"), 0);
    add_file(&b, "file", "new");
    unpack_well(t, "file", &b); /* replaces the link itself */
    assert_holds(t->dst_fd, "file", "new");
    assert_outside_is_untouched(t);
    assert_no_remains(t);
}

static void links_that_lead_out_together_are_not_made(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    char path[PATH_MAX];

    make_outside(t);
    add_folder(&b, "tree/a/b/c");
    add_link(&b, TAR_SYMLINK, "tree/a/b/c/up", "../../..");
    add_link(&b, TAR_SYMLINK, "tree/a/b/two", "c/up/../../outside/canary");
    add_link(&b, TAR_SYMLINK, "tree/absolute", "/etc/passwd");
    add_link(&b, TAR_SYMLINK, "tree/top", "../other");
    unpack_well(t, "tree", &b);
    assert_true(readlinkat(t->dst_fd, "tree/a/b/c/up", path, sizeof path) == 8);
    assert_false(exists(t->dst_fd, "tree/a/b/two"));
    assert_false(exists(t->dst_fd, "tree/absolute"));
    assert_false(exists(t->dst_fd, "tree/top"));
    assert_heard("tree/absolute: it is a symbolic link");
}

static void hard_links_reach_only_what_is_in_the_tree(void **state)
{
    static const char *const bad[] = {"../outside/canary", "/etc/passwd", "tree/../x", "beside"};
    struct place *t = *state;
    struct stat a, c;

    make_outside(t);
    make_file(t->dst_fd, "beside", "mine", 0600);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_bytes_ struct bytes b = {0};
        struct error err = ERROR_INIT;

        add_folder(&b, "tree");
        add_link(&b, TAR_HARDLINK, "tree/hard", bad[i]);
        assert_int_equal(unpack(t, "tree", &b, &err), -EBADMSG);
        assert_false(exists(t->dst_fd, "tree/hard"));
    }
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;
    add_file(&b, "x/file", "first");
    add_link(&b, TAR_HARDLINK, "x/hard", "x/file");
    add_link(&b, TAR_HARDLINK, "x/hard", "x/file");
    unpack_well(t, "tree", &b);
    assert_int_equal(fstatat(t->dst_fd, "tree/file", &a, 0), 0);
    assert_int_equal(fstatat(t->dst_fd, "tree/hard", &c, 0), 0);
    assert_int_equal(a.st_ino, c.st_ino);
    assert_int_equal(a.st_nlink, 2);
    /* a link in the way, to a file outside, is not followed */
    b.len = 0;
    assert_int_equal(symlinkat("../../outside/canary", t->dst_fd, "tree/out"), 0);
    add_link(&b, TAR_HARDLINK, "tree/hard2", "tree/out");
    assert_int_equal(unpack(t, "tree", &b, &err), -EINVAL);
    assert_false(exists(t->dst_fd, "tree/hard2"));
    assert_int_equal(fstatat(t->top, "outside/canary", &a, 0), 0);
    assert_int_equal(a.st_nlink, 1);
    /* writing to one name does not write through the other */
    b.len = 0;
    add_file(&b, "tree/hard", "second");
    unpack_well(t, "tree", &b);
    assert_holds(t->dst_fd, "tree/file", "first");
    assert_no_remains(t);
}

static void later_entries_replace_earlier_ones(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct stat st;

    add(&b, (struct tar_entry){.path = "d", .mode = 0700, .mtime = 1, .kind = TAR_FOLDER}, NULL);
    add_file(&b, "d/x", "one");
    add_file(&b, "d/x", "two");
    add_link(&b, TAR_SYMLINK, "d/x", "y");
    add_file(&b, "d/y", "three");
    add_file(&b, "./d//x", "four");
    add(&b, (struct tar_entry){.path = "d", .mode = 06750, .mtime = 9, .kind = TAR_FOLDER}, NULL);
    unpack_well(t, "d", &b);
    assert_holds(t->dst_fd, "d/x", "four");
    assert_holds(t->dst_fd, "d/y", "three");
    assert_int_equal(fstatat(t->dst_fd, "d", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0750);
    assert_int_equal(st.st_mtim.tv_sec, 9);
}

static void folders_and_files_do_not_replace_each_other(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;

    make_file(t->dst_fd, "file", "mine", 0600);
    assert_int_equal(mkdirat(t->dst_fd, "folder", 0700), 0);
    add_folder(&b, "file");
    assert_int_equal(unpack(t, "file", &b, &err), -ENOTDIR);
    assert_non_null(strstr(err.message, "/dst/file cannot be written: a file stands"));
    b.len = 0;
    add_file(&b, "file/x", "y");
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack(t, "file", &b, &err), -ENOTDIR);
    b.len = 0;
    add_file(&b, "folder", "y");
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack(t, "folder", &b, &err), -EISDIR);
    assert_non_null(strstr(err.message, "/dst/folder cannot be written: a folder stands"));
    b.len = 0;
    add_link(&b, TAR_SYMLINK, "folder", "y");
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack(t, NULL, &b, &err), -EISDIR);
    assert_holds(t->dst_fd, "file", "mine");
    assert_no_remains(t);
}

static void existing_folders_keep_their_mode(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct stat st;

    assert_int_equal(mkdirat(t->dst_fd, "d", 0700), 0);
    add(&b, (struct tar_entry){.path = "d", .mode = 0777, .mtime = 1, .kind = TAR_FOLDER}, NULL);
    add_file(&b, "d/sub/file", "implied");
    add(&b, (struct tar_entry){.path = "d/sub", .mode = 0710, .mtime = 1, .kind = TAR_FOLDER},
        NULL);
    add_file(&b, "d/other/file", "implied");
    unpack_well(t, "d", &b);
    assert_int_equal(fstatat(t->dst_fd, "d", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    assert_int_equal(fstatat(t->dst_fd, "d/sub", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0710); /* what it was said to be, although too late */
    assert_int_equal(st.st_mtim.tv_sec, 1);
    assert_int_equal(fstatat(t->dst_fd, "d/other", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0755);
}

static void special_bits_are_dropped_and_special_files_skipped(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct stat st;

    add(&b, (struct tar_entry){.path = "d/suid", .mode = 07755, .kind = TAR_FILE}, "x");
    add(&b, (struct tar_entry){.path = "d/sticky", .mode = 03777, .kind = TAR_FOLDER}, NULL);
    add(&b, (struct tar_entry){.path = "d/fifo", .mode = 0666, .kind = TAR_FIFO}, NULL);
    unpack_well(t, "d", &b);
    assert_int_equal(fstatat(t->dst_fd, "d/suid", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0755);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal(fstatat(t->dst_fd, "d/sticky", &st, 0), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0777);
    assert_false(exists(t->dst_fd, "d/fifo"));
    assert_heard("/dst/d/fifo: it is a FIFO\n");
}

static void entries_beside_the_named_top_are_refused(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;

    add_file(&b, "top/x", "y");
    add_file(&b, ".profile", "dead");
    assert_int_equal(unpack(t, "top", &b, &err), -EBADMSG);
    assert_false(exists(t->dst_fd, ".profile"));
    b.len = 0;
    add_file(&b, "topper/x", "y"); /* the first top is this one */
    add_file(&b, "top/x", "y");
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack(t, "z", &b, &err), -EBADMSG);
}

static void the_limit_counts_before_anything_is_written(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;

    add_file(&b, "d/a", "12345");
    add_file(&b, "d/b", "67890");
    assert_int_equal(unpack_limited(t, "d", &b, 10, 999, &err), 0);
    renew_dst(t);
    assert_int_equal(unpack_limited(t, "d", &b, 9, 999, &err), -EFBIG);
    assert_int_equal(err.cls, ERROR_TOO_LARGE);
    assert_non_null(strstr(err.message, "9 bytes"));
    assert_false(exists(t->dst_fd, "d/b"));
    b.len = 0;
    add(&b, (struct tar_entry){.path = "d/huge", .size = INT64_MAX, .kind = TAR_FILE}, NULL);
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack_limited(t, "d", &b, UINT64_MAX / 2 - 1, 999, &err), -EFBIG);
    err = (struct error)ERROR_INIT;
    assert_int_equal(unpack(t, "d", &b, &err), -EBADMSG); /* which ends before its data */
    assert_false(exists(t->dst_fd, "d/huge"));
    assert_no_remains(t);
}

static void a_failed_write_leaves_nothing(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    struct error err = ERROR_INIT;
    struct rlimit old, small;

    add_file(&b, "d/a", "1234567890");
    add_folder(&b, "d");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){5, old.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = unpack(t, "d", &b, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(r, -EFBIG);
    assert_non_null(strstr(err.message, "/dst/d/a cannot be written: it is larger"));
    assert_false(exists(t->dst_fd, "d/a"));
    assert_no_remains(t);
}

static void every_shorter_archive_leaves_whole_files_only(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    unsigned good = 0;

    add_folder(&b, "d");
    add_file(&b, "d/a", "first");
    add_link(&b, TAR_SYMLINK, "d/l", "a");
    add_file(&b, "d/b", "second");
    append(&b, tar_zeros, TAR_END_BYTES);
    for (size_t len = 0; len < b.len; len++) {
        struct bytes cut = {.p = b.p, .len = len};
        struct error err = ERROR_INIT;
        int r = unpack(t, "d", &cut, &err);

        good += r == 0;
        assert_true(r == 0 || r == -EBADMSG);
        if (exists(t->dst_fd, "d/a"))
            assert_holds(t->dst_fd, "d/a", "first");
        if (exists(t->dst_fd, "d/b"))
            assert_holds(t->dst_fd, "d/b", "second");
        assert_int_equal(exists(t->dst_fd, "d/b"), len >= 512 * 5 + 6);
        assert_no_remains(t);
        renew_dst(t);
    }
    assert_int_equal(good, 5);
}

/* Other programs */

/* Return: the status; skips the test when there is no such program. */
static int run(const char *const argv[])
{
    char *args[16] = {NULL};
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setenv("LC_ALL", "C.UTF-8", 1);
        for (size_t i = 0; argv[i]; i++)
            args[i] = strdup(argv[i]);
        (void)execvp(args[0], args);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 127) {
        print_message("%s is not installed\n", argv[0]);
        skip();
    }
    return WEXITSTATUS(status);
}

static void read_file(const struct place *t, const char *name, struct bytes *b)
{
    _cleanup_fd_ int fd = openat(t->top, name, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    b->len = 0;
    drain(fd, b);
}

static void write_file(const struct place *t, const char *name, const struct bytes *b)
{
    _cleanup_fd_ int fd = openat(t->top, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, b->p, b->len), (ssize_t)b->len);
}

/* A path that only pax and GNU headers can hold, and hard links. */
static void add_long_names(const struct place *t)
{
    char name[256];

    memset(name, 'q', 250);
    name[250] = '\0';
    _cleanup_fd_ int at = openat(t->src_fd, "tree/sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_file(at, name, "long", 0644);
    assert_int_equal(symlinkat(name, at, "long"), 0);
    set_time(at, "long", 5, 0);
    set_time(t->src_fd, "tree/sub", 1222222222, 0);
}

static void gnu_archives_are_read(void **state)
{
    static const char *const formats[] = {"--format=v7", "--format=ustar", "--format=gnu",
                                          "--format=pax"};
    struct place *t = *state;
    char out[128];

    make_tree(t);
    assert_int_equal(linkat(t->src_fd, "tree/file", t->src_fd, "tree/hard", 0), 0);
    set_time(t->src_fd, "tree", 1333333333, 7);
    (void)snprintf(out, sizeof out, "%s/a.tar", t->path);
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        _cleanup_bytes_ struct bytes b = {0};
        const char *argv[] = {"tar", formats[i], "-C", t->src, "-cf", out, "tree", NULL};

        if (i == 2)
            add_long_names(t);
        assert_int_equal(run(argv), 0);
        read_file(t, "a.tar", &b);
        renew_dst(t);
        unpack_well(t, "tree", &b);
        assert_same_trees(t->src_fd, t->dst_fd, "tree", i == 3 ? TIMES_EXACT : TIMES_SECONDS);
    }
}

static void python_archives_are_read(void **state)
{
    static const char archive[] = "import sys, tarfile\n"
                                  "form = getattr(tarfile, sys.argv[1] + '_FORMAT')\n"
                                  "with tarfile.open(sys.argv[2], 'w', format=form) as f:\n"
                                  "    f.add(sys.argv[3] + '/tree', arcname='tree')\n";
    static const char *const formats[] = {"USTAR", "GNU", "PAX"};
    struct place *t = *state;
    char out[128];

    make_tree(t);
    (void)snprintf(out, sizeof out, "%s/a.tar", t->path);
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        _cleanup_bytes_ struct bytes b = {0};
        const char *argv[] = {"python3", "-c", archive, formats[i], out, t->src, NULL};

        if (i == 1)
            add_long_names(t);
        assert_int_equal(run(argv), 0);
        read_file(t, "a.tar", &b);
        renew_dst(t);
        unpack_well(t, "tree", &b);
        assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_SECONDS);
    }
}

static void gnu_tar_takes_ours(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    char in[128];

    make_tree(t);
    add_long_names(t);
    pack_tree(t, "tree", &b);
    write_file(t, "a.tar", &b);
    (void)snprintf(in, sizeof in, "%s/a.tar", t->path);
    const char *argv[] = {"tar", "--warning=no-unknown-keyword", "-C", t->dst, "-xpf", in, NULL};
    assert_int_equal(run(argv), 0);
    assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_EXACT);
    const char *compare[] = {"tar", "--warning=no-unknown-keyword", "-C", t->src, "-df", in, NULL};
    if (geteuid() == 0) /* the owner is compared too, and is 0 in the archive */
        assert_int_equal(run(compare), 0);
}

static void python_takes_ours(void **state)
{
    static const char extract[] = "import sys, os, tarfile\n"
                                  "with tarfile.open(sys.argv[1]) as f:\n"
                                  "    listed = sorted(f.getnames())\n"
                                  "    f.extractall(sys.argv[2])\n"
                                  "found = ['tree']\n"
                                  "os.chdir(sys.argv[2])\n"
                                  "for top, folders, files in os.walk('tree'):\n"
                                  "    found += [top + '/' + name for name in folders + files]\n"
                                  "assert sorted(found) == listed, (found, listed)\n";
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    char in[128];

    make_tree(t);
    add_long_names(t);
    pack_tree(t, "tree", &b);
    write_file(t, "a.tar", &b);
    (void)snprintf(in, sizeof in, "%s/a.tar", t->path);
    const char *argv[] = {"python3", "-c", extract, in, t->dst, NULL};
    assert_int_equal(run(argv), 0);
    assert_same_trees(t->src_fd, t->dst_fd, "tree", TIMES_SECONDS_BUT_OF_LINKS);
}

/* Races */

/* A process that swaps two names in @at as fast as it can, until it is killed. */
static pid_t start_swapping(int at, const char *a, const char *b)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (renameat2(at, a, at, b, RENAME_EXCHANGE) == 0)
            ;
        _exit(1);
    }
    assert_true(pid > 0);
    return pid;
}

static void stop_swapping(pid_t pid)
{
    int status;

    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status)); /* it has not failed before */
}

static void unpacking_beside_somebody_who_swaps_stays_inside(void **state)
{
    struct place *t = *state;
    _cleanup_bytes_ struct bytes b = {0};
    unsigned well = 0, refused = 0;

    make_outside(t);
    assert_int_equal(mkdirat(t->dst_fd, "tree", 0755), 0);
    assert_int_equal(mkdirat(t->dst_fd, "tree/sub", 0755), 0);
    assert_int_equal(symlinkat("../../outside", t->dst_fd, "tree/swap"), 0);
    add_folder(&b, "tree/sub");
    add_file(&b, "tree/sub/canary", "dead");
    add_file(&b, "tree/other", "x"); /* so that the next walks anew */
    add_link(&b, TAR_HARDLINK, "tree/sub/hard", "tree/sub/canary");
    add_file(&b, "tree/other", "x");
    add_link(&b, TAR_SYMLINK, "tree/sub/link", "canary");
    add_folder(&b, "tree/sub/new");
    append(&b, tar_zeros, TAR_END_BYTES);
    _cleanup_fd_ int tree = openat(t->dst_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = start_swapping(tree, "sub", "swap");
    for (unsigned i = 0; i < RACE_ROUNDS_MAX; i++) {
        struct error err = ERROR_INIT;
        int r = unpack(t, "tree", &b, &err);

        well += r == 0;
        refused += r == -ELOOP;
        if (i >= RACE_ROUNDS && well > 0 && refused > 0)
            break;
    }
    stop_swapping(pid);
    assert_true(well > 0 && refused > 0);
    assert_outside_is_untouched(t);
    assert_no_remains(t);
}

static void packing_beside_somebody_who_swaps_reads_only_the_tree(void **state)
{
    struct place *t = *state;
    unsigned as_folder = 0, as_link = 0;

    make_outside(t);
    assert_int_equal(mkdirat(t->src_fd, "tree", 0755), 0);
    assert_int_equal(mkdirat(t->src_fd, "tree/sub", 0755), 0);
    make_file(t->src_fd, "tree/sub/canary", "inside", 0644);
    assert_int_equal(symlinkat("../../outside", t->src_fd, "tree/swap"), 0);
    _cleanup_fd_ int tree = openat(t->src_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = start_swapping(tree, "sub", "swap");
    for (unsigned i = 0; i < RACE_ROUNDS_MAX; i++) {
        _cleanup_bytes_ struct bytes b = {0};

        pack_tree(t, "tree", &b);
        assert_null(memmem(b.p, b.len, "sings", 5));
        as_folder += memmem(b.p, b.len, "tree/sub/canary", 16) != NULL;
        as_link += memmem(b.p, b.len, "tree/swap/canary", 17) != NULL;
        if (i >= RACE_ROUNDS && as_folder > 0 && as_link > 0)
            break;
    }
    stop_swapping(pid);
    assert_true(as_folder > 0 && as_link > 0);
    assert_outside_is_untouched(t);
    bytes_done(&heard);
}

static void a_file_that_turns_into_a_fifo_is_never_waited_for(void **state)
{
    struct place *t = *state;
    char path[128];

    assert_int_equal(mkdirat(t->src_fd, "tree", 0755), 0);
    make_file(t->src_fd, "tree/a", "inside", 0644);
    (void)snprintf(path, sizeof path, "%s/tree/b", t->src);
    assert_int_equal(mkfifo(path, 0600), 0);
    _cleanup_fd_ int tree = openat(t->src_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t pid = start_swapping(tree, "a", "b");
    for (unsigned i = 0; i < RACE_ROUNDS; i++) {
        _cleanup_bytes_ struct bytes b = {0};

        pack_tree(t, "tree", &b);
    }
    stop_swapping(pid);
    assert_heard("it is a FIFO");
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(a_tree_comes_back_as_it_was),
        IN_PLACE(steps_go_from_one_pipe_to_the_other),
        IN_PLACE(a_closed_pipe_ends_either_side),
        IN_PLACE(a_single_file_and_a_named_link_are_copied),
        IN_PLACE(a_folder_can_be_packed_as_the_top_itself),
        IN_PLACE(special_files_are_skipped_by_name_and_never_opened),
        IN_PLACE(bad_names_are_refused_at_once),
        IN_PLACE(closed_folders_are_closed_last),
        IN_PLACE(missing_permission_names_the_file),
        IN_PLACE(folders_deeper_than_the_limit_are_refused),
        IN_PLACE(paths_of_4000_bytes_come_back),
        IN_PLACE(a_file_that_shrinks_is_padded_and_reported),
        IN_PLACE(a_file_that_grows_is_cut),
        IN_PLACE(paths_that_leave_are_refused),
        IN_PLACE(nothing_is_written_through_links),
        IN_PLACE(links_that_lead_out_together_are_not_made),
        IN_PLACE(hard_links_reach_only_what_is_in_the_tree),
        IN_PLACE(later_entries_replace_earlier_ones),
        IN_PLACE(folders_and_files_do_not_replace_each_other),
        IN_PLACE(existing_folders_keep_their_mode),
        IN_PLACE(special_bits_are_dropped_and_special_files_skipped),
        IN_PLACE(entries_beside_the_named_top_are_refused),
        IN_PLACE(the_limit_counts_before_anything_is_written),
        IN_PLACE(a_failed_write_leaves_nothing),
        IN_PLACE(every_shorter_archive_leaves_whole_files_only),
        IN_PLACE(gnu_archives_are_read),
        IN_PLACE(python_archives_are_read),
        IN_PLACE(gnu_tar_takes_ours),
        IN_PLACE(python_takes_ours),
        IN_PLACE(unpacking_beside_somebody_who_swaps_stays_inside),
        IN_PLACE(packing_beside_somebody_who_swaps_reads_only_the_tree),
        IN_PLACE(a_file_that_turns_into_a_fifo_is_never_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
