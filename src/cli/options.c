/* SPDX-License-Identifier: Apache-2.0 */
/* Options: a cursor that splits arguments into tokens, and the storing of a token by its row. */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/print.h"
#include "base/guards.h"

enum { NAMES_MAX = 128 }; /* options of one table that are looked at for a nearest name */

const struct option option_help = {
    .name = "help", .letter = 'h', .help = "print this help", .kind = OPTION_FLAG};

struct cursor {
    const struct option *options;
    size_t n;
    const struct arguments *in;
    int at;             /* next argument */
    unsigned operands;  /* seen so far */
    const char *bundle; /* rest of an argument of short options, or NULL */
};

struct token {
    const struct option *option; /* NULL: an operand */
    const char *value;           /* the option's argument or the operand */
    bool reset;                  /* --no-name */
    char spelled[64];            /* the option as it was written: "--disk", "-w" */
};

static const struct option *find_name(const struct cursor *c, const char *name, size_t len)
{
    for (size_t i = 0; i < c->n; i++)
        if (strlen(c->options[i].name) == len && memcmp(c->options[i].name, name, len) == 0)
            return &c->options[i];
    if (len == strlen(option_help.name) && memcmp(name, option_help.name, len) == 0)
        return &option_help;
    return NULL;
}

static const struct option *find_letter(const struct cursor *c, char letter)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->options[i].letter != 0 && c->options[i].letter == letter)
            return &c->options[i];
    return letter == option_help.letter ? &option_help : NULL;
}

/* The option that is most likely meant: a slip of the finger, or the only one that begins so. */
static const char *nearest_name(const struct cursor *c, const char *word)
{
    const char *names[NAMES_MAX];
    const char *found = NULL;
    size_t n = 0, begin = 0, len = strlen(word);

    names[n++] = option_help.name;
    for (size_t i = 0; i < c->n && n < NAMES_MAX; i++)
        if (!c->options[i].hidden)
            names[n++] = c->options[i].name;
    for (size_t i = 0; i < n && len > 0; i++)
        if (strncmp(names[i], word, len) == 0) {
            found = names[i];
            begin++;
        }
    return begin == 1 ? found : text_nearest(word, names, n);
}

static int unknown_name(const struct cursor *c, const char *name, size_t len, struct error *err)
{
    bool no = strncmp(name, "no-", 3) == 0 && len > 3;
    char word[64];
    const char *nearest;

    error_set(err, ERROR_USAGE, EINVAL, "unknown option --%.*s", len > 80 ? 80 : (int)len, name);
    error_remedy(err, "--help lists the options");
    if (len >= sizeof word)
        return -err->code;
    memcpy(word, name, len);
    word[len] = '\0';
    nearest = nearest_name(c, word);
    if (nearest)
        return error_remedy(err, "The nearest one is --%s", nearest);
    nearest = no ? nearest_name(c, word + 3) : NULL;
    if (nearest && strcmp(nearest, option_help.name) != 0)
        return error_remedy(err, "The nearest one is --no-%s", nearest);
    return -err->code;
}

/* @word is the whole argument: "-itq". */
static int unknown_letter(const struct cursor *c, const char *word, char letter, struct error *err)
{
    const struct option *meant = find_name(c, word + 1, strcspn(word + 1, "="));
    bool alone = word[2] == '\0' || letter <= ' ' || letter > '~';

    if (alone)
        error_set(err, ERROR_USAGE, EINVAL, "unknown option %.80s", word);
    else
        error_set(err, ERROR_USAGE, EINVAL, "unknown option -%c in %.80s", letter, word);
    if (meant)
        return error_remedy(err, "A long option has two dashes: --%s", meant->name);
    return error_remedy(err, "--help lists the options");
}

static int unwanted_value(const struct token *t, const char *value, struct error *err)
{
    return error_set(err, ERROR_USAGE, EINVAL, "%s takes no argument, but was given \"%.80s\"",
                     t->spelled, value);
}

/* "a, b, c" */
static void choices_text(const struct option *o, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    for (size_t i = 0; o->choices[i] && at < size; i++) {
        int len = snprintf(buf + at, size - at, "%s%s", i > 0 ? ", " : "", o->choices[i]);

        at += len > 0 ? (size_t)len : 0;
    }
}

