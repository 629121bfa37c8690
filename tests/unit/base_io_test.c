/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded reads and writes, and packets with descriptors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/guards.h"

enum { MOMENT_US = 20000 };

static int open_pipe(int p[2], int flags)
{
    return pipe2(p, flags | O_CLOEXEC);
}

static void close_both(int p[2])
{
    fd_closep(&p[0]);
    fd_closep(&p[1]);
}

/* How many descriptors this process has. */
static size_t count_fds(void)
{
    _cleanup_(dir_closep) DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    return n;
}

static void waiting_ends_at_the_deadline_or_with_the_event(void **state)
{
    int p[2];

    (void)state;
    assert_int_equal(open_pipe(p, 0), 0);
    assert_int_equal(io_wait(p[0], POLLIN, 0), -ETIMEDOUT);
    assert_int_equal(io_wait(p[0], POLLIN, clock_after_us(MOMENT_US)), -ETIMEDOUT);
    assert_int_equal(io_wait(p[1], POLLOUT, CLOCK_NEVER), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    assert_int_equal(io_wait(p[0], POLLIN, CLOCK_NEVER), 0);
    close_both(p);
}

static void reading_gathers_parts_and_tells_an_early_end(void **state)
{
    char buf[8];
    int p[2];

    (void)state;
    assert_int_equal(open_pipe(p, O_NONBLOCK), 0);
    assert_int_equal(write(p[1], "abc", 3), 3);
    assert_int_equal(io_read_full(p[0], buf, 2, CLOCK_NEVER), 0);
    assert_memory_equal(buf, "ab", 2);
    assert_int_equal(io_read_full(p[0], buf, 2, clock_after_us(MOMENT_US)), -ETIMEDOUT);
    assert_int_equal(write(p[1], "d", 1), 1);
    fd_closep(&p[1]);
    assert_int_equal(io_read_full(p[0], buf, 2, CLOCK_NEVER), -EPIPE);
    assert_int_equal(io_read_full(p[0], buf, 0, CLOCK_NEVER), 0);
    assert_int_equal(io_read_full(-1, buf, 1, CLOCK_NEVER), -EBADF);
    close_both(p);
}

static void writing_waits_for_room_until_the_deadline(void **state)
{
    static char big[1 << 20];
    int p[2];

    (void)state;
    assert_int_equal(open_pipe(p, O_NONBLOCK), 0);
    assert_int_equal(io_write_full(p[1], "hello", 5, CLOCK_NEVER), 0);
    assert_int_equal(io_write_full(p[1], big, sizeof big, clock_after_us(MOMENT_US)), -ETIMEDOUT);
    fd_closep(&p[0]);
    assert_int_equal(io_write_full(p[1], "x", 1, CLOCK_NEVER), -EPIPE);
    close_both(p);
}

static void a_packet_arrives_whole_with_its_descriptors(void **state)
{
    int pair[2], fds[IO_FDS_MAX], sent[2], p[2];
    size_t n_fds = 99;
    char buf[32];

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    assert_int_equal(open_pipe(p, 0), 0);
    sent[0] = p[0];
    sent[1] = p[1];
    assert_int_equal(io_send_packet(pair[0], "head", 4, "body", 4, sent, 2), 0);
    assert_int_equal(io_recv_packet(pair[1], buf, sizeof buf, fds, &n_fds), 8);
    assert_memory_equal(buf, "headbody", 8);
    assert_int_equal(n_fds, 2);
    for (size_t i = 0; i < n_fds; i++)
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(fds[1], "z", 1), 1);
    assert_int_equal(read(p[0], buf, 1), 1);
    close_both(fds);
    close_both(p);
    close_both(pair);
}

static void an_empty_or_closed_socket_is_told_apart(void **state)
{
    int pair[2], fds[IO_FDS_MAX];
    size_t n_fds;
    char buf[8];

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    assert_int_equal(io_recv_packet(pair[1], buf, sizeof buf, fds, &n_fds), -EAGAIN);
    fd_closep(&pair[0]);
    assert_int_equal(io_recv_packet(pair[1], buf, sizeof buf, fds, &n_fds), 0);
    assert_int_equal(io_send_packet(pair[1], "x", 1, NULL, 0, NULL, 0), -EPIPE);
    close_both(pair);
}

