/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to get out that was refused, as egress tells the keeper, the keeper its clients (in
 * EXITED), and events.jsonl its readers. Names and addresses are a guest's choice: whoever shows
 * them quotes them. Encoders and decoders as in wire/control.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

/* What was tried. */
enum denial_protocol {
    DENIAL_DNS, /* a name was asked for */
    DENIAL_TCP,
    DENIAL_UDP,
    DENIAL_TLS,  /* TCP that was let in, and whose ClientHello was not */
    DENIAL_HTTP, /* TCP that was let in, and whose request was not */
    DENIAL_OTHER,
    DENIAL_PROTOCOL__MAX,
};

/* Which rule refused it: enum policy_rule_kind as a number, and that entry as written. */
struct denial {
    uint32_t protocol;   /* enum denial_protocol */
    const char *name;    /* asked for, or that of the synthetic address; "" if none */
    const char *address; /* as text; "" for a name that was only asked for */
    uint32_t port;
    const char *rule;   /* "allow_egress_to[2] 'example.org'", or "no rule" */
    const char *reason; /* one sentence without a full stop */
    uint64_t bytes;     /* that came of the guest before it was refused */
    uint64_t at_us;     /* since the epoch */
    uint64_t repeated;  /* the same again that was not told; 0: told once */
    uint64_t dropped;   /* others before it that were too many to tell */
};

enum { DENIAL_TEXT_MAX = 1024 }; /* of each text, with its NUL */

/** denial_encode() - the fields of @x; texts are cut at DENIAL_TEXT_MAX, NULL is "" */
void denial_encode(struct writer *w, const struct denial *x);

/**
 * denial_decode() - 0 with views of the message, or -EPROTO
 *
 * No text is NULL or longer than DENIAL_TEXT_MAX. Without a protocol it is no denial; another field
 * that is missing is "" or 0.
 */
int denial_decode(struct reader message, struct denial *ret);

/** denial_size() - bytes that denial_encode() needs */
size_t denial_size(const struct denial *x);

/** denial_protocol_name() - "dns", "tcp", "udp", "tls", "http", "other" */
const char *denial_protocol_name(uint32_t protocol);
