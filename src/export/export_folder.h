/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder from inside, as a tar stream (PACK), into a staged one. The stream is hostile: whatever
 * it says, nothing outside the staged folder is made, and in it nothing is made twice.
 *
 * Files, folders and links that stay in the folder are made; anything else ends the export, since a
 * promised folder is whole or not there. Small files cost one open, write, read and close each, and
 * no flush: that is for whoever has all of them (source_sync()).
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "export/manifest.h"
#include "export/source.h"
#include "wire/tar.h"

enum { FOLDER_BUFFER_BYTES = 256 * 1024 };

/* It must stay where it is from export_folder_start() until `done`, `failed` or _stop(). */
struct export_folder {
    /* Set by the caller. */
    struct source *source;     /* borrowed */
    struct manifest *manifest; /* borrowed: gets what is made */
    const char *path;          /* inside; borrowed */
    int root;                  /* the staged folder; borrowed */
    const char *beneath;       /* what the folder becomes in it; "": the staged folder itself */
    void *owner;
    /* Whether something may be made: @path beneath the folder, @kind of enum file_kind. 0 or a
     * negative errno with an error. */
    int (*judge)(void *owner, const char *path, uint32_t kind, struct error *err);
    void (*done)(struct export_folder *f);
    void (*failed)(struct export_folder *f, const struct error *err);

    mode_t mode; /* permission bits that the folder has inside */

    /* Private. */
    struct file_op op;
    bool under_way;
    bool drained, ended; /* the pipe is at its end; the archive is */
    bool taking;         /* take_apart() is at work */
    bool finishing;      /* the end of a file is awaited */
    bool has_top;
    int from; /* the pipe; owned */
    struct loop_source input;
    struct loop_timer allowance;
    uint64_t started_us, bytes;
    uint64_t received; /* of the stream */
    struct tar_reader tar;
    struct reader in;   /* of buffer: not yet taken apart */
    struct reader data; /* of @in: not yet taken by the copier */
    struct copier copier;
    struct stat made; /* the file that is written */
    int file;         /* owned; -EBADF: none */
    int parent;       /* owned; of the entry before */
    char parent_path[TAR_PATH_MAX + 1];
    char top[NAME_MAX + 1];
    char clean[TAR_PATH_MAX + 1];  /* of the archive, made good */
    char inside[TAR_PATH_MAX + 1]; /* of the entry, beneath the folder; "": the folder itself */
    char at[2 * TAR_PATH_MAX + 2]; /* the same beneath the staged folder; TAR_PATH_MAX at most */
    uint8_t *buffer;
};

/** export_folder_start() - ends with one callback, which may come before the return */
void export_folder_start(struct export_folder *f);

/** export_folder_stop() - give it up; no callback comes. Harmless on a zeroed one, or when over */
void export_folder_stop(struct export_folder *f);
