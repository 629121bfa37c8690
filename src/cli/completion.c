/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts. What is the same for every command is in the script's own functions. */
#include "cli/completion.h"

#include <string.h>

#include "base/guards.h"

/* @text between single quotes; @end is what a quote inside becomes in that shell. */
static void quoted(FILE *f, const char *text, const char *end)
{
    putc('\'', f);
    for (; *text; text++) {
        if (*text == '\'')
            fputs(end, f);
        else
            putc(*text, f);
    }
    putc('\'', f);
}

/* Those that are typed first; a second word is offered behind its own. */
static void names_of_commands(FILE *f, const struct command *const *table)
{
    const char *gap = "";

    for (; *table; table++)
        if (!(*table)->hidden && !command_second_word(*table)) {
            fprintf(f, "%s%s", gap, (*table)->name);
            gap = " ";
        }
}

static bool has_second_words(const struct command *c, const struct command *const *table)
{
    while (*table && ((*table)->hidden || !command_is_below(*table, c)))
        table++;
    return *table;
}

static void names_of_second_words(FILE *f, const struct command *c,
                                  const struct command *const *table)
{
    const char *gap = "";

    for (; *table; table++)
        if (!(*table)->hidden && command_is_below(*table, c)) {
            fprintf(f, "%s%s", gap, command_second_word(*table));
            gap = " ";
        }
}

static void names_of_choices(FILE *f, const struct option *o)
{
    for (const char *const *choice = o->choices; *choice; choice++)
        fprintf(f, "%s%s", choice == o->choices ? "" : " ", *choice);
}

static void bash_spellings(FILE *f, const struct option *o)
{
    fprintf(f, "--%s ", o->name);
    if (o->letter)
        fprintf(f, "-%c ", o->letter);
}

/* Which operands of a command are sandboxes, by its usage. */
enum sandbox_words { NO_SANDBOX, FIRST_SANDBOX, EVERY_SANDBOX };

static enum sandbox_words sandbox_words(const struct command *c)
{
    static const char options[] = "[OPTION]... ";
    const char *usage = c->usage;

    if (strncmp(usage, options, sizeof options - 1) == 0)
        usage += sizeof options - 1;
    usage += *usage == '[';
    if (strncmp(usage, "ID", 2) != 0 || !strchr(" .]", usage[2]))
        return NO_SANDBOX; /* the NUL is found, too: "ID" alone */
    usage += 2 + (usage[2] == ']');
    return strncmp(usage, "...", 3) == 0 ? EVERY_SANDBOX : FIRST_SANDBOX;
}

static bool every_option(const struct option *o)
{
    (void)o;
    return true;
}

static bool has_argument(const struct option *o)
{
    return o->kind != OPTION_FLAG;
}

static bool has_no_file(const struct option *o)
{
    return has_argument(o) && !option_takes_file(o);
}

static void bash_set(FILE *f, const char *name, const struct command *c,
                     bool (*wanted)(const struct option *o))
{
    fprintf(f, "        %s=' ", name);
    for (size_t i = 0; i < c->n_options; i++)
        if (!c->options[i].hidden && wanted(&c->options[i]))
            bash_spellings(f, &c->options[i]);
    fputs("'\n", f);
}

static void bash_choices(FILE *f, const struct command *c)
{
    for (size_t i = 0; i < c->n_options; i++) {
        const struct option *o = &c->options[i];

        if (o->kind != OPTION_CHOICE || o->hidden)
            continue;
        fprintf(f, "        [[ $prev == --%s", o->name);
        if (o->letter)
            fprintf(f, " || $prev == -%c", o->letter);
        fputs(" ]] && choices='", f);
        names_of_choices(f, o);
        fputs("'\n", f);
    }
}

static void bash_command(FILE *f, const struct command *c, const struct command *const *table)
{
    fprintf(f, "    '%s')\n", c->name);
    bash_set(f, "options", c, every_option);
    bash_set(f, "valued", c, has_argument);
    bash_set(f, "fileless", c, has_no_file);
    fprintf(f, "        ends_at=%u sandboxes=%u\n", c->ends_at, (unsigned)sandbox_words(c));
    bash_choices(f, c);
    if (strcmp(c->name, "help") == 0) {
        fputs("        words='", f);
        names_of_commands(f, table);
        fputs("'\n", f);
    }
    if (has_second_words(c, table)) {
        fputs("        ((COMP_CWORD == 2)) && words='", f);
        names_of_second_words(f, c, table);
        fputs("'\n", f);
    }
    fputs("        ;;\n", f);
}

