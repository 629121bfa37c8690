/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text, judged in one pass and then walked. The judging pass checks every byte; the walks rely
 * on that, so they only look for ends: of a string its next quote that is not escaped, of an object
 * or array the bracket that brings the depth back to nothing. All of them stop at the text's end.
 */
#include "wire/json_scan.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum { WORD_BITS = 64 };

/* What may stand at the cursor. */
enum state {
    WANT_VALUE,
    WANT_FIRST_ELEMENT, /* a value, or the end of an array */
    WANT_FIRST_MEMBER,  /* a name, or the end of an object */
    WANT_MEMBER,        /* a name */
    AFTER_VALUE,
};

struct scan {
    const char *at, *end;
    size_t depth;
    uint64_t objects[JSON_DEPTH_MAX / WORD_BITS]; /* a bit each level: an object, not an array */
};

/* The byte at the cursor; 0, which stands nowhere in JSON, at the end. */
static char peek(const struct scan *s)
{
    return s->at < s->end ? *s->at : '\0';
}

static bool take(struct scan *s, char c)
{
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Strings */

/* Whether one of eight bytes ends a run: a control, a quote, a backslash, or beyond ASCII. */
static bool ends_run(uint64_t w)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
    uint64_t quote = w ^ ones * '"', backslash = w ^ ones * '\\';

    /* A byte below n borrows its top bit from w - n; a byte of zero is one below 1. */
    return (w | (w - ones * 0x20) | (quote - ones) | (backslash - ones)) & tops;
}

/* Past the bytes of a string that stand for themselves. */
static const char *skip_plain(const char *at, const char *end)
{
    uint64_t w;

    for (; (size_t)(end - at) >= sizeof w; at += sizeof w) {
        memcpy(&w, at, sizeof w);
        if (ends_run(w))
            break;
    }
    while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' &&
           *at != '\\')
        at++;
    return at;
}

/*
 * Past the characters beyond ASCII, each well-formed (RFC 3629, section 4). By hand, since
 * text_is_utf8() alone takes twice the time of this whole pass over a text without ASCII.
 */
static bool scan_characters(struct scan *s)
{
    while (s->at < s->end && (unsigned char)*s->at >= 0x80) {
        const unsigned char *c = (const unsigned char *)s->at;
        size_t n = *c < 0xE0 ? 2 : *c < 0xF0 ? 3 : 4;
        unsigned char low = *c == 0xE0 ? 0xA0 : *c == 0xF0 ? 0x90 : 0x80;
        unsigned char high = *c == 0xED ? 0x9F : *c == 0xF4 ? 0x8F : 0xBF;

        if (*c < 0xC2 || *c > 0xF4 || (size_t)(s->end - s->at) < n || c[1] < low || c[1] > high)
            return false;
        if ((n > 2 && (c[2] & 0xC0) != 0x80) || (n > 3 && (c[3] & 0xC0) != 0x80))
            return false;
        s->at += n;
    }
    return true;
}

