/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a spec: that they are its fields, and what file and options come to together. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/spec_options.h"
#include "base/guards.h"

enum { WORDS_MAX = 64 };

struct holder {
    bool before; /* so that the options do not begin at 0 */
    struct spec_args spec;
    struct toolset_args toolset;
    struct export_args export;
};

static const struct option options[] = {SPEC_OPTIONS(struct holder, spec),
                                        TOOLSET_OPTIONS(struct holder, toolset),
                                        EXPORT_OPTIONS(struct holder, export)};

/* One command line, its spec, and a file that it may name as FILE, and another as VARS. */
struct line {
    char file[64], vars[64], at_vars[66];
    char words[1024];
    struct holder args;
    struct spec spec;
    uint64_t given;
    struct problems problems;
    struct error err;
};

static int start(void **state)
{
    static struct line l;

    l = (struct line){.file = "/tmp/spec-options-XXXXXX", .vars = "/tmp/spec-options-XXXXXX"};
    *state = &l;
    for (int i = 0; i < 2; i++) {
        int fd = mkostemp(i == 0 ? l.file : l.vars, O_CLOEXEC);

        if (fd < 0)
            return -1;
        (void)close(fd);
    }
    (void)snprintf(l.at_vars, sizeof l.at_vars, "@%s", l.vars);
    return 0;
}

static void drop(struct line *l)
{
    options_done(options, ARRAY_SIZE(options), &l->args);
    spec_done(&l->spec);
    problems_done(&l->problems);
    l->err = (struct error)ERROR_INIT;
}

static int end(void **state)
{
    struct line *l = *state;

    drop(l);
    return unlink(l->file) | unlink(l->vars);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Parses and applies words split at blanks. */
static int apply(struct line *l, const char *words)
{
    char *const env[] = {(char[]){"HOME=/home/me"}, (char[]){"TOKEN=x=y"}, (char[]){"KEY=hunter2"},
                         (char[]){"BRIEF=abc"},     (char[]){"EMPTY="},    NULL};
    char *v[WORDS_MAX + 1], *at = l->words;
    struct arguments io = {.v = v};
    int r;

    drop(l);
    assert_true(strlen(words) < sizeof l->words);
    (void)snprintf(l->words, sizeof l->words, "%s", words);
    for (char *word; words[0] && (word = strsep(&at, " "));) {
        assert_true(io.n < WORDS_MAX);
        v[io.n++] = strcmp(word, "FILE") == 0    ? l->file
                    : strcmp(word, "VARS") == 0  ? l->vars
                    : strcmp(word, "@VARS") == 0 ? l->at_vars
                                                 : word;
    }
    v[io.n] = NULL;
    options_defaults(options, ARRAY_SIZE(options), &l->args);
    r = options_parse(options, ARRAY_SIZE(options), &l->args, &io, &l->err);
    if (r < 0)
        return r;
    assert_int_equal(io.n, 0);
    assert_int_equal(spec_init(&l->spec), 0);
    l->spec.lifetime_us = 7000000; /* a command's own default */
    return spec_args_apply_toolset(&l->args.spec, &l->args.toolset, &l->args.export, env, &l->spec,
                                   &l->given, &l->problems, &l->err);
}

static void good(struct line *l, const char *words)
{
    if (apply(l, words) != 0)
        fail_msg("%s: %s", words, l->err.message);
    assert_int_equal(l->problems.n, 0);
}

/* Refused by an error that begins with @field and holds @text. */
static void bad(struct line *l, const char *words, const char *field, const char *text)
{
    char message[1200];
    int r = apply(l, words);

    error_format(&l->err, message, sizeof message);
    if (r == 0 || l->err.cls != ERROR_USAGE || strncmp(message, field, strlen(field)) != 0 ||
        !strstr(message, text))
        fail_msg("%s gave %d: %s", words, r, message);
}

static void every_option_is_a_field_with_its_range(void **state)
{
    unsigned others = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        const struct option *o = &options[i];
        const struct spec_field *f = NULL;

        for (size_t k = 0; k < SPEC_FIELD__MAX; k++)
            if (spec_fields[k].option && strcmp(spec_fields[k].option, o->name) == 0)
                f = &spec_fields[k];
        if (!f) {
            others++;
            assert_true(strcmp(o->name, "spec") == 0 || strcmp(o->name, "env-file") == 0);
            continue;
        }
        if (strcmp(o->name, "max-export-bytes") != 0) /* which needs a unit as an option */
            assert_int_equal(o->kind == OPTION_SIZE, f->kind == SPEC_SIZE && !f->bare);
        assert_int_equal(o->kind == OPTION_DURATION, f->kind == SPEC_DURATION);
        assert_int_equal(o->kind == OPTION_NUMBER, f->kind == SPEC_COUNT);
        assert_int_equal(o->kind == OPTION_CHOICE, f->kind == SPEC_CHOICE);
        assert_int_equal(o->kind == OPTION_FLAG, f->kind == SPEC_BOOL);
        assert_int_equal(o->kind == OPTION_LIST,
                         f->kind == SPEC_TEXTS || f->kind == SPEC_MAP || f->kind == SPEC_VOLUMES);
        assert_int_equal(o->state > 0, o->kind != OPTION_LIST);
        if (o->kind == OPTION_SIZE || o->kind == OPTION_DURATION || o->kind == OPTION_NUMBER)
            assert_int_equal(o->min, f->min);
        if (o->max > 0)
            assert_int_equal(o->max, f->max);
        assert_ptr_equal(o->choices, f->choices);
        if (o->preset)
            assert_string_equal(o->preset, f->preset);
    }
    assert_int_equal(others, 2);
}

