/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, safe printing of foreign bytes, and the nearest of a set of names. */
#include "base/text.h"

#include <stdint.h>
#include <string.h>

#include "base/guards.h"

enum { NEAREST_WORD_MAX = 64 };

/* Length in bytes of the well-formed sequence at @s, or 0. */
static size_t utf8_sequence(const unsigned char *s, size_t len)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max, length;
    } forms[] = {
        {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t n = forms[i].length;

        if (s[0] < forms[i].first_min || s[0] > forms[i].first_max || n > len)
            continue;
        if (n >= 2 && (s[1] < forms[i].second_min || s[1] > forms[i].second_max))
            return 0;
        for (size_t k = 2; k < n; k++)
            if (s[k] < 0x80 || s[k] > 0xBF)
                return 0;
        return n;
    }
    return 0;
}

bool text_is_utf8(const char *s, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n = utf8_sequence((const unsigned char *)s + at, len - at);

        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

void text_make_printable(char *s)
{
    size_t len = strlen(s);

    for (size_t at = 0; at < len;) {
        unsigned char *c = (unsigned char *)s + at;
        size_t n = utf8_sequence(c, len - at);
        bool c1_control = n == 2 && c[0] == 0xC2 && c[1] < 0xA0;

        if (n == 0 || c[0] < 0x20 || c[0] == 0x7F || c1_control) {
            memset(c, '?', n > 0 ? n : 1);
            n = n > 0 ? n : 1;
        }
        at += n;
    }
}

/* Insertions, deletions, changes and swaps of neighbours that turn @a into @b. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    size_t rows[3][NEAREST_WORD_MAX + 1];

    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                rows[(i - 2) % 3][j - 2] + 1 < best)
                best = rows[(i - 2) % 3][j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[la % 3][lb];
}

const char *text_nearest(const char *word, const char *const names[], size_t n)
{
    size_t len = strlen(word);
    size_t best = len / 3 > 0 ? len / 3 + 1 : 2;
    const char *found = NULL;

    if (len == 0 || len > NEAREST_WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = strlen(names[i]) > NEAREST_WORD_MAX ? best : edit_distance(word, names[i]);

        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    return found;
}
