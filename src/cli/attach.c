/* SPDX-License-Identifier: Apache-2.0 */
/* A command attached to the caller's streams. */
#include "cli/attach.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "core/outcome.h"
#include "core/published.h"
#include "base/guards.h"

int attach_check(const struct command *c, const struct arguments *operands, struct error *err)
{
    if (operands->n == 0) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "no command was given to %s", c->name);
        return error_remedy(err, "Write it after '--': atoll %s %s-- COMMAND", c->name,
                            strcmp(c->name, "exec") == 0 ? "ID " : "");
    }
    for (int i = 0; i < operands->n; i++)
        if (strlen(operands->v[i]) > EXEC_STRING_BYTES_MAX) { /* execve(2), MAX_ARG_STRLEN */
            (void)error_set(err, ERROR_USAGE, E2BIG,
                            "argument %d has %zu bytes, and the kernel passes at most %d in one", i,
                            strlen(operands->v[i]), EXEC_STRING_BYTES_MAX);
            return error_remedy(err, "Pass a file instead, or send it on standard input with -i");
        }
    return 0;
}

/* What the callbacks of a run need. */
struct view {
    struct cli *cli;
    struct terminal terminal;
    bool interactive;
};

void attach_log_step(void *cli, const struct step_report *step)
{
    struct log log = ((const struct cli *)cli)->log;

    log.level = LOG_LEVEL_INFO;
    log_write(&log, LOG_LEVEL_INFO, "set-up", "step %u: %s (%u us)", step->index + 1, step->text,
              (unsigned)step->us);
}

void attach_published_text(const char *entry, char *buf, size_t size)
{
    const char *colon = strrchr(entry, ':');

    if (colon)
        (void)snprintf(buf, size, "%.*s -> %s", (int)(colon - entry), entry, colon + 1);
    else
        (void)snprintf(buf, size, "%s", entry);
    text_make_printable(buf);
}

void attach_log_published(const struct cli *cli, const char *entry)
{
    char text[128];

    attach_published_text(entry, text, sizeof text);
    fprintf(cli->err, "atoll: published %s\n", text);
}

static void log_published(void *arg, const char *entry)
{
    const struct view *v = arg;

    attach_log_published(v->cli, entry);
}

/* Whether it is told where a sandbox can be reached: nobody else knows of a port that was picked.
 */
static bool tells_published(const struct spec *s)
{
    struct error ignored = ERROR_INIT;
    struct published p;

    for (size_t i = 0; s && i < s->publish.n; i++)
        if (s->report_steps ||
            (published_parse(s->publish.items[i], &p, &ignored) == 0 && p.host_port == 0))
            return true;
    return false;
}

static void log_step(void *arg, const struct step_report *step)
{
    const struct view *v = arg;

    attach_log_step(v->cli, step);
}

static void go_raw(void *arg)
{
    struct view *v = arg;

    (void)terminal_raw(&v->terminal, v->interactive); /* without, keys arrive line by line */
}

/* What the network policy refused, a line for each place: so that a failure that it explains is not
 * taken for another. */
static void report_denials(const struct cli *cli, const struct denials *d)
{
    char place[DENIAL_PLACE_BYTES], reason[DENIAL_TEXT_MAX];

    for (size_t i = 0; i < d->n; i++) {
        if (!denials_first_of_place(d->items, i))
            continue;
        denial_place(&d->items[i], place);
        (void)snprintf(reason, sizeof reason, "%s", d->items[i].reason);
        text_make_printable(place);
        text_make_printable(reason);
        fprintf(cli->err, "atoll: refused: %s (%s)\n", place, reason);
    }
    if (d->more > 0)
        fprintf(cli->err, "atoll: refused: %llu more\n", (unsigned long long)d->more);
}

static int report(struct cli *cli, const struct run_result *result, const char *program,
                  const char *workdir, struct error *err)
{
    char why[512];

    if (result->hung_up_by != 0)
        return OUTCOME_SIGNAL_BASE + result->hung_up_by;
    if (result->output_error != 0)
        return error_set(err, ERROR_TERMINAL, result->output_error,
                         "the command's output could not be written: %s",
                         strerror(result->output_error));
    outcome_explain(&result->exit, program, result->interpreter[0] ? result->interpreter : NULL,
                    workdir, why, sizeof why);
    if (why[0]) {
        text_make_printable(why);
        fprintf(cli->err, "atoll: %s\n", why);
    }
    return outcome_status(&result->exit);
}

int attach_run(struct cli *cli, struct session *s, const struct run_request *x,
               const struct result_file *result_file, const char *workdir, struct error *err)
{
    struct view view = {.cli = cli, .interactive = x->interactive};
    struct run_request request = *x;
    struct run_result result;

    terminal_find(&view.terminal);
    terminal_size(&view.terminal, &request.exec.rows, &request.exec.columns);
    request.terminal_fd = view.terminal.fd;
    request.arg = &view;
    request.started = x->tty ? go_raw : NULL;
    request.step = x->spec && x->spec->report_steps ? log_step : NULL;
    request.published = tells_published(x->spec) ? log_published : NULL;
    int r = run_command(s, &request, &result, err);
    terminal_restore(&view.terminal);
    if (r < 0) {
        (void)result_write_error(result_file, err);
        return r;
    }
    if (x->detach) {
        fprintf(cli->out, "%u\n", result.command); /* nothing is known of its end */
        return CLI_EXIT_OK;
    }
    r = result_write(result_file, &result, err);
    if (r == 0) {
        report_denials(cli, &result.denials);
        r = report(cli, &result, x->exec.argv[0], workdir, err);
    }
    run_result_done(&result);
    return r;
}

void attach_prepare(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a closed output is an error code, not a signal */
    (void)signal(SIGCHLD, SIG_DFL); /* the caller may ignore it, and then nothing is waited for */
}
