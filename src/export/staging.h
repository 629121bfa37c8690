/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One destination on its way: what will be published is made under a staging name in the
 * destination's own folder, "NAME.<12 hexadecimal digits>.partial", and put in its place by one
 * rename.
 *
 * An old destination is exchanged (renameat2(2), RENAME_EXCHANGE), so that a reader sees the old
 * one or the new one, whole, and so that it can be taken back: after the exchange the staging name
 * holds the old one, until staging_settle() removes it. Where the file system cannot exchange, a
 * file is kept by a second link; a folder is refused.
 *
 * Everything is done beneath a descriptor of the parent folder. A destination that is a symbolic
 * link, a FIFO, a device, or a folder where a file comes (or the other way round) is refused before
 * anything is written. Nothing here follows a link that it did not make.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "core/destination.h"
#include "export/journal.h"

struct staging_place {
    const struct destination *to; /* borrowed */
    int parent_fd;                /* owned */
    char name[NAME_MAX + 1];      /* the staging name */
    int fd; /* of the staged file or folder; owned; -EBADF before staging_make */
    bool folder;
    bool made;      /* something stands under the staging name */
    bool published; /* the new one stands in its place … */
    bool exchanged; /* … and the old one under the staging name */
    unsigned
        n_made_parents; /* folders made for it, the last ones of its path; removed if it fails */
};

#define STAGING_PLACE_INIT                                                                         \
    {                                                                                              \
        .parent_fd = -EBADF, .fd = -EBADF                                                          \
    }

/**
 * staging_open() - the destination's folder, made where missing, and a look at what is there
 * @folder: whether a folder will be published
 *
 * Return: 0, or a negative errno with an error in the words of a person's file (no permission,
 * read-only, a link in its place, …); then staging_drop() is still to be called.
 */
int staging_open(struct staging_place *s, const struct destination *to, bool folder,
                 struct error *err);

/** staging_clash() - whether two opened places are one on this host (device, inode, name) */
bool staging_clash(const struct staging_place *a, const struct staging_place *b);

/**
 * staging_make() - the staged file (mode 0600 until published, O_EXCL, O_NOFOLLOW) or folder (0700)
 *
 * Its path is in @journal before it exists. Then s->fd. Return: as staging_open().
 */
int staging_make(struct staging_place *s, struct journal *journal, struct error *err);

/**
 * staging_publish() - put it in its place
 * @mode: permission bits; less the umask
 *
 * The content must be on disk already (export/copier.h). The parent folder is synchronised. Return:
 * 0, or a negative errno with an error; then the destination is as before.
 */
int staging_publish(struct staging_place *s, mode_t mode, struct error *err);

/** staging_undo() - take a published one back; 0, or a negative errno with an error */
int staging_undo(struct staging_place *s, struct error *err);

/**
 * staging_settle() - it stays published: remove what was there before
 *
 * Return: 0, or a negative errno with an error that names the path that is left behind.
 */
int staging_settle(struct staging_place *s, struct error *err);

/**
 * staging_drop() - remove what is staged and not published, and the folders made for it; close
 *
 * Harmless twice, and on STAGING_PLACE_INIT. Several are dropped backwards, since a folder that was
 * made for one may hold another's. Return: 0, or a negative errno with an error that names what is
 * left behind.
 */
int staging_drop(struct staging_place *s, struct error *err);

/**
 * staging_remove_tree() - remove file or folder @name of @parent_fd without following links
 *
 * Return: 0, also when it is not there; or a negative errno.
 */
int staging_remove_tree(int parent_fd, const char *name);
