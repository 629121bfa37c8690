/* SPDX-License-Identifier: Apache-2.0 */
/* From the host into a sandbox: where the copy goes, then a pack here and an unpack inside. */
#include "cli/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/stream.h"
#include "client/tree_pack.h"
#include "base/guards.h"

/* Where a copy goes inside. Owned strings. */
struct target {
    char *folder;
    char *top; /* what it is called there; "." for what is in a folder, without that itself */
};

static void target_done(struct target *t)
{
    free(t->folder);
    free(t->top);
}

static void packp(struct tree_pack **p)
{
    tree_pack_free(*p);
}

/* What stands at @path inside: its kind, -ENOENT when nothing does, another error. */
static int kind_inside(struct copy *c, const char *path, struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_stat(c->handle->sandbox, path, true);
    struct error missing = ERROR_INIT;
    int r = handle_wait(c->handle, op, &missing);

    if (r < 0 && r != -ENOENT)
        *err = missing;
    return r < 0 ? r : atoll_op_file(op, 0)->kind;
}

static int not_a_folder(const char *to, struct error *err)
{
    (void)error_set(err, ERROR_RECOVERABLE, ENOTDIR, "'%s' is not a folder in the sandbox", to);
    return error_remedy(err, "Name a folder that is there, or what the copy is to be called");
}

/* The folder that @to lies in, and its name there. */
static int split(const char *to, struct target *ret, struct error *err)
{
    size_t n = strlen(to);

    ret->top = copy_name(to);
    if (!ret->top)
        return not_a_folder(to, err);
    while (n > 0 && to[n - 1] == '/')
        n--;
    while (n > 0 && to[n - 1] != '/')
        n--;
    while (n > 1 && to[n - 1] == '/')
        n--;
    ret->folder = n > 0 ? strndup(to, n) : strdup(".");
    return ret->folder ? 0 : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* Into the folder @to, under @name (taken; NULL: what is in the source, without that itself). */
static int enter_folder(const char *to, char *name, struct target *ret, struct error *err)
{
    ret->top = name ? name : strdup(".");
    ret->folder = strdup(to);
    return ret->top && ret->folder ? 0 : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* @to is what the copy is called. */
static int find_exact(struct copy *c, const char *source, bool folder, const char *to,
                      struct target *ret, struct error *err)
{
    if (folder)
        return enter_folder(to, NULL, ret, err);
    if (to[strlen(to) - 1] == '/')
        return enter_folder(to, copy_name(source), ret, err);
    int kind = kind_inside(c, to, err);
    if (kind == ATOLL_FOLDER) {
        (void)error_set(err, ERROR_USAGE, EISDIR, "'%s' is a folder in the sandbox", to);
        return error_remedy(err, "Write what the file is to be called there, or a '/' behind it");
    }
    return kind < 0 && kind != -ENOENT ? kind : split(to, ret, err);
}

/* As cp(1) has it. */
static int find_as_cp(struct copy *c, const char *source, bool folder, const char *to,
                      bool folder_only, struct target *ret, struct error *err)
{
    int kind = kind_inside(c, to, err);

    if (kind < 0 && kind != -ENOENT)
        return kind;
    char *name = copy_name(source);
    if (kind == ATOLL_FOLDER || (kind == -ENOENT && !name && !folder_only))
        return enter_folder(to, name, ret, err);
    free(name);
    bool slash = to[strlen(to) - 1] == '/';
    if (folder_only || (!folder && slash) || (folder && kind != -ENOENT))
        return not_a_folder(to, err);
    return split(to, ret, err);
}

static int pack_step(void *arg, int fd, struct error *err)
{
    return tree_pack_step(arg, fd, err);
}

static int copy_to(struct copy *c, const char *source, const struct target *t, struct error *err)
{
    const struct tree_pack_options options = {
        .path = source, .name = t->top, .listener = {.skipped = copy_skipped, .arg = c}};
    _cleanup_(packp) struct tree_pack *pack = NULL;
    int r = tree_pack_new(&options, &pack, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_unpack(c->handle->sandbox, t->folder);
    c->now = &tree_pack_totals(pack)->bytes;
    r = copy_drive(c, op, POLLOUT, pack_step, pack, err);
    c->now = NULL;
    if (r < 0)
        return r;
    copy_total(c, tree_pack_totals(pack));
    copy_op_skipped(c, op);
    return 0;
}

/* A single file, to a backend that takes files and no trees. */
static int write_to(struct copy *c, const char *source, const struct target *t, struct error *err)
{
    _cleanup_fd_ int fd = open(source, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    _cleanup_free_ char *path = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERROR_RECOVERABLE, EIO, "it cannot be read");
    if (asprintf(&path, "%s/%s", t->folder, t->top) < 0)
        path = NULL;
    if (!path)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    _cleanup_(handle_op_freep) struct atoll_op *op =
        atoll_write(c->handle->sandbox, path, st.st_mode & 0777);
    int r = stream_into(c->handle, op, fd, atoll_write_commit, &c->totals.bytes, err);
    if (r == 0)
        c->totals.files++;
    return r;
}

/* Whether @source is a folder; what it cannot be is found when it is packed. */
static int look(const char *source, bool *ret_folder, struct error *err)
{
    struct stat st;

    if (stat(source, &st) < 0)
        return error_set(err, ERROR_RECOVERABLE, errno, "'%s': %s", source, strerror(errno));
    *ret_folder = S_ISDIR(st.st_mode);
    return 0;
}

int copy_in(struct copy *c, const char *source, const char *to, enum copy_to how, struct error *err)
{
    _cleanup_(target_done) struct target t = {0};
    bool folder = false;
    int r = look(source, &folder, err);

    if (to[0] == '\0')
        to = ".";
    if (r == 0)
        r = how == COPY_AS ? find_exact(c, source, folder, to, &t, err)
                           : find_as_cp(c, source, folder, to, how == COPY_INTO_FOLDER, &t, err);
    if (r == 0)
        r = copy_to(c, source, &t, err);
    if (r == -ENOSYS && !folder) {
        *err = (struct error)ERROR_INIT;
        r = write_to(c, source, &t, err);
    }
    return r < 0 ? error_context(err, "'%.60s' was not copied to '%.60s'", source, to) : 0;
}
