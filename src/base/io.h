/* SPDX-License-Identifier: Apache-2.0 */
/* EINTR-safe, bounded reads and writes, and packets with descriptors. No allocation. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { IO_FDS_MAX = 16 }; /* descriptors that one packet may carry */

/**
 * io_wait() - wait until @fd is ready for @events (poll(2)) or @deadline_us
 *
 * Return: 0, -ETIMEDOUT or a negative errno. Blocks.
 */
int io_wait(int fd, short events, uint64_t deadline_us);

/**
 * io_read_full() - read exactly @len bytes
 *
 * Return: 0; -EPIPE when the peer closed first; -ETIMEDOUT; a negative errno. Blocks at most until
 * @deadline_us if @fd is non-blocking.
 */
int io_read_full(int fd, void *buf, size_t len, uint64_t deadline_us);

/** io_write_full() - write all @len bytes; same results and blocking as io_read_full() */
int io_write_full(int fd, const void *buf, size_t len, uint64_t deadline_us);

/**
 * io_send_packet() - one packet of @head and @body on a SOCK_SEQPACKET socket
 * @fds: borrowed; the receiver gets duplicates
 *
 * Never blocks, never raises SIGPIPE. Return: 0, -EAGAIN when the socket is full, a negative errno.
 */
int io_send_packet(int fd, const void *head, size_t head_len, const void *body, size_t body_len,
                   const int *fds, size_t n_fds);

/**
 * io_recv_packet() - one packet, with the descriptors in it
 * @fds:       room for IO_FDS_MAX; set to owned, close-on-exec descriptors
 * @ret_n_fds: how many came
 *
 * Never blocks. Return: its length, 0 at the end of the stream (the protocol has no empty packet),
 * -EAGAIN, -EMSGSIZE for one that did not fit, -EMFILE when this process may not hold as many more
 * descriptors (in both cases those that came are closed), a negative errno.
 */
ssize_t io_recv_packet(int fd, void *buf, size_t size, int fds[static IO_FDS_MAX],
                       size_t *ret_n_fds);

/** io_pair() - a connected pair of non-blocking SOCK_SEQPACKET sockets, owned; 0 or -errno */
int io_pair(int ret[static 2]);
