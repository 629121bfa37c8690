/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times `atoll mcp` as an MCP client would see it, by lines on pipes and nothing between.
 *
 * mcp call N     N rounds of `sh -c true`: "call", tools/call of run_command from the request's
 * first byte to the end of the answer's line; "exec", by atoll_exec() in a sandbox like the
 * server's
 *
 * mcp start N    N rounds of "start": from the start of the program by way of `initialize` to the
 * answer of tools/list, with no sandbox
 *
 * mcp idle N     starts N servers, has each make its sandbox, gives their process ids, a line each,
 * and waits for the end of stdin
 *
 * ATOLL_PROGRAM is what is started. See bench.h for the output.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum {
    ANSWER_BYTES_MAX = 1 << 20,
    SERVERS_MAX = 1000,
    PAIRS = 8, /* two sandboxes differ a little in speed, so it is measured in a few of them */
};

/* A server with the two pipes that lead to it and from it. */
struct server {
    pid_t pid;
    int to, from;
    char *answer; /* ANSWER_BYTES_MAX, borrowed */
};

#define CALL                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"run_command\"" \
    ",\"arguments\":{\"command\":\"true\"}}}\n"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n"
#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"

static int send_line(const struct server *s, const char *line)
{
    size_t len = strlen(line);

    return write(s->to, line, len) == (ssize_t)len ? 0 : fail("server", "it reads no longer");
}

/* Reads one line, which has to hold @expected. */
static int expect(struct server *s, const char *expected)
{
    size_t len = 0;

    do {
        ssize_t n = read(s->from, s->answer + len, ANSWER_BYTES_MAX - 1 - len);

        if (n <= 0)
            return fail("server", "it ended, or its answer is too long");
        len += (size_t)n;
    } while (s->answer[len - 1] != '\n');
    s->answer[len] = '\0';
    return strstr(s->answer, expected) ? 0 : fail("an answer", s->answer);
}

static int ask(struct server *s, const char *line, const char *expected)
{
    return send_line(s, line) < 0 ? -1 : expect(s, expected);
}

/* Starts a program with its standard input and output in pipes. */
static int start(struct server *s, const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    int to[2], from[2];
    int r = posix_spawn_file_actions_init(&actions);

    if (r != 0 || pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        return fail("pipe", strerror(errno));
    (void)posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    r = posix_spawn(&s->pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(to[0]);
    (void)close(from[1]);
    s->to = to[1];
    s->from = from[0];
    return r == 0 ? 0 : fail(argv[0], strerror(r));
}

/* Says hello as clients do. */
static int greet(struct server *s)
{
    if (ask(s, INITIALIZE, "\"serverInfo\"") < 0)
        return -1;
    return send_line(s, INITIALIZED);
}

/* The way in which a client goes. */
static int stop(const struct server *s)
{
    int status = 0;

    (void)close(s->to);
    (void)close(s->from);
    if (waitpid(s->pid, &status, 0) < 0 || status != 0)
        return fail("server", "it ended badly");
    return 0;
}

static int call(struct server *s)
{
    return ask(s, CALL, "\"(no output)\"");
}

static int call_rounds(struct server *s, struct atoll_sandbox *sb, int rounds)
{
    static const char *const argv[] = {"sh", "-c", "true", NULL};
    int warm = warm_up(rounds);

    for (int round = 0; round < warm + rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            int tool = (turn + round) % 2; /* every other round in reverse */
            uint64_t began = now_ns();

            if ((tool ? call(s) : exec_inside(sb, argv)) < 0)
                return -1;
            if (round >= warm)
                tell(tool ? "call" : "exec", now_ns() - began);
        }
    return 0;
}

/* A server with its sandbox, and one of the library. */
static int call_pair(struct server *s, const char *program, struct atoll *a, int rounds)
{
    const char *const argv[] = {program, "mcp", NULL};
    struct atoll_sandbox *sb = create_sandbox(a, ATOLL_OWNED);
    int r = -1;

    if (sb && start(s, argv) == 0 && greet(s) == 0 && call_rounds(s, sb, rounds) == 0)
        r = stop(s);
    if (sb && finish_and_free(atoll_destroy(sb), "destroy") < 0)
        r = -1;
    atoll_sandbox_free(sb);
    return r;
}

static int bench_call(struct server *s, const char *program, int rounds)
{
    struct atoll_error err;
    struct atoll *a;
    int r = 0;

    if (atoll_new(&a, &err) < 0)
        return fail("context", err.message);
    for (int pair = 0; r == 0 && pair < PAIRS; pair++)
        r = call_pair(s, program, a, (rounds + PAIRS - 1) / PAIRS);
    atoll_free(a);
    return r;
}

static int bench_start(struct server *s, const char *program, int rounds)
{
    const char *const argv[] = {program, "mcp", NULL};
    int warm = warm_up(rounds);

    for (int round = 0; round < warm + rounds; round++) {
        uint64_t began = now_ns(), took;

        if (start(s, argv) < 0 || greet(s) < 0 || ask(s, LIST, "\"list_directory\"") < 0)
            return -1;
        took = now_ns() - began;
        if (stop(s) < 0)
            return -1;
        if (round >= warm)
            tell("start", took);
    }
    return 0;
}

static int begin_idle(struct server *s, const char *program)
{
    const char *const argv[] = {program, "mcp", NULL};

    if (start(s, argv) < 0 || greet(s) < 0 || ask(s, LIST, "\"list_directory\"") < 0)
        return -1;
    return call(s);
}

static int bench_idle(struct server *s, const char *program, int count)
{
    struct server *servers = calloc((size_t)count, sizeof *servers);
    int r = servers ? 0 : fail("idle", strerror(ENOMEM)), begun = 0;

    for (; r == 0 && begun < count; begun++) {
        servers[begun].answer = s->answer;
        r = begin_idle(&servers[begun], program);
    }
    for (int i = 0; r == 0 && i < count; i++)
        (void)printf("%d\n", (int)servers[i].pid);
    while (r == 0 && await_line() == 0)
        ;
    /* Those of a failed start end as their pipes close with this program. */
    for (int i = 0; r == 0 && i < count; i++)
        r = stop(&servers[i]);
    free(servers);
    return r;
}

int main(int argc, char **argv)
{
    static char answer[ANSWER_BYTES_MAX];
    struct server s = {.to = -EBADF, .from = -EBADF, .answer = answer};
    const char *program = getenv("ATOLL_PROGRAM");
    const char *what = argc > 1 ? argv[1] : "";
    int r = -1;

    (void)signal(SIGPIPE, SIG_IGN); /* a server that is gone is told by its answer */
    if (program && argc == 3 && strcmp(what, "call") == 0)
        r = bench_call(&s, program, number(argv[2], ROUNDS_MAX));
    else if (program && argc == 3 && strcmp(what, "start") == 0)
        r = bench_start(&s, program, number(argv[2], ROUNDS_MAX));
    else if (program && argc == 3 && strcmp(what, "idle") == 0)
        r = bench_idle(&s, program, number(argv[2], SERVERS_MAX));
    else
        (void)fputs("usage: ATOLL_PROGRAM=FILE mcp call N | start N | idle N\n", stderr);
    return r < 0 ? 1 : 0;
}
