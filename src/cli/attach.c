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
    int r = run_command(s, &request, &result, err);
    terminal_restore(&view.terminal);
    if (r < 0) {
        (void)result_write_error(result_file, err);
        return r;
    }
    if (x->detach) {
        fprintf(cli->out, "%u\n", result.command);
        return CLI_EXIT_OK;
    }
    r = result_write(result_file, &result, err);
    return r < 0 ? r : report(cli, &result, x->exec.argv[0], workdir, err);
}

void attach_prepare(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a closed output is an error code, not a signal */
    (void)signal(SIGCHLD, SIG_DFL); /* the caller may ignore it, and then nothing is waited for */
}
