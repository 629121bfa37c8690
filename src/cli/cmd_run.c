/* SPDX-License-Identifier: Apache-2.0 */
/* atoll run: one command in a sandbox of its own. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/result.h"
#include "cli/terminal.h"
#include "client/run.h"
#include "core/limits.h"
#include "core/outcome.h"
#include "base/guards.h"

struct run_args {
    const char *image, *workdir, *user, *hostname, *result;
    struct text_list volumes, env;
    uint64_t disk, pids, lifetime, timeout;
    bool interactive, tty, verbose;
};

#define FIELD(name) offsetof(struct run_args, name)

static const struct option run_options[] = {
    {.name = "image",
     .arg = "REF",
     .kind = OPTION_TEXT,
     .offset = FIELD(image),
     .help = "what the sandbox sees as its root: 'host' (the host's /usr, read-only) or 'dir:PATH' "
             "(an unpacked root file system; writes to it are discarded)"},
    {.name = "volume",
     .arg = "HOST:GUEST[:ro]",
     .kind = OPTION_LIST,
     .offset = FIELD(volumes),
     .max = LIMIT_VOLUMES,
     .help = "show a file or folder of the host inside; writable unless :ro"},
    {.name = "workdir",
     .letter = 'w',
     .arg = "DIR",
     .kind = OPTION_TEXT,
     .offset = FIELD(workdir),
     .help = "start in this folder, made if absent; /workspace unless given"},
    {.name = "user",
     .arg = "UID[:GID]",
     .kind = OPTION_TEXT,
     .offset = FIELD(user),
     .help = "run as this user inside; root (without power over the host) unless given"},
    {.name = "hostname",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(hostname),
     .help = "name of the sandbox inside; 'sandbox' unless given"},
    {.name = "env",
     .letter = 'e',
     .arg = "NAME[=VALUE]",
     .kind = OPTION_LIST,
     .offset = FIELD(env),
     .max = LIMIT_ENV_NAMES,
     .help = "set a variable; a NAME alone passes the caller's value on"},
    {.name = "disk",
     .arg = "SIZE",
     .kind = OPTION_SIZE,
     .offset = FIELD(disk),
     .min = LIMIT_DISK_MIN_BYTES,
     .max = LIMIT_DISK_MAX_BYTES,
     .help = "room for everything the sandbox writes, held in memory; half of the free memory "
             "unless given"},
    {.name = "pids",
     .arg = "N",
     .kind = OPTION_NUMBER,
     .offset = FIELD(pids),
     .min = LIMIT_PIDS_MIN,
     .max = LIMIT_PIDS_MAX,
     .preset = "4096",
     .help = "processes and threads at once"},
    {.name = "lifetime",
     .arg = "TIME",
     .kind = OPTION_DURATION,
     .offset = FIELD(lifetime),
     .min = 1000,
     .max = LIMIT_TIME_MAX_US,
     .help = "end the sandbox after this time"},
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
    {"atoll run -it -- bash", "look around inside"},
};

/* The spec's fields from the options, each checked by its own grammar. */
static int fill_spec(const struct run_args *a, struct spec *s, struct error *err)
{
    int r = spec_init(s) < 0 ? error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory") : 0;

    if (r == 0 && a->image)
        r = spec_set_image(s, a->image, err);
    if (r == 0 && a->workdir)
        r = spec_set_workdir(s, a->workdir, err);
    if (r == 0 && a->user)
        r = spec_set_user(s, a->user, err);
    if (r == 0 && a->hostname)
        r = spec_set_hostname(s, a->hostname, err);
    for (size_t i = 0; r == 0 && i < a->volumes.n; i++)
        r = spec_add_volume(s, a->volumes.items[i], err);
    for (size_t i = 0; r == 0 && i < a->env.n; i++)
        r = spec_add_env(s, a->env.items[i], environ, err);
    s->disk_bytes = a->disk;
    s->pids = a->pids;
    s->lifetime_us = a->lifetime;
    s->owned = true;
    return r;
}

