/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on files: answers, and bytes into and out of memory. */
#include "api/file_task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/file_error.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum {
    READ_BYTES_AT_ONCE = 4 * 1024 * 1024, /* then other sources of the loop get their turn */
    LIST_BYTES_MAX = 64 * 1024 * 1024,
    DELIVER_US = 10000, /* how often a slow reader is looked after */
};

/* It is over, well or badly: nothing of it moves any more. */
static void settle(struct file_task *t)
{
    struct loop *l = &t->op.a->loop;

    loop_at(l, &t->more, CLOCK_NEVER);
    loop_forget(l, &t->feed);
    fd_closep(&t->source_fd);
    if (t->own.main) {
        files_done(&t->own);
        t->own.main = NULL;
    }
}

static void finish(struct file_task *t)
{
    settle(t);
    op_done(&t->op);
}

static void file_failed(struct file_op *f, const struct error *err)
{
    struct file_task *t = f->owner;

    settle(t);
    if (t->op.done && !t->op.failed) { /* a read whose bytes were still coming */
        t->op.failed = true;
        (void)api_error(&t->op.error, err);
    }
    op_fail(&t->op, err);
}

void file_task_fail(struct file_task *t, int code, const char *what)
{
    settle(t);
    op_fail_errno(&t->op, code, what);
}

static int keep_info(struct file_task *t, const struct file_info *x)
{
    if (x->link_target && !(t->target = strdup(x->link_target)))
        return -ENOMEM;
    t->info = (struct atoll_file){
        .kind = (int)x->kind,
        .mode = x->mode,
        .size = x->size,
        .mtime_ns = x->mtime_ns,
        .target = t->target,
        .target_kind = (int)x->target_kind,
    };
    return 0;
}

static int read_more(struct loop *l, struct loop_timer *timer)
{
    struct file_task *t = timer->owner;
    size_t budget = READ_BYTES_AT_ONCE;

    while (t->at < t->len && budget > 0) {
        size_t want = t->len - t->at < budget ? t->len - t->at : budget;
        ssize_t n = pread(t->source_fd, t->bytes + t->at, want, (off_t)(t->offset + t->at));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            file_task_fail(t, errno, "the file could not be read");
            return 0;
        }
        if (n == 0) { /* it has become shorter */
            t->len = t->at;
            break;
        }
        t->at += (size_t)n;
        budget -= (size_t)n;
    }
    if (t->at < t->len) {
        loop_at(l, timer, clock_now_us());
        return 0;
    }
    t->bytes[t->len] = '\0';
    finish(t);
    return 0;
}

static void too_large(struct file_task *t, uint64_t size, uint64_t max)
{
    const struct file_fault fault = {.code = EFBIG, .path = "the file", .size = size, .max = max};
    struct error err = ERROR_INIT;

    (void)file_error(&fault, &err);
    settle(t);
    op_fail(&t->op, &err);
}

/* The part of a file of @size bytes that was asked for. */
static uint64_t range_of(const struct file_task *t, uint64_t size)
{
    uint64_t rest = size > t->offset ? size - t->offset : 0;

    return rest < t->length ? rest : t->length;
}

/* Reads the range into memory; what the kernel says of the size counts, not who opened the file. */
static void read_file(struct file_task *t, int fd)
{
    struct stat st;
    uint64_t len;

    t->source_fd = fd;
    if (fstat(fd, &st) < 0) {
        file_task_fail(t, errno, "the file could not be read");
        return;
    }
    len = range_of(t, (uint64_t)st.st_size);
    if (len > t->max_bytes || len >= SIZE_MAX / 2) {
        too_large(t, len, t->max_bytes);
        return;
    }
    t->bytes = malloc(len + 1);
    if (!t->bytes) {
        file_task_fail(t, ENOMEM, "the file does not fit into memory");
        return;
    }
    t->len = len;
    (void)read_more(&t->op.a->loop, &t->more);
}

static void file_info_came(struct file_op *f, const struct file_info *info, int fd)
{
    struct file_task *t = f->owner;

    if (keep_info(t, info) < 0) {
        fd_closep(&fd);
        file_op_cancel(f);
        file_task_fail(t, ENOMEM, "cannot keep the answer");
        return;
    }
    if (t->form == TASK_FILE && fd >= 0) {
        (void)lseek(fd, (off_t)t->offset, SEEK_SET);
        t->fd = fd;
    } else if (t->form == TASK_BYTES && fd >= 0) {
        read_file(t, fd);
    } else {
        fd_closep(&fd);
    }
    if (t->form == TASK_FILE && !t->op.done) /* in-band its bytes are coming through the pipe */
        op_done(&t->op);
}

