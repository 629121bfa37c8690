/* SPDX-License-Identifier: Apache-2.0 */
/* atoll gc: remove what killed exports and keepers have left. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/name_text.h"
#include "cli/print.h"
#include "core/state.h"
#include "export/journal.h"
#include "local/cgroup.h"
#include "base/guards.h"

enum { SHOWN_BYTES = 400 };

struct gc_args {
    bool json;
};

static const struct option gc_options[] = {
    OPTION_JSON(offsetof(struct gc_args, json)),
};

/* What is told of each path. */
struct report {
    struct cli *cli;
    json_t *removed, *failed; /* owned; NULL: text */
    struct error *err;        /* the first failure */
    bool no_memory;
};

static void add(struct report *x, json_t *list, const char *path, const char *why)
{
    json_t *entry = json_object();

    if (!entry || name_set_json(entry, "path", path) < 0 ||
        (why && json_object_set_new(entry, "reason", json_text(why)) < 0) ||
        json_array_append_new(list, json_incref(entry)) < 0)
        x->no_memory = true;
    json_decref(entry);
}

static void tell(void *arg, const char *path, int r)
{
    struct report *x = arg;
    char shown[SHOWN_BYTES];

    if (x->removed)
        add(x, r < 0 ? x->failed : x->removed, path, r < 0 ? strerror(-r) : NULL);
    if (r == 0 && !x->removed) {
        name_print_quoted(x->cli->out, path);
        putc('\n', x->cli->out);
    }
    if (r == 0 || x->err->code != 0)
        return;
    (void)snprintf(shown, sizeof shown, "%s", path);
    text_make_printable(shown);
    (void)error_set(x->err, ERROR_RECOVERABLE, -r, "'%s' cannot be removed: %s", shown,
                    strerror(-r));
    (void)error_remedy(x->err, "Remove it by hand, and run \"atoll gc\" again");
}

/* What dead keepers have left. */
struct leavings {
    size_t records, groups;
};

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void print_summary(struct cli *cli, const struct journal_sweep *s, const struct leavings *l)
{
    fprintf(cli->out,
            "%zu staged path%s, %zu record%s of sandboxes and %zu control group%s removed",
            s->removed, plural(s->removed), l->records, plural(l->records), l->groups,
            plural(l->groups));
    if (s->failed > 0)
        fprintf(cli->out, ", %zu path%s left", s->failed, plural(s->failed));
    putc('\n', cli->out);
}

/* @x->removed and @x->failed are taken. */
static int print_report(struct report *x, const struct journal_sweep *s, const struct leavings *l,
                        struct error *err)
{
    json_t *o = json_pack("{s:o, s:o, s:I, s:I, s:I}", "removed", x->removed, "failed", x->failed,
                          "exports", (json_int_t)s->exports, "sandboxes", (json_int_t)l->records,
                          "control_groups", (json_int_t)l->groups);

    x->removed = x->failed = NULL;
    if (x->no_memory) {
        json_decref(o);
        o = NULL;
    }
    return print_json(x->cli->out, o, err);
}

static int collect(struct cli *cli, bool json, struct error *err)
{
    struct error left = ERROR_INIT;
    struct report x = {.cli = cli,
                       .removed = json ? json_array() : NULL,
                       .failed = json ? json_array() : NULL,
                       .err = &left};
    struct journal_sweep swept = {0};
    struct leavings l = {0};
    int r = state_sweep(&l.records, err);

    l.groups = cgroup_sweep();
    if (r == 0)
        r = journal_sweep(&swept, tell, &x, err);
    if (r == 0 && json)
        r = print_report(&x, &swept, &l, err);
    else if (r == 0)
        print_summary(cli, &swept, &l);
    json_decref(x.removed);
    json_decref(x.failed);
    if (r < 0 || left.code == 0)
        return r;
    *err = left;
    return -left.code;
}

static int gc_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct gc_args args;
    int r = command_parse(&cmd_gc, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_gc, &operands, 0, 0, err);
    return r < 0 ? r : collect(cli, args.json, err);
}

static const struct command_example gc_examples[] = {
    {"atoll gc", "clean up after a crash of the host's programs"},
};

const struct command cmd_gc = {
    .name = "gc",
    .summary = "remove what killed exports and keepers have left",
    .usage = "[--json]",
    .description =
        "An export that is killed leaves files or folders called NAME.….partial beside its "
        "destinations, and a keeper that is killed the record of its sandbox and its control "
        "groups, which hold it to ceilings of memory and CPU. All are removed, as far as they are "
        "this user's, with what still runs in such a group; what still lives is left alone. Each "
        "path that was removed is printed, and a line that counts them, the records and the "
        "groups; on a host with cgroup v1 a sandbox may have had several groups.\n\n"
        "The next export removes what exports left, 'atoll list' and whoever looks for the sandbox "
        "the record, and the next sandbox with such ceilings the groups: this is for when there "
        "is none.",
    .options = gc_options,
    .n_options = ARRAY_SIZE(gc_options),
    .examples = gc_examples,
    .n_examples = ARRAY_SIZE(gc_examples),
    .run = gc_run,
};
