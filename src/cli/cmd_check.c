/* SPDX-License-Identifier: Apache-2.0 */
/* atoll check: whether a backend, on this host, can keep a spec. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/spec_options.h"
#include "client/describe.h"
#include "core/backends.h"
#include "local/probe.h"
#include "wire/json_text.h"
#include "base/guards.h"

struct check_args {
    struct spec_args spec;
    bool no_host, json;
};

static const struct option check_options[] = {
    SPEC_OPTIONS(struct check_args, spec),
    {.name = "no-host",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct check_args, no_host),
     .help = "do not try whether this host can run sandboxes"},
    OPTION_JSON(offsetof(struct check_args, json)),
};

/* What was found, stage by stage; a stage that was not reached is zero. */
struct finding {
    struct spec spec;
    const char *file; /* of the spec, or NULL */
    struct problems problems;
    struct backend_room room;
    struct backend backend;         /* without a name: not reached */
    struct description description; /* of a program */
    struct capability_results results;
    struct probe_report *host; /* NULL: not looked at */
    bool ok;
    char summary[1024];
};

static void finding_done(struct finding *f)
{
    spec_done(&f->spec);
    problems_done(&f->problems);
    description_done(&f->description);
    free(f->host);
}

/* Looking */

static int look_at_host(struct finding *f, struct error *err)
{
    f->host = malloc(sizeof *f->host);
    if (!f->host)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    int r = probe_host(f->host, err);
    if (r == 0)
        probe_require(f->host, &f->spec);
    return r;
}

/* A spec that is wrong ends it, but is a finding, not a failure. */
static int look(const struct check_args *args, struct finding *f, struct error *err)
{
    int r = spec_init(&f->spec) < 0 ? error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory") : 0;

    if (r == 0)
        r = spec_args_apply(&args->spec, environ, &f->spec, &f->problems, err);
    if (r == -EINVAL && problems_any(&f->problems)) {
        *err = (struct error)ERROR_INIT;
        return 0;
    }
    if (r == 0)
        r = backend_find(f->spec.backend, getenv("PATH"), &f->room, &f->backend, err);
    if (r == 0 && f->backend.state == BACKEND_PROGRAM) {
        (void)signal(SIGPIPE, SIG_IGN);
        r = description_fetch_wait(&f->description, f->backend.name, err);
        f->backend.capability = f->description.capability;
    }
    if (r < 0)
        return r;
    (void)capability_check(&f->backend.capability, &f->spec, &f->results);
    if (f->backend.state == BACKEND_BUILT_IN && !args->no_host)
        r = look_at_host(f, err);
    return r;
}

