/* SPDX-License-Identifier: Apache-2.0 */
#include "toolset/describe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/buffer.h"
#include "toolset/shown.h"
#include "toolset/texts.h"
#include "toolset/tools.h"
#include "base/guards.h"

enum { HTTPS = 443, HTTP = 80 };

/* A sentence, behind a space if there is one in front of it in its paragraph. */
__attribute__((format(printf, 2, 3))) static void say(struct buffer *b, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list args;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        text = NULL;
        b->bad = true;
        return;
    }
    if (b->len > 0 && b->bytes[b->len - 1] != '\n')
        buffer_add(b, " ", 1);
    buffer_add(b, text, (size_t)n);
}

static void new_paragraph(struct buffer *b)
{
    buffer_add(b, "\n\n", b->len > 0 ? 2 : 0);
}

/* @i of @n entries of a list. */
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

/* NULL: no memory. */
static char *hosts_text(const struct policy *p)
{
    struct buffer list = {0};
    char *ret = NULL;

    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct host_rule *rule = &p->hosts[i].rule;
        char port[8] = "", text[HOST_RULE_BYTES_MAX + 3];

        if (rule->port != HTTPS)
            (void)snprintf(port, sizeof port, ":%u", (unsigned)rule->port);
        (void)snprintf(text, sizeof text, "%s%s%s", rule->wildcard ? "*." : "", rule->name.text,
                       port);
        put_entry(&list, i, p->n_hosts, text);
    }
    return buffer_take(&list, &ret, NULL) == 0 ? ret : NULL;
}

/* NULL: no memory. */
static char *ranges_text(const struct policy_range *ranges, size_t n)
{
    struct buffer list = {0};
    char *ret = NULL;

    for (size_t i = 0; i < n; i++) {
        char text[ADDRESS_RANGE_TEXT_BYTES];

        address_range_format(&ranges[i].range, text);
        put_entry(&list, i, n, text);
    }
    return buffer_take(&list, &ret, NULL) == 0 ? ret : NULL;
}

/* What the hosts of a list take. */
struct kinds {
    size_t https, http, tcp, wildcards;
};

static struct kinds kinds_of(const struct policy *p)
{
    struct kinds k = {0};

    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct host_rule *rule = &p->hosts[i].rule;

        k.https += rule->port == HTTPS;
        k.http += rule->port == HTTP;
        k.tcp += rule->port != HTTPS && rule->port != HTTP;
        k.wildcards += rule->wildcard;
    }
    return k;
}

static void say_hosts(struct buffer *b, const struct policy *p, const struct kinds *k)
{
    _cleanup_free_ char *list = hosts_text(p);

    b->bad = b->bad || !list;
    say(b, TEXT_NETWORK_HOSTS, list ? list : "");
    if (k->https == p->n_hosts)
        say(b, TEXT_NETWORK_ALL_HTTPS);
    else if (k->https > 0)
        say(b, TEXT_NETWORK_SOME_HTTPS);
    if (k->http > 0)
        say(b, TEXT_NETWORK_HTTP);
    if (k->tcp > 0)
        say(b, TEXT_NETWORK_TCP);
    if (k->wildcards > 0)
        say(b, TEXT_NETWORK_WILDCARD);
}

/* @exact: of the backend it is known how it refuses */
static void say_rest(struct buffer *b, const struct policy *p, const struct kinds *k, bool exact)
{
    if (exact && p->n_hosts > 0)
        say(b, p->n_ranges > 0 ? TEXT_NETWORK_HOSTS_NO_UDP_RANGES : TEXT_NETWORK_HOSTS_NO_UDP);
    /* Ranges take plain HTTP, so beside them it fails to the hosts alone. */
    if (p->n_hosts > 0 && k->http == 0 && p->n_ranges == 0) {
        say(b, exact ? TEXT_NETWORK_NO_HTTP_AT_ONCE : TEXT_NETWORK_NO_HTTP);
        return;
    }
    if (p->n_hosts > 0 && k->http == 0)
        say(b, TEXT_NETWORK_HOSTS_NO_HTTP);
    else if (k->http < p->n_hosts)
        say(b, TEXT_NETWORK_HOSTS_SOME_HTTP);
    say(b, exact ? TEXT_NETWORK_REST_AT_ONCE : TEXT_NETWORK_REST);
}

