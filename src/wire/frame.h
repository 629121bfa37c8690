/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and messages, the envelope of the sandbox protocol (docs/design/protocol.md).
 *
 * A frame is a 16-byte header and a payload. On a SOCK_SEQPACKET socket one packet is one frame;
 * on a byte stream frames follow each other. A message is the payloads of one or more frames with
 * the same type and id, all but the last full and marked FRAME_MORE. A message's payload is a row
 * of fields: tag, length, bytes. Unknown tags are skipped, so a newer peer may add some.
 *
 *     0      4      6      8      12     16
 *     length type   flags  id     zero   payload…            all numbers little endian
 *     tag:u16 zero:u16 length:u32 bytes…                     one field
 */
#pragma once

#include "wire/reader.h"

enum {
    FRAME_HEADER_BYTES = 16,
    FRAME_PAYLOAD_MAX = 32 * 1024,       /* a packet of it fits the default socket buffer */
    MESSAGE_BYTES_MAX = 4 * 1024 * 1024, /* above what execve takes: 2 MiB of arguments */
    FIELD_HEADER_BYTES = 8,
};

enum { FRAME_MORE = 1 << 0 };

struct frame {
    uint32_t length; /* payload bytes that follow the header */
    uint16_t type;
    uint16_t flags;
    uint32_t id; /* chosen by the asker; answers and events about its request carry it */
};

enum parse_result { PARSE_DONE, PARSE_MORE, PARSE_BAD };

/**
 * frame_parse() - the frame at the start of @len bytes
 * @ret_payload: a view into @data
 *
 * The announced length is judged before it is waited for. A pure function.
 * Return: PARSE_DONE; PARSE_MORE when bytes are missing; PARSE_BAD when no further bytes can
 * make it a frame: a length over FRAME_PAYLOAD_MAX, FRAME_MORE on one that is not full, an unknown
 * flag, a non-zero reserved word.
 */
enum parse_result frame_parse(const void *data, size_t len, struct frame *ret,
                              struct reader *ret_payload);

/** frame_header() - write @f's header into @buf */
void frame_header(const struct frame *f, uint8_t buf[static FRAME_HEADER_BYTES]);

struct field {
    uint16_t tag;
    struct reader value; /* view into the message */
};

/**
 * field_next() - the next field of a message
 *
 * Return: true with @ret set; false at the end, and then @r->bad tells a damaged message.
 */
bool field_next(struct reader *r, struct field *ret);

/** field_u32(), field_u64() - a number field; false unless it has exactly that size */
bool field_u32(const struct field *f, uint32_t *ret);
bool field_u64(const struct field *f, uint64_t *ret);

/**
 * field_string() - a text field, as a NUL-terminated view
 *
 * Strings travel with their terminating NUL, so that a receiver can use them in place. Return:
 * NULL when the NUL is missing or stands inside.
 */
const char *field_string(const struct field *f);

/* Writers of one field each; the writer turns bad when the buffer is too small. */
void field_put_bytes(struct writer *w, uint16_t tag, const void *data, size_t len);
void field_put_string(struct writer *w, uint16_t tag, const char *s);
void field_put_u32(struct writer *w, uint16_t tag, uint32_t v);
void field_put_u64(struct writer *w, uint16_t tag, uint64_t v);
