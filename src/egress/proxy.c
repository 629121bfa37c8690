/* SPDX-License-Identifier: Apache-2.0 */
/* The host's proxy: where it is, who we say we are, and what it is asked. */
#include "egress/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "core/host_rule.h"
#include "core/upstream.h"
#include "egress/lookup.h"
#include "wire/base64.h"
#include "wire/resolve.h"
#include "base/guards.h"

enum { CREDENTIALS_MAX = 1024 }; /* bytes of USER:PASSWORD */

/* --- where it is --- */

static int read_url(const char *url, struct proxy_url *ret, struct error *err)
{
    int r = proxy_parse(url, ret, err);

    if (r < 0)
        return error_context(err, "backend.proxy");
    if (ret->scheme == PROXY_HTTP)
        return 0;
    (void)error_set(err, ERROR_USAGE, EPROTONOSUPPORT,
                    "the proxy is not of the kind that egress speaks, which is plain http");
    return error_remedy(err, "Write backend.proxy as http://HOST:PORT");
}

static int not_looked_up(const struct host_name *name, const char *why, int code, struct error *err)
{
    (void)error_set(err, ERROR_TERMINAL, code, "the proxy's name '%s' %s", name->text, why);
    return error_remedy(err,
                        "Check backend.proxy, or write the proxy's address instead of its name");
}

/* One question, and the answer to it. Nobody else asks yet, so there is no other. */
static int ask(int fd, const struct host_name *name, struct resolve_answer *ret)
{
    uint8_t buf[RESOLVE_PACKET_MAX];
    size_t len = resolve_question_encode(0, name->text, buf, sizeof buf);
    int r = len > 0 ? io_send_packet(fd, buf, len, NULL, 0, NULL, 0) : -EINVAL;

    if (r == 0)
        r = io_wait(fd, POLLIN, clock_after_us(LOOKUP_TIMEOUT_US));
    if (r < 0)
        return r;
    int fds[IO_FDS_MAX];
    size_t n_fds = 0;
    ssize_t n = io_recv_packet(fd, buf, sizeof buf, fds, &n_fds);
    while (n_fds > 0)
        fd_closep(&fds[--n_fds]);
    if (n <= 0)
        return n < 0 ? (int)n : -EPIPE;
    return resolve_answer_parse(buf, (size_t)n, ret);
}

static int look_up(struct proxy *p, const struct host_name *name, int fd, struct error *err)
{
    struct resolve_answer answer;
    int r = fd < 0 ? -EBADF : ask(fd, name, &answer);

    if (r < 0)
        return not_looked_up(name, "cannot be looked up", -r, err);
    if (answer.status == RESOLVE_NOT_FOUND)
        return not_looked_up(name, "does not exist", ENOENT, err);
    if (answer.status != RESOLVE_FOUND)
        return not_looked_up(name, "cannot be looked up now", EAGAIN, err);
    for (size_t i = 0; i < answer.n && p->n_addresses < PROXY_ADDRESSES_MAX; i++) {
        struct address a = {.family = answer.addresses[i].family == 4 ? ADDRESS_V4 : ADDRESS_V6};

        memcpy(a.bytes, answer.addresses[i].bytes, sizeof a.bytes);
        p->addresses[p->n_addresses++] = address_unmapped(&a);
    }
    return 0;
}

static int find_host(struct proxy *p, const char *host, int fd, struct error *err)
{
    struct host_name name;
    struct address a;

    if (address_parse(host, strlen(host), &a) == ADDRESS_GOOD) {
        p->addresses[p->n_addresses++] = address_unmapped(&a);
        return 0;
    }
    if (host_name_read(host, strlen(host), &name) == 0)
        return look_up(p, &name, fd, err);
    (void)error_set(err, ERROR_USAGE, EINVAL, "the host of the proxy is no name");
    return error_remedy(err, "Write backend.proxy as http://HOST:PORT");
}

/* --- who we say we are --- */

static int refuse_file(const char *path, const char *why, int code, const char *remedy,
                       struct error *err)
{
    (void)error_set(err, ERROR_USAGE, code, "the credentials of the proxy, '%s', %s", path, why);
    return error_remedy(err, "%s", remedy);
}

