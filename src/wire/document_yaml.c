/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML through the events of libyaml, which reads the grammar; what is accepted of it, and what a
 * plain scalar is, is decided here. Its composer is not used: it resolves aliases.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "wire/document_build.h"
#include "base/guards.h"

/* What libyaml says, and how it reads for somebody who wrote a spec. The first that fits counts. */
struct complaint {
    const char *problem; /* libyaml's own words */
    const char *context; /* the same, or NULL for any */
    const char *message;
    const char *remedy; /* or NULL */
    bool at_start;      /* told where libyaml began to read the part, not where it gave up */
};

static const char quote_stars[] = "Put text that begins with '*' or '&' in quotes";
static const char quote_colons[] = "Check the indentation, and put text with ': ' inside in quotes";
static const char quote_marks[] = "Put text that begins with '!' in quotes";
static const char check_indentation[] = "Check the indentation of this line and the ones above";
static const char no_tags[] = "tags are not accepted";
static const char no_tag_directive[] = "the directive %TAG is not accepted";
static const char no_tabs[] = "a tab cannot indent a line";

static const struct complaint complaints[] = {
    {"did not find expected alphabetic or numeric character", "while scanning an alias",
     "'*' begins an alias in YAML, and aliases are not accepted", quote_stars, true},
    {"did not find expected alphabetic or numeric character", "while scanning an anchor",
     "'&' begins an anchor in YAML, and anchors are not accepted", quote_stars, true},
    {"could not find expected ':'", NULL,
     "this is neither a key with ':' and a blank after it nor part of the value above",
     check_indentation, true},
    {"block sequence entries are not allowed in this context", NULL, "a list cannot begin here",
     "Begin each '- ' on a line of its own", false},
    {"mapping keys are not allowed in this context", NULL, "a key cannot stand here", quote_colons,
     false},
    {"mapping values are not allowed in this context", NULL,
     "a ':' that makes a key of the text before it cannot stand here", quote_colons, false},
    {"found unexpected ':'", NULL,
     "text that ends with ':' cannot stand as it is inside '[' or '{'", "Put it in quotes", true},
    {"found a tab character where an indentation space is expected", NULL, no_tabs, "Use spaces",
     false},
    {"found a tab character that violates indentation", NULL, no_tabs, "Use spaces", false},
    {"found an indentation indicator equal to 0", NULL,
     "the indentation of block text is 1 to 9, not 0", NULL, true},
    {"did not find expected comment or line break", "while scanning a block scalar",
     "nothing but a comment may follow '|' or '>' on its line", NULL, false},
    {"found unexpected document indicator", NULL,
     "this quoted string has no closing quote before a line with '---' or '...'", NULL, true},
    {"found unexpected end of stream", NULL, "this quoted string has no closing quote", NULL, true},
    {"found unknown escape character", NULL, "YAML has no such escape in double quotes",
     "Write a backslash as \\\\, or use single quotes, where it is an ordinary character", false},
    {"did not find expected hexdecimal number", NULL,
     "expected hexadecimal digits in this escape: \\x has two, \\u four, \\U eight", NULL, false},
    {"found invalid Unicode character escape code", NULL, "this escape stands for no character",
     NULL, false},
    {"found undefined tag handle", NULL, no_tags, quote_marks, false},
    {NULL, "while scanning a tag", no_tags, quote_marks, true},
    {NULL, "while parsing a tag", no_tags, quote_marks, true},
    {NULL, "while scanning a %TAG directive", no_tag_directive, NULL, true},
    {NULL, "while parsing a %TAG directive", no_tag_directive, NULL, true},
    {NULL, "while scanning a tag directive", no_tag_directive, NULL, true},
    {NULL, "while parsing a tag directive", no_tag_directive, NULL, true},
    {"found duplicate %TAG directive", NULL, no_tag_directive, NULL, false},
    {"found duplicate %YAML directive", NULL, "the directive %YAML is given twice", NULL, false},
    {"found incompatible YAML document", NULL,
     "only the directives %YAML 1.1 and %YAML 1.2 are accepted", NULL, false},
    {NULL, "while scanning a %YAML directive", "the directive %YAML has no version like 1.2", NULL,
     true},
    {NULL, "while scanning a directive",
     "a '%' at the start of a line is a directive, and only %YAML is accepted",
     "Put text that begins with '%' in quotes", true},
    {"did not find expected <document start>", NULL,
     "this is neither part of the value above nor a new one", check_indentation, false},
    {"did not find expected node content", NULL, "expected a value", NULL, false},
    {"did not find expected '-' indicator", NULL, "expected '- ' and the next part of the list",
     check_indentation, false},
    {"did not find expected key", NULL, "expected a key, or the end of the map", check_indentation,
     false},
    {"did not find expected ',' or ']'", NULL, "expected ',' or ']'", NULL, false},
    {"did not find expected ',' or '}'", NULL, "expected ',' or '}'", NULL, false},
};

/*
 * libyaml puts the end of a text that lacks a last line end on a line of its own; that becomes the
 * end as an editor shows it.
 */
