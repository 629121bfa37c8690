/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a command, from one table that drives the parser, the defaults, the range checks,
 * --help, the man page, the Markdown reference and shell completion, so that they cannot disagree.
 *
 * Grammar:
 *   --name VALUE, --name=VALUE, -x VALUE, -xVALUE; flags: --name, -x, bundled as in -itx VALUE
 *   --no-name    back to the default: a flag is off, a list is empty
 *   --           ends the options; a separate VALUE is never "--"
 *   -h, --help   accepted by every table and stored nowhere: main answers it before a command runs
 *
 * A single-valued option given twice has its last value. A list keeps every value, in order; its
 * --no-name drops those before it. Names cannot be abbreviated. An empty VALUE is refused, since
 * it mostly comes from an unset shell variable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What an option holds, and the type of its field in the args struct. */
enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_SIZE,     /* uint64_t, bytes: parse_size() */
    OPTION_DURATION, /* uint64_t, microseconds: parse_duration() */
    OPTION_NUMBER,   /* uint64_t: parse_u64() */
    OPTION_TEXT,     /* const char *, a view of the argument; NULL if not given */
    OPTION_CHOICE,   /* const char *, one of option.choices; NULL if not given */
    OPTION_LIST,     /* struct text_list */
};

/* Values of a repeated option. The strings are views of the arguments, the array is owned. */
struct text_list {
    const char **items; /* NULL if empty */
    size_t n;
    bool reset; /* --no-name was given: what another source would add to it counts no more */
};

/* What became of an option with a single value, for one whose default comes from elsewhere. */
enum option_state { OPTION_ABSENT, OPTION_GIVEN, OPTION_RESET };

struct option {
    const char *name; /* without dashes */
    char letter;      /* its short form, or 0 */
    const char *arg;  /* word for its argument, such as "SIZE"; NULL for a flag alone */
    const char *help; /* what it does: a phrase without a full stop at its end */
    enum option_kind kind;
    size_t offset;      /* of its field in the args struct */
    size_t state;       /* of an enum option_state there that follows it, or 0 */
    uint64_t min, max;  /* size, duration, number: range, both included; list: max entries */
    const char *preset; /* default as it would be typed, or NULL: false, 0, NULL, empty */
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated */
    bool hidden;                /* works, but is in no help, page or completion */
};

/* The row that every command that can print JSON has; @at is the offset of a bool. */
#define OPTION_JSON(at)                                                                            \
    {                                                                                              \
        .name = "json", .help = "print one JSON object instead of text", .kind = OPTION_FLAG,      \
        .offset = (at)                                                                             \
    }

/* Arguments: on input all that follow the command's name, on return the operands among them. */
struct arguments {
    char **v; /* borrowed, v[n] is NULL; operands are moved to its front */
    int n;
    unsigned ends_at; /* options end at this operand, counted from 1; 0: they may stand anywhere */
};

/**
 * options_defaults() - set every field that a table names
 * @args: args struct of the table; need not be initialised, and what lists own is not freed
 */
void options_defaults(const struct option *options, size_t n, void *args);

/**
 * options_parse() - store options and leave the operands
 * @args: args struct with defaults in it; borrowed; on failure it holds what was read before the
 *        mistake, and options_done() still frees it. Texts are views of the arguments.
 * @io:   borrowed; the operands are written on success only
 *
 * Return: 0; -EINVAL or -ERANGE or -E2BIG (usage), -ENOMEM (terminal).
 */
int options_parse(const struct option *options, size_t n, void *args, struct arguments *io,
                  struct error *err);

/** options_done() - free what the lists of @args own and empty them */
void options_done(const struct option *options, size_t n, void *args);

/**
 * options_want_help() - whether -h or --help stands among the options of @in
 *
 * Follows the grammar, so that the argument of another option and an operand do not count.
 * Changes nothing. False also if a mistake comes first; options_parse() then reports it.
 */
bool options_want_help(const struct option *options, size_t n, const struct arguments *in);

/* The row for -h and --help, for help texts and completion. */
extern const struct option option_help;

enum { OPTION_TEXT_MAX = 160 };

/** option_spelling() - "-w, --workdir DIR" into @buf; without a letter "    --pids N" */
void option_spelling(const struct option *o, char *buf, size_t size);

/**
 * option_limits() - what the table says beside the help: "1 to 4096; default 512; may be repeated"
 * @buf: empty if there is nothing to say
 */
void option_limits(const struct option *o, char *buf, size_t size);

/** option_takes_file() - whether completion should offer file names for the argument */
static inline bool option_takes_file(const struct option *o)
{
    return o->kind == OPTION_TEXT || o->kind == OPTION_LIST;
}
