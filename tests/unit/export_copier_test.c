/* SPDX-License-Identifier: Apache-2.0 */
/* Copying into staged files: sums, sizes, failures, and the process that writes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "export/copier.h"
#include "export/digest.h"
#include "base/guards.h"

enum { MIB = 1024 * 1024, PIECE = 300 * 1000, RING = 8 * MIB, PATIENCE_US = 60 * 1000 * 1000 };

static const char empty_sum[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* One file on its way. */
struct scene {
    struct loop loop;
    struct copier_process *process;
    struct copier copier;
    char path[64];
    int fd;
    const uint8_t *data;
    size_t len, given;
    bool holds; /* copier_finish() is not called at the end */
    bool frees; /* the callbacks free the process */
    unsigned done, failed;
    struct error err;
};

static int make_scene(void **state)
{
    static struct scene s;

    *state = &s;
    s = (struct scene){.path = "/tmp/atoll-test-XXXXXX"};
    s.fd = mkostemp(s.path, O_CLOEXEC);
    return s.fd < 0 ? -1 : loop_init(&s.loop);
}

static int remove_scene(void **state)
{
    struct scene *s = *state;

    copier_stop(&s->copier);
    copier_process_free(s->process);
    loop_done(&s->loop);
    fd_closep(&s->fd);
    return unlink(s->path);
}

static void process_new(struct scene *s)
{
    struct error err = ERROR_INIT;

    if (copier_process_new(&s->loop, &s->process, &err) < 0)
        fail_msg("%s", err.message);
}

/* Bytes that differ from each other and from what stands a slot further on. */
static uint8_t *make_data(size_t len)
{
    uint8_t *data = malloc(len + 1);
    uint64_t x = 88172645463325252u;

    assert_non_null(data);
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = (uint8_t)x;
    }
    return data;
}

/* The copier's owner */

static void give(struct copier *w)
{
    struct scene *s = w->owner;
    uint8_t *p;
    size_t room;

    while (s->given < s->len) {
        size_t n = s->len - s->given < PIECE ? s->len - s->given : PIECE;

        p = copier_room(w, &room);
        if (!p)
            return;
        assert_true(room > 0);
        n = n < room ? n : room;
        memcpy(p, s->data + s->given, n);
        s->given += n;
        if (copier_took(w, n, &s->err) < 0) {
            s->failed++;
            return;
        }
    }
    if (!s->holds)
        copier_finish(w, true);
}

static void ended(struct scene *s)
{
    s->loop.stop = true;
    if (s->frees) {
        copier_process_free(s->process);
        s->process = NULL;
    }
}

static void is_done(struct copier *w)
{
    struct scene *s = w->owner;

    s->done++;
    ended(s);
}

static void has_failed(struct copier *w, const struct error *err)
{
    struct scene *s = w->owner;

    s->failed++;
    s->err = *err;
    ended(s);
}

static void begin(struct scene *s, int fd, const uint8_t *data, size_t len)
{
    struct error err = ERROR_INIT;

    s->copier = (struct copier){.process = s->process,
                                .fd = fd,
                                .owner = s,
                                .more = give,
                                .done = is_done,
                                .failed = has_failed};
    s->data = data;
    s->len = len;
    s->given = s->done = s->failed = 0;
    s->loop.stop = false;
    s->err = (struct error)ERROR_INIT;
    if (copier_start(&s->copier, &err) < 0)
        fail_msg("%s", err.message);
}

static void run(struct scene *s)
{
    const uint64_t until_us = clock_after_us(PATIENCE_US);

    while (s->done + s->failed == 0 && clock_now_us() < until_us)
        assert_int_equal(loop_turn(&s->loop, until_us), 0);
    assert_int_equal(s->done + s->failed, 1);
    copier_stop(&s->copier); /* harmless */
}

static void copy(struct scene *s, int fd, const uint8_t *data, size_t len)
{
    begin(s, fd, data, len);
    give(&s->copier);
    run(s);
}

static void expect_copied(struct scene *s, const uint8_t *data, size_t len)
{
    struct digest digest = {.state = {0}};
    uint8_t sum[DIGEST_BYTES];
    struct stat st;

    if (s->failed)
        fail_msg("%zu bytes: %s", len, s->err.message);
    digest_init(&digest);
    digest_add(&digest, data, len);
    digest_end(&digest, sum);
    assert_memory_equal(s->copier.sum, sum, sizeof sum);
    assert_int_equal(s->copier.bytes, len);
    assert_int_equal(fstat(s->fd, &st), 0);
    assert_int_equal(st.st_size, len);
    if (len == 0)
        return;
    void *there = mmap(NULL, len, PROT_READ, MAP_PRIVATE, s->fd, 0);
    assert_ptr_not_equal(there, MAP_FAILED);
    bool same = memcmp(there, data, len) == 0;
    assert_int_equal(munmap(there, len), 0);
    assert_true(same);
}

