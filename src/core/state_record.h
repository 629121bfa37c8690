/* SPDX-License-Identifier: Apache-2.0 */
/* record.json: what a held sandbox is, as a file. */
#pragma once

#include "core/state.h"

/* As many tags as a spec may have, each of the length it may have, every character escaped. */
enum { STATE_RECORD_BYTES_MAX = 8 * 1024 * 1024 };

/** state_record_write() - record.json into the folder; whole or not at all. 0 or a negative errno
 */
int state_record_write(int folder, const struct state_record *r);

/**
 * state_record_read() - record.json of the folder
 *
 * Return: 0 with @ret owned; -EPROTO for one that this program does not understand; a negative
 * errno.
 */
int state_record_read(int folder, struct state_record *ret);
