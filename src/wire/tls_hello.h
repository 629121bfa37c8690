/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first message of a TLS client (RFC 8446, 4.1.2; records: 5.1; server name: RFC 6066, 3), read
 * for the one fact that a policy asks for: which server it names. Nothing is decrypted or changed.
 *
 * A handshake message may be spread over many records, and come byte by byte. What is read is
 * bounded and judged before it is waited for. Pure code: no call blocks or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Of all records of a ClientHello; post-quantum key shares make them some 2 KiB long. */
    TLS_HELLO_BYTES_MAX = 64 * 1024,
    TLS_SERVER_NAME_MAX = 255,
    TLS_RECORD_HANDSHAKE = 22, /* the first byte of a TLS connection */
};

enum tls_hello_state {
    TLS_HELLO_MORE, /* a ClientHello so far; @need says how many bytes in all are asked for */
    TLS_HELLO_DONE,
    TLS_HELLO_NOT_TLS, /* the bytes are something else */
    TLS_HELLO_BAD,     /* begins as TLS and is damaged, too large, or not a ClientHello */
};

struct tls_hello {
    bool named;                         /* it has a server name */
    char name[TLS_SERVER_NAME_MAX + 1]; /* as it stands there, without any zero byte in it */
    bool encrypted;                     /* an encrypted_client_hello extension is there */
    bool early_data;                    /* data follows before the server answers */
    size_t bytes;                       /* of the records that it takes */
    size_t need;                        /* with TLS_HELLO_MORE: bytes in all to look again at */
};

/**
 * tls_hello_parse() - the ClientHello at the start of @len bytes
 *
 * Damaged are: an empty record or a record above 2^14 bytes (RFC 8446, 5.1), a record of another
 * kind among them, a length that does not add up, an extension or a kind of name that comes twice
 * (4.2; RFC 6066, 3), a server name that is empty, longer than TLS_SERVER_NAME_MAX or holds a zero
 * byte, bytes left over. "No server name" is not damage: it is the policy's to judge.
 *
 * More bytes never undo an answer other than TLS_HELLO_MORE, and what is not TLS is known from its
 * first two bytes. @ret is always written; but for TLS_HELLO_DONE only @need is set, if that.
 */
enum tls_hello_state tls_hello_parse(const uint8_t *data, size_t len, struct tls_hello *ret);
