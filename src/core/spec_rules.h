/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold between the fields of a spec, asked once everything is in it. */
#pragma once

#include "core/policy.h"
#include "core/spec_set.h"

/**
 * spec_finish() - judge a filled spec as a whole
 *
 * The network's lists against each other and block_network (core/policy.h), times against times,
 * what attaching excludes, where exports and audit go, and the image, whose grammar depends on the
 * backend: that of `local` is made absolute here. Problems bear the path of their field and no
 * place. Blocks for as long as the file system takes. It does not ask whether a backend can do it.
 */
void spec_finish(struct spec_filling *f);

/**
 * spec_policy() - the network policy that a spec's fields make
 * @ret: owned by the caller: policy_done()
 *
 * Return: 0; -EINVAL with each wrong entry in @problems; -ENOMEM.
 */
int spec_policy(const struct spec *s, struct policy *ret, struct problems *problems);
