/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MCP server on two descriptors, from the first line to the end: the whole run of `atoll mcp`.
 *
 * The toolsets are opened first; each makes its sandbox when its first tool is called. At the end
 * of input the calls that were read are finished for at most 2 s and answered; what is left then is
 * ended. Exports are published if no call was cut and the process that started this one still lives
 * 100 ms later, since a client that was killed has not finished its run. Then the sandboxes go.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "atoll_toolset.h"
#include "base/error.h"
#include "base/log.h"

struct mcp_serve_options {
    struct atoll *a;
    struct atoll_toolset *const *toolsets; /* borrowed, closed; options.bytes was set */
    size_t n_toolsets;
    int in_fd, out_fd; /* borrowed */
    int parent_fd;     /* a pidfd (pidfd_open(2)) of who started this one, taken early; borrowed;
                          -EBADF: it cannot be seen, so nothing is published at the end */
    const struct log *log;
};

/**
 * mcp_serve() - serve until the client goes or a signal comes
 * @ret_signal: SIGINT, SIGTERM, SIGHUP or SIGQUIT that ended it, when nothing is published; else 0
 *
 * Blocks. Return: 0; or a negative errno with an error: what was promised was not published, or the
 * server could not begin.
 */
int mcp_serve(const struct mcp_serve_options *options, int *ret_signal, struct error *err);
