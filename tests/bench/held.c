/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times what callers of libatoll do with sandboxes that live on, and holds such sandboxes for
 * others to measure.
 *
 * held exec N            N rounds of `sh -c true`: "inside", by the library; "host", posix_spawn
 *
 * held tool N           N rounds of `true`: "tool", as a call of a toolset; "exec", by atoll_exec()
 *
 * held files N           N rounds of "stat", "read" and "write" of 100 bytes in a sandbox
 *
 * held read N FILE       N rounds of reading a whole file of FILE's size: "inside", a sandbox's
 * own; "host", FILE
 *
 * held keep COMMAND...   runs COMMAND in a new sandbox and gives its id; waits for the end of stdin
 *
 * held crowd N COUNT     "create" and "destroy" N times with no other sandbox live; COUNT sandboxes
 * that nobody is connected to; the same N times as "create-beside" and "destroy-beside"
 *
 * held cycles WARM N    WARM sandboxes made and destroyed, then the line "before", then N, then the
 * line "after"; every other one is owned, the rest are registered. "cycle" is the time of each
 *
 * Each line of output is "NAME NANOSECONDS". A crowd also gives the lines "none" and "all" when so
 * many are live, and goes on after a line on stdin, as cycles does after its lines. What a
 * sandbox's own end would not remove is destroyed whatever happens; should this program be killed,
 * a short lifetime ends it. A failure ends it all with status 1. ATOLL_PROGRAM and ATOLL_STATE_DIR
 * are heeded as ever.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atoll_toolset.h"
#include "bench.h"

enum {
    BUFFER_BYTES = 1 << 20,
    SMALL_BYTES = 100,
    COUNT_MAX = 4096,
    ID_BYTES = 64,
};

struct bench {
    struct atoll *a;
    struct atoll_sandbox *sb; /* the one that is worked in */
    char (*ids)[ID_BYTES];    /* those that live by themselves */
    int n_ids;
};

/* A sandbox that ends with this program. */
static int open_own(struct bench *b)
{
    b->sb = create_sandbox(b->a, ATOLL_OWNED);
    return b->sb ? 0 : -1;
}

/* One that lives by itself, with nobody connected to it. */
static int leave_one(struct bench *b)
{
    struct atoll_sandbox *sb = create_sandbox(b->a, 0);

    if (!sb)
        return -1;
    (void)snprintf(b->ids[b->n_ids++], ID_BYTES, "%s", atoll_sandbox_id(sb));
    atoll_sandbox_free(sb);
    return 0;
}

static int destroy_left(struct bench *b)
{
    int r = 0;

    while (b->n_ids > 0) {
        struct atoll_op *op = atoll_open(b->a, b->ids[--b->n_ids]);
        struct atoll_sandbox *sb = finish(op, "open") == 0 ? atoll_op_sandbox(op) : NULL;

        atoll_op_free(op);
        if (!sb || finish_and_free(atoll_destroy(sb), "destroy") < 0)
            r = -1;
        atoll_sandbox_free(sb);
    }
    return r;
}

static int run_on_host(const char *const *argv, int null)
{
    posix_spawn_file_actions_t actions;
    int r = posix_spawn_file_actions_init(&actions);
    int status = 0;
    pid_t pid;

    for (int fd = 0; r == 0 && fd < 3; fd++)
        r = posix_spawn_file_actions_adddup2(&actions, null, fd);
    if (r == 0)
        r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    if (r != 0)
        return fail(argv[0], strerror(r));
    (void)posix_spawn_file_actions_destroy(&actions);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail("waitpid", strerror(errno));
    return status == 0 ? 0 : fail(argv[0], "it failed on the host");
}

