/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text that any JSON can hold. */
#pragma once

#include <stddef.h>

/**
 * base64_encode() - RFC 4648, section 4: padded, and without line ends
 * @bytes:   may be NULL if @len is 0
 * @ret_len: of the text, without the NUL behind it; may be NULL
 *
 * Return: the text, owned by the caller; NULL without memory.
 */
char *base64_encode(const void *bytes, size_t len, size_t *ret_len);
