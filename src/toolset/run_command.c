/* SPDX-License-Identifier: Apache-2.0 */
/* The tool run_command. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/clock.h"
#include "core/outcome.h"
#include "toolset/refusals.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "toolset/truncate.h"
#include "base/guards.h"

enum { ARGUMENT_COMMAND, ARGUMENT_TIMEOUT };

/* A command must be over before its sandbox is, or what it wrote would go with that. */
#define MARGIN_US UINT64_C(200000)
#define SECOND_US UINT64_C(1000000)

/* --- before --- */

static const char *name_of(const struct tool_call *c, enum tool_id tool)
{
    return c->t->tools[tool].name;
}

static void refuse_long(struct tool_call *c, size_t len)
{
    char size[SHOWN_SIZE_BYTES], limit[SHOWN_SIZE_BYTES];

    shown_size(len, size);
    shown_size(EXEC_STRING_BYTES_MAX, limit);
    call_retry(c, TEXT_COMMAND_LONG, size, limit, name_of(c, TOOL_WRITE_FILE));
}

static void refuse_timeout(struct tool_call *c, double seconds)
{
    char asked[SHOWN_NUMBER_BYTES], preset[SHOWN_NUMBER_BYTES];

    shown_number(seconds, asked);
    shown_number((double)c->t->spec.spec.toolset.default_command_timeout_us / SECOND_US, preset);
    call_retry(c, TEXT_TIMEOUT_REFUSED, asked, preset);
}

static void choose_timeout(struct tool_call *c, const struct tool_argument *asked)
{
    const struct toolset_spec *s = &c->t->spec.spec.toolset;
    double us = asked->number * SECOND_US;

    c->asked_us = asked->given ? us : (double)s->default_command_timeout_us;
    if (!asked->given)
        c->timeout_us = s->default_command_timeout_us;
    else if (us >= (double)s->max_command_timeout_us)
        c->timeout_us = s->max_command_timeout_us;
    else
        c->timeout_us = us < 1 ? 1 : (uint64_t)us;
}

bool call_command_fits(struct tool_call *c)
{
    const struct tool_argument *command = &c->arguments.items[ARGUMENT_COMMAND];

    if (command->len == 0)
        call_retry(c, "%s", TEXT_COMMAND_EMPTY);
    else if (memchr(command->text, '\0', command->len))
        call_retry(c, "%s", TEXT_COMMAND_NUL);
    else if (command->len > EXEC_STRING_BYTES_MAX) /* execve(2), MAX_ARG_STRLEN */
        refuse_long(c, command->len);
    else
        return true;
    return false;
}

static bool examine(struct tool_call *c)
{
    const struct tool_argument *timeout = &c->arguments.items[ARGUMENT_TIMEOUT];

    if (!call_command_fits(c))
        return false;
    if (timeout->given && !(isfinite(timeout->number) && timeout->number > 0)) {
        refuse_timeout(c, timeout->number);
    } else {
        choose_timeout(c, timeout);
        return true;
    }
    return false;
}

/* --- the answer --- */

size_t skip_partial_line(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && text[i] != '\n' && text[i] != '\r')
        i++;
    if (i + 1 < len && text[i] == '\r' && text[i + 1] == '\n')
        i++;
    return i + 1 < len ? i + 1 : 0;
}

/* What a model is shown of a stream. */
struct shown_output {
    char *text; /* masked, decoded, cut; owned; NULL: the command wrote nothing */
    size_t len;
    uint64_t dropped; /* bytes that the command wrote in front of it */
    bool ceiling;     /* some of these are for the ceiling of the run's output */
    bool replaced;    /* U+FFFD stands in it for bytes that are no UTF-8 */
};

/*
 * How many of the command's bytes lie in front of byte @at of what became of them. Masking and
 * decoding change bytes and leave line ends, so whole lines are counted exactly; within a line
 * whose beginning is cut the bytes are those of the text, and no more than the line had.
 */
