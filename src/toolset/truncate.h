/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a text fit what a model is to be shown: whole lines, never a part of a character.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct truncate_caps {
    uint64_t max_lines, max_bytes;
};

/**
 * truncate_output() - the last lines of an output
 * @text: UTF-8; LF, CRLF and CR end a line, so that each update of a progress bar is one
 * @ret_from: where in @text they begin; 0: nothing was cut
 *
 * A kept line costs its bytes, and 1 for each line after the first. The last line alone being too
 * wide, its last bytes are kept, from a whole character on. Lines are joined by LF and a line end
 * at the end adds none. Return: 0 with *@ret owned by the caller, or -ENOMEM.
 */
int truncate_output(const char *text, size_t len, const struct truncate_caps *caps, char **ret,
                    size_t *ret_len, size_t *ret_from);

/**
 * truncate_list() - the first lines of a listing, and how many are left out
 * @lines: UTF-8, NULL-terminated
 * @ret_shown: how many of them
 *
 * As above from the head; the caller adds what tells of the rest. Return: 0 or -ENOMEM.
 */
int truncate_list(const char *const *lines, const struct truncate_caps *caps, char **ret,
                  size_t *ret_len, size_t *ret_shown);
