/* SPDX-License-Identifier: Apache-2.0 */
/* Raw mode and window size of the caller's terminal. */
#include "cli/terminal.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/guards.h"

void terminal_find(struct terminal *t)
{
    *t = (struct terminal){.fd = -EBADF};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && t->fd < 0; fd++)
        if (isatty(fd))
            t->fd = fd;
}

void terminal_size(const struct terminal *t, uint16_t *ret_rows, uint16_t *ret_columns)
{
    struct winsize size = {0};

    *ret_rows = 24;
    *ret_columns = 80;
    if (t->fd < 0 || ioctl(t->fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return;
    *ret_rows = size.ws_row;
    *ret_columns = size.ws_col;
}

int terminal_raw(struct terminal *t, bool keys)
{
    struct termios raw;

    if (t->fd < 0)
        return 0;
    if (tcgetattr(t->fd, &t->before) < 0)
        return -errno;
    raw = t->before;
    raw.c_oflag &= ~(tcflag_t)OPOST;
    if (keys && isatty(STDIN_FILENO))
        cfmakeraw(&raw);
    if (tcsetattr(t->fd, TCSADRAIN, &raw) < 0)
        return -errno;
    t->raw = true;
    return 0;
}

void terminal_restore(struct terminal *t)
{
    if (t->raw)
        (void)tcsetattr(t->fd, TCSADRAIN, &t->before);
    t->raw = false;
}
