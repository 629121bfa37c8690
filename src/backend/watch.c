/* SPDX-License-Identifier: Apache-2.0 */
/* A backend's own descriptors and timers in the loop. */
#include <atoll_backend.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "backend/server.h"
#include "base/clock.h"
#include "base/guards.h"

struct backend_watch {
    struct loop_source source;
    struct backend_watch *next;
    struct atoll_server *server;
    void (*ready)(struct atoll_server *server, int fd, short events, void *arg);
    void *arg;
};

struct backend_timer {
    struct loop_timer timer;
    struct backend_timer *next;
    struct atoll_server *server;
    void (*due)(struct atoll_server *server, void *arg);
    void *arg;
};

/* The events of poll(2) and epoll(7) are the same bits on Linux. */
_Static_assert(EPOLLIN == 1 && EPOLLOUT == 4 && EPOLLERR == 8 && EPOLLHUP == 16,
               "events are passed on as they are");

static int watch_ready(struct loop *l, struct loop_source *source, uint32_t events)
{
    struct backend_watch *w = source->owner;

    (void)l;
    w->ready(w->server, source->fd, (short)(events & 0xff), w->arg);
    return 0;
}

static void watch_remove(struct backend_watch **at)
{
    struct backend_watch *w = *at;

    *at = w->next;
    loop_forget(&w->server->loop, &w->source);
    loop_free_later(&w->server->loop, w);
}

int atoll_backend_watch(struct atoll_server *server, int fd, short events,
                        void (*ready)(struct atoll_server *server, int fd, short events, void *arg),
                        void *arg)
{
    struct backend_watch **at = &server->watches;

    while (*at && (*at)->source.fd != fd)
        at = &(*at)->next;
    if (*at && events != 0) {
        (*at)->ready = ready;
        (*at)->arg = arg;
        return loop_change(&server->loop, &(*at)->source, (uint32_t)events);
    }
    if (events == 0) {
        if (*at)
            watch_remove(at);
        return 0;
    }
    struct backend_watch *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    *w = (struct backend_watch){.server = server, .ready = ready, .arg = arg};
    w->source =
        (struct loop_source){.name = "backend", .fd = -EBADF, .owner = w, .ready = watch_ready};
    int r = loop_watch(&server->loop, &w->source, fd, (uint32_t)events);
    if (r < 0) {
        free(w);
        return r;
    }
    w->next = server->watches;
    server->watches = w;
    return 0;
}

static void timer_remove(struct backend_timer *t)
{
    struct backend_timer **at = &t->server->timers;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    loop_at(&t->server->loop, &t->timer, CLOCK_NEVER);
    loop_free_later(&t->server->loop, t);
}

static int timer_due(struct loop *l, struct loop_timer *timer)
{
    struct backend_timer *t = timer->owner;

    (void)l;
    timer_remove(t);
    t->due(t->server, t->arg);
    return 0;
}

int atoll_backend_timer(struct atoll_server *server, uint64_t us,
                        void (*due)(struct atoll_server *server, void *arg), void *arg)
{
    struct backend_timer *t = server->timers;

    while (t && (t->due != due || t->arg != arg))
        t = t->next;
    if (us == ATOLL_FOREVER) {
        if (t)
            timer_remove(t);
        return 0;
    }
    if (!t) {
        t = calloc(1, sizeof *t);
        if (!t)
            return -ENOMEM;
        *t = (struct backend_timer){.server = server, .due = due, .arg = arg};
        t->timer = (struct loop_timer){.name = "backend", .owner = t, .due = timer_due};
        t->next = server->timers;
        server->timers = t;
    }
    loop_at(&server->loop, &t->timer, clock_after_us(us));
    return 0;
}

void watches_done(struct atoll_server *s)
{
    while (s->watches)
        watch_remove(&s->watches);
    while (s->timers)
        timer_remove(s->timers);
}
