/* SPDX-License-Identifier: Apache-2.0 */
/* One outline of the reference, written by a set of functions a format: man(7) and Markdown. */
#include "cli/manual.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

struct term {
    const char *term, *text;
};

static const struct term exit_statuses[] = {
    {"0", "Success; for run and exec, the command ended with 0."},
    {"1 to 255", "For run and exec, the status of the command itself; for explain, 1: it is not "
                 "let out."},
    {"124", "The command was ended because its time was over."},
    {"125", "atoll itself could not do it; standard error says why, in a line that starts with "
            "\"atoll: \"."},
    {"126", "The command was found but could not be executed."},
    {"127", "The command was not found."},
    {"128+N", "The command was ended by signal N."},
};

static const struct term environment[] = {
    {"ATOLL_LEASE", "Set by hold for its command: ID#GENERATION, the lease on the sandbox ID. By "
                    "that exec, write, cp, kill, policy, tool and mcp act for the holder, if they "
                    "are about this sandbox. Other text is an error."},
    {"ATOLL_LOG", "How much is logged on standard error: error, warning (the default), info (each "
                  "step of the set-up with its time) or debug."},
    {"ATOLL_SANDBOX", "Set by hold for its command: the id of the sandbox that is held. atoll does "
                      "not read it."},
    {"ATOLL_STATE_DIR", "The folder, an absolute path, in which sandboxes that are held are found; "
                        "otherwise atoll in XDG_RUNTIME_DIR, /run/atoll for root, or "
                        "/tmp/atoll-UID."},
    {"NO_COLOR", "If not empty, output has no colour, also on a terminal."},
};

static const char description[] =
    "atoll gives an AI agent a disposable sandbox for the code it writes. A command in a sandbox "
    "has no network, none of its caller's files but those that were given to it, and none of its "
    "credentials. When it ends, nothing of the sandbox is left.\n\n"
    "A mechanism that the host lacks is an error, never a weaker sandbox.";

static const char grammar[] =
    "The argument of an option is the next word, or follows the name after \"=\", or follows the "
    "letter directly. Letters of flags can be bundled. An option that is given twice has its last "
    "value, unless it may be repeated. --no-NAME sets the option NAME back to its default: a flag "
    "is off, a list is empty. \"--\" ends the options. Sizes need a unit: B, K, M, G or T, powers "
    "of 1024. Durations are seconds, or a number with ms, s, m, h or d.";

/* One format. Every function takes plain text and escapes it. */
struct format {
    void (*section)(FILE *f, const char *title);
    void (*command)(FILE *f, const struct command *c);         /* heading and synopsis */
    void (*paragraphs)(FILE *f, const char *text, bool first); /* @first of its section */
    void (*option)(FILE *f, const struct option *o);
    void (*term)(FILE *f, const struct term *t);
    void (*example)(FILE *f, const struct command_example *e);
};

/* man(7): a dash must not become a hyphen, a quote not a typographic one, a dot not a request. */
static void man_text(FILE *f, const char *text, size_t len)
{
    static const struct {
        char c;
        const char *escaped;
    } escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"}, {'"', "\\(dq"},
                   {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"},  {'\n', " "}};

    for (size_t i = 0; i < len; i++) {
        const char *out = NULL;

        for (size_t k = 0; k < ARRAY_SIZE(escapes) && !out; k++)
            out = escapes[k].c == text[i] ? escapes[k].escaped : NULL;
        if (text[i] == '.' && i == 0)
            out = "\\&.";
        if (out)
            fputs(out, f);
        else
            putc(text[i], f);
    }
}

/* Words in capitals stand for something else: in italics. */
static void man_words(FILE *f, const char *text)
{
    while (*text) {
        size_t other = strcspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        size_t caps = strspn(text + other, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

        man_text(f, text, other);
        text += other;
        if (caps == 0)
            break;
        fputs("\\fI", f);
        man_text(f, text, caps);
        fputs("\\fR", f);
        text += caps;
    }
}

static void man_section(FILE *f, const char *title)
{
    fprintf(f, ".SH %s\n", title);
}

static void man_synopsis(FILE *f, const struct command *c)
{
    fprintf(f, "\\fBatoll %s\\fR", c->name);
    if (c->usage[0])
        putc(' ', f);
    man_words(f, c->usage);
    putc('\n', f);
}

static void man_command(FILE *f, const struct command *c)
{
    fprintf(f, ".SS atoll %s\n", c->name);
    man_synopsis(f, c);
}

static void man_paragraphs(FILE *f, const char *text, bool first)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t len = end ? (size_t)(end - text) : strlen(text);

        if (!first)
            fputs(".PP\n", f);
        first = false;
        man_text(f, text, len);
        putc('\n', f);
        text += len + strspn(text + len, "\n");
    }
}

