/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over a socket: large ones, descriptors, a slow peer, a dead one, one that lies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "core/channel.h"
#include "base/guards.h"

/* Two channels that talk to each other. */
struct ends {
    struct channel a, b;
};

static int start(void **state)
{
    static struct ends e;
    int pair[2];

    *state = &e;
    if (io_pair(pair) < 0)
        return -1;
    channel_init(&e.a, pair[0]);
    channel_init(&e.b, pair[1]);
    return 0;
}

static int end(void **state)
{
    struct ends *e = *state;

    channel_done(&e->a);
    channel_done(&e->b);
    return 0;
}

static size_t count_fds(void)
{
    _cleanup_(dir_closep) DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    return n;
}

/* Sends one raw packet, as a peer could that follows no rule. */
static void send_raw(int fd, uint32_t length, uint16_t type, uint16_t flags, size_t bytes)
{
    static uint8_t buf[2 * FRAME_PAYLOAD_MAX];
    const struct frame f = {.length = length, .type = type, .flags = flags};

    frame_header(&f, buf);
    assert_int_equal(send(fd, buf, bytes, 0), (ssize_t)bytes);
}

/* Passes on until a message is whole, or nothing is left to pass on. */
static int receive(struct channel *from, struct channel *to, struct message *m)
{
    int r;

    do {
        assert_int_equal(channel_flush(from), 0);
        r = channel_receive(to, m);
    } while (r == 0 && channel_waiting(from));
    return r;
}

static void messages_come_whole_and_in_order(void **state)
{
    struct ends *e = *state;
    struct message m;

    assert_int_equal(channel_send(&e->a, 1, 10, "one", 3, NULL, 0), 0);
    assert_int_equal(channel_send(&e->a, 2, 11, NULL, 0, NULL, 0), 0);
    assert_int_equal(channel_receive(&e->b, &m), 1);
    assert_int_equal(m.type, 1);
    assert_int_equal(m.id, 10);
    assert_int_equal(reader_left(&m.payload), 3);
    assert_memory_equal(m.payload.p, "one", 3);
    assert_int_equal(channel_receive(&e->b, &m), 1);
    assert_int_equal(m.type, 2);
    assert_int_equal(m.id, 11);
    assert_int_equal(reader_left(&m.payload), 0);
    assert_int_equal(channel_receive(&e->b, &m), 0);
}

static void large_messages_travel_in_several_frames(void **state)
{
    static const size_t sizes[] = {FRAME_PAYLOAD_MAX - 1, FRAME_PAYLOAD_MAX, FRAME_PAYLOAD_MAX + 1,
                                   2 * FRAME_PAYLOAD_MAX, 1000000,           MESSAGE_BYTES_MAX};
    struct ends *e = *state;
    uint8_t *big = malloc(MESSAGE_BYTES_MAX);

    assert_non_null(big);
    for (size_t i = 0; i < MESSAGE_BYTES_MAX; i++)
        big[i] = (uint8_t)(i * 31 + i / 4096);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct message m;

        assert_int_equal(channel_send(&e->a, 7, (uint32_t)i, big, sizes[i], NULL, 0), 0);
        assert_int_equal(receive(&e->a, &e->b, &m), 1);
        assert_int_equal(m.id, i);
        assert_int_equal(reader_left(&m.payload), sizes[i]);
        assert_memory_equal(m.payload.p, big, sizes[i]);
        assert_false(channel_waiting(&e->a));
        assert_int_equal(e->a.queued, 0);
    }
    free(big);
}

static void a_message_over_the_ceiling_is_not_sent(void **state)
{
    struct ends *e = *state;
    struct message m;
    uint8_t *big = calloc(1, MESSAGE_BYTES_MAX + 1);

    assert_non_null(big);
    assert_int_equal(channel_send(&e->a, 1, 1, big, MESSAGE_BYTES_MAX + 1, NULL, 0), -EMSGSIZE);
    assert_int_equal(channel_receive(&e->b, &m), 0);
    free(big);
}

static void descriptors_come_with_their_message(void **state)
{
    static uint8_t big[3 * FRAME_PAYLOAD_MAX];
    struct ends *e = *state;
    struct message m;
    int p[2], got;
    size_t before;
    char byte;

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    before = count_fds();
    assert_int_equal(channel_send(&e->a, 1, 1, big, sizeof big, p, 2), 0);
    assert_int_equal(channel_send(&e->a, 2, 2, NULL, 0, NULL, 0), 0);
    assert_int_equal(receive(&e->a, &e->b, &m), 1);
    assert_int_equal(m.n_fds, 2);
    got = message_take_fd(&m, 1);
    assert_true(got >= 0);
    assert_int_equal(message_take_fd(&m, 1), -EBADF);
    assert_int_equal(message_take_fd(&m, 2), -EBADF);
    assert_int_equal(write(got, "x", 1), 1);
    assert_int_equal(read(p[0], &byte, 1), 1);
    message_close_fds(&m);
    fd_closep(&got);
    assert_int_equal(count_fds(), before);
    assert_int_equal(receive(&e->a, &e->b, &m), 1);
    assert_int_equal(m.n_fds, 0);
    fd_closep(&p[0]);
    fd_closep(&p[1]);
}

