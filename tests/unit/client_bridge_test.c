/* SPDX-License-Identifier: Apache-2.0 */
/* Bridges: credit, slow and vanished readers, ends; and commands over them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/execution.h"
#include "fake_peer.h"
#include "base/guards.h"

enum { LIMIT_US = 20000000, CHUNK = 30000, SMALL_PIPE = 4096 };

static struct loop loop;
static struct session session;
static struct channel peer;
static struct execution execution;
static uint8_t chunk[CHUNK];
static bool exited, failed;

static void on_exited(struct execution *e)
{
    (void)e;
    exited = true;
}

static void on_failed(struct execution *e, const struct error *err)
{
    (void)e;
    (void)err;
    failed = true;
}

static const struct execution_events events = {.exited = on_exited, .failed = on_failed};

/* Lets the session work until nothing more happens. */
static void settle(void)
{
    for (int quiet = 0; quiet < 3; quiet++)
        assert_int_equal(loop_turn(&loop, clock_after_us(1000)), 0);
}

/* A session over a byte stream with the test itself at its other end. */
static int start(void **state)
{
    struct error err = ERROR_INIT;
    struct message m;
    int pair[2];

    (void)state;
    exited = failed = false;
    execution = (struct execution){.events = &events};
    if (loop_init(&loop) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    session = (struct session)SESSION_INIT;
    session.in_band = true;
    session.state = SESSION_GREETING;
    if (channel_init_stream(&session.channel, pair[0], pair[0]) < 0 ||
        channel_init_stream(&peer, pair[1], pair[1]) < 0 ||
        session_watch(&session, &loop, &err) < 0)
        return -1;
    while (channel_receive(&peer, &m) > 0)
        ;
    fake_hello(&peer, 1, 1);
    settle();
    return session.state == SESSION_OPEN ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    execution_done(&execution);
    session_end(&session);
    channel_done(&peer);
    loop_done(&loop);
    return 0;
}

/* Starts a command whose stdin and stdout are these; its stderr goes nowhere. */
static void begin(int in, int out)
{
    const char *argv[] = {"x", NULL};
    const struct exec_request x = {.argv = argv, .n_argv = 1, .flags = in >= 0 ? EXEC_STDIN : 0};
    int fds[3], err_pipe[2];
    struct error err = ERROR_INIT;
    struct message m;
    size_t n = 0;

    assert_int_equal(pipe2(err_pipe, O_CLOEXEC), 0);
    if (in >= 0)
        fds[n++] = in;
    fds[n++] = out;
    fds[n++] = err_pipe[1];
    assert_int_equal(execution_start(&execution, &session, &x, fds, n, &err), 0);
    (void)close(err_pipe[0]);
    (void)close(err_pipe[1]);
    settle();
    assert_true(fake_receive(&peer, &m));
    assert_int_equal(m.type, MSG_EXEC);
    assert_int_equal(m.id, execution.request.id);
}

/* The credit that has come back for stdout. */
static size_t credit_back(void)
{
    struct stream_data x;
    struct message m;
    size_t sum = 0;

    while (channel_receive(&peer, &m) > 0) {
        assert_int_equal(m.type, MSG_CREDIT);
        assert_int_equal(stream_data_decode(m.payload, &x), 0);
        sum += x.credit;
    }
    return sum;
}

/* What is there, which must go on from byte @at of the pattern. */
static size_t read_all(int fd, size_t at)
{
    uint8_t buf[65536];
    size_t sum = 0;

    for (;;) {
        ssize_t n = read(fd, buf, sizeof buf);

        if (n <= 0)
            return sum;
        for (ssize_t i = 0; i < n; i++, sum++)
            if (buf[i] != chunk[(at + sum) % CHUNK])
                fail_msg("byte %zu differs", at + sum);
    }
}

static void open_small_pipe(int p[2])
{
    assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    assert_true(fcntl(p[0], F_SETPIPE_SZ, SMALL_PIPE) > 0);
}

static void send_chunks(int n)
{
    while (n-- > 0) {
        fake_output(&peer, execution.request.id, STREAM_STDOUT, chunk, CHUNK);
        settle();
    }
}

static void credit_comes_back_as_the_pipe_takes_bytes(void **state)
{
    int out[2];
    size_t got = 0, sent = 8 * (size_t)CHUNK, back;

    (void)state;
    open_small_pipe(out);
    begin(-1, out[1]);
    (void)close(out[1]);
    send_chunks(8);
    assert_int_equal(session.state, SESSION_OPEN);
    assert_int_equal(credit_back(), 0); /* nobody reads: the pipe holds one page of it */
    while (got < sent) {
        got += read_all(out[0], got);
        settle();
    }
    back = credit_back();
    assert_true(back > sent - STREAM_WINDOW_BYTES / 4 && back <= sent);
    fake_output(&peer, execution.request.id, STREAM_STDOUT, "", 0);
    settle();
    assert_int_equal(read(out[0], chunk, 1), 0); /* the end of the stream, not of the command */
    assert_false(exited);
    (void)close(out[0]);
}

static void bytes_beyond_the_credit_end_the_session(void **state)
{
    int out[2];

    (void)state;
    open_small_pipe(out);
    begin(-1, out[1]);
    send_chunks(STREAM_WINDOW_BYTES / CHUNK);
    assert_int_equal(session.state, SESSION_OPEN);
    send_chunks(1);
    assert_int_equal(session.state, SESSION_OVER);
    assert_true(failed);
    (void)close(out[0]);
    (void)close(out[1]);
}

static void what_came_before_the_exit_is_still_delivered(void **state)
{
    const struct exit_report report = {.exit_code = 5};
    int out[2];
    size_t got;

    (void)state;
    open_small_pipe(out);
    begin(-1, out[1]);
    (void)close(out[1]);
    send_chunks(2);
    fake_exited(&peer, execution.request.id, &report);
    settle();
    assert_true(exited);
    assert_int_equal(execution.exit.exit_code, 5);
    assert_true(execution_delivers(&execution));
    for (got = 0; execution_delivers(&execution) || got == 0;) {
        got += read_all(out[0], got);
        settle();
    }
    got += read_all(out[0], got);
    assert_int_equal(got, 2 * CHUNK);
    assert_int_equal(read(out[0], chunk, 1), 0);
    (void)close(out[0]);
}

static void a_reader_that_is_gone_costs_nothing_but_its_bytes(void **state)
{
    int out[2];

    (void)state;
    open_small_pipe(out);
    begin(-1, out[1]);
    (void)close(out[1]);
    (void)close(out[0]);
    send_chunks(3 * STREAM_WINDOW_BYTES / CHUNK / 4);
    assert_int_equal(session.state, SESSION_OPEN);
    assert_true(credit_back() > 0);
}

static void input_goes_under_credit_and_ends(void **state)
{
    int in[2], out[2];
    struct stream_data x;
    struct message m;
    size_t got = 0, want = STREAM_WINDOW_BYTES;

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
    open_small_pipe(out);
    begin(in[0], out[1]);
    (void)close(in[0]);
    for (int idle = 0; got < want && idle < 1000; idle++) {
        while (write(in[1], chunk, 4096) > 0)
            ;
        settle();
        while (channel_receive(&peer, &m) > 0) {
            assert_int_equal(m.type, MSG_INPUT);
            assert_int_equal(stream_data_decode(m.payload, &x), 0);
            got += x.len;
        }
    }
    assert_int_equal(got, want); /* the window is used up, though more waits */
    (void)close(in[1]);
    settle();
    assert_int_equal(channel_receive(&peer, &m), 0);
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);
    stream_credit_encode(&w, STREAM_STDIN, STREAM_WINDOW_BYTES);
    fake_send(&peer, MSG_CREDIT, execution.request.id, &w);
    for (x.len = 1; x.len > 0;) {
        settle();
        assert_true(fake_receive(&peer, &m));
        assert_int_equal(stream_data_decode(m.payload, &x), 0);
    }
    assert_int_equal(m.type, MSG_INPUT);
    (void)close(out[0]);
    (void)close(out[1]);
}

