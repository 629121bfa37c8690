/* SPDX-License-Identifier: Apache-2.0 */
/* atoll policy: what a sandbox that stands may reach, and changing that. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "core/policy.h"
#include "base/guards.h"

struct policy_args {
    struct text_list allow, allow_cidr, remove;
    bool json;
};

#define FIELD(name) offsetof(struct policy_args, name)

static const struct option policy_options[] = {
    {.name = "allow",
     .arg = "HOST[:PORT]",
     .kind = OPTION_LIST,
     .offset = FIELD(allow),
     .max = POLICY_HOSTS_MAX,
     .help = "let this host be reached too, by its name; without a port: HTTPS on 443"},
    {.name = "allow-cidr",
     .arg = "CIDR",
     .kind = OPTION_LIST,
     .offset = FIELD(allow_cidr),
     .max = POLICY_RANGES_MAX,
     .help = "let these addresses be reached too, on any port"},
    {.name = "remove",
     .arg = "ENTRY",
     .kind = OPTION_LIST,
     .offset = FIELD(remove),
     .max = POLICY_HOSTS_MAX,
     .help = "take out a host or range that was allowed; before others are added"},
    OPTION_JSON(FIELD(json)),
};

static bool has_edits(const struct policy_args *a)
{
    return a->allow.n + a->allow_cidr.n + a->remove.n > 0;
}

/* The lines that the same policy gives in a description, or the stamp if it is none of ours. */
static int print_network(struct cli *cli, const char *stamp, struct error *err)
{
    struct error unknown = ERROR_INIT;
    _cleanup_free_ char *lines = NULL;
    struct policy policy = {0};

    if (!stamp || policy_stamp_decode(stamp, strlen(stamp), &policy, &unknown) < 0) {
        _cleanup_free_ char *shown = strdup(stamp ? stamp : "the backend does not tell");

        if (!shown)
            return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
        text_make_printable(shown);
        fprintf(cli->out, "%s\n", shown);
        return 0;
    }
    int r = policy_describe(&policy, &lines);
    policy_done(&policy);
    if (r < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    fputs(lines, cli->out);
    return 0;
}

static int report(struct cli *cli, const struct policy_args *a, const char *id,
                  const struct atoll_policy *p, struct error *err)
{
    if (a->json)
        return print_json(cli->out,
                          json_pack("{s:s, s:o, s:I, s:I}", "id", id, "network",
                                    p->network ? json_loads(p->network, 0, NULL) : json_null(),
                                    "generation", (json_int_t)p->generation, "flows_cut",
                                    (json_int_t)p->flows_cut),
                          err);
    int r = print_network(cli, p->network, err);
    if (r == 0 && p->flows_cut > 0)
        fprintf(cli->out, "%u %s cut.\n", p->flows_cut,
                p->flows_cut == 1 ? "connection was" : "connections were");
    return r;
}

static int show(struct cli *cli, struct handle *h, const struct policy_args *a, struct error *err)
{
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_inspect(h->sandbox);
    int r = handle_wait(h, op, err);

    if (r < 0)
        return r;
    const struct atoll_info *i = atoll_op_info(op, 0);
    const struct atoll_policy p = {.network = i->network, .generation = i->policy_generation};
    return report(cli, a, h->id, &p, err);
}

/* As the library takes lists: with a NULL at the end. */
static const char **list_of(const struct text_list *l)
{
    const char **list = calloc(l->n + 1, sizeof *list);

    for (size_t i = 0; list && i < l->n; i++)
        list[i] = l->items[i];
    return list;
}

static int change(struct cli *cli, struct handle *h, const struct policy_args *a, struct error *err)
{
    _cleanup_free_ const char **hosts = list_of(&a->allow);
    _cleanup_free_ const char **ranges = list_of(&a->allow_cidr);
    _cleanup_free_ const char **removed = list_of(&a->remove);
    const struct atoll_policy_edits edits = {
        .allow_hosts = hosts, .allow_ranges = ranges, .remove = removed};

    if (!hosts || !ranges || !removed)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_change_policy(h->sandbox, &edits);
    int r = handle_wait(h, op, err);
    return r < 0 ? r : report(cli, a, h->id, atoll_op_policy(op), err);
}

static int policy_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    struct arguments operands;
    struct policy_args a;
    int r = command_parse(&cmd_policy, argc, argv, &a, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_policy, &operands, 1, 1, err);
    if (r == 0)
        r = has_edits(&a) ? handle_open_to_change(&h, operands.v[0], err)
                          : handle_open(&h, operands.v[0], err);
    if (r == 0)
        r = has_edits(&a) ? change(cli, &h, &a, err) : show(cli, &h, &a, err);
    options_done(policy_options, ARRAY_SIZE(policy_options), &a);
    return r;
}

static const struct command_example policy_examples[] = {
    {"atoll policy box", "see what it may reach"},
    {"atoll policy box --allow example.org --allow git.example.org:22", "let two hosts be reached"},
    {"atoll policy box --remove example.org", "and one of them no more; its connections are cut"},
};

const struct command cmd_policy = {
    .name = "policy",
    .summary = "show or change what a sandbox may reach",
    .usage = "ID [OPTION]...",
    .description =
        "Without options that change it, prints the network policy in force. With some, the lists "
        "of the sandbox are changed while it stands, also of one that began without any network: "
        "the new policy is judged as a whole, takes effect as a whole, and connections that it "
        "forbids are cut. When it is refused, the policy before holds.\n\n"
        "An entry that is there already is not added again. An open network cannot be changed: "
        "make a new sandbox for that.",
    .options = policy_options,
    .n_options = ARRAY_SIZE(policy_options),
    .examples = policy_examples,
    .n_examples = ARRAY_SIZE(policy_examples),
    .run = policy_run,
};
