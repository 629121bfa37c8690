/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls a sandboxed command may make. The table at the end is the policy and its
 * documentation; filter_gen.c turns it into the program that filter_install() puts in place.
 *
 * A call that is not named answers ENOSYS, as on a kernel that lacks it: libraries know that
 * answer and fall back, and a call that a later kernel brings is closed until somebody has read
 * about it. A call that every kernel has but a sandbox must not use answers EPERM, which
 * programs report as what it is. A call made through another ABI (i386 by `int 0x80`, 32-bit ARM)
 * kills the process: its numbers mean other calls, and no 64-bit program makes one by accident.
 * x32 calls carry bit 30 in their number, hence are not named, hence ENOSYS.
 *
 * The filter is one fence of several. What the kernel refuses anyway to a process without
 * capabilities is named here too, so that a bug behind such a check stays out of reach.
 */
#pragma once

#include <linux/netlink.h>
#include <linux/personality.h>
#include <linux/sched.h>

enum filter_action {
    FILTER_ALLOW,
    FILTER_EPERM,
    FILTER_ENOSYS,      /* also the answer for every call that is not named */
    FILTER_CLONE,       /* argument rules, below */
    FILTER_UNSHARE,     /* " */
    FILTER_SOCKET,      /* " */
    FILTER_IOCTL,       /* " */
    FILTER_PERSONALITY, /* " */
    /* Not for the table: */
    FILTER_EPROTONOSUPPORT, /* part of FILTER_SOCKET */
    FILTER_KILL,            /* foreign ABI */
    FILTER_ACTION__MAX,
};

enum filter_arch {
    FILTER_ANY,    /* must exist on every architecture */
    FILTER_X86_64, /* the old calls, which newer architectures never got */
};

struct filter_rule {
    enum filter_action action;
    enum filter_arch arch;
    const char *names; /* separated by blanks; "name=number" for what libseccomp 2.5.4 lacks */
};

/*
 * FILTER_CLONE: EPERM if the flags hold one of these. Only the low 32 bits are read, since that
 * is all the kernel takes from clone(2). CLONE_NEWTIME is missing on purpose: in clone(2) its bit
 * belongs to the exit signal. clone3 is not to be allowed: its flags lie in memory, where a filter
 * cannot look.
 */
#define FILTER_CLONE_REFUSED                                                                       \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/*
 * FILTER_UNSHARE: EPERM unless the flags are a subset of these, all 64 bits looked at. Threads
 * part with their file table or working directory this way; the other flags make namespaces.
 * CLONE_NEWCGROUP is let through for init, which marks commands by it and stands behind the same
 * filter; the kernel refuses it to a command, which has no CAP_SYS_ADMIN and cannot get any
 * (unshare(2), EPERM).
 */
#define FILTER_UNSHARE_ALLOWED (CLONE_NEWCGROUP | CLONE_FILES | CLONE_FS | CLONE_SYSVSEM)

/*
 * FILTER_SOCKET: EPERM unless the family is AF_UNIX, AF_INET, AF_INET6, or AF_NETLINK with this
 * protocol (address and route listing: getifaddrs, `ip`). The other families are where kernel
 * modules are loaded on demand (AF_ALG, AF_TIPC, AF_RDS…) or lead past the network namespace
 * (AF_VSOCK). AF_INET with type SOCK_PACKET is refused because the kernel turns it into AF_PACKET
 * (net/socket.c). Other netlink protocols answer EPROTONOSUPPORT, since libaudit takes that for "no
 * audit here" and EPERM for a reason to give up: useradd, groupadd and su would not run. Arguments
 * are `int`: the upper half of the register is ignored, here as there.
 */
#define FILTER_NETLINK_ALLOWED NETLINK_ROUTE

/*
 * FILTER_IOCTL: EPERM for these two commands, by the low 32 bits since the kernel takes
 * `unsigned int`. Both can put text into the input of a terminal that the caller's shell reads
 * after the sandbox (CVE-2017-5226, CVE-2023-28100). Values from asm/ioctls.h, equal on both archs.
 */
#define FILTER_IOCTL_TIOCSTI   0x5412
#define FILTER_IOCTL_TIOCLINUX 0x541C

