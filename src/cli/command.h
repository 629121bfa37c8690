/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of the program: one row of data that main, help, the man page and completion read, and
 * one function. A new command is a file cmd_NAME.c with a `const struct command cmd_NAME`, its
 * declaration below, and its row in commands.c.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/options.h"
#include "core/outcome.h"

/* What main returns, besides the status of a command that was run (core/outcome.h). */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILED = OUTCOME_FAILED, /* atoll itself could not do it, whatever the error's class */
};

struct command;

/* Made by main and passed down; there are no globals beside it. */
struct cli {
    FILE *out, *err;                       /* standard output and error, or a test's buffers */
    const struct command *const *commands; /* the table, ended by NULL */
    struct log log;                        /* to standard error, level from ATOLL_LOG */
    bool verbose; /* a command's -v; main sets it if the log has LOG_LEVEL_INFO */
    bool colour;  /* on @out */
};

struct command_example {
    const char *line; /* as typed */
    const char *text; /* what it does: a phrase without a full stop at its end */
};

struct command {
    const char *name;        /* one word, or two: "mcp config" belongs to "mcp" */
    const char *summary;     /* a phrase without a full stop at its end */
    const char *usage;       /* what follows "atoll NAME": "[OPTION]... [--] COMMAND [ARG]..." */
    const char *description; /* sentences; an empty line between paragraphs */
    const struct option *options;
    size_t n_options;
    unsigned ends_at;        /* as in struct arguments: 1 if the operands are a command to run */
    const char *exit_status; /* what follows "Exit status: "; NULL: 0, or 125 on failure */
    const struct command_example *examples;
    size_t n_examples;
    bool hidden; /* works, but is in no help, page or completion */

    /*
     * @argv[0] is the command's name, its last word, @argv[argc] is NULL. Help has been answered
     * already. May write to @cli->out without checking: main flushes it and reports a failed write.
     * Return: the exit status to use, 0 to 255, or a negative errno with @err set.
     */
    int (*run)(struct cli *cli, int argc, char **argv, struct error *err);
};

/**
 * command_parse() - defaults, then options of a command
 * @args: args struct of @c's table, not initialised; free it by options_done() on failure also
 * @ret:  the operands, on success only
 *
 * Return: as options_parse().
 */
int command_parse(const struct command *c, int argc, char **argv, void *args, struct arguments *ret,
                  struct error *err);

/** command_operands() - refuse (-EINVAL, usage) fewer than @min or more than @max operands */
int command_operands(const struct command *c, const struct arguments *operands, int min, int max,
                     struct error *err);

/**
 * command_find() - the command called @name, hidden ones included
 * @table: ended by NULL
 *
 * Return: 0; -EINVAL (usage), naming the nearest command.
 */
int command_find(const struct command *const *table, const char *name, const struct command **ret,
                 struct error *err);

/**
 * command_select() - the command that arguments name, by as many of its words as there are
 * @argv:     @argc of them, at least one
 * @ret_used: how many of them are its name
 *
 * Return: as command_find().
 */
int command_select(const struct command *const *table, int argc, char *const argv[],
                   const struct command **ret, int *ret_used, struct error *err);

/** command_second_word() - "config" of "mcp config", a view; NULL of a name with one word */
const char *command_second_word(const struct command *c);

/** command_is_below() - whether @c is "NAME something", where @of is NAME */
bool command_is_below(const struct command *c, const struct command *of);

/* Options before the command; --help is not among them, since every table has it. */
struct program_args {
    bool version;
};

enum { N_PROGRAM_OPTIONS = 1 };

extern const struct option program_options[N_PROGRAM_OPTIONS];

/** program_version() - "0.1.0"; static storage */
const char *program_version(void);

/** program_path() - the absolute path of the program that runs; 0, or a negative errno with an
 * error. For who starts it again, and may have no PATH. */
int program_path(char buf[PATH_MAX], struct error *err);

/* The table, ended by NULL, and what is in it. */
extern const struct command *const command_table[];

extern const struct command cmd_backends;
extern const struct command cmd_check;
extern const struct command cmd_cp;
extern const struct command cmd_create;
extern const struct command cmd_doctor;
extern const struct command cmd_events;
extern const struct command cmd_exec;
extern const struct command cmd_explain;
extern const struct command cmd_export;
extern const struct command cmd_extend;
extern const struct command cmd_gc;
extern const struct command cmd_help;
extern const struct command cmd_hold;
extern const struct command cmd_inspect;
extern const struct command cmd_keeper;
extern const struct command cmd_kill;
extern const struct command cmd_list;
extern const struct command cmd_ls;
extern const struct command cmd_mcp;
extern const struct command cmd_mcp_config;
extern const struct command cmd_policy;
extern const struct command cmd_ps;
extern const struct command cmd_read;
extern const struct command cmd_reference;
extern const struct command cmd_rm;
extern const struct command cmd_run;
extern const struct command cmd_stats;
extern const struct command cmd_tool;
extern const struct command cmd_version;
extern const struct command cmd_write;