/* USER:PASSWORD, where no byte is a control (RFC 7617, section 2); its length, or 0. */
static size_t line_length(const char *text, size_t len)
{
    size_t n = 0;

    for (; n < len && text[n] != '\n'; n++)
        if ((unsigned char)text[n] < 0x20 || text[n] == 0x7F)
            break;
    if (n < len && text[n] == '\r' && n + 1 < len && text[n + 1] == '\n')
        len = n; /* a line of another system's */
    if (n < len && text[n] != '\n')
        return 0;
    return memchr(text, ':', n) ? n : 0;
}

static int open_credentials(const char *path, struct error *err)
{
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd =
        root < 0 ? -errno : path_open_in_root(root, path, O_RDONLY | O_NONBLOCK, 0);
    struct stat st;

    if (path[0] != '/')
        return refuse_file(path, "has no absolute path", EINVAL, "Write the whole path", err);
    if (fd < 0 || fstat(fd, &st) < 0)
        return refuse_file(path, strerror(fd < 0 ? -fd : errno), fd < 0 ? -fd : errno,
                           "Name a file that you can read as backend.proxy_credentials", err);
    if (!S_ISREG(st.st_mode))
        return refuse_file(path, "is no regular file", EINVAL,
                           "Name a file as backend.proxy_credentials", err);
    if (st.st_mode & 077)
        return refuse_file(path, "can be read or written by others", EACCES,
                           "Take that away with chmod 600", err);
    return TAKE_FD(fd);
}

static int read_credentials(struct proxy *p, const char *path, struct error *err)
{
    _cleanup_fd_ int fd = open_credentials(path, err);
    char text[CREDENTIALS_MAX + 2]; /* and its line end */
    size_t n = 0;
    ssize_t more = 1;

    if (fd < 0)
        return fd;
    for (; more > 0 && n<sizeof text; n += more> 0 ? (size_t)more : 0)
        more = read(fd, text + n, sizeof text - n);
    n = more < 0 ? 0 : line_length(text, n);
    if (n == 0 || n > CREDENTIALS_MAX) {
        explicit_bzero(text, sizeof text);
        return refuse_file(path, "does not begin with a line USER:PASSWORD", EINVAL,
                           "Write the user's name, a colon and the password as its first line",
                           err);
    }
    char *encoded = base64_encode(text, n, NULL);
    if (encoded && asprintf(&p->authorization, "Basic %s", encoded) < 0)
        p->authorization = NULL;
    explicit_bzero(text, sizeof text);
    free(encoded);
    return p->authorization ? 0 : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* --- */

int proxy_init(struct proxy *p, const char *url, const char *credentials, int resolve_fd,
               struct error *err)
{
    struct proxy made = {.set = url != NULL};
    struct proxy_url to = {.port = 0};
    int r;

    if (!url && credentials) {
        (void)error_set(err, ERROR_USAGE, EINVAL,
                        "there are credentials for a proxy, and there is no proxy");
        return error_remedy(err, "Set backend.proxy, or remove backend.proxy_credentials");
    }
    r = url ? read_url(url, &to, err) : 0;
    if (r == 0 && url)
        r = find_host(&made, to.host, resolve_fd, err);
    if (r == 0 && credentials)
        r = read_credentials(&made, credentials, err);
    if (r < 0) {
        proxy_done(&made);
        return r;
    }
    made.port = to.port;
    *p = made;
    return 0;
}

void proxy_done(struct proxy *p)
{
    if (p->authorization)
        explicit_bzero(p->authorization, strlen(p->authorization));
    free(p->authorization);
    *p = (struct proxy){.set = false};
}

size_t proxy_request(const struct proxy *p, const char *host, bool v6_literal, uint16_t port,
                     char *buf, size_t size)
{
    const char *left = v6_literal ? "[" : "", *right = v6_literal ? "]" : "";
    int n = snprintf(buf, size, "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n%s%s%s\r\n", left,
                     host, right, port, left, host, right, port,
                     p->authorization ? "Proxy-Authorization: " : "",
                     p->authorization ? p->authorization : "", p->authorization ? "\r\n" : "");

    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}
