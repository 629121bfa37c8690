/* SPDX-License-Identifier: Apache-2.0 */
/* Pumps: every pair of ends, a slow reader, ends that go away, and silence. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/pump.h"
#include "base/guards.h"

enum { BIG = 1 << 20, STEP_US = 20000, LIMIT_US = 20000000 };

static struct loop loop;
static struct loop_timer limit;
static unsigned ended;

static int out_of_time(struct loop *l, struct loop_timer *t)
{
    (void)l;
    (void)t;
    return -ETIMEDOUT;
}

static void count_end(struct pump *p)
{
    assert_false(pump_running(p));
    ended++;
    loop.stop = true;
}

static int start(void **state)
{
    (void)state;
    ended = 0;
    limit = (struct loop_timer){.name = "limit", .due = out_of_time};
    return loop_init(&loop);
}

static int end(void **state)
{
    (void)state;
    loop_done(&loop);
    return 0;
}

/* Runs until a pump has ended, or for @us; fails when that takes far too long. */
static int stop_loop(struct loop *l, struct loop_timer *t)
{
    (void)t;
    l->stop = true;
    return 0;
}

static void run_until_ended(void)
{
    loop.stop = false;
    loop_at(&loop, &limit, clock_after_us(LIMIT_US));
    assert_int_equal(loop_run(&loop), 0);
    loop_at(&loop, &limit, CLOCK_NEVER);
}

static void run_for(uint64_t us)
{
    struct loop_timer t = {.name = "moment", .due = stop_loop};

    loop_at(&loop, &t, clock_after_us(us));
    run_until_ended();
    loop_at(&loop, &t, CLOCK_NEVER);
}

static void open_pipe(int p[2])
{
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
}

/* An unnamed file. */
static int open_file(int flags)
{
    char path[] = "/tmp/pump-test-XXXXXX";
    int made = mkostemp(path, O_CLOEXEC);
    int fd = open(path, O_RDWR | O_CLOEXEC | flags);

    assert_true(made >= 0 && fd >= 0);
    (void)unlink(path);
    (void)close(made);
    return fd;
}

static char pattern(size_t i)
{
    return (char)('a' + (i * 7 + i / 1000) % 26);
}

static void assert_file_holds(int fd, size_t offset, size_t n)
{
    char *text = malloc(n + 1);

    assert_non_null(text);
    assert_int_equal(pread(fd, text, n + 1, (off_t)offset), (ssize_t)n);
    for (size_t i = 0; i < n; i++)
        if (text[i] != pattern(i))
            fail_msg("byte %zu differs", i);
    free(text);
}

static void fill_file(int fd, size_t n)
{
    char *text = malloc(n);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        text[i] = pattern(i);
    assert_int_equal(write(fd, text, n), (ssize_t)n);
    free(text);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

/* A child that writes or reads in its own time, since pipes hold less than the tests move. */
static pid_t child_writes(int fd, size_t n)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < n; i++) {
            static char buf[4096];

            buf[i % sizeof buf] = pattern(i);
            if ((i + 1) % sizeof buf == 0 && write(fd, buf, sizeof buf) != sizeof buf)
                _exit(1);
        }
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

