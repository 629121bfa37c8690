/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `atoll mcp --config`: every mistake with its place, and what right ones come to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "cli/mcp_config.h"
#include "core/spec_fields.h"
#include "base/guards.h"

/* One file and what it came to. */
struct reading {
    char path[64];
    struct mcp_config config;
    struct problems problems;
    struct error err;
};

static int start(void **state)
{
    static struct reading g;
    int fd;

    g = (struct reading){.path = "/tmp/mcp-config-XXXXXX"};
    *state = &g;
    fd = mkostemp(g.path, O_CLOEXEC);
    return fd < 0 ? -1 : close(fd);
}

static void drop(struct reading *g)
{
    mcp_config_done(&g->config);
    problems_done(&g->problems);
    g->problems = (struct problems){0};
    g->err = (struct error)ERROR_INIT;
}

static int end(void **state)
{
    struct reading *g = *state;

    drop(g);
    return unlink(g->path);
}

static int read_text(struct reading *g, const char *text)
{
    FILE *f = fopen(g->path, "we");

    drop(g);
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return mcp_config_read(g->path, &g->config, &g->problems, &g->err);
}

static void good(struct reading *g, const char *text)
{
    if (read_text(g, text) != 0)
        fail_msg("%s\n%s", text, g->err.message);
    assert_int_equal(g->problems.n, 0);
}

struct wrong {
    const char *text;
    unsigned line, column;
    const char *field, *words;
};

/* The one problem of a text. */
static void assert_wrong(struct reading *g, const struct wrong *w)
{
    int r = read_text(g, w->text);
    char text[1400] = "";

    if (g->problems.n > 0)
        problem_format(&g->problems.items[0], NULL, text, sizeof text);
    if (r != -EINVAL || g->err.cls != ERROR_USAGE || g->problems.n != 1)
        fail_msg("%s\ngave %d, %zu problems: %s; %s", w->text, r, g->problems.n, text,
                 g->err.message);
    const struct problem *x = &g->problems.items[0];
    if (x->at.line != w->line || x->at.column != w->column || strcmp(x->field, w->field) != 0 ||
        !strstr(text, w->words))
        fail_msg("%s\ngave %u:%u: %s\ninstead of %u:%u: %s: …%s…", w->text, x->at.line,
                 x->at.column, text, w->line, w->column, w->field, w->words);
    assert_int_equal(g->config.n, 0); /* nothing was written */
}

#define V "version: 1\n"
#define T V "toolsets:\n"

static const struct wrong wrong_files[] = {
    {"- a\n", 1, 1, "", "a map with version and toolsets, not a list"},
    {"toolsets: [{}]\n", 1, 1, "version", "it is missing"},
    {"version: 2\ntoolsets: [{}]\n", 1, 10, "version", "2 is not a version"},
    {V, 1, 1, "toolsets", "it is missing. Write an entry for each"},
    {V "toolsets:\n", 2, 10, "toolsets", "a list of toolsets, not nothing"},
    {V "toolsets: {spec: {}}\n", 2, 11, "toolsets", "a list of toolsets, not a map"},
    {V "toolsets: []\n", 2, 11, "toolsets", "it has 0 entries, and may have 1 to 16"},
    {V "toolset: {}\ntoolsets: [{}]\n", 2, 1, "toolset", "within an entry of toolsets"},
    {V "spec: {}\ntoolsets: [{}]\n", 2, 1, "spec", "a spec file is named by --spec"},
    {V "toolsetz: 1\ntoolsets: [{}]\n", 2, 1, "toolsetz", "The nearest one is toolsets"},
    {V "zebra: 1\ntoolsets: [{}]\n", 2, 1, "zebra",
     "'zebra' is not a key of this file. It has version and toolsets."},
};

static const struct wrong wrong_toolsets[] = {
    {T "  - text\n", 3, 5, "toolsets[0]", "a map with the sections of a spec, not a string"},
    {T "  -\n", 3, 4, "toolsets[0]", "not nothing"},
    {T "  - prefx: a\n", 3, 5, "toolsets[0].prefx",
     "'prefx' is not a key of a toolset. The nearest one is prefix."},
    {T "  - zebra: a\n", 3, 5, "toolsets[0].zebra",
     "Its keys are prefix, purpose, spec, backend and toolset"},
    {T "  - memory: 1G\n", 3, 5, "toolsets[0].memory", "as backend.memory"},
    {T "  - {}\n  - prefix: a-b\n", 4, 13, "toolsets[1].prefix", "'a-b' is not an identifier"},
    {T "  - prefix: [a]\n", 3, 13, "toolsets[0].prefix", "it is to be a text, not a list"},
    {T "  - purpose: 1\n", 3, 14, "toolsets[0].purpose",
     "it is to be a text, not an integer. Put it in quotes."},
    {T "  - purpose: ''\n", 3, 14, "toolsets[0].purpose", "it is empty"},
    {T "  - prefix: a\n    toolset: {tool_prefix: b}\n", 3, 5, "toolsets[0].prefix",
     "it stands for toolset.tool_prefix, which is given too. Leave one of them out."},
    {T "  - backend: {memry: 1G}\n", 3, 15, "toolsets[0].backend.memry", "nearest one is memory"},
    {T "  - {}\n  - prefix: b\n    backend:\n      pids: none\n", 6, 13, "toolsets[1].backend.pids",
     "it is to be a whole number"},
    {T "  - toolset: {tools: [edit_file, edit]}\n", 3, 34, "toolsets[0].toolset.tools[1]",
     "no tool that can be added"},
    {T "  - toolset:\n      default_command_timeout: 10m\n", 4, 32,
     "toolsets[0].toolset.default_command_timeout", "longer than max_command_timeout"},
    {T "  - spec: {owner: me}\n", 3, 19, "toolsets[0].spec.owner", "nobody can attach to it"},
    {T "  - prefix: a\n    toolset: {export_credentials: x}\n", 4, 35,
     "toolsets[0].toolset.export_credentials", "no exports"},
};

