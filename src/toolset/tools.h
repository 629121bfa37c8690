/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools as one table: names, what they are told to be, the schemas of their arguments and of
 * their answers. A toolset has the first four; the others are given by toolset.tools.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/tool_arguments.h"

enum tool_id {
    TOOL_RUN_COMMAND,
    TOOL_READ_FILE,
    TOOL_WRITE_FILE,
    TOOL_LIST_DIRECTORY,

    TOOL_EDIT_FILE, /* from here on those that are asked for, as spec_optional_tools */
    TOOL_SEARCH_FILES,
    TOOL_START_PROCESS,
    TOOL_PROCESS_OUTPUT,
    TOOL_STOP_PROCESS,
    TOOL_PUBLISH_EXPORTS,
    TOOL__MAX,

    TOOL_OPTIONAL = TOOL_EDIT_FILE,
};

enum { TOOL_NAME_BYTES = 65, TOOL_RETRIES = 2 };

struct tool {
    const char *name;        /* without a prefix */
    const char *title;       /* for people: "Run a command" */
    const char *description; /* the fixed part (toolset/texts.h) */
    struct tool_schema schema;
    const char *output;                        /* JSON Schema of an answer (output_schemas.h) */
    const char *code_argument, *code_language; /* or NULL */
    bool read_only, idempotent;                /* hints of MCP … */
    bool harmless;                             /* it neither deletes nor replaces anything */
};

extern const struct tool tools[TOOL__MAX];

/** tool_name() - with its prefix, if there is one: "PREFIX_run_command" */
void tool_name(enum tool_id id, const char *prefix, char ret[static TOOL_NAME_BYTES]);

/** tool_find() - by its name with the prefix, of all there are; TOOL__MAX: none */
enum tool_id tool_find(const char *name, const char *prefix);

/** tool_schema_json() - JSON Schema of a tool's arguments; owned by the caller, NULL: no memory */
char *tool_schema_json(enum tool_id id);