static void descriptors_that_wait_are_duplicates(void **state)
{
    static uint8_t big[FRAME_PAYLOAD_MAX];
    struct ends *e = *state;
    struct message m;
    int p[2];
    size_t before, sent = 0;
    char byte;

    while (!channel_waiting(&e->a)) {
        assert_int_equal(channel_send(&e->a, 1, 1, big, sizeof big, NULL, 0), 0);
        sent++;
    }
    before = count_fds();
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(channel_send(&e->a, 2, 2, "x", 1, &p[1], 1), 0);
    fd_closep(&p[1]);
    while (sent-- > 0)
        assert_int_equal(receive(&e->a, &e->b, &m), 1);
    assert_int_equal(receive(&e->a, &e->b, &m), 1);
    assert_int_equal(m.type, 2);
    assert_int_equal(m.n_fds, 1);
    assert_int_equal(write(m.fds[0], "x", 1), 1);
    assert_int_equal(read(p[0], &byte, 1), 1);
    message_close_fds(&m);
    fd_closep(&p[0]);
    assert_int_equal(count_fds(), before);
}

static void a_slow_peer_fills_the_queue_up_to_its_ceiling(void **state)
{
    static uint8_t big[FRAME_PAYLOAD_MAX];
    struct ends *e = *state;
    struct message m;
    size_t sent = 0;
    int r;

    while ((r = channel_send(&e->a, 1, (uint32_t)sent, big, sizeof big, NULL, 0)) == 0) {
        sent++;
        assert_true(e->a.queued <= CHANNEL_QUEUE_MAX);
        assert_true(sent < 10000);
    }
    assert_int_equal(r, -ENOBUFS);
    for (size_t i = 0; i < sent; i++) { /* what was accepted arrives, in order */
        assert_int_equal(receive(&e->a, &e->b, &m), 1);
        assert_int_equal(m.id, i);
    }
    assert_false(channel_waiting(&e->a));
    assert_int_equal(channel_receive(&e->b, &m), 0);
}

static void a_queue_that_is_never_sent_leaks_nothing(void **state)
{
    static uint8_t big[FRAME_PAYLOAD_MAX];
    struct ends *e = *state;
    size_t before = count_fds();

    for (int i = 0; i < 50; i++)
        assert_int_equal(channel_send(&e->a, 1, 1, big, sizeof big, (int[]){e->b.fd}, 1), 0);
    assert_true(channel_waiting(&e->a));
    channel_done(&e->a);
    channel_done(&e->b);
    assert_int_equal(count_fds(), before - 2);
    channel_done(&e->a); /* harmless again */
}

static void a_closed_peer_is_told_after_what_it_sent(void **state)
{
    struct ends *e = *state;
    struct message m;

    assert_int_equal(channel_send(&e->a, 1, 1, "last", 4, NULL, 0), 0);
    channel_done(&e->a);
    assert_int_equal(channel_receive(&e->b, &m), 1);
    assert_int_equal(channel_receive(&e->b, &m), -EPIPE);
    assert_int_equal(channel_send(&e->b, 1, 1, "x", 1, NULL, 0), -EPIPE);
}

