/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process inside that serves file operations, one after another, for one client. It has the
 * rights of a command, so every path may be what it likes: the walk is the kernel's, in the
 * sandbox's own mount namespace, and ends at what a command could reach.
 *
 * Nothing is opened before it is known to be a regular file or a folder: a descriptor of O_PATH
 * comes first, which no FIFO, device or terminal notices, and is opened again when it is known.
 */
#pragma once

#include <sys/stat.h>

#include "init/init.h"
#include "wire/files.h"

enum {
    FILES_PATH_BYTES = FILE_PATH_BYTES_MAX + 1,
    FILES_BUFFER_BYTES = 256 * 1024,
    PROC_FS_MAGIC = 0x9fa0,
};

struct files {
    struct init *link; /* whose buffers serve this process's own socket */
    char workdir[FILES_PATH_BYTES];
    char path[FILES_PATH_BYTES];   /* of the request, or of the entry that is at fault */
    char target[FILES_PATH_BYTES]; /* of a link */
    uint8_t reply[FRAME_PAYLOAD_MAX];
    uint8_t buffer[FILES_BUFFER_BYTES];
    uint32_t id;    /* of the request */
    bool read_only; /* what writes is refused */
    int silence_ms; /* how long it waits for a request; -1: for ever */
};

/* --- files_answer.c --- */

/** files_fault() - ERROR for the request: @code is a negative errno, about @f->path */
void files_fault(struct files *f, int code);

/** files_fault_kind() - ERROR: @f->path is no regular file but of that kind */
void files_fault_kind(struct files *f, uint32_t kind);

/** files_fault_size() - ERROR: @f->path has @size bytes, and @max are allowed */
void files_fault_size(struct files *f, uint64_t size, uint64_t max);

/** files_done() - DONE, with @w's fields */
void files_done(struct files *f, const struct writer *w);

/** files_kind() - the kind of a file by its mode */
uint32_t files_kind(mode_t mode);

/** files_info() - what a file is; @target as it shall be told */
struct file_info files_info(const struct stat *st, const char *name, const char *target);

/* --- files_open.c --- */

/** files_look() - @path as O_PATH, and what it is; an owned fd or a negative errno */
int files_look(const char *path, int flags, struct stat *ret);

/** files_reopen() - a descriptor of O_PATH for reading; an owned fd or a negative errno */
int files_reopen(int fd, int flags);

/** files_temporary() - a name in @ret that nobody has guessed: ".atoll-" and 16 digits */
void files_temporary(char ret[static 24]);

/** files_write_all() - all of @data into @fd; 0 or a negative errno */
int files_write_all(int fd, const void *data, size_t len);

/** files_read_some() - read(2), past EINTR; a count or a negative errno */
ssize_t files_read_some(int fd, void *buf, size_t len);

/* The requests. Each sends its answer. */
void files_read(struct files *f, const struct file_request *x);
void files_stat(struct files *f, const struct file_request *x);
void files_list(struct files *f, const struct file_request *x);
void files_write(struct files *f, const struct file_request *x);
void files_pack(struct files *f, const struct file_request *x);
void files_unpack(struct files *f, const struct file_request *x);
