/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, sockets and routes of the way out. */
#include "local/inside_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "local/netlink_request.h"
#include "local/refusal.h"
#include "local/ruleset.h"
#include "base/guards.h"

enum {
    BACKLOG = 4096,          /* net.core.somaxconn of a new namespace may cut it */
    LOG_BUFFER = 256 * 1024, /* a burst of refusals; what does not fit is counted by its gap */
    LOG_COPY = 128,          /* bytes of a packet, as the rule has it */
    ROUTES_BYTES = 512,
    LOG_CONFIG_BYTES = 256,
};

/* @what failed; @modules: what it needs of the kernel. */
static int refused(const char *what, const char *modules, int r, struct error *err)
{
    const struct step step = {.source = modules, .target = what};

    return refusal_explain(REFUSAL_MODULES, &step, -r, err);
}

static int put_log_config(struct netlink_batch *b)
{
    const struct nfgenmsg head = {.version = NFNETLINK_V0, .res_id = htons(EGRESS_LOG_GROUP)};
    const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(LOG_COPY),
                                                .copy_mode = NFULNL_COPY_PACKET};

    netlink_begin(b, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, NLM_F_REQUEST | NLM_F_ACK, &head,
                  sizeof head);
    netlink_put_u8(b, NFULA_CFG_CMD, NFULNL_CFG_CMD_BIND);
    netlink_put(b, NFULA_CFG_MODE, &mode, sizeof mode);
    netlink_put_be32(b, NFULA_CFG_QTHRESH, 1); /* told at once, not in batches */
    netlink_put_be16(b, NFULA_CFG_FLAGS, NFULNL_CFG_F_SEQ);
    netlink_end(b);
    return b->bad ? -ENOBUFS : 0;
}

/* The group belongs to the socket that asked for it, for as long as anybody holds that. */
static int open_log(int *ret, struct error *err)
{
    static const char what[] = "hearing of refused packets";
    const int on = 1, room = LOG_BUFFER;
    uint8_t buf[LOG_CONFIG_BYTES];
    struct netlink_batch b;
    uint32_t failed;
    int r = netlink_open(NETLINK_NETFILTER);
    _cleanup_fd_ int fd = r;

    if (r < 0)
        return refused(what, "nfnetlink", r, err);
    /* A socket that was full tells nothing until it is empty, unless it does without ENOBUFS; the
     * sequence numbers say how much was lost. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    (void)setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof on);
    netlink_batch_init(&b, buf, sizeof buf);
    r = put_log_config(&b);
    if (r == 0)
        r = netlink_request(fd, &b, b.sequence, &failed);
    if (r == -EINVAL) /* what nfnetlink says of a part that it has not */
        r = -EOPNOTSUPP;
    if (r < 0)
        return refused(what, "nfnetlink_log", r, err);
    *ret = TAKE_FD(fd);
    return 0;
}

struct inside_kind {
    int family, type, protocol;
    bool listens;
    int options[3]; /* of the family's level, set to 1; 0: none */
};

static const struct inside_kind kinds[INSIDE_LOG] = {
    [INSIDE_TCP4] = {AF_INET, SOCK_STREAM, 0, true, {IP_TRANSPARENT}},
    [INSIDE_TCP6] = {AF_INET6, SOCK_STREAM, 0, true, {IPV6_V6ONLY, IPV6_TRANSPARENT}},
    [INSIDE_UDP4] = {AF_INET, SOCK_DGRAM, 0, true, {IP_TRANSPARENT, IP_RECVORIGDSTADDR}},
    [INSIDE_UDP6] =
        {AF_INET6, SOCK_DGRAM, 0, true, {IPV6_V6ONLY, IPV6_TRANSPARENT, IPV6_RECVORIGDSTADDR}},
    [INSIDE_RAW4] = {AF_INET, SOCK_RAW, IPPROTO_RAW, false, {0}},
    [INSIDE_RAW6] = {AF_INET6, SOCK_RAW, IPPROTO_RAW, false, {IPV6_HDRINCL}},
};

/* TCP at loopback. UDP at every address: a packet that tproxy hands over keeps its destination. */
static int bind_socket(int fd, const struct inside_kind *k)
{
    bool loopback = k->type == SOCK_STREAM;
    const struct sockaddr_in v4 = {
        .sin_family = AF_INET,
        .sin_port = htons(EGRESS_PORT),
        .sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY),
    };
    const struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6,
        .sin6_port = htons(EGRESS_PORT),
        .sin6_addr = loopback ? in6addr_loopback : in6addr_any,
    };
    int r = k->family == AF_INET ? bind(fd, (const struct sockaddr *)&v4, sizeof v4)
                                 : bind(fd, (const struct sockaddr *)&v6, sizeof v6);

    if (r == 0 && k->type == SOCK_STREAM)
        r = listen(fd, BACKLOG);
    return r < 0 ? -errno : 0;
}

