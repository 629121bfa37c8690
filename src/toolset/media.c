/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only what is no text by its bytes is looked at for a signature: most signatures are words that a
 * text may begin with ("ID3 tags are …"), and all of these forms have bytes early on that no text
 * has. A PDF may well have none; its signature is no word.
 */
#include "toolset/media.h"

#include <string.h>

#include "base/cleanup.h"
#include "toolset/shown.h"
#include "base/guards.h"

struct signature {
    const char *type;
    const char *start;
    size_t start_len;
    const char *form; /* of a RIFF file: what stands behind the size of 4 bytes; NULL: any */
};

enum { FORM_AT = 8, FORM_BYTES = 4 };

#define START(s) .start = (s), .start_len = sizeof(s) - 1

static const struct signature signatures[] = {
    {"image/png", START("\x89PNG\r\n\x1a\n")},
    {"image/jpeg", START("\xff\xd8\xff")},
    {"image/gif", START("GIF87a")},
    {"image/gif", START("GIF89a")},
    {"image/webp", START("RIFF"), .form = "WEBP"},
    {"audio/wav", START("RIFF"), .form = "WAVE"},
    {"audio/mpeg", START("ID3")},
    {"audio/ogg", START("OggS")},
};

static const char pdf[] = "%PDF-";

static bool begins_with(const char *bytes, size_t len, const char *start, size_t start_len)
{
    return len >= start_len && memcmp(bytes, start, start_len) == 0;
}

static bool fits(const struct signature *s, const char *bytes, size_t len)
{
    if (!begins_with(bytes, len, s->start, s->start_len))
        return false;
    return !s->form ||
           (len >= FORM_AT + FORM_BYTES && memcmp(bytes + FORM_AT, s->form, FORM_BYTES) == 0);
}

static bool is_text(const char *bytes, size_t len, bool whole)
{
    for (size_t at = 0; at < len;) {
        int n = bytes[at] == '\0' ? -1 : shown_character(bytes + at, len - at, whole);

        if (n < 0)
            return false;
        if (n == 0) /* cut at the end */
            return true;
        at += (size_t)n;
    }
    return true;
}

const char *media_type(const void *bytes, size_t len, bool whole)
{
    if (len == 0)
        return NULL;
    if (begins_with(bytes, len, pdf, sizeof pdf - 1))
        return "application/pdf";
    if (is_text(bytes, len, whole))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(signatures); i++)
        if (fits(&signatures[i], bytes, len))
            return signatures[i].type;
    return "application/octet-stream";
}

bool media_is_image(const char *type)
{
    return strncmp(type, "image/", strlen("image/")) == 0;
}
