/* SPDX-License-Identifier: Apache-2.0 */
/* Staging places: what is refused, what a reader sees meanwhile, and that all can be taken back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "export/staging.h"
#include "base/guards.h"

enum { DEEP = 3000, NOBODY = 65534 };

/* "out" in a temporary folder is where destinations lie, "state" the state folder. */
struct scene {
    char root[64], out[80];
    int out_fd;
    struct journal journal;
};

static int remove_scene(void **state)
{
    struct scene *s = *state;
    int r;

    journal_close(&s->journal);
    fd_closep(&s->out_fd);
    r = staging_remove_tree(AT_FDCWD, s->root);
    return r == 0 && access(s->root, F_OK) < 0 ? 0 : -1;
}

static int make_scene(void **state)
{
    static struct scene s;
    struct error err = ERROR_INIT;
    char folder[96];

    *state = &s;
    (void)umask(022);
    (void)snprintf(s.root, sizeof s.root, "/tmp/atoll-test-XXXXXX");
    if (!mkdtemp(s.root))
        return -1;
    (void)snprintf(folder, sizeof folder, "%s/state", s.root);
    (void)snprintf(s.out, sizeof s.out, "%s/out", s.root);
    if (setenv("ATOLL_STATE_DIR", folder, 1) < 0 || mkdir(s.out, 0755) < 0)
        return -1;
    s.out_fd = open(s.out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return journal_open(&s.journal, &err);
}

/* Help */

static struct destination destination_in(const struct scene *s, const char *name)
{
    struct destination d = {0};
    struct error err = ERROR_INIT;
    char url[PATH_MAX];

    (void)snprintf(url, sizeof url, "file://%s/%s", s->out, name);
    if (destination_parse(url, &d, &err) < 0)
        fail_msg("%s: %s", url, err.message);
    return d;
}

static void put(int at, const char *name, const char *text)
{
    _cleanup_fd_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void expect_text(int at, const char *name, const char *text)
{
    char found[256];
    _cleanup_fd_ int fd = openat(at, name, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    ssize_t n = read(fd, found, sizeof found - 1);
    assert_true(n >= 0);
    found[n] = '\0';
    assert_string_equal(found, text);
}

static mode_t mode_of(int at, const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static unsigned count_in(int at)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(dir_closep) DIR *dir = fdopendir(fd);
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    return n - 2;
}

/* Opens and makes a place, with a text or a file in a folder. */
static void stage(struct scene *s, struct staging_place *p, const struct destination *to,
                  bool folder, const char *text)
{
    struct error err = ERROR_INIT;

    if (staging_open(p, to, folder, &err) < 0 || staging_make(p, &s->journal, &err) < 0)
        fail_msg("%s: %s", to->path, err.message);
    if (folder)
        put(p->fd, "inside", text);
    else
        assert_int_equal(write(p->fd, text, strlen(text)), strlen(text));
}

static void publish(struct staging_place *p, mode_t mode)
{
    struct error err = ERROR_INIT;

    if (staging_publish(p, mode, &err) < 0)
        fail_msg("%s: %s", p->to->path, err.message);
}

static void drop(struct staging_place *p)
{
    struct error err = ERROR_INIT;

    if (staging_drop(p, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(staging_drop(p, &err), 0);
}

static void settle(struct staging_place *p)
{
    struct error err = ERROR_INIT;

    if (staging_settle(p, &err) < 0)
        fail_msg("%s", err.message);
}

static void undo(struct staging_place *p)
{
    struct error err = ERROR_INIT;

    if (staging_undo(p, &err) < 0)
        fail_msg("%s", err.message);
}

/* Files */

static void a_file_appears_by_being_published(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "report");
    struct staging_place p;

    stage(s, &p, &to, false, "new");
    assert_int_equal(faccessat(s->out_fd, "report", F_OK, 0), -1);
    assert_int_equal(mode_of(s->out_fd, p.name), 0600);
    assert_int_equal(strlen(p.name), strlen("report") + 21);
    assert_memory_equal(p.name, "report.", 7);
    assert_int_equal(strspn(p.name + 7, "0123456789abcdef"), 12);
    assert_string_equal(p.name + 19, ".partial");

    publish(&p, 0666);
    expect_text(s->out_fd, "report", "new");
    assert_int_equal(mode_of(s->out_fd, "report"), 0644); /* less the umask */
    settle(&p);
    drop(&p);
    assert_int_equal(count_in(s->out_fd), 1);
    destination_done(&to);
}

static void special_bits_are_never_given(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "tool");
    struct staging_place p;

    (void)umask(027);
    stage(s, &p, &to, false, "#!/bin/sh\n");
    publish(&p, 07777);
    assert_int_equal(mode_of(s->out_fd, "tool"), 0750);
    settle(&p);
    drop(&p);
    destination_done(&to);
}

static void an_old_file_is_exchanged_and_goes_when_it_is_settled(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "report");
    struct staging_place p;

    put(s->out_fd, "report", "old");
    stage(s, &p, &to, false, "new");
    expect_text(s->out_fd, "report", "old");
    publish(&p, 0644);
    expect_text(s->out_fd, "report", "new");
    expect_text(s->out_fd, p.name, "old");
    assert_true(p.exchanged);
    settle(&p);
    drop(&p);
    assert_int_equal(count_in(s->out_fd), 1);
    destination_done(&to);
}

static void what_was_published_can_be_taken_back(void **state)
{
    struct scene *s = *state;
    struct destination fresh = destination_in(s, "fresh"), old = destination_in(s, "old");
    struct staging_place p, q;

    put(s->out_fd, "old", "old");
    assert_int_equal(fchmodat(s->out_fd, "old", 0604, 0), 0);
    stage(s, &p, &fresh, false, "new");
    stage(s, &q, &old, false, "new");
    publish(&p, 0644);
    publish(&q, 0644);
    undo(&q);
    undo(&p);
    assert_int_equal(faccessat(s->out_fd, "fresh", F_OK, 0), -1);
    expect_text(s->out_fd, "old", "old");
    assert_int_equal(mode_of(s->out_fd, "old"), 0604);
    undo(&p); /* harmless */
    drop(&p);
    drop(&q);
    assert_int_equal(count_in(s->out_fd), 1);
    destination_done(&fresh);
    destination_done(&old);
}

static void what_somebody_else_has_put_there_since_stays(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "report");
    struct error err = ERROR_INIT;
    struct staging_place p;

    stage(s, &p, &to, false, "new");
    publish(&p, 0644);
    assert_int_equal(unlinkat(s->out_fd, "report", 0), 0);
    put(s->out_fd, "report", "theirs");
    assert_int_equal(staging_undo(&p, &err), -ESTALE);
    assert_non_null(strstr(err.message, "somebody else"));
    drop(&p);
    expect_text(s->out_fd, "report", "theirs");
    destination_done(&to);
}

static void a_staged_file_that_is_dropped_leaves_nothing(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "report");
    struct staging_place p, none = STAGING_PLACE_INIT;

    drop(&none);
    put(s->out_fd, "report", "old");
    stage(s, &p, &to, false, "new");
    drop(&p);
    expect_text(s->out_fd, "report", "old");
    assert_int_equal(count_in(s->out_fd), 1);
    destination_done(&to);
}

