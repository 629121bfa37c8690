/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a staged file and proving that it holds what came out of the sandbox: each piece is
 * hashed (SHA-256, FIPS 180-4), written, read back from the file and compared with the piece that
 * was hashed. So the sum is that of the source stream and of the file.
 *
 * Small files are written at once. Of large ones the hashing is the slowest part, so writing,
 * reading back and synchronising are the work of a process of their own, which shares a ring of
 * buffers with this one, holds nothing but that, its socket and the file, and dies with its parent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"

enum { COPIER_SUM_BYTES = 32, COPIER_SUM_TEXT = 65 };

struct copier_process; /* the ring and the process */

/* One file that is being written; zeroed: none. It must stay where it is until its end. */
struct copier {
    struct copier_process *process; /* borrowed; NULL: all of it is done at once */
    int fd;                         /* borrowed: the staged file, opened O_RDWR */
    uint64_t bytes;                 /* taken so far */
    uint8_t sum[COPIER_SUM_BYTES];  /* once done: of all of it */
    void *owner;
    void (*more)(struct copier *w); /* there is room again, after copier_room() said 0 */
    void (*done)(struct copier *w); /* all is written, compared and on disk */
    void (*failed)(struct copier *w, const struct error *err); /* no further callback */
    struct copier_state *state;                                /* private; owned */
};

/**
 * copier_process_new() - start the process for large files
 * @l: on which its answers are received
 *
 * Return: 0 with @ret owned by the caller; or a negative errno with an error.
 */
int copier_process_new(struct loop *l, struct copier_process **ret, struct error *err);

/** copier_process_free() - end it, whatever it does; NULL is harmless */
void copier_process_free(struct copier_process *p);

/**
 * copier_start() - begin with a file
 * @w: process, fd, owner and callbacks are set by the caller
 *
 * One file at a time for each process. Return: 0, or a negative errno with an error.
 */
int copier_start(struct copier *w, struct error *err);

/** copier_room() - where the next bytes may be put: *@ret_room of them; NULL: wait for `more` */
uint8_t *copier_room(struct copier *w, size_t *ret_room);

/** copier_took() - @n bytes were put there: they are hashed, written and compared */
int copier_took(struct copier *w, size_t n, struct error *err);

/**
 * copier_finish() - that was all
 * @durable: flush this file to the disk by itself; otherwise that is left to copier_sync()
 *
 * Without a process `done` comes before the return.
 */
void copier_finish(struct copier *w, bool durable);

/** copier_stop() - give it up; no callback comes. Harmless on a zeroed one, or when over */
void copier_stop(struct copier *w);

/**
 * copier_sync() - flush the file system that @fd lies on (syncfs(2)), in the process
 *
 * For folders of many small files, whose own flushes would take far longer. `done` or `failed` of
 * @w tells the end. Return: 0, or a negative errno with an error.
 */
int copier_sync(struct copier *w, int fd, struct error *err);

/** copier_sum_text() - a sum in hexadecimal, lower case */
void copier_sum_text(const uint8_t sum[static COPIER_SUM_BYTES], char ret[static COPIER_SUM_TEXT]);