static int keep_bytes(void *owner, const uint8_t *data, size_t len)
{
    struct file_task *t = owner;
    uint64_t most = t->max_bytes < t->length ? t->max_bytes : t->length;

    if (t->op.done)
        return 0;
    if (len > most - t->len)
        return -EPROTO;             /* more than was asked for */
    if (t->len + len + 1 > t->at) { /* of a read in-band, the room that there is */
        size_t room = t->at ? t->at * 2 : 4096;
        uint8_t *p;

        while (room < t->len + len + 1)
            room *= 2;
        p = realloc(t->bytes, room);
        if (!p) {
            file_op_cancel(&t->file);
            file_task_fail(t, ENOMEM, "the file does not fit into memory");
            return 0;
        }
        t->bytes = p;
        t->at = room;
    }
    memcpy(t->bytes + t->len, data, len);
    t->len += len;
    t->bytes[t->len] = '\0';
    return 0;
}

/* A copy of a message, for views. NULL without memory. */
static uint8_t *keep_message(struct file_task *t, struct reader message)
{
    size_t len = reader_left(&message);
    uint8_t **more = realloc(t->messages, (t->n_messages + 1) * sizeof *more);
    uint8_t *copy;

    if (!more)
        return NULL;
    t->messages = more;
    copy = malloc(len + 1);
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, message.p, len);
    t->messages[t->n_messages++] = copy;
    t->message_bytes += len;
    return copy;
}

static int add_entry(struct file_task *t, const struct file_info *x)
{
    /* Grows by doubling, at powers of two. */
    if ((t->n_entries & (t->n_entries - 1)) == 0) {
        struct atoll_file *more =
            realloc(t->entries, (t->n_entries ? t->n_entries * 2 : 1) * sizeof *more);

        if (!more)
            return -ENOMEM;
        t->entries = more;
    }
    t->entries[t->n_entries++] = (struct atoll_file){
        .name = x->name,
        .kind = (int)x->kind,
        .mode = x->mode,
        .size = x->size,
        .mtime_ns = x->mtime_ns,
        .target = x->link_target,
        .target_kind = (int)x->target_kind,
    };
    return 0;
}

static int entries_came(struct file_op *f, struct reader message)
{
    struct file_task *t = f->owner;
    size_t len = reader_left(&message);
    struct file_info x;
    struct reader r;
    int more;

    if (t->message_bytes + len > LIST_BYTES_MAX)
        return -EFBIG;
    uint8_t *copy = keep_message(t, message);
    if (!copy)
        return -ENOMEM;
    r = reader_over(copy, len);
    while ((more = file_entry_next(&r, &x)) > 0)
        if (add_entry(t, &x) < 0)
            return -ENOMEM;
    return more;
}

static int keep_skipped(struct file_task *t, struct reader message)
{
    size_t len = reader_left(&message);
    uint8_t *copy = keep_message(t, message);
    struct reader r = reader_over(copy ? copy : (const uint8_t *)"", copy ? len : 0);
    const char *path;

    if (!copy)
        return -ENOMEM;
    while ((path = text_next(&r, TAG_SKIPPED))) {
        const char **more = realloc(t->skipped, (t->n_skipped + 1) * sizeof *more);

        if (!more)
            return -ENOMEM;
        t->skipped = more;
        t->skipped[t->n_skipped++] = path;
    }
    return 0;
}

/* What has come in-band is still on its way into the caller's pipe. */
static int deliver(struct loop *l, struct loop_timer *timer)
{
    struct file_task *t = timer->owner;

    if (bridge_output_busy(&t->file.out))
        loop_at(l, timer, clock_after_us(DELIVER_US));
    else
        finish(t);
    return 0;
}

static int keep_results(struct file_task *t, struct reader message)
{
    if (t->form == TASK_BYTES && !t->bytes) /* an empty file */
        t->bytes = calloc(1, 1);
    if (t->form == TASK_BYTES)
        return t->bytes ? 0 : -ENOMEM;
    return t->file.type == MSG_PACK || t->file.type == MSG_UNPACK ? keep_skipped(t, message) : 0;
}

static void file_done(struct file_op *f, struct reader message)
{
    struct file_task *t = f->owner;

    if (t->op.done)
        return;
    if (t->form == TASK_BYTES && t->source_fd >= 0)
        return; /* the file is here and still being read */
    if (keep_results(t, message) < 0) {
        file_task_fail(t, ENOMEM, "cannot keep the answer");
        return;
    }
    t->more.due = deliver;
    (void)deliver(&t->op.a->loop, &t->more);
}