/* Folders */

static void folders_are_exchanged_taken_back_and_removed_whole(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "results");
    struct staging_place p;

    assert_int_equal(mkdirat(s->out_fd, "results", 0755), 0);
    put(s->out_fd, "results/inside", "old");
    stage(s, &p, &to, true, "new");
    assert_int_equal(mode_of(s->out_fd, p.name), 0700);
    publish(&p, 0777);
    expect_text(s->out_fd, "results/inside", "new");
    assert_int_equal(mode_of(s->out_fd, "results"), 0755);
    undo(&p);
    expect_text(s->out_fd, "results/inside", "old");
    publish(&p, 0777);
    settle(&p);
    drop(&p);
    expect_text(s->out_fd, "results/inside", "new");
    assert_int_equal(count_in(s->out_fd), 1);
    destination_done(&to);
}

static void missing_parents_are_made_and_go_with_a_failure(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "a/b/c/report");
    struct staging_place p;

    assert_int_equal(mkdirat(s->out_fd, "a", 0755), 0);
    stage(s, &p, &to, false, "new");
    assert_int_equal(p.n_made_parents, 2);
    drop(&p);
    assert_int_equal(faccessat(s->out_fd, "a", F_OK, 0), 0);
    assert_int_equal(faccessat(s->out_fd, "a/b", F_OK, 0), -1);

    stage(s, &p, &to, false, "new");
    publish(&p, 0644);
    undo(&p);
    put(s->out_fd, "a/b/other", "not ours");
    drop(&p);
    assert_int_equal(faccessat(s->out_fd, "a/b/c", F_OK, 0), -1);
    expect_text(s->out_fd, "a/b/other", "not ours");

    stage(s, &p, &to, false, "new");
    publish(&p, 0644);
    settle(&p);
    drop(&p);
    expect_text(s->out_fd, "a/b/c/report", "new");
    destination_done(&to);
}

