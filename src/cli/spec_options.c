/* SPDX-License-Identifier: Apache-2.0 */
/* A spec from the command line: the file first, then what the options change in it. */
#include "cli/spec_options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/spec_file.h"
#include "core/spec_rules.h"
#include "core/spec_set.h"
#include "base/guards.h"

/* The rows once more, to follow them when a spec is filled: offsets are those in the structs alone.
 */
struct alone {
    struct spec_args args;
};
struct toolset_alone {
    struct toolset_args args;
};
struct export_alone {
    struct export_args args;
};
_Static_assert(offsetof(struct alone, args) == 0, "offsets would not be those of struct spec_args");
_Static_assert(offsetof(struct toolset_alone, args) == 0, "the same of struct toolset_args");
_Static_assert(offsetof(struct export_alone, args) == 0, "the same of struct export_args");

static const struct option spec_rows[] = {SPEC_OPTIONS(struct alone, args)};
static const struct option toolset_rows[] = {TOOLSET_OPTIONS(struct toolset_alone, args)};
static const struct option export_rows[] = {EXPORT_OPTIONS(struct export_alone, args)};

enum { LINES_MAX_BYTES = 1 << 20 };

enum { SPELLED_MAX = 64, PLACE_MAX = 320 };

/* What is being put together, and from where it comes. */
struct applying {
    const struct spec_args *args;
    const void *base; /* of the rows that are followed now: args, or a struct toolset_args */
    char *const *callers_env;
    struct spec_filling f;
    uint64_t own_lifetime_us;
    uint64_t from_file;    /* fields whose value is the file's, wholly or in part */
    uint64_t from_options; /* the same of options */
};

static const void *at(const struct applying *a, size_t offset)
{
    return (const char *)a->base + offset;
}

/* The field that an option sets, or SPEC_FIELD__MAX. */
static enum spec_field_id field_of(const struct option *o)
{
    enum spec_field_id id = 0;

    while (id < SPEC_FIELD__MAX &&
           (!spec_fields[id].option || strcmp(spec_fields[id].option, o->name) != 0))
        id++;
    return id;
}

static void reset(struct applying *a, enum spec_field_id id)
{
    if (!spec_reset(&a->f, id))
        return;
    if (id == SPEC_FIELD_SANDBOX_TIMEOUT)
        a->f.spec->lifetime_us = a->own_lifetime_us;
    a->from_file &= ~spec_field_bit(id);
}

static void apply_value(struct applying *a, const struct option *o, enum spec_field_id id)
{
    char spelled[SPELLED_MAX];

    (void)snprintf(spelled, sizeof spelled, "--%s", o->name);
    switch (o->kind) {
    case OPTION_FLAG:
        assert(id == SPEC_FIELD_BLOCK_NETWORK); /* the one that says the opposite of its field */
        spec_set_bool(&a->f, id, false);
        break;
    case OPTION_SIZE:
    case OPTION_DURATION:
    case OPTION_NUMBER:
        spec_set_number(&a->f, id, *(const uint64_t *)at(a, o->offset));
        break;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        (void)spec_set(&a->f, id, spelled, *(const char *const *)at(a, o->offset));
        break;
    case OPTION_LIST:
        break;
    }
    a->from_file &= ~spec_field_bit(id);
    a->from_options |= spec_field_bit(id);
}

/* Variables from files */

static void apply_env_line(struct applying *a, const char *where, const char *line, size_t len)
{
    const struct position nowhere = {0};
    _cleanup_free_ char *text = NULL;

    if (len == 0 || line[0] == '#')
        return;
    if (memchr(line, '\0', len)) {
        problems_add(a->f.problems, where, nowhere, "Write the file as text",
                     "the line has a NUL in it, which no variable can hold");
    } else if (line[len - 1] == '\r') {
        problems_add(a->f.problems, where, nowhere,
                     "Save the file with line ends of LF alone, not CR LF",
                     "the line ends with a carriage return");
    } else if (!memchr(line, '=', len)) {
        problems_add(a->f.problems, where, nowhere, "Write NAME=VALUE; -e NAME inherits a value",
                     "there is no '=' in the line");
    } else {
        text = strndup(line, len);
        if (text)
            (void)spec_set_env(&a->f, where, text, NULL);
        else
            a->f.problems->no_memory = true;
    }
}

