/* SPDX-License-Identifier: Apache-2.0 */
/* The tools start_process, process_output and stop_process. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/outcome.h"
#include "toolset/processes.h"
#include "toolset/refusals.h"
#include "toolset/texts.h"
#include "toolset/truncate.h"
#include "base/guards.h"

enum {
    ARGUMENT_COMMAND = 0,
    ARGUMENT_PROCESS = 0,
    ARGUMENT_WAIT = 1,
    PIECE_BYTES = 16 * 1024, /* that are read at once */
};

#define SECOND_US UINT64_C(1000000)
#define START_US  (60 * SECOND_US) /* in which a start has to be told */
#define GRACE_US  (2 * SECOND_US)  /* in which a process that is asked to end may do so */

/* --- start_process --- */

static bool examine_start(struct tool_call *c)
{
    size_t n = processes_running(c->t);
    _cleanup_free_ char *numbers = NULL;

    if (!call_command_fits(c))
        return false;
    if (n < PROCESSES_RUNNING_MAX)
        return true;
    numbers = processes_numbers(c->t, false);
    call_retry(c, TEXT_PROCESS_MANY, n, numbers ? numbers : "");
    return false;
}

static void answer_started(struct tool_call *c, uint32_t number)
{
    char *text = NULL;

    if (asprintf(&text, TEXT_PROCESS_STARTED, number) < 0)
        text = NULL;
    call_fact(c, "process", json_integer(number));
    call_answer(c, text, text ? strlen(text) : 0, false);
}

/* It runs, or is over already, or never ran. */
static void begun(struct tool_call *c)
{
    const struct exit_report *x = exec_report(c->inner);
    struct process *p = c->state;

    if (!c->inner->done && !exec_runs(c->inner)) {
        op_give_up(c->inner, ETIMEDOUT); /* and come back when that is done */
    } else if (c->inner->given_up || (c->inner->done && !x)) {
        call_inner_failed(c);
    } else if (x && x->start_stage != START_OK) {
        call_not_started(c);
    } else if (processes_add(p, c->inner) < 0) {
        call_answer(c, NULL, 0, false);
    } else {
        c->inner = NULL;
        c->state = NULL;
        answer_started(c, p->number);
    }
}

static void begin_start(struct tool_call *c)
{
    const char *const argv[] = {"sh", "-c", c->arguments.items[ARGUMENT_COMMAND].text, NULL};
    const struct atoll_exec x = {.argv = argv, .capture_max = PIECE_BYTES};
    struct process *p = process_new(c->t);
    struct atoll_op *op = p ? exec_told(c->t->sb, &x) : NULL;

    c->state = p;
    if (op) {
        process_follow(p, op);
        exec_await_start(op, &c->step);
        loop_at(&c->op.a->loop, &c->step, clock_after_us(START_US));
    }
    call_await(c, op, begun);
}

static void leave_start(struct tool_call *c)
{
    if (c->state && c->inner)
        process_follow(NULL, c->inner);
    process_free(c->state);
    c->state = NULL;
}

/* --- the process that is meant --- */

static struct process *meant(const struct tool_call *c)
{
    double number = c->arguments.items[ARGUMENT_PROCESS].number;

    return number >= 1 && number <= UINT32_MAX ? processes_find(c->t, (uint32_t)number) : NULL;
}

static void refuse_number(struct tool_call *c)
{
    _cleanup_free_ char *running = processes_numbers(c->t, false),
                        *ended = processes_numbers(c->t, true);
    double number = c->arguments.items[ARGUMENT_PROCESS].number;

    if (!running || !ended)
        call_answer(c, NULL, 0, true);
    else if (!running[0] && !ended[0])
        call_retry(c, TEXT_PROCESS_NONE, number);
    else
        call_retry(c, TEXT_PROCESS_NO_SUCH, number, running[0] ? running : TEXT_PROCESS_NOBODY,
                   ended[0] ? ended : TEXT_PROCESS_NOBODY);
}

static bool examine_stop(struct tool_call *c)
{
    if (meant(c))
        return true;
    refuse_number(c);
    return false;
}

static void leave_process(struct tool_call *c)
{
    struct process *p = meant(c);

    if (p)
        process_leave(p, c);
}

/* --- what it wrote, and whether it runs --- */

/* What is shown, below a line that tells of what is not. Return: 0 or -ENOMEM. */
static int show_output(struct tool_call *c, struct process *p, FILE *f)
{
    char note[CALL_OUTPUT_NOTE_BYTES];
    bool ceiling = false;
    _cleanup_free_ char *text = NULL, *shown = NULL;
    size_t len, skipped, from, shown_len;
    uint64_t dropped;

    if (news_take(p->news, &text, &len, &dropped) < 0)
        return -ENOMEM;
    skipped = dropped > 0 ? skip_partial_line(text, len) : 0;
    if (call_show_output(c, text + skipped, len - skipped, &shown, &shown_len, &from, &ceiling) < 0)
        return -ENOMEM;
    dropped += skipped + from;
    if (dropped > 0)
        (void)fprintf(f, "%s\n", TEXT_EARLIER_TRUNCATED);
    if (len == 0)
        (void)fputs(TEXT_NO_NEW_OUTPUT, f);
    (void)fwrite(shown, 1, shown_len, f);
    if (dropped > 0 && call_output_note(c, ceiling, note))
        (void)fprintf(f, "%s%s", shown_len > 0 ? "\n" : "", note);
    call_fact(c, "output", json_stringn(shown, shown_len));
    call_fact(c, "dropped_bytes", json_integer((json_int_t)dropped));
    return 0;
}

