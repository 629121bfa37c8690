/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below /proc. */
#include "init/proc_path.h"

#include <string.h>

#include "base/guards.h"

void proc_path(char buf[PROC_PATH_BYTES], pid_t pid, const char *name)
{
    char digits[12];
    size_t n = sizeof digits;
    unsigned left = (unsigned)pid;
    char *p = buf;

    do
        digits[--n] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    p = (char *)memcpy(p, "/proc/", 6) + 6;
    p = (char *)memcpy(p, digits + n, sizeof digits - n) + (sizeof digits - n);
    *p++ = '/';
    memcpy(p, name, strlen(name) + 1);
}
