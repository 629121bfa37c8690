/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a destination: URL, HOST:PORT, ADDR:PORT or [V6]:PORT, in one strict way. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/policy.h"
#include "base/guards.h"

#define FORMS "Write a URL, HOST:PORT, ADDRESS:PORT or [IPV6]:PORT"

/* The text that is read, for the errors to quote. */
struct source {
    const char *text;
    size_t n;
    struct error *err;
};

static int refuse(const struct source *src, const char *why, const char *remedy)
{
    enum { SHOWN_MAX = 100 };

    (void)error_set(src->err, ERROR_USAGE, EINVAL, "destination '%.*s%s' %s",
                    (int)(src->n < SHOWN_MAX ? src->n : SHOWN_MAX), src->text,
                    src->n > SHOWN_MAX ? "..." : "", why);
    text_make_printable(src->err->message);
    return error_remedy(src->err, "%s", remedy);
}

/* Bytes that have no place anywhere in a destination, the path of a URL included. */
static int check_bytes(const struct source *src)
{
    if (src->n == 0)
        return refuse(src, "is empty", FORMS);
    for (size_t i = 0; i < src->n; i++) {
        unsigned char c = (unsigned char)src->text[i];

        if (c == ' ' || c == '\t')
            return refuse(src, "has a blank", FORMS ", in a URL with %20 for a blank in its path");
        if (c < 0x20 || c == 0x7F)
            return refuse(src, "has a control character", FORMS);
        if (c >= 0x80)
            return refuse(src, "has a character beyond ASCII",
                          "Write the name as DNS has it, its international labels as xn--...");
        if (c == '\\')
            return refuse(src, "has a backslash, which some programs read as a slash",
                          "Write slashes as '/'");
    }
    return 0;
}

static int read_port(const struct source *src, const char *s, size_t n, uint16_t *ret)
{
    unsigned port = 0;

    for (size_t i = 0; i < n && port <= 65535; i++) {
        if (s[i] < '0' || s[i] > '9') {
            port = 0;
            break;
        }
        port = port * 10 + (unsigned)(s[i] - '0');
    }
    if (n == 0 || s[0] == '0' || port < 1 || port > 65535)
        return refuse(src, "has no port from 1 to 65535 after its colon", FORMS);
    *ret = (uint16_t)port;
    return 0;
}

static int read_host(const struct source *src, const char *s, size_t n,
                     struct policy_destination *ret)
{
    enum address_fault fault = address_parse(s, n, &ret->address);

    if (fault == ADDRESS_GOOD)
        return 0;
    if (fault == ADDRESS_EMPTY)
        return refuse(src, "has no host", FORMS);
    if (fault != ADDRESS_NOT_ONE)
        return refuse(src, address_fault_text(fault),
                      "Write the address in full, such as 203.0.113.7:443");
    if (memchr(s, '*', n))
        return refuse(src, "has a star", "Name one host: a wildcard is for rules");
    if (host_name_read(s, n, &ret->name) < 0)
        return refuse(src, "has no host name that two programs would read alike",
                      "Use letters, digits, hyphens and dots, parts of at most 63 characters, and "
                      "253 in all");
    ret->by_name = true;
    return 0;
}

/* "[2001:db8::1]", then nothing or ":PORT". */
static int read_bracketed(const struct source *src, const char *s, size_t n, const char **ret_rest,
                          struct policy_destination *ret)
{
    const char *end = memchr(s, ']', n);
    enum address_fault fault =
        end ? address_parse(s + 1, (size_t)(end - s - 1), &ret->address) : ADDRESS_NOT_ONE;

    if (fault == ADDRESS_GOOD && ret->address.family != ADDRESS_V6)
        return refuse(src, "has brackets around what is no IPv6 address",
                      "Write the address without brackets");
    if (fault != ADDRESS_GOOD)
        return refuse(src,
                      fault == ADDRESS_NOT_ONE || fault == ADDRESS_EMPTY ||
                              fault == ADDRESS_BRACKETS
                          ? "has no IPv6 address in its brackets"
                          : address_fault_text(fault),
                      "Write it as in [2001:db8::1]:443");
    *ret_rest = end + 1;
    return 0;
}

