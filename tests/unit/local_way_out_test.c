/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Visitors, in sandboxes that the tests make: what may leave arrives at the sockets that came for
 * it, all else is refused at once and told of. As the caller, and as an ordinary user too if that
 * is root.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "core/channel.h"
#include "inside.h"
#include "local/sandbox.h"
#include "local/way_out.h"
#include "wire/control.h"
#include "wire/netlink.h"
#include "wire/nflog.h"
#include "base/guards.h"

/* In a child, where an assertion of cmocka's would go on with the tests of its parent. */
#define NEED(holds)                                                                                \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            (void)fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #holds,                  \
                          strerror(errno));                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

enum { PATIENCE_US = 20000000 };

#define THE_POOL                                                                                   \
    {                                                                                              \
        .v4 = {.base = {.family = ADDRESS_V4, .bytes = {198, 18}}, .prefix = 16},                  \
        .v6 = {.base = {.family = ADDRESS_V6, .bytes = {0xFD, 0xA7}}, .prefix = 64},               \
    }
static const struct policy_pool pool = THE_POOL;
static struct policy_interval listed4[] = {{{203, 0, 113, 0}, {203, 0, 113, 255}}};
static struct policy_interval listed6[] = {
    {{0x20, 1, 0x0D, 0xB8}, {0x20, 1, 0x0D, 0xB8, [4 ... 15] = 255}}};
static struct policy_interval others4[] = {{{198, 51, 100, 0}, {198, 51, 100, 255}}};
static uint16_t ports[] = {443};

static const struct policy_reach reach = {.pool = THE_POOL,
                                          .names = true,
                                          .v4 = listed4,
                                          .v6 = listed6,
                                          .n_v4 = 1,
                                          .n_v6 = 1,
                                          .ports = ports,
                                          .n_ports = 1};
static const struct policy_reach other = {.pool = THE_POOL, .v4 = others4, .n_v4 = 1};

/* A sandbox with the test as its keeper and its egress. */
struct scene {
    struct spec spec;
    struct sandbox sandbox;
    struct visitor visitor;
    struct channel link, egress;
    int egress_fd; /* the keeper's end */
    int inside[INSIDE__MAX];
};

static void need_good(int r, const struct error *err)
{
    if (r < 0)
        (void)fprintf(stderr, "%s: %s. %s\n", err->context, err->message, err->remedy);
    NEED(r == 0);
}

static void receive(struct channel *c, struct message *m)
{
    int r;

    while ((r = channel_receive(c, m)) == 0)
        NEED(io_wait(c->fd, POLLIN, clock_after_us(PATIENCE_US)) == 0);
    NEED(r == 1);
}

static void end_visitor(struct scene *s)
{
    struct error err = ERROR_INIT;

    NEED(io_wait(s->visitor.pid_fd, POLLIN, clock_after_us(PATIENCE_US)) == 0);
    need_good(visitor_end(&s->visitor, &err), &err);
}

static void take_inside(struct scene *s)
{
    struct message m;

    receive(&s->egress, &m);
    NEED(m.type == MSG_INSIDE && m.n_fds == INSIDE__MAX);
    for (size_t i = 0; i < INSIDE__MAX; i++)
        s->inside[i] = message_take_fd(&m, i);
}

/* @out: whether it has a way out from its start on. */
static struct scene *start(bool out)
{
    struct scene *s = calloc(1, sizeof *s);
    struct error err = ERROR_INIT;
    struct message m;
    int pair[2];

    NEED(s && spec_init(&s->spec) == 0 && io_pair(pair) == 0);
    s->visitor = (struct visitor)VISITOR_INIT;
    s->egress_fd = pair[0];
    channel_init(&s->egress, pair[1]);
    const struct sandbox_way_out way_out = {
        .egress_fd = s->egress_fd, .reach = &reach, .visitor = &s->visitor};
    need_good(sandbox_start(&s->spec, &pool, out ? &way_out : NULL, &s->sandbox, &err), &err);
    channel_init(&s->link, TAKE_FD(s->sandbox.link_fd));
    receive(&s->link, &m);
    NEED(m.type == MSG_READY);
    sandbox_settle(&s->sandbox);
    return s;
}

