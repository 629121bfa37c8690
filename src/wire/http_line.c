/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and fields of HTTP/1.1, in the only reading that all servers share. */
#include "wire/http_line.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/guards.h"

enum { DECIMAL_DIGITS_MAX = 18 }; /* below 2^63, so that no server's number overflows */

bool http_char_is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_text_is_token(struct http_text t)
{
    for (size_t i = 0; i < t.n; i++)
        if (!http_char_is_token(t.at[i]))
            return false;
    return t.n > 0;
}

bool http_text_is(struct http_text t, const char *word)
{
    return t.n == strlen(word) && strncasecmp(t.at, word, t.n) == 0;
}

struct http_text http_text_cut(struct http_text *t, char c)
{
    const char *end = t->n > 0 ? memchr(t->at, c, t->n) : NULL;
    struct http_text part = {t->at, end ? (size_t)(end - t->at) : t->n};
    size_t used = part.n + (end ? 1 : 0);

    *t = (struct http_text){t->at + used, t->n - used};
    return part;
}

struct http_text http_text_trimmed(struct http_text t)
{
    while (t.n > 0 && (t.at[0] == ' ' || t.at[0] == '\t'))
        t = (struct http_text){t.at + 1, t.n - 1};
    while (t.n > 0 && (t.at[t.n - 1] == ' ' || t.at[t.n - 1] == '\t'))
        t.n--;
    return t;
}

bool http_text_decimal(struct http_text t, uint64_t *ret)
{
    uint64_t n = 0;

    if (t.n == 0 || t.n > DECIMAL_DIGITS_MAX || (t.n > 1 && t.at[0] == '0'))
        return false;
    for (size_t i = 0; i < t.n; i++) {
        if (t.at[i] < '0' || t.at[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(t.at[i] - '0');
    }
    *ret = n;
    return true;
}

size_t http_line_bytes(const uint8_t *data, size_t len, size_t at)
{
    const uint8_t *end = at < len ? memchr(data + at, '\n', len - at) : NULL;

    return end ? (size_t)(end - (data + at)) + 1 : 0;
}

bool http_line_text(const uint8_t *line, size_t bytes, struct http_text *ret)
{
    struct http_text t = {(const char *)line, bytes - 1};

    if (t.n == 0 || t.at[t.n - 1] != '\r')
        return false;
    t.n--;
    for (size_t i = 0; i < t.n; i++) {
        unsigned char c = (unsigned char)t.at[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    *ret = t;
    return true;
}

static const char *const field_names[] = {
    [HTTP_FIELD_OTHER] = "",
    [HTTP_FIELD_HOST] = "host",
    [HTTP_FIELD_CONTENT_LENGTH] = "content-length",
    [HTTP_FIELD_TRANSFER_ENCODING] = "transfer-encoding",
    [HTTP_FIELD_CONNECTION] = "connection",
    [HTTP_FIELD_UPGRADE] = "upgrade",
};
static_assert(ARRAY_SIZE(field_names) == HTTP_FIELD__MAX, "every field has a name");

/* Whether @name is @known; *@ret_exact: without taking '_' for '-'. */
static bool is_field(struct http_text name, const char *known, bool *ret_exact)
{
    if (name.n != strlen(known))
        return false;
    *ret_exact = true;
    for (size_t i = 0; i < name.n; i++) {
        bool line = name.at[i] == '_' && known[i] == '-';

        if (!line && strncasecmp(name.at + i, known + i, 1) != 0)
            return false;
        *ret_exact &= !line;
    }
    return true;
}

bool http_field_find(struct http_text name, enum http_field *ret)
{
    bool exact;

    *ret = HTTP_FIELD_OTHER;
    for (size_t f = HTTP_FIELD_OTHER + 1; f < HTTP_FIELD__MAX; f++)
        if (is_field(name, field_names[f], &exact)) {
            *ret = (enum http_field)f;
            return exact;
        }
    return true;
}

bool http_line_field(struct http_text line, enum http_field *ret, struct http_text *ret_value)
{
    struct http_text value = line, name = http_text_cut(&value, ':');

    if (name.n == line.n || !http_text_is_token(name))
        return false;
    *ret_value = http_text_trimmed(value);
    return http_field_find(name, ret);
}
