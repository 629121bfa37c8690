/* SPDX-License-Identifier: Apache-2.0 */
/* The rules as the kernel has them, which nft(8) and ip(8) tell; and the ceilings of a batch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/netlink.h>
#include <net/if.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "inside.h"
#include "local/netlink_request.h"
#include "local/network.h"
#include "local/ruleset.h"
#include "base/guards.h"

#define THE_POOL                                                                                   \
    {                                                                                              \
        .v4 = {.base = {.family = ADDRESS_V4, .bytes = {198, 18}}, .prefix = 16},                  \
        .v6 = {.base = {.family = ADDRESS_V6, .bytes = {0xFD, 0, 0xA, 0x70, 0x11}}, .prefix = 44}, \
    }
static const struct policy_pool pool = THE_POOL;

#define V4(a, b, c, d)                                                                             \
    {                                                                                              \
        a, b, c, d                                                                                 \
    }

/* The last of each family ends at the last address. */
static struct policy_interval v4[] = {
    {V4(0, 0, 0, 0), V4(0, 255, 255, 255)},
    {V4(10, 0, 0, 5), V4(10, 0, 0, 5)},
    {V4(203, 0, 113, 0), V4(203, 0, 113, 255)},
    {V4(240, 0, 0, 0), V4(255, 255, 255, 255)},
};
static struct policy_interval v6[] = {
    {{0x20, 1, 0x0D, 0xB8}, {0x20, 1, 0x0D, 0xB8, [4 ... 15] = 255}},
    {{0xFE}, {[0 ... 15] = 255}},
};
static uint16_t ports[] = {80, 443, 65535};

static const struct policy_reach sealed = {.pool = THE_POOL};
static const struct policy_reach much = {
    .pool = THE_POOL,
    .names = true,
    .v4 = v4,
    .v6 = v6,
    .n_v4 = ARRAY_SIZE(v4),
    .n_v6 = ARRAY_SIZE(v6),
    .ports = ports,
    .n_ports = ARRAY_SIZE(ports),
};
static const struct policy_reach other = {
    .pool = THE_POOL, .v4 = v4 + 1, .n_v4 = 2, .ports = ports + 1, .n_ports = 1};

static const char rules_text[] =
    "	chain out {\n"
    "		type filter hook output priority filter; policy drop;\n"
    "		ip daddr 127.0.0.0/8 accept\n"
    "		ip6 daddr ::1 accept\n"
    "		icmp type destination-unreachable accept\n"
    "		icmpv6 type destination-unreachable accept\n"
    "		tcp flags & rst == rst accept\n"
    "		ip daddr 198.18.0.0/16 tcp dport @ports accept\n"
    "		ip6 daddr fd00:a70:1100::/44 tcp dport @ports accept\n"
    "		ip daddr @allow4 meta l4proto tcp accept\n"
    "		ip6 daddr @allow6 meta l4proto tcp accept\n"
    "		ip daddr @allow4 meta l4proto udp accept\n"
    "		ip6 daddr @allow6 meta l4proto udp accept\n"
    "		ip daddr 224.0.0.0/4 goto refuse\n"
    "		ip daddr 255.255.255.255 goto refuse\n"
    "		ip6 daddr ff00::/8 goto refuse\n"
    "		tcp dport @names accept\n"
    "		udp dport @names accept\n"
    "		goto refuse\n"
    "	}\n"
    "\n"
    "	chain pre {\n"
    "		type filter hook prerouting priority mangle; policy accept;\n"
    "		ip daddr 127.0.0.0/8 accept\n"
    "		ip6 daddr ::1 accept\n"
    "		meta nfproto ipv4 meta l4proto tcp tproxy ip to :64999 accept\n"
    "		meta nfproto ipv4 meta l4proto udp tproxy ip to :64999 accept\n"
    "		meta nfproto ipv6 meta l4proto tcp tproxy ip6 to :64999 accept\n"
    "		meta nfproto ipv6 meta l4proto udp tproxy ip6 to :64999 accept\n"
    "	}\n"
    "\n"
    "	chain refuse {\n"
    "		log group 7 snaplen 128\n"
    "		meta l4proto tcp reject with tcp reset\n"
    "		reject with icmpx admin-prohibited\n"
    "	}\n"
    "}\n";

