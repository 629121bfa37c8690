/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of a policy by the hash of their names, private to core/policy*.c: hosts by name and
 * port, wildcards by the name below which they match, pins by name, and every name that has a
 * listed one below it. A question costs one step for each label of the name that is asked for.
 */
#pragma once

#include "core/policy.h"

/**
 * policy_index_add_host() - find p->hosts[i] from now on
 * @p: its hosts may not move any more
 *
 * Makes the index if there is none. Return: 1; 0 if an earlier entry allows the same; or -ENOMEM.
 */
int policy_index_add_host(struct policy *p, size_t i);

/** policy_index_add_pin() - the same for p->pins[i] */
int policy_index_add_pin(struct policy *p, size_t i);

/** policy_index_wildcard_of() - the wildcard whose names lie just below @name, or NULL */
const struct policy_host *policy_index_wildcard_of(const struct policy *p,
                                                   const struct host_name *name);

/** policy_index_wildcard_above() - the nearest wildcard above @name, however far above; or NULL */
const struct policy_host *policy_index_wildcard_above(const struct policy *p,
                                                      const struct host_name *name);

/** policy_index_free() - harmless on NULL */
void policy_index_free(struct policy_index *ix);
