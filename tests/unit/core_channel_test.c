/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over a socket or a stream: large ones, descriptors, a slow peer, a dead one, one that
 * lies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

static void a_message_over_the_ceiling_is_not_taken(void **state)
{
    struct ends *e = *state;
    struct message m;
    int r = 0;

    for (int i = 0; i < MESSAGE_BYTES_MAX / FRAME_PAYLOAD_MAX && r == 0; i++) {
        send_raw(e->a.fd, FRAME_PAYLOAD_MAX, 1, FRAME_MORE, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
        r = channel_receive(&e->b, &m);
    }
    assert_int_equal(r, 0); /* exactly the ceiling, and then one byte */
    send_raw(e->a.fd, 1, 1, 0, FRAME_HEADER_BYTES + 1);
    assert_int_equal(channel_receive(&e->b, &m), -EPROTO);
}

static void a_message_that_does_not_fit_the_queue_leaves_no_half_in_it(void **state)
{
    struct ends *e = *state;
    struct message m;
    uint8_t *big = calloc(1, MESSAGE_BYTES_MAX);
    size_t sent = 0;
    int r;

    assert_non_null(big);
    while ((r = channel_send(&e->a, 1, (uint32_t)sent, big, MESSAGE_BYTES_MAX, NULL, 0)) == 0)
        sent++;
    assert_int_equal(r, -ENOBUFS);
    assert_int_equal(channel_send(&e->a, 2, 0, "small", 5, NULL, 0), 0);
    for (size_t i = 0; i < sent; i++) {
        assert_int_equal(receive(&e->a, &e->b, &m), 1);
        assert_int_equal(reader_left(&m.payload), MESSAGE_BYTES_MAX);
    }
    assert_int_equal(receive(&e->a, &e->b, &m), 1);
    assert_int_equal(m.type, 2);
    assert_memory_equal(m.payload.p, "small", 5);
    free(big);
}

/* A channel over byte streams, and the other ends of its streams as plain descriptors. */
struct stream_ends {
    struct channel c;
    int in, out; /* where it reads from and writes to */
};

static int stream_start(void **state)
{
    static struct stream_ends e;
    int in[2], out[2];

    *state = &e;
    (void)signal(SIGPIPE, SIG_IGN);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    e.in = in[1];
    e.out = out[0];
    return channel_init_stream(&e.c, in[0], out[1]);
}

static int stream_end(void **state)
{
    struct stream_ends *e = *state;

    channel_done(&e->c);
    fd_closep(&e->in);
    fd_closep(&e->out);
    return 0;
}

/* Frames as a stream carries them; returns how many bytes. */
static size_t put_frame(uint8_t *at, uint16_t type, uint16_t flags, uint32_t id, size_t len,
                        uint8_t fill)
{
    const struct frame f = {.length = (uint32_t)len, .type = type, .flags = flags, .id = id};

    frame_header(&f, at);
    memset(at + FRAME_HEADER_BYTES, fill, len);
    return FRAME_HEADER_BYTES + len;
}

static void feed(const struct stream_ends *e, const void *data, size_t len)
{
    assert_int_equal(io_write_full(e->in, data, len, 0), 0);
}

static void frames_of_a_stream_may_be_split_anywhere(void **state)
{
    struct stream_ends *e = *state;
    uint8_t bytes[256];
    size_t one = put_frame(bytes, 1, 0, 10, 5, 'a'), all = one;
    struct message m;

    all += put_frame(bytes + all, 2, 0, 11, 0, 0);
    all += put_frame(bytes + all, 3, 0, 12, 7, 'c');
    for (size_t cut = 0; cut <= all; cut++) {
        size_t got = 0;

        feed(e, bytes, cut);
        while (channel_receive(&e->c, &m) == 1)
            got++;
        assert_int_equal(got, (cut >= one) + (cut >= one + FRAME_HEADER_BYTES) + (cut == all));
        feed(e, bytes + cut, all - cut);
        while (channel_receive(&e->c, &m) == 1)
            got++;
        assert_int_equal(got, 3);
        assert_int_equal(m.type, 3);
        assert_int_equal(m.id, 12);
        assert_int_equal(reader_left(&m.payload), 7);
        assert_memory_equal(m.payload.p, "ccccccc", 7);
    }
}

static void frames_of_a_stream_may_come_byte_by_byte(void **state)
{
    struct stream_ends *e = *state;
    uint8_t bytes[64];
    size_t len = put_frame(bytes, 1, 0, 10, 3, 'x');
    struct message m;

    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < len; i++) {
            feed(e, bytes + i, 1);
            assert_int_equal(channel_receive(&e->c, &m), i + 1 == len);
        }
    assert_memory_equal(m.payload.p, "xxx", 3);
}

