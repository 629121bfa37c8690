/* SPDX-License-Identifier: Apache-2.0 */
/* Watching files of events. */
#include "cli/event_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/event_lines.h"
#include "client/session.h"
#include "core/sandbox_id.h"
#include "core/state.h"
#include "base/guards.h"

enum { FD_PATH_BYTES = 64, CHANGES_BYTES = 16 * 1024 };

static const char id_start[] = "sb-";

/* One sandbox. */
struct event_source {
    struct event_source *next;
    struct event_watch *watch;
    char id[SANDBOX_ID_BYTES];
    int folder; /* owned */
    int number; /* of its inotify watch; -1: it is over, or not followed */
    struct event_lines lines;
    struct session session; /* while it is followed */
    bool over;
};

static int cannot(int r, const char *what, struct error *err)
{
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "%s: %s", what, strerror(-r)) : 0;
}

/* A folder is reached by its descriptor's name, however long its own path is. */
static int watch_folder(const struct event_watch *w, int folder, uint32_t what)
{
    char path[FD_PATH_BYTES];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    int number = inotify_add_watch(w->changes_fd, path, what);
    return number < 0 ? -errno : number;
}

static void source_free(struct event_source *s)
{
    if (s->watch->follow)
        session_end(&s->session);
    if (s->number >= 0) /* the kernel has done it if the folder is gone */
        (void)inotify_rm_watch(s->watch->changes_fd, s->number);
    event_lines_done(&s->lines);
    fd_closep(&s->folder);
    free(s);
}

/* Those that are over. */
static int reap_due(struct loop *l, struct loop_timer *t)
{
    struct event_watch *w = t->owner;

    for (struct event_source **p = &w->sources; *p;) {
        struct event_source *s = *p;

        if (!s->over) {
            p = &s->next;
            continue;
        }
        *p = s->next;
        loop_forget(l, &s->session.source);
        source_free(s);
        if (!w->all)
            l->stop = true;
    }
    return 0;
}

