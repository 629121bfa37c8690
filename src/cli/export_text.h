/* SPDX-License-Identifier: Apache-2.0 */
/* What was exported, in words and as JSON: for `export`, and for `run` with exports. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "atoll.h"

/**
 * export_text_copied() - "Exported PATH from sandbox ID (SIZE)"
 *
 * Without a line end. Of a folder the number of its files is said, too.
 */
void export_text_copied(FILE *f, const struct atoll_exported *x, const char *sandbox);

/** export_text_published() - "Published URL"; likewise */
void export_text_published(FILE *f, const struct atoll_exported *x);

/** export_text_json() - as in export.schema.json; a new reference, or NULL without memory */
json_t *export_text_json(const struct atoll_exported *x);
