/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's network namespace, made by a helper process of the keeper's while the set-up
 * process is busy with mounts: it takes the kernel longer than anything else. The helper enters the
 * sandbox's user namespace, so that the network belongs to it, brings the loopback up, and hands
 * the namespace to the set-up process as a descriptor.
 *
 * The helper shares the keeper's memory, which makes it cheap to start and to end; so it has a
 * stack of its own, calls nothing that keeps state, and makes its system calls without errno.
 */
#pragma once

#include <sys/types.h>

struct network_helper;

/**
 * network_start() - start the helper
 * @pid_fd: process 1 of the sandbox, already in its user namespace; borrowed
 * @fd:     a socket whose other end the set-up process holds; borrowed
 * @ret:    for network_end(), which is due
 *
 * Does not block. Return: 0 or a negative errno.
 */
int network_start(int pid_fd, int fd, struct network_helper **ret);

/** network_end() - end the helper if it still runs, reap and free it; harmless on NULL */
void network_end(struct network_helper *h);

/**
 * network_await() - the network namespace that the helper made
 *
 * Blocks until it is there. Return: an owned descriptor, or a negative errno: what failed in the
 * helper, or -EIO when it died.
 */
int network_await(int fd);

/**
 * network_hand_over() - one packet to where network_await() waits
 * @net: the namespace, borrowed; or a negative errno
 */
void network_hand_over(int fd, long net);

/** network_loopback_up() - bring up lo of the network namespace one is in; 0 or a negative errno */
int network_loopback_up(void);