static int open_socket(const struct inside_kind *k)
{
    const int on = 1;
    _cleanup_fd_ int fd = socket(k->family, k->type | SOCK_CLOEXEC | SOCK_NONBLOCK, k->protocol);
    int r = 0;

    if (fd < 0)
        return -errno;
    /* Accepted connections have the local ports that programs asked for, and hand this on: a server
     * of the sandbox's own may still bind those, if it asks for that too, as servers do. */
    if (k->type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(k->options); i++)
        if (k->options[i] != 0 && setsockopt(fd, k->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
                                             k->options[i], &on, sizeof on) < 0)
            return -errno;
    if (k->listens)
        r = bind_socket(fd, k);
    return r < 0 ? r : TAKE_FD(fd);
}

static int socket_failed(const struct inside_kind *k, int r, struct error *err)
{
    const char *family = k->family == AF_INET ? "IPv4" : "IPv6";
    char what[64];

    if (r == -EADDRINUSE) {
        error_set(err, ERROR_TERMINAL, -r, "a program inside uses port %d, which the way out needs",
                  EGRESS_PORT);
        return error_remedy(err, "End that program first, or give it another port");
    }
    if (k->family == AF_INET6 && (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)) {
        error_set(err, ERROR_TERMINAL, -r, "IPv6 is switched off in this kernel (%s)",
                  strerror(-r));
        return error_remedy(err, "Start the kernel without ipv6.disable and ipv6.disable_ipv6: the "
                                 "way out is made of both families, whatever the host uses");
    }
    (void)snprintf(what, sizeof what, "making sockets for %s packets to any address", family);
    return refused(what, "nft_tproxy", r, err);
}

static int open_sockets(int fds[static INSIDE__MAX], struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        fds[i] = open_socket(&kinds[i]);
        if (fds[i] < 0)
            return socket_failed(&kinds[i], fds[i], err);
    }
    return open_log(&fds[INSIDE_LOG], err);
}

/* A whole ruleset, or other elements in its sets. */
static int load_rules(const struct policy_reach *reach,
                      void (*put)(struct netlink_batch *b, const struct policy_reach *reach),
                      struct error *err)
{
    static const char what[] = "loading the rules for what may leave the sandbox";
    size_t size = ruleset_size(reach);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct netlink_batch b;
    uint32_t failed = 0;

    if (!buf)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    netlink_batch_init(&b, buf, size);
    put(&b, reach);
    int r = netlink_open(NETLINK_NETFILTER);
    _cleanup_fd_ int fd = r;
    if (r < 0)
        return refused(what, "nfnetlink nf_tables", r, err);
    r = netlink_request(fd, &b, ruleset_acknowledged(&b), &failed);
    return r < 0 ? refused(what, ruleset_module(failed), r, err) : 0;
}

static int add_routes(struct error *err)
{
    const int lo = (int)if_nametoindex("lo");
    uint8_t buf[ROUTES_BYTES];
    struct netlink_batch b;
    uint32_t failed;
    int r = netlink_open(NETLINK_ROUTE);
    _cleanup_fd_ int fd = r;

    netlink_batch_init(&b, buf, sizeof buf);
    addresses_put(&b, lo);
    routes_put(&b, lo);
    if (r >= 0)
        r = netlink_request(fd, &b, b.sequence, &failed);
    return r < 0 ? refused("making every address a local one", "rtnetlink", r, err) : 0;
}

int inside_network_open(const struct policy_reach *reach, int ret[static INSIDE__MAX],
                        struct error *err)
{
    int fds[INSIDE__MAX], r;

    for (size_t i = 0; i < INSIDE__MAX; i++)
        fds[i] = -EBADF;
    r = open_sockets(fds, err);
    if (r == 0)
        r = load_rules(reach, ruleset_put, err);
    if (r == 0)
        r = add_routes(err);
    if (r == 0)
        memcpy(ret, fds, sizeof fds);
    for (size_t i = 0; r < 0 && i < INSIDE__MAX; i++)
        fd_closep(&fds[i]);
    return r;
}

int inside_network_change(const struct policy_reach *reach, struct error *err)
{
    return load_rules(reach, ruleset_put_sets, err);
}

int inside_network_sockets(int *ret, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (ret[i] >= 0)
            continue;
        int code = errno;
        while (i > 0)
            fd_closep(&ret[--i]);
        return error_set(err, ERROR_TERMINAL, code, "cannot make a socket inside: %s",
                         strerror(code));
    }
    return 0;
}
