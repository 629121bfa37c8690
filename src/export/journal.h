/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a killed export leaves behind can be found: before anything is staged, its path is written
 * to a file of this export in the state folder (core/state.h), "export-<12 hexadecimal digits>".
 * The file is locked (flock(2)) while its export lives, so that a lock which can be taken proves it
 * dead, by SIGKILL too.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct journal {
    int folder_fd; /* the state folder; owned */
    int fd;        /* owned */
    char name[32];
};

#define JOURNAL_INIT                                                                               \
    {                                                                                              \
        .folder_fd = -EBADF, .fd = -EBADF                                                          \
    }

/** journal_open() - begin one; what dead exports have left is removed on the way. 0 or -errno, @err
 */
int journal_open(struct journal *j, struct error *err);

/** journal_add() - an absolute path is about to be made; 0 or a negative errno with an error */
int journal_add(struct journal *j, const char *path, struct error *err);

/** journal_close() - nothing is staged any more: remove it. Harmless on JOURNAL_INIT, or twice */
void journal_close(struct journal *j);

struct journal_sweep {
    size_t exports; /* dead ones that were cleaned up after */
    size_t removed; /* staged files and folders */
    size_t failed;  /* that could not be removed; their journals stay */
};

/**
 * journal_sweep() - remove what dead exports have staged
 * @told: called with each path that was removed (0) or not (a negative errno); may be NULL
 *
 * Only paths whose last part is a staging name are removed, whatever the journal says. Return: 0 or
 * a negative errno with an error: no state folder.
 */
int journal_sweep(struct journal_sweep *ret, void (*told)(void *arg, const char *path, int r),
                  void *arg, struct error *err);
