/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that tools of the host run or obey when they come across them: hooks, settings of editors,
 * instructions for agents, start-up files of shells. In a folder that came out of a sandbox they
 * would be orders from inside, given where nobody looks, so they are exported by their own names
 * only.
 */
#pragma once

#include <stdint.h>

/**
 * host_tools_reason() - what would make use of a file called so
 * @path: its parts count at any depth, without regard to case
 * @kind: enum file_kind: a folder does nothing by itself, a link in the place of one may
 *
 * Return: a sentence without a full stop ("git runs the hooks in it"), or NULL; static storage.
 */
const char *host_tools_reason(const char *path, uint32_t kind);