/* A second word that makes another command of the first one. */
static void bash_second_words(FILE *f, const struct command *const *table)
{
    for (; *table; table++)
        if (!(*table)->hidden && command_second_word(*table))
            fprintf(
                f,
                "    if ((COMP_CWORD > 2)) && [[ \"$command ${COMP_WORDS[2]}\" == '%s' ]]; then\n"
                "        command='%s' first=3\n"
                "    fi\n",
                (*table)->name, (*table)->name);
}

static const char bash_begin[] =
    "# bash completion for atoll, written by: atoll reference bash\n"
    "# shellcheck shell=bash\n"
    "\n"
    "# The words that begin as the current one does.\n"
    "_atoll_offer()\n"
    "{\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "# The names of sandboxes that stand, and the ids.\n"
    "_atoll_sandboxes()\n"
    "{\n"
    "    \"${COMP_WORDS[0]}\" list 2>/dev/null |\n"
    "        awk 'NR > 1 { print $1; if ($2 != \"-\") print $2 }'\n"
    "}\n"
    "\n"
    "_atoll()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local options='' valued='' fileless='' choices='' words='' ends_at=0 sandboxes=0 "
    "operands=0 i\n"
    "    local command=${COMP_WORDS[1]-} first=2\n"
    "\n"
    "    COMPREPLY=()\n"
    "    # \"--name=value\" is split at \"=\" by readline.\n"
    "    [[ $cur == = ]] && cur=''\n"
    "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    if ((COMP_CWORD == 1)); then\n";

static const char bash_middle[] = "        return\n"
                                  "    fi\n";

static const char bash_end[] =
    "    *)\n"
    "        return\n"
    "        ;;\n"
    "    esac\n"
    "    for ((i = first; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --)\n"
    "            operands=$ends_at\n"
    "            break\n"
    "            ;;\n"
    "        = | :)\n"
    "            ((i++))\n"
    "            ;;\n"
    "        -*)\n"
    "            if [[ $valued == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
    "                [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))\n"
    "                ((i++))\n"
    "            fi\n"
    "            ;;\n"
    "        *)\n"
    "            ((++operands == ends_at)) && break\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "    if ((ends_at > 0 && operands >= ends_at)); then\n"
    "        # A word of the command that is run: its name, or what bash offers by itself.\n"
    "        if [[ $prev == -- ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
    "        fi\n"
    "    elif [[ $valued == *\" $prev \"* ]]; then\n"
    "        [[ $fileless == *\" $prev \"* ]] && compopt +o bashdefault +o default\n"
    "        [[ $choices ]] && _atoll_offer \"$choices\"\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        _atoll_offer \"$options --help\"\n"
    "    elif ((ends_at == 1)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
    "    elif [[ $words ]]; then\n"
    "        _atoll_offer \"$words\"\n"
    "    elif ((sandboxes == 2 || (sandboxes == 1 && operands == 0))); then\n"
    "        compopt +o bashdefault +o default\n"
    "        _atoll_offer \"$(_atoll_sandboxes)\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -o bashdefault -o default -F _atoll atoll\n";

void completion_bash(FILE *f, const struct command *const *table)
{
    fputs(bash_begin, f);
    fputs("        _atoll_offer '", f);
    names_of_commands(f, table);
    for (size_t i = 0; i < N_PROGRAM_OPTIONS; i++)
        fprintf(f, " --%s", program_options[i].name);
    fputs(" --help'\n", f);
    fputs(bash_middle, f);
    bash_second_words(f, table);
    fputs("    case $command in\n", f);
    for (const struct command *const *c = table; *c; c++)
        if (!(*c)->hidden)
            bash_command(f, *c, table);
    fputs(bash_end, f);
}

/* Text within a specification of _arguments: brackets and colons are its own. */
static void zsh_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", f);
            continue;
        }
        if (strchr("[]:\\", *text))
            putc('\\', f);
        putc(*text, f);
    }
}

