/* SPDX-License-Identifier: Apache-2.0 */
/* The fence around egress: ids, capabilities, limits, and the list of calls that are left. */
#include "egress/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/guards.h"

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "add the machine's AUDIT_ARCH_ number"
#endif

enum {
    PROGRAM_MAX = 256,
    TYPE_MASK = 0xF, /* the rest of socket(2)'s type are flags: SOCK_TYPE_MASK in linux/net.h */
    CAPABILITY_LAST = 63,
};

enum check {
    ALWAYS,
    ONLY_DATA,   /* memory without PROT_EXEC */
    ONLY_INET,   /* TCP and UDP */
    ONLY_PIPES,  /* fcntl(2) without F_SETOWN, F_SETSIG and their kin, which signal others */
    ONLY_ITSELF, /* tgkill(2), for abort(3) */
};

/*
 * All that is left. Not named, hence EPERM: whatever opens, executes, forks, signals others, or
 * looks at other processes. x32 calls carry bit 30 in their number, hence are not named either.
 */
static const struct {
    int number;
    enum check check;
} calls[] = {
    {SYS_read, ALWAYS},
    {SYS_readv, ALWAYS},
    {SYS_write, ALWAYS},
    {SYS_writev, ALWAYS},
    {SYS_close, ALWAYS},
    {SYS_splice, ALWAYS},
    {SYS_tee, ALWAYS},
    {SYS_pipe2, ALWAYS},
    {SYS_fcntl, ONLY_PIPES},

    {SYS_socket, ONLY_INET},
    {SYS_connect, ALWAYS},
    {SYS_accept4, ALWAYS},
    {SYS_shutdown, ALWAYS},
    {SYS_getsockname, ALWAYS},
    {SYS_getpeername, ALWAYS},
    {SYS_setsockopt, ALWAYS},
    {SYS_getsockopt, ALWAYS},
    {SYS_recvfrom, ALWAYS},
    {SYS_recvmsg, ALWAYS},
    {SYS_recvmmsg, ALWAYS},
    {SYS_sendto, ALWAYS},
    {SYS_sendmsg, ALWAYS},
    {SYS_sendmmsg, ALWAYS},

    {SYS_epoll_create1, ALWAYS},
    {SYS_epoll_ctl, ALWAYS},
    {SYS_epoll_pwait, ALWAYS},
    {SYS_ppoll, ALWAYS},
#ifdef SYS_epoll_wait /* the old calls, which newer architectures never got */
    {SYS_epoll_wait, ALWAYS},
    {SYS_poll, ALWAYS},
#endif
    {SYS_sched_yield, ALWAYS},
    {SYS_clock_gettime, ALWAYS}, /* where the vDSO has no clock to read */

    {SYS_mmap, ONLY_DATA},
    {SYS_mprotect, ONLY_DATA},
    {SYS_munmap, ALWAYS},
    {SYS_mremap, ALWAYS},
    {SYS_madvise, ALWAYS},
    {SYS_brk, ALWAYS},
    {SYS_futex, ALWAYS},
    {SYS_getrandom, ALWAYS},

    {SYS_exit, ALWAYS},
    {SYS_exit_group, ALWAYS},
    {SYS_restart_syscall, ALWAYS}, /* what the kernel itself makes after a stop */
    {SYS_rt_sigaction, ALWAYS},
    {SYS_rt_sigprocmask, ALWAYS},
    {SYS_rt_sigreturn, ALWAYS},
    {SYS_sigaltstack, ALWAYS}, /* a build with AddressSanitizer, before _exit(2) */
    {SYS_getpid, ALWAYS},
    {SYS_gettid, ALWAYS},
    {SYS_tgkill, ONLY_ITSELF},
};

struct program {
    struct sock_filter insns[PROGRAM_MAX];
    unsigned short n;
};

static void emit(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    if (p->n < PROGRAM_MAX)
        p->insns[p->n] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
    p->n++; /* one that is too long is never installed */
}

static void emit_answer(struct program *p, uint32_t answer)
{
    emit(p, BPF_RET | BPF_K, 0, 0, answer);
}

static void emit_allow(struct program *p)
{
    emit_answer(p, SECCOMP_RET_ALLOW);
}

static void emit_refuse(struct program *p)
{
    emit_answer(p, SECCOMP_RET_ERRNO | EPERM);
}

/* Both architectures are little endian: the lower half comes first, and these are ints. */
static void emit_load_argument(struct program *p, unsigned i)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offsetof(struct seccomp_data, args[i]));
}

static void emit_allow_if_equal(struct program *p, uint32_t k)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, k);
    emit_allow(p);
}

/* What the next @n instructions do is for @k alone; another value goes on behind them. */
static void emit_unless_equal_skip(struct program *p, uint32_t k, uint8_t n)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, n, k);
}

static void emit_protocols(struct program *p, uint32_t protocol)
{
    emit_load_argument(p, 2);
    emit_allow_if_equal(p, 0);
    emit_allow_if_equal(p, protocol);
    emit_refuse(p);
}

