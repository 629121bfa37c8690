/* SPDX-License-Identifier: Apache-2.0 */
/* atoll kill: end commands of a sandbox with every process that they started. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "base/guards.h"

struct kill_args {
    bool json;
};

static const struct option kill_options[] = {
    OPTION_JSON(offsetof(struct kill_args, json)),
};

/* The numbers of the commands that are about to end, as far as they are known. */
static int numbers(struct handle *h, uint32_t number, json_t **ret, struct error *err)
{
    json_t *list = json_array();

    if (number > 0) {
        (void)json_array_append_new(list, json_integer(number));
    } else {
        _cleanup_(handle_op_freep) struct atoll_op *op = atoll_ps(h->sandbox);
        int r = handle_wait(h, op, err);

        if (r < 0) {
            json_decref(list);
            return r;
        }
        for (size_t i = 0; i < atoll_op_count(op); i++)
            (void)json_array_append_new(list, json_integer(atoll_op_command(op, i)->number));
    }
    *ret = list;
    return 0;
}

static int kill_in(struct cli *cli, const char *id, uint32_t number, bool json, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    json_t *killed = NULL;
    int r = handle_open_to_change(&h, id, err);

    if (r == 0 && json)
        r = numbers(&h, number, &killed, err);
    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_kill(h.sandbox, number);
    r = handle_wait(&h, op, err);
    if (r == 0 && json)
        return print_json(cli->out, json_pack("{s:s, s:o}", "id", h.id, "killed", killed), err);
    json_decref(killed);
    return r;
}

static int kill_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct kill_args args;
    uint64_t number = 0;
    int r = command_parse(&cmd_kill, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_kill, &operands, 1, 2, err);
    if (r == 0 && operands.n == 2 && parse_u64(operands.v[1], 1, UINT32_MAX, &number) < 0) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "'%.40s' is not the number of a command",
                        operands.v[1]);
        r = error_remedy(err, "\"atoll ps\" shows the numbers");
    }
    return r < 0 ? r : kill_in(cli, operands.v[0], (uint32_t)number, args.json, err);
}

static const struct command_example kill_examples[] = {
    {"atoll kill box 3", "end command 3 with all that it started"},
    {"atoll kill box", "end all commands; the sandbox and its files stay"},
};

const struct command cmd_kill = {
    .name = "kill",
    .summary = "end commands of a sandbox",
    .usage = "ID [COMMAND] [--json]",
    .description =
        "Ends the command with this number, or all of them, with every process that they started, "
        "whoever started them. It returns when none of those is left. The sandbox stays; 'atoll "
        "rm' ends it.",
    .options = kill_options,
    .n_options = ARRAY_SIZE(kill_options),
    .examples = kill_examples,
    .n_examples = ARRAY_SIZE(kill_examples),
    .run = kill_run,
};