static void visit(struct scene *s, enum visit_job job, const struct policy_reach *r)
{
    const struct visit v = {.job = job,
                            .pid_fd = s->sandbox.pid_fd,
                            .reach = r,
                            .egress_fd = s->egress_fd,
                            .setup_fd = -EBADF};
    struct error err = ERROR_INIT;

    need_good(visitor_start(&v, &s->visitor, &err), &err);
}

static void end(struct scene *s)
{
    for (size_t i = 0; i < INSIDE__MAX; i++)
        if (s->inside[i] > 0)
            (void)close(s->inside[i]);
    channel_done(&s->link);
    channel_done(&s->egress);
    (void)close(s->egress_fd);
    sandbox_end(&s->sandbox);
    spec_done(&s->spec);
    free(s);
}

/* Sockets of the sandbox's network: a child goes in and sends them out. */
static int inside_socket(const struct scene *s, int family, int type)
{
    int pair[2], fds[IO_FDS_MAX], status;
    size_t n_fds;
    char byte = 0;

    NEED(io_pair(pair) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        NEED(setns(s->sandbox.pid_fd, CLONE_NEWUSER | CLONE_NEWNET) == 0);
        int fd = socket(family, type | SOCK_CLOEXEC, 0);
        NEED(fd >= 0 && io_send_packet(pair[1], &byte, 1, NULL, 0, &fd, 1) == 0);
        _exit(0);
    }
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    NEED(io_recv_packet(pair[0], &byte, 1, fds, &n_fds) == 1 && n_fds == 1);
    (void)close(pair[0]);
    (void)close(pair[1]);
    return fds[0];
}

/* An address and its port as a socket address of either family. */
union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static union name name_of(const char *text, uint16_t port)
{
    union name n = {0};

    if (inet_pton(AF_INET, text, &n.v4.sin_addr) == 1) {
        n.v4.sin_family = AF_INET;
        n.v4.sin_port = htons(port);
    } else {
        NEED(inet_pton(AF_INET6, text, &n.v6.sin6_addr) == 1);
        n.v6.sin6_family = AF_INET6;
        n.v6.sin6_port = htons(port);
    }
    return n;
}

static socklen_t name_len(const union name *n)
{
    return n->any.sa_family == AF_INET ? sizeof n->v4 : sizeof n->v6;
}

static bool same_name(const union name *a, const union name *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return a->v6.sin6_port == b->v6.sin6_port &&
           memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0;
}

/* connect(2) from inside, blocking; 0 or a negative errno. */
static int try_connect(const struct scene *s, const char *text, uint16_t port, int *ret_fd)
{
    union name to = name_of(text, port);
    int fd = inside_socket(s, to.any.sa_family, SOCK_STREAM);
    int r = connect(fd, &to.any, name_len(&to)) < 0 ? -errno : 0;

    if (ret_fd)
        *ret_fd = fd;
    else
        (void)close(fd);
    return r;
}

