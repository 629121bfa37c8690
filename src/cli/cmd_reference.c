/* SPDX-License-Identifier: Apache-2.0 */
/* atoll reference: man page, completion scripts and the pages of docs/reference. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/reference.h"
#include "base/guards.h"

static const struct {
    const char *name;
    void (*write)(FILE *f, const struct command *const *table);
} forms[] = {
    {"man", manual_man},          {"bash", completion_bash},    {"zsh", completion_zsh},
    {"fish", completion_fish},    {"cli", manual_markdown},     {"spec", reference_spec},
    {"limits", reference_limits}, {"errors", reference_errors}, {"backends", reference_backends},
    {"json", reference_json},
};

static int reference_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    int r;

    r = command_parse(&cmd_reference, argc, argv, NULL, &operands, err);
    if (r < 0)
        return r;
    r = command_operands(&cmd_reference, &operands, 1, 1, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        if (strcmp(operands.v[0], forms[i].name) == 0) {
            forms[i].write(cli->out, cli->commands);
            return CLI_EXIT_OK;
        }
    error_set(err, ERROR_USAGE, EINVAL, "there is no reference as \"%.80s\"", operands.v[0]);
    return error_remedy(err, "The usage is \"atoll reference %s\"", cmd_reference.usage);
}

const struct command cmd_reference = {
    .name = "reference",
    .summary = "write the man page, a page of the reference or a completion script",
    .usage = "man|bash|zsh|fish|cli|spec|limits|errors|backends|json",
    .description =
        "Writes a reference to standard output, made from the tables that the program "
        "itself reads: the man page, completion scripts, the pages of docs/reference, and "
        "the list of JSON forms.",
    .run = reference_run,
    .hidden = true,
};
