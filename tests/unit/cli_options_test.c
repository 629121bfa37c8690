/* SPDX-License-Identifier: Apache-2.0 */
/* Options: grammar, every error text, and that help, manual and completion follow the table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/options.h"
#include "base/guards.h"

enum { WORDS_MAX = 24 };

/* A table as a command has it, with every kind. */
struct run_args {
    const char *image, *workdir, *user, *hostname, *result, *egress;
    struct text_list volumes, env;
    uint64_t disk, pids, lifetime, timeout;
    bool interactive, tty, verbose, no_host, secret;
    enum option_state disk_state, tty_state, image_state;
};

#define RUN(field) offsetof(struct run_args, field)

static const char *const egress_modes[] = {"pinned", "inspect", NULL};

static const struct option run_options[] = {
    {.name = "image",
     .arg = "REF",
     .help = "root file system: host, or dir:PATH",
     .kind = OPTION_TEXT,
     .offset = RUN(image),
     .state = RUN(image_state),
     .preset = "host"},
    {.name = "volume",
     .arg = "HOST:GUEST[:ro]",
     .help = "mount a directory of the host",
     .kind = OPTION_LIST,
     .offset = RUN(volumes),
     .max = 64},
    {.name = "workdir",
     .letter = 'w',
     .arg = "DIR",
     .help = "start in this directory; it's made if it is absent",
     .kind = OPTION_TEXT,
     .offset = RUN(workdir)},
    {.name = "user",
     .arg = "UID[:GID]",
     .help = "user inside",
     .kind = OPTION_TEXT,
     .offset = RUN(user)},
    {.name = "hostname",
     .arg = "NAME",
     .help = "name of the host inside",
     .kind = OPTION_TEXT,
     .offset = RUN(hostname),
     .preset = "sandbox"},
    {.name = "env",
     .letter = 'e',
     .arg = "K=V",
     .help = "set a variable of the environment",
     .kind = OPTION_LIST,
     .offset = RUN(env),
     .max = 3},
    {.name = "disk",
     .arg = "SIZE",
     .help = "size of the writable file system",
     .kind = OPTION_SIZE,
     .offset = RUN(disk),
     .state = RUN(disk_state),
     .min = 1 << 20,
     .max = 1ull << 40,
     .preset = "64M"},
    {.name = "pids",
     .arg = "N",
     .help = "most processes at a time",
     .kind = OPTION_NUMBER,
     .offset = RUN(pids),
     .min = 1,
     .max = 4096,
     .preset = "512"},
    {.name = "lifetime",
     .arg = "DURATION",
     .help = "end the sandbox after this time",
     .kind = OPTION_DURATION,
     .offset = RUN(lifetime),
     .min = 1000,
     .max = UINT64_MAX},
    {.name = "timeout",
     .arg = "DURATION",
     .help = "end the command after this time",
     .kind = OPTION_DURATION,
     .offset = RUN(timeout),
     .min = 1500,
     .max = 86400000000},
    {.name = "interactive",
     .letter = 'i',
     .help = "pass standard input on",
     .kind = OPTION_FLAG,
     .offset = RUN(interactive)},
    {.name = "tty",
     .letter = 't',
     .help = "give the command a terminal",
     .kind = OPTION_FLAG,
     .offset = RUN(tty),
     .state = RUN(tty_state)},
    {.name = "result",
     .arg = "FILE|FD",
     .help = "write the result as JSON there",
     .kind = OPTION_TEXT,
     .offset = RUN(result)},
    {.name = "egress",
     .arg = "MODE",
     .help = "how names are enforced",
     .kind = OPTION_CHOICE,
     .offset = RUN(egress),
     .choices = egress_modes,
     .preset = "pinned"},
    {.name = "no-host",
     .help = "do not probe this host",
     .kind = OPTION_FLAG,
     .offset = RUN(no_host)},
    {.name = "secret",
     .letter = 's',
     .help = "what nobody should see",
     .kind = OPTION_FLAG,
     .offset = RUN(secret),
     .hidden = true},
    {.name = "verbose",
     .letter = 'v',
     .help = "name each step of the set-up and its time",
     .kind = OPTION_FLAG,
     .offset = RUN(verbose)},
};

