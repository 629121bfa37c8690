/* SPDX-License-Identifier: Apache-2.0 */
/* local/cgroup*.c: choosing a parent in a made-up tree, and groups of this host where it allows
 * any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "local/affinity.h"
#include "local/cgroup.h"
#include "local/cgroup_file.h"
#include "local/cgroup_parent.h"
#include "base/guards.h"

enum { SOMEBODY = 52999 };

#define MEMORY CGROUP_BIT(CGROUP_MEMORY)
#define CPU    CGROUP_BIT(CGROUP_CPU)

/* ---- a tree of ordinary files, root/slice/scope, in which this process is the lowest ---- */

struct tree {
    char folder[64];
    struct cgroup_place place;
    struct cgroup_parent found;
    int slice_fd;
};

static void put(const struct tree *t, const char *name, const char *text)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", t->folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static void put_group(const struct tree *t, const char *group, const char *procs)
{
    static const char *const files[][2] = {{"cgroup.controllers", "cpu memory pids\n"},
                                           {"cgroup.subtree_control", "\n"},
                                           {"cgroup.type", "domain\n"},
                                           {"memory.max", "max\n"},
                                           {"cpu.max", "max 100000\n"}};
    char name[128];

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        (void)snprintf(name, sizeof name, "%s%s", group, files[i][0]);
        put(t, name, files[i][1]);
    }
    (void)snprintf(name, sizeof name, "%scgroup.procs", group);
    put(t, name, procs);
}

static void drop(const struct tree *t, const char *name)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", t->folder, name);
    assert_int_equal(unlink(path), 0);
}

static int plant(void **state)
{
    struct tree *t = calloc(1, sizeof *t);
    char path[PATH_MAX];

    assert_non_null(t);
    (void)snprintf(t->folder, sizeof t->folder, "/tmp/cgroup-test-XXXXXX");
    assert_non_null(mkdtemp(t->folder));
    for (const char *const *p = (const char *const[]){"slice", "slice/scope", NULL}; *p; p++) {
        (void)snprintf(path, sizeof path, "%s/%s", t->folder, *p);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    (void)snprintf(path, sizeof path, "%s/slice", t->folder);
    t->slice_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(t->slice_fd >= 0);
    put_group(t, "", "1\n");
    drop(t, "cgroup.type"); /* as the host's root group */
    drop(t, "memory.max");
    drop(t, "cpu.max");
    put_group(t, "slice/", "");
    put_group(t, "slice/scope/", "4711\n");
    t->place = (struct cgroup_place){.unified = true, .own = "slice/scope"};
    (void)snprintf(t->place.mount, sizeof t->place.mount, "%s", t->folder);
    *state = t;
    return 0;
}

static int fell(void **state)
{
    struct tree *t = *state;
    char command[128];

    fd_closep(&t->found.fd);
    fd_closep(&t->slice_fd);
    (void)snprintf(command, sizeof command, "%s", t->folder);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", command, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    free(t);
    return 0;
}

static void expect_folder(struct tree *t, int r, const char *group)
{
    char path[PATH_MAX];

    assert_int_equal(cgroup_parent_open(&t->place, MEMORY | CPU, &t->found), r);
    (void)snprintf(path, sizeof path, "%s%s", t->folder, group);
    assert_string_equal(t->found.folder, path);
    assert_int_equal(t->found.fd >= 0, r == 0);
    fd_closep(&t->found.fd);
}

static void the_highest_group_is_taken(void **state)
{
    expect_folder(*state, 0, "");
}

static void a_group_that_has_a_ceiling_is_not_left(void **state)
{
    struct tree *t = *state;

    put(t, "slice/memory.max", "1073741824\n");
    expect_folder(t, 0, "/slice");
    put(t, "slice/scope/cpu.max", "50000 100000\n");
    expect_folder(t, -EBUSY, "/slice/scope");
    put(t, "slice/scope/cgroup.procs", ""); /* it has only groups, and this process in one */
    expect_folder(t, 0, "/slice/scope");
}

static void a_ceiling_of_any_kind_is_not_left(void **state)
{
    static const char *const ceilings[][3] = {{"memory.high", "max\n", "1048576\n"},
                                              {"memory.swap.max", "max\n", "0\n"},
                                              {"memory.swap.high", "max\n", "1048576\n"},
                                              {"cpuset.cpus", "\n", "0-1\n"},
                                              {"cpuset.mems", "\n", "0\n"},
                                              {"io.max", "", "8:0 rbps=1048576 wbps=max\n"}};
    struct tree *t = *state;
    char name[64];

    for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++) {
        (void)snprintf(name, sizeof name, "slice/%s", ceilings[i][0]);
        put(t, name, ceilings[i][1]);
        expect_folder(t, 0, "");
        put(t, name, ceilings[i][2]);
        expect_folder(t, 0, "/slice");
        drop(t, name);
    }
    put(t, "slice/pids.max", "1000\n"); /* as systemd sets it everywhere */
    expect_folder(t, 0, "");
}

