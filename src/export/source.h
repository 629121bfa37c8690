/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all files of one export come through: the connection that they are read by, the process that
 * writes large ones, and the ceilings that hold for all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"
#include "client/files.h"
#include "export/copier.h"

struct source {
    struct files files; /* a connection of its own; main is the session */
    struct loop *loop;
    struct copier_process *process; /* started for the first large file; owned */
    uint64_t max_bytes;             /* of one file */
    uint64_t bytes;                 /* copied so far, of all files */
    uint64_t entries;               /* files, folders and links so far */
    bool in_band;
};

/** source_open() - @s and @l must live until source_close(); nothing is asked yet */
void source_open(struct source *src, struct session *s, struct loop *l, uint64_t max_bytes);

/** source_close() - harmless on a zeroed one, or twice; no copier may be under way */
void source_close(struct source *src);

/** source_check_size() - refuse (too_large) a file that is larger than one may be */
int source_check_size(const struct source *src, const char *path, uint64_t bytes,
                      struct error *err);

/** source_count() - one more file, folder or link; refused (too_large) beyond LIMIT_EXPORT_FILES */
int source_count(struct source *src, struct error *err);

/** source_copy() - copier_start() for a file of about @bytes, by the process if it is large */
int source_copy(struct source *src, struct copier *w, uint64_t bytes, struct error *err);

/** source_sync() - copier_sync(), by the process */
int source_sync(struct source *src, struct copier *w, int fd, struct error *err);

/** source_changed() - the error for a file that did not stay as it was. Return: -ESTALE */
int source_changed(const char *path, struct error *err);

/**
 * source_allowance_us() - how long something may take that has @bytes: 120 s, or longer at 1 MiB a
 *                         second
 */
uint64_t source_allowance_us(uint64_t bytes);

enum { SOURCE_BYTES_A_SECOND = 1024 * 1024 };

/** source_too_slow() - the error for what took longer than it may. Return: -ETIMEDOUT */
int source_too_slow(const char *path, uint64_t allowance_us, struct error *err);

enum { SOURCE_SHOWN_BYTES = 120 };

/** source_show() - a path from inside for an error: what is too long loses its beginning, and what
 * could drive a terminal is replaced */
void source_show(const char *path, char ret[static SOURCE_SHOWN_BYTES]);
