/* SPDX-License-Identifier: Apache-2.0 */
/* The name servers that programs inside are told of. */
#include "local/name_servers.h"

#include <string.h>

#include "core/upstream.h"
#include "base/guards.h"

struct servers {
    struct address list[NAME_SERVERS_MAX];
    size_t n;
};

static bool ranges_only(const struct policy_reach *reach)
{
    return reach && !reach->names && reach->n_v4 + reach->n_v6 > 0;
}

static bool is_reached(const struct policy_reach *reach, const struct address *a)
{
    bool v4 = a->family == ADDRESS_V4;
    const struct policy_interval *x = v4 ? reach->v4 : reach->v6;
    size_t n = v4 ? reach->n_v4 : reach->n_v6, len = v4 ? 4 : 16;

    for (size_t i = 0; i < n; i++)
        if (memcmp(a->bytes, x[i].first, len) >= 0 && memcmp(a->bytes, x[i].last, len) <= 0)
            return true;
    return false;
}

/* Loopback is in no interval. */
static void add(struct servers *s, const struct policy_reach *reach, const struct address *a)
{
    if (s->n < NAME_SERVERS_MAX && is_reached(reach, a))
        s->list[s->n++] = *a;
}

/* One line of a resolv.conf, which is @n bytes long. */
static void read_line(struct servers *s, const struct policy_reach *reach, const char *line,
                      size_t n)
{
    static const char word[] = "nameserver";
    const char *p = line + strlen(word);
    struct address a;

    if (n <= strlen(word) || strncmp(line, word, strlen(word)) != 0 || (*p != ' ' && *p != '\t'))
        return;
    n -= strlen(word);
    while (n > 0 && (*p == ' ' || *p == '\t')) {
        p++;
        n--;
    }
    for (size_t i = 0; i < n; i++)
        if (strchr(" \t\r#;", p[i]))
            n = i;
    if (address_parse(p, n, &a) == ADDRESS_GOOD)
        add(s, reach, &a);
}

static void read_host(struct servers *s, const struct policy_reach *reach, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        read_line(s, reach, text, n);
        text += n + (text[n] == '\n');
    }
}

static void read_resolver(struct servers *s, const struct policy_reach *reach, const char *text)
{
    struct error ignored = ERROR_INIT;
    struct address a;
    uint16_t port;

    if (resolver_parse(text, &a, &port, &ignored) == 0 && port == RESOLVER_PORT_DEFAULT)
        add(s, reach, &a);
}

static void put_line(char *buf, const char *word, const char *value)
{
    size_t at = strlen(buf);

    (void)snprintf(buf + at, NAME_SERVERS_TEXT_BYTES - at, "%s %s\n", word, value);
}

void name_servers_text(const struct policy_pool *pool, const struct policy_reach *reach,
                       const char *resolver, const char *host,
                       char buf[static NAME_SERVERS_TEXT_BYTES])
{
    bool passes = reach && (reach->names || reach->n_v4 + reach->n_v6 > 0);
    char address[ADDRESS_TEXT_BYTES] = "127.0.0.1";
    struct servers s = {0};

    buf[0] = '\0';
    if (ranges_only(reach) && resolver)
        read_resolver(&s, reach, resolver);
    else if (ranges_only(reach) && host)
        read_host(&s, reach, host);
    if (s.n == 0 && pool) {
        struct address a = policy_pool_resolver(pool);

        address_format(&a, address);
    }
    if (s.n == 0)
        put_line(buf, "nameserver", address);
    for (size_t i = 0; i < s.n; i++) {
        address_format(&s.list[i], address);
        put_line(buf, "nameserver", address);
    }
    /* Where nothing answers, some C libraries wait for the whole time. */
    put_line(buf, "options", passes ? "timeout:5 attempts:2" : "timeout:1 attempts:1");
}

bool name_servers_wants_host(const struct policy_reach *reach, const char *resolver)
{
    return ranges_only(reach) && !resolver;
}
