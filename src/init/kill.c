/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending every process of one command, however it hid: double forks, new sessions, processes that
 * fork and exit without pause. Each carries its command's cgroup namespace, which it cannot leave.
 * Passes over /proc kill what carries it until a pass finds none; a swarm that outruns the passes
 * is frozen first, with the one call that no fork can outrun. A pass goes by rising numbers, and
 * new processes get higher ones, so that none is missed, unless the numbers began anew meanwhile.
 *
 * The mark of a command that has ended stays known while a process may carry it, so that what it
 * left behind can be killed too. The kernel uses inodes of namespaces again, hence a mark is taken
 * from its command when a new one turns out to be the same (mark_prepare()).
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

struct marks {
    const uint64_t *at;
    size_t n;
};

static bool is_among(const struct marks *m, uint64_t mark)
{
    for (size_t k = 0; k < m->n; k++)
        if (m->at[k] == mark)
            return true;
    return false;
}

/* Whether @pid carries one of the marks. What cannot be read counts: a program without read
 * permission hides its namespaces, and sparing it would let it outlive its timeout. */
static bool is_member(pid_t pid, const struct marks *marks)
{
    char path[PROC_PATH_BYTES];
    struct stat st;

    proc_path(path, pid, "ns/cgroup");
    if (stat(path, &st) == 0)
        return is_among(marks, st.st_ino);
    /* A dying one has no namespaces any more while it is not yet to be reaped: only when it is has
     * its end been told, which must come before that of the kill. */
    return !is_zombie(pid);
}

/* Kills one process if it carries a mark. Its pidfd is opened first, so that the number cannot
 * come to mean another process in between. Return: whether it was a living member. */
static bool kill_if_member(pid_t pid, void *context)
{
    const struct marks *marks = context;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool member;

    if (pidfd < 0)
        return false;
    member = is_member(pid, marks) && !is_zombie(pid);
    if (member)
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    (void)close(pidfd);
    return member;
}

typedef bool visit_fn(pid_t pid, void *context);

/* One pass over all processes. Return: for how many @visit held, or a negative errno. */
static int for_processes(visit_fn *visit, void *context)
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

        if (pid > 1 && visit(pid, context))
            met++;
    }
    (void)close(proc);
    return d.error < 0 ? -EIO : met;
}

/* The number that the newest process was given (proc_loadavg(5)), or -1. */
static long newest_process(void)
{
    char text[128];
    int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const char *last;

    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return -1;
    text[text[n - 1] == '\n' ? n - 1 : n] = '\0';
    last = strrchr(text, ' ');
    return last ? name_to_pid(last + 1) : -1;
}

int kill_marked(struct init *i, const uint64_t *marks, size_t n)
{
    struct marks members = {marks, n};
    uint64_t deadline = clock_after_us(KILL_LIMIT_US);
    const struct timespec pause = {.tv_nsec = PASS_PAUSE_NS};
    bool frozen = false;
    long newest;
    int met;

    for (int pass = 0;; pass++) {
        if (pass >= PASSES_BEFORE_FREEZE) {
            (void)kill(-1, SIGSTOP);
            frozen = true;
        }
        newest = newest_process();
        met = for_processes(kill_if_member, &members);
        reap_all(i);
        if (met == 0 && !frozen && newest_process() < newest)
            met = 1; /* it may have passed one over */
        if (met <= 0 || clock_now_us() > deadline)
            break;
        (void)nanosleep(&pause, NULL);
    }
    if (frozen)
        (void)kill(-1, SIGCONT);
    return met == 0 ? 0 : -ETIMEDOUT;
}

int kill_left(struct init *i, uint32_t first)
{
    static uint64_t marks[INIT_COMMANDS_MAX];
    size_t n = 0;

    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++) {
        const struct command *c = &i->commands[k];

        if (c->pid == 0 && c->mark != 0 && !c->detached && c->id >= first)
            marks[n++] = c->mark;
    }
    return kill_marked(i, marks, n);
}

/* Notes that the mark of @pid is carried. What cannot be read is killed with whatever is. */
static bool see(pid_t pid, void *context)
{
    struct init *i = context;
    char path[PROC_PATH_BYTES];
    struct stat st;

    proc_path(path, pid, "ns/cgroup");
    if (stat(path, &st) < 0)
        return false;
    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
        if (i->commands[k].mark == st.st_ino)
            i->commands[k].seen = true;
    return true;
}

void marks_sweep(struct init *i)
{
    i->n_reaped = 0;
    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
        i->commands[k].seen = false;
    if (for_processes(see, i) < 0)
        return;
    for (size_t k = 0; k < INIT_COMMANDS_MAX; k++)
        if (i->commands[k].pid == 0 && !i->commands[k].seen)
            i->commands[k].mark = 0;
}
