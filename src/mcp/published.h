/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was published in this run, as resources of MCP: only these URIs can be read, and what lies
 * below those of folders, as far as the manifest lists it. Nothing else of the host is ever opened.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "atoll_toolset.h"
#include "base/error.h"

struct published_item {
    char *path, *url, *sha256; /* sha256: NULL of a folder */
    uint64_t files, bytes;
    const struct atoll_toolset *t; /* whose secrets are masked, whose limit holds; borrowed */
};

struct published {
    struct published_item *items;
    size_t n;
};

/** published_add() - one more, in the place of an older one of the same URL; 0 or -ENOMEM */
int published_add(struct published *p, const struct atoll_toolset *t,
                  const struct atoll_exported *x);
void published_done(struct published *p);

/** published_list() - `resources` of a resources/list result. NULL: no memory */
json_t *published_list(const struct published *p);

/** published_link() - a content block `resource_link`, masked for @t. NULL: no memory */
json_t *published_link(const struct atoll_toolset *t, const struct atoll_exported *x);

/**
 * published_read() - `contents` of a resources/read result
 *
 * A file as text, masked, or as a blob; a folder as its manifest; a file below a folder by
 * FOLDER_URL/PATH, if the manifest lists it. Blocks while it is read, up to the toolset's
 * max_read_bytes. Return: 0 with @ret owned by the caller; -ENOENT: no such resource, whatever the
 * reason (dots, other encodings, links on the way are none); -EFBIG, -EPERM (a secret is in its
 * bytes) or another negative errno with an error in a plain sentence.
 */
int published_read(const struct published *p, const char *uri, json_t **ret, struct error *err);
