/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, in the order of the help. */
#include "cli/command.h"

#include "base/guards.h"

const struct command *const command_table[] = {
    &cmd_run,      &cmd_create, &cmd_exec,    &cmd_read,   &cmd_write,      &cmd_ls,
    &cmd_cp,       &cmd_export, &cmd_tool,    &cmd_mcp,    &cmd_mcp_config, &cmd_list,
    &cmd_inspect,  &cmd_hold,   &cmd_extend,  &cmd_policy, &cmd_events,     &cmd_stats,
    &cmd_ps,       &cmd_kill,   &cmd_rm,      &cmd_gc,     &cmd_check,      &cmd_explain,
    &cmd_backends, &cmd_doctor, &cmd_version, &cmd_help,   &cmd_keeper,     &cmd_reference,
    NULL,
};
