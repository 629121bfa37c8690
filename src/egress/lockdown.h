/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up, for good, all that the egress process does not need. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/**
 * lockdown_enter() - no files, no capabilities, no other ids, few system calls
 * @uid, @gid: to become first; UINT32_MAX: stay
 *
 * After it every system call but some fifty that move bytes through sockets and pipes answers
 * EPERM: open(2) and its kin, execve(2), fork(2), ptrace(2), kill(2), ioctl(2), memory that can be
 * executed. So do sockets but those of TCP and UDP, and listen(2) and bind(2): no port of the
 * host's can be opened any more. What else is needed (a route socket, an epoll descriptor of
 * another process, limits) is made before. Not dumpable (prctl(2)), no core file, no new
 * privileges, no capability in any set; the signal at the parent's death (PR_SET_PDEATHSIG) stays
 * as it was, though a change of ids takes it away.
 *
 * With @uid or @gid also no supplementary group; without the authority for that they stay as they
 * are, as does the bounding set, and neither is of use to a process that opens and executes
 * nothing.
 *
 * Return: 0, or a negative errno with @err set: then nothing foreign may be read.
 */
int lockdown_enter(uint32_t uid, uint32_t gid, struct error *err);
