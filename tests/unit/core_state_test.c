/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: who is found, who is swept, which folders and records are not trusted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/clock.h"
#include "core/limits.h"
#include "core/state.h"
#include "core/state_record.h"
#include "base/guards.h"

enum { NOBODY = 65534 };

/* A temporary folder; the state folder is to be "state" in it. */
struct scene {
    char root[64], folder[80];
};

static int start(void **state)
{
    static struct scene s;

    *state = &s;
    (void)snprintf(s.root, sizeof s.root, "/tmp/atoll-test-XXXXXX");
    if (!mkdtemp(s.root))
        return -1;
    (void)snprintf(s.folder, sizeof s.folder, "%s/state", s.root);
    return setenv("ATOLL_STATE_DIR", s.folder, 1);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int end(void **state)
{
    struct scene *s = *state;

    (void)unsetenv("XDG_RUNTIME_DIR");
    return nftw(s->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A record of this place with a new id, made at @created_at_us. Its texts are borrowed. */
static struct state_record record_of(uint64_t created_at_us)
{
    struct state_record r = {.pid = getpid(), .created_at_us = created_at_us};
    uint64_t random[2] = {created_at_us, 0x5eed};

    assert_int_equal(place_read(&r.place), 0);
    sandbox_id_make(&r.place, random, r.id);
    r.image = (char *)(uintptr_t) "host";
    r.program = (char *)(uintptr_t) "1.2.3";
    return r;
}

static int publish(const struct state_record *r)
{
    struct error err = ERROR_INIT;
    int fd = state_publish(r, &err);

    if (fd < 0)
        fail_msg("%s: %s", err.context, err.message);
    return fd;
}

/* How many sandboxes are found. */
static size_t count_listed(void)
{
    struct error err = ERROR_INIT;
    struct state_record *list;
    size_t n;

    assert_int_equal(state_list(&list, &n, &err), 0);
    state_records_free(list, n);
    return n;
}

/* How many entries the state folder has. */
static size_t count_entries(const struct scene *s)
{
    _cleanup_(dir_closep) DIR *dir = opendir(s->folder);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    return n - 2;
}

static int connect_error(const char *id, struct error *err)
{
    *err = (struct error)ERROR_INIT;
    int fd = state_connect(id, err);

    assert_true(fd < 0);
    assert_int_equal(fd, -err->code);
    return fd;
}

/* A path in sandbox @id's folder. */
static const char *path_in(const struct scene *s, const char *id, const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s/%s", s->folder, id, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(io_write_full(fd, text, strlen(text), CLOCK_NEVER), 0);
}

static void what_is_published_is_found(void **state)
{
    struct state_record r = record_of(5), *list;
    struct error err = ERROR_INIT;
    char *tags[] = {(char *)(uintptr_t) "team=data",
                    (char *)(uintptr_t) "empty=", (char *)(uintptr_t) "x=a=b \"\\ \xc3\xa4"};
    size_t n;

    r.name = (char *)(uintptr_t) "box";
    r.expires_at_us = UINT64_C(1) << 62;
    r.tags = (struct string_list){tags, ARRAY_SIZE(tags)};
    (void)state;
    assert_int_equal(count_listed(), 0);
    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    assert_int_equal(state_list(&list, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].id, r.id);
    assert_string_equal(list[0].place.host, r.place.host);
    assert_string_equal(list[0].place.boot, r.place.boot);
    assert_int_equal(list[0].place.uid, geteuid());
    assert_int_equal(list[0].pid, getpid());
    assert_int_equal(list[0].created_at_us, 5);
    assert_true(list[0].expires_at_us == UINT64_C(1) << 62);
    assert_string_equal(list[0].name, "box");
    assert_null(list[0].owner);
    assert_string_equal(list[0].image, "host");
    assert_string_equal(list[0].program, "1.2.3");
    assert_int_equal(list[0].tags.n, ARRAY_SIZE(tags));
    for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
        assert_string_equal(list[0].tags.items[i], tags[i]);
    state_records_free(list, n);
}

static void what_is_published_can_be_reached(void **state)
{
    struct state_record r = record_of(5);
    struct error err = ERROR_INIT;
    char byte;

    (void)state;
    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    _cleanup_fd_ int mine = state_connect(r.id, &err);
    assert_true(mine >= 0);
    assert_true(fcntl(mine, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(mine, F_GETFD) & FD_CLOEXEC);
    _cleanup_fd_ int theirs = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(theirs >= 0);
    assert_int_equal(send(mine, "x", 1, 0), 1);
    assert_int_equal(recv(theirs, &byte, 1, 0), 1);
}

static void what_is_withdrawn_is_gone(void **state)
{
    struct state_record r = record_of(5);
    struct error err;

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    assert_int_equal(count_entries(*state), 1);
    state_withdraw(r.id);
    assert_int_equal(count_entries(*state), 0);
    assert_int_equal(count_listed(), 0);
    assert_int_equal(connect_error(r.id, &err), -ENOENT);
    assert_non_null(strstr(err.message, "is gone"));
    state_withdraw(r.id); /* harmless again */
}

static void the_list_is_by_age(void **state)
{
    static const uint64_t ages[] = {30, 10, 20};
    struct error err = ERROR_INIT;
    struct state_record *list;
    int fds[ARRAY_SIZE(ages)];
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ages); i++) {
        struct state_record r = record_of(ages[i]);

        fds[i] = publish(&r);
    }
    assert_int_equal(state_list(&list, &n, &err), 0);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i].created_at_us, 10 * (i + 1));
    state_records_free(list, n);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fd_closep(&fds[i]);
}

