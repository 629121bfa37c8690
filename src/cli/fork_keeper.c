/* SPDX-License-Identifier: Apache-2.0 */
/* Forking a keeper. */
#include "cli/fork_keeper.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "keeper/keeper.h"
#include "base/guards.h"

int fork_keeper(struct session *s, struct error *err)
{
    int pair[2];
    int r = io_pair(pair);

    if (r < 0)
        return error_set(err, ERROR_TERMINAL, -r, "cannot make a socket pair: %s", strerror(-r));
    pid_t pid = fork();
    if (pid < 0) {
        r = -errno;
        (void)close(pair[0]);
        (void)close(pair[1]);
        return error_set(err, ERROR_TERMINAL, -r, "cannot start a keeper: %s", strerror(-r));
    }
    if (pid == 0)
        _exit(keeper_main(pair[1]));
    (void)close(pair[1]);
    r = session_adopt(s, pair[0], pid, err);
    if (r < 0)
        session_end(s);
    return r;
}
