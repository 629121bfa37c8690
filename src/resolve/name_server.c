/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking one name server (RFC 1035), by UDP, and again by TCP when an answer did not fit. Each
 * question has a random id and, as each has a connected socket of its own, a random port that the
 * kernel picks; what comes from elsewhere or answers something else is not looked at (RFC 5452).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/parse.h"
#include "resolve/resolve.h"
#include "wire/dns.h"
#include "base/guards.h"

enum { DNS_PORT = 53, QUERY_MAX = 512, TRIES = 3, LENGTH_BYTES = 2 };
#define TRY_US   UINT64_C(3000000)
#define GRACE_US UINT64_C(1000000) /* for the other family when one is known */

/* One of the two questions about a name. */
struct query {
    const struct name_server *server;
    const char *name;
    uint16_t type, id;
    int fd;       /* by UDP; -EBADF once it is decided */
    bool decided; /* known says whether there was an answer, which `result` is then */
    bool known;
    struct dns_result result;
};

int name_server_parse(const char *text, struct name_server *ret)
{
    char address[INET6_ADDRSTRLEN];
    const char *start = text[0] == '[' ? text + 1 : text;
    const char *end = text[0] == '[' ? strchr(text, ']') : strchr(text, ':');
    struct name_server s = {0};
    uint64_t port = DNS_PORT;

    if (text[0] != '[' && end && strchr(end + 1, ':')) /* IPv6, and nothing else */
        end = NULL;
    size_t n = end ? (size_t)(end - start) : strlen(start);
    const char *rest = start + n + (text[0] == '[' && end ? 1 : 0);
    if (n >= sizeof address || (text[0] == '[' && !end) || (*rest != '\0' && *rest != ':') ||
        (*rest == ':' && parse_u64(rest + 1, 1, 65535, &port) < 0))
        return -EINVAL;
    memcpy(address, start, n);
    address[n] = '\0';
    if (text[0] != '[' && inet_pton(AF_INET, address, &s.address.v4.sin_addr) == 1) {
        s.address.v4.sin_family = AF_INET;
        s.address.v4.sin_port = htons((uint16_t)port);
        s.len = sizeof s.address.v4;
    } else if (inet_pton(AF_INET6, address, &s.address.v6.sin6_addr) == 1) {
        s.address.v6.sin6_family = AF_INET6;
        s.address.v6.sin6_port = htons((uint16_t)port);
        s.len = sizeof s.address.v6;
    } else {
        return -EINVAL;
    }
    *ret = s;
    return 0;
}

static void decide(struct query *q, const struct dns_result *result)
{
    fd_closep(&q->fd);
    q->decided = true;
    q->known = result != NULL;
    if (result)
        q->result = *result;
}

/* --- by UDP --- */

