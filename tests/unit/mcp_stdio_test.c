/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in and out over pipes, files and sockets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "mcp/stdio.h"
#include "base/guards.h"

#define LIMIT_US UINT64_C(20000000)

static struct loop loop;
static struct stdio transport;

/* What the events told. */
static char lines[4096]; /* each behind a '|' */
static unsigned n_lines, n_overlong, n_ended, n_broken;
static size_t longest;
static bool answer; /* each line is sent back */

static void on_line(void *owner, const char *text, size_t len)
{
    size_t at = strlen(lines);

    (void)owner;
    n_lines++;
    longest = len > longest ? len : longest;
    if (at + len + 2 < sizeof lines)
        (void)snprintf(lines + at, sizeof lines - at, "|%.*s", (int)len, text);
    if (answer) {
        char *copy = malloc(len + 1);

        assert_non_null(copy);
        memcpy(copy, text, len);
        stdio_send(&transport, copy, len);
    }
}

static void on_overlong(void *owner)
{
    (void)owner;
    n_overlong++;
}

static void on_ended(void *owner)
{
    (void)owner;
    n_ended++;
}

static void on_written(void *owner)
{
    (void)owner;
}

static void on_broken(void *owner)
{
    (void)owner;
    n_broken++;
}

static const struct stdio_events events = {.line = on_line,
                                           .overlong = on_overlong,
                                           .ended = on_ended,
                                           .written = on_written,
                                           .broken = on_broken};

static int start(void **state)
{
    (void)state;
    lines[0] = '\0';
    n_lines = n_overlong = n_ended = n_broken = 0;
    longest = 0;
    answer = false;
    transport = (struct stdio){0};
    return loop_init(&loop);
}

static int stop(void **state)
{
    (void)state;
    stdio_stop(&transport);
    loop_done(&loop);
    return 0;
}

static void turn(void)
{
    assert_int_equal(loop_turn(&loop, clock_after_us(50000)), 0);
}

static void turn_until(const unsigned *count)
{
    uint64_t until = clock_after_us(LIMIT_US);

    while (*count == 0) {
        assert_true(clock_now_us() < until);
        turn();
    }
}

static void make_pipe(int ends[2])
{
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
}

static void put(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void begin(int in, int out)
{
    assert_int_equal(stdio_start(&transport, &loop, in, out, &events, NULL), 0);
}

static void lines_come_whole_however_they_are_cut(void **state)
{
    int in[2], out[2];

    (void)state;
    make_pipe(in);
    make_pipe(out);
    begin(in[0], out[1]);
    put(in[1], "one\ntw");
    turn_until(&n_lines);
    assert_string_equal(lines, "|one");
    put(in[1], "o\n\n \r\nthree\nlast");
    turn();
    assert_string_equal(lines, "|one|two|three");
    close(in[1]);
    turn_until(&n_ended);
    assert_string_equal(lines, "|one|two|three|last");
    assert_int_equal(n_ended, 1);
    close(in[0]);
    close(out[0]);
    close(out[1]);
}

static void a_line_that_is_too_long_is_dropped_alone(void **state)
{
    _cleanup_free_ char *block = malloc(1 << 20);
    int in[2], out[2];
    pid_t child;

    (void)state;
    assert_non_null(block);
    memset(block, 'x', 1 << 20);
    make_pipe(in);
    make_pipe(out);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 70; i++)
            if (write(in[1], block, 1 << 20) != 1 << 20)
                _exit(1);
        _exit(write(in[1], "\nnext\n", 6) == 6 ? 0 : 2);
    }
    close(in[1]);
    begin(in[0], out[1]);
    turn_until(&n_ended);
    assert_int_equal(n_overlong, 1);
    assert_string_equal(lines, "|next");
    close(in[0]);
    close(out[0]);
    close(out[1]);
}

static void files_are_read_and_written_too(void **state)
{
    int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC);
    char text[64] = "";

    (void)state;
    answer = true;
    put(in, "one\ntwo\n");
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    begin(in, out);
    turn_until(&n_ended);
    assert_int_equal(pread(out, text, sizeof text - 1, 0), 8);
    assert_string_equal(text, "one\ntwo\n");
    assert_int_equal(stdio_pending(&transport), 0);
    close(in);
    close(out);
}

static void a_reader_that_is_slow_stops_the_reading(void **state)
{
    enum { LINE = 100000, LINES = 200 };
    _cleanup_free_ char *line = malloc(LINE), *back = malloc(LINE);
    uint64_t got = 0, until = clock_after_us(LIMIT_US);
    int in[2], out[2];

    (void)state;
    answer = true;
    assert_true(line && back);
    memset(line, 'y', LINE);
    line[LINE - 1] = '\n';
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, in), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, out), 0);
    begin(in[0], out[1]);
    /* Nobody reads: sooner or later what is written is not taken any more. */
    size_t sent = 0;
    for (int quiet = 0; quiet < 20;) {
        ssize_t n = write(in[1], line + sent % LINE, LINE - sent % LINE);

        quiet = n > 0 ? 0 : quiet + 1;
        sent += n > 0 ? (size_t)n : 0;
        assert_true(sent < 4 * STDIO_QUEUE_BYTES_MAX);
        assert_int_equal(loop_turn(&loop, clock_after_us(1000)), 0);
    }
    assert_true(stdio_pending(&transport) > STDIO_QUEUE_BYTES_MAX);
    assert_true(stdio_pending(&transport) < STDIO_QUEUE_BYTES_MAX + 20 * LINE);
    /* Once it is read all of it comes. */
    while (got < sent / LINE * LINE) {
        ssize_t n = read(out[0], back, LINE);

        got += n > 0 ? (uint64_t)n : 0;
        assert_int_equal(loop_turn(&loop, clock_after_us(1000)), 0);
        assert_true(clock_now_us() < until);
    }
    assert_int_equal(got, sent / LINE * LINE);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
}

static void a_reader_that_goes_is_told_of(void **state)
{
    int in[2], out[2];

    (void)state;
    make_pipe(in);
    make_pipe(out);
    begin(in[0], out[1]);
    close(out[1]);
    close(out[0]);
    turn_until(&n_broken);
    assert_false(stdio_failed(&transport)); /* nothing was to be written */
    stdio_send(&transport, strdup("late"), 4);
    assert_int_equal(stdio_pending(&transport), 0);
    close(in[0]);
    close(in[1]);
}

static void what_is_lost_with_the_reader_is_remembered(void **state)
{
    int in[2], out[2];

    (void)state;
    make_pipe(in);
    make_pipe(out);
    begin(in[0], out[1]);
    close(out[1]);
    stdio_send(&transport, strdup("lost"), 4);
    close(out[0]);
    turn_until(&n_broken);
    assert_true(stdio_failed(&transport));
    close(in[0]);
    close(in[1]);
}

static void flags_of_the_descriptors_stay(void **state)
{
    int in[2], out[2];

    (void)state;
    make_pipe(in);
    make_pipe(out);
    begin(in[0], out[1]);
    stdio_send(&transport, strdup("x"), 1);
    turn();
    assert_int_equal(fcntl(in[0], F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
}

int main(void)
{
#define STDIO_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        STDIO_TEST(lines_come_whole_however_they_are_cut),
        STDIO_TEST(a_line_that_is_too_long_is_dropped_alone),
        STDIO_TEST(files_are_read_and_written_too),
        STDIO_TEST(a_reader_that_is_slow_stops_the_reading),
        STDIO_TEST(a_reader_that_goes_is_told_of),
        STDIO_TEST(what_is_lost_with_the_reader_is_remembered),
        STDIO_TEST(flags_of_the_descriptors_stay),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
