/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generated system call filters of both architectures, run by an interpreter and compared with
 * lists of numbers that were written from the kernel's tables, not from the policy.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/filter.h"

/* Four programs with the same names in their headers. The near ones have jumps of 16 at most. */
#define filter_program     x86_64_program
#define filter_program_len x86_64_len
#include "filter_table_x86_64.h"
#undef filter_program
#undef filter_program_len
#define filter_program     x86_64_near_program
#define filter_program_len x86_64_near_len
#include "filter_table_x86_64_near.h"
#undef filter_program
#undef filter_program_len
#define filter_program     aarch64_program
#define filter_program_len aarch64_len
#include "filter_table_aarch64.h"
#undef filter_program
#undef filter_program_len
#define filter_program     aarch64_near_program
#define filter_program_len aarch64_near_len
#include "filter_table_aarch64_near.h"
#undef filter_program
#undef filter_program_len

#define ALLOWED          SECCOMP_RET_ALLOW
#define REFUSED          (SECCOMP_RET_ERRNO | EPERM)
#define ABSENT           (SECCOMP_RET_ERRNO | ENOSYS)
#define NO_SUCH_PROTOCOL (SECCOMP_RET_ERRNO | EPROTONOSUPPORT)
#define KILLED           SECCOMP_RET_KILL_PROCESS

enum {
    NUMBERS = 600,
    NEAR_REACH = 16,
    X32_BIT = 0x40000000,
    STEPS_MAX = 18, /* of a tree; a chain would take hundreds */
};

struct span {
    uint32_t first, last;
};

struct program {
    const char *name;
    const struct sock_filter *insns;
    const struct span *refused, *absent; /* up to {0, 0}; the others are allowed… */
    uint32_t clone, unshare, socket, socketpair, ioctl, personality; /* …or depend on arguments */
    uint32_t arch;
    unsigned short len;
};

static const struct span x86_64_refused[] = {
    {103, 103}, /* syslog */
    {134, 134}, /* uselib */
    {153, 156}, /* vhangup modify_ldt pivot_root _sysctl */
    {161, 161}, /* chroot */
    {163, 168}, /* acct settimeofday mount umount2 swapon swapoff */
    {169, 173}, /* reboot sethostname setdomainname iopl ioperm */
    {174, 178}, /* create_module init_module delete_module get_kernel_syms query_module */
    {179, 180}, /* quotactl nfsservctl */
    {212, 212}, /* lookup_dcookie */
    {227, 227}, /* clock_settime */
    {246, 246}, /* kexec_load */
    {248, 250}, /* add_key request_key keyctl */
    {298, 298}, /* perf_event_open */
    {300, 301}, /* fanotify_init fanotify_mark */
    {304, 304}, /* open_by_handle_at */
    {308, 308}, /* setns */
    {313, 313}, /* finit_module */
    {320, 321}, /* kexec_file_load bpf */
    {323, 323}, /* userfaultfd */
    {428, 433}, /* open_tree move_mount fsopen fsconfig fsmount fspick */
    {442, 443}, /* mount_setattr quotactl_fd */
    {467, 467}, /* open_tree_attr */
    {0, 0},
};

static const struct span x86_64_absent[] = {
    {136, 136}, /* ustat */
    {139, 139}, /* sysfs */
    {181, 185}, /* getpmsg putpmsg afs_syscall tuxcall security */
    {205, 205}, /* set_thread_area */
    {211, 211}, /* get_thread_area */
    {214, 215}, /* epoll_ctl_old epoll_wait_old */
    {236, 236}, /* vserver */
    {335, 423}, /* uretprobe uprobe, and none */
    {425, 427}, /* io_uring_setup io_uring_enter io_uring_register */
    {435, 435}, /* clone3 */
    {447, 447}, /* memfd_secret */
    {459, 461}, /* lsm_get_self_attr lsm_set_self_attr lsm_list_modules */
    {470, UINT32_MAX}, {0, 0},
};

