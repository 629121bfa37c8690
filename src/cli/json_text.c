/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that may come from anywhere, as JSON. */
#include "cli/json_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/guards.h"

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
