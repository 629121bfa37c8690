/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jansson reads the text, but a pass of our own goes first: jansson would say of an unpaired
 * surrogate only that it is an invalid escape, follows brackets 2048 deep, and takes some sixty
 * bytes for each value of a list that may have a hundred million.
 */
#include "wire/tool_arguments.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

enum {
    VALUES_MAX = 100000,
    NUMBER_BYTES_MAX = 400, /* the longest double in plain digits has 309 in front of its point */
    QUOTED_BYTES_MAX = 40,
};

/* Where the first pass is. */
struct pass {
    const struct tool_schema *schema;
    const char *at, *end;
    size_t depth, values;
    const char *string; /* the last one, without its quotes */
    size_t string_len;
    const char *property; /* whose value is read, as far as the schema knows it */
    struct error *err;
};

static void json_decref_guard(json_t **j)
{
    json_decref(*j);
}

static int not_utf8(const struct pass *p)
{
    return error_set(p->err, ERROR_RECOVERABLE, EINVAL, "%s is not well-formed UTF-8",
                     p->property ? p->property : "the text of the arguments");
}

static int unpaired_surrogate(const struct pass *p)
{
    (void)error_set(p->err, ERROR_RECOVERABLE, EINVAL,
                    "%s holds an unpaired surrogate, which cannot be encoded as UTF-8",
                    p->property ? p->property : "the text of the arguments");
    return error_remedy(p->err, "Write the whole character, or leave it out");
}

static int too_much(const struct pass *p, const char *what)
{
    return error_set(p->err, ERROR_TOO_LARGE, E2BIG, "the arguments %s", what);
}

/* One character beyond ASCII. */
static int pass_character(struct pass *p)
{
    unsigned char first = (unsigned char)*p->at;
    size_t n = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4, left = (size_t)(p->end - p->at);

    /* What some programs make of a surrogate that JSON gave them (RFC 3629, section 3). */
    if (first == 0xED && left >= 3 && (unsigned char)p->at[1] >= 0xA0)
        return unpaired_surrogate(p);
    if (n > left || !text_is_utf8(p->at, n))
        return not_utf8(p);
    p->at += n;
    return 0;
}

/* \uXXXX. Return: its value, or -1: something else. */
static long escaped_unit(const char *s, const char *end)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    long unit = 0;

    if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        const char *digit = s[i] ? strchr(digits, s[i]) : NULL;

        if (!digit)
            return -1;
        unit = unit * 16 + (digit - digits) % 16;
    }
    return unit;
}

/* A backslash and what belongs to it. Escapes that JSON does not have are jansson's to refuse. */
static int pass_escape(struct pass *p)
{
    long unit = escaped_unit(p->at, p->end);

    if (unit >= 0xD800 && unit <= 0xDFFF) {
        long second = unit < 0xDC00 ? escaped_unit(p->at + 6, p->end) : -1;

        if (second < 0xDC00 || second > 0xDFFF)
            return unpaired_surrogate(p);
        p->at += 12;
    } else {
        p->at += p->end - p->at < 2 || (unsigned char)p->at[1] >= 0x80 ? 1 : 2;
    }
    return 0;
}

/* From behind the opening quote to behind the closing one, or to the end of the text. */
static int pass_string(struct pass *p)
{
    int r = 0;

    p->string = p->at;
    while (r == 0 && p->at < p->end && *p->at != '"') {
        if (*p->at == '\\')
            r = pass_escape(p);
        else if ((unsigned char)*p->at >= 0x80)
            r = pass_character(p);
        else
            p->at++;
    }
    p->string_len = (size_t)(p->at - p->string);
    p->at += p->at < p->end ? 1 : 0;
    return r;
}

/* The last string was a name: of a property, if it stands in the outermost object. */
static void find_property(struct pass *p)
{
    if (p->depth != 1)
        return;
    p->property = NULL;
    for (size_t i = 0; i < p->schema->n && p->string; i++) {
        const char *name = p->schema->properties[i].name;

        if (strlen(name) == p->string_len && memcmp(name, p->string, p->string_len) == 0)
            p->property = name;
    }
}

