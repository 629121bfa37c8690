/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of the command line, written from the tables: a man page and Markdown. */
#pragma once

#include <stdio.h>

#include "cli/command.h"

/** manual_man() - the page atoll(1) in man(7) macros; @table is ended by NULL */
void manual_man(FILE *f, const struct command *const *table);

/** manual_markdown() - the same as one Markdown page */
void manual_markdown(FILE *f, const struct command *const *table);
