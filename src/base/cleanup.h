/* SPDX-License-Identifier: Apache-2.0 */
/* Scope guards that keep errno, and the explicit hand-over of what they guard. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define _cleanup_(fn)  __attribute__((cleanup(fn)))
#define _cleanup_fd_   _cleanup_(fd_closep)
#define _cleanup_free_ _cleanup_(freep)

/* Hands the fd over: the variable becomes -EBADF, so its guard has nothing left to close. */
#define TAKE_FD(fd)                                                                                \
    __extension__({                                                                                \
        int *take_p_ = &(fd);                                                                      \
        int take_v_ = *take_p_;                                                                    \
        *take_p_ = -EBADF;                                                                         \
        take_v_;                                                                                   \
    })

/* Hands the pointer over: the variable becomes NULL. */
#define TAKE_PTR(ptr)                                                                              \
    __extension__({                                                                                \
        __typeof__(ptr) *take_p_ = &(ptr);                                                         \
        __typeof__(ptr) take_v_ = *take_p_;                                                        \
        *take_p_ = NULL;                                                                           \
        take_v_;                                                                                   \
    })

/**
 * fd_closep() - close *@fd if it is open and mark it closed
 *
 * Keeps errno: a guard must not change the error being returned. close() is never retried, since
 * on Linux the fd is gone even on EINTR (close(2), NOTES).
 */
static inline void fd_closep(int *fd)
{
    int keep = errno;

    if (*fd >= 0)
        (void)close(*fd);
    *fd = -EBADF;
    errno = keep;
}

/** freep() - free the memory that the guarded pointer points to */
static inline void freep(void *p)
{
    void **ptr = p;

    free(*ptr);
    *ptr = NULL;
}

/** dir_closep() - close *@dir if it is open */
static inline void dir_closep(DIR **dir)
{
    int keep = errno;

    if (*dir)
        (void)closedir(*dir);
    *dir = NULL;
    errno = keep;
}
