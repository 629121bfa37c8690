/* SPDX-License-Identifier: Apache-2.0 */
/* atoll tool: one call of an agent's tool, as a model would see it; and what the model is told. */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "atoll_toolset.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/agent_tools.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/spec_options.h"
#include "core/spec_file.h"
#include "toolset/formats.h"
#include "toolset/toolset.h"
#include "base/guards.h"

struct tool_args {
    struct spec_args spec;
    struct toolset_args toolset;
    const char *format, *holder;
    bool describe, json;
};

#define FIELD(name) offsetof(struct tool_args, name)

static const char *const formats[] = {"text", "mcp", "anthropic", "openai", NULL};

static const struct option tool_options[] = {
    {.name = "describe",
     .kind = OPTION_FLAG,
     .offset = FIELD(describe),
     .help = "print names, descriptions and arguments of the tools; nothing is made"},
    {.name = "format",
     .arg = "FORMAT",
     .kind = OPTION_CHOICE,
     .offset = FIELD(format),
     .choices = formats,
     .preset = "text",
     .help = "with --describe: for people, or as JSON for a protocol"},
    {.name = "holder",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(holder),
     .help = "with attach_to in a spec: who holds the sandbox during the call; its owner unless "
             "given"},
    TOOLSET_OPTIONS(struct tool_args, toolset),
    SPEC_OPTIONS(struct tool_args, spec),
    OPTION_JSON(FIELD(json)),
};

enum { RETRY = 1 }; /* the exit status when the model has to mend its call */

#define CANCEL_US UINT64_C(10000000) /* how long what was given up may take to be undone */

/* What the command line says */

/* The section `toolset` alone means something for a sandbox that stands. */
static int refuse_other_sections(uint64_t given, struct error *err)
{
    char path[SPEC_PATH_MAX];

    given &= ~spec_section_bits(SPEC_SECTION_TOOLSET);
    for (enum spec_field_id id = 0; id < SPEC_FIELD__MAX; id++) {
        if (!(given & spec_field_bit(id)))
            continue;
        spec_field_path(id, path);
        (void)error_set(err, ERROR_USAGE, EINVAL,
                        "%s says what a sandbox is to be, and this one stands already", path);
        return error_remedy(err, "Leave it out; of a spec only the section toolset counts here");
    }
    return 0;
}

static int refuse_holder(struct error *err)
{
    (void)error_set(err, ERROR_USAGE, EINVAL,
                    "--holder is for a call that attaches to its sandbox, and this one does not");
    return error_remedy(err, "Name the sandbox as toolset.attach_to and its owner as toolset.owner "
                             "in a spec file, or leave it out");
}

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int fill_spec(const struct tool_args *a, struct atoll_spec *s, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};

    s->spec.lifetime_us = LIMIT_LIFETIME_DEFAULT_US;
    return spec_args_apply_toolset(&a->spec, &a->toolset, NULL, environ, &s->spec, &s->given,
                                   &problems, err);
}

/* @sandbox: a whole id, or NULL; @ret: owned */
static int make_toolset(struct handle *h, const struct atoll_spec *spec, const char *sandbox,
                        const char *holder, struct atoll_toolset **ret, struct error *err)
{
    struct atoll_toolset_options options = {.sandbox = sandbox, .holder = holder};
    int r = sandbox ? handle_lease(sandbox, &options.lease, err) : 0;

    return r < 0 ? r : agent_tools_new(h->context, spec, &options, ret, err);
}

static void log_open_or_close(const struct cli *cli, const struct atoll_op *op)
{
    for (size_t i = 0; op && atoll_op_warning(op, i); i++)
        log_write(&cli->log, LOG_LEVEL_WARNING, "tool", "%s", atoll_op_warning(op, i));
    for (size_t i = 0; op && atoll_toolset_note(op, i); i++)
        log_write(&cli->log, LOG_LEVEL_INFO, "tool", "%s", atoll_toolset_note(op, i));
}

