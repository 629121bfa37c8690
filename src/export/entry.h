/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an export is made of, for its phases, each in a file of its own: look (what is there, and
 * where it goes), copy, publish. What a phase is told of comes in callbacks of the loop; what it
 * does next waits for the loop's next turn (export_next()), so that nothing is freed below its own
 * callback.
 */
#pragma once

#include <sys/types.h>

#include "core/destination.h"
#include "export/export.h"
#include "export/export_file.h"
#include "export/export_folder.h"
#include "export/export_walk.h"
#include "export/journal.h"
#include "export/manifest.h"
#include "export/pattern.h"
#include "export/source.h"
#include "export/staging.h"

struct export_entry {
    char *path; /* as it was given; owned */
    char *url;  /* its placeholders are filled; owned */
    struct destination to;
    bool is_pattern;
    bool is_folder; /* or a pattern: a folder is published */
    struct pattern pattern;
    struct staging_place place;
    struct manifest manifest; /* of a folder */
    mode_t mode;              /* to publish with */
    uint8_t sum[COPIER_SUM_BYTES];
    uint64_t files, bytes;
};

enum {
    TOP_BYTES = FILE_PATH_BYTES_MAX + 4,
    TOPS_NAME_BYTES = 2 * (FILE_PATH_BYTES_MAX + 4),
};

struct exporting {
    struct export_entry *entries;
    size_t n;
    char *sandbox, *backend; /* owned */
    struct export_events events;
    void *owner;
    struct loop *loop; /* NULL: it has not begun */
    struct session *session;
    struct session_request telling;
    struct source source;
    struct journal journal;
    bool has_journal;

    struct loop_timer next;
    int (*work)(struct exporting *x, struct error *err); /* what is due */
    size_t at;                                           /* the entry that is worked on */
    size_t match;                                        /* of its pattern's matches */

    struct file_op op; /* of the look */
    uint32_t kind;     /* what it found … */
    uint64_t size;
    struct export_file file;
    struct export_folder folder;
    struct export_walk walk;
    struct copier copier; /* of a manifest, and of the disk */
    int fd;               /* a file in a staged folder; owned; -EBADF: none */

    /* By which names what is copied is judged: the ends of the path that was asked for, and of the
     * destination's. Large, and asked for each file: not on the stack. */
    struct {
        char inside[TOP_BYTES], here[TOP_BYTES];
        char name[TOPS_NAME_BYTES];
    } tops;

    bool over, failed;
    struct error error;
    struct export_result *results;
    char **warnings;
    size_t n_warnings;
};

/** export_next() - do @work at the loop's next turn; a failure of it is that of the export */
void export_next(struct exporting *x, int (*work)(struct exporting *x, struct error *err));

/** export_fail() - the entry that is worked on failed by @err; only the first failure counts */
void export_fail(struct exporting *x, const struct error *err);

/** export_warn() - keep a sentence for export_warning() */
void export_warn(struct exporting *x, const struct error *err);

/**
 * export_explain() - "Could not export PATH from sandbox ID on backend NAME to URL: CAUSE"
 * @e:     which entry
 * @cause: what went wrong; its class, code and remedy stay
 * @more:  follows the cause; may be empty
 */
void export_explain(const struct exporting *x, const struct export_entry *e,
                    const struct error *cause, const char *more, struct error *ret);

/** export_clean_up() - remove what is staged, and close everything; harmless twice */
void export_clean_up(struct exporting *x);

/**
 * export_tell() - tell the sandbox's keeper how it went, if that has events
 *
 * Return: whether x->next is called when it has written that down; otherwise nothing is waited for.
 */
bool export_tell(struct exporting *x);

/** export_succeed() - all is published and cleaned up: tell so at the next turn */
void export_succeed(struct exporting *x);

/* The phases: look at the first entry, copy the first, publish all. */
int export_look(struct exporting *x, struct error *err);
int export_copy(struct exporting *x, struct error *err);
int export_publish(struct exporting *x, struct error *err);
