/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 from libcrypto. */
#include "export/digest.h"

#include <assert.h>

/* The calls that OpenSSL 3 deprecates in favour of its general interface, which digest.h says why
 * not to use. They are still declared for programs that ask for the interface of 1.1.1. */
#define OPENSSL_API_COMPAT 0x10101000L
#include <openssl/sha.h>

#include "base/guards.h"

static_assert(sizeof(SHA256_CTX) <= sizeof(struct digest), "room for libcrypto's state");
static_assert(_Alignof(SHA256_CTX) <= _Alignof(struct digest), "aligned for libcrypto's state");
static_assert(DIGEST_BYTES == SHA256_DIGEST_LENGTH, "libcrypto's length of a sum");

static SHA256_CTX *state_of(struct digest *d)
{
    return (SHA256_CTX *)(void *)d->state;
}

/* None of the three fails: they return 1 whatever they are given. */

void digest_init(struct digest *d)
{
    (void)SHA256_Init(state_of(d));
}

void digest_add(struct digest *d, const void *data, size_t len)
{
    (void)SHA256_Update(state_of(d), data, len);
}

void digest_end(struct digest *d, uint8_t ret[static DIGEST_BYTES])
{
    (void)SHA256_Final(ret, state_of(d));
}

void digest_text(const uint8_t sum[static DIGEST_BYTES], char ret[static DIGEST_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        ret[2 * i] = digits[sum[i] >> 4];
        ret[2 * i + 1] = digits[sum[i] & 15];
    }
    ret[DIGEST_TEXT_BYTES - 1] = '\0';
}
