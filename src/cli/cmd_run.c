/* SPDX-License-Identifier: Apache-2.0 */
/* atoll run: one command in a sandbox of its own. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/attach.h"
#include "cli/command.h"
#include "cli/fork_keeper.h"
#include "cli/run_export.h"
#include "cli/spec_options.h"
#include "client/run.h"
#include "core/backends.h"
#include "core/limits.h"
#include "core/problems.h"
#include "base/guards.h"

struct run_args {
    struct spec_args spec;
    struct export_args export;
    const char *result;
    uint64_t timeout;
    bool interactive, tty, verbose;
};

#define FIELD(name) offsetof(struct run_args, name)

static const struct option run_options[] = {
    SPEC_OPTIONS(struct run_args, spec),
    EXPORT_OPTIONS(struct run_args, export),
    {.name = "timeout",
     .arg = "TIME",
     .kind = OPTION_DURATION,
     .offset = FIELD(timeout),
     .min = 1000,
     .max = LIMIT_TIME_MAX_US,
     .help = "end the command and every process it started after this time; status 124"},
    {.name = "interactive",
     .letter = 'i',
     .kind = OPTION_FLAG,
     .offset = FIELD(interactive),
     .help = "pass standard input on; otherwise it is empty"},
    {.name = "tty",
     .letter = 't',
     .kind = OPTION_FLAG,
     .offset = FIELD(tty),
     .help = "give the command a terminal"},
    {.name = "result",
     .arg = "FILE|FD",
     .kind = OPTION_TEXT,
     .offset = FIELD(result),
     .help = "write how it ended, as one JSON object, to a file or an open descriptor"},
    {.name = "verbose",
     .letter = 'v',
     .kind = OPTION_FLAG,
     .offset = FIELD(verbose),
     .help = "name each set-up step and its time on standard error"},
};

static const struct command_example run_examples[] = {
    {"atoll run -- python3 -c 'print(6 * 7)'", "run code that can reach neither network nor files"},
    {"atoll run --volume .:/workspace --timeout 60s -- make test",
     "work on the current folder, for a minute at most"},
    {"atoll run --export report.pdf=file:///srv/reports/may.pdf -- ./report.sh",
     "publish a result if the command ends well"},
    {"atoll run -it -- bash", "look around inside"},
};

static int fill_spec(const struct run_args *a, struct spec *s, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};

    if (spec_init(s) < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    s->lifetime_us = 0; /* it ends with its command */
    s->owned = true;
    return spec_args_apply_exports(&a->spec, &a->export, environ, s, &problems, err);
}

static int run_checked(struct cli *cli, const struct run_args *a, struct spec *spec,
                       const struct arguments *operands, struct result_file *result_file,
                       struct error *err)
{
    struct session session;
    struct run_export exports;
    struct run_request request = {
        .spec = spec,
        .exec = {.argv = (const char **)(uintptr_t)operands->v,
                 .n_argv = (size_t)operands->n,
                 .timeout_us = a->timeout},
        .interactive = a->interactive,
        .tty = a->tty,
    };
    const bool local = strcmp(spec->backend, "local") == 0;

    if (spec->toolset.exports.n > 0) {
        run_export_init(&exports, cli, spec, a->verbose || cli->verbose, result_file);
        request.finish = &exports.finish;
    }
    int r = local ? fork_keeper(&session, err) : session_backend(&session, spec->backend, err);

    if (r == 0)
        return attach_run(cli, &session, &request, result_file,
                          spec->workdir ? spec->workdir : SPEC_WORKDIR_DEFAULT, err);
    (void)result_write_error(result_file, err);
    return r;
}

static int run_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct result_file result_file = RESULT_FILE_INIT;
    struct arguments operands;
    struct spec spec = {0};
    struct run_args a;
    int r = command_parse(&cmd_run, argc, argv, &a, &operands, err);

    if (r == 0)
        r = attach_check(&cmd_run, &operands, err);
    if (r == 0)
        r = fill_spec(&a, &spec, err);
    if (r == 0)
        r = backend_admit(&spec, getenv("PATH"), err);
    if (r == 0 && spec.toolset.exports.n > 0)
        r = export_check(&spec.toolset.exports, err);
    if (r == 0 && a.result)
        r = result_open(&result_file, a.result, err);
    if (r == 0) {
        spec.report_steps = a.verbose || cli->verbose;
        attach_prepare();
        r = run_checked(cli, &a, &spec, &operands, &result_file, err);
    }
    result_close(&result_file);
    spec_done(&spec);
    options_done(run_options, ARRAY_SIZE(run_options), &a);
    return r;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "run a command in a sandbox of its own",
    .usage = "[OPTION]... [--] COMMAND [ARG]...",
    .description =
        "Makes a sandbox, runs one command in it, and removes the sandbox with everything that is "
        "still in it. The command sees the host's programs and none of its files, no network but "
        "its own loopback, and nothing of the caller's environment.\n\n"
        "COMMAND is started as it stands: write 'sh -c' yourself where a shell is wanted. Its "
        "output "
        "is passed on byte for byte; messages of atoll itself begin with 'atoll: ' and go to "
        "standard error.\n\n"
        "With --export, or exports in the spec, files and folders are copied out when the command "
        "has ended with status 0: all of them are put in their places together, or none is, and "
        "then the status is 125. See 'atoll export'.\n\n"
        "SIGINT, SIGTERM and SIGQUIT are passed on to the command; the third one removes the "
        "sandbox. When atoll itself dies, by SIGKILL too, the sandbox is gone at once.",
    .options = run_options,
    .n_options = ARRAY_SIZE(run_options),
    .ends_at = 1,
    .exit_status = "the command's own; 124 timed out; 125 atoll could not do it; 126 found but not "
                   "executable; 127 not found; 128+N ended by signal N",
    .examples = run_examples,
    .n_examples = ARRAY_SIZE(run_examples),
    .run = run_run,
};