static size_t written_before(const char *written, size_t len, const char *text, size_t at)
{
    size_t line = 0, passed = 0, rest;
    const char *lf;

    for (size_t i = 0; i < at; i++) {
        if (text[i] != '\n')
            continue;
        line = i + 1;
        lf = memchr(written + passed, '\n', len - passed);
        passed = lf ? (size_t)(lf - written) + 1 : len;
    }
    lf = memchr(written + passed, '\n', len - passed);
    rest = (lf ? (size_t)(lf - written) : len) - passed;
    return passed + (at - line < rest ? at - line : rest);
}

/* Return: 0, with what is in @ret the caller's in any case; or -ENOMEM. */
static int show_stream(struct tool_call *c, int stream, struct shown_output *ret)
{
    _cleanup_free_ char *masked = NULL, *text = NULL;
    uint64_t dropped = exec_dropped(c->inner, stream);
    size_t len = 0, plain = 0, size = 0, skipped = 0, from;
    const char *bytes = atoll_op_output(c->inner, stream, &size);

    if (size == 0)
        return 0;
    if (mask_text(c->t->mask, bytes, size, dropped > 0 ? MASK_CUT_START : 0, &masked, &plain) < 0 ||
        shown_utf8(masked, plain, &text, &len) < 0)
        return -ENOMEM;
    if (dropped > 0)
        skipped = skip_partial_line(text, len);
    if (call_show_output(c, text + skipped, len - skipped, &ret->text, &ret->len, &from,
                         &ret->ceiling) < 0)
        return -ENOMEM;
    ret->replaced = !text_is_utf8(masked, plain) &&
                    memmem(ret->text, ret->len, SHOWN_REPLACEMENT, strlen(SHOWN_REPLACEMENT));
    ret->dropped = dropped + written_before(bytes, size, text, skipped + from);
    return 0;
}

/* One stream below its label, after what stands in @f already. */
static void put_stream(const struct shown_output *s, const char *label, bool *first, FILE *f)
{
    if (!s->text)
        return;
    (void)fprintf(f, "%s%s\n", *first ? "" : "\n", label);
    if (s->dropped > 0)
        (void)fprintf(f, "%s%s", TEXT_EARLIER_TRUNCATED, s->len > 0 ? "\n" : "");
    (void)fwrite(s->text, 1, s->len, f);
    *first = false;
}

static void add_note(FILE *f, bool *first, const char *note)
{
    (void)fprintf(f, "%s%s", *first ? "\n" : " ", note);
    *first = false;
}

/* What it could have, which may be less than was sent: its sandbox may have had less left. */
static uint64_t applied_us(const struct tool_call *c)
{
    const struct exit_report *x = exec_report(c->inner);

    return x && x->timeout_us > 0 ? x->timeout_us : c->timeout_us;
}

static void show_timeout(const struct tool_call *c, FILE *f, bool *first)
{
    char note[160], seconds[SHOWN_NUMBER_BYTES];
    uint64_t us = applied_us(c);

    shown_number((double)us / SECOND_US, seconds);
    (void)snprintf(note, sizeof note, TEXT_NOTE_TIMED_OUT, seconds);
    add_note(f, first, note);
    if ((double)us >= c->asked_us)
        return;
    shown_number(c->asked_us / SECOND_US, seconds);
    (void)snprintf(note, sizeof note, TEXT_NOTE_TIMED_OUT_SHORT, seconds);
    add_note(f, first, note);
}

/* How it ended, unless that was well. */
static void show_end(const struct tool_call *c, FILE *f, bool *first)
{
    const struct exit_report *x = exec_report(c->inner);
    char note[128];

    if (!x || x->reason == REASON_ERROR)
        return;
    if (x->reason == REASON_TIMEOUT) {
        show_timeout(c, f, first);
        return;
    }
    if (outcome_status(x) != 0) {
        (void)snprintf(note, sizeof note, TEXT_NOTE_EXIT, outcome_status(x));
        add_note(f, first, note);
    }
    if (x->reason == REASON_OOM)
        add_note(f, first, TEXT_NOTE_MEMORY);
    else if (x->reason == REASON_KILLED)
        add_note(f, first, TEXT_NOTE_KILLED);
}

