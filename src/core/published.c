/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of backend.publish. */
#include "core/published.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "base/guards.h"

static const char how[] = "Write [ADDR:]HOSTPORT:PORT, such as 8080:80, 127.0.0.1:8080:80 or "
                          "[::1]:8080:80; HOSTPORT 0 picks one that is free";

/* The @n bytes before a colon or the end. */
static bool read_port(const char *s, size_t n, uint16_t min, uint16_t *ret)
{
    char text[8];
    uint64_t port;

    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    if (parse_u64(text, min, UINT16_MAX, &port) < 0)
        return false;
    *ret = (uint16_t)port;
    return true;
}

static int refuse(struct error *err, const char *text, const char *why)
{
    (void)error_set(err, ERROR_USAGE, EINVAL, "'%.80s' %s", text, why);
    text_make_printable(err->message);
    return error_remedy(err, "%s", how);
}

static bool is_listened_on(const struct address *a)
{
    const struct address_block *block = address_block(a);

    return !block || (block->cls != ADDRESS_MULTICAST && block->cls != ADDRESS_BROADCAST);
}

int published_parse(const char *text, struct published *ret, struct error *err)
{
    struct published p = {.address = {ADDRESS_V4, {127, 0, 0, 1}}};
    const char *s = text;
    size_t n = address_parse_front(s, &p.address);

    if (n > 0 && s[n] == ':')
        s += n + 1;
    size_t first = strcspn(s, ":");
    if (s[first] != ':' || !read_port(s, first, 0, &p.host_port) ||
        !read_port(s + first + 1, strlen(s + first + 1), 1, &p.port))
        return refuse(err, text, "does not say which port of the host leads to which port inside");
    if (!is_listened_on(&p.address))
        return refuse(err, text, "has an address that nothing can listen on");
    *ret = p;
    return 0;
}

void published_format(const struct published *p, char buf[static PUBLISHED_TEXT_BYTES])
{
    char address[ADDRESS_TEXT_BYTES];

    address_format(&p->address, address);
    (void)snprintf(buf, PUBLISHED_TEXT_BYTES,
                   p->address.family == ADDRESS_V6 ? "[%s]:%u:%u" : "%s:%u:%u", address,
                   p->host_port, p->port);
}
