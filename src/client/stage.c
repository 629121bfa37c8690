/* SPDX-License-Identifier: Apache-2.0 */
/* Copying the inputs of a spec into its sandbox. */
#include "client/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

static void stage_next(struct staging *g);

static void close_pipe(struct staging *g)
{
    loop_forget(g->loop, &g->source);
    fd_closep(&g->pipe_fd);
}

static void stage_end(struct staging *g)
{
    close_pipe(g);
    tree_pack_free(g->pack);
    g->pack = NULL;
}

static void stage_fail(struct staging *g, const struct error *err)
{
    struct error named = *err;

    (void)error_context(&named, "input %.80s", g->inputs->items[g->next - 1]);
    staging_stop(g);
    g->failed(g, &named);
}

/* What the sandbox says counts for more than a broken pipe, but not for more than our own fault. */
static void unpack_failed(struct file_op *op, const struct error *err)
{
    struct staging *g = op->owner;

    stage_fail(g, g->error.code != 0 ? &g->error : err);
}

static void unpack_done(struct file_op *op, struct reader message)
{
    struct staging *g = op->owner;

    (void)message;
    if (g->error.code != 0) { /* such as a file that shrank while it was read */
        stage_fail(g, &g->error);
        return;
    }
    stage_end(g);
    stage_next(g);
}

static int pipe_ready(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct staging *g = s->owner;
    struct error err = ERROR_INIT;
    int r = tree_pack_step(g->pack, g->pipe_fd, &err);

    (void)l;
    (void)events;
    if (r == 0)
        return 0;
    if (r < 0 && r != -EPIPE)
        g->error = err;
    close_pipe(g); /* the sandbox's answer comes next; a cut archive is refused by it */
    return 0;
}

/* Takes "HOST=PATH" apart: the folder inside, and what the input is called there. */
static int split(const char *input, char host[static FILE_PATH_BYTES_MAX + 1],
                 char folder[static FILE_PATH_BYTES_MAX + 1], char name[static 256],
                 struct error *err)
{
    const char *equals = strchr(input, '=');
    size_t n = equals ? (size_t)(equals - input) : 0;

    if (n == 0 || n > FILE_PATH_BYTES_MAX || equals[1] == '\0' ||
        strlen(equals + 1) > FILE_PATH_BYTES_MAX)
        return error_set(err, ERROR_USAGE, EINVAL, "it is not SOURCE=PATH");
    memcpy(host, input, n);
    host[n] = '\0';
    memcpy(folder, equals + 1, strlen(equals + 1) + 1);
    char *slash = strrchr(folder, '/');
    const char *last = slash ? slash + 1 : folder;
    if (last[0] == '\0') { /* it keeps its name */
        const char *own = strrchr(host, '/');

        last = own ? own + 1 : host;
    }
    if (last[0] == '\0' || strlen(last) > 255 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return error_set(err, ERROR_USAGE, EINVAL, "its path inside has no name at its end");
    memcpy(name, last, strlen(last) + 1);
    if (!slash)
        memcpy(folder, ".", 2);
    else
        slash[slash == folder] = '\0';
    return 0;
}

static int begin(struct staging *g, const char *input, struct error *err)
{
    char host[FILE_PATH_BYTES_MAX + 1], folder[FILE_PATH_BYTES_MAX + 1], name[256];
    struct file_request x = {.path = folder, .length = UINT64_MAX, .max_bytes = UINT64_MAX};
    const struct tree_pack_options options = {.path = host, .name = name};
    int ends[2];
    int r = split(input, host, folder, name, err);

    if (r == 0)
        r = tree_pack_new(&options, &g->pack, err);
    if (r < 0)
        return r;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set(err, ERROR_TERMINAL, errno, "cannot make a pipe: %s", strerror(errno));
    g->pipe_fd = ends[1];
    g->source =
        (struct loop_source){.name = "input", .fd = -EBADF, .owner = g, .ready = pipe_ready};
    r = file_op_start(&g->files, &g->op, MSG_UNPACK, &x, ends[0], err);
    if (r < 0)
        return r;
    r = loop_watch(g->loop, &g->source, g->pipe_fd, EPOLLOUT);
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "cannot watch a pipe: %s", strerror(-r)) : 0;
}

static void stage_next(struct staging *g)
{
    static const struct file_op_events events = {.done = unpack_done, .failed = unpack_failed};
    struct error err = ERROR_INIT;

    if (g->next == g->inputs->n) {
        staging_stop(g);
        g->done(g);
        return;
    }
    g->op = (struct file_op){.events = &events, .owner = g, .pipe_fd = -EBADF};
    g->error = (struct error)ERROR_INIT;
    if (begin(g, g->inputs->items[g->next++], &err) < 0)
        stage_fail(g, &err);
}

void staging_start(struct staging *g, struct session *s, struct loop *l,
                   const struct string_list *inputs)
{
    g->files = (struct files){.main = s};
    g->loop = l;
    g->inputs = inputs;
    g->next = 0;
    g->pipe_fd = g->source.fd = -EBADF;
    g->running = true;
    stage_next(g);
}

void staging_stop(struct staging *g)
{
    if (!g->running)
        return;
    g->running = false;
    file_op_cancel(&g->op);
    stage_end(g);
    files_done(&g->files);
}
