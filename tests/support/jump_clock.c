/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program: when the file $JUMP_FILE exists, its monotonic clock is $JUMP_S seconds
 * ahead. For what happens after waits that no test could sit through.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *ts)
{
    const char *file = getenv("JUMP_FILE"), *seconds = getenv("JUMP_S");
    int r = (int)syscall(SYS_clock_gettime, id, ts);

    if (r == 0 && id == CLOCK_MONOTONIC && file && seconds && access(file, F_OK) == 0)
        ts->tv_sec += atol(seconds);
    return r;
}
