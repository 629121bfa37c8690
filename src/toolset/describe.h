/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `run_command` tells a model beside its fixed part: what the network lets through, what of an
 * earlier task is here, how much life is left, what will be copied out. Made once when a run begins
 * and never changed in it, so that prompt caches keep working.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/policy.h"
#include "core/spec.h"

struct describe_input {
    const char *prefix;          /* of the tools; NULL */
    const char *purpose;         /* of the sandbox; NULL */
    bool attached;               /* the sandbox was made by somebody else … */
    bool known;                  /* … and was asked already: the next two hold */
    const struct policy *policy; /* NULL: not known */
    int64_t remaining_s;         /* of its life; negative: not known. Attached only */
    bool lifetime_none;          /* it has no end of its own. Attached only */
    /* Another backend's, of which less is known: names that no rule lists may resolve all the same,
     * and what is refused need not fail at once. */
    bool names_resolve;
    const struct string_list *exports; /* PATH=URL */
};

/** describe_run_command() - the whole description; 0 with *@ret owned by the caller, or -ENOMEM */
int describe_run_command(const struct describe_input *x, char **ret);
