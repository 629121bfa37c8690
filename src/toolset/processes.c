/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what start_process has started. */
#include "toolset/processes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/buffer.h"
#include "base/guards.h"

/* What a program writes in one go may come in several pieces, and is one answer. */
#define SETTLE_US UINT64_C(50000)

/* --- one of them --- */

struct process *process_new(struct atoll_toolset *t)
{
    struct process *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->t = t;
    p->news = news_new(t->mask, t->spec.spec.toolset.max_output_bytes);
    if (p->news)
        return p;
    free(p);
    return NULL;
}

void process_free(struct process *p)
{
    if (!p)
        return;
    if (p->op)
        process_follow(NULL, p->op);
    atoll_op_free(p->op);
    loop_at(&p->t->a->loop, &p->over, CLOCK_NEVER);
    news_free(p->news);
    free(p);
}

/* Its call goes on: at once when there is nothing more to come. */
static void wake(const struct process *p)
{
    struct tool_call *c = p->call;
    uint64_t at = clock_now_us() + (p->ended ? 0 : SETTLE_US);

    if (c && (p->ended || p->awaits_news) && (!c->step.set || c->step.deadline_us > at))
        loop_at(&p->t->a->loop, &c->step, at);
}

/* Without memory the news say so when they are asked for. */
static void written(void *arg, int stream, const void *bytes, size_t len)
{
    struct process *p = arg;

    (void)news_feed(p->news, stream, bytes, len);
    if (news_waiting(p->news) > 0)
        wake(p);
}

void process_follow(struct process *p, struct atoll_op *op)
{
    exec_follow(op, p ? written : NULL, p);
}

void process_hold(struct process *p, struct tool_call *c)
{
    p->call = c;
    p->awaits_news = false;
}

void process_await(struct process *p, struct tool_call *c, bool news, uint64_t until_us)
{
    process_hold(p, c);
    p->awaits_news = news;
    loop_at(&p->t->a->loop, &c->step, until_us);
    if (p->ended || (news && news_waiting(p->news) > 0))
        wake(p);
}

void process_leave(struct process *p, const struct tool_call *c)
{
    if (p->call == c)
        p->call = NULL;
}

/* --- the table --- */

static void append(struct process **list, struct process *p)
{
    while (*list)
        list = &(*list)->next;
    p->next = NULL;
    *list = p;
}

static void take_out(struct process **list, const struct process *p)
{
    while (*list != p)
        list = &(*list)->next;
    *list = p->next;
}

static size_t count(const struct process *list)
{
    size_t n = 0;

    for (; list; list = list->next)
        n++;
    return n;
}

/* One that a call is about stays. */
static void forget_oldest(struct processes *all)
{
    struct process *p = all->ended;

    while (p && p->call)
        p = p->next;
    if (p) {
        take_out(&all->ended, p);
        process_free(p);
    }
}

static int over(struct loop *l, struct loop_timer *timer)
{
    struct process *p = timer->owner;
    struct processes *all = p->t->processes;

    (void)l;
    p->ended = true;
    provision_life(p->t, atoll_op_left_us(p->op));
    (void)news_end(p->news);
    take_out(&all->running, p);
    append(&all->ended, p);
    wake(p);
    if (count(all->ended) > PROCESSES_ENDED_MAX)
        forget_oldest(all);
    return 0;
}

int processes_add(struct process *p, struct atoll_op *op)
{
    struct processes *all = p->t->processes;

    if (!all)
        all = p->t->processes = calloc(1, sizeof *all);
    if (!all)
        return -ENOMEM;
    p->number = ++all->last_number;
    p->op = op;
    p->over = (struct loop_timer){.name = "process", .owner = p, .due = over};
    append(&all->running, p);
    exec_await_start(op, NULL);
    op_await(op, &p->over);
    return 0;
}

static struct process *find(struct process *list, uint32_t number)
{
    while (list && list->number != number)
        list = list->next;
    return list;
}

struct process *processes_find(const struct atoll_toolset *t, uint32_t number)
{
    const struct processes *all = t->processes;
    struct process *p = all ? find(all->running, number) : NULL;

    return p || !all ? p : find(all->ended, number);
}

size_t processes_running(const struct atoll_toolset *t)
{
    return t->processes ? count(t->processes->running) : 0;
}

char *processes_numbers(const struct atoll_toolset *t, bool ended)
{
    const struct processes *all = t->processes;
    const struct process *list = !all ? NULL : ended ? all->ended : all->running;
    struct buffer b = {0};
    char *text = NULL, one[24];

    for (const struct process *p = list; p; p = p->next) {
        const char *between = p == list ? "" : p->next ? ", " : " and ";

        (void)snprintf(one, sizeof one, "%s%" PRIu32, between, p->number);
        buffer_add_text(&b, one);
    }
    return buffer_take(&b, &text, NULL) == 0 ? text : NULL;
}

struct atoll_op *processes_take(struct atoll_toolset *t)
{
    struct process *p = t->processes ? t->processes->running : NULL;
    struct atoll_op *op;

    if (!p)
        return NULL;
    take_out(&t->processes->running, p);
    op = TAKE_PTR(p->op);
    process_follow(NULL, op);
    op->awaited = NULL; /* its timer goes with @p */
    process_free(p);
    op_give_up(op, ECANCELED);
    return op;
}

void processes_end(struct atoll_toolset *t)
{
    struct processes *all = TAKE_PTR(t->processes);
    struct process *p;

    if (!all)
        return;
    while ((p = all->running ? all->running : all->ended)) {
        take_out(all->running ? &all->running : &all->ended, p);
        process_free(p);
    }
    free(all);
}
