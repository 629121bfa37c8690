/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for text and names, without a sandbox: patterns of names, the lines of a file that hold a
 * text and how they are shown, where a text occurs, and the order and bounds of a walk over
 * folders. Texts are bytes and are matched as they are; a line ends with LF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atoll.h"
#include "base/buffer.h"
#include "core/mask.h"

/* What one search may take, however large the tree is. */
enum {
    SEARCH_LOOKED_MAX = 20000, /* files and folders */
    SEARCH_DEPTH_MAX = 128,    /* of folders; a name may go on to 2047 */
    SEARCH_LINE_BYTES = 400,   /* shown of a line */
    SEARCH_NAME_BYTES = 1024,  /* of a pattern */
    SEARCH_LINES_TOLD = 5,     /* of occurrences */
};
#define SEARCH_READ_BYTES (UINT64_C(256) << 20)

/* --- names --- */

/**
 * search_name_fits() - whether the name of a file fits a pattern
 * @pattern: UTF-8; * stands for any characters, ? for one, [a-z] for one of these and [!a-z] for
 *           one that is not; a [ that nothing closes is itself
 *
 * A name that begins with "." needs none in the pattern. A byte that is not UTF-8 is a character of
 * its own. The locale makes no difference; the time is that of the lengths multiplied at most.
 */
bool search_name_fits(const char *pattern, const char *name);

/* --- lines --- */

/** search_is_text() - whether @bytes look like a text: no NUL is among the first 8 KiB */
bool search_is_text(const void *bytes, size_t len);

struct search_lines {
    const char *bytes; /* borrowed */
    size_t len;
    const char *text; /* that is looked for; borrowed; not empty, without LF */
    size_t text_len;
    size_t at;       /* zero at first: where the next line begins */
    uint64_t passed; /* zero at first: lines in front of it */
};

struct search_line {
    uint64_t number;   /* from 1 */
    size_t start, end; /* without its LF */
    size_t match;      /* where the text begins */
};

/** search_next_line() - the next line that holds the text; false: there is none */
bool search_next_line(struct search_lines *s, struct search_line *ret);

/**
 * search_show_line() - a line for a model: masked, as UTF-8, and cut around the match
 *
 * A CR at its end is left out. A secret is masked although the line holds only a part of it.
 * Return: 0 with *@ret owned by the caller, or -ENOMEM.
 */
int search_show_line(const struct search_lines *s, const struct search_line *line,
                     const struct mask *mask, char **ret, size_t *ret_len);

/* --- occurrences --- */

struct search_found {
    uint64_t n;                        /* how often, those that overlap too */
    size_t first;                      /* where the first one begins */
    uint64_t lines[SEARCH_LINES_TOLD]; /* the first lines that one begins in, each once */
    size_t n_lines;
    bool more_lines;
};

/** search_occurrences() - of @what (@n bytes, not zero) in a text; 0 or -ENOMEM */
int search_occurrences(const char *text, size_t len, const char *what, size_t n,
                       struct search_found *ret);

enum search_apart {
    SEARCH_APART_LINE_ENDS, /* CRLF is LF */
    SEARCH_APART_SPACES,    /* spaces, tabs and line ends are nothing */
};

/**
 * search_apart_from() - where @what occurs when that makes no difference
 *
 * Return: 0 with the line in *@ret_line, which is 0 for nowhere; or -ENOMEM.
 */
int search_apart_from(enum search_apart apart, const char *text, size_t len, const char *what,
                      size_t n, uint64_t *ret_line);

/* --- a walk --- */

struct search_entry {
    char *name;
    uint64_t size;
    int kind; /* enum atoll_kind */
};

struct search_level {
    struct search_entry *entries; /* sorted */
    size_t n, at;
    size_t path; /* bytes of the walk's path in front of its names */
};

/* Zeroed but for @left: at its beginning. */
struct search_walk {
    struct search_level levels[SEARCH_DEPTH_MAX];
    size_t depth;
    size_t pending;     /* entries of all levels that are still to come */
    size_t left;        /* how many may still be looked at */
    struct buffer path; /* of the last entry, from the top */
    bool too_many;      /* some were left out for their number … */
    bool too_deep;      /* … or for their depth */
};

/**
 * search_walk_enter() - go on with what is in a folder: the one that was told last, or the top
 * @files: as they were listed; borrowed
 *
 * Keeps no more entries, of all levels, than may still be looked at. Return: 0 or -ENOMEM.
 */
int search_walk_enter(struct search_walk *w, const struct atoll_file *const *files, size_t n);

/**
 * search_walk_next() - the next entry, in the order of the bytes of whole paths
 *
 * A folder may be entered before the next one is asked for. Return: 1 with a view that lives until
 * then, and its path in w->path, NUL-terminated; 0 at the end; or -ENOMEM.
 */
int search_walk_next(struct search_walk *w, const struct search_entry **ret);

/** search_walk_done() - free what it holds; harmless at any time */
void search_walk_done(struct search_walk *w);
