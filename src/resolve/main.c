/* SPDX-License-Identifier: Apache-2.0 */
/* The program `resolve`: questions in, answers out, a few at a time (resolve.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "resolve/resolve.h"
#include "base/guards.h"

enum {
    SOCKET_FD = 3,
    THREADS_MAX = 8,
    STACK_BYTES = 256 * 1024, /* getaddrinfo(3) and the services that it loads take some */
};

/* What the threads share. */
struct resolver {
    const struct name_server *server; /* NULL: the host's way */
    atomic_uint n_threads, n_idle;
};

static void start_thread(struct resolver *r);

static void answer(struct resolver *r, const uint8_t *question, size_t len)
{
    uint8_t buf[RESOLVE_PACKET_MAX];
    char name[RESOLVE_NAME_MAX + 1];
    struct resolve_answer x = {.status = RESOLVE_FAILED};

    if (resolve_question_parse(question, len, &x.id, name) < 0)
        return; /* not what egress would say; its id may be none */
    if (r->server)
        name_server_resolve(r->server, name, &x);
    else
        host_way_resolve(name, &x);
    len = resolve_answer_encode(&x, buf, sizeof buf);
    (void)!send(SOCKET_FD, buf, len, MSG_NOSIGNAL);
}

/* Each thread waits for the next question itself: the socket is the queue. */
static void *serve(void *arg)
{
    struct resolver *r = arg;
    uint8_t buf[RESOLVE_PACKET_MAX];

    for (;;) {
        atomic_fetch_add(&r->n_idle, 1);
        ssize_t n = recv(SOCKET_FD, buf, sizeof buf, MSG_TRUNC);
        /* Nobody else waits now: somebody will have to when the next question comes. */
        if (atomic_fetch_sub(&r->n_idle, 1) == 1)
            start_thread(r);
        if (n == 0 || (n < 0 && errno != EINTR))
            _exit(0);
        if (n > 0 && (size_t)n <= sizeof buf)
            answer(r, buf, (size_t)n);
    }
}

static void start_thread(struct resolver *r)
{
    pthread_attr_t attr;
    pthread_t thread;

    if (atomic_fetch_add(&r->n_threads, 1) >= THREADS_MAX) {
        atomic_fetch_sub(&r->n_threads, 1);
        return;
    }
    if (pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0 &&
        pthread_create(&thread, &attr, serve, r) == 0)
        return;
    atomic_fetch_sub(&r->n_threads, 1); /* the others go on */
}

/* Less than what it was started with. The keeper's death is also seen as the end of the socket, but
 * not by a thread that hangs in a look-up. */
static int lock_in(void)
{
    int flags = fcntl(SOCKET_FD, F_GETFL);

    if (flags < 0 || fcntl(SOCKET_FD, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
        fcntl(SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0 || clearenv() != 0)
        return -1;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0) < 0)
        return -1;
    (void)prctl(PR_SET_NAME, "atoll-resolve");
    return 0;
}

/* Waits for the end of the socket, whatever the threads are at. */
static void await_end(void)
{
    struct pollfd p = {.fd = SOCKET_FD, .events = 0}; /* POLLHUP is told of always */

    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
}

int main(int argc, char **argv)
{
    struct name_server server;
    struct resolver r = {.server = argc > 1 ? &server : NULL};

    if (argc > 2 || (argc > 1 && name_server_parse(argv[1], &server) < 0) || lock_in() < 0)
        return 2;
    start_thread(&r);
    if (atomic_load(&r.n_threads) == 0)
        return 1;
    await_end();
    _exit(0);
}
