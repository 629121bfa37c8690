/* SPDX-License-Identifier: Apache-2.0 */
/* What copying trees in both directions has in common. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    TREE_NAME_BYTES = 280,             /* of a path as errors show it */
    TREE_STEP_BYTES = 4 * 1024 * 1024, /* moved in one step, so that a loop serves others too */
    TREE_BUFFER_BYTES = 256 * 1024,
};

struct tree_totals {
    uint64_t files, folders, links, skipped;
    uint64_t bytes; /* of files */
};

/* Who is told what is not copied: @path as people know it, @why to stand after it: "it is a FIFO".
 */
struct tree_listener {
    void (*skipped)(void *arg, const char *path, const char *why); /* may be NULL */
    void *arg;
};

/**
 * tree_show() - "FOLDER/PATH" for an error; what is too long loses its middle
 * @folder: may be empty, and then @path stands alone
 */
static inline void tree_show(char buf[static TREE_NAME_BYTES], const char *folder, const char *path)
{
    size_t n = strlen(folder), len = strlen(path);
    size_t head = n < 80 ? n : 80, tail = len < 180 ? len : 180;

    (void)snprintf(buf, TREE_NAME_BYTES, "%.*s%s%s%s%s", (int)head, folder, head < n ? "..." : "",
                   n > 0 && len > 0 && path[0] != '/' ? "/" : "", tail < len ? "..." : "",
                   path + (len - tail));
}
