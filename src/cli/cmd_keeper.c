/* SPDX-License-Identifier: Apache-2.0 */
/* atoll keeper: this program in the keeper's role, for callers that must not fork themselves. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/command.h"
#include "keeper/keeper.h"
#include "base/guards.h"

enum { DESCRIPTOR_MAX = 1 << 20 };

static int keeper_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct arguments operands;
    int type = 0, none;
    socklen_t size = sizeof type;
    uint64_t fd;
    int r = command_parse(&cmd_keeper, argc, argv, &none, &operands, err);

    (void)cli;
    if (r == 0)
        r = command_operands(&cmd_keeper, &operands, 1, 1, err);
    if (r < 0)
        return r;
    if (parse_u64(operands.v[0], 0, DESCRIPTOR_MAX, &fd) < 0 ||
        getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET) {
        error_set(err, ERROR_USAGE, EBADF, "'%s' is not an open SOCK_SEQPACKET socket",
                  operands.v[0]);
        return error_remedy(err, "Pass the number of one end of a socket pair");
    }
    return keeper_main((int)fd);
}

const struct command cmd_keeper = {
    .name = "keeper",
    .summary = "keep one sandbox for the program at the other end of a socket",
    .usage = "FD",
    .description = "Speaks the sandbox protocol on the SOCK_SEQPACKET socket FD and ends with it.",
    .ends_at = 1,
    .run = keeper_run,
    .hidden = true,
};
