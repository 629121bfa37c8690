/* SPDX-License-Identifier: Apache-2.0 */
/* base64, one way. */
#include "wire/base64.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/guards.h"

static char digit(uint32_t bits)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    return digits[bits & 63];
}

char *base64_encode(const void *bytes, size_t len, size_t *ret_len)
{
    const uint8_t *p = bytes;
    size_t n = len / 3 + (len % 3 != 0);
    char *text, *out;

    if (n > (SIZE_MAX - 1) / 4 || !(text = malloc(4 * n + 1)))
        return NULL;
    out = text;
    for (size_t left = len; left > 0;) {
        size_t take = left < 3 ? left : 3;
        uint32_t bits = (uint32_t)p[0] << 16;

        if (take > 1)
            bits |= (uint32_t)p[1] << 8;
        if (take > 2)
            bits |= p[2];
        *out++ = digit(bits >> 18);
        *out++ = digit(bits >> 12);
        *out++ = take > 1 ? digit(bits >> 6) : '=';
        *out++ = take > 2 ? digit(bits) : '=';
        p += take;
        left -= take;
    }
    *out = '\0';
    if (ret_len)
        *ret_len = 4 * n;
    return text;
}
