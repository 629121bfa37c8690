/* SPDX-License-Identifier: Apache-2.0 */
/* The help texts, and the command that prints them. */
#include "cli/help.h"

#include <string.h>

#include "cli/print.h"
#include "base/guards.h"

enum { HELP_INDENT = 26 }; /* where the words about an option or a command begin */

static void help_row(FILE *f, const char *term, const char *text)
{
    size_t column = strlen(term) + 2;

    fprintf(f, "  %s", term);
    if (column + 2 > HELP_INDENT) {
        putc('\n', f);
        column = 0;
    }
    for (; column < HELP_INDENT; column++)
        putc(' ', f);
    print_wrapped(f, HELP_INDENT, HELP_INDENT, text);
}

static void help_option(FILE *f, const struct option *o)
{
    char spelling[OPTION_TEXT_MAX], limits[2 * OPTION_TEXT_MAX], text[1024];

    option_spelling(o, spelling, sizeof spelling);
    option_limits(o, limits, sizeof limits);
    (void)snprintf(text, sizeof text, "%s%s%s%s", o->help, limits[0] ? " (" : "", limits,
                   limits[0] ? ")" : "");
    help_row(f, spelling, text);
}

static void help_options(FILE *f, const struct option *options, size_t n)
{
    fputs("\nOptions:\n", f);
    for (size_t i = 0; i < n; i++)
        if (!options[i].hidden)
            help_option(f, &options[i]);
    help_option(f, &option_help);
}

static void help_paragraphs(FILE *f, const char *heading, const char *text)
{
    fprintf(f, "\n%s", heading);
    print_wrapped(f, strlen(heading), 0, text);
}

static bool takes_values(const struct command *c)
{
    for (size_t i = 0; i < c->n_options; i++)
        if (c->options[i].kind != OPTION_FLAG)
            return true;
    return false;
}

void help_program(FILE *f, const struct command *const *table)
{
    fputs("Usage: atoll COMMAND [ARG]...\n", f);
    help_paragraphs(f, "", "Disposable sandboxes for code that an AI agent wrote.");
    fputs("\nCommands:\n", f);
    for (; *table; table++)
        if (!(*table)->hidden)
            help_row(f, (*table)->name, (*table)->summary);
    help_options(f, program_options, N_PROGRAM_OPTIONS);
    help_paragraphs(f, "",
                    "\"atoll COMMAND --help\" describes a command, \"man atoll\" all of them.");
}

void help_command(FILE *f, const struct command *c)
{
    fprintf(f, "Usage: atoll %s%s%s\n", c->name, c->usage[0] ? " " : "", c->usage);
    help_paragraphs(f, "", c->description);
    help_options(f, c->options, c->n_options);
    if (takes_values(c))
        help_paragraphs(f, "", "--no-NAME sets the option NAME back to its default.");
    if (c->exit_status)
        help_paragraphs(f, "Exit status: ", c->exit_status);
    if (c->n_examples > 0)
        fputs("\nExamples:\n", f);
    for (size_t i = 0; i < c->n_examples; i++) {
        fprintf(f, "  %s\n", c->examples[i].line);
        print_wrapped(f, 0, 6, c->examples[i].text);
    }
}

static int help_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct command *c;
    struct arguments operands;
    int words = 0, r;

    r = command_parse(&cmd_help, argc, argv, NULL, &operands, err);
    if (r < 0)
        return r;
    if (operands.n == 0) {
        help_program(cli->out, cli->commands);
        return CLI_EXIT_OK;
    }
    r = command_select(cli->commands, operands.n, operands.v, &c, &words, err);
    if (r == 0)
        r = command_operands(&cmd_help, &operands, 0, words, err);
    if (r < 0)
        return r;
    help_command(cli->out, c);
    return CLI_EXIT_OK;
}

const struct command cmd_help = {
    .name = "help",
    .summary = "describe the program or one of its commands",
    .usage = "[COMMAND]",
    .description = "Prints what the program or one of its commands does, and its options.",
    .run = help_run,
};
