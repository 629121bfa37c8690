/* SPDX-License-Identifier: Apache-2.0 */
/* From use and prices to a cost. */
#include "core/cost.h"

#include <string.h>

#include "core/limits.h"
#include "core/spec_grammar.h"
#include "base/guards.h"

#define HOUR_US UINT64_C(3600000000)
#define HOUR_MS UINT64_C(3600000)

/* Prices and use go up to 2^64 each. */
__extension__ typedef unsigned __int128 wide;

/* The price of a unit, in millionths; 0: it has none. */
static uint64_t price_of(const struct spec *s, const char *unit)
{
    size_t n = strlen(unit);
    uint64_t price = 0;

    for (size_t i = 0; i < s->prices.n; i++) {
        const char *entry = s->prices.items[i];

        if (strncmp(entry, unit, n) == 0 && entry[n] == '=' &&
            spec_parse_decimal(entry + n + 1, 1000000, 0, UINT64_MAX, &price) < 0)
            price = 0; /* spec_check() lets no such text pass */
    }
    return price;
}

struct prices cost_prices(const struct spec *s)
{
    return (struct prices){.cpu_hour_micro = price_of(s, "cpu_hour"),
                           .gib_hour_micro = price_of(s, "gib_hour")};
}

bool cost_counts_memory(const struct spec *s)
{
    return price_of(s, "gib_hour") > 0;
}

bool cost_needs_group(const struct spec *s)
{
    return s->max_cost_micro > 0 || cost_counts_memory(s);
}

void cost_add_memory(struct cost_use *use, uint64_t bytes, uint64_t us)
{
    wide more = (wide)(bytes / LIMIT_KIB) * us / 1000;
    wide sum = more + use->memory_kib_ms;

    use->memory_kib_ms = sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}

uint64_t cost_micro(const struct prices *p, const struct cost_use *use)
{
    /* Each quotient is below 2^97, so that their sum cannot wrap. */
    wide cpu = (wide)p->cpu_hour_micro * use->cpu_us / HOUR_US;
    wide memory =
        (wide)p->gib_hour_micro * use->memory_kib_ms / ((wide)HOUR_MS * (LIMIT_GIB / LIMIT_KIB));
    wide sum = cpu + memory;

    return sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}
