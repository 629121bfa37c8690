/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop over epoll. */
#include "base/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/guards.h"

enum { LOOP_BATCH = 32 };

int loop_init(struct loop *l)
{
    *l = (struct loop){
        .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .alarm.fd = -EBADF, .alarm_us = CLOCK_NEVER};
    return l->epoll_fd < 0 ? -errno : 0;
}

static void free_garbage(struct loop *l)
{
    while (l->n_garbage > 0)
        free(l->garbage[--l->n_garbage]);
}

void loop_done(struct loop *l)
{
    free_garbage(l);
    free(l->garbage);
    fd_closep(&l->alarm.fd);
    fd_closep(&l->epoll_fd);
    *l = (struct loop){.epoll_fd = -EBADF, .alarm.fd = -EBADF};
}

int loop_watch(struct loop *l, struct loop_source *s, int fd, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data = {.ptr = s}};

    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
        return -errno;
    if (events == 0)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    s->fd = fd;
    s->events = events;
    return 0;
}

int loop_change(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data = {.ptr = s}};
    int op = events == 0 ? EPOLL_CTL_DEL : s->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (s->fd < 0 || s->events == events)
        return 0;
    if (epoll_ctl(l->epoll_fd, op, s->fd, &ev) < 0)
        return -errno;
    s->events = events;
    return 0;
}

void loop_forget(struct loop *l, struct loop_source *s)
{
    if (s->fd < 0)
        return;
    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    s->fd = -EBADF;
}

/* Sets the alarm when the next timer is due before it; one that comes too early does no harm. */
static void set_alarm(struct loop *l)
{
    uint64_t next = l->timers ? l->timers->deadline_us : CLOCK_NEVER;
    struct itimerspec when = {0};

    if (l->alarm.fd < 0 || next >= l->alarm_us)
        return;
    when.it_value.tv_sec = (time_t)(next / 1000000u);
    when.it_value.tv_nsec =
        (long)(next % 1000000u) * 1000 + 1; /* nothing but zeros would stop it */
    if (timerfd_settime(l->alarm.fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        l->alarm_us = next;
}

static int alarm_came(struct loop *l, struct loop_source *s, uint32_t events)
{
    uint64_t times;

    (void)events;
    (void)!read(s->fd, &times, sizeof times);
    l->alarm_us = CLOCK_NEVER; /* it is set anew when the timers have run */
    return 0;
}

int loop_make_pollable(struct loop *l)
{
    int fd, r;

    if (l->alarm.fd >= 0)
        return 0;
    fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    l->alarm = (struct loop_source){.name = "alarm", .fd = -EBADF, .ready = alarm_came};
    r = loop_watch(l, &l->alarm, fd, EPOLLIN);
    if (r < 0)
        (void)close(fd);
    else
        set_alarm(l);
    return r;
}

void loop_at(struct loop *l, struct loop_timer *t, uint64_t deadline_us)
{
    struct loop_timer **p = &l->timers;

    for (struct loop_timer **q = &l->timers; t->set && *q; q = &(*q)->next)
        if (*q == t) {
            *q = t->next;
            break;
        }
    t->set = deadline_us != CLOCK_NEVER;
    t->deadline_us = deadline_us;
    if (!t->set)
        return;
    while (*p && (*p)->deadline_us <= deadline_us)
        p = &(*p)->next;
    t->next = *p;
    *p = t;
    set_alarm(l);
}

int loop_open_signals(const sigset_t *set)
{
    if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

void loop_free_later(struct loop *l, void *p)
{
    void **more = realloc(l->garbage, (l->n_garbage + 1) * sizeof *more);

    if (!more)
        return; /* a small leak is better than memory that is still named */
    l->garbage = more;
    l->garbage[l->n_garbage++] = p;
}

static int run_timers(struct loop *l)
{
    uint64_t now = clock_now_us();

    while (l->timers && l->timers->deadline_us <= now) {
        struct loop_timer *t = l->timers;

        loop_at(l, t, CLOCK_NEVER);
        int r = t->due(l, t);
        if (r < 0)
            return r;
    }
    return 0;
}

int loop_turn(struct loop *l, uint64_t until_us)
{
    struct epoll_event ev[LOOP_BATCH];
    uint64_t next =
        l->timers && l->timers->deadline_us < until_us ? l->timers->deadline_us : until_us;
    int n = epoll_wait(l->epoll_fd, ev, LOOP_BATCH, next == 0 ? 0 : clock_poll_ms(next));
    int r = 0;

    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n && r == 0; i++) {
        struct loop_source *s = ev[i].data.ptr;

        if (s->fd >= 0) /* not forgotten earlier in this batch */
            r = s->ready(l, s, ev[i].events);
    }
    if (r == 0)
        r = run_timers(l);
    set_alarm(l);
    free_garbage(l);
    return r;
}

int loop_run(struct loop *l)
{
    int r = 0;

    while (!l->stop && r == 0)
        r = loop_turn(l, CLOCK_NEVER);
    return r;
}
