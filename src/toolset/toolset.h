/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a toolset share. Calls wait in a row, and the first of them runs; it is made of
 * operations of libatoll, one after another, each of which sets off the call's timer when it is
 * done. The sandbox belongs to the toolset and not to the call that needed it first, so that a call
 * may be given up at any moment.
 *
 *     call.c           the row: begin, end, answers and errors
 *     opening.c        a standing sandbox: reached, attached to, asked what it is
 *     provision.c      the sandbox: making it, its life, losing it
 *     run_command.c …  one file for each tool
 *     processes.c      what start_process has started
 *     close.c          exports, removal, the end
 *     release.c        giving the lease of a standing sandbox back
 *
 * Every text that leaves towards a model or in an error goes through the mask first.
 */
#pragma once

#include <jansson.h>

#include "atoll_toolset.h"
#include "api/api.h"
#include "core/policy.h"
#include "core/sandbox_id.h"
#include "toolset/news.h"
#include "core/mask.h"
#include "toolset/shown.h"
#include "toolset/tools.h"
#include "toolset/window.h"

enum toolset_state {
    TOOLSET_CLOSED,
    TOOLSET_OPENING, /* a standing sandbox is being reached */
    TOOLSET_OPEN,
    TOOLSET_CLOSING,
};

struct tool_call {
    struct atoll_op op;
    struct atoll_toolset *t; /* NULL: it is done */
    struct tool_call *next;  /* of those that wait */
    enum tool_id tool;
    struct tool_arguments arguments;
    char *refused; /* why they cannot be used, masked; NULL: they can */
    bool turned;   /* the loop came round since it is the first: it may begin */
    bool begun;
    bool again; /* it was begun once before, on a connection that turned out to be dead */

    struct atoll_op *inner;            /* what is awaited; owned */
    struct loop_timer step;            /* set off when that is done … */
    void (*then)(struct tool_call *c); /* … or by one who waits for something else */
    struct atoll_op *kept;             /* of an earlier step; owned */
    void (*checked)(struct tool_call *c, bool lost);

    /* run_command */
    double asked_us;     /* that it was to have at most */
    uint64_t timeout_us; /* that applies */
    uint64_t began_us;   /* CLOCK_MONOTONIC; 0: no command of it runs */
    struct news *news;   /* that are kept for who follows it; NULL: nobody; owned */
    char *told;          /* the last of them that were handed out; owned */

    /* read_file */
    struct window *window;
    int fd; /* what is being read; owned; -EBADF */
    struct loop_source source;
    uint8_t *piece;
    uint64_t left; /* bytes that are still to be read */
    bool whole;    /* neither offset nor limit were given */

    void *state; /* of any tool: what its action keeps; freed by that */

    struct atoll_tool_answer answer;
    json_t *structured;        /* of it, an object in the making: call_fact(); owned */
    bool facts_lost;           /* there was no memory for one of them */
    char *text, *facts;        /* of it: text and structured; owned */
    void *bytes;               /* of it; owned */
    char *problem;             /* of exit; owned */
    struct atoll_op *exported; /* publish_exports: its results; owned */
    struct atoll_exit exit;
};

struct toolset_tool {
    bool given; /* the toolset has it */
    struct atoll_tool told;
    char name[TOOL_NAME_BYTES];
    char *description, *schema; /* owned */
};

struct atoll_toolset {
    struct atoll *a;
    struct atoll_toolset *beside; /* a ring of all that one agent has */
    struct atoll_spec spec;
    char *attach_to; /* the sandbox that is used; NULL: its own */
    char *holder;    /* as atoll_toolset_options.holder; NULL: the owner */
    uint64_t keep_us;
    uint32_t lease;  /* as atoll_toolset_options.lease */
    bool attached;   /* this run has taken a lease, and gives it back */
    bool stays_held; /* … and has no handle any more, while the holder may stand in the tags */
    uint32_t generation; /* by which the sandbox in use is acted on; 0: none, or tags */
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    char *id;
    struct mask *mask;
    enum toolset_state state;
    struct toolset_tool tools[TOOL__MAX];
    bool answers_bytes;           /* as atoll_toolset_options.bytes */
    unsigned failures[TOOL__MAX]; /* in a row */
    uint64_t output_bytes;        /* of commands, shown in this run */

    struct atoll_sandbox *sb; /* that is in use; owned */
    struct atoll_op *making;  /* an own one on its way */
    struct loop_timer made;
    uint64_t life_us;            /* of the sandbox; 0: not known, or without end */
    uint64_t ends_us;            /* CLOCK_MONOTONIC; CLOCK_NEVER */
    bool replaced;               /* it was lost, and no answer has told of that yet */
    struct error over;           /* why no call can go on; code 0: calls can */
    bool spent;                  /* since the sandbox has cost all that it may */
    struct processes *processes; /* of the sandbox in use; NULL: none; owned */

