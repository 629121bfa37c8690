/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox for tests of file operations: a process that greets, and answers them in-band. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"
#include "client/session.h"
#include "fake_peer.h"

enum { FAKE_LIMIT_US = 20000000 };

/* Answers one request; runs in a process of its own. */
typedef void fake_answer(struct channel *c, uint16_t type, uint32_t id,
                         const struct file_request *x);

static inline void fake_files_serve(int fd, fake_answer *answer)
{
    struct channel c;
    struct message m;

    channel_init(&c, fd);
    while (fake_receive(&c, &m)) {
        struct file_request x;

        if (m.type == MSG_HELLO)
            fake_hello(&c, WIRE_VERSION_MAJOR, WIRE_VERSION_MINOR);
        else if (m.type >= MSG_READ && m.type <= MSG_UNPACK &&
                 file_request_decode(m.payload, &x) == 0)
            answer(&c, m.type, m.id, &x);
    }
    _exit(0);
}

/* @s: to be ended by session_end(), which waits for the process. */
static inline void fake_files_start(struct session *s, struct loop *l, fake_answer *answer)
{
    struct error err = ERROR_INIT;
    int pair[2];

    assert_int_equal(io_pair(pair), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(pair[0]);
        fake_files_serve(pair[1], answer);
    }
    (void)close(pair[1]);
    *s = (struct session)SESSION_INIT;
    assert_int_equal(session_adopt(s, pair[0], pid, &err), 0);
    s->in_band = true;
    assert_int_equal(session_watch(s, l, &err), 0);
}

static inline int fake_out_of_time(struct loop *l, struct loop_timer *t)
{
    (void)l;
    (void)t;
    return -ETIMEDOUT;
}

/* Until something stops the loop. */
static inline void fake_files_run(struct loop *l)
{
    struct loop_timer limit = {.name = "limit", .due = fake_out_of_time};

    l->stop = false;
    loop_at(l, &limit, clock_after_us(FAKE_LIMIT_US));
    assert_int_equal(loop_run(l), 0);
    loop_at(l, &limit, CLOCK_NEVER);
}

static inline void fake_done(struct channel *c, uint32_t id)
{
    fake_send(c, MSG_DONE, id, NULL);
}

static inline void fake_file(struct channel *c, uint32_t id, const struct file_info *x)
{
    uint8_t buf[8192];
    struct writer w = writer_over(buf, sizeof buf);

    file_info_encode(&w, x);
    fake_send(c, MSG_FILE, id, &w);
}

static inline void fake_fault(struct channel *c, uint32_t id, int code, const char *path)
{
    const struct file_fault fault = {.code = (uint32_t)code, .path = path};
    uint8_t buf[8192];
    struct writer w = writer_over(buf, sizeof buf);

    file_fault_encode(&w, ERROR_RECOVERABLE, &fault);
    fake_send(c, MSG_ERROR, id, &w);
}
