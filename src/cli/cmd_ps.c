/* SPDX-License-Identifier: Apache-2.0 */
/* atoll ps: the commands that run in a sandbox. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/name_text.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "wire/json_text.h"
#include "base/guards.h"

struct ps_args {
    bool json;
};

static const struct option ps_options[] = {
    OPTION_JSON(offsetof(struct ps_args, json)),
};

static int by_number(const void *a, const void *b)
{
    const struct atoll_command *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

/* Return: the commands in the order in which they began, an owned array; NULL without memory. */
static struct atoll_command *sorted(const struct atoll_op *op, size_t n)
{
    struct atoll_command *list = calloc(n + 1, sizeof *list);

    for (size_t i = 0; list && i < n; i++)
        list[i] = *atoll_op_command(op, i);
    if (list && n > 1)
        qsort(list, n, sizeof *list, by_number);
    return list;
}

static void print_row(struct cli *cli, const struct atoll_command *c)
{
    char running[SANDBOX_WORDS], timeout[SANDBOX_WORDS] = "-";
    const uint64_t now = clock_epoch_us();

    sandbox_span_text(running, now > c->started_at_us ? now - c->started_at_us : 0);
    if (c->timeout_us > 0)
        sandbox_span_text(timeout, c->timeout_us);
    fprintf(cli->out, "%7u %7u %8s %8s  %-10s", c->number, c->pid, running, timeout,
            c->detached ? "detached"
            : c->tty    ? "terminal"
                        : "attached");
    for (const char *const *p = c->argv; p && *p; p++) {
        putc(' ', cli->out);
        name_print_quoted(cli->out, *p);
    }
    putc('\n', cli->out);
}

static json_t *command_json(const struct atoll_command *c)
{
    json_t *argv = json_array();

    for (const char *const *p = c->argv; p && *p; p++)
        (void)json_array_append_new(argv, json_text(*p));
    return json_pack("{s:I, s:o, s:o, s:o, s:b, s:b, s:o}", "number", (json_int_t)c->number, "pid",
                     c->pid > 0 ? json_integer(c->pid) : json_null(), "started_at",
                     sandbox_seconds(c->started_at_us), "timeout", sandbox_seconds(c->timeout_us),
                     "detached", (int)c->detached, "tty", (int)c->tty, "argv", argv);
}

static int list_commands(struct cli *cli, const char *id, bool json, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    int r = handle_open(&h, id, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_ps(h.sandbox);
    r = handle_wait(&h, op, err);
    if (r < 0)
        return r;
    const size_t n = atoll_op_count(op);
    struct atoll_command *list = sorted(op, n);
    json_t *out = json ? json_array() : NULL;
    for (size_t i = 0; list && i < n; i++) {
        if (json) {
            (void)json_array_append_new(out, command_json(&list[i]));
            continue;
        }
        if (i == 0)
            fprintf(cli->out, "%7s %7s %8s %8s  %-10s %s\n", "COMMAND", "PID", "RUNNING", "TIMEOUT",
                    "KIND", "ARGUMENTS");
        print_row(cli, &list[i]);
    }
    free(list);
    if (!list) {
        json_decref(out);
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    }
    return json ? print_json(cli->out, json_pack("{s:o}", "commands", out), err) : r;
}

static int ps_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct ps_args args;
    int r = command_parse(&cmd_ps, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_ps, &operands, 1, 1, err);
    return r < 0 ? r : list_commands(cli, operands.v[0], args.json, err);
}

static const struct command_example ps_examples[] = {
    {"atoll ps box", "see which commands run, and their numbers for 'atoll kill'"},
};

const struct command cmd_ps = {
    .name = "ps",
    .summary = "list the commands that run in a sandbox",
    .usage = "ID [--json]",
    .description =
        "Lists the commands that were started by exec and have not ended. Their processes are "
        "listed by 'atoll exec ID -- ps'. Long arguments are cut.",
    .options = ps_options,
    .n_options = ARRAY_SIZE(ps_options),
    .examples = ps_examples,
    .n_examples = ARRAY_SIZE(ps_examples),
    .run = ps_run,
};
