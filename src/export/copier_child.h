/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that writes large files: what it and its parent say to each other, one packet on a
 * SOCK_SEQPACKET socket for each message. The bytes themselves are in a ring of slots that both
 * have mapped.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum {
    COPIER_SLOTS = 8,
    COPIER_SLOT_BYTES = 1024 * 1024,
    /* The slots, and behind them what the process reads back into. */
    COPIER_RING_BYTES = (COPIER_SLOTS + 1) * COPIER_SLOT_BYTES,
};

enum copier_order_kind {
    COPIER_BEGIN, /* a file, whose descriptor comes along; closes the one before */
    COPIER_SLOT,  /* @len bytes of slot @slot are the next ones of it */
    COPIER_END,   /* those were all: compare the size and, if @durable, fsync(2) */
    COPIER_SYNC,  /* syncfs(2) for the descriptor that comes along */
    COPIER_DROP,  /* close the file */
};

struct copier_order {
    uint32_t kind;
    uint32_t file; /* a number for each file, which answers bear */
    uint32_t slot;
    uint32_t len;
    uint32_t durable;
};

enum copier_answer_kind {
    COPIER_FREE,   /* slot @slot may be filled again */
    COPIER_DONE,   /* of COPIER_END and COPIER_SYNC */
    COPIER_FAILED, /* with @code; nothing more comes for this file but COPIER_FREE */
};

struct copier_answer {
    uint32_t kind;
    uint32_t file;
    uint32_t slot;
    int32_t code; /* errno value, positive; EBADMSG: read back differently */
};

/**
 * copier_write() - write @len bytes at @offset, read them back and compare
 * @spare: room for @spare_len bytes
 *
 * Return: 0; -EBADMSG; a negative errno. Blocks. Safe between fork(2) and _exit(2).
 */
int copier_write(int fd, const uint8_t *data, size_t len, off_t offset, uint8_t *spare,
                 size_t spare_len);

/** copier_check_size() - 0, -EBADMSG when the file does not have @size bytes, a negative errno */
int copier_check_size(int fd, uint64_t size);

/**
 * copier_child_main() - what the process does: never returns
 * @socket: blocking or not; every other descriptor of the process is closed
 * @parent: whose child this must be
 * @ring:   COPIER_RING_BYTES, shared with the parent
 *
 * Its process may be a copy of one that has threads, so it neither allocates nor takes locks
 * (signal-safety(7)). All signals are blocked by the caller.
 */
_Noreturn void copier_child_main(int socket, pid_t parent, uint8_t *ring);