static const struct command_example run_examples[] = {
    {"atoll run -- echo 'hi'", "run one command"},
};

static const struct command run_command = {
    .name = "run",
    .summary = "run one command: in a sandbox",
    .usage = "[OPTION]... [--] COMMAND [ARG]...",
    .description = "Runs it.\n\n.This begins with a dot and has a back\\slash.",
    .options = run_options,
    .n_options = ARRAY_SIZE(run_options),
    .ends_at = 1,
    .exit_status = "that of the command.",
    .examples = run_examples,
    .n_examples = ARRAY_SIZE(run_examples),
};

static const struct command hidden_command = {
    .name = "burrow",
    .summary = "what nobody should see",
    .usage = "",
    .description = "Hidden.",
    .hidden = true,
};

static const struct command *const table[] = {
    &run_command, &cmd_version, &cmd_help, &hidden_command, &cmd_reference, NULL,
};

/* Words of one test, split at blanks; "''" is an empty word. */
struct words {
    char text[512];
    char *v[WORDS_MAX + 1];
    struct arguments io;
};

static void words_split(struct words *w, const char *line, unsigned ends_at)
{
    char *at = w->text;
    int n = 0;

    assert_true(strlen(line) < sizeof w->text);
    (void)snprintf(w->text, sizeof w->text, "%s", line);
    for (char *word; (word = strsep(&at, " "));) {
        assert_true(n < WORDS_MAX);
        if (*word)
            w->v[n++] = strcmp(word, "''") == 0 ? word + 2 : word;
    }
    w->v[n] = NULL;
    w->io = (struct arguments){.v = w->v, .n = n, .ends_at = ends_at};
}

/* One parse; ended by free_args(). */
struct parsed {
    struct words words;
    struct run_args args;
    struct error err;
    int r;
};

static void parse_at(struct parsed *p, const char *line, unsigned ends_at)
{
    words_split(&p->words, line, ends_at);
    memset(&p->args, 0xA5, sizeof p->args); /* as uninitialised */
    p->err = (struct error)ERROR_INIT;
    options_defaults(run_options, ARRAY_SIZE(run_options), &p->args);
    p->r = options_parse(run_options, ARRAY_SIZE(run_options), &p->args, &p->words.io, &p->err);
}

static void parse(struct parsed *p, const char *line)
{
    parse_at(p, line, 1);
    if (p->r < 0)
        print_error("%s: %s\n", line, p->err.message);
    assert_int_equal(p->r, 0);
}

static void free_args(struct parsed *p)
{
    options_done(run_options, ARRAY_SIZE(run_options), &p->args);
}

/* The operands, joined by "|". */
static void assert_operands(const struct parsed *p, const char *want)
{
    char got[512] = "";

    for (int i = 0; i < p->words.io.n; i++) {
        size_t at = strlen(got);

        (void)snprintf(got + at, sizeof got - at, "%s%s", i > 0 ? "|" : "", p->words.io.v[i]);
    }
    assert_string_equal(got, want);
    assert_null(p->words.io.v[p->words.io.n]);
}

static void defaults_come_from_the_table(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "");
    assert_string_equal(p.args.image, "host");
    assert_string_equal(p.args.egress, "pinned");
    assert_null(p.args.workdir);
    assert_int_equal(p.args.disk, 64 << 20);
    assert_int_equal(p.args.pids, 512);
    assert_int_equal(p.args.lifetime, 0);
    assert_false(p.args.tty);
    assert_int_equal(p.args.env.n, 0);
    assert_null(p.args.env.items);
    assert_operands(&p, "");
    free_args(&p);
}

static void a_value_is_the_next_word_or_follows_directly(void **state)
{
    static const char *const forms[] = {"--workdir /a=b", "--workdir=/a=b", "-w /a=b",     "-w/a=b",
                                        "-itw /a=b",      "-itw/a=b",       "-i -t -w/a=b"};
    struct parsed p;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        parse(&p, forms[i]);
        assert_string_equal(p.args.workdir, "/a=b");
        assert_int_equal(p.args.tty, i >= 4);
        assert_int_equal(p.args.interactive, i >= 4);
        free_args(&p);
    }
}