static void a_ceiling_that_cannot_be_read_is_not_left(void **state)
{
    struct tree *t = *state;

    drop(t, "slice/memory.max");
    expect_folder(t, 0, "");
    assert_int_equal(symlinkat("nowhere", t->slice_fd, "memory.max"), 0);
    expect_folder(t, 0, "/slice");
}

static void processes_are_in_the_way_but_in_the_hosts_root(void **state)
{
    struct tree *t = *state;

    put(t, "cgroup.type", "domain\n"); /* the root of a container */
    expect_folder(t, 0, "/slice");
    put(t, "slice/cgroup.procs", "12\n");
    expect_folder(t, -EBUSY, "/slice/scope");
    put(t, "cgroup.subtree_control", "cpu memory\n"); /* nothing has to be switched on */
    expect_folder(t, 0, "");
}

static void a_controller_that_is_missing_is_named(void **state)
{
    static const char *const groups[] = {"", "slice/", "slice/scope/"};
    struct tree *t = *state;
    char name[64];

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        (void)snprintf(name, sizeof name, "%scgroup.controllers", groups[i]);
        put(t, name, "cpuset memory pids\n");
    }
    expect_folder(t, -ENODEV, "");
    assert_int_equal(t->found.lacking, CGROUP_CPU);
    assert_int_equal(t->found.why, CGROUP_WHY_KERNEL); /* the host's root group has none */
    put(t, "cgroup.type", "domain\n");
    expect_folder(t, -ENODEV, "");
    assert_int_equal(t->found.why, CGROUP_WHY_OUTSIDE); /* the root of a container */
    assert_int_equal(cgroup_parent_open(&t->place, MEMORY, &t->found), 0);
}

static void a_controller_that_is_not_delegated_is_named(void **state)
{
    const bool root = geteuid() == 0;
    struct tree *t = *state;

    put(t, "slice/cgroup.controllers", "memory pids\n");
    put(t, "slice/scope/cgroup.controllers", "memory pids\n");
    put(t, "slice/memory.max", "1048576\n"); /* so that it is not left */
    expect_folder(t, -ENODEV, "/slice");
    assert_int_equal(t->found.lacking, CGROUP_CPU);
    assert_int_equal(t->found.why, CGROUP_WHY_CODE);
    /* Who may write nothing hears first what no rights would give. */
    put(t, "cgroup.controllers", "memory pids\n");
    assert_int_equal(chmod(t->folder, root ? 0755 : 0555), 0);
    assert_true(!root || seteuid(SOMEBODY) == 0);
    expect_folder(t, -ENODEV, "");
    assert_true(!root || seteuid(0) == 0);
    assert_int_equal(t->found.why, CGROUP_WHY_KERNEL);
    assert_int_equal(chmod(t->folder, 0755), 0);
}

static void what_is_not_this_users_is_passed_over(void **state)
{
    static const char *const delegated[] = {"slice", "slice/cgroup.procs",
                                            "slice/cgroup.subtree_control"};
    const bool root = geteuid() == 0; /* who may write everything, and becomes somebody else */
    struct tree *t = *state;
    char path[PATH_MAX];

    for (size_t i = 0; root && i < ARRAY_SIZE(delegated); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", t->folder, delegated[i]);
        assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
    }
    assert_int_equal(chmod(t->folder, root ? 0755 : 0555), 0);
    assert_true(!root || seteuid(SOMEBODY) == 0);
    expect_folder(t, 0, "/slice");
    assert_true(!root || seteuid(0) == 0);
    assert_int_equal(chmod(t->folder, 0755), 0);
}

static void the_first_version_lets_processes_be_anywhere(void **state)
{
    struct tree *t = *state;

    t->place.unified = false;
    put(t, "memory.limit_in_bytes", "9223372036854771712\n");
    put(t, "slice/memory.limit_in_bytes", "9223372036854771712\n");
    put(t, "slice/cpu.cfs_quota_us", "-1\n");
    expect_folder(t, 0, "");
    put(t, "slice/cpu.cfs_quota_us", "10000\n");
    expect_folder(t, 0, "/slice");
    put(t, "slice/scope/memory.limit_in_bytes", "1048576\n");
    expect_folder(t, 0, "/slice/scope");
}

