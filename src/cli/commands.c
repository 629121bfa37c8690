/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, in the order of the help. */
#include "cli/command.h"

#include "base/guards.h"

const struct command *const command_table[] = {
    &cmd_run, &cmd_doctor, &cmd_version, &cmd_help, &cmd_keeper, &cmd_reference, NULL,
};