static void end_child(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void bytes_go_from_pipe_to_pipe(void **state)
{
    struct pump p;
    int in[2], out[2];
    char buf[16];

    (void)state;
    open_pipe(in);
    open_pipe(out);
    assert_int_equal(pump_start(&p, &loop, in[0], out[1], false, count_end, NULL), 0);
    assert_true(pump_running(&p));
    assert_int_equal(write(in[1], "hello", 5), 5);
    run_for(STEP_US);
    assert_int_equal(read(out[0], buf, sizeof buf), 5);
    assert_memory_equal(buf, "hello", 5);
    assert_int_equal(ended, 0);
    fd_closep(&in[1]);
    run_until_ended();
    assert_int_equal(ended, 1);
    assert_int_equal(p.error, 0);
    fd_closep(&out[1]); /* was ours, and only borrowed */
    assert_int_equal(read(out[0], buf, sizeof buf), 0);
    fd_closep(&out[0]);
}

static void flags_of_the_ends_stay_as_they_are(void **state)
{
    struct pump p;
    int in[2], out[2];

    (void)state;
    open_pipe(in);
    open_pipe(out);
    assert_int_equal(pump_start(&p, &loop, in[0], out[1], false, NULL, NULL), 0);
    assert_int_equal(write(in[1], "x", 1), 1);
    run_for(STEP_US);
    assert_int_equal(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(in[0], F_GETFL) & O_NONBLOCK, 0);
    pump_stop(&p);
    pump_stop(&p);
    assert_int_equal(fcntl(in[0], F_GETFD), -1); /* was taken */
    fd_closep(&in[1]);
    fd_closep(&out[0]);
    fd_closep(&out[1]);
}

static void check_pipe_to_file(int file, size_t offset)
{
    struct pump p;
    int in[2];
    pid_t pid;

    open_pipe(in);
    pid = child_writes(in[1], BIG);
    fd_closep(&in[1]);
    assert_int_equal(pump_start(&p, &loop, in[0], file, false, count_end, NULL), 0);
    run_until_ended();
    assert_int_equal(ended, 1);
    assert_int_equal(p.error, 0);
    assert_file_holds(file, offset, BIG);
    end_child(pid);
    fd_closep(&file);
}

static void bytes_go_from_pipe_to_file(void **state)
{
    (void)state;
    check_pipe_to_file(open_file(0), 0);
}

static void bytes_are_appended_to_a_file_that_is_open_for_it(void **state)
{
    int file = open_file(O_APPEND);

    (void)state;
    assert_int_equal(write(file, "before ", 7), 7);
    check_pipe_to_file(file, 7);
}

static void bytes_go_from_file_to_pipe_as_fast_as_it_takes_them(void **state)
{
    struct pump p, q;
    int file = open_file(0), copy = open_file(0), between[2];

    (void)state;
    fill_file(file, BIG);
    open_pipe(between);
    assert_int_equal(pump_start(&p, &loop, file, between[1], true, NULL, NULL), 0);
    assert_int_equal(pump_start(&q, &loop, between[0], copy, false, count_end, NULL), 0);
    run_until_ended();
    assert_file_holds(copy, 0, BIG);
    assert_false(pump_running(&p));
    fd_closep(&copy);
}

static void two_files_are_refused(void **state)
{
    struct pump p;
    int from = open_file(0), to = open_file(0);

    (void)state;
    assert_int_equal(pump_start(&p, &loop, from, to, false, count_end, NULL), -EPERM);
    assert_int_equal(fcntl(from, F_GETFD), -1); /* taken, also on failure */
    assert_false(pump_running(&p));
    assert_int_equal(ended, 0);
    fd_closep(&to);
}

static void open_terminal(int *master, int *slave)
{
    struct termios raw;

    assert_int_equal(openpty(master, slave, NULL, NULL, NULL), 0);
    assert_int_equal(tcgetattr(*slave, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(*slave, TCSANOW, &raw), 0);
}

/* A child that reads a terminal's other end. Exit status 0: all was right. */
static pid_t child_checks(int master, size_t n)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t got = 0; got < n;) {
            char buf[4096];
            ssize_t more = read(master, buf, sizeof buf);

            for (ssize_t i = 0; i < more; i++, got++)
                if (buf[i] != pattern(got))
                    _exit(1);
            if (more <= 0)
                _exit(2);
        }
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

static void bytes_go_from_pipe_to_terminal(void **state)
{
    struct pump p;
    int in[2], master, slave, status;
    pid_t writer, reader;

    (void)state;
    open_pipe(in);
    open_terminal(&master, &slave);
    reader = child_checks(master, BIG / 4);
    writer = child_writes(in[1], BIG / 4);
    fd_closep(&in[1]);
    assert_int_equal(pump_start(&p, &loop, in[0], slave, false, count_end, NULL), 0);
    run_until_ended();
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(p.error, 0);
    fd_closep(&master);
    fd_closep(&slave);
}

static uint64_t cpu_us(void)
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static volatile sig_atomic_t stuck;

static void note_stuck(int signal)
{
    (void)signal;
    stuck = 1;
}

/* Interrupts a call that blocks, again and again, until the loop is reached. */
static void watch_for_blocking(bool on)
{
    const struct sigaction act = {.sa_handler = note_stuck};
    const struct itimerval times = {.it_value.tv_sec = on ? 3 : 0, .it_interval.tv_usec = 5000};

    stuck = 0;
    assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &times, NULL), 0);
}

/* Pumps an endless stream into @to, which nobody reads, and measures what that costs. */
static void check_slow_reader(int to)
{
    struct pump p;
    int in[2];
    pid_t pid;
    uint64_t before;

    open_pipe(in);
    pid = child_writes(in[1], (size_t)BIG * 64);
    fd_closep(&in[1]);
    assert_int_equal(pump_start(&p, &loop, in[0], to, false, count_end, NULL), 0);
    watch_for_blocking(true);
    run_for(10 * STEP_US); /* until it is full */
    before = cpu_us();
    run_for(20 * STEP_US);
    bool blocked = stuck;
    watch_for_blocking(false);
    assert_false(blocked); /* other sources of the loop had to wait for this reader */
    assert_true(pump_running(&p));
    assert_true(cpu_us() - before < 5 * STEP_US); /* a spin would take all of it */
    assert_false(pump_is_drained(&p, 0, false));  /* bytes still wait to go out */
    pump_stop(&p);
    end_child(pid);
}