static int open_toolset(const struct cli *cli, struct handle *h, struct atoll_toolset *t,
                        struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_toolset_open(t);
    int r = handle_wait(h, op, err);

    if (r == -EINTR && op) { /* what it has taken is given back, and that is waited for */
        atoll_op_cancel(op);
        (void)atoll_wait(op, CANCEL_US);
    }
    log_open_or_close(cli, op);
    return r;
}

/* What was attached to is let go, so that nobody has to wait for its lease. */
static void close_toolset(const struct cli *cli, struct handle *h, struct atoll_toolset *t)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_toolset_close(t, false);
    struct error ignored = ERROR_INIT;

    if (op && (atoll_op_done(op) || handle_wait(h, op, &ignored) == 0))
        log_open_or_close(cli, op);
}

/* Calls */

static int check_name(const struct atoll_toolset *t, const char *name, struct error *err)
{
    const char *names[TOOL__MAX], *nearest;
    char list[TOOL__MAX * (TOOL_NAME_BYTES + 2)] = "";
    const struct atoll_tool *tool;
    size_t n;

    for (n = 0; (tool = atoll_toolset_tool(t, n)); n++) {
        size_t at = strlen(list);

        names[n] = tool->name;
        if (strcmp(names[n], name) == 0)
            return 0;
        (void)snprintf(list + at, sizeof list - at, "%s%s", n > 0 ? ", " : "", names[n]);
    }
    nearest = text_nearest(name, names, n);
    (void)error_set(err, ERROR_USAGE, EINVAL, "there is no tool '%.80s'", name);
    if (nearest)
        return error_remedy(err, "The nearest one is %s", nearest);
    return error_remedy(err, "The tools are %s", list);
}

/* @ret: owned; nothing given is no argument at all */
static int read_arguments(const char *json, char **ret, size_t *ret_len, struct error *err)
{
    if (json && strcmp(json, "-") == 0)
        return spec_read_bytes("-", "tool call", TOOL_ARGUMENTS_BYTES_MAX, ret, ret_len, NULL, err);
    *ret = strdup(json ? json : "{}");
    if (!*ret)
        return no_memory(err);
    *ret_len = strlen(*ret);
    return 0;
}

static json_t *exit_json(const struct atoll_exit *x)
{
    json_t *o;

    if (!x)
        return json_null();
    o = json_pack("{s:s, s:i, s:f, s:{s:f, s:f, s:I}}", "reason", x->reason, "status", x->status,
                  "duration", (double)x->wall_us / 1e6, "usage", "user_time",
                  (double)x->user_us / 1e6, "system_time", (double)x->system_us / 1e6,
                  "peak_memory_bytes", (json_int_t)x->peak_rss_bytes);
    if (o && x->signal > 0)
        (void)json_object_set_new(o, "signal", json_integer(x->signal));
    else if (o)
        (void)json_object_set_new(o, "exit_code", json_integer(x->exit_code));
    return o;
}

static int print_answer(struct cli *cli, const char *name, const struct atoll_tool_answer *answer,
                        bool json, struct error *err)
{
    int r = 0;

    if (json) {
        r = print_json(cli->out,
                       json_pack("{s:s, s:o, s:b, s:I, s:b, s:o}", "tool", name, "text",
                                 json_stringn(answer->text, answer->len), "retry",
                                 (int)answer->retry, "failures", (json_int_t)answer->failures,
                                 "replaced", (int)answer->replaced, "exit",
                                 exit_json(answer->exit)),
                       err);
    } else {
        (void)fwrite(answer->text, 1, answer->len, cli->out);
        putc('\n', cli->out);
    }
    return r < 0 ? r : answer->retry ? RETRY : CLI_EXIT_OK;
}

