/* SPDX-License-Identifier: Apache-2.0 */
/* What programs and servers of one's own can and cannot enforce. */
#include "base/cleanup.h"
#include "core/backend_tables.h"
#include "core/limits.h"
#include "base/guards.h"

#define SBX         "Docker Sandboxes"
#define OPENSANDBOX "the OpenSandbox server"
#define SIDECAR     "OpenSandbox's egress sidecar"
#define OPENSHELL   "the OpenShell gateway"
#define SUPERVISOR  "OpenShell's supervisor"
#define KUBERNETES  "Kubernetes"

#define RULE_NO_OWNER                                                                              \
    {                                                                                              \
        RULE_REFUSED(SPEC_FIELD_OWNER, "a sandbox cannot be reached by another run",               \
                     "Remove spec.owner, or use the backend local or modal")                       \
    }
#define RULE_DEFAULT_IMAGE(by_)                                                                    \
    {                                                                                              \
        .when = WHEN_DEFAULT,                                                                      \
        RULE_ACCEPTED(SPEC_FIELD_IMAGE, "the backend's own default, python:3.12-slim", by_)        \
    }
#define RULE_REGISTRY_IMAGE(by_)                                                                   \
    {                                                                                              \
        RULE_ENFORCED(SPEC_FIELD_IMAGE, "an image of a registry", by_)                             \
    }

/* A backend without lifetimes: what was not asked for is said, what was asked for is refused. */
#define RULES_NO_LIFETIME(by_)                                                                     \
    {.when = WHEN_DEFAULT,                                                                         \
     RULE_ACCEPTED(SPEC_FIELD_SANDBOX_TIMEOUT,                                                     \
                   "none: a sandbox that is not removed stays until somebody does", by_)},         \
        {.when = WHEN_ZERO,                                                                        \
         RULE_ACCEPTED(SPEC_FIELD_SANDBOX_TIMEOUT,                                                 \
                       "none: a sandbox that is not removed stays until somebody does", by_)},     \
        {RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "sandboxes have no lifetime",                    \
                      "Remove backend.sandbox_timeout, or use the backend local")},                \
    {                                                                                              \
        RULE_REFUSED(SPEC_FIELD_IDLE_TIMEOUT, "sandboxes have no idle timer of one's own",         \
                     "Remove backend.idle_timeout, or use the backend local")                      \
    }

static const char sbx_deny_all[] =
    "Run 'sbx policy init deny-all' on the host and declare it to the backend as "
    "host_network_policy=deny-all, or use the backend local";

static const struct capability_rule sbx_rules[] = {
    {.when = WHEN_OPEN,
     RULE_ACCEPTED(SPEC_FIELD_BLOCK_NETWORK, "whatever the host's own policy allows", SBX)},
    {.when = WHEN_UNDECLARED,
     .number = FACT_HOST_DENIES_ALL,
     RULE_REFUSED(SPEC_FIELD_BLOCK_NETWORK,
                  "a single sandbox cannot be closed; only a host whose policy is deny-all is",
                  sbx_deny_all)},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "the host's policy deny-all, as its operator has declared", SBX)},
    {.when = WHEN_UNDECLARED,
     .number = FACT_HOST_DENIES_ALL,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO,
                  "a rule for one sandbox can only widen a closed host; under an open one it "
                  "restricts nothing",
                  sbx_deny_all)},
    {.when = WHEN_PORTS,
     .documented = true,
     RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO, "rules for this sandbox beside the host's deny-all",
                   SBX)},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO, "rules for this sandbox beside the host's deny-all",
                   SBX)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, "there is no range rule for one sandbox",
                  "List host names in spec.allow_egress_to, or use the backend local")},
    RULE_NOT_OFFERED(SPEC_FIELD_EGRESS_ENFORCEMENT),
    {RULE_ENFORCED(SPEC_FIELD_ENV,
                   "written into the guest's login profile over standard input, readable inside as "
                   "long as the sandbox lives",
                   SBX)},
    RULE_NO_OWNER,
    RULE_NO_HOST_FOLDER,
    RULE_DEFAULT_IMAGE(SBX),
    {RULE_ENFORCED(SPEC_FIELD_IMAGE, "a template", SBX)},
    {.documented = true,
     RULE_ENFORCED(SPEC_FIELD_WORKDIR, "passed with each command; not a jail", SBX)},
    {.documented = true, RULE_ENFORCED(SPEC_FIELD_USER, "passed with each command", SBX)},
    {RULE_REFUSED(SPEC_FIELD_VOLUMES, "a folder can only be shared at the path it has on the host",
                  "Copy the files in with backend.inputs, or use the backend local")},
    RULE_NOT_OFFERED(SPEC_FIELD_PUBLISH),
    {.when = WHEN_NOT_WHOLE,
     .number = 1000,
     RULE_REFUSED(SPEC_FIELD_CPU, "a machine has whole processors only",
                  "Set backend.cpu to a whole number")},
    {RULE_ENFORCED(SPEC_FIELD_CPU, "the processors of the virtual machine", SBX)},
    {.when = WHEN_BELOW,
     .number = 512 * LIMIT_MIB,
     .documented = true,
     RULE_REFUSED(SPEC_FIELD_MEMORY, "a machine has 512 MiB at least",
                  "Set backend.memory to 512M at least")},
    {RULE_ENFORCED(SPEC_FIELD_MEMORY, "the memory of the virtual machine", SBX)},
    {RULE_REFUSED(SPEC_FIELD_DISK, "the size of the disk is one setting for the whole host",
                  "Remove backend.disk, or use the backend local")},
    RULES_NO_LIFETIME(SBX),
    RULE_NOT_OFFERED(SPEC_FIELD_TAGS),
    RULES_NEVER_OFFERED,
};

