/* SPDX-License-Identifier: Apache-2.0 */
/* atoll export: publish files and folders of a sandbox. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/export_text.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "core/limits.h"
#include "wire/json_text.h"
#include "base/guards.h"

enum { PROGRESS_AFTER_US = 1000000, PROGRESS_EVERY_US = 200000 };

struct export_options_args {
    uint64_t max_bytes;
    bool json;
};

#define FIELD(name) offsetof(struct export_options_args, name)

static const struct option export_options[] = {
    {.name = "max-bytes",
     .arg = "SIZE",
     .kind = OPTION_SIZE,
     .offset = FIELD(max_bytes),
     .min = 1,
     .max = LIMIT_DISK_MAX_BYTES,
     .preset = "1G",
     .help = "size that one file may have"},
    OPTION_JSON(FIELD(json)),
};

static void tell_progress(struct cli *cli, const struct atoll_op *op)
{
    char bytes[SANDBOX_WORDS];

    sandbox_bytes_text(bytes, atoll_op_progress(op));
    fprintf(cli->err, "\r\033[Katoll: %s copied", bytes);
    (void)fflush(cli->err);
}

/* Waits until @op is done, with a line of progress on a terminal. */
static int wait_for(struct cli *cli, struct handle *h, struct atoll_op *op, struct error *err)
{
    bool quiet = !isatty(fileno(cli->err)), told = false;
    uint64_t due = quiet ? CLOCK_NEVER : clock_after_us(PROGRESS_AFTER_US);
    int r = 0;

    while (op && !atoll_op_done(op) && r == 0) {
        r = handle_poll(h, NULL, 0, due, err);
        if (r < 0 || clock_now_us() < due)
            continue;
        tell_progress(cli, op);
        told = true;
        due = clock_after_us(PROGRESS_EVERY_US);
    }
    if (told)
        fputs("\r\033[K", cli->err);
    return r < 0 ? r : handle_result(op, err);
}

static int print_all_json(struct cli *cli, const struct atoll_op *op, const char *id,
                          struct error *err)
{
    json_t *exports = json_array(), *warnings = json_array();

    for (size_t i = 0; i < atoll_op_count(op); i++)
        (void)json_array_append_new(exports, export_text_json(atoll_op_exported(op, i)));
    for (size_t i = 0; atoll_op_warning(op, i); i++)
        (void)json_array_append_new(warnings, json_text(atoll_op_warning(op, i)));
    return print_json(
        cli->out,
        json_pack("{s:s, s:o, s:o}", "sandbox", id, "exports", exports, "warnings", warnings), err);
}

static void print_all(struct cli *cli, const struct atoll_op *op, const char *id)
{
    for (size_t i = 0; i < atoll_op_count(op); i++) {
        export_text_copied(cli->out, atoll_op_exported(op, i), id);
        putc('\n', cli->out);
    }
    for (size_t i = 0; i < atoll_op_count(op); i++) {
        export_text_published(cli->out, atoll_op_exported(op, i));
        putc('\n', cli->out);
    }
}

static int export_from(struct cli *cli, const struct arguments *operands,
                       const struct export_options_args *a, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    int r = handle_catch_signals(&h, err);

    if (r == 0)
        r = handle_open(&h, operands->v[0], err);
    if (r < 0)
        return handle_status(&h, r, err);
    /* operands->v ends with NULL */
    _cleanup_(handle_op_freep) struct atoll_op *op =
        atoll_export(h.sandbox, (const char *const *)(uintptr_t)&operands->v[1], a->max_bytes);
    r = wait_for(cli, &h, op, err);
    for (size_t i = 0; op && atoll_op_warning(op, i); i++)
        log_write(&cli->log, LOG_LEVEL_WARNING, "export", "%s", atoll_op_warning(op, i));
    if (r == 0 && a->json)
        return print_all_json(cli, op, h.id, err);
    if (r == 0)
        print_all(cli, op, h.id);
    return handle_status(&h, r, err);
}

static int export_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct export_options_args a;
    struct arguments operands;
    int r = command_parse(&cmd_export, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_export, &operands, 2, 1 + LIMIT_LIST_ENTRIES, err);
    return r < 0 ? r : export_from(cli, &operands, &a, err);
}

static const struct command_example export_examples[] = {
    {"atoll export box out/report.pdf=file:///srv/reports/may.pdf", "publish one file"},
    {"atoll export box site=file:///srv/www data.csv=file:///srv/data/may.csv",
     "publish a folder and a file, both or none"},
    {"atoll export box 'out/*.csv=file:///srv/tables'", "publish all that matches, as a folder"},
};

const struct command cmd_export = {
    .name = "export",
    .summary = "publish files and folders of a sandbox, all or none",
    .usage = "ID PATH=URL... [OPTION]...",
    .description =
        "Copies each PATH to a place beside its destination, compares what was written with what "
        "came out of the sandbox, and then renames all of them into their places. If anything "
        "fails, no destination has changed, and the error names the path, the URL and the cause. "
        "A reader of a destination sees the old or the new one, whole.\n\n"
        "PATH is a file or a folder, relative to the working directory, or a pattern: with *, ? or "
        "[ in it, for each part of a path by itself. What matches is published in the folder that "
        "URL names. URL is file:///PATH of this host; missing folders are made, links in its place "
        "are refused. {id} in it stands for the sandbox's id and {time} for the time of "
        "publication in UTC (20261130T065347Z); write %7B and %7D for braces themselves.\n\n"
        "A folder is replaced as a whole, if an export has made it, and gets a file "
        "atoll-manifest.json with the size and SHA-256 sum of each file. Links that lead out of "
        "it, FIFOs, sockets and devices end the export. So do files that tools of this host would "
        "run or obey, such as .git/hooks or .envrc, unless they are named in an export of their "
        "own.\n\n"
        "A file that changes while it is read, is larger than --max-bytes, or comes too slowly "
        "(120 s, or a second for each MiB) is a failure too.",
    .options = export_options,
    .n_options = ARRAY_SIZE(export_options),
    .exit_status = "0 all was published; 125 nothing was",
    .examples = export_examples,
    .n_examples = ARRAY_SIZE(export_examples),
    .run = export_run,
};