static void show_unknown_end(const struct tool_call *c, const struct process *p, bool lost, FILE *f)
{
    const struct atoll_error *e = atoll_op_error(p->op);
    const char *message = e ? e->message : "";
    _cleanup_free_ char *masked = toolset_masked(c->t, message, strlen(message), NULL);

    if (lost)
        (void)fputs(TEXT_PROCESS_VANISHED, f);
    else
        (void)fprintf(f, TEXT_PROCESS_UNKNOWN, masked ? masked : "");
}

static void show_end(struct tool_call *c, const struct process *p, bool lost, FILE *f)
{
    const struct exit_report *x = exec_report(p->op);

    if (!x || lost) {
        show_unknown_end(c, p, lost, f);
        return;
    }
    if (x->signal > 0) {
        (void)fprintf(f, TEXT_PROCESS_SIGNAL, x->signal);
        call_fact(c, "signal", json_integer(x->signal));
    } else {
        (void)fprintf(f, TEXT_NOTE_EXIT, outcome_status(x));
        call_fact(c, "exit_code", json_integer(outcome_status(x)));
    }
    if (x->reason == REASON_OOM)
        (void)fputs(" " TEXT_NOTE_MEMORY, f);
    else if (x->reason == REASON_KILLED && !p->stopped)
        (void)fputs(" " TEXT_NOTE_KILLED, f);
    if (exec_held(p->op))
        (void)fputs(" " TEXT_NOTE_HELD, f);
}

static int show_refusals(const struct tool_call *c, const struct process *p, FILE *f)
{
    _cleanup_free_ char *note = NULL;

    if (refusals_note(c->t, atoll_op_exit(p->op), &note) < 0)
        return -ENOMEM;
    if (note)
        (void)fprintf(f, " %s", note);
    return 0;
}

static int compose(struct tool_call *c, struct process *p, bool lost, FILE *f)
{
    if (show_output(c, p, f) < 0)
        return -ENOMEM;
    (void)fputc('\n', f);
    if (p->ended)
        show_end(c, p, lost, f);
    else
        (void)fputs(TEXT_PROCESS_RUNNING, f);
    if (p->ended && show_refusals(c, p, f) < 0)
        return -ENOMEM;
    call_fact(c, "process", json_integer(p->number));
    call_fact(c, "running", json_boolean(!p->ended));
    return 0;
}

/* @lost: its sandbox is gone, and it is forgotten by this. */
static void answer(struct tool_call *c, bool lost)
{
    struct process *p = meant(c);
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    int r = f ? compose(c, p, lost, f) : -ENOMEM;

    p->judged = p->ended;
    if (f && fclose(f) != 0)
        r = -ENOMEM;
    if (r < 0)
        free(TAKE_PTR(text));
    if (lost)
        provision_lost(c->t);
    if (c->t->over.code != 0) {
        free(text);
        call_fail(c, &c->t->over);
    } else {
        call_answer(c, text, len, false);
    }
}

/* An end that is not the process's own may be that of its sandbox. */
static void tell(struct tool_call *c, struct process *p)
{
    const struct exit_report *x = p->ended ? exec_report(p->op) : NULL;
    bool own = x && (x->reason == REASON_EXITED || x->reason == REASON_OOM);

    process_hold(p, c);
    if (p->ended && !own && !p->judged)
        call_check(c, answer);
    else
        answer(c, false);
}

/* --- process_output --- */

static bool examine_output(struct tool_call *c)
{
    const struct tool_argument *wait = &c->arguments.items[ARGUMENT_WAIT];
    char asked[SHOWN_NUMBER_BYTES];

    if (!examine_stop(c))
        return false;
    if (!wait->given || (isfinite(wait->number) && wait->number >= 0))
        return true;
    shown_number(wait->number, asked);
    call_retry(c, TEXT_WAIT_REFUSED, asked);
    return false;
}

/* No longer than a command could take, and the sandbox has. */
static uint64_t wait_us(const struct tool_call *c)
{
    const struct tool_argument *asked = &c->arguments.items[ARGUMENT_WAIT];
    uint64_t most = c->t->spec.spec.toolset.max_command_timeout_us;
    uint64_t left = provision_left_us(c->t);
    double us = asked->given ? asked->number * SECOND_US : 0;

    most = left < most ? left : most;
    return us >= (double)most ? most : (uint64_t)us;
}

static void looked(struct tool_call *c)
{
    tell(c, meant(c));
}

static void begin_output(struct tool_call *c)
{
    struct process *p = meant(c);
    uint64_t us = wait_us(c);

    if (us == 0 || p->ended || news_waiting(p->news) > 0) {
        tell(c, p);
        return;
    }
    c->then = looked;
    process_await(p, c, true, clock_after_us(us));
}

/* --- stop_process --- */

/* It has ended, or its time is over: then it is killed, and that is waited for. */
static void asked(struct tool_call *c)
{
    struct process *p = meant(c);

    if (p->ended) {
        tell(c, p);
        return;
    }
    process_await(p, c, false, CLOCK_NEVER);
    op_give_up(p->op, ECANCELED);
}

static void begin_stop(struct tool_call *c)
{
    struct process *p = meant(c);

    if (p->ended) {
        tell(c, p);
        return;
    }
    p->stopped = true;
    c->then = asked;
    process_await(p, c, false, clock_after_us(GRACE_US));
    (void)exec_stop(p->op, SIGTERM); /* where that fails the killing remains */
}

const struct tool_action start_process_action = {
    .examine = examine_start, .begin = begin_start, .leave = leave_start};
const struct tool_action process_output_action = {
    .examine = examine_output, .begin = begin_output, .leave = leave_process};
const struct tool_action stop_process_action = {
    .examine = examine_stop, .begin = begin_stop, .leave = leave_process};
