/* SPDX-License-Identifier: Apache-2.0 */
/* What services that somebody else runs can and cannot enforce. */
#include "base/cleanup.h"
#include "core/backend_tables.h"
#include "base/guards.h"

#define MODAL "Modal"
#define ISLO  "Islo"
#define BOAT  "Boat"

static const struct capability_rule modal_rules[] = {
    {.when = WHEN_OPEN,
     RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "an open network; private ranges and the metadata address stay unreachable",
                   MODAL)},
    {.when = WHEN_LISTED,
     RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK, "an allowlist; name resolution stays open", MODAL)},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK, "network access blocked, name resolution included",
                   MODAL)},
    {.when = WHEN_PORTS,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO, "host names are matched on port 443 alone",
                  "List the hosts without ports, or their addresses in "
                  "spec.allow_egress_to_cidrs")},
    {.when = WHEN_UNDECLARED,
     .number = FACT_NAMES_SUFFICE,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO,
                  "a host is matched by the name in the TLS handshake on port 443, whatever the "
                  "address; name resolution stays open, and all that shares an endpoint with a "
                  "listed name can be reached",
                  "List addresses in spec.allow_egress_to_cidrs, use the backend local, or accept "
                  "that and declare it to the backend as egress_enforcement=sni")},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO,
                   "the name in the TLS handshake on port 443; name resolution stays open, and all "
                   "that shares an endpoint with a listed name can be reached",
                   MODAL)},
    {.when = WHEN_IPV6,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, "there is no route for IPv6",
                  "List ranges of IPv4 only")},
    {.when = WHEN_PRIVATE,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS,
                  "private ranges and the metadata address are unreachable in every mode",
                  "List public ranges only, or use a backend in the network that is meant")},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS,
                   "an allowlist of addresses, any port; name resolution stays open", MODAL)},
    {RULE_REFUSED(SPEC_FIELD_EGRESS_ENFORCEMENT, "requests are not looked into",
                  "Leave backend.egress_enforcement at pinned")},
    {RULE_ENFORCED(SPEC_FIELD_ENV, "passed when the sandbox is created", MODAL)},
    {.when = WHEN_IDLE_SET,
     RULE_REFUSED(SPEC_FIELD_OWNER,
                  "an idle timeout would end the sandbox in the gap between two tasks",
                  "Remove backend.idle_timeout and size backend.sandbox_timeout instead")},
    {RULE_ACCEPTED(SPEC_FIELD_OWNER,
                   "a tag, which anybody with the account's credentials can change", MODAL)},
    RULE_NO_HOST_FOLDER,
    {.when = WHEN_DEFAULT,
     RULE_ACCEPTED(SPEC_FIELD_IMAGE, "the backend's own default, python:3.12-slim", MODAL)},
    {RULE_ENFORCED(SPEC_FIELD_IMAGE, "an image of a registry", MODAL)},
    {RULE_ENFORCED(SPEC_FIELD_WORKDIR, "made if absent, where commands start; not a jail", MODAL)},
    {RULE_REFUSED(SPEC_FIELD_USER, "commands run as root", "Remove backend.user")},
    RULE_NO_VOLUMES,
    RULE_NOT_OFFERED(SPEC_FIELD_PUBLISH),
    {RULE_ACCEPTED(SPEC_FIELD_CPU, "a request for scheduling, not a ceiling", MODAL)},
    {RULE_ACCEPTED(SPEC_FIELD_MEMORY,
                   "a request for scheduling, not a ceiling: a sandbox that asked for 512 MiB used "
                   "1.5 GiB",
                   MODAL)},
    RULE_NOT_OFFERED(SPEC_FIELD_DISK),
    {.when = WHEN_ZERO,
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "a sandbox must have a lifetime",
                  "Set backend.sandbox_timeout to 24h at most")},
    {.when = WHEN_BELOW,
     .number = SECONDS(120),
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "one file operation alone may take 120 s",
                  "Set backend.sandbox_timeout to 120s at least")},
    {.when = WHEN_ABOVE,
     .number = SECONDS(86400),
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "a lifetime is 24 h at most",
                  "Set backend.sandbox_timeout to 24h at most")},
    {RULE_ENFORCED(SPEC_FIELD_SANDBOX_TIMEOUT, "the service ends the sandbox", MODAL)},
    {.when = WHEN_OUTLIVES,
     RULE_REFUSED(SPEC_FIELD_IDLE_TIMEOUT, "it is longer than the lifetime",
                  "Set backend.idle_timeout to backend.sandbox_timeout at most")},
    {RULE_ENFORCED(SPEC_FIELD_IDLE_TIMEOUT,
                   "the service ends a sandbox without activity; a running command counts as such",
                   MODAL)},
    {RULE_ACCEPTED(SPEC_FIELD_TAGS, "recorded with the sandbox when it is created", MODAL)},
    RULES_NEVER_OFFERED,
};

