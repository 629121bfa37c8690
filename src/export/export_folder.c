/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a folder: the stream is taken apart, each entry judged, placed, hashed and compared. */
#include "export/export_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "core/limits.h"
#include "export/host_error.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum {
    STEP_BYTES = 4 * 1024 * 1024, /* taken at once, so that the loop serves others too */
    PIPE_BYTES = 1024 * 1024,
    TRAILING_BYTES_MAX = 64 * 1024, /* behind the archive's end */
    ALLOWANCE_STEP_US = 1000 * 1000,
    IMPLIED_MODE = 0755, /* of folders that only a path in them mentions */
    /* A folder that its owner cannot change could not be replaced by the next export. */
    OWNER_MODE = 0700,
};

static void stop(struct export_folder *f)
{
    struct loop *l = f->source->loop;

    f->under_way = false;
    loop_at(l, &f->allowance, CLOCK_NEVER);
    loop_forget(l, &f->input);
    file_op_cancel(&f->op);
    copier_stop(&f->copier);
    fd_closep(&f->from);
    fd_closep(&f->file);
    fd_closep(&f->parent);
    free(f->buffer);
    f->buffer = NULL;
}

void export_folder_stop(struct export_folder *f)
{
    if (f->under_way)
        stop(f);
}

/* Errors */

static void fail(struct export_folder *f, const struct error *err)
{
    struct error copy = *err; /* it may lie in what is stopped */

    stop(f);
    f->failed(f, &copy);
}

/* The entry as it is called inside. */
static void show(const struct export_folder *f, char ret[static SOURCE_SHOWN_BYTES])
{
    char whole[PATH_MAX + TAR_PATH_MAX + 2];
    size_t n = strlen(f->path);

    (void)snprintf(whole, sizeof whole, "%s%s%s", f->path,
                   n > 0 && f->path[n - 1] != '/' && f->inside[0] ? "/" : "", f->inside);
    source_show(whole, ret);
}

/* Refuses the entry: "'PATH' WHY". */
static int refuse(const struct export_folder *f, int code, const char *why, const char *remedy,
                  struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];

    show(f, shown);
    (void)error_set(err, ERROR_RECOVERABLE, code, "'%s' %s", shown, why);
    return error_remedy(err, "%s", remedy);
}

static int refuse_kind(const struct export_folder *f, const char *kind, struct error *err)
{
    char why[128];

    (void)snprintf(why, sizeof why, "is %s, and a folder is exported whole or not at all", kind);
    return refuse(f, EINVAL, why, "Remove it, or export what is beside it", err);
}

static int cannot_write(const struct export_folder *f, int code, struct error *err)
{
    return host_error(err, code, "'%.*s' cannot be written", SOURCE_SHOWN_BYTES, f->at);
}

static int bad_stream(const struct export_folder *f, const char *why, struct error *err)
{
    return error_set(err, ERROR_RECOVERABLE, EBADMSG,
                     "what came of the folder cannot be read: at byte %llu, %s",
                     (unsigned long long)f->tar.offset, why);
}

static int time_due(struct loop *l, struct loop_timer *t)
{
    struct export_folder *f = t->owner;
    uint64_t allowance = LIMIT_EXPORT_US + f->bytes / SOURCE_BYTES_A_SECOND * 1000000;
    struct error err = ERROR_INIT;

    if (clock_now_us() < f->started_us + allowance) {
        loop_at(l, t, clock_after_us(ALLOWANCE_STEP_US));
        return 0;
    }
    (void)source_too_slow(f->path, allowance, &err);
    fail(f, &err);
    return 0;
}

/* Places */