/*
 * FILTER_PERSONALITY: EPERM unless the value is the query or a subset of these bits. gdb and lisps
 * turn address randomisation off, setarch changes what uname says. The others weaken a program
 * that is executed afterwards (READ_IMPLIES_EXEC, MMAP_PAGE_ZERO) or emulate long dead systems.
 */
#define FILTER_PERSONALITY_QUERY   0xFFFFFFFFu
#define FILTER_PERSONALITY_ALLOWED (PER_LINUX32 | UNAME26 | ADDR_NO_RANDOMIZE)

static const struct filter_rule filter_policy[] = {
    /* Files by descriptor. */
    {FILTER_ALLOW, FILTER_ANY,
     "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close "
     "close_range dup dup3 fcntl flock ftruncate fallocate fsync fdatasync sync syncfs "
     "sync_file_range fadvise64 readahead sendfile splice tee vmsplice copy_file_range pipe2 "
     "getdents64 fstat fstatfs fchmod fchown fchdir cachestat=451"},

    /* Files by path. mknod is for FIFOs and sockets; devices need a capability. */
    {FILTER_ALLOW, FILTER_ANY,
     "openat openat2 newfstatat statx statfs truncate faccessat faccessat2 mkdirat mknodat "
     "unlinkat renameat renameat2 linkat symlinkat readlinkat fchmodat fchmodat2=452 fchownat "
     "utimensat chdir getcwd umask name_to_handle_at file_getattr=468 file_setattr=469"},
    {FILTER_ALLOW, FILTER_ANY,
     "setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr "
     "removexattr lremovexattr fremovexattr setxattrat=463 getxattrat=464 listxattrat=465 "
     "removexattrat=466"},

    /* What is mounted here can be read in /proc as well. */
    {FILTER_ALLOW, FILTER_ANY, "statmount=457 listmount=458"},

    /* Waiting for descriptors; asynchronous files of the old kind. */
    {FILTER_ALLOW, FILTER_ANY,
     "ppoll pselect6 epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 eventfd2 signalfd4 "
     "timerfd_create timerfd_settime timerfd_gettime inotify_init1 inotify_add_watch "
     "inotify_rm_watch io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents"},

    /* Memory. */
    {FILTER_ALLOW, FILTER_ANY,
     "brk mmap munmap mremap mprotect msync madvise process_madvise process_mrelease mincore "
     "mlock mlock2 munlock mlockall munlockall remap_file_pages memfd_create membarrier "
     "pkey_mprotect pkey_alloc pkey_free mseal=462 map_shadow_stack=453"},

    /* Placement on NUMA nodes, of memory that the caller may trace: the JVM, numerical libraries.
     */
    {FILTER_ALLOW, FILTER_ANY,
     "mbind get_mempolicy set_mempolicy set_mempolicy_home_node migrate_pages move_pages"},

    /* Processes. */
    {FILTER_ALLOW, FILTER_ANY,
     "execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid setpgid getsid "
     "setsid set_tid_address set_robust_list get_robust_list rseq restart_syscall prlimit64 "
     "getrlimit setrlimit getrusage times sysinfo uname getpriority setpriority ioprio_get "
     "ioprio_set pidfd_open pidfd_send_signal"},

    /*
     * prctl as a whole: what would touch more than the caller's own process (PR_SET_MM's exe link,
     * PR_CAPBSET_DROP, PR_SET_IO_FLUSHER) asks for capabilities itself, and the list of options
     * that libraries need grows with every kernel.
     */
    {FILTER_ALLOW, FILTER_ANY, "prctl"},

    /* A sandbox inside may fence itself in further. Of several filters the stricter answer wins. */
    {FILTER_ALLOW, FILTER_ANY,
     "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"},

    /* Users and groups: the user namespace holds what they may become. */
    {FILTER_ALLOW, FILTER_ANY,
     "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid "
     "setresuid setresgid setfsuid setfsgid setgroups capget capset"},

    /* Threads, futexes, scheduling. */
    {FILTER_ALLOW, FILTER_ANY,
     "futex futex_waitv futex_wake=454 futex_wait=455 futex_requeue=456 sched_yield "
     "sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler "
     "sched_setscheduler sched_getattr sched_setattr sched_get_priority_max "
     "sched_get_priority_min sched_rr_get_interval getcpu"},

    /* Signals. */
    {FILTER_ALLOW, FILTER_ANY,
     "kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending rt_sigreturn rt_sigsuspend "
     "rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack"},

    /*
     * Clocks and timers. The adjusting calls read as well (NTP clients, `adjtimex`), and what they
     * are to do lies in memory; changing anything asks for CAP_SYS_TIME outside.
     */
    {FILTER_ALLOW, FILTER_ANY,
     "clock_gettime clock_getres clock_nanosleep gettimeofday nanosleep getitimer setitimer "
     "timer_create timer_settime timer_gettime timer_getoverrun timer_delete adjtimex "
     "clock_adjtime"},

    /* Sockets, once there is one. */
    {FILTER_ALLOW, FILTER_ANY,
     "bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt "
     "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg"},

    /* System V and POSIX messages, semaphores, shared memory: they stay in the IPC namespace. */
    {FILTER_ALLOW, FILTER_ANY,
     "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl "
     "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"},

    /* Debuggers and tracers. The kernel checks the filter after a tracer has changed a call. */
    {FILTER_ALLOW, FILTER_ANY, "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd"},

    {FILTER_ALLOW, FILTER_ANY, "getrandom"},

    /* The calls of x86-64 that later architectures know in a newer form only. */
    {FILTER_ALLOW, FILTER_X86_64,
     "open creat stat lstat access dup2 pipe poll select getdents readlink rename mkdir rmdir "
     "mknod link symlink unlink chmod chown lchown utime utimes futimesat epoll_create "
     "epoll_wait eventfd signalfd inotify_init fork vfork getpgrp alarm pause time"},

    /* Thread pointer and shadow stack. */
    {FILTER_ALLOW, FILTER_X86_64, "arch_prctl"},

    /* Decided by their arguments. */
    {FILTER_CLONE, FILTER_ANY, "clone"},
    {FILTER_UNSHARE, FILTER_ANY, "unshare"},
    {FILTER_SOCKET, FILTER_ANY, "socket socketpair"},
    {FILTER_IOCTL, FILTER_ANY, "ioctl"},
    {FILTER_PERSONALITY, FILTER_ANY, "personality"},

    /* Namespaces and the view of the file system, which are the sandbox itself. */
    {FILTER_EPERM, FILTER_ANY,
     "setns chroot pivot_root mount umount2 open_tree open_tree_attr=467 move_mount mount_setattr "
     "fsopen fsconfig fsmount fspick"},

    /* Opens any file of a file system by number, past every path. */
    {FILTER_EPERM, FILTER_ANY, "open_by_handle_at"},

    /* Large parts of the kernel with a history, of no use to a command. */
    {FILTER_EPERM, FILTER_ANY,
     "bpf perf_event_open userfaultfd fanotify_init fanotify_mark lookup_dcookie"},

    /* Keyrings belong to a user, not to a namespace: the caller's keys would be reachable. */
    {FILTER_EPERM, FILTER_ANY, "add_key request_key keyctl"},

    /* Administration of the host, with calls of the past that did the same. */
    {FILTER_EPERM, FILTER_ANY,
     "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct "
     "quotactl quotactl_fd nfsservctl syslog vhangup sethostname setdomainname settimeofday "
     "clock_settime"},
    {FILTER_EPERM, FILTER_X86_64,
     "iopl ioperm create_module get_kernel_syms query_module uselib _sysctl"},

    /* For 16- and 32-bit code, which has no call to make here. */
    {FILTER_EPERM, FILTER_X86_64, "modify_ldt"},

    /*
     * Named only to say why they are missing. clone3: see FILTER_CLONE; libraries use clone then.
     * io_uring: performs calls that no filter sees. memfd_secret: keeps the host from hibernating.
     * lsm_*: the names of the host's security labels.
     */
    {FILTER_ENOSYS, FILTER_ANY,
     "clone3 io_uring_setup io_uring_enter io_uring_register memfd_secret "
     "lsm_get_self_attr=459 lsm_set_self_attr=460 lsm_list_modules=461"},
};
