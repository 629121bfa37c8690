/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder from inside, file by file: for backends that cannot pack one into a stream. Each folder
 * is listed, each file read and compared as one that is exported alone. Slower than
 * export/export_folder.h, with the same rules.
 */
#pragma once

#include "export/export_file.h"
#include "export/manifest.h"
#include "export/source.h"

struct walk_entry {
    char *path; /* beneath the folder; owned */
    uint32_t kind;
    mode_t mode;
    char *target; /* of a link; owned */
};

/* It must stay where it is from export_walk_start() until `done`, `failed` or export_walk_stop().
 */
struct export_walk {
    /* Set by the caller, as those of struct export_folder. */
    struct source *source;
    struct manifest *manifest;
    const char *path;
    int root;
    const char *beneath;
    void *owner;
    int (*judge)(void *owner, const char *path, uint32_t kind, struct error *err);
    void (*done)(struct export_walk *w);
    void (*failed)(struct export_walk *w, const struct error *err);

    /* Private. */
    bool under_way;
    struct walk_entry *entries; /* all that was found; folders are listed when it is their turn */
    size_t n, at;
    struct file_op op;
    struct export_file file;
    int fd;                               /* of the staged file; owned */
    char inside[FILE_PATH_BYTES_MAX + 1]; /* what is asked for */
    char staged[FILE_PATH_BYTES_MAX + 1]; /* where it goes beneath the root */
};

/** export_walk_start() - ends with one callback, which may come before the return */
void export_walk_start(struct export_walk *w);

/** export_walk_stop() - give it up; no callback comes. Harmless on a zeroed one, or when over */
void export_walk_stop(struct export_walk *w);

/**
 * export_walk_make_file() - a new file @path beneath @root, with the folders above it
 *
 * It has all permission bits that the umask leaves. No link is followed. Return: an owned fd,
 * opened O_RDWR, or a negative errno.
 */
int export_walk_make_file(int root, const char *path);