    struct tool_call *calls, **last; /* in the order in which they were started */
    struct atoll_op *opening, *closing;
};

/* --- toolset.c --- */

/** toolset_holder() - who holds a sandbox that is attached to; "" where nobody says whom for */
const char *toolset_holder(const struct atoll_toolset *t);

/** toolset_prefix() - of the tools' names; NULL: none */
const char *toolset_prefix(const struct atoll_toolset *t);

/**
 * toolset_describe() - make the texts of the tools anew
 * @policy:      of a standing sandbox that was asked; NULL: not known
 * @known:       whether it was asked
 * @remaining_s: as in struct describe_input
 * @endless:     as lifetime_none there
 *
 * Return: 0, or -ENOMEM with the texts as they were.
 */
int toolset_describe(struct atoll_toolset *t, bool known, const struct policy *policy,
                     int64_t remaining_s, bool endless);

/** toolset_add_secret() - mask it, as it is and as errors show it; too short is no error */
int toolset_add_secret(struct atoll_toolset *t, const void *secret, size_t len);

/** toolset_masked() - a masked copy of a whole text, owned by the caller; NULL without memory */
char *toolset_masked(const struct atoll_toolset *t, const char *text, size_t len, size_t *ret_len);

/** toolset_mask_error() - the same in place, in every part of @err */
void toolset_mask_error(const struct atoll_toolset *t, struct error *err);

/** toolset_take_error() - masked and with class @cls, from how an operation failed */
void toolset_take_error(const struct atoll_toolset *t, const struct atoll_error *from,
                        enum error_class cls, struct error *ret);

/* --- opening.c --- */

/** opening_note() - as atoll_toolset_note() for an open; NULL for any other operation */
const char *opening_note(const struct atoll_op *op, size_t i);

/* --- provision.c --- */

/** provision_look() - notice that the sandbox has ended, or is held by another: it is forgotten, or
 *  t->over is set */
void provision_look(struct atoll_toolset *t);

/** provision_make() - begin to make one, unless that is under way; calls_advance() follows */
void provision_make(struct atoll_toolset *t);

/** provision_lost() - the sandbox in use is gone, or of no use any more */
void provision_lost(struct atoll_toolset *t);

/**
 * provision_renew() - let calls go on after the end of an own sandbox's life, with another one
 *
 * Not after one that has cost all that it may: the next would cost as much once more.
 * Return: whether that was what kept them from it.
 */
bool provision_renew(struct atoll_toolset *t);

/** provision_drop() - let the handle go; an own sandbox ends, and nothing waits for that */
void provision_drop(struct atoll_toolset *t);

/** provision_life() - so much is left of its life; UINT64_MAX: nothing new is known */
void provision_life(struct atoll_toolset *t, uint64_t left_us);

/** provision_hear() - the same from what the sandbox tells of itself; returns what is left */
uint64_t provision_hear(struct atoll_toolset *t, const struct atoll_info *info);

/** provision_fenced() - whether the lease that the run acts by is over, and the sandbox stands */
bool provision_fenced(const struct atoll_toolset *t);

/** provision_little_left() - whether so little of its life is left that the model has to know */
bool provision_little_left(const struct atoll_toolset *t);

/** provision_left_us() - of the sandbox's life; UINT64_MAX: no end is known */
uint64_t provision_left_us(const struct atoll_toolset *t);

/** provision_stop() - give up opening and making, at once; what is made by then is removed */
void provision_stop(struct atoll_toolset *t);

/* --- call.c --- */

/** calls_advance() - begin the first call if it waits for nothing more */
void calls_advance(struct atoll_toolset *t);

/** calls_fail() - end all of them with @err */
void calls_fail(struct atoll_toolset *t, const struct error *err);

/**
 * call_await() - go on in @then when @op is done
 * @op: taken; NULL: there was no memory for it, and the call fails
 */
void call_await(struct tool_call *c, struct atoll_op *op, void (*then)(struct tool_call *c));

/** call_soon() - go on in @then when the loop comes round */
void call_soon(struct tool_call *c, void (*then)(struct tool_call *c));

/** call_follow() - the command that is awaited has begun: what it writes is news for who follows */
void call_follow(struct tool_call *c);

/**
 * call_check() - ask whether the sandbox still stands, then go on in @checked
 *
 * The operation that is done is kept. A sandbox that is ending counts as lost.
 */