static void parents_made_before_a_failure_go_too(void **state)
{
    struct scene *s = *state;
    char name[400];
    struct error err = ERROR_INIT;
    struct staging_place p;

    (void)snprintf(name, sizeof name, "a/b/%0300d/report", 0);
    struct destination to = destination_in(s, name);
    assert_int_equal(staging_open(&p, &to, false, &err), -ENAMETOOLONG);
    drop(&p);
    assert_int_equal(count_in(s->out_fd), 0);
    destination_done(&to);
}

/* Refusals */

static void expect_refused(struct scene *s, const char *name, bool folder, const char *part)
{
    struct destination to = destination_in(s, name);
    struct error err = ERROR_INIT;
    struct staging_place p;
    unsigned before = count_in(s->out_fd);

    if (staging_open(&p, &to, folder, &err) == 0)
        fail_msg("%s is not refused", name);
    if (!strstr(err.message, part))
        fail_msg("%s: \"%s\" does not say \"%s\"", name, err.message, part);
    assert_string_not_equal(err.remedy, "");
    drop(&p);
    assert_int_equal(count_in(s->out_fd), before);
    destination_done(&to);
}

static void what_is_no_plain_file_or_folder_is_refused(void **state)
{
    struct scene *s = *state;
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};

    put(s->out_fd, "file", "");
    assert_int_equal(mkdirat(s->out_fd, "folder", 0755), 0);
    assert_int_equal(symlinkat("file", s->out_fd, "to-file"), 0);
    assert_int_equal(symlinkat("folder", s->out_fd, "to-folder"), 0);
    assert_int_equal(symlinkat("nothing", s->out_fd, "to-nothing"), 0);
    assert_int_equal(mkfifoat(s->out_fd, "fifo", 0644), 0);
    assert_int_equal(fchdir(s->out_fd), 0);
    _cleanup_fd_ int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(socket_fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(chdir("/"), 0);

    expect_refused(s, "folder", false, "a folder stands in its place");
    expect_refused(s, "file", true, "a file stands in its place");
    expect_refused(s, "to-file", false, "symbolic link");
    expect_refused(s, "to-folder", true, "symbolic link");
    expect_refused(s, "to-nothing", false, "symbolic link");
    expect_refused(s, "fifo", false, "a FIFO");
    expect_refused(s, "socket", false, "a socket");
    expect_refused(s, "file/report", false, "a file stands in the place of a folder");
    expect_refused(s, "to-nothing/report", false, "leads nowhere");
}

static void a_device_is_refused(void **state)
{
    struct destination to = {0};
    struct error err = ERROR_INIT;
    struct staging_place p;

    (void)state;
    assert_int_equal(destination_parse("file:///dev/null", &to, &err), 0);
    assert_true(staging_open(&p, &to, false, &err) < 0);
    assert_true(strstr(err.message, "a device") || geteuid() != 0); /* others may not write there */
    drop(&p);
    destination_done(&to);
}

/* Runs @body in a process of its own, which it may cripple. It tells by a line what is wrong. */
static void in_child(struct scene *s, const char *(*body)(struct scene *s))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        const char *wrong = body(s);

        if (wrong)
            (void)!write(STDERR_FILENO, wrong, strlen(wrong));
        _exit(wrong ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static const char *try_closed(struct scene *s)
{
    struct destination to = destination_in(s, "closed/report");
    struct error err = ERROR_INIT;
    struct staging_place p;

    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return "root cannot become somebody else\n";
    if (staging_open(&p, &to, false, &err) != -EACCES)
        return "it is not refused\n";
    return strstr(err.message, "there is no permission") ? NULL : "it does not say why\n";
}

static void a_folder_that_may_not_be_written_to_is_refused(void **state)
{
    struct scene *s = *state;

    assert_int_equal(chmod(s->root, 0755), 0);
    assert_int_equal(mkdirat(s->out_fd, "closed", 0555), 0);
    in_child(s, try_closed);
    assert_int_equal(fchmodat(s->out_fd, "closed", 0, 0), 0);
    in_child(s, try_closed);
    assert_int_equal(fchmodat(s->out_fd, "closed", 0755, 0), 0);
    if (geteuid() == 0)
        in_child(s, try_closed);
}

/* Lets renameat2(2) know no flags, as on file systems that cannot exchange. */
static bool forget_flags(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4]) +
                                               (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = ARRAY_SIZE(program), .filter = program};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
           renameat2(AT_FDCWD, "/nowhere", AT_FDCWD, "/nowhere", RENAME_EXCHANGE) < 0 &&
           errno == EINVAL;
}