static const struct span aarch64_refused[] = {
    {18, 18},   /* lookup_dcookie */
    {39, 42},   /* umount2 mount pivot_root nfsservctl */
    {51, 51},   /* chroot */
    {58, 58},   /* vhangup */
    {60, 60},   /* quotactl */
    {89, 89},   /* acct */
    {104, 106}, /* kexec_load init_module delete_module */
    {112, 112}, /* clock_settime */
    {116, 116}, /* syslog */
    {142, 142}, /* reboot */
    {161, 162}, /* sethostname setdomainname */
    {170, 170}, /* settimeofday */
    {217, 219}, /* add_key request_key keyctl */
    {224, 225}, /* swapon swapoff */
    {241, 241}, /* perf_event_open */
    {262, 263}, /* fanotify_init fanotify_mark */
    {265, 265}, /* open_by_handle_at */
    {268, 268}, /* setns */
    {273, 273}, /* finit_module */
    {280, 280}, /* bpf */
    {282, 282}, /* userfaultfd */
    {294, 294}, /* kexec_file_load */
    {428, 433}, /* open_tree move_mount fsopen fsconfig fsmount fspick */
    {442, 443}, /* mount_setattr quotactl_fd */
    {467, 467}, /* open_tree_attr */
    {0, 0},
};

static const struct span aarch64_absent[] = {
    {244, 259}, /* none on this architecture */
    {295, 423}, /* none */
    {425, 427}, /* io_uring_setup io_uring_enter io_uring_register */
    {435, 435}, /* clone3 */
    {447, 447}, /* memfd_secret */
    {459, 461}, /* lsm_get_self_attr lsm_set_self_attr lsm_list_modules */
    {470, UINT32_MAX}, {0, 0},
};

#define X86_64_CALLS                                                                               \
    .arch = AUDIT_ARCH_X86_64, .refused = x86_64_refused, .absent = x86_64_absent, .clone = 56,    \
    .unshare = 272, .socket = 41, .socketpair = 53, .ioctl = 16, .personality = 135
#define AARCH64_CALLS                                                                              \
    .arch = AUDIT_ARCH_AARCH64, .refused = aarch64_refused, .absent = aarch64_absent,              \
    .clone = 220, .unshare = 97, .socket = 198, .socketpair = 199, .ioctl = 29, .personality = 92

static const struct program programs[] = {
    {.name = "x86_64", .insns = x86_64_program, .len = x86_64_len, X86_64_CALLS},
    {.name = "aarch64", .insns = aarch64_program, .len = aarch64_len, AARCH64_CALLS},
    {.name = "x86_64 near", .insns = x86_64_near_program, .len = x86_64_near_len, X86_64_CALLS},
    {.name = "aarch64 near", .insns = aarch64_near_program, .len = aarch64_near_len, AARCH64_CALLS},
};
#define PROGRAMS_END (programs + ARRAY_SIZE(programs))
enum { FAR_PROGRAMS = 2 }; /* the first ones, which are installed */

/* Runs a program like the kernel does, and fails where the kernel would not take it. */
static uint32_t interpret(const struct program *p, const struct seccomp_data *data, unsigned *steps)
{
    uint32_t a = 0;

    *steps = 0;
    for (unsigned at = 0;; at++) {
        if (at >= p->len)
            fail_msg("%s: runs past its end", p->name);
        const struct sock_filter *insn = &p->insns[at];
        bool yes = false;

        ++*steps;
        switch (insn->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (insn->k % 4 != 0 || insn->k > sizeof *data - 4)
                fail_msg("%s: bad load at %u", p->name, at);
            memcpy(&a, (const unsigned char *)data + insn->k, sizeof a);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= insn->k;
            continue;
        case BPF_JMP | BPF_JA:
            at += insn->k;
            continue;
        case BPF_RET | BPF_K:
            return insn->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == insn->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= insn->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (a & insn->k) != 0;
            break;
        default:
            fail_msg("%s: unknown instruction at %u", p->name, at);
        }
        at += yes ? insn->jt : insn->jf;
    }
}

static uint32_t answer(const struct program *p, uint32_t number, uint64_t a0, uint64_t a1,
                       uint64_t a2)
{
    struct seccomp_data data = {
        .nr = (int)number,
        .arch = p->arch,
        .instruction_pointer = UINT64_MAX,
        .args = {a0, a1, a2, UINT64_MAX, UINT64_MAX, UINT64_MAX},
    };
    unsigned steps;

    return interpret(p, &data, &steps);
}

