/* SPDX-License-Identifier: Apache-2.0 */
/* Toolsets from a file: each a spec in itself, and then what must hold between them. */
#include "cli/mcp_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "core/spec_file.h"
#include "core/spec_rules.h"
#include "toolset/tools.h"
#include "base/guards.h"

enum { PROBLEMS_MAX = 200, WHERE_MAX = 256 }; /* as for one spec file */

/* A key of an entry that stands for a field of its section toolset. */
struct short_key {
    const char *name;
    enum spec_field_id id;
};

static const struct short_key short_keys[] = {
    {"prefix", SPEC_FIELD_TOOL_PREFIX},
    {"purpose", SPEC_FIELD_PURPOSE},
};

struct reading {
    const char *folder;
    struct mcp_config config;
    struct problems *problems;
};

static struct position place(struct document_place at)
{
    return (struct position){at.line, at.column};
}

static void reading_done(struct reading *g)
{
    mcp_config_done(&g->config);
}

/* One toolset */

static void read_short(struct spec_filling *f, const struct document_node *map,
                       const struct short_key *key)
{
    const struct document_entry *entry = document_find(map, key->name);
    char path[SPEC_PATH_MAX];

    if (!entry)
        return;
    spec_field_path(key->id, path);
    f->at = place(entry->value.at);
    if (f->given & spec_field_bit(key->id))
        problems_add(f->problems, key->name, place(entry->key_at), "Leave one of them out",
                     "it stands for %s, which is given too", path);
    else if (!document_is(&entry->value, DOCUMENT_STRING))
        problems_add(f->problems, key->name, f->at, spec_field_remedy(key->id),
                     "it is to be %s, not %s", spec_field_wants(key->id),
                     document_what(&entry->value));
    else
        (void)spec_set(f, key->id, key->name, entry->value.text);
    f->at = (struct position){0};
}

static void fill(struct spec_filling *f, const struct document_node *node)
{
    static const char *const own[] = {"prefix", "purpose", NULL};
    static const struct spec_keys keys = {
        own, "a key of a toolset", "Its keys are prefix, purpose, spec, backend and toolset"};

    if (node->kind != DOCUMENT_MAP) {
        problems_add(f->problems, "", place(node->at), keys.remedy,
                     "a toolset is a map with the sections of a spec, not %s", document_what(node));
        return;
    }
    spec_sections_fill(node, &keys, f);
    for (size_t i = 0; i < ARRAY_SIZE(short_keys); i++)
        read_short(f, node, &short_keys[i]);
    spec_finish(f);
    spec_sections_place(node, f->given, f->problems);
}

/* Problems of toolset @i among those of the file: "toolsets[1].backend.memory". */
static void move_problems(struct reading *g, size_t i, const struct document_node *node,
                          const struct problems *own)
{
    char where[WHERE_MAX];

    for (size_t k = 0; k < own->n && g->problems->n < PROBLEMS_MAX; k++) {
        const struct problem *x = &own->items[k];

        (void)snprintf(where, sizeof where, "toolsets[%zu]%s%s", i, x->field[0] ? "." : "",
                       x->field);
        problems_add(g->problems, where, x->at.line > 0 ? x->at : place(node->at), x->remedy, "%s",
                     x->message);
    }
    g->problems->no_memory = g->problems->no_memory || own->no_memory;
}

static void read_toolset(struct reading *g, size_t i, const struct document_node *node)
{
    _cleanup_(problems_done) struct problems own = {0};
    struct atoll_spec *s = atoll_spec_new();
    struct spec_filling f = {.problems = &own, .folder = g->folder};

    if (!s) {
        g->problems->no_memory = true;
        return;
    }
    g->config.specs[g->config.n++] = s;
    s->spec.lifetime_us = LIMIT_LIFETIME_DEFAULT_US;
    s->spec.owned = true;
    f.spec = &s->spec;
    fill(&f, node);
    s->given = f.given;
    move_problems(g, i, node, &own);
}

/* Names of tools */

static bool has_tool(const struct toolset_spec *t, enum tool_id id)
{
    for (size_t i = 0; i < t->tools.n; i++)
        if (strcmp(t->tools.items[i], tools[id].name) == 0)
            return true;
    return id < TOOL_OPTIONAL;
}

/* NULL for none, which an empty one is too. */
static const char *prefix_of(const struct toolset_spec *t)
{
    return t->tool_prefix && t->tool_prefix[0] ? t->tool_prefix : NULL;
}

