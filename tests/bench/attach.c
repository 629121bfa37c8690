/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What taking a sandbox's lease costs, and whether ever more than one gets it. It speaks the
 * protocol itself, so that nothing but the keeper is measured.
 *
 * attach time SOCKET OWNER N             N rounds of "hello", a connection and its greeting, and of
 * "attach", the same with ATTACH until ATTACHED is here
 *
 * attach race SOCKET OWNER HOLDERS N     N rounds: so many processes, each with a connection that
 * was greeted, are let go at once, and each asks for the lease as another holder. Exactly one must
 * get it, and all others must be told that it is held; "race" is the time until all have an answer
 *
 * SOCKET is the sandbox's control socket. Each line of output is "NAME NANOSECONDS". A failure is
 * said and ends it all with status 1.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/channel.h"
#include "wire/control.h"
#include "wire/fault.h"

enum { HOLDERS_MAX = 256, ROUNDS_MAX = 1000000, PATIENCE_S = 20, ROUNDS_PER_WARM_UP = 50 };

enum request { ID_HELLO = 1, ID_ATTACH, ID_RELEASE };

static int fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "attach: %s: %s\n", what, why);
    return -1;
}

static int number(const char *text, int max)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || n < 1 || n > max) {
        (void)fail(text, strerror(EINVAL));
        exit(2);
    }
    return (int)n;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int dial(const char *path, struct channel *ret)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof address.sun_path)
        return fail(path, strerror(ENAMETOOLONG));
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return fail(path, strerror(errno));
    channel_init(ret, fd);
    return 0;
}

/* The answer to one request; what comes unasked is passed over. Return: 0 or -1, said. */
static int answer(struct channel *c, uint32_t id, struct message *ret)
{
    uint64_t deadline_us = clock_after_us(PATIENCE_S * UINT64_C(1000000));

    for (;;) {
        int r = channel_receive(c, ret);

        if (r == 1) {
            message_close_fds(ret);
            if (ret->id == id)
                return 0;
        } else if (r < 0 || (r = io_wait(c->fd, POLLIN, deadline_us)) < 0) {
            return fail("an answer", strerror(-r));
        }
    }
}

static int ask(struct channel *c, uint16_t type, uint32_t id, struct writer *w, struct message *ret)
{
    int r = w->bad ? -EMSGSIZE : channel_send(c, type, id, w->start, writer_len(w), NULL, 0);

    return r < 0 ? fail("a request", strerror(-r)) : answer(c, id, ret);
}

static int greet(struct channel *c)
{
    const struct hello mine = {WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR, "attach"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);
    struct message m;

    hello_encode(&w, &mine);
    if (ask(c, MSG_HELLO, ID_HELLO, &w, &m) < 0)
        return -1;
    return m.type == MSG_HELLO ? 0 : fail("HELLO", "not what was answered");
}

/* Return: 1 if it got the lease, 0 if that is held, -1 for all else, said. */
static int take_lease(struct channel *c, const char *owner, const char *holder)
{
    const struct attach_request x = {.owner = owner, .holder = holder};
    uint8_t buf[512];
    struct writer w = writer_over(buf, sizeof buf);
    struct error err = ERROR_INIT;
    struct message m;

    attach_request_encode(&w, &x);
    if (ask(c, MSG_ATTACH, ID_ATTACH, &w, &m) < 0)
        return -1;
    if (m.type == MSG_ATTACHED)
        return 1;
    if (m.type != MSG_ERROR || fault_decode(m.payload, &err) < 0)
        return fail("ATTACH", "not what was answered");
    return err.code == EBUSY ? 0 : fail("ATTACH", err.message);
}

static int give_back(struct channel *c)
{
    uint8_t none[1];
    struct writer w = writer_over(none, 0);
    struct message m;

    if (ask(c, MSG_RELEASE, ID_RELEASE, &w, &m) < 0)
        return -1;
    return m.type == MSG_DONE ? 0 : fail("RELEASE", "not what was answered");
}

/* One connection, with the lease taken or not. Return: what it took, ns; 0 when it failed. */
static uint64_t visit(const char *path, const char *owner, bool attach)
{
    uint64_t began = now_ns(), took = 0;
    struct channel c;

    if (dial(path, &c) < 0)
        return 0;
    int r = greet(&c);
    if (r == 0 && attach)
        r = take_lease(&c, owner, "bench") == 1 ? 0 : fail("ATTACH", "the lease is held");
    if (r == 0)
        took = now_ns() - began;
    if (r == 0 && attach && give_back(&c) < 0)
        took = 0;
    channel_done(&c);
    return took;
}

