/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of rules: one file for each kind of backend. */
#pragma once

#include "core/backends.h"

#define FEATURE_BIT(feature) (1u << (feature))
#define FACT_BIT(fact)       (1u << (fact))

/* Fields of a rule, for tables. */
#define RULE_ENFORCED(name, how_, by_)                                                             \
    .field = (name), .verdict = CAPABILITY_ENFORCED, .how = (how_), .by = (by_)
#define RULE_ACCEPTED(name, how_, by_)                                                             \
    .field = (name), .verdict = CAPABILITY_ACCEPTED, .how = (how_), .by = (by_)
#define RULE_REFUSED(name, reason, remedy_)                                                        \
    .field = (name), .verdict = CAPABILITY_REFUSED, .how = (reason), .remedy = (remedy_)

/* A field that a backend has nothing for. */
#define RULE_NOT_OFFERED(name)                                                                     \
    {                                                                                              \
        RULE_REFUSED(name, "the backend offers nothing for it",                                    \
                     "Leave the field out, or use the backend local")                              \
    }

/* A file of this host, which only a backend of this host could add lines to. */
#define RULE_NO_AUDIT                                                                              \
    {                                                                                              \
        RULE_REFUSED(SPEC_FIELD_AUDIT,                                                             \
                     "the backend tells nobody of what happens in its sandboxes",                  \
                     "Leave backend.audit out and keep the records of the backend, or use the "    \
                     "backend local")                                                              \
    }

/* Fields that no backend outside this host has anything for. */
#define RULES_NEVER_OFFERED                                                                        \
    RULE_NOT_OFFERED(SPEC_FIELD_HOSTNAME), RULE_NOT_OFFERED(SPEC_FIELD_PIDS),                      \
        RULE_NOT_OFFERED(SPEC_FIELD_RESOLVER), RULE_NOT_OFFERED(SPEC_FIELD_PROXY),                 \
        RULE_NOT_OFFERED(SPEC_FIELD_ADD_HOSTS), RULE_NOT_OFFERED(SPEC_FIELD_PROXY_CREDENTIALS),    \
        RULE_NOT_OFFERED(SPEC_FIELD_PRICES), RULE_NOT_OFFERED(SPEC_FIELD_MAX_COST),                \
        RULE_NOT_OFFERED(SPEC_FIELD_PRIVATE_CIDRS), RULE_NO_AUDIT

/* Folders of this host, which are not where the sandbox is. */
#define RULE_NO_HOST_FOLDER                                                                        \
    {                                                                                              \
        .when = WHEN_PREFIX, .text = "dir:",                                                       \
        RULE_REFUSED(SPEC_FIELD_IMAGE, "a folder of this host is not where the sandbox is made",   \
                     "Name an image of a registry in backend.image, or use the backend local")     \
    }
#define RULE_NO_VOLUMES                                                                            \
    {                                                                                              \
        RULE_REFUSED(SPEC_FIELD_VOLUMES, "a folder of this host is not where the sandbox is made", \
                     "Copy the files in with backend.inputs, or use the backend local")            \
    }

/* In microseconds. */
#define SECONDS(n) (UINT64_C(n) * 1000000)

/* What holds on every backend, looked at before its own rules. */
extern const struct capability_rule backend_common_rules[];
extern const size_t backend_common_n_rules;

extern const struct backend backend_local;

/* Services that somebody else runs. */
extern const struct backend backend_modal, backend_islo, backend_boat;

/* Programs and servers of one's own. */
extern const struct backend backend_sbx, backend_opensandbox, backend_openshell, backend_kubernetes;