static int no_value(const struct token *t, struct error *err)
{
    const bool choice = t->option->kind == OPTION_CHOICE;
    char all[OPTION_TEXT_MAX];

    if (choice)
        choices_text(t->option, all, sizeof all);
    return error_set(err, ERROR_USAGE, EINVAL, "%s needs an argument: %s%s", t->spelled,
                     choice ? "one of " : "", choice ? all : t->option->arg);
}

/* The argument of an option that has not been given with it: the next word. */
static int value_from_next(struct cursor *c, struct token *t, struct error *err)
{
    const char *next = c->at < c->in->n ? c->in->v[c->at] : NULL;

    if (!next || strcmp(next, "--") == 0)
        return no_value(t, err);
    t->value = next;
    c->at++;
    return 1;
}

/* "--name", "--name=value", "--no-name"; a name of the table that begins with "no-" comes first. */
static int next_long(struct cursor *c, const char *name, struct token *t, struct error *err)
{
    size_t len = strcspn(name, "=");
    const char *value = name[len] == '=' ? name + len + 1 : NULL;

    t->option = find_name(c, name, len);
    if (!t->option && len > 3 && strncmp(name, "no-", 3) == 0) {
        t->option = find_name(c, name + 3, len - 3);
        t->reset = t->option != NULL;
        if (t->option == &option_help)
            t->option = NULL;
    }
    if (!t->option)
        return unknown_name(c, name, len, err);
    (void)snprintf(t->spelled, sizeof t->spelled, "--%s%s", t->reset ? "no-" : "", t->option->name);
    t->value = value;
    if (t->reset || t->option->kind == OPTION_FLAG)
        return value ? unwanted_value(t, value, err) : 1;
    return value ? 1 : value_from_next(c, t, err);
}

/* One letter of "-x", "-xvalue" or "-itx". */
static int next_letter(struct cursor *c, struct token *t, struct error *err)
{
    const char *word = c->in->v[c->at - 1];
    char letter = *c->bundle++;
    const char *rest = c->bundle;

    if (*rest == '\0')
        c->bundle = NULL;
    t->option = find_letter(c, letter);
    if (!t->option)
        return unknown_letter(c, word, letter, err);
    (void)snprintf(t->spelled, sizeof t->spelled, "-%c", letter);
    if (t->option->kind == OPTION_FLAG)
        return *rest == '=' ? unwanted_value(t, rest + 1, err) : 1;
    c->bundle = NULL;
    if (*rest == '\0')
        return value_from_next(c, t, err);
    if (*rest == '=') { /* "-w=/tmp" would mean "=/tmp", which nobody means */
        error_set(err, ERROR_USAGE, EINVAL, "%s takes its argument without \"=\"", t->spelled);
        return error_remedy(err, "Write %s %s or --%s=%s", t->spelled, t->option->arg,
                            t->option->name, t->option->arg);
    }
    t->value = rest;
    return 1;
}

/*
 * Return: 1 with a token; 0 at the end of the options, with c->at at the first word that was not
 * looked at: all from there on are operands; -EINVAL.
 */
static int cursor_next(struct cursor *c, struct token *ret, struct error *err)
{
    const char *word;

    *ret = (struct token){0};
    if (c->bundle)
        return next_letter(c, ret, err);
    if (c->at >= c->in->n)
        return 0;
    word = c->in->v[c->at];
    if (strcmp(word, "--") == 0) {
        c->at++;
        return 0;
    }
    if (word[0] == '-' && word[1] != '\0') {
        c->at++;
        if (word[1] == '-')
            return next_long(c, word + 2, ret, err);
        c->bundle = word + 1;
        return next_letter(c, ret, err);
    }
    if (++c->operands == c->in->ends_at)
        return 0;
    ret->value = word;
    c->at++;
    return 1;
}

/* What is wrong with @value, by kind. */
static int bad_syntax(const struct option *o, const char *spelled, const char *value,
                      struct error *err)
{
    uint64_t ignored;

