/* SPDX-License-Identifier: Apache-2.0 */
/* The tools: names, schemas, hints, and their definitions in other protocols. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/spec_fields.h"
#include "toolset/formats.h"
#include "base/guards.h"

static void the_tools_have_their_names_and_order(void **state)
{
    static const char *const names[] = {
        "run_command",  "read_file",     "write_file",     "list_directory", "edit_file",
        "search_files", "start_process", "process_output", "stop_process",   "publish_exports"};
    char name[TOOL_NAME_BYTES];

    (void)state;
    assert_int_equal(TOOL__MAX, ARRAY_SIZE(names));
    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        tool_name(id, NULL, name);
        assert_string_equal(name, names[id]);
        assert_int_equal(tool_find(names[id], NULL), id);
    }
    assert_int_equal(tool_find("run_commands", NULL), TOOL__MAX);
    assert_int_equal(tool_find("", NULL), TOOL__MAX);
}

static void those_that_are_asked_for_are_the_ones_behind_the_first_four(void **state)
{
    (void)state;
    assert_int_equal(TOOL_OPTIONAL, 4);
    for (enum tool_id id = TOOL_OPTIONAL; id < TOOL__MAX; id++)
        assert_string_equal(spec_optional_tools[id - TOOL_OPTIONAL], tools[id].name);
    assert_null(spec_optional_tools[TOOL__MAX - TOOL_OPTIONAL]);
}

static void a_prefix_renames_all(void **state)
{
    char name[TOOL_NAME_BYTES];

    (void)state;
    tool_name(TOOL_LIST_DIRECTORY, "local", name);
    assert_string_equal(name, "local_list_directory");
    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        tool_name(id, "local", name);
        assert_int_equal(tool_find(name, "local"), id);
        assert_int_equal(tool_find(name, NULL), TOOL__MAX);
        assert_int_equal(tool_find(tools[id].name, "local"), TOOL__MAX);
    }
}

static void only_what_runs_a_command_takes_code(void **state)
{
    (void)state;
    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        if (id == TOOL_RUN_COMMAND || id == TOOL_START_PROCESS) {
            assert_string_equal(tools[id].code_argument, "command");
            assert_string_equal(tools[id].code_language, "shell");
        } else {
            assert_null(tools[id].code_argument);
            assert_null(tools[id].code_language);
        }
    }
    assert_int_equal(TOOL_RETRIES, 2);
}

static json_t *schema_of(enum tool_id id)
{
    _cleanup_free_ char *text = tool_schema_json(id);
    json_t *schema = text ? json_loads(text, 0, NULL) : NULL;

    assert_non_null(schema);
    assert_string_equal(json_string_value(json_object_get(schema, "type")), "object");
    return schema;
}

static void assert_property(const json_t *schema, const char *name, const char *type, bool required)
{
    const json_t *property = json_object_get(json_object_get(schema, "properties"), name);
    const json_t *list = json_object_get(schema, "required");
    _cleanup_free_ char *text = NULL;
    bool found = false;

    assert_non_null(property);
    text = json_dumps(json_object_get(property, "type"), JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text, type);
    assert_true(json_string_length(json_object_get(property, "description")) > 0);
    for (size_t i = 0; i < json_array_size(list); i++)
        found = found || strcmp(json_string_value(json_array_get(list, i)), name) == 0;
    assert_int_equal(found, required);
}

static void the_schemas_have_the_properties_that_calls_take(void **state)
{
    json_t *s = schema_of(TOOL_RUN_COMMAND);

    (void)state;
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 2);
    assert_property(s, "command", "\"string\"", true);
    assert_property(s, "timeout_seconds", "[\"number\",\"null\"]", false);
    json_decref(s);
    s = schema_of(TOOL_READ_FILE);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 3);
    assert_property(s, "path", "\"string\"", true);
    assert_property(s, "offset", "[\"integer\",\"null\"]", false);
    assert_property(s, "limit", "[\"integer\",\"null\"]", false);
    json_decref(s);
    s = schema_of(TOOL_WRITE_FILE);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 2);
    assert_property(s, "path", "\"string\"", true);
    assert_property(s, "content", "\"string\"", true);
    json_decref(s);
    s = schema_of(TOOL_LIST_DIRECTORY);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 1);
    assert_property(s, "path", "\"string\"", false);
    assert_null(json_object_get(s, "required"));
    json_decref(s);
}

static void the_schemas_of_what_is_asked_for_have_theirs(void **state)
{
    json_t *s = schema_of(TOOL_EDIT_FILE);

    (void)state;
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 3);
    assert_property(s, "path", "\"string\"", true);
    assert_property(s, "old_text", "\"string\"", true);
    assert_property(s, "new_text", "\"string\"", true);
    json_decref(s);
    s = schema_of(TOOL_SEARCH_FILES);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 3);
    assert_property(s, "text", "[\"string\",\"null\"]", false);
    assert_property(s, "name", "[\"string\",\"null\"]", false);
    assert_property(s, "path", "[\"string\",\"null\"]", false);
    json_decref(s);
    s = schema_of(TOOL_START_PROCESS);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 1);
    assert_property(s, "command", "\"string\"", true);
    json_decref(s);
    s = schema_of(TOOL_PROCESS_OUTPUT);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 2);
    assert_property(s, "process", "\"integer\"", true);
    assert_property(s, "wait_seconds", "[\"number\",\"null\"]", false);
    json_decref(s);
    s = schema_of(TOOL_STOP_PROCESS);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 1);
    assert_property(s, "process", "\"integer\"", true);
    json_decref(s);
    s = schema_of(TOOL_PUBLISH_EXPORTS);
    assert_int_equal(json_object_size(json_object_get(s, "properties")), 0);
    json_decref(s);
}

/* Every answer may hold these, and what has to be there is described. */
static void every_schema_of_answers_is_one_of_an_object(void **state)
{
    (void)state;
    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        json_t *s = json_loads(tools[id].output, JSON_REJECT_DUPLICATES, NULL);
        const json_t *properties = json_object_get(s, "properties");
        const json_t *required = json_object_get(s, "required");

        assert_non_null(s);
        assert_string_equal(json_string_value(json_object_get(s, "type")), "object");
        assert_non_null(json_object_get(properties, "remaining_seconds"));
        assert_non_null(json_object_get(properties, "replaced"));
        for (size_t i = 0; i < json_array_size(required); i++)
            assert_non_null(
                json_object_get(properties, json_string_value(json_array_get(required, i))));
        json_decref(s);
    }
}