/* sendto(2) from inside; 0 or a negative errno. */
static int try_send(const struct scene *s, const char *text, uint16_t port, int *ret_fd)
{
    union name to = name_of(text, port);
    const int on = 1;
    int fd = inside_socket(s, to.any.sa_family, SOCK_DGRAM);

    (void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
    int r = sendto(fd, "ask", 3, 0, &to.any, name_len(&to)) < 0 ? -errno : 0;
    if (ret_fd)
        *ret_fd = fd;
    else
        (void)close(fd);
    return r;
}

/* A connection arrives with the destination that was asked for. */
static void need_connection(const struct scene *s, const char *text, uint16_t port)
{
    union name to = name_of(text, port), found = {0}, from = {0};
    socklen_t len = sizeof found, from_len = sizeof from;
    int fd, listener = s->inside[to.any.sa_family == AF_INET ? INSIDE_TCP4 : INSIDE_TCP6];

    NEED(try_connect(s, text, port, &fd) == 0);
    NEED(io_wait(listener, POLLIN, clock_after_us(PATIENCE_US)) == 0);
    int accepted = accept4(listener, &from.any, &from_len, SOCK_CLOEXEC);
    NEED(accepted >= 0);
    NEED(getsockname(accepted, &found.any, &len) == 0 && same_name(&found, &to));
    union name loopback = name_of(to.any.sa_family == AF_INET ? "127.0.0.1" : "::1", 0);
    if (to.any.sa_family == AF_INET)
        loopback.v4.sin_port = from.v4.sin_port;
    else
        loopback.v6.sin6_port = from.v6.sin6_port;
    NEED(same_name(&from, &loopback));
    NEED(write(accepted, "x", 1) == 1);
    char byte;
    NEED(read(fd, &byte, 1) == 1 && byte == 'x');
    (void)close(accepted);
    (void)close(fd);
}

/* One packet that the kernel logged. */
static void need_logged(const struct scene *s, const char *text, uint8_t protocol, uint16_t port,
                        uint32_t sequence)
{
    uint8_t buf[4096];
    struct netlink_message m;
    struct nflog_packet x;
    bool bad = false;
    union name to = name_of(text, port);
    bool v4 = to.any.sa_family == AF_INET;

    NEED(io_wait(s->inside[INSIDE_LOG], POLLIN, clock_after_us(PATIENCE_US)) == 0);
    ssize_t n = recv(s->inside[INSIDE_LOG], buf, sizeof buf, 0);
    const uint8_t *p = buf;
    NEED(n > 0 && netlink_next(&p, buf + n, &m, &bad) && !bad);
    NEED(nflog_parse(m.payload, m.len, &x) == 0);
    NEED(x.family == (v4 ? 4 : 6) && x.protocol == protocol && x.port == port);
    NEED(memcmp(x.address, v4 ? (void *)&to.v4.sin_addr : (void *)&to.v6.sin6_addr, v4 ? 4 : 16) ==
         0);
    NEED(x.sequenced && x.sequence == sequence);
}

static void need_silent_log(const struct scene *s)
{
    char byte;

    NEED(recv(s->inside[INSIDE_LOG], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

static uint16_t checksum(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)(p[i] << 8) + (i + 1 < n ? p[i + 1] : 0);
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t)~sum;
}

/* A datagram as a whole packet, whose source is what was asked (RFC 768, 8200 8.1). */
static void inject(const struct scene *s, const union name *from, const union name *to)
{
    const struct udphdr udp = {.source = from->v4.sin_port, /* in the same place in both */
                               .dest = to->v4.sin_port,
                               .len = htons(sizeof udp + 6)};
    uint8_t packet[128] = {0};
    size_t head = from->any.sa_family == AF_INET ? 20 : 40, len = head + sizeof udp + 6;

    memcpy(packet + head, &udp, sizeof udp);
    memcpy(packet + head + sizeof udp, "answer", 6);
    if (head == 20) {
        struct iphdr ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};
        ip.saddr = from->v4.sin_addr.s_addr;
        ip.daddr = to->v4.sin_addr.s_addr;
        ip.tot_len = htons((uint16_t)len);
        memcpy(packet, &ip, sizeof ip);
        NEED(sendto(s->inside[INSIDE_RAW4], packet, len, 0, &to->any, name_len(to)) ==
             (ssize_t)len);
        return;
    }
    uint8_t pseudo[40 + 64] = {[32] = 0, 0, 0, sizeof udp + 6, 0, 0, 0, IPPROTO_UDP};
    memcpy(pseudo, &from->v6.sin6_addr, 16);
    memcpy(pseudo + 16, &to->v6.sin6_addr, 16);
    memcpy(pseudo + 40, packet + head, sizeof udp + 6);
    uint16_t sum = htons(checksum(pseudo, 40 + sizeof udp + 6));
    memcpy(packet + head + 6, &sum, 2);
    struct ip6_hdr ip = {.ip6_src = from->v6.sin6_addr, .ip6_dst = to->v6.sin6_addr};
    ip.ip6_flow = htonl(6U << 28);
    ip.ip6_plen = htons(sizeof udp + 6);
    ip.ip6_nxt = IPPROTO_UDP;
    ip.ip6_hlim = 64;
    memcpy(packet, &ip, sizeof ip);
    union name no_port = *to;
    no_port.v6.sin6_port = 0;
    NEED(sendto(s->inside[INSIDE_RAW6], packet, len, 0, &no_port.any, name_len(to)) ==
         (ssize_t)len);
}

/* A datagram arrives with its destination, and the answer comes from there. */
static void need_datagram(const struct scene *s, const char *text, uint16_t port)
{
    union name to = name_of(text, port), from = {0}, found = {0}, answer_from = {0};
    socklen_t answer_len = sizeof answer_from;
    bool v4 = to.any.sa_family == AF_INET;
    char data[16], control[256];
    struct iovec iov = {.iov_base = data, .iov_len = sizeof data};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    int fd, server = s->inside[v4 ? INSIDE_UDP4 : INSIDE_UDP6];

    NEED(try_send(s, text, port, &fd) == 0);
    NEED(io_wait(server, POLLIN, clock_after_us(PATIENCE_US)) == 0);
    NEED(recvmsg(server, &m, MSG_CMSG_CLOEXEC) == 3 && memcmp(data, "ask", 3) == 0);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_type == (v4 ? IP_ORIGDSTADDR : IPV6_ORIGDSTADDR))
            memcpy(&found, CMSG_DATA(c), v4 ? sizeof found.v4 : sizeof found.v6);
    NEED(same_name(&found, &to));
    inject(s, &to, &from);
    NEED(io_wait(fd, POLLIN, clock_after_us(PATIENCE_US)) == 0);
    NEED(recvfrom(fd, data, sizeof data, 0, &answer_from.any, &answer_len) == 6);
    NEED(memcmp(data, "answer", 6) == 0 && same_name(&answer_from, &to));
    (void)close(fd);
}

