/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the kernel by netlink, in the network namespace one is in, and waiting for its answer. */
#pragma once

#include "wire/netlink.h"

/** netlink_open() - a socket of a family such as NETLINK_ROUTE, owned, non-blocking; or -errno */
int netlink_open(int family);

/**
 * netlink_request() - send a batch and read answers up to that to message number @last
 * @last:       has asked for an acknowledgement
 * @ret_failed: the number of the message that the kernel refused, or 0
 *
 * The kernel works a batch off while it is being sent, so this blocks for as long as that takes,
 * the loading of modules included. Return: 0 when @last was acknowledged; the negative errno that
 * the kernel answered first; -EIO when it answered less; a negative errno of the sending.
 */
int netlink_request(int fd, const struct netlink_batch *b, uint32_t last, uint32_t *ret_failed);