static void many_frames_of_a_stream_may_come_at_once(void **state)
{
    struct stream_ends *e = *state;
    uint8_t bytes[60000];
    struct message m;
    size_t all = 0;
    uint32_t n = 0;

    while (all + FRAME_HEADER_BYTES + n < sizeof bytes) {
        all += put_frame(bytes + all, 1, 0, n, n, (uint8_t)n);
        n++;
    }
    assert_true(n > 100);
    feed(e, bytes, all);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(channel_receive(&e->c, &m), 1);
        assert_int_equal(m.id, i);
        assert_int_equal(reader_left(&m.payload), i);
        for (uint32_t k = 0; k < i; k++)
            assert_int_equal(m.payload.p[k], (uint8_t)i);
    }
    assert_int_equal(channel_receive(&e->c, &m), 0);
}

static void a_message_of_several_frames_comes_over_a_stream(void **state)
{
    static uint8_t bytes[2 * (FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX) + 64];
    struct stream_ends *e = *state;
    struct message m = {0};
    size_t all = put_frame(bytes, 7, FRAME_MORE, 9, FRAME_PAYLOAD_MAX, 'a');
    int r = 0;

    all += put_frame(bytes + all, 7, FRAME_MORE, 9, FRAME_PAYLOAD_MAX, 'b');
    all += put_frame(bytes + all, 7, 0, 9, 1, 'c');
    for (size_t at = 0; at < all; at += 997) { /* a piece of every frame is in many reads */
        assert_int_equal(r, 0);
        feed(e, bytes + at, all - at < 997 ? all - at : 997);
        r = channel_receive(&e->c, &m);
    }
    assert_int_equal(r, 1);
    assert_int_equal(m.id, 9);
    assert_int_equal(reader_left(&m.payload), 2 * FRAME_PAYLOAD_MAX + 1);
    assert_int_equal(m.payload.p[0], 'a');
    assert_int_equal(m.payload.p[FRAME_PAYLOAD_MAX - 1], 'a');
    assert_int_equal(m.payload.p[FRAME_PAYLOAD_MAX], 'b');
    assert_int_equal(m.payload.p[2 * FRAME_PAYLOAD_MAX], 'c');
}

static void a_stream_that_lies_is_refused(void **state)
{
    static const struct {
        uint32_t length;
        uint16_t flags;
    } rows[] = {{FRAME_PAYLOAD_MAX + 1, 0}, {UINT32_MAX, 0}, {0, 2}, {5, FRAME_MORE}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct frame f = {.length = rows[i].length, .type = 1, .flags = rows[i].flags};
        struct stream_ends *e = *state;
        uint8_t head[FRAME_HEADER_BYTES];
        struct message m;

        frame_header(&f, head);
        feed(e, head, sizeof head); /* judged before the payload is waited for */
        assert_int_equal(channel_receive(&e->c, &m), -EPROTO);
        assert_int_equal(channel_receive(&e->c, &m), -EPROTO); /* and it stays so */
        assert_int_equal(stream_end(state), 0);
        assert_int_equal(stream_start(state), 0);
    }
}

static void another_message_within_one_of_a_stream_is_refused(void **state)
{
    static uint8_t bytes[FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX + 64];
    struct stream_ends *e = *state;
    struct message m;
    size_t all = put_frame(bytes, 1, FRAME_MORE, 5, FRAME_PAYLOAD_MAX, 'a');

    all += put_frame(bytes + all, 1, 0, 6, 1, 'b');
    feed(e, bytes, all);
    assert_int_equal(channel_receive(&e->c, &m), -EPROTO);
}

static void a_stream_ends_between_frames_or_is_damaged(void **state)
{
    uint8_t bytes[64];
    size_t len = put_frame(bytes, 1, 0, 10, 3, 'x');

    for (size_t cut = 0; cut <= len; cut++) {
        struct stream_ends *e = *state;
        struct message m;

        feed(e, bytes, len);
        feed(e, bytes, cut);
        fd_closep(&e->in);
        assert_int_equal(channel_receive(&e->c, &m), 1);
        if (cut == len)
            assert_int_equal(channel_receive(&e->c, &m), 1);
        for (int i = 0; i < 2; i++)
            assert_int_equal(channel_receive(&e->c, &m), cut == 0 || cut == len ? -EPIPE : -EPROTO);
        assert_int_equal(stream_end(state), 0);
        assert_int_equal(stream_start(state), 0);
    }
}