static void without_options_the_commands_own_defaults_stay(void **state)
{
    struct line *l = *state;

    good(l, "--no-env");
    assert_int_equal(l->spec.lifetime_us, 7000000);
    assert_int_equal(l->spec.pids, 4096);
    assert_string_equal(l->spec.egress_enforcement, "pinned");
    assert_true(l->spec.block_network);
}

static void every_option_sets_its_field(void **state)
{
    struct line *l = *state;
    const struct spec *s = &l->spec;

    good(l,
         "--backend modal --image debian:12 --volume /usr:/data:ro --input /etc/passwd=in "
         "-w /work --user 5:6 --hostname box -e A=1 --allow a.example --allow-cidr 203.0.113.0/24 "
         "-p 8080:80 -m 1G --cpu 0.5 --disk 2M --pids 7 --lifetime 90 --idle-timeout 1m --owner me "
         "--tag k=v --resolver 9.9.9.9 --proxy http://p:1 --add-host a.example=10.0.0.1 "
         "--add-host a.example=fd00::1 --proxy-credentials /etc/passwd");
    assert_string_equal(s->backend, "modal");
    assert_string_equal(s->image, "debian:12");
    assert_string_equal(s->volumes[0].guest, "/data");
    assert_string_equal(s->inputs.items[0], "/etc/passwd=in");
    assert_string_equal(s->workdir, "/work");
    assert_int_equal(s->uid, 5);
    assert_string_equal(s->hostname, "box");
    assert_string_equal(s->env.items[0], "A=1");
    assert_string_equal(s->allow_egress_to.items[0], "a.example");
    assert_string_equal(s->allow_egress_to_cidrs.items[0], "203.0.113.0/24");
    assert_string_equal(s->publish.items[0], "8080:80");
    assert_int_equal(s->memory_bytes, 1 << 30);
    assert_int_equal(s->cpu_milli, 500);
    assert_int_equal(s->disk_bytes, 2 << 20);
    assert_int_equal(s->pids, 7);
    assert_int_equal(s->lifetime_us, 90000000);
    assert_int_equal(s->idle_timeout_us, 60000000);
    assert_string_equal(s->owner, "me");
    assert_string_equal(s->tags.items[0], "k=v");
    assert_string_equal(s->resolver, "9.9.9.9");
    assert_string_equal(s->proxy, "http://p:1");
    assert_int_equal(s->add_hosts.n, 2);
    assert_string_equal(s->add_hosts.items[1], "a.example=fd00::1");
    assert_string_equal(s->proxy_credentials, "/etc/passwd");
    good(l,
         "--open-network --allow-private 10.0.0.0/8 --egress-enforcement inspect --max-cost 1.5");
    assert_false(s->block_network);
    assert_string_equal(s->private_cidrs.items[0], "10.0.0.0/8");
    assert_string_equal(s->egress_enforcement, "inspect");
    assert_int_equal(s->max_cost_micro, 1500000);
}

