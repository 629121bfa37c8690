/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a folder without a stream: lists, then one file after the other. */
#include "export/export_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/file_error.h"
#include "core/limits.h"
#include "export/host_error.h"
#include "wire/tar.h"
#include "base/guards.h"

enum {
    IMPLIED_MODE = 0755,
    ALL_MODES = 0777,
    OWNER_MODE = 0700, /* as in export_folder.c */
};

static void stop(struct export_walk *w)
{
    w->under_way = false;
    file_op_cancel(&w->op);
    export_file_stop(&w->file);
    fd_closep(&w->fd);
    for (size_t i = 0; i < w->n; i++) {
        free(w->entries[i].path);
        free(w->entries[i].target);
    }
    free(w->entries);
    w->entries = NULL;
    w->n = 0;
}

void export_walk_stop(struct export_walk *w)
{
    if (w->under_way)
        stop(w);
}

static void fail(struct export_walk *w, const struct error *err)
{
    struct error copy = *err; /* it may lie in what is stopped */

    stop(w);
    w->failed(w, &copy);
}

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int cannot_write(const struct export_walk *w, int code, struct error *err)
{
    return host_error(err, code, "'%.*s' cannot be written", SOURCE_SHOWN_BYTES, w->staged);
}

/* Places */

/* The folder that @path lies in, made if absent. Return: an owned O_PATH fd or a negative errno. */
static int open_above(int root, const char *path, const char **ret_name)
{
    char folder[FILE_PATH_BYTES_MAX + 1];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;

    if (n >= sizeof folder)
        return -ENAMETOOLONG;
    memcpy(folder, path, n);
    folder[n] = '\0';
    *ret_name = slash ? slash + 1 : path;
    return path_make_folders(root, folder, IMPLIED_MODE);
}

int export_walk_make_file(int root, const char *path)
{
    const char *name;
    _cleanup_fd_ int at = open_above(root, path, &name);

    if (at < 0)
        return at;
    int fd =
        openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, ALL_MODES);
    return fd < 0 ? -errno : fd;
}

static int make_folder(const struct export_walk *w, mode_t mode, struct error *err)
{
    const char *name;
    _cleanup_fd_ int at = open_above(w->root, w->staged, &name);

    if (at < 0 || mkdirat(at, name, mode | OWNER_MODE) < 0)
        return cannot_write(w, at < 0 ? -at : errno, err);
    return 0;
}

static int make_link(const struct export_walk *w, const char *target, struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];
    const char *name;

    if (!target || !tar_link_stays(w->staged, target, 0)) {
        source_show(w->inside, shown);
        (void)error_set(err, ERROR_RECOVERABLE, EXDEV,
                        "'%s' is a link that leads out of the folder", shown);
        return error_remedy(err, "Make it lead to something in the folder, or remove it");
    }
    _cleanup_fd_ int at = open_above(w->root, w->staged, &name);
    if (at < 0 || symlinkat(target, at, name) < 0)
        return cannot_write(w, at < 0 ? -at : errno, err);
    return manifest_add_link(w->manifest, w->staged, target) < 0 ? no_memory(err) : 0;
}

/* Fills w->inside and w->staged for @path beneath the folder; "" is the folder itself. */
static int name_entry(struct export_walk *w, const char *path, struct error *err)
{
    size_t n = strlen(w->path), size = sizeof w->inside;
    const char *slash = n > 0 && w->path[n - 1] != '/' && path[0] ? "/" : "";
    const char *under = w->beneath[0] && path[0] ? "/" : "";

    if (snprintf(w->inside, size, "%s%s%s", w->path, slash, path) < (int)size &&
        snprintf(w->staged, size, "%s%s%s", w->beneath, under, path) < (int)size)
        return 0;
    return error_set(err, ERROR_RECOVERABLE, ENAMETOOLONG, "a path in the folder is too long");
}

/* Entries */

static int add(struct export_walk *w, const struct file_info *x)
{
    const char *folder = w->at < w->n ? w->entries[w->at].path : "";
    struct walk_entry *more;
    char *path;

    if (w->n >= LIMIT_EXPORT_FILES)
        return -EFBIG;
    /* Grows by doubling, at powers of two. */
    if ((w->n & (w->n - 1)) == 0) {
        more = realloc(w->entries, (w->n ? w->n * 2 : 1) * sizeof *more);
        if (!more)
            return -ENOMEM;
        w->entries = more;
    }
    if (asprintf(&path, "%s%s%s", folder, folder[0] ? "/" : "", x->name) < 0)
        return -ENOMEM;
    w->entries[w->n] =
        (struct walk_entry){.path = path, .kind = x->kind, .mode = x->mode & ALL_MODES};
    struct walk_entry *entry = &w->entries[w->n++];
    if (x->link_target && !(entry->target = strdup(x->link_target)))
        return -ENOMEM;
    return 0;
}

