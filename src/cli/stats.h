/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes use, as a table and as JSON (docs/reference/json/stats.schema.json). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "atoll.h"
#include "base/error.h"

/* One sandbox. What is 0 was not measured, or is not there. */
struct stats_row {
    char *id, *name, *owner; /* owned; name and owner may be NULL */
    bool gone;               /* it was there, and is no more */
    struct atoll_info info;  /* the numbers of it alone */
};

struct stats {
    struct stats_row *rows;
    size_t n;
};

/** stats_done() - free it; harmless on a zeroed one */
void stats_done(struct stats *s);

/**
 * stats_read() - ask sandboxes, one after another
 * @names: as for handle_open(); NULL: all local ones that live
 * @gone:  one of @names that is gone is a row that says so; otherwise an error
 *
 * Return: 0 with @ret owned, or a negative errno with an error.
 */
int stats_read(char *const *names, bool gone, struct stats *ret, struct error *err);

/**
 * stats_print() - a line for each
 * @width: of a terminal, which no line is to be wider than; 0: there is none
 * @end:   of each line
 */
void stats_print(FILE *f, const struct stats *s, unsigned width, unsigned rows, const char *end);

/** stats_json() - a new reference; NULL without memory */
json_t *stats_json(const struct stats *s);
