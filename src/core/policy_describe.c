/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may reach, in a few plain lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/policy.h"
#include "base/guards.h"

enum { SHOWN_MAX = 20 }; /* entries of a list that the text names */

static void put_rest(FILE *f, size_t n)
{
    if (n > SHOWN_MAX)
        (void)fprintf(f, ", and %zu more", n - SHOWN_MAX);
}

static void put_hosts(FILE *f, const struct policy *p)
{
    bool wildcard = false;

    (void)fprintf(f, "It may reach these hosts, by name: ");
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct host_rule *rule = &p->hosts[i].rule;

        wildcard = wildcard || rule->wildcard;
        if (i >= SHOWN_MAX)
            continue;
        (void)fprintf(f, "%s%s%s", i > 0 ? ", " : "", rule->wildcard ? "*." : "", rule->name.text);
        if (rule->port == 443)
            (void)fprintf(f, " (TLS on port 443)");
        else
            (void)fprintf(f, " (%s on port %u)", rule->port == 80 ? "HTTP" : "TCP", rule->port);
    }
    put_rest(f, p->n_hosts);
    (void)fprintf(f, ".\n");
    if (wildcard)
        (void)fprintf(f, "A star stands for 1 to %d parts of a name, never for none.\n",
                      HOST_WILDCARD_LABELS_MAX);
    (void)fprintf(f, "Hosts take no UDP; on port 443 the TLS server name has to be the host's, and "
                     "on port 80 the Host of each request.\n");
    (void)fprintf(f,
                  "A host whose address is private, loopback or metadata is refused unless a range "
                  "lists that address, or the spec gives it (backend.add_hosts).\n");
}

static void put_ranges(FILE *f, const char *intro, const struct policy_range *items, size_t n)
{
    (void)fprintf(f, "%s: ", intro);
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        char text[ADDRESS_RANGE_TEXT_BYTES];

        address_range_format(&items[i].range, text);
        (void)fprintf(f, "%s%s", i > 0 ? ", " : "", text);
    }
    put_rest(f, n);
    (void)fprintf(f, ".\n");
}

/* Worth a line: whoever reads those may get the credentials of the host. */
static void put_metadata(FILE *f, const struct policy *p)
{
    static const char *const texts[] = {"169.254.169.254", "fd00:ec2::254"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct address_range one;
        struct error ignored = ERROR_INIT;

        if (address_range_parse(texts[i], &one, &ignored) == 0 && policy_find_range(p, &one.base))
            (void)fprintf(f, "Among them is %s, where clouds hand out credentials of the host.\n",
                          texts[i]);
    }
}

static void put_closed(FILE *f, const struct policy *p)
{
    if (p->n_hosts == 0 && p->n_ranges == 0) {
        (void)fprintf(f, "The sandbox has no network: nothing leaves it and no name resolves.\n");
        return;
    }
    (void)fprintf(f, "The network of the sandbox is blocked but for what is listed here.\n");
    if (p->n_hosts > 0)
        put_hosts(f, p);
    if (p->n_ranges > 0)
        put_ranges(f, "It may reach these addresses, on any port, by TCP and UDP", p->ranges,
                   p->n_ranges);
    put_metadata(f, p);
    (void)fputs(p->n_hosts > 0 ? "Other names do not resolve, " : "No name resolves, ", f);
    (void)fprintf(f, "and any other connection is refused at once; trying again does not help.\n");
}

static void put_open(FILE *f, const struct policy *p)
{
    (void)fprintf(f, "The network of the sandbox is open: it may reach every public address.\n");
    if (p->n_private_ranges == 0) {
        (void)fprintf(
            f, "Private, loopback, link-local and metadata addresses are refused at once.\n");
        return;
    }
    put_ranges(f, "Of private and other special addresses it may reach these", p->private_ranges,
               p->n_private_ranges);
    put_metadata(f, p);
    (void)fprintf(
        f, "Other private, loopback, link-local and metadata addresses are refused at once.\n");
}

int policy_describe(const struct policy *p, char **ret)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return -ENOMEM;
    if (p->open)
        put_open(f, p);
    else
        put_closed(f, p);
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        free(text);
        return -ENOMEM;
    }
    *ret = text;
    return 0;
}