static void one_whose_keeper_died_is_swept_by_the_list(void **state)
{
    struct state_record dead = record_of(5), alive = record_of(6);
    int fd = publish(&dead);

    _cleanup_fd_ __attribute__((unused)) int other = publish(&alive);
    assert_int_equal(count_listed(), 2);
    fd_closep(&fd);
    assert_int_equal(count_entries(*state), 2);
    assert_int_equal(count_listed(), 1);
    assert_int_equal(count_entries(*state), 1);
}

static void a_sweep_counts_what_it_removes(void **state)
{
    struct state_record dead = record_of(5), alive = record_of(6);
    struct error err = ERROR_INIT;
    size_t n = 9;
    int fd = publish(&dead);
    int kept = publish(&alive);

    (void)state;
    (void)close(fd);
    assert_int_equal(state_sweep(&n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(state_sweep(&n, &err), 0);
    assert_int_equal(n, 0);
    fd = state_connect(alive.id, &err);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)close(kept);
}

static void one_whose_keeper_died_is_swept_by_a_client(void **state)
{
    struct state_record r = record_of(5);
    struct error err;
    int fd = publish(&r);

    fd_closep(&fd);
    assert_int_equal(connect_error(r.id, &err), -ENOENT);
    assert_non_null(strstr(err.message, "is gone"));
    assert_int_equal(count_entries(*state), 0);
}

static void one_without_a_socket_is_swept(void **state)
{
    struct state_record r = record_of(5);

    for (int i = 0; i < 2; i++) {
        struct error err;
        int fd = publish(&r);

        fd_closep(&fd);
        assert_int_equal(unlink(path_in(*state, r.id, "control")), 0);
        if (i == 0)
            assert_int_equal(count_listed(), 0);
        else
            assert_int_equal(connect_error(r.id, &err), -ENOENT);
        assert_int_equal(count_entries(*state), 0);
    }
}

static void a_keeper_that_lets_nobody_in_is_listed_without_waiting(void **state)
{
    struct state_record r = record_of(5);

    (void)state;
    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    for (int i = 0; i < 300; i++) /* each leaves a connection in its queue */
        assert_int_equal(count_listed(), 1);
}

/* A folder that was copied here: what its name says and what is written in it differ. */
static void a_record_from_elsewhere_is_refused_and_left_alone(void **state)
{
    const struct state_record mine = record_of(5);

    for (int i = 0; i < 3; i++) {
        struct state_record r = mine;
        struct error err;
        size_t n = 9;

        r.place.host[0] ^= i == 0 ? 1 : 0;
        r.place.boot[0] ^= i == 1 ? 1 : 0;
        r.place.uid += i == 2 ? 1 : 0;
        int fd = publish(&r);
        assert_int_equal(connect_error(r.id, &err), -EINVAL);
        assert_int_equal(err.cls, ERROR_USAGE);
        assert_non_null(strstr(err.message, "another host, start of the host, or user"));
        assert_int_equal(count_listed(), 0);
        (void)close(fd); /* nobody listens there any more, and still it is not ours to remove */
        assert_int_equal(state_sweep(&n, &err), 0);
        assert_int_equal(n, 0);
        state_sweep_some(&mine.place, 0);
        assert_int_equal(count_entries(*state), 1);
        state_withdraw(r.id);
    }
}

static void what_died_keepers_left_goes_a_few_at_a_time(void **state)
{
    struct state_record alive = record_of(100);
    int kept = publish(&alive);

    for (uint64_t i = 0; i < 10; i++) {
        struct state_record dead = record_of(i);

        (void)close(publish(&dead));
    }
    state_sweep_some(&alive.place, 0);
    size_t left = count_entries(*state);
    assert_true(left < 11 && left >= 7);
    for (uint64_t i = 0; i < 30; i++)
        state_sweep_some(&alive.place, i);
    assert_int_equal(count_entries(*state), 1);
    assert_int_equal(count_listed(), 1);
    (void)close(kept);
}

static void a_record_is_written_anew(void **state)
{
    struct state_record r = record_of(5), *list = NULL;
    struct error err;
    size_t n = 0;

    (void)state;
    assert_int_equal(state_update(&r), -ENOENT);
    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    r.expires_at_us = 77;
    assert_int_equal(state_update(&r), 0);
    assert_int_equal(state_list(&list, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(list[0].expires_at_us, 77);
    state_records_free(list, n);
}

static void a_record_half_written_does_not_stand_in_the_way(void **state)
{
    struct state_record r = record_of(5);

    int fd = publish(&r);
    write_file(path_in(*state, r.id, "record.json.new"), "{");
    assert_int_equal(state_update(&r), 0);
    write_file(path_in(*state, r.id, "record.json.new"), "{");
    state_withdraw(r.id);
    assert_int_equal(count_entries(*state), 0);
    (void)close(fd);
}

static void an_id_from_elsewhere_is_refused_by_its_form(void **state)
{
    struct state_record r = record_of(5);
    struct place there = r.place;
    struct error err;

    assert_int_equal(connect_error("../..", &err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
    there.boot[0] ^= 1;
    sandbox_id_make(&there, (const uint64_t[2]){1, 2}, r.id);
    r.place = there;
    assert_int_equal(connect_error(r.id, &err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
    _cleanup_fd_ __attribute__((unused)) int fd =
        publish(&r); /* as a host would find it that kept the folder */
    assert_int_equal(count_listed(), 0);
    assert_int_equal(count_entries(*state), 0); /* nothing outlives a boot */
}

static void one_id_is_published_once(void **state)
{
    struct state_record r = record_of(5);
    struct error err = ERROR_INIT;

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    assert_true(state_publish(&r, &err) < 0);
    assert_int_equal(err.cls, ERROR_TERMINAL);
    assert_int_equal(count_entries(*state), 1); /* nothing is left of the other try */
    assert_int_equal(count_listed(), 1);
}

static int folder_error(struct error *err)
{
    *err = (struct error)ERROR_INIT;
    int fd = state_folder_open(err);

    assert_true(fd < 0);
    assert_int_equal(fd, -err->code);
    assert_true(err->remedy[0] != '\0');
    return fd;
}

static void the_folder_is_made_for_its_user_alone(void **state)
{
    struct scene *s = *state;
    struct error err = ERROR_INIT;
    struct state_record r = record_of(5);
    mode_t old = umask(0);
    struct stat st;

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    (void)umask(old);
    assert_int_equal(stat(s->folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(path_in(s, r.id, "."), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(path_in(s, r.id, "record.json"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    _cleanup_fd_ int again = state_folder_open(&err);
    assert_true(again >= 0);
    assert_true(fcntl(again, F_GETFD) & FD_CLOEXEC);
}

static void a_folder_that_others_may_write_to_is_refused(void **state)
{
    static const mode_t bad[] = {0720, 0702, 0777, 01777}, good[] = {0700, 0755, 0711};
    struct scene *s = *state;
    struct state_record *list, r = record_of(5);
    struct error err;
    size_t n;

    assert_int_equal(mkdir(s->folder, 0700), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(chmod(s->folder, bad[i]), 0);
        assert_int_equal(folder_error(&err), -EPERM);
        assert_non_null(strstr(err.message, "written to by others"));
        err = (struct error)ERROR_INIT;
        assert_int_equal(state_list(&list, &n, &err), -EPERM);
        err = (struct error)ERROR_INIT;
        assert_int_equal(state_publish(&r, &err), -EPERM);
        assert_int_equal(connect_error(r.id, &err), -EPERM);
    }
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(chmod(s->folder, good[i]), 0);
        assert_int_equal(count_listed(), 0);
    }
}

static void a_folder_of_another_user_is_refused(void **state)
{
    struct scene *s = *state;
    struct error err;

    if (geteuid() == 0) {
        assert_int_equal(mkdir(s->folder, 0700), 0);
        assert_int_equal(chown(s->folder, NOBODY, NOBODY), 0);
    } else {
        assert_int_equal(setenv("ATOLL_STATE_DIR", "/", 1), 0); /* root's */
    }
    assert_int_equal(folder_error(&err), -EPERM);
    assert_non_null(strstr(err.message, "another user"));
}

static void what_is_no_folder_is_refused(void **state)
{
    struct scene *s = *state;
    struct error err;

    write_file(s->folder, "");
    assert_int_equal(folder_error(&err), -ENOTDIR);
    assert_int_equal(unlink(s->folder), 0);
    assert_int_equal(symlink(s->root, s->folder), 0); /* a good folder, by a link */
    assert_true(folder_error(&err) < 0);
    assert_non_null(strstr(err.message, "is not a folder"));
    assert_int_equal(unlink(s->folder), 0);
    assert_int_equal(symlink("nowhere", s->folder), 0);
    assert_true(folder_error(&err) < 0);
    assert_int_equal(unlink(s->folder), 0);
    assert_int_equal(setenv("ATOLL_STATE_DIR", "/proc/no/such/folder", 1), 0);
    assert_int_equal(folder_error(&err), -ENOENT);
}

static void a_relative_path_is_refused(void **state)
{
    struct error err;

    (void)state;
    assert_int_equal(setenv("ATOLL_STATE_DIR", "state", 1), 0);
    assert_int_equal(folder_error(&err), -EINVAL);
    assert_int_equal(err.cls, ERROR_USAGE);
    assert_non_null(strstr(err.message, "'state'"));
}

static void the_folder_is_looked_for_in_order(void **state)
{
    struct scene *s = *state;
    char runtime[128], path[160];
    struct stat st;

    (void)snprintf(runtime, sizeof runtime, "%s/runtime", s->root);
    (void)snprintf(path, sizeof path, "%s/atoll", runtime);
    assert_int_equal(mkdir(runtime, 0700), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
    assert_int_equal(count_listed(), 0); /* ATOLL_STATE_DIR comes first */
    assert_int_equal(stat(s->folder, &st), 0);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(setenv("ATOLL_STATE_DIR", "", 1), 0); /* as if it were not set */
    assert_int_equal(count_listed(), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(unsetenv("ATOLL_STATE_DIR"), 0);
    assert_int_equal(count_listed(), 0);
    assert_int_equal(stat(path, &st), 0);
}

static void a_path_may_be_longer_than_a_socket_address(void **state)
{
    struct scene *s = *state;
    struct state_record r = record_of(5);
    struct error err = ERROR_INIT;
    char path[400];

    (void)snprintf(path, sizeof path, "%s/%0200d", s->root, 0);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/s");
    assert_int_equal(setenv("ATOLL_STATE_DIR", path, 1), 0);
    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    _cleanup_fd_ int client = state_connect(r.id, &err);
    assert_true(client >= 0);
    assert_int_equal(count_listed(), 1);
}

static void a_path_over_the_kernels_limit_is_refused(void **state)
{
    static char path[PATH_MAX + 10];
    struct error err;

    (void)state;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    assert_int_equal(setenv("ATOLL_STATE_DIR", path, 1), 0);
    assert_int_equal(folder_error(&err), -ENAMETOOLONG);
}

#define FIELDS(version, host, created)                                                             \
    "\"version\":" version ",\"id\":\"%s\",\"host\":\"" host "\",\"boot_id\":\"b\",\"uid\":0,"     \
    "\"keeper_pid\":1,\"created_at_us\":" created ",\"expires_at_us\":0"

static void a_record_that_cannot_be_understood_is_passed_over(void **state)
{
    static const char host65[] =
        "00000000000000000000000000000000000000000000000000000000000000000";
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{}",
        "null",
        "\xff",
        "{" FIELDS("2", "h", "1") "}", /* newer */
        "{" FIELDS("0", "h", "1") "}",
        "{" FIELDS("\"1\"", "h", "1") "}",
        "{" FIELDS("1", "h", "-1") "}",
        "{" FIELDS("1", "h", "1.5") "}",
        "{" FIELDS("1", "h", "18446744073709551616") "}",
        "{" FIELDS("1", "h\\u0000", "1") "}",
        "{" FIELDS("1", "h", "1") ",\"version\":1}", /* twice */
        "{" FIELDS("1", "h", "1") ",\"tags\":{\"a\":1}}",
        "{" FIELDS("1", "h", "1") ",\"tags\":{\"a=b\":\"c\"}}",
        "{" FIELDS("1", "h", "1") "} x",
    };
    struct state_record r = record_of(5);
    char text[1024];

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    for (size_t i = 0; i < ARRAY_SIZE(texts) + 1; i++) {
        const char *hash = i < ARRAY_SIZE(texts) ? strstr(texts[i], "%s") : NULL;

        if (i == ARRAY_SIZE(texts)) /* a longer name than any host has */
            (void)snprintf(text, sizeof text, "{" FIELDS("1", "%s", "1") "}", r.id, host65);
        else if (hash)
            (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(hash - texts[i]), texts[i], r.id,
                           hash + 2);
        else
            (void)snprintf(text, sizeof text, "%s", texts[i]);
        write_file(path_in(*state, r.id, "record.json"), text);
        assert_int_equal(count_listed(), 0);
    }
    assert_int_equal(count_entries(*state), 1); /* its keeper lives: it is not removed */
    (void)snprintf(text, sizeof text,
                   "{\"version\":1,\"id\":\"%s\",\"host\":\"%s\",\"boot_id\":\"%s\",\"uid\":%u,"
                   "\"keeper_pid\":1,\"created_at_us\":1,\"expires_at_us\":0,\"later\":[{}]}",
                   r.id, r.place.host, r.place.boot, r.place.uid);
    write_file(path_in(*state, r.id, "record.json"), text);
    assert_int_equal(count_listed(), 1); /* what is unknown beside the rest does no harm */
}

static void a_record_that_is_no_small_file_is_passed_over(void **state)
{
    struct state_record r = record_of(5);
    const char *path;

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    path = path_in(*state, r.id, "record.json");
    _cleanup_fd_ int file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(count_listed(), 1);
    assert_int_equal(ftruncate(file, (off_t)STATE_RECORD_BYTES_MAX + 1), 0);
    assert_int_equal(count_listed(), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(count_listed(), 0); /* none */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(count_listed(), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(count_listed(), 0);
}

static void a_record_is_not_read_through_a_link(void **state)
{
    struct state_record r = record_of(5);
    struct scene *s = *state;
    char elsewhere[128];

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere.json", s->root);
    assert_int_equal(rename(path_in(s, r.id, "record.json"), elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path_in(s, r.id, "record.json")), 0);
    assert_int_equal(count_listed(), 0);
}

static void a_record_of_another_sandbox_is_passed_over(void **state)
{
    struct state_record r = record_of(5), other = record_of(6);
    struct scene *s = *state;
    char old[128], new[128];

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    (void)snprintf(old, sizeof old, "%s/%s", s->folder, r.id);
    (void)snprintf(new, sizeof new, "%s/%s", s->folder, other.id);
    assert_int_equal(rename(old, new), 0);
    assert_int_equal(count_listed(), 0);
    assert_int_equal(symlink(new, old), 0); /* nor is a sandbox's folder a link */
    assert_int_equal(count_listed(), 0);
    assert_int_equal(count_entries(s), 2);
}

static void what_json_cannot_hold_is_left_out(void **state)
{
    struct state_record r = record_of(5), *list;
    struct error err = ERROR_INIT;
    char *tags[] = {(char *)(uintptr_t) "a=1", (char *)(uintptr_t) "b=\xff",
                    (char *)(uintptr_t) "no value", (char *)(uintptr_t) "c=3"};
    size_t n;

    (void)state;
    r.image = (char *)(uintptr_t) "dir:/\xff\xfe";
    r.name = (char *)(uintptr_t) "\x80";
    r.tags = (struct string_list){tags, ARRAY_SIZE(tags)};
    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    assert_int_equal(state_list(&list, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_null(list[0].image);
    assert_null(list[0].name);
    assert_string_equal(list[0].program, "1.2.3");
    assert_int_equal(list[0].tags.n, 2);
    assert_string_equal(list[0].tags.items[0], "a=1");
    assert_string_equal(list[0].tags.items[1], "c=3");
    state_records_free(list, n);
}

static void as_many_tags_as_a_spec_may_have_survive(void **state)
{
    struct state_record r = record_of(5), *list;
    struct error err = ERROR_INIT;
    size_t n;

    (void)state;
    for (int i = 0; i < LIMIT_LIST_ENTRIES; i++) {
        char tag[LIMIT_TEXT_BYTES + 1];

        memset(tag, '\x01', sizeof tag - 1); /* six bytes each in JSON */
        tag[LIMIT_TEXT_BYTES] = '\0';
        tag[snprintf(tag, sizeof tag, "%d=", i)] = '\x01';
        assert_int_equal(string_list_add(&r.tags, tag), 0);
    }
    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    assert_int_equal(state_list(&list, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(list[0].tags.n, LIMIT_LIST_ENTRIES);
    assert_int_equal(strlen(list[0].tags.items[0]), LIMIT_TEXT_BYTES);
    state_records_free(list, n);
    string_list_done(&r.tags);
}

static void what_a_killed_keeper_left_half_made_is_harmless(void **state)
{
    struct state_record r = record_of(5);
    struct scene *s = *state;
    char half[128];

    _cleanup_fd_ __attribute__((unused)) int fd = publish(&r);
    (void)snprintf(half, sizeof half, "%s/.new-%s", s->folder, record_of(6).id);
    assert_int_equal(mkdir(half, 0700), 0);
    (void)snprintf(half, sizeof half, "%s/not a sandbox", s->folder);
    write_file(half, "");
    (void)snprintf(half, sizeof half, "%s/sb-", s->folder);
    assert_int_equal(mkdir(half, 0700), 0);
    assert_int_equal(count_listed(), 1);
    struct state_record third = record_of(7);
    _cleanup_fd_ __attribute__((unused)) int other = publish(&third);
    assert_int_equal(count_listed(), 2);
}

static void an_unfinished_folder_goes_when_its_keeper_is_proven_dead(void **state)
{
    struct state_record r = record_of(5);
    struct scene *s = *state;
    char dead[160], odd[160];
    struct error err = ERROR_INIT;
    size_t swept = 0;
    int state_fd = state_folder_open(&err);
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_true(state_fd >= 0);
    (void)close(state_fd);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)snprintf(dead, sizeof dead, "%s/.new-%d-%s", s->folder, (int)pid, r.id);
    (void)snprintf(odd, sizeof odd, "%s/.new-%d-someone", s->folder, (int)pid);
    assert_int_equal(mkdir(dead, 0700), 0);
    assert_int_equal(mkdir(odd, 0700), 0);
    assert_int_equal(state_sweep(&swept, &err), 0);
    assert_int_equal(swept, 1);
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(odd, F_OK), 0);
    assert_int_equal(rmdir(odd), 0);
}

int main(void)
{
#define STATE_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        STATE_TEST(what_is_published_is_found),
        STATE_TEST(what_is_published_can_be_reached),
        STATE_TEST(what_is_withdrawn_is_gone),
        STATE_TEST(the_list_is_by_age),
        STATE_TEST(an_unfinished_folder_goes_when_its_keeper_is_proven_dead),
        STATE_TEST(one_whose_keeper_died_is_swept_by_the_list),
        STATE_TEST(a_sweep_counts_what_it_removes),
        STATE_TEST(one_whose_keeper_died_is_swept_by_a_client),
        STATE_TEST(one_without_a_socket_is_swept),
        STATE_TEST(a_keeper_that_lets_nobody_in_is_listed_without_waiting),
        STATE_TEST(a_record_from_elsewhere_is_refused_and_left_alone),
        STATE_TEST(what_died_keepers_left_goes_a_few_at_a_time),
        STATE_TEST(a_record_is_written_anew),
        STATE_TEST(a_record_half_written_does_not_stand_in_the_way),
        STATE_TEST(an_id_from_elsewhere_is_refused_by_its_form),
        STATE_TEST(one_id_is_published_once),
        STATE_TEST(the_folder_is_made_for_its_user_alone),
        STATE_TEST(a_folder_that_others_may_write_to_is_refused),
        STATE_TEST(a_folder_of_another_user_is_refused),
        STATE_TEST(what_is_no_folder_is_refused),
        STATE_TEST(a_relative_path_is_refused),
        STATE_TEST(the_folder_is_looked_for_in_order),
        STATE_TEST(a_path_may_be_longer_than_a_socket_address),
        STATE_TEST(a_path_over_the_kernels_limit_is_refused),
        STATE_TEST(a_record_that_cannot_be_understood_is_passed_over),
        STATE_TEST(a_record_that_is_no_small_file_is_passed_over),
        STATE_TEST(a_record_is_not_read_through_a_link),
        STATE_TEST(a_record_of_another_sandbox_is_passed_over),
        STATE_TEST(what_json_cannot_hold_is_left_out),
        STATE_TEST(as_many_tags_as_a_spec_may_have_survive),
        STATE_TEST(what_a_killed_keeper_left_half_made_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