/* Encoding, depth and number of values of the whole text; its grammar is none of it. */
static int pass_text(struct pass *p)
{
    int r = 0;

    while (r == 0 && p->at < p->end) {
        char c = *p->at;

        if ((unsigned char)c >= 0x80) {
            r = pass_character(p);
            continue;
        }
        p->at++;
        if (c == '"')
            r = pass_string(p);
        else if (c == ':')
            find_property(p);
        if (c == '[' || c == '{')
            p->depth++;
        else if ((c == ']' || c == '}') && p->depth > 0)
            p->depth--;
        if (c == ',' && p->depth == 1)
            p->property = NULL;
        if (c == ',' || c == '[' || c == '{')
            p->values++;
        if (r == 0 && p->depth > TOOL_ARGUMENTS_DEPTH_MAX)
            r = too_much(p, "have too many lists and objects inside each other");
        if (r == 0 && p->values > VALUES_MAX)
            r = too_much(p, "have too many values");
    }
    return r;
}

static bool is_blank(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r\n", s[i]) || !s[i])
            return false;
    return true;
}

/* Return: the outermost object, owned by the caller; or NULL with @err set. */
static json_t *read_object(const char *text, size_t len, struct error *err)
{
    _cleanup_(json_decref_guard) json_t *value = NULL;
    json_error_t problem;

    if (is_blank(text, len)) {
        value = json_object();
        if (!value)
            (void)error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
        return TAKE_PTR(value);
    }
    value =
        json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY, &problem);
    if (!value && json_error_code(&problem) == json_error_out_of_memory) {
        (void)error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    } else if (!value) {
        text_make_printable(problem.text);
        (void)error_set(err, ERROR_RECOVERABLE, EINVAL,
                        "the arguments are not JSON: line %d, column %d: %s", problem.line,
                        problem.column, problem.text);
    } else if (!json_is_object(value)) {
        (void)error_set(err, ERROR_RECOVERABLE, EINVAL, "the arguments are not a JSON object");
        (void)error_remedy(err, "Put them in braces, each behind its name");
    } else {
        return TAKE_PTR(value);
    }
    return NULL;
}

static size_t skip_digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* [+-] digits [. digits] [e [+-] digits]; digits on one side of the point are enough. */
static bool is_decimal(const char *s)
{
    size_t whole, part = 0;

    s += *s == '+' || *s == '-' ? 1 : 0;
    whole = skip_digits(s);
    s += whole;
    if (*s == '.') {
        part = skip_digits(s + 1);
        s += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '+' || *s == '-' ? 1 : 0;
        if (skip_digits(s) == 0)
            return false;
        s += skip_digits(s);
    }
    return *s == '\0';
}

static bool is_special(const char *s)
{
    s += *s == '+' || *s == '-' ? 1 : 0;
    return strcasecmp(s, "nan") == 0 || strcasecmp(s, "inf") == 0 || strcasecmp(s, "infinity") == 0;
}

/* Return: 1; 0: it holds no number; -ENOMEM. */
static int number_from_text(const char *text, size_t len, double *ret)
{
    static const char blanks[] = " \t\r\n";
    char s[NUMBER_BYTES_MAX + 1];
    locale_t c;

    while (len > 0 && *text && strchr(blanks, *text)) {
        text++;
        len--;
    }
    while (len > 0 && text[len - 1] && strchr(blanks, text[len - 1]))
        len--;
    if (len == 0 || len > NUMBER_BYTES_MAX || memchr(text, '\0', len))
        return 0;
    memcpy(s, text, len);
    s[len] = '\0';
    if (!is_decimal(s) && !is_special(s))
        return 0;
    c = newlocale(LC_ALL_MASK, "C", NULL); /* the program's may have a comma for the point */
    if (!c)
        return -ENOMEM;
    *ret = strtod_l(s, NULL, c);
    freelocale(c);
    return 1;
}

/* Every double from 2^53 on is one. */
static bool is_whole(double x)
{
    if (!isfinite(x))
        return false;
    return fabs(x) >= 0x1p53 || x == (double)(int64_t)x;
}