/* One line of a file; @where is "FILE:LINE". */
typedef void (*take_line_fn)(struct applying *a, const char *where, const char *line, size_t len);

/* @what: for errors: "env file" */
static int apply_lines(struct applying *a, const char *path, const char *what, take_line_fn take,
                       struct error *err)
{
    _cleanup_free_ char *text = NULL;
    char where[PLACE_MAX];
    size_t len;
    int r = spec_read_bytes(path, what, LINES_MAX_BYTES, &text, &len, NULL, err);

    if (r < 0)
        return r;
    const char *line = text, *end = text + len;
    for (unsigned number = 1; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        stop = stop ? stop : end;
        (void)snprintf(where, sizeof where, "%.280s:%u", path, number);
        take(a, where, line, (size_t)(stop - line));
        line = stop + 1;
    }
    return 0;
}

/* Texts that a model must not see: named on the command line, and never written there */

static void mask_line(struct applying *a, const char *where, const char *line, size_t len)
{
    const struct position nowhere = {0};
    _cleanup_free_ char *text = NULL;

    if (len > 0 && line[len - 1] == '\r') /* written elsewhere; the secret ends before it */
        len--;
    if (len == 0)
        return;
    if (memchr(line, '\0', len)) {
        problems_add(a->f.problems, where, nowhere, "Write the file as text",
                     "the line has a NUL in it, and so can only be masked in part");
        return;
    }
    text = strndup(line, len);
    if (text)
        (void)spec_set(&a->f, SPEC_FIELD_MASK, where, text);
    else
        a->f.problems->no_memory = true;
}

static int mask_file(struct applying *a, const char *path, struct error *err)
{
    const size_t before = a->f.spec->toolset.mask.n, wrong = a->f.problems->n;
    char where[PLACE_MAX];
    int r = apply_lines(a, path, "mask file", mask_line, err);

    if (r == 0 && a->f.spec->toolset.mask.n == before && a->f.problems->n == wrong) {
        (void)snprintf(where, sizeof where, "--mask @%.280s", path);
        problems_add(a->f.problems, where, (struct position){0}, "Write each text on its own line",
                     "there is nothing in the file that could be masked");
    }
    return r;
}

/* As the sandbox has it, or else as the caller has it. */
static void mask_variable(struct applying *a, const char *name)
{
    const struct position nowhere = {0};
    const struct string_list *own = &a->f.spec->env;
    const char *value = own->n > 0 ? env_get(own->items, name) : NULL;
    char where[PLACE_MAX];

    if (!env_is_name(name, strlen(name))) { /* perhaps it is the secret itself: not shown */
        problems_add(a->f.problems, "--mask", nowhere,
                     "Name the variable whose value is to be masked, or write @FILE",
                     "what it was given is not the name of a variable");
        return;
    }
    if (!value)
        value = env_get(a->callers_env, name);
    (void)snprintf(where, sizeof where, "--mask %.64s", name);
    if (value)
        (void)spec_set(&a->f, SPEC_FIELD_MASK, where, value);
    else
        problems_add(a->f.problems, where, nowhere, "Set it, or write @FILE",
                     "there is no variable %.64s, neither here nor in the sandbox", name);
}

static int apply_list(struct applying *a, const struct option *o, enum spec_field_id id,
                      struct error *err)
{
    const struct text_list *list = at(a, o->offset);
    const struct text_list *files = id == SPEC_FIELD_ENV ? &a->args->env_files : NULL;
    char spelled[SPELLED_MAX];
    int r = 0;

    if (list->reset)
        reset(a, id);
    for (size_t i = 0; r == 0 && files && i < files->n; i++)
        r = apply_lines(a, files->items[i], "env file", apply_env_line, err);
    (void)snprintf(spelled, sizeof spelled, "--%s", o->name);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        const char *item = list->items[i];

