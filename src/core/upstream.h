/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands on the host's side of a sandbox's network: the name server that is asked
 * (backend.resolver), and the proxy through which the host itself gets out (backend.proxy).
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "core/address.h"
#include "core/host_rule.h"

enum { RESOLVER_PORT_DEFAULT = 53 };

/**
 * resolver_parse() - ADDR, ADDR:PORT or [V6]:PORT
 * @ret_port: RESOLVER_PORT_DEFAULT unless it is given
 *
 * An IPv6 address alone needs no brackets. Return: 0, or -EINVAL with a usage error that quotes the
 * text.
 */
int resolver_parse(const char *text, struct address *ret, uint16_t *ret_port, struct error *err);

enum proxy_scheme { PROXY_HTTP, PROXY_HTTPS, PROXY_SOCKS5 };

struct proxy_url {
    enum proxy_scheme scheme;
    char host[HOST_NAME_BYTES_MAX + 1]; /* a name, or an address without brackets */
    uint16_t port;
};

/**
 * proxy_parse() - SCHEME://HOST:PORT, with http, https or socks5
 *
 * Without a port it is 80, 443 or 1080. One slash may follow, and nothing else. A URL with a user
 * name is refused: what a password is kept in is a file (backend.proxy_credentials), not a spec.
 * Return: 0, or -EINVAL with a usage error that does not show the text, which may hold a password.
 */
int proxy_parse(const char *url, struct proxy_url *ret, struct error *err);
