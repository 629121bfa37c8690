/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream as messages: however it is cut into reads, the same messages come, and the same
 * end. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/channel.h"
#include "base/guards.h"

enum { PIECE_MAX = 4096 }; /* what a pipe takes at once */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came, so that two runs can be compared. */
struct outcome {
    size_t n_messages, n_bytes;
    uint64_t hash;
    int end;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void note(struct outcome *o, const void *data, size_t len)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < len; i++)
        o->hash = (o->hash ^ p[i]) * 1099511628211u;
}

/* Takes all that is here. Return: as channel_receive(). */
static int take_messages(struct channel *c, struct outcome *o)
{
    struct message m;
    int r;

    while ((r = channel_receive(c, &m)) == 1) {
        check(m.n_fds == 0 && reader_left(&m.payload) <= MESSAGE_BYTES_MAX);
        o->n_messages++;
        o->n_bytes += reader_left(&m.payload);
        note(o, &m.type, sizeof m.type);
        note(o, &m.id, sizeof m.id);
        note(o, m.payload.p, reader_left(&m.payload));
    }
    return r;
}

static struct outcome run(const uint8_t *data, size_t size, size_t piece)
{
    struct outcome o = {0};
    struct channel c;
    int p[2], r = 0;

    check(pipe2(p, O_CLOEXEC) == 0);
    check(channel_init_stream(&c, p[0], open("/dev/null", O_WRONLY | O_CLOEXEC)) == 0);
    for (size_t at = 0; r == 0 && at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;

        check(write(p[1], data + at, len) == (ssize_t)len);
        r = take_messages(&c, &o);
    }
    fd_closep(&p[1]);
    if (r == 0)
        r = take_messages(&c, &o);
    check(r == -EPIPE || r == -EPROTO);
    o.end = r;
    channel_done(&c);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = run(data, size, PIECE_MAX);
    size_t piece = 1 + (size > 0 ? data[size / 2] % 61 : 0) + size / 512;
    struct outcome pieces = run(data, size, piece < PIECE_MAX ? piece : PIECE_MAX);

    check(whole.n_messages == pieces.n_messages && whole.n_bytes == pieces.n_bytes);
    check(whole.hash == pieces.hash && whole.end == pieces.end);
    check(whole.n_bytes + whole.n_messages * FRAME_HEADER_BYTES <= size);
    return 0;
}
