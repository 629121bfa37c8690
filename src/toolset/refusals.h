/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model is told of the network policy at work: what was refused while its command ran, so
 * that it does not take policy for slowness or for a mistake of its own, and that the policy was
 * changed meanwhile.
 */
#pragma once

#include "toolset/toolset.h"

enum { REFUSALS_SHOWN_MAX = 10 }; /* places that the note names; the rest is counted */

/**
 * refusals_note() - the note on what was refused while a command ran
 * @ret: masked; owned by the caller; NULL: nothing was
 *
 * Each host and port once. Return: 0 or -ENOMEM.
 */
int refusals_note(const struct atoll_toolset *t, const struct atoll_exit *x, char **ret);

/** refusals_json() - the same for programs, one by one, masked; a new reference; NULL: no memory */
json_t *refusals_json(const struct atoll_toolset *t, const struct atoll_exit *x);

/**
 * refusals_policy_note() - the note on the policy that others have put in force
 * @stamp: policy_stamp_decode()
 * @ret:   masked; owned by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int refusals_policy_note(const struct atoll_toolset *t, const char *stamp, char **ret);

/**
 * refusals_policy_line() - that note below an answer, its line end in front: for the first answer
 *                          after a change
 *
 * Return: owned by the caller; NULL: there is nothing to tell, or no memory, and then it is told
 * below a later one.
 */
char *refusals_policy_line(const struct atoll_toolset *t);