static const char much_text[] = "table inet atoll {\n"
                                "	set allow4 {\n"
                                "		type ipv4_addr\n"
                                "		flags interval\n"
                                "		elements = { 0.0.0.0/8, 10.0.0.5,\n"
                                "			     203.0.113.0/24, 240.0.0.0/4 }\n"
                                "	}\n"
                                "\n"
                                "	set allow6 {\n"
                                "		type ipv6_addr\n"
                                "		flags interval\n"
                                "		elements = { 2001:db8::/32,\n"
                                "			     fe00::/7 }\n"
                                "	}\n"
                                "\n"
                                "	set ports {\n"
                                "		type inet_service\n"
                                "		elements = { 80, 443, 65535 }\n"
                                "	}\n"
                                "\n"
                                "	set names {\n"
                                "		type inet_service\n"
                                "		elements = { 53 }\n"
                                "	}\n"
                                "\n";

static const char other_text[] = "table inet atoll {\n"
                                 "	set allow4 {\n"
                                 "		type ipv4_addr\n"
                                 "		flags interval\n"
                                 "		elements = { 10.0.0.5, 203.0.113.0/24 }\n"
                                 "	}\n"
                                 "\n"
                                 "	set allow6 {\n"
                                 "		type ipv6_addr\n"
                                 "		flags interval\n"
                                 "	}\n"
                                 "\n"
                                 "	set ports {\n"
                                 "		type inet_service\n"
                                 "		elements = { 443 }\n"
                                 "	}\n"
                                 "\n"
                                 "	set names {\n"
                                 "		type inet_service\n"
                                 "	}\n"
                                 "\n";

static const char sealed_text[] = "table inet atoll {\n"
                                  "	set allow4 {\n"
                                  "		type ipv4_addr\n"
                                  "		flags interval\n"
                                  "	}\n"
                                  "\n"
                                  "	set allow6 {\n"
                                  "		type ipv6_addr\n"
                                  "		flags interval\n"
                                  "	}\n"
                                  "\n"
                                  "	set ports {\n"
                                  "		type inet_service\n"
                                  "	}\n"
                                  "\n"
                                  "	set names {\n"
                                  "		type inet_service\n"
                                  "	}\n"
                                  "\n";

/* What a child finds. */
struct found {
    char much[8192], other[8192], sealed[8192], routes[4096];
    size_t large_v4, large_v6, large_ports;
    uint32_t failed;
    int again;
};

static int load(const struct policy_reach *reach,
                void (*put)(struct netlink_batch *b, const struct policy_reach *reach),
                uint32_t *ret_failed)
{
    _cleanup_fd_ int fd = netlink_open(NETLINK_NETFILTER);
    size_t size = ruleset_size(reach);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct netlink_batch b;

    netlink_batch_init(&b, buf, size);
    put(&b, reach);
    return fd < 0 ? fd : netlink_request(fd, &b, ruleset_acknowledged(&b), ret_failed);
}

/* What a program prints, up to @size bytes of it. */
static int capture(char *const argv[], char *buf, size_t size)
{
    int ends[2], status;
    size_t n = 0;
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(ends[1], 1) == 1)
            (void)execvp(argv[0], argv);
        _exit(127);
    }
    (void)close(ends[1]);
    while (n < size - 1 && (got = read(ends[0], buf + n, size - 1 - n)) > 0)
        n += (size_t)got;
    buf[n] = '\0';
    (void)close(ends[0]);
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -ECHILD;
}

static int list(char *buf, size_t size)
{
    char *const argv[] = {(char *)(uintptr_t) "nft", (char *)(uintptr_t) "list",
                          (char *)(uintptr_t) "ruleset", NULL};

    return capture(argv, buf, size);
}

static bool have(const char *program)
{
    char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "-V", NULL};
    char ignored[1024];

    if (capture(argv, ignored, sizeof ignored) == 0)
        return true;
    print_message("needs %s\n", program);
    return false;
}

