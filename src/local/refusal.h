/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a host refuses: from the step that failed and its errno to one sentence and a remedy. The
 * doctor and every set-up error use the same words.
 */
#pragma once

#include "base/error.h"
#include "local/plan.h"

/* Steps of the plan, and what comes before the plan. */
enum refusal_place {
    REFUSAL_STEP,       /* a step of the plan */
    REFUSAL_NAMESPACES, /* clone(2) with the new namespaces */
    REFUSAL_MAPS,       /* the keeper's writing of the id maps */
    REFUSAL_IDMAP,      /* the keeper's idmapped mount of a volume or image */
    REFUSAL_MEMFD,      /* the memory file that holds init */
};

/**
 * refusal_explain() - fill @err with what the failure means and what to do
 * @place: where; @step is used with REFUSAL_STEP, else NULL or what is named in the sentence
 * @code:  errno, positive
 *
 * May look at the host (sysctls, files of /proc) to tell causes with the same errno apart.
 * Return: -@code. The class is terminal, or usage for what the spec itself caused.
 */
int refusal_explain(enum refusal_place place, const struct step *step, int code, struct error *err);