static int measure_time(const char *path, const char *owner, int rounds)
{
    int warm = 1 + rounds / ROUNDS_PER_WARM_UP;

    for (int round = 0; round < warm + rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            bool attach = (turn + round) % 2; /* every other round in reverse */
            uint64_t ns = visit(path, owner, attach);

            if (ns == 0)
                return -1;
            if (round >= warm)
                (void)printf("%s %llu\n", attach ? "attach" : "hello", (unsigned long long)ns);
        }
    return 0;
}

/* What the racing processes share. */
struct race {
    pthread_barrier_t barrier;
    const char *path, *owner;
    int holders, rounds;
    uint64_t began[HOLDERS_MAX], ended[HOLDERS_MAX];
    int got[HOLDERS_MAX]; /* of this round: as take_lease() */
};

static void meet(struct race *x)
{
    (void)pthread_barrier_wait(&x->barrier);
}

/* One round of one holder. It takes part to its end also when it failed: the others wait for it. */
static int race_once(struct race *x, int me)
{
    char holder[32];
    struct channel c = {.fd = -EBADF};
    int r = dial(x->path, &c);

    (void)snprintf(holder, sizeof holder, "holder-%d", me);
    if (r == 0)
        r = greet(&c);
    meet(x);
    x->began[me] = now_ns();
    x->got[me] = r < 0 ? -1 : take_lease(&c, x->owner, holder);
    x->ended[me] = now_ns();
    meet(x);
    r = x->got[me];
    /* Before the next round, in which it must be free. */
    if (r == 1 && give_back(&c) < 0)
        r = -1;
    if (c.fd >= 0)
        channel_done(&c);
    meet(x);
    return r < 0 ? -1 : 0;
}

static int race_child(struct race *x, int me, pid_t parent)
{
    int r = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return -1;
    for (int round = 0; round < x->rounds; round++)
        if (race_once(x, me) < 0)
            r = -1;
    return r;
}

/* Return: 0 if exactly one got it. */
static int judge(const struct race *x, int round)
{
    uint64_t first = UINT64_MAX, last = 0;
    char text[64];
    int winners = 0, failed = 0;

    for (int i = 0; i < x->holders; i++) {
        winners += x->got[i] == 1;
        failed += x->got[i] < 0;
        first = x->began[i] < first ? x->began[i] : first;
        last = x->ended[i] > last ? x->ended[i] : last;
    }
    (void)printf("race %llu\n", (unsigned long long)(last - first));
    if (winners == 1 && failed == 0)
        return 0;
    (void)snprintf(text, sizeof text, "%d got the lease, %d failed", winners, failed);
    (void)fprintf(stderr, "attach: round %d: %s\n", round, text);
    return -1;
}

static int measure_race(const char *path, const char *owner, int holders, int rounds)
{
    struct race *x =
        mmap(NULL, sizeof *x, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pid_t parent = getpid();
    int r = 0, status;

    if (x == MAP_FAILED)
        return fail("memory", strerror(errno));
    *x = (struct race){.path = path, .owner = owner, .holders = holders, .rounds = rounds};
    (void)pthread_barrierattr_init(&shared);
    (void)pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (pthread_barrier_init(&x->barrier, &shared, (unsigned)holders + 1) != 0)
        return fail("a barrier", strerror(EINVAL));
    (void)fflush(stdout);
    for (int i = 0; i < holders; i++) {
        pid_t pid = fork();

        if (pid < 0)
            return fail("fork", strerror(errno)); /* those that wait already end with this one */
        if (pid == 0)
            _exit(race_child(x, i, parent) < 0);
    }
    for (int round = 0; round < rounds; round++) {
        meet(x);
        meet(x); /* all have an answer */
        if (judge(x, round) < 0)
            r = -1;
        meet(x);
    }
    for (int i = 0; i < holders; i++)
        if (wait(&status) < 0 || status != 0)
            r = -1;
    return r;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int r = -1;

    if (argc == 5 && strcmp(what, "time") == 0)
        r = measure_time(argv[2], argv[3], number(argv[4], ROUNDS_MAX));
    else if (argc == 6 && strcmp(what, "race") == 0)
        r = measure_race(argv[2], argv[3], number(argv[4], HOLDERS_MAX),
                         number(argv[5], ROUNDS_MAX));
    else
        (void)fputs("usage: attach time SOCKET OWNER N | race SOCKET OWNER HOLDERS N\n", stderr);
    return r < 0 ? 1 : 0;
}
