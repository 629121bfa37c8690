/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of backends: their tables of rules as tables for people. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/reference.h"
#include "core/backend_tables.h"
#include "base/guards.h"

/* The conditions of rules, to follow "when"; %s: the rule's number or text. */
static const char *const conditions[] = {
    [WHEN_ALWAYS] = "",
    [WHEN_DEFAULT] = "it has its default",
    [WHEN_ZERO] = "there is to be none",
    [WHEN_BELOW] = "it is below %s",
    [WHEN_ABOVE] = "it is above %s",
    [WHEN_NOT_WHOLE] = "it is no multiple of %s",
    [WHEN_TEXT] = "it is '%s'",
    [WHEN_PREFIX] = "it begins with '%s'",
    [WHEN_MORE] = "there are more than %s",
    [WHEN_NAMES] = "one is called %s",
    [WHEN_OTHER_NAMES] = "one of the names is none of %s",
    [WHEN_NOT_LABELS] = "one is no label of Kubernetes",
    [WHEN_PORTS] = "one has a port",
    [WHEN_IPV6] = "one is of IPv6",
    [WHEN_PRIVATE] = "one is of a private network or of the host",
    [WHEN_NOT_FILES] = "one is no file:// URL",
    [WHEN_OPEN] = "spec.block_network is false",
    [WHEN_LISTED] = "hosts or ranges are listed",
    [WHEN_BLOCKED] = "spec.block_network is true",
    [WHEN_CONTRADICTED] = "the network fields contradict each other",
    [WHEN_IDLE_SET] = "backend.idle_timeout is set",
    [WHEN_OUTLIVES] = "it is above backend.sandbox_timeout",
    [WHEN_UNPRICED] = "backend.prices is unset",
    [WHEN_NO_MACHINE] = "cpu, memory and disk are none of %s (CPUs/GiB/GiB)",
    [WHEN_LACKS] = "the backend has not the feature %s",
    [WHEN_UNDECLARED] = "its operator has not declared %s",
};
_Static_assert(ARRAY_SIZE(conditions) == WHEN__MAX, "one phrase a condition");

static const char *const facts[] = {
    [FACT_NAMES_SUFFICE] = "egress_enforcement=sni",
    [FACT_HOST_DENIES_ALL] = "host_network_policy=deny-all",
    [FACT_NETWORK_POLICY] = "network_enforcement=networkpolicy or cilium",
    [FACT_NAME_POLICY] = "network_enforcement=cilium",
};
_Static_assert(ARRAY_SIZE(facts) == FACT__MAX, "one word a fact");

/* The rule's number as its field counts. */
static void number_text(char buf[PRINT_UNIT_MAX], const struct capability_rule *r)
{
    const struct spec_field *x = &spec_fields[r->field];

    if (x->kind == SPEC_SIZE)
        print_size_text(buf, r->number);
    else if (x->kind == SPEC_DURATION)
        print_duration_text(buf, r->number);
    else
        (void)snprintf(buf, PRINT_UNIT_MAX, "%.12g",
                       (double)r->number / (x->kind == SPEC_DECIMAL ? (double)x->scale : 1));
}

/* Writes what stands for %s in the condition of @r. */
static void write_operand(FILE *f, const struct capability_rule *r)
{
    char number[PRINT_UNIT_MAX];

    if (r->when == WHEN_LACKS) {
        reference_text(f, capability_feature_name((enum capability_feature)r->number));
    } else if (r->when == WHEN_UNDECLARED) {
        reference_text(f, facts[r->number]);
    } else if (r->text) {
        reference_text(f, r->text);
    } else {
        number_text(number, r);
        reference_text(f, number);
    }
}

static void write_condition(FILE *f, const struct capability_rule *r)
{
    const char *phrase = conditions[r->when], *operand = strstr(phrase, "%s");

    if (!operand) {
        fputs(phrase, f);
        return;
    }
    fprintf(f, "%.*s", (int)(operand - phrase), phrase);
    write_operand(f, r);
    fputs(operand + 2, f);
}

static void write_rule(FILE *f, const struct capability_rule *r)
{
    char path[SPEC_PATH_MAX];

    spec_field_path(r->field, path);
    fprintf(f, "| `%s` | ", path);
    write_condition(f, r);
    fprintf(f, " | %s | ", capability_verdict_name(r->verdict));
    reference_sentence(f, r->how);
    if (r->by) {
        fputs(" By ", f);
        reference_text(f, r->by);
        putc('.', f);
    }
    if (r->remedy) {
        putc(' ', f);
        reference_sentence(f, r->remedy);
    }
    if (r->documented)
        fputs(" (By its documentation alone.)", f);
    fputs(" |\n", f);
}

static void write_rules(FILE *f, const struct capability_rule *rules, size_t n)
{
    fputs("\n| field | when | verdict | how, or why not and what to do |\n|---|---|---|---|\n", f);
    for (enum spec_field_id id = 0; id < SPEC_FIELD__MAX; id++)
        for (size_t i = 0; i < n; i++)
            if (rules[i].field == id)
                write_rule(f, &rules[i]);
}

/* What can be known of a condition without a spec. */
enum chance { NEVER, MAYBE, CERTAIN };

