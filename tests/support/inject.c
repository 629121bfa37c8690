/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one system call of a program's descendants fail, once.
 *
 * inject record FILE COMMAND...                 writes a line for each call that could be made to
 * fail inject fail FILE PROCESS CALL NTH COMMAND...  makes this one fail; FILE says so if it came
 * to that
 *
 * Why not strace(1): its `when=` counts in each process by itself and cannot say which one is
 * meant.
 *
 * A line is "PROCESS NAME CALL NTH ERROR", or "PROCESS crashed signal N none". PROCESS says how it
 * came about: 0 is COMMAND, 0.1 its second child, 0.1.0 the first child of that one; so it is the
 * same in each run. NTH counts the calls of that kind in that process, from 1. Calls that have many
 * meanings have one in the name, as in prctl:38. What COMMAND itself calls is left alone, and so is
 * what is executed by a process that has been executed by another before, as commands of a sandbox
 * are.
 *
 * Status: COMMAND's own, as of a shell; what it left behind runs on without being traced. 3 when
 * this program itself cannot go on.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 256, KINDS = 2048, PATH_BYTES = 64, NAME_BYTES = 32, OWN_FAULT = 3 };

/* What each call answers when it fails: an error of its manual page that a host can really come to.
 * 0: it is let alone, since it cannot fail with right arguments, or does its work all the same. */