static void expect_failed(const struct scene *s, int code, const char *part)
{
    assert_int_equal(s->done, 0);
    assert_int_equal(s->err.code, code);
    if (!strstr(s->err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", s->err.message, part);
    assert_string_not_equal(s->err.remedy, "");
}

/* Sums and sizes */

static void sums_are_those_of_the_standard(void **state)
{
    static const struct {
        const char *text;
        unsigned times;
        const char *sum;
    } known[] = {
        /* NIST's examples of SHA-256 */
        {"", 1, empty_sum},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        struct digest digest = {.state = {0}};
        uint8_t sum[COPIER_SUM_BYTES];
        char text[COPIER_SUM_TEXT];

        digest_init(&digest);
        for (unsigned k = 0; k < known[i].times; k++)
            digest_add(&digest, known[i].text, strlen(known[i].text));
        digest_end(&digest, sum);
        copier_sum_text(sum, text);
        assert_string_equal(text, known[i].sum);
    }
}

static const size_t sizes[] = {0, 1, 256 * 1024, MIB - 1, MIB, MIB + 1, RING, 20 * MIB};

static void files_of_every_size_are_copied_at_once(void **state)
{
    struct scene *s = *state;
    _cleanup_free_ uint8_t *data = make_data(20 * MIB);

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        assert_int_equal(ftruncate(s->fd, 0), 0);
        begin(s, s->fd, data, sizes[i]);
        give(&s->copier);
        assert_int_equal(s->done, 1); /* without any turn of the loop */
        expect_copied(s, data, sizes[i]);
    }
}

static void files_of_every_size_are_copied_by_one_process(void **state)
{
    struct scene *s = *state;
    _cleanup_free_ uint8_t *data = make_data(20 * MIB);

    process_new(s);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        assert_int_equal(ftruncate(s->fd, 0), 0);
        copy(s, s->fd, data, sizes[i]);
        expect_copied(s, data, sizes[i]);
    }
}

static void the_sum_of_an_empty_file_is_known(void **state)
{
    struct scene *s = *state;
    char text[COPIER_SUM_TEXT];

    copy(s, s->fd, NULL, 0);
    copier_sum_text(s->copier.sum, text);
    assert_string_equal(text, empty_sum);
}

/* Failures */

static void on_a_full_disk(struct scene *s)
{
    _cleanup_fd_ int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    _cleanup_free_ uint8_t *data = make_data(2 * MIB);

    assert_true(full >= 0);
    copy(s, full, data, 2 * MIB);
    expect_failed(s, ENOSPC, "the disk is full");
}

static void a_full_disk_is_an_error(void **state)
{
    struct scene *s = *state;
    _cleanup_free_ uint8_t *data = make_data(MIB);

    on_a_full_disk(s);
    process_new(s);
    on_a_full_disk(s);
    copy(s, s->fd, data, MIB); /* the process is none the worse for it */
    expect_copied(s, data, MIB);
}

static void over_the_limit(struct scene *s)
{
    _cleanup_free_ uint8_t *data = make_data(4 * MIB);

    copy(s, s->fd, data, 4 * MIB);
    expect_failed(s, EFBIG, "larger than a file may be");
}

