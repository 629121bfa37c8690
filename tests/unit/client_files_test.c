/* SPDX-License-Identifier: Apache-2.0 */
/* File operations whose process inside goes away: what is asked again, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/io.h"
#include "client/files.h"
#include "fake_peer.h"
#include "base/guards.h"

enum { OPS = 3, TURNS = 20 };

/* The client, and beside it both of its peers: a keeper, and the process inside. */
struct scene {
    struct loop loop;
    struct session session;
    struct files files;
    struct channel keeper, inside;
    struct file_op ops[OPS];
    unsigned n_done, n_failed;
    struct error error;
};

static void turn(struct scene *s)
{
    for (int i = 0; i < TURNS; i++)
        assert_int_equal(loop_turn(&s->loop, 0), 0);
}

static void info_came(struct file_op *op, const struct file_info *info, int fd)
{
    (void)op;
    (void)info;
    fd_closep(&fd);
}

static void op_done(struct file_op *op, struct reader message)
{
    struct scene *s = op->owner;

    (void)message;
    s->n_done++;
}

static void op_failed(struct file_op *op, const struct error *err)
{
    struct scene *s = op->owner;

    s->n_failed++;
    s->error = *err;
}

static const struct file_op_events events = {
    .info = info_came, .done = op_done, .failed = op_failed};

static int start(void **state)
{
    static struct scene s;
    struct error err = ERROR_INIT;
    int pair[2];

    memset(&s, 0, sizeof s);
    *state = &s;
    s.session = (struct session)SESSION_INIT;
    if (loop_init(&s.loop) < 0 || io_pair(pair) < 0 ||
        session_adopt(&s.session, pair[0], 0, &err) < 0 ||
        session_watch(&s.session, &s.loop, &err) < 0)
        return -1;
    channel_init(&s.keeper, pair[1]);
    channel_init(&s.inside, -EBADF);
    fake_hello(&s.keeper, WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR);
    s.files.main = &s.session;
    for (int i = 0; i < OPS; i++)
        s.ops[i] = (struct file_op){.events = &events, .owner = &s, .pipe_fd = -EBADF};
    turn(&s);
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;

    files_done(&s->files);
    session_end(&s->session);
    channel_done(&s->keeper);
    channel_done(&s->inside);
    loop_done(&s->loop);
    return 0;
}

static void ask(struct scene *s, int i, uint16_t type, int pipe_fd)
{
    const struct file_request x = {.path = "a", .length = UINT64_MAX, .max_bytes = UINT64_MAX};
    struct error err = ERROR_INIT;

    assert_int_equal(file_op_start(&s->files, &s->ops[i], type, &x, pipe_fd, &err), 0);
}

static uint32_t expect(struct scene *s, struct channel *c, uint16_t type, struct message *m)
{
    turn(s);
    do /* HELLO is of no interest here */
        assert_int_equal(channel_receive(c, m), 1);
    while (m->type == MSG_HELLO);
    assert_int_equal(m->type, type);
    return m->id;
}

/* A process is asked for, and comes. */
static void open_inside(struct scene *s)
{
    struct message m;
    int pair[2];
    uint32_t id = expect(s, &s->keeper, MSG_FILES, &m);

    channel_done(&s->inside);
    assert_int_equal(io_pair(pair), 0);
    channel_init(&s->inside, pair[0]);
    assert_int_equal(channel_send(&s->keeper, MSG_FILES_OPENED, id, NULL, 0, &pair[1], 1), 0);
    (void)close(pair[1]);
    turn(s);
}

static void answer_stat(struct scene *s)
{
    const struct file_info x = {.kind = FILE_REGULAR, .mode = 0644};
    struct message m;
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);
    uint32_t id = expect(s, &s->inside, MSG_STAT, &m);

    file_info_encode(&w, &x);
    fake_send(&s->inside, MSG_FILE, id, &w);
    turn(s);
}

/* As a process does that has been silent for long. */
static void take_no_more(struct scene *s)
{
    assert_int_equal(shutdown(s->inside.fd, SHUT_RD), 0);
}

static void what_was_not_taken_is_asked_of_another(void **state)
{
    struct scene *s = *state;

    ask(s, 0, MSG_STAT, -EBADF);
    open_inside(s);
    answer_stat(s);
    assert_int_equal(s->n_done, 1);
    take_no_more(s);
    channel_done(&s->inside);
    ask(s, 0, MSG_STAT, -EBADF); /* before the loop could see that it has gone */
    ask(s, 1, MSG_STAT, -EBADF);
    open_inside(s);
    answer_stat(s);
    answer_stat(s);
    assert_int_equal(s->n_done, 3);
    assert_int_equal(s->n_failed, 0);
}

