/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper as a fork of this process: faster than starting the program anew while that is small. */
#pragma once

#include "client/session.h"

/**
 * fork_keeper() - start a keeper as a child process and greet it
 *
 * Return: 0, or a negative errno with an error.
 */
int fork_keeper(struct session *s, struct error *err);
