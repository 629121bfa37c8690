/* SPDX-License-Identifier: Apache-2.0 */
/* The egress process: its start, its parts, its end. */
#include "egress/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/spec_rules.h"
#include "egress/lockdown.h"
#include "wire/fault.h"
#include "base/guards.h"

enum { FIRST_FD = 3 };

/* A process of its own, that ends with the keeper whatever ends that. */
static int part_from_keeper(void)
{
    struct rlimit files;

    (void)prctl(PR_SET_NAME, "atoll-egress");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    (void)signal(SIGPIPE, SIG_IGN);
    /* Each flow has two sockets, and while bytes move a pipe. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return 0;
}

static int compare_fds(const void *a, const void *b)
{
    const int *x = *(int *const *)a, *y = *(int *const *)b;

    return (*x > *y) - (*x < *y);
}

/*
 * Packs what is kept into the lowest numbers and closes the rest: the keeper's copies of sockets
 * would keep connections open that have ended. In the order of their numbers, none is in the way.
 */
static int keep_only(int *fds[], size_t n)
{
    int next = FIRST_FD;

    qsort(fds, n, sizeof *fds, compare_fds);
    for (size_t i = 0; i < n; i++) {
        if (*fds[i] < 0)
            continue;
        if (*fds[i] != next && dup3(*fds[i], next, O_CLOEXEC) < 0)
            return -errno;
        *fds[i] = next++;
    }
    return syscall(SYS_close_range, next, ~0u, 0) < 0 ? -errno : 0;
}

static int take_descriptors(struct egress_start *s)
{
    int **fds = reallocarray(NULL, s->n_listeners + 2, sizeof *fds);
    size_t n = 0;

    if (!fds)
        return -ENOMEM;
    fds[n++] = &s->keeper_fd;
    fds[n++] = &s->resolve_fd;
    for (size_t i = 0; i < s->n_listeners; i++)
        fds[n++] = &s->listeners[i];
    int r = keep_only(fds, n);
    free(fds);
    return r;
}

static int build_policy(struct egress *e, const struct spec *spec, struct error *err)
{
    struct problems problems = {0};
    int r = spec_policy(spec, &e->policy, &problems);

    if (r < 0)
        (void)problems_error(&problems, NULL, err);
    problems_done(&problems);
    return r;
}

static int start_parts(struct egress *e, const struct egress_start *s, struct error *err)
{
    const char *what = "event loop";
    int r = loop_init(&e->loop);

    e->pool = s->pool;
    e->traffic = s->traffic;
    e->generation = 1;
    for (size_t i = 0; i < INSIDE__MAX; i++)
        e->inside[i] = -EBADF;
    denials_init(&e->denials, e);
    if (r == 0 && (what = "names", r = names_init(&e->names, &e->pool)) == 0 &&
        (what = "route socket", r = own_address_init(&e->own_address)) == 0 &&
        (what = "look-ups", r = lookups_init(&e->lookups, e, s->resolve_fd)) == 0 &&
        (what = "flows", r = flows_init(&e->flows, e)) == 0 &&
        (what = "datagrams", r = datagrams_init(&e->datagrams, e)) == 0 &&
        (what = "resolver", r = dns_server_init(&e->dns, e)) == 0 &&
        (what = "published ports",
         r = publish_init(&e->publish, e, s->listeners, s->n_listeners, s->ports)) == 0)
        return 0;
    return error_set(err, ERROR_TERMINAL, -r, "egress cannot start its %s: %s", what, strerror(-r));
}

static int start(struct egress *e, const struct egress_start *s, struct error *err)
{
    int r = build_policy(e, s->spec, err);

    if (r == 0)
        r = proxy_init(&e->proxy, s->spec->proxy, s->spec->proxy_credentials, s->resolve_fd, err);
    if (r == 0)
        r = start_parts(e, s, err);
    if (r == 0)
        r = lockdown_enter(s->uid, s->gid, err);
    return r;
}

static void tell_fault(struct egress *e, const struct error *err)
{
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);

    fault_encode(&w, err);
    (void)channel_send(&e->keeper, MSG_EGRESS_FAULT, 0, buf, w.bad ? 0 : writer_len(&w), NULL, 0);
}

int egress_main(const struct egress_start *start_with)
{
    struct egress_start s = *start_with;
    struct egress *e = calloc(1, sizeof *e);
    struct error err = ERROR_INIT;
    int r = e ? part_from_keeper() : -ENOMEM;

    if (r == 0)
        r = take_descriptors(&s);
    if (r < 0)
        return 1;
    channel_init(&e->keeper, s.keeper_fd);
    r = start(e, &s, &err);
    if (r < 0) {
        tell_fault(e, &err);
        return 1;
    }
    r = keeper_link_start(e);
    return r == 0 ? loop_run(&e->loop) < 0 : 1;
}