static const struct format_tool two[] = {
    {.id = TOOL_READ_FILE, .name = "x_read_file", .description = "Reads \"it\"."},
    {.id = TOOL_RUN_COMMAND, .name = "x_run_command", .description = "Runs it.\n\nSo."},
};

#define READ_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"path\":{\"type\":\"string\",\"description\":\"Path of the file in the sandbox.\"},"         \
    "\"offset\":{\"type\":[\"integer\",\"null\"],\"description\":"                                 \
    "\"First line to return, counted from 1. Left out or null: 1.\"},"                             \
    "\"limit\":{\"type\":[\"integer\",\"null\"],\"description\":"                                  \
    "\"Most lines to return. Left out or null: as many as the output limit takes.\"}},"            \
    "\"required\":[\"path\"]}"

#define READ_ANSWER                                                                                \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"text\":{\"type\":\"string\"},\"first_line\":{\"type\":\"integer\"},"                        \
    "\"lines\":{\"type\":\"integer\"},"                                                            \
    "\"next_offset\":{\"type\":\"integer\",\"description\":\"Present when lines follow\"},"        \
    "\"remaining_lines\":{\"type\":\"integer\",\"description\":\"Where they were counted\"},"      \
    "\"line_too_long\":{\"type\":\"boolean\",\"description\":"                                     \
    "\"The first line is longer than the output limit, and nothing of it is in text\"},"           \
    "\"media_type\":{\"type\":\"string\",\"description\":"                                         \
    "\"Of a file that is no text, whose bytes come beside this\"},"                                \
    "\"bytes\":{\"type\":\"integer\"},"                                                            \
    "\"remaining_seconds\":{\"type\":\"number\",\"description\":"                                  \
    "\"Of the sandbox's life; absent where no end is known\"},"                                    \
    "\"replaced\":{\"type\":\"boolean\",\"description\":"                                          \
    "\"The sandbox was lost before this call; files of earlier calls are gone\"}}}"

static void assert_format(enum tool_format f, const char *expected)
{
    _cleanup_free_ char *once = format_tools(f, two, 1), *again = format_tools(f, two, 1);

    assert_string_equal(once, expected);
    assert_string_equal(again, expected);
}

static void each_format_has_the_members_of_its_protocol(void **state)
{
    (void)state;
    assert_format(FORMAT_MCP,
                  "[{\"name\":\"x_read_file\",\"title\":\"Read a file\",\"description\":"
                  "\"Reads \\\"it\\\".\",\"inputSchema\":" READ_SCHEMA
                  ",\"outputSchema\":" READ_ANSWER ",\"annotations\":{"
                  "\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,"
                  "\"openWorldHint\":false}}]");
    assert_format(FORMAT_ANTHROPIC, "[{\"name\":\"x_read_file\",\"description\":"
                                    "\"Reads \\\"it\\\".\",\"input_schema\":" READ_SCHEMA "}]");
    assert_format(FORMAT_OPENAI,
                  "[{\"type\":\"function\",\"function\":{\"name\":\"x_read_file\",\"description\":"
                  "\"Reads \\\"it\\\".\",\"parameters\":" READ_SCHEMA "}}]");
}

