/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
static int doctor_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    (void)cli;
    (void)argc;
    (void)argv;
    (void)err;
    return 0;
}
const struct command cmd_doctor = {
    .name = "doctor", .summary = "x", .usage = "", .description = "x", .run = doctor_run};
