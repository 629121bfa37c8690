/* SPDX-License-Identifier: Apache-2.0 */
/* Reading where the control groups are. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "local/cgroup.h"
#include "base/guards.h"

enum { FIRST_BYTES = 16 * 1024, MOST_BYTES = 4 * 1024 * 1024 }; /* a host may have 10^4 mounts */

/* A whole file of /proc as text, owned by the caller. */
static int read_all(const char *path, char **ret)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *text = NULL;
    size_t size = FIRST_BYTES, n = 0;
    ssize_t got = -1;

    if (fd < 0)
        return -errno;
    while (size <= MOST_BYTES) {
        char *more = realloc(text, size);

        if (!more)
            return -ENOMEM;
        text = more;
        while (n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0)
            n += (size_t)got;
        if (got < 0)
            return -errno;
        if (got == 0) {
            text[n] = '\0';
            *ret = TAKE_PTR(text);
            return 0;
        }
        size *= 2;
    }
    return -EFBIG;
}

struct cgroup_places *cgroup_places_read(void)
{
    struct cgroup_places *p = malloc(sizeof *p);
    _cleanup_free_ char *groups = NULL, *mounts = NULL;
    int r = read_all("/proc/self/cgroup", &groups);

    if (r == 0)
        r = read_all("/proc/self/mountinfo", &mounts);
    if (!p)
        return NULL;
    for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLER__MAX; i++)
        p->found[i] = r < 0 ? r : cgroup_find(i, groups, mounts, &p->place[i]);
    return p;
}

enum cgroup_controller cgroup_places_first(const struct cgroup_places *p, enum cgroup_controller c)
{
    for (enum cgroup_controller i = 0; i < c; i++)
        if (p->found[i] == 0 && p->found[c] == 0 &&
            strcmp(p->place[i].mount, p->place[c].mount) == 0)
            return i;
    return c;
}
