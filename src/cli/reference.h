/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of docs/reference, written from the tables that the program itself follows, so that
 * they cannot disagree with it. cmd_reference.c has the list of them. @table: the commands, ended
 * by NULL.
 */
#pragma once

#include <stdio.h>

#include "cli/command.h"

/** reference_spec() - every field of a spec: what it takes, its default, option and an example */
void reference_spec(FILE *f, const struct command *const *table);

/** reference_limits() - every default and ceiling, with its reason */
void reference_limits(FILE *f, const struct command *const *table);

/** reference_errors() - classes, exit statuses, reasons, and the sentences of refusals */
void reference_errors(FILE *f, const struct command *const *table);

/** reference_backends() - what each backend enforces, keeps and refuses, and by which rule */
void reference_backends(FILE *f, const struct command *const *table);

/** reference_json() - the JSON forms that the program writes, one line each: "NAME: where" */
void reference_json(FILE *f, const struct command *const *table);

/** reference_text() - plain text as Markdown: what would be markup is escaped */
void reference_text(FILE *f, const char *text);

/** reference_sentence() - the same, begun with a capital and ended with a full stop */
void reference_sentence(FILE *f, const char *text);

/** reference_option() - the option @name of command @c, or NULL when it has none to show */
const struct option *reference_option(const struct command *c, const char *name);
