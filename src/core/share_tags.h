/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tags by which a backend that knows no leases lets several share a sandbox: whom it was made
 * for, who uses it now, when it ends, what it may reach, where commands start. They are read,
 * compared, written and read back by whoever attaches (client/claim.h), which is weaker than a
 * lock: nothing keeps two from writing at the same time.
 *
 * The names are those of the tool sets that share sandboxes so already. All functions are pure but
 * for memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "core/spec.h"
#include "wire/control.h"

#define SHARE_TAG_OWNER   "airflow_owner"
#define SHARE_TAG_HOLDER  "airflow_holder"
#define SHARE_TAG_EXPIRES "airflow_expires_at" /* whole seconds since the epoch */
#define SHARE_TAG_NETWORK "airflow_network"    /* policy_stamp_encode() */
#define SHARE_TAG_WORKDIR "airflow_workdir"    /* only if one was chosen */

/* Tags of a sandbox, K=V each; views. */
struct share_tags {
    const char *const *items;
    size_t n;
};

/** share_tags_find() - the value of @key, a view; NULL: there is no such tag, or it is empty */
const char *share_tags_find(const struct share_tags *t, const char *key);

/** share_tag_reserved() - whether the key of tag "K=V" is one of those above */
bool share_tag_reserved(const char *tag);

/**
 * share_tags_admit() - whether @holder may use a sandbox with these tags, made for @owner
 *
 * Return: 1 if it holds it already; 0 if nobody does; else as lease_judge().
 */
int share_tags_admit(const struct share_tags *t, const char *owner, const char *holder,
                     struct error *err);

/** share_tags_judge_end() - lease_judge_end() for a sandbox with these tags */
int share_tags_judge_end(const struct share_tags *t, const char *owner, struct error *err);

/**
 * share_tags_report() - what an attach learns from them
 * @ret:     views; generation 0
 * @warning: what could not be understood, as a sentence; empty: nothing
 */
void share_tags_report(const struct share_tags *t, uint64_t epoch_us, struct attach_report *ret,
                       char *warning, size_t size);

/**
 * share_tags_stamp() - the tags of a new sandbox: those of the spec and, if it has an owner, ours
 * @ret: zeroed; owned by the caller, also on failure
 *
 * Keys that are reserved are not an author's to set. Return: 0 or -ENOMEM.
 */
int share_tags_stamp(const struct spec *s, uint64_t epoch_us, struct string_list *ret);
