/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation of libatoll once, on a real sandbox. Built by tests/integration/test_c_api.py
 * against an installed library. Usage: c_api BACKEND. Names each part as it passes.
 */
#include <atoll.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BIG = 3000000 };

static struct atoll *a;
static struct atoll_sandbox *sb;
static const char *backend;
static char *big;

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "c_api: line %d: %s does not hold\n", __LINE__, #what);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct atoll_op *good_at(struct atoll_op *op, int line)
{
    if (op && atoll_wait(op, 60 * 1000000ull) == 0)
        return op;
    const struct atoll_error *e = op && atoll_op_done(op) ? atoll_op_error(op) : NULL;
    fprintf(stderr, "c_api: line %d: %s. %s\n", line, e ? e->message : "not done in time",
            e ? e->remedy : "");
    exit(1);
}

static void bad_at(struct atoll_op *op, int code, int cls, int line)
{
    int r = atoll_wait(op, 60 * 1000000ull);
    const struct atoll_error *e = atoll_op_done(op) ? atoll_op_error(op) : NULL;

    if (r != -code || !e || e->cls != cls) {
        fprintf(stderr, "c_api: line %d: %d, class %d, %s\n", line, r, e ? e->cls : -1,
                e ? e->message : "no error");
        exit(1);
    }
    atoll_op_free(op);
}

#define GOOD(op)           good_at(op, __LINE__)
#define DO(op)             atoll_op_free(good_at(op, __LINE__))
#define BAD(op, code, cls) bad_at(op, code, cls, __LINE__)

static struct atoll_op *shell(const char *script, struct atoll_exec x)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};

    x.argv = argv;
    return atoll_exec(sb, &x);
}

static void pass(const char *what)
{
    printf("ok %s\n", what);
}

static struct atoll_sandbox *create(unsigned flags)
{
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_error err;

    CHECK(spec && atoll_spec_set(spec, "backend.name", backend, &err) == 0);
    CHECK(atoll_spec_set(spec, "spec.env", "COLOUR=blue", &err) == 0);
    CHECK(atoll_spec_set(spec, "backend.inputs", "/etc/hostname=given/name", &err) == 0);
    CHECK(atoll_spec_set(spec, "backend.memory", "a lot", &err) == -EINVAL);
    CHECK(err.cls == ATOLL_USAGE && strstr(err.message, "memory"));
    if (strcmp(backend, "local") != 0)
        CHECK(atoll_spec_set(spec, "spec.block_network", "false", &err) == 0);
    struct atoll_op *op = GOOD(atoll_create(a, spec, flags));
    struct atoll_sandbox *made = atoll_op_sandbox(op);
    atoll_op_free(op);
    atoll_spec_free(spec);
    return made;
}

static void commands(void)
{
    struct atoll_op *op = GOOD(shell("echo $COLOUR; cat; echo no >&2; exit 9",
                                     (struct atoll_exec){.input = "in", .input_len = 2}));
    const struct atoll_exit *x = atoll_op_exit(op);
    size_t len;

    CHECK(x->exit_code == 9 && x->status == 9 && strcmp(x->reason, "exited") == 0 && !x->problem);
    CHECK(strcmp(atoll_op_output(op, 1, &len), "blue\nin") == 0 && len == 7);
    CHECK(strcmp(atoll_op_output(op, 2, &len), "no\n") == 0 && len == 3);
    atoll_op_free(op);

    const char *const argv[] = {"no-such-program", NULL};
    op = GOOD(atoll_exec(sb, &(struct atoll_exec){.argv = argv}));
    CHECK(atoll_op_exit(op)->status == 127);
    atoll_op_free(op);
    pass("commands");

    op = GOOD(shell("head -c 3000000 /dev/zero", (struct atoll_exec){.capture_max = 10}));
    CHECK(atoll_op_exit(op)->stdout_total == BIG);
    (void)atoll_op_output(op, 1, &len);
    CHECK(len == 10);
    atoll_op_free(op);
    pass("capture");

    op = GOOD(shell("sleep 1000", (struct atoll_exec){.timeout_us = 100000}));
    CHECK(atoll_op_exit(op)->status == 124 && strcmp(atoll_op_exit(op)->reason, "timeout") == 0);
    atoll_op_free(op);
    pass("timeout");
}

