/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs that speak the Model Context Protocol want to be told of a server, each in its own
 * format: where it goes, and how it starts `atoll mcp`. Where such a program has a variable for the
 * folder of the project, the sandbox shows that folder as /workspace.
 */
#pragma once

#include <stdio.h>

#include "base/error.h"

enum mcp_format {
    MCP_JSON, /* a map of servers under struct mcp_client.key */
    MCP_TOML,
    MCP_YAML_LIST, /* a file of its own, with a list of servers */
    MCP_YAML_MAP,
};

struct mcp_client {
    const char *name;
    enum mcp_format format;
    const char *key;    /* of the map of servers */
    const char *type;   /* what a server's `type` is to be; NULL: it has none */
    const char *folder; /* its variable for the project's folder; NULL: it has none */
    const char *file;   /* where it goes: "~/.codex/config.toml" */
};

/* The table, ended by one without a name; and the names alone, as choices of an option. */
extern const struct mcp_client mcp_clients[];
extern const char *const mcp_client_names[];

/** mcp_client_find() - by its name, which must be one of them */
const struct mcp_client *mcp_client_find(const char *name);

struct mcp_server_entry {
    const char *name;    /* what the client calls it: letters, digits, '_' and '-' */
    const char *program; /* an absolute path: who starts it may have no PATH */
    const char *prefix;  /* of its tools; NULL: none */
};

/** mcp_client_print() - the entry in the client's format; 0 or -ENOMEM with an error */
int mcp_client_print(FILE *f, const struct mcp_client *c, const struct mcp_server_entry *server,
                     struct error *err);
