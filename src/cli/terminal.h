/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's own terminal while a command has one inside: raw mode and window size. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct terminal {
    int fd; /* borrowed: whichever standard stream is a terminal; -EBADF: none is */
    bool raw;
    struct termios before;
};

/** terminal_find() - the terminal behind stdin, stdout or stderr, if there is one */
void terminal_find(struct terminal *t);

/** terminal_size() - its size, or 24 by 80 where there is none */
void terminal_size(const struct terminal *t, uint16_t *ret_rows, uint16_t *ret_columns);

/**
 * terminal_raw() - pass every key on as it is; terminal_restore() undoes it, harmless if not raw
 *
 * Only when stdin is the terminal: otherwise nobody types. Return: 0 or a negative errno.
 */
int terminal_raw(struct terminal *t);
void terminal_restore(struct terminal *t);