static const char *type_text(enum tool_type type)
{
    switch (type) {
    case TOOL_STRING:
        return "a string";
    case TOOL_NUMBER:
        return "a number";
    case TOOL_INTEGER:
        return "a whole number";
    }
    return "";
}

static int wrong_type(const struct tool_property *p, const json_t *value, struct error *err)
{
    char quoted[QUOTED_BYTES_MAX + 32];

    if (json_is_string(value)) {
        size_t len = json_string_length(value);
        int shown = len > QUOTED_BYTES_MAX ? QUOTED_BYTES_MAX : (int)len;

        (void)snprintf(quoted, sizeof quoted, "the string \"%.*s%s\"", shown,
                       json_string_value(value), (size_t)shown < len ? "..." : "");
        text_make_printable(quoted);
    } else if (json_is_real(value)) {
        (void)snprintf(quoted, sizeof quoted, "the number %g", json_real_value(value));
    } else {
        (void)snprintf(quoted, sizeof quoted, "%s",
                       json_is_null(value)     ? "null"
                       : json_is_true(value)   ? "true"
                       : json_is_false(value)  ? "false"
                       : json_is_object(value) ? "an object"
                                               : "a list");
    }
    return error_set(err, ERROR_RECOVERABLE, EINVAL, "%s has to be %s, and %s is none", p->name,
                     type_text(p->type), quoted);
}

static int take_text(const struct tool_property *p, const json_t *value, struct tool_argument *ret,
                     struct error *err)
{
    if (!json_is_string(value))
        return wrong_type(p, value, err);
    ret->len = json_string_length(value);
    ret->text = malloc(ret->len + 1);
    if (!ret->text)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    memcpy(ret->text, json_string_value(value), ret->len);
    ret->text[ret->len] = '\0';
    return 0;
}

static int take_number(const struct tool_property *p, const json_t *value,
                       struct tool_argument *ret, struct error *err)
{
    double x = 0;
    int known = 1;

    if (json_is_real(value))
        x = json_real_value(value);
    else if (json_is_boolean(value))
        x = json_is_true(value) ? 1 : 0;
    else if (json_is_string(value))
        known = number_from_text(json_string_value(value), json_string_length(value), &x);
    else
        known = 0;
    if (known < 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (known == 0 || (p->type == TOOL_INTEGER && !is_whole(x)))
        return wrong_type(p, value, err);
    ret->number = x;
    return 0;
}

/* @value: NULL when the property was left out. */
static int take_property(const struct tool_property *p, const json_t *value,
                         struct tool_argument *ret, struct error *err)
{
    int r;

    if (!value && p->required)
        return error_set(err, ERROR_RECOVERABLE, EINVAL, "%s is missing, and has to be %s", p->name,
                         type_text(p->type));
    if (!value || (json_is_null(value) && p->nullable))
        return 0;
    r = p->type == TOOL_STRING ? take_text(p, value, ret, err) : take_number(p, value, ret, err);
    ret->given = r == 0;
    return r;
}

int tool_arguments_parse(const char *json, size_t len, const struct tool_schema *schema,
                         struct tool_arguments *ret, struct error *err)
{
    const char *text = len > 0 ? json : "";
    struct pass pass = {.schema = schema, .at = text, .end = text + len, .err = err};
    _cleanup_(json_decref_guard) json_t *object = NULL;
    struct tool_arguments a = {0};
    int r;

    if (len > TOOL_ARGUMENTS_BYTES_MAX)
        return too_much(&pass, "are longer than 256 MiB");
    r = pass_text(&pass);
    if (r < 0)
        return r;
    object = read_object(text, len, err);
    if (!object)
        return -err->code;
    for (size_t i = 0; r == 0 && i < schema->n; i++)
        r = take_property(&schema->properties[i],
                          json_object_get(object, schema->properties[i].name), &a.items[i], err);
    if (r < 0) {
        tool_arguments_done(&a);
        return r;
    }
    *ret = a;
    return 0;
}

void tool_arguments_done(struct tool_arguments *a)
{
    for (size_t i = 0; i < TOOL_ARGUMENTS_MAX; i++)
        free(a->items[i].text);
    *a = (struct tool_arguments){0};
}
