/* SPDX-License-Identifier: Apache-2.0 */
/* atoll mcp config: what an MCP client is to be told of `atoll mcp`, in its own format. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/mcp_clients.h"
#include "cli/print.h"
#include "core/problems.h"
#include "core/spec.h"
#include "core/spec_set.h"
#include "base/guards.h"

enum { SERVER_NAME_MAX = 64 };

struct mcp_config_args {
    const char *client, *name, *prefix;
};

#define FIELD(name) offsetof(struct mcp_config_args, name)

static const struct option mcp_config_options[] = {
    {.name = "client",
     .arg = "NAME",
     .kind = OPTION_CHOICE,
     .offset = FIELD(client),
     .choices = mcp_client_names,
     .help = "the program that is to start the server"},
    {.name = "prefix",
     .arg = "PREFIX",
     .kind = OPTION_TEXT,
     .offset = FIELD(prefix),
     .help = "put PREFIX_ before the names of the tools"},
    {.name = "name",
     .arg = "SERVER",
     .kind = OPTION_TEXT,
     .offset = FIELD(name),
     .preset = "atoll",
     .help = "what the client calls the server"},
};

static int no_client(struct error *err)
{
    char list[256] = "";

    for (size_t i = 0; mcp_client_names[i]; i++) {
        size_t at = strlen(list);

        (void)snprintf(list + at, sizeof list - at, "%s%s", i > 0 ? ", " : "", mcp_client_names[i]);
    }
    (void)error_set(err, ERROR_USAGE, EINVAL, "--client says whose format is wanted");
    return error_remedy(err, "Name one of %s", list);
}

/* As a key in each of the formats, without quotes. */
static int check_name(const char *name, struct error *err)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (name[strspn(name, good)] == '\0' && strlen(name) <= SERVER_NAME_MAX)
        return 0;
    (void)error_set(err, ERROR_USAGE, EINVAL, "--name '%.80s' cannot be the name of a server",
                    name);
    return error_remedy(err, "Use up to %d letters, digits, '_' and '-'", SERVER_NAME_MAX);
}

/* The server would refuse what is refused here, when nobody looks. */
static int check_prefix(const char *prefix, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    struct spec spec = {0};
    struct spec_filling f = {.spec = &spec, .problems = &problems};

    (void)spec_set(&f, SPEC_FIELD_TOOL_PREFIX, "--prefix", prefix);
    spec_done(&spec);
    return problems_error(&problems, NULL, err);
}

static int print_config(struct cli *cli, const struct mcp_config_args *a, struct error *err)
{
    char program[PATH_MAX];
    struct mcp_server_entry server = {a->name, program, a->prefix};
    const struct mcp_client *client;
    int r;

    if (!a->client)
        return no_client(err);
    r = check_name(a->name, err);
    if (r == 0 && a->prefix)
        r = check_prefix(a->prefix, err);
    if (r == 0)
        r = program_path(program, err);
    if (r < 0)
        return r;
    client = mcp_client_find(a->client);
    r = mcp_client_print(cli->out, client, &server, err);
    if (r == 0)
        r = print_flush(cli->out, "standard output", err);
    if (r == 0)
        fprintf(cli->err, "This goes into %s%s.\n", client->file,
                client->folder ? ""
                               : ". To show it a folder, add the arguments --volume and "
                                 "FOLDER:/workspace");
    return r;
}

static int mcp_config_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct mcp_config_args a;
    int r = command_parse(&cmd_mcp_config, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_mcp_config, &operands, 0, 0, err);
    if (r == 0)
        r = print_config(cli, &a, err);
    options_done(mcp_config_options, ARRAY_SIZE(mcp_config_options), &a);
    return r;
}

static const struct command_example mcp_config_examples[] = {
    {"atoll mcp config --client claude-code >.mcp.json",
     "let Claude Code work in a sandbox that shows it the project"},
    {"atoll mcp config --client codex >>~/.codex/config.toml", "give Codex a sandbox"},
};

const struct command cmd_mcp_config = {
    .name = "mcp config",
    .summary = "print what an MCP client is to be told of the server",
    .usage = "--client NAME [OPTION]...",
    .description =
        "Prints the entry that lets a client start 'atoll mcp', in the client's own format, and "
        "says on standard error which file it goes into. The program is named by its absolute "
        "path. If the client has a variable for the folder of the project, the sandbox shows that "
        "folder as /workspace, writable; leave the two arguments out to keep it away.\n\n"
        "Other options of 'atoll mcp' can be added to the arguments by hand.",
    .options = mcp_config_options,
    .n_options = ARRAY_SIZE(mcp_config_options),
    .examples = mcp_config_examples,
    .n_examples = ARRAY_SIZE(mcp_config_examples),
    .run = mcp_config_run,
};
