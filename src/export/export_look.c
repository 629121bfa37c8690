/* SPDX-License-Identifier: Apache-2.0 */
/* First phase: what each entry is, and whether its destination will do. Nothing is copied yet. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/file_error.h"
#include "export/entry.h"
#include "base/guards.h"

static bool is_empty(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    _cleanup_(dir_closep) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;

    if (!dir && copy >= 0)
        (void)close(copy);
    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
    return dir != NULL;
}

/* A folder is replaced whole, so it must be one of which nobody expects anything else. */
static int check_replaced(const struct export_entry *e, struct error *err)
{
    _cleanup_fd_ int fd =
        openat(e->place.parent_fd, e->to.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd >= 0 && (faccessat(fd, MANIFEST_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || is_empty(fd)))
        return 0;
    (void)error_set(err, ERROR_RECOVERABLE, ENOTEMPTY,
                    "'%.120s' is a folder that no export has made, and would be replaced",
                    e->to.path);
    return error_remedy(err, "Remove it, or export to a folder that is not there yet");
}

static int open_place(struct exporting *x, struct error *err)
{
    struct export_entry *e = &x->entries[x->at];
    int r = staging_open(&e->place, &e->to, e->is_folder, err);

    for (size_t i = 0; r == 0 && i < x->at; i++)
        if (staging_clash(&e->place, &x->entries[i].place)) {
            (void)error_set(err, ERROR_USAGE, EINVAL,
                            "it is the place of another export, or one lies within the other");
            r = error_remedy(err, "Give each export a place of its own");
        }
    if (r == 0 && e->is_folder)
        r = check_replaced(e, err);
    if (r < 0)
        return r;
    x->at++;
    export_next(x, export_look);
    return 0;
}

/* Only a file or a folder can be exported; what else it is, the sentence says. */
static int judge_kind(struct exporting *x, struct error *err)
{
    struct export_entry *e = &x->entries[x->at];
    const struct file_fault fault = {.code = EINVAL, .path = e->path, .kind = x->kind};

    if (x->kind != FILE_REGULAR && x->kind != FILE_FOLDER)
        return file_error(&fault, err);
    e->is_folder = x->kind == FILE_FOLDER;
    int r = e->is_folder ? 0 : source_check_size(&x->source, e->path, x->size, err);
    return r < 0 ? r : open_place(x, err);
}

static void looked(struct file_op *op, const struct file_info *info, int fd)
{
    struct exporting *x = op->owner;

    fd_closep(&fd);
    x->kind = info->kind;
    x->size = info->size;
    x->entries[x->at].mode = info->mode & 0777; /* of a folder that is not packed */
}

static void look_done(struct file_op *op, struct reader message)
{
    (void)message;
    export_next(op->owner, judge_kind);
}

static void look_failed(struct file_op *op, const struct error *err)
{
    export_fail(op->owner, err);
}

static void matched(struct pattern *p)
{
    export_next(p->owner, open_place);
}

static void match_failed(struct pattern *p, const struct error *err)
{
    export_fail(p->owner, err);
}

static int look_for_matches(struct exporting *x, struct export_entry *e, struct error *err)
{
    e->pattern.files = &x->source.files;
    e->pattern.owner = x;
    e->pattern.done = matched;
    e->pattern.failed = match_failed;
    return pattern_start(&e->pattern, e->path, err);
}

int export_look(struct exporting *x, struct error *err)
{
    static const struct file_op_events events = {
        .info = looked, .done = look_done, .failed = look_failed};

    if (x->at == x->n) {
        x->at = 0;
        export_next(x, export_copy);
        return 0;
    }
    struct export_entry *e = &x->entries[x->at];
    if (e->is_pattern)
        return look_for_matches(x, e, err);
    const struct file_request ask = {
        .path = e->path, .length = UINT64_MAX, .max_bytes = UINT64_MAX};
    x->op = (struct file_op){.events = &events, .owner = x, .pipe_fd = -EBADF};
    return file_op_start(&x->source.files, &x->op, MSG_STAT, &ask, -EBADF, err);
}
