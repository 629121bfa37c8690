/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on files that callers start. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/file_task.h"
#include "base/cleanup.h"
#include "base/guards.h"

/* Content that travels in the request itself; more goes through a pipe. */
enum { INLINE_BYTES_MAX = 256 * 1024 };

/* A pipe whose end @ours (0: reading) is non-blocking and the caller's. */
static int open_pipe(int ours, int *ret_ours, int *ret_theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_ours = ends[ours];
    *ret_theirs = ends[1 - ours];
    if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0) {
        int r = -errno;

        fd_closep(ret_ours);
        fd_closep(ret_theirs);
        return r;
    }
    return 0;
}

static struct file_request request(const char *path)
{
    return (struct file_request){.path = path, .length = UINT64_MAX, .max_bytes = UINT64_MAX};
}

static struct atoll_op *read_as(struct atoll_sandbox *sb, enum task_form form, const char *path,
                                uint64_t offset, uint64_t length, uint64_t max_bytes)
{
    struct file_task *t = file_task_new(sb, form, false);
    struct file_request x = request(path);
    int theirs = -EBADF, r = 0;

    if (!t)
        return NULL;
    x.offset = t->offset = offset;
    x.length = t->length = length;
    x.max_bytes = t->max_bytes = max_bytes;
    if (form == TASK_FILE && sb->session.in_band)
        r = open_pipe(0, &t->fd, &theirs);
    if (offset > INT64_MAX)
        file_task_fail(t, EINVAL, "the offset is too large");
    else if (r < 0)
        file_task_fail(t, -r, "cannot make a pipe");
    else
        file_task_start(t, MSG_READ, &x, TAKE_FD(theirs));
    fd_closep(&theirs);
    return &t->op;
}

struct atoll_op *atoll_read(struct atoll_sandbox *sb, const char *path, uint64_t offset,
                            uint64_t length, uint64_t max_bytes)
{
    return read_as(sb, TASK_FILE, path, offset, length, max_bytes);
}

struct atoll_op *atoll_read_bytes(struct atoll_sandbox *sb, const char *path, uint64_t offset,
                                  uint64_t length, uint64_t max_bytes)
{
    return read_as(sb, TASK_BYTES, path, offset, length, max_bytes);
}

static struct file_request write_request(const char *path, uint32_t mode)
{
    struct file_request x = request(path);

    if (mode != ATOLL_KEEP_MODE) {
        x.flags |= FILE_MODE_SET;
        x.mode = mode & 07777;
    }
    return x;
}

static void feed(struct file_task *t, const char *path, const void *data, size_t len, uint32_t mode)
{
    struct file_request x = write_request(path, mode);
    int theirs = -EBADF, r;

    t->bytes = malloc(len);
    if (!t->bytes) {
        file_task_fail(t, ENOMEM, "cannot keep the content");
        return;
    }
    memcpy(t->bytes, data, len);
    t->len = len;
    r = open_pipe(1, &t->source_fd, &theirs);
    if (r < 0)
        file_task_fail(t, -r, "cannot make a pipe");
    else
        file_task_start(t, MSG_WRITE, &x, theirs);
}

struct atoll_op *atoll_write_bytes(struct atoll_sandbox *sb, const char *path, const void *data,
                                   size_t len, uint32_t mode)
{
    bool large = len > INLINE_BYTES_MAX;
    struct file_task *t = file_task_new(sb, large ? TASK_FEED : TASK_ANSWER, large);
    struct file_request x = write_request(path, mode);

    if (!t)
        return NULL;
    if (large) {
        feed(t, path, data, len, mode);
        return &t->op;
    }
    x.flags |= FILE_INLINE;
    x.data = len > 0 ? data : (const uint8_t *)"";
    x.len = len;
    file_task_start(t, MSG_WRITE, &x, -EBADF);
    return &t->op;
}

/* @ours: the end of the pipe that is the caller's, 0 to read. */
static struct atoll_op *stream(struct atoll_sandbox *sb, uint16_t type,
                               const struct file_request *x, int ours)
{
    struct file_task *t = file_task_new(sb, TASK_STREAM, true);
    int theirs = -EBADF, r;

    if (!t)
        return NULL;
    r = open_pipe(ours, &t->fd, &theirs);
    if (r < 0)
        file_task_fail(t, -r, "cannot make a pipe");
    else
        file_task_start(t, type, x, theirs);
    return &t->op;
}

struct atoll_op *atoll_write(struct atoll_sandbox *sb, const char *path, uint32_t mode)
{
    struct file_request x = write_request(path, mode);

    return stream(sb, MSG_WRITE, &x, 1);
}

void atoll_write_commit(struct atoll_op *op)
{
    struct file_task *t = (struct file_task *)op;

    if (!op_is(op, &file_class) || t->form != TASK_STREAM || t->file.type != MSG_WRITE || op->done)
        return;
    fd_closep(&t->fd); /* one that was not taken would keep the content from ending */
    file_op_commit(&t->file);
}

struct atoll_op *atoll_list_folder(struct atoll_sandbox *sb, const char *path)
{
    struct file_task *t = file_task_new(sb, TASK_ANSWER, false);
    struct file_request x = request(path);

    if (t)
        file_task_start(t, MSG_LIST, &x, -EBADF);
    return t ? &t->op : NULL;
}

struct atoll_op *atoll_stat(struct atoll_sandbox *sb, const char *path, bool follow)
{
    struct file_task *t = file_task_new(sb, TASK_ANSWER, false);
    struct file_request x = request(path);

    if (!follow)
        x.flags |= FILE_NO_FOLLOW;
    if (t)
        file_task_start(t, MSG_STAT, &x, -EBADF);
    return t ? &t->op : NULL;
}

struct atoll_op *atoll_pack(struct atoll_sandbox *sb, const char *path)
{
    struct file_request x = request(path);

    return stream(sb, MSG_PACK, &x, 0);
}

struct atoll_op *atoll_unpack(struct atoll_sandbox *sb, const char *path)
{
    struct file_request x = request(path);

    return stream(sb, MSG_UNPACK, &x, 1);
}