/* '(-x --name)'{-x+,--name=}'[help]:ARG:action' */
static void zsh_option(FILE *f, const struct option *o)
{
    bool flag = o->kind == OPTION_FLAG;

    fputs("            ", f);
    if (o->kind == OPTION_LIST)
        fputs("'*'", f);
    else if (o->letter)
        fprintf(f, "'(-%c --%s)'", o->letter, o->name);
    if (o->letter)
        fprintf(f, "{-%c%s,--%s%s}'[", o->letter, flag ? "" : "+", o->name, flag ? "" : "=");
    else
        fprintf(f, "--%s%s'[", o->name, flag ? "" : "=");
    zsh_text(f, o->help);
    putc(']', f);
    if (!flag) {
        putc(':', f);
        zsh_text(f, o->arg);
        putc(':', f);
    }
    if (o->kind == OPTION_CHOICE) {
        putc('(', f);
        names_of_choices(f, o);
        putc(')', f);
    } else if (option_takes_file(o)) {
        fputs("_default", f);
    } else if (!flag) {
        putc(' ', f);
    }
    fputs("' \\\n", f);
}

static void zsh_command(FILE *f, const struct command *c, const struct command *const *table)
{
    fprintf(f, "    '%s')\n        _arguments -s -S%s \\\n", c->name,
            c->ends_at > 0 ? " -A '-*'" : "");
    for (size_t i = 0; i < c->n_options; i++)
        if (!c->options[i].hidden)
            zsh_option(f, &c->options[i]);
    zsh_option(f, &option_help);
    if (sandbox_words(c) == FIRST_SANDBOX)
        fputs("            '1:sandbox:_atoll_sandboxes' \\\n", f);
    for (unsigned i = sandbox_words(c) == FIRST_SANDBOX ? 2 : 1; i < c->ends_at; i++)
        fprintf(f, "            '%u: : ' \\\n", i);
    if (c->ends_at > 0) {
        fprintf(f, "            '(-)%u:command:_command_names -e' '*::argument:_normal'\n",
                c->ends_at);
    } else if (strcmp(c->name, "help") == 0) {
        fputs("            '1:command:(", f);
        names_of_commands(f, table);
        fputs(")'\n", f);
    } else if (has_second_words(c, table)) {
        fputs("            '1:command:(", f);
        names_of_second_words(f, c, table);
        fputs(")'\n", f);
    } else if (sandbox_words(c) == EVERY_SANDBOX) {
        fputs("            '*:sandbox:_atoll_sandboxes'\n", f);
    } else {
        fputs("            '*:argument:_default'\n", f);
    }
    fputs("        ;;\n", f);
}

static void zsh_second_words(FILE *f, const struct command *const *table)
{
    for (; *table; table++)
        if (!(*table)->hidden && command_second_word(*table))
            fprintf(f,
                    "if ((CURRENT > 2)) && [[ \"$words[1] $words[2]\" == '%s' ]]; then\n"
                    "    words=('%s' \"${(@)words[3,-1]}\")\n"
                    "    ((CURRENT--))\n"
                    "fi\n",
                    (*table)->name, (*table)->name);
}

void completion_zsh(FILE *f, const struct command *const *table)
{
    fputs("#compdef atoll\n"
          "# zsh completion for atoll, written by: atoll reference zsh\n\n"
          "local curcontext=$curcontext context state state_descr line\n"
          "local -a subcommands # not \"commands\", which is special\n"
          "typeset -A opt_args\n\n"
          "_atoll_sandboxes()\n"
          "{\n"
          "    local -a found\n"
          "    found=(${(f)\"$(_call_program sandboxes atoll list 2>/dev/null |\n"
          "        awk 'NR > 1 { print $1; if ($2 != \"-\") print $2 }')\"})\n"
          "    compadd -a found\n"
          "}\n\n"
          "subcommands=(\n",
          f);
    for (const struct command *const *c = table; *c; c++)
        if (!(*c)->hidden && !command_second_word(*c)) {
            fprintf(f, "    '%s:", (*c)->name);
            zsh_text(f, (*c)->summary);
            fputs("'\n", f);
        }
    fputs(")\n\n"
          "_arguments -C \\\n",
          f);
    for (size_t i = 0; i < N_PROGRAM_OPTIONS; i++)
        zsh_option(f, &program_options[i]);
    zsh_option(f, &option_help);
    fputs("            '1:command:->command' '*::argument:->argument' && return 0\n\n"
          "case $state in\n"
          "command)\n    _describe -t commands 'command' subcommands\n    return\n    ;;\n"
          "esac\n\n",
          f);
    zsh_second_words(f, table);
    fputs("case $words[1] in\n", f);
    for (const struct command *const *c = table; *c; c++)
        if (!(*c)->hidden)
            zsh_command(f, *c, table);
    fputs("esac\n", f);
}