/* From a path in the archive to f->inside and f->at. */
static int map_path(struct export_folder *f, const char *path, struct error *err)
{
    char *clean = f->clean;
    enum tar_path verdict = tar_path_check(path, strlen(path), clean);
    size_t first = strcspn(clean, "/");
    const char *rest = clean;

    if (verdict != TAR_PATH_OK)
        return bad_stream(f, tar_path_text(verdict), err);
    if (!f->has_top) {
        memcpy(f->top, clean, first);
        f->top[first] = '\0';
        f->has_top = true;
    }
    if (strcmp(f->top, ".") != 0) {
        if (strlen(f->top) != first || memcmp(f->top, clean, first) != 0)
            return bad_stream(f, "a path lies beside the folder", err);
        rest = clean + first + (clean[first] == '/');
    } else if (strcmp(clean, ".") == 0) {
        rest = "";
    }
    memcpy(f->inside, rest, strlen(rest) + 1);
    if (strlen(f->beneath) + 1 + strlen(rest) > TAR_PATH_MAX)
        return refuse(f, ENAMETOOLONG, "is too long a path", "Export it from a folder above", err);
    (void)snprintf(f->at, sizeof f->at, "%s%s%s", f->beneath, f->beneath[0] && rest[0] ? "/" : "",
                   rest);
    return 0;
}

/* Opens the folder that f->at lies in as f->parent. Return: its name there; NULL with an error. */
static const char *enter_parent(struct export_folder *f, struct error *err)
{
    const char *slash = strrchr(f->at, '/');
    const char *name = slash ? slash + 1 : f->at, *parent = slash ? f->at : ".";
    size_t n = slash ? (size_t)(slash - f->at) : 1;

    if (f->parent >= 0 && strlen(f->parent_path) == n && memcmp(parent, f->parent_path, n) == 0)
        return name;
    fd_closep(&f->parent);
    memcpy(f->parent_path, parent, n);
    f->parent_path[n] = '\0';
    f->parent = path_open_plain(f->root, f->parent_path, O_PATH | O_DIRECTORY, 0);
    if (f->parent == -ENOENT)
        f->parent = path_make_folders(f->root, f->parent_path, IMPLIED_MODE);
    if (f->parent >= 0)
        return name;
    (void)cannot_write(f, -f->parent, err);
    return NULL;
}

/* Entries */

static int add_folder(struct export_folder *f, struct error *err)
{
    mode_t mode = f->tar.entry.mode & 0777;
    const char *name;

    if (f->inside[0] == '\0')
        f->mode = mode;
    if (f->at[0] == '\0')
        return 0;
    name = enter_parent(f, err);
    if (!name)
        return -err->code;
    if (mkdirat(f->parent, name, mode | OWNER_MODE) < 0)
        return cannot_write(f, errno, err);
    return 0;
}

static int add_link(struct export_folder *f, struct error *err)
{
    const char *target = f->tar.entry.link, *name;

    if (!tar_link_stays(f->at, target, 0))
        return refuse(
            f, EXDEV, "is a link that leads out of the folder",
            "Make it lead to something in the folder, relative to its place, or remove it", err);
    name = enter_parent(f, err);
    if (!name)
        return -err->code;
    if (symlinkat(target, f->parent, name) < 0)
        return cannot_write(f, errno, err);
    return manifest_add_link(f->manifest, f->at, target) < 0
               ? error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory")
               : 0;
}

static void room_again(struct copier *w);
static void file_copied(struct copier *w);

static void copy_failed(struct copier *w, const struct error *err)
{
    fail(w->owner, err);
}

static int refuse_size(const struct export_folder *f, struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];

    show(f, shown);
    return source_check_size(f->source, shown, f->tar.entry.size, err);
}

static int begin_file(struct export_folder *f, struct error *err)
{
    const struct tar_entry *e = &f->tar.entry;
    const char *name;

    if (e->size > f->source->max_bytes)
        return refuse_size(f, err);
    name = enter_parent(f, err);
    if (!name)
        return -err->code;
    f->file = openat(f->parent, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
                     e->mode & 0777);
    if (f->file < 0 || fstat(f->file, &f->made) < 0)
        return cannot_write(f, errno, err);
    f->copier = (struct copier){
        .fd = f->file, .owner = f, .more = room_again, .done = file_copied, .failed = copy_failed};
    return source_copy(f->source, &f->copier, e->size, err);
}

