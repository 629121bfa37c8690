/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts for shells, written from the tables: commands, options, choices; file names
 * for texts; commands behind the options of a command that runs one. @table is ended by NULL.
 */
#pragma once

#include <stdio.h>

#include "cli/command.h"

/** completion_bash() - to be sourced, or installed as bash-completion/completions/atoll */
void completion_bash(FILE *f, const struct command *const *table);

/** completion_zsh() - an autoloaded function: install as _atoll in a directory of fpath */
void completion_zsh(FILE *f, const struct command *const *table);

/** completion_fish() - install as vendor_completions.d/atoll.fish */
void completion_fish(FILE *f, const struct command *const *table);
