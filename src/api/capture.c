/* SPDX-License-Identifier: Apache-2.0 */
/* The last bytes of a stream. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/guards.h"

enum { FIRST_BYTES = 4096 };

/* Room for one byte more than is kept, since a NUL goes behind them. */
static int grow(struct capture *c, size_t wanted)
{
    size_t capacity = c->capacity ? c->capacity : FIRST_BYTES;

    while (capacity < wanted && capacity < c->max)
        capacity *= 2;
    if (capacity > c->max)
        capacity = c->max;
    if (capacity <= c->capacity)
        return 0;
    uint8_t *p = realloc(c->bytes, capacity + 1);
    if (!p)
        return -ENOMEM;
    c->bytes = p;
    c->capacity = capacity;
    return 0;
}

uint8_t *capture_space(struct capture *c, size_t *ret_room)
{
    /* The ring begins to turn only when it cannot grow any more. */
    if (c->length == c->capacity && c->start == 0 && grow(c, c->length + 1) < 0)
        return NULL;
    if (c->length < c->capacity) {
        *ret_room = c->capacity - c->length;
        return c->bytes + c->length;
    }
    *ret_room = c->capacity - c->start;
    return c->bytes + c->start;
}

void capture_took(struct capture *c, size_t n)
{
    c->total += n;
    if (c->length < c->capacity)
        c->length += n;
    else
        c->start = (c->start + n) % c->capacity;
}

int capture_finish(struct capture *c)
{
    if (!c->bytes && !(c->bytes = malloc(1)))
        return -ENOMEM;
    if (c->start > 0) {
        uint8_t *p = malloc(c->capacity + 1);

        if (!p)
            return -ENOMEM;
        memcpy(p, c->bytes + c->start, c->capacity - c->start);
        memcpy(p + c->capacity - c->start, c->bytes, c->start);
        free(c->bytes);
        c->bytes = p;
        c->start = 0;
    }
    c->bytes[c->length] = '\0';
    return 0;
}

void capture_done(struct capture *c)
{
    free(c->bytes);
    *c = (struct capture){0};
}
