/* SPDX-License-Identifier: Apache-2.0 */
/* Copying one file: asked for, read, compared with what it was. */
#include "export/export_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

enum {
    STEP_BYTES = 4 * 1024 * 1024,   /* read at once, so that the loop serves others too */
    RANGE_BYTES = 16 * 1024 * 1024, /* asked for at once in-band: backends hold it in memory */
    TICK_US = 1000,
    TICKS_MAX = 50,
};

static void stop(struct export_file *f)
{
    struct loop *l = f->source->loop;

    f->under_way = false;
    loop_at(l, &f->step, CLOCK_NEVER);
    loop_at(l, &f->allowance, CLOCK_NEVER);
    loop_forget(l, &f->input);
    file_op_cancel(&f->op);
    copier_stop(&f->copier);
    fd_closep(&f->from);
}

void export_file_stop(struct export_file *f)
{
    if (f->under_way)
        stop(f);
}

static void fail(struct export_file *f, const struct error *err)
{
    struct error copy = *err; /* it may lie in what is stopped */

    stop(f);
    f->failed(f, &copy);
}

static void fail_changed(struct export_file *f)
{
    struct error err = ERROR_INIT;

    (void)source_changed(f->path, &err);
    fail(f, &err);
}

static void fail_errno(struct export_file *f, int code, const char *what)
{
    struct error err = ERROR_INIT;

    (void)error_set(&err, ERROR_TERMINAL, code, "%s: %s", what, strerror(code));
    fail(f, &err);
}

static int time_over(struct loop *l, struct loop_timer *t)
{
    struct export_file *f = t->owner;
    struct error err = ERROR_INIT;

    (void)l;
    (void)source_too_slow(f->path, source_allowance_us(f->size), &err);
    fail(f, &err);
    return 0;
}

static void set_allowance(struct export_file *f)
{
    loop_at(f->source->loop, &f->allowance, f->started_us + source_allowance_us(f->size));
}

/* It is written and compared. */
static void copied(struct copier *w)
{
    struct export_file *f = w->owner;

    stop(f);
    f->done(f);
}

static void copy_failed(struct copier *w, const struct error *err)
{
    fail(w->owner, err);
}

/* Comparing */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_unchanged(const struct export_file *f)
{
    const struct stat *a = &f->before;
    struct stat b;

    return fstat(f->from, &b) == 0 && a->st_size == b.st_size && a->st_ino == b.st_ino &&
           same_time(&a->st_mtim, &b.st_mtim) && same_time(&a->st_ctim, &b.st_ctim);
}

static void finish(struct export_file *f)
{
    loop_forget(f->source->loop, &f->input);
    copier_finish(&f->copier, f->durable);
}

static void looked_again(struct file_op *op, const struct file_info *info, int fd)
{
    struct export_file *f = op->owner;

    fd_closep(&fd);
    f->known = info->kind == FILE_REGULAR && info->size == f->size && info->mtime_ns == f->mtime_ns;
}

static void look_done(struct file_op *op, struct reader message)
{
    struct export_file *f = op->owner;

    (void)message;
    if (f->known)
        finish(f);
    else
        fail_changed(f);
}

static void op_failed(struct file_op *op, const struct error *err)
{
    struct export_file *f = op->owner;

    if (err->code == ESTALE || (f->known && err->code == ENOENT))
        fail_changed(f);
    else
        fail(f, err);
}

/* In-band there is no descriptor to look at: what is told of the path must be the same. */
static void look_again(struct export_file *f)
{
    static const struct file_op_events events = {
        .info = looked_again, .done = look_done, .failed = op_failed};
    const struct file_request x = {.path = f->path, .length = UINT64_MAX, .max_bytes = UINT64_MAX};
    struct error err = ERROR_INIT;

    file_op_cancel(&f->op); /* it is over, and its stream is let go of */
    f->op.events = &events;
    if (file_op_start(&f->source->files, &f->op, MSG_STAT, &x, -EBADF, &err) < 0)
        fail(f, &err);
}

static void ask_range(struct export_file *f);

/* All that was to come has come. */
static void all_read(struct export_file *f)
{
    bool in_band = f->source->in_band, whole = f->copier.bytes == f->size;

    if (f->copier.bytes < f->size && in_band)
        ask_range(f);
    else if (whole && in_band)
        look_again(f);
    else if (whole && is_unchanged(f))
        finish(f);
    else
        fail_changed(f);
}

/* More came than there was. */
static void grew(struct export_file *f)
{
    struct error err = ERROR_INIT;
    struct stat st;

    if (!f->source->in_band && fstat(f->from, &st) == 0 &&
        source_check_size(f->source, f->path, (uint64_t)st.st_size, &err) < 0)
        fail(f, &err);
    else
        fail_changed(f);
}

/* Reading */

static ssize_t read_some(const struct export_file *f, uint8_t *room, size_t n)
{
    ssize_t got;

    do /* where an open file stands is a matter of whoever opened it */
        got = f->source->in_band ? read(f->from, room, n)
                                 : pread(f->from, room, n, (off_t)f->copier.bytes);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* Reads as long as there is something, room for it, and others can wait. */
static void read_on(struct export_file *f)
{
    struct error err = ERROR_INIT;
    size_t room;

    for (size_t budget = STEP_BYTES; budget > 0;) {
        uint8_t *to = copier_room(&f->copier, &room);
        if (!to) {
            (void)loop_change(f->source->loop, &f->input, 0);
            return;
        }
        ssize_t n = read_some(f, to, room < budget ? room : budget);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            fail_errno(f, (int)-n, "the file cannot be read");
            return;
        }
        if (n == 0) {
            loop_forget(f->source->loop, &f->input);
            f->range_ended = true;
            if (!f->op.under_way)
                all_read(f);
            return;
        }
        budget -= (size_t)n;
        f->source->bytes += (uint64_t)n;
        if (copier_took(&f->copier, (size_t)n, &err) < 0) {
            fail(f, &err);
            return;
        }
        if (f->copier.bytes > f->size) {
            grew(f);
            return;
        }
    }
    if (f->input.fd < 0)
        loop_at(f->source->loop, &f->step, clock_now_us());
}

