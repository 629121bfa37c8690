/* SPDX-License-Identifier: Apache-2.0 */
/* The name server and the proxy of the host's side, as a spec names them. */
#include "core/upstream.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/guards.h"

static bool read_port(const char *s, uint16_t *ret)
{
    uint64_t port;

    if (parse_u64(s, 1, UINT16_MAX, &port) < 0)
        return false;
    *ret = (uint16_t)port;
    return true;
}

/* Whether something can be asked there. */
static bool is_host(const struct address *a)
{
    const struct address to = address_unmapped(a);
    const struct address_block *block = address_block(&to);

    return !block || (block->cls != ADDRESS_UNSPECIFIED && block->cls != ADDRESS_MULTICAST &&
                      block->cls != ADDRESS_BROADCAST);
}

int resolver_parse(const char *text, struct address *ret, uint16_t *ret_port, struct error *err)
{
    uint16_t port = RESOLVER_PORT_DEFAULT;
    struct address a;
    bool good = address_parse(text, strlen(text), &a) == ADDRESS_GOOD;

    if (!good) {
        size_t n = address_parse_front(text, &a);

        good = n > 0 && (text[n] == '\0' || read_port(text + n + 1, &port));
    }
    if (!good || !is_host(&a)) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "'%.80s' is not the address of a name server",
                        text);
        text_make_printable(err->message);
        return error_remedy(err, "Write ADDR or ADDR:PORT, such as 9.9.9.9 or [2620:fe::fe]:53");
    }
    *ret = a;
    *ret_port = port;
    return 0;
}

static const struct {
    const char *text;
    uint16_t port;
} schemes[] = {
    [PROXY_HTTP] = {"http://", 80},
    [PROXY_HTTPS] = {"https://", 443},
    [PROXY_SOCKS5] = {"socks5://", 1080},
};

static int no_proxy(struct error *err, const char *why)
{
    (void)error_set(err, ERROR_USAGE, EINVAL, "%s", why);
    return error_remedy(err, "Write a URL such as http://proxy.example:3128");
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT, with the end of the text behind it. */
static bool read_authority(const char *s, struct proxy_url *u)
{
    char text[HOST_NAME_BYTES_MAX + 8];
    size_t n = strcspn(s, "/");
    struct host_name name;
    struct address a;

    if (n >= sizeof text || (s[n] == '/' && s[n + 1] != '\0'))
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    size_t host = address_parse_front(text, &a);
    if (host > 0) {
        if (!is_host(&a))
            return false;
        address_format(&a, u->host);
    } else {
        host = strcspn(text, ":");
        if (host_name_read(text, host, &name) < 0)
            return false;
        memcpy(u->host, name.text, sizeof name.text);
    }
    return text[host] == '\0' || read_port(text + host + 1, &u->port);
}

int proxy_parse(const char *url, struct proxy_url *ret, struct error *err)
{
    struct proxy_url u = {0};
    size_t scheme = 0;

    while (scheme < ARRAY_SIZE(schemes) &&
           strncmp(url, schemes[scheme].text, strlen(schemes[scheme].text)) != 0)
        scheme++;
    if (scheme == ARRAY_SIZE(schemes))
        return no_proxy(err, "it is not a URL with http, https or socks5");
    u.scheme = (enum proxy_scheme)scheme;
    u.port = schemes[scheme].port;
    const char *rest = url + strlen(schemes[scheme].text);
    if (strchr(rest, '@')) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "it has a user name or a password in it");
        return error_remedy(err, "Write USER:PASSWORD into a file of your own, and name the file "
                                 "as backend.proxy_credentials (--proxy-credentials)");
    }
    if (!read_authority(rest, &u))
        return no_proxy(err, "it does not name a host, or a host and a port from 1 to 65535");
    *ret = u;
    return 0;
}