static void the_toolset_has_options_too(void **state)
{
    struct line *l = *state;
    const struct toolset_spec *t = &l->spec.toolset;

    good(l, "--tool-prefix py --default-command-timeout 5 --max-command-timeout 1m "
            "--max-output-lines 9 --max-output-bytes 700 --max-read-bytes 2M --mask KEY "
            "--purpose tests --tool edit_file --tool search_files --export out=file:///srv/out");
    assert_string_equal(t->tool_prefix, "py");
    assert_int_equal(t->default_command_timeout_us, 5000000);
    assert_int_equal(t->max_command_timeout_us, 60000000);
    assert_int_equal(t->max_output_lines, 9);
    assert_int_equal(t->max_output_bytes, 700);
    assert_int_equal(t->max_read_bytes, 2 << 20);
    assert_string_equal(t->mask.items[0], "hunter2");
    assert_string_equal(t->purpose, "tests");
    assert_int_equal(t->tools.n, 2);
    assert_string_equal(t->tools.items[1], "search_files");
    assert_string_equal(t->exports.items[0], "out=file:///srv/out");

    write_file(l->file, "version: 1\ntoolset: {tool_prefix: py, mask: [hunter2], "
                        "max_output_bytes: 5}\n");
    good(l, "--spec FILE --no-tool-prefix --no-mask --mask HOME --no-max-output-bytes");
    assert_null(t->tool_prefix);
    assert_int_equal(t->mask.n, 1);
    assert_string_equal(t->mask.items[0], "/home/me");
    assert_int_equal(t->max_output_bytes, 51200);

    bad(l, "--tool-prefix a-b", "--tool-prefix: ", "a-b");
    bad(l, "--max-output-bytes none", "--max-output-bytes: ", "'none' is not");
    bad(l, "--default-command-timeout 10m", "--default-command-timeout: ", "max_command_timeout");
    bad(l, "--max-command-timeout 10", "--max-command-timeout: ", "longer than");
    bad(l, "--tool edit_fil", "--tool: ", "nearest one is edit_file");
}

static void a_variable_is_masked_as_the_sandbox_has_it_or_else_the_caller(void **state)
{
    struct line *l = *state;
    const struct string_list *mask = &l->spec.toolset.mask;

    good(l, "--mask KEY --mask TOKEN --no-mask --mask HOME --mask KEY");
    assert_int_equal(mask->n, 2);
    assert_string_equal(mask->items[0], "/home/me");
    assert_string_equal(mask->items[1], "hunter2");
    good(l, "--mask KEY -e KEY=inside");
    assert_string_equal(mask->items[0], "inside");
    good(l, "-e BRIEF=long-enough --mask BRIEF");
    assert_string_equal(mask->items[0], "long-enough");
    write_file(l->vars, "A=from a file\n");
    good(l, "--mask A --env-file VARS");
    assert_string_equal(mask->items[0], "from a file");
    write_file(l->file, "version: 1\nspec: {env: {A: from the spec}}\ntoolset: {mask: [other]}\n");
    good(l, "--spec FILE --mask A");
    assert_int_equal(mask->n, 2);
    assert_string_equal(mask->items[1], "from the spec");

    bad(l, "--mask NONE", "--mask NONE: ", "no variable NONE");
    bad(l, "--mask EMPTY", "--mask EMPTY: ", "it has 0 bytes");
    bad(l, "--mask BRIEF", "--mask BRIEF: ", "it has 3 bytes");
    assert_null(strstr(l->err.message, "abc"));
    bad(l, "--mask s3cr3t!", "--mask: ", "not the name of a variable");
    assert_null(strstr(l->err.message, "s3cr3t")); /* it may be the secret */
    assert_null(strstr(l->err.remedy, "s3cr3t"));
    bad(l, "--mask KEY=hunter2", "--mask: ", "not the name of a variable");
    assert_null(strstr(l->err.message, "hunter2"));
}