static void need_what_is_listed(const struct scene *s)
{
    need_connection(s, "203.0.113.5", 80);
    need_connection(s, "203.0.113.255", EGRESS_PORT);
    need_connection(s, "198.18.3.4", 443);
    need_connection(s, "192.0.2.1", 53); /* whatever name server is asked */
    need_connection(s, "2001:db8::5", 80);
    need_connection(s, "fda7::3", 443);
    need_datagram(s, "203.0.113.5", 9);
    need_datagram(s, "192.0.2.1", 53);
    need_datagram(s, "2001:db8::5", 9);
    need_datagram(s, "2001:db8:1::1", 53);
    need_silent_log(s);
}

static void need_refusals(const struct scene *s)
{
    NEED(try_connect(s, "203.0.114.5", 80, NULL) == -ECONNREFUSED);
    need_logged(s, "203.0.114.5", IPPROTO_TCP, 80, 0);
    NEED(try_connect(s, "198.18.3.4", 444, NULL) == -ECONNREFUSED);
    need_logged(s, "198.18.3.4", IPPROTO_TCP, 444, 1);
    NEED(try_connect(s, "2001:db9::5", 80, NULL) == -ECONNREFUSED);
    need_logged(s, "2001:db9::5", IPPROTO_TCP, 80, 2);
    NEED(try_send(s, "203.0.114.5", 9, NULL) == -EPERM);
    need_logged(s, "203.0.114.5", IPPROTO_UDP, 9, 3);
    NEED(try_send(s, "198.18.3.4", 443, NULL) == -EPERM); /* ports of names are of TCP */
    need_logged(s, "198.18.3.4", IPPROTO_UDP, 443, 4);
    NEED(try_send(s, "2001:db9::5", 9, NULL) == -EPERM);
    need_logged(s, "2001:db9::5", IPPROTO_UDP, 9, 5);
    NEED(try_send(s, "255.255.255.255", 53, NULL) == -EPERM);
    need_logged(s, "255.255.255.255", IPPROTO_UDP, 53, 6);
    NEED(try_send(s, "224.0.0.251", 5353, NULL) == -EPERM);
    need_logged(s, "224.0.0.251", IPPROTO_UDP, 5353, 7);
    NEED(try_send(s, "224.0.0.251", 53, NULL) == -EPERM);
    need_logged(s, "224.0.0.251", IPPROTO_UDP, 53, 8);
    NEED(try_send(s, "ff02::fb", 53, NULL) == -EPERM);
    need_logged(s, "ff02::fb", IPPROTO_UDP, 53, 9);
}

static void need_untouched_loopback(const struct scene *s)
{
    union name here = name_of("127.0.0.1", 8080);
    int listener = inside_socket(s, AF_INET, SOCK_STREAM);

    NEED(try_connect(s, "127.0.0.1", 8080, NULL) == -ECONNREFUSED);
    NEED(try_connect(s, "::1", 8080, NULL) == -ECONNREFUSED);
    NEED(bind(listener, &here.any, name_len(&here)) == 0 && listen(listener, 1) == 0);
    NEED(try_connect(s, "127.0.0.1", 8080, NULL) == 0);
    need_silent_log(s);
    (void)close(listener);
}

