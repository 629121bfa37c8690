/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: timers, sources that come and go within a batch, silence, signals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/guards.h"

enum { SOON_US = 2000, LATER_US = 30000 };

struct trace {
    char names[16];
    size_t n;
    struct loop_source *pair[2];
    struct loop_timer *victim_timer;
    unsigned wakes;
};

static void note(struct trace *t, char c)
{
    assert_true(t->n + 1 < sizeof t->names);
    t->names[t->n++] = c;
}

static int timer_notes(struct loop *l, struct loop_timer *t)
{
    (void)l;
    note(t->owner, t->name[0]);
    return 0;
}

static int timer_stops(struct loop *l, struct loop_timer *t)
{
    (void)t;
    l->stop = true;
    return 0;
}

static struct loop_timer noting(const char *name, struct trace *trace)
{
    return (struct loop_timer){.name = name, .owner = trace, .due = timer_notes};
}

/* Runs the loop until @us from now. */
static int run_for(struct loop *l, uint64_t us)
{
    struct loop_timer end = {.name = "end", .due = timer_stops};
    int r;

    l->stop = false;
    loop_at(l, &end, clock_after_us(us));
    r = loop_run(l);
    loop_at(l, &end, CLOCK_NEVER);
    return r;
}

static int start(void **state)
{
    static struct loop l;

    *state = &l;
    return loop_init(&l);
}

static int end(void **state)
{
    loop_done(*state);
    return 0;
}

static void timers_come_in_order_and_equal_ones_as_they_were_set(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_timer a = noting("a", &trace), b = noting("b", &trace), c = noting("c", &trace),
                      d = noting("d", &trace);
    uint64_t now = clock_now_us();

    loop_at(l, &c, now + 3 * SOON_US);
    loop_at(l, &a, now + SOON_US);
    loop_at(l, &b, now + 2 * SOON_US);
    loop_at(l, &d, now + 3 * SOON_US);
    assert_int_equal(run_for(l, LATER_US), 0);
    assert_string_equal(trace.names, "abcd");
    assert_null(l->timers);
}

static void a_timer_can_be_moved_and_cleared(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_timer a = noting("a", &trace), b = noting("b", &trace), c = noting("c", &trace);
    uint64_t now = clock_now_us();

    loop_at(l, &a, now + SOON_US);
    loop_at(l, &b, now + 2 * SOON_US);
    loop_at(l, &c, now + 3 * SOON_US);
    loop_at(l, &a, now + 4 * SOON_US);
    loop_at(l, &b, CLOCK_NEVER);
    loop_at(l, &b, CLOCK_NEVER);
    assert_false(b.set);
    assert_int_equal(run_for(l, LATER_US), 0);
    assert_string_equal(trace.names, "ca");
}

static int timer_clears_another(struct loop *l, struct loop_timer *t)
{
    struct trace *trace = t->owner;

    note(trace, t->name[0]);
    loop_at(l, trace->victim_timer, CLOCK_NEVER);
    return 0;
}

static void a_timer_may_clear_another_that_is_due_too(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_timer b = noting("b", &trace);
    struct loop_timer a = {.name = "a", .owner = &trace, .due = timer_clears_another};

    trace.victim_timer = &b;
    loop_at(l, &a, 1);
    loop_at(l, &b, 2);
    assert_int_equal(run_for(l, SOON_US), 0);
    assert_string_equal(trace.names, "a");
}

static int fails(struct loop *l, struct loop_timer *t)
{
    (void)l;
    (void)t;
    return -EIO;
}

static void a_failing_callback_ends_the_loop_with_its_error(void **state)
{
    struct loop *l = *state;
    struct loop_timer a = {.name = "a", .due = fails};

    loop_at(l, &a, 1);
    assert_int_equal(run_for(l, LATER_US), -EIO);
}

/* Forgets and frees both sources, itself and the other. */
static int forgets_both(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct trace *trace = s->owner;

    (void)events;
    note(trace, 'x');
    for (size_t i = 0; i < ARRAY_SIZE(trace->pair); i++) {
        loop_forget(l, trace->pair[i]);
        loop_free_later(l, trace->pair[i]);
    }
    return 0;
}

static void a_source_forgotten_within_a_batch_is_not_called(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    int fds[2];

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        struct loop_source *s = calloc(1, sizeof *s);

        assert_non_null(s);
        *s = (struct loop_source){.fd = -EBADF, .owner = &trace, .ready = forgets_both};
        trace.pair[i] = s;
        fds[i] = eventfd(1, EFD_CLOEXEC);
        assert_int_equal(loop_watch(l, s, fds[i], EPOLLIN), 0);
    }
    assert_int_equal(run_for(l, SOON_US), 0); /* both are ready at once */
    assert_int_equal(trace.n, 1);
    assert_int_equal(l->n_garbage, 0);
    fd_closep(&fds[0]);
    fd_closep(&fds[1]);
}

static int counts(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct trace *trace = s->owner;

    (void)l;
    (void)events;
    trace->wakes++;
    return 0;
}

static void a_silent_source_does_not_spin_on_a_hang_up(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_source s = {.name = "s", .fd = -EBADF, .owner = &trace, .ready = counts};
    int p[2];

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(loop_watch(l, &s, p[0], EPOLLIN), 0);
    assert_int_equal(loop_change(l, &s, 0), 0);
    fd_closep(&p[1]);
    assert_int_equal(run_for(l, LATER_US), 0);
    assert_int_equal(trace.wakes, 0);
    assert_int_equal(loop_change(l, &s, EPOLLIN), 0);
    assert_int_equal(run_for(l, SOON_US), 0);
    assert_true(trace.wakes > 0);
    loop_forget(l, &s);
    loop_forget(l, &s);
    fd_closep(&p[0]);
}

