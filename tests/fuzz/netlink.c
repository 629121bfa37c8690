/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink messages and attributes: views stay inside, in order, and none is read twice. */
#include <stdint.h>
#include <stdlib.h>

#include "wire/netlink.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void walk(const uint8_t *p, const uint8_t *end, int depth)
{
    struct netlink_attribute a;
    const uint8_t *before = p;

    while (netlink_attribute_next(&p, end, &a)) {
        check(a.data == before + 4 && a.data + a.len <= p && p <= end);
        check((size_t)(p - a.data) < a.len + 4);
        before = p;
        if (depth < 4)
            walk(a.data, a.data + a.len, depth + 1);
    }
    check(p == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *p = data, *end = data + size, *before = p;
    struct netlink_message m;
    bool bad = false;

    while (netlink_next(&p, end, &m, &bad)) {
        int error = netlink_error(&m);

        check(!bad);
        check(m.payload == before + 16 && m.payload + m.len <= p && p <= end);
        check(error >= -1 && error <= 4095);
        walk(m.payload, m.payload + m.len, 0);
        before = p;
    }
    check(p == before && bad == (p != end));
    return 0;
}
