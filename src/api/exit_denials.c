/* SPDX-License-Identifier: Apache-2.0 */
/* Refused attempts, as callers of the library see them. */
#include <stdlib.h>

#include "api/api.h"
#include "base/guards.h"

static struct atoll_denial public(const struct denial *x)
{
    return (struct atoll_denial){
        .protocol = denial_protocol_name(x->protocol),
        .name = x->name,
        .address = x->address,
        .port = x->port,
        .rule = x->rule,
        .reason = x->reason,
        .bytes = x->bytes,
        .at_us = x->at_us,
        .repeated = x->repeated,
    };
}

/* Without memory they are counted, and not told one by one. */
void exit_denials_take(struct exit_denials *d, struct denials *from, struct atoll_exit *exit)
{
    d->heard = *from;
    *from = (struct denials){0};
    exit->more_denials = d->heard.more;
    if (d->heard.n == 0)
        return;
    d->list = calloc(d->heard.n, sizeof *d->list);
    if (!d->list) {
        exit->more_denials += d->heard.n;
        return;
    }
    for (size_t i = 0; i < d->heard.n; i++)
        d->list[i] = public(&d->heard.items[i]);
    exit->denials = d->list;
    exit->n_denials = d->heard.n;
}

void exit_denials_done(struct exit_denials *d)
{
    free(d->list);
    d->list = NULL;
    denials_done(&d->heard);
}