/* The value of four hexadecimal digits, or -1. */
static int four_digits(const char *at, const char *end)
{
    int v = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char lower = (char)(at[i] | 0x20);

        if (is_digit(at[i]))
            v = v << 4 | (at[i] - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return v;
}

/* The cursor is behind a backslash. */
static bool scan_escape(struct scan *s)
{
    char c = peek(s);

    if (c == '\0' || !strchr("\"\\/bfnrtu", c))
        return false;
    s->at++;
    if (c != 'u')
        return true;
    if (four_digits(s->at, s->end) < 0)
        return false;
    s->at += 4;
    return true;
}

/* The cursor is at a quote. */
static bool scan_string(struct scan *s)
{
    s->at++;
    for (;;) {
        s->at = skip_plain(s->at, s->end);
        if (take(s, '"'))
            return true;
        if (take(s, '\\')) {
            if (!scan_escape(s))
                return false;
        } else if ((unsigned char)peek(s) < 0x80 || !scan_characters(s)) {
            return false; /* a control character, or the end */
        }
    }
}

/* The other values */

static bool scan_digits(struct scan *s)
{
    if (!is_digit(peek(s)))
        return false;
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool scan_number(struct scan *s)
{
    (void)take(s, '-');
    if (!take(s, '0') && !scan_digits(s))
        return false;
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            (void)take(s, '-');
        return scan_digits(s);
    }
    return true; /* a digit behind a leading zero is refused as what follows the value */
}

static bool scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* The kind of a value by its first byte. */
static enum json_kind kind_of(char first)
{
    switch (first) {
    case '{':
        return JSON_SPAN_OBJECT;
    case '[':
        return JSON_SPAN_ARRAY;
    case '"':
        return JSON_SPAN_STRING;
    case 't':
        return JSON_SPAN_TRUE;
    case 'f':
        return JSON_SPAN_FALSE;
    case 'n':
        return JSON_SPAN_NULL;
    default:
        return first == '-' || is_digit(first) ? JSON_SPAN_NUMBER : JSON_SPAN_NONE;
    }
}

/* An object or array begins. Return: what may follow, or a negative errno. */
static int open_level(struct scan *s, bool object)
{
    uint64_t bit = UINT64_C(1) << s->depth % WORD_BITS;

    if (s->depth == JSON_DEPTH_MAX)
        return -E2BIG;
    if (object)
        s->objects[s->depth / WORD_BITS] |= bit;
    else
        s->objects[s->depth / WORD_BITS] &= ~bit;
    s->depth++;
    s->at++;
    return object ? WANT_FIRST_MEMBER : WANT_FIRST_ELEMENT;
}

/* A value, of an object or array its begin. Return: what may follow, or a negative errno. */
static int scan_value(struct scan *s)
{
    bool good = false;

    switch (kind_of(peek(s))) {
    case JSON_SPAN_OBJECT:
        return open_level(s, true);
    case JSON_SPAN_ARRAY:
        return open_level(s, false);
    case JSON_SPAN_STRING:
        good = scan_string(s);
        break;
    case JSON_SPAN_NUMBER:
        good = scan_number(s);
        break;
    case JSON_SPAN_TRUE:
        good = scan_word(s, "true");
        break;
    case JSON_SPAN_FALSE:
        good = scan_word(s, "false");
        break;
    case JSON_SPAN_NULL:
        good = scan_word(s, "null");
        break;
    case JSON_SPAN_NONE:
        break;
    }
    return good ? AFTER_VALUE : -EINVAL;
}

/* A name and its colon. */
static int scan_name(struct scan *s)
{
    if (peek(s) != '"' || !scan_string(s))
        return -EINVAL;
    s->at = skip_blanks(s->at, s->end);
    return take(s, ':') ? WANT_VALUE : -EINVAL;
}

/* What stands behind a value within an object or array. */
static int scan_separator(struct scan *s)
{
    size_t level = s->depth - 1;
    bool object = s->objects[level / WORD_BITS] >> level % WORD_BITS & 1;

    if (take(s, ','))
        return object ? WANT_MEMBER : WANT_VALUE;
    if (!take(s, object ? '}' : ']'))
        return -EINVAL;
    s->depth--;
    return AFTER_VALUE;
}

/* One step. Return: what may follow, or a negative errno. */
static int scan_step(struct scan *s, enum state want)
{
    bool empty = (want == WANT_FIRST_ELEMENT && peek(s) == ']') ||
                 (want == WANT_FIRST_MEMBER && peek(s) == '}');

    if (empty || want == AFTER_VALUE)
        return scan_separator(s);
    if (want == WANT_FIRST_MEMBER || want == WANT_MEMBER)
        return scan_name(s);
    return scan_value(s);
}

int json_scan(const char *text, size_t len, struct json_span *ret)
{
    struct scan s = {.at = len > 0 ? text : ""};
    int want = WANT_VALUE;
    const char *start, *last;

    s.end = s.at + len;
    s.at = start = skip_blanks(s.at, s.end);
    do {
        s.at = skip_blanks(s.at, s.end);
        want = scan_step(&s, (enum state)want);
        if (want < 0)
            return want;
    } while (s.depth > 0 || want != AFTER_VALUE);
    last = s.at;
    if (skip_blanks(s.at, s.end) != s.end)
        return -EINVAL;
    *ret = (struct json_span){kind_of(*start), start, (size_t)(last - start)};
    return 0;
}

/* Walks over what was judged */

static bool is_escaped(const char *quote, const char *start)
{
    const char *at = quote;

    while (at > start && at[-1] == '\\')
        at--;
    return (quote - at) % 2 != 0;
}

/* From a quote to behind the one that closes the string. */
static const char *skip_string(const char *at, const char *end)
{
    const char *start = at + 1, *quote = at;

    do {
        at = quote + 1;
        quote = at < end ? memchr(at, '"', (size_t)(end - at)) : NULL;
        if (!quote)
            return end;
    } while (is_escaped(quote, start));
    return quote + 1;
}

/* From its opening bracket to behind its closing one. */
static const char *skip_nested(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        char c = *at;

        if (c == '"') {
            at = skip_string(at, end);
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            break;
    }
    return at;
}

/* The value that stands at @at. */
static struct json_span value_at(const char *at, const char *end)
{
    struct json_span v = {.at = at};
    const char *behind = at;

    if (at == end)
        return v;
    v.kind = kind_of(*at);
    if (v.kind == JSON_SPAN_OBJECT || v.kind == JSON_SPAN_ARRAY)
        behind = skip_nested(at, end);
    else if (v.kind == JSON_SPAN_STRING)
        behind = skip_string(at, end);
    else /* no byte of a number or word is one of these */
        while (behind < end && !strchr(",]} \t\r\n", *behind))
            behind++;
    v.len = (size_t)(behind - at);
    return v;
}

/* To the next element of an array or name of an object. Return: NULL behind the last. */
static const char *next_item(struct json_span container, const char *at)
{
    const char *end = container.at + container.len;

    at = skip_blanks(at ? at : container.at + 1, end);
    if (at < end && *at == ',')
        at = skip_blanks(at + 1, end);
    return at < end && *at != ']' && *at != '}' ? at : NULL;
}

bool json_span_next(struct json_span array, const char **at, struct json_span *ret)
{
    const char *item = array.kind == JSON_SPAN_ARRAY ? next_item(array, *at) : NULL;

    if (!item)
        return false;
    *ret = value_at(item, array.at + array.len);
    *at = item + ret->len;
    return true;
}

bool json_span_next_member(struct json_span object, const char **at, struct json_span *ret_name,
                           struct json_span *ret)
{
    const char *item = object.kind == JSON_SPAN_OBJECT ? next_item(object, *at) : NULL;
    const char *end;

    if (!item)
        return false;
    end = object.at + object.len;
    *ret_name = value_at(item, end);
    item = skip_blanks(item + ret_name->len, end);
    item = skip_blanks(item + (item < end), end); /* the colon */
    *ret = value_at(item, end);
    *at = item + ret->len;
    return true;
}

struct json_span json_span_member(struct json_span object, const char *key)
{
    struct json_span name, value;
    const char *at = NULL;

    while (json_span_next_member(object, &at, &name, &value))
        if (json_span_is(name, key))
            return value;
    return (struct json_span){.kind = JSON_SPAN_NONE};
}

/* An order of spans, by length first, which is at hand. */
static int compare_spans(const void *a, const void *b)
{
    const struct json_span *x = a, *y = b;

    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return memcmp(x->at, y->at, x->len);
}

bool json_span_unique(struct json_span object)
{
    struct json_span names[JSON_MEMBERS_MAX], name, value;
    const char *at = NULL;
    size_t n = 0;

    while (json_span_next_member(object, &at, &name, &value)) {
        if (n == JSON_MEMBERS_MAX)
            return false;
        names[n++] = name;
    }
    if (n < 2)
        return true;
    /* Sorted, since comparing each with each takes too long when all are long and alike. */
    qsort(names, n, sizeof *names, compare_spans);
    for (size_t i = 1; i < n; i++)
        if (json_span_equal(names[i - 1], names[i]))
            return false;
    return true;
}

/* Values */

static char *put_utf8(char *out, unsigned v)
{
    static const unsigned char leads[] = {0x00, 0xC0, 0xE0, 0xF0};
    unsigned more = v < 0x80 ? 0 : v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;

    *out++ = (char)(leads[more] | v >> 6 * more);
    while (more-- > 0)
        *out++ = (char)(0x80 | (v >> 6 * more & 0x3F));
    return out;
}

/* What "\uXXXX" at @at, and its other half behind it, stands for; or -EINVAL. */
static int code_point(const char **at, const char *end)
{
    int v = four_digits(*at + 2, end), low = -1;

    *at += 6;
    if (v < 0xD800 || v > 0xDFFF)
        return v < 0 ? -EINVAL : v;
    if (v < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u')
        low = four_digits(*at + 2, end);
    if (low < 0xDC00 || low > 0xDFFF)
        return -EINVAL;
    *at += 6;
    return 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
}

/* The characters of a string from @at to its closing quote at @end. Return: the end, or NULL. */
static char *put_unescaped(char *out, const char *at, const char *end)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";

    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        size_t n = (size_t)((escape ? escape : end) - at);

        memcpy(out, at, n);
        out += n;
        if (!escape)
            break;
        at = escape;
        if (at[1] == 'u') {
            int v = code_point(&at, end);

            if (v < 0)
                return NULL;
            out = put_utf8(out, (unsigned)v);
        } else {
            *out++ = values[strchr(names, at[1]) - names];
            at += 2;
        }
    }
    return out;
}

