/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a tar header (IEEE Std 1003.1, pax, "ustar Interchange Format"); for tar*.c only.
 */
#pragma once

#include "wire/tar.h"

enum { TAR_TYPE_AT = 156, TAR_NS_PER_S = 1000000000 };

struct tar_field {
    size_t at, len;
};

/* v7 ends after TAR_LINK. */
#define TAR_NAME   ((struct tar_field){0, 100})
#define TAR_MODE   ((struct tar_field){100, 8})
#define TAR_UID    ((struct tar_field){108, 8})
#define TAR_GID    ((struct tar_field){116, 8})
#define TAR_SIZE   ((struct tar_field){124, 12})
#define TAR_MTIME  ((struct tar_field){136, 12})
#define TAR_SUM    ((struct tar_field){148, 8})
#define TAR_LINK   ((struct tar_field){157, 100})
#define TAR_MAGIC  ((struct tar_field){257, 8})
#define TAR_MAJOR  ((struct tar_field){329, 8})
#define TAR_MINOR  ((struct tar_field){337, 8})
#define TAR_PREFIX ((struct tar_field){345, 155})

/**
 * tar_header_sum() - the sum of a header's bytes, with the sum's own field taken as spaces
 * @ret_signed: the same as programs computed it whose char is signed
 */
static inline int64_t tar_header_sum(const uint8_t block[static TAR_BLOCK_BYTES],
                                     int64_t *ret_signed)
{
    int64_t sum = 0, high = 0;

    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++) {
        uint8_t c = i - TAR_SUM.at < TAR_SUM.len ? ' ' : block[i];

        sum += c;
        high += c >> 7;
    }
    *ret_signed = sum - 256 * high;
    return sum;
}

static inline size_t tar_min(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}