static void tools_are_listed_in_the_order_given(void **state)
{
    (void)state;
    for (enum tool_format f = 0; f < FORMAT__MAX; f++) {
        _cleanup_free_ char *text = format_tools(f, two, 2), *none = format_tools(f, two, 0);

        assert_string_equal(none, "[]");
        assert_true(strstr(text, "x_read_file") < strstr(text, "x_run_command"));
        assert_non_null(strstr(text, "Runs it.\\n\\nSo."));
    }
}

struct hints {
    bool read_only, destructive, idempotent, open;
};

static void assert_hints(enum tool_id id, struct hints expected)
{
    struct format_tool one = {.id = id, .name = "n", .description = "d"};
    _cleanup_free_ char *text = format_tools(FORMAT_MCP, &one, 1);
    json_t *list = json_loads(text, 0, NULL);
    const json_t *hints = json_object_get(json_array_get(list, 0), "annotations");

    assert_int_equal(json_is_true(json_object_get(hints, "readOnlyHint")), expected.read_only);
    assert_int_equal(json_is_true(json_object_get(hints, "destructiveHint")), expected.destructive);
    assert_int_equal(json_is_true(json_object_get(hints, "idempotentHint")), expected.idempotent);
    assert_int_equal(json_is_true(json_object_get(hints, "openWorldHint")), expected.open);
    json_decref(list);
}

static void hints_tell_what_a_tool_can_do(void **state)
{
    static const struct hints look = {.read_only = true, .idempotent = true};
    static const struct hints replace = {.destructive = true, .idempotent = true};
    static const struct hints run = {.destructive = true, .open = true};

    (void)state;
    assert_hints(TOOL_RUN_COMMAND, run);
    assert_hints(TOOL_READ_FILE, look);
    assert_hints(TOOL_WRITE_FILE, replace);
    assert_hints(TOOL_LIST_DIRECTORY, look);
    assert_hints(TOOL_EDIT_FILE, (struct hints){.destructive = true});
    assert_hints(TOOL_SEARCH_FILES, look);
    assert_hints(TOOL_START_PROCESS, run);
    assert_hints(TOOL_PROCESS_OUTPUT, (struct hints){0}); /* what was read is not read again */
    assert_hints(TOOL_STOP_PROCESS, (struct hints){.destructive = true});
    assert_hints(TOOL_PUBLISH_EXPORTS, run); /* {time} in a URL is another place each time */
}

static void formats_are_found_by_name(void **state)
{
    (void)state;
    assert_int_equal(format_find("mcp"), FORMAT_MCP);
    assert_int_equal(format_find("anthropic"), FORMAT_ANTHROPIC);
    assert_int_equal(format_find("openai"), FORMAT_OPENAI);
    assert_int_equal(format_find("MCP"), FORMAT__MAX);
    assert_int_equal(format_find(""), FORMAT__MAX);
}

static void every_tool_describes_itself(void **state)
{
    (void)state;
    for (enum tool_id id = 0; id < TOOL__MAX; id++) {
        const struct tool *t = &tools[id];

        assert_true(strlen(t->title) > 0 && strlen(t->description) > 0);
        assert_true(text_is_utf8(t->description, strlen(t->description)));
        assert_int_equal(t->description[strlen(t->description) - 1], '.');
        for (enum tool_id other = 0; other < TOOL__MAX; other++) /* which may bear a prefix */
            assert_null(strstr(t->description, tools[other].name));
    }
    assert_non_null(strstr(tools[TOOL_LIST_DIRECTORY].description, "/"));
    assert_non_null(strstr(tools[TOOL_WRITE_FILE].description, "parent directories"));
    assert_non_null(strstr(tools[TOOL_READ_FILE].description, "offset"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tools_have_their_names_and_order),
        cmocka_unit_test(those_that_are_asked_for_are_the_ones_behind_the_first_four),
        cmocka_unit_test(a_prefix_renames_all),
        cmocka_unit_test(only_what_runs_a_command_takes_code),
        cmocka_unit_test(the_schemas_have_the_properties_that_calls_take),
        cmocka_unit_test(the_schemas_of_what_is_asked_for_have_theirs),
        cmocka_unit_test(every_schema_of_answers_is_one_of_an_object),
        cmocka_unit_test(each_format_has_the_members_of_its_protocol),
        cmocka_unit_test(tools_are_listed_in_the_order_given),
        cmocka_unit_test(hints_tell_what_a_tool_can_do),
        cmocka_unit_test(formats_are_found_by_name),
        cmocka_unit_test(every_tool_describes_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
