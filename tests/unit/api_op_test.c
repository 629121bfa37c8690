/* SPDX-License-Identifier: Apache-2.0 */
/* libatoll against a keeper of the test's own: this program again, started as `PROGRAM keeper 3`.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "atoll.h"
#include "base/clock.h"
#include "base/io.h"
#include "fake_peer.h"
#include "base/guards.h"

enum { BIG = 3000000, MOMENT_US = 50000 };
#define LIMIT_US UINT64_C(20000000)

static char pattern(size_t i)
{
    return (char)('a' + (i * 7 + i / 1000) % 26);
}

/* --- the keeper --- */

struct fake {
    struct channel main, files;
    uint32_t hanging; /* a command that waits to be killed */
    uint32_t endless; /* one that cannot be; and how often that was tried */
    unsigned tries;
    int held; /* an output that a process in the background holds open */
};

static void write_bytes(int fd, size_t n)
{
    static char buf[65536];

    for (size_t at = 0; at < n;) {
        size_t len = n - at < sizeof buf ? n - at : sizeof buf;

        for (size_t i = 0; i < len; i++)
            buf[i] = pattern(at + i);
        if (io_write_full(fd, buf, len, CLOCK_NEVER) < 0)
            _exit(5);
        at += len;
    }
}

static void copy_input(int from, int to)
{
    char buf[4096];
    ssize_t n;

    while ((n = read(from, buf, sizeof buf)) > 0)
        (void)io_write_full(to, buf, (size_t)n, CLOCK_NEVER);
}

static void fake_exec(struct fake *k, struct message *m)
{
    const char *strings[32], *what;
    struct exec_request x;
    struct exit_report report = {.exit_code = 7, .wall_us = 1234};

    if (exec_request_decode(m->payload, strings, ARRAY_SIZE(strings), &x) < 0)
        _exit(6);
    what = x.argv[0];
    if (strcmp(what, "die") == 0)
        _exit(0);
    if (strcmp(what, "refuse") == 0) {
        fake_error(&k->main, m->id, EMFILE, "too many commands run at once");
        return;
    }
    if (strcmp(what, "hang") == 0) {
        k->hanging = m->id;
        return;
    }
    if (strcmp(what, "endless") == 0) {
        k->endless = m->id;
        return;
    }
    if (x.flags & EXEC_DETACH) {
        fake_number(&k->main, MSG_STARTED, m->id, TAG_COMMAND_NUMBER, 42);
        return;
    }
    if (strcmp(what, "big") == 0)
        write_bytes(m->fds[0], BIG);
    else if (strcmp(what, "cat") == 0)
        copy_input(m->fds[0], m->fds[1]);
    else
        (void)!write(m->fds[0], what, strlen(what));
    if (strcmp(what, "hold") == 0)
        k->held = fcntl(m->fds[1], F_DUPFD_CLOEXEC, 3);
    message_close_fds(m);
    if (strcmp(what, "missing") == 0) {
        report = (struct exit_report){
            .exit_code = 127, .start_stage = START_EXEC, .start_errno = ENOENT};
    }
    fake_exited(&k->main, m->id, &report);
}

static void fake_kill(struct fake *k, const struct message *m)
{
    if (m->id == k->hanging && k->hanging != 0)
        fake_exited(&k->main, m->id,
                    &(struct exit_report){.signal = SIGKILL, .reason = REASON_KILLED});
    k->hanging = 0;
}

static void send_with_fd(struct channel *c, uint16_t type, uint32_t id, const struct writer *w,
                         int fd)
{
    if (channel_send(c, type, id, w ? w->start : NULL, w ? writer_len(w) : 0, &fd, 1) < 0)
        _exit(7);
    (void)close(fd);
}

static void fake_files(struct fake *k, const struct message *m)
{
    int pair[2];

    channel_done(&k->files);
    if (io_pair(pair) < 0)
        _exit(8);
    channel_init(&k->files, pair[0]);
    send_with_fd(&k->main, MSG_FILES_OPENED, m->id, NULL, pair[1]);
}

static void send_fault(struct channel *c, uint32_t id, const struct file_fault *f)
{
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    file_fault_encode(&w, ERROR_RECOVERABLE, f);
    fake_send(c, MSG_ERROR, id, &w);
}

