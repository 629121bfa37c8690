/* SPDX-License-Identifier: Apache-2.0 */
/* Help for people at a terminal, written from the tables; 80 columns wide. */
#pragma once

#include <stdio.h>

#include "cli/command.h"

/** help_program() - synopsis, commands and options of the program; @table is ended by NULL */
void help_program(FILE *f, const struct command *const *table);

/** help_command() - synopsis, description, options, exit status and examples of one command */
void help_command(FILE *f, const struct command *c);