int event_watch_begin(struct event_watch *w, struct error *err)
{
    struct rlimit files;

    w->changes_fd = w->state_fd = -EBADF;
    w->state_watch = -1;
    w->reap = (struct loop_timer){.name = "reap", .owner = w, .due = reap_due};
    int r = loop_init(&w->loop);
    if (r < 0 || !w->follow)
        return cannot(r, "cannot wait for events", err);
    /* Each sandbox takes three descriptors. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    w->changes_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return cannot(w->changes_fd < 0 ? -errno : 0, "cannot watch for events", err);
}

static int look(struct event_source *s)
{
    int r = event_lines_read(&s->lines);

    return r == 0 && s->watch->pause ? s->watch->pause(s->watch->owner) : r;
}

/* Its last lines were written before its keeper said so. */
static void over(struct session *session)
{
    struct event_source *s = session->owner;

    if (s->over)
        return;
    s->over = true;
    (void)look(s);
    loop_at(&s->watch->loop, &s->watch->reap, 0);
}

static int tell_line(void *owner, const char *line, const json_t *value)
{
    const struct event_source *s = owner;

    return s->watch->line(s->watch->owner, s->id, line, value);
}

/* Watched before it is read, so that nothing is missed. */
static int follow_source(struct event_source *s, struct error *err)
{
    struct event_watch *w = s->watch;

    s->number = watch_folder(w, s->folder, IN_MODIFY | IN_MOVED_TO | IN_CREATE);
    if (s->number < 0)
        return cannot(s->number, "the sandbox's folder cannot be watched", err);
    int r = session_connect(&s->session, s->id, err);
    if (r < 0)
        return r;
    s->session.owner = s;
    s->session.over = over;
    s->session.hello_us = 0; /* one that is slow is not over */
    return session_watch(&s->session, &w->loop, err);
}

static struct event_source *source_new(struct event_watch *w, const char *id)
{
    struct event_source *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->watch = w;
    s->number = -1;
    s->session = (struct session)SESSION_INIT;
    (void)snprintf(s->id, sizeof s->id, "%s", id);
    s->lines.owner = s;
    s->lines.line = tell_line;
    return s;
}

/* Return: 0, with all told that is there; or a negative errno with an error. */
static int add(struct event_watch *w, const char *id, struct error *err)
{
    struct event_source *s = source_new(w, id);

    if (!s)
        return cannot(-ENOMEM, "the events cannot be read", err);
    s->folder = state_sandbox_folder(id, err);
    event_lines_init(&s->lines, s->folder);
    int r = s->folder < 0 ? s->folder : w->follow ? follow_source(s, err) : 0;
    if (r == 0)
        r = cannot(event_lines_read(&s->lines), "the sandbox's events cannot be read", err);
    if (r < 0 || !w->follow) {
        source_free(s);
        return r;
    }
    s->next = w->sources;
    w->sources = s;
    return 0;
}

int event_watch_one(struct event_watch *w, const char *id, struct error *err)
{
    return add(w, id, err);
}

static bool is_meant(const struct event_watch *w, const struct string_list *tags)
{
    for (size_t i = 0; w->tags && i < w->tags->n; i++) {
        bool found = false;

        for (size_t n = 0; n < tags->n; n++)
            found = found || strcmp(tags->items[n], w->tags->items[i]) == 0;
        if (!found)
            return false;
    }
    return true;
}

static bool is_known(const struct event_watch *w, const char *id)
{
    for (const struct event_source *s = w->sources; s; s = s->next)
        if (strcmp(s->id, id) == 0)
            return true;
    return false;
}

/* One that has gone since it was seen is no error. */
static int add_record(struct event_watch *w, const struct state_record *r, struct error *err)
{
    if (!is_meant(w, &r->tags) || is_known(w, r->id))
        return 0;
    int result = add(w, r->id, err);
    if (result != -ENOENT && result != -EPIPE)
        return result;
    *err = (struct error)ERROR_INIT;
    return 0;
}

static int add_all(struct event_watch *w, struct error *err)
{
    struct state_record *list = NULL;
    size_t n = 0;
    int r = state_list(&list, &n, err);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_record(w, &list[i], err);
    state_records_free(list, n);
    return r;
}

int event_watch_all(struct event_watch *w, struct error *err)
{
    w->all = true;
    if (w->follow) {
        w->state_fd = state_folder_open(err);
        if (w->state_fd < 0)
            return w->state_fd;
        w->state_watch = watch_folder(w, w->state_fd, IN_MOVED_TO);
        if (w->state_watch < 0)
            return cannot(w->state_watch, "the state folder cannot be watched", err);
    }
    return add_all(w, err);
}

/* One was made: its keeper puts its folder there when all is in it (core/state.h). */
static int take_new(struct event_watch *w, const char *id)
{
    struct error ignored = ERROR_INIT;
    struct state_record record;
    _cleanup_fd_ int folder = state_sandbox_folder(id, &ignored);

    if (folder < 0 || state_record_read(folder, &record) < 0)
        return 0;
    int r = add_record(w, &record, &ignored);
    state_record_done(&record);
    return r == 0 && w->pause ? w->pause(w->owner) : r;
}

static int take_change(struct event_watch *w, const struct inotify_event *e)
{
    struct error ignored = ERROR_INIT;

    if (e->mask & IN_Q_OVERFLOW) { /* something was missed: all are looked at */
        int r = w->all ? add_all(w, &ignored) : 0;

        for (struct event_source *s = w->sources; r == 0 && s; s = s->next)
            r = look(s);
        return r;
    }
    if (e->wd == w->state_watch)
        return e->len > 0 && strncmp(e->name, id_start, sizeof id_start - 1) == 0
                   ? take_new(w, e->name)
                   : 0;
    for (struct event_source *s = w->sources; s; s = s->next)
        if (s->number == e->wd) {
            if (e->mask & IN_IGNORED) /* the folder is gone, and the number may come again */
                s->number = -1;
            return s->over ? 0 : look(s);
        }
    return 0;
}

static int changed(struct loop *l, struct loop_source *source, uint32_t events)
{
    char buf[CHANGES_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
    struct event_watch *w = source->owner;
    ssize_t n;
    int r = 0;

    (void)l;
    (void)events;
    while (r == 0 && (n = read(source->fd, buf, sizeof buf)) > 0)
        for (const char *p = buf; r == 0 && p < buf + n;) {
            const struct inotify_event *e = (const struct inotify_event *)(const void *)p;

            r = take_change(w, e);
            p += sizeof *e + e->len;
        }
    return r;
}

/* A pipe's end for writing has an error, a socket and a terminal a hang-up. */
static int reader_gone(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct event_watch *w = source->owner;

    if (events & (EPOLLERR | EPOLLHUP)) {
        w->unread = true;
        l->stop = true;
    }
    return 0;
}

static int watch_reader(struct event_watch *w)
{
    w->reader =
        (struct loop_source){.name = "reader", .fd = -EBADF, .owner = w, .ready = reader_gone};
    int r = loop_watch(&w->loop, &w->reader, w->out_fd, EPOLLERR);
    return r == -EPERM ? 0 : r; /* a file has no reader that could go (epoll_ctl(2)) */
}

int event_watch_follow(struct event_watch *w, struct error *err)
{
    w->changes = (struct loop_source){.name = "events", .fd = -EBADF, .owner = w, .ready = changed};
    int r = loop_watch(&w->loop, &w->changes, w->changes_fd, EPOLLIN);
    if (r == 0)
        r = watch_reader(w);
    if (r == 0)
        r = loop_run(&w->loop);
    return cannot(r, "the events cannot be followed", err);
}

void event_watch_done(struct event_watch *w)
{
    while (w->sources) {
        struct event_source *s = w->sources;

        w->sources = s->next;
        s->session.over = NULL;
        source_free(s);
    }
    fd_closep(&w->changes_fd);
    fd_closep(&w->state_fd);
    loop_done(&w->loop);
}