int json_span_text(struct json_span string, char **ret, size_t *ret_len)
{
    _cleanup_free_ char *text = NULL;
    char *end;

    if (string.kind != JSON_SPAN_STRING)
        return -EINVAL;
    text = malloc(string.len); /* nothing is shorter as an escape; room of the quotes is left */
    if (!text)
        return -ENOMEM;
    end = put_unescaped(text, string.at + 1, string.at + string.len - 1);
    if (!end)
        return -EINVAL;
    *end = '\0';
    *ret_len = (size_t)(end - text);
    *ret = TAKE_PTR(text);
    return 0;
}

bool json_span_is(struct json_span string, const char *text)
{
    size_t len = strlen(text);

    return string.kind == JSON_SPAN_STRING && string.len == len + 2 &&
           memcmp(string.at + 1, text, len) == 0;
}

bool json_span_equal(struct json_span a, struct json_span b)
{
    return a.kind == b.kind && a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool json_span_is_integer(struct json_span number)
{
    if (number.kind != JSON_SPAN_NUMBER)
        return false;
    for (size_t i = 0; i < number.len; i++)
        if (!is_digit(number.at[i]) && number.at[i] != '-')
            return false;
    return true;
}

int json_span_integer(struct json_span number, long long *ret)
{
    bool negative;
    long long v = 0;

    if (!json_span_is_integer(number))
        return -EINVAL;
    negative = number.at[0] == '-';
    for (size_t i = negative; i < number.len; i++) { /* downwards, where there is one more */
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, number.at[i] - '0', &v))
            return -EINVAL;
    }
    if (!negative && v == LLONG_MIN)
        return -EINVAL;
    *ret = negative ? v : -v;
    return 0;
}
