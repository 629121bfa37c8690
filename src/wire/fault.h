/* SPDX-License-Identifier: Apache-2.0 */
/* An error object on its way between processes: the fields of MSG_ERROR. */
#pragma once

#include "base/error.h"
#include "wire/frame.h"

/** fault_encode() - class, code and texts of @err as fields */
void fault_encode(struct writer *w, const struct error *err);

/**
 * fault_decode() - an error from a peer
 *
 * Texts longer than the error object holds are cut; an unknown class counts as terminal, since
 * what is not understood must not be retried. @ret must hold no error yet.
 * Return: 0 or -EPROTO.
 */
int fault_decode(struct reader message, struct error *ret);
