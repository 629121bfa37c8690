/* SPDX-License-Identifier: Apache-2.0 */
/* Names, lines, occurrences, and the walk of a search. */
#include "toolset/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "toolset/shown.h"
#include "base/guards.h"

/* --- names --- */

/*
 * fnmatch(3) is not used: what ? means there depends on the locale of the program, and many stars
 * keep it busy for longer than anybody waits.
 */

enum { NO_UTF8 = 0x110000 }; /* behind the last character of Unicode: a byte that is none */

/* The next character, which is moved behind; 0 at the end. */
static uint32_t take(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    size_t len = strnlen(*p, 4);
    int n = len > 0 ? shown_character(*p, len, true) : 0;
    uint32_t c;

    *p += n > 0 ? n : n < 0 ? 1 : 0;
    if (n <= 0)
        return n < 0 ? NO_UTF8 + s[0] : 0;
    c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3Fu);
    return c;
}

/* Behind "[": whether the set has @c, and *@p moved behind it. Return: -1 when nothing closes it.
 */
static int in_set(const char **p, uint32_t c)
{
    const char *at = *p;
    bool negated = *at == '!' || *at == '^', found = false;

    at += negated;
    for (bool first = true; *at && (first || *at != ']'); first = false) {
        uint32_t low = take(&at), high = low;

        if (at[0] == '-' && at[1] && at[1] != ']') {
            at++;
            high = take(&at);
        }
        found = found || (low <= c && c <= high);
    }
    if (*at != ']')
        return -1;
    *p = at + 1;
    return found != negated;
}

/* Whether @c fits what the pattern goes on with, which is moved behind then. */
static bool fits_one(const char **pattern, uint32_t c)
{
    const char *p = *pattern;
    uint32_t want = take(&p);
    int r = want == '[' ? in_set(&p, c) : -1;

    if (want == 0 || r == 0 || (r < 0 && want != '?' && want != c))
        return false;
    *pattern = p;
    return true;
}

