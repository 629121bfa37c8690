/* SPDX-License-Identifier: Apache-2.0 */
/* A toolset: settings, secrets, what a model is told, the end. */
#include "toolset/toolset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/spec_copy.h"
#include "core/spec_rules.h"
#include "toolset/describe.h"
#include "toolset/formats.h"
#include "toolset/texts.h"
#include "base/guards.h"

_Static_assert((int)ATOLL_TOOLS_MCP == (int)FORMAT_MCP &&
                   (int)ATOLL_TOOLS_ANTHROPIC == (int)FORMAT_ANTHROPIC &&
                   (int)ATOLL_TOOLS_OPENAI == (int)FORMAT_OPENAI,
               "the header numbers the formats");

/* --- secrets --- */

/* Errors are made printable before they come here, and a secret in them with them. */
static int add_as_shown(struct atoll_toolset *t, const char *secret, size_t len)
{
    _cleanup_free_ char *shown = NULL;

    if (memchr(secret, '\0', len))
        return 0;
    shown = strndup(secret, len);
    if (!shown)
        return -ENOMEM;
    text_make_printable(shown);
    int r = memcmp(shown, secret, len) == 0 ? 0 : mask_add(t->mask, shown, len);
    explicit_bzero(shown, len);
    return r;
}

int toolset_add_secret(struct atoll_toolset *t, const void *secret, size_t len)
{
    if (len < MASK_SECRET_MIN)
        return 0;
    int r = mask_add(t->mask, secret, len);
    return r < 0 ? r : add_as_shown(t, secret, len);
}

int atoll_toolset_mask(struct atoll_toolset *t, const void *secret, size_t len)
{
    return len < MASK_SECRET_MIN ? -EINVAL : toolset_add_secret(t, secret, len);
}

char *toolset_masked(const struct atoll_toolset *t, const char *text, size_t len, size_t *ret_len)
{
    char *masked = NULL;
    size_t n;

    if (mask_text(t->mask, text, len, 0, &masked, &n) < 0)
        return NULL;
    if (ret_len)
        *ret_len = n;
    return masked;
}

/* @room: bytes that the text may have had at most: one that fills them may have lost its end. */
static void mask_into(const struct atoll_toolset *t, const char *text, size_t room, char *buf,
                      size_t size)
{
    size_t len = strlen(text), n;
    _cleanup_free_ char *masked = NULL;

    if (mask_text(t->mask, text, len, len + 1 >= room ? MASK_CUT_END : 0, &masked, &n) < 0)
        masked = NULL;
    (void)snprintf(buf, size, "%s", masked ? masked : "there is no memory to say what happened");
}

void toolset_mask_error(const struct atoll_toolset *t, struct error *err)
{
    mask_into(t, err->context, sizeof err->context, err->context, sizeof err->context);
    mask_into(t, err->message, sizeof err->message, err->message, sizeof err->message);
    mask_into(t, err->remedy, sizeof err->remedy, err->remedy, sizeof err->remedy);
}

void toolset_take_error(const struct atoll_toolset *t, const struct atoll_error *from,
                        enum error_class cls, struct error *ret)
{
    *ret = (struct error){.code = from->code, .cls = cls};
    mask_into(t, from->message, sizeof ret->message, ret->message, sizeof ret->message);
    mask_into(t, from->remedy, sizeof ret->remedy, ret->remedy, sizeof ret->remedy);
}

static int add_secrets(struct atoll_toolset *t)
{
    const struct string_list *env = &t->spec.spec.env, *mask = &t->spec.spec.toolset.mask;
    int r = 0;

    for (size_t i = 0; r == 0 && i < env->n; i++) {
        const char *value = strchr(env->items[i], '=');

        if (value)
            r = toolset_add_secret(t, value + 1, strlen(value + 1));
    }
    for (size_t i = 0; r == 0 && i < mask->n; i++)
        r = toolset_add_secret(t, mask->items[i], strlen(mask->items[i]));
    return r;
}

