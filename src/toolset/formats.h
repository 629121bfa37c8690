/* SPDX-License-Identifier: Apache-2.0 */
/* The tools as definitions of other protocols. */
#pragma once

#include <stddef.h>

#include "toolset/tools.h"

enum tool_format { FORMAT_MCP, FORMAT_ANTHROPIC, FORMAT_OPENAI, FORMAT__MAX };

struct format_tool {
    enum tool_id id;
    const char *name, *description; /* as a model is told */
};

/** format_tools() - a JSON array of definitions; owned by the caller, NULL: no memory */
char *format_tools(enum tool_format format, const struct format_tool *items, size_t n);

/** format_find() - "mcp", "anthropic", "openai"; FORMAT__MAX: none */
enum tool_format format_find(const char *name);
