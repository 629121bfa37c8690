/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4), as libcrypto's fastest code for this processor computes it. Of libcrypto
 * that is all: its general interface would bring megabytes and a start-up of its own into a program
 * of which every sandbox starts one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32, DIGEST_TEXT_BYTES = 65 };

struct digest {
    _Alignas(8) uint8_t state[112];
};

void digest_init(struct digest *d);
void digest_add(struct digest *d, const void *data, size_t len);

/** digest_end() - the sum of all that was added; @d has to begin anew */
void digest_end(struct digest *d, uint8_t ret[static DIGEST_BYTES]);

/** digest_text() - a sum in hexadecimal, lower case */
void digest_text(const uint8_t sum[static DIGEST_BYTES], char ret[static DIGEST_TEXT_BYTES]);