static void fake_read(struct fake *k, const struct message *m, const struct file_request *x)
{
    struct file_info info = {.kind = FILE_REGULAR, .mode = 0640, .size = 1000, .mtime_ns = 5};
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    int fd, ends[2];

    file_info_encode(&w, &info);
    if (m->type == MSG_STAT) {
        fake_send(&k->files, MSG_FILE, m->id, &w);
        return;
    }
    if (strcmp(x->path, "fifo") == 0) { /* what no sound process inside would send */
        if (pipe2(ends, O_CLOEXEC) < 0)
            _exit(9);
        send_with_fd(&k->files, MSG_FILE, m->id, &w, ends[0]);
        return;
    }
    fd = memfd_create("file", MFD_CLOEXEC);
    write_bytes(fd, 1000);
    send_with_fd(&k->files, MSG_FILE, m->id, &w, fd);
}

static void fake_list(struct fake *k, const struct message *m)
{
    const struct file_info one = {.name = "one", .kind = FILE_REGULAR, .size = 3};
    const struct file_info two = {
        .name = "two", .kind = FILE_LINK, .link_target = "/away", .target_kind = FILE_LINK};
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);

    file_entry_encode(&w, &one);
    fake_send(&k->files, MSG_LISTED, m->id, &w);
    w = writer_over(buf, sizeof buf);
    file_entry_encode(&w, &two);
    fake_send(&k->files, MSG_LISTED, m->id, &w);
    fake_send(&k->files, MSG_DONE, m->id, NULL);
}

static void serve_files(struct fake *k, const struct message *m)
{
    struct file_request x;

    if (m->type == MSG_CANCEL)
        return;
    if (file_request_decode(m->payload, &x) < 0)
        _exit(10);
    if (strcmp(x.path, "kill") == 0) { /* the process inside is killed */
        channel_done(&k->files);
    } else if (strcmp(x.path, "folder") == 0 && m->type == MSG_READ) {
        send_fault(&k->files, m->id, &(struct file_fault){.code = EISDIR, .path = x.path});
    } else if (strcmp(x.path, "never") == 0) {
        /* no answer */
    } else if (m->type == MSG_READ || m->type == MSG_STAT) {
        fake_read(k, m, &x);
    } else if (m->type == MSG_LIST) {
        fake_list(k, m);
    } else {
        fake_send(&k->files, MSG_DONE, m->id, NULL);
    }
}

static void serve_main(struct fake *k, struct message *m)
{
    switch (m->type) {
    case MSG_HELLO:
        fake_hello(&k->main, 1, 1);
        break;
    case MSG_CREATE:
        if (getenv("FAKE_STUCK") == NULL)
            fake_number(&k->main, MSG_CREATED, m->id, TAG_LANDLOCK_ABI, 1);
        break;
    case MSG_EXEC:
        fake_exec(k, m);
        break;
    case MSG_CANCEL:
        if (m->id != k->endless) {
            fake_kill(k, m);
            break;
        }
        fake_error(&k->main, m->id, ENOSYS, "nothing can be cancelled");
        break;
    case MSG_SIGNAL:
        if (++k->tries > 3)
            _exit(11);
        fake_error(&k->main, m->id, ENOSYS, "no signals can be sent");
        break;
    case MSG_FILES:
        fake_files(k, m);
        break;
    case MSG_DESTROY:
        fake_number(&k->main, MSG_ENDED, 1, TAG_ENDED_BY, ENDED_DESTROYED);
        _exit(0);
    default:
        fake_error(&k->main, m->id, ENOSYS, "there is no such operation");
        break;
    }
}

static int fake_keeper(int fd)
{
    struct fake k = {.held = -EBADF};
    struct message m;

    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    channel_init(&k.main, fd);
    channel_init(&k.files, -EBADF);
    for (;;) {
        struct pollfd p[] = {{.fd = k.main.fd, .events = POLLIN},
                             {.fd = k.files.fd, .events = POLLIN}};
        int r;

        (void)poll(p, 2, -1);
        while ((r = channel_receive(&k.main, &m)) > 0) {
            serve_main(&k, &m);
            message_close_fds(&m);
        }
        if (r < 0)
            return 0;
        while (k.files.fd >= 0 && (r = channel_receive(&k.files, &m)) > 0) {
            serve_files(&k, &m);
            message_close_fds(&m);
        }
        if (r < 0)
            channel_done(&k.files);
    }
}

