/* SPDX-License-Identifier: Apache-2.0 */
/* Every default and ceiling that a user can reach, with its unit and its reason. */
#pragma once

#include <stdint.h>

#define LIMIT_KIB UINT64_C(1024)
#define LIMIT_MIB (1024 * LIMIT_KIB)
#define LIMIT_GIB (1024 * LIMIT_MIB)

/* disk: the one tmpfs for everything that a sandbox writes. Default: half of the free memory. */
#define LIMIT_DISK_MIN_BYTES (1 * LIMIT_MIB)
#define LIMIT_DISK_MAX_BYTES (1024 * LIMIT_GIB)

/* Bytes of disk to one inode: an inode costs about 1 KiB of kernel memory beside the size. */
#define LIMIT_DISK_BYTES_PER_INODE (16 * LIMIT_KIB)
#define LIMIT_DISK_INODES_MIN      UINT64_C(16384)

/* /dev/shm: browsers and worker pools need more than the 64 MiB that containers usually get. */
#define LIMIT_SHM_MIN_BYTES (256 * LIMIT_MIB)

/* pids: processes and threads at once. A build with many jobs fits; a fork bomb ends here. */
#define LIMIT_PIDS_DEFAULT UINT64_C(4096)
#define LIMIT_PIDS_MIN     UINT64_C(2)
#define LIMIT_PIDS_MAX     UINT64_C(4194304)

/* Open files of one process; lower where the caller's own hard limit is. */
#define LIMIT_OPEN_FILES UINT64_C(65536)

/* Lists in a spec. */
#define LIMIT_VOLUMES   64
#define LIMIT_ENV_NAMES 4096

/* sandbox_timeout: a sandbox that is created to be held ends after an hour unless told otherwise.
 */
#define LIMIT_LIFETIME_DEFAULT_US (UINT64_C(3600) * 1000000)

/* The toolset: what one tool call may take, and how much of it a model is shown. */
#define LIMIT_TOOL_TIMEOUT_DEFAULT_US (UINT64_C(60) * 1000000)
#define LIMIT_TOOL_TIMEOUT_CEILING_US (UINT64_C(300) * 1000000)
#define LIMIT_TOOL_OUTPUT_LINES       UINT64_C(2000)
#define LIMIT_TOOL_OUTPUT_BYTES       (50 * LIMIT_KIB)
#define LIMIT_TOOL_READ_BYTES         (5 * LIMIT_MIB)
#define LIMIT_EXPORT_BYTES            (1 * LIMIT_GIB)

/* Files, folders and links of one export: what a manifest can list, and a host's disk can bear. */
#define LIMIT_EXPORT_FILES UINT64_C(100000)

/* How long an export may take: this, and for what is large a second for each MiB. */
#define LIMIT_EXPORT_US (UINT64_C(120) * 1000000)

/* Toolsets of one `atoll mcp`. */
#define LIMIT_MCP_TOOLSETS 16

/* Names, owners, tags and other short texts of a spec, bytes. */
#define LIMIT_TEXT_BYTES 1024

/* Entries of one list of a spec. */
#define LIMIT_LIST_ENTRIES 1024

/* Hosts that may be reached, and their bytes together: a spec has to fit into one message. */
#define LIMIT_HOSTS       16384
#define LIMIT_HOSTS_BYTES (1024 * 1024)

/* A command that ended while something holds its output: how long silence may last, microseconds.
 */
#define LIMIT_DRAIN_IDLE_US UINT64_C(100000)

/* And how long noise may last: what the command itself wrote is delivered however long it takes. */
#define LIMIT_DRAIN_US UINT64_C(1000000)

/* How long creating may take before the keeper gives up, microseconds. */
#define LIMIT_CREATE_US UINT64_C(60000000)

/* How long init may take to end a command's processes before the sandbox is ended instead. */
#define LIMIT_KILL_US UINT64_C(4000000)

/* Longest timeout and lifetime that may be asked for, microseconds: a year. */
#define LIMIT_TIME_MAX_US (UINT64_C(366) * 86400 * 1000000)
