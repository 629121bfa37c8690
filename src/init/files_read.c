/* SPDX-License-Identifier: Apache-2.0 */
/* READ, STAT and LIST. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "init/directory.h"
#include "init/files.h"
#include "base/guards.h"

enum { PROC_FILE_BYTES_MAX = 16 * 1024 * 1024 };

/*
 * A file of /proc is written as it is read, for whoever reads it: through a descriptor, the host
 * would get to see its own. So it is read here, and the copy is handed out.
 */
static int copy_of_proc(struct files *f, int from, uint64_t *ret_size)
{
    int copy = memfd_create("atoll-file", MFD_CLOEXEC);
    ssize_t n = 0;
    int r = copy < 0 ? -errno : 0;

    *ret_size = 0;
    while (r == 0 && (n = files_read_some(from, f->buffer, sizeof f->buffer)) > 0) {
        *ret_size += (uint64_t)n;
        r = *ret_size > PROC_FILE_BYTES_MAX ? -EFBIG : files_write_all(copy, f->buffer, (size_t)n);
    }
    if (r == 0 && n < 0)
        r = (int)n;
    if (r < 0 && copy >= 0)
        (void)close(copy);
    return r < 0 ? r : copy;
}

/* The open file behind @fd, which may be a copy; its size is put right in @info. */
static int open_content(struct files *f, int fd, struct file_info *info)
{
    struct statfs fs;
    int open = files_reopen(fd, O_RDONLY);

    if (open < 0 || fstatfs(open, &fs) < 0 || fs.f_type != PROC_FS_MAGIC)
        return open;
    int copy = copy_of_proc(f, open, &info->size);
    (void)close(open);
    return copy;
}

/* Bytes that the asked range of a file has. */
static uint64_t range_bytes(const struct file_request *x, uint64_t size)
{
    uint64_t left = x->offset < size ? size - x->offset : 0;

    return x->length < left ? x->length : left;
}

void files_read(struct files *f, const struct file_request *x)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    struct stat st;
    int fd = files_look(x->path, 0, &st), content;

    if (fd < 0) {
        files_fault(f, fd);
        return;
    }
    struct file_info info = files_info(&st, NULL, NULL);
    if (info.kind != FILE_REGULAR) {
        (void)close(fd);
        files_fault_kind(f, info.kind);
        return;
    }
    content = open_content(f, fd, &info);
    (void)close(fd);
    if (content < 0 && content != -EFBIG) {
        files_fault(f, content);
        return;
    }
    if (content < 0 || range_bytes(x, info.size) > x->max_bytes) {
        files_fault_size(f, info.size, content < 0 ? PROC_FILE_BYTES_MAX : x->max_bytes);
    } else {
        file_info_encode(&w, &info);
        link_send(MSG_FILE, f->id, &w, content);
    }
    if (content >= 0)
        (void)close(content);
}

void files_stat(struct files *f, const struct file_request *x)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    struct stat st;
    int fd = files_look(x->path, x->flags & FILE_NO_FOLLOW ? O_NOFOLLOW : 0, &st);

    if (fd < 0) {
        files_fault(f, fd);
        return;
    }
    struct file_info info = files_info(&st, NULL, NULL);
    if (info.kind == FILE_LINK) {
        ssize_t n = readlinkat(fd, "", f->target, sizeof f->target - 1);

        f->target[n > 0 ? n : 0] = '\0';
        info.link_target = f->target;
    }
    (void)close(fd);
    file_info_encode(&w, &info);
    link_send(MSG_FILE, f->id, &w, -1);
}

/* What the entry @name of the folder is; false when it has gone meanwhile. */
static bool examine(struct files *f, int folder, const char *name, struct file_info *ret)
{
    struct stat st;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *ret = files_info(&st, name, NULL);
    if (ret->kind != FILE_LINK)
        return true;
    ssize_t n = readlinkat(folder, name, f->target, sizeof f->target - 1);
    f->target[n > 0 ? n : 0] = '\0';
    ret->link_target = f->target;
    ret->target_kind = fstatat(folder, name, &st, 0) == 0 ? files_kind(st.st_mode) : FILE_LINK;
    return true;
}

static void send_entries(struct files *f, struct writer *w)
{
    if (writer_len(w) > 0)
        link_send(MSG_LISTED, f->id, w, -1);
    *w = writer_over(f->reply, sizeof f->reply);
}

static int list_entries(struct files *f, int folder)
{
    struct writer w = writer_over(f->reply, sizeof f->reply);
    struct directory d = directory_over(folder, f->buffer, sizeof f->buffer);
    const char *name;

    while ((name = directory_next(&d))) {
        struct file_info info;

        if (!examine(f, folder, name, &info))
            continue;
        if (file_entry_size(&info) > (size_t)(w.end - w.p))
            send_entries(f, &w);
        file_entry_encode(&w, &info);
    }
    if (d.error == 0)
        send_entries(f, &w);
    return d.error;
}

void files_list(struct files *f, const struct file_request *x)
{
    struct writer nothing = writer_over(f->reply, sizeof f->reply);
    int fd = open(x->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    int r = fd < 0 ? -errno : list_entries(f, fd);

    if (fd >= 0)
        (void)close(fd);
    if (r < 0)
        files_fault(f, r);
    else
        files_done(f, &nothing);
}