static void a_peer_that_died_with_unread_bytes_is_gone_too(void **state)
{
    int pair[2], fds[IO_FDS_MAX];
    size_t n_fds;
    char buf[8];

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    assert_int_equal(io_send_packet(pair[1], "x", 1, NULL, 0, NULL, 0), 0);
    fd_closep(&pair[0]);
    assert_int_equal(io_recv_packet(pair[1], buf, sizeof buf, fds, &n_fds), 0);
    close_both(pair);
}

static void what_a_peer_sent_before_it_died_is_still_read(void **state)
{
    int pair[2], fds[IO_FDS_MAX];
    size_t n_fds;
    char buf[8];

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    assert_int_equal(io_send_packet(pair[1], "unread", 6, NULL, 0, NULL, 0), 0);
    assert_int_equal(io_send_packet(pair[0], "last", 4, NULL, 0, NULL, 0), 0);
    fd_closep(&pair[0]); /* ECONNRESET comes first, but the packet is there */
    assert_int_equal(io_recv_packet(pair[1], buf, sizeof buf, fds, &n_fds), 4);
    assert_int_equal(io_recv_packet(pair[1], buf, sizeof buf, fds, &n_fds), 0);
    close_both(pair);
}

static void a_packet_that_does_not_fit_leaves_no_descriptor(void **state)
{
    int pair[2], fds[IO_FDS_MAX];
    size_t n_fds = 99, before;
    char buf[4];

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    before = count_fds();
    assert_int_equal(io_send_packet(pair[0], "12345", 5, NULL, 0, (int[]){pair[0]}, 1), 0);
    assert_int_equal(io_recv_packet(pair[1], buf, sizeof buf, fds, &n_fds), -EMSGSIZE);
    assert_int_equal(n_fds, 0);
    assert_int_equal(count_fds(), before);
    close_both(pair);
}

static void more_descriptors_than_the_ceiling_are_refused_on_both_ends(void **state)
{
    enum { MANY = IO_FDS_MAX + 4 };
    union {
        char bytes[CMSG_SPACE(MANY * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    int pair[2], many[MANY], fds[IO_FDS_MAX];
    size_t n_fds, before;
    char byte = 'x';
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    for (size_t i = 0; i < MANY; i++)
        many[i] = pair[0];
    assert_int_equal(io_send_packet(pair[0], "x", 1, NULL, 0, many, MANY), -EINVAL);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof many);
    memcpy(CMSG_DATA(c), many, sizeof many);
    before = count_fds();
    assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
    assert_int_equal(io_recv_packet(pair[1], &byte, 1, fds, &n_fds), -EMSGSIZE);
    assert_int_equal(n_fds, 0);
    assert_int_equal(count_fds(), before);
    close_both(pair);
}

static void a_full_socket_does_not_block(void **state)
{
    static char big[16 * 1024];
    int pair[2], r = 0;

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    for (int i = 0; i < 10000 && r == 0; i++)
        r = io_send_packet(pair[0], big, sizeof big, NULL, 0, NULL, 0);
    assert_int_equal(r, -EAGAIN);
    close_both(pair);
}

static void a_pair_is_closed_by_exec_and_never_blocks(void **state)
{
    int pair[2];

    (void)state;
    assert_int_equal(io_pair(pair), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_true(fcntl(pair[i], F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(pair[i], F_GETFL) & O_NONBLOCK);
    }
    close_both(pair);
}

static int ignore_sigpipe(void **state)
{
    (void)state;
    return signal(SIGPIPE, SIG_IGN) == SIG_ERR;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_ends_at_the_deadline_or_with_the_event),
        cmocka_unit_test(reading_gathers_parts_and_tells_an_early_end),
        cmocka_unit_test(writing_waits_for_room_until_the_deadline),
        cmocka_unit_test(a_packet_arrives_whole_with_its_descriptors),
        cmocka_unit_test(an_empty_or_closed_socket_is_told_apart),
        cmocka_unit_test(a_peer_that_died_with_unread_bytes_is_gone_too),
        cmocka_unit_test(what_a_peer_sent_before_it_died_is_still_read),
        cmocka_unit_test(a_packet_that_does_not_fit_leaves_no_descriptor),
        cmocka_unit_test(more_descriptors_than_the_ceiling_are_refused_on_both_ends),
        cmocka_unit_test(a_full_socket_does_not_block),
        cmocka_unit_test(a_pair_is_closed_by_exec_and_never_blocks),
    };

    return cmocka_run_group_tests(tests, ignore_sigpipe, NULL);
}
