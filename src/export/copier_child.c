/* SPDX-License-Identifier: Apache-2.0 */
/* The process that writes, reads back, compares and synchronises. */
#include "export/copier_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/guards.h"

static int write_all(int fd, const uint8_t *data, size_t len, off_t offset)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, offset);

        if (n == 0)
            return -EIO;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
            offset += n;
        }
    }
    return 0;
}

static int compare(int fd, const uint8_t *data, size_t len, off_t offset, uint8_t *spare,
                   size_t spare_len)
{
    while (len > 0) {
        ssize_t n = pread(fd, spare, len < spare_len ? len : spare_len, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0 || memcmp(data, spare, (size_t)n) != 0)
            return -EBADMSG;
        data += n;
        len -= (size_t)n;
        offset += n;
    }
    return 0;
}

int copier_write(int fd, const uint8_t *data, size_t len, off_t offset, uint8_t *spare,
                 size_t spare_len)
{
    int r = write_all(fd, data, len, offset);

    return r < 0 ? r : compare(fd, data, len, offset, spare, spare_len);
}

int copier_check_size(int fd, uint64_t size)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    return (uint64_t)st.st_size == size ? 0 : -EBADMSG;
}

struct writer {
    int socket;
    uint8_t *ring;
    int fd; /* -EBADF: none */
    uint32_t file;
    off_t offset;
    bool failed;
};

static void answer(const struct writer *w, enum copier_answer_kind kind, uint32_t slot, int code)
{
    const struct copier_answer a = {.kind = kind, .file = w->file, .slot = slot, .code = code};
    int r;

    do
        r = io_send_packet(w->socket, &a, sizeof a, NULL, 0, NULL, 0);
    while (r == -EAGAIN && io_wait(w->socket, POLLOUT, CLOCK_NEVER) == 0);
    if (r < 0)
        _exit(1); /* nobody is there any more */
}

/* The file is closed before the parent hears of an end: it may want to unmount what it lies on. */

static void fail(struct writer *w, int code)
{
    fd_closep(&w->fd);
    if (!w->failed)
        answer(w, COPIER_FAILED, 0, code);
    w->failed = true;
}

static void write_slot(struct writer *w, const struct copier_order *o)
{
    uint8_t *data = w->ring + (size_t)o->slot * COPIER_SLOT_BYTES;
    uint8_t *spare = w->ring + (size_t)COPIER_SLOTS * COPIER_SLOT_BYTES;

    if (!w->failed && o->file == w->file && w->fd >= 0) {
        int r = write_all(w->fd, data, o->len, w->offset);

        /* Begin with the slow part now, so that little is left to do at the end. */
        if (r == 0)
            (void)sync_file_range(w->fd, w->offset, o->len, SYNC_FILE_RANGE_WRITE);
        if (r == 0)
            r = compare(w->fd, data, o->len, w->offset, spare, COPIER_SLOT_BYTES);
        if (r < 0)
            fail(w, -r);
        w->offset += o->len;
    }
    answer(w, COPIER_FREE, o->slot, 0);
}

static void end(struct writer *w, bool durable)
{
    if (w->failed || w->fd < 0)
        return;
    int r = durable && fsync(w->fd) < 0 ? -errno : 0;
    if (r == 0)
        r = copier_check_size(w->fd, (uint64_t)w->offset);
    fd_closep(&w->fd);
    if (r < 0)
        fail(w, -r);
    else
        answer(w, COPIER_DONE, 0, 0);
}

static void synchronise(struct writer *w, int fd)
{
    int r = fd < 0 ? fd : syncfs(fd) < 0 ? -errno : 0;

    if (r < 0)
        fail(w, -r);
    else
        answer(w, COPIER_DONE, 0, 0);
}

static void obey(struct writer *w, const struct copier_order *o, int fd)
{
    switch ((enum copier_order_kind)o->kind) {
    case COPIER_BEGIN:
    case COPIER_SYNC:
        fd_closep(&w->fd);
        w->file = o->file;
        w->offset = 0;
        w->failed = false;
        if (o->kind == COPIER_BEGIN)
            w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* not where a C library writes its last words */
        else
            synchronise(w, fd);
        if (o->kind == COPIER_BEGIN && w->fd < 0)
            fail(w, errno);
        break;
    case COPIER_SLOT:
        write_slot(w, o);
        break;
    case COPIER_END:
        end(w, o->durable);
        break;
    case COPIER_DROP:
        fd_closep(&w->fd);
        break;
    }
}

/* The handlers and masks of the program that this was forked from are nothing to this process. */
static void reset_signals(void)
{
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &normal, NULL);
    (void)sigaction(SIGXFSZ, &ignored, NULL); /* so that write(2) says EFBIG */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_others(int socket)
{
    if (socket > 0)
        (void)syscall(SYS_close_range, 0u, (unsigned)socket - 1, 0u);
    (void)syscall(SYS_close_range, (unsigned)socket + 1, ~0u, 0u);
}

_Noreturn void copier_child_main(int socket, pid_t parent, uint8_t *ring)
{
    struct writer w = {.socket = socket, .ring = ring, .fd = -EBADF};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    (void)setsid(); /* a terminal's ^C is for the parent, which ends this one */
    (void)prctl(PR_SET_NAME, "atoll-copier");
    reset_signals();
    close_others(socket);
    for (;;) {
        struct copier_order o;
        int fds[IO_FDS_MAX];
        size_t n_fds;
        ssize_t n = io_recv_packet(socket, &o, sizeof o, fds, &n_fds);

        if (n == -EAGAIN && io_wait(socket, POLLIN, CLOCK_NEVER) == 0)
            continue;
        if (n != (ssize_t)sizeof o || o.slot >= COPIER_SLOTS || o.len > COPIER_SLOT_BYTES)
            _exit(1);
        obey(&w, &o, n_fds > 0 ? fds[0] : -EBADF);
        for (size_t i = 0; i < n_fds; i++)
            fd_closep(&fds[i]);
    }
}
