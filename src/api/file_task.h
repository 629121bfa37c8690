/* SPDX-License-Identifier: Apache-2.0 */
/* An operation on files as a caller sees it: where its bytes go, and what it keeps of answers. */
#pragma once

#include "api/api.h"

/* What becomes of a file's bytes. */
enum task_form {
    TASK_ANSWER, /* there are none: stat, list, a small write */
    TASK_FILE,   /* a read for the caller: the open file, or a pipe in-band */
    TASK_BYTES,  /* a read into memory */
    TASK_STREAM, /* a pipe of the caller's: write, pack, unpack */
    TASK_FEED,   /* a large write from memory */
};

struct file_task {
    struct atoll_op op;
    enum task_form form;
    struct file_op file;
    struct files own; /* a connection of its own, for what streams; main NULL: none */
    int fd;           /* the caller's end or file; owned until taken; -EBADF */
    struct atoll_file info;
    char *target;
    uint64_t offset, length, max_bytes; /* of a read */

    /* TASK_BYTES, and what TASK_FEED has to send */
    uint8_t *bytes;
    size_t at, len;
    int source_fd; /* the file that is being read, or the pipe that is fed; owned */
    struct loop_source feed;
    struct loop_timer more;

    /* LIST and SKIPPED: the messages, and views into them */
    uint8_t **messages;
    size_t n_messages, message_bytes;
    struct atoll_file *entries;
    size_t n_entries;
    const char **skipped;
    size_t n_skipped;
};

/**
 * file_task_new() - an operation that is not yet asked for; NULL without memory
 * @own: whether it needs a connection of its own
 */
struct file_task *file_task_new(struct atoll_sandbox *sb, enum task_form form, bool own);

/**
 * file_task_start() - ask for it; it fails at once where that cannot be
 * @pipe_fd: taken; as for file_op_start()
 */
void file_task_start(struct file_task *t, uint16_t type, const struct file_request *x, int pipe_fd);

/** file_task_fail() - an error that came before it was asked for */
void file_task_fail(struct file_task *t, int code, const char *what);
