/* SPDX-License-Identifier: Apache-2.0 */
/* Refused attempts as a client has them. */
#include "client/denials.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"
#include "base/guards.h"

enum { DENIALS_MAX = 256 }; /* of one command; a keeper of today tells fewer */

/* Return: how many there are, or -EPROTO. */
static int count(struct reader message)
{
    struct denial x;
    int n = 0, r;

    while ((r = exit_denial_next(&message, &x)) > 0)
        n += n < DENIALS_MAX;
    return r < 0 ? r : n;
}

int denials_take(struct denials *ret, struct reader message)
{
    struct denials d = {0};
    size_t len = reader_left(&message);
    int n = count(message);

    *ret = d;
    if (n < 0)
        return n;
    d.more = exit_denials_more(message);
    if (n > 0) {
        assert(len > 0);
        d.message = malloc(len);
        d.items = calloc((size_t)n, sizeof *d.items);
        if (!d.message || !d.items) {
            denials_done(&d);
            return -ENOMEM;
        }
        memcpy(d.message, message.p, len);
        struct reader r = reader_over(d.message, len);
        while (d.n < (size_t)n && exit_denial_next(&r, &d.items[d.n]) > 0)
            d.n++;
    }
    *ret = d;
    return 0;
}

void denials_done(struct denials *d)
{
    free(d->items);
    free(d->message);
    *d = (struct denials){0};
}

void denial_place(const struct denial *x, char buf[static DENIAL_PLACE_BYTES])
{
    const char *host = x->name[0] ? x->name : x->address[0] ? x->address : "?";
    const bool v6 = !x->name[0] && strchr(host, ':');
    char port[16] = "";

    if (x->port > 0)
        (void)snprintf(port, sizeof port, ":%u", x->port);
    (void)snprintf(buf, DENIAL_PLACE_BYTES, "%s%.*s%s%s", v6 ? "[" : "", 280, host, v6 ? "]" : "",
                   port);
}

bool denials_first_of_place(const struct denial *items, size_t i)
{
    char mine[DENIAL_PLACE_BYTES], other[DENIAL_PLACE_BYTES];

    denial_place(&items[i], mine);
    for (size_t j = 0; j < i; j++) {
        denial_place(&items[j], other);
        if (strcmp(mine, other) == 0)
            return false;
    }
    return true;
}