const struct backend backend_modal = {
    .name = "modal",
    .state = BACKEND_KNOWN,
    .summary = "Modal's hosted sandboxes",
    .capability =
        {
            .rules = modal_rules,
            .n_rules = ARRAY_SIZE(modal_rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_STDIN) |
                        FEATURE_BIT(FEATURE_TIMEOUT) | FEATURE_BIT(FEATURE_FILES) |
                        FEATURE_BIT(FEATURE_LIST) | FEATURE_BIT(FEATURE_REOPEN) |
                        FEATURE_BIT(FEATURE_OWNER) | FEATURE_BIT(FEATURE_TAGS),
        },
};

static const struct capability_rule islo_rules[] = {
    {.when = WHEN_OPEN, RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK, "the internet switched on", ISLO)},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK, "the internet switched off", ISLO)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO, "the internet is on or off as a whole",
                  "Remove spec.allow_egress_to, or use the backend local")},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, "the internet is on or off as a whole",
                  "Remove spec.allow_egress_to_cidrs, or use the backend local")},
    RULE_NOT_OFFERED(SPEC_FIELD_EGRESS_ENFORCEMENT),
    {.when = WHEN_NAMES,
     .text = "PATH",
     RULE_REFUSED(SPEC_FIELD_ENV, "the service drops the variable PATH silently",
                  "Remove PATH from spec.env and set it in the commands")},
    {RULE_ENFORCED(SPEC_FIELD_ENV, "passed when the sandbox is created, for every command", ISLO)},
    {RULE_REFUSED(SPEC_FIELD_OWNER, "nothing is kept with a sandbox that could name its owner",
                  "Remove spec.owner, or use the backend local or modal")},
    RULE_NO_HOST_FOLDER,
    {.when = WHEN_DEFAULT, RULE_ACCEPTED(SPEC_FIELD_IMAGE, "the service's own default", ISLO)},
    {RULE_ENFORCED(SPEC_FIELD_IMAGE, "an image of a registry", ISLO)},
    {.documented = true,
     RULE_ENFORCED(SPEC_FIELD_WORKDIR, "passed with each command; not a jail", ISLO)},
    RULE_NOT_OFFERED(SPEC_FIELD_USER),
    RULE_NO_VOLUMES,
    RULE_NOT_OFFERED(SPEC_FIELD_PUBLISH),
    {.when = WHEN_NOT_WHOLE,
     .number = 1000,
     RULE_REFUSED(SPEC_FIELD_CPU, "a machine has whole processors only",
                  "Set backend.cpu to a whole number")},
    {RULE_ENFORCED(SPEC_FIELD_CPU, "the processors of the machine", ISLO)},
    {RULE_ENFORCED(SPEC_FIELD_MEMORY, "the memory of the machine", ISLO)},
    RULE_NOT_OFFERED(SPEC_FIELD_DISK),
    {.when = WHEN_ZERO,
     RULE_ACCEPTED(SPEC_FIELD_SANDBOX_TIMEOUT,
                   "none: a sandbox that nobody removes stays, and is paid for", ISLO)},
    {RULE_ENFORCED(SPEC_FIELD_SANDBOX_TIMEOUT, "the service deletes it, counted from its creation",
                   ISLO)},
    {RULE_ACCEPTED(SPEC_FIELD_IDLE_TIMEOUT,
                   "the service pauses an idle sandbox and resumes it on activity; it does not end "
                   "it",
                   ISLO)},
    RULE_NOT_OFFERED(SPEC_FIELD_TAGS),
    RULES_NEVER_OFFERED,
};

const struct backend backend_islo = {
    .name = "islo",
    .state = BACKEND_KNOWN,
    .summary = "Islo's hosted sandboxes",
    .capability =
        {
            .rules = islo_rules,
            .n_rules = ARRAY_SIZE(islo_rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_TIMEOUT) |
                        FEATURE_BIT(FEATURE_FILES) | FEATURE_BIT(FEATURE_LIST) |
                        FEATURE_BIT(FEATURE_PACK) | FEATURE_BIT(FEATURE_UNPACK) |
                        FEATURE_BIT(FEATURE_INSPECT),
        },
};

/* A machine's CPUs, GiB of memory and GiB of disk. */
#define BOAT_MACHINES "2/4/12 4/8/50 8/16/125"
#define BOAT_CHOOSES                                                                               \
    "Ask for 2 CPUs, 4G and 12G, for 4 CPUs, 8G and 50G, or for 8 CPUs, 16G and 125G"
