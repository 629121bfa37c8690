/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver inside, on any address, by UDP and TCP, port 53. A listed name is looked up outside
 * and answered by its synthetic address, or with an open network by its own addresses, less those
 * that may not be connected to; a name above a listed one exists without addresses; every other
 * name does not exist, and no packet leaves for it. A and AAAA have answers; other types of a
 * listed name exist and are empty.
 *
 * A synthetic AAAA is given only if the name has an IPv6 address; a synthetic A if it has any.
 * localhost and what is below it are loopback.
 *
 * What is refused is told (denials.h): names that do not exist by the policy, names that are none,
 * too many below a wildcard, and with an open network names all of whose addresses are forbidden.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "egress/datagrams.h"
#include "wire/dns.h"

struct egress;

enum { DNS_TTL_S = 10, DNS_CONNECTIONS_MAX = 64, DNS_WAITING_MAX = 512 };
#define DNS_IDLE_US UINT64_C(10000000) /* RFC 7766, 6.2.3 leaves it to the server */

struct dns_waiting;

struct dns_server {
    struct egress *egress;
    struct dns_waiting *waiting; /* questions whose names are being looked up */
    size_t n_waiting;
    struct dns_connection *connections; /* by TCP */
    size_t n_connections;
    uint64_t idle_us; /* DNS_IDLE_US: how long a connection may stand still */
    struct loop_timer sweep;
};

/** dns_server_init() - nobody has asked yet; 0 */
int dns_server_init(struct dns_server *s, struct egress *e);

/** dns_server_done() - forget who waits, close connections; harmless on a zeroed one */
void dns_server_done(struct dns_server *s);

/**
 * dns_server_ask() - one question by UDP
 * @buf: where an answer that is known at once is written
 *
 * Return: the bytes of the answer in @buf; 0 when it follows later, or never does.
 */
size_t dns_server_ask(struct dns_server *s, const struct datagram_ends *ends, const uint8_t *msg,
                      size_t len, uint8_t *buf, size_t size);

/**
 * dns_server_accept() - a connection to port 53, taken
 *
 * It is closed when it has stood still for DNS_IDLE_US, or at once when there are
 * DNS_CONNECTIONS_MAX others.
 */
void dns_server_accept(struct dns_server *s, int fd);
