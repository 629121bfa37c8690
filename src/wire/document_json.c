/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON with places: RFC 8259 as it is written, without a comment, a comma too many, or a name
 * without quotes. No library of the distributions keeps lines and columns, and a user who is only
 * told that something is wrong somewhere in a spec has been told little.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/document_build.h"
#include "base/guards.h"

struct json {
    struct build *b;
    struct cursor c;
    char *scratch; /* the last string; no string is longer than what it is written as */
    size_t scratch_len;
};

static int read_value(struct json *j);

/* The byte at the cursor, or NUL at the end: the text itself holds none. */
static char peek(const struct json *j)
{
    return j->c.p < j->c.end ? *j->c.p : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_blanks(struct json *j)
{
    for (char c = peek(j); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(j))
        cursor_step(&j->c);
}

static bool take(struct json *j, char c)
{
    if (peek(j) != c)
        return false;
    cursor_step(&j->c);
    return true;
}

/* Says what stands at the cursor instead of @what. */
static int expected(struct json *j, const char *what)
{
    const char *p = j->c.p;
    size_t n = 1;

    if (p == j->c.end)
        return build_refuse(j->b, EINVAL, j->c.at, "expected %s, but the text ends here", what);
    if ((unsigned char)*p < 0x20 || *p == 0x7F)
        return build_refuse(j->b, EINVAL, j->c.at,
                            "expected %s, but found the control character "
                            "U+%04X",
                            what, (unsigned)(unsigned char)*p);
    while (p + n < j->c.end && (is_letter(*p) ? n < 20 && is_letter(p[n]) : (p[n] & 0xC0) == 0x80))
        n++; /* a word, or one character of any length */
    (void)build_refuse(j->b, EINVAL, j->c.at, "expected %s, but found '%.*s'", what, (int)n, p);
    if (*p == '/' || *p == '#')
        return error_remedy(j->b->err,
                            "JSON has no comments; remove it, or write the text as YAML");
    if (*p == '\'')
        return error_remedy(j->b->err, "Put text in double quotes");
    return -EINVAL;
}

/* The same after something inside a list or map; at the end of the text its begin tells more. */
static int expected_inside(struct json *j, const char *what, const char *opened,
                           struct document_place start)
{
    if (j->c.p < j->c.end)
        return expected(j, what);
    return build_refuse(j->b, EINVAL, j->c.at,
                        "expected %s, but the text ends here; the %s begins at line %u, column %u",
                        what, opened, start.line, start.column);
}

static int read_four_digits(struct json *j, unsigned *ret)
{
    unsigned v = 0;

    for (int i = 0; i < 4; i++) {
        char c = peek(j);
        char lower = (char)(c | 0x20);

        if (is_digit(c))
            v = v << 4 | (unsigned)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v << 4 | (unsigned)(lower - 'a' + 10);
        else
            return expected(j, "four hexadecimal digits after '\\u'");
        cursor_step(&j->c);
    }
    *ret = v;
    return 0;
}

static size_t encode_utf8(unsigned v, char *out)
{
    unsigned char *p = (unsigned char *)out;

    if (v < 0x80) {
        p[0] = (unsigned char)v;
        return 1;
    }
    if (v < 0x800) {
        p[0] = (unsigned char)(0xC0 | v >> 6);
        p[1] = (unsigned char)(0x80 | (v & 0x3F));
        return 2;
    }
    if (v < 0x10000) {
        p[0] = (unsigned char)(0xE0 | v >> 12);
        p[1] = (unsigned char)(0x80 | (v >> 6 & 0x3F));
        p[2] = (unsigned char)(0x80 | (v & 0x3F));
        return 3;
    }
    p[0] = (unsigned char)(0xF0 | v >> 18);
    p[1] = (unsigned char)(0x80 | (v >> 12 & 0x3F));
    p[2] = (unsigned char)(0x80 | (v >> 6 & 0x3F));
    p[3] = (unsigned char)(0x80 | (v & 0x3F));
    return 4;
}

/* The rest of an escape after "\u"; @start is where its backslash stands. */
static int read_code_point(struct json *j, struct document_place start, char *out, size_t *ret_n)
{
    static const char lone[] = "a surrogate without its other half stands for no character";
    unsigned v, low;
    int r = read_four_digits(j, &v);

    if (r < 0)
        return r;
    if (v == 0)
        return build_refuse(j->b, EINVAL, start, "a NUL character cannot stand in a string");
    if (v >= 0xDC00 && v <= 0xDFFF)
        return build_refuse(j->b, EINVAL, start, "%s", lone);
    if (v >= 0xD800 && v <= 0xDBFF) {
        if (!take(j, '\\') || !take(j, 'u'))
            return build_refuse(j->b, EINVAL, start, "%s", lone);
        r = read_four_digits(j, &low);
        if (r < 0)
            return r;
        if (low < 0xDC00 || low > 0xDFFF)
            return build_refuse(j->b, EINVAL, start, "%s", lone);
        v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
    }
    *ret_n = encode_utf8(v, out);
    return 0;
}

/* An escape to the characters it stands for; the cursor is at its backslash. */
static int read_escape(struct json *j, char *out, size_t *ret_n)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    struct document_place start = j->c.at;
    const char *found;

    cursor_step(&j->c);
    if (take(j, 'u'))
        return read_code_point(j, start, out, ret_n);
    found = peek(j) ? strchr(names, peek(j)) : NULL;
    if (!found)
        return expected(j, "one of \" \\ / b f n r t u after '\\'");
    cursor_step(&j->c);
    *out = values[found - names];
    *ret_n = 1;
    return 0;
}

