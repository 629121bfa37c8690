/* SPDX-License-Identifier: Apache-2.0 */
/* atoll stats: what sandboxes use, once or as it changes. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/handle.h"
#include "cli/print.h"
#include "cli/stats.h"
#include "cli/terminal.h"
#include "base/guards.h"

struct stats_args {
    bool once, no_stream, json;
};

static const struct option stats_options[] = {
    {.name = "once",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct stats_args, once),
     .help = "print the table once, on a terminal too"},
    {.name = "no-stream",
     .kind = OPTION_FLAG,
     .offset = offsetof(struct stats_args, no_stream),
     .hidden = true,
     .help = "the same as --once"},
    OPTION_JSON(offsetof(struct stats_args, json)),
};

enum { PERIOD_US = 1000000, KEYS_BYTES = 64, CTRL_C = 3 };

/* Another screen, without a cursor: what stood on this one is there again afterwards. These are
 * sequences of xterm that terminals of today know (its ctlseqs document). */
#define SCREEN_BEGIN "\033[?1049h\033[?25l\033[2J"
#define SCREEN_END   "\033[?25h\033[?1049l"
#define SCREEN_HOME  "\033[H"
#define SCREEN_LINE  "\033[K\r\n" /* clears what an earlier, longer line has left */
#define SCREEN_REST  "\033[J"

static bool all_gone(const struct stats *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].answer != STATS_GONE)
            return false;
    return s->names != NULL;
}

static int draw(struct cli *cli, const struct terminal *t, const struct stats *s, struct error *err)
{
    uint16_t rows, columns;

    terminal_size(t, &rows, &columns);
    fputs(SCREEN_HOME, cli->out);
    stats_print(cli->out, s, columns, rows > 2 ? rows - 1u : 2, SCREEN_LINE);
    fputs(SCREEN_REST, cli->out);
    return print_flush(cli->out, "standard output", err);
}

/* Until something happens. Return: 1 when a key says that it is to end, 0, or a negative errno with
 * an error. */
static int wait_for_key(struct handle *h, uint64_t until, bool *io_keys, struct error *err)
{
    struct pollfd input = {.fd = *io_keys ? STDIN_FILENO : -1, .events = POLLIN};
    char keys[KEYS_BYTES];
    int r = handle_poll(h, &input, 1, until, err);

    if (r < 0 || input.revents == 0)
        return r;
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    for (ssize_t i = 0; i < n; i++)
        if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == CTRL_C)
            return 1;
    if (n <= 0)
        *io_keys = false;
    return 0;
}

/* Another turn, after a pause, with an eye on the keys; as wait_for_key(). */
static int read_again(struct stats *s, bool *io_keys, struct error *err)
{
    uint64_t until = clock_after_us(PERIOD_US);
    int r = 0;

    while (r == 0 && clock_now_us() < until)
        r = wait_for_key(s->h, until, io_keys, err);
    if (r == 0)
        r = stats_turn(s, false, err);
    while (r == 0) {
        r = stats_step(s, &until, err);
        if (r != 0)
            return r < 0 ? r : 0;
        r = wait_for_key(s->h, until, io_keys, err);
    }
    return r;
}

static int show_on(struct cli *cli, struct terminal *t, struct stats *s, struct error *err)
{
    bool keys = isatty(STDIN_FILENO);
    int r = 0;

    fputs(SCREEN_BEGIN, cli->out);
    while (r == 0) {
        r = draw(cli, t, s, err);
        if (r == 0)
            r = all_gone(s) ? 1 : read_again(s, &keys, err);
    }
    fputs(SCREEN_END, cli->out);
    return r > 0 ? 0 : r;
}

/* What was asked for wrongly is said before another screen hides it. */
static int show_live(struct cli *cli, struct stats *s, struct error *err)
{
    struct terminal t;
    int r = stats_read(s, true, err);

    terminal_find(&t);
    if (r == 0)
        r = handle_catch_signals(s->h, err);
    if (r == 0 && (r = terminal_raw(&t, true)) < 0)
        (void)error_set(err, ERROR_TERMINAL, -r, "the terminal cannot be set: %s", strerror(-r));
    if (r == 0)
        r = show_on(cli, &t, s, err);
    (void)fflush(cli->out);
    terminal_restore(&t);
    return handle_status(s->h, r, err);
}

/* Of those that were named, the first one that gave no answer. */
static int judge(const struct stats *s, struct error *err)
{
    for (size_t i = 0; s->names && i < s->n; i++)
        if (s->rows[i].answer == STATS_SILENT) {
            (void)error_set(err, ERROR_RECOVERABLE, ETIMEDOUT, "sandbox %s gave no answer",
                            s->rows[i].id);
            return error_remedy(err, "Try again; look whether its keeper was stopped, or this host "
                                     "has too much to do");
        }
    return 0;
}

static int show_once(struct cli *cli, struct stats *s, bool json, struct error *err)
{
    int r = stats_read(s, true, err);

    if (r == 0 && json)
        r = print_json(cli->out, stats_json(s), err);
    else if (r == 0)
        stats_print(cli->out, s, 0, 0, "\n");
    return r < 0 ? r : judge(s, err);
}

static int stats_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct stats_args args;
    struct arguments operands;
    _cleanup_(handle_done) struct handle h = HANDLE_INIT;
    struct stats s = {.h = &h};
    int r = command_parse(&cmd_stats, argc, argv, &args, &operands, err);

    if (r == 0)
        r = handle_begin(&h, err);
    if (r < 0)
        return r;
    if (operands.n > 0)
        s.names = operands.v;
    if (args.once || args.no_stream || args.json || !isatty(fileno(cli->out)))
        r = show_once(cli, &s, args.json, err);
    else
        r = show_live(cli, &s, err);
    stats_done(&s);
    return r;
}

static const struct command_example stats_examples[] = {
    {"atoll stats", "watch what all sandboxes use; q ends it"},
    {"atoll stats --json box", "keep the numbers of one"},
};

const struct command cmd_stats = {
    .name = "stats",
    .summary = "show what sandboxes use: processor time, memory, disk, network, cost",
    .usage = "[ID]... [OPTION]...",
    .description =
        "Shows a line for each sandbox named, or for all that are held on this host: seconds of "
        "processor time, memory now, at its peak and at most, bytes written to its disk, "
        "processes, bytes that went out and came in, what it has cost by the prices of its spec, "
        "and how long it still lives. A \"-\" stands for what is not measured or has no limit. All "
        "are asked side by side. One that does not answer within 2 seconds, or 30 of another "
        "backend, has \"no answer\" in its line; if it was named, the status is 125.\n\n"
        "On a terminal the table is drawn anew each second until q or Ctrl-C is pressed, or all "
        "that were named are gone.",
    .options = stats_options,
    .n_options = ARRAY_SIZE(stats_options),
    .examples = stats_examples,
    .n_examples = ARRAY_SIZE(stats_examples),
    .run = stats_run,
};