static const struct call {
    long number;
    const char *name;
    int error;
    int by_argument; /* 1 + the index of an argument that says what it means */
} calls[] = {
#define CALL(name, error)                                                                          \
    {                                                                                              \
        SYS_##name, #name, error, 0                                                                \
    }
#define CALL_BY(name, error, argument)                                                             \
    {                                                                                              \
        SYS_##name, #name, error, 1 + (argument)                                                   \
    }
#ifdef SYS_open /* the older calls that x86-64 has beside those with a folder */
    CALL(open, EMFILE),
    CALL(access, EACCES),
    CALL(readlink, EACCES),
    CALL(mkdir, ENOSPC),
    CALL(rmdir, EIO),
    CALL(unlink, EIO),
    CALL(rename, ENOSPC),
    CALL(symlink, ENOSPC),
    CALL(chmod, EPERM),
    CALL(chown, EPERM),
    CALL(stat, EIO),
    CALL(lstat, EIO),
    CALL(dup2, EMFILE),
    CALL(pipe, EMFILE),
    CALL(poll, ENOMEM),
    CALL(epoll_wait, 0),
    CALL(fork, EAGAIN),
    CALL(vfork, EAGAIN),
    CALL(arch_prctl, 0),
    CALL(getpgrp, 0),
    CALL(mknod, EPERM),
#endif
    CALL(openat, EMFILE),
    CALL(openat2, EMFILE),
    CALL(faccessat, EACCES),
    CALL(faccessat2, EACCES),
    CALL(readlinkat, EACCES),
    CALL(mkdirat, ENOSPC),
    CALL(mknodat, EPERM),
    CALL(unlinkat, EIO),
    CALL(renameat, ENOSPC),
    CALL(renameat2, ENOSPC),
    CALL(symlinkat, ENOSPC),
    CALL(linkat, ENOSPC),
    CALL(fchmod, EPERM),
    CALL(fchmodat, EPERM),
    CALL(fchown, EPERM),
    CALL(fchownat, EPERM),
    CALL(utimensat, EPERM),
    CALL(fstat, ENOMEM),
    CALL(newfstatat, EIO),
    CALL(statx, EIO),
    CALL(statfs, EIO),
    CALL(fstatfs, EIO),
    CALL(getdents64, EIO),
    CALL(getcwd, ENOENT),
    CALL(chdir, EACCES),
    CALL(fchdir, EACCES),
    CALL(chroot, EPERM),
    CALL(umask, 0),
    CALL(read, EIO),
    CALL(pread64, EIO),
    CALL(readv, EIO),
    CALL(write, ENOSPC),
    CALL(pwrite64, ENOSPC),
    CALL(writev, ENOSPC),
    CALL(lseek, ESPIPE),
    CALL(ftruncate, ENOSPC),
    CALL(fallocate, ENOSPC),
    CALL(fsync, EIO),
    CALL(fdatasync, EIO),
    CALL(flock, ENOLCK),
    CALL(setxattr, ENOTSUP),
    CALL(fsetxattr, ENOTSUP),
    CALL(lsetxattr, ENOTSUP),
    CALL(close, 0), /* the descriptor is gone whatever it answers */
    CALL(close_range,
         ENOMEM), /* close_range(2): with CLOSE_RANGE_UNSHARE; a filter may forbid it */
    CALL(dup, EMFILE),
    CALL(dup3, EMFILE),
    CALL(pipe2, EMFILE),
    CALL_BY(fcntl, EMFILE, 1),
    CALL_BY(ioctl, EPERM, 1),
    CALL(memfd_create, EMFILE),
    CALL(eventfd2, EMFILE),
    CALL(signalfd4, EMFILE),
    CALL(timerfd_create, EMFILE),
    CALL(timerfd_settime, ECANCELED),
    CALL(inotify_init1, EMFILE),
    CALL(inotify_add_watch, ENOSPC),
    CALL(epoll_create1, EMFILE),
    CALL(epoll_ctl, ENOSPC),
    CALL(epoll_pwait, 0),
    CALL(ppoll, ENOMEM),
    CALL(socket, EMFILE),
    CALL(socketpair, EMFILE),
    CALL(bind, EADDRINUSE),
    CALL(listen, EADDRINUSE),
    CALL(accept4, EMFILE),
    CALL(connect, ENOBUFS),
    CALL_BY(setsockopt, ENOMEM, 2),
    CALL(getsockopt, ENOBUFS),
    CALL(getsockname, ENOBUFS),
    CALL(getpeername, ENOBUFS),
    CALL(sendto, ENOBUFS),
    CALL(sendmsg, ENOBUFS),
    CALL(sendmmsg, ENOBUFS),
    CALL(recvfrom, ENOMEM),
    CALL(recvmsg, ENOMEM),
    CALL(shutdown, ENOTCONN),
    CALL(splice, ENOMEM),
    CALL(mmap, ENOMEM),
    CALL(munmap, ENOMEM),
    CALL(mprotect, ENOMEM),
    CALL(mremap, ENOMEM),
    CALL(madvise, ENOMEM),
    CALL(brk, 0), /* of the kernel's own call, failure is the old break, not an error */
    CALL(mlock, ENOMEM),
    CALL(clone, EAGAIN),
    CALL(clone3, EAGAIN),
    CALL(execve, ENOMEM),
    CALL(execveat, ENOMEM),
    CALL(exit, 0),
    CALL(exit_group, 0),
    CALL(wait4, 0),
    CALL(waitid, 0),
    CALL(kill, 0),
    CALL(tgkill, 0),
    CALL(pidfd_send_signal, 0),
    CALL(pidfd_open, EMFILE),
    CALL(setsid, EPERM),
    CALL(setpgid, EPERM),
    CALL(getpid, 0),
    CALL(getppid, 0),
    CALL(gettid, 0),
    CALL(getuid, 0),
    CALL(geteuid, 0),
    CALL(getgid, 0),
    CALL(getegid, 0),
    CALL(getresuid, 0),
    CALL(getresgid, 0),
    CALL(getgroups, EINVAL),
    CALL(getsid, 0),
    CALL(getpgid, 0),
    CALL(setuid, EAGAIN),
    CALL(setgid, EPERM),
    CALL(setresuid, EAGAIN),
    CALL(setresgid, EPERM),
    CALL(setgroups, ENOMEM),
    CALL(capget, EPERM),
    CALL(capset, EPERM),
    CALL_BY(prctl, EPERM, 0),
    CALL(seccomp, ENOMEM),
    CALL(prlimit64, EPERM),
    CALL(setpriority, EACCES),
    CALL(sched_setaffinity, EINVAL),
    CALL(sched_getaffinity, EINVAL),
    CALL(sched_yield, 0),
    CALL(uname, 0),
    CALL(sysinfo, 0),
    CALL(getrandom, ENOSYS),
    CALL(clock_gettime, 0),
    CALL(gettimeofday, 0),
    CALL(clock_nanosleep, 0),
    CALL(nanosleep, 0),
    CALL(futex, 0),
    CALL(set_tid_address, 0),
    CALL(set_robust_list, 0),
    CALL(rseq, 0),
    CALL(restart_syscall, 0),
    CALL(rt_sigaction, 0),
    CALL(rt_sigprocmask, 0),
    CALL(rt_sigreturn, 0),
    CALL(rt_sigtimedwait, 0),
    CALL(sigaltstack, 0),
    CALL(setns, EPERM),
    CALL(unshare, ENOSPC),
    CALL(sethostname, EPERM),
    CALL(mount, EPERM),
    CALL(umount2, EBUSY),
    CALL(pivot_root, EPERM),
    CALL(open_tree, ENOMEM),
    CALL(move_mount, ENOMEM),
    CALL(fsopen, ENOMEM),
    CALL(fsconfig, ENOMEM),
    CALL(fsmount, ENOSPC),
    CALL(mount_setattr, EPERM),
    CALL(landlock_create_ruleset, ENOMEM),
    CALL(landlock_add_rule, ENOMEM),
    CALL(landlock_restrict_self, E2BIG),
};