/* --- the tests --- */

static char self[512];
static struct atoll *a;
static struct atoll_sandbox *sb;

static struct atoll_op *done(struct atoll_op *op)
{
    assert_non_null(op);
    assert_int_not_equal(atoll_wait(op, LIMIT_US), -EINPROGRESS);
    assert_true(atoll_op_done(op));
    return op;
}

static struct atoll_op *good(struct atoll_op *op)
{
    (void)done(op);
    if (atoll_op_error(op))
        fail_msg("%s", atoll_op_error(op)->message);
    return op;
}

static struct atoll_op *bad(struct atoll_op *op, int code)
{
    (void)done(op);
    assert_non_null(atoll_op_error(op));
    assert_int_equal(atoll_op_error(op)->code, code);
    assert_true(atoll_op_error(op)->message[0] != '\0');
    return op;
}

static struct atoll_op *begin_create(void)
{
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_op *op = atoll_create(a, spec, ATOLL_OWNED);

    atoll_spec_free(spec);
    return op;
}

static struct atoll_op *begin(const char *what)
{
    const char *const argv[] = {what, NULL};

    return atoll_exec(sb, &(struct atoll_exec){.argv = argv});
}

static int start(void **state)
{
    struct atoll_error err;

    (void)state;
    if (atoll_new(&a, &err) < 0 || atoll_set_program(a, self) < 0)
        return -1;
    struct atoll_op *op = good(begin_create());
    sb = atoll_op_sandbox(op);
    assert_null(atoll_op_sandbox(op)); /* it is handed out once */
    atoll_op_free(op);
    return sb ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    atoll_free(a);
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1; /* nobody is left */
}

static void output_is_captured_with_the_exit(void **state)
{
    const struct atoll_exit *x;
    struct atoll_op *op;
    size_t len;

    (void)state;
    op = good(begin("hello"));
    x = atoll_op_exit(op);
    assert_int_equal(x->exit_code, 7);
    assert_int_equal(x->status, 7);
    assert_string_equal(x->reason, "exited");
    assert_int_equal(x->wall_us, 1234);
    assert_string_equal(atoll_op_output(op, 1, &len), "hello");
    assert_int_equal(len, 5);
    assert_int_equal(x->stdout_total, 5);
    assert_string_equal(atoll_op_output(op, 2, &len), "");
    assert_int_equal(len, 0);
    assert_int_equal(atoll_op_take_fd(op, 1), -EBADF);
    atoll_op_free(op);
}

static void of_much_output_the_last_bytes_are_kept(void **state)
{
    const char *const argv[] = {"big", NULL};
    struct atoll_op *op;
    const char *out;
    size_t len;

    (void)state;
    op = good(atoll_exec(sb, &(struct atoll_exec){.argv = argv, .capture_max = 100000}));
    assert_int_equal(atoll_op_exit(op)->stdout_total, BIG);
    out = atoll_op_output(op, 1, &len);
    assert_int_equal(len, 100000);
    for (size_t i = 0; i < len; i++)
        if (out[i] != pattern(BIG - len + i))
            fail_msg("byte %zu differs", i);
    assert_int_equal(out[len], '\0');
    atoll_op_free(op);
}

static void input_is_fed_from_memory(void **state)
{
    const char *const argv[] = {"cat", NULL};
    static char text[300000];
    struct atoll_op *op;
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = pattern(i);
    op = good(atoll_exec(
        sb, &(struct atoll_exec){.argv = argv, .input = text, .input_len = sizeof text}));
    assert_memory_equal(atoll_op_output(op, 1, &len), text, sizeof text);
    assert_int_equal(len, sizeof text);
    atoll_op_free(op);
}

static void streams_can_be_the_callers(void **state)
{
    const char *const argv[] = {"cat", NULL};
    const struct atoll_exec x = {.argv = argv, .flags = ATOLL_STDIN | ATOLL_STREAMS};
    struct atoll_op *op = atoll_exec(sb, &x);
    char buf[16];
    int in, out, err;

    (void)state;
    in = atoll_op_take_fd(op, 0);
    out = atoll_op_take_fd(op, 1);
    err = atoll_op_take_fd(op, 2);
    assert_true(in >= 0 && out >= 0 && err >= 0);
    assert_int_equal(atoll_op_take_fd(op, 1), -EBADF);
    assert_true(fcntl(out, F_GETFL) & O_NONBLOCK);
    assert_int_equal(write(in, "hi", 2), 2);
    (void)close(in);
    (void)good(op);
    assert_int_equal(read(out, buf, sizeof buf), 2);
    assert_int_equal(read(out, buf, sizeof buf), 0);
    (void)close(out);
    (void)close(err);
    atoll_op_free(op);
}