static int begin_entry(struct export_folder *f, struct error *err)
{
    static const uint32_t kinds[TAR_KIND__MAX] = {
        [TAR_FILE] = FILE_REGULAR, [TAR_FOLDER] = FILE_FOLDER, [TAR_SYMLINK] = FILE_LINK};
    const enum tar_kind kind = f->tar.entry.kind;
    int r = map_path(f, f->tar.entry.path, err);

    if (r < 0)
        return r;
    if (f->inside[0] == '\0' && kind != TAR_FOLDER)
        return refuse(f, ENOTDIR, "is not a folder any more", "Export it again", err);
    switch (kind) {
    case TAR_FIFO:
        return refuse_kind(f, "a FIFO", err);
    case TAR_CHAR_DEVICE:
    case TAR_BLOCK_DEVICE:
        return refuse_kind(f, "a device", err);
    case TAR_HARDLINK: /* whoever packs writes files */
    case TAR_KIND__MAX:
        return bad_stream(f, "there is a hard link", err);
    case TAR_FILE:
    case TAR_FOLDER:
    case TAR_SYMLINK:
        break;
    }
    r = source_count(f->source, err);
    if (r == 0 && f->inside[0] != '\0')
        r = f->judge(f->owner, f->inside, kinds[kind], err);
    if (r < 0)
        return r;
    return kind == TAR_FILE     ? begin_file(f, err)
           : kind == TAR_FOLDER ? add_folder(f, err)
                                : add_link(f, err);
}

/* Hands f->data on. Return: 1 when all of it was taken; 0: wait for room; a negative errno. */
static int take_data(struct export_folder *f, struct error *err)
{
    while (reader_left(&f->data) > 0) {
        size_t room, n = reader_left(&f->data);
        uint8_t *to = copier_room(&f->copier, &room);

        if (!to)
            return 0;
        n = n < room ? n : room;
        memcpy(to, f->data.p, n);
        (void)reader_take(&f->data, n);
        f->bytes += n;
        f->source->bytes += n;
        int r = copier_took(&f->copier, n, err);
        if (r < 0)
            return r;
    }
    return 1;
}

/* The stream */

/* Whether the next bytes have to wait: for room, or for a file to be whole. */
static bool is_blocked(const struct export_folder *f)
{
    return f->finishing || reader_left(&f->data) > 0;
}

static int next_event(struct export_folder *f, bool *more, struct error *err)
{
    switch (tar_next(&f->tar, &f->in)) {
    case TAR_MORE:
        *more = false;
        return 0;
    case TAR_ENTRY:
        return begin_entry(f, err);
    case TAR_DATA:
        f->data = f->tar.data;
        return 0;
    case TAR_ENTRY_END:
        f->finishing = f->file >= 0;
        if (f->finishing)
            copier_finish(&f->copier, false); /* small ones come back by file_copied() at once */
        return 0;
    case TAR_END:
        f->ended = true;
        *more = false;
        return 0;
    case TAR_BAD:
        return bad_stream(f, tar_fault_text(f->tar.fault), err);
    }
    return 0;
}

/* Works on what has been read until all of it is used, or has to wait. */
static void take_apart(struct export_folder *f)
{
    struct error err = ERROR_INIT;
    bool more = true;
    int r = 0;

    f->taking = true;
    while (r >= 0 && more && f->under_way && !f->finishing) {
        r = take_data(f, &err);
        if (r == 0)
            break;
        if (r > 0)
            r = next_event(f, &more, &err);
    }
    f->taking = false;
    if (r < 0)
        fail(f, &err);
}

static void resume(struct export_folder *f)
{
    take_apart(f);
    if (f->under_way && !is_blocked(f))
        (void)loop_change(f->source->loop, &f->input, EPOLLIN);
}

static void room_again(struct copier *w)
{
    resume(w->owner);
}

static void file_copied(struct copier *w)
{
    struct export_folder *f = w->owner;
    struct error err = ERROR_INIT;

    f->finishing = false;
    fd_closep(&f->file);
    if (manifest_add_file(f->manifest, f->at, w->bytes, f->made.st_mode & 0777, w->sum) < 0) {
        (void)error_set(&err, ERROR_TERMINAL, ENOMEM, "out of memory");
        fail(f, &err);
    } else if (!f->taking) {
        resume(f);
    }
}

