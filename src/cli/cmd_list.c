/* SPDX-License-Identifier: Apache-2.0 */
/* atoll list: the sandboxes that live. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/name_text.h"
#include "cli/print.h"
#include "cli/sandbox_text.h"
#include "core/backends.h"
#include "core/limits.h"
#include "base/guards.h"

struct list_args {
    struct text_list tags;
    const char *owner, *backend;
    bool quiet, json;
};

#define FIELD(name) offsetof(struct list_args, name)

static const struct option list_options[] = {
    {.name = "quiet",
     .letter = 'q',
     .kind = OPTION_FLAG,
     .offset = FIELD(quiet),
     .help = "print the ids alone"},
    {.name = "tag",
     .arg = "KEY=VALUE",
     .kind = OPTION_LIST,
     .offset = FIELD(tags),
     .max = LIMIT_LIST_ENTRIES,
     .help = "only those with this tag; with several, those that have all"},
    {.name = "owner",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(owner),
     .help = "only those made for this owner"},
    {.name = "backend",
     .arg = "NAME",
     .kind = OPTION_TEXT,
     .offset = FIELD(backend),
     .preset = "local",
     .help = "those of this backend"},
    OPTION_JSON(FIELD(json)),
};

static void print_text(struct cli *cli, const char *s, int width)
{
    char shown[128];

    (void)snprintf(shown, sizeof shown, "%s", s);
    text_make_printable(shown);
    fprintf(cli->out, "%-*s ", width, shown);
}

static void print_row(struct cli *cli, const struct atoll_info *i, uint64_t now_us)
{
    char left[SANDBOX_WORDS] = "-";

    if (i->expires_at_us > 0)
        sandbox_span_text(left, i->expires_at_us > now_us ? i->expires_at_us - now_us : 0);
    print_text(cli, i->id, 29);
    print_text(cli, i->name ? i->name : "-", 16);
    print_text(cli, i->state ? i->state : "-", 8);
    print_text(cli, left, 10);
    print_text(cli, i->owner ? i->owner : "-", 10);
    for (const char *const *t = i->tags; t && *t; t++)
        print_text(cli, *t, 0);
    putc('\n', cli->out);
}

static int print_all(struct cli *cli, const struct list_args *a, const struct atoll_op *op,
                     struct error *err)
{
    const struct sandbox_filter filter = {.tags = &a->tags, .owner = a->owner};
    json_t *list = a->json ? json_array() : NULL;
    const uint64_t now_us = clock_epoch_us();
    size_t shown = 0;

    for (size_t n = 0; n < atoll_op_count(op); n++) {
        struct atoll_info i = *atoll_op_info(op, n);

        if (!i.id || !sandbox_matches(&i, &filter))
            continue;
        if (a->json) {
            (void)json_array_append_new(list, sandbox_json(&i));
        } else if (a->quiet) {
            name_print_quoted(cli->out, i.id);
            putc('\n', cli->out);
        } else {
            if (shown++ == 0)
                fprintf(cli->out, "%-29s %-16s %-8s %-10s %-10s %s\n", "ID", "NAME", "STATE",
                        "EXPIRES IN", "OWNER", "TAGS");
            print_row(cli, &i, now_us);
        }
    }
    return a->json ? print_json(cli->out, json_pack("{s:o}", "sandboxes", list), err) : 0;
}

static int list_all(struct cli *cli, const struct list_args *a, struct error *err)
{
    const struct sandbox_filter filter = {.tags = &a->tags};
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    struct backend_room room;
    struct backend backend;
    int r = sandbox_filter_check(&filter, err);

    if (r == 0)
        r = backend_find(a->backend, getenv("PATH"), &room, &backend, err);
    if (r == 0)
        r = backend_require(&backend, err);
    if (r == 0)
        r = handle_begin(&h, err);
    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_list(h.context, a->backend);
    r = handle_wait(&h, op, err);
    return r < 0 ? r : print_all(cli, a, op, err);
}

static int list_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    struct list_args a;
    int r = command_parse(&cmd_list, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_list, &operands, 0, 0, err);
    if (r == 0)
        r = list_all(cli, &a, err);
    options_done(list_options, ARRAY_SIZE(list_options), &a);
    return r;
}

static const struct command_example list_examples[] = {
    {"atoll list", "see what stands, and how long still"},
    {"atoll list -q --tag job=42 | xargs -r -n 1 atoll inspect", "look at those of one job"},
};

const struct command cmd_list = {
    .name = "list",
    .summary = "list the sandboxes that live",
    .usage = "[OPTION]...",
    .description =
        "Lists the sandboxes that were made by create and still stand, the oldest first: those of "
        "this user on this host, or of another backend.\n\n"
        "What was left by one whose keeper was killed is removed on the way.",
    .options = list_options,
    .n_options = ARRAY_SIZE(list_options),
    .examples = list_examples,
    .n_examples = ARRAY_SIZE(list_examples),
    .run = list_run,
};
