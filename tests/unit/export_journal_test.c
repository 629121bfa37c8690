/* SPDX-License-Identifier: Apache-2.0 */
/* Journals: who counts as dead, what is removed for it, and what never is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/state.h"
#include "export/journal.h"
#include "export/staging.h"
#include "base/guards.h"

enum { NOBODY = 65534, RACE_ROUNDS = 300 };

struct scene {
    char root[64], out[80], folder[80];
};

static int make_scene(void **state)
{
    static struct scene s;

    *state = &s;
    (void)snprintf(s.root, sizeof s.root, "/tmp/atoll-test-XXXXXX");
    if (!mkdtemp(s.root))
        return -1;
    (void)snprintf(s.folder, sizeof s.folder, "%s/state", s.root);
    (void)snprintf(s.out, sizeof s.out, "%s/out", s.root);
    if (mkdir(s.out, 0755) < 0 || mkdir(s.folder, 0700) < 0)
        return -1;
    return setenv("ATOLL_STATE_DIR", s.folder, 1);
}

static int remove_scene(void **state)
{
    struct scene *s = *state;

    return staging_remove_tree(AT_FDCWD, s->root) == 0 ? 0 : -1;
}

/* Help */

static unsigned count_in(const char *path)
{
    _cleanup_(dir_closep) DIR *dir = opendir(path);
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    return n - 2;
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static void make_file(const char *path)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
}

static void path_in(const struct scene *s, char ret[static PATH_MAX], const char *name)
{
    (void)snprintf(ret, PATH_MAX, "%s/%s", s->out, name);
}

/* What an export leaves that is killed now: a journal of @paths, NULL at their end. */
static void die_with(const char *const paths[])
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct journal j;
        struct error err = ERROR_INIT;

        if (journal_open(&j, &err) < 0)
            _exit(1);
        for (; *paths; paths++)
            if (journal_add(&j, *paths, &err) < 0)
                _exit(1);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

struct told {
    unsigned removed, failed;
    char last[PATH_MAX];
};

static void take_told(void *arg, const char *path, int r)
{
    struct told *t = arg;

    t->removed += r == 0;
    t->failed += r < 0;
    (void)snprintf(t->last, sizeof t->last, "%s", path);
}

static struct journal_sweep sweep(struct told *t)
{
    struct journal_sweep result = {0};
    struct error err = ERROR_INIT;

    if (journal_sweep(&result, t ? take_told : NULL, t, &err) < 0)
        fail_msg("%s", err.message);
    return result;
}

/* Tests */