static bool holds(int at, const char *name, const char *text)
{
    char found[64] = "";
    _cleanup_fd_ int fd = openat(at, name, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, found, sizeof found - 1) >= 0 && strcmp(found, text) == 0;
}

static const char *publish_without_flags(struct scene *s)
{
    struct destination old = destination_in(s, "old"), fresh = destination_in(s, "fresh"),
                       folder = destination_in(s, "folder");
    struct error err = ERROR_INIT;
    struct staging_place p, q, f;

    stage(s, &p, &old, false, "new");
    stage(s, &q, &fresh, false, "new");
    stage(s, &f, &folder, true, "new");
    if (!forget_flags())
        return "no system call filter can be installed\n";
    if (staging_publish(&p, 0644, &err) < 0 || staging_publish(&q, 0644, &err) < 0)
        return "a file is not published\n";
    if (!holds(s->out_fd, "old", "new") || !holds(s->out_fd, p.name, "old") ||
        !holds(s->out_fd, "fresh", "new"))
        return "published files are not what they should be\n";
    if (staging_publish(&f, 0755, &err) != -EOPNOTSUPP || !holds(s->out_fd, "folder/inside", "old"))
        return "a folder is replaced\n";
    if (staging_undo(&p, &err) < 0 || staging_undo(&q, &err) < 0 ||
        !holds(s->out_fd, "old", "old") || holds(s->out_fd, "fresh", "new"))
        return "a file is not taken back\n";
    if (staging_drop(&p, &err) < 0 || staging_drop(&q, &err) < 0 || staging_drop(&f, &err) < 0)
        return "something is left behind\n";
    return NULL;
}

static void without_an_exchange_files_are_kept_by_a_link(void **state)
{
    struct scene *s = *state;

    put(s->out_fd, "old", "old");
    assert_int_equal(mkdirat(s->out_fd, "folder", 0755), 0);
    put(s->out_fd, "folder/inside", "old");
    in_child(s, publish_without_flags);
    assert_int_equal(count_in(s->out_fd), 2);
}

static void a_folder_that_may_not_be_read_can_be_written_to(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "dropbox/report");
    struct staging_place p;

    assert_int_equal(mkdirat(s->out_fd, "dropbox", 0333), 0);
    stage(s, &p, &to, false, "new");
    publish(&p, 0644);
    settle(&p);
    drop(&p);
    expect_text(s->out_fd, "dropbox/report", "new");
    destination_done(&to);
}

static void a_link_that_comes_between_is_not_replaced(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "report");
    struct error err = ERROR_INIT;
    struct staging_place p;

    stage(s, &p, &to, false, "new");
    assert_int_equal(symlinkat("elsewhere", s->out_fd, "report"), 0);
    assert_true(staging_publish(&p, 0644, &err) < 0);
    assert_non_null(strstr(err.message, "symbolic link"));
    drop(&p);
    assert_int_equal(count_in(s->out_fd), 1);
    assert_int_equal(mode_of(s->out_fd, "report"), 0777);
    destination_done(&to);
}

static void a_file_that_comes_between_is_replaced(void **state)
{
    struct scene *s = *state;
    struct destination to = destination_in(s, "report");
    struct staging_place p;

    stage(s, &p, &to, false, "new");
    put(s->out_fd, "report", "theirs");
    publish(&p, 0644);
    undo(&p);
    expect_text(s->out_fd, "report", "theirs");
    drop(&p);
    destination_done(&to);
}

/* Clashes that only the host knows of */

static void expect_clash(struct scene *s, const char *a, bool a_folder, const char *b,
                         bool b_folder, bool clash)
{
    struct destination x = destination_in(s, a), y = destination_in(s, b);
    struct error err = ERROR_INIT;
    struct staging_place p, q;

    assert_int_equal(staging_open(&p, &x, a_folder, &err), 0);
    assert_int_equal(staging_open(&q, &y, b_folder, &err), 0);
    assert_int_equal(staging_clash(&p, &q), clash);
    assert_int_equal(staging_clash(&q, &p), clash);
    drop(&p);
    drop(&q);
    destination_done(&x);
    destination_done(&y);
}

