/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement of a ClientHello. */
#include "egress/judge_tls.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "egress/egress.h"
#include "wire/tls_hello.h"
#include "base/guards.h"

static_assert((int)TLS_HELLO_BYTES_MAX <= (int)FLOW_SCRATCH_BYTES,
              "a ClientHello fits the scratch buffer");

/* Has the kernel wake us only when @bytes are there, an end or an error aside. */
static void set_low_water(struct flow *f, size_t bytes)
{
    int n = (int)bytes;

    f->low_water = bytes > 1;
    (void)setsockopt(f->relay.fds[0], SOL_SOCKET, SO_RCVLOWAT, &n, sizeof n);
}

static enum judge_tls settle(struct flow *f, enum judge_tls verdict)
{
    if (f->low_water)
        set_low_water(f, 1);
    f->deadline_us = CLOCK_NEVER;
    return verdict;
}

static enum judge_tls refuse(struct flow *f, const char *reason, size_t bytes)
{
    flow_refuse(f, DENIAL_TLS, reason, bytes);
    return JUDGE_TLS_OVER;
}

static enum judge_tls refuse_other(struct flow *f, const struct tls_hello *hello, size_t bytes)
{
    char shown[TLS_SERVER_NAME_MAX + 1], reason[768];

    memcpy(shown, hello->name, sizeof shown);
    text_make_printable(shown);
    (void)snprintf(reason, sizeof reason,
                   "the ClientHello names the server '%s', and the address is that of '%s'", shown,
                   f->name->text.text);
    return refuse(f, reason, bytes);
}

/* Both names in their one form, so that nobody behind us can read one of them differently. */
static bool is_same_name(const struct flow *f, const char *presented)
{
    struct host_name name;

    return host_name_read(presented, strlen(presented), &name) == 0 &&
           strcmp(name.text, f->name->text.text) == 0;
}

static enum judge_tls judge_hello(struct flow *f, const struct tls_hello *hello, size_t bytes)
{
    if (!hello->named)
        return refuse(f, "the ClientHello names no server", bytes);
    if (!is_same_name(f, hello->name))
        return refuse_other(f, hello, bytes);
    return settle(f, JUDGE_TLS_GOOD);
}

static enum judge_tls judge_bytes(struct flow *f, const uint8_t *data, size_t n, bool ended)
{
    struct tls_hello hello = {0};

    switch (tls_hello_parse(data, n, &hello)) {
    case TLS_HELLO_MORE:
        if (ended)
            return refuse(f, "the connection ended within its ClientHello", n);
        if (f->deadline_us == CLOCK_NEVER)
            flow_expect(f);
        set_low_water(f, hello.need);
        return JUDGE_TLS_MORE;
    case TLS_HELLO_DONE:
        return judge_hello(f, &hello, n);
    case TLS_HELLO_NOT_TLS:
        return f->kind == FLOW_TLS ? refuse(f, "the first bytes are not TLS", n)
                                   : settle(f, JUDGE_TLS_NONE);
    case TLS_HELLO_BAD:
        break;
    }
    return refuse(f, "the ClientHello is damaged or too large", n);
}

enum judge_tls judge_tls(struct flow *f, bool ended)
{
    uint8_t *data = f->egress->flows.scratch;
    ssize_t n = recv(f->relay.fds[0], data, TLS_HELLO_BYTES_MAX, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return JUDGE_TLS_MORE;
    if (n > 0 && (f->kind == FLOW_TLS || data[0] == TLS_RECORD_HANDSHAKE))
        return judge_bytes(f, data, (size_t)n, ended);
    if (n >= 0 && f->kind == FLOW_TCP)
        return settle(f, JUDGE_TLS_NONE);
    flow_end(f, n < 0); /* it has said nothing, so there is nothing to refuse */
    return JUDGE_TLS_OVER;
}
