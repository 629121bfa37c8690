/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that hold on every backend. */
#include "base/cleanup.h"
#include "core/backend_tables.h"
#include "base/guards.h"

#define CONTRADICTED(name)                                                                         \
    {                                                                                              \
        .when = WHEN_CONTRADICTED,                                                                 \
        RULE_REFUSED(name,                                                                         \
                     "with block_network false everything may pass, so a list of what may pass "   \
                     "says nothing",                                                               \
                     "Set spec.block_network to true to allow only what is listed, or remove the " \
                     "lists")                                                                      \
    }

#define BY_TOOLSET(name)                                                                           \
    {                                                                                              \
        RULE_ACCEPTED(name, "kept by the tools of an agent, the same on every backend", "atoll")   \
    }

const struct capability_rule backend_common_rules[] = {
    CONTRADICTED(SPEC_FIELD_BLOCK_NETWORK),
    CONTRADICTED(SPEC_FIELD_ALLOW_EGRESS_TO),
    CONTRADICTED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS),
    {.when = WHEN_CONTRADICTED,
     RULE_REFUSED(SPEC_FIELD_PRIVATE_CIDRS,
                  "it says which private ranges an open network may reach, and the network is "
                  "closed",
                  "Put the ranges into spec.allow_egress_to_cidrs, or set spec.block_network to "
                  "false")},
    {.when = WHEN_LACKS,
     .number = FEATURE_FILES,
     RULE_REFUSED(SPEC_FIELD_INPUTS, "the backend takes no files in",
                  "Put the files into the image")},
    {RULE_ENFORCED(SPEC_FIELD_INPUTS, "copied in before the first command", "atoll")},
    {.when = WHEN_LACKS,
     .number = FEATURE_REOPEN,
     RULE_REFUSED(SPEC_FIELD_ATTACH_TO,
                  "the backend cannot reach a sandbox that another run has made",
                  "Remove toolset.attach_to, or use the backend local")},
    {.when = WHEN_LACKS,
     .number = FEATURE_LEASE,
     RULE_ACCEPTED(SPEC_FIELD_ATTACH_TO, "attach: by tags, read back; not a lock", "atoll")},
    {RULE_ENFORCED(SPEC_FIELD_ATTACH_TO, "attach: one decision of the sandbox's keeper, a lock",
                   "atoll-keeper")},
    BY_TOOLSET(SPEC_FIELD_TOOLSET_OWNER),
    BY_TOOLSET(SPEC_FIELD_TOOL_PREFIX),
    BY_TOOLSET(SPEC_FIELD_PURPOSE),
    BY_TOOLSET(SPEC_FIELD_TOOLS),
    BY_TOOLSET(SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT),
    BY_TOOLSET(SPEC_FIELD_MAX_COMMAND_TIMEOUT),
    BY_TOOLSET(SPEC_FIELD_MAX_OUTPUT_LINES),
    BY_TOOLSET(SPEC_FIELD_MAX_OUTPUT_BYTES),
    BY_TOOLSET(SPEC_FIELD_MAX_RUN_OUTPUT_BYTES),
    BY_TOOLSET(SPEC_FIELD_MAX_READ_BYTES),
    {.when = WHEN_LACKS,
     .number = FEATURE_FILES,
     RULE_REFUSED(SPEC_FIELD_EXPORTS, "the backend lets no files out",
                  "Print what is wanted, or use the backend local")},
    {.when = WHEN_NOT_FILES,
     RULE_REFUSED(SPEC_FIELD_EXPORTS, "only file:// destinations can be written to yet",
                  "Export to a file:// URL, and upload the file from there")},
    BY_TOOLSET(SPEC_FIELD_EXPORTS),
    BY_TOOLSET(SPEC_FIELD_MAX_EXPORT_BYTES),
    BY_TOOLSET(SPEC_FIELD_EXPORT_CREDENTIALS),
    BY_TOOLSET(SPEC_FIELD_MASK),
};
const size_t backend_common_n_rules = ARRAY_SIZE(backend_common_rules);
