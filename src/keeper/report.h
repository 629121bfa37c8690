/* SPDX-License-Identifier: Apache-2.0 */
/* What a keeper tells of its sandbox when asked. */
#pragma once

#include "keeper/connection.h"

/** report_sandbox() - INSPECT: answered by SANDBOX */
void report_sandbox(struct connection *c, struct message *m);

/** report_commands() - PS: answered by COMMANDS */
void report_commands(struct connection *c, struct message *m);

/** report_capabilities() - DESCRIBE: answered by DESCRIBED, also before there is a sandbox */
void report_capabilities(struct connection *c, struct message *m);

/** report_network() - the policy of a spec as it is told; owned by the caller; NULL without memory
 */
char *report_network(const struct spec *s);