static struct document_place place_of(const struct build *b, const yaml_mark_t *mark)
{
    struct document_place at = {(unsigned)mark->line + 1, (unsigned)mark->column + 1};

    return at.line > b->end.line ? b->end : at;
}

/* The text at a place, and whether only blanks stand before that on its line. */
static struct cursor find(const struct build *b, struct document_place at, bool *ret_first)
{
    struct cursor c = cursor_over(b->text, b->len);

    *ret_first = true;
    while (c.p < c.end &&
           (c.at.line < at.line || (c.at.line == at.line && c.at.column < at.column))) {
        if (c.at.line == at.line && *c.p != ' ')
            *ret_first = false;
        cursor_step(&c);
    }
    return c;
}

/*
 * What can be told better from the text itself: what begins with a character that begins nothing
 * in YAML, and what follows a value that had ended before, as in 'it's'.
 * Return: -EINVAL with the error set, or 0 when it is neither.
 */
static int refuse_by_text(const struct build *b, const struct cursor *c, bool first,
                          const char *problem)
{
    if (c->p == c->end)
        return 0;
    if (strcmp(problem, "found character that cannot start any token") == 0) {
        if (*c->p == '\t') {
            (void)build_refuse(b, EINVAL, c->at, "%s", no_tabs);
            return error_remedy(b->err, "Use spaces");
        }
        (void)build_refuse(b, EINVAL, c->at, "'%c' cannot begin a value", *c->p);
        return error_remedy(b->err, "Put text that begins with '%c' in quotes", *c->p);
    }
    if (!first && (strcmp(problem, "did not find expected key") == 0 ||
                   strcmp(problem, "did not find expected '-' indicator") == 0)) {
        (void)build_refuse(b, EINVAL, c->at, "the value before this has ended already");
        return error_remedy(b->err, "Put the whole value in quotes; inside of single quotes, write "
                                    "'' for a single quote");
    }
    return 0;
}

static bool same(const char *wanted, const char *said)
{
    return !wanted || (said && strcmp(wanted, said) == 0);
}

/* libyaml's own error in our words; what it began to read tells more when that is on another line.
 */
static int refuse_syntax(const struct build *b, const yaml_parser_t *parser)
{
    bool first;
    struct cursor c = find(b, place_of(b, &parser->problem_mark), &first);
    struct document_place at = c.at;
    struct document_place start = place_of(b, &parser->context_mark);
    const char *problem = parser->problem ? parser->problem : "it cannot be read";
    const struct complaint *x = NULL;
    char began[80] = "";

    if (parser->error == YAML_MEMORY_ERROR)
        return build_no_memory(b);
    if (refuse_by_text(b, &c, first, problem) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(complaints) && !x; i++)
        if (same(complaints[i].problem, problem) && same(complaints[i].context, parser->context))
            x = &complaints[i];
    if (x && x->at_start && parser->context)
        at = start;
    if (parser->context && start.line != at.line)
        (void)snprintf(began, sizeof began, "; what it belongs to begins at line %u, column %u",
                       start.line, start.column);
    if (!x)
        return build_refuse(b, EINVAL, at, "this is not YAML: %s%s", problem, began);
    (void)build_refuse(b, EINVAL, at, "%s%s", x->message, began);
    return x->remedy ? error_remedy(b->err, "%s", x->remedy) : -EINVAL;
}

/* Digits of a base at @s. Return: how many. */
static size_t digits(const char *s, unsigned base)
{
    static const char all[] = "0123456789abcdefABCDEF";

    if (base == 16)
        return strspn(s, all);
    return strspn(s, base == 8 ? "01234567" : "0123456789");
}

/* [-+]? ( "." [0-9]+ | [0-9]+ ( "." [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?   and the words beside it */
static bool is_float(const char *s)
{
    static const char *const words[] = {".inf", ".Inf", ".INF"};
    size_t before, after = 0;

    if (strcmp(s, ".nan") == 0 || strcmp(s, ".NaN") == 0 || strcmp(s, ".NAN") == 0)
        return true;
    s += *s == '-' || *s == '+';
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(s, words[i]) == 0)
            return true;
    before = digits(s, 10);
    s += before;
    if (*s == '.') {
        after = digits(s + 1, 10);
        s += 1 + after;
    }
    if (before + after == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s += s[1] == '-' || s[1] == '+' ? 2 : 1;
        size_t exponent = digits(s, 10);
        if (exponent == 0)
            return false;
        s += exponent;
    }
    return *s == '\0';
}

static bool is_integer(const char *s)
{
    if (s[0] == '0' && (s[1] == 'o' || s[1] == 'x')) {
        size_t n = digits(s + 2, s[1] == 'o' ? 8 : 16);
        return n > 0 && s[2 + n] == '\0';
    }
    s += *s == '-' || *s == '+';
    size_t n = digits(s, 10);
    return n > 0 && s[n] == '\0';
}