/* A spec that the backend cannot keep is refused in words, and nothing stays of it. */
static void refusals(void)
{
    struct atoll_spec *spec = atoll_spec_new();
    bool local = strcmp(backend, "local") == 0;
    struct atoll_error err;

    CHECK(spec && atoll_spec_set(spec, "backend.name", backend, &err) == 0);
    if (local)
        CHECK(atoll_spec_set(spec, "backend.prices", "hour=1", &err) == 0 &&
              atoll_spec_set(spec, "backend.max_cost", "1", &err) == 0);
    struct atoll_op *op = atoll_create(a, spec, ATOLL_OWNED);
    CHECK(op && atoll_wait(op, 60 * 1000000ull) < 0 && atoll_op_done(op));
    CHECK(atoll_op_error(op)->cls == ATOLL_USAGE);
    CHECK(strstr(atoll_op_error(op)->message, local ? "backend." : "spec.block_network"));
    atoll_op_free(op);
    atoll_spec_free(spec);
    pass("refusals");
}

/* Moves @len bytes of the pattern into @in and as much out of @out, as far as each is given. */
static size_t pump(int in, int out, size_t len)
{
    size_t sent = 0, got = 0;

    while (out >= 0 || in >= 0) {
        struct pollfd p[] = {{.fd = in, .events = POLLOUT},
                             {.fd = out, .events = POLLIN},
                             {.fd = atoll_fd(a), .events = POLLIN}};
        char buf[65536];

        CHECK(poll(p, 3, 60000) > 0);
        CHECK(atoll_step(a) == 0);
        if (p[0].revents) {
            ssize_t n = write(in, big + sent, len - sent < 65536 ? len - sent : 65536);
            sent += n > 0 ? (size_t)n : 0;
            CHECK(n > 0 || errno == EAGAIN);
            if (sent == len) {
                close(in);
                in = -1;
            }
        }
        if (p[1].revents) {
            ssize_t n = read(out, buf, sizeof buf);
            CHECK(n >= 0 || errno == EAGAIN);
            CHECK(n <= 0 || memcmp(buf, big + got, (size_t)n) == 0);
            got += n > 0 ? (size_t)n : 0;
            if (n == 0) {
                close(out);
                out = -1;
            }
        }
    }
    return got;
}

static void streams(void)
{
    struct atoll_op *op = shell("cat", (struct atoll_exec){.flags = ATOLL_STDIN | ATOLL_STREAMS});
    int in = atoll_op_take_fd(op, 0), out = atoll_op_take_fd(op, 1);

    CHECK(in >= 0 && out >= 0);
    CHECK(pump(in, out, BIG) == BIG);
    DO(op);
    pass("streams");
}

/* How many processes inside have this in their arguments; the last letter is looked for apart. */
static int count_processes(const char *arguments)
{
    char script[200];
    struct atoll_op *op;
    int n;

    snprintf(script, sizeof script,
             "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o '[%c]%s' | wc -l",
             arguments[0], arguments + 1);
    op = GOOD(shell(script, (struct atoll_exec){.flags = 0}));
    n = (int)strtol(atoll_op_output(op, 1, NULL), NULL, 10);
    atoll_op_free(op);
    return n;
}