static int bench_exec(struct bench *b, int rounds)
{
    static const char *const argv[] = {"sh", "-c", "true", NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int warm = warm_up(rounds);

    if (null < 0)
        return fail("/dev/null", strerror(errno));
    if (open_own(b) < 0)
        return -1;
    for (int round = 0; round < warm + rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            int inside = (turn + round) % 2; /* every other round in reverse */
            uint64_t began = now_ns();

            if ((inside ? exec_inside(b->sb, argv) : run_on_host(argv, null)) < 0)
                return -1;
            if (round >= warm)
                tell(inside ? "inside" : "host", now_ns() - began);
        }
    return 0;
}

static int call_tool(struct atoll_toolset *t)
{
    static const char name[] = "run_command", arguments[] = "{\"command\":\"true\"}";
    struct atoll_op *op = atoll_tool_call(t, name, arguments, sizeof arguments - 1);
    int r = finish(op, name);

    if (r == 0 && strcmp(atoll_op_answer(op)->text, "(no output)") != 0)
        r = fail(name, atoll_op_answer(op)->text);
    atoll_op_free(op);
    return r;
}

/* Both in the toolset's own sandbox, since two sandboxes differ a little in speed. */
static int tool_rounds(struct bench *b, struct atoll_toolset *t, int rounds)
{
    static const char *const argv[] = {"sh", "-c", "true", NULL};
    int warm = warm_up(rounds);
    struct atoll_op *op = atoll_open(b->a, atoll_toolset_sandbox(t));

    b->sb = finish(op, "open") == 0 ? atoll_op_sandbox(op) : NULL;
    atoll_op_free(op);
    if (!b->sb)
        return -1;
    for (int round = 0; round < warm + rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            int tool = (turn + round) % 2;
            uint64_t began = now_ns();

            if ((tool ? call_tool(t) : exec_inside(b->sb, argv)) < 0)
                return -1;
            if (round >= warm)
                tell(tool ? "tool" : "exec", now_ns() - began);
        }
    return 0;
}

static int bench_tool(struct bench *b, int rounds)
{
    struct atoll_toolset *t = NULL;
    struct atoll_sandbox *made = create_sandbox(b->a, 0);
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_error err = {.message = "out of memory"};
    int r = -1;

    if (!made || !spec)
        return fail("tool", err.message);
    (void)snprintf(b->ids[b->n_ids++], ID_BYTES, "%s", atoll_sandbox_id(made));
    const struct atoll_toolset_options options = {.sandbox = atoll_sandbox_id(made)};
    if (atoll_toolset_new(b->a, spec, &options, &t, &err) < 0)
        (void)fail("toolset", err.message);
    else if (finish_and_free(atoll_toolset_open(t), "open") == 0)
        r = tool_rounds(b, t, rounds);
    atoll_toolset_free(t);
    atoll_spec_free(spec);
    atoll_sandbox_free(made);
    return r;
}

static int bench_files(struct bench *b, int rounds)
{
    static const char path[] = "small";
    char data[SMALL_BYTES];
    int warm = warm_up(rounds);

    memset(data, 'x', sizeof data);
    if (open_own(b) < 0 ||
        finish_and_free(atoll_write_bytes(b->sb, path, data, sizeof data, ATOLL_KEEP_MODE),
                        "write") < 0)
        return -1;
    for (int round = 0; round < warm + rounds; round++) {
        uint64_t began = now_ns(), stat_ns, read_ns, write_ns;
        struct atoll_op *op;
        size_t len = 0;
        int r = finish_and_free(atoll_stat(b->sb, path, true), "stat");

        stat_ns = now_ns() - began;
        if (r < 0)
            return r;
        began = now_ns();
        op = atoll_read_bytes(b->sb, path, 0, UINT64_MAX, UINT64_MAX);
        r = finish(op, "read");
        if (r == 0 && (!atoll_op_output(op, 1, &len) || len != sizeof data))
            r = fail("read", "the content is not what was written");
        atoll_op_free(op);
        read_ns = now_ns() - began;
        if (r < 0)
            return r;
        began = now_ns();
        if (finish_and_free(atoll_write_bytes(b->sb, path, data, sizeof data, ATOLL_KEEP_MODE),
                            "write") < 0)
            return -1;
        write_ns = now_ns() - began;
        if (round >= warm) {
            tell("stat", stat_ns);
            tell("read", read_ns);
            tell("write", write_ns);
        }
    }
    return 0;
}

/* Reads all of @fd, which is consumed, into one buffer. Return: 0 when it had @size bytes. */
static int drain(int fd, uint64_t size)
{
    static char buf[BUFFER_BYTES];
    uint64_t total = 0;
    ssize_t n;

    while ((n = read(fd, buf, sizeof buf)) > 0)
        total += (uint64_t)n;
    (void)close(fd);
    return n == 0 && total == size ? 0 : fail("read", "not all bytes came");
}

static int read_inside(struct bench *b, uint64_t size)
{
    struct atoll_op *op = atoll_read(b->sb, "big", 0, UINT64_MAX, UINT64_MAX);
    int r = finish(op, "read");

    if (r == 0)
        r = drain(atoll_op_take_fd(op, 0), size);
    atoll_op_free(op);
    return r;
}

static int read_on_host(const char *path, uint64_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? fail(path, strerror(errno)) : drain(fd, size);
}

static int bench_read(struct bench *b, int rounds, const char *path)
{
    char command[64];
    const char *const argv[] = {"sh", "-c", command, NULL};
    int warm = warm_up(rounds);
    struct stat st;

    if (stat(path, &st) < 0)
        return fail(path, strerror(errno));
    (void)snprintf(command, sizeof command, "head -c %lld /dev/zero >big", (long long)st.st_size);
    if (open_own(b) < 0 || exec_inside(b->sb, argv) < 0)
        return -1;
    for (int round = 0; round < warm + rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            int inside = (turn + round) % 2;
            uint64_t began = now_ns();

            if ((inside ? read_inside(b, (uint64_t)st.st_size)
                        : read_on_host(path, (uint64_t)st.st_size)) < 0)
                return -1;
            if (round >= warm)
                tell(inside ? "inside" : "host", now_ns() - began);
        }
    return 0;
}

static int bench_keep(struct bench *b, const char *const *argv)
{
    struct atoll_op *op;

    if (leave_one(b) < 0)
        return -1;
    op = atoll_open(b->a, b->ids[0]);
    b->sb = finish(op, "open") == 0 ? atoll_op_sandbox(op) : NULL;
    atoll_op_free(op);
    if (!b->sb || exec_inside(b->sb, argv) < 0)
        return -1;
    atoll_sandbox_free(b->sb);
    b->sb = NULL;
    (void)puts(b->ids[0]);
    while (await_line() == 0)
        ;
    return 0;
}

static int create_and_destroy(struct bench *b, int rounds, const char *created,
                              const char *destroyed)
{
    int warm = warm_up(rounds);

    for (int round = 0; round < warm + rounds; round++) {
        uint64_t began = now_ns(), between;
        struct atoll_sandbox *sb = create_sandbox(b->a, 0);

        if (!sb)
            return -1;
        between = now_ns();
        if (finish_and_free(atoll_destroy(sb), "destroy") < 0) {
            atoll_sandbox_free(sb);
            return -1;
        }
        if (round >= warm) {
            tell(created, between - began);
            tell(destroyed, now_ns() - between);
        }
        atoll_sandbox_free(sb);
    }
    return 0;
}

static int bench_crowd(struct bench *b, int rounds, int count)
{
    if (create_and_destroy(b, rounds, "create", "destroy") < 0)
        return -1;
    (void)puts("none");
    if (await_line() < 0)
        return -1;
    while (b->n_ids < count)
        if (leave_one(b) < 0) {
            (void)fprintf(stderr, "held: %d were live\n", b->n_ids);
            return -1;
        }
    (void)puts("all");
    if (await_line() < 0)
        return -1;
    return create_and_destroy(b, rounds, "create-beside", "destroy-beside");
}

static int one_cycle(struct bench *b, unsigned flags)
{
    struct atoll_sandbox *sb = create_sandbox(b->a, flags);
    int r = sb ? finish_and_free(atoll_destroy(sb), "destroy") : -1;

    atoll_sandbox_free(sb);
    return r;
}

static int bench_cycles(struct bench *b, int warm, int rounds)
{
    for (int round = 0; round < warm; round++)
        if (one_cycle(b, round % 2 ? 0 : ATOLL_OWNED) < 0)
            return -1;
    (void)puts("before");
    if (await_line() < 0)
        return -1;
    for (int round = 0; round < rounds; round++) {
        uint64_t began = now_ns();

        if (one_cycle(b, round % 2 ? 0 : ATOLL_OWNED) < 0)
            return -1;
        tell("cycle", now_ns() - began);
    }
    (void)puts("after");
    return await_line();
}

/* As much as the account may have. */
static void raise_limit(int what)
{
    struct rlimit limit;

    if (getrlimit(what, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(what, &limit);
    }
}

static int measure(struct bench *b, int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";

    if (argc == 3 && strcmp(what, "exec") == 0)
        return bench_exec(b, number(argv[2], ROUNDS_MAX));
    if (argc == 3 && strcmp(what, "tool") == 0)
        return bench_tool(b, number(argv[2], ROUNDS_MAX));
    if (argc == 3 && strcmp(what, "files") == 0)
        return bench_files(b, number(argv[2], ROUNDS_MAX));
    if (argc == 4 && strcmp(what, "read") == 0)
        return bench_read(b, number(argv[2], ROUNDS_MAX), argv[3]);
    if (argc >= 3 && strcmp(what, "keep") == 0)
        return bench_keep(b, (const char *const *)(uintptr_t)(argv + 2));
    if (argc == 4 && strcmp(what, "crowd") == 0)
        return bench_crowd(b, number(argv[2], ROUNDS_MAX), number(argv[3], COUNT_MAX));
    if (argc == 4 && strcmp(what, "cycles") == 0)
        return bench_cycles(b, number(argv[2], ROUNDS_MAX), number(argv[3], ROUNDS_MAX));
    (void)fputs("usage: held exec N | tool N | files N | read N FILE | keep COMMAND... | "
                "crowd N COUNT | cycles WARM N\n",
                stderr);
    return -1;
}

int main(int argc, char **argv)
{
    static char ids[COUNT_MAX][ID_BYTES];
    struct bench b = {.ids = ids};
    struct atoll_error err;
    int r;

    (void)signal(SIGPIPE,
                 SIG_IGN); /* a reader that is gone is to end it as the end of input does */
    raise_limit(RLIMIT_NOFILE);
    raise_limit(RLIMIT_NPROC);
    if (atoll_new(&b.a, &err) < 0) {
        (void)fail("context", err.message);
        return 1;
    }
    r = measure(&b, argc, argv);
    atoll_sandbox_free(b.sb);
    if (destroy_left(&b) < 0)
        r = -1;
    atoll_free(b.a);
    return r < 0 ? 1 : 0;
}