static const struct {
    int number;
    const char *name;
} errors[] = {
#define ERROR(name)                                                                                \
    {                                                                                              \
        name, #name                                                                                \
    }
    ERROR(E2BIG),     ERROR(EACCES),  ERROR(EADDRINUSE), ERROR(EAGAIN), ERROR(EBUSY),
    ERROR(ECANCELED), ERROR(EINVAL),  ERROR(EIO),        ERROR(EMFILE), ERROR(ENOBUFS),
    ERROR(ENOENT),    ERROR(ENOLCK),  ERROR(ENOMEM),     ERROR(ENOSPC), ERROR(ENOSYS),
    ERROR(ENOTCONN),  ERROR(ENOTSUP), ERROR(EPERM),      ERROR(ESPIPE),
};

/* How often a process has made one kind of call. */
struct kind {
    const struct call *call;
    unsigned long long meaning;
    unsigned count;
};

struct task {
    pid_t pid;
    char path[PATH_BYTES]; /* empty: its parent's event is still to come */
    int children, executions;
    int failing; /* the error that its present call is to answer with */
    int early;   /* it has stopped already */
    struct kind *kinds;
    size_t n_kinds;
};

struct inject {
    struct task tasks[TASKS];
    FILE *out;
    const char *process, *call; /* NULL: only record */
    unsigned nth;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    exit(OWN_FAULT);
}

static struct task *find(struct inject *in, pid_t pid)
{
    for (size_t i = 0; i < TASKS; i++)
        if (in->tasks[i].pid == pid)
            return &in->tasks[i];
    return NULL;
}

static struct task *add(struct inject *in, pid_t pid)
{
    struct task *t = find(in, 0);

    if (!t) {
        errno = EAGAIN;
        die("too many processes");
    }
    *t = (struct task){.pid = pid};
    return t;
}

static void forget(struct task *t)
{
    free(t->kinds);
    *t = (struct task){0};
}

static void go_on(const struct task *t, int signal)
{
    (void)ptrace(PTRACE_SYSCALL, t->pid, NULL, (void *)(long)signal); /* it may have been killed */
}

/* A child of a known task; it stops by itself before it does anything. */
static void adopt(struct inject *in, struct task *parent, pid_t pid)
{
    struct task *t = find(in, pid);

    if (!t)
        t = add(in, pid);
    int n = snprintf(t->path, sizeof t->path, "%s.%d", parent->path, parent->children++);
    if (n >= (int)sizeof t->path) {
        errno = ENAMETOOLONG;
        die("too deep");
    }
    t->executions = parent->executions;
    if (t->early)
        go_on(t, 0);
}

static const struct call *call_of(unsigned long long number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == (long)number)
            return &calls[i];
    return NULL;
}

static const char *error_name(int number)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].number == number)
            return errors[i].name;
    return "none";
}

static unsigned count(struct task *t, const struct call *c, unsigned long long meaning)
{
    if (!t->kinds && !(t->kinds = calloc(KINDS, sizeof *t->kinds)))
        die("memory");
    for (size_t i = 0; i < t->n_kinds; i++)
        if (t->kinds[i].call == c && t->kinds[i].meaning == meaning)
            return ++t->kinds[i].count;
    if (t->n_kinds == KINDS) {
        errno = ENOSPC;
        die("kinds of calls");
    }
    t->kinds[t->n_kinds++] = (struct kind){.call = c, .meaning = meaning, .count = 1};
    return 1;
}

static void process_name(pid_t pid, char *buf, size_t size)
{
    char path[64];
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    f = fopen(path, "re");
    if (!f || !fgets(buf, (int)size, f))
        (void)snprintf(buf, size, "unknown");
    buf[strcspn(buf, "\n")] = '\0';
    for (char *p = buf; *p; p++)
        if (*p == ' ')
            *p = '_';
    if (f)
        (void)fclose(f);
}

/* The call that is about to be made becomes one that there is not. It fails by itself, too: this
 * process may end before the answer is due, since a keeper outlives the command that it is for. */
static void skip_call(pid_t pid)
{
#if defined(__x86_64__)
    struct user_regs_struct regs;

    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0) {
        regs.orig_rax = (unsigned long long)-1;
        (void)ptrace(PTRACE_SETREGS, pid, NULL, &regs);
    }
#else
    int number = -1;
    struct iovec iov = {.iov_base = &number, .iov_len = sizeof number};

    (void)ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &iov);
#endif
}

static void set_answer(pid_t pid, int error)
{
    struct user_regs_struct regs;
    struct iovec iov = {.iov_base = &regs, .iov_len = sizeof regs};

    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov) < 0)
        return;
#if defined(__x86_64__)
    regs.rax = (unsigned long long)-(long)error;
#else
    regs.regs[0] = (unsigned long long)-(long)error;
#endif
    (void)ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &iov);
}