static void a_file_over_the_limit_is_an_error(void **state)
{
    struct scene *s = *state;
    struct rlimit before, less;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    less = before;
    less.rlim_cur = 2 * MIB + 5;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    over_the_limit(s);
    (void)signal(SIGXFSZ, SIG_DFL); /* it is the process's own business to ignore it */
    process_new(s);
    over_the_limit(s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* Takes everything, and reads as zeroes. */
static void on_a_forgetful_disk(struct scene *s)
{
    _cleanup_fd_ int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    _cleanup_free_ uint8_t *data = make_data(MIB + 1);

    assert_true(zero >= 0);
    copy(s, zero, data, MIB + 1);
    expect_failed(s, EBADMSG, "what was read back differs");
}

static void what_reads_back_differently_is_an_error(void **state)
{
    struct scene *s = *state;

    on_a_forgetful_disk(s);
    process_new(s);
    on_a_forgetful_disk(s);
}

static void a_file_that_others_cut_or_extend_is_an_error(void **state)
{
    static const off_t other_sizes[] = {0, 100 * MIB};
    struct scene *s = *state;
    _cleanup_free_ uint8_t *data = make_data(9 * MIB);

    s->holds = true;
    begin(s, s->fd, data, 256 * 1024);
    give(&s->copier); /* all of it is written by now */
    assert_int_equal(ftruncate(s->fd, other_sizes[0]), 0);
    copier_finish(&s->copier, false);
    run(s);
    expect_failed(s, EBADMSG, "what was read back differs");

    process_new(s);
    begin(s, s->fd, data, 9 * MIB);
    give(&s->copier);
    while (s->given < s->len)
        assert_int_equal(loop_turn(&s->loop, CLOCK_NEVER), 0);
    assert_int_equal(ftruncate(s->fd, other_sizes[1]), 0);
    copier_finish(&s->copier, false);
    run(s);
    expect_failed(s, EBADMSG, "what was read back differs");
}

static void a_file_that_may_not_be_written_to_is_an_error(void **state)
{
    struct scene *s = *state;
    _cleanup_fd_ int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ uint8_t *data = make_data(1);

    process_new(s);
    copy(s, fd, data, 1);
    assert_int_equal(s->err.code, EBADF);
}

/* The process */

/* The one child that this process has. */
static pid_t find_child(void)
{
    char path[64], text[64] = "";

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    char *end = strchr(text, ' ');
    assert_non_null(end);
    *end = '\0';
    pid_t pid = 0;
    for (const char *p = text; *p; p++)
        pid = pid * 10 + (*p - '0');
    return pid;
}

static void a_process_that_is_killed_is_an_error(void **state)
{
    struct scene *s = *state;
    struct error err = ERROR_INIT;
    _cleanup_free_ uint8_t *data = make_data(20 * MIB);

    process_new(s);
    begin(s, s->fd, data, 20 * MIB);
    give(&s->copier);
    assert_int_equal(kill(find_child(), SIGKILL), 0);
    run(s);
    expect_failed(s, EPIPE, "ended unexpectedly");
    assert_int_equal(copier_start(&s->copier, &err), -EPIPE);
    assert_int_equal(s->failed, 1);
}

static void a_process_that_is_killed_while_idle_is_an_error_of_the_next_file(void **state)
{
    struct scene *s = *state;
    _cleanup_free_ uint8_t *data = make_data(MIB);

    process_new(s);
    copy(s, s->fd, data, MIB);
    pid_t pid = find_child();
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    (void)loop_turn(&s->loop, 0);
    struct error err = ERROR_INIT;
    assert_int_equal(copier_start(&s->copier, &err), -EPIPE);
}

static unsigned count_descriptors(pid_t pid)
{
    char path[64];
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++) {
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        n += faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return n;
}

static void the_process_holds_nothing_of_its_parents(void **state)
{
    struct scene *s = *state;
    int pair[2];
    char c;
    _cleanup_free_ uint8_t *data = make_data(MIB);

    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    process_new(s);
    (void)close(pair[1]);
    assert_int_equal(read(pair[0], &c, 1), 0); /* blocks while anybody else has the other end */
    (void)close(pair[0]);
    copy(s, s->fd, data, MIB);
    assert_int_equal(count_descriptors(find_child()), 1); /* its socket */
}

static void the_process_dies_with_its_parent(void **state)
{
    int status;

    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct loop l;
        struct copier_process *p;
        struct error err = ERROR_INIT;

        if (loop_init(&l) < 0 || copier_process_new(&l, &p, &err) < 0)
            _exit(1);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFSIGNALED(status));
    assert_true(waitpid(-1, &status, 0) > 0); /* handed to this process, and dead */
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* A set of signals as proc(5) tells it, without the two that the C library keeps for itself and
 * that whoever started this test may ignore. */
static uint64_t signals_of(const char *status, const char *set)
{
    const uint64_t own = UINT64_C(3) << 31;
    const char *at = strstr(status, set);
    uint64_t found = 0;

    assert_non_null(at);
    for (at += strlen(set) + 1; *at != '\n'; at++)
        found = found * 16 + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return found & ~own;
}

static void handlers_of_the_caller_do_not_run_in_the_process(void **state)
{
    struct scene *s = *state;
    sigset_t all, before, after;
    char path[64], text[4096] = "";

    (void)signal(SIGUSR1, SIG_IGN);
    (void)sigfillset(&all);
    assert_int_equal(sigprocmask(SIG_SETMASK, &all, &before), 0);
    process_new(s);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, &after), 0);
    assert_int_equal(sigismember(&after, SIGTERM), 1); /* the caller's mask is as it was */
    copy(s, s->fd, NULL, 0);                           /* it has begun to work */

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)find_child());
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    assert_int_equal(signals_of(text, "SigBlk:"), 0);
    assert_int_equal(signals_of(text, "SigCgt:"), 0);
    assert_int_equal(signals_of(text, "SigIgn:"), 1 << (SIGXFSZ - 1));
    (void)signal(SIGUSR1, SIG_DFL);
}

