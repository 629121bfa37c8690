/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error object: what went wrong in one plain sentence, what to do about it, and a class
 * that a caller can act on without reading text. It has no heap, so reporting an error cannot
 * fail, and it crosses processes as a message (src/wire/control.h).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* What the caller may do next. The words are the ones of the spec and of every JSON form. */
enum error_class {
    ERROR_RECOVERABLE, /* whoever gave the command can mend it: another path, other arguments */
    ERROR_TOO_LARGE,   /* a stated ceiling was reached; ask for less or for a part */
    ERROR_TERMINAL,    /* this run must end: the host or the sandbox cannot go on */
    ERROR_USAGE,       /* the caller's own mistake, found before anything was started */
    ERROR_CLASS__MAX,
};

struct error {
    int code; /* errno value; 0 means that no error has happened */
    enum error_class cls;
    char context[160]; /* where it happened, outermost first: "set-up step 12 (proc)" */
    char message[512]; /* what happened: one sentence without a full stop at its end */
    char remedy[384];  /* what to do, or empty: one sentence without a full stop at its end */
};

#define ERROR_INIT                                                                                 \
    {                                                                                              \
        .code = 0                                                                                  \
    }

/**
 * error_set() - record a failure
 * @err:  borrowed; must hold no error yet, because overwriting one loses its cause
 * @cls:  what the caller may do next; decided where the cause is known
 * @code: errno value, positive
 *
 * Return: -@code, so that a failing function can end with `return error_set(…)`.
 */
__attribute__((format(printf, 4, 5))) int error_set(struct error *err, enum error_class cls,
                                                    int code, const char *fmt, ...);

/**
 * error_remedy() - say what to do about the error in @err
 *
 * Replaces an earlier remedy. Return: -err->code.
 */
__attribute__((format(printf, 2, 3))) int error_remedy(struct error *err, const char *fmt, ...);

/**
 * error_context() - put the place in front: "outer: inner"
 *
 * Keeps code, class, message and remedy. Return: -err->code.
 */
__attribute__((format(printf, 2, 3))) int error_context(struct error *err, const char *fmt, ...);

/** error_class_name() - "recoverable", "too_large", "terminal" or "usage"; static storage */
const char *error_class_name(enum error_class cls);

/**
 * error_format() - the whole error as the text a person reads, without a line end
 * @buf:  "CONTEXT: MESSAGE. REMEDY." with the parts that exist; always terminated
 *
 * Control bytes are replaced, since parts of the text may come from inside a sandbox.
 */
void error_format(const struct error *err, char *buf, size_t size);
