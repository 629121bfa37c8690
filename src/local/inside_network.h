/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out as it is made in the sandbox's network namespace, by a process that is in it and has
 * authority there: rules, sockets, routes. lo is up before. In this order: nothing leads anywhere
 * before the rules are in force and egress's listeners stand.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "core/policy_reach.h"
#include "wire/control.h"

/**
 * inside_network_open() - make all of it
 * @ret: the sockets in the order of enum inside_socket, owned, non-blocking; set on success
 *
 * Return: 0, or a negative errno with an error that says what the kernel lacks or who forbids it.
 */
int inside_network_open(const struct policy_reach *reach, int ret[static INSIDE__MAX],
                        struct error *err);

/** inside_network_change() - other addresses and ports, all at once; 0 or -errno with @err */
int inside_network_change(const struct policy_reach *reach, struct error *err);

/** inside_network_sockets() - @n unconnected TCP sockets of IPv4, owned; 0 or -errno with @err */
int inside_network_sockets(int *ret, size_t n, struct error *err);