static int call_tool(struct cli *cli, struct handle *h, struct atoll_toolset *t,
                     const struct arguments *operands, bool json, struct error *err)
{
    _cleanup_free_ char *arguments = NULL;
    const char *name = operands->v[1];
    size_t len = 0;
    int r = read_arguments(operands->n > 2 ? operands->v[2] : NULL, &arguments, &len, err);

    if (r == 0)
        r = handle_catch_signals(h, err); /* only now: reading what is typed can be interrupted */
    if (r == 0)
        r = open_toolset(cli, h, t, err);
    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_tool_call(t, name, arguments, len);
    r = handle_wait(h, op, err);
    if (r == -EINTR && op) { /* its command goes too, and that is waited for */
        atoll_op_cancel(op);
        (void)atoll_wait(op, CANCEL_US);
    }
    close_toolset(cli, h, t);
    return r < 0 ? r : print_answer(cli, name, atoll_op_answer(op), json, err);
}

static int call(struct cli *cli, struct handle *h, const struct tool_args *a,
                const struct arguments *operands, struct error *err)
{
    _cleanup_(agent_spec_freep) struct atoll_spec *spec = atoll_spec_new();
    _cleanup_(agent_tools_freep) struct atoll_toolset *t = NULL;
    int r;

    if (!spec)
        return no_memory(err);
    r = fill_spec(a, spec, err);
    if (r == 0)
        r = refuse_other_sections(spec->given, err);
    if (r == 0 && a->holder && !spec->spec.toolset.attach_to)
        r = refuse_holder(err);
    if (r == 0)
        r = handle_begin(h, err);
    if (r == 0)
        r = handle_find(operands->v[0], &h->id, err);
    if (r == 0)
        r = make_toolset(h, spec, h->id, a->holder, &t, err);
    if (r == 0)
        r = check_name(t, operands->v[1], err);
    return r < 0 ? r : call_tool(cli, h, t, operands, a->json, err);
}

/* Descriptions */

static const char *type_words(const struct tool_property *p)
{
    static const char *const words[] = {
        [TOOL_STRING] = "text", [TOOL_NUMBER] = "number", [TOOL_INTEGER] = "whole number"};

    return words[p->type];
}

static void print_tool(const struct cli *cli, const struct atoll_tool *tool,
                       const struct tool_schema *schema)
{
    enum { TEXT_INDENT = 2, ARGUMENT_INDENT = 6 };

    print_styled(cli->out, cli->colour, PRINT_BOLD, tool->name);
    fprintf(cli->out, "\n%*s", TEXT_INDENT, "");
    print_wrapped(cli->out, TEXT_INDENT, TEXT_INDENT, tool->description);
    putc('\n', cli->out);
    for (size_t i = 0; i < schema->n; i++) {
        const struct tool_property *p = &schema->properties[i];

        fprintf(cli->out, "%*s%s (%s%s)\n%*s", TEXT_INDENT, "", p->name, type_words(p),
                p->required ? ", required" : "", ARGUMENT_INDENT, "");
        print_wrapped(cli->out, ARGUMENT_INDENT, ARGUMENT_INDENT, p->description);
    }
}

static int print_tools(const struct cli *cli, const struct atoll_toolset *t, const char *format,
                       struct error *err)
{
    _Static_assert((int)FORMAT_MCP == (int)ATOLL_TOOLS_MCP &&
                       (int)FORMAT_ANTHROPIC == (int)ATOLL_TOOLS_ANTHROPIC &&
                       (int)FORMAT_OPENAI == (int)ATOLL_TOOLS_OPENAI,
                   "formats have the same numbers here and there");
    const enum tool_format f = format_find(format);

    if (f != FORMAT__MAX) {
        _cleanup_free_ char *text = atoll_toolset_render(t, (int)f);

        if (!text)
            return no_memory(err);
        fprintf(cli->out, "%s\n", text);
        return 0;
    }
    const struct atoll_tool *tool;

    for (size_t i = 0; (tool = atoll_toolset_tool(t, i)); i++) {
        if (i > 0)
            putc('\n', cli->out);
        print_tool(cli, tool, &tools[tool_find(tool->name, toolset_prefix(t))].schema);
    }
    return 0;
}

