/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own way out, where that is an HTTP proxy (RFC 9110, 9.3.6: CONNECT). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/address.h"

enum { PROXY_ADDRESSES_MAX = 8 };

/* Read before the process is locked in. */
struct proxy {
    bool set;
    struct address addresses[PROXY_ADDRESSES_MAX]; /* looked up once, at the start */
    size_t n_addresses;
    uint16_t port;
    char *authorization; /* the value of Proxy-Authorization; owned; NULL: none */
};

/**
 * proxy_init() - read backend.proxy: its address is looked up, its credentials are read
 * @url:         NULL: no proxy; else http://HOST[:PORT] (core/upstream.h)
 * @credentials: NULL, or the path of a file whose first line is USER:PASSWORD (RFC 7617); nobody
 *               but its owner may read it
 * @resolve_fd:  borrowed: the socket to `resolve`, which nobody else uses yet
 *
 * May block for as long as a look-up. Whoever wrote the spec chose the proxy, so it may be at any
 * address, of the host's own too. Return: 0 with @p owned by the caller; or a negative errno with a
 * usage error, or a terminal one when the proxy's name cannot be looked up now.
 */
int proxy_init(struct proxy *p, const char *url, const char *credentials, int resolve_fd,
               struct error *err);

/** proxy_done() - free it; harmless on a zeroed one */
void proxy_done(struct proxy *p);

/**
 * proxy_request() - the CONNECT request for HOST:PORT into @buf; its length, or 0 if too small
 * @v6_literal: @host is an IPv6 address, without brackets
 */
size_t proxy_request(const struct proxy *p, const char *host, bool v6_literal, uint16_t port,
                     char *buf, size_t size);
