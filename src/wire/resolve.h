/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What egress asks the process `resolve`, and what that answers: one packet each way on a
 * SOCK_SEQPACKET socket. Either side treats the other's packets as foreign.
 *
 *     question   id:u32 kind:u8 name…            kind 1; the name as text, to the packet's end
 *     answer     id:u32 status:u8 n:u8 zero:u16, then n times family:u8 (4 or 6) and 16 bytes
 *
 * Numbers are little endian. Answers come in any order. A name is in its one form: labels of 1 to
 * 63 lower case letters, digits, hyphens and underscores, parted by dots, with no dot at its end.
 * Pure code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESOLVE_NAME_MAX = 253,
    RESOLVE_ADDRESSES_MAX = 32,
    RESOLVE_PACKET_MAX = 8 + 17 * RESOLVE_ADDRESSES_MAX,
};

enum resolve_status {
    RESOLVE_FOUND,     /* with one address or more */
    RESOLVE_NOT_FOUND, /* there is no such name, or it has no address */
    RESOLVE_FAILED,    /* nobody could say: a name server did not answer, or answered nonsense */
    RESOLVE_STATUS__MAX,
};

struct resolve_address {
    uint8_t family;    /* 4 or 6 */
    uint8_t bytes[16]; /* network order; of IPv4 the first four, and the rest zero */
};

struct resolve_answer {
    uint32_t id;
    enum resolve_status status;
    struct resolve_address addresses[RESOLVE_ADDRESSES_MAX];
    size_t n;
};

/** resolve_question_encode() - bytes written to @buf (RESOLVE_PACKET_MAX suffices), 0: no name */
size_t resolve_question_encode(uint32_t id, const char *name, uint8_t *buf, size_t size);

/** resolve_question_parse() - 0 with @name NUL-terminated, or -EPROTO */
int resolve_question_parse(const uint8_t *data, size_t len, uint32_t *ret_id,
                           char name[static RESOLVE_NAME_MAX + 1]);

/** resolve_answer_encode() - bytes written to @buf, 0: no answer that could be parsed again, or
 * @size too small */
size_t resolve_answer_encode(const struct resolve_answer *x, uint8_t *buf, size_t size);

/** resolve_answer_parse() - 0 with @ret set, or -EPROTO */
int resolve_answer_parse(const uint8_t *data, size_t len, struct resolve_answer *ret);
