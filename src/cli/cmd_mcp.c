/* SPDX-License-Identifier: Apache-2.0 */
/* atoll mcp: a server of the Model Context Protocol on standard input and output. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/api.h"
#include "atoll_toolset.h"
#include "base/cleanup.h"
#include "cli/agent_tools.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/mcp_config.h"
#include "cli/spec_options.h"
#include "mcp/serve.h"
#include "base/guards.h"

struct mcp_args {
    struct spec_args spec;
    struct toolset_args toolset;
    struct export_args export;
    const char *config, *holder;
    uint64_t keep;
};

#define FIELD(name) offsetof(struct mcp_args, name)

static const struct option mcp_options[] = {
    {.name = "config",
     .arg = "FILE",
     .kind = OPTION_TEXT,
     .offset = FIELD(config),
     .help = "give the agent several sandboxes, from a YAML or JSON file; without other options"},
    {.name = "holder",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(holder),
     .help = "with attach_to in a spec: who holds the sandbox meanwhile, as others are told; its "
             "owner unless given"},
    {.name = "keep",
     .arg = "TIME",
     .kind = OPTION_DURATION,
     .offset = FIELD(keep),
     .min = 1000,
     .max = LIMIT_TIME_MAX_US,
     .help = "with attach_to in a spec: how long it is kept for that holder when this server is "
             "killed; others may have it at once unless given"},
    TOOLSET_OPTIONS(struct mcp_args, toolset),
    EXPORT_OPTIONS(struct mcp_args, export),
    SPEC_OPTIONS(struct mcp_args, spec),
};

/* What is served, in the order of the file. */
struct serving {
    struct handle handle;
    struct mcp_config config;      /* or one spec, of the options */
    char *ids[LIMIT_MCP_TOOLSETS]; /* of a sandbox that stands; NULL: its own */
    struct atoll_toolset *toolsets[LIMIT_MCP_TOOLSETS];
    int parent_fd;
};

static void serving_done(struct serving *v)
{
    for (size_t i = 0; i < v->config.n; i++) {
        atoll_toolset_free(v->toolsets[i]);
        free(v->ids[i]);
    }
    mcp_config_done(&v->config);
    handle_done(&v->handle);
    fd_closep(&v->parent_fd);
}

/* Options */

static bool was_given(const struct option *o, const void *args)
{
    const char *base = args;
    const struct text_list *list = (const void *)(base + o->offset);

    if (o->kind == OPTION_LIST)
        return list->n > 0 || list->reset;
    if (o->state > 0)
        return *(const enum option_state *)(const void *)(base + o->state) != OPTION_ABSENT;
    return o->kind == OPTION_TEXT && *(const char *const *)(const void *)(base + o->offset);
}

static int check_alone(const struct mcp_args *a, struct error *err)
{
    for (size_t i = 0; a->config && i < ARRAY_SIZE(mcp_options); i++) {
        const struct option *o = &mcp_options[i];

        /* Who runs it is no matter of the file's. */
        if (o->offset == FIELD(config) || o->offset == FIELD(holder) || !was_given(o, a))
            continue;
        (void)error_set(err, ERROR_USAGE, EINVAL,
                        "--%s has no meaning beside --config, which may have several toolsets",
                        o->name);
        return error_remedy(err, "Write it into the file, or leave --config out");
    }
    return 0;
}

static int is_taken(const char *typed, struct error *err)
{
    (void)error_set(err, ERROR_USAGE, EINVAL,
                    "%s would read standard input, where the client's messages come in", typed);
    return error_remedy(err, "Name a file");
}

static int check_input(const struct mcp_args *a, struct error *err)
{
    if (a->config && strcmp(a->config, "-") == 0)
        return is_taken("--config -", err);
    if (a->spec.file && strcmp(a->spec.file, "-") == 0)
        return is_taken("--spec -", err);
    for (size_t i = 0; i < a->spec.env_files.n; i++)
        if (strcmp(a->spec.env_files.items[i], "-") == 0)
            return is_taken("--env-file -", err);
    for (size_t i = 0; i < a->toolset.mask.n; i++)
        if (strcmp(a->toolset.mask.items[i], "@-") == 0)
            return is_taken("--mask @-", err);
    return 0;
}