static void expect(const struct program *p, uint32_t expected, uint32_t number, uint64_t a0,
                   uint64_t a1, uint64_t a2)
{
    uint32_t got = answer(p, number, a0, a1, a2);

    if (got != expected)
        fail_msg("%s: call %#x (%#llx, %#llx, %#llx) is answered %#x, not %#x", p->name, number,
                 (unsigned long long)a0, (unsigned long long)a1, (unsigned long long)a2, got,
                 expected);
}

static bool is_within(const struct span *spans, uint32_t number)
{
    for (; spans->last != 0; spans++)
        if (number >= spans->first && number <= spans->last)
            return true;
    return false;
}

static bool is_decided_by_arguments(const struct program *p, uint32_t n)
{
    return n == p->clone || n == p->unshare || n == p->socket || n == p->socketpair ||
           n == p->ioctl || n == p->personality;
}

static void each_number_gets_the_answer_listed_for_it(void **state)
{
    static const uint32_t far[] = {1023, 0x3FFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
    static const uint64_t arguments[] = {0, 1, UINT32_MAX, UINT64_MAX};

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        for (uint32_t i = 0; i <= NUMBERS + ARRAY_SIZE(far); i++) {
            uint32_t n = i <= NUMBERS ? i : far[i - NUMBERS - 1];
            uint32_t expected = is_within(p->refused, n)  ? REFUSED
                                : is_within(p->absent, n) ? ABSENT
                                                          : ALLOWED;

            if (is_decided_by_arguments(p, n))
                continue;
            for (size_t k = 0; k < ARRAY_SIZE(arguments); k++)
                expect(p, expected, n, arguments[k], arguments[k], arguments[k]);
        }
    }
}

static void calls_with_the_x32_bit_are_absent(void **state)
{
    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++)
        for (uint32_t n = 0; n <= NUMBERS; n++)
            expect(p, ABSENT, n | X32_BIT, 0, 0, 0);
}

static void calls_of_any_other_abi_kill(void **state)
{
    static const uint32_t archs[] = {
        AUDIT_ARCH_I386,
        AUDIT_ARCH_ARM,
        AUDIT_ARCH_X86_64,
        AUDIT_ARCH_AARCH64,
        AUDIT_ARCH_AARCH64 & ~(uint32_t)__AUDIT_ARCH_LE,
        AUDIT_ARCH_RISCV64,
        0,
        UINT32_MAX,
    };

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
            struct seccomp_data data = {.arch = archs[i]};
            unsigned steps;

            for (data.nr = 0; archs[i] != p->arch && data.nr <= NUMBERS; data.nr++)
                assert_int_equal(interpret(p, &data, &steps), KILLED);
        }
    }
}

static void clone_is_refused_with_a_flag_that_makes_a_namespace_and_only_then(void **state)
{
    static const uint64_t usual[] = {
        0x11,       /* SIGCHLD alone */
        0x01200011, /* fork of glibc: child tid */
        0x4111,     /* vfork, posix_spawn: VM and VFORK */
        0x003D0F00, /* pthread_create of glibc */
        0x007D0F00, /* pthread_create of musl: and DETACHED */
        0x00050F00, /* a thread of Go */
        0x5111,     /* PIDFD, VM and VFORK */
        0xFF,       /* any exit signal */
        0x80000000, /* IO */
    };
    /* NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET */
    static const uint64_t making[] = {1 << 17, 1 << 25, 1 << 26, 1 << 27,
                                      1 << 28, 1 << 29, 1 << 30};

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
            expect(p, ALLOWED, p->clone, usual[i], UINT64_MAX, UINT64_MAX);
            /* The kernel drops the upper half. */
            expect(p, ALLOWED, p->clone, usual[i] | UINT64_MAX << 32, 0, 0);
            for (size_t k = 0; k < ARRAY_SIZE(making); k++) {
                expect(p, REFUSED, p->clone, usual[i] | making[k], 0, 0);
                expect(p, REFUSED, p->clone, usual[i] | making[k] | UINT64_MAX << 32, 0, 0);
                expect(p, REFUSED, p->clone, making[k] | making[(k + 3) % 7], 0, 0);
            }
        }
        for (unsigned bit = 0; bit < 64; bit++) {
            bool makes = bit == 17 || (bit >= 25 && bit <= 30);

            expect(p, makes ? REFUSED : ALLOWED, p->clone, UINT64_C(1) << bit, 0, 0);
        }
    }
}

