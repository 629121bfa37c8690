/* SPDX-License-Identifier: Apache-2.0 */
/* Logged packets: a destination is told for IP packets only, and is one that stands in the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/nflog.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool stands_in(const uint8_t *data, size_t size, const uint8_t *what, size_t len)
{
    for (size_t i = 0; i + len <= size; i++)
        if (memcmp(data + i, what, len) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t zero[16] = {0};
    uint8_t before[sizeof(struct nflog_packet)], after[sizeof before];
    struct nflog_packet x;

    memset(&x, 0x5A, sizeof x);
    memset(before, 0x5A, sizeof before);
    if (nflog_parse(data, size, &x) < 0) {
        memcpy(after, &x, sizeof after);
        check(memcmp(before, after, sizeof before) == 0); /* nothing is written */
        return 0;
    }
    check(x.family == 4 || x.family == 6);
    check(stands_in(data, size, x.address, x.family == 4 ? 4 : 16));
    check(x.family == 6 || memcmp(x.address + 4, zero, 12) == 0);
    check(x.sequenced || x.sequence == 0);
    if (x.port != 0) {
        uint8_t port[2] = {(uint8_t)(x.port >> 8), (uint8_t)x.port};

        check(stands_in(data, size, port, sizeof port));
        check(x.protocol == 6 || x.protocol == 17 || x.protocol == 33 || x.protocol == 132 ||
              x.protocol == 136);
    }
    return 0;
}
