/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filter of a sandboxed command; what it says is in filter_policy.h. */
#pragma once

/**
 * filter_install() - put the calling thread, and all it will start, under the filter for good
 *
 * For a child between vfork and execve: allocates nothing and keeps no state. To be called last,
 * when nothing is left to be done that the filter refuses. no_new_privs must be set: the kernel
 * takes a filter without it from a process with CAP_SYS_ADMIN, and a set-user-ID program would
 * then run under a filter of its caller's choice (seccomp(2), SECCOMP_SET_MODE_FILTER).
 *
 * Return: 0; -EACCES if no_new_privs is not set; -ENOSYS or -EINVAL if the kernel has no seccomp
 * filters; -ENOMEM. The command must not be started on any of them. Does not block.
 */
int filter_install(void);