/* A string into j->scratch; the cursor is at its opening quote. */
static int read_string(struct json *j)
{
    struct document_place start = j->c.at;
    size_t n = 0;
    int r;

    j->scratch_len = 0;
    cursor_step(&j->c);
    while (!take(j, '"')) {
        char c = peek(j);

        if (j->c.p == j->c.end || c == '\n' || c == '\r')
            return build_refuse(j->b, EINVAL, start, "this string has no closing '\"' on its line");
        if ((unsigned char)c < 0x20) {
            (void)build_refuse(j->b, EINVAL, j->c.at,
                               "the control character U+%04X cannot stand "
                               "in a string",
                               (unsigned)(unsigned char)c);
            return error_remedy(j->b->err, "Write it as \\u%04X", (unsigned)(unsigned char)c);
        }
        if (c == '\\') {
            r = read_escape(j, j->scratch + j->scratch_len, &n);
            if (r < 0)
                return r;
            j->scratch_len += n;
        } else {
            j->scratch[j->scratch_len++] = c;
            cursor_step(&j->c);
        }
    }
    return 0;
}

static int read_digits(struct json *j, const char *what)
{
    if (!is_digit(peek(j)))
        return expected(j, what);
    while (is_digit(peek(j)))
        cursor_step(&j->c);
    return 0;
}

static int read_number(struct json *j)
{
    struct document_place start = j->c.at;
    const char *text = j->c.p;
    enum document_type type = DOCUMENT_INTEGER;
    int r;

    (void)take(j, '-');
    if (take(j, '0')) {
        if (is_digit(peek(j)))
            return build_refuse(j->b, EINVAL, start,
                                "a number cannot begin with a 0 that more "
                                "digits follow");
    } else if ((r = read_digits(j, "a digit after '-'")) < 0) {
        return r;
    }
    if (take(j, '.')) {
        type = DOCUMENT_FLOAT;
        if ((r = read_digits(j, "a digit after '.'")) < 0)
            return r;
    }
    if (peek(j) == 'e' || peek(j) == 'E') {
        type = DOCUMENT_FLOAT;
        cursor_step(&j->c);
        if (!take(j, '+'))
            (void)take(j, '-');
        if ((r = read_digits(j, "a digit of the exponent")) < 0)
            return r;
    }
    return build_scalar(j->b, start, type, true, text, (size_t)(j->c.p - text));
}

