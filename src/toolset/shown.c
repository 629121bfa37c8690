/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, numbers, names and UTF-8 as models are shown them, whatever the locale of the program. */
#include "toolset/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/guards.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

void shown_size(uint64_t bytes, char ret[static SHOWN_SIZE_BYTES])
{
    uint64_t unit = bytes >= MIB ? MIB : KIB;
    uint64_t whole = bytes / unit, scaled = bytes % unit * 10;
    uint64_t tenths = scaled / unit, rest = scaled % unit;

    if (bytes < KIB) {
        (void)snprintf(ret, SHOWN_SIZE_BYTES, "%" PRIu64 "B", bytes);
        return;
    }
    if (rest * 2 > unit || (rest * 2 == unit && tenths % 2 == 1)) /* as printf rounds */
        tenths++;
    (void)snprintf(ret, SHOWN_SIZE_BYTES, "%" PRIu64 ".%" PRIu64 "%s", whole + tenths / 10,
                   tenths % 10, unit == MIB ? "MB" : "KB");
}

void shown_number(double x, char ret[static SHOWN_NUMBER_BYTES])
{
    char text[64]; /* a sign, 6 digits, an exponent, and the locale's point of several bytes */
    size_t n = 0;

    (void)snprintf(text, sizeof text, "%g", x);
    for (const char *p = text; *p && n + 1 < SHOWN_NUMBER_BYTES; p++) {
        if (strchr("+-0123456789einfa", *p))
            ret[n++] = *p;
        else if (n == 0 || ret[n - 1] != '.')
            ret[n++] = '.';
    }
    ret[n] = '\0';
}

int shown_character(const char *text, size_t len, bool end)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned char min = 0x80, max = 0xBF; /* of the second byte (Unicode, table 3-7) */
    size_t whole, n = 1;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return -1;
    whole = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (s[0] == 0xE0)
        min = 0xA0;
    else if (s[0] == 0xED)
        max = 0x9F;
    else if (s[0] == 0xF0)
        min = 0x90;
    else if (s[0] == 0xF4)
        max = 0x8F;
    while (n < whole && n < len && s[n] >= min && s[n] <= max) {
        min = 0x80;
        max = 0xBF;
        n++;
    }
    if (n == whole)
        return (int)n;
    return n == len && !end ? 0 : -(int)n;
}

/* C0, DEL and C1. @n: bytes of the character. */
static bool is_control(const char *s, int n)
{
    unsigned char c = (unsigned char)s[0];

    return c < 0x20 || c == 0x7F || (n == 2 && c == 0xC2 && (unsigned char)s[1] < 0xA0);
}

/* \n, \r, \t, or each byte as \xNN. */
static void put_escaped(struct buffer *b, const char *s, size_t n)
{
    static const char names[] = "nrt", controls[] = "\n\r\t";
    const char *known = n == 1 && *s ? strchr(controls, *s) : NULL;
    char text[8];

    for (size_t i = 0; i < n; i++) {
        if (known)
            (void)snprintf(text, sizeof text, "\\%c", names[known - controls]);
        else
            (void)snprintf(text, sizeof text, "\\x%02x", (unsigned char)s[i]);
        buffer_add_text(b, text);
    }
}

/* @quote: the one around it, which is escaped as the backslash is. */
static void put_quoted(struct buffer *b, const char *s, char quote)
{
    size_t len = strlen(s);

    for (size_t i = 0; i < len;) {
        int n = shown_character(s + i, len - i, true);
        size_t bytes = (size_t)(n < 0 ? -n : n);

        if (n < 0 || is_control(s + i, n)) {
            put_escaped(b, s + i, bytes);
        } else {
            if (s[i] == '\\' || s[i] == quote)
                buffer_add(b, "\\", 1);
            buffer_add(b, s + i, bytes);
        }
        i += bytes;
    }
}

int shown_path(const char *path, char **ret)
{
    struct buffer b = {0};
    char quote = strchr(path, '\'') && !strchr(path, '"') ? '"' : '\'';

    buffer_add(&b, &quote, 1);
    put_quoted(&b, path, quote);
    buffer_add(&b, &quote, 1);
    return buffer_take(&b, ret, NULL);
}

static bool is_plain(const char *s)
{
    size_t len = strlen(s);

    for (size_t i = 0; i < len;) {
        int n = shown_character(s + i, len - i, true);

        if (n < 0 || is_control(s + i, n))
            return false;
        i += (size_t)n;
    }
    return true;
}

int shown_name(const char *name, char **ret)
{
    struct buffer b = {0};

    if (is_plain(name)) {
        buffer_add_text(&b, name);
    } else {
        buffer_add_text(&b, "$'");
        put_quoted(&b, name, '\'');
        buffer_add_text(&b, "'");
    }
    return buffer_take(&b, ret, NULL);
}

int shown_utf8(const char *text, size_t len, char **ret, size_t *ret_len)
{
    struct buffer b = {0};
    size_t good = 0; /* where what can be copied in one begins */

    for (size_t i = 0; i < len;) {
        int n = shown_character(text + i, len - i, true);

        if (n < 0) {
            buffer_add(&b, text + good, i - good);
            buffer_add_text(&b, SHOWN_REPLACEMENT);
            good = i + (size_t)-n;
        }
        i += (size_t)(n < 0 ? -n : n);
    }
    buffer_add(&b, text + good, len - good);
    return buffer_take(&b, ret, ret_len);
}
