/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a spec file, in one table: what each is called there and on the command line, what
 * it takes, where it stands in struct spec. The file reader, the command line, and the reference
 * all follow it; core/spec_set.h judges values, core/spec_rules.h what must hold between fields.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/spec.h"

enum spec_section {
    SPEC_SECTION_SPEC,    /* what any sandbox is to be, whoever makes it */
    SPEC_SECTION_BACKEND, /* who makes it, and its size and lifetime */
    SPEC_SECTION_TOOLSET, /* what an agent's tools do with it */
    SPEC_SECTION__MAX,
};

/* What a field holds, and the type of its member of struct spec. */
enum spec_kind {
    SPEC_BOOL,     /* bool */
    SPEC_TEXT,     /* char *; NULL if unset */
    SPEC_CHOICE,   /* char *, one of spec_field.choices */
    SPEC_TEXTS,    /* struct string_list */
    SPEC_MAP,      /* struct string_list of KEY=VALUE, each key once */
    SPEC_VOLUMES,  /* volumes and n_volumes */
    SPEC_USER,     /* user_set, uid and gid */
    SPEC_SIZE,     /* uint64_t, bytes: parse_size() */
    SPEC_DURATION, /* uint64_t, microseconds: parse_duration() */
    SPEC_COUNT,    /* uint64_t, whole */
    SPEC_DECIMAL,  /* uint64_t, in parts of spec_field.scale */
    SPEC_KIND__MAX,
};

/* In the order of the reference. */
enum spec_field_id {
    SPEC_FIELD_ENV,
    SPEC_FIELD_BLOCK_NETWORK,
    SPEC_FIELD_ALLOW_EGRESS_TO,
    SPEC_FIELD_ALLOW_EGRESS_TO_CIDRS,
    SPEC_FIELD_PRIVATE_CIDRS,
    SPEC_FIELD_OWNER,

    SPEC_FIELD_NAME,
    SPEC_FIELD_IMAGE,
    SPEC_FIELD_WORKDIR,
    SPEC_FIELD_USER,
    SPEC_FIELD_HOSTNAME,
    SPEC_FIELD_VOLUMES,
    SPEC_FIELD_INPUTS,
    SPEC_FIELD_PUBLISH,
    SPEC_FIELD_TAGS,
    SPEC_FIELD_CPU,
    SPEC_FIELD_MEMORY,
    SPEC_FIELD_PIDS,
    SPEC_FIELD_DISK,
    SPEC_FIELD_SANDBOX_TIMEOUT,
    SPEC_FIELD_IDLE_TIMEOUT,
    SPEC_FIELD_EGRESS_ENFORCEMENT,
    SPEC_FIELD_RESOLVER,
    SPEC_FIELD_ADD_HOSTS,
    SPEC_FIELD_PROXY,
    SPEC_FIELD_PROXY_CREDENTIALS,
    SPEC_FIELD_PRICES,
    SPEC_FIELD_MAX_COST,
    SPEC_FIELD_AUDIT,

    SPEC_FIELD_TOOL_PREFIX,
    SPEC_FIELD_PURPOSE,
    SPEC_FIELD_TOOLS,
    SPEC_FIELD_DEFAULT_COMMAND_TIMEOUT,
    SPEC_FIELD_MAX_COMMAND_TIMEOUT,
    SPEC_FIELD_MAX_OUTPUT_LINES,
    SPEC_FIELD_MAX_OUTPUT_BYTES,
    SPEC_FIELD_MAX_RUN_OUTPUT_BYTES,
    SPEC_FIELD_MAX_READ_BYTES,
    SPEC_FIELD_EXPORTS,
    SPEC_FIELD_MAX_EXPORT_BYTES,
    SPEC_FIELD_EXPORT_CREDENTIALS,
    SPEC_FIELD_ATTACH_TO,
    SPEC_FIELD_TOOLSET_OWNER,
    SPEC_FIELD_MASK,

    SPEC_FIELD__MAX, /* at most 64: sets of fields are bits of a uint64_t */
};

struct spec_field {
    enum spec_section section;
    const char *name; /* its key in the section */
    enum spec_kind kind;
    bool secret;                /* its value is shown in no message */
    bool bare;                  /* a size: a number alone is bytes, as the field's name says */
    size_t offset;              /* in struct spec */
    uint64_t min, max;          /* of a number, both included; the entries of a list or map: max */
    uint64_t scale;             /* of a decimal: 1000 for thousandths */
    const char *const *choices; /* NULL-terminated */
    const char *preset;         /* the default as typed, or NULL: unset, empty */
    const char *option; /* on the command line, without dashes, where a command has it; NULL */
    const char *help;   /* a phrase without a full stop at its end */
    const char *about;  /* a sentence or two for the reference */
};

extern const struct spec_field spec_fields[SPEC_FIELD__MAX];

/* The values of egress_enforcement, for the option's row too; NULL-terminated. */
extern const char *const spec_egress_modes[];

/* What toolset.tools may name, in the order in which a model sees them; NULL-terminated. */
extern const char *const spec_optional_tools[];

/* What fields of the table may hold, for the rows of options that set them. */
#define SPEC_CPU_MIN_MILLI    UINT64_C(1)
#define SPEC_CPU_MAX_MILLI    UINT64_C(1024000)
#define SPEC_MEMORY_MIN_BYTES UINT64_C(1048576)
#define SPEC_MEMORY_MAX_BYTES (UINT64_C(16) << 40)
#define SPEC_TIME_MIN_US      UINT64_C(1000)

/** spec_section_name() - "spec", "backend" or "toolset"; static storage */
const char *spec_section_name(enum spec_section section);

/** spec_field_find() - the field of @section under the key @name, or SPEC_FIELD__MAX */
enum spec_field_id spec_field_find(enum spec_section section, const char *name);

/**
 * spec_field_elsewhere() - the field that is meant by a key which its section does not have
 *
 * One that another section has under this name, or one that the command line calls so
 * ("lifetime"). Return: the field, or SPEC_FIELD__MAX.
 */
enum spec_field_id spec_field_elsewhere(const char *name);

/**
 * spec_field_at() - the field that a problem's place names: "backend.volumes[2]", "spec.env.PATH"
 * @ret_rest: a view of what follows the field: "[2]", ".PATH" or ""
 *
 * Return: the field, or SPEC_FIELD__MAX.
 */
enum spec_field_id spec_field_at(const char *path, const char **ret_rest);

enum { SPEC_PATH_MAX = 64 };

/** spec_field_path() - "backend.memory" into @buf */
void spec_field_path(enum spec_field_id id, char buf[SPEC_PATH_MAX]);

/** spec_field_is_list() - whether values are added to it: a list, a map, or the volumes */
bool spec_field_is_list(enum spec_field_id id);

/** spec_field_reset() - back to the default, a list empty; 0 or -ENOMEM with nothing changed */
int spec_field_reset(struct spec *s, enum spec_field_id id);

/** spec_field_*_of() - the member of @s; the field's kind must have that type */
bool *spec_field_bool_of(struct spec *s, enum spec_field_id id);
char **spec_field_text_of(struct spec *s, enum spec_field_id id);
uint64_t *spec_field_number_of(struct spec *s, enum spec_field_id id);
struct string_list *spec_field_list_of(struct spec *s, enum spec_field_id id);

/** spec_field_bit() - of a set of fields */
static inline uint64_t spec_field_bit(enum spec_field_id id)
{
    return UINT64_C(1) << id;
}

/** spec_section_bits() - the set of all fields of a section */
uint64_t spec_section_bits(enum spec_section section);