static void a_held_output_is_given_up_after_silence(void **state)
{
    struct atoll_op *op;

    (void)state;
    op = good(begin("hold"));
    assert_string_equal(atoll_op_output(op, 1, NULL), "hold");
    atoll_op_free(op);
}

static void a_program_that_is_missing_is_explained(void **state)
{
    struct atoll_op *op;

    (void)state;
    op = good(begin("missing"));
    assert_int_equal(atoll_op_exit(op)->status, 127);
    assert_non_null(strstr(atoll_op_exit(op)->problem, "missing"));
    atoll_op_free(op);
}

static void a_detached_command_is_done_when_it_runs(void **state)
{
    const char *const argv[] = {"x", NULL};
    struct atoll_op *op;

    (void)state;
    op = good(atoll_exec(sb, &(struct atoll_exec){.argv = argv, .flags = ATOLL_DETACH}));
    assert_int_equal(atoll_op_exit(op)->command, 42);
    atoll_op_free(op);
}

static void a_refused_command_fails_alone(void **state)
{
    struct atoll_op *op;

    (void)state;
    op = bad(begin("refuse"), EMFILE);
    assert_null(atoll_op_exit(op));
    atoll_op_free(op);
    atoll_op_free(good(begin("x")));
}

static void mistakes_are_found_before_anything_is_sent(void **state)
{
    const char *const none[] = {NULL};
    const char *const argv[] = {"x", NULL};
    struct atoll_op *op;

    (void)state;
    op = bad(atoll_exec(sb, &(struct atoll_exec){.argv = none}), EINVAL);
    assert_int_equal(atoll_op_error(op)->cls, ATOLL_USAGE);
    atoll_op_free(op);
    op = bad(atoll_exec(sb, &(struct atoll_exec){.argv = argv, .flags = 1u << 30}), EINVAL);
    atoll_op_free(op);
    op = bad(atoll_read_bytes(sb, "", 0, UINT64_MAX, UINT64_MAX), ENOENT);
    atoll_op_free(op);
}

static void a_command_can_be_cancelled(void **state)
{
    struct atoll_op *op = begin("hang");

    (void)state;
    assert_int_equal(atoll_wait(op, MOMENT_US), -EINPROGRESS);
    assert_false(atoll_op_done(op));
    atoll_op_cancel(op);
    (void)bad(op, ECANCELED);
    assert_string_equal(atoll_op_exit(op)->reason, "killed"); /* the sandbox has confirmed it */
    atoll_op_cancel(op);
    atoll_op_free(op);
}

static void one_that_cannot_be_ended_is_not_asked_again_and_again(void **state)
{
    struct atoll_op *op = begin("endless");

    (void)state;
    assert_int_equal(atoll_wait(op, MOMENT_US), -EINPROGRESS);
    atoll_op_cancel(op);
    atoll_op_free(bad(op, ECANCELED));
    atoll_op_free(good(begin("x"))); /* the keeper has not had too much of it */
}

static void a_callers_patience_can_end(void **state)
{
    struct atoll_op *op = begin("hang"), *other = begin("hello");

    (void)state;
    atoll_op_set_timeout(op, MOMENT_US);
    atoll_op_free(good(other));
    atoll_op_free(bad(op, ETIMEDOUT));
}

static void freeing_one_that_runs_cancels_it(void **state)
{
    struct atoll_op *op = begin("hang");

    (void)state;
    atoll_op_free(op);
    atoll_op_free(good(begin("x"))); /* the keeper has heard of both by now */
}

static void a_lost_keeper_fails_what_is_under_way(void **state)
{
    struct atoll_op *hang = begin("hang"), *op = begin("die");

    (void)state;
    (void)bad(op, EPIPE);
    (void)bad(hang, EPIPE);
    assert_int_equal(atoll_op_error(op)->cls, ATOLL_TERMINAL);
    atoll_op_free(op);
    atoll_op_free(hang);
    atoll_op_free(bad(begin("x"), EPIPE));
    atoll_op_free(good(atoll_destroy(sb))); /* it is gone already */
}

