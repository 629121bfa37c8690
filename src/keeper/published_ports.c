/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the published ports, while the process still may. */
#include "keeper/published_ports.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/published.h"
#include "base/guards.h"

enum { BACKLOG = 1024 };

static socklen_t socket_address(const struct published *x, struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof *ret);
    if (x->address.family == ADDRESS_V4) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(x->host_port);
        memcpy(&v4->sin_addr, x->address.bytes, 4);
        return sizeof *v4;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(x->host_port);
    memcpy(&v6->sin6_addr, x->address.bytes, 16);
    return sizeof *v6;
}

static int cannot_listen(const char *entry, int error, struct error *err)
{
    error_set(err, ERROR_USAGE, error, "publish '%s': the host's port cannot be opened: %s", entry,
              strerror(error));
    if (error == EADDRINUSE)
        return error_remedy(err, "Name another port of the host, or 0 to have a free one picked");
    if (error == EACCES)
        return error_remedy(err, "Ports below 1024 need a privilege: name a higher one");
    if (error == EADDRNOTAVAIL)
        return error_remedy(err, "Name an address that this host has");
    return -error;
}

/* Return: an owned listener, with the port that it has in @x; or -errno with @err. */
static int listen_at(const char *entry, struct published *x, struct error *err)
{
    struct sockaddr_storage at;
    socklen_t len = socket_address(x, &at);
    const int on = 1;
    _cleanup_fd_ int fd =
        socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

    if (fd < 0)
        return cannot_listen(entry, errno, err);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return cannot_listen(entry, errno, err);
    x->host_port = ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
                                                 : ((struct sockaddr_in6 *)&at)->sin6_port);
    return TAKE_FD(fd);
}

/* [ADDR:]PORT:PORT in full, so that it can be read back as an entry. */
static int keep_text(struct published_ports *p, const struct published *x)
{
    char address[ADDRESS_TEXT_BYTES], text[ADDRESS_TEXT_BYTES + 16];
    const bool v6 = x->address.family == ADDRESS_V6;

    address_format(&x->address, address);
    (void)snprintf(text, sizeof text, "%s%s%s:%u:%u", v6 ? "[" : "", address, v6 ? "]" : "",
                   x->host_port, x->port);
    return string_list_add(&p->texts, text);
}

static int open_one(struct published_ports *p, const char *entry, struct error *err)
{
    struct published x;
    int r = published_parse(entry, &x, err);

    if (r == 0)
        r = listen_at(entry, &x, err);
    if (r < 0)
        return r;
    assert(p->listeners && p->inside); /* there is room for every entry */
    p->listeners[p->n] = r;
    p->inside[p->n] = x.port;
    p->n++;
    return keep_text(p, &x) < 0 ? error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory") : 0;
}

int published_ports_open(const struct string_list *list, struct published_ports *ret,
                         struct error *err)
{
    struct published_ports p = {.listeners = calloc(list->n, sizeof *p.listeners),
                                .inside = calloc(list->n, sizeof *p.inside)};
    int r = 0;

    if (list->n > 0 && (!p.listeners || !p.inside))
        r = error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < list->n; i++)
        r = open_one(&p, list->items[i], err);
    if (r < 0) {
        published_ports_done(&p);
        return r;
    }
    *ret = p;
    return 0;
}

void published_ports_close(struct published_ports *p)
{
    for (size_t i = 0; i < p->n; i++)
        fd_closep(&p->listeners[i]);
    p->n = 0;
}

void published_ports_done(struct published_ports *p)
{
    published_ports_close(p);
    free(p->listeners);
    free(p->inside);
    string_list_done(&p->texts);
    *p = (struct published_ports){0};
}
