/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts commands and times them: small, so that its own start-up and memory distort nothing.
 *
 * spawn turns N COMMAND...       each in turn, N rounds; from its start until it is reaped
 *
 * spawn together N K COMMAND...  each in turn, N rounds of K copies at once; until the last copy
 * has given its first byte. A copy must end with its input
 *
 * spawn drain N COMMAND...       each in turn, N rounds; until its output, read here, has ended
 *
 * COMMAND is words; ":::" stands between one and the next. Every other round runs them in reverse,
 * so that what one leaves for the kernel to clean up burdens all alike. The first rounds are not
 * counted. Each line of output is "INDEX MICROSECONDS BYTES". A command that fails ends it all with
 * status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMMANDS_MAX = 16, COPIES_MAX = 1024, LIMIT_MS = 60000, ROUNDS_PER_WARM_UP = 50 };

struct result {
    uint64_t us, bytes;
};

static uint64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

__attribute__((noreturn)) static void fail(const char *what, int error)
{
    (void)fprintf(stderr, "spawn: %s: %s\n", what, strerror(error));
    exit(1);
}

static int number(const char *text, int max)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || n < 1 || n > max)
        fail(text, EINVAL);
    return (int)n;
}

static void open_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) < 0)
        fail("pipe2", errno);
}

static pid_t start(char **argv, int in, int out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int r = posix_spawn_file_actions_init(&actions);

    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, in, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (r == 0)
        r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    if (r != 0)
        fail(argv[0], r);
    (void)posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void reap(pid_t pid, char **argv)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            fail("waitpid", errno);
    if (status != 0) {
        (void)fprintf(stderr, "spawn: %s ended with wait status %#x\n", argv[0], (unsigned)status);
        exit(1);
    }
}

static struct result run_once(char **argv, int null)
{
    uint64_t began = now_us();

    reap(start(argv, null, null), argv);
    return (struct result){.us = now_us() - began};
}

/* Waits for the first byte of every copy. Return: when the last one came. */
static uint64_t first_bytes(struct pollfd *outputs, int copies)
{
    uint64_t last = 0;

    for (int waiting = copies; waiting > 0;) {
        if (poll(outputs, (nfds_t)copies, LIMIT_MS) <= 0)
            fail("no output", ETIMEDOUT);
        last = now_us();
        for (int k = 0; k < copies; k++) {
            char byte;

            if (outputs[k].fd < 0 || outputs[k].revents == 0)
                continue;
            if (read(outputs[k].fd, &byte, 1) != 1)
                fail("a command ended without output", EIO);
            outputs[k].fd = -1; /* poll(2) passes it over from now on */
            waiting--;
        }
    }
    return last;
}

static struct result run_copies(char **argv, int copies)
{
    static struct pollfd outputs[COPIES_MAX];
    static pid_t pids[COPIES_MAX];
    static int fds[COPIES_MAX];
    int input[2], output[2];
    uint64_t began, last;

    open_pipe(input);
    began = now_us();
    for (int k = 0; k < copies; k++) {
        open_pipe(output);
        pids[k] = start(argv, input[0], output[1]);
        (void)close(output[1]);
        fds[k] = output[0];
        outputs[k] = (struct pollfd){.fd = output[0], .events = POLLIN};
    }
    last = first_bytes(outputs, copies);
    (void)close(input[0]);
    (void)close(input[1]); /* ends them */
    for (int k = 0; k < copies; k++) {
        reap(pids[k], argv);
        (void)close(fds[k]);
    }
    return (struct result){.us = last - began, .bytes = (uint64_t)copies};
}

static struct result run_drained(char **argv, int null)
{
    static char buf[1 << 20];
    int output[2];
    struct result result = {0};
    ssize_t n;
    uint64_t began = now_us();

    open_pipe(output);
    pid_t pid = start(argv, null, output[1]);
    (void)close(output[1]);
    while ((n = read(output[0], buf, sizeof buf)) > 0)
        result.bytes += (uint64_t)n;
    result.us = now_us() - began;
    (void)close(output[0]);
    reap(pid, argv);
    return result;
}

/* Parts the words at ":::". Return: how many commands there are. */
static int split(char **words, char **commands[COMMANDS_MAX])
{
    int n = 0;

    commands[n++] = words;
    for (; *words; words++)
        if (strcmp(*words, ":::") == 0) {
            if (n == COMMANDS_MAX)
                fail("too many commands", E2BIG);
            *words = NULL;
            commands[n++] = words + 1;
        }
    for (int i = 0; i < n; i++)
        if (!commands[i][0])
            fail("empty command", EINVAL);
    return n;
}

int main(int argc, char **argv)
{
    int together = argc > 1 && strcmp(argv[1], "together") == 0;
    int drain = argc > 1 && strcmp(argv[1], "drain") == 0;
    char **commands[COMMANDS_MAX];

    if (argc < 4 + together || !(together || drain || strcmp(argv[1], "turns") == 0)) {
        (void)fputs("usage: spawn turns N | together N K | drain N  COMMAND... [::: COMMAND...]\n",
                    stderr);
        return 2;
    }
    int rounds = number(argv[2], 1000000);
    int copies = together ? number(argv[3], COPIES_MAX) : 1;
    int n = split(argv + 3 + together, commands);
    int warm_up = 1 + rounds / ROUNDS_PER_WARM_UP;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        fail("/dev/null", errno);
    for (int round = 0; round < warm_up + rounds; round++)
        for (int turn = 0; turn < n; turn++) {
            int i = round % 2 ? n - 1 - turn : turn;
            struct result r = together ? run_copies(commands[i], copies)
                              : drain  ? run_drained(commands[i], null)
                                       : run_once(commands[i], null);

            if (round >= warm_up)
                (void)printf("%d %llu %llu\n", i, (unsigned long long)r.us,
                             (unsigned long long)r.bytes);
        }
    return 0;
}