static void call_begins(struct inject *in, struct task *t, const struct __ptrace_syscall_info *info)
{
    const struct call *c = call_of(info->entry.nr);
    unsigned long long meaning;
    char name[NAME_BYTES], what[64];
    unsigned nth;

    if (strcmp(t->path, "0") == 0)
        return;
    if (!c) { /* the table is to be whole */
        (void)fprintf(in->out, "%s ? number-%llu 1 unknown\n", t->path,
                      (unsigned long long)info->entry.nr);
        return;
    }
    if (c->error == 0)
        return;
    meaning = c->by_argument > 0 ? info->entry.args[c->by_argument - 1] : 0;
    nth = count(t, c, meaning);
    (void)snprintf(what, sizeof what, c->by_argument > 0 ? "%s:%llu" : "%s", c->name, meaning);
    if (in->process &&
        (nth != in->nth || strcmp(t->path, in->process) != 0 || strcmp(what, in->call) != 0))
        return;
    process_name(t->pid, name, sizeof name);
    (void)fprintf(in->out, "%s %s %s %u %s\n", t->path, name, what, nth, error_name(c->error));
    if (!in->process)
        return;
    (void)fflush(in->out);
    t->failing = c->error;
    skip_call(t->pid);
}

static void call_stop(struct inject *in, struct task *t)
{
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, (void *)sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        call_begins(in, t, &info);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && t->failing) {
        set_answer(t->pid, t->failing);
        t->failing = 0;
    }
}

static void event(struct inject *in, struct task *t, int what)
{
    unsigned long message = 0;

    switch (what) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        if (ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &message) == 0)
            adopt(in, t, (pid_t)message);
        break;
    case PTRACE_EVENT_EXEC:
        t->executions++;
        break;
    }
}

static void stopped(struct inject *in, struct task *t, int status)
{
    int signal = WSTOPSIG(status), what = status >> 16;

    if (t->path[0] == '\0') {
        t->early = 1;
        return;
    }
    if (signal == (SIGTRAP | 0x80)) {
        call_stop(in, t);
        go_on(t, 0);
    } else if (what == PTRACE_EVENT_STOP && signal != SIGTRAP) {
        (void)ptrace(PTRACE_LISTEN, t->pid, NULL, NULL); /* stopped by a signal, as without us */
    } else if (what != 0) {
        event(in, t, what);
        if (t->executions > 1 && strcmp(t->path, "0") != 0) {
            (void)ptrace(PTRACE_DETACH, t->pid, NULL, NULL);
            forget(t);
        } else {
            go_on(t, 0);
        }
    } else {
        go_on(t, signal);
    }
}

/* COMMAND waits until it is traced. */
static pid_t start(char **argv)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    int gate[2], status;
    char byte;

    if (pipe2(gate, O_CLOEXEC) < 0)
        die("pipe2");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        (void)close(gate[1]);
        if (read(gate[0], &byte, 1) == 1)
            (void)execvp(argv[0], argv);
        die(argv[0]);
    }
    (void)close(gate[0]);
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0 ||
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        die("ptrace");
    if (waitpid(pid, &status, __WALL) != pid || ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0)
        die("ptrace");
    if (write(gate[1], "g", 1) != 1)
        die("write");
    (void)close(gate[1]);
    return pid;
}

static int is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGILL ||
           signal == SIGFPE;
}

static int follow(struct inject *in, char **argv)
{
    const pid_t first = start(argv);
    struct task *t = add(in, first);
    int status;

    (void)snprintf(t->path, sizeof t->path, "0");
    t->executions = -1; /* its own does not count for its children */
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);

        if (pid < 0)
            die("waitpid");
        t = find(in, pid);
        if (WIFSTOPPED(status)) {
            stopped(in, t ? t : add(in, pid), status);
        } else {
            if (t && WIFSIGNALED(status) && is_crash(WTERMSIG(status)))
                (void)fprintf(in->out, "%s crashed signal %d none\n", t->path, WTERMSIG(status));
            if (t)
                forget(t);
            if (pid == first)
                return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
}

int main(int argc, char **argv)
{
    static struct inject in;
    int first = argc > 1 && strcmp(argv[1], "fail") == 0 ? 6 : 3;

    if (argc <= first || (first == 3 && strcmp(argv[1], "record") != 0)) {
        (void)fputs(
            "usage: inject record FILE COMMAND... | fail FILE PROCESS CALL NTH COMMAND...\n",
            stderr);
        return OWN_FAULT;
    }
    in.out = fopen(argv[2], "we");
    if (!in.out)
        die(argv[2]);
    if (first == 6) {
        in.process = argv[3];
        in.call = argv[4];
        in.nth = (unsigned)strtoul(argv[5], NULL, 10);
    }
    int status = follow(&in, argv + first);
    return fclose(in.out) == 0 ? status : OWN_FAULT;
}