/* Whether a model could not tell a tool of @a from one of @b; @ret: the first such name. */
static bool clash(const struct toolset_spec *a, const struct toolset_spec *b,
                  char ret[TOOL_NAME_BYTES])
{
    char other[TOOL_NAME_BYTES];

    for (enum tool_id i = 0; i < TOOL__MAX; i++) {
        tool_name(i, prefix_of(a), ret);
        for (enum tool_id k = 0; k < TOOL__MAX && has_tool(a, i); k++) {
            tool_name(k, prefix_of(b), other);
            if (has_tool(b, k) && strcmp(ret, other) == 0)
                return true;
        }
    }
    return false;
}

static void check_names(struct reading *g, const struct document_node *list)
{
    char name[TOOL_NAME_BYTES], remedy[128];

    for (size_t k = 1; k < g->config.n; k++)
        for (size_t i = 0; i < k; i++) {
            const struct toolset_spec *b = &g->config.specs[k]->spec.toolset;
            const char *prefix = prefix_of(b);

            if (!clash(&g->config.specs[i]->spec.toolset, b, name))
                continue;
            (void)snprintf(remedy, sizeof remedy, "Give one of them %s%s%s",
                           prefix ? "another prefix than '" : "a prefix", prefix ? prefix : "",
                           prefix ? "'" : "");
            problems_add(g->problems, "", place(document_item(list, k)->at), remedy,
                         "toolset %zu and toolset %zu both have a tool '%s'", i + 1, k + 1, name);
            break; /* with one of the others is enough */
        }
}

/* The file */

static void refuse_key(struct reading *g, const struct document_entry *entry)
{
    static const char *const names[] = {"version", "toolsets"};
    const char *nearest = text_nearest(entry->key, names, ARRAY_SIZE(names));
    char remedy[96] = "It has version and toolsets";

    for (enum spec_section i = 0; i < SPEC_SECTION__MAX; i++)
        if (strcmp(entry->key, spec_section_name(i)) == 0) {
            nearest = NULL;
            (void)snprintf(remedy, sizeof remedy,
                           "Write it within an entry of toolsets; a spec file is named by --spec");
        }
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "The nearest one is %s", nearest);
    problems_add(g->problems, entry->key, place(entry->key_at), remedy,
                 "'%.80s' is not a key of this file", entry->key);
}

static void read_list(struct reading *g, const struct document_node *root)
{
    const struct document_entry *entry = document_find(root, "toolsets");
    const char *remedy = "Write an entry for each toolset below it, behind '- '";

    if (!entry) {
        problems_add(g->problems, "toolsets", place(root->at), remedy, "it is missing");
    } else if (entry->value.kind != DOCUMENT_LIST) {
        problems_add(g->problems, "toolsets", place(entry->value.at), remedy,
                     "it is to be a list of toolsets, not %s", document_what(&entry->value));
    } else if (entry->value.n == 0 || entry->value.n > LIMIT_MCP_TOOLSETS) {
        problems_add(g->problems, "toolsets", place(entry->value.at),
                     entry->value.n == 0 ? remedy : "Leave some out",
                     "it has %zu entries, and may have 1 to %d", entry->value.n,
                     LIMIT_MCP_TOOLSETS);
    } else {
        for (size_t i = 0; i < entry->value.n && g->problems->n < PROBLEMS_MAX; i++)
            read_toolset(g, i, document_item(&entry->value, i));
        if (!problems_any(g->problems))
            check_names(g, &entry->value);
    }
}

static void read_root(struct reading *g, const struct document_node *root)
{
    if (root->kind != DOCUMENT_MAP) {
        problems_add(g->problems, "", place(root->at), "Begin the file with 'version: 1'",
                     "the file is a map with version and toolsets, not %s", document_what(root));
        return;
    }
    spec_version_check(root, g->problems);
    for (size_t i = 0; i < root->n && g->problems->n < PROBLEMS_MAX; i++) {
        const struct document_entry *entry = document_entry(root, i);

        if (strcmp(entry->key, "version") != 0 && strcmp(entry->key, "toolsets") != 0)
            refuse_key(g, entry);
    }
    read_list(g, root);
    problems_sort(g->problems);
}

void mcp_config_done(struct mcp_config *c)
{
    for (size_t i = 0; i < c->n; i++)
        atoll_spec_free(c->specs[i]);
    *c = (struct mcp_config){0};
}

int mcp_config_read(const char *path, struct mcp_config *ret, struct problems *problems,
                    struct error *err)
{
    _cleanup_(spec_file_done) struct spec_file file = {0};
    _cleanup_(reading_done) struct reading g = {.problems = problems};
    int r = spec_file_open(path, "config file", &file, err);

    if (r < 0)
        return r;
    g.folder = file.folder;
    read_root(&g, document_root(file.document));
    r = problems_error(problems, file.name, err);
    if (r < 0)
        return r;
    *ret = g.config;
    g.config = (struct mcp_config){0};
    return 0;
}
