/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of `atoll mcp --config`: YAML or JSON with `version: 1` and `toolsets`, a list. Each
 * entry is the sections of a spec file, and may have two keys beside them: `prefix` stands for
 * toolset.tool_prefix, `purpose` for toolset.purpose.
 */
#pragma once

#include <stddef.h>

#include "atoll.h"
#include "base/error.h"
#include "core/limits.h"
#include "core/problems.h"

struct mcp_config {
    struct atoll_spec *specs[LIMIT_MCP_TOOLSETS]; /* of one toolset each; owned */
    size_t n;
};

void mcp_config_done(struct mcp_config *c);

/**
 * mcp_config_read() - the toolsets of a file
 * @path:     of a file or pipe, as spec_file_read()
 * @ret:      on success only; owned
 * @problems: borrowed; gets all that is wrong, with its place: each toolset as a spec, and tools of
 *            two that would have one name
 *
 * Sandboxes are owned and live an hour unless the file says otherwise. Relative paths of the host
 * start at the file's folder. Blocks. Return: 0; or a negative errno with @err set, as
 * spec_file_read().
 */
int mcp_config_read(const char *path, struct mcp_config *ret, struct problems *problems,
                    struct error *err);