const struct backend backend_sbx = {
    .name = "sbx",
    .state = BACKEND_KNOWN,
    .summary = "Docker Sandboxes: virtual machines of this host",
    .capability =
        {
            .rules = sbx_rules,
            .n_rules = ARRAY_SIZE(sbx_rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_STDIN) |
                        FEATURE_BIT(FEATURE_TIMEOUT) | FEATURE_BIT(FEATURE_FILES) |
                        FEATURE_BIT(FEATURE_LIST),
        },
};

static const struct capability_rule opensandbox_rules[] = {
    {.when = WHEN_OPEN,
     RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK, "an open network: no policy is sent", OPENSANDBOX)},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "a policy that denies, in the mode dns+nft; it is read back, and the sandbox "
                   "destroyed when policy or mode differ",
                   SIDECAR)},
    {.when = WHEN_PORTS,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO, "a rule has no port",
                  "List the hosts without ports, or use the backend local")},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO,
                   "the addresses that listed names resolve to, on any port, in the mode dns+nft; "
                   "it is read back, and the sandbox destroyed when policy or mode differ",
                   SIDECAR)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS,
                  "that rules for addresses are in force cannot be proved from outside",
                  "List host names in spec.allow_egress_to, or use the backend local")},
    RULE_NOT_OFFERED(SPEC_FIELD_EGRESS_ENFORCEMENT),
    {.when = WHEN_NAMES,
     .text = "OPENSANDBOX_* EXECD EXECD_ACCESS_TOKEN EXECD_API_GRACE_SHUTDOWN EXECD_ENVS "
             "EXECD_BOOTSTRAP_PRE_SCRIPT EXECD_INIT JUPYTER_HOST JUPYTER_TOKEN",
     RULE_REFUSED(SPEC_FIELD_ENV, "one of the names belongs to the server's own programs inside",
                  "Rename what begins with OPENSANDBOX_ or EXECD, JUPYTER_HOST and "
                  "JUPYTER_TOKEN")},
    {RULE_ENFORCED(SPEC_FIELD_ENV, "passed when the sandbox is created", OPENSANDBOX)},
    RULE_NO_OWNER,
    RULE_NO_HOST_FOLDER,
    RULE_DEFAULT_IMAGE(OPENSANDBOX),
    RULE_REGISTRY_IMAGE(OPENSANDBOX),
    {RULE_ENFORCED(SPEC_FIELD_WORKDIR, "passed with each command; not a jail", OPENSANDBOX)},
    {RULE_ENFORCED(SPEC_FIELD_USER, "passed with each command", OPENSANDBOX)},
    RULE_NO_VOLUMES,
    RULE_NOT_OFFERED(SPEC_FIELD_PUBLISH),
    {RULE_ENFORCED(SPEC_FIELD_CPU, "a limit of the container", OPENSANDBOX)},
    {RULE_ENFORCED(SPEC_FIELD_MEMORY, "a limit of the container", OPENSANDBOX)},
    RULE_NOT_OFFERED(SPEC_FIELD_DISK),
    {.when = WHEN_ZERO,
     RULE_ACCEPTED(SPEC_FIELD_SANDBOX_TIMEOUT,
                   "none: a sandbox that is not removed stays until somebody does", OPENSANDBOX)},
    {.when = WHEN_BELOW,
     .number = SECONDS(60),
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "a lifetime is 60 s at least",
                  "Set backend.sandbox_timeout to 60s at least")},
    {RULE_ENFORCED(SPEC_FIELD_SANDBOX_TIMEOUT, "a timer of the server, up to its own maximum",
                   OPENSANDBOX)},
    RULE_NOT_OFFERED(SPEC_FIELD_IDLE_TIMEOUT),
    {.when = WHEN_NOT_LABELS,
     RULE_REFUSED(SPEC_FIELD_TAGS, "a tag is a label of Kubernetes' form here",
                  "Use 63 letters, digits, '-', '_' and '.' at most")},
    {RULE_ACCEPTED(SPEC_FIELD_TAGS, "recorded with the sandbox", OPENSANDBOX)},
    RULES_NEVER_OFFERED,
};