static enum chance chance_of(const struct capability_rule *r, const struct capability *c)
{
    if (r->when == WHEN_ALWAYS)
        return CERTAIN;
    if (r->when == WHEN_LACKS)
        return c->features >> r->number & 1 ? NEVER : CERTAIN;
    /* Nobody asked for anything, or for what makes no sense anywhere. */
    if (r->when == WHEN_DEFAULT || r->when == WHEN_ZERO || r->when == WHEN_CONTRADICTED)
        return NEVER;
    return MAYBE;
}

/* Adds the verdicts that a list of rules may give for a field; false: others may follow. */
static bool add_verdicts(const struct capability_rule *rules, size_t n, const struct capability *c,
                         enum spec_field_id id, unsigned *verdicts)
{
    for (size_t i = 0; i < n; i++) {
        enum chance chance = rules[i].field == id ? chance_of(&rules[i], c) : NEVER;

        if (chance != NEVER)
            *verdicts |= 1u << rules[i].verdict;
        if (chance == CERTAIN)
            return true;
    }
    return false;
}

static const char *cell(const struct capability *c, enum spec_field_id id)
{
    unsigned verdicts = 0;

    if (!add_verdicts(backend_common_rules, backend_common_n_rules, c, id, &verdicts) &&
        !add_verdicts(c->rules, c->n_rules, c, id, &verdicts))
        verdicts |= 1u << CAPABILITY_REFUSED; /* a field without a rule */
    for (enum capability_verdict v = 0; v < CAPABILITY_VERDICT__MAX; v++)
        if (verdicts == 1u << v)
            return capability_verdict_name(v);
    return "depends";
}

static void write_head(FILE *f, const char *what)
{
    fprintf(f, "\n| %s |", what);
    for (size_t i = 0; backend_known(i); i++)
        fprintf(f, " %s |", backend_known(i)->name);
    fputs("\n|---|", f);
    for (size_t i = 0; backend_known(i); i++)
        fputs("---|", f);
    putc('\n', f);
}

static void write_fields(FILE *f)
{
    fputs(
        "\n## Fields\n\n"
        "*depends*: on the value, on other fields or on what the operator has declared; the rules "
        "below say how.\n",
        f);
    write_head(f, "field");
    for (enum spec_field_id id = 0; id < SPEC_FIELD__MAX; id++) {
        char path[SPEC_PATH_MAX];

        if (id == SPEC_FIELD_NAME)
            continue;
        spec_field_path(id, path);
        fprintf(f, "| `%s` |", path);
        for (size_t i = 0; backend_known(i); i++)
            fprintf(f, " %s |", cell(&backend_known(i)->capability, id));
        putc('\n', f);
    }
}

static void write_features(FILE *f)
{
    fputs("\n## Features\n\nWhat a backend can do besides making and ending sandboxes. With "
          "`lease` an "
          "attach is one decision of whoever keeps the sandbox, a lock. With `tags` alone it is "
          "weaker (attach: by tags, read back; not a lock): two that attach in the same moment may "
          "both believe that they have it.\n",
          f);
    write_head(f, "feature");
    for (enum capability_feature x = 0; x < FEATURE__MAX; x++) {
        fprintf(f, "| `%s` |", capability_feature_name(x));
        for (size_t i = 0; backend_known(i); i++)
            fputs(backend_known(i)->capability.features >> x & 1 ? " yes |" : " |", f);
        putc('\n', f);
    }
}

void reference_backends(FILE *f, const struct command *const *table)
{
    (void)table;
    fputs(
        "# Backends\n\nWritten by `atoll reference backends`.\n\n"
        "A backend makes sandboxes. Of a spec it enforces what it can, keeps what needs no "
        "enforcing, and refuses the rest: nothing is ignored and nothing is weakened. `atoll check "
        "--backend NAME` says it of one spec.\n\n"
        "- **enforced**: something holds the sandbox to it\n"
        "- **accepted**: kept, recorded or passed on; nothing holds the sandbox to it\n"
        "- **refused**: an error before anything is made\n",
        f);
    fputs("\n| backend | state | what it is |\n|---|---|---|\n", f);
    for (size_t i = 0; backend_known(i); i++)
        fprintf(f, "| [`%s`](#%s) | %s | %s |\n", backend_known(i)->name, backend_known(i)->name,
                backend_state_name(backend_known(i)->state), backend_known(i)->summary);
    fputs(
        "\nOn one that is *known* nothing can run: its rules are here so that a spec can be "
        "checked "
        "against them. Anybody can add a backend, as a program `atoll-backend-NAME` on the `PATH` "
        "that speaks the [sandbox protocol](../design/protocol.md) and states rules like these "
        "itself; it wins over a name that is only known.\n",
        f);
    write_fields(f);
    write_features(f);
    fputs("\n## Rules\n\nOf a field the first rule decides whose condition holds. A field without "
          "one "
          "is refused, since nobody vouches for it.\n\n### all backends\n\nLooked at first.\n",
          f);
    write_rules(f, backend_common_rules, backend_common_n_rules);
    for (size_t i = 0; backend_known(i); i++) {
        fprintf(f, "\n### %s\n", backend_known(i)->name);
        write_rules(f, backend_known(i)->capability.rules, backend_known(i)->capability.n_rules);
    }
}