static void say_lists(struct buffer *b, const struct policy *p, bool names_resolve)
{
    _cleanup_free_ char *ranges = ranges_text(p->ranges, p->n_ranges);
    struct kinds k = kinds_of(p);

    b->bad = b->bad || !ranges;
    if (p->n_hosts > 0)
        say_hosts(b, p, &k);
    if (p->n_ranges > 0 && ranges && p->n_hosts > 0)
        say(b, TEXT_NETWORK_AND_RANGES, ranges);
    else if (p->n_ranges > 0 && ranges)
        say(b, TEXT_NETWORK_RANGES, ranges);

    say_rest(b, p, &k, !names_resolve);
    if (p->n_hosts == 0)
        say(b, names_resolve ? TEXT_NAMES_ALL_MAY : TEXT_NAMES_ALL_FAIL);
    else
        say(b, names_resolve ? TEXT_NAMES_OTHERS_MAY : TEXT_NAMES_OTHERS_FAIL);
}

static void say_network(struct buffer *b, const struct policy *p, bool names_resolve)
{
    _cleanup_free_ char *ranges = NULL;

    if (!p) {
        say(b, TEXT_NETWORK_UNKNOWN);
    } else if (p->open) {
        ranges = ranges_text(p->private_ranges, p->n_private_ranges);
        b->bad = b->bad || !ranges;
        say(b, TEXT_NETWORK_OPEN);
        if (p->n_private_ranges > 0 && ranges)
            say(b, TEXT_NETWORK_PRIVATE, ranges);
        if (!names_resolve)
            say(b, TEXT_NETWORK_OPEN_REST);
    } else if (p->n_hosts > 0 || p->n_ranges > 0) {
        say_lists(b, p, names_resolve);
    } else {
        say(b, names_resolve ? TEXT_NETWORK_NONE_BUT_NAMES : TEXT_NETWORK_NONE);
    }
}

/* Minutes, a half to the even side. */
static int64_t minutes_of(int64_t seconds)
{
    int64_t whole = seconds / 60, rest = seconds % 60;

    return whole + (rest > 30 || (rest == 30 && whole % 2 == 1));
}

static void say_life(struct buffer *b, const struct describe_input *x)
{
    int64_t minutes = minutes_of(x->remaining_s);

    if (x->lifetime_none)
        say(b, TEXT_LIFE_NONE);
    else if (x->remaining_s < 0)
        say(b, TEXT_LIFE_UNKNOWN);
    else if (x->remaining_s < 60)
        say(b, TEXT_LIFE_SHORT);
    else
        say(b, TEXT_LIFE_ABOUT, minutes, TEXT_MINUTES(minutes));
}

/* Paths alone: what a destination is called is nothing for a model. */
static void say_exports(struct buffer *b, const struct describe_input *x)
{
    struct buffer list = {0};
    _cleanup_free_ char *paths = NULL;

    for (size_t i = 0; i < x->exports->n; i++) {
        const char *entry = x->exports->items[i];
        _cleanup_free_ char *path = strndup(entry, strcspn(entry, "="));
        _cleanup_free_ char *shown = NULL;

        list.bad = list.bad || !path || shown_name(path, &shown) < 0;
        if (list.bad)
            break;
        buffer_add_text(&list, i > 0 ? TEXT_LIST_SEPARATOR : "");
        buffer_add_text(&list, shown);
    }
    if (buffer_take(&list, &paths, NULL) < 0)
        b->bad = true;
    else if (x->attached)
        say(b, TEXT_EXPORTS_ATTACHED, paths);
    else
        say(b, TEXT_EXPORTS, paths);
}

int describe_run_command(const struct describe_input *x, char **ret)
{
    struct buffer b = {0};
    char write_file[TOOL_NAME_BYTES];

    tool_name(TOOL_WRITE_FILE, x->prefix, write_file);
    if (x->purpose) {
        say(&b, TEXT_PURPOSE, x->purpose);
        new_paragraph(&b);
    }
    say(&b, "%s", tools[TOOL_RUN_COMMAND].description);
    say(&b, TEXT_WRITE_HINT, write_file);
    new_paragraph(&b);
    if (x->attached && !x->known) {
        say(&b, TEXT_ATTACHED_SHORT);
    } else {
        if (x->attached) {
            say(&b, TEXT_ATTACHED);
            say_life(&b, x);
            new_paragraph(&b);
        }
        say_network(&b, x->policy, x->names_resolve);
    }
    if (x->exports && x->exports->n > 0) {
        new_paragraph(&b);
        say_exports(&b, x);
    }
    return buffer_take(&b, ret, NULL);
}