/* Both ends say that this was all. */
static void conclude(struct export_folder *f)
{
    enum tar_fault fault = tar_finish(&f->tar);
    struct error err = ERROR_INIT;

    if (fault != TAR_FAULT_NONE) {
        (void)bad_stream(f, tar_fault_text(fault), &err);
        fail(f, &err);
    } else {
        stop(f);
        f->done(f);
    }
}

static int input_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct export_folder *f = s->owner;
    struct error err = ERROR_INIT;

    (void)events;
    for (size_t taken = 0; f->under_way && taken < STEP_BYTES;) {
        if (is_blocked(f)) {
            (void)loop_change(l, s, 0);
            return 0;
        }
        ssize_t n = read(f->from, f->buffer, FOLDER_BUFFER_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0) {
            loop_forget(l, s);
            f->drained = true;
            if (!f->op.under_way)
                conclude(f);
            return 0;
        }
        taken += (size_t)n;
        f->in = reader_over(f->buffer, (size_t)n);
        f->received += (uint64_t)n;
        if (!f->ended)
            take_apart(f);
        if (f->under_way && f->ended && f->received > f->tar.offset + TRAILING_BYTES_MAX) {
            (void)bad_stream(f, "there is more behind its end", &err);
            fail(f, &err);
        }
    }
    return 0;
}

/* What was left out is nothing that can be exported, and then nothing is. */
static int judge_skipped(struct export_folder *f, struct reader message, struct error *err)
{
    const char *path = text_next(&message, TAG_SKIPPED);
    int r = path ? map_path(f, path, err) : 0;

    return path && r == 0 ? refuse_kind(f, "a FIFO, a socket or a device", err) : r;
}

static void packed(struct file_op *op, struct reader message)
{
    struct export_folder *f = op->owner;
    struct error err = ERROR_INIT;

    if (judge_skipped(f, message, &err) < 0)
        fail(f, &err);
    else if (f->drained)
        conclude(f);
}

static void pack_failed(struct file_op *op, const struct error *err)
{
    fail(op->owner, err);
}

static int begin(struct export_folder *f, struct error *err)
{
    const struct file_request x = {
        .path = f->path, .length = UINT64_MAX, .max_bytes = UINT64_MAX, .flags = FILE_STEADY};
    int ends[2];

    f->buffer = malloc(FOLDER_BUFFER_BYTES);
    if (!f->buffer)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot make a pipe: %s", strerror(errno));
    f->from = ends[0];
    (void)fcntl(f->from, F_SETPIPE_SZ, PIPE_BYTES); /* smaller works too */
    int r = loop_watch(f->source->loop, &f->input, f->from, EPOLLIN);
    if (r == 0)
        return file_op_start(&f->source->files, &f->op, MSG_PACK, &x, ends[1], err);
    (void)close(ends[1]);
    return error_set(err, ERROR_TERMINAL, -r, "cannot watch a pipe: %s", strerror(-r));
}

void export_folder_start(struct export_folder *f)
{
    static const struct file_op_events op_events = {.done = packed, .failed = pack_failed};
    struct error err = ERROR_INIT;

    f->under_way = true;
    f->has_top = f->ended = f->drained = f->finishing = f->taking = false;
    f->mode = OWNER_MODE;
    f->from = f->file = f->parent = -EBADF;
    f->bytes = f->received = 0;
    f->inside[0] = f->at[0] = '\0';
    f->data = f->in = reader_over("", 0);
    f->copier = (struct copier){.fd = -EBADF};
    f->op = (struct file_op){.events = &op_events, .owner = f, .pipe_fd = -EBADF};
    f->input =
        (struct loop_source){.name = "export", .fd = -EBADF, .owner = f, .ready = input_ready};
    f->allowance = (struct loop_timer){.name = "export", .owner = f, .due = time_due};
    f->started_us = clock_now_us();
    tar_reader_init(&f->tar);
    loop_at(f->source->loop, &f->allowance, clock_after_us(ALLOWANCE_STEP_US));
    if (begin(f, &err) < 0)
        fail(f, &err);
}
