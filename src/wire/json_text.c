/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that may come from anywhere, as JSON. */
#include "wire/json_text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

enum { KEY_BYTES = 64 };

json_t *json_text(const char *text)
{
    _cleanup_free_ char *copy = NULL;

    if (!text || text_is_utf8(text, strlen(text)))
        return text ? json_string(text) : NULL;
    copy = strdup(text);
    if (!copy)
        return NULL;
    text_make_printable(copy);
    return json_string(copy);
}

/* RFC 4648, section 4. Return: an owned text, or NULL without memory. */
static char *base64(const char *s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = (const uint8_t *)s;
    size_t n = strlen(s);
    char *text = malloc(n / 3 * 4 + 5), *at = text;

    if (!text)
        return NULL;
    for (; n > 0; p += 3) {
        uint32_t group =
            (uint32_t)p[0] << 16 | (uint32_t)(n > 1 ? p[1] : 0) << 8 | (uint32_t)(n > 2 ? p[2] : 0);

        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = n > 1 ? digits[group >> 6 & 63] : '=';
        *at++ = n > 2 ? digits[group & 63] : '=';
        n -= n < 3 ? n : 3;
    }
    *at = '\0';
    return text;
}

int name_set_json(json_t *object, const char *key, const char *name)
{
    char beside[KEY_BYTES];

    if (!name)
        return 0;
    if (json_object_set_new(object, key, json_text(name)) < 0)
        return -ENOMEM;
    if (text_is_utf8(name, strlen(name)))
        return 0;
    _cleanup_free_ char *bytes = base64(name);
    (void)snprintf(beside, sizeof beside, "%s_base64", key);
    return !bytes || json_object_set_new(object, beside, json_string(bytes)) < 0 ? -ENOMEM : 0;
}
