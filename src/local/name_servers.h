/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom programs inside ask for names: the text of their /etc/resolv.conf (resolv.conf(5)). Names
 * are answered at the resolver's address of the pool. Nobody is there in a sandbox that is sealed,
 * and a look-up fails as fast as with a loopback address; but it may be opened later. Where only
 * ranges are listed, no names are served, and a name server within a range can be asked itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/policy_reach.h"

enum { NAME_SERVERS_MAX = 3, NAME_SERVERS_TEXT_BYTES = 256 }; /* MAXNS of resolv.h */

/**
 * name_servers_text() - the file
 * @pool:     NULL: the sandbox will never be opened
 * @reach:    what may pass; NULL: nothing
 * @resolver: backend.resolver, or NULL
 * @host:     the host's own file, for name_servers_wants_host(); or NULL
 *
 * A server of the host's that is on its loopback, or asked on another port than 53, cannot be
 * written there and is left out. Pure.
 */
void name_servers_text(const struct policy_pool *pool, const struct policy_reach *reach,
                       const char *resolver, const char *host,
                       char buf[static NAME_SERVERS_TEXT_BYTES]);

/** name_servers_wants_host() - whether the host's own file matters */
bool name_servers_wants_host(const struct policy_reach *reach, const char *resolver);
