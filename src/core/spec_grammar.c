/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of single texts: owners, ports, tags, destinations and the like. */
#include "core/spec_grammar.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "core/backends.h"
#include "core/limits.h"
#include "core/published.h"
#include "core/upstream.h"
#include "base/guards.h"

/* A secret shorter than this would turn up by chance all over an output. */
enum { MASK_MIN_BYTES = 4 };

/* With "_publish_exports", the longest of the tools, within the 64 characters that models take. */
enum { TOOL_PREFIX_MAX = 48 };

static bool is_printable(const char *s)
{
    char copy[LIMIT_TEXT_BYTES + 1];
    size_t n = strlen(s);

    if (n >= sizeof copy)
        return false;
    memcpy(copy, s, n + 1);
    text_make_printable(copy);
    return memcmp(copy, s, n) == 0;
}

/* What holds for every short text: @s is the value, or the part of it that @what names. */
static bool is_short_text(const struct spec_value *v, const char *what, const char *s)
{
    size_t n = strlen(s);

    if (n > LIMIT_TEXT_BYTES)
        return spec_refuse(v, "Shorten it", "%s has %zu bytes, more than %d", what, n,
                           LIMIT_TEXT_BYTES);
    if (!is_printable(s))
        return spec_refuse(v, "Use printable text in UTF-8 alone",
                           "%s has bytes that cannot be printed", what);
    return true;
}

static bool is_in_set(char c, const char *set)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c != '\0' && strchr(set, c));
}

static bool backend_name(const struct spec_value *v)
{
    size_t n = strlen(v->text);
    bool good = n <= BACKEND_NAME_MAX && v->text[0] != '-' && v->text[n - 1] != '-'; /* n > 0 */

    for (size_t i = 0; i < n; i++)
        good = good && is_in_set(v->text[i], "-");
    if (good)
        return true;
    return spec_refuse(v, "Use a name such as local: small letters, digits and inner hyphens",
                       "'%.80s' is not the name of a backend", v->text);
}

static bool tool_prefix(const struct spec_value *v)
{
    size_t n = strlen(v->text);

    if (n > TOOL_PREFIX_MAX)
        return spec_refuse(v, "Shorten it", "it has %zu characters, more than %d", n,
                           TOOL_PREFIX_MAX);
    if (n == 0 || env_is_name(v->text, n)) /* the same grammar */
        return true;
    return spec_refuse(v, "Use letters, digits and underscores, not starting with a digit",
                       "'%.80s' is not an identifier", v->text);
}

static bool attach_to(const struct spec_value *v)
{
    if (strcmp(v->text, "None") != 0 && strcmp(v->text, "null") != 0)
        return true;
    return spec_refuse(v, "Pass the id that 'atoll create' printed",
                       "'%s' is no sandbox: whoever was to make one has handed nothing on",
                       v->text);
}

/* An error of one of the parsers as a problem. */
static bool judged(const struct spec_value *v, int r, const struct error *err)
{
    return r == 0 || spec_refuse(v, err->remedy, "%s", err->message);
}

static bool resolver(const struct spec_value *v)
{
    struct error err = ERROR_INIT;
    struct address address;
    uint16_t port;

    return judged(v, resolver_parse(v->text, &address, &port, &err), &err);
}

/* SCHEME://SOMETHING (RFC 3986, section 3.1) */
static bool is_url(const char *s)
{
    size_t n = 0;

    while (is_in_set(s[n], "+-."))
        n++;
    return n > 0 && s[0] >= 'a' && s[0] <= 'z' && strncmp(s + n, "://", 3) == 0 && s[n + 3] != '\0';
}

static bool proxy(const struct spec_value *v)
{
    struct error err = ERROR_INIT;
    struct proxy_url url;

    return judged(v, proxy_parse(v->text, &url, &err), &err);
}

static bool no_rule(const struct spec_value *v)
{
    (void)v;
    return true;
}

bool spec_text_is_good(const struct spec_value *v)
{
    static bool (*const rules[SPEC_FIELD__MAX])(const struct spec_value *v) = {
        [SPEC_FIELD_NAME] = backend_name,     [SPEC_FIELD_RESOLVER] = resolver,
        [SPEC_FIELD_PROXY] = proxy,           [SPEC_FIELD_TOOL_PREFIX] = tool_prefix,
        [SPEC_FIELD_PURPOSE] = no_rule,       [SPEC_FIELD_ATTACH_TO] = attach_to,
        [SPEC_FIELD_IMAGE] = no_rule,         [SPEC_FIELD_OWNER] = no_rule,
        [SPEC_FIELD_TOOLSET_OWNER] = no_rule, [SPEC_FIELD_EXPORT_CREDENTIALS] = no_rule,
    };

    if (v->text[0] == '\0' && v->id != SPEC_FIELD_TOOL_PREFIX)
        return spec_refuse(v, "Give a value, or leave the field out", "it is empty");
    if (v->id == SPEC_FIELD_IMAGE || v->id == SPEC_FIELD_PROXY_CREDENTIALS ||
        v->id == SPEC_FIELD_AUDIT) /* any byte */
        return strlen(v->text) < PATH_MAX ||
               spec_refuse(v, "Shorten it", "it is longer than a path may be");
    return is_short_text(v, "it", v->text) && rules[v->id](v);
}

