/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of the host's to a name or an address that the policy allows. Every address is
 * judged now: policy_may_dial(), and own_address.h; a pin of the spec's needs neither. Those left
 * are tried in turn, both families by turns, the next one when one fails or after DIAL_NEXT_US
 * (RFC 8305). With a proxy, the proxy is connected to and asked, for the name as it is or for the
 * first address that is left (egress/proxy.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/address.h"
#include "egress/lookup.h"

struct egress;

enum { DIAL_ADDRESSES_MAX = 16, DIAL_AT_ONCE = 3, DIAL_REASON_BYTES = 96 };
#define DIAL_NEXT_US    UINT64_C(250000)
#define DIAL_TIMEOUT_US UINT64_C(30000000)

enum dial_result {
    DIAL_CONNECTED,
    DIAL_NOT_FOUND, /* the name has no address */
    DIAL_FAILED,    /* nobody answered, or refused; `error` says */
    DIAL_FORBIDDEN, /* every address it has is one that the policy forbids; `judged` is one */
};

struct dial_try {
    int fd; /* -EBADF: none */
    struct loop_source source;
    struct dial *dial;
};

struct dial {
    struct egress *egress;
    struct name *name; /* NULL: by address; counted among its users while the dial runs */
    uint16_t port;
    struct address addresses[DIAL_ADDRESSES_MAX]; /* to connect to: of the proxy, with one */
    size_t n_addresses, next;
    struct dial_try tries[DIAL_AT_ONCE];
    struct loop_timer timer;
    uint64_t deadline_us;
    struct lookup_waiter waiter;
    struct address target; /* whom the proxy is asked for; of no family: for the name itself */
    char *proxied;         /* with a proxy: the request on its way to it; owned */
    size_t proxied_bytes, proxied_done;
    struct address judged;          /* with DIAL_FORBIDDEN */
    bool judged_own;                /* it is the host's own */
    int error;                      /* errno of the last failure */
    char reason[DIAL_REASON_BYTES]; /* of it, as "the proxy refuses it (status 403)"; or empty */
    void *owner;
    /* @fd: owned by the callee with DIAL_CONNECTED: non-blocking, close-on-exec, TCP_NODELAY. The
     * dial is over, and may be freed in the call. */
    void (*done)(struct dial *d, enum dial_result result, int fd);
};

/**
 * dial_start() - begin; @d->egress, name or addresses[0], port, owner, done are set, the rest zero
 *
 * Calls done at once if it can: a connect to the host's own network is over before it returns. So
 * the caller touches nothing of @d afterwards that done may have freed.
 */
void dial_start(struct dial *d);

/** dial_cancel() - give up without calling done; harmless on a zeroed or finished dial */
void dial_cancel(struct dial *d);
