/* SPDX-License-Identifier: Apache-2.0 */
/* Refused attempts from a peer: bounded, views of the message, and the same on a second trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/denial.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(const char *s, const uint8_t *data, size_t size)
{
    const uint8_t *p = (const uint8_t *)s;

    check(strlen(s) < DENIAL_TEXT_MAX);
    check(*s == '\0' || (p >= data && p + strlen(s) < data + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t buf[8 * DENIAL_TEXT_MAX];
    const uint8_t nothing = 0;
    struct denial x = {.protocol = DENIAL_PROTOCOL__MAX}, again;

    if (denial_decode(reader_over(data ? data : &nothing, size), &x) < 0) {
        check(x.protocol == DENIAL_PROTOCOL__MAX); /* results are written on success only */
        return 0;
    }
    check(x.protocol < DENIAL_PROTOCOL__MAX && x.port <= UINT16_MAX);
    check_text(x.name, data, size);
    check_text(x.address, data, size);
    check_text(x.rule, data, size);
    check_text(x.reason, data, size);
    check(denial_size(&x) <= sizeof buf);
    struct writer w = writer_over(buf, denial_size(&x));
    denial_encode(&w, &x);
    check(!w.bad);
    check(denial_decode(reader_over(buf, writer_len(&w)), &again) == 0);
    check(again.protocol == x.protocol && again.port == x.port && again.bytes == x.bytes &&
          again.at_us == x.at_us && again.repeated == x.repeated && again.dropped == x.dropped);
    check(strcmp(again.name, x.name) == 0 && strcmp(again.address, x.address) == 0 &&
          strcmp(again.rule, x.rule) == 0 && strcmp(again.reason, x.reason) == 0);
    return 0;
}