static void each_line_of_a_file_is_masked(void **state)
{
    struct line *l = *state;
    const struct string_list *mask = &l->spec.toolset.mask;

    write_file(l->vars, "\nfirst one\r\n\r\n# no comment\n  with blanks  \nlast");
    good(l, "--mask @VARS");
    assert_int_equal(mask->n, 4);
    assert_string_equal(mask->items[0], "first one");
    assert_string_equal(mask->items[1], "# no comment");
    assert_string_equal(mask->items[2], "  with blanks  ");
    assert_string_equal(mask->items[3], "last");

    write_file(l->vars, "good enough\nabc\n");
    bad(l, "--mask @VARS", l->vars, ":2: it has 3 bytes, and at least 4 can be masked");
    assert_null(strstr(l->err.message, "abc"));
    write_file(l->vars, "\n\r\n");
    bad(l, "--mask @VARS", "--mask @/tmp/", "nothing in the file that could be masked");
    bad(l, "--mask @/nowhere/at-all", "mask file '/nowhere/at-all'", "cannot be read");
}

static void a_line_with_a_nul_cannot_be_masked(void **state)
{
    struct line *l = *state;
    FILE *f = fopen(l->vars, "we");

    assert_non_null(f);
    assert_int_equal(fwrite("good enough\nsecret\0rest\n", 1, 24, f), 24);
    assert_int_equal(fclose(f), 0);
    bad(l, "--mask @VARS", l->vars, ":2: the line has a NUL in it");
    assert_null(strstr(l->err.message, "secret"));
}

static void what_was_given_is_told(void **state)
{
    const uint64_t pids = spec_field_bit(SPEC_FIELD_PIDS), env = spec_field_bit(SPEC_FIELD_ENV);
    struct line *l = *state;

    good(l, "");
    assert_int_equal(l->given, 0);
    good(l, "--pids 9 --tool-prefix py -e A=1");
    assert_int_equal(l->given, pids | env | spec_field_bit(SPEC_FIELD_TOOL_PREFIX));
    write_file(l->file, "version: 1\nspec: {env: {A: b}}\nbackend: {pids: 9}\n");
    good(l, "--spec FILE");
    assert_int_equal(l->given, pids | env);
    good(l, "--spec FILE --no-pids");
    assert_int_equal(l->given, env);
}

static const char file[] = "version: 1\n"
                           "spec:\n"
                           "  env: {A: file, B: file}\n"
                           "  block_network: true\n"
                           "  allow_egress_to: [file.example]\n"
                           "backend:\n"
                           "  pids: 7\n"
                           "  memory: 1G\n"
                           "  user: 5\n"
                           "  workdir: /file\n"
                           "  volumes: ['/usr:/file']\n"
                           "  sandbox_timeout: 60\n"
                           "  egress_enforcement: inspect\n"
                           "  tags: {a: file, b: file}\n";

static void the_file_counts_where_no_option_is_given(void **state)
{
    struct line *l = *state;
    const struct spec *s = &l->spec;

    write_file(l->file, file);
    good(l, "--spec FILE");
    assert_int_equal(s->pids, 7);
    assert_int_equal(s->lifetime_us, 60000000);
    assert_int_equal(s->uid, 5);
    assert_string_equal(s->egress_enforcement, "inspect");
    assert_int_equal(s->env.n, 2);
}

static void options_override_single_values_and_add_to_lists(void **state)
{
    struct line *l = *state;
    const struct spec *s = &l->spec;

    write_file(l->file, file);
    good(l, "-e B=option -eC=option --pids 4096 --spec FILE --workdir /o --volume /usr:/o "
            "--allow option.example --tag b=option --tag c=option --egress-enforcement pinned "
            "--lifetime 2m");
    assert_int_equal(s->env.n, 3);
    assert_string_equal(s->env.items[0], "A=file");
    assert_string_equal(s->env.items[1], "B=option");
    assert_string_equal(s->env.items[2], "C=option");
    assert_int_equal(s->pids, 4096);
    assert_int_equal(s->lifetime_us, 120000000);
    assert_string_equal(s->workdir, "/o");
    assert_int_equal(s->n_volumes, 2);
    assert_string_equal(s->allow_egress_to.items[0], "file.example");
    assert_string_equal(s->allow_egress_to.items[1], "option.example");
    assert_int_equal(s->tags.n, 3);
    assert_string_equal(s->tags.items[1], "b=option");
    assert_string_equal(s->egress_enforcement, "pinned");
}

