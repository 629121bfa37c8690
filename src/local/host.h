/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host as the plan needs to know it: who calls, with which privilege, and what of the host's
 * file system a sandbox of image "host" may see. Read once, so that the plan is a pure function.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { HOST_ENTRIES_MAX = 64 };

enum host_kind {
    HOST_ABSENT,
    HOST_FOLDER,
    HOST_FILE,
    HOST_LINK,
    HOST_SECRET, /* a folder within a visible one, to be hidden */
};

/* One path of the host that the sandbox may see, or see the place of. */
struct host_entry {
    char path[128];   /* absolute */
    char target[256]; /* of a HOST_LINK */
    enum host_kind kind;
};

struct host {
    uid_t uid;
    gid_t gid;
    bool kernel_root;   /* uid 0 of the initial user namespace: inside it must become another id */
    bool may_map_range; /* may give the sandbox ids other than its own (CAP_SETUID, CAP_SETGID) */
    bool may_mount;     /* may make idmapped mounts (CAP_SYS_ADMIN) */
    uint64_t available_bytes; /* memory */
    uint64_t open_files_max;  /* the caller's hard limit */
    struct host_entry entries[HOST_ENTRIES_MAX];
    size_t n_entries;
};

/**
 * host_read() - read all of it
 *
 * A few dozen system calls, no privilege, nothing changed. Return: 0, or a negative errno with a
 * terminal error.
 */
int host_read(struct host *ret, struct error *err);

/** host_is_kernel_root() - whether this process is uid 0 of the initial user namespace */
bool host_is_kernel_root(void);