static void room_again(struct copier *w)
{
    struct export_file *f = w->owner;

    if (f->input.fd >= 0)
        (void)loop_change(f->source->loop, &f->input, EPOLLIN);
    else if (f->from >= 0)
        read_on(f);
}

static int input_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct export_file *f = s->owner;

    (void)l;
    (void)events;
    if (f->known) /* else its bytes have come before the word of them */
        read_on(f);
    return 0;
}

/*
 * Whether a write from now on would show in the file's times, which are those of the clock's last
 * tick (inode_set_ctime_current() in the kernel). One in the tick of the last change would not.
 */
static bool clock_has_moved_on(const struct stat *st)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
        return true;
    return now.tv_sec != st->st_ctim.tv_sec ? now.tv_sec > st->st_ctim.tv_sec
                                            : now.tv_nsec > st->st_ctim.tv_nsec;
}

static int begin(struct export_file *f, struct error *err)
{
    f->copier = (struct copier){
        .fd = f->to, .owner = f, .more = room_again, .done = copied, .failed = copy_failed};
    return source_copy(f->source, &f->copier, f->size, err);
}

/* The first and the following steps with an open file. */
static int step_due(struct loop *l, struct loop_timer *t)
{
    struct export_file *f = t->owner;
    struct error err = ERROR_INIT;

    if (f->copier.state) {
        read_on(f);
        return 0;
    }
    if (fstat(f->from, &f->before) < 0) {
        fail_errno(f, errno, "the file cannot be looked at");
        return 0;
    }
    if (!clock_has_moved_on(&f->before) && f->waited++ < TICKS_MAX) {
        loop_at(l, t, clock_after_us(TICK_US));
        return 0;
    }
    f->size = (uint64_t)f->before.st_size;
    f->mode = f->before.st_mode & 0777;
    set_allowance(f);
    if (source_check_size(f->source, f->path, f->size, &err) < 0 || begin(f, &err) < 0)
        fail(f, &err);
    else
        read_on(f);
    return 0;
}

/* Asking */

/* The word of a file that comes in-band: the first time it is kept, then compared. */
static int hear_info(struct export_file *f, const struct file_info *info, struct error *err)
{
    if (f->known)
        return info->size == f->size && info->mtime_ns == f->mtime_ns
                   ? 0
                   : source_changed(f->path, err);
    f->known = true;
    f->size = info->size;
    f->mtime_ns = info->mtime_ns;
    f->mode = info->mode & 0777;
    set_allowance(f);
    int r = source_check_size(f->source, f->path, f->size, err);
    return r < 0 ? r : begin(f, err);
}

/* The rest waits for the loop: an operation must not be given up within its own word. */
static void opened(struct file_op *op, const struct file_info *info, int fd)
{
    struct export_file *f = op->owner;

    if (!f->source->in_band) {
        f->from = fd;
        f->known = true;
        return;
    }
    struct error err = ERROR_INIT;
    if (hear_info(f, info, &err) < 0)
        fail(f, &err);
}

static void range_done(struct file_op *op, struct reader message)
{
    struct export_file *f = op->owner;

    (void)message;
    if (!f->source->in_band)
        loop_at(f->source->loop, &f->step, clock_now_us());
    else if (f->range_ended)
        all_read(f);
}

static const struct file_op_events read_events = {
    .info = opened, .done = range_done, .failed = op_failed};

/* The whole file where it can be passed, else the next range of it through a pipe. */
static void ask_range(struct export_file *f)
{
    struct file_request x = {.path = f->path, .length = UINT64_MAX, .max_bytes = UINT64_MAX};
    struct error err = ERROR_INIT;
    int ends[2] = {-EBADF, -EBADF}, r = 0;

    file_op_cancel(&f->op); /* the range before is over, and its stream is let go of */
    if (f->source->in_band) {
        x.offset = f->copier.bytes;
        x.length = RANGE_BYTES;
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
            fail_errno(f, errno, "cannot make a pipe");
            return;
        }
        fd_closep(&f->from);
        f->from = ends[0];
        f->range_ended = false;
        r = loop_watch(f->source->loop, &f->input, f->from, EPOLLIN);
    }
    f->op.events = &read_events;
    if (r < 0) {
        fd_closep(&ends[1]);
        fail_errno(f, -r, "cannot watch a pipe");
    } else if (file_op_start(&f->source->files, &f->op, MSG_READ, &x, ends[1], &err) < 0) {
        fail(f, &err);
    }
}

void export_file_start(struct export_file *f)
{
    f->under_way = true;
    f->known = f->range_ended = false;
    f->from = -EBADF;
    f->size = f->mtime_ns = 0;
    f->mode = 0;
    f->waited = 0;
    f->copier = (struct copier){.fd = -EBADF};
    f->started_us = clock_now_us();
    f->op = (struct file_op){.owner = f, .pipe_fd = -EBADF};
    f->input = (struct loop_source){.name = "export", .fd = -EBADF, .owner = f};
    f->input.ready = input_ready;
    f->step = (struct loop_timer){.name = "export", .owner = f, .due = step_due};
    f->allowance = (struct loop_timer){.name = "export", .owner = f, .due = time_over};
    set_allowance(f);
    ask_range(f);
}
