/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what is known to be a file or folder, and moving its bytes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "init/files.h"
#include "init/proc_path.h"
#include "base/guards.h"

int files_look(const char *path, int flags, struct stat *ret)
{
    int fd = open(path, O_PATH | O_CLOEXEC | flags);

    if (fd < 0)
        return -errno;
    if (fstat(fd, ret) < 0) {
        int r = -errno;

        (void)close(fd);
        return r;
    }
    return fd;
}

int files_reopen(int fd, int flags)
{
    char path[PROC_PATH_BYTES], name[16] = "fd/";
    size_t at = 3;
    unsigned scale = 1;

    while ((unsigned)fd / scale >= 10)
        scale *= 10;
    for (; scale > 0; scale /= 10)
        name[at++] = (char)('0' + (unsigned)fd / scale % 10);
    name[at] = '\0';
    proc_path(path, getpid(), name);
    int r = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return r < 0 ? -errno : r;
}

void files_temporary(char ret[static 24])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[8] = {0};

    (void)!getrandom(random, sizeof random, 0); /* O_EXCL decides, not this */
    memcpy(ret, ".atoll-", 7);
    for (size_t i = 0; i < sizeof random; i++) {
        ret[7 + 2 * i] = digits[random[i] >> 4];
        ret[8 + 2 * i] = digits[random[i] & 15];
    }
    ret[23] = '\0';
}

int files_write_all(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t files_read_some(int fd, void *buf, size_t len)
{
    ssize_t n;

    do
        n = read(fd, buf, len);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}
