/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools of an agent: what a model is told of them, its calls and what it is answered, and the
 * file that is published at the end. A script stands in the place of the model.
 *
 * Usage: agent_tools FOLDER      the report is published in FOLDER, an absolute path
 */
#include <atoll_toolset.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a model might ask for, as the arguments come out of its answers: JSON text. */
static const struct {
    const char *tool, *arguments;
} script[] = {
    {"list_directory", "{}"},
    {"write_file", "{\"path\":\"sum.py\",\"content\":\"print(sum(range(11)))\\n\"}"},
    {"run_command", "{\"command\":\"python3 sum.py >report.txt; echo token=$TOKEN; exit 3\"}"},
    {"read_file", "{\"path\":\"raport.txt\"}"},
    {"read_file", "{\"path\":\"report.txt\"}"},
};

static void give_up(const char *what, const struct atoll_error *err)
{
    fprintf(stderr, "agent_tools: %s: %s. %s\n", what, err ? err->message : "out of memory",
            err ? err->remedy : "");
    exit(1);
}

/* Waits for an operation that must go well. */
static struct atoll_op *must(struct atoll_op *op, const char *what)
{
    if (!op)
        give_up(what, NULL);
    if (atoll_wait(op, ATOLL_FOREVER) < 0)
        give_up(what, atoll_op_error(op));
    return op;
}

/* Nothing is made by this, and nothing by opening it: the first call makes the sandbox. */
static struct atoll_toolset *prepare(struct atoll *a, const char *folder)
{
    struct atoll_spec *spec = atoll_spec_new();
    struct atoll_toolset *t;
    struct atoll_error err;
    char export_to[4096];

    if (!spec)
        give_up("spec", NULL);
    snprintf(export_to, sizeof export_to, "report.txt=file://%s/report.txt", folder);
    if (atoll_spec_set(spec, "spec.env", "TOKEN=not-for-the-model", &err) < 0 ||
        atoll_spec_set(spec, "backend.disk", "64M", &err) < 0 ||
        atoll_spec_set(spec, "toolset.exports", export_to, &err) < 0)
        give_up("spec", &err);
    if (atoll_toolset_new(a, spec, NULL, &t, &err) < 0)
        give_up("toolset", &err);
    atoll_spec_free(spec);
    return t;
}

/* One call. What the model is to be shown is an answer, also when it has to mend its call. */
static void call(struct atoll_toolset *t, const char *tool, const char *arguments)
{
    struct atoll_op *op = must(atoll_tool_call(t, tool, arguments, strlen(arguments)), tool);
    const struct atoll_tool_answer *answer = atoll_op_answer(op);

    printf("%s %s\n%s\n", tool, arguments, answer->text);
    if (answer->retry)
        printf("(an error that the model can mend, number %u in a row)\n", answer->failures);
    atoll_op_free(op);
}

int main(int argc, char **argv)
{
    struct atoll_error err;
    struct atoll *a;
    struct atoll_op *op;
    size_t i;

    signal(SIGPIPE, SIG_IGN);
    if (argc != 2)
        return 2;
    if (atoll_new(&a, &err) < 0)
        give_up("context", &err);
    struct atoll_toolset *t = prepare(a, argv[1]);
    atoll_op_free(must(atoll_toolset_open(t), "open"));

    char *definitions = atoll_toolset_render(t, ATOLL_TOOLS_ANTHROPIC);
    if (!definitions)
        give_up("definitions", NULL);
    printf("the model is given the tools of %s: %.21s...\n", atoll_toolset_id(t), definitions);
    free(definitions);

    for (i = 0; i < sizeof script / sizeof *script; i++)
        call(t, script[i].tool, script[i].arguments);

    /* The run went well: what was promised is published, and then the sandbox is removed. */
    op = must(atoll_toolset_close(t, true), "close");
    for (i = 0; i < atoll_op_count(op); i++)
        printf("published: %s, %llu bytes\n", atoll_op_exported(op, i)->path,
               (unsigned long long)atoll_op_exported(op, i)->bytes);
    atoll_op_free(op);
    atoll_toolset_free(t);
    atoll_free(a);
    return 0;
}
