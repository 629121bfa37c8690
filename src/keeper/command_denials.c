/* SPDX-License-Identifier: Apache-2.0 */
/* The refused attempts of one command. */
#include "keeper/command_denials.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "keeper/events.h"
#include "wire/control.h"
#include "base/guards.h"

/* Further ones are known by a hash each, so that they are counted once; above so many, every
 * attempt counts. */
enum { OTHERS_MAX = 1024 };

struct command_denials {
    struct denial items[DENIALS_OF_COMMAND]; /* with texts of their own */
    size_t n;
    uint64_t *others; /* hashes */
    size_t n_others;
    uint64_t more;
};

static bool same(const struct denial *a, const struct denial *b)
{
    return a->protocol == b->protocol && a->port == b->port && strcmp(a->name, b->name) == 0 &&
           strcmp(a->address, b->address) == 0;
}

/* FNV-1a (RFC 9923). */
static uint64_t hash_text(uint64_t h, const char *s)
{
    do
        h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001B3);
    while (*s++);
    return h;
}

static uint64_t hash(const struct denial *x)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325) ^ ((uint64_t)x->protocol << 32 | x->port);

    return hash_text(hash_text(h, x->name), x->address);
}

static void denial_free(struct denial *x)
{
    free((char *)(uintptr_t)x->name);
    free((char *)(uintptr_t)x->address);
    free((char *)(uintptr_t)x->rule);
    free((char *)(uintptr_t)x->reason);
}

static int keep(struct command_denials *d, const struct denial *x)
{
    struct denial copy = *x;

    copy.name = strdup(x->name);
    copy.address = strdup(x->address);
    copy.rule = strdup(x->rule);
    copy.reason = strdup(x->reason);
    if (!copy.name || !copy.address || !copy.rule || !copy.reason) {
        denial_free(&copy);
        return -ENOMEM;
    }
    copy.dropped = 0;
    d->items[d->n++] = copy;
    return 0;
}

/* One more than can be told. */
static void count_other(struct command_denials *d, const struct denial *x)
{
    const uint64_t h = hash(x);

    for (size_t i = 0; i < d->n_others; i++)
        if (d->others[i] == h)
            return;
    if (!d->others)
        d->others = calloc(OTHERS_MAX, sizeof *d->others);
    if (d->others && d->n_others < OTHERS_MAX)
        d->others[d->n_others++] = h;
    d->more++;
}

int command_denials_note(struct command_denials **ret, const struct denial *x)
{
    struct command_denials *d = *ret;

    if (!d && !(d = *ret = calloc(1, sizeof *d)))
        return -ENOMEM;
    d->more += x->dropped;
    for (size_t i = 0; i < d->n; i++)
        if (same(&d->items[i], x)) {
            d->items[i].repeated += x->repeated + 1;
            d->items[i].bytes += x->bytes;
            return 0;
        }
    if (d->n < DENIALS_OF_COMMAND)
        return keep(d, x);
    count_other(d, x);
    return 0;
}

size_t command_denials_size(const struct command_denials *d)
{
    size_t size = d ? FIELD_HEADER_BYTES + sizeof(uint64_t) : 0;

    for (size_t i = 0; d && i < d->n; i++)
        size += exit_denial_size(&d->items[i]);
    return size;
}

void command_denials_encode(struct writer *w, const struct command_denials *d)
{
    for (size_t i = 0; d && i < d->n; i++)
        exit_denial_encode(w, &d->items[i]);
    if (d && d->more > 0)
        field_put_u64(w, TAG_DENIAL_DROPPED, d->more);
}

void command_denials_free(struct command_denials *d)
{
    for (size_t i = 0; d && i < d->n; i++)
        denial_free(&d->items[i]);
    if (d)
        free(d->others);
    free(d);
}