static int load_and_list(void *shared)
{
    struct found *f = shared;
    uint32_t failed;
    int r = own_namespaces() ? network_loopback_up() : -EPERM;

    if (r == 0)
        r = load(&much, ruleset_put, &failed);
    if (r == 0)
        r = list(f->much, sizeof f->much);
    if (r == 0)
        r = load(&other, ruleset_put_sets, &failed);
    if (r == 0)
        r = list(f->other, sizeof f->other);
    if (r == 0)
        r = load(&much, ruleset_put_sets, &failed);
    if (r == 0)
        r = load(&sealed, ruleset_put_sets, &failed);
    if (r == 0)
        r = list(f->sealed, sizeof f->sealed);
    f->again = load(&sealed, ruleset_put, &f->failed);
    return r;
}

static void assert_listed(const char *found, const char *sets)
{
    char expected[16384];

    (void)snprintf(expected, sizeof expected, "%s%s", sets, rules_text);
    assert_string_equal(found, expected);
}

static void the_kernel_has_exactly_the_rules_meant(void **state)
{
    (void)state;
    if (!have("nft"))
        skip();
    for (int ordinary = 0; ordinary < (geteuid() == 0 ? 2 : 1); ordinary++) {
        struct found *f = shared_memory(sizeof *f);

        in_child(load_and_list, f, ordinary);
        assert_listed(f->much, much_text);
        assert_listed(f->other, other_text);
        assert_listed(f->sealed, sealed_text);
        assert_int_equal(f->again, -EEXIST);
        assert_int_equal(f->failed, 2); /* the table */
        (void)munmap(f, sizeof *f);
    }
}

static int add_routes(void *shared)
{
    struct found *f = shared;
    char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                          (char *)(uintptr_t) "ip route show table local type local default; "
                                              "ip -6 route show table local type local default; "
                                              "ip -oneline addr show lo | grep -o '[^ ]*/[0-9]*'",
                          NULL};
    uint8_t buf[512];
    struct netlink_batch b;
    uint32_t failed;
    int r = own_namespaces() ? network_loopback_up() : -EPERM;
    _cleanup_fd_ int fd = netlink_open(NETLINK_ROUTE);

    netlink_batch_init(&b, buf, sizeof buf);
    addresses_put(&b, (int)if_nametoindex("lo"));
    routes_put(&b, (int)if_nametoindex("lo"));
    if (r == 0)
        r = netlink_request(fd, &b, b.sequence, &failed);
    return r == 0 ? capture(argv, f->routes, sizeof f->routes) : r;
}

static void every_address_becomes_local_with_loopback_as_its_source(void **state)
{
    struct found *f = shared_memory(sizeof *f);

    (void)state;
    if (!have("ip"))
        skip();
    in_child(add_routes, f, geteuid() == 0);
    assert_string_equal(f->routes, "local default dev lo scope host src 127.0.0.1 \n"
                                   "local default dev lo src ::1 metric 1024 pref medium\n"
                                   "127.0.0.1/8\n192.0.0.8/32\n100:0:0:1::1/128\n::1/128\n");
    (void)munmap(f, sizeof *f);
}

enum { MANY = 2000 };

/* As many as no policy has, with gaps, so that none can be joined. */
static struct policy_reach many(void)
{
    struct policy_reach r = {.pool = pool, .names = true, .n_v4 = MANY, .n_v6 = MANY};

    r.v4 = calloc(MANY, sizeof *r.v4);
    r.v6 = calloc(MANY, sizeof *r.v6);
    r.ports = calloc(MANY, sizeof *r.ports);
    for (unsigned i = 0; i < MANY; i++) {
        uint8_t at[4] = {10, (uint8_t)(i >> 8), (uint8_t)i};

        memcpy(r.v4[i].first, at, 4);
        memcpy(r.v4[i].last, at, 4);
        memcpy(r.v6[i].first, at, 4);
        memcpy(r.v6[i].last, at, 4);
        r.ports[i] = (uint16_t)(i + 1);
    }
    r.n_ports = MANY;
    return r;
}

/* How many elements nft shows of a set. */
static size_t elements(const char *text, const char *set)
{
    const char *p = strstr(text, set);
    size_t n = 1;

    p = p ? strstr(p, "elements = {") : NULL;
    if (!p)
        return 0;
    for (; *p != '}' && *p != '\0'; p++)
        n += *p == ',';
    return n;
}