/* What ended it, unless that was no end of its own. */
static void add_end(struct tool_call *c)
{
    const struct exit_report *x = exec_report(c->inner);
    const uint64_t applied = applied_us(c), ms = applied / 1000;

    call_fact(c, "timed_out", json_boolean(x && x->reason == REASON_TIMEOUT));
    if ((double)applied < c->asked_us)
        call_fact(c, "applied_timeout_seconds", json_real((double)ms / 1000));
    if (!x || (x->reason != REASON_EXITED && x->reason != REASON_OOM))
        return;
    if (x->signal > 0)
        call_fact(c, "signal", json_integer(x->signal));
    else
        call_fact(c, "exit_code", json_integer(x->exit_code));
}

static void add_facts(struct tool_call *c, const struct shown_output *out,
                      const struct shown_output *err)
{
    add_end(c);
    call_fact(c, "stdout", json_stringn(out->text ? out->text : "", out->len));
    call_fact(c, "stderr", json_stringn(err->text ? err->text : "", err->len));
    if (out->replaced || err->replaced)
        call_fact(c, "bytes_replaced", json_true());
    call_fact(c, "truncated", json_boolean(out->dropped > 0 || err->dropped > 0));
    call_fact(c, "stdout_dropped_bytes", json_integer((json_int_t)out->dropped));
    call_fact(c, "stderr_dropped_bytes", json_integer((json_int_t)err->dropped));
}

/* What its attempts to get out came to, where the backend tells. 0 or -ENOMEM */
static int show_refusals(struct tool_call *c, FILE *f, bool *first)
{
    const struct atoll_exit *x = atoll_op_exit(c->inner);
    _cleanup_free_ char *note = NULL;

    if (refusals_note(c->t, x, &note) < 0)
        return -ENOMEM;
    if (!note)
        return 0;
    add_note(f, first, note);
    call_fact(c, "denied", refusals_json(c->t, x));
    return 0;
}

static int compose(struct tool_call *c, const struct shown_output *out,
                   const struct shown_output *err, FILE *f)
{
    bool first = true, first_note = true;
    char note[CALL_OUTPUT_NOTE_BYTES];

    put_stream(out, TEXT_STDOUT, &first, f);
    put_stream(err, TEXT_STDERR, &first, f);
    if (first)
        (void)fputs(TEXT_NO_OUTPUT, f);
    show_end(c, f, &first_note);
    if (show_refusals(c, f, &first_note) < 0)
        return -ENOMEM;
    if (exec_held(c->inner))
        add_note(f, &first_note, TEXT_NOTE_HELD);
    if ((out->dropped > 0 || err->dropped > 0) &&
        call_output_note(c, out->ceiling || err->ceiling, note))
        add_note(f, &first_note, note);
    if (c->t->replaced) {
        add_note(f, &first_note, TEXT_NOTE_REPLACED);
        c->t->replaced = false;
        c->answer.replaced = true;
    }
    return 0;
}

static void keep_exit(struct tool_call *c)
{
    const struct atoll_exit *x = atoll_op_exit(c->inner);

    if (!x)
        return;
    c->exit = *x;
    c->exit.denials = NULL; /* they are masked in what is structured */
    c->exit.n_denials = 0;
    if (x->problem)
        c->exit.problem = c->problem = toolset_masked(c->t, x->problem, strlen(x->problem), NULL);
    c->answer.exit = &c->exit;
}

static void answer(struct tool_call *c)
{
    struct shown_output out = {0}, err = {0};
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    int r = f ? show_stream(c, 1, &out) : -ENOMEM;

    if (r == 0)
        r = show_stream(c, 2, &err);
    if (r == 0)
        r = compose(c, &out, &err, f);
    if (r == 0)
        add_facts(c, &out, &err);
    if (f && fclose(f) != 0)
        r = -ENOMEM;
    if (r < 0)
        free(TAKE_PTR(text));
    free(out.text);
    free(err.text);
    keep_exit(c);
    call_answer(c, text, len, false);
}