static void stopping(void)
{
    struct atoll_op *sleeper = shell("echo up; sleep 1000", (struct atoll_exec){.flags = 0}), *op;
    const struct atoll_command *c = NULL;
    uint32_t number;

    while (!c) { /* it may not have begun yet */
        op = GOOD(atoll_ps(sb));
        for (size_t i = 0; i < atoll_op_count(op); i++)
            if (strcmp(atoll_op_command(op, i)->argv[2], "echo up; sleep 1000") == 0)
                c = atoll_op_command(op, i);
        number = c ? c->number : 0;
        atoll_op_free(op);
    }
    DO(atoll_kill(sb, number));
    CHECK(strcmp(atoll_op_exit(GOOD(sleeper))->reason, "killed") == 0);
    atoll_op_free(sleeper);
    BAD(atoll_kill(sb, number), ESRCH, ATOLL_RECOVERABLE);
    pass("ps and kill");

    op = shell("sleep 1000", (struct atoll_exec){.flags = 0});
    CHECK(atoll_wait(op, 100000) == -EINPROGRESS);
    CHECK(atoll_op_signal(op, SIGTERM) == 0);
    CHECK(atoll_op_exit(GOOD(op))->signal == SIGTERM);
    atoll_op_free(op);
    op = shell("setsid sleep 1001 & sleep 1000", (struct atoll_exec){.flags = 0});
    while (count_processes("sleep 1001 ") == 0)
        ;
    atoll_op_cancel(op);
    BAD(op, ECANCELED, ATOLL_RECOVERABLE);
    if (strcmp(backend, "local") == 0) /* others may only reach its process group */
        CHECK(count_processes("sleep 1001 ") == 0);
    pass("signal and cancel");

    if (strcmp(backend, "local") != 0)
        return; /* the backends that serve as examples have no detached commands */
    op = GOOD(shell("sleep 1000", (struct atoll_exec){.flags = ATOLL_DETACH}));
    number = atoll_op_exit(op)->command;
    atoll_op_free(op);
    DO(atoll_kill(sb, number));
    pass("detach");
}

static void files(void)
{
    struct atoll_op *op;
    size_t len;

    op = GOOD(atoll_read_bytes(sb, "given/name", 0, UINT64_MAX, 1000));
    (void)atoll_op_output(op, 1, &len);
    CHECK(len > 0 && len == atoll_op_file(op, 0)->size);
    atoll_op_free(op);
    DO(atoll_write_bytes(sb, "d/e/small", "hello\n", 6, 0640));
    op = GOOD(atoll_stat(sb, "d/e/small", true));
    CHECK(atoll_op_file(op, 0)->size == 6 && atoll_op_file(op, 0)->mode == 0640);
    CHECK(atoll_op_file(op, 0)->kind == ATOLL_FILE);
    atoll_op_free(op);
    op = GOOD(atoll_read_bytes(sb, "d/e/small", 1, 3, 100));
    CHECK(strcmp(atoll_op_output(op, 1, &len), "ell") == 0 && len == 3);
    atoll_op_free(op);
    op = GOOD(atoll_list_folder(sb, "d"));
    CHECK(atoll_op_count(op) == 1 && strcmp(atoll_op_file(op, 0)->name, "e") == 0);
    CHECK(atoll_op_file(op, 0)->kind == ATOLL_FOLDER);
    atoll_op_free(op);
    BAD(atoll_read_bytes(sb, "d", 0, UINT64_MAX, 100), EISDIR, ATOLL_RECOVERABLE);
    BAD(atoll_read(sb, "d/nothing", 0, UINT64_MAX, 100), ENOENT, ATOLL_RECOVERABLE);
    BAD(atoll_read(sb, "d/e/small", 0, UINT64_MAX, 5), EFBIG, ATOLL_TOO_LARGE);
    pass("files");

    DO(atoll_write_bytes(sb, "big", big, BIG, ATOLL_KEEP_MODE));
    op = GOOD(atoll_read(sb, "big", 0, UINT64_MAX, UINT64_MAX));
    CHECK(atoll_op_file(op, 0)->size == BIG);
    CHECK(pump(-1, atoll_op_take_fd(op, 0), 0) == BIG);
    CHECK(!atoll_op_error(op));
    atoll_op_free(op);
    op = GOOD(atoll_read_bytes(sb, "big", 1000000, UINT64_MAX, UINT64_MAX));
    CHECK(memcmp(atoll_op_output(op, 1, &len), big + 1000000, BIG - 1000000) == 0);
    CHECK(len == BIG - 1000000);
    atoll_op_free(op);
    pass("large files");

    op = atoll_write(sb, "d/streamed", 0600);
    (void)pump(atoll_op_take_fd(op, 0), -1, 500000);
    atoll_write_commit(op);
    DO(op);
    op = GOOD(atoll_stat(sb, "d/streamed", true));
    CHECK(atoll_op_file(op, 0)->size == 500000);
    atoll_op_free(op);
    op = atoll_write(sb, "d/streamed", ATOLL_KEEP_MODE);
    (void)pump(atoll_op_take_fd(op, 0), -1, 10);
    atoll_op_free(op); /* without a commit */
    op = GOOD(atoll_stat(sb, "d/streamed", true));
    CHECK(atoll_op_file(op, 0)->size == 500000);
    atoll_op_free(op);
    pass("streamed write");
}