static const struct file_op_events events = {
    .info = file_info_came,
    .entries = entries_came,
    .done = file_done,
    .failed = file_failed,
};

/* Feeds a large write from memory; its end is the commit. */
static int feed_ready(struct loop *l, struct loop_source *source, uint32_t ready)
{
    struct file_task *t = source->owner;

    (void)ready;
    while (t->at < t->len) {
        ssize_t n = write(t->source_fd, t->bytes + t->at, t->len - t->at);

        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != EINTR)
            break; /* nobody takes it any more; why is told */
        if (n > 0)
            t->at += (size_t)n;
    }
    loop_forget(l, source);
    fd_closep(&t->source_fd);
    if (t->at == t->len)
        file_op_commit(&t->file);
    return 0;
}

static bool file_cancel(struct atoll_op *op)
{
    struct file_task *t = (struct file_task *)op;

    file_op_cancel(&t->file);
    settle(t);
    return true;
}

static void file_detach(struct atoll_op *op)
{
    (void)file_cancel(op);
}

static void file_release(struct atoll_op *op)
{
    struct file_task *t = (struct file_task *)op;

    if (op->sb)
        file_op_cancel(&t->file);
    settle(t);
    fd_closep(&t->fd);
    for (size_t i = 0; i < t->n_messages; i++)
        free(t->messages[i]);
    free(t->messages);
    free(t->entries);
    free(t->skipped);
    free(t->target);
    free(t->bytes);
}

const struct op_class file_class = {
    .cancel = file_cancel, .detach = file_detach, .release = file_release};

struct file_task *file_task_new(struct atoll_sandbox *sb, enum task_form form, bool own)
{
    struct file_task *t = op_new(sb->a, sb, &file_class, sizeof *t);

    if (!t)
        return NULL;
    t->form = form;
    t->fd = t->source_fd = t->file.pipe_fd = -EBADF;
    t->file.events = &events;
    t->file.owner = t;
    t->file.sink = form == TASK_BYTES ? keep_bytes : NULL;
    t->length = t->max_bytes = UINT64_MAX;
    t->more = (struct loop_timer){.name = "read", .owner = t, .due = read_more};
    t->feed = (struct loop_source){.name = "feed", .fd = -EBADF, .owner = t, .ready = feed_ready};
    if (own && !sb->session.in_band)
        t->own.main = &sb->session;
    return t;
}

void file_task_start(struct file_task *t, uint16_t type, const struct file_request *x, int pipe_fd)
{
    struct atoll_sandbox *sb = t->op.sb;
    struct error err = ERROR_INIT;

    if (file_op_start(t->own.main ? &t->own : &sb->files, &t->file, type, x, pipe_fd, &err) < 0) {
        settle(t);
        op_fail(&t->op, &err);
        return;
    }
    if (t->form == TASK_FEED && loop_watch(&t->op.a->loop, &t->feed, t->source_fd, EPOLLOUT) < 0) {
        file_op_cancel(&t->file);
        file_task_fail(t, EMFILE, "cannot feed the file's content");
    }
}

size_t file_count(const struct atoll_op *op)
{
    const struct file_task *t = (const struct file_task *)op;

    return t->n_entries + t->n_skipped;
}

const struct atoll_file *atoll_op_file(const struct atoll_op *op, size_t i)
{
    const struct file_task *t = (const struct file_task *)op;

    if (!op_is(op, &file_class) || !op->done || op->failed)
        return NULL;
    if (t->file.type == MSG_LIST)
        return i < t->n_entries ? &t->entries[i] : NULL;
    return i == 0 && (t->file.type == MSG_READ || t->file.type == MSG_STAT) ? &t->info : NULL;
}

const char *atoll_op_skipped(const struct atoll_op *op, size_t i)
{
    const struct file_task *t = (const struct file_task *)op;

    return op_is(op, &file_class) && op->done && i < t->n_skipped ? t->skipped[i] : NULL;
}

const void *file_output(const struct atoll_op *op, size_t *ret_len)
{
    const struct file_task *t = (const struct file_task *)op;

    if (t->form != TASK_BYTES)
        return NULL;
    *ret_len = t->len;
    return t->bytes;
}

int file_take_fd(struct atoll_op *op, int i)
{
    struct file_task *t = (struct file_task *)op;

    if (i != 0 || (t->form == TASK_FILE && (!op->done || op->failed)))
        return -EBADF;
    return TAKE_FD(t->fd);
}