void call_not_started(struct tool_call *c)
{
    const char *problem = atoll_op_exit(c->inner)->problem;
    _cleanup_free_ char *masked =
        toolset_masked(c->t, problem ? problem : "", problem ? strlen(problem) : 0, NULL);

    keep_exit(c);
    call_retry(c, TEXT_NOT_STARTED "%s", masked ? masked : "", ".");
}

/* Whether it came to an end of its own, so that the sandbox's end took nothing from it. */
static bool is_whole(const struct exit_report *x)
{
    return x && x->reason == REASON_EXITED && outcome_status(x) < OUTCOME_SIGNAL_BASE;
}

static void ended(struct tool_call *c, bool lost)
{
    const struct exit_report *x = exec_report(c->inner);

    if (lost)
        provision_lost(c->t);
    if (c->t->over.code != 0 && !is_whole(x))
        call_fail(c, &c->t->over);
    else if (!lost && !x)
        call_inner_failed(c);
    else if (!lost && x->start_stage != START_OK)
        call_not_started(c);
    else
        answer(c);
}

/* An end that is not the command's own may be that of its sandbox. */
static void done(struct tool_call *c)
{
    const struct exit_report *x = exec_report(c->inner);
    const struct atoll_error *e = atoll_op_error(c->inner);

    provision_life(c->t, atoll_op_left_us(c->inner));
    if (x && e) /* its output could not be kept */
        call_inner_failed(c);
    else if (x ? !is_whole(x) : e->cls == ATOLL_TERMINAL)
        call_check(c, ended);
    else
        ended(c, c->t->sb->session.state == SESSION_OVER || provision_fenced(c->t));
}

/* What is left of the sandbox's life is all that it can have, in whole seconds where there are
 * any. Return: false when nothing is left. */
static bool fit_life(struct tool_call *c)
{
    uint64_t left = provision_left_us(c->t);

    if (left == UINT64_MAX)
        return true;
    left = left > MARGIN_US ? left - MARGIN_US : 0;
    if (left >= c->timeout_us)
        return true;
    if (left >= SECOND_US)
        left -= left % SECOND_US;
    c->timeout_us = left < c->timeout_us ? left : c->timeout_us;
    return left > 0;
}

static void start(struct tool_call *c)
{
    const char *const argv[] = {"sh", "-c", c->arguments.items[ARGUMENT_COMMAND].text, NULL};
    struct atoll_exec x = {.argv = argv};

    if (!fit_life(c)) {
        call_retry(c, "%s", TEXT_LIFE_OVER);
        return;
    }
    x.timeout_us = c->timeout_us;
    /* A secret that the cut goes through is kept whole, so that it is recognised. */
    x.capture_max = c->t->spec.spec.toolset.max_output_bytes + mask_longest(c->t->mask);
    c->began_us = clock_now_us();
    call_await(c, atoll_exec(c->t->sb, &x), done);
    call_follow(c);
}

static void life_asked(struct tool_call *c)
{
    const struct atoll_info *info = atoll_op_info(c->inner, 0);

    if (info)
        (void)provision_hear(c->t, info);
    start(c);
}

/* Of a standing sandbox somebody may have prolonged the life. */
static void begin(struct tool_call *c)
{
    uint64_t left = provision_left_us(c->t);

    if (c->t->attach_to && left != UINT64_MAX && left < c->timeout_us + MARGIN_US)
        call_await(c, atoll_inspect(c->t->sb), life_asked);
    else
        start(c);
}

/* It may begin anew on another connection. */
static void leave(struct tool_call *c)
{
    c->began_us = 0;
}

const struct tool_action run_command_action = {.examine = examine, .begin = begin, .leave = leave};