/* The fourth is what init marks commands with; those get EPERM for it from the kernel. */
static void unshare_is_for_files_working_directory_semaphores_and_marks(void **state)
{
    static const uint64_t fs = 0x200, files = 0x400, sysvsem = 0x40000, newcgroup = 0x2000000;

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        for (unsigned i = 0; i < 16; i++) {
            uint64_t flags = (i & 1 ? fs : 0) | (i & 2 ? files : 0) | (i & 4 ? sysvsem : 0) |
                             (i & 8 ? newcgroup : 0);

            expect(p, ALLOWED, p->unshare, flags, UINT64_MAX, UINT64_MAX);
            for (unsigned bit = 0; bit < 64; bit++)
                if (bit != 9 && bit != 10 && bit != 18 && bit != 25)
                    expect(p, REFUSED, p->unshare, flags | UINT64_C(1) << bit, 0, 0);
        }
    }
}

static void sockets_are_unix_inet_inet6_and_route_netlink(void **state)
{
    static const uint64_t types[] = {1, 2, 3, 5, 1 | 02000000, 2 | 04000, 3 | 02004000};
    static const uint64_t upper = UINT64_C(0xDEADBEEF) << 32;

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        for (uint64_t family = 0; family <= 45; family++) {
            for (uint64_t protocol = 0; protocol <= 263; protocol++) {
                bool netlink = family == 16;
                bool good = family == 1 || family == 2 || family == 10 || netlink;
                uint32_t expected = good ? ALLOWED : REFUSED;
                uint64_t type = types[protocol % ARRAY_SIZE(types)];

                if (netlink && protocol != 0)
                    expected = NO_SUCH_PROTOCOL;
                expect(p, expected, p->socket, family, type, protocol);
                expect(p, expected, p->socketpair, family, type, protocol);
                expect(p, expected, p->socket, family | upper, type | upper, protocol | upper);
                expect(p, expected, p->socketpair, family | upper, type | upper, protocol | upper);
            }
        }
        expect(p, REFUSED, p->socket, UINT32_MAX, 1, 0);
        expect(p, REFUSED, p->socket, UINT64_MAX, 1, 0);
        expect(p, REFUSED, p->socket, 0x10001, 1, 0);
        expect(p, NO_SUCH_PROTOCOL, p->socket, 16, 3, UINT32_MAX);
    }
}

static void the_old_way_to_a_packet_socket_is_refused(void **state)
{
    static const uint64_t packet = 10, flags[] = {0, 02000000, 04000, 02004000, UINT64_C(1) << 32};

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
            expect(p, REFUSED, p->socket, AF_INET, packet | flags[i], 0x300);
            expect(p, REFUSED, p->socketpair, AF_INET, packet | flags[i], 0x300);
        }
    }
}

static void ioctl_is_refused_for_terminal_input_by_the_low_half_of_its_command(void **state)
{
    static const uint64_t uppers[] = {0, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX << 32};

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        for (uint64_t command = 0x5400; command <= 0x54FF; command++) {
            uint32_t expected = command == 0x5412 || command == 0x541C ? REFUSED : ALLOWED;

            for (size_t i = 0; i < ARRAY_SIZE(uppers); i++)
                expect(p, expected, p->ioctl, 0x5412, command | uppers[i], 0x541C);
        }
        for (unsigned bit = 16; bit < 32; bit++)
            expect(p, ALLOWED, p->ioctl, 0, 0x5412 | UINT64_C(1) << bit, 0);
    }
}

static void personality_is_refused_but_for_the_harmless_bits(void **state)
{
    static const uint64_t upper = UINT64_MAX << 32;

    (void)state;
    for (const struct program *p = programs; p < PROGRAMS_END; p++) {
        expect(p, ALLOWED, p->personality, 0xFFFFFFFF, 0, 0);
        expect(p, ALLOWED, p->personality, 0xFFFFFFFF | upper, 0, 0);
        for (unsigned i = 0; i < 8; i++) {
            uint64_t value = (i & 1 ? 0x8 : 0) | (i & 2 ? 0x20000 : 0) | (i & 4 ? 0x40000 : 0);

            expect(p, ALLOWED, p->personality, value, UINT64_MAX, UINT64_MAX);
            expect(p, ALLOWED, p->personality, value | upper, 0, 0);
            for (unsigned bit = 0; bit < 32; bit++)
                if (bit != 3 && bit != 17 && bit != 18)
                    expect(p, REFUSED, p->personality, value | UINT64_C(1) << bit, 0, 0);
        }
        expect(p, REFUSED, p->personality, 0xFFFFFFFE, 0, 0);
        expect(p, REFUSED, p->personality, READ_IMPLIES_EXEC, 0, 0);
        expect(p, REFUSED, p->personality, MMAP_PAGE_ZERO, 0, 0);
    }
}