static void destroying_ends_what_is_under_way(void **state)
{
    struct atoll_op *hang = begin("hang"), *op = atoll_destroy(sb);

    (void)state;
    (void)good(op);
    (void)bad(hang, ESHUTDOWN);
    atoll_op_free(op);
    atoll_op_free(good(atoll_destroy(sb)));
    atoll_op_free(hang);
}

static void letting_a_handle_go_cancels_its_operations(void **state)
{
    struct atoll_op *hang = begin("hang"), *stat = atoll_stat(sb, "never", true);

    (void)state;
    atoll_sandbox_free(sb);
    atoll_op_free(bad(hang, ECANCELED));
    atoll_op_free(bad(stat, ECANCELED));
}

static void a_creation_can_be_given_up(void **state)
{
    struct atoll_op *op;

    (void)state;
    assert_int_equal(setenv("FAKE_STUCK", "1", 1), 0);
    op = begin_create();
    assert_int_equal(unsetenv("FAKE_STUCK"), 0);
    atoll_op_set_timeout(op, MOMENT_US);
    (void)bad(op, ETIMEDOUT);
    assert_null(atoll_op_sandbox(op));
    atoll_op_free(op);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    struct atoll_op *op;

    (void)state;
    assert_int_equal(atoll_set_program(a, "relative"), -EINVAL);
    assert_int_equal(atoll_set_program(a, "/nonexistent/atoll"), 0);
    op = bad(begin_create(), ENOENT);
    assert_non_null(strstr(atoll_op_error(op)->message, "/nonexistent/atoll"));
    atoll_op_free(op);
}

static void a_range_is_read_into_memory(void **state)
{
    struct atoll_op *op;
    const char *out;
    size_t len;

    (void)state;
    op = good(atoll_read_bytes(sb, "file", 990, UINT64_MAX, 4096));
    out = atoll_op_output(op, 1, &len);
    assert_int_equal(len, 10);
    assert_int_equal(out[0], pattern(990));
    assert_int_equal(out[10], '\0');
    assert_int_equal(atoll_op_file(op, 0)->mode, 0640);
    atoll_op_free(op);
    op = good(atoll_read_bytes(sb, "file", 2000, UINT64_MAX, 4096));
    (void)atoll_op_output(op, 1, &len);
    assert_int_equal(len, 0);
    atoll_op_free(op);
    op = bad(atoll_read_bytes(sb, "file", 0, UINT64_MAX, 999), EFBIG);
    assert_int_equal(atoll_op_error(op)->cls, ATOLL_TOO_LARGE);
    atoll_op_free(op);
}

static void a_file_is_handed_out_where_it_begins(void **state)
{
    struct atoll_op *op;
    char buf[8];
    int fd;

    (void)state;
    op = atoll_read(sb, "file", 100, UINT64_MAX, UINT64_MAX);
    assert_int_equal(atoll_op_take_fd(op, 0), -EBADF); /* not before it is done */
    (void)good(op);
    fd = atoll_op_take_fd(op, 0);
    assert_int_equal(read(fd, buf, sizeof buf), sizeof buf);
    assert_int_equal(buf[0], pattern(100));
    (void)close(fd);
    atoll_op_free(op);
}

static void what_is_no_file_is_not_believed(void **state)
{
    struct atoll_op *op;

    (void)state;
    op = bad(atoll_read_bytes(sb, "fifo", 0, UINT64_MAX, UINT64_MAX), EPROTO);
    assert_int_equal(atoll_op_error(op)->cls, ATOLL_RECOVERABLE);
    atoll_op_free(op);
    atoll_op_free(good(atoll_read_bytes(sb, "file", 0, UINT64_MAX, UINT64_MAX)));
}

static void faults_are_put_into_words(void **state)
{
    struct atoll_op *op;

    (void)state;
    op = bad(atoll_read_bytes(sb, "folder", 0, UINT64_MAX, UINT64_MAX), EISDIR);
    assert_string_equal(atoll_op_error(op)->message, "'folder' is a folder; list it instead");
    assert_int_equal(atoll_op_error(op)->cls, ATOLL_RECOVERABLE);
    atoll_op_free(op);
}