static void a_peer_that_closes_within_a_message_is_told(void **state)
{
    struct ends *e = *state;
    struct message m;

    send_raw(e->a.fd, FRAME_PAYLOAD_MAX, 1, FRAME_MORE, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
    assert_int_equal(channel_receive(&e->b, &m), 0);
    channel_done(&e->a);
    assert_int_equal(channel_receive(&e->b, &m), -EPIPE);
}

static void bytes_that_are_no_message_are_refused(void **state)
{
    static const struct {
        uint32_t length;
        uint16_t flags;
        size_t bytes;
    } rows[] = {
        {0, 0, 1},                                      /* a header cut short */
        {0, 0, FRAME_HEADER_BYTES - 1},                 /* the same */
        {8, 0, FRAME_HEADER_BYTES + 7},                 /* a payload cut short */
        {8, 0, FRAME_HEADER_BYTES + 9},                 /* more than announced */
        {0, 2, FRAME_HEADER_BYTES},                     /* an unknown flag */
        {FRAME_PAYLOAD_MAX + 1, 0, FRAME_HEADER_BYTES}, /* more than any frame */
        {FRAME_PAYLOAD_MAX + 1, 0, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX + 1},
        {UINT32_MAX, 0, FRAME_HEADER_BYTES + 4},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ends *e = *state;
        struct message m;

        send_raw(e->a.fd, rows[i].length, 1, rows[i].flags, rows[i].bytes);
        assert_int_equal(channel_receive(&e->b, &m), -EPROTO);
        assert_int_equal(end(state), 0);
        assert_int_equal(start(state), 0);
    }
}

static void another_message_within_one_is_refused(void **state)
{
    struct ends *e = *state;
    struct message m;

    send_raw(e->a.fd, 4, 1, FRAME_MORE, FRAME_HEADER_BYTES + 4);
    send_raw(e->a.fd, 4, 2, 0, FRAME_HEADER_BYTES + 4);
    assert_int_equal(channel_receive(&e->b, &m), -EPROTO);
}

static void a_message_without_an_end_stops_at_the_ceiling(void **state)
{
    struct ends *e = *state;
    struct message m;
    int r = 0;
    size_t frames = 0;

    while (r == 0 && frames++ < 1000) {
        send_raw(e->a.fd, FRAME_PAYLOAD_MAX, 1, FRAME_MORE, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
        r = channel_receive(&e->b, &m);
    }
    assert_int_equal(r, -EPROTO);
    assert_true(e->b.capacity <= 2 * (MESSAGE_BYTES_MAX + FRAME_PAYLOAD_MAX));
}

static void descriptors_of_a_refused_packet_do_not_stay_open(void **state)
{
    struct ends *e = *state;
    struct message m;
    int many[IO_FDS_MAX];
    size_t before = count_fds();

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = e->a.fd;
    assert_int_equal(io_send_packet(e->a.fd, "junk", 4, NULL, 0, many, ARRAY_SIZE(many)), 0);
    assert_int_equal(channel_receive(&e->b, &m), -EPROTO);
    channel_done(&e->b);
    assert_int_equal(count_fds(), before - 1);
}

static void descriptors_of_many_frames_are_bounded(void **state)
{
    static uint8_t big[FRAME_PAYLOAD_MAX];
    struct ends *e = *state;
    struct frame f = {.type = 1, .flags = FRAME_MORE};
    uint8_t head[FRAME_HEADER_BYTES];
    struct message m;
    int many[IO_FDS_MAX];
    size_t before = count_fds();

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = e->a.fd;
    for (int i = 0; i < 5; i++) {
        f.flags = i < 4 ? FRAME_MORE : 0;
        f.length = i < 4 ? FRAME_PAYLOAD_MAX : 0;
        frame_header(&f, head);
        assert_int_equal(
            io_send_packet(e->a.fd, head, sizeof head, big, f.length, many, ARRAY_SIZE(many)), 0);
    }
    assert_int_equal(channel_receive(&e->b, &m), 1);
    assert_int_equal(m.n_fds, IO_FDS_MAX);
    message_close_fds(&m);
    assert_int_equal(count_fds(), before);
}

static void no_descriptor_to_spare_is_an_error_and_nothing_worse(void **state)
{
    static uint8_t big[FRAME_PAYLOAD_MAX];
    struct ends *e = *state;
    struct rlimit old, low;
    int r;

    while (!channel_waiting(&e->a))
        assert_int_equal(channel_send(&e->a, 1, 1, big, sizeof big, NULL, 0), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    size_t queued = e->a.queued;
    r = channel_send(&e->a, 1, 1, big, 1, (int[]){e->b.fd}, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(r == -EMFILE || r == -EINVAL); /* EINVAL: the limit is below the lowest number */
    assert_int_equal(e->a.queued, queued);
}

int main(void)
{
#define CHANNEL_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        CHANNEL_TEST(messages_come_whole_and_in_order),
        CHANNEL_TEST(large_messages_travel_in_several_frames),
        CHANNEL_TEST(a_message_over_the_ceiling_is_not_sent),
        CHANNEL_TEST(descriptors_come_with_their_message),
        CHANNEL_TEST(descriptors_that_wait_are_duplicates),
        CHANNEL_TEST(a_slow_peer_fills_the_queue_up_to_its_ceiling),
        CHANNEL_TEST(a_queue_that_is_never_sent_leaks_nothing),
        CHANNEL_TEST(a_closed_peer_is_told_after_what_it_sent),
        CHANNEL_TEST(a_peer_that_closes_within_a_message_is_told),
        CHANNEL_TEST(bytes_that_are_no_message_are_refused),
        CHANNEL_TEST(another_message_within_one_is_refused),
        CHANNEL_TEST(a_message_without_an_end_stops_at_the_ceiling),
        CHANNEL_TEST(descriptors_of_a_refused_packet_do_not_stay_open),
        CHANNEL_TEST(descriptors_of_many_frames_are_bounded),
        CHANNEL_TEST(no_descriptor_to_spare_is_an_error_and_nothing_worse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