    if (o->kind == OPTION_SIZE && parse_u64(value, 0, UINT64_MAX, &ignored) == 0)
        return error_set(err, ERROR_USAGE, EINVAL, "%s %.80s needs a unit, such as %.80sM", spelled,
                         value, value);
    error_set(err, ERROR_USAGE, EINVAL, "%s \"%.80s\" is not %s", spelled, value,
              o->kind == OPTION_SIZE       ? "a size"
              : o->kind == OPTION_DURATION ? "a duration"
                                           : "a whole number");
    if (o->kind == OPTION_SIZE)
        error_remedy(err, "Write a whole number and a unit, such as 512M or 2G");
    if (o->kind == OPTION_DURATION)
        error_remedy(err, "Write seconds, or a number with ms, s, m, h or d, such as 90s or 5m");
    return -err->code;
}

static void unit_text(const struct option *o, uint64_t v, char buf[PRINT_UNIT_MAX])
{
    if (o->kind == OPTION_SIZE)
        print_size_text(buf, v);
    else if (o->kind == OPTION_DURATION)
        print_duration_text(buf, v);
    else
        (void)snprintf(buf, PRINT_UNIT_MAX, "%llu", (unsigned long long)v);
}

/* "1M to 1T", "at least 1"; empty if every value is allowed. */
static void range_text(const struct option *o, char *buf, size_t size)
{
    char min[PRINT_UNIT_MAX], max[PRINT_UNIT_MAX];

    unit_text(o, o->min, min);
    unit_text(o, o->max, max);
    if (o->max != UINT64_MAX)
        (void)snprintf(buf, size, "%s to %s", min, max);
    else
        (void)snprintf(buf, size, "%s%s", o->min > 0 ? "at least " : "", o->min > 0 ? min : "");
}

static int store_scalar(const struct option *o, const char *spelled, const char *value,
                        uint64_t *field, struct error *err)
{
    char range[2 * PRINT_UNIT_MAX + 8];
    int r;

    if (o->kind == OPTION_SIZE)
        r = parse_size(value, o->min, o->max, field);
    else if (o->kind == OPTION_DURATION)
        r = parse_duration(value, o->min, o->max, field);
    else
        r = parse_u64(value, o->min, o->max, field);
    if (r == -EINVAL)
        return bad_syntax(o, spelled, value, err);
    if (r == 0)
        return 0;
    range_text(o, range, sizeof range);
    return error_set(err, ERROR_USAGE, ERANGE, "%s %.80s is out of range%s%s", spelled, value,
                     range[0] ? ": " : "", range);
}

static int store_choice(const struct option *o, const char *spelled, const char *value,
                        const char **field, struct error *err)
{
    char all[OPTION_TEXT_MAX];
    const char *nearest;
    size_t n = 0;

    for (; o->choices[n]; n++)
        if (strcmp(o->choices[n], value) == 0) {
            *field = o->choices[n];
            return 0;
        }
    choices_text(o, all, sizeof all);
    error_set(err, ERROR_USAGE, EINVAL, "%s \"%.80s\" is none of %s", spelled, value, all);
    nearest = text_nearest(value, o->choices, n);
    return nearest ? error_remedy(err, "The nearest one is %s", nearest) : -err->code;
}

static int store_item(const struct option *o, const char *spelled, const char *value,
                      struct text_list *list, struct error *err)
{
    const char **items;

    if (list->n >= o->max)
        return error_set(err, ERROR_USAGE, E2BIG, "%s was given more than %llu times", spelled,
                         (unsigned long long)o->max);
    items = reallocarray(list->items, list->n + 1, sizeof *items);
    if (!items)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    items[list->n++] = value;
    list->items = items;
    return 0;
}

static int option_store(const struct option *o, const char *spelled, const char *value, void *args,
                        struct error *err)
{
    void *field = (char *)args + o->offset;

    if (o->kind != OPTION_FLAG && (!value || value[0] == '\0'))
        return error_set(err, ERROR_USAGE, EINVAL, "%s was given an empty argument: %s", spelled,
                         o->arg);
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_SIZE:
    case OPTION_DURATION:
    case OPTION_NUMBER:
        return store_scalar(o, spelled, value, field, err);
    case OPTION_TEXT:
        *(const char **)field = value;
        return 0;
    case OPTION_CHOICE:
        return store_choice(o, spelled, value, field, err);
    case OPTION_LIST:
        return store_item(o, spelled, value, field, err);
    }
    return error_set(err, ERROR_TERMINAL, EINVAL, "%s has no kind", spelled);
}

