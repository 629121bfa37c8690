/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending every process of one command, however it hid: double forks, new sessions, processes that
 * fork and exit without pause. Each carries its command's cgroup namespace, which it cannot leave.
 * Passes over /proc kill what carries it until a pass finds none; a swarm that outruns the passes
 * is frozen first, with the one call that no fork can outrun.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/directory.h"
#include "init/init.h"
#include "init/proc_path.h"
#include "base/guards.h"

enum {
    PASSES_BEFORE_FREEZE = 5,
    PASS_PAUSE_NS = 300 * 1000,
    KILL_LIMIT_US = 2 * 1000 * 1000,
};

static pid_t name_to_pid(const char *name)
{
    long pid = 0;

    for (; *name; name++) {
        if (*name < '0' || *name > '9' || pid > 1 << 24)
            return 0;
        pid = pid * 10 + (*name - '0');
    }
    return (pid_t)pid;
}

/* Dead and only waiting to be reaped. The state follows the last ")" (proc(5), /proc/pid/stat). */
static bool is_zombie(pid_t pid)
{
    char path[PROC_PATH_BYTES], stat[512];
    int fd;
    ssize_t n;

    proc_path(path, pid, "stat");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH;
    n = read(fd, stat, sizeof stat - 1);
    (void)close(fd);
    if (n <= 0)
        return true;
    stat[n] = '\0';
    const char *p = strrchr(stat, ')');
    return p && p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X');
}

/* Whether @pid carries @mark. What cannot be read counts: a program without read permission hides
 * its namespaces, and sparing it would let it outlive its timeout. */
static bool is_member(pid_t pid, uint64_t mark)
{
    char path[PROC_PATH_BYTES];
    struct stat st;

    proc_path(path, pid, "ns/cgroup");
    if (stat(path, &st) == 0)
        return st.st_ino == mark;
    /* A dying one has no namespaces any more while it is not yet to be reaped: only when it is has
     * its end been told, which must come before that of the kill. */
    return !is_zombie(pid);
}

/* Kills one process if it carries the mark. Its pidfd is opened first, so that the number cannot
 * come to mean another process in between. Return: whether it was a living member. */
static bool kill_if_member(pid_t pid, uint64_t mark)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool member;

    if (pidfd < 0)
        return false;
    member = is_member(pid, mark) && !is_zombie(pid);
    if (member)
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    (void)close(pidfd);
    return member;
}

/* One pass over all processes. Return: how many living members it met, or a negative errno. */
static int kill_pass(uint64_t mark)
{
    static uint8_t buf[32 * 1024] __attribute__((aligned(8)));
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct directory d = directory_over(proc, buf, sizeof buf);
    const char *name;
    int met = 0;

    if (proc < 0)
        return -errno;
    while ((name = directory_next(&d))) {
        pid_t pid = name_to_pid(name);

        if (pid > 1 && kill_if_member(pid, mark))
            met++;
    }
    (void)close(proc);
    return d.error < 0 ? -EIO : met;
}

int kill_marked(struct init *i, uint64_t mark)
{
    uint64_t deadline = clock_after_us(KILL_LIMIT_US);
    const struct timespec pause = {.tv_nsec = PASS_PAUSE_NS};
    bool frozen = false;
    int met;

    for (int pass = 0;; pass++) {
        if (pass >= PASSES_BEFORE_FREEZE) {
            (void)kill(-1, SIGSTOP);
            frozen = true;
        }
        met = kill_pass(mark);
        reap_all(i);
        if (met <= 0 || clock_now_us() > deadline)
            break;
        (void)nanosleep(&pause, NULL);
    }
    if (frozen)
        (void)kill(-1, SIGCONT);
    return met == 0 ? 0 : -ETIMEDOUT;
}
