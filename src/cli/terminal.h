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
 * terminal_raw() - leave all handling of characters to the terminal inside
 * @keys: keys too are passed on as they are, the one for SIGINT among them; otherwise only output
 *
 * Harmless where there is no terminal. Return: 0 or a negative errno.
 */
int terminal_raw(struct terminal *t, bool keys);

/** terminal_restore() - undo terminal_raw(); harmless if it was not called */
void terminal_restore(struct terminal *t);
