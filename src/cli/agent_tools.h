/* SPDX-License-Identifier: Apache-2.0 */
/* A toolset as the commands have it: judged before anything is made, with errors of their own kind.
 */
#pragma once

#include "atoll_toolset.h"
#include "base/error.h"
#include "core/spec.h"

/**
 * agent_tools_admit() - whether the spec's backend could make the sandbox of a toolset
 *
 * Starts a backend program to ask it. Blocks. Return: 0; or a negative errno with a usage error, as
 * backend_admit() and description_admits().
 */
int agent_tools_admit(const struct spec *s, struct error *err);

/** agent_tools_new() - atoll_toolset_new() with an error for people; @ret is owned */
int agent_tools_new(struct atoll *a, const struct atoll_spec *spec,
                    const struct atoll_toolset_options *options, struct atoll_toolset **ret,
                    struct error *err);

/* For _cleanup_(). */
static inline void agent_spec_freep(struct atoll_spec **s)
{
    atoll_spec_free(*s);
}

static inline void agent_tools_freep(struct atoll_toolset **t)
{
    atoll_toolset_free(*t);
}
