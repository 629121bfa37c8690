/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the files of a control group. */
#include "local/cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

int cgroup_file_read(int fd, const char *name, char *buf, size_t size)
{
    _cleanup_fd_ int file = openat(fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = file < 0 ? -1 : read(file, buf, size - 1);
    int r = n < 0 ? -errno : 0;

    buf[n > 0 ? n : 0] = '\0';
    return r;
}

int cgroup_file_write(int fd, const char *name, const char *text)
{
    _cleanup_fd_ int file = openat(fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    /* One write: what the kernel takes is what it gets in one. */
    return file < 0 || write(file, text, strlen(text)) < 0 ? -errno : 0;
}

int cgroup_file_write_number(int fd, const char *name, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return cgroup_file_write(fd, name, text);
}
