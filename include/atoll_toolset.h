/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The toolset: what an agent is given. Four tools that act in a sandbox, and those of toolset.tools
 * beside them, with texts, limits and classes of failure that let a model succeed; and at the end
 * of the run the files that were promised, published whole or not at all.
 *
 *     struct atoll_toolset *t;
 *     atoll_toolset_new(a, spec, NULL, &t, &err);
 *     atoll_wait(op = atoll_toolset_open(t), ATOLL_FOREVER);
 *     definitions = atoll_toolset_render(t, ATOLL_TOOLS_ANTHROPIC);      for the model's request
 *     op = atoll_tool_call(t, "run_command", "{\"command\":\"ls\"}", 16); once for each of its
 * calls if (atoll_wait(op, ATOLL_FOREVER) == 0) answer = atoll_op_answer(op); back to the model
 *     atoll_wait(op = atoll_toolset_close(t, true), ATOLL_FOREVER);      publishes, then removes
 *
 * What holds for all of libatoll (atoll.h) holds here. Beyond that:
 *
 * - The sandbox is the toolset's own, made by the first call and removed by the close, or one that
 *   stands already. That is either named by the caller (options.sandbox) and used as it is, or one
 *   that another task made for this one (toolset.attach_to): nobody else changes it from the open
 *   to the close. Calls run one after another in the order in which they were started, whatever
 *   the model asked for at once; so calls that arrive together share one creation.
 * - A call ends in one of three ways. It has an answer for the model: an ordinary one, also when a
 *   command failed, or one that says what to mend (atoll_tool_answer.retry). Or the operation
 *   failed: ATOLL_TERMINAL ends the run, ATOLL_USAGE is a mistake of the program's.
 * - What a model is shown holds no value of spec.env, no entry of toolset.mask and nothing that was
 *   given to atoll_toolset_mask(): '***' stands in the place of each, before anything is cut.
 *   Copies in another encoding are not recognised. Of a sandbox that stands, spec.env is what its
 *   backend tells of it: `local` does, a backend program need not. List secrets in toolset.mask
 *   there.
 */
#ifndef ATOLL_TOOLSET_H
#define ATOLL_TOOLSET_H

#include <atoll.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct atoll_toolset;

struct atoll_toolset_options {
    const char *sandbox; /* the id of one that stands, which is used and left as it is; NULL: its
                            own, or the spec's toolset.attach_to */
    const struct atoll_toolset *beside; /* another toolset of the same agent; NULL: none. Tools of
                                           both must differ in name */
    bool bytes; /* of a file that is no text read_file answers with its bytes; otherwise it shows
                   U+FFFD in their place */

    /* With the spec's toolset.attach_to, whose sandbox is held during each run (atoll_attach()).
     * The owner that is presented is toolset.owner. */
    const char *holder; /* who holds it: a task, without the number of its attempt, since a retry is
                           the same holder; NULL: the owner */
    uint64_t keep_us;   /* how long it is kept for that holder if this process dies or frees the
                           toolset without a close; 0: others may have it at once. A backend with
                           tags has no such time, and refuses one at the open: there a death, or
                           a free without a close, leaves the holder's name behind for good */
    uint32_t lease;     /* generation of a lease on the sandbox that this process acts by for its
                           holder: then nothing is attached or released; 0: none */
};

/**
 * atoll_toolset_new() - a toolset, closed
 * @spec:    copied: all sections of it; with a standing sandbox, toolset alone
 * @options: borrowed; NULL: none
 *
 * Touches nothing but memory: no sandbox, no destination, no credentials. Return: 0 with @ret owned
 * by the caller; -EINVAL with @err (ATOLL_USAGE) for settings that exclude each other and for a
 * tool that @options.beside has too; -ENOMEM.
 */
int atoll_toolset_new(struct atoll *a, const struct atoll_spec *spec,
                      const struct atoll_toolset_options *options, struct atoll_toolset **ret,
                      struct atoll_error *err);

/**
 * atoll_toolset_free() - free it; what is open is closed as after a failed run
 *
 * Operations on it that are under way are cancelled; it must not be used by any of them any more.
 * Before atoll_free(). NULL is harmless.
 */
void atoll_toolset_free(struct atoll_toolset *t);

/** atoll_toolset_id() - "sandbox-BACKEND" or "sandbox-BACKEND-PREFIX"; no handle is in it */
const char *atoll_toolset_id(const struct atoll_toolset *t);

/**
 * atoll_toolset_mask() - one more text that a model must not see
 * @secret: copied; any bytes
 *
 * Return: 0; -EINVAL below 4 bytes, which would be found everywhere; -ENOMEM.
 */
int atoll_toolset_mask(struct atoll_toolset *t, const void *secret, size_t len);

/* --- what a model is told --- */

struct atoll_tool {
    const char *name; /* with its prefix */
    const char *description;
    const char *schema;        /* of its arguments: JSON Schema, as JSON text */
    const char *output_schema; /* of atoll_tool_answer.structured: the same */
    const char *code_argument; /* the argument that holds code: "command"; NULL: none does */
    const char *code_language; /* of that: "shell" */
    bool sequential;           /* a barrier among the calls of one model turn; true for all */
    unsigned retries;          /* failing turns in a row after which the run should end: 2 */
};