/* The core schema (YAML 1.2.2, section 10.3.2). */
static enum document_type type_of_plain(const char *s)
{
    static const struct {
        const char *text;
        enum document_type type;
    } words[] = {
        {"", DOCUMENT_NULL},         {"~", DOCUMENT_NULL},        {"null", DOCUMENT_NULL},
        {"Null", DOCUMENT_NULL},     {"NULL", DOCUMENT_NULL},     {"true", DOCUMENT_BOOLEAN},
        {"True", DOCUMENT_BOOLEAN},  {"TRUE", DOCUMENT_BOOLEAN},  {"false", DOCUMENT_BOOLEAN},
        {"False", DOCUMENT_BOOLEAN}, {"FALSE", DOCUMENT_BOOLEAN},
    };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(s, words[i].text) == 0)
            return words[i].type;
    if (is_integer(s))
        return DOCUMENT_INTEGER;
    return is_float(s) ? DOCUMENT_FLOAT : DOCUMENT_STRING;
}

/* What any value may carry, and none may here. */
static int refuse_properties(const struct build *b, struct document_place at,
                             const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor) {
        (void)build_refuse(b, EINVAL, at, "anchors are not accepted: '&%.80s'",
                           (const char *)anchor);
        return error_remedy(b->err, "Remove it; text that begins with '&' stands in quotes");
    }
    if (tag) {
        (void)build_refuse(b, EINVAL, at, "tags are not accepted: '%.80s'", (const char *)tag);
        return error_remedy(b->err, "Remove it; text that begins with '!' stands in quotes");
    }
    return 0;
}

static int take_scalar(struct build *b, const yaml_event_t *e)
{
    struct document_place at = place_of(b, &e->start_mark);
    const char *text = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    int r = refuse_properties(b, at, e->data.scalar.anchor, e->data.scalar.tag);

    if (r < 0)
        return r;
    if (memchr(text, '\0', len))
        return build_refuse(b, EINVAL, at, "a NUL character cannot stand in a string");
    if (!build_wants_key(b))
        return build_scalar(b, at, plain ? type_of_plain(text) : DOCUMENT_STRING, plain, text, len);
    if (plain && strcmp(text, "<<") == 0) {
        (void)build_refuse(b, EINVAL, at, "the merge key '<<' is not accepted");
        return error_remedy(b->err, "Write the keys of the other map out");
    }
    return build_key(b, at, text, len);
}

static int take_start(struct build *b, const yaml_event_t *e)
{
    bool list = e->type == YAML_SEQUENCE_START_EVENT;
    struct document_place at = place_of(b, &e->start_mark);
    int r =
        list ? refuse_properties(b, at, e->data.sequence_start.anchor, e->data.sequence_start.tag)
             : refuse_properties(b, at, e->data.mapping_start.anchor, e->data.mapping_start.tag);

    if (r < 0)
        return r;
    if (build_wants_key(b)) {
        (void)build_refuse(b, EINVAL, at, "a key cannot be a %s", list ? "list" : "map");
        return error_remedy(b->err, "Put text that begins with '[' or '{' in quotes");
    }
    return build_open(b, at, list ? DOCUMENT_LIST : DOCUMENT_MAP);
}

static int take_document_start(struct build *b, const yaml_event_t *e)
{
    struct document_place at = place_of(b, &e->start_mark);

    if (b->n_nodes > 0)
        return build_refuse(b, EINVAL, at, "a second document begins here; only one is read");
    if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
        return build_refuse(b, EINVAL, at, "the directive %%TAG is not accepted");
    return 0;
}

/* One event into the tree. */
static int take_event(struct build *b, const yaml_event_t *e)
{
    struct document_place at = place_of(b, &e->start_mark);

    switch (e->type) {
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    case YAML_STREAM_END_EVENT:
        if (b->n_nodes > 0)
            return 0;
        at = (struct document_place){1, 1};
        return build_refuse(b, EINVAL, at, "there is nothing in the text, or comments alone");
    case YAML_DOCUMENT_START_EVENT:
        return take_document_start(b, e);
    case YAML_ALIAS_EVENT:
        (void)build_refuse(b, EINVAL, at, "aliases are not accepted: '*%.80s'",
                           (const char *)e->data.alias.anchor);
        return error_remedy(b->err, "Write the value out; text that begins with '*' stands in "
                                    "quotes");
    case YAML_SCALAR_EVENT:
        return take_scalar(b, e);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return take_start(b, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return build_close(b);
    }
    return 0;
}

int document_read_yaml(struct build *b)
{
    _cleanup_(yaml_parser_delete) yaml_parser_t parser;
    bool done = false;
    int r = 0;

    if (!yaml_parser_initialize(&parser)) {
        memset(&parser, 0, sizeof parser); /* what the guard may see */
        return build_no_memory(b);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)b->text, b->len);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    while (r == 0 && !done) {
        _cleanup_(yaml_event_delete) yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event))
            return refuse_syntax(b, &parser);
        r = take_event(b, &event);
        done = event.type == YAML_STREAM_END_EVENT;
    }
    return r;
}