static void a_clash_is_found_behind_links(void **state)
{
    struct scene *s = *state;

    assert_int_equal(mkdirat(s->out_fd, "real", 0755), 0);
    assert_int_equal(mkdirat(s->out_fd, "real/deep", 0755), 0);
    assert_int_equal(mkdirat(s->out_fd, "other", 0755), 0);
    assert_int_equal(symlinkat("real", s->out_fd, "link"), 0);
    expect_clash(s, "real/x", false, "link/x", false, true);
    expect_clash(s, "real/x", false, "link/y", false, false);
    expect_clash(s, "real/x", false, "other/x", false, false);
    expect_clash(s, "real", true, "link/x", false, true);
    expect_clash(s, "real", true, "link/deep/x", true, true);
    expect_clash(s, "other", true, "link/deep/x", true, false);
}

/* Removing */

static void removal_follows_no_link_and_stops_at_no_mode(void **state)
{
    struct scene *s = *state;
    char path[64];

    assert_int_equal(mkdirat(s->out_fd, "kept", 0755), 0);
    put(s->out_fd, "kept/file", "kept");
    assert_int_equal(mkdirat(s->out_fd, "tree", 0755), 0);
    assert_int_equal(symlinkat("../kept", s->out_fd, "tree/link"), 0);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(path, sizeof path, "tree/d%d", i);
        assert_int_equal(mkdirat(s->out_fd, path, 0755), 0);
        (void)snprintf(path, sizeof path, "tree/d%d/sub", i);
        assert_int_equal(mkdirat(s->out_fd, path, 0755), 0);
        (void)snprintf(path, sizeof path, "tree/d%d/sub/file", i);
        put(s->out_fd, path, "x");
        (void)snprintf(path, sizeof path, "tree/d%d/sub", i);
        assert_int_equal(fchmodat(s->out_fd, path, 0, 0), 0);
        (void)snprintf(path, sizeof path, "tree/d%d", i);
        assert_int_equal(fchmodat(s->out_fd, path, i % 2 ? 0 : 0500, 0), 0);
    }
    assert_int_equal(mkfifoat(s->out_fd, "tree/.removed-0", 0), 0); /* a name it may want to use */
    assert_int_equal(mkdirat(s->out_fd, "tree/.removed-1", 0), 0);
    assert_int_equal(fchmodat(s->out_fd, "tree", 0, 0), 0);
    assert_int_equal(staging_remove_tree(s->out_fd, "tree"), 0);
    assert_int_equal(staging_remove_tree(s->out_fd, "tree"), 0);
    expect_text(s->out_fd, "kept/file", "kept");

    assert_int_equal(symlinkat("kept", s->out_fd, "link"), 0);
    assert_int_equal(staging_remove_tree(s->out_fd, "link"), 0);
    assert_int_equal(count_in(s->out_fd), 1);
}

static void a_tree_of_any_depth_is_removed(void **state)
{
    struct scene *s = *state;
    int at = fcntl(s->out_fd, F_DUPFD_CLOEXEC, 0);

    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        put(at, "f", "x");
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        fd_closep(&at);
        at = next;
    }
    fd_closep(&at);
    assert_int_equal(staging_remove_tree(s->out_fd, "d"), 0);
    assert_int_equal(staging_remove_tree(s->out_fd, "f"), 0);
    assert_int_equal(count_in(s->out_fd), 0);
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, make_scene, remove_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(a_file_appears_by_being_published),
        scene_test(special_bits_are_never_given),
        scene_test(an_old_file_is_exchanged_and_goes_when_it_is_settled),
        scene_test(what_was_published_can_be_taken_back),
        scene_test(what_somebody_else_has_put_there_since_stays),
        scene_test(a_staged_file_that_is_dropped_leaves_nothing),
        scene_test(folders_are_exchanged_taken_back_and_removed_whole),
        scene_test(missing_parents_are_made_and_go_with_a_failure),
        scene_test(parents_made_before_a_failure_go_too),
        scene_test(what_is_no_plain_file_or_folder_is_refused),
        scene_test(a_device_is_refused),
        scene_test(a_folder_that_may_not_be_written_to_is_refused),
        scene_test(without_an_exchange_files_are_kept_by_a_link),
        scene_test(a_folder_that_may_not_be_read_can_be_written_to),
        scene_test(a_link_that_comes_between_is_not_replaced),
        scene_test(a_file_that_comes_between_is_replaced),
        scene_test(a_clash_is_found_behind_links),
        scene_test(removal_follows_no_link_and_stops_at_no_mode),
        scene_test(a_tree_of_any_depth_is_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