static void what_a_full_pipe_cannot_take_waits_in_order(void **state)
{
    static uint8_t big[100000];
    struct stream_ends *e = *state;
    struct stream_ends peer = {.in = -EBADF, .out = -EBADF};
    struct message m;
    uint32_t sent = 0, got = 0;
    int r;

    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (uint8_t)(i % 251);
    while (e->c.queued < 1000000) {
        assert_int_equal(channel_send(&e->c, 1, sent, big, 1 + sent * 7919 % sizeof big, NULL, 0),
                         0);
        sent++;
    }
    assert_true(channel_waiting(&e->c));
    assert_int_equal(
        channel_init_stream(&peer.c, TAKE_FD(e->out), open("/dev/null", O_WRONLY | O_CLOEXEC)), 0);
    do {
        r = channel_receive(&peer.c, &m);
        if (r == 1) {
            assert_int_equal(m.id, got);
            assert_int_equal(reader_left(&m.payload), 1 + got * 7919 % sizeof big);
            assert_memory_equal(m.payload.p, big, reader_left(&m.payload));
            got++;
        }
        assert_true(r >= 0);
        assert_int_equal(channel_flush(&e->c), 0);
    } while (got < sent);
    assert_false(channel_waiting(&e->c));
    assert_int_equal(e->c.queued, 0);
    assert_int_equal(channel_receive(&peer.c, &m), 0);
    channel_done(&peer.c);
}

static void a_stream_queues_up_to_its_ceiling(void **state)
{
    static uint8_t big[FRAME_PAYLOAD_MAX];
    struct stream_ends *e = *state;
    size_t sent = 0;
    int r;

    while ((r = channel_send(&e->c, 1, 1, big, sizeof big, NULL, 0)) == 0)
        assert_true(++sent < 10000);
    assert_int_equal(r, -ENOBUFS);
    assert_true(e->c.queued <= CHANNEL_QUEUE_MAX);
    assert_true(e->c.queued > CHANNEL_QUEUE_MAX - 2 * FRAME_PAYLOAD_MAX);
}

static void a_stream_carries_no_descriptors(void **state)
{
    struct stream_ends *e = *state;
    size_t before = count_fds();

    assert_int_equal(channel_send(&e->c, 1, 1, "x", 1, (int[]){e->in}, 1), -EINVAL);
    assert_false(channel_waiting(&e->c));
    assert_int_equal(count_fds(), before);
    assert_int_equal(channel_send(&e->c, 1, 1, NULL, MESSAGE_BYTES_MAX + 1, NULL, 0), -EMSGSIZE);
}

static void a_stream_whose_reader_is_gone_is_told(void **state)
{
    struct stream_ends *e = *state;

    fd_closep(&e->out);
    assert_int_equal(channel_send(&e->c, 1, 1, "x", 1, NULL, 0), -EPIPE);
}

static void both_streams_may_be_one_socket(void **state)
{
    size_t before = count_fds();
    struct channel a, b;
    struct message m;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(channel_init_stream(&a, pair[0], pair[0]), 0);
    assert_int_equal(channel_init_stream(&b, pair[1], pair[1]), 0);
    assert_int_equal(channel_receive(&b, &m), 0); /* it does not block */
    assert_int_equal(channel_send(&a, 1, 2, "there", 5, NULL, 0), 0);
    assert_int_equal(channel_receive(&b, &m), 1);
    assert_int_equal(channel_send(&b, 3, 4, "back", 4, NULL, 0), 0);
    assert_int_equal(channel_receive(&a, &m), 1);
    assert_memory_equal(m.payload.p, "back", 4);
    channel_done(&a);
    assert_int_equal(channel_receive(&b, &m), -EPIPE);
    channel_done(&b);
    channel_done(&b);
    assert_int_equal(count_fds(), before);
}

static void what_is_no_descriptor_is_no_stream(void **state)
{
    size_t before = count_fds();
    struct channel c;

    (void)state;
    assert_int_equal(channel_init_stream(&c, open("/dev/null", O_RDONLY | O_CLOEXEC), -EBADF),
                     -EBADF);
    channel_done(&c);
    assert_int_equal(count_fds(), before);
}

int main(void)
{
#define CHANNEL_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
#define STREAM_TEST(name)  cmocka_unit_test_setup_teardown(name, stream_start, stream_end)
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
        CHANNEL_TEST(a_message_over_the_ceiling_is_not_taken),
        CHANNEL_TEST(a_message_that_does_not_fit_the_queue_leaves_no_half_in_it),
        STREAM_TEST(frames_of_a_stream_may_be_split_anywhere),
        STREAM_TEST(frames_of_a_stream_may_come_byte_by_byte),
        STREAM_TEST(many_frames_of_a_stream_may_come_at_once),
        STREAM_TEST(a_message_of_several_frames_comes_over_a_stream),
        STREAM_TEST(a_stream_that_lies_is_refused),
        STREAM_TEST(another_message_within_one_of_a_stream_is_refused),
        STREAM_TEST(a_stream_ends_between_frames_or_is_damaged),
        STREAM_TEST(what_a_full_pipe_cannot_take_waits_in_order),
        STREAM_TEST(a_stream_queues_up_to_its_ceiling),
        STREAM_TEST(a_stream_carries_no_descriptors),
        STREAM_TEST(a_stream_whose_reader_is_gone_is_told),
        STREAM_TEST(both_streams_may_be_one_socket),
        STREAM_TEST(what_is_no_descriptor_is_no_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
