/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of nf_tables inside the sandbox, and its routes, as batches for the kernel. The rules
 * themselves are constant; what a policy decides are the elements of four sets. Pure code: nothing
 * here sends.
 *
 * In the output hook: loopback, resets and the errors of ICMP pass; what the sets list passes; port
 * 53 of any address passes if names are served, since whatever name server a program asks, it is
 * egress that answers. All else is logged to EGRESS_LOG_GROUP and refused, TCP by a reset: an ICMP
 * error that reaches a connecting socket while its owner holds it is dropped, and only the first
 * retransmission, a second later, is told. In the prerouting hook, what passed and is not loopback
 * goes to the socket at EGRESS_PORT of loopback (Documentation/networking/tproxy.rst of the
 * kernel).
 */
#pragma once

#include "core/policy_reach.h"
#include "wire/netlink.h"

/**
 * ruleset_put() - table, sets with their elements, chains and rules, as one transaction
 *
 * Sets @b->bad when the buffer is too small: ruleset_size() is enough. @b is empty before. The last
 * message but the one that ends the transaction asks for an acknowledgement: when that has come,
 * all of it is in force; when any error comes before it, nothing of it is.
 */
void ruleset_put(struct netlink_batch *b, const struct policy_reach *reach);

/** ruleset_put_sets() - other elements for the sets of a table that is there, as one transaction */
void ruleset_put_sets(struct netlink_batch *b, const struct policy_reach *reach);

/** ruleset_acknowledged() - the sequence number of the message of @b that is acknowledged */
uint32_t ruleset_acknowledged(const struct netlink_batch *b);

/**
 * ruleset_module() - the modules of the kernel that a message of ruleset_put() needs
 * @sequence: its number, as in the kernel's answer
 *
 * Return: their names, to be shown and to be given to modprobe(8) -a; static storage.
 */
const char *ruleset_module(uint32_t sequence);

/** ruleset_size() - bytes that either batch takes at most */
size_t ruleset_size(const struct policy_reach *reach);

/**
 * routes_put() - every address of both families becomes local, with loopback as source
 *
 * Without that source a connection's two ends would have the same address, and might be the same.
 * Both messages ask for an acknowledgement.
 */
void routes_put(struct netlink_batch *b, int lo_index);

/**
 * addresses_put() - an address of each family on lo that is not loopback
 *
 * Dummies that the standards set aside (192.0.0.8, RFC 7600, 4.8; 100:0:0:1::/64, RFC 9780).
 * Programs that ask for names of a family only if the machine has an address of it (getaddrinfo(3),
 * AI_ADDRCONFIG) leave loopback out of account.
 */
void addresses_put(struct netlink_batch *b, int lo_index);
