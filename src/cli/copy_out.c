/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sandbox to the host: where the copy goes, then a pack inside and an unpack here. The top
 * of the copy always has a name that was chosen here, so that what the sandbox sends can be no
 * other file of the folder that it is copied into.
 */
#include "cli/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/tree_unpack.h"
#include "base/guards.h"

/* Where a copy goes on the host. */
struct target {
    int fd;       /* the folder, owned */
    char *folder; /* its path, owned */
    char *name;   /* owned */
};

static void target_done(struct target *t)
{
    fd_closep(&t->fd);
    free(t->folder);
    free(t->name);
}

static void unpackp(struct tree_unpack **u)
{
    tree_unpack_free(*u);
}

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int refuse(const char *to, int code, const char *why, const char *remedy, struct error *err)
{
    (void)error_set(err, ERROR_RECOVERABLE, code, "'%s' %s", to, why);
    return error_remedy(err, "%s", remedy);
}

/* The name of the sandbox's working directory. Return: owned; NULL when it has none, or an error */
static char *workdir_name(struct copy *c, struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_inspect(c->handle->sandbox);

    if (handle_wait(c->handle, op, err) < 0)
        return NULL;
    const struct atoll_info *i = atoll_op_info(op, 0);
    return i && i->workdir ? copy_name(i->workdir) : NULL;
}

/* "DIR/." means DIR here: what is copied out is called as it is inside. */
static char *name_of_source(struct copy *c, const char *from, struct error *err)
{
    _cleanup_free_ char *path = strdup(from);
    size_t n = strlen(from);

    if (!path)
        return NULL;
    while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
        path[--n] = '\0';
    if (strcmp(path, ".") == 0)
        return workdir_name(c, err);
    return copy_name(path);
}

/* For people: without slashes at its end. */
static char *trimmed(const char *folder)
{
    size_t n = strlen(folder);

    while (n > 1 && folder[n - 1] == '/')
        n--;
    return strndup(folder, n);
}

/* Into the folder @to, which is there. */
static int enter_folder(struct copy *c, const char *from, const char *to, struct target *ret,
                        struct error *err)
{
    ret->fd = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->fd < 0)
        return refuse(to, errno, "cannot be opened", "Copy to a folder that you may enter", err);
    ret->folder = trimmed(to);
    if (!ret->folder)
        return no_memory(err);
    ret->name = name_of_source(c, from, err);
    if (ret->name || err->code != 0)
        return -err->code;
    return refuse(from, EINVAL, "has no name to be copied under",
                  "Write what the copy is to be called behind the folder", err);
}

/* As @to, which is not there or is a file. */
static int take_name(const char *to, struct target *ret, struct error *err)
{
    size_t n = strlen(to);

    ret->name = copy_name(to);
    if (!ret->name)
        return refuse(to, ENOTDIR, "is not a folder", "Name a folder that is there", err);
    while (n > 0 && to[n - 1] == '/')
        n--;
    while (n > 0 && to[n - 1] != '/')
        n--;
    while (n > 1 && to[n - 1] == '/')
        n--;
    ret->folder = n > 0 ? strndup(to, n) : strdup(".");
    if (!ret->folder)
        return no_memory(err);
    ret->fd = open(ret->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->fd < 0)
        return refuse(ret->folder, errno,
                      errno == ENOENT ? "does not exist on this host" : "cannot be opened",
                      "Make the folder first, or copy to another one", err);
    return 0;
}

/* A trailing slash asks for a folder; a file that is called so would not be what was meant. */
static int check_slash(struct copy *c, const char *from, const char *to, struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_stat(c->handle->sandbox, from, true);
    int r = handle_wait(c->handle, op, err);

    if (r == 0 && atoll_op_file(op, 0)->kind != ATOLL_FOLDER)
        return refuse(to, ENOENT, "does not exist on this host", "Make the folder first", err);
    return r;
}

static int find_target(struct copy *c, const char *from, const char *to, enum copy_to how,
                       struct target *ret, struct error *err)
{
    struct stat st;
    bool missing = stat(to, &st) < 0;
    int r = 0;

    if (missing && errno != ENOENT)
        return refuse(to, errno, strerror(errno), "Copy to another path", err);
    if (!missing && S_ISDIR(st.st_mode))
        return enter_folder(c, from, to, ret, err);
    if (how == COPY_INTO_FOLDER)
        return refuse(to, ENOTDIR, "is not a folder on this host",
                      "Several copies need a folder that is there", err);
    if (!missing && !S_ISREG(st.st_mode)) /* it would be replaced, not written to */
        return refuse(to, EINVAL, "is neither a file nor a folder",
                      "Send a file to it with \"atoll read\"", err);
    if (missing && to[0] != '\0' && to[strlen(to) - 1] == '/')
        r = check_slash(c, from, to, err);
    return r < 0 ? r : take_name(to, ret, err);
}

static int unpack_step(void *arg, int fd, struct error *err)
{
    return tree_unpack_step(arg, fd, err);
}

static int copy_from(struct copy *c, const char *from, const struct target *t, struct error *err)
{
    const struct tree_unpack_options options = {
        .folder_fd = t->fd,
        .folder = t->folder,
        .name = t->name,
        .listener = {.skipped = copy_skipped, .arg = c},
    };
    _cleanup_(unpackp) struct tree_unpack *unpack = NULL;
    int r = tree_unpack_new(&options, &unpack, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_pack(c->handle->sandbox, from);
    c->now = &tree_unpack_totals(unpack)->bytes;
    r = copy_drive(c, op, POLLIN, unpack_step, unpack, err);
    c->now = NULL;
    copy_total(c, tree_unpack_totals(unpack));
    if (r == 0)
        copy_op_skipped(c, op);
    return r;
}

int copy_out(struct copy *c, const char *from, const char *to, enum copy_to how, struct error *err)
{
    _cleanup_(target_done) struct target t = {.fd = -EBADF};
    int r;

    if (from[0] == '\0')
        from = ".";
    r = find_target(c, from, to, how, &t, err);
    if (r == 0)
        r = copy_from(c, from, &t, err);
    return r < 0 ? error_context(err, "'%.60s' was not copied to '%.60s'", from, to) : 0;
}
