/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking a name up as the host's own programs do.
 *
 * The name is asked for with a dot at its end, so that no search list of resolv.conf(5) is tried:
 * otherwise a listed name that does not exist would be asked for below other domains, too, and a
 * name that nobody listed would leave the host. nscd(8) has a search list of its own, which no
 * option or variable of ours would reach; the dot does.
 *
 * But glibc's service "files" compares names as they are written, so that with its dot none of
 * hosts(5) would be found. That file is therefore read here, first, which is where "files" stands
 * in nsswitch.conf(5) on all hosts that people use.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "resolve/resolve.h"
#include "base/guards.h"

#define HOSTS_FILE "/etc/hosts"

void answer_add(struct resolve_answer *x, uint8_t family, const void *bytes)
{
    struct resolve_address a = {.family = family};

    memcpy(a.bytes, bytes, family == 4 ? 4 : sizeof a.bytes);
    for (size_t i = 0; i < x->n; i++)
        if (memcmp(&x->addresses[i], &a, sizeof a) == 0)
            return;
    if (x->n < RESOLVE_ADDRESSES_MAX)
        x->addresses[x->n++] = a;
}

/* One line: an address and the names that it has, which are split apart in place. */
static void read_line(char *line, const char *name, struct resolve_answer *x)
{
    static const char blanks[] = " \t\r\n\f\v";
    char *rest = NULL, *address;
    uint8_t bytes[16];

    line[strcspn(line, "#")] = '\0';
    address = strtok_r(line, blanks, &rest);
    if (!address)
        return;
    for (const char *word; (word = strtok_r(NULL, blanks, &rest));) {
        if (strcasecmp(word, name) != 0)
            continue;
        if (inet_pton(AF_INET, address, bytes) == 1)
            answer_add(x, 4, bytes);
        else if (inet_pton(AF_INET6, address, bytes) == 1)
            answer_add(x, 6, bytes);
        return;
    }
}

static void read_hosts(const char *name, struct resolve_answer *x)
{
    FILE *f = fopen(HOSTS_FILE, "re");
    char *line = NULL;
    size_t size = 0;

    if (!f)
        return;
    while (getline(&line, &size, f) >= 0)
        read_line(line, name, x);
    free(line);
    (void)fclose(f);
}

static void take(const struct addrinfo *found, struct resolve_answer *x)
{
    for (; found; found = found->ai_next) {
        if (found->ai_family == AF_INET) {
            struct sockaddr_in v4;

            memcpy(&v4, found->ai_addr, sizeof v4);
            answer_add(x, 4, &v4.sin_addr);
        } else if (found->ai_family == AF_INET6) {
            struct sockaddr_in6 v6;

            memcpy(&v6, found->ai_addr, sizeof v6);
            answer_add(x, 6, &v6.sin6_addr);
        }
    }
}

void host_way_resolve(const char *name, struct resolve_answer *ret)
{
    /* No AI_ADDRCONFIG: egress looks for itself which addresses there is a way to. */
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char absolute[RESOLVE_NAME_MAX + 2];
    struct addrinfo *found = NULL;

    ret->n = 0;
    read_hosts(name, ret);
    if (ret->n > 0) {
        ret->status = RESOLVE_FOUND;
        return;
    }
    (void)snprintf(absolute, sizeof absolute, "%s.", name);
    int r = getaddrinfo(absolute, NULL, &hints, &found);
    if (r == 0) {
        take(found, ret);
        freeaddrinfo(found);
    }
    if (r == 0)
        ret->status = ret->n > 0 ? RESOLVE_FOUND : RESOLVE_NOT_FOUND;
    else
        ret->status = r == EAI_NONAME || r == EAI_NODATA ? RESOLVE_NOT_FOUND : RESOLVE_FAILED;
}