static void start(struct query *q)
{
    q->fd = socket(q->server->address.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (q->fd < 0 || getrandom(&q->id, sizeof q->id, 0) != sizeof q->id ||
        connect(q->fd, &q->server->address.any, q->server->len) < 0)
        decide(q, NULL);
}

/* The same again for each try, so that a late answer to the one before counts. */
static void ask(struct query *q)
{
    uint8_t buf[QUERY_MAX];
    size_t len = dns_query_encode(q->name, q->type, q->id, buf, sizeof buf);

    /* An error may be the one of the try before (ICMP); no answer will tell then. */
    if (len == 0)
        decide(q, NULL);
    else if (send(q->fd, buf, len, MSG_NOSIGNAL) < 0)
        (void)!send(q->fd, buf, len, MSG_NOSIGNAL);
}

/* --- by TCP (RFC 7766) --- */

static int connect_by(int fd, const struct name_server *s, uint64_t deadline_us)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (connect(fd, &s->address.any, s->len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    int r = io_wait(fd, POLLOUT, deadline_us);
    if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    return r < 0 ? r : -error;
}

static int ask_by_tcp(const struct query *q, struct dns_result *ret)
{
    const uint64_t deadline_us = clock_after_us(TRY_US);
    uint8_t buf[LENGTH_BYTES + UINT16_MAX];
    _cleanup_fd_ int fd =
        socket(q->server->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    uint16_t id;

    if (fd < 0 || getrandom(&id, sizeof id, 0) != sizeof id)
        return -EIO;
    size_t len = dns_query_encode(q->name, q->type, id, buf + LENGTH_BYTES, QUERY_MAX);
    buf[0] = (uint8_t)(len >> 8);
    buf[1] = (uint8_t)len;
    int r = connect_by(fd, q->server, deadline_us);
    if (r == 0)
        r = send(fd, buf, LENGTH_BYTES + len, MSG_NOSIGNAL) == (ssize_t)(LENGTH_BYTES + len)
                ? 0
                : -EIO; /* so little always fits a new socket */
    if (r == 0)
        r = io_read_full(fd, buf, LENGTH_BYTES, deadline_us);
    len = (size_t)buf[0] << 8 | buf[1];
    if (r == 0)
        r = io_read_full(fd, buf, len, deadline_us);
    if (r == 0)
        r = dns_result_parse(buf, len, q->name, q->type, id, ret);
    return r == 0 && ret->truncated ? -EPROTO : r;
}

/* --- both questions --- */

/* Whatever has come for @q; a packet that is not the answer is nobody's. */
static void receive(struct query *q)
{
    uint8_t buf[DNS_MESSAGE_BYTES_MAX];
    struct dns_result result;

    while (!q->decided) {
        ssize_t n = recv(q->fd, buf, sizeof buf, MSG_TRUNC);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            decide(q, NULL); /* nobody listens there */
        } else if ((size_t)n <= sizeof buf &&
                   dns_result_parse(buf, (size_t)n, q->name, q->type, q->id, &result) == 0) {
            if (result.truncated)
                decide(q, ask_by_tcp(q, &result) == 0 ? &result : NULL);
            else
                decide(q, &result);
        }
    }
}

static bool has_addresses(const struct query *q)
{
    return q->decided && q->known && q->result.n_addresses > 0;
}

/* Until both are decided or the time is over, which is soon when one family is known. */
static void await(struct query q[static 2], uint64_t deadline_us)
{
    while (!q[0].decided || !q[1].decided) {
        struct pollfd p[2] = {{.fd = q[0].fd, .events = POLLIN}, {.fd = q[1].fd, .events = POLLIN}};
        int n = poll(p, 2, clock_poll_ms(deadline_us));

        if (n == 0 && clock_now_us() >= deadline_us)
            return;
        for (size_t i = 0; n > 0 && i < 2; i++)
            if (p[i].revents)
                receive(&q[i]);
        if ((has_addresses(&q[0]) || has_addresses(&q[1])) &&
            clock_after_us(GRACE_US) < deadline_us)
            deadline_us = clock_after_us(GRACE_US);
    }
}

/* A definite no: the name is not there, or has nothing of this type. */
static bool says_no(const struct query *q)
{
    return q->known && (q->result.rcode == DNS_NXDOMAIN ||
                        (q->result.rcode == DNS_NOERROR && q->result.n_addresses == 0));
}

static void conclude(const struct query q[static 2], struct resolve_answer *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; has_addresses(&q[i]) && j < q[i].result.n_addresses; j++)
            answer_add(ret, q[i].result.addresses[j].v6 ? 6 : 4, q[i].result.addresses[j].bytes);
    if (ret->n > 0)
        ret->status = RESOLVE_FOUND;
    else
        ret->status = says_no(&q[0]) && says_no(&q[1]) ? RESOLVE_NOT_FOUND : RESOLVE_FAILED;
}

void name_server_resolve(const struct name_server *s, const char *name, struct resolve_answer *ret)
{
    struct query q[2] = {
        {.server = s, .name = name, .type = DNS_AAAA, .fd = -EBADF},
        {.server = s, .name = name, .type = DNS_A, .fd = -EBADF},
    };

    for (size_t i = 0; i < 2; i++)
        start(&q[i]);
    for (unsigned tries = 0; tries < TRIES; tries++) {
        if (tries > 0 && (has_addresses(&q[0]) || has_addresses(&q[1])))
            break;
        for (size_t i = 0; i < 2; i++)
            if (!q[i].decided)
                ask(&q[i]);
        await(q, clock_after_us(TRY_US));
    }
    for (size_t i = 0; i < 2; i++)
        if (!q[i].decided)
            decide(&q[i], NULL);
    conclude(q, ret);
}
