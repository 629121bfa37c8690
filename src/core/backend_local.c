/* SPDX-License-Identifier: Apache-2.0 */
/* What the backend of this program can enforce: sandboxes of this host's kernel. */
#include "base/cleanup.h"
#include "core/backend_tables.h"
#include "core/cost.h"
#include "base/guards.h"

#define KERNEL "the kernel"
#define KEEPER "atoll's keeper"
#define EGRESS "atoll's egress process"

static const struct capability_rule rules[] = {
    {.when = WHEN_OPEN,
     RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "public addresses alone, dialled outside the sandbox; no address that the host "
                   "itself answers for",
                   EGRESS)},
    {.when = WHEN_LISTED,
     RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "a network namespace with nothing but loopback, where what is not listed is "
                   "refused at once; other names do not resolve",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "a network namespace with nothing but loopback, name resolution included",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO,
                   "names are looked up and dialled outside; the TLS server name on port 443 and "
                   "the Host on port 80 must be the name",
                   EGRESS)},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS,
                   "other addresses are refused at once; TCP and UDP to these are relayed",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_PRIVATE_CIDRS,
                   "other addresses that are not public are refused at once", KERNEL)},
    {.when = WHEN_TEXT,
     .text = "pinned",
     RULE_ENFORCED(SPEC_FIELD_EGRESS_ENFORCEMENT,
                   "the address is chosen outside, and the TLS server name is compared", EGRESS)},
    {RULE_REFUSED(SPEC_FIELD_EGRESS_ENFORCEMENT,
                  "TLS goes through this backend as it is, and does not end outside the sandbox",
                  "Leave backend.egress_enforcement at pinned")},
    {RULE_ENFORCED(SPEC_FIELD_RESOLVER, "asked from outside about listed names, and nobody else is",
                   EGRESS)},
    {RULE_ENFORCED(SPEC_FIELD_ADD_HOSTS, "dialled at these addresses, without a look-up", EGRESS)},
    {.when = WHEN_PREFIX,
     .text = "http://",
     RULE_ENFORCED(SPEC_FIELD_PROXY, "every connection out goes through it, by CONNECT", EGRESS)},
    {RULE_REFUSED(SPEC_FIELD_PROXY, "only http:// proxies are spoken to",
                  "Name the proxy's http:// address in backend.proxy")},
    {RULE_ENFORCED(SPEC_FIELD_PROXY_CREDENTIALS, "read outside, and told to the proxy alone",
                   EGRESS)},
    {RULE_ENFORCED(SPEC_FIELD_PUBLISH,
                   "connections to the host's port are relayed to loopback inside", EGRESS)},
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
    {RULE_ENFORCED(SPEC_FIELD_CPU,
                   "a quota of a control group, and so many CPUs to run on at first; refused where "
                   "no such group can be made",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_MEMORY,
                   "the ceiling of a control group, for memory and swap together, with what its "
                   "files take; refused where no such group can be made",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_PIDS, "a ceiling on processes and threads of its user namespace",
                   KERNEL)},
    {RULE_ENFORCED(SPEC_FIELD_DISK, "the size of the one file system that it can write", KERNEL)},
    {.when = WHEN_ZERO,
     RULE_ACCEPTED(SPEC_FIELD_SANDBOX_TIMEOUT,
                   "none: it lives until it is removed or its owner is gone", KEEPER)},
    {RULE_ENFORCED(SPEC_FIELD_SANDBOX_TIMEOUT, "a timer that ends the sandbox and all in it",
                   KEEPER)},
    {RULE_ENFORCED(SPEC_FIELD_IDLE_TIMEOUT, "a timer that ends a sandbox nobody uses", KEEPER)},
    {.when = WHEN_OTHER_NAMES,
     .text = COST_UNITS,
     RULE_REFUSED(SPEC_FIELD_PRICES, "only CPU time and memory are measured",
                  "Give prices for cpu_hour, an hour of one CPU at work, and gib_hour, an hour of "
                  "one GiB in use, alone")},
    {RULE_ENFORCED(SPEC_FIELD_PRICES, "CPU time, and memory in use second by second, are counted",
                   KEEPER)},
    {.when = WHEN_UNPRICED,
     RULE_REFUSED(SPEC_FIELD_MAX_COST, "without prices nothing costs anything",
                  "Set backend.prices, or remove backend.max_cost and limit "
                  "backend.sandbox_timeout")},
    {RULE_ENFORCED(SPEC_FIELD_MAX_COST,
                   "looked at every second; the sandbox and all in it ends when it is reached",
                   KEEPER)},
    {RULE_ACCEPTED(SPEC_FIELD_OWNER, "recorded with the sandbox", KEEPER)},
    {RULE_ENFORCED(SPEC_FIELD_AUDIT,
                   "each event is added as one line, masked as events are; where the disk is full "
                   "lines are lost and counted",
                   KEEPER)},
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
                        FEATURE_BIT(FEATURE_OWNER) | FEATURE_BIT(FEATURE_LEASE),
        },
};