/* --- what a model is told --- */

const char *toolset_holder(const struct atoll_toolset *t)
{
    const char *owner = t->spec.spec.toolset.owner;

    return t->holder ? t->holder : owner ? owner : "";
}

const char *toolset_prefix(const struct atoll_toolset *t)
{
    const char *prefix = t->spec.spec.toolset.tool_prefix;

    return prefix && prefix[0] != '\0' ? prefix : NULL;
}

/* The description of run_command; the others say nothing that changes. */
static int describe_sandbox(const struct atoll_toolset *t, const struct describe_input *x,
                            char **ret)
{
    _cleanup_free_ char *plain = NULL;

    if (describe_run_command(x, &plain) < 0)
        return -ENOMEM;
    *ret = toolset_masked(t, plain, strlen(plain), NULL);
    return *ret ? 0 : -ENOMEM;
}

int toolset_describe(struct atoll_toolset *t, bool known, const struct policy *policy,
                     int64_t remaining_s, bool endless)
{
    _cleanup_(problems_done) struct problems problems = {0};
    _cleanup_(policy_done) struct policy own = {0};
    struct describe_input x = {
        .prefix = toolset_prefix(t),
        .purpose = t->spec.spec.toolset.purpose,
        .attached = t->attach_to,
        .known = known,
        .policy = policy,
        .remaining_s = remaining_s,
        .lifetime_none = endless,
        .names_resolve = strcmp(t->backend, "local") != 0,
        .exports = &t->spec.spec.toolset.exports,
    };
    char *text = NULL;

    if (!t->attach_to) {
        if (spec_policy(&t->spec.spec, &own, &problems) < 0)
            return -ENOMEM; /* it was judged before */
        x.policy = &own;
    }
    if (describe_sandbox(t, &x, &text) < 0)
        return -ENOMEM;
    free(t->tools[TOOL_RUN_COMMAND].description);
    t->tools[TOOL_RUN_COMMAND].description = text;
    t->tools[TOOL_RUN_COMMAND].told.description = text;
    return 0;
}

/* Those that are not described anew; run_command is, by toolset_describe(). */
static int describe_tool(struct atoll_toolset *t, enum tool_id id)
{
    const char *purpose = t->spec.spec.toolset.purpose, *fixed = tools[id].description;
    const char *more = id == TOOL_READ_FILE && t->answers_bytes ? " " TEXT_READ_FILE_BYTES : "";
    _cleanup_free_ char *masked = NULL;
    char *text = NULL;
    int n;

    if (purpose && !(masked = toolset_masked(t, purpose, strlen(purpose), NULL)))
        return -ENOMEM;
    n = masked ? asprintf(&text, TEXT_PURPOSE "\n\n%s%s", masked, fixed, more)
               : asprintf(&text, "%s%s", fixed, more);
    if (n < 0)
        return -ENOMEM;
    t->tools[id].description = text;
    return 0;
}

static bool is_asked_for(const struct atoll_toolset *t, enum tool_id id)
{
    const struct string_list *asked = &t->spec.spec.toolset.tools;

    for (size_t i = 0; i < asked->n; i++)
        if (strcmp(asked->items[i], tools[id].name) == 0)
            return true;
    return id < TOOL_OPTIONAL;
}

static int name_tools(struct atoll_toolset *t)
{
    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        struct toolset_tool *x = &t->tools[id];

        tool_name(id, toolset_prefix(t), x->name);
        x->given = is_asked_for(t, id);
        x->schema = tool_schema_json(id);
        if (!x->schema || describe_tool(t, id) < 0)
            return -ENOMEM;
        x->told = (struct atoll_tool){
            .name = x->name,
            .description = x->description,
            .schema = x->schema,
            .output_schema = tools[id].output,
            .code_argument = tools[id].code_argument,
            .code_language = tools[id].code_language,
            .sequential = true,
            .retries = TOOL_RETRIES,
        };
    }
    return toolset_describe(t, false, NULL, -1, false);
}

