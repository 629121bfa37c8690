/* SPDX-License-Identifier: Apache-2.0 */
/* Small forms that the answers of tools have in common: sizes, quoted paths, numbers, UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHOWN_SIZE_BYTES = 32, SHOWN_NUMBER_BYTES = 32 };

#define SHOWN_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/** shown_size() - "0B", "512B", "1.5KB", "5.0MB": from 1 MiB on in MiB, from 1 KiB on in KiB */
void shown_size(uint64_t bytes, char ret[static SHOWN_SIZE_BYTES]);

/** shown_number() - the shortest general form: "60", "2.5", "1e+06" (%g) */
void shown_number(double x, char ret[static SHOWN_NUMBER_BYTES]);

/**
 * shown_path() - a path in quotes: single ones, or double ones when it holds a single quote and no
 * double one
 *
 * Backslashes, the quote itself, control characters and bytes that are not UTF-8 are escaped (\n,
 * \x1b). Return: 0 with *@ret owned by the caller, or -ENOMEM.
 */
int shown_path(const char *path, char **ret);

/**
 * shown_name() - a file's name on a line of its own
 *
 * As it is; with control characters, or bytes that are not UTF-8, as a shell's $'…', by which it
 * can be named in a command. Return: as shown_path().
 */
int shown_name(const char *name, char **ret);

/**
 * shown_character() - what the text begins with
 * @text: @len bytes, not zero
 * @end: nothing comes behind them
 *
 * Return: the bytes of a whole character; less than zero: as many bytes that are not UTF-8, for
 * which one U+FFFD stands (the maximal subpart of Unicode, section 3.9); 0: a character that
 * further bytes may complete, without @end only.
 */
int shown_character(const char *text, size_t len, bool end);

/** shown_utf8() - a copy in which U+FFFD stands for what is not UTF-8; as shown_path() */
int shown_utf8(const char *text, size_t len, char **ret, size_t *ret_len);