static void option_note(const struct option *o, void *args, enum option_state state)
{
    if (o->state > 0)
        *(enum option_state *)(void *)((char *)args + o->state) = state;
}

static void option_default(const struct option *o, void *args)
{
    void *field = (char *)args + o->offset;
    struct error err = ERROR_INIT;

    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = false;
        break;
    case OPTION_SIZE:
    case OPTION_DURATION:
    case OPTION_NUMBER:
        *(uint64_t *)field = 0;
        break;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        *(const char **)field = NULL;
        break;
    case OPTION_LIST:
        *(struct text_list *)field = (struct text_list){0};
        break;
    }
    if (o->preset && option_store(o, o->name, o->preset, args, &err) < 0)
        assert(!"a table has a default that its own row refuses");
}

static void option_done(const struct option *o, void *args)
{
    struct text_list *list;

    if (o->kind != OPTION_LIST)
        return;
    list = (void *)((char *)args + o->offset);
    free(list->items);
    *list = (struct text_list){0};
}

void options_defaults(const struct option *options, size_t n, void *args)
{
    for (size_t i = 0; i < n; i++) {
        option_default(&options[i], args);
        option_note(&options[i], args, OPTION_ABSENT);
    }
}

void options_done(const struct option *options, size_t n, void *args)
{
    for (size_t i = 0; i < n; i++)
        option_done(&options[i], args);
}

static int take_option(const struct token *t, void *args, struct error *err)
{
    if (t->option == &option_help)
        return 0;
    option_note(t->option, args, t->reset ? OPTION_RESET : OPTION_GIVEN);
    if (!t->reset)
        return option_store(t->option, t->spelled, t->value, args, err);
    option_done(t->option, args);
    option_default(t->option, args);
    if (t->option->kind == OPTION_LIST)
        ((struct text_list *)(void *)((char *)args + t->option->offset))->reset = true;
    return 0;
}

int options_parse(const struct option *options, size_t n, void *args, struct arguments *io,
                  struct error *err)
{
    struct cursor c = {.options = options, .n = n, .in = io};
    struct token t;
    int operands = 0, r;

    while ((r = cursor_next(&c, &t, err)) > 0) {
        if (!t.option) {
            io->v[operands++] = io->v[c.at - 1]; /* options only leave gaps in front of it */
            continue;
        }
        r = take_option(&t, args, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    memmove(io->v + operands, io->v + c.at, (size_t)(io->n - c.at) * sizeof *io->v);
    io->n = operands + io->n - c.at;
    io->v[io->n] = NULL;
    return 0;
}

bool options_want_help(const struct option *options, size_t n, const struct arguments *in)
{
    struct cursor c = {.options = options, .n = n, .in = in};
    struct error ignored = ERROR_INIT;
    struct token t;

    while (cursor_next(&c, &t, &ignored) > 0)
        if (t.option == &option_help)
            return true;
    return false;
}

void option_spelling(const struct option *o, char *buf, size_t size)
{
    char letter[5] = "    ";

    if (o->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    (void)snprintf(buf, size, "%s--%s%s%s", letter, o->name, o->arg ? " " : "",
                   o->arg ? o->arg : "");
}

void option_limits(const struct option *o, char *buf, size_t size)
{
    char limit[OPTION_TEXT_MAX] = "", preset[OPTION_TEXT_MAX] = "";

    switch (o->kind) {
    case OPTION_FLAG:
    case OPTION_TEXT:
        break;
    case OPTION_SIZE:
    case OPTION_DURATION:
    case OPTION_NUMBER:
        range_text(o, limit, sizeof limit);
        break;
    case OPTION_CHOICE:
        choices_text(o, limit, sizeof limit);
        break;
    case OPTION_LIST:
        (void)snprintf(limit, sizeof limit, "may be repeated");
        break;
    }
    if (o->preset)
        (void)snprintf(preset, sizeof preset, "%sdefault %s", limit[0] ? "; " : "", o->preset);
    (void)snprintf(buf, size, "%s%s", limit, preset);
}
