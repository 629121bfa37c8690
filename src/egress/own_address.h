/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses the host itself answers for: whatever they look like, they are its loopback. The
 * kernel is asked each time (rtnetlink(7), RTM_GETROUTE), since a host's addresses come and go.
 */
#pragma once

#include <stdbool.h>

#include "core/address.h"

struct own_address {
    int fd; /* owned; a NETLINK_ROUTE socket of the host's network */
    uint32_t sequence;
};

int own_address_init(struct own_address *o);
void own_address_done(struct own_address *o);

enum own_address_answer {
    ADDRESS_ELSEWHERE,
    ADDRESS_OWN,      /* the host answers for it, or broadcasts to it */
    ADDRESS_NO_ROUTE, /* there is no way to it from here */
};

/** own_address_ask() - a few microseconds; when the kernel does not say, the answer is ADDRESS_OWN
 */
enum own_address_answer own_address_ask(struct own_address *o, const struct address *a);
