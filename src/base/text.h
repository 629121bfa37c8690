/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: UTF-8, safe printing of foreign bytes, and the nearest of a set of names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/**
 * text_is_utf8() - whether @len bytes are well-formed UTF-8
 *
 * Overlong forms, surrogates and values above U+10FFFF are refused (RFC 3629, section 3).
 */
bool text_is_utf8(const char *s, size_t len);

/**
 * text_make_printable() - replace what could drive a terminal by '?', in place
 *
 * Replaces C0 controls (a line end included), DEL, and every byte of text that is not UTF-8,
 * C1 controls included. Foreign bytes must not write a log line of their own.
 */
void text_make_printable(char *s);

/**
 * text_nearest() - the name that is most likely meant by @word
 * @names: borrowed array of @n names
 *
 * Return: one of @names within an edit distance that a slip of the finger explains (at most a
 * third of the word's length, at least one), or NULL.
 */
const char *text_nearest(const char *word, const char *const names[], size_t n);