/* A server of the sandbox's own never answers for the address of another. */
static void need_no_mix_up(const struct scene *s)
{
    union name any = name_of("0.0.0.0", 80);
    int listener = inside_socket(s, AF_INET, SOCK_STREAM);
    const int on = 1;

    NEED(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    NEED(bind(listener, &any.any, name_len(&any)) == 0 && listen(listener, 1) == 0);
    need_connection(s, "203.0.113.5", 80);
    NEED(try_connect(s, "203.0.114.5", 80, NULL) == -ECONNREFUSED);
    need_logged(s, "203.0.114.5", IPPROTO_TCP, 80, 10);
    (void)close(listener);
}

static void change(struct scene *s)
{
    visit(s, VISIT_CHANGE, &other);
    end_visitor(s);
    need_connection(s, "198.51.100.7", 80);
    NEED(try_connect(s, "203.0.113.5", 80, NULL) == -ECONNREFUSED);
    NEED(try_connect(s, "198.18.3.4", 443, NULL) == -ECONNREFUSED);
    NEED(try_send(s, "192.0.2.1", 53, NULL) == -EPERM);
    visit(s, VISIT_CHANGE, &reach);
    end_visitor(s);
    need_connection(s, "203.0.113.5", 80);
    NEED(try_connect(s, "198.51.100.7", 80, NULL) == -ECONNREFUSED);
}

/* With them, what is inside can be reached from here. */
static void fetch_sockets(struct scene *s)
{
    union name here = name_of("127.0.0.1", 8081);
    int listener = inside_socket(s, AF_INET, SOCK_STREAM);
    struct message m;
    size_t n = 0;

    NEED(bind(listener, &here.any, name_len(&here)) == 0 && listen(listener, 64) == 0);
    visit(s, VISIT_SOCKETS, NULL);
    while (n < 48) {
        receive(&s->egress, &m);
        NEED(m.type == MSG_SOCKETS && m.n_fds > 0 && m.n_fds <= IO_FDS_MAX);
        for (size_t i = 0; i < m.n_fds; i++) {
            int fd = message_take_fd(&m, i);
            int r = connect(fd, &here.any, name_len(&here));

            NEED(r == 0 || errno == EINPROGRESS);
            NEED(io_wait(fd, POLLOUT, clock_after_us(PATIENCE_US)) == 0);
            NEED(write(fd, "x", 1) == 1);
            (void)close(fd);
        }
        n += m.n_fds;
    }
    end_visitor(s);
    (void)close(listener);
}

static int work_from_the_start(void *shared)
{
    struct scene *s = start(true);

    (void)shared;
    take_inside(s);
    end_visitor(s);
    need_what_is_listed(s);
    need_refusals(s);
    need_untouched_loopback(s);
    need_no_mix_up(s);
    change(s);
    fetch_sockets(s);
    end(s);
    return 0;
}

static int work_later(void *shared)
{
    struct scene *s = start(false);

    (void)shared;
    NEED(try_connect(s, "203.0.113.5", 80, NULL) == -ENETUNREACH);
    NEED(try_connect(s, "2001:db8::5", 80, NULL) == -ENETUNREACH);
    visit(s, VISIT_OPEN, &reach);
    take_inside(s);
    end_visitor(s);
    need_what_is_listed(s);
    need_refusals(s);
    need_untouched_loopback(s);
    end(s);
    return 0;
}

/* A visitor that fails, with the sentence for it. */
static void need_failure(struct scene *s, int code, const char *words)
{
    struct error err = ERROR_INIT;

    NEED(io_wait(s->visitor.pid_fd, POLLIN, clock_after_us(PATIENCE_US)) == 0);
    NEED(visitor_end(&s->visitor, &err) == -code);
    if (!strstr(err.message, words))
        (void)fprintf(stderr, "\"%s\" does not say \"%s\"\n", err.message, words);
    NEED(strstr(err.message, words) && strstr(err.context, "way out"));
    NEED(s->visitor.pid_fd == -EBADF && s->visitor.fd == -EBADF);
}

static int work_in_vain(void *shared)
{
    struct scene *s = start(false);
    union name here = name_of("127.0.0.1", EGRESS_PORT);
    int taken = inside_socket(s, AF_INET, SOCK_STREAM);

    (void)shared;
    visit(s, VISIT_CHANGE, &reach); /* there are no rules yet */
    need_failure(s, ENOENT, "nf_tables");
    NEED(bind(taken, &here.any, name_len(&here)) == 0 && listen(taken, 1) == 0);
    visit(s, VISIT_OPEN, &reach);
    need_failure(s, EADDRINUSE, "port 64999");
    (void)close(taken);
    NEED(try_connect(s, "203.0.113.5", 80, NULL) == -ENETUNREACH); /* it opened nothing */
    visit(s, VISIT_OPEN, &reach);
    take_inside(s);
    end_visitor(s);
    visit(s, VISIT_OPEN, &reach); /* twice */
    need_failure(s, EADDRINUSE, "port 64999");
    channel_done(&s->egress);
    visit(s, VISIT_SOCKETS, NULL);
    need_failure(s, EPIPE, "egress");
    end(s);
    return 0;
}

static int work_that_is_given_up(void *shared)
{
    struct scene *s = start(false);
    struct error err = ERROR_INIT;
    char byte = 0;

    (void)shared;
    while (io_send_packet(s->egress_fd, &byte, 1, NULL, 0, NULL, 0) == 0)
        ; /* it is full, and nobody reads */
    visit(s, VISIT_SOCKETS, NULL);
    pid_t pid = s->visitor.pid;
    NEED(visitor_end(&s->visitor, &err) == -EIO);
    NEED(kill(pid, 0) < 0 && errno == ESRCH);
    err = (struct error)ERROR_INIT;
    NEED(visitor_end(&s->visitor, &err) == -ECHILD);
    end(s);
    return 0;
}

/* As a kernel without nfnetlink. */
static bool hide_netfilter(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_NETFILTER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static int work_without_netfilter(void *shared)
{
    struct scene *s = calloc(1, sizeof *s);
    struct error err = ERROR_INIT;
    struct step_report x = {0};
    struct message m;
    int pair[2];

    (void)shared;
    NEED(hide_netfilter());
    NEED(s && spec_init(&s->spec) == 0 && io_pair(pair) == 0);
    const struct sandbox_way_out way_out = {
        .egress_fd = pair[0], .reach = &reach, .visitor = &s->visitor};
    need_good(sandbox_start(&s->spec, &pool, &way_out, &s->sandbox, &err), &err);
    channel_init(&s->link, TAKE_FD(s->sandbox.link_fd));
    receive(&s->link, &m);
    NEED(m.type == MSG_FAULT && step_report_decode(m.payload, &x) == 0);
    NEED(x.error == EPROTONOSUPPORT);
    NEED(s->sandbox.plan->steps[x.index].kind == STEP_NETWORK);
    (void)sandbox_fault(&s->sandbox, x.index, (int)x.error, &err);
    NEED(strstr(err.remedy, "modprobe"));
    need_failure(s, EPROTONOSUPPORT, "nfnetlink");
    channel_done(&s->link);
    sandbox_end(&s->sandbox);
    spec_done(&s->spec);
    free(s);
    return 0;
}

/* In both cases it may take the whole of a sandbox's set-up; nothing may be left of either. */
static void as_all(int (*work)(void *shared))
{
    for (int ordinary = 0; ordinary < (geteuid() == 0 ? 2 : 1); ordinary++)
        in_child(work, NULL, ordinary);
}

static void what_is_listed_arrives_and_all_else_is_refused_and_told(void **state)
{
    (void)state;
    as_all(work_from_the_start);
}

static void a_sealed_sandbox_is_opened_later(void **state)
{
    (void)state;
    as_all(work_later);
}

static void a_visitor_that_fails_says_why_and_opens_nothing(void **state)
{
    (void)state;
    as_all(work_in_vain);
}

static void a_visitor_is_given_up(void **state)
{
    (void)state;
    as_all(work_that_is_given_up);
}

static void a_missing_module_is_named(void **state)
{
    (void)state;
    as_all(work_without_netfilter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_listed_arrives_and_all_else_is_refused_and_told),
        cmocka_unit_test(a_sealed_sandbox_is_opened_later),
        cmocka_unit_test(a_visitor_that_fails_says_why_and_opens_nothing),
        cmocka_unit_test(a_visitor_is_given_up),
        cmocka_unit_test(a_missing_module_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
