/* SPDX-License-Identifier: Apache-2.0 */
/* What the backend of this program can enforce: sandboxes of this host's kernel. */
#include "base/cleanup.h"
#include "core/backend_tables.h"
#include "base/guards.h"

#define KERNEL "the kernel"
#define KEEPER "atoll's keeper"

static const char no_way_out[] = "sandboxes of this backend have no way out at all, also not to "
                                 "what is listed";
static const char bring_it_in[] = "Remove it, fetch what is needed beforehand and show it inside "
                                  "with backend.volumes";

static const struct capability_rule rules[] = {
    {.when = WHEN_OPEN,
     RULE_REFUSED(SPEC_FIELD_BLOCK_NETWORK, "sandboxes of this backend have no way out at all",
                  "Leave spec.block_network true, fetch what is needed beforehand and show it "
                  "inside with backend.volumes")},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "a network namespace with nothing but loopback, name resolution included",
                   KERNEL)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO, no_way_out, bring_it_in)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, no_way_out, bring_it_in)},
    {RULE_REFUSED(SPEC_FIELD_PRIVATE_CIDRS, no_way_out, bring_it_in)},
    {RULE_REFUSED(SPEC_FIELD_EGRESS_ENFORCEMENT,
                  "sandboxes of this backend have no way out that could be inspected",
                  "Leave backend.egress_enforcement at pinned")},
    {RULE_REFUSED(SPEC_FIELD_RESOLVER, "nothing is resolved without a way out",
                  "Remove backend.resolver")},
    {RULE_REFUSED(SPEC_FIELD_PROXY, no_way_out, "Remove backend.proxy")},
    {RULE_REFUSED(SPEC_FIELD_PUBLISH, "no port of a sandbox can be reached from outside",
                  "Remove backend.publish and talk to the program with a command inside")},
    {RULE_ENFORCED(SPEC_FIELD_ENV,
                   "handed to the commands alone, never in an argument, a file or a log; nothing "
                   "of the caller's environment",
                   KEEPER)},
    {.when = WHEN_TEXT,
     .text = "host",
     RULE_ENFORCED(SPEC_FIELD_IMAGE, "the host's /usr and a fixed part of its /etc, read-only",
                   KERNEL)},
    {.when = WHEN_PREFIX,
     .text = "dir:",
     RULE_ENFORCED(SPEC_FIELD_IMAGE,
                   "the folder as a read-only lower layer, writes to it are discarded", KERNEL)},
    {RULE_REFUSED(SPEC_FIELD_IMAGE, "images come from this host only",
                  "Use the image 'host', or unpack a root file system and name it as dir:PATH")},
    {RULE_ENFORCED(SPEC_FIELD_WORKDIR, "made if absent, where commands start; not a jail", KEEPER)},
    {RULE_ENFORCED(SPEC_FIELD_USER, "an id of the sandbox's own user namespace, never root outside",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_HOSTNAME, "a host name namespace", KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_VOLUMES, "bind mounts, read-only in depth where that is asked for",
                   KERNEL)},
    {RULE_REFUSED(SPEC_FIELD_CPU, "there is no ceiling on processor time",
                  "Remove backend.cpu; backend.pids and backend.sandbox_timeout are enforced")},
    {RULE_REFUSED(SPEC_FIELD_MEMORY, "there is no ceiling on the memory of all processes together",
                  "Remove backend.memory; backend.disk and backend.pids are enforced")},
    {RULE_ENFORCED(SPEC_FIELD_PIDS, "a ceiling on processes and threads of its user namespace",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_DISK, "the size of the one file system that it can write", KERNEL)},
    {.when = WHEN_ZERO,
     RULE_ACCEPTED(SPEC_FIELD_SANDBOX_TIMEOUT,
                   "none: it lives until it is removed or its owner is gone", KEEPER)},
    {RULE_ENFORCED(SPEC_FIELD_SANDBOX_TIMEOUT, "a timer that ends the sandbox and all in it",
                   KEEPER)},
    {RULE_ENFORCED(SPEC_FIELD_IDLE_TIMEOUT, "a timer that ends a sandbox nobody uses", KEEPER)},
    {RULE_REFUSED(SPEC_FIELD_PRICES, "costs are not counted", "Remove backend.prices")},
    {RULE_REFUSED(SPEC_FIELD_MAX_COST, "costs are not counted",
                  "Remove backend.max_cost and limit backend.sandbox_timeout")},
    {RULE_ACCEPTED(SPEC_FIELD_OWNER, "recorded with the sandbox", KEEPER)},
    {RULE_ACCEPTED(SPEC_FIELD_TAGS, "recorded with the sandbox", KEEPER)},
};

const struct backend backend_local = {
    .name = "local",
    .state = BACKEND_BUILT_IN,
    .summary = "namespaces of this host's kernel; no daemon, no root",
    .capability =
        {
            .rules = rules,
            .n_rules = ARRAY_SIZE(rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_STDIN) |
                        FEATURE_BIT(FEATURE_TTY) | FEATURE_BIT(FEATURE_SIGNAL) |
                        FEATURE_BIT(FEATURE_TIMEOUT) | FEATURE_BIT(FEATURE_DETACH) |
                        FEATURE_BIT(FEATURE_FILES) | FEATURE_BIT(FEATURE_RANGES) |
                        FEATURE_BIT(FEATURE_LIST) | FEATURE_BIT(FEATURE_PACK) |
                        FEATURE_BIT(FEATURE_UNPACK) | FEATURE_BIT(FEATURE_INSPECT) |
                        FEATURE_BIT(FEATURE_PS) | FEATURE_BIT(FEATURE_REOPEN) |
                        FEATURE_BIT(FEATURE_OWNER),
        },
};