static void emit_inet(struct program *p)
{
    enum { PROTOCOLS = 6 }; /* instructions of emit_protocols() */

    emit_load_argument(p, 0);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, AF_INET);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_INET6);
    emit_refuse(p);
    emit_load_argument(p, 1);
    emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, TYPE_MASK);
    emit_unless_equal_skip(p, SOCK_STREAM, PROTOCOLS);
    emit_protocols(p, IPPROTO_TCP);
    emit_unless_equal_skip(p, SOCK_DGRAM, PROTOCOLS);
    emit_protocols(p, IPPROTO_UDP);
    emit_refuse(p);
}

static void emit_pipes(struct program *p)
{
    static const uint32_t commands[] = {
        F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_SETPIPE_SZ,
    };

    emit_load_argument(p, 1);
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        emit_allow_if_equal(p, commands[i]);
    emit_refuse(p);
}

static void emit_check(struct program *p, enum check check)
{
    switch (check) {
    case ALWAYS:
        emit_allow(p);
        return;
    case ONLY_DATA:
        emit_load_argument(p, 2);
        emit(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, PROT_EXEC);
        emit_allow(p);
        emit_refuse(p);
        return;
    case ONLY_INET:
        emit_inet(p);
        return;
    case ONLY_PIPES:
        emit_pipes(p);
        return;
    case ONLY_ITSELF:
        emit_load_argument(p, 0);
        emit_allow_if_equal(p, (uint32_t)getpid());
        emit_refuse(p);
        return;
    }
}

/*
 * One comparison a call, in a row: from Linux 5.11 on the kernel remembers which calls are allowed
 * whatever their arguments, and asks the program for the others only. A call of another ABI kills,
 * since its numbers mean other calls.
 */
static void write_program(struct program *p)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offsetof(struct seccomp_data, arch));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, THIS_ARCH);
    emit_answer(p, SECCOMP_RET_KILL_PROCESS);
    emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_SIZE(calls) && p->n < PROGRAM_MAX; i++) {
        unsigned short test = p->n;

        emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint32_t)calls[i].number);
        emit_check(p, calls[i].check);
        p->insns[test].jf = (uint8_t)(p->n - test - 1);
    }
    emit_refuse(p);
}

/* Without flags: init/filter.c says why. */
static int install_filter(void)
{
    struct program p = {.n = 0};

    write_program(&p);
    const struct sock_fprog program = {.len = p.n, .filter = p.insns};
    if (p.n > PROGRAM_MAX)
        return -E2BIG;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0 ? -errno : 0;
}

/* Raw calls: there is one thread, and no other's ids are to be changed with its own. */
static int become(uint32_t uid, uint32_t gid)
{
    if (uid == UINT32_MAX && gid == UINT32_MAX)
        return 0;
    if (syscall(SYS_setgroups, 0, NULL) < 0)
        return -errno;
    if (gid != UINT32_MAX && syscall(SYS_setresgid, gid, gid, gid) < 0)
        return -errno;
    if (uid != UINT32_MAX && syscall(SYS_setresuid, uid, uid, uid) < 0)
        return -errno;
    return 0;
}

/* While the process still has the authority for it; one without CAP_SETPCAP executes nothing
 * either, which is all that the set is about. */
static int drop_bounding_set(void)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    for (unsigned long c = 0; c <= CAPABILITY_LAST; c++) {
        int has = prctl(PR_CAPBSET_READ, c, 0, 0, 0);

        if (has < 0 && errno == EINVAL)
            break; /* above the kernel's last one */
        if (has < 0)
            return -errno; /* not the end, after which all would seem to be dropped */
        if (has > 0 && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
            return errno == EPERM ? 0 : -errno;
    }
    return 0;
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};

    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* Nothing of the process's memory is written to a file or read by another of the same user. */
static int keep_memory_private(void)
{
    static const struct rlimit no_core = {0, 0};

    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 ? -errno
                                                                                          : 0;
}

int lockdown_enter(uint32_t uid, uint32_t gid, struct error *err)
{
    const char *what = "signal at its parent's death";
    int death = 0, r = prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0) < 0 ? -errno : 0;

    if (r == 0 && (what = "bounding set", r = drop_bounding_set()) == 0 &&
        (what = "user and groups", r = become(uid, gid)) == 0 &&
        (what = "capabilities", r = drop_capabilities()) == 0 &&
        (what = "memory", r = keep_memory_private()) == 0 &&
        (what = "signal at its parent's death",
         r = prctl(PR_SET_PDEATHSIG, death, 0, 0, 0) < 0 ? -errno : 0) == 0 &&
        (what = "privileges", r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0) == 0 &&
        (what = "system calls", r = install_filter()) == 0)
        return 0;
    error_set(err, ERROR_TERMINAL, -r, "egress cannot lock itself in (%s): %s", what, strerror(-r));
    return error_remedy(err, "Run `atoll doctor`, which tries what the host allows");
}
