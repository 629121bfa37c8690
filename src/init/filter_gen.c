/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on the build machine: turns the policy table into a seccomp program, printed as a C header.
 *
 *     filter_gen x86_64|aarch64 [REACH]
 *
 * The program is a range tree: numbers in a row with the same answer are one range, and the ranges
 * are found by bisection. Depth is what counts, since the kernel runs a new filter once for each
 * call number to learn which are allowed whatever their arguments; a chain of comparisons makes
 * that five times as long as the rest of the installation. REACH is the longest conditional jump
 * to use (the format's limit is 255): tests give a small one to see that far targets are reached.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "init/filter_policy.h"

#include "base/guards.h"

enum {
    NUMBERS = 512, /* above every call number in use; what lies above is not named either */
    RANGES_MAX = 256,
    INSNS_MAX = 1024,
    REACH_MAX = 255,
    NAME_MAX_BYTES = 64,
    TEST_COST = 60, /* of one test being there, in runs of one test; measured, and not critical */
};

struct target {
    const char *name;
    enum filter_arch arch; /* FILTER_ANY if no rule is marked for it alone */
    uint32_t audit_arch;   /* also how libseccomp calls it */
};

static const struct target targets[] = {
    {"x86_64", FILTER_X86_64, AUDIT_ARCH_X86_64},
    {"aarch64", FILTER_ANY, AUDIT_ARCH_AARCH64},
};

struct range {
    unsigned first, count;
    enum filter_action action;
};

/*
 * How to tell a row of ranges apart: by one test "at or above range @split" and two shorter rows,
 * or, if @split is 0, as the answer @base with exceptions of one number each.
 */
struct way {
    unsigned cost;
    unsigned split;
    enum filter_action base;
};

struct search {
    struct range ranges[RANGES_MAX];
    unsigned n;
    struct way ways[RANGES_MAX][RANGES_MAX]; /* by first and last range; 0 cost for a single one */
};

/*
 * The program is written from its end, so that the target of each jump (always forward) has its
 * place already. A label is an index into @insns, where the lowest index runs last.
 */
struct program {
    struct sock_filter insns[INSNS_MAX];
    unsigned len;
    unsigned reach;
    unsigned answers[FILTER_ACTION__MAX]; /* label of the code that gives each answer */
};

/* ---- from names to ranges ---- */

static int report(const char *name, const char *what)
{
    (void)fprintf(stderr, "filter_gen: %s: %s\n", name, what);
    return -EINVAL;
}

enum { NOT_HERE = -1 }; /* a call that the target never had; no error, unlike other values */

/* Number of the call @word, "name" or "name=number"; the library has a say wherever it knows the
 * name. */
static int resolve(const struct target *target, enum filter_arch arch, char *word)
{
    char *given = strchr(word, '=');
    uint64_t number = 0;

    if (given)
        *given++ = '\0';
    int known = seccomp_syscall_resolve_name_arch(target->audit_arch, word);
    if (given &&
        (parse_u64(given, 0, NUMBERS - 1, &number) || (known >= 0 && known != (int)number)))
        return report(word, "the number given is not its number");
    if (given)
        return (int)number;
    if (arch != FILTER_ANY && arch != target->arch)
        return known >= 0 ? report(word, "exists here, yet is marked for another architecture")
                          : NOT_HERE;
    if (known < 0 || known >= NUMBERS)
        return report(word, "no such call here; misspelt, or needs a number or an architecture");
    return known;
}

/* Fills @actions, indexed by call number. */
static int read_policy(const struct target *target, enum filter_action actions[NUMBERS])
{
    static const char blank[] = " ";
    bool named[NUMBERS] = {false};

    for (unsigned i = 0; i < NUMBERS; i++)
        actions[i] = FILTER_ENOSYS;
    for (size_t i = 0; i < ARRAY_SIZE(filter_policy); i++) {
        const struct filter_rule *rule = &filter_policy[i];

        for (const char *p = rule->names; *p; p += strspn(p, blank)) {
            char word[NAME_MAX_BYTES];
            size_t len = strcspn(p, blank);

            if (len >= sizeof word)
                return report(p, "name too long");
            memcpy(word, p, len);
            word[len] = '\0';
            p += len;
            int number = resolve(target, rule->arch, word);
            if (number == NOT_HERE)
                continue;
            if (number < 0)
                return number;
            if (named[number])
                return report(word, "named twice");
            named[number] = true;
            actions[number] = rule->action;
        }
    }
    return 0;
}

/* Joins neighbours with the same answer; the last range goes on to the highest number there is. */
static int make_ranges(const enum filter_action actions[NUMBERS], struct search *search)
{
    struct range *last = NULL;

    for (unsigned i = 0; i < NUMBERS; i++) {
        if (last && last->action == actions[i]) {
            last->count++;
            continue;
        }
        if (search->n == RANGES_MAX)
            return report("policy", "too many ranges");
        last = &search->ranges[search->n++];
        *last = (struct range){.first = i, .count = 1, .action = actions[i]};
    }
    return 0;
}

/* ---- writing instructions, last one first ---- */

static unsigned emit(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    if (p->len == INSNS_MAX) {
        (void)report("program", "too long");
        exit(EXIT_FAILURE);
    }
    p->insns[p->len] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
    return p->len++;
}

/* A label near enough for a conditional jump: @label, a copy of its answer, or a jump to it. */
static unsigned bring_near(struct program *p, unsigned label)
{
    const struct sock_filter *insn = &p->insns[label];
    unsigned near;

    /* One instruction more may come in between, for the other branch of the same jump. */
    if (p->len - label <= p->reach)
        return label;
    if (BPF_CLASS(insn->code) == BPF_RET)
        near = emit(p, insn->code, 0, 0, insn->k);
    else
        near = emit(p, BPF_JMP | BPF_JA, 0, 0, p->len - label - 1);
    for (size_t i = 0; i < ARRAY_SIZE(p->answers); i++)
        if (p->answers[i] == label)
            p->answers[i] = near;
    return near;
}

/* A comparison with @k, going on at @yes or @no. */
static unsigned emit_test(struct program *p, uint16_t comparison, uint32_t k, unsigned yes,
                          unsigned no)
{
    yes = bring_near(p, yes);
    no = bring_near(p, no);
    return emit(p, BPF_JMP | comparison | BPF_K, (uint8_t)(p->len - yes - 1),
                (uint8_t)(p->len - no - 1), k);
}

static unsigned emit_load(struct program *p, size_t offset)
{
    return emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* Both architectures are little endian: the lower half of an argument comes first. */
static unsigned emit_load_argument(struct program *p, unsigned index)
{
    return emit_load(p, offsetof(struct seccomp_data, args[index]));
}

static unsigned emit_load_upper_half(struct program *p, unsigned index)
{
    return emit_load(p, offsetof(struct seccomp_data, args[index]) + sizeof(uint32_t));
}

/* ---- the answers; each block is to be read from its last line up ---- */

static unsigned emit_clone(struct program *p)
{
    const unsigned *answers = p->answers;

    (void)emit_test(p, BPF_JSET, FILTER_CLONE_REFUSED, answers[FILTER_EPERM],
                    answers[FILTER_ALLOW]);
    return emit_load_argument(p, 0);
}

static unsigned emit_unshare(struct program *p)
{
    const unsigned *answers = p->answers;

    (void)emit_test(p, BPF_JSET, ~(uint32_t)FILTER_UNSHARE_ALLOWED, answers[FILTER_EPERM],
                    answers[FILTER_ALLOW]);
    unsigned lower = emit_load_argument(p, 0);
    (void)emit_test(p, BPF_JEQ, 0, lower, answers[FILTER_EPERM]);
    return emit_load_upper_half(p, 0);
}

static unsigned emit_socket(struct program *p)
{
    enum { TYPE_MASK = 0xF }; /* the rest of the type are flags: SOCK_TYPE_MASK in linux/net.h */
    const unsigned *answers = p->answers;

    (void)emit_test(p, BPF_JEQ, FILTER_NETLINK_ALLOWED, answers[FILTER_ALLOW],
                    answers[FILTER_EPROTONOSUPPORT]);
    unsigned netlink = emit_load_argument(p, 2);
    (void)emit_test(p, BPF_JEQ, SOCK_PACKET, answers[FILTER_EPERM], answers[FILTER_ALLOW]);
    (void)emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, TYPE_MASK);
    unsigned inet = emit_load_argument(p, 1);
    unsigned next = emit_test(p, BPF_JEQ, AF_NETLINK, netlink, answers[FILTER_EPERM]);
    next = emit_test(p, BPF_JEQ, AF_INET6, answers[FILTER_ALLOW], next);
    next = emit_test(p, BPF_JEQ, AF_INET, inet, next);
    (void)emit_test(p, BPF_JEQ, AF_UNIX, answers[FILTER_ALLOW], next);
    return emit_load_argument(p, 0);
}

static unsigned emit_ioctl(struct program *p)
{
    const unsigned *answers = p->answers;
    unsigned next =
        emit_test(p, BPF_JEQ, FILTER_IOCTL_TIOCLINUX, answers[FILTER_EPERM], answers[FILTER_ALLOW]);

    (void)emit_test(p, BPF_JEQ, FILTER_IOCTL_TIOCSTI, answers[FILTER_EPERM], next);
    return emit_load_argument(p, 1);
}

static unsigned emit_personality(struct program *p)
{
    const unsigned *answers = p->answers;
    unsigned bits = emit_test(p, BPF_JSET, ~(uint32_t)FILTER_PERSONALITY_ALLOWED,
                              answers[FILTER_EPERM], answers[FILTER_ALLOW]);

    (void)emit_test(p, BPF_JEQ, FILTER_PERSONALITY_QUERY, answers[FILTER_ALLOW], bits);
    return emit_load_argument(p, 0);
}

static void emit_answers(struct program *p)
{
    static const uint32_t returns[] = {
        [FILTER_ALLOW] = SECCOMP_RET_ALLOW,
        [FILTER_EPERM] = SECCOMP_RET_ERRNO | EPERM,
        [FILTER_ENOSYS] = SECCOMP_RET_ERRNO | ENOSYS,
        [FILTER_EPROTONOSUPPORT] = SECCOMP_RET_ERRNO | EPROTONOSUPPORT,
        [FILTER_KILL] = SECCOMP_RET_KILL_PROCESS,
    };
    static_assert(ARRAY_SIZE(returns) == FILTER_ACTION__MAX, "one per action, or 0");
    static const enum filter_action plain[] = {
        FILTER_KILL, FILTER_EPROTONOSUPPORT, FILTER_ENOSYS, FILTER_EPERM, FILTER_ALLOW,
    };

    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        p->answers[plain[i]] = emit(p, BPF_RET | BPF_K, 0, 0, returns[plain[i]]);
    p->answers[FILTER_CLONE] = emit_clone(p);
    p->answers[FILTER_UNSHARE] = emit_unshare(p);
    p->answers[FILTER_SOCKET] = emit_socket(p);
    p->answers[FILTER_IOCTL] = emit_ioctl(p);
    p->answers[FILTER_PERSONALITY] = emit_personality(p);
}

/* ---- the search for the cheapest tree ---- */

/* Tests by which a row of ranges could be one answer with exceptions of one number each, or 0. */
static unsigned count_exceptions(const struct range *ranges, unsigned n, enum filter_action base)
{
    unsigned exceptions = 0;

    for (unsigned i = 0; i < n; i++) {
        if (ranges[i].action == base)
            continue;
        if (ranges[i].count != 1)
            return 0;
        exceptions++;
    }
    return exceptions;
}

/* The best way for ranges @first to @last, when the ways for all shorter rows are known. */
static struct way find_way(const struct search *search, unsigned first, unsigned last)
{
    const struct range *ranges = search->ranges;
    unsigned numbers = ranges[last].first + ranges[last].count - ranges[first].first;
    struct way best = {.cost = UINT_MAX};

    for (unsigned base = 0; base < FILTER_ACTION__MAX; base++) {
        unsigned tests = count_exceptions(ranges + first, last - first + 1, base);
        unsigned cost = tests * (TEST_COST + numbers);

        if (tests > 0 && cost < best.cost)
            best = (struct way){.cost = cost, .base = base};
    }
    for (unsigned i = first + 1; i <= last; i++) {
        unsigned cost =
            TEST_COST + numbers + search->ways[first][i - 1].cost + search->ways[i][last].cost;

        if (cost < best.cost)
            best = (struct way){.cost = cost, .split = i};
    }
    return best;
}

static void find_ways(struct search *search)
{
    for (unsigned length = 2; length <= search->n; length++)
        for (unsigned first = 0; first + length <= search->n; first++)
            search->ways[first][first + length - 1] = find_way(search, first, first + length - 1);
}

static unsigned emit_tree(struct program *p, const struct search *search, unsigned first,
                          unsigned last)
{
    const struct range *ranges = search->ranges;
    const struct way *way = &search->ways[first][last];
    unsigned next = p->answers[way->base];

    if (first == last)
        return p->answers[ranges[first].action];
    if (way->split > 0) {
        unsigned above = emit_tree(p, search, way->split, last);
        unsigned below = emit_tree(p, search, first, way->split - 1);

        return emit_test(p, BPF_JGE, ranges[way->split].first, above, below);
    }
    for (unsigned i = first; i <= last; i++)
        if (ranges[i].action != way->base)
            next = emit_test(p, BPF_JEQ, ranges[i].first, p->answers[ranges[i].action], next);
    return next;
}

static void emit_program(struct program *p, const struct target *target,
                         const struct search *search)
{
    emit_answers(p);
    (void)emit_tree(p, search, 0, search->n - 1);
    unsigned number = emit_load(p, offsetof(struct seccomp_data, nr));
    (void)emit_test(p, BPF_JEQ, target->audit_arch, number, p->answers[FILTER_KILL]);
    (void)emit_load(p, offsetof(struct seccomp_data, arch));
}

static int print_program(const struct program *p, const struct target *target)
{
    printf("/* Generated by filter_gen from filter_policy.h for %s. */\n", target->name);
    printf("static const struct sock_filter filter_program[] = {\n");
    for (unsigned i = p->len; i-- > 0;)
        printf("    {0x%02x, %u, %u, 0x%08x},\n", p->insns[i].code, p->insns[i].jt, p->insns[i].jf,
               p->insns[i].k);
    printf("};\nstatic const unsigned short filter_program_len = %u;\n", p->len);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : -EIO;
}

static const struct target *find_target(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

int main(int argc, char *argv[])
{
    static struct program program;
    static struct search search;
    enum filter_action actions[NUMBERS];
    uint64_t reach = REACH_MAX;
    const struct target *target = argc >= 2 ? find_target(argv[1]) : NULL;

    if (!target || argc > 3 || (argc == 3 && parse_u64(argv[2], 2, REACH_MAX, &reach))) {
        (void)fprintf(stderr, "usage: filter_gen x86_64|aarch64 [REACH]\n");
        return 2;
    }
    if (read_policy(target, actions) != 0 || make_ranges(actions, &search) != 0)
        return EXIT_FAILURE;
    find_ways(&search);
    program.reach = (unsigned)reach;
    emit_program(&program, target, &search);
    return print_program(&program, target) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
