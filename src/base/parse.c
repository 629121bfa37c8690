/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers, sizes and durations. */
#include "base/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

/* Digits at @s; @ret_end points behind them. */
static int digits(const char *s, const char **ret_end, uint64_t *ret)
{
    uint64_t v = 0;

    if (*s < '0' || *s > '9')
        return -EINVAL;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return -ERANGE;
    *ret_end = s;
    *ret = v;
    return 0;
}

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
    const char *end;
    uint64_t v;
    int r = digits(s, &end, &v);

    if (r < 0)
        return r;
    if (*end != '\0')
        return -EINVAL;
    if (v < min || v > max)
        return -ERANGE;
    *ret = v;
    return 0;
}

int parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_bytes)
{
    static const struct {
        char upper, lower;
        unsigned shift;
    } units[] = {{'K', 'k', 10}, {'M', 'm', 20}, {'G', 'g', 30}, {'T', 't', 40}};
    const char *end;
    uint64_t v;
    unsigned shift = 0;
    int r = digits(s, &end, &v);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (*end == units[i].upper || *end == units[i].lower)
            shift = units[i].shift;
    if (shift > 0) {
        end++;
        if (strcmp(end, "") != 0 && strcmp(end, "B") != 0 && strcmp(end, "iB") != 0)
            return -EINVAL;
    } else if (strcmp(end, "B") != 0) {
        return -EINVAL;
    }
    if (shift > 0 && v > UINT64_MAX >> shift)
        return -ERANGE;
    v <<= shift;
    if (v < min || v > max)
        return -ERANGE;
    *ret_bytes = v;
    return 0;
}

/* Up to six digits after the point, as millionths; more precision than that is refused. */
static int fraction(const char *s, const char **ret_end, uint64_t *ret_millionths)
{
    uint64_t v = 0, scale = 1000000;

    if (*s < '0' || *s > '9')
        return -EINVAL;
    for (; *s >= '0' && *s <= '9'; s++) {
        if (scale == 1)
            return -EINVAL;
        scale /= 10;
        v += (uint64_t)(*s - '0') * scale;
    }
    *ret_end = s;
    *ret_millionths = v;
    return 0;
}

int parse_duration(const char *s, uint64_t min_us, uint64_t max_us, uint64_t *ret_us)
{
    static const struct {
        const char *unit;
        uint64_t us;
    } units[] = {{"", 1000000},   {"ms", 1000},      {"s", 1000000},
                 {"m", 60000000}, {"h", 3600000000}, {"d", 86400000000}};
    uint64_t whole, millionths = 0, v;
    const char *end;
    int r = digits(s, &end, &whole);

    if (r < 0)
        return r;
    if (*end == '.') {
        r = fraction(end + 1, &end, &millionths);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (strcmp(end, units[i].unit) != 0)
            continue;
        if (__builtin_mul_overflow(whole, units[i].us, &v) ||
            __builtin_add_overflow(v, millionths * (units[i].us / 1000) / 1000, &v))
            return -ERANGE;
        if (v < min_us || v > max_us)
            return -ERANGE;
        *ret_us = v;
        return 0;
    }
    return -EINVAL;
}

int parse_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
