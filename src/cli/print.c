/* SPDX-License-Identifier: Apache-2.0 */
/* Printing: colour, wrapped text, aligned tables, JSON, human units. */
#include "cli/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

enum { PRINT_WIDTH = 80 };

bool print_colour_wanted(FILE *f)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (no_color && no_color[0] != '\0')
        return false;
    if (!term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fileno(f)) == 1;
}

static const char *style_start(enum print_style style)
{
    switch (style) {
    case PRINT_PLAIN:
        return "";
    case PRINT_BOLD:
        return "\033[1m";
    case PRINT_GOOD:
        return "\033[32m";
    case PRINT_WARNING:
        return "\033[33m";
    case PRINT_BAD:
        return "\033[31m";
    case PRINT_FAINT:
        return "\033[2m";
    }
    return "";
}

void print_styled(FILE *f, bool colour, enum print_style style, const char *text)
{
    bool styled = colour && style != PRINT_PLAIN && text[0] != '\0';

    fprintf(f, "%s%s%s", styled ? style_start(style) : "", text, styled ? "\033[0m" : "");
}

static void print_spaces(FILE *f, size_t n)
{
    for (; n > 0; n--)
        putc(' ', f);
}

void print_wrapped(FILE *f, size_t column, size_t indent, const char *text)
{
    bool first = true; /* word of its line */

    while (*text) {
        size_t len = strcspn(text, " \n");

        if (len > 0 && !first && column + 1 + len > PRINT_WIDTH) {
            putc('\n', f);
            column = 0;
            first = true;
        }
        if (len > 0) {
            size_t gap = !first ? 1 : column < indent ? indent - column : 0;

            print_spaces(f, gap);
            fprintf(f, "%.*s", (int)len, text);
            column += gap + len;
            first = false;
        }
        text += len;
        if (*text == '\n') {
            putc('\n', f);
            column = 0;
            first = true;
        }
        text += *text != '\0';
    }
    putc('\n', f);
}

static int write_failed(const char *name, int code, struct error *err)
{
    if (code == 0)
        code = EIO; /* the stream remembers that a write failed, not why */
    return error_set(err, ERROR_TERMINAL, code, "cannot write to %s: %s", name, strerror(code));
}

int print_json(FILE *f, json_t *value, struct error *err)
{
    _cleanup_free_ char *text =
        value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(16)) : NULL;

    json_decref(value);
    if (!text)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "the JSON output could not be made");
    errno = 0;
    if (fprintf(f, "%s\n", text) < 0)
        return write_failed("the output", errno, err);
    return 0;
}

int print_flush(FILE *f, const char *name, struct error *err)
{
    int flushed;

    errno = 0;
    flushed = fflush(f);
    if (flushed != 0 || ferror(f))
        return write_failed(name, errno, err);
    return 0;
}

void print_size_text(char buf[PRINT_UNIT_MAX], uint64_t bytes)
{
    static const char units[] = "BKMGT";
    size_t unit = 0;

    while (bytes > 0 && bytes % 1024 == 0 && units[unit + 1] != '\0') {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(buf, PRINT_UNIT_MAX, "%llu%c", (unsigned long long)bytes, units[unit]);
}

void print_duration_text(char buf[PRINT_UNIT_MAX], uint64_t us)
{
    static const struct {
        uint64_t us;
        const char *unit;
    } units[] = {
        {86400000000, "d"}, {3600000000, "h"}, {60000000, "m"}, {1000000, "s"}, {1000, "ms"}};
    int len;

    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (us > 0 && us % units[i].us == 0) {
            (void)snprintf(buf, PRINT_UNIT_MAX, "%llu%s", (unsigned long long)(us / units[i].us),
                           units[i].unit);
            return;
        }
    len = snprintf(buf, PRINT_UNIT_MAX, "%llu.%06llu", (unsigned long long)(us / 1000000),
                   (unsigned long long)(us % 1000000));
    while (len > 0 && buf[len - 1] == '0')
        len--;
    if (len > 0 && buf[len - 1] == '.')
        len--;
    buf[len] = 's';
    buf[len + 1] = '\0';
}