static void what_was_seen_to_go_is_opened_anew(void **state)
{
    struct scene *s = *state;

    ask(s, 0, MSG_STAT, -EBADF);
    open_inside(s);
    answer_stat(s);
    channel_done(&s->inside);
    turn(s);
    ask(s, 0, MSG_STAT, -EBADF);
    open_inside(s);
    answer_stat(s);
    assert_int_equal(s->n_done, 2);
    assert_int_equal(s->n_failed, 0);
}

/* Sent in the moment in which it gave up waiting: the pipe comes back, and goes to the next one. */
static void what_comes_back_unserved_is_asked_in_its_order(void **state)
{
    static const char content[] = "content";
    struct scene *s = *state;
    struct message m[2];
    char buf[32] = "";
    int pipe_fds[2];

    ask(s, 0, MSG_STAT, -EBADF);
    open_inside(s);
    answer_stat(s);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    ask(s, 0, MSG_WRITE, pipe_fds[0]);
    ask(s, 1, MSG_STAT, -EBADF);
    take_no_more(s);
    file_op_commit(&s->ops[0]);
    ask(s, 2, MSG_LIST, -EBADF); /* not taken */
    assert_int_equal(channel_receive(&s->inside, &m[0]), 1);
    int fd = message_take_fd(&m[0], 0);
    assert_true(fd >= 0);
    assert_int_equal(channel_send(&s->inside, MSG_ENDED, m[0].id, NULL, 0, &fd, 1), 0);
    (void)close(fd);
    assert_int_equal(channel_receive(&s->inside, &m[1]), 1);
    assert_int_equal(channel_send(&s->inside, MSG_ENDED, m[1].id, NULL, 0, NULL, 0), 0);
    channel_done(&s->inside);

    open_inside(s);
    uint32_t id = expect(s, &s->inside, MSG_WRITE, &m[0]);
    fd = message_take_fd(&m[0], 0);
    assert_int_equal(expect(s, &s->inside, MSG_COMMIT, &m[1]), id);
    answer_stat(s);
    (void)expect(s, &s->inside, MSG_LIST, &m[1]);
    fake_send(&s->inside, MSG_DONE, m[1].id, NULL);
    assert_int_equal(write(pipe_fds[1], content, sizeof content), sizeof content);
    (void)close(pipe_fds[1]);
    assert_int_equal(read(fd, buf, sizeof buf), sizeof content);
    assert_string_equal(buf, content);
    assert_int_equal(read(fd, buf, sizeof buf), 0); /* nobody else holds its other end */
    (void)close(fd);
    fake_send(&s->inside, MSG_DONE, id, NULL);
    turn(s);
    assert_int_equal(s->n_failed, 0);
    assert_int_equal(s->n_done, 4);
}

static void what_was_taken_by_one_that_died_is_not_asked_again(void **state)
{
    struct scene *s = *state;
    struct message m;

    ask(s, 0, MSG_STAT, -EBADF);
    open_inside(s);
    (void)expect(s, &s->inside, MSG_STAT, &m);
    channel_done(&s->inside);
    turn(s);
    assert_int_equal(s->n_failed, 1);
    assert_int_equal(s->error.cls, ERROR_RECOVERABLE);
    assert_int_equal(channel_receive(&s->keeper, &m), 0);
}

static void where_none_lasts_it_fails_in_the_end(void **state)
{
    struct scene *s = *state;
    int opened = 0;

    ask(s, 0, MSG_STAT, -EBADF);
    for (; opened < 100 && s->n_failed == 0; opened++) {
        struct message m;
        int pair[2];
        uint32_t id = expect(s, &s->keeper, MSG_FILES, &m);

        assert_int_equal(io_pair(pair), 0);
        assert_int_equal(channel_send(&s->keeper, MSG_FILES_OPENED, id, NULL, 0, &pair[1], 1), 0);
        (void)close(pair[0]);
        (void)close(pair[1]);
        turn(s);
    }
    assert_in_range(opened, 2, 20);
    assert_int_equal(s->n_done, 0);
}

static void one_that_waits_can_be_given_up(void **state)
{
    struct scene *s = *state;

    ask(s, 0, MSG_STAT, -EBADF);
    open_inside(s);
    answer_stat(s);
    take_no_more(s);
    channel_done(&s->inside);
    for (int i = 0; i < OPS; i++)
        ask(s, i, MSG_STAT, -EBADF);
    file_op_cancel(&s->ops[2]);
    file_op_cancel(&s->ops[0]);
    open_inside(s);
    answer_stat(s);
    assert_int_equal(s->n_done, 2);
    assert_int_equal(s->n_failed, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_not_taken_is_asked_of_another),
        TEST(what_was_seen_to_go_is_opened_anew),
        TEST(what_comes_back_unserved_is_asked_in_its_order),
        TEST(what_was_taken_by_one_that_died_is_not_asked_again),
        TEST(where_none_lasts_it_fails_in_the_end),
        TEST(one_that_waits_can_be_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
