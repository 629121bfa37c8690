/* SPDX-License-Identifier: Apache-2.0 */
/* Quoting of file names. */
#include "cli/name_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

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