static int load_many(void *shared)
{
    struct policy_reach r = many();
    struct found *f = shared;
    uint32_t failed;
    const size_t size = 1 << 20;
    _cleanup_free_ char *text = malloc(size);
    int x = own_namespaces() ? load(&sealed, ruleset_put, &failed) : -EPERM;

    for (int i = 0; x == 0 && i < 2; i++) /* also in place of the same */
        x = load(&r, ruleset_put_sets, &failed);
    if (x == 0)
        x = list(text, size);
    f->large_v4 = x == 0 ? elements(text, "set allow4") : 0;
    f->large_v6 = x == 0 ? elements(text, "set allow6") : 0;
    f->large_ports = x == 0 ? elements(text, "set ports") : 0;
    policy_reach_done(&r);
    return x;
}

static void sets_of_thousands_of_ranges_arrive_whole(void **state)
{
    struct found *f = shared_memory(sizeof *f);

    (void)state;
    if (!have("nft"))
        skip();
    in_child(load_many, f, geteuid() == 0);
    assert_int_equal(f->large_v4, MANY);
    assert_int_equal(f->large_v6, MANY);
    assert_int_equal(f->large_ports, MANY);
    (void)munmap(f, sizeof *f);
}

/* Every attribute of every message keeps to its length, nested ones too. */
static void walk(const uint8_t *p, const uint8_t *end)
{
    struct netlink_attribute a;

    while (netlink_attribute_next(&p, end, &a))
        ;
    assert_ptr_equal(p, end);
}

static void a_batch_fits_what_was_asked_for_and_no_less(void **state)
{
    struct policy_reach r = many();
    const struct policy_reach *reaches[] = {&sealed, &much, &other, &r};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(reaches); i++) {
        size_t size = ruleset_size(reaches[i]);
        _cleanup_free_ uint8_t *buf = malloc(size);
        struct netlink_message m;
        struct netlink_batch b;
        bool bad = false;

        netlink_batch_init(&b, buf, size);
        ruleset_put(&b, reaches[i]);
        assert_false(b.bad);
        const uint8_t *p = buf, *end = buf + b.len;
        uint32_t n = 0;
        while (netlink_next(&p, end, &m, &bad)) {
            assert_int_equal(m.sequence, ++n);
            assert_int_equal(m.flags & NLM_F_ACK ? n : 0, n == ruleset_acknowledged(&b) ? n : 0);
            walk(m.payload + 4, m.payload + m.len);
        }
        assert_false(bad);
        size_t needed = b.len;
        netlink_batch_init(&b, buf, needed - 1);
        ruleset_put(&b, reaches[i]);
        assert_true(b.bad);
        netlink_batch_init(&b, buf, needed);
        ruleset_put(&b, reaches[i]);
        assert_false(b.bad);
    }
    policy_reach_done(&r);
}

static void a_refused_message_names_the_module_it_needs(void **state)
{
    uint8_t buf[32768];
    struct netlink_batch b;
    size_t n[4] = {0};

    (void)state;
    netlink_batch_init(&b, buf, sizeof buf);
    ruleset_put(&b, &sealed);
    for (uint32_t i = 0; i <= b.sequence; i++) {
        const char *module = ruleset_module(i);

        n[0] += strcmp(module, "nf_tables") == 0;
        n[1] += strcmp(module, "nft_log nfnetlink_log") == 0;
        n[2] += strcmp(module, "nft_reject nft_reject_inet") == 0;
        n[3] += strcmp(module, "nft_tproxy") == 0;
    }
    assert_int_equal(n[0] + n[1] + n[2] + n[3], b.sequence + 1);
    assert_int_equal(n[1], 1);
    assert_int_equal(n[2], 2);
    assert_int_equal(n[3], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_has_exactly_the_rules_meant),
        cmocka_unit_test(every_address_becomes_local_with_loopback_as_its_source),
        cmocka_unit_test(sets_of_thousands_of_ranges_arrive_whole),
        cmocka_unit_test(a_batch_fits_what_was_asked_for_and_no_less),
        cmocka_unit_test(a_refused_message_names_the_module_it_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
