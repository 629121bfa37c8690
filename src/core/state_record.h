/* SPDX-License-Identifier: Apache-2.0 */
/* record.json: what a held sandbox is, as a file. */
#pragma once

#include <stdint.h>

#include "core/sandbox_id.h"
#include "core/spec.h"

enum {
    STATE_RECORD_VERSION = 1,
    /* As many tags as a spec may have, each of the length it may have, every character escaped. */
    STATE_RECORD_BYTES_MAX = 8 * 1024 * 1024,
};

/* What record.json is called until all of it is written. */
#define STATE_RECORD_NEW "record.json.new"

/* What record.json holds. Owned strings, NULL where there is none. */
struct state_record {
    char id[SANDBOX_ID_BYTES];
    struct place place;
    int64_t pid;                           /* of the keeper */
    uint64_t created_at_us, expires_at_us; /* since the epoch; 0: never */
    char *name, *owner, *image, *program;  /* program: version of the keeper's */
    struct string_list tags;               /* K=V */
};

/** state_record_done() - free what it owns; harmless on a zeroed one */
void state_record_done(struct state_record *r);

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
