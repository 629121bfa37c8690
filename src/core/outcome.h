/* SPDX-License-Identifier: Apache-2.0 */
/* What a command's end means: its exit status as a shell would say it, and in words. */
#pragma once

#include <stddef.h>

#include "wire/control.h"

enum { OUTCOME_TIMED_OUT = 124, OUTCOME_FAILED = 125, OUTCOME_SIGNAL_BASE = 128 };

/** outcome_status() - 0 to 255: its own; 124 timed out; 125 atoll could not; 126, 127; 128+n */
int outcome_status(const struct exit_report *x);

/**
 * outcome_explain() - why a command did not run, or was ended by a limit, as one sentence
 * @program:     argv[0]
 * @interpreter: what is missing beside it, or NULL
 * @buf:         empty when there is nothing to say
 */
void outcome_explain(const struct exit_report *x, const char *program, const char *interpreter,
                     const char *workdir, char *buf, size_t size);