static bool publish(const struct spec_value *v)
{
    struct error err = ERROR_INIT;
    struct published published;

    return judged(v, published_parse(v->text, &published, &err), &err);
}

static bool optional_tool(const struct spec_value *v)
{
    size_t n = 0;

    while (spec_optional_tools[n]) {
        if (strcmp(v->text, spec_optional_tools[n]) == 0)
            return true;
        n++;
    }
    const char *nearest = text_nearest(v->text, spec_optional_tools, n);
    char remedy[160] = "Name edit_file, search_files, start_process, process_output, stop_process "
                       "or publish_exports";

    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "The nearest one is %s", nearest);
    return spec_refuse(v, remedy, "'%.80s' is no tool that can be added", v->text);
}

bool spec_entry_is_good(const struct spec_value *v)
{
    size_t n = strlen(v->text);

    if (v->id == SPEC_FIELD_PUBLISH)
        return publish(v);
    if (v->id == SPEC_FIELD_TOOLS)
        return optional_tool(v);
    if (v->id != SPEC_FIELD_MASK || n >= MASK_MIN_BYTES)
        return true;
    return spec_refuse(v, "Leave out what is as short as this: it would be found everywhere",
                       "it has %zu bytes, and at least %d can be masked", n, MASK_MIN_BYTES);
}

static bool tag(const struct spec_value *v)
{
    static const char kept[] = "airflow_";

    if (v->key[0] == '\0')
        return spec_refuse(v, "Write it as KEY=VALUE", "a tag has an empty key");
    if (strchr(v->key, '='))
        return spec_refuse(v, "Use another character", "the key '%.80s' has a '=' in it", v->key);
    if (!is_short_text(v, "the key", v->key) || !is_short_text(v, "the value", v->text))
        return false;
    if (strlen(v->key) + 1 + strlen(v->text) > LIMIT_TEXT_BYTES)
        return spec_refuse(v, "Shorten it", "key and value have more than %d bytes together",
                           LIMIT_TEXT_BYTES);
    if (strncmp(v->key, kept, strlen(kept)) != 0)
        return true;
    return spec_refuse(v, "Use a key that does not begin with airflow_",
                       "the key '%.80s' is kept for atoll itself", v->key);
}

static bool price(const struct spec_value *v)
{
    uint64_t ignored;

    if (!env_is_name(v->key, strlen(v->key)) || strlen(v->key) > LIMIT_TEXT_BYTES)
        return spec_refuse(v, "Use letters, digits and underscores, such as cpu_hour",
                           "'%.80s' is not the name of a unit", v->key);
    if (spec_parse_decimal(v->text, 1000000, 0, UINT64_MAX, &ignored) == 0)
        return true;
    return spec_refuse(v, "Write a number with up to six decimals, such as 0.05",
                       "'%.80s' is not a price", v->text);
}

static bool export(const struct spec_value *v)
{
    if (v->key[0] == '\0' || v->text[0] == '\0')
        return spec_refuse(v, "Name a file in the sandbox and where it goes", "the %s is empty",
                           v->key[0] == '\0' ? "path" : "destination");
    if (strchr(v->key, '='))
        return spec_refuse(v, "Rename the file", "the path '%.80s' has a '=' in it", v->key);
    if (strlen(v->key) >= PATH_MAX || strlen(v->text) >= PATH_MAX)
        return spec_refuse(v, "Shorten it", "it is longer than a path may be");
    if (is_url(v->text) && text_is_utf8(v->text, strlen(v->text)))
        return true;
    return spec_refuse(v, "Write a URL such as file:///srv/results/report.csv",
                       "the destination is not a URL"); /* it may hold a password */
}

static bool input(const struct spec_value *v)
{
    if (v->key[0] == '\0' || v->text[0] == '\0')
        return spec_refuse(v, "Name a file or folder of the host and its place inside",
                           "the %s is empty", v->key[0] == '\0' ? "source" : "path inside");
    if (strchr(v->key, '='))
        return spec_refuse(v, "Rename the file", "the source '%.80s' has a '=' in it", v->key);
    if (strlen(v->key) >= PATH_MAX || strlen(v->text) >= PATH_MAX)
        return spec_refuse(v, "Shorten it", "it is longer than a path may be");
    return true;
}

bool spec_pair_is_good(const struct spec_value *v)
{
    if (v->id == SPEC_FIELD_TAGS)
        return tag(v);
    if (v->id == SPEC_FIELD_PRICES)
        return price(v);
    return v->id == SPEC_FIELD_EXPORTS ? export(v) : input(v);
}

bool spec_input_is_good(const struct spec_value *v, const char *source)
{
    const struct string_list *others = &v->f->spec->inputs;
    struct stat st;

    if (stat(source, &st) < 0)
        return spec_refuse(v, "Name a file or folder of this host", "'%.120s' %s: %s", v->key,
                           errno == ENOENT ? "is not there" : "cannot be reached", strerror(errno));
    for (size_t i = 0; i < others->n; i++) {
        size_t n = strcspn(others->items[i], "=");

        if (strcmp(others->items[i] + n + 1, v->text) == 0 &&
            (strncmp(others->items[i], source, n) != 0 || source[n] != '\0'))
            return spec_refuse(v, "Give each a place of its own",
                               "another input has the same place '%.120s'", v->text);
    }
    return true;
}
