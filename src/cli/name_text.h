/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files, which are bytes, for terminals. */
#pragma once

#include <stdio.h>

#include "wire/json_text.h" /* for JSON: name_set_json() */

/**
 * name_print_quoted() - @name as a shell would read it back
 *
 * Plain names stand as they are, others in '…', and those with control characters or bytes that are
 * not UTF-8 in $'…', so that nothing of a name reaches the terminal itself.
 */
void name_print_quoted(FILE *f, const char *name);
