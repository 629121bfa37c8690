/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a single text of a spec may be: owners, ports, tags, destinations and the like. For
 * core/spec_set.c, which hands over one value at a time and stores what is good.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/spec_set.h"

/* One value on its way into a spec; all borrowed. */
struct spec_value {
    struct spec_filling *f;
    enum spec_field_id id;
    const char *where; /* its name in problems; NULL: the field's path */
    const char *key;   /* of an entry of a map; else NULL */
    const char *text;
};

/**
 * spec_refuse() - put a problem about @v on the list
 * @remedy: copied, or NULL
 *
 * Return: false, so that a judging function can end with `return spec_refuse(…)`.
 */
__attribute__((format(printf, 3, 4))) bool spec_refuse(const struct spec_value *v,
                                                       const char *remedy, const char *fmt, ...);

/** spec_text_is_good() - whether a field of one text may have it; refused if not */
bool spec_text_is_good(const struct spec_value *v);

/** spec_entry_is_good() - the same for an entry of a list; those of the network are not judged
 * here, but by core/policy.h when the lists are complete */
bool spec_entry_is_good(const struct spec_value *v);

/** spec_pair_is_good() - the same for an entry of a map other than env */
bool spec_pair_is_good(const struct spec_value *v);

/** spec_input_is_good() - whether the source of an input is there, and its place inside is free */
bool spec_input_is_good(const struct spec_value *v, const char *source);

/**
 * spec_parse_decimal() - "0.5" in parts of 1/@scale, a power of ten
 *
 * Return: 0; -EINVAL, also for more decimals than @scale keeps; -ERANGE if outside @min..@max.
 */
int spec_parse_decimal(const char *text, uint64_t scale, uint64_t min, uint64_t max, uint64_t *ret);
