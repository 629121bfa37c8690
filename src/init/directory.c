/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a folder, one by one. */
#include "init/directory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/guards.h"

/* One entry of getdents64(2). */
struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

struct directory directory_over(int fd, void *buffer, size_t size)
{
    return (struct directory){.fd = fd, .buffer = buffer, .size = size};
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

const char *directory_next(struct directory *d)
{
    const struct entry *e;

    do {
        if (d->at >= d->end) {
            long n = syscall(SYS_getdents64, d->fd, d->buffer, d->size);

            d->at = 0;
            d->end = n > 0 ? (size_t)n : 0;
            d->error = n < 0 ? -errno : 0;
            if (n <= 0)
                return NULL;
        }
        e = (const void *)(d->buffer + d->at);
        d->at += e->length;
        d->offset = e->next;
    } while (is_dots(e->name));
    return e->name;
}