static void a_slow_pipe_costs_nothing(void **state)
{
    int out[2];

    (void)state;
    open_pipe(out);
    check_slow_reader(out[1]);
    fd_closep(&out[0]);
    fd_closep(&out[1]);
}

static void a_slow_terminal_costs_nothing_and_stops_nobody(void **state)
{
    int master, slave;

    (void)state;
    open_terminal(&master, &slave);
    check_slow_reader(slave);
    fd_closep(&slave);
    fd_closep(&master);
}

static void a_reader_that_is_gone_ends_the_pump(void **state)
{
    struct pump p;
    int in[2], out[2];

    (void)state;
    open_pipe(in);
    open_pipe(out);
    assert_int_equal(pump_start(&p, &loop, in[0], out[1], true, count_end, NULL), 0);
    fd_closep(&out[0]);
    assert_int_equal(write(in[1], "x", 1), 1);
    run_until_ended();
    assert_int_equal(ended, 1);
    assert_int_equal(p.error, 0);               /* EPIPE is an end, not a failure */
    assert_int_equal(write(in[1], "x", 1), -1); /* and the writer hears of it */
    fd_closep(&in[1]);
}

static void a_full_disk_is_kept_as_the_error(void **state)
{
    struct pump p;
    int in[2], full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(full >= 0);
    open_pipe(in);
    assert_int_equal(write(in[1], "x", 1), 1);
    assert_int_equal(pump_start(&p, &loop, in[0], full, true, count_end, NULL), 0);
    run_until_ended();
    assert_int_equal(ended, 1);
    assert_int_equal(p.error, ENOSPC);
    fd_closep(&in[1]);
}

static void a_pump_is_drained_after_silence_only(void **state)
{
    struct pump p;
    int in[2], out[2];

    (void)state;
    open_pipe(in);
    open_pipe(out);
    assert_int_equal(pump_start(&p, &loop, in[0], out[1], false, count_end, NULL), 0);
    assert_false(pump_is_drained(&p, LIMIT_US, false));
    run_for(STEP_US);
    assert_true(pump_is_drained(&p, STEP_US, false));
    assert_int_equal(write(in[1], "x", 1), 1);
    assert_false(pump_is_drained(&p, 0, false)); /* it waits in the pipe */
    run_for(STEP_US / 10);
    assert_false(pump_is_drained(&p, LIMIT_US, false)); /* it has just gone out */
    run_for(STEP_US);
    assert_true(pump_is_drained(&p, STEP_US / 2, false));
    pump_stop(&p);
    assert_true(pump_is_drained(&p, LIMIT_US, false));
    fd_closep(&in[1]);
    fd_closep(&out[0]);
    fd_closep(&out[1]);
}

static void stopping_one_that_never_began_is_harmless(void **state)
{
    struct pump p = {0};

    (void)state;
    pump_stop(&p);
    assert_false(pump_running(&p));
}

static int ignore_sigpipe(void **state)
{
    (void)state;
    return signal(SIGPIPE, SIG_IGN) == SIG_ERR;
}

int main(void)
{
#define PUMP_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        PUMP_TEST(bytes_go_from_pipe_to_pipe),
        PUMP_TEST(flags_of_the_ends_stay_as_they_are),
        PUMP_TEST(bytes_go_from_pipe_to_file),
        PUMP_TEST(bytes_are_appended_to_a_file_that_is_open_for_it),
        PUMP_TEST(bytes_go_from_file_to_pipe_as_fast_as_it_takes_them),
        PUMP_TEST(two_files_are_refused),
        PUMP_TEST(bytes_go_from_pipe_to_terminal),
        PUMP_TEST(a_slow_pipe_costs_nothing),
        PUMP_TEST(a_slow_terminal_costs_nothing_and_stops_nobody),
        PUMP_TEST(a_reader_that_is_gone_ends_the_pump),
        PUMP_TEST(a_full_disk_is_kept_as_the_error),
        PUMP_TEST(a_pump_is_drained_after_silence_only),
        PUMP_TEST(stopping_one_that_never_began_is_harmless),
    };

    return cmocka_run_group_tests(tests, ignore_sigpipe, NULL);
}
