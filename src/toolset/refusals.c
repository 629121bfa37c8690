/* SPDX-License-Identifier: Apache-2.0 */
#include "toolset/refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "client/denials.h"
#include "base/buffer.h"
#include "toolset/texts.h"
#include "base/guards.h"

enum { PLACE_BYTES = DENIAL_PLACE_BYTES + 16 };

/* "example.net:443" */
static void place_of(const struct atoll_denial *x, char buf[static DENIAL_PLACE_BYTES])
{
    const struct denial d = {.name = x->name, .address = x->address, .port = x->port};

    denial_place(&d, buf);
}

static bool is_first_of_place(const struct atoll_exit *x, size_t i)
{
    char mine[DENIAL_PLACE_BYTES], other[DENIAL_PLACE_BYTES];

    place_of(&x->denials[i], mine);
    for (size_t j = 0; j < i; j++) {
        place_of(&x->denials[j], other);
        if (strcmp(mine, other) == 0)
            return false;
    }
    return true;
}

/* Names are the guest's choice: they hold what it likes, a secret too. Return: as it may be shown,
 * owned by the caller; NULL without memory. */
static char *shown(const struct atoll_toolset *t, const char *text)
{
    char *masked = toolset_masked(t, text, strlen(text), NULL);

    if (masked)
        text_make_printable(masked);
    return masked;
}

/* Return: how many places are in no list. */
static uint64_t put_places(const struct atoll_toolset *t, const struct atoll_exit *x,
                           struct buffer *list)
{
    uint64_t more = x->more_denials;
    size_t n = 0;

    for (size_t i = 0; i < x->n_denials; i++) {
        char place[DENIAL_PLACE_BYTES], one[PLACE_BYTES];

        if (!is_first_of_place(x, i))
            continue;
        if (n == REFUSALS_SHOWN_MAX) {
            more++;
            continue;
        }
        place_of(&x->denials[i], place);
        _cleanup_free_ char *masked = shown(t, place);
        list->bad = list->bad || !masked;
        (void)snprintf(one, sizeof one, "%s%s ", n > 0 ? TEXT_LIST_SEPARATOR : "",
                       x->denials[i].protocol);
        buffer_add_text(list, one);
        buffer_add_text(list, masked ? masked : "");
        n++;
    }
    return more;
}

int refusals_note(const struct atoll_toolset *t, const struct atoll_exit *x, char **ret)
{
    struct buffer list = {0};
    _cleanup_free_ char *places = NULL;
    char rest[64] = "";

    *ret = NULL;
    if (!x || x->n_denials + x->more_denials == 0)
        return 0;
    const uint64_t more = put_places(t, x, &list);
    if (more > 0)
        (void)snprintf(rest, sizeof rest, TEXT_REFUSED_REST, more);
    if (buffer_take(&list, &places, NULL) < 0 ||
        asprintf(ret, TEXT_NOTE_REFUSED, places, rest) < 0) {
        *ret = NULL;
        return -ENOMEM;
    }
    return 0;
}

static json_t *masked_json(const struct atoll_toolset *t, const char *text)
{
    size_t len;
    _cleanup_free_ char *masked = toolset_masked(t, text, strlen(text), &len);

    return masked ? call_string(masked, len) : NULL;
}

json_t *refusals_json(const struct atoll_toolset *t, const struct atoll_exit *x)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < x->n_denials; i++) {
        const struct atoll_denial *d = &x->denials[i];

        if (json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:i, s:o, s:o, s:I}", "protocol",
                                                  d->protocol, "name", masked_json(t, d->name),
                                                  "address", masked_json(t, d->address), "port",
                                                  (int)d->port, "rule", masked_json(t, d->rule),
                                                  "reason", masked_json(t, d->reason), "repeated",
                                                  (json_int_t)d->repeated)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static void put_entry(struct buffer *list, size_t i, size_t n, const char *text)
{
    char rest[64];

    if (i < TEXT_LIST_ENTRIES_MAX) {
        buffer_add_text(list, i > 0 ? TEXT_LIST_SEPARATOR : "");
        buffer_add_text(list, text);
    } else if (i == TEXT_LIST_ENTRIES_MAX) {
        (void)snprintf(rest, sizeof rest, TEXT_LIST_REST, n - i);
        buffer_add_text(list, rest);
    }
}

int refusals_policy_note(const struct atoll_toolset *t, const char *stamp, char **ret)
{
    _cleanup_(policy_done) struct policy p = {0};
    _cleanup_free_ char *entries = NULL, *masked = NULL;
    struct error unknown = ERROR_INIT;
    struct buffer list = {0};

    *ret = NULL;
    if (policy_stamp_decode(stamp, strlen(stamp), &p, &unknown) < 0) {
        *ret = strdup(TEXT_NOTE_POLICY_UNKNOWN);
        return *ret ? 0 : -ENOMEM;
    }
    const size_t n = p.n_hosts + p.n_ranges;
    for (size_t i = 0; i < p.n_hosts; i++)
        put_entry(&list, i, n, p.hosts[i].rule.text);
    for (size_t i = 0; i < p.n_ranges; i++)
        put_entry(&list, p.n_hosts + i, n, p.ranges[i].text);
    if (buffer_take(&list, &entries, NULL) < 0 || !(masked = shown(t, entries)))
        return -ENOMEM;
    int r = n == 0 ? asprintf(ret, "%s", TEXT_NOTE_POLICY_NONE)
                   : asprintf(ret, TEXT_NOTE_POLICY, masked);
    if (r < 0)
        *ret = NULL;
    return r < 0 ? -ENOMEM : 0;
}

char *refusals_policy_line(const struct atoll_toolset *t)
{
    _cleanup_free_ char *note = NULL;
    char *line = NULL;

    if (!t->sb || !t->sb->policy || refusals_policy_note(t, t->sb->policy, &note) < 0 ||
        asprintf(&line, "\n%s", note) < 0)
        return NULL;
    free(TAKE_PTR(t->sb->policy));
    return line;
}
