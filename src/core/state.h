/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state folder: what tells of the local sandboxes that are held. One folder for each, named by
 * its id, with
 *
 *     control      the socket of its keeper
 *     record.json  what it is, for `atoll list` and for people; no values of variables
 *     events.jsonl what has happened to it (keeper/events.h)
 *
 * It is $ATOLL_STATE_DIR, else $XDG_RUNTIME_DIR/atoll, else /run/atoll for root, else
 * /tmp/atoll-UID. It is made with mode 0700, and refused when it is another user's or others may
 * write to it; a sandbox's own folder in it is always 0700. A keeper makes its
 * sandbox's folder when the sandbox stands and removes it with the sandbox. One whose keeper was
 * killed is left behind; its socket refuses connections, which proves that nobody is there.
 *
 * Beside those folders lie the journals of exports (export/journal.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/state_record.h"

/** state_folder_open() - the state folder, made if absent; an owned fd or -errno with an error */
int state_folder_open(struct error *err);

/**
 * state_publish() - let a sandbox be found
 * @r: its id and all the rest
 *
 * Makes its folder under another name, with a listening socket and the record in it, and renames it
 * last: whoever sees it can connect. Return: an owned listening socket, non-blocking, or a negative
 * errno with an error; then nothing is left.
 */
int state_publish(const struct state_record *r, struct error *err);

/** state_update() - another record for a sandbox that is published; -ENOENT: it is not; or -errno
 */
int state_update(const struct state_record *r);

/**
 * state_sweep_some() - look at a few of the folders, and remove those that died keepers have left
 * @here: place_read()
 * @seed: which ones; a random number
 *
 * What each one that makes a sandbox does, so that leftovers do not add up where nobody calls
 * state_list(). Wakes no keeper, and takes no longer than a few files are read in.
 */
void state_sweep_some(const struct place *here, uint64_t seed);

/**
 * state_events_begin() - the file for the events of sandbox @id, which has none yet
 *
 * Return: an owned fd that appends, or a negative errno.
 */
int state_events_begin(const char *id);

/**
 * state_events_create() - another one, empty, which nobody sees yet
 *
 * Return: as above. state_events_place() puts it where the events are read, in place of what is
 * there, in one step; 0 or a negative errno.
 */
int state_events_create(const char *id);
int state_events_place(const char *id);

/**
 * state_sandbox_folder() - the folder of a held sandbox, for who reads or watches its events
 *
 * Return: an owned fd, or a negative errno with an error: as state_connect(), but that its keeper
 * is not asked.
 */
int state_sandbox_folder(const char *id, struct error *err);

#define STATE_EVENTS "events.jsonl" /* in that folder */

/** state_withdraw() - remove the folder of sandbox @id; harmless when it is gone */
void state_withdraw(const char *id);

/**
 * state_connect() - reach the keeper of a held sandbox
 *
 * Return: an owned, connected, non-blocking socket; a negative errno with an error that says why
 * not: no id, another host, boot or user, never there, or gone.
 */
int state_connect(const char *id, struct error *err);

/**
 * state_list() - the held sandboxes that live, oldest first
 *
 * Folders of dead keepers are removed on the way; records of other hosts, boots and users are
 * passed over. @ret is owned by the caller: state_records_free().
 */
int state_list(struct state_record **ret, size_t *ret_n, struct error *err);
void state_records_free(struct state_record *r, size_t n);

/** state_sweep() - remove the folders of dead keepers; @ret_n: how many. 0 or -errno with an error
 */
int state_sweep(size_t *ret_n, struct error *err);
