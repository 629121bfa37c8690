/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address or a range as text. Whatever is taken is what inet_pton(3) reads too, and comes back
 * from its canonical form the same; its range holds it; what an IPv6 address carries is judged as
 * that address is; and no range is wider than it was written.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/address.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_address(const char *text, const struct address *a)
{
    char canonical[ADDRESS_TEXT_BYTES];
    struct address again, inner;
    uint8_t bytes[16] = {0};
    const char *form;

    check(inet_pton(a->family == ADDRESS_V4 ? AF_INET : AF_INET6, text, bytes) == 1);
    check(memcmp(bytes, a->bytes, sizeof bytes) == 0);
    address_format(a, canonical);
    check(address_parse(canonical, strlen(canonical), &again) == ADDRESS_GOOD &&
          address_equal(a, &again));
    struct address_range one = address_range_of(a);
    check(address_range_contains(&one, a));
    if (address_embedded(a, &inner, &form) && address_block(&inner))
        check(address_block(a) != NULL);
    again = address_unmapped(a);
    check((address_block(a) != NULL) == (address_block(&again) != NULL));
}

static void check_range(const struct address_range *r)
{
    char canonical[ADDRESS_RANGE_TEXT_BYTES];
    struct address_range again, v4;
    struct error err = ERROR_INIT;
    unsigned bits = r->base.family == ADDRESS_V4 ? 32 : 128;

    check(r->prefix <= bits && address_range_contains(r, &r->base));
    for (unsigned i = r->prefix; i < bits; i++)
        check(!(r->base.bytes[i / 8] & (0x80u >> (i % 8))));
    address_range_format(r, canonical);
    check(address_range_parse(canonical, &again, &err) == 0);
    check(again.prefix == r->prefix && address_equal(&again.base, &r->base));
    check(address_range_within(r, &again) && address_range_within(&again, r));
    if (address_range_unmapped(r, &v4))
        check(v4.base.family == ADDRESS_V4 && v4.prefix + 96 == r->prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = malloc(size + 1);
    struct address_range range;
    struct error err = ERROR_INIT;
    struct address a;

    check(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    enum address_fault fault = address_parse(text, size, &a);
    if (fault == ADDRESS_GOOD)
        check_address(text, &a);
    else
        check(address_fault_text(fault)[0] != '\0');
    if (address_range_parse(text, &range, &err) == 0)
        check_range(&range);
    else
        check(err.code != 0 && err.cls == ERROR_USAGE && err.message[0] && err.remedy[0]);
    return 0;
}