static void no_name_empties_a_list_of_the_file_and_returns_to_defaults(void **state)
{
    struct line *l = *state;
    const struct spec *s = &l->spec;

    write_file(l->file, file);
    good(l, "--spec FILE --no-env -e C=1 --no-volume --no-tag --no-allow --no-pids --no-memory "
            "--no-user --no-workdir --no-egress-enforcement --no-lifetime");
    assert_int_equal(s->env.n, 1);
    assert_string_equal(s->env.items[0], "C=1");
    assert_int_equal(s->n_volumes + s->tags.n + s->allow_egress_to.n, 0);
    assert_int_equal(s->pids, 4096);
    assert_int_equal(s->memory_bytes, 0);
    assert_false(s->user_set);
    assert_int_equal(s->uid, 0);
    assert_null(s->workdir);
    assert_string_equal(s->egress_enforcement, "pinned");
    assert_int_equal(s->lifetime_us, 7000000);

    write_file(l->file, "version: 1\nspec: {block_network: false}\n");
    good(l, "--spec FILE --no-open-network");
    assert_true(s->block_network);
}

static void what_a_file_lacks_alone_an_option_may_add(void **state)
{
    struct line *l = *state;

    write_file(l->file, "version: 1\nspec: {private_cidrs: [10.0.0.0/8]}\n");
    bad(l, "--spec FILE", l->file, ":2:8: spec.private_cidrs: ");
    good(l, "--spec FILE --open-network");
    write_file(l->file, "version: 1\nbackend: {idle_timeout: 90}\n");
    bad(l, "--spec FILE --lifetime 60", l->file, ":2:25: backend.idle_timeout: ");
    good(l, "--spec FILE --lifetime 100");
    write_file(l->file, "version: 1\ntoolset: {attach_to: sb-a}\n");
    good(l, "--spec FILE");
    bad(l, "--spec FILE --env A=1", l->file, "attach_to and a spec exclude each other");
}

static void a_wrong_value_is_named_by_its_option(void **state)
{
    struct line *l = *state;

    bad(l, "--cpu none", "--cpu: ", "'none' is not a number");
    bad(l, "--cpu 0", "--cpu: ", "out of range");
    bad(l, "--memory 512", "--memory 512 needs a unit", "512M");
    bad(l, "--hostname a_b", "--hostname: ", "not a host name");
    bad(l, "--user me", "--user: ", "UID");
    bad(l, "--volume /usr", "--volume: ", "colon");
    bad(l, "--image nonsense", "--image: ", "neither 'host' nor 'dir:PATH'");
    bad(l, "--tag team", "--tag: ", "Write it as KEY=VALUE");
    bad(l, "--tag airflow_x=1", "--tag: ", "kept for atoll");
    bad(l, "--publish 80", "--publish: ", "which port");
    bad(l, "--input /no/such=x", "--input: ", "is not there");
    bad(l, "-e NOT_SET", "--env: ", "NOT_SET is not set here");
    bad(l, "-e 9=hunter2", "--env: ", "not a variable name");
    assert_null(strstr(l->err.message, "hunter2"));
    bad(l, "--allow localhost", "--allow: ", "localhost");
    bad(l, "--allow-cidr 10.0.0.1/8", "--allow-cidr: ", "10.0.0.1/8");
    bad(l, "--allow-private 10.0.0.0/8", "--allow-private: ", "block_network");
    bad(l, "--egress-enforcement sni", "--egress-enforcement", "none of pinned, inspect");
    bad(l, "--idle-timeout 2m --lifetime 1m", "--idle-timeout: ", "longer than sandbox_timeout");
    bad(l, "--spec /no/such/file", "spec file '/no/such/file'", "cannot be read");
    bad(l, "--env-file /no/such/file", "env file '/no/such/file'", "cannot be read");
}