static void a_folder_is_listed_from_several_messages(void **state)
{
    struct atoll_op *op;

    (void)state;
    op = good(atoll_list_folder(sb, "folder"));
    assert_int_equal(atoll_op_count(op), 2);
    assert_string_equal(atoll_op_file(op, 0)->name, "one");
    assert_string_equal(atoll_op_file(op, 1)->target, "/away");
    assert_int_equal(atoll_op_file(op, 1)->target_kind, ATOLL_LINK);
    assert_null(atoll_op_file(op, 2));
    atoll_op_free(op);
}

static void the_next_one_works_after_the_process_inside_was_killed(void **state)
{
    struct atoll_op *op, *next;

    (void)state;
    op = atoll_stat(sb, "kill", true);
    next = atoll_read_bytes(sb, "file", 0, UINT64_MAX, UINT64_MAX);
    (void)bad(op, EPIPE);
    assert_int_equal(atoll_op_error(op)->cls, ATOLL_RECOVERABLE);
    atoll_op_free(op);
    (void)done(next);
    atoll_op_free(next);
    atoll_op_free(good(atoll_read_bytes(sb, "file", 0, UINT64_MAX, UINT64_MAX)));
}

static void the_descriptor_tells_of_deadlines_too(void **state)
{
    struct atoll_op *op = begin("hang");
    struct pollfd p = {.fd = atoll_fd(a), .events = POLLIN};

    (void)state;
    assert_true(p.fd >= 0);
    assert_int_equal(atoll_fd(a), p.fd);
    atoll_op_set_timeout(op, MOMENT_US);
    while (!atoll_op_done(op)) {
        assert_int_equal(poll(&p, 1, (int)(LIMIT_US / 1000)), 1);
        assert_int_equal(atoll_step(a), 0);
    }
    atoll_op_free(bad(op, ETIMEDOUT));
}

static size_t open_descriptors(void)
{
    size_t n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void nothing_is_left_open(void **state)
{
    size_t before;

    (void)state;
    atoll_op_free(good(atoll_stat(sb, "x", true)));
    before = open_descriptors();
    for (int i = 0; i < 3; i++) {
        atoll_op_free(good(begin("hello")));
        atoll_op_free(good(atoll_read_bytes(sb, "file", 0, UINT64_MAX, UINT64_MAX)));
        atoll_op_free(good(atoll_read(sb, "file", 0, UINT64_MAX, UINT64_MAX)));
        atoll_op_free(begin("hang"));
    }
    atoll_op_free(good(begin("hello")));
    assert_int_equal(open_descriptors(), before);
}

static int find_self(void **state)
{
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    return n < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "keeper") == 0)
        _exit(fake_keeper(3)); /* without a look for leaks: it does not tidy up */
#define API_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        API_TEST(output_is_captured_with_the_exit),
        API_TEST(of_much_output_the_last_bytes_are_kept),
        API_TEST(input_is_fed_from_memory),
        API_TEST(streams_can_be_the_callers),
        API_TEST(a_held_output_is_given_up_after_silence),
        API_TEST(a_program_that_is_missing_is_explained),
        API_TEST(a_detached_command_is_done_when_it_runs),
        API_TEST(a_refused_command_fails_alone),
        API_TEST(mistakes_are_found_before_anything_is_sent),
        API_TEST(a_command_can_be_cancelled),
        API_TEST(one_that_cannot_be_ended_is_not_asked_again_and_again),
        API_TEST(a_callers_patience_can_end),
        API_TEST(freeing_one_that_runs_cancels_it),
        API_TEST(a_lost_keeper_fails_what_is_under_way),
        API_TEST(destroying_ends_what_is_under_way),
        API_TEST(letting_a_handle_go_cancels_its_operations),
        API_TEST(a_creation_can_be_given_up),
        API_TEST(a_program_that_is_not_there_is_named),
        API_TEST(a_range_is_read_into_memory),
        API_TEST(a_file_is_handed_out_where_it_begins),
        API_TEST(what_is_no_file_is_not_believed),
        API_TEST(faults_are_put_into_words),
        API_TEST(a_folder_is_listed_from_several_messages),
        API_TEST(the_next_one_works_after_the_process_inside_was_killed),
        API_TEST(the_descriptor_tells_of_deadlines_too),
        API_TEST(nothing_is_left_open),
    };

    return cmocka_run_group_tests(tests, find_self, NULL);
}
