/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what is wrong with a spec. */
#include "core/problems.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/guards.h"

static void problem_done(struct problem *x)
{
    free(x->field);
    free(x->message);
    free(x->remedy);
}

void problems_done(struct problems *p)
{
    for (size_t i = 0; i < p->n; i++)
        problem_done(&p->items[i]);
    free(p->items);
    *p = (struct problems){0};
}

void problems_add(struct problems *p, const char *field, struct position at, const char *remedy,
                  const char *fmt, ...)
{
    struct problem x = {.at = at, .field = strdup(field)};
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&x.message, fmt, ap) < 0)
        x.message = NULL;
    va_end(ap);
    if (remedy)
        x.remedy = strdup(remedy);
    struct problem *more = reallocarray(p->items, p->n + 1, sizeof *more);
    if (more)
        p->items = more;
    if (!more || !x.field || !x.message || (remedy && !x.remedy)) {
        problem_done(&x);
        p->no_memory = true;
        return;
    }
    p->items[p->n++] = x;
}

bool problems_any(const struct problems *p)
{
    return p->n > 0 || p->no_memory;
}

static bool comes_before(const struct position *a, const struct position *b)
{
    if (a->line == 0 || b->line == 0)
        return a->line != 0 && b->line == 0;
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

void problems_sort(struct problems *p)
{
    for (size_t i = 1; i < p->n; i++) { /* by insertion: few, and those of one place keep order */
        struct problem x = p->items[i];
        size_t k = i;

        for (; k > 0 && comes_before(&x.at, &p->items[k - 1].at); k--)
            p->items[k] = p->items[k - 1];
        p->items[k] = x;
    }
}

void problem_format(const struct problem *x, const char *file, char *buf, size_t size)
{
    char place[320] = "";

    if (file && x->at.line > 0)
        (void)snprintf(place, sizeof place, "%s:%u:%u: ", file, x->at.line, x->at.column);
    else if (file)
        (void)snprintf(place, sizeof place, "%s: ", file);
    (void)snprintf(buf, size, "%s%s%s%s.%s%s%s", place, x->field, x->field[0] ? ": " : "",
                   x->message, x->remedy ? " " : "", x->remedy ? x->remedy : "",
                   x->remedy ? "." : "");
    text_make_printable(buf);
}

/* "spec.env.PORT (line 4, column 9): MESSAGE" */
static void short_form(const struct problem *x, const char *file, char *buf, size_t size)
{
    char place[320] = "";

    if (file && x->at.line > 0)
        (void)snprintf(place, sizeof place, "%s:%u:%u: ", file, x->at.line, x->at.column);
    (void)snprintf(buf, size, "%s%s%s%s", place, x->field, x->field[0] ? ": " : "", x->message);
}

/* Joins as many as the error's text holds, and counts the rest. */
static void join(const struct problems *p, const char *file, char *buf, size_t size)
{
    enum { ROOM_FOR_COUNT = 32 };
    size_t at = 0, i = 0;

    buf[0] = '\0';
    for (; i < p->n; i++) {
        char one[1024];
        size_t room = size - at - (i + 1 < p->n ? ROOM_FOR_COUNT : 0);

        short_form(&p->items[i], file, one, sizeof one);
        if (i > 0 && strlen(one) + sizeof "; " > room)
            break;
        (void)snprintf(buf + at, room, "%s%s", i > 0 ? "; " : "", one);
        at += strlen(buf + at);
    }
    if (i < p->n)
        (void)snprintf(buf + at, size - at, "; and %zu more", p->n - i);
}

int problems_error(const struct problems *p, const char *file, struct error *err)
{
    char text[sizeof err->message];

    if (!problems_any(p))
        return 0;
    if (p->n == 0)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    join(p, file, text, sizeof text);
    (void)error_set(err, ERROR_USAGE, EINVAL, "%s", text);
    if (p->n == 1 && p->items[0].remedy)
        (void)error_remedy(err, "%s", p->items[0].remedy);
    return -EINVAL;
}
