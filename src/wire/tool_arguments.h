/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a tool call, as a model wrote them: JSON text (RFC 8259), judged by the tool's
 * schema. Models are imprecise in known ways, so a number may come as a string ("30"), an integer
 * as 2.0, and what the schema does not know is passed over. What is wrong is said in a sentence for
 * the model.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TOOL_ARGUMENTS_MAX = 4, TOOL_ARGUMENTS_DEPTH_MAX = 64 };
#define TOOL_ARGUMENTS_BYTES_MAX (UINT64_C(256) << 20)

enum tool_type { TOOL_STRING, TOOL_NUMBER, TOOL_INTEGER };

struct tool_property {
    const char *name;
    enum tool_type type;
    bool required;
    bool nullable; /* null means the same as leaving it out */
    const char *description;
};

struct tool_schema {
    struct tool_property properties[TOOL_ARGUMENTS_MAX];
    size_t n;
};

struct tool_argument {
    bool given;    /* and not null */
    char *text;    /* TOOL_STRING: UTF-8, NUL-terminated behind len; owned */
    size_t len;    /* may hold NULs */
    double number; /* TOOL_NUMBER: any, NaN and infinity too; TOOL_INTEGER: a whole one */
};

struct tool_arguments {
    struct tool_argument items[TOOL_ARGUMENTS_MAX]; /* in the order of the schema */
};

/**
 * tool_arguments_parse() - read and judge
 * @json: @len bytes of any content; empty means {}
 *
 * Strings stay exactly as they are. Numbers: also from strings that hold one, "nan" and "inf" among
 * them, and true and false as 1 and 0. Integers: whole numbers, however written. Refused: what is
 * not JSON, not an object, an unpaired surrogate (the error names it as such), a missing required
 * property, null for one that is not nullable, another type. Return: 0 with @ret owned by the
 * caller (tool_arguments_done()); -EINVAL with a recoverable error whose message names the
 * property; -E2BIG; -ENOMEM.
 */
int tool_arguments_parse(const char *json, size_t len, const struct tool_schema *schema,
                         struct tool_arguments *ret, struct error *err);
void tool_arguments_done(struct tool_arguments *a);
