/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a host refuses: from the step that failed and its errno to one sentence and a remedy. The
 * doctor and every set-up error use the same words.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "local/plan.h"

/* Steps of the plan, and what comes before the plan. */
enum refusal_place {
    REFUSAL_STEP,       /* a step of the plan; an overlay without source: over any image folder */
    REFUSAL_NAMESPACES, /* clone(2) with the new namespaces; step->source: one kind, "net" */
    REFUSAL_MAPS,       /* the keeper's writing of the id maps */
    REFUSAL_IDMAP,      /* the keeper's idmapped mount of a volume or image, step->source */
    REFUSAL_MEMFD,      /* the memory file that holds init */
    REFUSAL_MODULES,    /* step->target, which needs the kernel modules step->source */
    REFUSAL_CALL,       /* any other system call; step->source: its name, "openat2(2)" */
};

/* What of the host and of this process tells causes with the same errno apart. */
struct refusal_hints {
    const char *no_namespaces; /* the kind that a sysctl allows none of, or NULL; static storage */
    bool root_only;            /* kernel.unprivileged_userns_clone=0, and this is not root */
    bool apparmor_restricts;   /* kernel.apparmor_restrict_unprivileged_userns=1, likewise */
    bool filtered;             /* a system call filter is in force already */
    bool nested;               /* in a user namespace other than the host's */
    bool may_mount;            /* CAP_SYS_ADMIN, in this user namespace */
    char profile[64];          /* the AppArmor profile, or empty when unconfined */
};

/** refusal_hints_read() - read them from /proc; what cannot be read counts as absent */
void refusal_hints_read(struct refusal_hints *ret);

/**
 * refusal_explain_with() - fill @err with what the failure means and what to do
 * @place: where; @step is used with REFUSAL_STEP, else NULL or what is named in the sentence
 * @code:  errno, positive
 *
 * Pure. Return: -@code. The class is terminal, or usage for what the spec itself caused.
 */
int refusal_explain_with(const struct refusal_hints *hints, enum refusal_place place,
                         const struct step *step, int code, struct error *err);

/** refusal_explain() - the same with the hints of this host */
int refusal_explain(enum refusal_place place, const struct step *step, int code, struct error *err);
