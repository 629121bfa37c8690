/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports: files and folders of a sandbox are published at destinations of the host, all or none.
 *
 * Copy phase: one after another, each is read from the sandbox into a staging place beside its
 * destination (export/staging.h), hashed and compared (export/copier.h). Publish phase, only when
 * every copy is whole and on disk: each is renamed into its place, in order; if one cannot be,
 * those before it are taken back. Until the first rename no reader of a destination can notice
 * anything.
 *
 * A file is read through one descriptor and looked at before and after, so a path that is swapped
 * meanwhile changes nothing, and a file that grows, shrinks or is written to fails the export.
 * Folders come as one tar stream. Everything has ceilings: bytes of a file, files of an export, and
 * an allowance of time, which is 120 s or what the size takes at 1 MiB a second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"
#include "client/session.h"
#include "core/spec.h"
#include "export/copier.h"

/* What became of one entry; strings are the export's. The URL is without placeholders. */
struct export_result {
    const char *path, *url;
    bool folder;               /* a folder, or all that a pattern matched */
    char sum[COPIER_SUM_TEXT]; /* of a file; of a folder, of its manifest */
    uint64_t files, bytes;
};

struct export_options {
    const struct string_list *entries; /* PATH=URL; copied */
    uint64_t max_bytes;                /* of one file */
    const char *sandbox;               /* its id, for sentences and the manifest; copied */
    const char *backend;
};

struct exporting;

struct export_events {
    void (*done)(struct exporting *x);
    /* Nothing was published, or the error says what was and could not be taken back. */
    void (*failed)(struct exporting *x, const struct error *err);
};

/**
 * export_check() - judge entries before anything is spent: their URLs, and that none clash
 *
 * Placeholders (core/destination.h) are filled with samples.
 *
 * Return: 0, or -EINVAL (usage), naming the entry.
 */
int export_check(const struct string_list *entries, struct error *err);

/**
 * export_new() - an export that has not begun
 *
 * Placeholders are filled from the sandbox's id and with the time of this moment.
 *
 * Return: 0 with @ret owned by the caller; or a negative errno with an error as of export_check().
 */
int export_new(const struct export_options *options, const struct export_events *events,
               void *owner, struct exporting **ret, struct error *err);

/**
 * export_start() - copy, then publish
 * @s: watched on @l; of a sandbox that stands. Both must live until export_free()
 *
 * Ends with exactly one event, which may come at once.
 */
void export_start(struct exporting *x, struct session *s, struct loop *l);

void *export_owner(const struct exporting *x);

/** export_results() - what was published, in the order of the entries; once done */
const struct export_result *export_results(const struct exporting *x, size_t *ret_n);

/** export_warning() - what is left behind or could not be synchronised, sentence @i; NULL: no more
 */
const char *export_warning(const struct exporting *x, size_t i);

/** export_progress() - bytes copied so far */
uint64_t export_progress(const struct exporting *x);

/** export_free() - give it up if it is under way, removing what is staged; NULL is harmless */
void export_free(struct exporting *x);
