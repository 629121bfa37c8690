/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to `resolve`, and who waits for their answers. */
#include "egress/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "egress/egress.h"
#include "wire/resolve.h"
#include "base/guards.h"

/* Keeps what was said of a name; without memory for the addresses, that nobody could say. */
static void keep(struct name *x, const struct resolve_answer *answer, uint64_t fresh_until_us)
{
    if (names_found(x, answer->status, answer->addresses, answer->n, fresh_until_us) < 0)
        (void)names_found(x, RESOLVE_FAILED, NULL, 0, fresh_until_us);
}

static struct lookup *take_out(struct lookups *l, struct lookup **at)
{
    struct lookup *lookup = *at;

    *at = lookup->next;
    lookup->next = NULL;
    l->n--;
    loop_at(&l->egress->loop, &l->timer, l->first ? l->first->deadline_us : CLOCK_NEVER);
    return lookup;
}

/* Tells all who wait. Each may forget others, and may ask for the same name again, which is a
 * look-up of its own then. */
static void finish(struct lookups *l, struct lookup **at, const struct resolve_answer *answer)
{
    struct lookup *lookup = take_out(l, at);
    struct name *x = lookup->name;
    struct lookup_waiter *w;

    keep(x, answer,
         clock_after_us(answer->status == RESOLVE_FOUND ? LOOKUP_FRESH_US : LOOKUP_AGAIN_US));
    while ((w = lookup->waiters)) {
        lookup->waiters = w->next;
        w->next = NULL;
        w->lookup = NULL;
        w->done(w, x);
    }
    x->users--;
    free(lookup);
}

static void fail_all(struct lookups *l)
{
    static const struct resolve_answer failed = {.status = RESOLVE_FAILED};

    while (l->first)
        finish(l, &l->first, &failed);
}

/* `resolve` is gone, and the keeper is about to end the sandbox. */
static void part(struct lookups *l)
{
    loop_forget(&l->egress->loop, &l->source);
    fd_closep(&l->fd);
    fail_all(l);
}

/* An answer to nothing that is asked now came too late, or is foreign: it is nobody's. */
static void take_answer(struct lookups *l, const uint8_t *data, size_t len)
{
    struct resolve_answer answer;

    if (resolve_answer_parse(data, len, &answer) < 0)
        return;
    for (struct lookup **at = &l->first; *at; at = &(*at)->next)
        if ((*at)->id == answer.id) {
            finish(l, at, &answer);
            return;
        }
}

static int answers_came(struct loop *loop, struct loop_source *s, uint32_t events)
{
    struct lookups *l = s->owner;
    uint8_t buf[RESOLVE_PACKET_MAX];
    int fds[IO_FDS_MAX];

    (void)loop;
    (void)events;
    while (l->fd >= 0) {
        size_t n_fds = 0;
        ssize_t n = io_recv_packet(l->fd, buf, sizeof buf, fds, &n_fds);

        while (n_fds > 0) /* none was asked for */
            fd_closep(&fds[--n_fds]);
        if (n > 0)
            take_answer(l, buf, (size_t)n);
        else if (n == -EAGAIN)
            break;
        else if (n != -EMSGSIZE && n != -EMFILE)
            part(l);
    }
    return 0;
}

/* They began one after another and wait equally long: the first is the first to be given up. */
static int time_is_over(struct loop *loop, struct loop_timer *t)
{
    static const struct resolve_answer failed = {.status = RESOLVE_FAILED};
    struct lookups *l = t->owner;
    uint64_t now = clock_now_us();

    (void)loop;
    while (l->first && l->first->deadline_us <= now)
        finish(l, &l->first, &failed);
    loop_at(&l->egress->loop, &l->timer, l->first ? l->first->deadline_us : CLOCK_NEVER);
    return 0;
}

int lookups_init(struct lookups *l, struct egress *e, int fd)
{
    *l = (struct lookups){
        .egress = e,
        .fd = fd < 0 ? -EBADF : fd,
        .source = {.name = "resolve", .fd = -EBADF, .owner = l, .ready = answers_came},
        .timer = {.name = "look-up", .owner = l, .due = time_is_over},
    };
    return l->fd < 0 ? 0 : loop_watch(&e->loop, &l->source, l->fd, EPOLLIN);
}

void lookups_done(struct lookups *l)
{
    if (!l->egress)
        return;
    loop_forget(&l->egress->loop, &l->source);
    loop_at(&l->egress->loop, &l->timer, CLOCK_NEVER);
    fd_closep(&l->fd);
    while (l->first) {
        struct lookup *lookup = take_out(l, &l->first);

        while (lookup->waiters)
            lookup_forget(lookup->waiters);
        lookup->name->users--;
        free(lookup);
    }
}

static struct lookup **find(struct lookups *l, const struct name *x)
{
    struct lookup **at = &l->first;

    while (*at && (*at)->name != x)
        at = &(*at)->next;
    return at;
}

/* Asks; NULL when that is not possible now. */
static struct lookup *ask(struct lookups *l, struct name *x)
{
    uint8_t buf[RESOLVE_PACKET_MAX];
    struct lookup *lookup = NULL;
    size_t len = resolve_question_encode(l->last_id + 1, x->text.text, buf, sizeof buf);

    if (l->fd < 0 || l->n >= LOOKUPS_MAX || len == 0 || !(lookup = malloc(sizeof *lookup)))
        return NULL;
    if (io_send_packet(l->fd, buf, len, NULL, 0, NULL, 0) < 0) { /* -EAGAIN too: it has enough */
        free(lookup);
        return NULL;
    }
    *lookup = (struct lookup){
        .id = ++l->last_id,
        .name = x,
        .deadline_us = clock_after_us(LOOKUP_TIMEOUT_US),
    };
    x->users++;
    *find(l, NULL) = lookup;
    l->n++;
    loop_at(&l->egress->loop, &l->timer, l->first->deadline_us);
    return lookup;
}

bool lookup_need(struct lookups *l, struct name *x, struct lookup_waiter *w)
{
    struct lookup *lookup;
    struct lookup_waiter **last;

    if (x->looked_up && clock_now_us() < x->fresh_until_us)
        return true;
    lookup = *find(l, x);
    if (!lookup && !(lookup = ask(l, x))) {
        (void)names_found(x, RESOLVE_FAILED, NULL, 0, 0); /* and the next one may ask again */
        return true;
    }
    for (last = &lookup->waiters; *last;)
        last = &(*last)->next;
    *last = w;
    w->next = NULL;
    w->lookup = lookup;
    return false;
}

void lookup_forget(struct lookup_waiter *w)
{
    if (!w->lookup)
        return;
    for (struct lookup_waiter **at = &w->lookup->waiters; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    w->next = NULL;
    w->lookup = NULL;
}
