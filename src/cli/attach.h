/* SPDX-License-Identifier: Apache-2.0 */
/* One command attached to the caller's own streams: what `run` and `exec` have in common. */
#pragma once

#include "cli/command.h"
#include "cli/result.h"
#include "client/run.h"

/** attach_check() - refuse (usage) what cannot be a command: none, or an argument too long */
int attach_check(const struct command *c, const struct arguments *operands, struct error *err);

/** attach_log_step() - a set-up step on standard error; @cli is a struct cli */
void attach_log_step(void *cli, const struct step_report *step);

/** attach_published_text() - "ADDR:PORT:PORT" as "ADDR:PORT -> PORT", printable */
void attach_published_text(const char *entry, char *buf, size_t size);

/** attach_log_published() - a port of the host that leads inside, on standard error */
void attach_log_published(const struct cli *cli, const char *entry);

/**
 * attach_run() - run a command with the caller's terminal, tell its end, write the result
 * @s:       begun; ended here in any case
 * @x:       its callbacks and sizes are set here
 * @workdir: where it was to start, for a sentence when it could not
 *
 * Return: the exit status of the command as a shell says it, or a negative errno with an error.
 */
int attach_run(struct cli *cli, struct session *s, const struct run_request *x,
               const struct result_file *result, const char *workdir, struct error *err);

/** attach_prepare() - how this process is to take signals before a sandbox is reached */
void attach_prepare(void);