static const struct wrong clashes[] = {
    {T "  - {}\n  - {}\n", 4, 5, "",
     "toolset 1 and toolset 2 both have a tool 'run_command'. Give one of them a prefix."},
    {T "  - prefix: a\n  - {}\n  - toolset: {tool_prefix: a}\n", 5, 5, "",
     "toolset 1 and toolset 3 both have a tool 'a_run_command'. Give one of them another prefix "
     "than 'a'."},
    {T "  - {}\n  - prefix: ''\n", 4, 5, "", "toolset 1 and toolset 2 both have a tool"},
    {"{\"version\": 1, \"toolsets\": [{}, {}]}", 1, 33, "", "toolset 1 and toolset 2"},
};

static void every_mistake_has_its_place_and_its_words(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(wrong_files); i++)
        assert_wrong(*state, &wrong_files[i]);
    for (size_t i = 0; i < ARRAY_SIZE(wrong_toolsets); i++)
        assert_wrong(*state, &wrong_toolsets[i]);
}

static void tools_of_one_name_are_refused_and_both_toolsets_named(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(clashes); i++)
        assert_wrong(*state, &clashes[i]);
}

static void a_file_comes_to_one_spec_for_each_entry(void **state)
{
    struct reading *g = *state;

    good(g, T "  - purpose: Builds.\n"
              "    spec: {env: {A: b}}\n"
              "  - prefix: py\n"
              "    backend: {pids: 9, sandbox_timeout: 5m}\n"
              "    toolset: {purpose: Runs., tools: [edit_file], mask: [hunter2]}\n");
    assert_int_equal(g->config.n, 2);
    const struct atoll_spec *a = g->config.specs[0], *b = g->config.specs[1];
    assert_string_equal(a->spec.toolset.purpose, "Builds.");
    assert_null(a->spec.toolset.tool_prefix);
    assert_string_equal(a->spec.env.items[0], "A=b");
    assert_int_equal(a->spec.lifetime_us, 3600 * UINT64_C(1000000));
    assert_true(a->spec.owned);
    assert_int_equal(a->given, spec_field_bit(SPEC_FIELD_ENV) | spec_field_bit(SPEC_FIELD_PURPOSE));
    assert_string_equal(b->spec.toolset.tool_prefix, "py");
    assert_string_equal(b->spec.toolset.purpose, "Runs.");
    assert_int_equal(b->spec.pids, 9);
    assert_int_equal(b->spec.lifetime_us, 300 * UINT64_C(1000000));
    assert_string_equal(b->spec.toolset.tools.items[0], "edit_file");
    assert_string_equal(b->spec.toolset.mask.items[0], "hunter2");
}

static void paths_start_at_the_folder_of_the_file(void **state)
{
    struct reading *g = *state;
    const char *name = strrchr(g->path, '/') + 1;
    char text[256];

    (void)snprintf(text, sizeof text, T "  - backend: {volumes: ['./%s:/data:ro']}\n", name);
    good(g, text);
    assert_string_equal(g->config.specs[0]->spec.volumes[0].host, g->path);
}

static void sixteen_toolsets_are_the_most(void **state)
{
    struct reading *g = *state;
    char text[1024] = T;
    size_t at = strlen(text);

    for (unsigned i = 1; i <= LIMIT_MCP_TOOLSETS; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "  - prefix: p%u\n", i);
    good(g, text);
    assert_int_equal(g->config.n, LIMIT_MCP_TOOLSETS);
    (void)snprintf(text + at, sizeof text - at, "  - prefix: more\n");
    assert_wrong(g, &(struct wrong){text, 3, 3, "toolsets", "it has 17 entries"});
}

static void mistakes_of_several_toolsets_are_found_at_once(void **state)
{
    struct reading *g = *state;

    assert_int_equal(read_text(g, T "  - backend: {pids: x}\n  - spec: {zebra: 1}\nmore: 1\n"),
                     -EINVAL);
    assert_int_equal(g->problems.n, 3);
    assert(g->problems.items);
    assert_string_equal(g->problems.items[0].field, "toolsets[0].backend.pids");
    assert_string_equal(g->problems.items[1].field, "toolsets[1].spec.zebra");
    assert_string_equal(g->problems.items[2].field, "more");
}

static void what_is_no_document_is_refused_with_its_place(void **state)
{
    struct reading *g = *state;

    assert_int_equal(read_text(g, T "  - {}\ntoolsets: []\n"), -EINVAL);
    assert_non_null(strstr(g->err.context, ":4:1"));
    drop(g);
    assert_int_equal(mcp_config_read("/nowhere/at-all", &g->config, &g->problems, &g->err),
                     -ENOENT);
    assert_non_null(strstr(g->err.message, "config file '/nowhere/at-all' cannot be read"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(every_mistake_has_its_place_and_its_words),
        TEST(tools_of_one_name_are_refused_and_both_toolsets_named),
        TEST(a_file_comes_to_one_spec_for_each_entry),
        TEST(paths_start_at_the_folder_of_the_file),
        TEST(sixteen_toolsets_are_the_most),
        TEST(mistakes_of_several_toolsets_are_found_at_once),
        TEST(what_is_no_document_is_refused_with_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