static void every_kind_is_stored_in_its_unit(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "--disk 2G --pids=7 --timeout 1500ms --lifetime 1h --egress inspect -v --no-host");
    assert_int_equal(p.args.disk, 2ull << 30);
    assert_int_equal(p.args.pids, 7);
    assert_int_equal(p.args.timeout, 1500000);
    assert_int_equal(p.args.lifetime, 3600000000);
    assert_ptr_equal(p.args.egress, egress_modes[1]);
    assert_true(p.args.verbose);
    assert_true(p.args.no_host);
    free_args(&p);
}

static void the_last_of_a_repeated_single_value_wins(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "--disk 1G --image a --disk=3M --image=b -i -i");
    assert_int_equal(p.args.disk, 3 << 20);
    assert_string_equal(p.args.image, "b");
    assert_true(p.args.interactive);
    free_args(&p);
}

static void a_list_keeps_its_values_in_order(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "-e A=1 --env=B=2 -eC=3");
    assert_int_equal(p.args.env.n, 3);
    assert_string_equal(p.args.env.items[0], "A=1");
    assert_string_equal(p.args.env.items[1], "B=2");
    assert_string_equal(p.args.env.items[2], "C=3");
    free_args(&p);
    assert_int_equal(p.args.env.n, 0);
    assert_null(p.args.env.items);
}

static void no_name_goes_back_to_the_default(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "-e A=1 -e B=2 --no-env -e C=3 --disk 1G --no-disk -w/x --no-workdir -t --no-tty "
              "--image x --no-image --egress inspect --no-egress --lifetime 5 --no-lifetime");
    assert_int_equal(p.args.env.n, 1);
    assert_string_equal(p.args.env.items[0], "C=3");
    assert_int_equal(p.args.disk, 64 << 20);
    assert_null(p.args.workdir);
    assert_false(p.args.tty);
    assert_string_equal(p.args.image, "host");
    assert_string_equal(p.args.egress, "pinned");
    assert_int_equal(p.args.lifetime, 0);
    free_args(&p);
}

static void a_list_remembers_that_it_was_reset(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "-e A=1");
    assert_false(p.args.env.reset);
    free_args(&p);
    parse(&p, "-e A=1 --no-env -e B=2");
    assert_true(p.args.env.reset);
    assert_false(p.args.volumes.reset);
    assert_int_equal(p.args.env.n, 1);
    free_args(&p);
    assert_false(p.args.env.reset);
}

static void a_row_may_keep_what_became_of_its_option(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "-v");
    assert_int_equal(p.args.disk_state, OPTION_ABSENT);
    assert_int_equal(p.args.tty_state, OPTION_ABSENT);
    assert_int_equal(p.args.image_state, OPTION_ABSENT);
    free_args(&p);
    parse(&p, "--no-disk --disk 64M -t --no-tty --image host");
    assert_int_equal(p.args.disk_state, OPTION_GIVEN);
    assert_int_equal(p.args.tty_state, OPTION_RESET);
    assert_int_equal(p.args.image_state, OPTION_GIVEN);
    free_args(&p);
}

static void a_name_of_the_table_that_begins_with_no_is_itself(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "--no-host");
    assert_true(p.args.no_host);
    free_args(&p);
    parse(&p, "--no-host --no-no-host");
    assert_false(p.args.no_host);
    free_args(&p);
}

static void options_end_at_the_command(void **state)
{
    static const struct {
        const char *line, *operands;
    } cases[] = {
        {"-t ls -l --bogus", "ls|-l|--bogus"},
        {"-t -- ls -l --bogus", "ls|-l|--bogus"},
        {"-t -- -t", "-t"},
        {"-t -- -- ls", "--|ls"},
        {"-t - -x", "-|-x"},
        {"-t '' -x", "|-x"},
        {"-t ls -- -l", "ls|--|-l"},
        {"-t --", ""},
    };
    struct parsed p;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        parse(&p, cases[i].line);
        assert_true(p.args.tty);
        assert_operands(&p, cases[i].operands);
        free_args(&p);
    }
}

