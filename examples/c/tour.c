/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tour of libatoll: make a sandbox, run a command in it, read and write files, look around, and
 * remove it. Each step is started and waited for; ten_at_once.c shows how to do several at once.
 */
#include <atoll.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *what, const struct atoll_error *err)
{
    fprintf(stderr, "tour: %s: %s. %s\n", what, err ? err->message : "out of memory",
            err ? err->remedy : "");
    exit(1);
}

/* Waits for an operation that must go well. */
static struct atoll_op *must(struct atoll_op *op, const char *what)
{
    if (!op)
        give_up(what, NULL);
    if (atoll_wait(op, ATOLL_FOREVER) < 0)
        give_up(what, atoll_op_error(op));
    return op;
}

static struct atoll_sandbox *create(struct atoll *a)
{
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_error err;
    struct atoll_sandbox *sb;
    struct atoll_op *op;

    if (!spec)
        give_up("spec", NULL);
    if (atoll_spec_set(spec, "spec.env", "GREETING=good day", &err) < 0 ||
        atoll_spec_set(spec, "backend.disk", "64M", &err) < 0)
        give_up("spec", &err);
    op = must(atoll_create(a, spec, ATOLL_OWNED), "create");
    sb = atoll_op_sandbox(op);
    atoll_op_free(op);
    atoll_spec_free(spec);
    return sb;
}

static void run(struct atoll_sandbox *sb)
{
    const char *const argv[] = {"sh", "-c", "echo \"$GREETING, $(cat)\"; exit 3", NULL};
    const struct atoll_exec x = {.argv = argv, .input = "sandbox", .input_len = 7};
    struct atoll_op *op = must(atoll_exec(sb, &x), "exec");
    const struct atoll_exit *end = atoll_op_exit(op);
    size_t len;
    const char *out = atoll_op_output(op, 1, &len);

    printf("the command wrote %zu bytes: %s", len, out);
    printf("it ended with status %d (%s)\n", end->status, end->reason);
    atoll_op_free(op);
}

static void work_with_files(struct atoll_sandbox *sb)
{
    struct atoll_op *op;
    const char *text = "one\ntwo\nthree\n";
    size_t i, len;

    atoll_op_free(must(
        atoll_write_bytes(sb, "notes/numbers.txt", text, strlen(text), ATOLL_KEEP_MODE), "write"));

    op = must(atoll_read_bytes(sb, "notes/numbers.txt", 4, UINT64_MAX, 1 << 20), "read");
    printf("from its fifth byte on it reads: %s", (const char *)atoll_op_output(op, 1, &len));
    atoll_op_free(op);

    op = must(atoll_list_folder(sb, "notes"), "list");
    for (i = 0; i < atoll_op_count(op); i++) {
        const struct atoll_file *f = atoll_op_file(op, i);

        printf("in the folder: %s, %" PRIu64 " bytes, mode %o\n", f->name, f->size, f->mode);
    }
    atoll_op_free(op);

    /* What goes wrong is said in words, and by a class that a program can act on. */
    op = atoll_read_bytes(sb, "notes", 0, UINT64_MAX, 1 << 20);
    if (op && atoll_wait(op, ATOLL_FOREVER) < 0) {
        const struct atoll_error *err = atoll_op_error(op);

        printf("as expected: %s%s\n", err->message,
               err->cls == ATOLL_RECOVERABLE ? " (recoverable)" : "");
    }
    atoll_op_free(op);
}

int main(void)
{
    struct atoll_error err;
    struct atoll *a;

    signal(SIGPIPE, SIG_IGN);
    if (atoll_new(&a, &err) < 0)
        give_up("context", &err);
    struct atoll_sandbox *sb = create(a);
    run(sb);
    work_with_files(sb);
    atoll_op_free(must(atoll_destroy(sb), "destroy"));
    atoll_sandbox_free(sb);
    atoll_free(a);
    puts("nothing of it is left");
    return 0;
}
