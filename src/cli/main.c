/* SPDX-License-Identifier: Apache-2.0 */
/* main: selects a command, calls it, reports. The only place that prints errors. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/print.h"
#include "base/guards.h"

/*
 * A closed standard stream would become the next file that is opened, and output would end in it.
 * The stand-in is open the wrong way round, so that using it fails as using a closed one does. It
 * must survive exec, as a standard stream does.
 */
static int streams_open(struct error *err)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != fd ||
            fcntl(fd, F_SETFD, 0) < 0)
            return error_set(err, ERROR_TERMINAL, EBADF, "cannot open /dev/null");
    }
    return 0;
}

static int log_level(enum log_level *ret, struct error *err)
{
    const char *value = getenv("ATOLL_LOG");

    if (!value || value[0] == '\0' || log_level_parse(value, ret) == 0)
        return 0;
    error_set(err, ERROR_USAGE, EINVAL, "ATOLL_LOG is \"%.80s\", which is no level", value);
    return error_remedy(err, "Set it to error, warning, info or debug");
}

/* Options before the command; @io is left with the command and its arguments. */
static int run_program(struct cli *cli, struct arguments *io, bool *ret_done, struct error *err)
{
    struct program_args args;
    int r;

    *ret_done = true;
    if (options_want_help(program_options, N_PROGRAM_OPTIONS, io)) {
        help_program(cli->out, cli->commands);
        return CLI_EXIT_OK;
    }
    options_defaults(program_options, N_PROGRAM_OPTIONS, &args);
    r = options_parse(program_options, N_PROGRAM_OPTIONS, &args, io, err);
    if (r < 0)
        return r;
    if (args.version) {
        fprintf(cli->out, "atoll %s\n", program_version());
        return CLI_EXIT_OK;
    }
    if (io->n == 0) {
        help_program(cli->err, cli->commands);
        return error_set(err, ERROR_USAGE, EINVAL, "no command was given");
    }
    *ret_done = false;
    return 0;
}

static int run_command(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments in;
    const struct command *c;
    int words, r;

    r = command_select(cli->commands, argc, argv, &c, &words, err);
    if (r < 0)
        return r;
    argv += words - 1;
    argc -= words - 1;
    in = (struct arguments){.v = argv + 1, .n = argc - 1, .ends_at = c->ends_at};
    if (options_want_help(c->options, c->n_options, &in)) {
        help_command(cli->out, c);
        return CLI_EXIT_OK;
    }
    r = log_level(&cli->log.level, err);
    if (r < 0)
        return r;
    cli->verbose = cli->log.level >= LOG_LEVEL_INFO;
    return c->run(cli, argc, argv, err);
}

static int run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments io = {.v = argv + 1, .n = argc - 1, .ends_at = 1};
    bool done;
    int r;

    r = streams_open(err);
    if (r < 0)
        return r;
    if (argc < 1)
        return error_set(err, ERROR_USAGE, EINVAL, "started without a name");
    cli->colour = print_colour_wanted(cli->out);
    r = run_program(cli, &io, &done, err);
    return r < 0 || done ? r : run_command(cli, io.n, io.v, err);
}

/* One line on standard error, and the exit status. */
static int finish(struct cli *cli, int status, struct error *err)
{
    char text[sizeof err->context + sizeof err->message + sizeof err->remedy + 8];

    if (status >= 0) {
        *err = (struct error)ERROR_INIT;
        if (print_flush(cli->out, "standard output", err) == 0)
            return status;
        status = -err->code;
    }
    (void)fflush(cli->out); /* what was printed before the error also comes before it */
    if (err->code == 0)
        error_set(err, ERROR_TERMINAL, -status, "%s", strerror(-status));
    error_format(err, text, sizeof text);
    fprintf(cli->err, "atoll: %s\n", text);
    return CLI_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    struct cli cli = {.out = stdout,
                      .err = stderr,
                      .commands = command_table,
                      .log = {.level = LOG_LEVEL_WARNING, .sink = log_to_stderr}};
    struct error err = ERROR_INIT;

    return finish(&cli, run(&cli, argc, argv, &err), &err);
}
