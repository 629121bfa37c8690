/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: the loop that everything runs on, and the children that are waited for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/guards.h"

enum { BACKEND_END_US = 5000000 };

const char *atoll_version(void)
{
    return ATOLL_VERSION;
}

int api_error(struct atoll_error *ret, const struct error *err)
{
    if (!ret)
        return -err->code;
    *ret = (struct atoll_error){.code = err->code, .cls = (int)err->cls};
    (void)snprintf(ret->message, sizeof ret->message, "%s%s%s", err->context,
                   err->context[0] ? ": " : "", err->message);
    (void)snprintf(ret->remedy, sizeof ret->remedy, "%s", err->remedy);
    text_make_printable(ret->message);
    text_make_printable(ret->remedy);
    return -err->code;
}

int atoll_new(struct atoll **ret, struct atoll_error *err)
{
    struct atoll *a = calloc(1, sizeof *a);
    int r = a ? loop_init(&a->loop) : -ENOMEM;

    if (r < 0) {
        struct error e = ERROR_INIT;

        free(a);
        (void)error_set(&e, ERROR_TERMINAL, -r, "cannot make a context: %s", strerror(-r));
        return api_error(err, &e);
    }
    *ret = a;
    return 0;
}

int atoll_set_program(struct atoll *a, const char *path)
{
    char *copy = NULL;

    if (path && path[0] != '/')
        return -EINVAL;
    if (path && !(copy = strdup(path)))
        return -ENOMEM;
    free(a->program);
    a->program = copy;
    return 0;
}

int atoll_fd(struct atoll *a)
{
    int r = loop_make_pollable(&a->loop);

    return r < 0 ? r : a->loop.epoll_fd;
}

int atoll_step(struct atoll *a)
{
    return loop_turn(&a->loop, 0);
}

static void child_gone(struct left_child *c)
{
    struct left_child **p = &c->a->children;

    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    loop_free_later(&c->a->loop, c);
}

static int child_ended(struct loop *l, struct loop_source *s, uint32_t events)
{
    struct left_child *c = s->owner;

    (void)events;
    loop_forget(l, s);
    if (child_reap(&c->child, 0))
        child_gone(c);
    return 0;
}

void context_leave(struct atoll *a, struct session *s, bool ends)
{
    struct left_child *c;

    if (s->child.pid <= 0)
        return;
    c = calloc(1, sizeof *c);
    if (!c) /* then it stays a zombie until this process ends */
        return;
    *c = (struct left_child){
        .next = a->children,
        .a = a,
        .child = s->child,
        .source = {.name = "child", .fd = -EBADF, .owner = c, .ready = child_ended},
        .ends = ends,
        .backend = s->backend,
    };
    s->child = (struct child)CHILD_NONE;
    a->children = c;
    if (c->child.pid_fd >= 0)
        (void)loop_watch(&a->loop, &c->source, c->child.pid_fd, EPOLLIN);
}

/* Blocks for those whose sandboxes are ending. */
static void collect_children(struct atoll *a)
{
    while (a->children) {
        struct left_child *c = a->children;
        uint64_t until = !c->ends ? 0 : c->backend ? clock_after_us(BACKEND_END_US) : CLOCK_NEVER;

        loop_forget(&a->loop, &c->source);
        if (!child_reap(&c->child, until) && c->ends) {
            child_kill(&c->child);
            (void)child_reap(&c->child, CLOCK_NEVER);
        }
        fd_closep(&c->child.pid_fd);
        a->children = c->next;
        free(c);
    }
}

void atoll_free(struct atoll *a)
{
    if (!a)
        return;
    while (a->ops)
        atoll_op_free(a->ops);
    while (a->sandboxes)
        sandbox_free(a->sandboxes);
    collect_children(a);
    loop_done(&a->loop);
    free(a->program);
    free(a);
}
