/* SPDX-License-Identifier: Apache-2.0 */
/* Quoting and encoding of file names. */
#include "cli/name_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/json_text.h"
#include "base/guards.h"

enum { KEY_BYTES = 64 };

static bool has_controls(const char *s)
{
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)) /* C1 */
            return true;
    return false;
}

static bool is_plain(const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_.,:+-/@%";

    if (s[0] == '\0')
        return false;
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if (*p < 0x80 && !strchr(plain, *p))
            return false;
    return true;
}

static void print_escaped(FILE *f, const char *s)
{
    fputs("$'", f);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        if (*p == '\n')
            fputs("\\n", f);
        else if (*p == '\t')
            fputs("\\t", f);
        else if (*p == '\\' || *p == '\'')
            fprintf(f, "\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            fprintf(f, "\\%03o", *p);
        else
            putc(*p, f);
    }
    putc('\'', f);
}

void name_print_quoted(FILE *f, const char *name)
{
    if (has_controls(name) || !text_is_utf8(name, strlen(name))) {
        print_escaped(f, name);
        return;
    }
    if (is_plain(name)) {
        fputs(name, f);
        return;
    }
    putc('\'', f);
    for (const char *p = name; *p; p++) {
        if (*p == '\'')
            fputs("'\\''", f);
        else
            putc(*p, f);
    }
    putc('\'', f);
}

/* RFC 4648, section 4. Return: an owned text, or NULL without memory. */
static char *base64(const char *s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = (const uint8_t *)s;
    size_t n = strlen(s);
    char *text = malloc(n / 3 * 4 + 5), *at = text;

    if (!text)
        return NULL;
    for (; n > 0; p += 3) {
        uint32_t group =
            (uint32_t)p[0] << 16 | (uint32_t)(n > 1 ? p[1] : 0) << 8 | (uint32_t)(n > 2 ? p[2] : 0);

        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = n > 1 ? digits[group >> 6 & 63] : '=';
        *at++ = n > 2 ? digits[group & 63] : '=';
        n -= n < 3 ? n : 3;
    }
    *at = '\0';
    return text;
}

int name_set_json(json_t *object, const char *key, const char *name)
{
    char beside[KEY_BYTES];

    if (!name)
        return 0;
    if (json_object_set_new(object, key, json_text(name)) < 0)
        return -ENOMEM;
    if (text_is_utf8(name, strlen(name)))
        return 0;
    _cleanup_free_ char *bytes = base64(name);
    (void)snprintf(beside, sizeof beside, "%s_base64", key);
    return !bytes || json_object_set_new(object, beside, json_string(bytes)) < 0 ? -ENOMEM : 0;
}
