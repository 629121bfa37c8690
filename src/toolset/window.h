/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of lines of a file as `read_file` shows it, taken while the file streams by: memory is
 * bounded by the caps and the longest secret, whatever the file. Lines end with LF and nothing
 * else, so that their numbers agree with `grep -n` and `sed -n`; a CR in front of it is shown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask.h"
#include "toolset/truncate.h"

struct window_request {
    uint64_t offset; /* the first line, counted from 1; 0: 1 */
    uint64_t limit;  /* lines; 0: no limit */
    struct truncate_caps caps;
    const struct mask *mask; /* borrowed */
    const char *run_command; /* the name of that tool, for hints; borrowed */
    /* How many bytes behind the window are looked through to count the lines that remain. */
    uint64_t count_bytes;
};

struct window;

/** window_new() - @x is copied, what it borrows must live on. NULL without memory */
struct window *window_new(const struct window_request *x);
void window_free(struct window *w);

/**
 * window_feed() - the next bytes of the file
 *
 * Return: 0; 1: no more are needed, whatever follows; -ENOMEM.
 */
int window_feed(struct window *w, const void *bytes, size_t len);

/**
 * window_text() - what the model sees
 * @whole: all of the file was fed
 *
 * The lines of the window, bytes that are not UTF-8 replaced by U+FFFD; behind them, where lines
 * remain, a line that says how many and the offset to read on with. Instead of them one sentence:
 * when the window begins behind the last line, or its first line is wider than the cap. Return: 0
 * with *@ret owned by the caller, NUL-terminated; or -ENOMEM.
 */
int window_text(struct window *w, bool whole, char **ret, size_t *ret_len);

/* The same in numbers, once window_text() has told it. */
struct window_facts {
    size_t text_len;     /* of the text: the lines alone */
    uint64_t first_line; /* that was asked for, counted from 1 */
    uint64_t lines;      /* in the text */
    bool wide;           /* the first of them is wider than the cap: there is none */
    bool more;           /* lines follow, which is not said of a wide one */
    bool counted;        /* it is known how many: */
    uint64_t remaining;
};

void window_facts(const struct window *w, bool whole, struct window_facts *ret);