/**
 * atoll_toolset_tool() - tool @i; NULL behind the last
 *
 * Always in the same order. From the open on the texts do not change until the close; before it, a
 * toolset on a standing sandbox can say only that there is one. They live as long as that state.
 */
const struct atoll_tool *atoll_toolset_tool(const struct atoll_toolset *t, size_t i);

enum atoll_tool_format {
    ATOLL_TOOLS_MCP = 0,       /* the `tools` of a tools/list result */
    ATOLL_TOOLS_ANTHROPIC = 1, /* the `tools` of a Messages request */
    ATOLL_TOOLS_OPENAI = 2,    /* the `tools` of a Chat Completions request */
};

/** atoll_toolset_render() - all tools as a JSON array; to be freed with free(). NULL: no memory */
char *atoll_toolset_render(const struct atoll_toolset *t, int format);

/* --- a run --- */

/**
 * atoll_toolset_open() - begin a run
 *
 * The destinations of exports are judged, a standing sandbox is reached, attached to if the spec
 * says so, and asked what it is. Nothing is created. One that was closed can be opened again. Fails
 * with ATOLL_USAGE when it is open, and with ATOLL_TERMINAL when the sandbox cannot be had,
 * whatever the reason. One that fails or is cancelled gives back what it has taken, and is done
 * when that is; freed earlier it does not. Results, also of one that failed: atoll_op_warning(),
 * atoll_toolset_note().
 */
struct atoll_op *atoll_toolset_open(struct atoll_toolset *t);

/**
 * atoll_tool_call() - one call of a model's
 * @name:      as in struct atoll_tool
 * @arguments: JSON text of @len bytes as the model gave it, copied; what does not fit the schema
 *             becomes an answer
 *
 * The first one makes the sandbox, and fails with ATOLL_TERMINAL when that fails; the next one
 * tries again. Cancelled, it kills its command. An unknown name is ATOLL_USAGE.
 */
struct atoll_op *atoll_tool_call(struct atoll_toolset *t, const char *name, const char *arguments,
                                 size_t len);

struct atoll_tool_answer {
    const char *text; /* UTF-8, NUL-terminated behind @len; may hold NULs */
    size_t len;
    bool retry;        /* the call failed and the model can mend it: MCP's isError, is_error */
    unsigned failures; /* calls of this tool in a row that failed so, this one included; 0: none */
    bool replaced;     /* the sandbox was lost; files of earlier calls are gone */
    const struct atoll_exit *exit; /* of a command that ran, without its denials, which are in
                                      structured; NULL otherwise */
    const char *structured; /* the same as a JSON object, as JSON text that keeps to the tool's
                               output_schema; NULL with retry */
    const void *bytes;      /* of a file that is no text, see atoll_toolset_options.bytes; NULL */
    size_t n_bytes;
    const char *type; /* of these: "image/png", "application/octet-stream" */
};

/** atoll_op_answer() - what a call that ended well has for the model; lives as long as @op */
const struct atoll_tool_answer *atoll_op_answer(const struct atoll_op *op);

/**
 * atoll_tool_follow() - keep what the command of a call writes for atoll_tool_progress()
 *
 * To be asked for right after atoll_tool_call(); harmless on calls without a command. 0 or -ENOMEM.
 */
int atoll_tool_follow(struct atoll_op *op);

struct atoll_tool_progress {
    bool running;        /* its command has been started */
    uint64_t elapsed_us; /* since then */
    uint64_t timeout_us; /* that applies to it; 0: none */
    const char
        *news; /* what it wrote since this was last asked: the last 4 KiB of that, masked,
                  UTF-8; "" for nothing. Lives until the next question and no longer than @op */
    size_t len;
    uint64_t dropped; /* bytes in front of these that are not shown */
};

/** atoll_tool_progress() - how far a call under way is; 0, -EINVAL for any other, -ENOMEM */
int atoll_tool_progress(struct atoll_op *op, struct atoll_tool_progress *ret);

/**
 * atoll_toolset_close() - end a run
 * @succeeded: publish the exports; otherwise nothing leaves
 *
 * Calls that are under way or wait are ended with ATOLL_TERMINAL, an open under way is cancelled.
 * Exports come first and are all published or none; then an own sandbox is removed in any case, a
 * standing one let go: its lease is given back, in up to three attempts a second apart, when what
 * start_process has started there is dead. Fails when an export failed, or was promised and no
 * sandbox stands: the toolset is closed all the same. That a sandbox could not be removed or
 * released is a warning. Results: atoll_op_exported(), atoll_op_warning(),
 * atoll_toolset_note().
 */
struct atoll_op *atoll_toolset_close(struct atoll_toolset *t, bool succeeded);

/**
 * atoll_toolset_note() - what is worth a line in a log, of an open or close that is done
 *
 * "Attached to sandbox '…' on backend '…' as '…'; 1795 s of its lifetime remain". Masked. NULL
 * after the last. Lives as long as @op.
 */
const char *atoll_toolset_note(const struct atoll_op *op, size_t i);

/** atoll_toolset_sandbox() - the id of the sandbox that is in use now, or NULL */
const char *atoll_toolset_sandbox(const struct atoll_toolset *t);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