const struct atoll_tool *atoll_toolset_tool(const struct atoll_toolset *t, size_t i)
{
    for (enum tool_id id = 0; id < TOOL__MAX; id++)
        if (t->tools[id].given && i-- == 0)
            return &t->tools[id].told;
    return NULL;
}

char *atoll_toolset_render(const struct atoll_toolset *t, int format)
{
    struct format_tool items[TOOL__MAX];
    size_t n = 0;

    if (format < 0 || format >= FORMAT__MAX)
        return NULL;
    for (enum tool_id id = 0; id < TOOL__MAX; id++)
        if (t->tools[id].given)
            items[n++] = (struct format_tool){
                .id = id, .name = t->tools[id].name, .description = t->tools[id].told.description};
    return format_tools((enum tool_format)format, items, n);
}

const char *atoll_toolset_id(const struct atoll_toolset *t)
{
    return t->id;
}

const char *atoll_toolset_sandbox(const struct atoll_toolset *t)
{
    return t->sb && t->state != TOOLSET_OPENING && t->sb->session.state != SESSION_OVER
               ? atoll_sandbox_id(t->sb)
               : NULL;
}

const char *atoll_toolset_note(const struct atoll_op *op, size_t i)
{
    const char *note = opening_note(op, i);

    return note ? note : close_note(op, i);
}

/* --- making one --- */

/* Whether anything is said of a new sandbox, which a standing one cannot follow. */
static bool asks_for_one(const struct atoll_spec *s)
{
    const struct spec *x = &s->spec;

    /* Of a text that was read it is not known which fields it had. */
    if (s->given != UINT64_MAX && s->given & spec_section_bits(SPEC_SECTION_SPEC))
        return true;
    return x->env.n > 0 || !x->block_network || x->allow_egress_to.n > 0 ||
           x->allow_egress_to_cidrs.n > 0 || x->private_cidrs.n > 0 || x->owner;
}

/* Judges what must hold between the fields. */
static int judge(struct atoll_toolset *t, const struct atoll_spec *asked, struct error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    const uint64_t bits = spec_section_bits(SPEC_SECTION_SPEC);
    struct spec_filling f = {
        .spec = &t->spec.spec, .problems = &problems, .given = asked->given & ~bits};

    if (asks_for_one(asked))
        f.given |= bits;
    spec_finish(&f);
    return problems_error(&problems, NULL, err);
}

static int set_backend(struct atoll_toolset *t, struct error *err)
{
    const char *prefix = toolset_prefix(t);
    char backend[BACKEND_NAME_BYTES_MAX + 1];

    if (!t->attach_to)
        (void)snprintf(t->backend, sizeof t->backend, "%s", t->spec.spec.backend);
    else if (sandbox_id_split(t->attach_to, backend))
        memcpy(t->backend, backend, sizeof t->backend);
    else
        return error_set(err, ERROR_USAGE, EINVAL, "'%.100s' is no sandbox's id", t->attach_to);
    if (asprintf(&t->id, "sandbox-%s%s%s", t->backend, prefix ? "-" : "", prefix ? prefix : "") < 0)
        t->id = NULL;
    return t->id ? 0 : -ENOMEM;
}

/* A model tells tools apart by their names alone. */
static int check_names(const struct atoll_toolset *t, const struct atoll_toolset *beside,
                       struct error *err)
{
    const struct atoll_toolset *x = beside;

    do {
        const struct atoll_tool *own, *other;

        for (size_t i = 0; (own = atoll_toolset_tool(t, i)); i++)
            for (size_t j = 0; (other = atoll_toolset_tool(x, j)); j++)
                if (strcmp(own->name, other->name) == 0) {
                    (void)error_set(err, ERROR_USAGE, EEXIST,
                                    "two toolsets of this agent have a tool '%s'", own->name);
                    return error_remedy(err, "Give one of them a toolset.tool_prefix");
                }
        x = x->beside;
    } while (x != beside);
    return 0;
}