/* HOST, HOST:PORT and so on; without a port it is @port, and 0 says that one must be there. */
static int read_authority(const struct source *src, const char *s, size_t n, uint16_t port,
                          struct policy_destination *ret)
{
    const char *colon = memchr(s, ':', n), *rest = colon ? colon : s + n;
    struct address v6;
    int r;

    ret->port = port;
    if (n > 0 && s[0] == '[') {
        r = read_bracketed(src, s, n, &rest, ret);
    } else if (colon && memchr(colon + 1, ':', n - (size_t)(colon + 1 - s))) {
        return address_parse(s, n, &v6) == ADDRESS_GOOD
                   ? refuse(src, "has an IPv6 address without brackets",
                            "Write it as in [2001:db8::1]:443")
                   : refuse(src, "has more than one colon", FORMS);
    } else {
        r = read_host(src, s, (size_t)(rest - s), ret);
    }
    if (r < 0)
        return r;
    if (rest < s + n && *rest != ':')
        return refuse(src, "has something between its address and its port",
                      "Write it as in [2001:db8::1]:443");
    if (rest < s + n)
        return read_port(src, rest + 1, n - (size_t)(rest + 1 - s), &ret->port);
    return port > 0 ? 0 : refuse(src, "has no port", FORMS ", such as host.example:443");
}

/* The port that a URL has unless it says so, or 0; -1 if the @n bytes are no scheme. */
static int scheme_port(const char *s, size_t n)
{
    static const struct {
        const char *name;
        int port;
    } known[] = {{"https", 443}, {"http", 80}, {"wss", 443}, {"ws", 80}};

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strlen(known[i].name) == n && strncasecmp(s, known[i].name, n) == 0)
            return known[i].port;
    for (size_t i = 0; i < n; i++) { /* RFC 3986, section 3.1 */
        bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z');
        bool other = (s[i] >= '0' && s[i] <= '9') || s[i] == '+' || s[i] == '-' || s[i] == '.';

        if (!letter && !(other && i > 0))
            return -1;
    }
    return n > 0 ? 0 : -1;
}

/* Checks what follows the host in @src: only a path may. */
static int check_authority(const struct source *src, const char *s, size_t n)
{
    const char *end = src->text + src->n;

    if (memchr(s, '@', n))
        return refuse(src, "has a user name before its host",
                      "Leave out what stands before the '@'");
    if (memchr(s, '%', n))
        return refuse(src, "has a '%' in its host, which some programs decode and others do not",
                      "Write the host's plain name or address");
    if (s + n < end && s[n] != '/')
        return refuse(src, "has no '/' between its host and what follows",
                      "Write it as in https://host.example/?query");
    return 0;
}

int policy_destination_parse(const char *text, size_t n, struct policy_destination *ret,
                             struct error *err)
{
    const struct source src = {text, n, err};
    struct policy_destination to = {0};
    int port = 0, r = check_bytes(&src);

    if (r < 0)
        return r;
    const char *scheme_end = memmem(text, n, "://", 3);
    const char *s = scheme_end ? scheme_end + 3 : text;
    size_t len = 0;

    if (scheme_end)
        port = scheme_port(text, (size_t)(scheme_end - text));
    if (port < 0)
        return refuse(&src, "has no scheme before its '://'", FORMS);
    while (s + len < text + n && !strchr("/?#", s[len]))
        len++;
    r = check_authority(&src, s, len);
    if (r == 0 && !scheme_end && s + len < text + n)
        r = refuse(&src, "has a path but no scheme", "Write https:// in front, or HOST:PORT alone");
    if (r == 0)
        r = read_authority(&src, s, len, (uint16_t)port, &to);
    if (r < 0)
        return r;
    to.address = address_unmapped(&to.address);
    *ret = to;
    return 0;
}