static const char *plural(size_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

/* The one sentence: what stands in the way first. */
static void sum_up(struct finding *f)
{
    const size_t refused = f->results.n_of[CAPABILITY_REFUSED];
    const size_t accepted = f->results.n_of[CAPABILITY_ACCEPTED];
    const char *name = f->backend.name;
    struct error err = ERROR_INIT;
    char *buf = f->summary;
    const size_t size = sizeof f->summary;

    if (!name)
        (void)snprintf(buf, size, "the spec is wrong: %zu %s", f->problems.n,
                       plural(f->problems.n, "problem", "problems"));
    else if (backend_require(&f->backend, &err) < 0)
        (void)snprintf(buf, size, "%s. %s", err.message, err.remedy);
    else if (refused > 0)
        (void)snprintf(buf, size, "the backend %s refuses this spec: %zu %s", name, refused,
                       plural(refused, "field", "fields"));
    else if (f->host && f->host->n_missing > 0)
        (void)snprintf(buf, size, "this host cannot run sandboxes: %zu %s missing",
                       f->host->n_missing, plural(f->host->n_missing, "thing is", "things are"));
    else if (accepted > 0)
        (void)snprintf(buf, size, "the backend %s keeps this spec; %zu %s enforced", name, accepted,
                       plural(accepted, "field is recorded, not", "fields are recorded, not"));
    else
        (void)snprintf(buf, size, "the backend %s enforces this spec", name);
    f->ok = name && err.code == 0 && refused == 0 && !(f->host && f->host->n_missing > 0);
}

/* Telling people */

static void print_row(const struct cli *cli, enum capability_verdict verdict, const char *name,
                      const char *text, const char *remedy)
{
    enum { NAME_WIDTH = 30, INDENT = NAME_WIDTH + 3 };
    static const struct {
        enum print_style style;
        const char *mark;
    } marks[] = {
        [CAPABILITY_ENFORCED] = {PRINT_GOOD, "\u2713"},
        [CAPABILITY_ACCEPTED] = {PRINT_WARNING, "\u2013"},
        [CAPABILITY_REFUSED] = {PRINT_BAD, "\u2717"},
    };
    const size_t at = strlen(name) + 3;

    print_styled(cli->out, cli->colour, marks[verdict].style, marks[verdict].mark);
    fprintf(cli->out, " %-*s ", at > INDENT ? 0 : NAME_WIDTH, name);
    print_wrapped(cli->out, at > INDENT ? at : INDENT, INDENT, text);
    if (remedy) {
        fprintf(cli->out, "%*s\u2192 ", INDENT, "");
        print_wrapped(cli->out, INDENT + 2, INDENT + 2, remedy);
    }
}

static void print_field(const struct cli *cli, const struct capability_result *r)
{
    char name[SPEC_PATH_MAX], text[1024];

    spec_field_path(r->field, name);
    (void)snprintf(text, sizeof text, "%s%s%s: %s%s", capability_verdict_name(r->verdict),
                   r->by ? " by " : "", r->by ? r->by : "", r->how,
                   r->documented ? " (as documented)" : "");
    print_row(cli, r->verdict, name, text, r->remedy);
}

static void print_problem(const struct cli *cli, const struct finding *f, const struct problem *x)
{
    struct problem without_remedy = *x;
    char line[2048];

    without_remedy.remedy = NULL;
    problem_format(&without_remedy, x->at.line > 0 ? f->file : NULL, line, sizeof line);
    line[strlen(line) - 1] = '\0'; /* the full stop, which no other line has */
    print_styled(cli->out, cli->colour, PRINT_BAD, "\u2717");
    putc(' ', cli->out);
    print_wrapped(cli->out, 2, 2, line);
    if (x->remedy) {
        fputs("  \u2192 ", cli->out);
        print_wrapped(cli->out, 4, 4, x->remedy);
    }
}

static void report_text(const struct cli *cli, const struct finding *f)
{
    for (size_t i = 0; i < f->problems.n; i++)
        print_problem(cli, f, &f->problems.items[i]);
    for (size_t i = 0; i < f->results.n; i++)
        print_field(cli, &f->results.items[i]);
    for (size_t i = 0; f->host && i < f->host->n; i++) {
        const struct probe_result *r = &f->host->results[i];

        if (r->required && r->state != PROBE_OK)
            print_row(cli, CAPABILITY_REFUSED, r->name, r->message,
                      r->remedy[0] ? r->remedy : NULL);
    }
    if (f->host && f->host->n_missing == 0)
        print_row(cli, CAPABILITY_ENFORCED, "this host", "has all that sandboxes need", NULL);
    print_styled(cli->out, cli->colour, f->ok ? PRINT_GOOD : PRINT_BAD, f->summary);
    putc('\n', cli->out);
}

/* Telling programs */

static json_t *problems_json(const struct finding *f)
{
    json_t *list = json_array();

    for (size_t i = 0; i < f->problems.n; i++) {
        const struct problem *x = &f->problems.items[i];
        const bool placed = x->at.line > 0;
        json_t *item = json_pack("{s:o, s:o*, s:o, s:o*}", "field", json_text(x->field), "file",
                                 json_text(placed ? f->file : NULL), "message",
                                 json_text(x->message), "remedy", json_text(x->remedy));

        if (placed) {
            (void)json_object_set_new(item, "line", json_integer(x->at.line));
            (void)json_object_set_new(item, "column", json_integer(x->at.column));
        }
        (void)json_array_append_new(list, item);
    }
    return list;
}

static json_t *fields_json(const struct finding *f)
{
    json_t *list = json_array();

    for (size_t i = 0; i < f->results.n; i++) {
        const struct capability_result *r = &f->results.items[i];
        char name[SPEC_PATH_MAX];

        spec_field_path(r->field, name);
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:b}", "field", name, "verdict",
                            capability_verdict_name(r->verdict), "how", r->how, "by", r->by,
                            "remedy", r->remedy, "documented", (int)r->documented));
    }
    return list;
}