static int read_options(const struct mcp_args *a, struct mcp_config *ret, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    struct atoll_spec *s = atoll_spec_new();

    if (!s)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    *ret = (struct mcp_config){.specs = {s}, .n = 1};
    s->spec.lifetime_us = LIMIT_LIFETIME_DEFAULT_US;
    s->spec.owned = true;
    return spec_args_apply_toolset(&a->spec, &a->toolset, &a->export, environ, &s->spec, &s->given,
                                   &problems, err);
}

static int read_specs(const struct mcp_args *a, struct mcp_config *ret, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};

    return a->config ? mcp_config_read(a->config, ret, &problems, err) : read_options(a, ret, err);
}

/* What can be known before anything starts */

static bool attaches(const struct serving *v)
{
    for (size_t i = 0; i < v->config.n; i++)
        if (v->config.specs[i]->spec.toolset.attach_to)
            return true;
    return false;
}

static int check_holder(const struct mcp_args *a, const struct serving *v, struct error *err)
{
    if ((!a->holder && a->keep == 0) || attaches(v))
        return 0;
    (void)error_set(err, ERROR_USAGE, EINVAL,
                    "--%s is about a sandbox that stands already, and none is attached to",
                    a->holder ? "holder" : "keep");
    return error_remedy(err, "Name one as toolset.attach_to in a spec file, or leave it out");
}

/* Whose end decides whether a run ended well: it has to be seen. */
static int check_exports(const struct serving *v, struct error *err)
{
    for (size_t i = 0; i < v->config.n && v->parent_fd < 0; i++) {
        if (v->config.specs[i]->spec.toolset.exports.n == 0)
            continue;
        (void)error_set(err, ERROR_USAGE, ESRCH,
                        "who started this server cannot be seen from here, so exports would be "
                        "published even if it was killed");
        return error_remedy(err, "Start the server from a process beside it, as 'docker run "
                                 "--init' does, or leave the exports out");
    }
    return 0;
}

static int admit(struct serving *v, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < v->config.n; i++) {
        const struct spec *s = &v->config.specs[i]->spec;

        r = s->toolset.attach_to ? handle_find(s->toolset.attach_to, &v->ids[i], err)
                                 : agent_tools_admit(s, err);
    }
    return r;
}

static int make_toolsets(struct serving *v, const struct mcp_args *a, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < v->config.n; i++) {
        struct atoll_toolset_options options = {.sandbox = v->ids[i],
                                                .beside = i > 0 ? v->toolsets[0] : NULL,
                                                .bytes = true,
                                                .holder = a->holder,
                                                .keep_us = a->keep};

        if (v->ids[i])
            r = handle_lease(v->ids[i], &options.lease, err);
        if (r == 0)
            r = agent_tools_new(v->handle.context, v->config.specs[i], &options, &v->toolsets[i],
                                err);
    }
    return r;
}

/* Serving */

/* Keepers are this program itself, also where nothing is installed. */
static int begin(struct serving *v, struct error *err)
{
    char program[PATH_MAX];
    int r = handle_begin(&v->handle, err);

    if (r == 0)
        r = program_path(program, err);
    if (r == 0 && atoll_set_program(v->handle.context, program) < 0)
        r = error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    return r;
}

static int serve(const struct cli *cli, struct serving *v, struct error *err)
{
    const struct mcp_serve_options options = {.a = v->handle.context,
                                              .toolsets = v->toolsets,
                                              .n_toolsets = v->config.n,
                                              .in_fd = STDIN_FILENO,
                                              .out_fd = STDOUT_FILENO,
                                              .parent_fd = v->parent_fd,
                                              .log = &cli->log};

    if (isatty(STDIN_FILENO))
        log_write(&cli->log, LOG_LEVEL_WARNING, "mcp",
                  "this is a server that waits for the messages of an MCP client; 'atoll mcp "
                  "config' prints what a client needs to start it, ^D ends it");
    return mcp_serve(&options, &v->handle.signal, err);
}