static void the_first_version_has_ceilings_of_what_is_not_wanted(void **state)
{
    struct tree *t = *state;
    char path[PATH_MAX];

    t->place.unified = false;
    put(t, "slice/cpu.cfs_quota_us", "10000\n"); /* mounted as cpu,cpuacct */
    assert_int_equal(cgroup_parent_open(&t->place, CGROUP_BIT(CGROUP_ACCOUNT), &t->found), 0);
    (void)snprintf(path, sizeof path, "%s/slice", t->folder);
    assert_string_equal(t->found.folder, path);
}

static void a_group_that_is_gone_is_an_error(void **state)
{
    struct tree *t = *state;

    (void)snprintf(t->place.own, sizeof t->place.own, "slice/gone");
    assert_int_equal(cgroup_parent_open(&t->place, MEMORY, &t->found), -ENOENT);
}

static void only_groups_without_a_keeper_are_swept(void **state)
{
    struct tree *t = *state;
    char path[PATH_MAX];
    const char *const groups[] = {"atoll", "atoll/sandbox-live", "atoll/sandbox-dead",
                                  "atoll/others"};

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", t->folder, groups[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    (void)snprintf(path, sizeof path, "%s/atoll", t->folder);
    _cleanup_fd_ int atoll_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int live = openat(atoll_fd, "sandbox-live", O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(live, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(cgroup_sweep_folder(atoll_fd, true), 1);
    assert_int_equal(faccessat(atoll_fd, "sandbox-live", F_OK, 0), 0);
    assert_int_equal(faccessat(atoll_fd, "others", F_OK, 0), 0);
    assert_int_equal(faccessat(atoll_fd, "sandbox-dead", F_OK, 0), -1);
    fd_closep(&live);
    assert_int_equal(cgroup_sweep_folder(atoll_fd, true), 1);
}

/* ---- groups of this host ---- */

static void skip_unless(const struct cgroup_wants *w)
{
    struct error err = ERROR_INIT;

    if (cgroup_judge(w, &err) == 0)
        return;
    print_message("%s\n", err.message);
    skip();
}

static void make(const struct cgroup_wants *w, struct cgroup *g)
{
    struct error err = ERROR_INIT;

    if (cgroup_make(w, g, &err) < 0)
        fail_msg("%s", err.message);
}

/* A process that uses a little CPU time and then waits to be killed. */
static pid_t start_worker(void)
{
    pid_t pid = fork();

    for (volatile uint64_t i = 0; pid == 0 && i < 20000000; i++)
        ;
    if (pid == 0)
        for (;;)
            (void)pause();
    return pid;
}

static void a_group_holds_measures_and_goes(void **state)
{
    const struct cgroup_wants w = {
        .memory_bytes = 64 << 20, .cpu_milli = 500, .follow_memory = true, .account = true};
    struct cgroup g = {.n = 0};
    struct cgroup_use use;
    char path[PATH_MAX], text[64];

    (void)state;
    skip_unless(&w);
    make(&w, &g);
    _cleanup_fd_ int parent_fd = fcntl(g.parts[0].parent_fd, F_DUPFD_CLOEXEC, 3);
    const bool unified = g.parts[0].unified;
    assert_int_equal(cgroup_file_read(g.parts[0].fd,
                                      unified ? "memory.max" : "memory.limit_in_bytes", text,
                                      sizeof text),
                     0);
    assert_string_equal(text, "67108864\n");
    pid_t pid = start_worker();
    assert_int_equal(cgroup_enter(&g, pid), 0);
    do {
        cgroup_read(&g, &use);
        assert_true(use.has_cpu && use.has_memory);
    } while (use.cpu_us < 1000);
    assert_int_equal(use.oom_kills, 0);
    (void)snprintf(path, sizeof path, "%s/cgroup.procs", g.name);
    (void)cgroup_sweep(); /* its keeper lives, though those of others may not */
    assert_int_equal(faccessat(parent_fd, path, F_OK, 0), 0);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    cgroup_end(&g);
    assert_int_equal(g.n, 0);
    assert_int_equal(faccessat(parent_fd, path, F_OK, 0), -1);
}

static void one_that_is_left_is_swept_with_what_is_in_it(void **state)
{
    const struct cgroup_wants w = {.memory_bytes = 64 << 20};
    struct cgroup g = {.n = 0};
    int status;

    (void)state;
    skip_unless(&w);
    pid_t pid = start_worker(); /* before the lock, of which it would have a copy */
    make(&w, &g);
    assert_int_equal(cgroup_enter(&g, pid), 0);
    fd_closep(&g.parts[0].fd);       /* the lock goes, as with the keeper */
    size_t removed = cgroup_sweep(); /* until the process, which is ours, is reaped it may not go */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    removed += cgroup_sweep();
    assert_true(removed >= 1);
    assert_int_equal(faccessat(g.parts[0].parent_fd, g.name, F_OK, 0), -1);
    cgroup_end(&g);
}

static bool is_left(int fd, const char *name)
{
    if (strncmp(name, CGROUP_PREFIX, sizeof CGROUP_PREFIX - 1) != 0)
        return false;
    _cleanup_fd_ int group = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return group >= 0 && flock(group, LOCK_SH | LOCK_NB) == 0;
}

/* How many groups without a keeper are in the folders for them. Others may be at work there. */
static size_t left_in(const struct cgroup *like)
{
    size_t n = 0;

    for (size_t i = 0; i < like->n; i++) {
        int fd = openat(like->parts[i].above_fd, CGROUP_FOLDER, O_RDONLY | O_CLOEXEC);
        _cleanup_(dir_closep) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

        for (const struct dirent *e; dir && (e = readdir(dir));)
            n += is_left(dirfd(dir), e->d_name);
    }
    return n;
}

/* With each number of free descriptors up to that which suffices, so that each call fails once. */
static void a_full_table_of_files_is_said_and_leaves_nothing(void **state)
{
    const struct cgroup_wants w = {.memory_bytes = 64 << 20, .cpu_milli = 500};
    struct cgroup g = {.n = 0}, first = {.n = 0};
    struct rlimit before, tight;
    int r = -EMFILE;

    (void)state;
    skip_unless(&w);
    make(&w, &first); /* it keeps the folders, and shows where they are */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(next);
    for (rlim_t n = (rlim_t)next; r < 0 && n < (rlim_t)next + 100; n++) {
        const size_t left = left_in(&first);
        struct error err = ERROR_INIT;

        tight = (struct rlimit){.rlim_cur = n, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        r = cgroup_make(&w, &g, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(r == 0 || r == -EMFILE);
        assert_true(r == 0 || strstr(err.message, strerror(EMFILE)));
        assert_true(left_in(&first) <= left);
    }
    assert_int_equal(r, 0);
    cgroup_end(&g);
    cgroup_end(&first);
}

static void affinity_has_as_many_cpus_as_are_paid_for(void **state)
{
    cpu_set_t may, has;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof may, &may), 0);
    pid_t pid = start_worker();
    assert_int_equal(affinity_limit(pid, 500), 0);
    assert_int_equal(sched_getaffinity(pid, sizeof has, &has), 0);
    assert_int_equal(CPU_COUNT(&has), 1);
    for (int i = 0; i < CPU_SETSIZE; i++)
        assert_true(!CPU_ISSET(i, &has) || CPU_ISSET(i, &may));
    assert_int_equal(affinity_limit(pid, 1024000), 0); /* more than there are: as it was */
    assert_int_equal(sched_getaffinity(pid, sizeof has, &has), 0);
    assert_int_equal(CPU_COUNT(&has), 1);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_TREE(name) cmocka_unit_test_setup_teardown(name, plant, fell)
        IN_TREE(the_highest_group_is_taken),
        IN_TREE(a_group_that_has_a_ceiling_is_not_left),
        IN_TREE(a_ceiling_of_any_kind_is_not_left),
        IN_TREE(a_ceiling_that_cannot_be_read_is_not_left),
        IN_TREE(processes_are_in_the_way_but_in_the_hosts_root),
        IN_TREE(a_controller_that_is_missing_is_named),
        IN_TREE(a_controller_that_is_not_delegated_is_named),
        IN_TREE(what_is_not_this_users_is_passed_over),
        IN_TREE(the_first_version_lets_processes_be_anywhere),
        IN_TREE(the_first_version_has_ceilings_of_what_is_not_wanted),
        IN_TREE(a_group_that_is_gone_is_an_error),
        IN_TREE(only_groups_without_a_keeper_are_swept),
        cmocka_unit_test(a_group_holds_measures_and_goes),
        cmocka_unit_test(one_that_is_left_is_swept_with_what_is_in_it),
        cmocka_unit_test(a_full_table_of_files_is_said_and_leaves_nothing),
        cmocka_unit_test(affinity_has_as_many_cpus_as_are_paid_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