static void options_stand_anywhere_if_no_command_follows(void **state)
{
    struct parsed p;

    (void)state;
    parse_at(&p, "a -t b --pids 3 - c -w/x -- -i --", 0);
    assert_int_equal(p.r, 0);
    assert_true(p.args.tty);
    assert_false(p.args.interactive);
    assert_int_equal(p.args.pids, 3);
    assert_operands(&p, "a|b|-|c|-i|--");
    free_args(&p);
}

static void options_may_end_at_a_later_operand(void **state)
{
    static const char *const lines[] = {"sb-1 -t ls -i", "-t sb-1 ls -i", "sb-1 -t -- ls -i"};
    struct parsed p;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        parse_at(&p, lines[i], 2);
        assert_int_equal(p.r, 0);
        assert_true(p.args.tty);
        assert_false(p.args.interactive);
        assert_operands(&p, "sb-1|ls|-i");
        free_args(&p);
    }
}

static void two_dashes_are_a_value_only_behind_an_equals_sign(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "--image=-- --user - x");
    assert_string_equal(p.args.image, "--");
    assert_string_equal(p.args.user, "-");
    assert_operands(&p, "x");
    free_args(&p);
}

struct error_case {
    const char *line, *text;
    int code;
};

static void assert_error(const struct error_case *c)
{
    struct parsed p;
    char text[1200];

    parse_at(&p, c->line, 1);
    if (p.r != -c->code)
        print_error("%s: returned %d\n", c->line, p.r);
    assert_int_equal(p.r, -c->code);
    assert_int_equal(p.err.cls, ERROR_USAGE);
    error_format(&p.err, text, sizeof text);
    assert_string_equal(text, c->text);
    free_args(&p);
}

