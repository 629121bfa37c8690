/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders between this host and a sandbox, as tar streams: what `cp` and the inputs of
 * `create` stand on. The host's side is client/tree_pack.h and client/tree_unpack.h, which trust
 * nothing that comes from inside.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cli/command.h"
#include "cli/handle.h"
#include "client/tree.h"

/* What a destination says about where the copy goes. */
enum copy_to {
    COPY_LIKE_CP,     /* a folder that is there takes it in, else it is what the copy is called */
    COPY_INTO_FOLDER, /* the same, and it must be a folder that is there */
    COPY_AS,          /* it is what the copy is called: a folder's entries go into that folder */
};

struct copy {
    struct cli *cli;
    struct handle *handle;
    json_t *skipped; /* an array of {path, reason}; NULL: warnings on standard error alone */
    struct tree_totals totals;
    bool quiet;                   /* no progress */
    uint64_t started_us, told_us; /* of the progress */
    bool told;
    const uint64_t *now; /* bytes of the copy under way */
};

/** copy_name() - the last part of @path as an owned name; NULL for "/", "." and "..", or memory */
char *copy_name(const char *path);

/**
 * copy_in() - a file or folder of the host's into the sandbox
 * @source: followed if it is a link
 * @to:     a path inside; missing folders are made
 *
 * Return: 0, or a negative errno with an error; what was complete by then stays.
 */
int copy_in(struct copy *c, const char *source, const char *to, enum copy_to how,
            struct error *err);

/**
 * copy_out() - a file or folder of the sandbox's to the host
 * @from: a path inside
 * @to:   a path of the host; a file that is there is replaced, a folder never
 * @how:  not COPY_AS
 */
int copy_out(struct copy *c, const char *from, const char *to, enum copy_to how, struct error *err);

/** copy_stream_in() - a tar stream from @fd into the folder @to, which is made if absent */
int copy_stream_in(struct copy *c, int fd, const char *to, struct error *err);

/** copy_stream_out() - @from as a tar stream to @fd */
int copy_stream_out(struct copy *c, const char *from, int fd, struct error *err);

/* What the four share (copy.c). */

/** copy_skipped() - tell that @path was left out; @arg is a struct copy */
void copy_skipped(void *arg, const char *path, const char *why);

/** copy_op_skipped() - the same for all that a done pack or unpack names */
void copy_op_skipped(struct copy *c, const struct atoll_op *op);

/**
 * copy_drive() - move a stream until it and its operation are done
 * @fd:   of the operation; closed at the end of its stream
 * @step: as tree_pack_step() and tree_unpack_step()
 *
 * Return: 0, or the error that tells more: that of @step, or that of the operation.
 */
int copy_drive(struct copy *c, struct atoll_op *op, short events,
               int (*step)(void *arg, int fd, struct error *err), void *arg, struct error *err);

/** copy_total() - add to the totals what one copy has moved */
void copy_total(struct copy *c, const struct tree_totals *t);