static int entries_came(struct file_op *op, struct reader message)
{
    struct export_walk *w = op->owner;
    struct file_info x;
    int more;

    while ((more = file_entry_next(&message, &x)) > 0) {
        int r = add(w, &x);

        if (r < 0)
            return r;
    }
    return more;
}

static void go_on(struct export_walk *w);

static void listed(struct file_op *op, struct reader message)
{
    struct export_walk *w = op->owner;

    (void)message;
    w->at++;
    go_on(w);
}

static void list_failed(struct file_op *op, const struct error *err)
{
    fail(op->owner, err);
}

static int list(struct export_walk *w, struct error *err)
{
    static const struct file_op_events events = {
        .entries = entries_came, .done = listed, .failed = list_failed};
    const struct file_request x = {
        .path = w->inside, .length = UINT64_MAX, .max_bytes = UINT64_MAX};

    w->op = (struct file_op){.events = &events, .owner = w, .pipe_fd = -EBADF};
    return file_op_start(&w->source->files, &w->op, MSG_LIST, &x, -EBADF, err);
}

static void file_done(struct export_file *f)
{
    struct export_walk *w = f->owner;
    struct error err = ERROR_INIT;
    struct stat st;
    int r = fstat(w->fd, &st) < 0 || fchmod(w->fd, st.st_mode & f->mode) < 0 ? -errno : 0;

    if (r < 0)
        (void)cannot_write(w, -r, &err);
    else if (manifest_add_file(w->manifest, w->staged, f->copier.bytes, st.st_mode & f->mode,
                               f->copier.sum) < 0)
        (void)no_memory(&err);
    if (err.code != 0) {
        fail(w, &err);
        return;
    }
    fd_closep(&w->fd);
    w->at++;
    go_on(w);
}

static void file_failed(struct export_file *f, const struct error *err)
{
    fail(f->owner, err);
}

static int copy_file(struct export_walk *w, struct error *err)
{
    w->fd = export_walk_make_file(w->root, w->staged);
    if (w->fd < 0)
        return cannot_write(w, -w->fd, err);
    w->file = (struct export_file){.source = w->source,
                                   .path = w->inside,
                                   .to = w->fd,
                                   .owner = w,
                                   .done = file_done,
                                   .failed = file_failed};
    export_file_start(&w->file);
    return 0;
}

/* Return: 1 when the entry is there; 0 when its end will be told; a negative errno. */
static int take_entry(struct export_walk *w, struct error *err)
{
    const struct walk_entry *e = &w->entries[w->at];
    int r = name_entry(w, e->path, err);

    if (r == 0)
        r = source_count(w->source, err);
    if (r == 0)
        r = w->judge(w->owner, e->path, e->kind, err);
    if (r < 0)
        return r;
    switch (e->kind) {
    case FILE_REGULAR:
        return copy_file(w, err);
    case FILE_FOLDER:
        r = make_folder(w, e->mode, err);
        return r < 0 ? r : list(w, err);
    case FILE_LINK:
        r = make_link(w, e->target, err);
        return r < 0 ? r : 1;
    default:
        return file_error(&(struct file_fault){.code = EINVAL, .path = w->inside, .kind = e->kind},
                          err);
    }
}

static void go_on(struct export_walk *w)
{
    struct error err = ERROR_INIT;
    int r = 1;

    for (; r > 0 && w->at<w->n; w->at += r> 0)
        r = take_entry(w, &err);
    if (r < 0) {
        fail(w, &err);
    } else if (r > 0) {
        stop(w);
        w->done(w);
    }
}

static void top_listed(struct file_op *op, struct reader message)
{
    struct export_walk *w = op->owner;

    (void)message;
    w->at = 0;
    go_on(w);
}

void export_walk_start(struct export_walk *w)
{
    static const struct file_op_events events = {
        .entries = entries_came, .done = top_listed, .failed = list_failed};
    struct error err = ERROR_INIT;

    w->under_way = true;
    w->entries = NULL;
    w->n = 0;
    w->at = SIZE_MAX; /* the folder itself is no entry */
    w->fd = -EBADF;
    w->file = (struct export_file){0};
    w->op = (struct file_op){.pipe_fd = -EBADF};
    int r = name_entry(w, "", &err);
    if (r == 0 && w->staged[0] != '\0')
        r = make_folder(w, IMPLIED_MODE, &err);
    if (r == 0)
        r = list(w, &err);
    w->op.events = &events;
    if (r < 0)
        fail(w, &err);
}