/* Giving up, and order */

static void a_file_can_be_given_up_and_another_one_begun(void **state)
{
    struct scene *s = *state;
    char path[] = "/tmp/atoll-test-XXXXXX";
    _cleanup_fd_ int other = mkostemp(path, O_CLOEXEC);
    _cleanup_free_ uint8_t *data = make_data(20 * MIB);

    assert_true(other >= 0);
    assert_int_equal(unlink(path), 0);
    process_new(s);
    for (unsigned round = 0; round < 5; round++) {
        begin(s, other, data, 20 * MIB);
        give(&s->copier);
        copier_stop(&s->copier);
        copier_stop(&s->copier);
        assert_int_equal(ftruncate(s->fd, 0), 0);
        copy(s, s->fd, data + round, 20 * MIB - round);
        expect_copied(s, data + round, 20 * MIB - round);
    }
}

static void one_file_at_a_time(void **state)
{
    struct scene *s = *state;
    struct copier second;
    struct error err = ERROR_INIT;
    _cleanup_free_ uint8_t *data = make_data(MIB);

    process_new(s);
    begin(s, s->fd, data, MIB);
    second = s->copier;
    assert_int_equal(copier_start(&second, &err), -EBUSY);
    copier_stop(&second);
    give(&s->copier);
    run(s);
    expect_copied(s, data, MIB);
}

static void a_callback_may_free_the_process(void **state)
{
    struct scene *s = *state;
    _cleanup_free_ uint8_t *data = make_data(3 * MIB);

    s->frees = true;
    process_new(s);
    copy(s, s->fd, data, 3 * MIB);
    expect_copied(s, data, 3 * MIB);
    process_new(s);
    on_a_full_disk(s);
    process_new(s);
    begin(s, s->fd, data, 3 * MIB);
    assert_int_equal(kill(find_child(), SIGKILL), 0);
    run(s);
    assert_int_equal(s->failed, 1);
}

static void the_process_may_be_freed_in_the_middle(void **state)
{
    struct scene *s = *state;
    _cleanup_free_ uint8_t *data = make_data(20 * MIB);

    process_new(s);
    begin(s, s->fd, data, 20 * MIB);
    give(&s->copier);
    copier_process_free(s->process);
    s->process = NULL;
    (void)loop_turn(&s->loop, 0);
    assert_int_equal(s->done + s->failed, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_file_system_is_synchronised(void **state)
{
    struct scene *s = *state;
    struct error err = ERROR_INIT;

    begin(s, s->fd, NULL, 0);
    copier_stop(&s->copier);
    assert_int_equal(copier_sync(&s->copier, s->fd, &err), 0);
    assert_int_equal(s->done, 1);
    assert_int_equal(copier_sync(&s->copier, -1, &err), -EBADF);
    assert_int_equal(s->done, 1);

    process_new(s);
    s->copier.process = s->process;
    s->done = 0;
    assert_int_equal(copier_sync(&s->copier, s->fd, &(struct error)ERROR_INIT), 0);
    assert_int_equal(s->done, 0);
    run(s);
    assert_int_equal(s->done, 1);
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, make_scene, remove_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_standard),
        scene_test(files_of_every_size_are_copied_at_once),
        scene_test(files_of_every_size_are_copied_by_one_process),
        scene_test(the_sum_of_an_empty_file_is_known),
        scene_test(a_full_disk_is_an_error),
        scene_test(a_file_over_the_limit_is_an_error),
        scene_test(what_reads_back_differently_is_an_error),
        scene_test(a_file_that_others_cut_or_extend_is_an_error),
        scene_test(a_file_that_may_not_be_written_to_is_an_error),
        scene_test(a_process_that_is_killed_is_an_error),
        scene_test(a_process_that_is_killed_while_idle_is_an_error_of_the_next_file),
        scene_test(the_process_holds_nothing_of_its_parents),
        scene_test(the_process_dies_with_its_parent),
        scene_test(handlers_of_the_caller_do_not_run_in_the_process),
        scene_test(a_file_can_be_given_up_and_another_one_begun),
        scene_test(one_file_at_a_time),
        scene_test(a_callback_may_free_the_process),
        scene_test(the_process_may_be_freed_in_the_middle),
        scene_test(a_file_system_is_synchronised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