static void too_much_credit_ends_the_session(void **state)
{
    int in[2], out[2];
    uint8_t buf[64];
    struct writer w = writer_over(buf, sizeof buf);

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    open_small_pipe(out);
    begin(in[0], out[1]);
    stream_credit_encode(&w, STREAM_STDIN, 1);
    fake_send(&peer, MSG_CREDIT, execution.request.id, &w);
    settle();
    assert_int_equal(session.state, SESSION_OVER);
    for (int i = 0; i < 2; i++) {
        (void)close(in[i]);
        (void)close(out[i]);
    }
}

static void input_after_the_exit_is_no_fault(void **state)
{
    int in[2], out[2];

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    open_small_pipe(out);
    begin(in[0], out[1]);
    fake_error(&peer, execution.request.id, EPIPE, "the command has exited");
    settle();
    assert_false(failed);
    fake_exited(&peer, execution.request.id, &(struct exit_report){0});
    settle();
    assert_true(exited);
    for (int i = 0; i < 2; i++) {
        (void)close(in[i]);
        (void)close(out[i]);
    }
}

static void one_that_cannot_be_cancelled_is_sent_a_signal(void **state)
{
    int out[2];
    struct message m;
    uint32_t signal;

    (void)state;
    open_small_pipe(out);
    begin(-1, out[1]);
    assert_int_equal(execution_kill(&execution), 0);
    assert_true(fake_receive(&peer, &m));
    assert_int_equal(m.type, MSG_CANCEL);
    fake_error(&peer, m.id, ENOSYS, "there is no operation 23");
    settle();
    assert_false(failed);
    assert_true(fake_receive(&peer, &m));
    assert_int_equal(m.type, MSG_SIGNAL);
    assert_int_equal(number_decode(m.payload, TAG_SIGNAL, &signal), 0);
    assert_int_equal(signal, SIGKILL);
    (void)close(out[0]);
    (void)close(out[1]);
}

static int prepare(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = (uint8_t)(i * 7 + i / 1000);
    return signal(SIGPIPE, SIG_IGN) == SIG_ERR;
}

int main(void)
{
#define BRIDGE_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        BRIDGE_TEST(credit_comes_back_as_the_pipe_takes_bytes),
        BRIDGE_TEST(bytes_beyond_the_credit_end_the_session),
        BRIDGE_TEST(what_came_before_the_exit_is_still_delivered),
        BRIDGE_TEST(a_reader_that_is_gone_costs_nothing_but_its_bytes),
        BRIDGE_TEST(input_goes_under_credit_and_ends),
        BRIDGE_TEST(too_much_credit_ends_the_session),
        BRIDGE_TEST(input_after_the_exit_is_no_fault),
        BRIDGE_TEST(one_that_cannot_be_cancelled_is_sent_a_signal),
    };

    return cmocka_run_group_tests(tests, prepare, NULL);
}