static int run(const struct cli *cli, const struct mcp_args *a, struct serving *v,
               struct error *err)
{
    int r = check_alone(a, err);

    if (r == 0)
        r = check_input(a, err);
    if (r == 0)
        r = read_specs(a, &v->config, err);
    if (r == 0)
        r = check_holder(a, v, err);
    if (r == 0)
        r = check_exports(v, err);
    if (r == 0)
        r = admit(v, err);
    if (r == 0)
        r = begin(v, err);
    if (r == 0)
        r = make_toolsets(v, a, err);
    if (r == 0)
        r = serve(cli, v, err);
    return v->handle.signal != 0 ? handle_status(&v->handle, -EINTR, err) : r;
}

static int mcp_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    /* At once: if the parent is gone by now, another process is in its place. */
    const pid_t parent = getppid();
    const int parent_fd = parent > 0 ? (int)syscall(SYS_pidfd_open, parent, 0) : -1;
    _cleanup_(serving_done) struct serving v = {.handle = HANDLE_INIT,
                                                .parent_fd = parent_fd < 0 ? -EBADF : parent_fd};
    struct arguments operands;
    struct mcp_args a;
    int r = command_parse(&cmd_mcp, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_mcp, &operands, 0, 0, err);
    if (r == 0)
        r = run(cli, &a, &v, err);
    options_done(mcp_options, ARRAY_SIZE(mcp_options), &a);
    return r;
}

static const struct command_example mcp_examples[] = {
    {"atoll mcp --volume .:/workspace", "a sandbox that sees this folder, for one MCP client"},
    {"atoll mcp --spec agent.yaml --tool edit_file --tool search_files",
     "one as a file says, with two more tools"},
    {"atoll mcp --export out/report.csv=file:///srv/report.csv",
     "publish a file when the client has ended its run"},
    {"atoll mcp --config sandboxes.yaml", "several sandboxes for one agent"},
};

const struct command cmd_mcp = {
    .name = "mcp",
    .summary = "serve a sandbox to an AI agent by the Model Context Protocol",
    .usage = "[OPTION]... | --config FILE",
    .description =
        "A server of the Model Context Protocol (MCP) on standard input and output. An MCP client "
        "starts it; 'atoll mcp config' prints what the client needs for that. The agent gets four "
        "tools, run_command, read_file, write_file and list_directory, and those that --tool "
        "adds. The sandbox is made when the first of them is called, and is removed when the "
        "client closes standard input or ends. It lives an hour unless --lifetime says otherwise; "
        "a call after its end makes a new one, and the agent is told so. With attach_to in a spec "
        "the tools work in a sandbox that stands: it is attached to, for toolset.owner, so that "
        "nobody else changes it meanwhile, and left as it is. Under 'atoll hold' that lease is "
        "used. Since standard input is the client's, no option can read it.\n\n"
        "What the backend cannot enforce is refused at the start, as 'atoll check' shows.\n\n"
        "An --export is published when the client has closed standard input and goes on living: "
        "after a signal, or when the client was killed, nothing is.\n\n"
        "--config names a file with 'version: 1' and 'toolsets', a list. Each entry has the "
        "sections of a spec file, and may have a prefix for the names of its tools and a purpose "
        "that the agent is told.",
    .options = mcp_options,
    .n_options = ARRAY_SIZE(mcp_options),
    .exit_status = "0; 125 on failure, also when what was promised could not be published; 128+N "
                   "after signal N",
    .examples = mcp_examples,
    .n_examples = ARRAY_SIZE(mcp_examples),
    .run = mcp_run,
};