/* Whom a run is for, as far as the caller says it. */
static int set_options(struct atoll_toolset *t, const struct atoll_toolset_options *options,
                       struct error *err)
{
    if (!options)
        return 0;
    t->answers_bytes = options->bytes;
    t->keep_us = options->keep_us;
    t->lease = options->lease;
    if (!options->holder)
        return 0;
    if (options->holder[0] == '\0' || strlen(options->holder) > LIMIT_TEXT_BYTES) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "a holder has 1 to %d bytes", LIMIT_TEXT_BYTES);
        return error_remedy(err, "Name the task, as DAG/RUN/TASK, or leave it out");
    }
    t->holder = strdup(options->holder);
    return t->holder ? 0 : -ENOMEM;
}

static int fill(struct atoll_toolset *t, const struct atoll_spec *spec,
                const struct atoll_toolset_options *options, struct error *err)
{
    const char *sandbox =
        options && options->sandbox ? options->sandbox : spec->spec.toolset.attach_to;
    uint64_t fields = sandbox ? spec_section_bits(SPEC_SECTION_TOOLSET) : UINT64_MAX;
    int r;

    t->mask = mask_new();
    t->attach_to = sandbox ? strdup(sandbox) : NULL;
    if (!t->mask || (sandbox && !t->attach_to) || spec_copy(&spec->spec, fields, &t->spec.spec) < 0)
        return -ENOMEM;
    t->spec.given = sandbox ? 0 : spec->given;
    t->spec.spec.owned = !sandbox;
    r = set_options(t, options, err);
    if (r == 0)
        r = judge(t, spec, err);
    if (r == 0)
        r = set_backend(t, err);
    if (r == 0)
        r = add_secrets(t);
    if (r == 0)
        r = name_tools(t);
    if (r == 0 && options && options->beside)
        r = check_names(t, options->beside, err);
    return r;
}

static void destroy(struct atoll_toolset *t)
{
    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        free(t->tools[id].description);
        free(t->tools[id].schema);
    }
    spec_done(&t->spec.spec);
    mask_free(t->mask);
    free(t->attach_to);
    free(t->holder);
    free(t->id);
    free(t);
}

int atoll_toolset_new(struct atoll *a, const struct atoll_spec *spec,
                      const struct atoll_toolset_options *options, struct atoll_toolset **ret,
                      struct atoll_error *err)
{
    struct atoll_toolset *t = calloc(1, sizeof *t), *beside;
    struct error e = ERROR_INIT;
    int r = t ? fill(t, spec, options, &e) : -ENOMEM;

    if (r < 0) {
        if (e.code == 0)
            (void)error_set(&e, ERROR_TERMINAL, ENOMEM, "out of memory");
        if (t && t->mask)
            toolset_mask_error(t, &e);
        if (t)
            destroy(t);
        return api_error(err, &e);
    }
    t->a = a;
    t->last = &t->calls;
    t->ends_us = UINT64_MAX;
    t->beside = t;
    if (options && options->beside) {
        beside = (struct atoll_toolset *)(uintptr_t)options->beside;
        t->beside = beside->beside;
        beside->beside = t;
    }
    *ret = t;
    return 0;
}

void atoll_toolset_free(struct atoll_toolset *t)
{
    struct error err = ERROR_INIT;
    struct atoll_toolset *x = t;

    if (!t)
        return;
    (void)error_set(&err, ERROR_RECOVERABLE, ECANCELED, "the operation was cancelled");
    t->state = TOOLSET_CLOSED;
    calls_fail(t, &err);
    close_abandon(t);
    provision_stop(t);
    provision_drop(t);
    while (x->beside != t)
        x = x->beside;
    x->beside = t->beside;
    destroy(t);
}
