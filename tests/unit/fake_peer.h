/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of a session, for tests: small pieces of a keeper or backend program. A test's own
 * program serves as that program, too: run under another name, main() hands over to a fake.
 */
#pragma once

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/channel.h"
#include "wire/control.h"
#include "wire/fault.h"
#include "wire/files.h"

static inline void fake_send(struct channel *c, uint16_t type, uint32_t id, const struct writer *w)
{
    if (channel_send(c, type, id, w ? w->start : NULL, w ? writer_len(w) : 0, NULL, 0) < 0)
        _exit(3);
}

static inline void fake_hello(struct channel *c, uint32_t major, uint32_t minor)
{
    const struct hello hello = {major, minor, "fake"};
    uint8_t buf[128];
    struct writer w = writer_over(buf, sizeof buf);

    hello_encode(&w, &hello);
    fake_send(c, MSG_HELLO, 0, &w);
}

static inline void fake_number(struct channel *c, uint16_t type, uint32_t id, uint16_t tag,
                               uint32_t value)
{
    uint8_t buf[32];
    struct writer w = writer_over(buf, sizeof buf);

    field_put_u32(&w, tag, value);
    fake_send(c, type, id, &w);
}

static inline void fake_output(struct channel *c, uint32_t id, uint32_t stream, const void *data,
                               size_t len)
{
    static uint8_t buf[FRAME_PAYLOAD_MAX];
    const struct stream_data x = {.stream = stream, .data = data, .len = len};
    struct writer w = writer_over(buf, sizeof buf);

    stream_data_encode(&w, &x);
    fake_send(c, MSG_OUTPUT, id, &w);
}

static inline void fake_exited(struct channel *c, uint32_t id, const struct exit_report *x)
{
    uint8_t buf[256];
    struct writer w = writer_over(buf, sizeof buf);

    exit_report_encode(&w, x);
    fake_send(c, MSG_EXITED, id, &w);
}

static inline void fake_error(struct channel *c, uint32_t id, int code, const char *message)
{
    struct error err = ERROR_INIT;
    uint8_t buf[2048];
    struct writer w = writer_over(buf, sizeof buf);

    (void)error_set(&err, ERROR_RECOVERABLE, code, "%s", message);
    fault_encode(&w, &err);
    fake_send(c, MSG_ERROR, id, &w);
}

/* Waits for the next message; false at the end of the stream. The message is valid until then. */
static inline bool fake_receive(struct channel *c, struct message *m)
{
    for (;;) {
        int r = channel_receive(c, m);

        if (r != 0)
            return r > 0;
        struct pollfd p = {.fd = c->fd, .events = POLLIN | (channel_waiting(c) ? POLLOUT : 0)};
        (void)poll(&p, 1, -1);
        (void)channel_flush(c);
    }
}
