/* SPDX-License-Identifier: Apache-2.0 */
/* A spec for one who keeps it longer than it was lent. */
#pragma once

#include "core/spec_fields.h"

/**
 * spec_copy() - a copy of some fields of a spec, and the defaults of all others
 * @fields: as spec_field_bit(); UINT64_MAX: all, and what is not of the spec file too
 *
 * Return: 0 with @ret owned by the caller (spec_done()), or -ENOMEM.
 */
int spec_copy(const struct spec *s, uint64_t fields, struct spec *ret);
