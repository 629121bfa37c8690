/* SPDX-License-Identifier: Apache-2.0 */
#include "toolset/tools.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "toolset/output_schemas.h"
#include "toolset/texts.h"
#include "base/guards.h"

const struct tool tools[TOOL__MAX] = {
    [TOOL_RUN_COMMAND] = {.name = "run_command",
                          .title = TEXT_RUN_COMMAND_TITLE,
                          .description = TEXT_RUN_COMMAND,
                          .schema = {.properties = {{.name = "command",
                                                     .type = TOOL_STRING,
                                                     .required = true,
                                                     .description = TEXT_RUN_COMMAND_COMMAND},
                                                    {.name = "timeout_seconds",
                                                     .type = TOOL_NUMBER,
                                                     .nullable = true,
                                                     .description = TEXT_RUN_COMMAND_TIMEOUT}},
                                     .n = 2},
                          .output = OUTPUT_RUN_COMMAND,
                          .code_argument = "command",
                          .code_language = "shell"},
    [TOOL_READ_FILE] = {.name = "read_file",
                        .title = TEXT_READ_FILE_TITLE,
                        .description = TEXT_READ_FILE,
                        .schema = {.properties = {{.name = "path",
                                                   .type = TOOL_STRING,
                                                   .required = true,
                                                   .description = TEXT_READ_FILE_PATH},
                                                  {.name = "offset",
                                                   .type = TOOL_INTEGER,
                                                   .nullable = true,
                                                   .description = TEXT_READ_FILE_OFFSET},
                                                  {.name = "limit",
                                                   .type = TOOL_INTEGER,
                                                   .nullable = true,
                                                   .description = TEXT_READ_FILE_LIMIT}},
                                   .n = 3},
                        .output = OUTPUT_READ_FILE,
                        .read_only = true,
                        .idempotent = true},
    [TOOL_WRITE_FILE] = {.name = "write_file",
                         .title = TEXT_WRITE_FILE_TITLE,
                         .description = TEXT_WRITE_FILE,
                         .schema = {.properties = {{.name = "path",
                                                    .type = TOOL_STRING,
                                                    .required = true,
                                                    .description = TEXT_WRITE_FILE_PATH},
                                                   {.name = "content",
                                                    .type = TOOL_STRING,
                                                    .required = true,
                                                    .description = TEXT_WRITE_FILE_CONTENT}},
                                    .n = 2},
                         .output = OUTPUT_WRITE_FILE,
                         .idempotent = true},
    [TOOL_LIST_DIRECTORY] = {.name = "list_directory",
                             .title = TEXT_LIST_DIRECTORY_TITLE,
                             .description = TEXT_LIST_DIRECTORY,
                             .schema = {.properties = {{.name = "path",
                                                        .type = TOOL_STRING,
                                                        .description = TEXT_LIST_DIRECTORY_PATH}},
                                        .n = 1},
                             .output = OUTPUT_LIST_DIRECTORY,
                             .read_only = true,
                             .idempotent = true},
    [TOOL_EDIT_FILE] = {.name = "edit_file",
                        .title = TEXT_EDIT_FILE_TITLE,
                        .description = TEXT_EDIT_FILE,
                        .schema = {.properties = {{.name = "path",
                                                   .type = TOOL_STRING,
                                                   .required = true,
                                                   .description = TEXT_EDIT_FILE_PATH},
                                                  {.name = "old_text",
                                                   .type = TOOL_STRING,
                                                   .required = true,
                                                   .description = TEXT_EDIT_FILE_OLD},
                                                  {.name = "new_text",
                                                   .type = TOOL_STRING,
                                                   .required = true,
                                                   .description = TEXT_EDIT_FILE_NEW}},
                                   .n = 3},
                        .output = OUTPUT_EDIT_FILE},
    [TOOL_SEARCH_FILES] = {.name = "search_files",
                           .title = TEXT_SEARCH_FILES_TITLE,
                           .description = TEXT_SEARCH_FILES,
                           .schema = {.properties = {{.name = "text",
                                                      .type = TOOL_STRING,
                                                      .nullable = true,
                                                      .description = TEXT_SEARCH_FILES_TEXT},
                                                     {.name = "name",
                                                      .type = TOOL_STRING,
                                                      .nullable = true,
                                                      .description = TEXT_SEARCH_FILES_NAME},
                                                     {.name = "path",
                                                      .type = TOOL_STRING,
                                                      .nullable = true,
                                                      .description = TEXT_SEARCH_FILES_PATH}},
                                      .n = 3},
                           .output = OUTPUT_SEARCH_FILES,
                           .read_only = true,
                           .idempotent = true},
    [TOOL_START_PROCESS] = {.name = "start_process",
                            .title = TEXT_START_PROCESS_TITLE,
                            .description = TEXT_START_PROCESS,
                            .schema = {.properties = {{.name = "command",
                                                       .type = TOOL_STRING,
                                                       .required = true,
                                                       .description = TEXT_START_PROCESS_COMMAND}},
                                       .n = 1},
                            .output = OUTPUT_START_PROCESS,
                            .code_argument = "command",
                            .code_language = "shell"},
    [TOOL_PROCESS_OUTPUT] = {.name = "process_output",
                             .title = TEXT_PROCESS_OUTPUT_TITLE,
                             .description = TEXT_PROCESS_OUTPUT,
                             .schema = {.properties = {{.name = "process",
                                                        .type = TOOL_INTEGER,
                                                        .required = true,
                                                        .description = TEXT_PROCESS_OUTPUT_PROCESS},
                                                       {.name = "wait_seconds",
                                                        .type = TOOL_NUMBER,
                                                        .nullable = true,
                                                        .description = TEXT_PROCESS_OUTPUT_WAIT}},
                                        .n = 2},
                             .output = OUTPUT_PROCESS_OUTPUT,
                             .harmless = true},
    [TOOL_STOP_PROCESS] = {.name = "stop_process",
                           .title = TEXT_STOP_PROCESS_TITLE,
                           .description = TEXT_STOP_PROCESS,
                           .schema = {.properties = {{.name = "process",
                                                      .type = TOOL_INTEGER,
                                                      .required = true,
                                                      .description = TEXT_STOP_PROCESS_PROCESS}},
                                      .n = 1},
                           .output = OUTPUT_STOP_PROCESS},
    [TOOL_PUBLISH_EXPORTS] = {.name = "publish_exports",
                              .title = TEXT_PUBLISH_EXPORTS_TITLE,
                              .description = TEXT_PUBLISH_EXPORTS,
                              .output = OUTPUT_PUBLISH_EXPORTS},
};

