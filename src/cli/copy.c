/* SPDX-License-Identifier: Apache-2.0 */
/* What copies in both directions share: driving a stream, progress, what was left out. */
#include "cli/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/name_text.h"
#include "cli/sandbox_text.h"
#include "cli/stream.h"
#include "base/guards.h"

enum { PROGRESS_AFTER_US = 1000000, PROGRESS_EVERY_US = 200000 };

char *copy_name(const char *path)
{
    size_t end = strlen(path), begin;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    bool dots = (end - begin == 1 && path[begin] == '.') ||
                (end - begin == 2 && path[begin] == '.' && path[begin + 1] == '.');
    return end == begin || dots ? NULL : strndup(path + begin, end - begin);
}

/* Left out */

void copy_skipped(void *arg, const char *path, const char *why)
{
    struct copy *c = arg;

    fputs("atoll: not copied: ", c->cli->err);
    name_print_quoted(c->cli->err, path);
    fprintf(c->cli->err, " (%s)\n", why);
    c->totals.skipped++;
    if (c->skipped) {
        json_t *item = json_object();

        (void)name_set_json(item, "path", path);
        (void)json_object_set_new(item, "reason", json_string(why));
        (void)json_array_append_new(c->skipped, item);
    }
}

void copy_op_skipped(struct copy *c, const struct atoll_op *op)
{
    for (size_t i = 0; i < atoll_op_count(op); i++)
        copy_skipped(c, atoll_op_skipped(op, i), "it is neither a file nor a folder nor a link");
}

void copy_total(struct copy *c, const struct tree_totals *t)
{
    c->totals.files += t->files;
    c->totals.folders += t->folders;
    c->totals.links += t->links;
    c->totals.bytes += t->bytes;
}

/* Progress */

/* When there is something to tell next. */
static uint64_t progress_due(const struct copy *c)
{
    if (c->quiet)
        return CLOCK_NEVER;
    return c->told ? c->told_us + PROGRESS_EVERY_US : c->started_us + PROGRESS_AFTER_US;
}

static void progress_tell(struct copy *c)
{
    char bytes[SANDBOX_WORDS];
    const uint64_t now = clock_now_us();

    if (c->quiet || now < progress_due(c) || !c->now)
        return;
    sandbox_bytes_text(bytes, c->totals.bytes + *c->now);
    fprintf(c->cli->err, "\r\033[Katoll: %s copied", bytes);
    (void)fflush(c->cli->err);
    c->told = true;
    c->told_us = now;
}

static void progress_clear(struct copy *c)
{
    if (!c->told)
        return;
    fputs("\r\033[K", c->cli->err);
    (void)fflush(c->cli->err);
    c->told = false;
}

/* Driving */

/*
 * When one end breaks, the other is told of a stream that broke off. The sentence of the end that
 * broke is the one to keep.
 */
static int choose(const struct atoll_op *op, const struct error *own, struct error *err)
{
    struct error theirs = ERROR_INIT;
    int r = handle_result(op, &theirs);
    bool echo = own->code == EPIPE || own->code == EBADMSG;

    if (own->code != 0 && (!echo || r == 0 || r == -ECANCELED || r == -EPIPE)) {
        *err = *own;
        return -own->code;
    }
    if (r < 0)
        *err = theirs;
    return r;
}

static int drive(struct copy *c, struct atoll_op *op, int *fd, short events,
                 int (*step)(void *arg, int fd, struct error *err), void *arg, struct error *own,
                 struct error *err)
{
    while (*fd >= 0 || !atoll_op_done(op)) {
        struct pollfd p = {.fd = *fd, .events = events};
        int r = handle_poll(c->handle, &p, 1, progress_due(c), err);

        if (r < 0)
            return r;
        progress_tell(c);
        if (*fd < 0 || !p.revents)
            continue;
        r = step(arg, *fd, own);
        if (r != 0)
            fd_closep(fd);
        if (r < 0 && r != -EPIPE && r != -EBADMSG)
            return 0; /* the other end has nothing to add */
    }
    return 0;
}

int copy_drive(struct copy *c, struct atoll_op *op, short events,
               int (*step)(void *arg, int fd, struct error *err), void *arg, struct error *err)
{
    struct error own = ERROR_INIT;
    int r;

    if (!op)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    _cleanup_fd_ int fd = atoll_op_take_fd(op, 0);
    if (fd < 0 && !atoll_op_done(op))
        return error_set(err, ERROR_TERMINAL, EBADF, "there is no stream to the sandbox");
    c->started_us = clock_now_us();
    r = drive(c, op, &fd, events, step, arg, &own, err);
    progress_clear(c);
    if (r < 0 || (own.code != 0 && !atoll_op_done(op))) {
        atoll_op_cancel(op);
        if (r == 0)
            *err = own;
        return -err->code;
    }
    return choose(op, &own, err);
}

/* Streams that are passed on as they are */

int copy_stream_in(struct copy *c, int fd, const char *to, struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_unpack(c->handle->sandbox, to);
    int r = stream_into(c->handle, op, fd, NULL, &c->totals.bytes, err);

    if (r == 0)
        copy_op_skipped(c, op);
    return r;
}

int copy_stream_out(struct copy *c, const char *from, int fd, struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_pack(c->handle->sandbox, from);
    int r = stream_out_of(c->handle, op, fd, &c->totals.bytes, err);

    if (r == 0)
        copy_op_skipped(c, op);
    return r;
}
