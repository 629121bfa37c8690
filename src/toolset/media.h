/* SPDX-License-Identifier: Apache-2.0 */
/* What bytes are: text for a model, or an image or other data that is handed on as it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/**
 * media_type() - the media type (RFC 6838) of what is no text
 * @bytes: the first @len bytes of a file, or all of it
 * @whole: nothing follows them; otherwise a character may be cut at their end
 *
 * Images by their signatures: "image/png", "image/jpeg", "image/gif", "image/webp"; PDF and audio
 * the same way; else "application/octet-stream". Return: static storage; NULL for text: UTF-8
 * without NULs, an empty file included.
 */
const char *media_type(const void *bytes, size_t len, bool whole);

/** media_is_image() - whether clients show it as one */
bool media_is_image(const char *type);