#define BOAT_MACHINE(name)                                                                         \
    {.when = WHEN_NO_MACHINE,                                                                      \
     .text = BOAT_MACHINES,                                                                        \
     RULE_REFUSED(name, "machines come in three sizes", BOAT_CHOOSES)},                            \
    {                                                                                              \
        .documented = true, RULE_ENFORCED(name, "the size of the machine", BOAT)                   \
    }

static const char boat_no_control[] = "the service has no control of what leaves a sandbox";
static const char boat_open[] = "Set spec.block_network to false to accept an open network, or use "
                                "the backend local";

static const struct capability_rule boat_rules[] = {
    {.when = WHEN_BLOCKED, RULE_REFUSED(SPEC_FIELD_BLOCK_NETWORK, boat_no_control, boat_open)},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "an open network; the machine also has a public address of its own", BOAT)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO, boat_no_control, boat_open)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, boat_no_control, boat_open)},
    RULE_NOT_OFFERED(SPEC_FIELD_EGRESS_ENFORCEMENT),
    {.when = WHEN_NAMES,
     .text = "ASCII_TOKEN ASCII_API_URL AGENT_ID PRODUCT_MODE ENVIRONMENT_ID BOAT_ID "
             "SERVICE_PREVIEW_TOKEN BOAT_CLI_TOKEN",
     .documented = true,
     RULE_REFUSED(SPEC_FIELD_ENV, "one of the names is reserved by the service",
                  "Rename ASCII_TOKEN, ASCII_API_URL, AGENT_ID, PRODUCT_MODE, ENVIRONMENT_ID, "
                  "BOAT_ID, SERVICE_PREVIEW_TOKEN or BOAT_CLI_TOKEN")},
    {.when = WHEN_MORE,
     .number = 100,
     .documented = true,
     RULE_REFUSED(SPEC_FIELD_ENV, "there may be 100 variables at most",
                  "Put the rest into a file of backend.inputs")},
    {RULE_ENFORCED(SPEC_FIELD_ENV, "set in front of each command", BOAT)},
    {RULE_REFUSED(SPEC_FIELD_OWNER, "nothing is kept with a sandbox that could name its owner",
                  "Remove spec.owner, or use the backend local or modal")},
    {.when = WHEN_DEFAULT,
     .documented = true,
     RULE_ACCEPTED(SPEC_FIELD_IMAGE, "the service's one image, Ubuntu 24.04", BOAT)},
    {RULE_REFUSED(SPEC_FIELD_IMAGE, "the service has one image",
                  "Remove backend.image and install what is needed with a command")},
    RULE_NOT_OFFERED(SPEC_FIELD_WORKDIR),
    {RULE_REFUSED(SPEC_FIELD_USER, "commands run as the service's user, which may become root",
                  "Remove backend.user")},
    RULE_NO_VOLUMES,
    RULE_NOT_OFFERED(SPEC_FIELD_PUBLISH),
    BOAT_MACHINE(SPEC_FIELD_CPU),
    BOAT_MACHINE(SPEC_FIELD_MEMORY),
    BOAT_MACHINE(SPEC_FIELD_DISK),
    {.when = WHEN_ZERO,
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "a sandbox must have a lifetime",
                  "Set backend.sandbox_timeout to 30 days at most")},
    {.when = WHEN_NOT_WHOLE,
     .number = SECONDS(1),
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "a lifetime is counted in whole seconds",
                  "Set backend.sandbox_timeout to whole seconds")},
    {.when = WHEN_ABOVE,
     .number = SECONDS(2592000),
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "a lifetime is 30 days at most",
                  "Set backend.sandbox_timeout to 720h at most")},
    {RULE_ENFORCED(SPEC_FIELD_SANDBOX_TIMEOUT, "the service stops it, counted from its creation",
                   BOAT)},
    {RULE_REFUSED(SPEC_FIELD_IDLE_TIMEOUT, "the service has no idle timer",
                  "Remove backend.idle_timeout and size backend.sandbox_timeout instead")},
    RULE_NOT_OFFERED(SPEC_FIELD_TAGS),
    RULES_NEVER_OFFERED,
};

const struct backend backend_boat = {
    .name = "boat",
    .state = BACKEND_KNOWN,
    .summary = "Boat's hosted virtual machines",
    .capability =
        {
            .rules = boat_rules,
            .n_rules = ARRAY_SIZE(boat_rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_TIMEOUT) |
                        FEATURE_BIT(FEATURE_DETACH) | FEATURE_BIT(FEATURE_FILES) |
                        FEATURE_BIT(FEATURE_LIST) | FEATURE_BIT(FEATURE_INSPECT),
        },
};
