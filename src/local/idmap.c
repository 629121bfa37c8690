/* SPDX-License-Identifier: Apache-2.0 */
/* Id maps and idmapped mounts. */
#include "local/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

/* One line of a map (user_namespaces(7)): @count ids from @inside on are those from @outside on. */
static size_t map_line(char *buf, size_t size, uint32_t inside, uint32_t outside, uint32_t count)
{
    int n = count > 0 ? snprintf(buf, size, "%u %u %u\n", inside, outside, count) : 0;

    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

/* The whole range, in which 0 and @id change places. */
static size_t map_text(char *buf, size_t size, const struct plan *p, uint32_t id)
{
    uint32_t start = p->range_start, count = p->range_count;
    size_t n;

    if (id == 0)
        return map_line(buf, size, 0, start, count);
    n = map_line(buf, size, 0, start + id, 1);
    n += map_line(buf + n, size - n, 1, start + 1, id - 1);
    n += map_line(buf + n, size - n, id, start, 1);
    n += map_line(buf + n, size - n, id + 1, start + id + 1, count - id - 1);
    return n;
}

static int write_map(pid_t pid, const char *name, const struct plan *p, uint32_t id)
{
    char path[64], text[256];
    size_t n = map_text(text, sizeof text, p, id);

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, n) < 0) /* a map is written by one call or not at all */
        return -errno;
    return 0;
}

int idmap_write(pid_t pid, const struct plan *p, uint32_t uid, uint32_t gid)
{
    int r = write_map(pid, "uid_map", p, uid);

    return r < 0 ? r : write_map(pid, "gid_map", p, gid);
}

int idmap_open(pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A namespace lives as long as a process is in it or a descriptor is open: this one is in it until
 * the descriptor is there. */
int idmap_open_for_volumes(const struct plan *p, pid_t pid)
{
    if (p->command_uid == 0 && p->command_gid == 0)
        return idmap_open(pid);
    long holder = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (holder < 0)
        return -errno;
    if (holder == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    int r = idmap_write((pid_t)holder, p, p->command_uid, p->command_gid);
    if (r == 0)
        r = idmap_open((pid_t)holder);
    (void)kill((pid_t)holder, SIGKILL);
    while (waitpid((pid_t)holder, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

int idmap_mount(const char *source, bool read_only, int userns_fd)
{
    struct mount_attr set = {
        .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                    (read_only ? MOUNT_ATTR_RDONLY : 0u),
        .propagation = MS_PRIVATE,
        .userns_fd = (uint64_t)userns_fd,
    };
    _cleanup_fd_ int fd =
        open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (fd < 0)
        return -errno;
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0)
        return -errno;
    return TAKE_FD(fd);
}
