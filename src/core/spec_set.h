/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling a spec from texts, field by field. Whatever is wrong with a value is a problem on a list,
 * so that one pass over a file or a command line finds all of it; the field keeps what it had. What
 * must hold between fields is asked at the end: core/spec_rules.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/problems.h"
#include "core/spec_fields.h"

struct spec_filling {
    struct spec *spec;         /* borrowed, made by spec_init() */
    struct problems *problems; /* borrowed */
    const char
        *folder; /* where relative paths of the host start; borrowed; NULL: the current one */
    struct position at; /* of the value that is being set, for its problems; zero: in no file */
    uint64_t given;     /* the fields that were set, as spec_field_bit() */
};

/**
 * spec_set() - set a field, or add one entry to it
 * @where: the value's name in problems: "backend.volumes[2]", "--memory"; NULL: the field's path
 * @text:  copied; a bool is "true" or "false", an entry of a map is "KEY=VALUE"
 *
 * A key that a map already has gets the new value. Sources of volumes and inputs must exist; blocks
 * for as long as the file system takes to say so. Return: whether it was taken; else there is a
 * problem, which shows no value of a field that may hold a secret.
 */
bool spec_set(struct spec_filling *f, enum spec_field_id id, const char *where, const char *text);

/** spec_set_pair() - the same for an entry of a map whose key and value are apart */
bool spec_set_pair(struct spec_filling *f, enum spec_field_id id, const char *where,
                   const char *key, const char *value);

/**
 * spec_set_env() - the same for NAME=VALUE as bytes, or a NAME that takes its value from @callers
 * @callers: borrowed, the caller's environment; NULL refuses a bare name
 */
bool spec_set_env(struct spec_filling *f, const char *where, const char *text,
                  char *const callers[]);

/** spec_set_number() - a number in its field's own unit, which must be within its range */
void spec_set_number(struct spec_filling *f, enum spec_field_id id, uint64_t value);

/** spec_set_bool() - a bool */
void spec_set_bool(struct spec_filling *f, enum spec_field_id id, bool value);

/** spec_reset() - back to the default, as one who never set it; false without memory */
bool spec_reset(struct spec_filling *f, enum spec_field_id id);

/** spec_field_wants() - "a size such as 512M", to follow "is not"; static storage */
const char *spec_field_wants(enum spec_field_id id);

/** spec_field_remedy() - how to write a value of the field, as a sentence; static storage */
const char *spec_field_remedy(enum spec_field_id id);