/* @when is the test that must hold for the option to be offered. */
static void fish_option(FILE *f, const char *when, const struct option *o)
{
    fprintf(f, "complete -c atoll -n '%s'", when);
    if (o->letter)
        fprintf(f, " -s %c", o->letter);
    fprintf(f, " -l %s", o->name);
    if (has_argument(o))
        fputs(option_takes_file(o) ? " -r -F" : " -x", f);
    if (o->kind == OPTION_CHOICE) {
        fputs(" -a '", f);
        names_of_choices(f, o);
        putc('\'', f);
    }
    fputs(" -d ", f);
    quoted(f, o->help, "\\'");
    putc('\n', f);
}

/* What must hold for @c to be the command: not that a second word makes it another one. */
static void fish_when(const struct command *c, const struct command *const *table, char *buf,
                      size_t size)
{
    int at = snprintf(buf, size, "__atoll_in %s", c->name);

    for (; *table && at > 0 && (size_t)at < size; table++)
        if (command_is_below(*table, c))
            at += snprintf(buf + at, size - (size_t)at, "; and not __atoll_in %s", (*table)->name);
}

static void fish_command(FILE *f, const struct command *c, const struct command *const *table)
{
    const char *second = command_second_word(c);
    char when[160], first[80] = "__atoll_first";

    fish_when(c, table, when, sizeof when);
    if (second)
        (void)snprintf(first, sizeof first, "__atoll_behind %.*s", (int)(second - c->name - 1),
                       c->name);
    fprintf(f, "\ncomplete -c atoll -n '%s' -a %s -d ", first, second ? second : c->name);
    quoted(f, c->summary, "\\'");
    putc('\n', f);
    for (size_t i = 0; i < c->n_options; i++)
        if (!c->options[i].hidden)
            fish_option(f, when, &c->options[i]);
    fish_option(f, when, &option_help);
    if (sandbox_words(c) == FIRST_SANDBOX)
        fprintf(f,
                "complete -c atoll -n '%s; and __atoll_no_operand' -x -a '(__atoll_sandboxes)'\n",
                when);
    if (sandbox_words(c) == EVERY_SANDBOX)
        fprintf(f, "complete -c atoll -n '%s' -x -a '(__atoll_sandboxes)'\n", when);
    if (c->ends_at > 0)
        fprintf(f,
                "complete -c atoll -n '%s%s' -x "
                "-a '(__fish_complete_subcommand --fcs-skip=%u)'\n",
                when, sandbox_words(c) == FIRST_SANDBOX ? "; and not __atoll_no_operand" : "",
                c->ends_at + 1);
    if (strcmp(c->name, "help") == 0) {
        fprintf(f, "complete -c atoll -n '%s' -x -a '", when);
        names_of_commands(f, table);
        fputs("'\n", f);
    }
}

void completion_fish(FILE *f, const struct command *const *table)
{
    fputs("# fish completion for atoll, written by: atoll reference fish\n\n"
          "function __atoll_first -d 'no command has been typed yet'\n"
          "    test (count (commandline -opc)) -eq 1\n"
          "end\n\n"
          "function __atoll_in -d 'the command is the given one'\n"
          "    set -l words (commandline -opc)\n"
          "    set -l last (math (count $argv) + 1)\n"
          "    test (count $words) -ge $last; and test \"$words[2..$last]\" = \"$argv\"\n"
          "end\n\n"
          "function __atoll_behind -d 'the given word is the only one'\n"
          "    set -l words (commandline -opc)\n"
          "    test (count $words) -eq 2; and test \"$words[2]\" = $argv[1]\n"
          "end\n\n"
          "function __atoll_no_operand -d 'only the command and options have been typed'\n"
          "    test (count (commandline -opc | string match -v -- '-*')) -eq 2\n"
          "end\n\n"
          "function __atoll_sandboxes -d 'the names of sandboxes that stand, and the ids'\n"
          "    atoll list 2>/dev/null | awk 'NR > 1 { print $1; if ($2 != \"-\") print $2 }'\n"
          "end\n\n"
          "complete -c atoll -f\n",
          f);
    for (size_t i = 0; i < N_PROGRAM_OPTIONS; i++)
        fish_option(f, "__atoll_first", &program_options[i]);
    fish_option(f, "__atoll_first", &option_help);
    for (const struct command *const *c = table; *c; c++)
        if (!(*c)->hidden)
            fish_command(f, *c, table);
}
