/* SPDX-License-Identifier: Apache-2.0 */
/* atoll write: a whole file from standard input, in one step. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/name_text.h"
#include "cli/print.h"
#include "cli/stream.h"
#include "base/guards.h"

struct write_args {
    const char *mode;
    bool json;
};

#define FIELD(name) offsetof(struct write_args, name)

static const struct option write_options[] = {
    {.name = "mode",
     .arg = "MODE",
     .kind = OPTION_TEXT,
     .offset = FIELD(mode),
     .help = "permission bits in octal, such as 0755; otherwise an existing file keeps its own and "
             "a new one gets 0644"},
    OPTION_JSON(FIELD(json)),
};

static int read_mode(const char *text, uint32_t *ret, struct error *err)
{
    size_t n = strlen(text);
    uint32_t mode = 0;

    *ret = ATOLL_KEEP_MODE;
    for (size_t i = 0; i < n; i++)
        mode = mode * 8 + (uint32_t)(text[i] - '0');
    if (n == 0 || n > 5 || strspn(text, "01234567") != n || mode > 07777) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "'%.40s' is not a file mode", text);
        return error_remedy(err, "Write it in octal, such as 0644 or 755");
    }
    *ret = mode;
    return 0;
}

static int write_to(struct cli *cli, const char *id, const char *path, uint32_t mode, bool json,
                    struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    uint64_t bytes = 0;
    int r = handle_open_to_change(&h, id, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_write(h.sandbox, path, mode);
    r = stream_into(&h, op, STDIN_FILENO, atoll_write_commit, &bytes, err);
    if (r < 0 || !json)
        return r;
    json_t *o = json_pack("{s:I}", "bytes", (json_int_t)bytes);
    (void)name_set_json(o, "path", path);
    return print_json(cli->out, o, err);
}

static int write_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    uint32_t mode = ATOLL_KEEP_MODE;
    struct arguments operands;
    struct write_args a;
    int r = command_parse(&cmd_write, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_write, &operands, 2, 2, err);
    if (r == 0 && a.mode)
        r = read_mode(a.mode, &mode, err);
    return r < 0 ? r : write_to(cli, operands.v[0], operands.v[1], mode, a.json, err);
}

static const struct command_example write_examples[] = {
    {"atoll write box main.py < main.py", "put a file into the working directory"},
    {"git diff | atoll write box /tmp/change.patch", "put a command's output into a file"},
};

const struct command cmd_write = {
    .name = "write",
    .summary = "write standard input to a file of a sandbox",
    .usage = "ID PATH [OPTION]...",
    .description =
        "Puts a whole file in place in one step: until then, and when anything fails, whoever "
        "reads it has the old one. Missing folders are made; a link is followed to its target; an "
        "existing file keeps its owner and extended attributes.",
    .options = write_options,
    .n_options = ARRAY_SIZE(write_options),
    .examples = write_examples,
    .n_examples = ARRAY_SIZE(write_examples),
    .run = write_run,
};