static int check_arguments(const struct arguments *operands, struct error *err)
{
    if (operands->n == 0) {
        error_set(err, ERROR_USAGE, EINVAL, "no command was given to run");
        return error_remedy(err, "Write it after '--': atoll run -- COMMAND");
    }
    for (int i = 0; i < operands->n; i++)
        if (strlen(operands->v[i]) > EXEC_STRING_BYTES_MAX) { /* execve(2), MAX_ARG_STRLEN */
            error_set(err, ERROR_USAGE, E2BIG,
                      "argument %d has %zu bytes, and the kernel passes at most %d in one", i,
                      strlen(operands->v[i]), EXEC_STRING_BYTES_MAX);
            return error_remedy(err, "Pass a file instead, or send it on standard input with -i");
        }
    return 0;
}

/* What the callbacks of a run need. */
struct run_view {
    struct cli *cli;
    struct terminal terminal;
    bool interactive;
};

static void log_step(void *arg, const struct step_report *step)
{
    struct run_view *v = arg;
    struct log log = v->cli->log;

    log.level = LOG_LEVEL_INFO;
    log_write(&log, LOG_LEVEL_INFO, "set-up", "step %u: %s (%u us)", step->index + 1, step->text,
              (unsigned)step->us);
}

static void go_raw(void *arg)
{
    struct run_view *v = arg;

    (void)terminal_raw(&v->terminal, v->interactive); /* without, keys arrive line by line */
}

static int report(struct cli *cli, const struct run_result *result, const struct spec *spec,
                  const char *program, struct error *err)
{
    char why[512];

    if (result->hung_up_by != 0)
        return OUTCOME_SIGNAL_BASE + result->hung_up_by;
    if (result->output_error != 0)
        return error_set(err, ERROR_TERMINAL, result->output_error,
                         "the command's output could not be written: %s",
                         strerror(result->output_error));
    outcome_explain(&result->exit, program, result->interpreter[0] ? result->interpreter : NULL,
                    spec->workdir ? spec->workdir : SPEC_WORKDIR_DEFAULT, why, sizeof why);
    if (why[0]) {
        text_make_printable(why);
        fprintf(cli->err, "atoll: %s\n", why);
    }
    return outcome_status(&result->exit);
}

static int run_checked(struct cli *cli, const struct run_args *a, struct spec *spec,
                       const struct arguments *operands, struct result_file *result_file,
                       struct error *err)
{
    struct run_view view = {.cli = cli, .interactive = a->interactive};
    struct run_result result;
    struct run_request request = {
        .spec = spec,
        .exec = {.argv = (const char **)(uintptr_t)operands->v,
                 .n_argv = (size_t)operands->n,
                 .timeout_us = a->timeout},
        .interactive = a->interactive,
        .tty = a->tty,
        .arg = &view,
        .started = a->tty ? go_raw : NULL,
        .step = spec->report_steps ? log_step : NULL,
    };

    terminal_find(&view.terminal);
    terminal_size(&view.terminal, &request.exec.rows, &request.exec.columns);
    request.terminal_fd = view.terminal.fd;
    int r = run_command(&request, &result, err);
    terminal_restore(&view.terminal);
    if (r < 0) {
        (void)result_write_error(result_file, err);
        return r;
    }
    r = result_write(result_file, &result, err);
    return r < 0 ? r : report(cli, &result, spec, operands->v[0], err);
}

static int run_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct result_file result_file = RESULT_FILE_INIT;
    struct arguments operands;
    struct spec spec = {0};
    struct run_args a;
    int r = command_parse(&cmd_run, argc, argv, &a, &operands, err);

    if (r == 0)
        r = check_arguments(&operands, err);
    if (r == 0)
        r = fill_spec(&a, &spec, err);
    if (r == 0 && a.result)
        r = result_open(&result_file, a.result, err);
    if (r == 0) {
        spec.report_steps = a.verbose || cli->verbose;
        (void)signal(SIGPIPE, SIG_IGN); /* a closed output is an error code, not a signal */
        (void)signal(SIGCHLD,
                     SIG_DFL); /* the caller may ignore it, and then nothing is waited for */
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