static void trees(void)
{
    struct atoll_op *out = atoll_pack(sb, "d"), *in = atoll_unpack(sb, "copy"), *op;
    int from = atoll_op_take_fd(out, 0), to = atoll_op_take_fd(in, 0);
    char buf[65536];
    size_t have = 0, at = 0;
    bool ended = false;

    CHECK(from >= 0 && to >= 0);
    while (!ended || at < have) {
        struct pollfd p[] = {{.fd = at == have && !ended ? from : -1, .events = POLLIN},
                             {.fd = at < have ? to : -1, .events = POLLOUT},
                             {.fd = atoll_fd(a), .events = POLLIN}};

        CHECK(poll(p, 3, 60000) > 0);
        CHECK(atoll_step(a) == 0);
        if (p[0].revents) {
            ssize_t n = read(from, buf, sizeof buf);
            at = 0;
            have = n > 0 ? (size_t)n : 0;
            ended = n == 0;
        }
        if (p[1].revents) {
            ssize_t n = write(to, buf + at, have - at);
            at += n > 0 ? (size_t)n : 0;
            CHECK(n > 0 || errno == EAGAIN);
        }
    }
    close(from);
    close(to);
    DO(out);
    DO(in);
    op = GOOD(shell("cmp d/streamed copy/d/streamed && cmp d/e/small copy/d/e/small",
                    (struct atoll_exec){.flags = 0}));
    CHECK(atoll_op_exit(op)->status == 0);
    atoll_op_free(op);
    pass("pack and unpack");
}

static void handles(void)
{
    struct atoll_op *op = GOOD(atoll_inspect(sb));
    char *id = strdup(atoll_sandbox_id(sb));
    bool found = false;

    CHECK(strcmp(atoll_op_info(op, 0)->state, "running") == 0);
    atoll_op_free(op);
    op = GOOD(atoll_list(a, backend));
    for (size_t i = 0; i < atoll_op_count(op); i++)
        found |= strstr(id, atoll_op_info(op, i)->id) != NULL;
    CHECK(found);
    atoll_op_free(op);
    pass("inspect and list");

    atoll_sandbox_free(sb); /* it stands all the same */
    op = GOOD(atoll_open(a, id));
    sb = atoll_op_sandbox(op);
    atoll_op_free(op);
    CHECK(strcmp(atoll_sandbox_id(sb), id) == 0);
    op = GOOD(atoll_read_bytes(sb, "d/e/small", 0, UINT64_MAX, 100));
    atoll_op_free(op);
    DO(atoll_destroy(sb));
    atoll_sandbox_free(sb);
    op = atoll_open(a, id);
    CHECK(atoll_wait(op, ATOLL_FOREVER) < 0);
    atoll_op_free(op);
    free(id);
    pass("open and destroy");
}

int main(int argc, char **argv)
{
    struct atoll_error err;

    backend = argc > 1 ? argv[1] : "local";
    signal(SIGPIPE, SIG_IGN);
    big = malloc(BIG);
    CHECK(big && atoll_new(&a, &err) == 0);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)(i * 7 + i / 1000);
    refusals();
    sb = create(0);
    CHECK(atoll_sandbox_id(sb)[0] != '\0');
    commands();
    streams();
    stopping();
    files();
    trees();
    handles();
    sb = create(ATOLL_OWNED);
    atoll_free(a); /* with the sandbox */
    free(big);
    pass("end");
    return 0;
}
