/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a published folder holds, as "atoll-manifest.json" in it: whoever uses the folder can see
 * that it is whole, and compare each file with what came out of the sandbox
 * (docs/reference/json/manifest.schema.json).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "export/copier.h"

#define MANIFEST_NAME "atoll-manifest.json"

struct manifest_item {
    char *path;   /* beneath the folder */
    char *target; /* of a link; NULL: a file */
    uint64_t bytes;
    mode_t mode;
    uint8_t sum[COPIER_SUM_BYTES];
};

/* Zeroed: empty. */
struct manifest {
    struct manifest_item *items;
    size_t n;
    uint64_t files, links, bytes;
};

/** manifest_add_file() - @path is copied; 0 or -ENOMEM */
int manifest_add_file(struct manifest *m, const char *path, uint64_t bytes, mode_t mode,
                      const uint8_t sum[static COPIER_SUM_BYTES]);

/** manifest_add_link() - a symbolic link, both texts copied; 0 or -ENOMEM */
int manifest_add_link(struct manifest *m, const char *path, const char *target);

/**
 * manifest_write() - all of it as JSON, by the bytes of the paths, a line for each
 * @put: gets it piece by piece; 0, or a negative errno that ends it
 *
 * Return: 0, -ENOMEM, or what @put returned.
 */
int manifest_write(struct manifest *m, const char *sandbox,
                   int (*put)(void *arg, const void *data, size_t len), void *arg);

/** manifest_done() - free; harmless on a zeroed one */
void manifest_done(struct manifest *m);