void call_check(struct tool_call *c, void (*checked)(struct tool_call *c, bool lost));

/**
 * call_answer() - the call ended well
 * @text:  masked; taken; NULL: there was no memory for it, and the call fails
 * @retry: it says what to mend
 */
void call_answer(struct tool_call *c, char *text, size_t len, bool retry);

/** call_retry() - an answer that says what to mend; what is put into it is masked already */
__attribute__((format(printf, 2, 3))) void call_retry(struct tool_call *c, const char *fmt, ...);

/**
 * call_fact() - one member of the structured answer
 * @value: taken, masked; NULL: there was no memory for it, and the call will fail
 */
void call_fact(struct tool_call *c, const char *key, json_t *value);

/** call_string() - of a masked text, U+FFFD for what is not UTF-8; owned, NULL without memory */
json_t *call_string(const char *text, size_t len);

/** call_fail() - the run must end; @err is masked here */
void call_fail(struct tool_call *c, const struct error *err);

/**
 * call_inner_failed() - the operation that is done failed, and says nothing that the tool could
 *
 * Asks whether the sandbox stands where that is in doubt. Becomes an answer, if another call may do
 * better.
 */
void call_inner_failed(struct tool_call *c);

/** call_path() - of an argument, masked, in quotes; owned by the caller; NULL without memory */
char *call_path(const struct tool_call *c, const char *path, size_t len);

/** call_path_fits() - whether the first argument can be a file's path; otherwise it was answered */
bool call_path_fits(struct tool_call *c);

/** call_caps() - what an answer may hold */
struct truncate_caps call_caps(const struct tool_call *c);

/**
 * call_show_output() - truncate_output() of a command's output to what an answer may hold of it
 * @ret_ceiling: set to true if more would be shown but for the ceiling of the run's output
 *
 * What is shown counts towards that ceiling.
 */
int call_show_output(struct tool_call *c, const char *text, size_t len, char **ret, size_t *ret_len,
                     size_t *ret_from, bool *ret_ceiling);

enum { CALL_OUTPUT_NOTE_BYTES = 192 };

/**
 * call_output_note() - the words for an output that lost its beginning to the run's ceiling
 * @ceiling: as call_show_output() told
 *
 * Return: whether it did, or would by now.
 */
bool call_output_note(const struct tool_call *c, bool ceiling,
                      char ret[static CALL_OUTPUT_NOTE_BYTES]);

/* --- the tools --- */

/*
 * examine: whether the arguments are usable; otherwise it has answered. begin: the sandbox stands.
 * leave: free what such a call holds while it is under way, whatever it is in; may be NULL.
 */
struct tool_action {
    bool (*examine)(struct tool_call *c);
    void (*begin)(struct tool_call *c);
    void (*leave)(struct tool_call *c);
};

extern const struct tool_action run_command_action, read_file_action, write_file_action,
    list_directory_action, edit_file_action, search_files_action, start_process_action,
    process_output_action, stop_process_action, publish_exports_action;

/* --- run_command.c --- */

/** call_command_fits() - whether the first argument can be a command; otherwise it was answered */
bool call_command_fits(struct tool_call *c);

/** call_not_started() - the answer to a command, the operation that is done, that never ran */
void call_not_started(struct tool_call *c);

/**
 * skip_partial_line() - where the first whole line of a text begins that lost its beginning
 *
 * 0 when there is none: a single line that lost its beginning is all there is.
 */
size_t skip_partial_line(const char *text, size_t len);

/* --- processes.c --- */

/** processes_end() - the sandbox in use goes: what was started in it is forgotten */
void processes_end(struct atoll_toolset *t);

/**
 * processes_take() - end one that runs, and forget it
 *
 * Return: its operation, given up, which is done when nothing of it is left; owned by the caller.
 * NULL: none runs.
 */
struct atoll_op *processes_take(struct atoll_toolset *t);

/* --- opening.c --- */

/** opening_abandon() - end an open that is under way, without giving back what it has taken */
void opening_abandon(struct atoll_toolset *t);

/* --- close.c --- */

/** close_note() - as atoll_toolset_note() for a close; NULL for any other operation */
const char *close_note(const struct atoll_op *op, size_t i);

/** close_opened() - the open, which the close has given up, is over */
void close_opened(struct atoll_toolset *t);

/** close_continue() - creation, which the close has waited for, is over */
void close_continue(struct atoll_toolset *t);

/** close_abandon() - the toolset goes: the close is cancelled */
void close_abandon(struct atoll_toolset *t);