static json_t *host_json(const struct finding *f)
{
    json_t *missing;

    if (!f->host)
        return json_null();
    missing = json_array();
    for (size_t i = 0; i < f->host->n; i++) {
        const struct probe_result *r = &f->host->results[i];

        if (r->required && r->state != PROBE_OK)
            (void)json_array_append_new(missing, json_pack("{s:s, s:s, s:s*}", "name", r->name,
                                                           "message", r->message, "remedy",
                                                           r->remedy[0] ? r->remedy : NULL));
    }
    return json_pack("{s:b, s:o}", "ok", (int)(f->host->n_missing == 0), "missing", missing);
}

static int report_json(struct cli *cli, const struct finding *f, struct error *err)
{
    json_t *backend = f->backend.name ? json_pack("{s:s, s:s}", "name", f->backend.name, "state",
                                                  backend_state_name(f->backend.state))
                                      : json_null();

    return print_json(cli->out,
                      json_pack("{s:b, s:s, s:o, s:o, s:o, s:o}", "ok", (int)f->ok, "summary",
                                f->summary, "backend", backend, "problems", problems_json(f),
                                "fields", fields_json(f), "host", host_json(f)),
                      err);
}

static int check_with(struct cli *cli, const struct check_args *args, struct error *err)
{
    _cleanup_(finding_done) struct finding f = {.file = args->spec.file};
    int r = look(args, &f, err);

    if (r < 0)
        return r;
    sum_up(&f);
    if (args->json)
        r = report_json(cli, &f, err);
    else
        report_text(cli, &f);
    if (r < 0)
        return r;
    return f.ok ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

static int check_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct check_args args;
    struct arguments operands;
    int r = command_parse(&cmd_check, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_check, &operands, 0, 0, err);
    if (r == 0)
        r = check_with(cli, &args, err);
    options_done(check_options, ARRAY_SIZE(check_options), &args);
    return r;
}

static const struct command_example check_examples[] = {
    {"atoll check --spec agent.yaml", "see how each field is enforced, and by whom"},
    {"atoll check --spec agent.yaml --backend modal", "see what another backend would make of it"},
    {"atoll check --spec agent.yaml --no-host --json", "check a file where nothing runs"},
};

const struct command cmd_check = {
    .name = "check",
    .summary = "tell whether a backend on this host can enforce a spec",
    .usage = "[OPTION]...",
    .description =
        "Looks at the spec itself first, then at what the backend can enforce, and then tries "
        "whether this host can run sandboxes. Nothing is made and nothing is paid for.\n\n"
        "Each field that the spec states is enforced, and it says how and by whom; or accepted, "
        "which is kept or passed on without anything that holds the sandbox to it; or refused, and "
        "it says what to change. Making a sandbox refuses just what is refused here.",
    .options = check_options,
    .n_options = ARRAY_SIZE(check_options),
    .exit_status = "0 the spec can be kept; 125 something is refused, or it could not be found out",
    .examples = check_examples,
    .n_examples = ARRAY_SIZE(check_examples),
    .run = check_run,
};