static void man_option(FILE *f, const struct option *o)
{
    char limits[2 * OPTION_TEXT_MAX];

    fputs(".TP\n", f);
    if (o->letter)
        fprintf(f, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", f);
    man_text(f, o->name, strlen(o->name));
    fputs("\\fR", f);
    if (o->arg) {
        putc(' ', f);
        man_words(f, o->arg);
    }
    putc('\n', f);
    man_text(f, o->help, strlen(o->help));
    option_limits(o, limits, sizeof limits);
    if (limits[0]) {
        fputs(" (", f);
        man_text(f, limits, strlen(limits));
        putc(')', f);
    }
    putc('\n', f);
}

static void man_term(FILE *f, const struct term *t)
{
    fputs(".TP\n\\fB", f);
    man_text(f, t->term, strlen(t->term));
    fputs("\\fR\n", f);
    man_text(f, t->text, strlen(t->text));
    putc('\n', f);
}

static void man_example(FILE *f, const struct command_example *e)
{
    man_term(f, &(struct term){e->line, e->text});
}

/* Markdown: only what these texts can hold. */
static void markdown_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\*_<>|`[]", *text))
            putc('\\', f);
        putc(*text, f);
    }
}

static void markdown_section(FILE *f, const char *title)
{
    fprintf(f, "\n## %c", title[0]);
    for (title++; *title; title++)
        putc(tolower((unsigned char)*title), f);
    putc('\n', f);
}

static void markdown_command(FILE *f, const struct command *c)
{
    fprintf(f, "\n### atoll %s\n\n    atoll %s%s%s\n", c->name, c->name, c->usage[0] ? " " : "",
            c->usage);
}

static void markdown_paragraphs(FILE *f, const char *text, bool first)
{
    (void)first;
    putc('\n', f);
    markdown_text(f, text);
    putc('\n', f);
}

static void markdown_option(FILE *f, const struct option *o)
{
    char spelling[OPTION_TEXT_MAX], limits[2 * OPTION_TEXT_MAX];

    option_spelling(o, spelling, sizeof spelling);
    option_limits(o, limits, sizeof limits);
    fprintf(f, "\n- `%s`: ", spelling + strspn(spelling, " "));
    markdown_text(f, o->help);
    if (limits[0]) {
        fputs(" (", f);
        markdown_text(f, limits);
        putc(')', f);
    }
    putc('\n', f);
}

static void markdown_term(FILE *f, const struct term *t)
{
    fprintf(f, "\n- `%s`: ", t->term);
    markdown_text(f, t->text);
    putc('\n', f);
}

static void markdown_example(FILE *f, const struct command_example *e)
{
    fputs("\n", f);
    markdown_text(f, e->text);
    fprintf(f, ":\n\n    %s\n", e->line);
}

static void write_options(FILE *f, const struct format *as, const struct option *options, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!options[i].hidden)
            as->option(f, &options[i]);
    as->option(f, &option_help);
}

static void write_terms(FILE *f, const struct format *as, const struct term *terms, size_t n)
{
    for (size_t i = 0; i < n; i++)
        as->term(f, &terms[i]);
}

static void write_command(FILE *f, const struct format *as, const struct command *c)
{
    char text[1024];

    as->command(f, c);
    as->paragraphs(f, c->description, false);
    write_options(f, as, c->options, c->n_options);
    if (!c->exit_status)
        return;
    (void)snprintf(text, sizeof text, "Exit status: %s", c->exit_status);
    as->paragraphs(f, text, false);
}

/* Everything behind the synopsis, in the order of man-pages(7). */
static void write_body(FILE *f, const struct format *as, const struct command *const *table)
{
    as->section(f, "DESCRIPTION");
    as->paragraphs(f, description, true);
    as->section(f, "OPTIONS");
    as->paragraphs(f, grammar, true);
    write_options(f, as, program_options, N_PROGRAM_OPTIONS);
    as->section(f, "COMMANDS");
    for (const struct command *const *c = table; *c; c++) {
        if (!(*c)->hidden)
            write_command(f, as, *c);
    }
    as->section(f, "EXIT STATUS");
    write_terms(f, as, exit_statuses, ARRAY_SIZE(exit_statuses));
    as->section(f, "ENVIRONMENT");
    write_terms(f, as, environment, ARRAY_SIZE(environment));
    as->section(f, "EXAMPLES");
    for (const struct command *const *c = table; *c; c++)
        for (size_t i = 0; !(*c)->hidden && i < (*c)->n_examples; i++)
            as->example(f, &(*c)->examples[i]);
}

void manual_man(FILE *f, const struct command *const *table)
{
    static const struct format man = {man_section, man_command, man_paragraphs,
                                      man_option,  man_term,    man_example};

    fprintf(f,
            ".TH ATOLL 1 \"\" \"atoll %s\" \"User Commands\"\n"
            ".SH NAME\natoll \\- disposable sandboxes for code that an AI agent wrote\n"
            ".SH SYNOPSIS\n",
            program_version());
    for (const struct command *const *c = table; *c; c++)
        if (!(*c)->hidden) {
            man_synopsis(f, *c);
            fputs(".br\n", f);
        }
    fputs("\\fBatoll \\-\\-version\\fR\n", f);
    write_body(f, &man, table);
    fputs(".SH SEE ALSO\n"
          ".BR timeout (1),\n.BR unshare (1),\n.BR seccomp (2),\n"
          ".BR cgroups (7),\n.BR landlock (7),\n.BR namespaces (7)\n",
          f);
}

void manual_markdown(FILE *f, const struct command *const *table)
{
    static const struct format markdown = {markdown_section, markdown_command, markdown_paragraphs,
                                           markdown_option,  markdown_term,    markdown_example};

    fputs("# The command line of atoll\n\nWritten by `atoll reference cli`.\n", f);
    write_body(f, &markdown, table);
}
