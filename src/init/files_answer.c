/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered to a file operation: what a file is, that it is done, why it is not. */
#include <errno.h>

#include "init/files.h"
#include "base/guards.h"

void files_fault(struct files *f, int code)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    const struct file_fault x = {.code = (uint32_t)-code, .path = f->path};

    file_fault_encode(&w, 0, &x);
    link_send(MSG_ERROR, f->id, &w, -1);
}

void files_fault_kind(struct files *f, uint32_t kind)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    const struct file_fault x = {
        .code = kind == FILE_FOLDER ? EISDIR : EINVAL, .path = f->path, .kind = kind};

    /* A device has no end: whatever the limit, it is over it. */
    file_fault_encode(&w, kind == FILE_DEVICE ? 1 : 0, &x);
    link_send(MSG_ERROR, f->id, &w, -1);
}

void files_fault_size(struct files *f, uint64_t size, uint64_t max)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    const struct file_fault x = {.code = EFBIG, .path = f->path, .size = size, .max = max};

    file_fault_encode(&w, 1, &x);
    link_send(MSG_ERROR, f->id, &w, -1);
}

void files_done(struct files *f, const struct writer *w)
{
    link_send(MSG_DONE, f->id, w, -1);
}

uint32_t files_kind(mode_t mode)
{
    if (S_ISREG(mode))
        return FILE_REGULAR;
    if (S_ISDIR(mode))
        return FILE_FOLDER;
    if (S_ISLNK(mode))
        return FILE_LINK;
    if (S_ISFIFO(mode))
        return FILE_FIFO;
    return S_ISSOCK(mode) ? FILE_SOCKET : FILE_DEVICE;
}

struct file_info files_info(const struct stat *st, const char *name, const char *target)
{
    int64_t s = st->st_mtim.tv_sec;

    return (struct file_info){
        .name = name,
        .kind = files_kind(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime_ns = s < 0 ? 0 : (uint64_t)s * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
        .link_target = target,
    };
}