const struct backend backend_opensandbox = {
    .name = "opensandbox",
    .state = BACKEND_KNOWN,
    .summary = "an OpenSandbox server: containers",
    .capability =
        {
            .rules = opensandbox_rules,
            .n_rules = ARRAY_SIZE(opensandbox_rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_TIMEOUT) |
                        FEATURE_BIT(FEATURE_DETACH) | FEATURE_BIT(FEATURE_FILES) |
                        FEATURE_BIT(FEATURE_RANGES) | FEATURE_BIT(FEATURE_LIST) |
                        FEATURE_BIT(FEATURE_INSPECT),
        },
};

static const struct capability_rule openshell_rules[] = {
    {.when = WHEN_OPEN,
     RULE_REFUSED(SPEC_FIELD_BLOCK_NETWORK, "a policy denies whatever it does not list",
                  "Leave spec.block_network true and list the hosts in spec.allow_egress_to")},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "a policy without any other rule; names resolve to synthetic addresses; it is "
                   "read back after creation and around every command",
                   SUPERVISOR)},
    {.when = WHEN_PORTS,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO, "hosts are reached on port 443 alone",
                  "List the hosts without ports, or use the backend local")},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO,
                   "a rule with the hosts on port 443; it is read back after creation and around "
                   "every command",
                   SUPERVISOR)},
    {RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, "a rule names hosts, not addresses",
                  "List host names in spec.allow_egress_to, or use the backend local")},
    RULE_NOT_OFFERED(SPEC_FIELD_EGRESS_ENFORCEMENT),
    {.when = WHEN_NAMES,
     .text = "ALL_PROXY HTTP_PROXY HTTPS_PROXY NO_PROXY all_proxy http_proxy https_proxy no_proxy "
             "grpc_proxy NODE_USE_ENV_PROXY SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE "
             "GIT_SSL_CAINFO NODE_EXTRA_CA_CERTS DENO_CERT OPENSHELL_*",
     RULE_REFUSED(SPEC_FIELD_ENV, "one of the names belongs to the supervisor: proxies and trust",
                  "Remove the variables for proxies and certificates, and what begins with "
                  "OPENSHELL_")},
    {RULE_ENFORCED(SPEC_FIELD_ENV, "passed when the sandbox is created", OPENSHELL)},
    RULE_NO_OWNER,
    RULE_NO_HOST_FOLDER,
    RULE_DEFAULT_IMAGE(OPENSHELL),
    RULE_REGISTRY_IMAGE(OPENSHELL),
    {RULE_ENFORCED(SPEC_FIELD_WORKDIR, "passed with each command; not a jail", OPENSHELL)},
    {RULE_REFUSED(SPEC_FIELD_USER, "the gateway's driver chooses the user, which is never root",
                  "Remove backend.user")},
    RULE_NO_VOLUMES,
    RULE_NOT_OFFERED(SPEC_FIELD_PUBLISH),
    {RULE_ENFORCED(SPEC_FIELD_CPU, "a limit of the sandbox", "the gateway's compute driver")},
    {RULE_ENFORCED(SPEC_FIELD_MEMORY, "a limit of the sandbox", "the gateway's compute driver")},
    RULE_NOT_OFFERED(SPEC_FIELD_DISK),
    RULES_NO_LIFETIME(OPENSHELL),
    {.when = WHEN_NOT_LABELS,
     RULE_REFUSED(SPEC_FIELD_TAGS, "a tag is a label of Kubernetes' form here",
                  "Use 63 letters, digits, '-', '_' and '.' at most")},
    {RULE_ACCEPTED(SPEC_FIELD_TAGS, "recorded with the sandbox", OPENSHELL)},
    RULES_NEVER_OFFERED,
};

const struct backend backend_openshell = {
    .name = "openshell",
    .state = BACKEND_KNOWN,
    .summary = "an OpenShell gateway: containers or virtual machines",
    .capability =
        {
            .rules = openshell_rules,
            .n_rules = ARRAY_SIZE(openshell_rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_STDIN) |
                        FEATURE_BIT(FEATURE_TTY) | FEATURE_BIT(FEATURE_TIMEOUT) |
                        FEATURE_BIT(FEATURE_FILES) | FEATURE_BIT(FEATURE_LIST) |
                        FEATURE_BIT(FEATURE_INSPECT),
        },
};

