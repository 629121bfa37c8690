/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One regular file, from inside into a staged one.
 *
 * Where descriptors can be passed, the open file itself comes: it is looked at before and after
 * (size, times, inode), so that neither a swapped path nor a writer goes unnoticed. In-band its
 * bytes come through a pipe, in ranges, and what is told of it with each range and at the end must
 * agree.
 */
#pragma once

#include <sys/stat.h>

#include "export/source.h"

/* It must stay where it is from export_file_start() until `done`, `failed` or export_file_stop().
 */
struct export_file {
    /* Set by the caller. */
    struct source *source; /* borrowed */
    const char *path;      /* inside; borrowed */
    int to;                /* the staged file, opened O_RDWR; borrowed */
    bool durable;          /* to be flushed to the disk by itself */
    void *owner;
    void (*done)(struct export_file *f); /* it is whole; copier.sum and bytes hold */
    void (*failed)(struct export_file *f, const struct error *err);

    struct copier copier;
    mode_t mode; /* permission bits that it has inside */

    /* Private. */
    struct file_op op;
    bool under_way, known, range_ended;
    int from; /* the file, or the pipe of a range; owned */
    uint64_t size, mtime_ns;
    struct stat before;
    uint64_t started_us;
    unsigned waited; /* ticks of the clock */
    struct loop_source input;
    struct loop_timer step, allowance;
};

/** export_file_start() - ends with one callback, which may come before the return */
void export_file_start(struct export_file *f);

/** export_file_stop() - give it up; no callback comes. Harmless on a zeroed one, or when over */
void export_file_stop(struct export_file *f);