        if (id == SPEC_FIELD_ENV)
            (void)spec_set_env(&a->f, spelled, item, a->callers_env);
        else if (id == SPEC_FIELD_MASK && item[0] == '@')
            r = mask_file(a, item + 1, err);
        else if (id == SPEC_FIELD_MASK)
            mask_variable(a, item);
        else
            (void)spec_set(&a->f, id, spelled, item);
        a->from_options |= spec_field_bit(id);
    }
    return r;
}

static int apply_options(struct applying *a, const struct option *rows, size_t n, const void *base,
                         struct error *err)
{
    int r = 0;

    a->base = base;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct option *o = &rows[i];
        const enum spec_field_id id = field_of(o);

        if (id == SPEC_FIELD__MAX) /* --spec, --env-file */
            continue;
        if (o->kind == OPTION_LIST) {
            r = apply_list(a, o, id, err);
            continue;
        }
        const enum option_state state = *(const enum option_state *)at(a, o->state);
        if (state == OPTION_RESET)
            reset(a, id);
        else if (state == OPTION_GIVEN)
            apply_value(a, o, id);
    }
    return r;
}

/* Problems of the whole bear the path of a field. One that came from an option is named by it. */
static void name_options(const struct applying *a)
{
    for (size_t i = 0; i < a->f.problems->n; i++) {
        struct problem *x = &a->f.problems->items[i];
        const char *rest;
        enum spec_field_id id = spec_field_at(x->field, &rest);
        char *name;

        if (x->at.line > 0 || id == SPEC_FIELD__MAX || !(a->from_options & spec_field_bit(id)))
            continue;
        if (asprintf(&name, "--%s", spec_fields[id].option) < 0)
            continue; /* the field's name does too */
        free(x->field);
        x->field = name;
    }
}

/* @toolset and @exports: NULL without such options. */
static int apply_all(const struct spec_args *args, const struct toolset_args *toolset,
                     const struct export_args *exports, char *const callers_env[],
                     struct spec *spec, uint64_t *ret_given, struct problems *problems,
                     struct error *err)
{
    _cleanup_(spec_file_done) struct spec_file file = {0};
    struct applying a = {.args = args,
                         .callers_env = callers_env,
                         .f = {.spec = spec, .problems = problems},
                         .own_lifetime_us = spec->lifetime_us};
    int r = args->file ? spec_file_open(args->file, "spec file", &file, err) : 0;

    if (r < 0)
        return r;
    spec_file_fill(&file, &a.f);
    a.from_file = a.f.given;
    r = apply_options(&a, spec_rows, ARRAY_SIZE(spec_rows), args, err);
    if (r == 0 && toolset)
        r = apply_options(&a, toolset_rows, ARRAY_SIZE(toolset_rows), toolset, err);
    if (r == 0 && exports)
        r = apply_options(&a, export_rows, ARRAY_SIZE(export_rows), exports, err);
    if (r < 0)
        return r;
    spec_finish(&a.f);
    spec_file_place(&file, a.from_file, problems);
    name_options(&a);
    *ret_given = a.from_file | a.from_options;
    return problems_error(problems, file.name, err);
}

int spec_args_apply_toolset(const struct spec_args *args, const struct toolset_args *toolset,
                            const struct export_args *exports, char *const callers_env[],
                            struct spec *spec, uint64_t *ret_given, struct problems *problems,
                            struct error *err)
{
    return apply_all(args, toolset, exports, callers_env, spec, ret_given, problems, err);
}

int spec_args_apply_exports(const struct spec_args *args, const struct export_args *exports,
                            char *const callers_env[], struct spec *spec, struct problems *problems,
                            struct error *err)
{
    uint64_t given;

    return apply_all(args, NULL, exports, callers_env, spec, &given, problems, err);
}

int spec_args_apply(const struct spec_args *args, char *const callers_env[], struct spec *spec,
                    struct problems *problems, struct error *err)
{
    uint64_t given;

    return apply_all(args, NULL, NULL, callers_env, spec, &given, problems, err);
}
