/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP: `Tool` of the Model Context Protocol's schema. Anthropic: `tools` of the Messages API.
 * OpenAI: `tools` of Chat Completions. jansson writes members in the order in which they were set,
 * so a list of tools is the same bytes each time.
 */
#include "toolset/formats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/guards.h"

/*
 * What a client may show to whom approves calls. A command can do everything that the network lets
 * it, so it is called open; the other tools stay within the sandbox.
 */
static json_t *annotations(const struct tool *t)
{
    return json_pack("{s:b, s:b, s:b, s:b}", "readOnlyHint", t->read_only, "destructiveHint",
                     !t->read_only && !t->harmless, "idempotentHint", t->idempotent,
                     "openWorldHint",
                     t->code_argument != NULL || t == &tools[TOOL_PUBLISH_EXPORTS]);
}

/* @schema is consumed by each of these. NULL: no memory. */
static json_t *mcp(const struct format_tool *x, json_t *schema)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "name", x->name, "title", tools[x->id].title,
                     "description", x->description, "inputSchema", schema, "outputSchema",
                     json_loads(tools[x->id].output, 0, NULL), "annotations",
                     annotations(&tools[x->id]));
}

static json_t *anthropic(const struct format_tool *x, json_t *schema)
{
    return json_pack("{s:s, s:s, s:o}", "name", x->name, "description", x->description,
                     "input_schema", schema);
}

static json_t *openai(const struct format_tool *x, json_t *schema)
{
    return json_pack("{s:s, s:{s:s, s:s, s:o}}", "type", "function", "function", "name", x->name,
                     "description", x->description, "parameters", schema);
}

static const struct {
    const char *name;
    json_t *(*make)(const struct format_tool *x, json_t *schema);
} formats[] = {
    [FORMAT_MCP] = {"mcp", mcp},
    [FORMAT_ANTHROPIC] = {"anthropic", anthropic},
    [FORMAT_OPENAI] = {"openai", openai},
};
static_assert(ARRAY_SIZE(formats) == FORMAT__MAX, "one for each format");

char *format_tools(enum tool_format format, const struct format_tool *items, size_t n)
{
    json_t *list = json_array();
    bool good = list;
    char *text;

    for (size_t i = 0; i < n && good; i++) {
        _cleanup_free_ char *schema_text = tool_schema_json(items[i].id);
        json_t *schema = schema_text ? json_loads(schema_text, 0, NULL) : NULL;

        good = schema && json_array_append_new(list, formats[format].make(&items[i], schema)) == 0;
    }
    text = good ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    return text;
}

enum tool_format format_find(const char *name)
{
    enum tool_format f = 0;

    while (f < FORMAT__MAX && strcmp(formats[f].name, name) != 0)
        f++;
    return f;
}
