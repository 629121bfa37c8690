/* SPDX-License-Identifier: Apache-2.0 */
/* Moving bytes between descriptors. */
#include "client/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

enum {
    SPLICE_BYTES = 1024 * 1024,
    BUFFER_BYTES = 64 * 1024,
    /* PIPE_BUF: a pipe that polls writable takes that much without blocking. */
    WRITE_BYTES = 4096,
    TERMINAL_BYTES = 64, /* the same for a terminal that could not be opened anew */
};

static void finish(struct pump *p)
{
    void (*ended)(struct pump *) = p->ended;

    if (!pump_running(p))
        return;
    pump_stop(p);
    if (ended)
        ended(p);
}

/* Waits for the end that stands in the way: @to to take bytes, or @from to have some. */
static void wait_for(struct pump *p, bool to)
{
    if (p->to_waits)
        to = false;
    if (p->from_waits)
        to = true;
    (void)loop_change(p->loop, &p->from_source, to ? 0 : EPOLLIN);
    (void)loop_change(p->loop, &p->to_source, to ? EPOLLOUT : 0);
}

static bool input_waits(const struct pump *p)
{
    int n = 0;

    return ioctl(p->from, FIONREAD, &n) == 0 && n > 0;
}

/* 1: moved something; 0: one end stands in the way; negative: over, or an errno. */
static ssize_t move_by_splice(struct pump *p)
{
    ssize_t n = splice(p->from, NULL, p->to, NULL, SPLICE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    if (n > 0) {
        p->moved += (uint64_t)n;
        return 1;
    }
    if (n == 0)
        return -ENODATA;
    if (errno == EAGAIN) {
        wait_for(p, input_waits(p));
        return 0;
    }
    if (errno == EINVAL || errno == ENOSYS) {
        p->copies = true;
        p->buffer = malloc(BUFFER_BYTES);
        return p->buffer ? 1 : -ENOMEM;
    }
    return errno == EINTR ? 1 : errno == EIO ? -ENODATA : -errno; /* EIO: a terminal hung up */
}

static ssize_t move_by_copy(struct pump *p)
{
    size_t left = p->end - p->at;

    if (left == 0) {
        struct pollfd ready = {.fd = p->from, .events = POLLIN};

        /* The other end's flags are not ours: never read where that could block. */
        if (!p->from_waits && poll(&ready, 1, 0) == 0) {
            wait_for(p, false);
            return 0;
        }
        ssize_t n = read(p->from, p->buffer, BUFFER_BYTES);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            wait_for(p, false);
            return 0;
        }
        if (n <= 0)
            return n == 0 || errno == EIO ? -ENODATA : -errno;
        p->at = 0;
        p->end = left = (size_t)n;
    }
    struct pollfd ready = {.fd = p->to, .events = POLLOUT};
    if (!p->to_waits && poll(&ready, 1, 0) == 0) {
        wait_for(p, true);
        return 0;
    }
    ssize_t n = write(p->to, p->buffer + p->at, left < p->write_bytes ? left : p->write_bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        wait_for(p, true);
        return 0;
    }
    if (n < 0)
        return -errno;
    p->at += (size_t)n;
    p->moved += (uint64_t)n;
    return 1;
}

static int move(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct pump *p = s->owner;

    (void)l;
    (void)events;
    /* A few rounds, then the other sources get their turn. */
    for (int round = 0; round < 16; round++) {
        ssize_t r = p->copies ? move_by_copy(p) : move_by_splice(p);

        if (r == 0)
            return 0;
        if (r < 0) {
            if (r != -ENODATA && r != -EPIPE)
                p->error = (int)-r;
            finish(p);
            return 0;
        }
        p->moved_us = clock_now_us();
    }
    return 0;
}

/* Splice blocks on terminals and sockets whatever its flags say; pipes and files are safe. */
static bool may_splice(int from, int to)
{
    struct stat in, out;

    if (fstat(from, &in) < 0 || fstat(to, &out) < 0)
        return false;
    if (S_ISFIFO(out.st_mode))
        return S_ISFIFO(in.st_mode) || S_ISREG(in.st_mode);
    return S_ISFIFO(in.st_mode) && (S_ISREG(out.st_mode) || (S_ISCHR(out.st_mode) && !isatty(to)));
}

/* A descriptor of our own for @to. A terminal is opened anew, since only an open of our own may be
 * made non-blocking, and a terminal that nobody reads would stop everything. */
static int own_output(struct pump *p, int to)
{
    char path[32];

    if (isatty(to)) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", to);
        int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        if (fd >= 0)
            return fd;
        p->write_bytes = TERMINAL_BYTES;
    }
    return fcntl(to, F_DUPFD_CLOEXEC, 3);
}

int pump_start(struct pump *p, struct loop *l, int from, int to, bool take_to,
               void (*ended)(struct pump *), void *owner)
{
    int r;

    *p = (struct pump){
        .loop = l, .from = from, .ended = ended, .owner = owner, .write_bytes = WRITE_BYTES};
    p->moved_us = clock_now_us();
    /* A duplicate: two pumps may write to one terminal, and epoll takes a descriptor once. */
    p->to = take_to ? to : own_output(p, to);
    p->from_source = (struct loop_source){.name = "from", .fd = -EBADF, .owner = p, .ready = move};
    p->to_source = (struct loop_source){.name = "to", .fd = -EBADF, .owner = p, .ready = move};
    p->copies = p->to >= 0 && !may_splice(from, p->to);
    p->buffer = p->copies ? malloc(BUFFER_BYTES) : NULL;
    r = p->to < 0                 ? -EBADF
        : p->copies && !p->buffer ? -ENOMEM
                                  : loop_watch(l, &p->to_source, p->to, 0);
    if (r == -EPERM) {
        p->to_waits = true;
        p->write_bytes = BUFFER_BYTES;
        r = 0;
    }
    if (r == 0)
        r = loop_watch(l, &p->from_source, p->from, EPOLLIN);
    if (r == -EPERM) {
        p->from_waits = true;
        r = p->to_waits ? -EPERM : loop_change(l, &p->to_source, EPOLLOUT);
    }
    if (r < 0)
        pump_stop(p);
    return r;
}

bool pump_running(const struct pump *p)
{
    return p->loop && p->from >= 0;
}

void pump_expect_end(struct pump *p)
{
    int waiting = 0;

    if (pump_running(p) && ioctl(p->from, FIONREAD, &waiting) == 0 && waiting > 0)
        p->due = (uint64_t)waiting;
    p->due += p->moved + (p->end - p->at);
}

bool pump_is_drained(const struct pump *p, uint64_t idle_us, bool overdue)
{
    if (!pump_running(p))
        return true;
    if (overdue && p->moved >= p->due)
        return true;
    return p->at == p->end && !input_waits(p) && clock_now_us() - p->moved_us >= idle_us;
}

void pump_stop(struct pump *p)
{
    if (!p->loop)
        return;
    loop_forget(p->loop, &p->from_source);
    loop_forget(p->loop, &p->to_source);
    fd_closep(&p->from);
    fd_closep(&p->to);
    free(p->buffer);
    p->buffer = NULL;
    p->at = p->end = 0;
}
