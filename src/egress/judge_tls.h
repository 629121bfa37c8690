/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a connection to a name may go on, by its ClientHello: the server name has to be that
 * name. An encrypted_client_hello extension changes nothing, since browsers send one always; what
 * is inside it is the server's to refuse.
 */
#pragma once

#include <stdbool.h>

struct flow;

enum judge_tls {
    JUDGE_TLS_MORE, /* nothing can be told yet; there will be an event */
    JUDGE_TLS_GOOD,
    JUDGE_TLS_NONE, /* what the client sends is not TLS; on port 443 that was refused */
    JUDGE_TLS_OVER, /* it was refused, or it is gone: the flow is over */
};

/**
 * judge_tls() - look at the client's first bytes, which stay where they are
 * @ended: the client sends no more
 *
 * A ClientHello that is not whole wakes nobody before what is missing is there (SO_RCVLOWAT), so
 * that one which comes byte by byte costs nothing.
 */
enum judge_tls judge_tls(struct flow *f, bool ended);
