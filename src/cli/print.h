/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printing for people and programs: colour, wrapped text, JSON, human units.
 *
 * Streams remember a failed write, so single calls are not checked; print_flush() is called once
 * at the end and reports it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum print_style { PRINT_PLAIN, PRINT_BOLD, PRINT_GOOD, PRINT_WARNING, PRINT_BAD, PRINT_FAINT };

/** print_colour_wanted() - whether @f is a terminal that wants colour (https://no-color.org) */
bool print_colour_wanted(FILE *f);

/** print_styled() - @text in @style if @colour, else as it is */
void print_styled(FILE *f, bool colour, enum print_style style, const char *text);

/**
 * print_wrapped() - words of @text, lines filled up to column 80
 * @column: where the cursor is
 * @indent: where further lines begin
 *
 * A line end in @text stays one. Ends with a line end.
 */
void print_wrapped(FILE *f, size_t column, size_t indent, const char *text);

/**
 * print_json() - @value as one line
 * @value: consumed always; NULL (it could not be made) is reported as -ENOMEM
 *
 * Return: 0; -ENOMEM, -EIO or another errno of the write (terminal).
 */
int print_json(FILE *f, json_t *value, struct error *err);

/**
 * print_flush() - write out what is buffered and report any write that failed since the start
 * @name: of the stream, for the message: "standard output"
 *
 * Return: 0 or the negative errno of the write (terminal).
 */
int print_flush(FILE *f, const char *name, struct error *err);

enum { PRINT_UNIT_MAX = 40 };

/** print_size_text() - bytes as parse_size() reads them, in the largest exact unit: "512M" */
void print_size_text(char buf[PRINT_UNIT_MAX], uint64_t bytes);

/** print_duration_text() - microseconds as parse_duration() reads them: "90s", "5m", "0.0005s" */
void print_duration_text(char buf[PRINT_UNIT_MAX], uint64_t us);
