/* SPDX-License-Identifier: Apache-2.0 */
/* atoll doctor: everything that this host lacks, at once, with the remedies. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/print.h"
#include "local/probe.h"
#include "base/guards.h"

enum { EXIT_LACKING = 1 };

struct doctor_args {
    bool json;
};

static const struct option doctor_options[] = {
    OPTION_JSON(offsetof(struct doctor_args, json)),
};

static json_t *result_json(const struct probe_result *r)
{
    return json_pack("{s:s, s:b, s:s, s:s, s:s?}", "name", r->name, "required", (int)r->required,
                     "state", probe_state_name(r->state), "message", r->message, "remedy",
                     r->remedy[0] ? r->remedy : NULL);
}

static int report_json(struct cli *cli, const struct probe_report *report, struct error *err)
{
    json_t *probes = json_array();

    for (size_t i = 0; i < report->n; i++)
        if (json_array_append_new(probes, result_json(&report->results[i])) < 0) {
            json_decref(probes);
            return print_json(cli->out, NULL, err);
        }
    return print_json(cli->out,
                      json_pack("{s:b, s:s, s:o}", "ok", (int)(report->n_missing == 0), "kernel",
                                report->kernel.release, "probes", probes),
                      err);
}

/* Bad is what is required and missing; what else is not there gets a dash. */
static void print_mark(const struct cli *cli, const struct probe_result *r)
{
    if (r->state == PROBE_OK)
        print_styled(cli->out, cli->colour, PRINT_GOOD, "\u2713");
    else if (r->state == PROBE_MISSING && r->required)
        print_styled(cli->out, cli->colour, PRINT_BAD, "\u2717");
    else
        print_styled(cli->out, cli->colour, PRINT_WARNING, "\u2013");
}

static void print_result(const struct cli *cli, const struct probe_result *r, int width)
{
    size_t indent = (size_t)width + 4;

    print_mark(cli, r);
    fprintf(cli->out, " %-*s  ", width, r->name);
    print_wrapped(cli->out, indent, indent, r->message);
    if (r->remedy[0]) {
        fprintf(cli->out, "%*s\u2192 ", (int)indent, "");
        print_wrapped(cli->out, indent + 2, indent + 2, r->remedy);
    }
}

static void print_verdict(const struct cli *cli, size_t n_missing)
{
    char text[80];

    if (n_missing == 0)
        (void)snprintf(text, sizeof text, "this host can run sandboxes");
    else
        (void)snprintf(text, sizeof text, "this host cannot run sandboxes: %zu %s missing",
                       n_missing, n_missing == 1 ? "thing is" : "things are");
    print_styled(cli->out, cli->colour, n_missing == 0 ? PRINT_GOOD : PRINT_BAD, text);
    putc('\n', cli->out);
}

static void report_text(const struct cli *cli, const struct probe_report *report)
{
    int width = 0;

    for (size_t i = 0; i < report->n; i++) {
        int length = (int)strlen(report->results[i].name);

        width = length > width ? length : width;
    }
    for (size_t i = 0; i < report->n; i++) {
        const struct probe_result *r = &report->results[i];

        if (i == 0 || r->required != report->results[i - 1].required) {
            print_styled(cli->out, cli->colour, PRINT_BOLD,
                         r->required ? "Required" : "Optional, and what explains a refusal");
            putc('\n', cli->out);
        }
        print_result(cli, r, width);
    }
    print_verdict(cli, report->n_missing);
}

static int doctor_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    _cleanup_free_ struct probe_report *report = malloc(sizeof *report);
    struct doctor_args args;
    struct arguments operands;
    int r = command_parse(&cmd_doctor, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_doctor, &operands, 0, 0, err);
    if (r < 0)
        return r;
    if (!report)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    r = probe_host(report, err);
    if (r == 0 && args.json)
        r = report_json(cli, report, err);
    else if (r == 0)
        report_text(cli, report);
    if (r < 0)
        return r;
    return report->n_missing == 0 ? CLI_EXIT_OK : EXIT_LACKING;
}

static const struct command_example doctor_examples[] = {
    {"atoll doctor", "see whether sandboxes can run here, and what to do if not"},
    {"atoll doctor --json | jq '.probes[] | select(.state != \"ok\")'", "list what is not there"},
};

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "tell what this host lacks to run sandboxes",
    .usage = "[--json]",
    .description =
        "Tries, one by one, everything that making a sandbox asks of this host, in processes that "
        "end at once and change nothing. It names all that is missing, each with its remedy, and "
        "which optional things are there.\n\n"
        "What is not required is marked with a dash when it is missing: sandboxes run without it, "
        "and it says what they then lack. A thing is unknown when it could not be tried because "
        "another is missing.",
    .options = doctor_options,
    .n_options = ARRAY_SIZE(doctor_options),
    .exit_status = "0 this host can run sandboxes; 1 something that is required is missing; 125 it "
                   "could not be found out",
    .examples = doctor_examples,
    .n_examples = ARRAY_SIZE(doctor_examples),
    .run = doctor_run,
};
