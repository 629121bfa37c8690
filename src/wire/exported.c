/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of an export. */
#include "wire/exported.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"
#include "base/guards.h"

/* A field of at most EXPORTED_TEXT_MAX bytes; NULL is left out. */
static void put_text(struct writer *w, uint16_t tag, const char *text)
{
    char part[EXPORTED_TEXT_MAX];

    if (!text)
        return;
    (void)snprintf(part, sizeof part, "%s", text);
    field_put_string(w, tag, part);
}

void exported_report_encode(struct writer *w, const struct exported_report *x)
{
    put_text(w, TAG_PATH, x->path);
    put_text(w, TAG_URL, x->url);
    if (x->bytes > 0)
        field_put_u64(w, TAG_SIZE, x->bytes);
    put_text(w, TAG_DIGEST, x->digest);
    put_text(w, TAG_ERROR_MESSAGE, x->message);
}

static size_t text_size(const char *text)
{
    return text ? FIELD_HEADER_BYTES + strnlen(text, EXPORTED_TEXT_MAX) + 1 : 0;
}

size_t exported_report_size(const struct exported_report *x)
{
    return text_size(x->path) + text_size(x->url) + FIELD_HEADER_BYTES + sizeof x->bytes +
           text_size(x->digest) + text_size(x->message);
}

/* NULL when it is damaged, or longer than put_text() makes them. */
static const char *text_of(const struct field *f)
{
    const char *text = field_string(f);

    return text && strnlen(text, EXPORTED_TEXT_MAX) < EXPORTED_TEXT_MAX ? text : NULL;
}

/* Return: false when it is damaged. */
static bool take(const struct field *f, struct exported_report *x)
{
    switch (f->tag) {
    case TAG_PATH:
        return (x->path = text_of(f)) != NULL;
    case TAG_URL:
        return (x->url = text_of(f)) != NULL;
    case TAG_SIZE:
        return field_u64(f, &x->bytes);
    case TAG_DIGEST:
        return (x->digest = text_of(f)) != NULL;
    case TAG_ERROR_MESSAGE:
        return (x->message = text_of(f)) != NULL;
    default:
        return true;
    }
}

int exported_report_decode(struct reader message, struct exported_report *ret)
{
    struct exported_report x = {0};
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f))
        good = take(&f, &x);
    if (!good || message.bad || !x.path || !x.url)
        return -EPROTO;
    *ret = x;
    return 0;
}

/* @ends: what no URL in the text contains. The result is never longer but by QUERY for each '?'. */
static char *without_secrets(const char *text, const char *ends)
{
    static const char query[] = "?***";
    char stops[32];
    char *shown = malloc(strlen(text) * sizeof query + 1), *to = shown;

    if (!shown)
        return NULL;
    (void)snprintf(stops, sizeof stops, "/?#%s", ends);
    for (const char *scheme; (scheme = strstr(text, "://"));) {
        const char *authority = scheme + 3, *end = authority + strcspn(authority, ends);
        const char *at = memrchr(authority, '@', strcspn(authority, stops));
        const char *rest = at ? at + 1 : authority;
        const char *mark = memchr(rest, '?', (size_t)(end - rest));

        to = mempcpy(to, text, (size_t)(authority - text));
        to = mempcpy(to, rest, (size_t)((mark ? mark : end) - rest));
        if (mark)
            to = mempcpy(to, query, sizeof query - 1);
        text = end;
    }
    memcpy(to, text, strlen(text) + 1);
    return shown;
}

char *exported_url(const char *url)
{
    return without_secrets(url, "");
}

char *exported_text(const char *text)
{
    return without_secrets(text, " \t\n'\"");
}
