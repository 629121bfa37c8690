/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POLICY: another network policy for a sandbox that stands. The lists of its spec are copied, the
 * copy is edited and judged as a whole, as a new spec's would be, and put in force; only then the
 * spec is changed, and all clients hear of it. If anything fails, everything is as it was.
 */
#pragma once

#include "keeper/connection.h"

/** policy_change() - POLICY of a client; answered by POLICY_SET or ERROR, now or later */
void policy_change(struct connection *c, struct message *m);

/** policy_change_forget() - client @gone has left; what it asked for still happens */
void policy_change_forget(struct keeper *k, const struct connection *gone);

/** policy_change_done() - free what is under way; harmless when nothing is */
void policy_change_done(struct keeper *k);

/**
 * policy_edit() - carry out the edits of a POLICY message
 * @spec: whose lists of hosts and ranges are edited; on failure they may be half edited
 *
 * Entries go first, then others are added; one that is there in an equal form is not added again.
 * Return: 0; -EINVAL with a usage error for what is no entry, or not there; -EPROTO; -ENOMEM.
 */
int policy_edit(struct spec *spec, struct reader edits, struct error *err);