/* Only the last star is ever gone back to, so this takes no longer than pattern times name. */
bool search_name_fits(const char *pattern, const char *name)
{
    const char *behind_star = NULL, *again = NULL;

    while (*name) {
        const char *rest = name;

        if (*pattern == '*') {
            behind_star = ++pattern;
            again = name;
        } else if (fits_one(&pattern, take(&rest))) {
            name = rest;
        } else if (behind_star) {
            pattern = behind_star;
            (void)take(&again);
            name = again;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

/* --- lines --- */

enum {
    LOOKED_AT_FOR_NUL = 8192,
    AROUND_BYTES = 4096, /* of a line on both sides of a match, before anything is masked */
};

static const char cut_mark[] = "...";

bool search_is_text(const void *bytes, size_t len)
{
    return len == 0 || !memchr(bytes, '\0', len < LOOKED_AT_FOR_NUL ? len : LOOKED_AT_FOR_NUL);
}

/* How many LFs there are, and where the line begins that goes on at @to. */
static uint64_t count_lines(const char *bytes, size_t from, size_t to, size_t *ret_start)
{
    const char *lf;
    uint64_t n = 0;

    while (from < to && (lf = memchr(bytes + from, '\n', to - from))) {
        from = (size_t)(lf - bytes) + 1;
        n++;
    }
    *ret_start = from;
    return n;
}

bool search_next_line(struct search_lines *s, struct search_line *ret)
{
    const char *found =
        s->at < s->len ? memmem(s->bytes + s->at, s->len - s->at, s->text, s->text_len) : NULL;
    const char *lf;

    if (!found)
        return false;
    ret->match = (size_t)(found - s->bytes);
    s->passed += count_lines(s->bytes, s->at, ret->match, &ret->start);
    ret->number = ++s->passed;
    lf = memchr(found, '\n', s->len - ret->match);
    ret->end = lf ? (size_t)(lf - s->bytes) : s->len;
    s->at = ret->end + 1;
    return true;
}

/* Of the bytes from..to, masked, what lies behind @skip line ends and on one line, as UTF-8. */
static int mask_part(const struct search_lines *s, const struct mask *mask, size_t from, size_t to,
                     uint64_t skip, char **ret, size_t *ret_len)
{
    unsigned cut = (from > 0 ? MASK_CUT_START : 0u) | (to < s->len ? MASK_CUT_END : 0u);
    _cleanup_free_ char *masked = NULL;
    const char *line, *lf;
    size_t len;

    if (mask_text(mask, s->bytes + from, to - from, cut, &masked, &len) < 0)
        return -ENOMEM;
    /* A mask keeps line ends, so lines can be counted in what it gives. */
    line = masked;
    while (skip-- > 0 && (lf = memchr(line, '\n', len - (size_t)(line - masked))))
        line = lf + 1;
    len -= (size_t)(line - masked);
    lf = memchr(line, '\n', len);
    return shown_utf8(line, lf ? (size_t)(lf - line) : len, ret, ret_len);
}

static bool goes_on(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* @pos: of the match. @before, @behind: bytes of the line are not in @piece. */
static int cut_around(const char *piece, size_t len, size_t pos, size_t match_len, bool before,
                      bool behind, char **ret, size_t *ret_len)
{
    size_t spare = match_len < SEARCH_LINE_BYTES ? SEARCH_LINE_BYTES - match_len : 0;
    size_t from = 0, to = len;
    struct buffer b = {0};

    if (len > SEARCH_LINE_BYTES) {
        from = pos > spare / 2 ? pos - spare / 2 : 0;
        if (from > len - SEARCH_LINE_BYTES)
            from = len - SEARCH_LINE_BYTES;
        to = from + SEARCH_LINE_BYTES;
        while (from < to && goes_on(piece[from]))
            from++;
        while (to > from && to < len && goes_on(piece[to]))
            to--;
    }
    if (before || from > 0)
        buffer_add_text(&b, cut_mark);
    buffer_add(&b, piece + from, to - from);
    if (behind || to < len)
        buffer_add_text(&b, cut_mark);
    return buffer_take(&b, ret, ret_len);
}

/*
 * Masked is more than is shown, on both sides as much as a secret can have that lies on it. A
 * secret may have line ends in it, so that goes beyond the line.
 */
int search_show_line(const struct search_lines *s, const struct search_line *line,
                     const struct mask *mask, char **ret, size_t *ret_len)
{
    size_t longest = mask_longest(mask), match_end = line->match + s->text_len;
    size_t low =
        line->match - line->start > AROUND_BYTES ? line->match - AROUND_BYTES : line->start;
    size_t high = line->end - match_end > AROUND_BYTES ? match_end + AROUND_BYTES : line->end;
    size_t from = low > longest ? low - longest : 0;
    size_t to = s->len - high > longest ? high + longest : s->len;
    _cleanup_free_ char *piece = NULL, *front = NULL;
    size_t len, pos, start;
    uint64_t skip = count_lines(s->bytes, from, low, &start);
    const char *found;

    if (mask_part(s, mask, from, to, skip, &piece, &len) < 0)
        return -ENOMEM;
    if (len > 0 && piece[len - 1] == '\r')
        len--;
    found = memmem(piece, len, s->text, s->text_len);
    if (!found && mask_part(s, mask, from, line->match, skip, &front, &pos) < 0)
        return -ENOMEM;
    if (found)
        pos = (size_t)(found - piece);
    return cut_around(piece, len, pos < len ? pos : len, found ? s->text_len : 0, low > line->start,
                      high < line->end, ret, ret_len);
}

/* --- occurrences --- */

/* For each beginning of @what, the longest proper one that it ends with (Knuth, Morris, Pratt). */
static size_t *borders_of(const char *what, size_t n)
{
    size_t *borders = reallocarray(NULL, n + 1, sizeof *borders), k = 0;

    if (!borders)
        return NULL;
    borders[0] = borders[1] = 0;
    for (size_t i = 1; i < n; i++) {
        while (k > 0 && what[i] != what[k])
            k = borders[k];
        k += what[i] == what[k];
        borders[i + 1] = k;
    }
    return borders;
}

/* One more, which begins in that line. */
static void tell_line(struct search_found *f, uint64_t line)
{
    f->n++;
    if (f->n_lines > 0 && f->lines[f->n_lines - 1] == line)
        return;
    if (f->n_lines < SEARCH_LINES_TOLD)
        f->lines[f->n_lines++] = line;
    else
        f->more_lines = true;
}

/*
 * Not with memmem(3) from each occurrence on: of a text of one character repeated there are as many
 * as bytes, and each would cost the length of what is looked for.
 */
int search_occurrences(const char *text, size_t len, const char *what, size_t n,
                       struct search_found *ret)
{
    const char *first = len >= n ? memmem(text, len, what, n) : NULL;
    _cleanup_free_ size_t *borders = first ? borders_of(what, n) : NULL;
    size_t counted = 0, start, k = 0;
    uint64_t line = 1;

    *ret = (struct search_found){0};
    if (!first)
        return 0;
    if (!borders)
        return -ENOMEM;
    ret->first = (size_t)(first - text);
    for (size_t i = ret->first; i < len; i++) {
        while (k > 0 && text[i] != what[k])
            k = borders[k];
        k += text[i] == what[k];
        if (k < n)
            continue;
        line += count_lines(text, counted, i + 1 - n, &start);
        counted = i + 1 - n;
        tell_line(ret, line);
        k = borders[k];
    }
    return 0;
}

/* Whether the byte at @i makes no difference. */
static bool passed_over(enum search_apart apart, const char *text, size_t len, size_t i)
{
    char c = text[i];

    if (apart == SEARCH_APART_LINE_ENDS)
        return c == '\r' && i + 1 < len && text[i + 1] == '\n';
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A copy without these bytes; NULL: no memory. */
static char *without(enum search_apart apart, const char *text, size_t len, size_t *ret_len)
{
    char *copy = malloc(len + 1);
    size_t n = 0;

    for (size_t i = 0; copy && i < len; i++)
        if (!passed_over(apart, text, len, i))
            copy[n++] = text[i];
    *ret_len = n;
    return copy;
}

/* The line of the kept byte that has @kept others in front of it. */
static uint64_t line_of_kept(enum search_apart apart, const char *text, size_t len, size_t kept)
{
    uint64_t line = 1;

    for (size_t i = 0; i < len; i++) {
        if (!passed_over(apart, text, len, i) && kept-- == 0)
            break;
        line += text[i] == '\n';
    }
    return line;
}

int search_apart_from(enum search_apart apart, const char *text, size_t len, const char *what,
                      size_t n, uint64_t *ret_line)
{
    size_t text_len, what_len;
    _cleanup_free_ char *in = without(apart, text, len, &text_len);
    _cleanup_free_ char *bare = without(apart, what, n, &what_len);
    const char *found;

    if (!in || !bare)
        return -ENOMEM;
    found = what_len > 0 && what_len <= text_len ? memmem(in, text_len, bare, what_len) : NULL;
    *ret_line = found ? line_of_kept(apart, text, len, (size_t)(found - in)) : 0;
    return 0;
}

/* --- a walk --- */

/* As if a folder's name ended with the "/" that follows it in paths. */
static int by_path(const void *a, const void *b)
{
    const struct atoll_file *x = *(const struct atoll_file *const *)a;
    const struct atoll_file *y = *(const struct atoll_file *const *)b;
    const unsigned char *s = (const unsigned char *)x->name, *t = (const unsigned char *)y->name;
    size_t i = 0;

    while (s[i] && s[i] == t[i])
        i++;
    return (s[i] || x->kind != ATOLL_FOLDER ? s[i] : '/') -
           (t[i] || y->kind != ATOLL_FOLDER ? t[i] : '/');
}

static void free_entries(struct search_level *l, size_t from)
{
    while (l->n > from)
        free(l->entries[--l->n].name);
}

/* What comes last goes first: of the top, and then of the folders below it. */
static void trim(struct search_walk *w)
{
    for (size_t i = 0; i < w->depth && w->pending > w->left; i++) {
        struct search_level *l = &w->levels[i];
        size_t excess = w->pending - w->left, have = l->n - l->at;

        w->too_many = true;
        excess = excess < have ? excess : have;
        free_entries(l, l->n - excess);
        w->pending -= excess;
    }
}

static int fill_level(struct search_walk *w, struct search_level *l,
                      const struct atoll_file *const *files, size_t n)
{
    _cleanup_free_ const struct atoll_file **sorted = reallocarray(NULL, n + 1, sizeof(void *));

    if (!sorted)
        return -ENOMEM;
    if (n > 0)
        memcpy(sorted, files, n * sizeof(void *));
    qsort(sorted, n, sizeof(void *), by_path);
    if (n > w->left) {
        w->too_many = true;
        n = w->left;
    }
    l->entries = calloc(n + 1, sizeof *l->entries);
    if (!l->entries)
        return -ENOMEM;
    for (; l->n < n; l->n++) {
        const struct atoll_file *f = sorted[l->n];
        char *name = strdup(f->name);

        if (!name)
            return -ENOMEM;
        l->entries[l->n] = (struct search_entry){.name = name, .size = f->size, .kind = f->kind};
    }
    return 0;
}

int search_walk_enter(struct search_walk *w, const struct atoll_file *const *files, size_t n)
{
    struct search_level *l = &w->levels[w->depth];

    if (w->depth > 0)
        buffer_add(&w->path, "/", 1);
    *l = (struct search_level){.path = w->path.len};
    w->depth++; /* from here on search_walk_done() frees it */
    if (w->path.bad || fill_level(w, l, files, n) < 0)
        return -ENOMEM;
    w->pending += l->n;
    trim(w);
    return 0;
}

int search_walk_next(struct search_walk *w, const struct search_entry **ret)
{
    while (w->depth > 0) {
        struct search_level *l = &w->levels[w->depth - 1];
        struct search_entry *e;

        if (l->at == l->n) {
            free_entries(l, 0);
            free(TAKE_PTR(l->entries));
            w->depth--;
            continue;
        }
        e = &l->entries[l->at++];
        w->pending--;
        w->left--;
        if (e->kind == ATOLL_FOLDER && w->depth == SEARCH_DEPTH_MAX) {
            w->too_deep = true;
            continue;
        }
        w->path.len = l->path;
        buffer_add_text(&w->path, e->name);
        if (!buffer_reserve(&w->path, 0))
            return -ENOMEM;
        w->path.bytes[w->path.len] = '\0';
        *ret = e;
        return 1;
    }
    return 0;
}

void search_walk_done(struct search_walk *w)
{
    while (w->depth > 0) {
        struct search_level *l = &w->levels[--w->depth];

        free_entries(l, 0);
        free(TAKE_PTR(l->entries));
    }
    buffer_done(&w->path);
}
