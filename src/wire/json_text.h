/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that may come from anywhere, as JSON. */
#pragma once

#include <jansson.h>

/**
 * json_text() - @text as a JSON string
 * @text: copied; bytes that are not UTF-8, which JSON cannot hold, become '?'. NULL gives NULL,
 * which the form "o*" of json_pack() leaves out
 *
 * Return: a new reference, or NULL without memory.
 */
json_t *json_text(const char *text);

/**
 * name_set_json() - @name as the member @key of @object
 *
 * JSON holds no bytes beyond UTF-8. A name with such gets '?' in their place, and beside it a
 * member KEY_base64 with the name itself. NULL adds nothing. Return: 0 or -ENOMEM.
 */
int name_set_json(json_t *object, const char *key, const char *name);