static void the_tree_is_shallow(void **state)
{
    (void)state;
    for (const struct program *p = programs; p < programs + FAR_PROGRAMS; p++) {
        for (uint32_t n = 0; n <= NUMBERS; n++) {
            struct seccomp_data data = {.nr = (int)n, .arch = p->arch};
            unsigned steps;

            (void)interpret(p, &data, &steps);
            if (steps > STEPS_MAX && !is_decided_by_arguments(p, n))
                fail_msg("%s: call %u takes %u steps", p->name, n, steps);
        }
    }
}

static void a_jump_is_never_longer_than_the_reach_asked_for(void **state)
{
    (void)state;
    for (const struct program *p = programs + FAR_PROGRAMS; p < PROGRAMS_END; p++) {
        unsigned far_jumps = 0;

        for (unsigned i = 0; i < p->len; i++) {
            assert_in_range(p->insns[i].jt, 0, NEAR_REACH);
            assert_in_range(p->insns[i].jf, 0, NEAR_REACH);
            far_jumps += p->insns[i].code == (BPF_JMP | BPF_JA);
        }
        assert_true(far_jumps > 0);
    }
}

/* What a child saw, as its exit status: 0 for everything as it should be. */
static int wait_for(pid_t child)
{
    int status;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool fails_with(long result, int code)
{
    return result == -1 && errno == code;
}

static void the_installed_filter_answers_what_the_program_says(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || filter_install() != 0)
            _exit(1);
        if (!fails_with(syscall(SYS_unshare, CLONE_NEWUSER), EPERM))
            _exit(2);
        if (!fails_with(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM))
            _exit(3);
        if (!fails_with(syscall(SYS_clone3, NULL, 0), ENOSYS))
            _exit(4);
        if (!fails_with(socket(AF_INET, SOCK_PACKET | SOCK_CLOEXEC, 0), EPERM))
            _exit(5);
        if (!fails_with(syscall(SYS_ioctl, 0, UINT64_C(1) << 32 | TIOCSTI, ""), EPERM))
            _exit(6);
        if (syscall(SYS_unshare, CLONE_FILES) != 0 || getppid() <= 0 || wait(NULL) != -1)
            _exit(7);
        _exit(0);
    }
    assert_int_equal(wait_for(child), 0);
}

static void a_filter_is_not_installed_while_new_privileges_can_be_had(void **state)
{
    (void)state;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
        print_message("the caller has given up new privileges already\n");
        skip();
    }
    pid_t child = fork();

    if (child == 0)
        _exit(filter_install() == -EACCES && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 ? 0 : 1);
    assert_int_equal(wait_for(child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_gets_the_answer_listed_for_it),
        cmocka_unit_test(calls_with_the_x32_bit_are_absent),
        cmocka_unit_test(calls_of_any_other_abi_kill),
        cmocka_unit_test(clone_is_refused_with_a_flag_that_makes_a_namespace_and_only_then),
        cmocka_unit_test(unshare_is_for_files_working_directory_semaphores_and_marks),
        cmocka_unit_test(sockets_are_unix_inet_inet6_and_route_netlink),
        cmocka_unit_test(the_old_way_to_a_packet_socket_is_refused),
        cmocka_unit_test(ioctl_is_refused_for_terminal_input_by_the_low_half_of_its_command),
        cmocka_unit_test(personality_is_refused_but_for_the_harmless_bits),
        cmocka_unit_test(the_tree_is_shallow),
        cmocka_unit_test(a_jump_is_never_longer_than_the_reach_asked_for),
        cmocka_unit_test(the_installed_filter_answers_what_the_program_says),
        cmocka_unit_test(a_filter_is_not_installed_while_new_privileges_can_be_had),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
