/* SPDX-License-Identifier: Apache-2.0 */
/* atoll explain: would it be let out, and by which rule. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/spec_options.h"
#include "core/policy.h"
#include "core/spec_rules.h"
#include "wire/json_text.h"
#include "base/guards.h"

enum { EXIT_NOT_LET_OUT = 1 };

struct explain_args {
    struct spec_args spec;
    bool json;
};

static const struct option explain_options[] = {
    SPEC_OPTIONS(struct explain_args, spec),
    OPTION_JSON(offsetof(struct explain_args, json)),
};

static const char *kind_name(enum policy_rule_kind kind)
{
    static const char *const names[] = {
        [POLICY_RULE_NONE] = "none",         [POLICY_RULE_HOST] = "host",
        [POLICY_RULE_RANGE] = "range",       [POLICY_RULE_PRIVATE] = "private",
        [POLICY_RULE_OPEN] = "open",         [POLICY_RULE_CLASS] = "class",
        [POLICY_RULE_LOOPBACK] = "loopback",
    };
    static_assert(ARRAY_SIZE(names) == POLICY_RULE__MAX, "one name a kind");

    return names[kind];
}

/* The place of the rule in the spec: "spec.allow_egress_to[2]"; empty if it is none of its. */
static void place_of(const struct policy_decision *d, char *buf, size_t size)
{
    const char *list = d->kind == POLICY_RULE_HOST      ? "allow_egress_to"
                       : d->kind == POLICY_RULE_RANGE   ? "allow_egress_to_cidrs"
                       : d->kind == POLICY_RULE_PRIVATE ? "private_cidrs"
                                                        : NULL;

    buf[0] = '\0';
    if (list)
        (void)snprintf(buf, size, "spec.%s[%zu]", list, d->index);
    else if (d->kind == POLICY_RULE_OPEN)
        (void)snprintf(buf, size, "spec.block_network");
}

static void report_text(const struct cli *cli, const struct policy_decision *d)
{
    const char *verdict = d->allowed ? "allowed" : "refused";
    char place[64];

    place_of(d, place, sizeof place);
    print_styled(cli->out, cli->colour, d->allowed ? PRINT_GOOD : PRINT_BAD, verdict);
    putc(':', cli->out);
    print_wrapped(cli->out, strlen(verdict) + 1, strlen(verdict) + 2, d->explanation);
    if (place[0])
        fprintf(cli->out, "rule: %s%s%s\n", place, d->rule ? " " : "", d->rule ? d->rule : "");
    if (d->remedy[0]) {
        fputs("\u2192 ", cli->out);
        print_wrapped(cli->out, 2, 2, d->remedy);
    }
}

static int report_json(const struct cli *cli, const char *destination,
                       const struct policy_decision *d, struct error *err)
{
    char place[64];

    place_of(d, place, sizeof place);
    return print_json(
        cli->out,
        json_pack("{s:b, s:o, s:{s:s, s:s*, s:o*}, s:o, s:o*}", "allowed", (int)d->allowed,
                  "destination", json_text(destination), "rule", "kind", kind_name(d->kind),
                  "field", place[0] ? place : NULL, "entry", json_text(d->rule), "explanation",
                  json_text(d->explanation), "remedy", json_text(d->remedy[0] ? d->remedy : NULL)),
        err);
}

/* The policy of a spec that the options name. */
static int policy_of_spec(const struct spec_args *args, struct policy *ret, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    _cleanup_(spec_done) struct spec s;
    int r = spec_init(&s) < 0 ? error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory") : 0;

    if (r == 0)
        r = spec_args_apply(args, environ, &s, &problems, err);
    if (r < 0)
        return r;
    r = spec_policy(&s, ret, &problems);
    return r < 0 ? problems_error(&problems, args->file, err) : 0;
}

/* The policy that a sandbox has now. */
static int policy_of_sandbox(const char *id, struct policy *ret, struct error *err)
{
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    int r = handle_open(&h, id, err);

    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op = atoll_inspect(h.sandbox);
    r = handle_wait(&h, op, err);
    if (r < 0)
        return r;
    const char *network = atoll_op_info(op, 0)->network;
    if (network)
        return policy_stamp_decode(network, strlen(network), ret, err);
    error_set(err, ERROR_USAGE, ENODATA, "sandbox %s does not tell what it may reach", id);
    return error_remedy(err, "Ask about the spec that it was created with: --spec FILE");
}

/* A sandbox tells its lists alone; a sentence must not say more than is known. */
static void tell_unknown(const struct policy *p, const struct policy_destination *to,
                         struct policy_decision *d)
{
    size_t n = strlen(d->explanation);

    if (to->by_name ? d->allowed : p->open && d->kind == POLICY_RULE_CLASS)
        (void)snprintf(d->explanation + n, sizeof d->explanation - n,
                       "; %s of a running sandbox is not told, and may say otherwise",
                       to->by_name ? "add_hosts" : "private_cidrs");
}

static int explain(struct cli *cli, const struct explain_args *args, const char *id,
                   const char *target, struct error *err)
{
    _cleanup_(policy_done) struct policy policy = {0};
    struct policy_destination to;
    struct policy_decision decision;
    int r = policy_destination_parse(target, strlen(target), &to, err);

    if (r == 0)
        r = id ? policy_of_sandbox(id, &policy, err) : policy_of_spec(&args->spec, &policy, err);
    if (r < 0)
        return r;
    policy_decide(&policy, &to, &decision);
    if (id)
        tell_unknown(&policy, &to, &decision);
    if (args->json)
        r = report_json(cli, target, &decision, err);
    else
        report_text(cli, &decision);
    if (r < 0)
        return r;
    return decision.allowed ? CLI_EXIT_OK : EXIT_NOT_LET_OUT;
}

static int explain_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct explain_args args;
    struct arguments operands;
    int r = command_parse(&cmd_explain, argc, argv, &args, &operands, err);

    if (r == 0)
        r = command_operands(&cmd_explain, &operands, 1, 2, err);
    if (r == 0)
        r = explain(cli, &args, operands.n == 2 ? operands.v[0] : NULL, operands.v[operands.n - 1],
                    err);
    options_done(explain_options, ARRAY_SIZE(explain_options), &args);
    return r;
}

static const struct command_example explain_examples[] = {
    {"atoll explain --allow example.com https://example.com/simple/", "ask about a URL"},
    {"atoll explain --spec agent.yaml 10.0.0.5:5432", "ask about an address"},
    {"atoll explain --spec agent.yaml --json db.example.com:5432 | jq -r .remedy",
     "learn which entry would allow it"},
};

const struct command cmd_explain = {
    .name = "explain",
    .summary = "tell whether a sandbox may reach a destination, and by which rule",
    .usage = "[OPTION]... [ID] URL|HOST:PORT|ADDR:PORT",
    .description =
        "Answers by the network policy of a spec, without making anything, or by that of the "
        "sandbox ID as it is now. The same code decides when a sandbox runs, and its refusals "
        "carry the same explanation.\n\n"
        "A name is allowed with a condition: each address that it turns out to have must be one "
        "that may be connected to. With --add-host the addresses are those that the spec gives.",
    .options = explain_options,
    .n_options = ARRAY_SIZE(explain_options),
    .exit_status = "0 it is let out; 1 it is not; 125 the question or the spec is wrong",
    .examples = explain_examples,
    .n_examples = ARRAY_SIZE(explain_examples),
    .run = explain_run,
};
