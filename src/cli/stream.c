/* SPDX-License-Identifier: Apache-2.0 */
/* Moving bytes while an operation is under way, and whole files without one. */
#include "cli/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/guards.h"

enum {
    BUFFER_BYTES = 256 * 1024,
    CHUNK_BYTES = 1024 * 1024,
    KERNEL_BYTES = 16 * 1024 * 1024, /* in one call: a signal is heard between calls */
};

/* Bytes on their way from one descriptor to the other. */
struct moving {
    int from, to;
    size_t at, end;
    bool ended; /* @from is at its end */
    uint64_t *count;
    uint8_t buffer[BUFFER_BYTES];
};

static int cannot_read(int code, struct error *err)
{
    return error_set(err, ERROR_TERMINAL, code, "the input cannot be read: %s", strerror(code));
}

static int cannot_write(int code, struct error *err)
{
    return error_set(err, ERROR_TERMINAL, code, "the output could not be written: %s",
                     strerror(code));
}

/* Return: 0 or a negative errno of read(2); what is not ready is no failure. */
static int take(struct moving *m)
{
    ssize_t n = read(m->from, m->buffer, sizeof m->buffer);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    m->at = 0;
    m->end = (size_t)n;
    m->ended = n == 0;
    return 0;
}

/* Return: 0 or a negative errno of write(2). */
static int give(struct moving *m)
{
    ssize_t n = write(m->to, m->buffer + m->at, m->end - m->at);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    m->at += (size_t)n;
    *m->count += (uint64_t)n;
    return 0;
}

/* One round: whichever of the two can go on. The end that fails leaves its errno. */
static int move(struct handle *h, struct moving *m, int *ret_read, int *ret_write,
                struct error *err)
{
    bool full = m->at < m->end;
    struct pollfd p[2] = {{.fd = full ? -1 : m->from, .events = POLLIN},
                          {.fd = m->to, .events = full ? POLLOUT : 0}};
    int r = handle_poll(h, p, ARRAY_SIZE(p), CLOCK_NEVER, err);

    *ret_read = *ret_write = 0;
    if (r < 0)
        return r;
    if (!full && p[0].revents)
        *ret_read = take(m);
    else if (full && p[1].revents)
        *ret_write = give(m);
    else if (p[1].revents & POLLERR) /* nobody reads it any more */
        *ret_write = -EPIPE;
    return 0;
}

int stream_into(struct handle *h, struct atoll_op *op, int from, void (*commit)(struct atoll_op *),
                uint64_t *bytes, struct error *err)
{
    _cleanup_fd_ int to = op ? atoll_op_take_fd(op, 0) : -ENOMEM;
    _cleanup_free_ struct moving *m = malloc(sizeof *m);
    int r = 0, r_read = 0, r_write = 0;

    if (!op || !m)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    *m = (struct moving){.from = from, .to = to, .count = bytes};
    while (r == 0 && !m->ended && r_read == 0 && r_write == 0 && to >= 0 && !atoll_op_done(op))
        r = move(h, m, &r_read, &r_write, err);
    if (r < 0)
        return r;
    if (r_read < 0) {
        atoll_op_cancel(op);
        return cannot_read(-r_read, err);
    }
    fd_closep(&to);
    if (m->ended && commit)
        commit(op);
    r = handle_wait(h, op, err); /* a pipe that broke says why here */
    return r == 0 && r_write < 0 ? error_set(err, ERROR_TERMINAL, -r_write,
                                             "the sandbox did not take all of the input")
                                 : r;
}

/* Return: 0 with *@ret_write set when @to took no more. */
static int pass(struct handle *h, int from, int to, uint64_t *bytes, int *ret_read, int *ret_write,
                struct error *err)
{
    _cleanup_free_ struct moving *m = malloc(sizeof *m);
    int r = 0;

    *ret_read = *ret_write = 0;
    if (!m)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    *m = (struct moving){.from = from, .to = to, .count = bytes};
    while (r == 0 && !m->ended && *ret_read == 0 && *ret_write == 0)
        r = move(h, m, ret_read, ret_write, err);
    return r;
}

int stream_pass(struct handle *h, int from, int to, uint64_t *bytes, struct error *err)
{
    int r_read, r_write, r = pass(h, from, to, bytes, &r_read, &r_write, err);

    if (r == 0 && r_write < 0)
        return cannot_write(-r_write, err);
    return r == 0 && r_read < 0 ? cannot_read(-r_read, err) : r;
}

int stream_out_of(struct handle *h, struct atoll_op *op, int to, uint64_t *bytes, struct error *err)
{
    _cleanup_fd_ int from = op ? atoll_op_take_fd(op, 0) : -ENOMEM;
    int r_read = 0, r_write = 0;
    int r = from >= 0 ? pass(h, from, to, bytes, &r_read, &r_write, err) : 0;

    if (r < 0)
        return r;
    if (r_write < 0) {
        atoll_op_cancel(op);
        return cannot_write(-r_write, err);
    }
    fd_closep(&from);
    r = handle_wait(h, op, err);
    return r == 0 && r_read < 0 ? cannot_read(-r_read, err) : r;
}

/* Files */

/* Through memory: for outputs that the kernel does not send to, such as those opened to append. */
static int copy_by_hand(int from, off_t at, uint64_t left, int to, struct error *err)
{
    _cleanup_free_ uint8_t *buffer = malloc(CHUNK_BYTES);

    if (!buffer)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    while (left > 0) {
        ssize_t n = pread(from, buffer, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERROR_RECOVERABLE, errno, "the file cannot be read: %s",
                             strerror(errno));
        if (n == 0)
            break;
        int r = io_write_full(to, buffer, (size_t)n, CLOCK_NEVER);
        if (r < 0)
            return cannot_write(-r, err);
        at += n;
        left -= (uint64_t)n;
    }
    return 0;
}

int stream_file(int from, uint64_t offset, uint64_t length, int to, struct error *err)
{
    uint64_t left = length;

    if (offset > INT64_MAX)
        return 0; /* no file reaches so far */
    for (off_t at = (off_t)offset; left > 0;) {
        ssize_t n = sendfile(to, from, &at, left < KERNEL_BYTES ? (size_t)left : KERNEL_BYTES);

        if (n == 0)
            break;
        if (n > 0)
            left -= (uint64_t)n;
        else if (errno == EAGAIN)
            (void)io_wait(to, POLLOUT, CLOCK_NEVER);
        else if (errno == EINVAL || errno == ENOSYS || errno == EIO)
            return copy_by_hand(from, at, left, to, err);
        else if (errno != EINTR)
            return cannot_write(errno, err);
    }
    return 0;
}