/* Nothing is done there, so nothing is attached to: whoever holds it is not disturbed. */
static void only_look(struct atoll_spec *spec)
{
    free(TAKE_PTR(spec->spec.toolset.attach_to));
    free(TAKE_PTR(spec->spec.toolset.owner));
}

static int describe(struct cli *cli, struct handle *h, const struct tool_args *a,
                    const struct arguments *operands, struct error *err)
{
    _cleanup_(agent_spec_freep) struct atoll_spec *spec = atoll_spec_new();
    _cleanup_(agent_tools_freep) struct atoll_toolset *t = NULL;
    const char *standing = operands->n > 0 ? operands->v[0] : NULL;
    int r;

    if (!spec)
        return no_memory(err);
    r = handle_begin(h, err);
    if (r == 0)
        r = fill_spec(a, spec, err);
    if (r < 0)
        return r;
    if (standing)
        r = refuse_other_sections(spec->given, err);
    else
        standing = spec->spec.toolset.attach_to;
    if (r == 0)
        r = standing ? handle_find(standing, &h->id, err) : agent_tools_admit(&spec->spec, err);
    if (r == 0 && standing)
        only_look(spec);
    if (r == 0)
        r = make_toolset(h, spec, h->id, NULL, &t, err);
    if (r == 0 && standing)
        r = open_toolset(cli, h, t, err);
    return r < 0 ? r : print_tools(cli, t, a->format, err);
}

static int check_use(const struct tool_args *a, const struct arguments *operands, struct error *err)
{
    if (!a->describe)
        return command_operands(&cmd_tool, operands, 2, 3, err);
    if (a->holder)
        return refuse_holder(err);
    if (a->json) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "--describe has JSON of other kinds");
        return error_remedy(err, "Choose one by --format: mcp, anthropic or openai");
    }
    return command_operands(&cmd_tool, operands, 0, 1, err);
}

static int tool_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct handle h = HANDLE_INIT;
    struct arguments operands;
    struct tool_args a;
    int r = command_parse(&cmd_tool, argc, argv, &a, &operands, err);

    if (r == 0)
        r = check_use(&a, &operands, err);
    if (r == 0)
        r = a.describe ? describe(cli, &h, &a, &operands, err) : call(cli, &h, &a, &operands, err);
    r = handle_status(&h, r, err);
    handle_done(&h);
    options_done(tool_options, ARRAY_SIZE(tool_options), &a);
    return r;
}

static const struct command_example tool_examples[] = {
    {"atoll tool box run_command '{\"command\":\"ls -l\"}'", "run a command as an agent would"},
    {"atoll tool box write_file - <call.json", "take the arguments from standard input"},
    {"atoll tool --describe --format anthropic --spec agent.yaml",
     "print what a model would be given"},
};

const struct command cmd_tool = {
    .name = "tool",
    .summary = "call a tool as an AI agent does, and show what it is told",
    .usage = "ID NAME [JSON] [OPTION]... | --describe [ID] [OPTION]...",
    .description =
        "Calls one of the tools of an agent on a sandbox that stands: run_command, read_file, "
        "write_file, list_directory, or one that --tool adds. JSON holds the arguments, '-' takes "
        "them from standard input; without it there are none. What is printed is the answer as a "
        "model would see it, cut to the same sizes and masked in the same way.\n\n"
        "A command that failed is an ordinary answer, which says so. An answer that tells the "
        "model to mend its call has status 1.\n\n"
        "--describe prints what a model is told of the tools: for a sandbox that a spec would "
        "make, or for one that stands. For one that stands, and for calls, only the section "
        "toolset of a spec counts; a field of another section is refused.",
    .options = tool_options,
    .n_options = ARRAY_SIZE(tool_options),
    .exit_status = "0; 1 the answer is one that the model has to mend its call by; 125 on failure",
    .examples = tool_examples,
    .n_examples = ARRAY_SIZE(tool_examples),
    .run = tool_run,
};
