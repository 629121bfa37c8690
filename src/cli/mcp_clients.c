/* SPDX-License-Identifier: Apache-2.0 */
/* Entries for MCP clients. Strings are JSON strings in all formats: TOML and YAML read those too.
 */
#include "cli/mcp_clients.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/limits.h"
#include "core/spec.h"
#include "wire/json_text.h"
#include "base/guards.h"

/* The two tables in one order. Formats are those that the clients' own pages document. */
const struct mcp_client mcp_clients[] = {
    {"claude-code", MCP_JSON, "mcpServers", "stdio", "${CLAUDE_PROJECT_DIR:-.}",
     ".mcp.json in the folder of the project"},
    {"claude-desktop", MCP_JSON, "mcpServers", NULL, NULL,
     "claude_desktop_config.json, which Settings > Developer > Edit Config shows"},
    {"cline", MCP_JSON, "mcpServers", NULL, NULL,
     "cline_mcp_settings.json, which MCP Servers > Configure opens"},
    {"codex", MCP_TOML, "mcp_servers", NULL, NULL, "~/.codex/config.toml"},
    {"continue", MCP_YAML_LIST, "mcpServers", NULL, NULL,
     ".continue/mcpServers/atoll.yaml in the folder of the project, a file of its own"},
    {"cursor", MCP_JSON, "mcpServers", "stdio", "${workspaceFolder}",
     ".cursor/mcp.json in the folder of the project"},
    {"gemini-cli", MCP_JSON, "mcpServers", NULL, NULL, "~/.gemini/settings.json"},
    {"goose", MCP_YAML_MAP, "extensions", NULL, NULL, "~/.config/goose/config.yaml"},
    {"junie", MCP_JSON, "mcpServers", NULL, NULL,
     ".junie/mcp/mcp.json in the folder of the project"},
    {"vscode", MCP_JSON, "servers", "stdio", "${workspaceFolder}",
     ".vscode/mcp.json in the folder of the project"},
    {"windsurf", MCP_JSON, "mcpServers", NULL, NULL, "~/.codeium/windsurf/mcp_config.json"},
    {"zed", MCP_JSON, "context_servers", NULL, NULL, "~/.config/zed/settings.json"},
    {.name = NULL},
};

const char *const mcp_client_names[] = {
    "claude-code", "claude-desktop", "cline",  "codex",    "continue", "cursor", "gemini-cli",
    "goose",       "junie",          "vscode", "windsurf", "zed",      NULL};

_Static_assert(ARRAY_SIZE(mcp_clients) == ARRAY_SIZE(mcp_client_names), "a client has no name");

const struct mcp_client *mcp_client_find(const char *name)
{
    const struct mcp_client *c = mcp_clients;

    while (c->name && strcmp(c->name, name) != 0)
        c++;
    assert(c->name);
    return c;
}

/* Seconds that a call may take: its command's longest time, and some for the rest. */
static unsigned long long call_seconds(void)
{
    return LIMIT_TOOL_TIMEOUT_CEILING_US / 1000000 + 30;
}

static json_t *arguments(const struct mcp_client *c, const struct mcp_server_entry *server)
{
    json_t *list = json_pack("[s]", "mcp");
    char *volume = NULL;
    int r = list ? 0 : -1;

    if (r == 0 && c->folder) {
        r = asprintf(&volume, "%s:%s", c->folder, SPEC_WORKDIR_DEFAULT) < 0 ? -1 : 0;
        if (r == 0) {
            r |= json_array_append_new(list, json_string("--volume"));
            r |= json_array_append_new(list, json_string(volume));
            free(volume);
        }
    }
    if (r == 0 && server->prefix) {
        r |= json_array_append_new(list, json_string("--tool-prefix"));
        r |= json_array_append_new(list, json_text(server->prefix));
    }
    if (r == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* @args: borrowed */
static char *json_entry(const struct mcp_client *c, const struct mcp_server_entry *server,
                        json_t *args)
{
    json_t *entry = json_pack("{s:s*, s:o, s:O}", "type", c->type, "command",
                              json_text(server->program), "args", args);
    json_t *root = entry ? json_pack("{s:{s:o}}", c->key, server->name, entry) : NULL;
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;

    json_decref(root);
    return text;
}

/* Those whose lines are written by hand; @command and @args are JSON. NULL: no memory. */
static char *written_entry(const struct mcp_client *c, const struct mcp_server_entry *server,
                           const char *command, const char *args)
{
    char *text = NULL;
    int n = -1;

    switch (c->format) {
    case MCP_JSON:
        break;
    case MCP_TOML:
        n = asprintf(&text, "[%s.%s]\ncommand = %s\nargs = %s\ntool_timeout_sec = %llu", c->key,
                     server->name, command, args, call_seconds());
        break;
    case MCP_YAML_LIST:
        n = asprintf(
            &text,
            "name: \"%s\"\nversion: 0.0.1\nschema: v1\n%s:\n  - name: \"%s\"\n    command: %s\n"
            "    args: %s",
            server->name, c->key, server->name, command, args);
        break;
    case MCP_YAML_MAP:
        n = asprintf(
            &text,
            "%s:\n  \"%s\":\n    enabled: true\n    type: stdio\n    name: \"%s\"\n    cmd: %s\n"
            "    args: %s\n    timeout: %llu",
            c->key, server->name, server->name, command, args, call_seconds());
        break;
    }
    return n < 0 ? NULL : text;
}

int mcp_client_print(FILE *f, const struct mcp_client *c, const struct mcp_server_entry *server,
                     struct error *err)
{
    json_t *args = arguments(c, server), *program = json_text(server->program);
    _cleanup_free_ char *command = program ? json_dumps(program, JSON_ENCODE_ANY) : NULL;
    _cleanup_free_ char *list = args ? json_dumps(args, 0) : NULL;
    _cleanup_free_ char *text = NULL;

    if (command && list)
        text = c->format == MCP_JSON ? json_entry(c, server, args)
                                     : written_entry(c, server, command, list);
    json_decref(args);
    json_decref(program);
    if (!text)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    fprintf(f, "%s\n", text);
    return 0;
}
