/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and the server that they are made to, for scripts/bench: small, so that neither end
 * is what is measured.
 *
 * net serve PORT             on loopback: greets each connection at PORT and closes it; greets each
 *                            at PORT + 1 and keeps it until the other end has gone. Says "ready",
 *                            and ends with its input
 *
 * net rate HOST PORT N W     W processes at once, each N times: connect, read to the end, close.
 *                            Says "rate NANOSECONDS", of all together
 *
 * net greet HOST PORT N      N times from before connect(2) until the first byte is there. Each is
 *                            a line "greet NANOSECONDS"
 *
 * net hold HOST PORT N       N connections that have been greeted. Says "held", and ends with its
 *                            input
 *
 * HOST is looked up once. A tenth of the connections of rate and greet come first, uncounted.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, TIMES_MAX = 1000000, HELD_MAX = 60000, EVENTS = 256, LIMIT_S = 60 };

static const char greeting[] = "220 hello\n";

__attribute__((noreturn)) static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "net: %s: %s\n", what, why);
    exit(1);
}

static void must(bool holds, const char *what)
{
    if (!holds)
        fail(what, strerror(errno));
}

static int number(const char *text, int max)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || n < 1 || n > max)
        fail(text, strerror(EINVAL));
    return (int)n;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void say(const char *word)
{
    (void)puts(word);
    must(fflush(stdout) == 0, word);
}

/* As many descriptors as one may have. */
static void raise_limit(void)
{
    struct rlimit limit;

    must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

/* The server */

static int listen_at(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "socket");
    must(bind(fd, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    must(listen(fd, SOMAXCONN) == 0, "listen");
    return fd;
}

static void watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};

    must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* All that wait at @listener; @epoll_fd watches for their end, -1: it comes at once. */
static void greet_all(int listener, int epoll_fd)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        (void)send(fd, greeting, strlen(greeting), MSG_NOSIGNAL);
        if (epoll_fd < 0)
            (void)close(fd);
        else
            watch(epoll_fd, fd);
    }
    must(errno == EAGAIN || errno == ECONNABORTED, "accept4");
}

static int serve(int port)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC), brief = listen_at(port),
        kept = listen_at(port + 1);
    struct epoll_event events[EVENTS];

    raise_limit();
    must(epoll_fd >= 0, "epoll_create1");
    watch(epoll_fd, brief);
    watch(epoll_fd, kept);
    watch(epoll_fd, STDIN_FILENO);
    say("ready");
    for (;;) {
        int n = epoll_wait(epoll_fd, events, EVENTS, -1);

        must(n >= 0 || errno == EINTR, "epoll_wait");
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == STDIN_FILENO)
                return 0;
            if (fd == brief || fd == kept)
                greet_all(fd, fd == kept ? epoll_fd : -1);
            else
                (void)close(fd);
        }
    }
}

/* The clients */

struct target {
    struct sockaddr_in at;
};

static struct target look_up(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    struct target target;
    int r = getaddrinfo(host, port, &hints, &found);

    if (r != 0)
        fail(host, gai_strerror(r));
    memcpy(&target.at, found->ai_addr, sizeof target.at);
    freeaddrinfo(found);
    return target;
}

/* A connection that has been greeted. */
static int open_one(const struct target *target)
{
    const struct timeval limit = {.tv_sec = LIMIT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte;

    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0, "socket");
    must(connect(fd, (const struct sockaddr *)&target->at, sizeof target->at) == 0, "connect");
    ssize_t n = recv(fd, &byte, 1, 0);
    if (n != 1 || byte != greeting[0])
        fail("no greeting", n < 0 ? strerror(errno) : "the connection has ended");
    return fd;
}

static void close_at_end(int fd)
{
    char rest[64];
    ssize_t n;

    while ((n = recv(fd, rest, sizeof rest, 0)) > 0)
        ;
    must(n == 0, "recv");
    (void)close(fd);
}

static void connect_often(const struct target *target, int times)
{
    for (int i = 0; i < times; i++)
        close_at_end(open_one(target));
}

/* What workers share: each waits for the start, so that forking them is not measured. */
static pid_t start_worker(const struct target *target, int times, const int start[2], int warm)
{
    char byte;
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    (void)close(start[1]);
    connect_often(target, times / 10);
    must(write(warm, "w", 1) == 1, "write");
    must(read(start[0], &byte, 1) == 0, "read");
    connect_often(target, times);
    exit(0);
}

static int rate(const struct target *target, int times, int workers)
{
    pid_t pids[WORKERS_MAX];
    int start[2], warm[2], status;
    char byte;

    must(pipe(start) == 0 && pipe(warm) == 0, "pipe");
    for (int i = 0; i < workers; i++)
        pids[i] = start_worker(target, times, start, warm[1]);
    (void)close(warm[1]);
    for (int i = 0; i < workers; i++)
        if (read(warm[0], &byte, 1) != 1)
            fail("worker", "it has ended early");
    uint64_t began = now_ns();
    (void)close(start[1]);
    for (int i = 0; i < workers; i++)
        if (waitpid(pids[i], &status, 0) < 0 || status != 0)
            fail("worker", "it has failed");
    (void)printf("rate %llu\n", (unsigned long long)(now_ns() - began));
    return 0;
}

static int greet(const struct target *target, int times)
{
    for (int i = -times / 10; i < times; i++) {
        uint64_t began = now_ns();
        int fd = open_one(target);
        uint64_t took = now_ns() - began;

        if (i >= 0)
            (void)printf("greet %llu\n", (unsigned long long)took);
        close_at_end(fd);
    }
    return 0;
}

static int hold(const struct target *target, int times)
{
    char byte;

    raise_limit();
    for (int i = 0; i < times; i++)
        (void)open_one(target); /* they end with the process */
    say("held");
    (void)!read(STDIN_FILENO, &byte, 1);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "serve") == 0 && argc == 3)
        return serve(number(argv[2], UINT16_MAX - 1));
    if (argc == 6 - (strcmp(what, "rate") != 0)) {
        struct target target = look_up(argv[2], argv[3]);

        if (strcmp(what, "rate") == 0)
            return rate(&target, number(argv[4], TIMES_MAX), number(argv[5], WORKERS_MAX));
        if (strcmp(what, "greet") == 0)
            return greet(&target, number(argv[4], TIMES_MAX));
        if (strcmp(what, "hold") == 0)
            return hold(&target, number(argv[4], HELD_MAX));
    }
    (void)fputs("usage: net serve PORT | rate HOST PORT N WORKERS | greet HOST PORT N | "
                "hold HOST PORT N\n",
                stderr);
    return 2;
}