static const char *const type_names[] = {
    [TOOL_STRING] = "string",
    [TOOL_NUMBER] = "number",
    [TOOL_INTEGER] = "integer",
};
static_assert(sizeof type_names / sizeof type_names[0] == TOOL_INTEGER + 1, "one for each type");

void tool_name(enum tool_id id, const char *prefix, char ret[static TOOL_NAME_BYTES])
{
    (void)snprintf(ret, TOOL_NAME_BYTES, "%s%s%s", prefix ? prefix : "", prefix ? "_" : "",
                   tools[id].name);
}

enum tool_id tool_find(const char *name, const char *prefix)
{
    char candidate[TOOL_NAME_BYTES];

    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        tool_name(id, prefix, candidate);
        if (strcmp(candidate, name) == 0)
            return id;
    }
    return TOOL__MAX;
}

/* Where memory is short the constructors give NULL, which the setters refuse and free. */
static json_t *property_json(const struct tool_property *p)
{
    json_t *o = json_object();
    json_t *type = json_string(type_names[p->type]);

    if (p->nullable)
        type = json_pack("[o, s]", type, "null");
    if (json_object_set_new(o, "type", type) == 0 &&
        json_object_set_new(o, "description", json_string(p->description)) == 0)
        return o;
    json_decref(o);
    return NULL;
}

char *tool_schema_json(enum tool_id id)
{
    const struct tool_schema *schema = &tools[id].schema;
    json_t *properties = json_object(), *required = json_array(), *o = json_object();
    bool good = properties && required && o;
    char *text = NULL;

    for (size_t i = 0; i < schema->n && good; i++) {
        const struct tool_property *p = &schema->properties[i];

        good = json_object_set_new(properties, p->name, property_json(p)) == 0;
        if (good && p->required)
            good = json_array_append_new(required, json_string(p->name)) == 0;
    }
    if (good && json_object_set_new(o, "type", json_string("object")) == 0 &&
        json_object_set(o, "properties", properties) == 0 &&
        (json_array_size(required) == 0 || json_object_set(o, "required", required) == 0))
        text = json_dumps(o, JSON_COMPACT);
    json_decref(properties);
    json_decref(required);
    json_decref(o);
    return text;
}
