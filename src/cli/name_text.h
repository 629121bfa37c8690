/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files, which are bytes, for terminals and for JSON. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/**
 * name_print_quoted() - @name as a shell would read it back
 *
 * Plain names stand as they are, others in '…', and those with control characters or bytes that are
 * not UTF-8 in $'…', so that nothing of a name reaches the terminal itself.
 */
void name_print_quoted(FILE *f, const char *name);

/**
 * name_set_json() - @name as the member @key of @object
 *
 * JSON holds no bytes beyond UTF-8. A name with such gets '?' in their place, and beside it a
 * member KEY_base64 with the name itself. NULL adds nothing. Return: 0 or -ENOMEM.
 */
int name_set_json(json_t *object, const char *key, const char *name);