static const char enforcement_unknown[] =
    "a cluster takes network policies whether or not anything enforces them";
static const char declare_policy[] =
    "Use a cluster whose network enforces policies and declare it to the backend as "
    "network_enforcement=networkpolicy";

static const struct capability_rule kubernetes_rules[] = {
    {.when = WHEN_OPEN,
     RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK, "an open network: no policy is made", KUBERNETES)},
    {.when = WHEN_UNDECLARED,
     .number = FACT_NETWORK_POLICY,
     RULE_REFUSED(SPEC_FIELD_BLOCK_NETWORK, enforcement_unknown, declare_policy)},
    {RULE_ENFORCED(SPEC_FIELD_BLOCK_NETWORK,
                   "a network policy that stands before the pod, as its operator has declared, and "
                   "is tried from inside before use",
                   "the cluster's network")},
    {.when = WHEN_UNDECLARED,
     .number = FACT_NAME_POLICY,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO, "a network policy has no host names",
                  "List ranges in spec.allow_egress_to_cidrs, or use a cluster with Cilium and "
                  "declare it to the backend as network_enforcement=cilium")},
    {.documented = true,
     RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO,
                   "the addresses that listed names resolve to, neighbours at a shared address "
                   "included",
                   "Cilium")},
    {.when = WHEN_UNDECLARED,
     .number = FACT_NETWORK_POLICY,
     RULE_REFUSED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, enforcement_unknown, declare_policy)},
    {RULE_ENFORCED(SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS, "a network policy with address blocks",
                   "the cluster's network")},
    RULE_NOT_OFFERED(SPEC_FIELD_EGRESS_ENFORCEMENT),
    {RULE_ENFORCED(SPEC_FIELD_ENV,
                   "handed to commands over standard input or a file, since a pod's "
                   "own can be read by whoever reads pods",
                   KUBERNETES)},
    {RULE_ACCEPTED(SPEC_FIELD_OWNER,
                   "an annotation, which anybody with the right to change pods can change",
                   KUBERNETES)},
    RULE_NO_HOST_FOLDER,
    {.when = WHEN_DEFAULT,
     RULE_REFUSED(SPEC_FIELD_IMAGE, "a pod has no default image",
                  "Name an image in backend.image")},
    RULE_REGISTRY_IMAGE(KUBERNETES),
    RULE_NOT_OFFERED(SPEC_FIELD_WORKDIR),
    {RULE_ENFORCED(SPEC_FIELD_USER, "the security context of the pod", "the kubelet")},
    RULE_NO_VOLUMES,
    RULE_NOT_OFFERED(SPEC_FIELD_PUBLISH),
    {RULE_ENFORCED(SPEC_FIELD_CPU, "a limit of the container", "the kubelet")},
    {RULE_ENFORCED(SPEC_FIELD_MEMORY, "a limit of the container", "the kubelet")},
    {RULE_ACCEPTED(SPEC_FIELD_DISK,
                   "the pod is evicted by a check that may come tens of seconds late",
                   "the kubelet")},
    {.when = WHEN_ZERO,
     RULE_ACCEPTED(SPEC_FIELD_SANDBOX_TIMEOUT,
                   "none: a pod that is not removed stays until somebody does", KUBERNETES)},
    {.when = WHEN_BELOW,
     .number = SECONDS(1),
     RULE_REFUSED(SPEC_FIELD_SANDBOX_TIMEOUT, "a lifetime is 1 s at least",
                  "Set backend.sandbox_timeout to 1s at least")},
    {RULE_ENFORCED(SPEC_FIELD_SANDBOX_TIMEOUT, "the active deadline of the pod", KUBERNETES)},
    RULE_NOT_OFFERED(SPEC_FIELD_IDLE_TIMEOUT),
    {RULE_ACCEPTED(SPEC_FIELD_TAGS, "annotations of the pod", KUBERNETES)},
    RULES_NEVER_OFFERED,
};

const struct backend backend_kubernetes = {
    .name = "kubernetes",
    .state = BACKEND_KNOWN,
    .summary = "pods of a Kubernetes cluster",
    .capability =
        {
            .rules = kubernetes_rules,
            .n_rules = ARRAY_SIZE(kubernetes_rules),
            .features = FEATURE_BIT(FEATURE_EXEC) | FEATURE_BIT(FEATURE_STDIN) |
                        FEATURE_BIT(FEATURE_TIMEOUT) | FEATURE_BIT(FEATURE_FILES) |
                        FEATURE_BIT(FEATURE_LIST) | FEATURE_BIT(FEATURE_INSPECT) |
                        FEATURE_BIT(FEATURE_REOPEN) | FEATURE_BIT(FEATURE_OWNER),
        },
};
