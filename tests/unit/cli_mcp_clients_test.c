/* SPDX-License-Identifier: Apache-2.0 */
/* What MCP clients are told: in the form that each reads, whatever the program's path is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "cli/mcp_clients.h"
#include "wire/document.h"
#include "base/guards.h"

#define ODD_PATH "/opt/a \"b\" \\c/\xc3\xa9/atoll" /* what has to be escaped, and what has not */

/* Owned by the caller. */
static char *printed(const char *client, const char *program, const char *prefix)
{
    const struct mcp_server_entry server = {"box", program, prefix};
    struct error err = ERROR_INIT;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    assert_int_equal(mcp_client_print(f, mcp_client_find(client), &server, &err), 0);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void every_client_is_found_by_its_name(void **state)
{
    size_t n = 0;

    (void)state;
    for (; mcp_client_names[n]; n++) {
        assert_string_equal(mcp_clients[n].name, mcp_client_names[n]);
        assert_ptr_equal(mcp_client_find(mcp_client_names[n]), &mcp_clients[n]);
        assert_true(strlen(mcp_clients[n].file) > 0);
    }
    assert_null(mcp_clients[n].name);
    assert_true(n >= 10);
}

static void assert_strings(const json_t *list, const char *const *want, size_t n)
{
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(json_string_value(json_array_get(list, i)), want[i]);
}

static void json_has_the_command_with_its_path_and_arguments(void **state)
{
    static const char *const plain[] = {"mcp", "--tool-prefix", "py"};

    (void)state;
    for (const struct mcp_client *c = mcp_clients; c->name; c++) {
        if (c->format != MCP_JSON)
            continue;
        _cleanup_free_ char *text = printed(c->name, ODD_PATH, "py");
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        const json_t *entry = json_object_get(json_object_get(root, c->key), "box");
        const json_t *type = json_object_get(entry, "type");

        assert_non_null(entry);
        assert_int_equal(json_object_size(root), 1);
        assert_string_equal(json_string_value(json_object_get(entry, "command")), ODD_PATH);
        assert_int_equal(type != NULL, c->type != NULL);
        if (type)
            assert_string_equal(json_string_value(type), c->type);
        if (!c->folder)
            assert_strings(json_object_get(entry, "args"), plain, 3);
        json_decref(root);
    }
}

static void the_folder_of_the_project_is_shown_where_the_client_has_a_variable_for_it(void **state)
{
    static const struct {
        const char *client, *volume;
    } rows[] = {
        {"vscode", "${workspaceFolder}:/workspace"},
        {"cursor", "${workspaceFolder}:/workspace"},
        {"claude-code", "${CLAUDE_PROJECT_DIR:-.}:/workspace"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *const want[] = {"mcp", "--volume", rows[i].volume};
        _cleanup_free_ char *text = printed(rows[i].client, "/bin/atoll", NULL);
        json_t *root = json_loads(text, 0, NULL);
        const struct mcp_client *c = mcp_client_find(rows[i].client);
        const json_t *entry = json_object_get(json_object_get(root, c->key), "box");

        assert_strings(json_object_get(entry, "args"), want, 3);
        json_decref(root);
    }
}

static void toml_is_a_table_of_its_own(void **state)
{
    _cleanup_free_ char *text = printed("codex", ODD_PATH, NULL);

    (void)state;
    assert_string_equal(text, "[mcp_servers.box]\n"
                              "command = \"/opt/a \\\"b\\\" \\\\c/\xc3\xa9/atoll\"\n"
                              "args = [\"mcp\"]\n"
                              "tool_timeout_sec = 330\n");
}

/* Of one of the YAML forms: the map that has the command. */
static const struct document_node *server_of(const struct document *d, enum mcp_format format)
{
    const struct document_node *root = document_root(d);

    if (format == MCP_YAML_LIST)
        return document_item(&document_find(root, "mcpServers")->value, 0);
    return &document_find(&document_find(root, "extensions")->value, "box")->value;
}

static void yaml_is_read_as_what_it_was(void **state)
{
    static const struct {
        const char *client, *command;
    } rows[] = {{"continue", "command"}, {"goose", "cmd"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *text = printed(rows[i].client, ODD_PATH, "py");
        struct document *d = NULL;
        struct error err = ERROR_INIT;

        if (document_read(DOCUMENT_YAML, NULL, text, strlen(text), &d, &err) < 0)
            fail_msg("%s: %s", text, err.message);
        const struct document_node *server = server_of(d, mcp_client_find(rows[i].client)->format);
        const struct document_entry *args = document_find(server, "args");

        assert_string_equal(document_find(server, rows[i].command)->value.text, ODD_PATH);
        assert_string_equal(document_find(server, "name")->value.text, "box");
        assert_int_equal(args->value.n, 3);
        assert_string_equal(document_item(&args->value, 2)->text, "py");
        document_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_client_is_found_by_its_name),
        cmocka_unit_test(json_has_the_command_with_its_path_and_arguments),
        cmocka_unit_test(the_folder_of_the_project_is_shown_where_the_client_has_a_variable_for_it),
        cmocka_unit_test(toml_is_a_table_of_its_own),
        cmocka_unit_test(yaml_is_read_as_what_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