static void a_source_watched_for_nothing_is_silent_from_the_start(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_source s = {.name = "s", .fd = -EBADF, .owner = &trace, .ready = counts};
    int p[2];

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    fd_closep(&p[1]);
    assert_int_equal(loop_watch(l, &s, p[0], 0), 0);
    assert_int_equal(run_for(l, SOON_US), 0);
    assert_int_equal(trace.wakes, 0);
    loop_forget(l, &s);
    fd_closep(&p[0]);
}

static void a_regular_file_is_no_source(void **state)
{
    struct loop *l = *state;
    struct loop_source s = {.name = "s", .fd = -EBADF, .ready = counts};
    _cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_int_equal(loop_watch(l, &s, fd, EPOLLIN), -EPERM);
    assert_int_equal(loop_watch(l, &s, -1, EPOLLIN), -EBADF);
    assert_true(s.fd < 0);
    loop_forget(l, &s);
    assert_int_equal(loop_change(l, &s, EPOLLIN), 0);
}

static int reads_signal(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct trace *trace = s->owner;
    struct signalfd_siginfo info;

    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info)
        note(trace, info.ssi_signo == SIGUSR1 ? '1' : '2');
    l->stop = trace->n == 2;
    return 0;
}

static void signals_come_as_events(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_source s = {
        .name = "signals", .fd = -EBADF, .owner = &trace, .ready = reads_signal};
    sigset_t set, old;

    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &old), 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    _cleanup_fd_ int fd = loop_open_signals(&set);
    assert_true(fd >= 0);
    assert_int_equal(loop_watch(l, &s, fd, EPOLLIN), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(raise(SIGUSR2), 0);
    l->stop = false;
    assert_int_equal(loop_run(l), 0);
    assert_string_equal(trace.names, "12");
    loop_forget(l, &s);
    assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

static void deadlines_saturate_and_round_up(void **state)
{
    (void)state;
    assert_int_equal(clock_after_us(CLOCK_NEVER), CLOCK_NEVER);
    assert_int_equal(clock_after_us(CLOCK_NEVER - 1), CLOCK_NEVER);
    assert_int_equal(clock_poll_ms(CLOCK_NEVER), -1);
    assert_int_equal(clock_poll_ms(0), 0);
    assert_true(clock_poll_ms(clock_now_us() + 1) <= 1);
    assert_int_equal(clock_poll_ms(CLOCK_NEVER - 1), 3600000);
}

static void one_turn_never_waits_longer_than_it_may(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_timer soon = noting("1", &trace), late = noting("2", &trace);

    loop_at(l, &soon, clock_now_us());
    loop_at(l, &late, CLOCK_NEVER - 1);
    assert_int_equal(loop_turn(l, 0), 0); /* what is due runs, and nothing is waited for */
    assert_string_equal(trace.names, "1");
    assert_int_equal(loop_turn(l, clock_after_us(SOON_US)), 0);
    assert_string_equal(trace.names, "1");
    loop_at(l, &late, CLOCK_NEVER);
}

/* Waits as an outer loop would. */
static bool is_readable(const struct loop *l, int timeout_ms)
{
    struct pollfd p = {.fd = l->epoll_fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) == 1;
}

static void a_pollable_loop_is_readable_when_a_timer_is_due(void **state)
{
    struct loop *l = *state;
    struct trace trace = {0};
    struct loop_timer first = noting("1", &trace), second = noting("2", &trace);

    loop_at(l, &second, clock_after_us(LATER_US)); /* before it is pollable */
    assert_int_equal(loop_make_pollable(l), 0);
    assert_int_equal(loop_make_pollable(l), 0);
    loop_at(l, &first, clock_after_us(SOON_US));
    while (trace.n < 2) {
        assert_true(is_readable(l, 10000));
        assert_int_equal(loop_turn(l, 0), 0);
    }
    assert_string_equal(trace.names, "12");
    assert_false(is_readable(l, 0)); /* nothing is left to be done */
    loop_at(l, &first, 0);
    assert_true(is_readable(l, 10000));
    loop_at(l, &first, CLOCK_NEVER); /* an alarm for nothing does no harm */
    assert_int_equal(loop_turn(l, 0), 0);
    assert_false(is_readable(l, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_come_in_order_and_equal_ones_as_they_were_set, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_timer_can_be_moved_and_cleared, start, end),
        cmocka_unit_test_setup_teardown(a_timer_may_clear_another_that_is_due_too, start, end),
        cmocka_unit_test_setup_teardown(a_failing_callback_ends_the_loop_with_its_error, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_source_forgotten_within_a_batch_is_not_called, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_silent_source_does_not_spin_on_a_hang_up, start, end),
        cmocka_unit_test_setup_teardown(a_source_watched_for_nothing_is_silent_from_the_start,
                                        start, end),
        cmocka_unit_test_setup_teardown(a_regular_file_is_no_source, start, end),
        cmocka_unit_test_setup_teardown(signals_come_as_events, start, end),
        cmocka_unit_test_setup_teardown(one_turn_never_waits_longer_than_it_may, start, end),
        cmocka_unit_test_setup_teardown(a_pollable_loop_is_readable_when_a_timer_is_due, start,
                                        end),
        cmocka_unit_test(deadlines_saturate_and_round_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