static void mistakes_of_file_and_options_are_found_together(void **state)
{
    struct line *l = *state;

    write_file(l->file, "version: 1\nspec: {allow_egress_to: [ok.example, localhost]}\n"
                        "backend: {memory: 5}\n");
    assert_int_equal(apply(l, "--spec FILE --cpu x --allow 10.0.0.5 --hostname ok"), -EINVAL);
    assert_int_equal(l->problems.n, 4);
    assert_string_equal(l->problems.items[0].field, "spec.allow_egress_to[1]");
    assert_int_equal(l->problems.items[0].at.line, 2);
    assert_string_equal(l->problems.items[1].field, "backend.memory");
    assert_string_equal(l->problems.items[2].field, "--cpu");
    assert_int_equal(l->problems.items[2].at.line, 0);
    assert_string_equal(l->problems.items[3].field, "--allow");
    assert_non_null(strstr(l->problems.items[3].message, "10.0.0.5"));
}

static void variables_come_from_files_first(void **state)
{
    struct line *l = *state;
    const struct spec *s = &l->spec;

    write_file(l->file, file);
    write_file(l->vars,
               "# a comment\n\nA=vars\nQ=\"quoted\" # text\nE=\nS= x y \nB==\nLAST=no end");
    good(l, "-e E=option --spec FILE --env-file VARS -e TOKEN");
    assert_int_equal(s->env.n, 7);
    assert_string_equal(s->env.items[0], "A=vars");
    assert_string_equal(s->env.items[1], "B==");
    assert_string_equal(s->env.items[2], "Q=\"quoted\" # text");
    assert_string_equal(s->env.items[3], "E=option");
    assert_string_equal(s->env.items[4], "S= x y ");
    assert_string_equal(s->env.items[5], "LAST=no end");
    assert_string_equal(s->env.items[6], "TOKEN=x=y");
    good(l, "--spec FILE --env-file VARS --no-env-file");
    assert_string_equal(s->env.items[0], "A=file");
    write_file(l->vars, "");
    good(l, "--env-file VARS");
}

static void a_wrong_line_of_variables_has_its_number(void **state)
{
    static const struct {
        const char *text, *place, *words;
    } rows[] = {
        {"A=1\n\nB hunter2\n", ":3: ", "there is no '=' in the line"},
        {"# x\n A=hunter2\n", ":2: ", "' A' is not a variable name"},
        {"export A=hunter2", ":1: ", "'export A' is not a variable name"},
        {"=hunter2", ":1: ", "'' is not a variable name"},
        {"A=hunter2\r\n", ":1: ", "the line ends with a carriage return"},
        {"HOME\n", ":1: ", "there is no '='"},
    };
    struct line *l = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char place[80];

        write_file(l->vars, rows[i].text);
        (void)snprintf(place, sizeof place, "%s%s", l->vars, rows[i].place);
        bad(l, "--env-file VARS", place, rows[i].words);
        assert_null(strstr(l->err.message, "hunter2"));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(every_option_is_a_field_with_its_range),
        TEST(without_options_the_commands_own_defaults_stay),
        TEST(every_option_sets_its_field),
        TEST(the_toolset_has_options_too),
        TEST(a_variable_is_masked_as_the_sandbox_has_it_or_else_the_caller),
        TEST(each_line_of_a_file_is_masked),
        TEST(a_line_with_a_nul_cannot_be_masked),
        TEST(what_was_given_is_told),
        TEST(the_file_counts_where_no_option_is_given),
        TEST(options_override_single_values_and_add_to_lists),
        TEST(no_name_empties_a_list_of_the_file_and_returns_to_defaults),
        TEST(what_a_file_lacks_alone_an_option_may_add),
        TEST(a_wrong_value_is_named_by_its_option),
        TEST(mistakes_of_file_and_options_are_found_together),
        TEST(variables_come_from_files_first),
        TEST(a_wrong_line_of_variables_has_its_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