static void a_journal_comes_and_goes(void **state)
{
    struct scene *s = *state;
    struct journal j = JOURNAL_INIT;
    struct error err = ERROR_INIT;
    struct stat st;

    journal_close(&j);
    assert_int_equal(journal_open(&j, &err), 0);
    assert_memory_equal(j.name, "export-", 7);
    assert_int_equal(strspn(j.name + 7, "0123456789abcdef"), 12);
    assert_int_equal(strlen(j.name), 19);
    assert_int_equal(count_in(s->folder), 1);
    assert_int_equal(fstatat(j.folder_fd, j.name, &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(journal_add(&j, "/somewhere/x.0123456789ab.partial", &err), 0);
    journal_close(&j);
    journal_close(&j);
    assert_int_equal(count_in(s->folder), 0);
}

static void what_a_dead_export_staged_is_removed(void **state)
{
    struct scene *s = *state;
    char file[PATH_MAX], folder[PATH_MAX], inside[PATH_MAX + 8], never[PATH_MAX];
    struct told t = {0};

    path_in(s, file, "a\nb.0123456789ab.partial");
    path_in(s, folder, "f.aaaaaaaaaaaa.partial");
    path_in(s, never, "n.bbbbbbbbbbbb.partial");
    (void)snprintf(inside, sizeof inside, "%s/inside", folder);
    make_file(file);
    assert_int_equal(mkdir(folder, 0), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    make_file(inside);
    assert_int_equal(chmod(folder, 0), 0);
    die_with((const char *const[]){file, folder, never, NULL});
    assert_int_equal(count_in(s->folder), 1);

    struct journal_sweep result = sweep(&t);
    assert_int_equal(result.exports, 1);
    assert_int_equal(result.removed, 2);
    assert_int_equal(result.failed, 0);
    assert_int_equal(t.removed, 2);
    assert_int_equal(t.failed, 0);
    assert_string_equal(t.last, folder);
    assert_int_equal(count_in(s->out), 0);
    assert_int_equal(count_in(s->folder), 0);

    result = sweep(&t);
    assert_int_equal(result.exports + result.removed + result.failed, 0);
}

static void one_that_lives_is_left_alone(void **state)
{
    struct scene *s = *state;
    char path[PATH_MAX];
    struct journal j;
    struct error err = ERROR_INIT;

    path_in(s, path, "x.0123456789ab.partial");
    make_file(path);
    assert_int_equal(journal_open(&j, &err), 0);
    assert_int_equal(journal_add(&j, path, &err), 0);
    struct journal_sweep result = sweep(NULL);
    assert_int_equal(result.exports + result.removed + result.failed, 0);
    assert_true(exists(path));
    assert_int_equal(count_in(s->folder), 1);
    journal_close(&j);
}

static void the_next_export_cleans_up(void **state)
{
    struct scene *s = *state;
    char path[PATH_MAX];
    struct journal j;
    struct error err = ERROR_INIT;

    path_in(s, path, "x.0123456789ab.partial");
    make_file(path);
    die_with((const char *const[]){path, NULL});
    assert_int_equal(journal_open(&j, &err), 0);
    assert_false(exists(path));
    assert_int_equal(count_in(s->folder), 1);
    journal_close(&j);
    assert_int_equal(count_in(s->folder), 0);
}

static void only_staging_names_are_ever_removed(void **state)
{
    static const char *const names[] = {
        "report",
        "x.partial",
        "x.0123456789a.partial",
        "x.0123456789abc.partial",
        "x.0123456789aB.partial",
        "x.0123456789ag.partial",
        "x-0123456789ab.partial",
        "x.0123456789ab.partials",
        "x.0123456789ab.partial.txt",
        ".0123456789ab.partial",
        "partial",
    };
    struct scene *s = *state;
    char path[ARRAY_SIZE(names)][PATH_MAX];
    const char *paths[ARRAY_SIZE(names) + 4];
    struct told t = {0};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        path_in(s, path[i], names[i]);
        make_file(path[i]);
        paths[i] = path[i];
    }
    paths[ARRAY_SIZE(names)] = "relative.0123456789ab.partial";
    paths[ARRAY_SIZE(names) + 1] = "";
    paths[ARRAY_SIZE(names) + 2] = "/";
    paths[ARRAY_SIZE(names) + 3] = NULL;
    die_with(paths);
    struct journal_sweep result = sweep(&t);
    assert_int_equal(result.exports, 1);
    assert_int_equal(t.removed + t.failed, 0);
    assert_int_equal(count_in(s->out), ARRAY_SIZE(names));
}

static void no_link_is_followed(void **state)
{
    struct scene *s = *state;
    char link[PATH_MAX], target[PATH_MAX], through[PATH_MAX], real[PATH_MAX], folder[PATH_MAX];

    path_in(s, folder, "real");
    path_in(s, target, "kept");
    path_in(s, link, "l.0123456789ab.partial");
    path_in(s, real, "real/x.0123456789ab.partial");
    path_in(s, through, "way/x.0123456789ab.partial");
    assert_int_equal(mkdir(folder, 0755), 0);
    make_file(target);
    make_file(real);
    assert_int_equal(symlink("kept", link), 0);
    path_in(s, folder, "way");
    assert_int_equal(symlink("real", folder), 0);
    die_with((const char *const[]){link, through, NULL});
    assert_int_equal(sweep(NULL).exports, 1);
    assert_false(exists(link));
    assert_true(exists(target));
    assert_true(exists(real));
}

static void a_path_that_was_not_written_whole_is_passed_over(void **state)
{
    struct scene *s = *state;
    char whole[PATH_MAX], part[PATH_MAX], journal[160];

    path_in(s, whole, "w.0123456789ab.partial");
    path_in(s, part, "p.0123456789ab.partial");
    make_file(whole);
    make_file(part);
    (void)snprintf(journal, sizeof journal, "%s/export-0123456789ab", s->folder);
    FILE *f = fopen(journal, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(whole, strlen(whole) + 1, 1, f), 1);
    assert_int_equal(fwrite(part, strlen(part), 1, f), 1);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(sweep(NULL).removed, 1);
    assert_true(exists(part));
    assert_int_equal(count_in(s->folder), 0);
}

static void other_files_of_the_state_folder_stay(void **state)
{
    static const char *const names[] = {"export-", "export-0123456789a", "export-0123456789abc",
                                        "export-0123456789aX", "note"};
    struct scene *s = *state;
    char path[160];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", s->folder, names[i]);
        make_file(path);
    }
    (void)snprintf(path, sizeof path, "%s/export-0123456789ab", s->folder);
    assert_int_equal(symlink("note", path), 0);
    (void)snprintf(path, sizeof path, "%s/export-0123456789ac", s->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof path, "%s/export-0123456789ad", s->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)sweep(NULL);
    assert_int_equal(count_in(s->folder), ARRAY_SIZE(names) + 3);
}

static void a_journal_of_another_user_is_not_touched(void **state)
{
    struct scene *s = *state;
    char path[PATH_MAX];

    if (geteuid() != 0) {
        print_message("only root can give a file away\n");
        skip();
    }
    path_in(s, path, "x.0123456789ab.partial");
    make_file(path);
    die_with((const char *const[]){path, NULL});
    _cleanup_(dir_closep) DIR *dir = opendir(s->folder);
    for (const struct dirent *e; (e = readdir(dir));)
        if (strncmp(e->d_name, "export-", 7) == 0)
            assert_int_equal(fchownat(dirfd(dir), e->d_name, NOBODY, NOBODY, 0), 0);
    assert_int_equal(sweep(NULL).exports, 0);
    assert_true(exists(path));
    assert_int_equal(count_in(s->folder), 1);
}

static void what_cannot_be_removed_keeps_its_journal(void **state)
{
    struct scene *s = *state;
    char path[PATH_MAX], hopeless[PATH_MAX];
    struct told t = {0};

    path_in(s, path, "x.0123456789ab.partial");
    make_file(path);
    /* Nobody can say whether anything is there, since no file system takes such a name. */
    (void)snprintf(hopeless, sizeof hopeless, "/%0300d/x.0123456789ab.partial", 0);
    die_with((const char *const[]){hopeless, path, NULL});
    for (unsigned round = 0; round < 2; round++) {
        struct journal_sweep result = sweep(&t);

        assert_int_equal(result.exports, 0);
        assert_int_equal(result.removed, round == 0);
        assert_int_equal(result.failed, 1);
        assert_int_equal(t.failed, round + 1);
    }
    assert_string_equal(t.last, hopeless);
    assert_false(exists(path));
    assert_int_equal(count_in(s->folder), 1);
}

/* One process sweeps all the time while another begins and ends exports: none of those may find
 * what it staged gone. */
static void a_sweep_never_takes_one_that_has_just_begun_for_dead(void **state)
{
    struct scene *s = *state;
    char path[PATH_MAX];
    pid_t pid = fork();

    if (pid == 0)
        for (;;) {
            struct error err = ERROR_INIT;
            struct journal_sweep ignored;

            (void)journal_sweep(&ignored, NULL, NULL, &err);
        }
    path_in(s, path, "x.0123456789ab.partial");
    make_file(path);
    for (int i = 0; i < RACE_ROUNDS; i++) {
        struct journal j;
        struct error err = ERROR_INIT;

        if (journal_open(&j, &err) < 0 || journal_add(&j, path, &err) < 0) {
            (void)kill(pid, SIGKILL);
            fail_msg("round %d: %s", i, err.message);
        }
        bool there = exists(path) && faccessat(j.folder_fd, j.name, F_OK, 0) == 0;
        journal_close(&j);
        if (!there)
            (void)kill(pid, SIGKILL);
        assert_true(there);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(count_in(s->folder), 0);
}

static void held_sandboxes_are_listed_past_journals(void **state)
{
    struct scene *s = *state;
    struct journal j;
    struct error err = ERROR_INIT;
    struct state_record *list = NULL;
    size_t n = 1;

    assert_int_equal(journal_open(&j, &err), 0);
    assert_int_equal(state_list(&list, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_int_equal(count_in(s->folder), 1);
    state_records_free(list, n);
    journal_close(&j);
}

static void without_a_state_folder_no_export_begins(void **state)
{
    struct journal j;
    struct error err = ERROR_INIT;

    (void)state;
    assert_int_equal(setenv("ATOLL_STATE_DIR", "/proc/atoll", 1), 0);
    assert_true(journal_open(&j, &err) < 0);
    assert_string_not_equal(err.remedy, "");
    journal_close(&j);
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, make_scene, remove_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(a_journal_comes_and_goes),
        scene_test(what_a_dead_export_staged_is_removed),
        scene_test(one_that_lives_is_left_alone),
        scene_test(the_next_export_cleans_up),
        scene_test(only_staging_names_are_ever_removed),
        scene_test(no_link_is_followed),
        scene_test(a_path_that_was_not_written_whole_is_passed_over),
        scene_test(other_files_of_the_state_folder_stay),
        scene_test(a_journal_of_another_user_is_not_touched),
        scene_test(what_cannot_be_removed_keeps_its_journal),
        scene_test(a_sweep_never_takes_one_that_has_just_begun_for_dead),
        scene_test(held_sandboxes_are_listed_past_journals),
        scene_test(without_a_state_folder_no_export_begins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