static void an_unknown_option_names_the_nearest(void **state)
{
    static const struct error_case cases[] = {
        {"--imgae x", "unknown option --imgae. The nearest one is --image.", EINVAL},
        {"--imgae=x", "unknown option --imgae. The nearest one is --image.", EINVAL},
        {"--work /", "unknown option --work. The nearest one is --workdir.", EINVAL},
        {"--hlep", "unknown option --hlep. The nearest one is --help.", EINVAL},
        {"--no-evn", "unknown option --no-evn. The nearest one is --no-env.", EINVAL},
        {"--no-hots", "unknown option --no-hots. The nearest one is --no-host.", EINVAL},
        {"--no-help", "unknown option --no-help. --help lists the options.", EINVAL},
        {"--secre", "unknown option --secre. --help lists the options.", EINVAL},
        {"--zebra", "unknown option --zebra. --help lists the options.", EINVAL},
        {"---", "unknown option ---. --help lists the options.", EINVAL},
        {"--=x", "unknown option --. --help lists the options.", EINVAL},
        {"--a\033[31m", "unknown option --a?[31m. --help lists the options.", EINVAL},
        {"-q", "unknown option -q. --help lists the options.", EINVAL},
        {"-itq", "unknown option -q in -itq. --help lists the options.", EINVAL},
        {"-i\xC3\xA9", "unknown option -i\xC3\xA9. --help lists the options.", EINVAL},
        {"-timeout 5", "unknown option -m in -timeout. A long option has two dashes: --timeout.",
         EINVAL},
        {"-pids=5", "unknown option -p in -pids=5. A long option has two dashes: --pids.", EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_error(&cases[i]);
}

static void an_argument_that_is_missing_or_too_much_is_named(void **state)
{
    static const struct error_case cases[] = {
        {"--disk", "--disk needs an argument: SIZE", EINVAL},
        {"--disk -- ls", "--disk needs an argument: SIZE", EINVAL},
        {"-iw", "-w needs an argument: DIR", EINVAL},
        {"-w -- ls", "-w needs an argument: DIR", EINVAL},
        {"--image=", "--image was given an empty argument: REF", EINVAL},
        {"--env ''", "--env was given an empty argument: K=V", EINVAL},
        {"--pids=", "--pids was given an empty argument: N", EINVAL},
        {"--tty=yes", "--tty takes no argument, but was given \"yes\"", EINVAL},
        {"--tty=", "--tty takes no argument, but was given \"\"", EINVAL},
        {"-t=yes", "-t takes no argument, but was given \"yes\"", EINVAL},
        {"--no-disk=1G", "--no-disk takes no argument, but was given \"1G\"", EINVAL},
        {"--help=x", "--help takes no argument, but was given \"x\"", EINVAL},
        {"-w=/tmp", "-w takes its argument without \"=\". Write -w DIR or --workdir=DIR.", EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_error(&cases[i]);
}

static void a_bad_value_is_named_with_what_would_be_good(void **state)
{
    static const char duration[] =
        "Write seconds, or a number with ms, s, m, h or d, such as 90s or 5m.";
    char text[256];
    static const struct error_case cases[] = {
        {"--disk 512", "--disk 512 needs a unit, such as 512M", EINVAL},
        {"--disk=99999999999999999999", "--disk 99999999999999999999 is out of range: 1M to 1T",
         ERANGE},
        {"--disk 5X",
         "--disk \"5X\" is not a size. Write a whole number and a unit, such as 512M or 2G.",
         EINVAL},
        {"--disk 5K", "--disk 5K is out of range: 1M to 1T", ERANGE},
        {"--disk 2T", "--disk 2T is out of range: 1M to 1T", ERANGE},
        {"--disk 99999999999999999999T", "--disk 99999999999999999999T is out of range: 1M to 1T",
         ERANGE},
        {"--pids -1", "--pids \"-1\" is not a whole number", EINVAL},
        {"--pids many", "--pids \"many\" is not a whole number", EINVAL},
        {"--pids 0", "--pids 0 is out of range: 1 to 4096", ERANGE},
        {"--timeout 1ms", "--timeout 1ms is out of range: 0.0015s to 1d", ERANGE},
        {"--timeout 25h", "--timeout 25h is out of range: 0.0015s to 1d", ERANGE},
        {"--lifetime 0", "--lifetime 0 is out of range: at least 1ms", ERANGE},
        {"--egress inspct",
         "--egress \"inspct\" is none of pinned, inspect. The nearest one is inspect.", EINVAL},
        {"--egress x", "--egress \"x\" is none of pinned, inspect", EINVAL},
        {"-e A -e B -e C -eD", "-e was given more than 3 times", E2BIG},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_error(&cases[i]);
    (void)snprintf(text, sizeof text, "--timeout \"5x\" is not a duration. %s", duration);
    assert_error(&(struct error_case){"--timeout 5x", text, EINVAL});
}

static void help_is_wanted_only_where_an_option_may_stand(void **state)
{
    static const struct {
        const char *line;
        bool wanted;
    } cases[] = {
        {"--help", true},
        {"-h", true},
        {"-ith", true},
        {"-t --help ls", true},
        {"ls --help", false},
        {"-- --help", false},
        {"-w -h", false},
        {"-w-h ls", false},
        {"--image --help ls", false},
        {"", false},
        {"--bogus -h", false},
        {"--disk 5 --help", true},
    };
    struct words w = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        words_split(&w, cases[i].line, 1);
        assert_int_equal(options_want_help(run_options, ARRAY_SIZE(run_options), &w.io),
                         cases[i].wanted);
    }
    words_split(&w, "a b --help", 0);
    assert_true(options_want_help(run_options, ARRAY_SIZE(run_options), &w.io));
    assert_string_equal(w.v[0], "a"); /* nothing was moved */
    assert_string_equal(w.v[2], "--help");
}

static void the_spelling_and_the_limits_of_a_row_are_text(void **state)
{
    static const struct {
        const char *spelling, *limits;
    } rows[ARRAY_SIZE(run_options)] = {
        {"    --image REF", "default host"},
        {"    --volume HOST:GUEST[:ro]", "may be repeated"},
        {"-w, --workdir DIR", ""},
        {"    --user UID[:GID]", ""},
        {"    --hostname NAME", "default sandbox"},
        {"-e, --env K=V", "may be repeated"},
        {"    --disk SIZE", "1M to 1T; default 64M"},
        {"    --pids N", "1 to 4096; default 512"},
        {"    --lifetime DURATION", "at least 1ms"},
        {"    --timeout DURATION", "0.0015s to 1d"},
        {"-i, --interactive", ""},
        {"-t, --tty", ""},
        {"    --result FILE|FD", ""},
        {"    --egress MODE", "pinned, inspect; default pinned"},
        {"    --no-host", ""},
        {"-s, --secret", ""},
        {"-v, --verbose", ""},
    };
    char text[2 * OPTION_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        option_spelling(&run_options[i], text, sizeof text);
        assert_string_equal(text, rows[i].spelling);
        option_limits(&run_options[i], text, sizeof text);
        assert_string_equal(text, rows[i].limits);
    }
}

static void a_table_without_rows_takes_operands_only(void **state)
{
    struct words w = {0};
    struct error err = ERROR_INIT;

    (void)state;
    words_split(&w, "a b", 0);
    assert_int_equal(options_parse(NULL, 0, NULL, &w.io, &err), 0);
    assert_int_equal(w.io.n, 2);
    words_split(&w, "a -b", 0);
    assert_int_equal(options_parse(NULL, 0, NULL, &w.io, &err), -EINVAL);
}

/* What @write prints, to be freed. */
static char *printed(void (*write)(FILE *f, const struct command *const *all))
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    write(f, table);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void the_variables_that_are_read_or_set_are_in_the_manual(void **state)
{
    static const char *const names[] = {"ATOLL_LEASE", "ATOLL_LOG", "ATOLL_SANDBOX",
                                        "ATOLL_STATE_DIR", "NO_COLOR"};
    _cleanup_free_ char *text = printed(manual_man);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char want[64];

        (void)snprintf(want, sizeof want, ".TP\n\\fB%s\\fR\n", names[i]);
        assert_non_null(strstr(text, want));
    }
}

static void help_of_run(FILE *f, const struct command *const *all)
{
    help_command(f, all[0]);
}

/* How an option stands in a format, its name in place of NAME. */
static void assert_has_row(const char *text, const char *pattern, const struct option *o)
{
    char want[128];
    const char *gap = strstr(pattern, "NAME");
    const char *name = o->name;
    bool man = pattern[0] == '\\';

    (void)snprintf(want, sizeof want, "%.*s%s%s", (int)(gap - pattern), pattern,
                   man && strcmp(name, "no-host") == 0 ? "no\\-host" : name, gap + 4);
    if (!strstr(text, want) == !o->hidden)
        print_error("%s in:\n%s\n", want, text);
    assert_int_equal(strstr(text, want) != NULL, !o->hidden);
    assert_null(strstr(text, "what nobody should see"));
    assert_null(strstr(text, "burrow"));
}

static void every_row_is_in_help_manual_and_completion_unless_hidden(void **state)
{
    static const struct {
        void (*write)(FILE *f, const struct command *const *all);
        const char *pattern;
        bool words; /* has the help sentences too */
    } formats[] = {
        {help_of_run, "--NAME", true},     {manual_man, "\\fB\\-\\-NAME\\fR", false},
        {manual_markdown, "--NAME", true}, {completion_bash, " --NAME ", false},
        {completion_zsh, "--NAME", false}, {completion_fish, " -l NAME ", false},
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(formats); k++) {
        _cleanup_free_ char *text = printed(formats[k].write);

        for (size_t i = 0; i < ARRAY_SIZE(run_options); i++) {
            const struct option *o = &run_options[i];

            assert_has_row(text, formats[k].pattern, o);
            if (formats[k].words && o->kind == OPTION_FLAG && !o->hidden)
                assert_non_null(strstr(text, o->help));
        }
    }
}

static void no_line_of_the_help_is_longer_than_a_terminal(void **state)
{
    _cleanup_free_ char *run = printed(help_of_run);
    _cleanup_free_ char *program = printed(help_program);
    const char *const texts[] = {run, program};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        for (const char *line = texts[i]; *line;) {
            size_t len = strcspn(line, "\n");

            assert_true(len <= 80);
            if (len > 0)
                assert_true(line[len - 1] != ' ');
            assert_true(line[len] == '\n');
            line += len + 1;
        }
    assert_non_null(
        strstr(run, "\n      --volume HOST:GUEST[:ro]\n                          mount"));
    assert_non_null(strstr(run, "\nExit status: that of the command.\n"));
    assert_non_null(strstr(run, "\n  atoll run -- echo 'hi'\n      run one command\n"));
}

static void the_man_page_has_its_sections_and_escapes_requests(void **state)
{
    static const char *const sections[] = {
        ".SH NAME\n",     ".SH SYNOPSIS\n",  ".SH DESCRIPTION\n", ".SH OPTIONS\n",
        ".SH COMMANDS\n", ".SS atoll run\n", ".SH EXIT STATUS\n", ".SH ENVIRONMENT\n",
        ".SH EXAMPLES\n", ".SH SEE ALSO\n",
    };
    _cleanup_free_ char *text = printed(manual_man);
    const char *at = text;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        at = strstr(at, sections[i]);
        assert_non_null(at);
    }
    assert_non_null(strstr(text, "\n\\&.This begins with a dot and has a back\\eslash.\n"));
    assert_non_null(strstr(text, "echo \\(aqhi\\(aq"));
}

static void texts_of_completions_are_quoted(void **state)
{
    _cleanup_free_ char *zsh = printed(completion_zsh);
    _cleanup_free_ char *fish = printed(completion_fish);

    (void)state;
    assert_non_null(strstr(zsh, "it'\\''s made"));
    assert_non_null(strstr(zsh, ":HOST\\:GUEST\\[\\:ro\\]:_default"));
    assert_non_null(strstr(zsh, ":MODE:(pinned inspect)"));
    assert_non_null(strstr(fish, "it\\'s made"));
    assert_non_null(strstr(fish, "-x -a 'pinned inspect'"));
}

static void assert_row_keeps_the_rules(const struct command *c, size_t i)
{
    const struct option *o = &c->options[i];
    bool valued = o->kind != OPTION_FLAG;

    assert_true(strlen(o->name) > 0 && strcmp(o->name, option_help.name) != 0);
    assert_true(o->letter != option_help.letter && o->letter != '-' && o->letter != '=');
    assert_int_equal(o->arg != NULL, valued);
    assert_true(o->help[strlen(o->help) - 1] != '.');
    assert_int_equal(o->choices != NULL, o->kind == OPTION_CHOICE);
    assert_true(o->min <= o->max);
    if (o->kind == OPTION_LIST)
        assert_true(o->max > 0 && !o->preset);
    for (size_t k = 0; k < i; k++) {
        assert_string_not_equal(o->name, c->options[k].name);
        assert_true(o->letter == 0 || o->letter != c->options[k].letter);
        assert_true(o->offset != c->options[k].offset);
    }
}

static void every_table_keeps_the_rules(void **state)
{
    (void)state;
    for (const struct command *const *c = table; *c; c++) {
        assert_non_null((*c)->usage);
        assert_true((*c)->summary[strlen((*c)->summary) - 1] != '.');
        assert_true((*c)->description[strlen((*c)->description) - 1] == '.');
        for (size_t i = 0; i < (*c)->n_options; i++)
            assert_row_keeps_the_rules(*c, i);
    }
}

static void an_unknown_command_names_the_nearest(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"rnu", "unknown command \"rnu\". The nearest one is \"run\"."},
        {"burow", "unknown command \"burow\". \"atoll help\" lists the commands."},
        {"", "unknown command \"\". \"atoll help\" lists the commands."},
    };
    const struct command *c = NULL;
    char text[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_INIT;

        assert_int_equal(command_find(table, cases[i].name, &c, &err), -EINVAL);
        assert_null(c);
        error_format(&err, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
    struct error none = ERROR_INIT;
    assert_int_equal(command_find(table, "burrow", &c, &none), 0);
    assert_ptr_equal(c, &hidden_command);
}

/* Runs a command of the table on a line; its output is to be freed. */
static char *output_of(const char *line, int want, struct error *err)
{
    struct cli cli = {.err = stderr, .commands = table};
    const struct command *c;
    struct words w = {0};
    char *text = NULL;
    size_t size = 0;

    words_split(&w, line, 0);
    *err = (struct error)ERROR_INIT;
    assert_int_equal(command_find(table, w.v[0], &c, err), 0);
    cli.out = open_memstream(&text, &size);
    assert_non_null(cli.out);
    assert_int_equal(c->run(&cli, w.io.n, w.v, err), want);
    assert_int_equal(fclose(cli.out), 0);
    return text;
}

static void help_version_and_reference_print_and_refuse(void **state)
{
    static const struct {
        const char *line, *begin;
    } good[] = {
        {"help", "Usage: atoll COMMAND"},
        {"help run", "Usage: atoll run ["},
        {"help burrow", "Usage: atoll burrow\n"},
        {"version", "atoll "},
        {"version --json", "{\"name\": \"atoll\", \"version\": \""},
        {"reference man", ".TH ATOLL 1"},
        {"reference cli", "# "},
        {"reference bash", "# bash"},
        {"reference zsh", "#compdef atoll\n"},
        {"reference fish", "# fish"},
    };
    static const struct {
        const char *line, *text;
    } bad[] = {
        {"help rn", "unknown command \"rn\". The nearest one is \"run\"."},
        {"help run x", "unexpected argument \"x\". The usage is \"atoll help [COMMAND]\"."},
        {"version x", "unexpected argument \"x\". The usage is \"atoll version [--json]\"."},
        {"reference", "\"atoll reference\" needs more arguments. The usage is \"atoll reference "
                      "man|bash|zsh|fish|cli|"
                      "spec|limits|errors|backends|json\"."},
        {"reference pdf", "there is no reference as \"pdf\". The usage is \"atoll reference "
                          "man|bash|zsh|fish|cli|"
                          "spec|limits|errors|backends|json\"."},
    };
    struct error err;
    char text[512];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        _cleanup_free_ char *out = output_of(good[i].line, 0, &err);

        assert_memory_equal(out, good[i].begin, strlen(good[i].begin));
        assert_true(strlen(out) > 2 && out[strlen(out) - 1] == '\n');
        assert_true(out[strlen(out) - 2] != '\n');
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_free_ char *out = output_of(bad[i].line, -EINVAL, &err);

        assert_string_equal(out, "");
        assert_int_equal(err.cls, ERROR_USAGE);
        error_format(&err, text, sizeof text);
        assert_string_equal(text, bad[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(a_value_is_the_next_word_or_follows_directly),
        cmocka_unit_test(every_kind_is_stored_in_its_unit),
        cmocka_unit_test(the_last_of_a_repeated_single_value_wins),
        cmocka_unit_test(a_list_keeps_its_values_in_order),
        cmocka_unit_test(no_name_goes_back_to_the_default),
        cmocka_unit_test(a_list_remembers_that_it_was_reset),
        cmocka_unit_test(a_row_may_keep_what_became_of_its_option),
        cmocka_unit_test(a_name_of_the_table_that_begins_with_no_is_itself),
        cmocka_unit_test(options_end_at_the_command),
        cmocka_unit_test(options_stand_anywhere_if_no_command_follows),
        cmocka_unit_test(options_may_end_at_a_later_operand),
        cmocka_unit_test(two_dashes_are_a_value_only_behind_an_equals_sign),
        cmocka_unit_test(an_unknown_option_names_the_nearest),
        cmocka_unit_test(an_argument_that_is_missing_or_too_much_is_named),
        cmocka_unit_test(a_bad_value_is_named_with_what_would_be_good),
        cmocka_unit_test(help_is_wanted_only_where_an_option_may_stand),
        cmocka_unit_test(the_spelling_and_the_limits_of_a_row_are_text),
        cmocka_unit_test(a_table_without_rows_takes_operands_only),
        cmocka_unit_test(the_variables_that_are_read_or_set_are_in_the_manual),
        cmocka_unit_test(every_row_is_in_help_manual_and_completion_unless_hidden),
        cmocka_unit_test(no_line_of_the_help_is_longer_than_a_terminal),
        cmocka_unit_test(the_man_page_has_its_sections_and_escapes_requests),
        cmocka_unit_test(texts_of_completions_are_quoted),
        cmocka_unit_test(every_table_keeps_the_rules),
        cmocka_unit_test(an_unknown_command_names_the_nearest),
        cmocka_unit_test(help_version_and_reference_print_and_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