/* true, false or null; the cursor is at a letter. */
static int read_word(struct json *j)
{
    static const struct {
        const char *text;
        enum document_type type;
    } words[] = {
        {"true", DOCUMENT_BOOLEAN},
        {"false", DOCUMENT_BOOLEAN},
        {"null", DOCUMENT_NULL},
    };
    struct document_place start = j->c.at;
    const char *text = j->c.p;
    size_t n = 1;

    while (text + n < j->c.end && is_letter(text[n]))
        n++;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (n != strlen(words[i].text) || memcmp(text, words[i].text, n) != 0)
            continue;
        while (j->c.p < text + n)
            cursor_step(&j->c);
        return build_scalar(j->b, start, words[i].type, true, text, n);
    }
    (void)expected(j, "a value");
    return error_remedy(j->b->err, "Put text in double quotes; the words of JSON are true, false "
                                   "and null");
}

/* What follows a value in a list or map. Return: 1 when another value follows, 0 at the end. */
static int read_separator(struct json *j, char close, const char *what, const char *opened,
                          struct document_place start)
{
    struct document_place comma;

    skip_blanks(j);
    if (take(j, close))
        return 0;
    comma = j->c.at;
    if (!take(j, ','))
        return expected_inside(j, what, opened, start);
    skip_blanks(j);
    if (peek(j) == close)
        return build_refuse(j->b, EINVAL, comma, "nothing follows this ',' before the '%c'", close);
    return 1;
}

static int read_list(struct json *j)
{
    struct document_place start = j->c.at;
    int r = build_open(j->b, start, DOCUMENT_LIST);

    if (r < 0)
        return r;
    cursor_step(&j->c);
    skip_blanks(j);
    for (bool more = !take(j, ']'); more; more = r > 0) {
        if (j->c.p == j->c.end)
            return expected_inside(j, "a value or ']'", "list", start);
        r = read_value(j);
        if (r == 0)
            r = read_separator(j, ']', "',' or ']'", "list", start);
        if (r < 0)
            return r;
    }
    return build_close(j->b);
}

/* A key, its colon, and its value. */
static int read_member(struct json *j, struct document_place start)
{
    struct document_place at = j->c.at;
    int r;

    if (peek(j) != '"')
        return expected_inside(j, "a key in double quotes", "map", start);
    r = read_string(j);
    if (r == 0)
        r = build_key(j->b, at, j->scratch, j->scratch_len);
    if (r < 0)
        return r;
    skip_blanks(j);
    if (!take(j, ':'))
        return expected_inside(j, "':' after the key", "map", start);
    skip_blanks(j);
    if (j->c.p == j->c.end)
        return expected_inside(j, "a value", "map", start);
    return read_value(j);
}

static int read_map(struct json *j)
{
    struct document_place start = j->c.at;
    int r = build_open(j->b, start, DOCUMENT_MAP);

    if (r < 0)
        return r;
    cursor_step(&j->c);
    skip_blanks(j);
    for (bool more = !take(j, '}'); more; more = r > 0) {
        r = read_member(j, start);
        if (r == 0)
            r = read_separator(j, '}', "',' or '}'", "map", start);
        if (r < 0)
            return r;
    }
    return build_close(j->b);
}

/* One value of any kind. Lists and maps recurse, as deep as build_open() allows. */
static int read_value(struct json *j)
{
    struct document_place at = j->c.at;
    char c = peek(j);
    int r;

    if (c == '[')
        return read_list(j);
    if (c == '{')
        return read_map(j);
    if (c == '-' || is_digit(c))
        return read_number(j);
    if (is_letter(c))
        return read_word(j);
    if (c != '"')
        return expected(j, "a value");
    r = read_string(j);
    return r < 0 ? r : build_scalar(j->b, at, DOCUMENT_STRING, false, j->scratch, j->scratch_len);
}

int document_read_json(struct build *b)
{
    _cleanup_free_ char *scratch = malloc(b->len + 1);
    struct json j = {.b = b, .c = cursor_over(b->text, b->len), .scratch = scratch};
    int r;

    if (!scratch)
        return build_no_memory(b);
    skip_blanks(&j);
    r = read_value(&j);
    if (r < 0)
        return r;
    skip_blanks(&j);
    return j.c.p == j.c.end ? 0 : expected(&j, "the end of the text");
}
